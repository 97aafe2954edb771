"""The front as a plot: families, knee, axes with shares, legend, units."""

import dataclasses
import io

import numpy as np
import pytest
from golden_chains import POINTS, G, objective
from matplotlib import pyplot as plt
from matplotlib.figure import Figure
from refusals import refusals

import propopt as po
from propopt.base.errors import InvalidInput
from propopt.losses.faithfulness import Estimate


ROBUST = "pairwise_robustness"
WEIGHTS = np.logspace(-2, 2, 21)


def rows(method, points, **parameters):
    """Explanations with these losses a and b, and one of each list of parameters."""
    return [
        po.results.Explanation(
            attributions=np.zeros((1, 1)),
            method=method,
            losses=dict(zip("ab", map(float, point), strict=True)),
            parameters={name: values[k] for name, values in parameters.items()},
        )
        for k, point in enumerate(points)
    ]


FRONT = rows("optimized", [(4.0, 0.5), (0.0, 4.0), (1.0, 2.0)])
SMOOTH = rows("smoothgrad", [(3.0, 3.0), (2.0, 3.5), (90.0, 1.0)], scale=[0.2, 0.1, 9])
PLAIN = rows("gradient", [(0.0, 6.0)])
SHAP = rows("shap", [(5.0, 5.0), (50.0, 60.0)], units=["gradient", "output"])
TWICE = rows(
    "lime",
    [(1, 3), (2, 3), (1, 4), (2, 4)],
    scale=[0.1, 0.2, 0.1, 0.2],
    kernel_width=["none", "none", 1.0, 1.0],
)


def picture(axes):
    axes.figure.savefig(io.BytesIO(), format="svg")
    return axes


def table(*explanations):
    """Trade-offs without the ends that shares need."""
    optimized = tuple(x for x in explanations if x.method == "optimized")
    baselines = tuple(x for x in explanations if x.method != "optimized")
    losses = ("a", "b")
    return po.TradeOffs(optimized=optimized, baselines=baselines, losses=losses)


def drawn(*tables, x="a", y="b", **settings):
    axes = Figure().subplots()
    curve = table(*(one for rows_of in tables for one in rows_of))
    assert curve.plot(x, y, ax=axes, **settings) is axes
    return picture(axes)


def labels(axes):
    return [text.get_text() for text in axes.get_legend().get_texts()]


def line(axes, label):
    (result,) = (line for line in axes.lines if line.get_label() == label)
    return np.column_stack(result.get_data()).tolist()


def test_the_front_is_drawn_in_order_and_beaten_optima_beside_it():
    axes = drawn(FRONT, rows("optimized", [(2.0, 3.0)]))
    assert line(axes, "optimized") == [[0, 4], [1, 2], [4, 0.5]]
    assert np.transpose(axes.lines[1].get_data()).tolist() == [[2, 3]]
    assert axes.lines[1].get_linestyle() == "None"
    swapped = drawn(FRONT, x="b", y="a")
    assert line(swapped, "optimized") == [[0.5, 4], [2, 1], [4, 0]]
    best, others = drawn(FRONT, x="a", y="a").lines
    assert best.get_xdata().tolist() == [0]
    assert others.get_xdata().tolist() == [1, 4]


def test_families_run_along_their_number_and_limits_make_room_for_what_is_near():
    axes = drawn(FRONT, PLAIN, SMOOTH)
    off = "smoothgrad, 1 of 3 off the chart"
    nearest = "smoothgrad: scale 0.2 is nearest"
    assert labels(axes) == ["optimized", "gradient", off, nearest, "knee"]
    assert line(axes, off) == [[2, 3.5], [3, 3], [90, 1]]
    assert 4.0 < axes.get_xlim()[1] < 8.5
    assert 6.0 < axes.get_ylim()[1] < 8.5
    assert -0.5 < axes.get_xlim()[0] < 0.0
    # settings that are no numbers make families of their own
    output = "shap (units=output), off the chart"
    expected = ["optimized", "shap (units=gradient)", output, "knee"]
    assert labels(drawn(FRONT, SHAP)) == expected
    families = drawn(FRONT, TWICE).lines[2:]
    assert [len(family.get_xdata()) for family in families] == [2, 1, 2]


def test_the_nearest_of_a_sweep_is_that_of_its_least_excess():
    objective = po.GradientMatching(np.eye(3)) + po.Sparsity()
    halves = [
        po.results.Explanation(
            attributions=c * np.eye(3), method="m", parameters={"c": c}
        )
        for c in (0.1, 0.6, 2.0)
    ]
    curve = po.sweep(objective, {"sparsity": [0.1, 1.0]}, halves)
    assert curve.distances()["excess"].idxmin() == 1
    axes = curve.plot()
    ((x, y),) = line(axes, "m: c 0.6 is nearest")
    assert (x, y) == pytest.approx((0.4**2, 0.6))


