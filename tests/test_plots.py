"""Plots draw what the table says, where they are told to."""

from __future__ import annotations

import io

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot as plt
from matplotlib.figure import Figure

import propopt as po
from propopt.errors import InvalidInput
from propopt.plots import plot_trade_offs


mpl.use("Agg")


def rows(method, points, **parameters):
    table = pd.DataFrame(points, columns=["loss.a", "loss.b"]).assign(method=method)
    return table.assign(**{f"parameter.{k}": v for k, v in parameters.items()})


FRONT = rows("optimized", [(4.0, 0.5), (0.0, 4.0), (1.0, 2.0)])
SMOOTH = rows("smoothgrad", [(3.0, 3.0), (2.0, 3.5), (90.0, 1.0)], scale=[0.2, 0.1, 9])
PLAIN = rows("gradient", [(0.0, 6.0)])
SHAP = rows("shap", [(5.0, 5.0), (50.0, 60.0)], units=["gradient", "output"])


def drawn(*tables, x="a", y="b"):
    axes = Figure().subplots()
    frame = pd.concat(tables, ignore_index=True)
    assert plot_trade_offs(frame, x, y, ax=axes) is axes
    axes.figure.savefig(io.BytesIO(), format="svg")
    return axes


def labels(axes):
    return [text.get_text() for text in axes.get_legend().get_texts()]


def line(axes, label):
    (found,) = (line for line in axes.lines if line.get_label() == label)
    return np.column_stack(found.get_data())


def test_front_is_drawn_in_order():
    axes = drawn(FRONT, PLAIN)
    np.testing.assert_array_equal(line(axes, "optimised"), [(0, 4), (1, 2), (4, 0.5)])
    assert axes.get_xlabel() == "a loss"
    assert axes.get_ylabel() == "b loss"


def test_optima_that_are_beaten_in_these_losses_are_not_on_the_line():
    axes = drawn(FRONT, rows("optimized", [(2.0, 3.0)]))
    np.testing.assert_array_equal(line(axes, "optimised"), [(0, 4), (1, 2), (4, 0.5)])
    np.testing.assert_array_equal(np.transpose(axes.lines[1].get_data()), [(2, 3)])
    assert axes.lines[1].get_linestyle() == "None"


def test_axes_may_be_swapped():
    axes = drawn(FRONT, x="b", y="a")
    np.testing.assert_array_equal(line(axes, "optimised"), [(0.5, 4), (2, 1), (4, 0)])


def test_same_loss_on_both_axes():
    best, others = drawn(FRONT, x="a", y="a").lines
    np.testing.assert_array_equal(best.get_xdata(), [0])
    np.testing.assert_array_equal(others.get_xdata(), [1, 4])


def test_families_run_along_their_number():
    axes = drawn(FRONT, PLAIN, SMOOTH)
    assert labels(axes) == [
        "optimised",
        "gradient",
        "smoothgrad, 1 of 3 off the chart",
    ]
    family = line(axes, "smoothgrad, 1 of 3 off the chart")
    np.testing.assert_array_equal(family, [(2, 3.5), (3, 3), (90, 1)])


def test_settings_that_are_no_numbers_make_families_of_their_own():
    axes = drawn(FRONT, SHAP)
    assert labels(axes) == [
        "optimised",
        "shap (units=gradient)",
        "shap (units=output), off the chart",
    ]


def test_two_numbers_and_a_blank_one():
    table = rows(
        "lime",
        [(1, 3), (2, 3), (1, 4), (2, 4)],
        scale=[0.1, 0.2, 0.1, 0.2],
        kernel_width=[None, None, 1.0, 1.0],
    )
    families = drawn(FRONT, table).lines[2:]
    assert [len(family.get_xdata()) for family in families] == [2, 2]


def test_limits_make_room_for_the_front_and_what_is_near():
    axes = drawn(FRONT, PLAIN, SMOOTH)
    assert 4.0 < axes.get_xlim()[1] < 8.5
    assert 6.0 < axes.get_ylim()[1] < 8.5
    assert -0.5 < axes.get_xlim()[0] < 0.0


@pytest.mark.parametrize(
    "tables",
    [
        [FRONT],
        [PLAIN],
        [SMOOTH],
        [rows("optimized", [(0.0, 0.0)])],
        [rows("optimized", [(0.0, 0.0)]), SMOOTH],
        [rows("optimized", [(1e-9, 1e12)])],
    ],
    ids=["front", "one baseline", "baselines", "zero", "zero and more", "far apart"],
)
def test_any_table_can_be_drawn(tables):
    axes = drawn(*tables)
    assert np.isfinite([*axes.get_xlim(), *axes.get_ylim()]).all()
    frame = pd.concat(tables)
    inside = frame[frame["method"] == "optimized"]
    assert (inside["loss.a"] <= axes.get_xlim()[1]).all()
    assert (inside["loss.b"] <= axes.get_ylim()[1]).all()


def test_the_table_is_not_changed():
    frame = pd.concat([FRONT, SMOOTH], ignore_index=True)
    before = frame.copy()
    plot_trade_offs(frame, "a", "b", ax=Figure().subplots())
    pd.testing.assert_frame_equal(frame, before)


def test_unknown_loss():
    with pytest.raises(InvalidInput, match="no loss is called 'c'; there are a, b"):
        drawn(FRONT, y="c")


def test_given_axes_leave_pyplot_alone(monkeypatch):
    monkeypatch.setattr(plt, "show", lambda: pytest.fail("plt.show was called"))
    plt.close("all")
    drawn(FRONT)
    assert plt.get_fignums() == []


def test_a_figure_is_made_where_none_is_given(monkeypatch):
    monkeypatch.setattr(plt, "show", lambda: pytest.fail("plt.show was called"))
    plt.close("all")
    axes = plot_trade_offs(FRONT, "a", "b")
    assert plt.get_fignums() == [axes.figure.number]
    plt.close("all")


def test_plot_of_a_sweep(rng):
    X = rng.normal(size=(6, 2))
    objective = po.GradientMatching(X) + po.PairwiseRobustness(po.chain_graph(6))
    curve = po.sweep(objective, {"pairwise_robustness": [0.1, 1, 10]})
    axes = curve.plot(ax=Figure().subplots())
    assert axes.get_xlabel() == "gradient matching loss"
    assert axes.get_ylabel() == "pairwise robustness loss"
    single = po.sweep(po.GradientMatching(X), {}).plot(ax=Figure().subplots())
    assert single.get_ylabel() == "gradient matching loss"
    with pytest.raises(InvalidInput, match="sparsity"):
        curve.plot("sparsity", ax=Figure().subplots())
