"""Plots draw what the table says, where they are told to."""

from __future__ import annotations

import dataclasses
import io
from types import SimpleNamespace

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot as plt
from matplotlib.figure import Figure

import propopt as po
from propopt.base.errors import InvalidInput
from propopt.base.text import Quantity
from propopt.plots import plot_trade_offs
from propopt.plots.attributions import FADED
from propopt.tables.frames import Labels


mpl.use("Agg")


def rows(method, points, **parameters):
    table = pd.DataFrame(points, columns=["loss.a", "loss.b"]).assign(method=method)
    return table.assign(**{f"parameter.{k}": v for k, v in parameters.items()})


FRONT = rows("optimized", [(4.0, 0.5), (0.0, 4.0), (1.0, 2.0)])
SMOOTH = rows("smoothgrad", [(3.0, 3.0), (2.0, 3.5), (90.0, 1.0)], scale=[0.2, 0.1, 9])
PLAIN = rows("gradient", [(0.0, 6.0)])
SHAP = rows("shap", [(5.0, 5.0), (50.0, 60.0)], units=["gradient", "output"])


def drawn(*tables, x="a", y="b", **settings):
    axes = Figure().subplots()
    frame = pd.concat(tables, ignore_index=True)
    assert plot_trade_offs(frame, x, y, ax=axes, **settings) is axes
    axes.figure.savefig(io.BytesIO(), format="svg")
    return axes


def labels(axes):
    return [text.get_text() for text in axes.get_legend().get_texts()]


def line(axes, label):
    (result,) = (line for line in axes.lines if line.get_label() == label)
    return np.column_stack(result.get_data())


def test_front_is_drawn_in_order():
    axes = drawn(FRONT, PLAIN)
    np.testing.assert_array_equal(line(axes, "optimized"), [(0, 4), (1, 2), (4, 0.5)])
    assert axes.get_xlabel() == "a loss"
    assert axes.get_ylabel() == "b loss"


def test_optima_that_are_beaten_in_these_losses_are_not_on_the_line():
    axes = drawn(FRONT, rows("optimized", [(2.0, 3.0)]))
    np.testing.assert_array_equal(line(axes, "optimized"), [(0, 4), (1, 2), (4, 0.5)])
    np.testing.assert_array_equal(np.transpose(axes.lines[1].get_data()), [(2, 3)])
    assert axes.lines[1].get_linestyle() == "None"


def test_axes_may_be_swapped():
    axes = drawn(FRONT, x="b", y="a")
    np.testing.assert_array_equal(line(axes, "optimized"), [(0.5, 4), (2, 1), (4, 0)])


def test_same_loss_on_both_axes():
    best, others = drawn(FRONT, x="a", y="a").lines
    np.testing.assert_array_equal(best.get_xdata(), [0])
    np.testing.assert_array_equal(others.get_xdata(), [1, 4])


def test_families_run_along_their_number():
    axes = drawn(FRONT, PLAIN, SMOOTH)
    assert labels(axes) == [
        "optimized",
        "gradient",
        "smoothgrad, 1 of 3 off the chart",
        "knee",
    ]
    family = line(axes, "smoothgrad, 1 of 3 off the chart")
    np.testing.assert_array_equal(family, [(2, 3.5), (3, 3), (90, 1)])