ZERO = rows("optimized", [(0.0, 0.0)])
APART = rows("optimized", [(1e-9, 1e12)])


def test_any_table_can_be_drawn():
    for tables in ([PLAIN], [SMOOTH], [ZERO], [ZERO, SMOOTH], [APART]):
        axes = drawn(*tables)
        assert np.isfinite([*axes.get_xlim(), *axes.get_ylim()]).all()
        for one in (x for rows_of in tables for x in rows_of):
            if one.method == "optimized":
                assert one.losses["a"] <= axes.get_xlim()[1]
                assert one.losses["b"] <= axes.get_ylim()[1]


def test_given_axes_leave_pyplot_alone_and_without_a_figure_is_made(monkeypatch):
    monkeypatch.setattr(plt, "show", lambda: pytest.fail("plt.show was called"))
    drawn(FRONT)
    assert plt.get_fignums() == []
    axes = table(*FRONT).plot()
    assert plt.get_fignums() == [axes.figure.number]


def test_logarithmic_axes_hold_every_loss_above_zero_near_the_front():
    axes = drawn(FRONT, SMOOTH, PLAIN, scale="log")
    assert axes.get_xscale() == axes.get_yscale() == "log"
    assert axes.get_xlim()[0] < 1.0 < 4.0 < axes.get_xlim()[1]
    assert axes.get_ylim()[0] < 0.5 < 4.0 < axes.get_ylim()[1]
    assert "gradient, off the chart" in labels(axes)  # its loss is zero
    assert "smoothgrad, 1 of 3 off the chart" in labels(axes)


@pytest.mark.parametrize(("line", "message"), refusals(__file__, "trade-offs"))
def test_what_cannot_be_drawn_is_refused(line, message):
    with pytest.raises(InvalidInput, match=message):
        eval(line)


def curve(target=G, others=None):
    problem = po.GradientMatching(target) + po.PairwiseRobustness(POINTS)
    values = target.values if isinstance(target, Estimate) else target
    return po.sweep(problem, {ROBUST: WEIGHTS}, others or {"half": 0.5 * values})


def test_axes_show_shares_where_the_ends_are_available():
    trade_offs = curve()
    axes = picture(trade_offs.plot(ax=Figure().subplots()))
    assert {text.get_text()[-1] for text in axes.get_xticklabels()} == {"%"}
    lost = [
        [1.0 - best.loss_shares[name] for name in ("gradient_matching", ROBUST)]
        for best in trade_offs.optimized
    ]
    np.testing.assert_allclose(line(axes, "optimized"), sorted(lost), atol=1e-12)
    knee = trade_offs.knee()
    (ring,) = [x for x in axes.collections if x.get_label().startswith("knee")]
    retained, removed = (
        knee.loss_shares[name] for name in ("gradient_matching", ROBUST)
    )
    np.testing.assert_allclose(
        ring.get_offsets(), [[1 - retained, 1 - removed]], rtol=1e-9
    )
    expected = f"knee: {100 * retained:.1f} % retained, {100 * removed:.1f} % removed"
    assert expected in labels(axes)


def test_axes_show_losses_where_no_share_is_defined():
    few = po.sweep(objective(), {ROBUST: [0.1, 1.0]})
    assert not any("knee" in text for text in labels(few.plot(ax=Figure().subplots())))
    without_ends = dataclasses.replace(curve(), ends=None)
    axes = without_ends.plot(ax=Figure().subplots())
    assert "knee" in labels(axes)
    assert axes.get_xlabel() == "gradient matching loss"
    flat = po.GradientMatching(np.ones((4, 3))) + po.PairwiseRobustness(POINTS)
    undefined = po.sweep(flat, {ROBUST: WEIGHTS}, {"mine": G})
    for other, scale in ((undefined, "linear"), (curve(), "log")):
        axes = picture(other.plot(ax=Figure().subplots(), scale=scale))
        assert axes.get_xlabel().startswith("gradient matching loss")


@pytest.mark.parametrize("count", [6, 40])
def test_the_legend_is_below_the_picture_and_the_figure_grows_with_it(count):
    figure = Figure(figsize=(6.0, 5.0), layout="constrained")
    others = {f"other {k}": k / count * G for k in range(count)}
    axes = picture(curve(others=others).plot(ax=figure.subplots()))
    figure.draw_without_rendering()  # in its own resolution; warnings are errors
    legend, whole = axes.get_legend().get_window_extent(), figure.bbox
    assert len(labels(axes)) == count + 2
    assert 0.0 <= legend.y0 < legend.y1 <= axes.xaxis.label.get_window_extent().y0
    assert axes.get_window_extent().height > 2.0 * figure.dpi
    if count == 6:
        assert legend.width * legend.height < 0.2 * whole.width * whole.height
    else:
        assert figure.get_figheight() > 8.0
