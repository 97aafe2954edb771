"""Means of any function under the data law, by draws: right, with errors, and nested.

Of t scores with nine degrees of freedom one in 1.3e6 is beyond 12, of normal ones one
in 1.7e6 beyond 5; at most 200 stand in a test, and the seeds are fixed.
"""

from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import pytest
from estimators import sk
from quiet_boosters import booster
from refusals import refusals

import propopt as po
from propopt.base.errors import InvalidInput, Refused
from propopt.functions.means import ExactMean, SampledMean
from propopt.laws.background import Reference
from propopt.laws.data_law import DataLaw, Means
from propopt.tables.frames import Labels


RNG = np.random.default_rng(8)
X = RNG.normal(size=(150, 4)).round(2)
X[:, 3] = RNG.random(150) < 0.3
Y = X[:, 0] * X[:, 1] + X[:, 3] + 0.1 * RNG.normal(size=150)
ROWS = X[:20]
FOREST = sk.RandomForestRegressor(20, min_samples_leaf=8, random_state=0).fit(X, Y)


def lost(X):
    """A forest of which nothing is known any more."""
    return FOREST.predict(np.asarray(X))


def sampled(n_samples=500, function=None, **settings):
    function = po.wrap(lost) if function is None else function
    return po.functions.smoothed(
        function, None, n_samples, law="data", data=X, **settings
    )


def exact():
    return po.functions.smoothed(po.wrap(FOREST), law="data", data=X)


def scores(estimate, expected):
    moved = estimate.standard_errors > 1e-12
    return ((estimate.values - expected) / estimate.standard_errors)[moved]


def test_a_lambda_around_a_forest_has_the_slopes_of_the_forest():
    assert isinstance(exact(), ExactMean)
    mean = sampled()
    assert isinstance(mean, SampledMean)
    result = mean.estimate(ROWS)
    assert np.abs(scores(result, exact().gradient(ROWS))).max() < 12.0
    relative = np.linalg.norm(result.values - exact().gradient(ROWS))
    assert relative < 0.15 * np.linalg.norm(result.values)
    error = np.abs(mean.value(ROWS) - exact().value(ROWS)).max()
    assert error < 0.05


def variance(drawn):
    estimate = drawn.estimate
    return float((estimate.standard_errors**2).sum() / (estimate.values**2).sum())


def test_drawing_stops_where_the_budget_ends():
    function = po.wrap(lost)
    first = sampled(100, function).growing_at(ROWS, Labels())
    last = first.until(1e-12, 14_399, variance)
    assert last.n_draws == 350
    assert function.calls.rows == last.evaluations <= 14_399
    assert last.until(1e-12, 14_399, variance) is last
    small = sampled(500).growing_at(ROWS, Labels(), 4_000)
    assert small.n_draws == 100


def test_categories_and_missing_numbers_have_effects():
    table = pd.DataFrame(X, columns=list("abcd")).assign(
        job=np.where(X[:, 0] > 0.5, "cook", np.where(X[:, 1] > 0, "smith", "poet"))
    )
    table.loc[::5, "b"] = np.nan
    table["job"] = table["job"].astype("category")
    model = sk.HistGradientBoostingClassifier(
        max_iter=15, categorical_features="from_dtype", random_state=0
    )
    model.fit(table, Y > 0.3)
    margin = po.wrap(model, output="margin", data=table)
    truth = po.functions.smoothed(margin, law="data", data=table)
    assert isinstance(truth, ExactMean)
    spied = po.wrap(model.decision_function, data=table)
    mean = po.functions.smoothed(spied, law="data", data=table)
    assert isinstance(mean, SampledMean)
    rows = table.iloc[:25]
    result, expected = mean.estimate(rows), truth.estimate(rows)
    assert np.abs(scores(result, expected.values)).max() < 12.0
    still = result.standard_errors <= 1e-12
    np.testing.assert_allclose(
        result.values[still],
        expected.values[still],
        atol=5e-3 * np.abs(result.values).max(),
    )
    np.testing.assert_array_equal(result.effects, expected.effects)
    assert result.effects[:, 4].all()
    assert result.effects[::5, 1].all()
    assert mean.gradient(rows).columns.equals(rows.columns)


def test_probabilities_have_the_exact_margin_as_control():
    settings = {"n_estimators": 30, "num_leaves": 8, "min_child_samples": 5}
    model = booster("lightgbm", "Classifier", **settings)
    function = po.wrap(model.fit(X, Y > 0.5), output="probability")
    assert function.boxes is None
    mean = sampled(500, function)
    assert isinstance(mean, SampledMean)
    assert mean.control is function.margin_boxes is not None
    assert "with the exact margin as control" in mean.gradient_method
    truth = replace(mean, control=None, n_samples=20_000).estimate(ROWS[:2])
    assert np.abs(scores(mean.estimate(ROWS[:2]), truth.values)).max() < 12.0


