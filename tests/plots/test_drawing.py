"""Charts on axes: dots, bars, cells and curves are where the numbers are."""

from dataclasses import replace
from itertools import combinations, pairwise

import numpy as np
import pytest
from drawn import bars_of, hatched_in, lengths_of, lines_of, rows_of, texts
from matplotlib import pyplot as plt
from matplotlib.colors import same_color, to_hex
from matplotlib.figure import Figure
from matplotlib.offsetbox import AnnotationBbox, TextArea
from matplotlib.text import Text

import propopt as po
from propopt.base.cards import BAR_LOWERS, BAR_RAISES
from propopt.base.errors import InvalidInput
from propopt.plots.style import (
    CATEGORIES,
    heights_in_swarm,
    shares_of_ranks,
    shortened,
)


RNG = np.random.default_rng(0)
W = RNG.normal(size=(300, 3))
X = np.stack([RNG.normal(size=300), RNG.integers(0, 3, 300), np.full(300, 7.0)], axis=1)
X[::5, 0] = np.nan
KINDS = ("a", "b $x$", "c")
SWARM = po.plots.Swarm(
    names=["size", "kind", "constant"],
    attributions=W,
    values=X,
    categories={"kind": KINDS},
)
STEPS = po.plots.Steps(
    names=["a", "b", "$c$"],
    parts=np.array([2.0, -0.5, 12345.0]),
    start=1.0,
    intervals=np.array([[1.0, 3.0], [np.nan, np.nan], [12000.0, 13000.0]]),
    hatched=[False, True, False],
    marks={"base": 1.0, "prediction": 12347.5},
    caption="-1 unit",
)
SCATTER = po.plots.Scatter(
    name="size",
    values=X[:, 0],
    attributions=W[:, 0],
    color_name="kind",
    color_values=X[:, 1],
    color_categories=KINDS,
)
GRID = po.plots.Grid(
    rows=["r", "$s$"],
    columns=["x", "y", "z"],
    values=np.array([[1.0, -4.0, np.nan], [0.0, 2.0, 3.0]]),
)
GRAY = np.array([0.1, 1.0, 10.0])
LINES = po.plots.Lines(
    lines={"one": (GRAY, GRAY), "two": (GRAY, GRAY + 0.1), "three": (GRAY, -GRAY)},
    bands={"one": (GRAY - 1.0, GRAY + 1.0)},
    points=[("knee", 1.0, 2.0), ("", 1.0, 0.0)],
    others={"baseline": (GRAY, 2.0 * GRAY)},
    marks={"width": 1.0},
    name="width",
    scales=("log", "percent"),
)
CHARTS = {type(one).__name__: one for one in (SWARM, STEPS, SCATTER, GRID, LINES)}


def drawn(chart):
    axes = Figure(figsize=(7.0, 4.5), layout="constrained").subplots()
    assert po.plots.draw(chart, axes) is axes
    axes.figure.draw_without_rendering()
    return axes


def named_words(axes):
    """The coloured words of each line of names: text and colour."""
    boxes = [box for box in axes.artists if isinstance(box, AnnotationBbox)]
    words = [[area.findobj(Text)[0] for area in box.findobj(TextArea)] for box in boxes]
    return [{word.get_text(): word.get_color() for word in line} for line in words]


@pytest.mark.parametrize("name", CHARTS)
def test_charts_are_drawn_where_they_are_told_alike_and_with_true_minus_signs(name):
    before = plt.get_fignums()
    axes = drawn(CHARTS[name])
    assert plt.get_fignums() == before
    pairs = zip(axes.collections, drawn(CHARTS[name]).collections, strict=True)
    for one, other in pairs:  # nothing is random
        np.testing.assert_array_equal(one.get_offsets(), other.get_offsets())
    shown = [*axes.get_xticklabels(), *axes.get_yticklabels(), *axes.texts]
    words = [x for x in texts([*shown, axes.xaxis.label]) if "mathdefault" not in x]
    assert not any("-" in x or "$" in x.replace("\\$", "") for x in words)
    for ticks in (axes.get_xticklabels(), axes.get_yticklabels()):
        boxes = [x.get_window_extent() for x in ticks if x.get_text()]
        assert not any(a.overlaps(b) for a, b in pairwise(boxes))
    figure = po.plots.draw(CHARTS[name]).figure
    assert plt.get_fignums() == [figure.number]
    assert 2.0 < figure.get_figheight() < 8.0
    with pytest.raises(InvalidInput, match=r"expected Swarm, Steps.*plot\(\)"):
        po.plots.draw(W)


