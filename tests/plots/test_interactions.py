"""Pictures of interactions draw the scores that they are given, with their signs."""

import numpy as np
import pytest
from interaction_scores import scores_of
from matplotlib import pyplot as plt
from matplotlib.colors import same_color
from scipy.stats import norm

import propopt as po
from propopt.base.errors import InvalidInput
from propopt.plots.attributions import LOWERS, RAISES


NAMES = ("a", "b in $", "c", "d")
SCORES = {(0, 1): 2.0, (0, 2): 0.1, (1, 2): -1.0, (2, 3): 0.4}
"""Of errors of 0.1: clear are all but (0, 2), and (0, 3), (1, 3) were not scored."""
PICTURES = [po.plots.interaction_heatmap, po.plots.interaction_intervals]
PAIRS = scores_of(NAMES, SCORES)
each_picture = pytest.mark.parametrize("picture", PICTURES)


def names_below(axes):
    axes.figure.canvas.draw()
    return [label.get_text() for label in axes.get_yticklabels()]


def columns_of(axes):
    return [label.get_text() for label in axes.get_xticklabels()]


def legend(axes):
    return [text.get_text() for text in axes.get_legend().get_texts()]


@each_picture
def test_a_picture_draws_where_it_is_told_and_says_what_the_intervals_are(picture):
    _, ax = plt.subplots()
    assert picture(PAIRS, ax=ax) is ax
    picture(scores_of(NAMES[:2], {(0, 1): 0.0}, errors=0.0)).figure.canvas.draw()
    with pytest.raises(InvalidInput, match=r"result: expected InteractionScores.*list"):
        picture([1.0])
    with pytest.raises(InvalidInput, match=r"adjust: .*'homl'"):
        picture(PAIRS, adjust="homl")


def test_intervals_are_the_bars_of_the_document():
    """In the same order, by the error that all candidates need, with its names."""
    scores = scores_of(NAMES, SCORES, n_candidates=45)
    axes = po.plots.interaction_intervals(scores)
    lines = [line.get_xdata() for line in axes.lines if line.get_xdata()[1]]
    reach = 0.1 * norm.isf(0.1 / 2 / 45)
    expected = [(value - reach, value + reach) for value in (2.0, -1.0, 0.4, 0.1)]
    np.testing.assert_allclose(lines, expected, rtol=1e-12)
    spans = scores.document().blocks[0].bars["score"]
    np.testing.assert_allclose(lines, [line for *_, line in spans], rtol=1e-12)
    assert names_below(axes) == ["a × b in \\$", "b in \\$ × c", "c × d", "a × c"]
    drawn = sorted(axes.patches, key=lambda bar: bar.get_y())
    assert [bar.get_width() for bar in drawn] == [2.0, -1.0, 0.4, 0.1]
    colours = [RAISES, LOWERS, RAISES, RAISES]
    assert all(
        same_color(bar.get_facecolor(), colour)
        for bar, colour in zip(drawn, colours, strict=True)
    )
    assert axes.yaxis_inverted()
    assert legend(axes) == ["can replace each other", "needed together"]
    axes = po.plots.interaction_intervals(scores, n_sets=2)
    assert names_below(axes) == ["a × b in \\$", "b in \\$ × c"]
    triples = scores_of(NAMES, {(0, 1, 2): 0.5, (1, 2, 3): -0.4}, order=3)
    axes = po.plots.interaction_intervals(triples)
    assert names_below(axes) == ["a × b in \\$ × c", "b in \\$ × c × d"]
    assert legend(axes) == ["fewer of them suffice", "needed together"]
    single = scores_of(NAMES, {(0,): -0.5, (3,): 1.5}, order=1)
    alone = po.plots.interaction_intervals(single)
    assert names_below(alone) == ["d", "a"]
    assert legend(alone) == ["no worse without it", "worse without it"]
    for picture in PICTURES[::2]:
        with pytest.raises(InvalidInput, match="pairs, got sets of 3; "):
            picture(triples)


def test_cells_have_the_scores_of_their_pairs_and_signs_where_they_are_clear():
    axes = po.plots.interaction_heatmap(PAIRS)
    rows, columns = names_below(axes), columns_of(axes)
    cells = axes.images[0].get_array()
    plain = {"b in \\$": 1, "a": 0, "c": 2, "d": 3}
    seen = {
        tuple(sorted((plain[rows[r]], plain[columns[c]]))): float(cells[r, c])
        for r, c in np.argwhere(~np.ma.getmaskarray(cells))
    }
    assert seen == SCORES
    assert (axes.images[0].norm.vmin, axes.images[0].norm.vmax) == (-2.0, 2.0)
    written = {
        float(cells[round(y), round(x)]): text.get_text()
        for text in axes.texts
        for x, y in [text.get_position()]
    }
    assert written == {2.0: "+", -1.0: "−", 0.4: "+"}
    hatched = {  # those that were not scored
        frozenset((rows[round(cell.get_y() + 0.5)], columns[round(cell.get_x() + 0.5)]))
        for cell in axes.patches
    }
    assert hatched == {frozenset("ad"), frozenset(("b in \\$", "d"))}
    axes = po.plots.interaction_heatmap(PAIRS, n_features=3)
    assert axes.images[0].get_array().shape == (2, 2)


def test_scores_that_are_not_known_are_drawn_as_such():
    unknown = scores_of(NAMES, {**SCORES, (1, 3): np.nan})
    cells = po.plots.interaction_heatmap(unknown)
    assert len(cells.patches) == 2
    of_patches = np.array([0.0, np.nan, 0.0, 0.0])
    blurred = scores_of(NAMES, SCORES, monte_carlo=of_patches)
    for picture in PICTURES:
        picture(blurred).figure.canvas.draw()
