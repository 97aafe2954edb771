"""The front with shares: axes, knee, a closer look at the corner, the legend."""

from __future__ import annotations

import io
import re

import numpy as np
import pandas as pd
import pytest
from golden_chains import POINTS, G, objective
from matplotlib.figure import Figure

import propopt as po
from propopt.losses.faithfulness import Estimate
from propopt.plots import plot_trade_offs
from propopt.plots.attributions import _scale
from propopt.results.shares import Ends


ROBUST = "pairwise_robustness"
WEIGHTS = np.logspace(-2, 2, 21)


def curve(target=G, others=None):
    problem = po.GradientMatching(target) + po.PairwiseRobustness(POINTS)
    values = target.values if isinstance(target, Estimate) else target
    return po.sweep(problem, {ROBUST: WEIGHTS}, others or {"half": 0.5 * values})


def picture(axes):
    axes.figure.savefig(io.BytesIO(), format="svg")
    return axes


def second_axes(axes):
    return {
        child.get_xlabel() or child.get_ylabel(): child
        for child in axes.child_axes
        if child.get_xlabel() or child.get_ylabel()
    }


def texts(axes):
    return [text.get_text() for text in axes.get_legend().get_texts()]


def test_losses_have_shares_on_the_other_edges():
    axes = picture(curve().plot(ax=Figure().subplots()))
    edges = second_axes(axes)
    assert set(edges) == {"faithfulness kept", "pairwise robustness removed"}
    trade_offs = curve()
    ends = trade_offs.ends
    top, right = edges["faithfulness kept"], edges["pairwise robustness removed"]
    near, far = ends.far["gradient_matching"], ends.at_target[ROBUST]
    expected = 1.0 - np.array(axes.get_xlim()) / near
    np.testing.assert_allclose(sorted(top.get_xlim()), sorted(expected), rtol=1e-9)
    expected = 1.0 - np.array(axes.get_ylim()) / far
    np.testing.assert_allclose(sorted(right.get_ylim()), sorted(expected), rtol=1e-9)
    # what is kept stands where the loss is that keeps so much
    for share in (0.2, 0.9):
        place = top.transData.transform((share, 0.0))[0]
        loss = axes.transData.inverted().transform((place, 0.0))[0]
        assert loss == pytest.approx((1.0 - share) * near, rel=1e-6)


def test_the_knee_is_that_of_the_trade_offs_with_its_shares():
    trade_offs = curve()
    knee = trade_offs.knee()
    axes = picture(trade_offs.plot(ax=Figure().subplots()))
    (ring,) = [x for x in axes.collections if x.get_label().startswith("knee")]
    place = [knee.losses["gradient_matching"], knee.losses[ROBUST]]
    np.testing.assert_allclose(ring.get_offsets(), [place], rtol=1e-12)
    shares = knee.loss_shares
    kept, removed = shares["gradient_matching"], shares[ROBUST]
    expected = f"knee: {100 * kept:.1f} % kept, {100 * removed:.1f} % removed"
    assert ring.get_label() == expected
    assert expected in texts(axes)


def test_two_optima_have_no_knee_and_a_bare_table_no_shares():
    few = po.sweep(objective(), {ROBUST: [0.1, 1.0]})
    assert not any("knee" in text for text in texts(few.plot(ax=Figure().subplots())))
    table = curve().to_frame()
    axes = plot_trade_offs(table, "gradient_matching", ROBUST, ax=Figure().subplots())
    assert second_axes(axes) == {}
    assert "knee" in texts(axes)


def test_shares_that_are_not_defined_have_no_axis():
    flat = po.GradientMatching(np.ones((4, 3))) + po.PairwiseRobustness(POINTS)
    trade_offs = po.sweep(flat, {ROBUST: WEIGHTS}, {"mine": G})
    axes = picture(trade_offs.plot(ax=Figure().subplots()))
    assert second_axes(axes) == {}


def test_logarithmic_axes_have_no_shares():
    axes = curve().plot(ax=Figure().subplots(), scale="log")
    assert second_axes(picture(axes)) == {}


@pytest.mark.parametrize("name", ["faith", "rough", "root"])
def test_scales_of_shares_are_those_of_the_ends_both_ways(name):
    ends = Ends(
        faithful=("faith",),
        at_target={"faith": 0.5, "rough": 4.0, "root": 9.0},
        far={"faith": 2.0, "rough": 1.0, "root": 0.0},
        sizes={"faith": 3.0},
        roots=("root",),
    )
    share, loss = _scale(name, ends)
    values = np.array([1.0, 1.5, 1.9])
    expected = [ends.share(name, value) for value in values]
    np.testing.assert_allclose(share(values), expected, rtol=1e-12)
    np.testing.assert_allclose(loss(share(values)), values, rtol=1e-12)