def test_dots_of_a_swarm_are_at_their_numbers_and_inside_their_lines():
    axes = drawn(SWARM)
    known, hollow, kinds, constant = axes.collections
    is_known = np.isfinite(X[:, 0])
    np.testing.assert_array_equal(known.get_offsets()[:, 0], W[is_known, 0])
    np.testing.assert_array_equal(hollow.get_offsets()[:, 0], W[~is_known, 0])
    assert hollow.get_facecolor().size == 0
    assert rows_of(axes) == SWARM.names
    for dots, y in zip((known, kinds, constant), axes.get_yticks(), strict=True):
        assert np.abs(dots.get_offsets()[:, 1] - y).max() <= 0.36
    # low values are blue, high ones orange, equal ones between
    order = np.argsort(X[is_known, 0])
    assert same_color(known.get_facecolor()[order[0]], BAR_LOWERS)
    assert same_color(known.get_facecolor()[order[-1]], BAR_RAISES)
    assert len({to_hex(c) for c in constant.get_facecolor()}) == 1
    # categories have their colours, and are named from left to right
    missing, names = named_words(axes)
    assert list(missing) == ["missing"]
    order = np.argsort([np.median(W[X[:, 1] == code, 1]) for code in range(3)])
    named = dict(
        zip(np.array(["a", "b \\$x\\$", "c"])[order], CATEGORIES, strict=False)
    )
    assert names == named
    for code, color in zip(order, CATEGORIES, strict=False):
        assert all(same_color(c, color) for c in kinds.get_facecolor()[X[:, 1] == code])


def test_rare_categories_are_counted_and_names_stay_inside():
    codes = np.repeat(np.arange(12.0), np.arange(12, 0, -1))
    names = {"x": [f"a category of a long name {k}" for k in range(12)]}
    chart = po.plots.Swarm(
        names=["x"],
        attributions=np.arange(78.0)[:, None],
        values=codes[:, None],
        categories=names,
    )
    axes = drawn(chart)
    assert list(named_words(axes)[0])[-1] == "others: 9"
    (box,) = [box for box in axes.artists if isinstance(box, AnnotationBbox)]
    inside, frame = box.get_window_extent(), axes.get_window_extent()
    assert frame.x0 <= inside.x0 <= inside.x1 <= frame.x1


def test_near_dots_are_moved_apart_and_far_ones_are_not():
    heights = heights_in_swarm(np.array([0.0, 0.0, 0.0, 5.0, 9.0]), 9.0, 0.4)
    assert heights[3:].tolist() == [0.0, 0.0]
    assert min(abs(a - b) for a, b in combinations(heights[:3], 2)) > 0.015
    dense = heights_in_swarm(np.zeros(5_000), 0.0, 0.4)
    assert 0.35 < np.abs(dense).max() < 0.4 + 1e-9
    shares = shares_of_ranks(np.array([3.0, np.nan, 1.0, 1.0, 2.0]))
    np.testing.assert_allclose(shares, [1.0, np.nan, 0.0, 0.0, 0.6])
    assert shares_of_ranks(np.array([2.0, 2.0])).tolist() == [0.5, 0.5]


def test_steps_lead_from_the_start_to_the_end():
    axes = drawn(STEPS)
    assert lengths_of(axes) == [2.0, -0.5, 12345.0]
    assert [bar.get_x() for bar in bars_of(axes)] == [12345.5, 12346.0, 1.0]
    assert hatched_in(axes) == [False, True, False]
    colors = [BAR_RAISES, BAR_LOWERS, BAR_RAISES]
    assert [to_hex(bar.get_facecolor()) for bar in bars_of(axes)] == colors
    shown = ["+2", "−0.5", "+12,345", "base 1", "prediction 12,348"]
    assert texts(axes.texts) == shown
    assert axes.get_xlabel() == "−1 unit\nhatched: sign not clear"
    assert [line.get_xdata()[0] for line in axes.lines] == [1.0, 12347.5]
    assert lines_of(axes)[0].tolist() == [12346.5, 12348.5]
    links = axes.collections[1].get_segments()
    assert [line[0, 0] for line in links] == [12345.5, 12346.0]