def test_slopes_of_many_columns_need_draws():
    wide = np.random.default_rng(0).normal(size=(30, 300))
    function = po.wrap(lambda X: X.sum(axis=1))
    mean = po.functions.smoothed(function, None, 500, law="data", data=wide)
    with pytest.raises(InvalidInput, match=r"500 draws are too few .* at least 670"):
        mean.gradient(wide)
    enough = po.functions.smoothed(function, law="data", data=wide)
    assert enough.n_samples == 670
    np.testing.assert_allclose(enough.gradient(wide[:2]), 1.0, rtol=1e-6)


JUMPS = po.wrap(lambda P: np.where(P[:, 0] * P[:, 3] > 1.0, np.inf, P[:, 0]))


@pytest.mark.parametrize(("line", "message"), refusals(__file__, "draws"))
def test_what_cannot_be_drawn_is_refused(line, message):
    with pytest.raises((InvalidInput, Refused), match=message):
        eval(line)


# ---- the data law of fitted models of every library that is read


N, D = 600, 13
GENERATOR = np.random.default_rng(0)
TABLE = GENERATOR.normal(size=(N, D))
TABLE[:, 3] = GENERATOR.random(N) < 0.3
TABLE[:, 7] = 4.0
TABLE[:, 9] = GENERATOR.integers(0, 6, N)
TABLE[:, 11] = np.exp(TABLE[:, 11])  # skewed
TARGET = (
    TABLE[:, 0] * TABLE[:, 1]
    + 2.0 * TABLE[:, 3] * (TABLE[:, 2] > 0)
    + np.sin(2.0 * TABLE[:, 4])
    + 0.5 * TABLE[:, 9]
    + np.log(TABLE[:, 11])
    + 0.2 * GENERATOR.normal(size=N)
)
GAPS = np.where(GENERATOR.random(TABLE.shape) < 0.1, np.nan, TABLE)
GAPS[:, 12] = TABLE[:, 12]
MODELS = {
    "lightgbm": partial(booster, "lightgbm", n_estimators=30),
    "xgboost": partial(booster, "xgboost", n_estimators=30),
    "catboost": partial(booster, "catboost", n_estimators=30, depth=4),
    "hist gradient boosting": lambda: sk.HistGradientBoostingRegressor(max_iter=30),
    "forest": lambda: sk.RandomForestRegressor(20, max_depth=6, random_state=0),
    "extra trees": lambda: sk.ExtraTreesRegressor(20, max_depth=6, random_state=0),
    "gradient boosting": lambda: sk.GradientBoostingRegressor(n_estimators=30),
}
KEPT = {}
CASES = [
    pytest.param(name, table, id=f"{name}{' with gaps' * (table is GAPS)}")
    for name in MODELS
    for table in (TABLE, GAPS)
    if table is TABLE or name != "gradient boosting"
]


def fitted(name, table):
    """The model, fitted on all columns but the last, which it does not use."""
    kind = (name, np.isnan(table).any())
    if kind not in KEPT:
        unused = table.copy()
        unused[:, 12] = 0.0  # nothing to split
        KEPT[kind] = po.wrap(MODELS[name]().fit(unused, TARGET))
    return KEPT[kind]


def moved(boxes, law, rng):
    """The boxes with every threshold anywhere between the values beside it."""
    sets = boxes.sets
    ends = [sets.low.copy(), sets.high.copy()]
    for j, column in enumerate(law.columns):
        values = column.values
        for end in ends:
            at = np.searchsorted(values, end, side="right")
            inner = (sets.column == j) & (at > 0) & (at < len(values))
            below, above = values[at[inner] - 1], values[at[inner]]
            part = rng.uniform(0.01, 0.99, int(inner.sum()))
            end[inner] = below + part * (above - below)
    return replace(boxes, factors=(replace(sets, low=ends[0], high=ends[1]),))


@pytest.mark.parametrize(("name", "table"), CASES)
def test_what_no_threshold_between_values_changes_stays(name, table):
    """Unused and constant columns are zero, and moved thresholds change no bit."""
    function = fitted(name, table)
    estimate = po.functions.smoothed(function, law="data", data=table).estimate(
        table[:40]
    )
    assert estimate.exact
    present = ~np.isnan(table[:40, 7])
    assert (estimate.values[present, 7] == 0.0).all()
    assert (estimate.values[:, 12] == 0.0).all()
    assert (np.abs(estimate.values[:, 0]) > 0.0).all()
    boxes, law = function.boxes, DataLaw(Reference.of_points(table))
    other = moved(boxes, law, np.random.default_rng(1))
    assert (other.sets.low != boxes.sets.low).mean() > 0.3
    expected, got = Means(boxes, law).of(table[:20]), Means(other, law).of(table[:20])
    np.testing.assert_array_equal(got[0], expected[0])
    np.testing.assert_array_equal(got[1], expected[1])
