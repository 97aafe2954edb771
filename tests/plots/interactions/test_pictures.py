"""Pictures of interactions draw the scores that they are given, with their signs."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from interaction_scores import random_scores, scores_of
from matplotlib import pyplot as plt
from matplotlib.colors import same_color
from scipy.stats import norm

import propopt as po
from propopt.base.errors import InvalidInput
from propopt.base.text import Quantity
from propopt.plots.attributions import LOWERS, RAISES


NAMES = ("a", "b in $", "c", "d")
SCORES = {(0, 1): 2.0, (0, 2): 0.1, (1, 2): -1.0, (2, 3): 0.4}
"""Of errors of 0.1: clear are all but (0, 2), and (0, 3), (1, 3) were not scored."""

PICTURES = [
    po.plots.interaction_heatmap,
    po.plots.interaction_intervals,
    po.plots.interaction_network,
]


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


@pytest.fixture(name="pairs")
def made_pairs():
    return scores_of(NAMES, SCORES)


def names_below(axes):
    axes.figure.canvas.draw()
    return [label.get_text() for label in axes.get_yticklabels()]


@pytest.mark.parametrize("picture", PICTURES)
def test_a_picture_draws_where_it_is_told_and_says_what_the_intervals_are(
    picture, pairs
):
    _, ax = plt.subplots()
    assert picture(pairs, ax=ax) is ax
    title = "Squared error\n90 % intervals, Bonferroni of 4"
    assert ax.get_title(loc="left") == title
    alone = picture(pairs, level=0.95, adjust="none")
    assert alone.get_title(loc="left").endswith("\n95 % intervals, each alone")


@pytest.mark.parametrize(
    ("error", "quantity", "title"),
    [
        ("squared", {"model": "Ridge"}, "Squared error of prediction of Ridge"),
        (
            "absolute",
            {"model": "Ridge", "outcome": "price"},
            "Absolute error of predicted price",
        ),
        (
            "probability",
            {"model": "SVC", "kind": "probability", "outcome": "churn"},
            "1 − probability of the true class of churn, by SVC",
        ),
        (
            "brier",
            {"model": "SVC", "kind": "probability"},
            "Brier error of the probabilities of SVC",
        ),
    ],
)
@pytest.mark.parametrize("picture", PICTURES)
def test_a_title_says_whose_error_of_what_is_explained(picture, error, quantity, title):
    scores = scores_of(NAMES, SCORES, error=error, quantity=Quantity(**quantity))
    assert picture(scores).get_title(loc="left").splitlines()[0] == title


def test_sets_that_are_not_used_are_crosses():
    errors = np.array([0.1, 0.1, 0.0, 0.0])
    scores = scores_of(
        NAMES,
        {(0, 1): 2.0, (0, 2): 0.1, (1, 3): 0.0, (2, 3): 0.0},
        standard_errors=errors,
        not_used=(3,),
    )
    axes = po.plots.interaction_intervals(scores)
    crosses = [dots for dots in axes.containers if dots.get_label() == "not used"]
    assert [own.lines[0].get_marker() for own in crosses] == ["x"]
    assert crosses[0].lines[0].get_xdata().tolist() == [0.0, 0.0]
    assert names_below(axes)[2:] == ["b in \\$ × d", "c × d"]


def test_intervals_reach_as_far_as_all_candidates_need():
    chosen = scores_of(NAMES, SCORES, n_candidates=45)
    axes = po.plots.interaction_intervals(chosen)
    ends = [
        segment[:, 0]
        for bars in axes.containers
        for segment in bars.lines[2][0].get_segments()
    ]
    reach = 0.1 * norm.isf(0.1 / 2 / 45)
    wanted = [(value - reach, value + reach) for value in SCORES.values()]
    np.testing.assert_allclose(sorted(map(tuple, ends)), sorted(wanted), rtol=1e-12)


def test_intervals_stand_in_falling_order_with_all_names(pairs):
    axes = po.plots.interaction_intervals(pairs)
    assert names_below(axes) == ["a × b in \\$", "c × d", "a × c", "b in \\$ × c"]
    assert axes.yaxis_inverted()
    assert axes.lines[0].get_xdata() == [0.0, 0.0]
    assert axes.get_xlabel() == "iLOCO, in squared units of the target"


def test_signs_of_intervals_have_a_marker_and_a_colour(pairs):
    axes = po.plots.interaction_intervals(pairs)
    seen = {
        float(x): (dots.lines[0].get_marker(), dots.lines[0].get_color())
        for dots in axes.containers
        for x in dots.lines[0].get_xdata()
    }
    assert {x: marker for x, (marker, _) in seen.items()} == {
        2.0: ">",
        0.4: ">",
        0.1: "o",
        -1.0: "<",
    }
    assert same_color(seen[2.0][1], RAISES)
    assert same_color(seen[-1.0][1], LOWERS)


def test_intervals_take_sets_of_any_size():
    triples = scores_of(NAMES, {(0, 1, 2): 0.5, (1, 2, 3): -0.5}, order=3)
    axes = po.plots.interaction_intervals(triples)
    assert names_below(axes) == ["a × b in \\$ × c", "b in \\$ × c × d"]
    single = scores_of(NAMES, {(0,): -0.5, (3,): 1.5}, order=1)
    alone = po.plots.interaction_intervals(single)
    assert names_below(alone) == ["d", "a"]
    assert alone.get_xlabel() == "LOCO, in squared units of the target"
    legends = [
        [text.get_text() for text in result.get_legend().get_texts()]
        for result in (axes, alone)
    ]
    assert legends == [
        ["joint contribution", "had from fewer of them"],
        ["worse without it", "no worse without it"],
    ]


def test_the_strongest_sets_are_drawn_and_the_others_are_told_of(pairs):
    axes = po.plots.interaction_intervals(pairs, n_sets=2)
    assert names_below(axes) == ["a × b in \\$", "b in \\$ × c"]
    assert axes.get_title(loc="left").endswith("\nthe 2 strongest of 4 sets")


def test_cells_have_the_scores_of_their_pairs(pairs):
    axes = po.plots.interaction_heatmap(pairs)
    rows = names_below(axes)
    columns = [label.get_text() for label in axes.get_xticklabels()]
    cells = axes.images[0].get_array()
    plain = {"b in \\$": 1, "a": 0, "c": 2, "d": 3}
    seen = {
        tuple(sorted((plain[rows[r]], plain[columns[c]]))): float(cells[r, c])
        for r, c in np.argwhere(~np.ma.getmaskarray(cells))
    }
    assert seen == SCORES
    assert axes.images[0].norm.vmin == -2.0
    assert axes.images[0].norm.vmax == 2.0


def test_cells_of_clear_scores_have_signs(pairs):
    axes = po.plots.interaction_heatmap(pairs)
    cells = axes.images[0].get_array()
    written = {
        float(cells[round(y), round(x)]): text.get_text()
        for text in axes.texts
        for x, y in [text.get_position()]
    }
    assert written == {2.0: "+", -1.0: "−", 0.4: "+"}


def test_pairs_that_were_not_scored_are_hatched(pairs):
    axes = po.plots.interaction_heatmap(pairs)
    rows = names_below(axes)
    columns = [label.get_text() for label in axes.get_xticklabels()]
    hatched = {
        frozenset((rows[round(cell.get_y() + 0.5)], columns[round(cell.get_x() + 0.5)]))
        for cell in axes.patches
    }
    assert hatched == {frozenset("ad"), frozenset(("b in \\$", "d"))}


def test_the_strongest_features_have_cells(pairs):
    axes = po.plots.interaction_heatmap(pairs, n_features=3)
    assert axes.images[0].get_array().shape == (2, 2)
    assert axes.get_title(loc="left").endswith("\nthe 3 strongest of 4 features")


def lines(axes):
    return {
        tuple(map(tuple, np.round(line.get_xydata(), 6).tolist())): line
        for line in axes.lines
    }


def test_lines_join_clear_pairs_by_sign_and_size(pairs):
    axes = po.plots.interaction_network(pairs)
    circle = np.round(axes.collections[0].get_offsets(), 6).tolist()
    results = {
        tuple(sorted(circle.index(list(end)) for end in ends)): line
        for ends, line in lines(axes).items()
    }
    assert results.keys() == {(0, 1), (1, 2), (2, 3)}
    assert results[0, 1].get_linestyle() == results[2, 3].get_linestyle() == "-"
    assert results[1, 2].get_linestyle() == "--"
    assert same_color(results[0, 1].get_color(), RAISES)
    assert same_color(results[1, 2].get_color(), LOWERS)
    widths = [results[pair].get_linewidth() for pair in [(0, 1), (1, 2), (2, 3)]]
    assert widths == pytest.approx([6.0, 3.3, 1.68])


def test_names_stand_beside_their_nodes(pairs):
    axes = po.plots.interaction_network(pairs)
    circle = axes.collections[0].get_offsets()
    assert [text.get_text() for text in axes.texts] == ["a", "b in \\$", "c", "d"]
    positions = [text.get_position() for text in axes.texts]
    np.testing.assert_allclose(positions, 1.1 * np.asarray(circle), rtol=1e-12)


def test_pairs_that_are_not_clear_are_not_drawn(pairs):
    axes = po.plots.interaction_network(pairs)
    assert len(axes.lines) == 3
    legend = [text.get_text() for text in axes.get_legend().get_texts()]
    assert legend == ["joint contribution", "stand in for each other"]


def test_a_network_without_clear_pairs_says_so():
    axes = po.plots.interaction_network(scores_of(NAMES, SCORES, errors=9.0))
    assert not axes.lines
    assert "no pair is clear" in [text.get_text() for text in axes.texts]


@pytest.mark.parametrize("count", [12, 20])
def test_names_of_many_nodes_do_not_overlap(count):
    many = random_scores([f"a column, number {j}" for j in range(30)])
    axes = po.plots.interaction_network(many, n_features=count)
    axes.figure.canvas.draw()
    boxes = [text.get_window_extent() for text in axes.texts]
    legend = axes.get_legend().get_window_extent()
    assert len(boxes) == count
    if count <= 12:
        assert not any(a.overlaps(b) for a, b in pairwise(boxes))
    assert not any(legend.overlaps(box) for box in boxes)


@pytest.mark.parametrize("picture", PICTURES[::2])
def test_sets_of_other_sizes_are_no_matrix(picture):
    triples = scores_of(NAMES, {(0, 1, 2): 0.5}, order=3)
    with pytest.raises(InvalidInput, match="pairs, got sets of 3: interactions"):
        picture(triples)


@pytest.mark.parametrize("picture", PICTURES)
def test_wrong_arguments_are_named(picture, pairs):
    with pytest.raises(InvalidInput, match=r"result: expected InteractionScores.*list"):
        picture([1.0])
    with pytest.raises(InvalidInput, match=r"adjust: .*'homl'"):
        picture(pairs, adjust="homl")


def test_scores_of_zero_are_drawn():
    zero = scores_of(NAMES[:2], {(0, 1): 0.0}, errors=0.0)
    for picture in PICTURES:
        picture(zero).figure.canvas.draw()


LEAK = np.array([0.5, 0.1, -0.9, 0.2])
"""Of the scores above: the third is below zero, and no farther than its leak."""


@pytest.fixture(name="leaky")
def made_leaky():
    return scores_of(NAMES, SCORES, leak=LEAK)


def test_what_leaks_is_drawn_and_is_no_interaction(leaky):
    axes = po.plots.interaction_intervals(leaky)
    ticks = axes.collections[0].get_offsets()
    assert ticks[:, 0].tolist() == [0.5, 0.2, 0.1, -0.9]
    markers = {
        float(x): dots.lines[0].get_marker()
        for dots in axes.containers
        for x in dots.lines[0].get_xdata()
    }
    assert markers == {2.0: ">", 0.4: "o", 0.1: "o", -1.0: "o"}
    assert len(po.plots.interaction_network(leaky).lines) == 1
    cells = po.plots.interaction_heatmap(leaky)
    assert [text.get_text() for text in cells.texts] == ["+"]
    assert cells.get_xlabel().endswith("beyond zero and main effects")


def test_dots_grow_with_the_score_of_the_feature_alone():
    main = scores_of(NAMES, {(0,): 4.0, (1,): 2.0, (2,): -1.0, (3,): np.nan}, order=1)
    axes = po.plots.interaction_network(scores_of(NAMES, SCORES, main=main))
    sizes = axes.collections[0].get_sizes()
    np.testing.assert_allclose(sizes, [240.0, 145.0, 50.0, 50.0], rtol=1e-12)


def test_scores_that_are_not_known_are_drawn_as_such():
    unknown = scores_of(NAMES, {**SCORES, (1, 3): np.nan})
    cells = po.plots.interaction_heatmap(unknown)
    assert len(cells.patches) == 2
    assert len(po.plots.interaction_network(unknown).lines) == 3
    of_patches = np.array([0.0, np.nan, 0.0, 0.0])
    blurred = scores_of(NAMES, SCORES, monte_carlo=of_patches)
    for picture in PICTURES:
        picture(blurred).figure.canvas.draw()


def test_cells_of_scores_without_intervals_have_no_signs():
    scores = po.interactions.PairScores(
        sets=np.array(list(SCORES)),
        names=NAMES,
        estimates=np.array([0.2, 0.1, 0.4, 0.3]),
        method="H² statistic",
        units="shares of variance",
        n_rows=20,
    )
    axes = po.plots.interaction_heatmap(scores)
    cells = axes.images[0].get_array()
    assert sorted(cells.compressed()) == [0.1, 0.2, 0.3, 0.4]
    assert not axes.texts
    assert axes.get_title(loc="left") == "H² statistic"
    assert axes.get_xlabel() == "scores without intervals"
    assert axes.images[0].colorbar.ax.get_ylabel() == "in shares of variance"
