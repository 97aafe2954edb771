"""Explanations: fields that nobody writes to, names, units, standard errors, rows."""

import dataclasses
import json
import warnings
from functools import cache

import numpy as np
import pandas as pd
import pytest
from refusals import refusals
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder

import propopt as po
from propopt.base.errors import InvalidInput
from propopt.tables.frames import Labels


G = np.arange(6.0).reshape(3, 2) / 7
BARE = po.results.Explanation(attributions=G, method="gradient")
W = np.array([[1.0, -2.0, 4.0], [3.0, 0.5, 2.0]])
ERRORS = np.array([[0.1, 0.2, 0.3], [0.4, 0.5, 0.0]])
SLOPES = po.results.Explanation(
    attributions=W,
    method="lime",
    labels=Labels(("p", "q"), ("a", "b", "c")),
    parameters={"scale": 0.1},
    weights={"sparsity": 1.0},
    losses={"sparsity": 12.5},
    multipliers={"smoothness": 1.0},
    standard_errors=ERRORS,
    details={"r2": np.ones(2)},
    evaluations=200,
    solver="lasso",
    background="0f",
    quantity=po.wrap(np.ravel).quantity,
)


def mine(attributions=W, **fields):
    return po.results.Explanation(attributions=attributions, method="mine", **fields)


X = np.random.default_rng(3).normal(size=(9, 2))
GRAPH = po.graphs.chain_graph(9)
OBJECTIVE = po.GradientMatching(3 * X**2) + po.PairwiseRobustness(GRAPH)


def test_whole_numbers_and_frames_are_floats_and_errors_may_be_unknown():
    assert mine(np.arange(4).reshape(2, 2)).attributions.dtype == np.float64
    np.testing.assert_array_equal(mine(pd.DataFrame(X)).attributions, X)
    errors = [[0, 1, 2], [np.inf, np.nan, 0]]  # those unknown need not be finite
    result = mine(standard_errors=errors).standard_errors
    assert result.dtype == np.float64
    np.testing.assert_array_equal(result, errors)


def test_tables_have_the_names_of_the_input():
    frame = pd.DataFrame(G, columns=["age", "dose"], index=["p", "q", "r"])
    best = po.solve(1.0 * po.GradientMatching(frame))
    table = best.to_frame()
    pd.testing.assert_frame_equal(table, frame, check_exact=False)
    assert list(BARE.to_frame().columns) == ["x0", "x1"]
    assert list(BARE.to_frame().index) == [0, 1, 2]
    # what is zero neither raises nor lowers
    table = mine([[1.0, -4.0, 0.0], [3.0, 2.0, 0.0], [0.0, 1.0, 0.0]]).top(3)
    assert list(table.index) == ["x1", "x0", "x2"]
    np.testing.assert_allclose(table["raises"], [2 / 3, 2 / 3, 0.0])
    np.testing.assert_allclose(table["lowers"], [1 / 3, 0.0, 0.0])


TWICE = Labels(features=("a", "a", "c"))


def but(**fields):
    return dataclasses.replace(SLOPES, **fields)


@pytest.mark.parametrize(("line", "message"), refusals(__file__, "explanations"))
def test_what_is_none_is_refused_by_name(line, message):
    with pytest.raises(InvalidInput, match=message):
        eval(line)


def test_the_objective_is_the_weighted_sum_and_measuring_adds_losses():
    weighed = dataclasses.replace(SLOPES, weights={"sparsity": 0.5})
    assert weighed.objective == 6.25
    assert BARE.objective is BARE.gap is None
    measured = weighed.measured(po.Smoothness(po.graphs.chain_graph(3)))
    assert measured.losses["sparsity"] == 12.5
    assert measured.losses["smoothness"] > 0
    assert "smoothness" not in weighed.losses
    assert measured.details["r2"] is weighed.details["r2"]  # not copied
    certified = SLOPES.certified(1.0 * po.GradientMatching(W))
    assert certified.standard_errors is SLOPES.standard_errors
    assert certified.gap == certified.certificate.gap


def test_a_loss_of_the_same_name_takes_the_certificate_away():
    best, other = po.solve(OBJECTIVE), po.GradientMatching(X)
    assert best.measured(OBJECTIVE).certificate == best.certificate
    measured = best.measured(other)
    assert measured.attributions is best.attributions  # not copied
    assert measured.certificate is None
    assert measured.weights == measured.multipliers == {}
    assert measured.losses["gradient_matching"] == other.value(best)


def test_scaled_attributions_keep_only_what_holds_for_them():
    result = SLOPES.scaled([10, -1, 0.5])
    np.testing.assert_array_equal(result.attributions, W * [10.0, -1.0, 0.5])
    np.testing.assert_array_equal(result.standard_errors, ERRORS * [10.0, 1.0, 0.5])
    assert result.units == "scaled"
    assert result.weights == result.losses == result.multipliers == result.details == {}
    assert result.certificate is result.objective is None
    assert result.parameters == SLOPES.parameters
    assert (result.labels, result.evaluations) == (SLOPES.labels, 200)
    assert (result.solver, result.background) == ("lasso", "0f")
    assert result.quantity is SLOPES.quantity


def test_grouped_attributions_are_signed_sums_in_order_of_the_first():
    result = SLOPES.grouped({"last": ["c", "b"]})
    assert result.labels == Labels(("p", "q"), ("a", "last"))
    np.testing.assert_array_equal(result.attributions, [[1, 2], [3, 2.5]])
    assert result.weights == result.losses == result.details == result.multipliers == {}
    assert (result.units, result.evaluations) == ("gradient", 200)
    assert result.standard_errors is None  # of sums they are not known
    ends = SLOPES.grouped({"ends": ["c", "a"]}).to_frame()
    np.testing.assert_array_equal(ends["ends"], [5, 5])
    assert list(ends.columns) == ["ends", "b"]
    result = SLOPES.grouped({"a": ["a", "b"]})  # of the name of its own feature
    assert result.labels.features == ("a", "c")