def test_settings_that_are_no_numbers_make_families_of_their_own():
    axes = drawn(FRONT, SHAP)
    assert labels(axes) == [
        "optimized",
        "shap (units=gradient)",
        "shap (units=output), off the chart",
        "knee",
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


NEAREST = "smoothgrad: scale 0.1 is nearest"


def test_the_nearest_of_a_family_is_told():
    axes = drawn(FRONT, PLAIN, SMOOTH, nearest=[3, 5])
    assert NEAREST in labels(axes)
    np.testing.assert_array_equal(line(axes, NEAREST), [(2, 3.5)])
    assert not any("nearest" in label for label in labels(drawn(FRONT, SMOOTH)))


def test_the_nearest_of_a_sweep_is_that_of_its_least_excess():
    objective = po.GradientMatching(np.eye(3)) + po.Sparsity()
    halves = [
        po.Explanation(attributions=c * np.eye(3), method="m", parameters={"c": c})
        for c in (0.1, 0.6, 2.0)
    ]
    curve = po.sweep(objective, {"sparsity": [0.1, 1.0]}, halves)
    assert curve.nearest("m").parameters["c"] == 0.6
    assert "m: c 0.6 is nearest" in labels(curve.plot())
    plt.close("all")


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


# ---- explanations


@pytest.fixture
def best(rng):
    names = ["age", "height", "weight", "dose"]
    G = pd.DataFrame(rng.normal(size=(9, 4)), columns=names, index=list("abcdefghi"))
    return po.solve(1.0 * po.GradientMatching(G))


@pytest.fixture
def other(best):
    return po.Explanation(
        attributions=best.attributions + 0.1, method="other", labels=best.labels
    )


def texts(labels):
    return [label.get_text() for label in labels]


def test_a_row_is_drawn_largest_first_and_the_rest_summed(best):
    axes = Figure().subplots()
    assert po.plots.plot_row(best, "c", n_features=2, ax=axes) is axes
    row = best.to_frame().loc["c"]
    order = row.abs().sort_values(ascending=False).index
    assert texts(axes.get_yticklabels()) == [*order[:2], "2 others"]
    widths = [bar.get_width() for bar in axes.patches]
    np.testing.assert_allclose(widths, [*row[order[:2]], row[order[2:]].sum()])


def test_values_of_the_inputs_stand_beside_the_names(best):
    X = np.arange(36.0).reshape(9, 4)
    axes = po.plots.plot_row(best, "b", X=X, ax=Figure().subplots())
    assert "age = 4" in texts(axes.get_yticklabels())


def test_text_stands_beside_the_names_as_it_is():
    W = pd.DataFrame([[1.0, 2.0]], columns=["city", "age"])
    result = po.solve(1.0 * po.GradientMatching(W))
    X = pd.DataFrame({"city": ["Rome"], "age": [31]})
    axes = po.plots.plot_row(result, 0, X=X, ax=Figure().subplots())
    assert texts(axes.get_yticklabels()) == ["age = 31", "city = Rome"]


def test_the_heat_map_has_every_row_and_the_features_by_size(best):
    axes = po.plots.plot_heatmap(best, n_features=3, ax=Figure().subplots())
    assert axes.images[0].get_array().shape == (3, 9)
    sizes = best.to_frame().abs().mean().sort_values(ascending=False)
    assert texts(axes.get_yticklabels()) == list(sizes.index[:3])


def test_all_zero_attributions_can_be_drawn():
    nothing = po.Explanation(attributions=np.zeros((3, 2)), method="none")
    po.plots.plot_heatmap(nothing, ax=Figure().subplots())
    po.plots.plot_comparison(nothing, nothing, ax=Figure().subplots())


def test_a_comparison_tells_the_median_cosine(best, other):
    axes = po.plots.plot_comparison(best, other, ax=Figure().subplots())
    V, W = best.attributions, other.attributions
    cosines = (
        (V * W).sum(axis=1) / np.linalg.norm(V, axis=1) / np.linalg.norm(W, axis=1)
    )
    assert axes.get_title() == f"all rows; median cosine {np.median(cosines):.2f}"
    assert texts(axes.get_legend().get_texts()) == ["optimized", "other"]


def test_agreement_is_the_share_of_similarity_that_joins_like_rows(best):
    graph = po.chain_graph(9)
    axes = po.plots.plot_agreement([best], graph, ax=Figure().subplots())
    distances, shares = axes.lines[0].get_data()
    W = best.attributions
    typical = np.sqrt((W**2).sum() / 9)
    differences = np.sort(np.linalg.norm(np.diff(W, axis=0), axis=1)) / typical
    np.testing.assert_allclose(distances, [0.0, *differences])
    np.testing.assert_allclose(shares, np.arange(9) / 8)


def test_agreement_does_not_depend_on_the_size_of_attributions(best):
    half = po.Explanation(attributions=0.5 * best.attributions, method="half")
    axes = po.plots.plot_agreement(
        [best, half], po.chain_graph(9), ax=Figure().subplots()
    )
    first, second = (line.get_xdata() for line in axes.lines)
    np.testing.assert_allclose(first, second)


# ---- logarithmic axes


def test_logarithmic_axes_hold_every_loss_above_zero_near_the_front():
    axes = Figure().subplots()
    frame = pd.concat([FRONT, SMOOTH, PLAIN], ignore_index=True)
    plot_trade_offs(frame, "a", "b", scale="log", ax=axes)
    axes.figure.savefig(io.BytesIO(), format="svg")
    assert axes.get_xscale() == axes.get_yscale() == "log"
    assert axes.get_xlim()[0] < 1.0 < 4.0 < axes.get_xlim()[1]
    assert axes.get_ylim()[0] < 0.5 < 4.0 < axes.get_ylim()[1]
    labels = texts(axes.get_legend().get_texts())
    assert "gradient, off the chart" in labels  # its loss is zero
    assert "smoothgrad, 1 of 3 off the chart" in labels


# ---- units and doubt


def contributions(**fields):
    W = np.array([[3.0, -1.0, 0.5], [1.0, 2.0, -4.0]])
    fields = {"base_value": np.array([2.0, 2.0]), **fields}
    return po.Explanation(attributions=W, method="mine", units="output", **fields)


def test_contributions_are_steps_from_the_base_to_the_prediction():
    axes = po.plots.plot_row(contributions(), 1, ax=Figure().subplots())
    bars = axes.patches
    assert [bar.get_width() for bar in bars] == [-4.0, 2.0, 1.0]
    # the lowest starts at the base, each other where the one below ends
    assert [bar.get_x() for bar in bars] == [5.0, 3.0, 2.0]
    assert texts(axes.texts) == ["−4.00", "+2.00", "+1.00", "base 2", "prediction 1"]
    assert axes.get_xlabel() == "output"


def test_the_axis_of_steps_is_what_is_explained():
    churn = Quantity(model="SVC", kind="log_odds", label=1, outcome="churn")
    axes = po.plots.plot_row(contributions(quantity=churn), 1, ax=Figure().subplots())
    assert axes.get_xlabel() == "log-odds of churn = 1"
    assert axes.get_title() == "log-odds of churn = 1, row 1 (mine)"


def test_numbers_stand_beside_their_bars_and_inside_the_picture():
    errors = np.array([[1.0, 0.6, 0.1], [1.0, 1.0, 1.0]])
    for fields in ({}, {"standard_errors": errors}):
        for row in (0, 1):
            axes = po.plots.plot_row(
                contributions(**fields), row, ax=Figure().subplots()
            )
            axes.figure.canvas.draw()
            frame = axes.get_window_extent()
            for bar, text in zip(axes.patches, axes.texts, strict=False):
                box, own = text.get_window_extent(), bar.get_window_extent()
                assert text.get_text() == f"{bar.get_width():+.2f}".replace("-", "−")
                if bar.get_width() < 0:
                    assert box.x1 <= own.x0
                else:
                    assert box.x0 >= own.x1
                assert frame.x0 <= box.x0 <= box.x1 <= frame.x1
                assert own.y0 <= (box.y0 + box.y1) / 2 <= own.y1


@pytest.mark.parametrize(
    ("w", "shown"),
    [
        ([12345.6, -0.4, 0.0], ["+12,346", "0", "0"]),
        ([0.01234, -0.004, 0.00003], ["+0.0123", "−0.0040", "0"]),
        ([1e-9, -5e-10, 0.0], ["+1.00e−09", "−5.00e−10", "0"]),
    ],
)
def test_numbers_have_the_digits_of_the_largest(w, shown):
    result = po.Explanation(attributions=np.array([w]), method="mine")
    axes = po.plots.plot_row(result, ax=Figure().subplots())
    assert texts(axes.texts) == shown


def test_the_only_row_needs_no_name():
    one = po.Explanation(
        attributions=np.array([[1.0, 2.0]]),
        labels=Labels(points=("anna",)),
        method="mine",
    )
    assert (
        po.plots.plot_row(one, ax=Figure().subplots()).get_title() == "mine, row anna"
    )


def test_slopes_are_never_drawn_as_steps():
    slopes = dataclasses.replace(contributions(), units="scaled")
    axes = po.plots.plot_row(slopes, 1, ax=Figure().subplots())
    assert {bar.get_x() for bar in axes.patches} == {0.0}
    assert axes.get_xlabel().startswith("change of the output per ")
    assert not any("base" in text or "pred" in text for text in texts(axes.texts))
    assert axes.get_title() == "mine, row 1"


def test_bars_below_two_standard_errors_are_faded_and_all_have_whiskers():
    errors = np.array([[1.0, 0.6, 0.1], [1.0, 1.0, 1.0]])
    result = contributions(standard_errors=errors, base_value=None)
    axes = po.plots.plot_row(result, 0, ax=Figure().subplots())
    assert [bar.get_alpha() for bar in axes.patches] == [1.0, FADED, 1.0]
    (segments,) = (c.get_segments() for c in axes.collections)
    np.testing.assert_allclose(segments[1][:, 0], [-1.0 - 1.2, -1.0 + 1.2])


def test_what_is_not_certain_is_hatched_and_said():
    signs = SimpleNamespace(signs=np.array([[1, 0, 1], [1, 1, 0]]))
    axes = po.plots.plot_row(contributions(), 0, certain=signs, ax=Figure().subplots())
    assert [bool(bar.get_hatch()) for bar in axes.patches] == [False, True, False]
    assert "hatched: sign not certain" in axes.get_xlabel()
    axes = po.plots.plot_heatmap(contributions(), certain=signs, ax=Figure().subplots())
    cells = [p for p in axes.patches if p.get_hatch()]
    names = texts(axes.get_yticklabels())
    rows = texts(axes.get_xticklabels())
    corners = [(round(p.get_x() + 0.5), round(p.get_y() + 0.5)) for p in cells]
    result = {(rows[x], names[y]) for x, y in corners}
    assert result == {("0", "x1"), ("1", "x2")}


def test_tables_are_compared_with_contributions():
    slopes = dataclasses.replace(contributions(), units="gradient", base_value=None)
    table = slopes.attributions  # without units of its own
    po.plots.plot_comparison(contributions(), table, ax=Figure().subplots())


def test_cells_keep_their_colours_and_rows_their_names():
    axes = po.plots.plot_heatmap(contributions(), ax=Figure().subplots())
    assert axes.images[0].get_interpolation() == "none"
    assert sorted(texts(axes.get_xticklabels())) == ["0", "1"]


SLOPES = dataclasses.replace(contributions(), units="gradient", base_value=None)
SUM = po.GradientMatching(np.eye(2))
REFUSED = {
    "no loss is called 'c'; there are a, b": lambda: drawn(FRONT, y="c"),
    "expected 'linear' or 'log', got 'cubic'": lambda: drawn(FRONT, scale="cubic"),
    "no row 3; there are 2, from 0 to 1": lambda: po.plots.plot_row(SLOPES, 3),
    "there are 2 rows; name one, such as 0": lambda: po.plots.plot_row(SLOPES),
    r"expected signs of shape \(2, 3\)": lambda: po.plots.plot_row(
        SLOPES, 0, certain=SimpleNamespace(signs=np.ones(3))
    ),
    "expected the shape of the first": lambda: po.plots.plot_comparison(
        SLOPES, po.Explanation(attributions=np.ones((2, 2)), method="other")
    ),
    "'output', got 'gradient'": lambda: po.plots.plot_comparison(
        contributions(), SLOPES
    ),
    "expected edges between the 2 rows": lambda: po.plots.plot_agreement(
        [SLOPES], po.chain_graph(4)
    ),
    "no loss is called 'sparsity'": lambda: po.sweep(1.0 * SUM, {}).plot("sparsity"),
}


@pytest.mark.parametrize("message", REFUSED)
def test_what_cannot_be_drawn_is_refused(message):
    with pytest.raises(InvalidInput, match=message):
        REFUSED[message]()