def crowded(**others):
    bend = np.logspace(-3, 1, 30)
    front = {"method": "optimized", "loss.a": bend, "loss.b": 0.01 / bend}
    table = pd.DataFrame(front)
    more = [
        pd.DataFrame({"method": [k], "loss.a": v[0], "loss.b": v[1]})
        for k, v in others.items()
    ]
    return pd.concat([table, *more], ignore_index=True)


def insets(axes):
    return [child for child in axes.child_axes if child.lines]


def test_where_optima_crowd_near_zero_they_are_drawn_larger():
    axes = picture(plot_trade_offs(crowded(), "a", "b", ax=Figure().subplots()))
    (inset,) = insets(axes)
    assert 0.0 < inset.get_xlim()[1] < 0.25 * axes.get_xlim()[1]
    assert 0.0 < inset.get_ylim()[1] < 0.25 * axes.get_ylim()[1]
    (ring,) = [x for x in inset.collections if len(x.get_offsets())]
    assert (ring.get_offsets()[0] < [inset.get_xlim()[1], inset.get_ylim()[1]]).all()


def test_an_inset_covers_no_point():
    where = np.linspace(0.3, 0.99, 6) * 10
    others = {
        f"m{i}{j}": (x, y) for i, x in enumerate(where) for j, y in enumerate(where)
    }
    axes = plot_trade_offs(crowded(**others), "a", "b", ax=Figure().subplots())
    assert insets(axes) == []


def test_an_even_front_needs_no_closer_look():
    assert insets(curve().plot(ax=Figure().subplots())) == []


def test_the_legend_is_below_the_picture_and_takes_less_than_a_fifth():
    figure = Figure(figsize=(6.0, 5.0), layout="constrained")
    others = {f"other {k}": k * G for k in range(6)}
    axes = picture(curve(others=others).plot(ax=figure.subplots()))
    figure.draw_without_rendering()  # in its own resolution
    legend = axes.get_legend().get_window_extent()
    assert len(texts(axes)) == 8
    assert legend.y1 <= axes.xaxis.label.get_window_extent().y0
    whole = figure.bbox
    assert legend.y0 >= 0.0
    assert legend.width * legend.height < 0.2 * whole.width * whole.height
    assert axes.get_title() == "pairwise robustness against gradient matching"


def test_a_figure_grows_with_its_legend_and_warns_of_nothing():
    figure = Figure(figsize=(6.0, 5.0), layout="constrained")
    others = {f"other {k}": k / 40 * G for k in range(40)}
    axes = curve(others=others).plot(ax=figure.subplots())
    figure.draw_without_rendering()  # warnings are errors
    assert figure.get_figheight() > 8.0
    assert axes.get_window_extent().height > 2.0 * figure.dpi
    assert axes.get_legend().get_window_extent().y0 >= 0.0


@pytest.mark.parametrize("power", [-9, 0, 7])
def test_powers_of_ten_stand_beside_the_names_of_axes_and_meet_no_share(power):
    scale = 10.0**power
    axes = picture(curve(G * np.sqrt(scale)).plot(ax=Figure().subplots()))
    for axis, label in (
        (axes.xaxis, axes.get_xlabel()),
        (axes.yaxis, axes.get_ylabel()),
    ):
        assert axis.get_offset_text().get_text() == ""
        told = re.search(r"\$10\^\{(-?\d+)\}\$", label)
        assert (told is None) == (power == 0)
        order = 0 if told is None else int(told[1])
        for place, tick in zip(axis.get_ticklocs(), axis.get_ticklabels(), strict=True):
            number = float(tick.get_text().replace("\N{MINUS SIGN}", "-"))
            assert number * 10.0**order == pytest.approx(
                place, rel=1e-3, abs=1e-9 * scale
            )


def test_axes_say_units_where_they_are_known():
    target = Estimate(values=G.copy(), source="exact", exact=True, units="scaled")
    axes = curve(target).plot(ax=Figure().subplots())
    assert axes.get_xlabel() == "gradient matching loss, (output per sd)²"
    assert axes.get_ylabel() == "pairwise robustness loss, (output per sd)²"
    problem = po.GradientMatching(target) + po.Sparsity()
    axes = po.sweep(problem, {"sparsity": [0.1, 1.0]}).plot(ax=Figure().subplots())
    assert axes.get_ylabel() == "sparsity loss, output per sd"