def table():
    rng = np.random.default_rng(0)
    names = [f"patient {n}" for n in range(60)]
    frame = pd.DataFrame({"age": rng.normal(50.0, 9.0, 60).round(2)}, index=names)
    frame["ward"] = rng.choice(["north <b>", "south"], 60)
    frame["dose"] = rng.integers(1, 9, 60).astype(float)
    frame.iloc[3, 2] = np.nan
    frame.iloc[4, 1] = None
    return frame


TABLE = table()
Y = TABLE.age + 4.0 * (TABLE.ward == "south") + TABLE.dose.fillna(20.0)
MODEL = make_pipeline(
    make_column_transformer((OrdinalEncoder(), ["ward"]), remainder="passthrough"),
    HistGradientBoostingRegressor(max_iter=20),
).fit(TABLE, Y)
EIGHT = TABLE.iloc[:8]
WAYS = {
    "together": lambda: po.explain(MODEL, EIGHT, data=TABLE, kind="slopes"),
    "parts": lambda: po.explain(MODEL, EIGHT, data=TABLE, kind="contributions"),
    "alone": lambda: (
        po.Explainer(MODEL, data=TABLE, kind="slopes").fit().explain(EIGHT)
    ),
    "parts alone": lambda: (
        po.Explainer(MODEL, data=TABLE, kind="contributions").fit().explain(EIGHT)
    ),
    "reference": lambda: (
        po.Explainer(MODEL, EIGHT, kind="slopes").fit(EIGHT).reference_
    ),
    "baseline": lambda: po.explainers.TreeShap(data=TABLE).explain(
        po.wrap(MODEL, data=TABLE), EIGHT
    ),
}


@cache
def way(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", po.errors.MissingPatternsWarning)
        return WAYS[name]()


def expected(n, name):
    value = TABLE.iloc[n][name]
    if pd.isna(value):
        return "missing"
    return value if isinstance(value, str) else f"{value:.4g}"


@pytest.mark.parametrize("name", WAYS)
def test_each_way_of_explaining_keeps_the_rows(name, tmp_path):
    way(name).save(tmp_path / "kept.npz")
    wanted = [[expected(n, column) for column in TABLE] for n in range(8)]
    for result in (way(name), po.results.Explanation.load(tmp_path / "kept.npz")):
        assert [[result.value_of(n, j) for j in range(3)] for n in range(8)] == wanted


def test_shap_shows_values_without_the_table():
    parts = way("parts")
    pytest.importorskip("shap")
    theirs = parts.to_shap()
    np.testing.assert_array_equal(theirs.data, parts.points)
    texts = [expected(4, name) for name in TABLE.columns]
    assert theirs.display_data[4].tolist() == texts


def test_completeness_gaps_are_errors_of_sums_and_none_for_slopes():
    parts = way("parts")
    both = parts.grouped({"person": ["age", "ward"]})  # adds up too, without a value
    assert both.points is both.contributions is None
    assert both.value_of(0, 0) == ""
    np.testing.assert_allclose(both.additivity_error, 0.0, atol=1e-10)
    wrong = dataclasses.replace(parts, attributions=1.001 * parts.attributions)
    missed = 0.001 * parts.attributions.sum(axis=1)
    np.testing.assert_allclose(wrong.additivity_error, missed, atol=1e-10)
    assert way("together").additivity_error is None
    for unknown in ("base_value", "prediction"):
        assert dataclasses.replace(parts, **{unknown: None}).additivity_error is None


def test_what_contradicts_the_rows_or_the_target_is_not_saved(tmp_path):
    cases = [
        ("together", "ward: expected", {"categories": {"ward": ("north",)}}),
        ("together", "is no feature", {"categories": {"nobody": ("a", "b")}}),
        ("together", "points: ward: expected|is no feature", {"points": None}),
    ]
    for name in ("together", "parts", "alone", "parts alone"):
        for field in ("gradient", "contributions"):
            target = getattr(way(name), field)
            if target is not None:
                message = "losses: gradient_matching is "
                cases += [(name, message, {field: f * target}) for f in (1.001, 0.0)]
    assert len(cases) >= 11
    for name, message, change in cases:
        wrong = dataclasses.replace(way(name), **change)
        with pytest.raises(InvalidInput, match=message):
            wrong.save(tmp_path / "wrong.npz")


def test_parts_that_miss_the_prediction_are_refused(tmp_path):
    base = np.array([3.0, 3.0])
    prediction = base + W.sum(axis=1)
    parts = mine(units="output", base_value=base, prediction=prediction)
    parts = dataclasses.replace(parts, method="optimized")
    parts.save(tmp_path / "a.npz")
    off = prediction + np.array([0.0, 0.008])  # by less than 0.1 %
    with pytest.raises(InvalidInput, match="row 1 and its base value miss"):
        dataclasses.replace(parts, prediction=off).save(tmp_path / "a.npz")


def test_rows_that_dates_name_are_text_in_json(tmp_path, rng):
    days = pd.date_range("2026-01-01", periods=2)
    table = pd.DataFrame(rng.normal(size=(2, 2)), days, ["a", "b"])
    po.solve(po.GradientMatching(table)).to_json(tmp_path / "days.json")
    first, second = json.loads((tmp_path / "days.json").read_text())
    assert str(days[0]) in first.values()
    assert str(days[1]) in second.values()