@pytest.mark.parametrize("has_lines", [False, True])
def test_numbers_stand_beside_their_bars_and_inside_the_picture(has_lines):
    parts = np.array([3.0, -1.0, 0.5, np.nan])
    lines = np.stack([parts - 1.0, parts + 1.0], axis=1) if has_lines else None
    axes = drawn(po.plots.Steps(names=[*"abcd"], parts=parts, intervals=lines))
    frame = axes.get_window_extent()
    assert texts(axes.texts) == ["+3", "−1", "+0.5", "–"]
    for bar, text in zip(bars_of(axes)[:3], axes.texts, strict=False):
        label, extent = text.get_window_extent(), bar.get_window_extent()
        is_left = bar.get_width() < 0
        assert label.x1 <= extent.x0 if is_left else label.x0 >= extent.x1
        assert frame.x0 <= label.x0 <= label.x1 <= frame.x1
    axes = drawn(po.plots.Steps(names=["a"], parts=np.array([2.0]), sign="-"))
    assert (texts(axes.texts), axes.get_xlim()[0]) == (["2"], 0.0)


def test_a_scatter_has_places_for_categories_and_for_missing_values():
    axes = drawn(SCATTER)
    dots = axes.collections[0].get_offsets()
    known = np.isfinite(X[:, 0])
    np.testing.assert_array_equal(dots[known, 0], X[known, 0])
    np.testing.assert_array_equal(dots[:, 1], W[:, 0])
    assert dots[~known, 0].max() < X[known, 0].min()
    assert texts(axes.get_xticklabels())[-1] == "missing"
    (named,) = named_words(axes)
    assert {*named} == {"kind:", "a", "b \\$x\\$", "c"}
    codes = np.where(X[:, 1] == 1, np.nan, X[:, 1])
    chart = po.plots.Scatter(
        name="kind", values=codes, attributions=W[:, 1], categories=KINDS
    )
    axes = drawn(chart)
    assert texts(axes.get_xticklabels()) == ["a", "c", "missing"]
    places = np.round(axes.collections[0].get_offsets()[:, 0])
    assert places.tolist() == [{0.0: 0, 2.0: 1}.get(code, -1) for code in codes]


def test_cells_of_a_grid_are_white_at_zero():
    axes = drawn(GRID)
    (image,) = axes.images
    np.testing.assert_array_equal(image.get_array().filled(np.nan), GRID.values)
    assert image.get_clim() == (-4.0, 4.0)
    assert to_hex(image.cmap(0.5)) == "#ffffff"
    assert image.get_interpolation() == "none"  # cells keep their colours
    sizes = drawn(replace(GRID, values=np.abs(GRID.values)))  # no bar for signs
    bars = [of.figure.axes[-1].get_ylim() for of in (axes, sizes)]
    assert bars == [(-4.0, 4.0), (0.0, 4.0)]
    tiles = po.plots.Grid(
        rows=["first", "second"], columns=["one"], values=np.ones((8, 5)), tile=(4, 5)
    )
    axes = drawn(tiles)
    assert [*axes.get_yticks(), *axes.get_xticks()] == [1.5, 5.5, 2.0]
    for size, rest in ((1e6, 1.0), (1.0, 0.0), (0.0, 0.0)):
        values = rest * RNG.uniform(-1, 1, size=(20, 20))
        values[0, 0] = size  # one outlier does not drain the colours
        axes = drawn(po.plots.Grid(rows=["r"], columns=["c"], values=values))
        low, high = axes.images[0].get_clim()
        assert 0.9 < high == -low <= 1.0


def test_curves_are_named_in_a_legend_below_the_axis_and_marks_above_the_axes():
    axes = drawn(LINES)
    curves = dict(zip(*reversed(axes.get_legend_handles_labels()), strict=True))
    assert [*curves] == [*LINES.lines, *LINES.others]
    assert len({line.get_color() for line in list(curves.values())[:3]}) == 3
    for name, (x, y) in {**LINES.lines, **LINES.others}.items():
        np.testing.assert_array_equal(np.array(curves[name].get_data()), [x, y])
    assert axes.get_xscale() == "log"
    assert {text.get_text()[-1] for text in axes.get_yticklabels()} == {"%"}
    legend = axes.get_legend().get_window_extent()
    assert 0.0 <= legend.y0 <= legend.y1 <= axes.xaxis.get_tightbbox().y0
    marked = {LINES: ["width 1"], STEPS: ["base 1", "prediction 12,348"]}
    for chart, marks in marked.items():
        axes = drawn(chart)
        named = [text for text in axes.texts if text.get_text() in marks]
        assert texts(named) == marks
        boxes = [text.get_window_extent() for text in named]
        assert axes.get_window_extent().y1 <= boxes[0].y0
        assert not any(a.overlaps(b) for a, b in combinations(boxes, 2))
        assert boxes[-1].y1 <= axes.figure.bbox.y1


def test_names_are_short():
    name = shortened("a name of very many words that goes on and on > 0.25 and ≤ 1", 30)
    assert (len(name), name[-14:]) == (30, "> 0.25 and ≤ 1")
