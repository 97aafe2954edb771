"""The front as a plot: methods, knee, axes with shares, windows."""

import dataclasses

import numpy as np
import pytest
from drawn import ax, texts
from golden_chains import POINTS, G, objective
from refusals import refusals

import propopt as po
from propopt.base.errors import InvalidInput


ROBUST = "pairwise_robustness"
WEIGHTS = np.logspace(-2, 2, 21)


def rows(method, *points):
    """Explanations with these losses a and b."""
    return [
        po.results.Explanation(
            attributions=np.zeros((1, 1)),
            method=method,
            losses=dict(zip("ab", map(float, point), strict=True)),
        )
        for point in points
    ]


FRONT = rows("optimized", (4.0, 0.5), (0.0, 4.0), (1.0, 2.0))
SMOOTH = rows("smoothgrad", (3.0, 3.0), (2.0, 3.5), (90.0, 1.0))
PLAIN = rows("gradient", (0.0, 6.0))


def picture(trade_offs, *losses, **settings):
    axes = ax()
    assert trade_offs.plot(*losses, ax=axes, **settings) is axes
    axes.figure.draw_without_rendering()
    return axes


def drawn(*tables, x="a", y="b", **settings):
    """Trade-offs without the ends that shares need."""
    every = [one for rows_of in tables for one in rows_of]
    optimized = tuple(one for one in every if one.method == "optimized")
    baselines = tuple(one for one in every if one.method != "optimized")
    fields = {"optimized": optimized, "baselines": baselines, "losses": ("a", "b")}
    return picture(po.TradeOffs(**fields), x, y, **settings)


def series(axes):
    """The points of each method, by its label."""
    handles, labels = axes.get_legend_handles_labels()
    points = (np.column_stack(one.get_data()).tolist() for one in handles)
    named = dict(zip(labels, points, strict=True))
    named.pop("optimized", None)
    return named


def front(axes):
    return np.column_stack(axes.lines[0].get_data()).tolist()


def circles(axes):
    """The points with a circle: optima off the front, then the knee."""
    marked = [line for line in axes.lines if line.get_marker() == "o"]
    return [tuple(np.ravel(one.get_data()).tolist()) for one in marked]


def test_the_front_is_drawn_in_order_and_beaten_optima_beside_it():
    axes = drawn(FRONT, rows("optimized", (2.0, 3.0)))
    assert front(axes) == [[0, 4], [1, 2], [4, 0.5]]
    assert circles(axes) == [(2, 3), (1, 2)]
    assert [*filter(None, texts(axes.texts))] == ["knee"]
    assert front(drawn(FRONT, x="b", y="a")) == [[0.5, 4], [2, 1], [4, 0]]
    axes = drawn(FRONT, x="a", y="a")
    assert (front(axes), circles(axes)[:2]) == ([[0, 0]], [(1, 1), (4, 4)])


def test_methods_have_markers_and_limits_make_room_for_what_is_near():
    axes = drawn(FRONT, PLAIN, SMOOTH)
    off = "smoothgrad, 1 off the chart"
    assert [*series(axes)] == ["gradient", off]
    assert series(axes)[off] == [[3, 3], [2, 3.5], [90, 1]]
    assert 4.0 < axes.get_xlim()[1] < 8.5
    assert 6.0 < axes.get_ylim()[1] < 8.5
    assert -0.5 < axes.get_xlim()[0] < 0.0


ZERO = rows("optimized", (0.0, 0.0))
APART = rows("optimized", (1e-9, 1e12))


def test_any_table_can_be_drawn():
    for tables in ([PLAIN], [SMOOTH], [ZERO], [ZERO, SMOOTH], [APART]):
        axes = drawn(*tables)
        assert np.isfinite([*axes.get_xlim(), *axes.get_ylim()]).all()
        for one in (x for rows_of in tables for x in rows_of):
            seen = np.array([one.losses["a"], one.losses["b"]]) <= axes.viewLim.max
            assert one.method != "optimized" or np.all(seen)


@pytest.mark.parametrize(("line", "message"), refusals(__file__, "trade-offs"))
def test_what_cannot_be_drawn_is_refused(line, message):
    with pytest.raises(InvalidInput, match=message):
        eval(line)


def curve():
    problem = po.GradientMatching(G) + po.PairwiseRobustness(POINTS)
    return po.sweep(problem, {ROBUST: WEIGHTS}, {"half": 0.5 * G})


def test_axes_show_shares_where_the_ends_are_available():
    trade_offs = curve()
    axes = picture(trade_offs)
    assert {text.get_text()[-1] for text in axes.get_xticklabels()} == {"%"}
    names = ("gradient_matching", ROBUST)
    optima = trade_offs.optimized
    lost = [[1.0 - one.loss_shares[name] for name in names] for one in optima]
    np.testing.assert_allclose(front(axes), sorted(lost), atol=1e-12)
    kept = np.array([trade_offs.knee().loss_shares[name] for name in names])
    np.testing.assert_allclose(circles(axes), [1.0 - kept], rtol=1e-9)


def test_axes_show_losses_where_no_share_is_defined():
    few = po.sweep(objective(), {ROBUST: [0.1, 1.0]})
    assert circles(picture(few)) == []
    axes = picture(dataclasses.replace(curve(), ends=None))
    assert len(circles(axes)) == 1
    assert axes.get_xlabel() == "gradient matching loss"
    flat = po.GradientMatching(np.ones((4, 3))) + po.PairwiseRobustness(POINTS)
    undefined = po.sweep(flat, {ROBUST: WEIGHTS}, {"mine": G})
    assert picture(undefined).get_xlabel() == "gradient matching loss"
