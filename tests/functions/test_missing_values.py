"""Models that take missing values are given them; the others say so themselves."""

from functools import partial

import numpy as np
import pandas as pd
import pytest
from quiet_boosters import QUIET, booster
from refusals import refusals
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import propopt as po
from propopt.base.errors import InvalidInput


pytestmark = pytest.mark.filterwarnings(
    "ignore::propopt.base.errors.FlatFunctionWarning"
)
pa = pytest.importorskip("pyarrow")
pl = pytest.importorskip("polars")
RNG = np.random.default_rng(3)
COMPLETE = pd.DataFrame(RNG.normal(size=(80, 3)), columns=["age", "dose", "weight"])
X = COMPLETE.mask(RNG.random(COMPLETE.shape) < 0.15)
Y = (COMPLETE["age"] + 2 * COMPLETE["dose"] * (X["weight"].isna() + 1)).to_numpy()
TEXT = pd.DataFrame(
    {
        "colour": pd.Series(RNG.choice(["red", "green", None], 80), dtype=object),
        "smokes": pd.Series(RNG.choice([True, False, None], 80), dtype=object),
    }
)
PAIR = pd.DataFrame({"a": [1, 2, 3], "b": [5, 4, 3]})
MODELS = {
    "histograms": lambda: HistGradientBoostingRegressor(max_iter=10, random_state=0),
    **{name: partial(booster, name, n_estimators=10) for name in QUIET},
    "imputed": lambda: make_pipeline(SimpleImputer(), StandardScaler(), Ridge()),
    "forest": lambda: RandomForestRegressor(5, random_state=0),
}


def effect(model, row, column, table):
    """f(x) − mean of f over the observed values of the column, one by one."""
    observed = table[column].dropna()
    changed = pd.concat([row] * len(observed), ignore_index=True)
    changed[column] = observed.to_numpy()
    return float(model.predict(row)[0] - model.predict(changed).mean())


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("form", [lambda t: t, lambda t: t.to_numpy()], ids=["df", "a"])
def test_values_and_effects_are_those_of_the_model(name, form):
    table, make = form(X), MODELS[name]
    model = make().fit(table, Y)
    function = po.wrap(model, data=table)
    np.testing.assert_allclose(function.value(table), model.predict(table), rtol=1e-12)
    result = np.asarray(function.gradient(table))
    model = make().fit(X, Y)
    rows = np.flatnonzero(X.isna().any(axis=1))[:6]
    for n in rows:
        for j in np.flatnonzero(X.iloc[n].isna()):
            expected = effect(model, X.iloc[[n]], X.columns[j], X)
            assert result[n, j] == pytest.approx(expected, abs=2e-6)
    if name == "imputed":
        weights = model[-1].coef_ / model[1].scale_
        present = ~X.isna().to_numpy()
        expected = np.broadcast_to(weights, X.shape)[present]
        np.testing.assert_allclose(result[present], expected, rtol=1e-6)


def test_a_missing_category_is_one_among_others():
    table = TEXT.assign(age=X["age"])
    coded = make_column_transformer(
        (OneHotEncoder(), ["colour", "smokes"]), (SimpleImputer(), ["age"])
    )
    model = make_pipeline(coded, Ridge()).fit(table, Y)
    function = po.wrap(model, data=table)
    np.testing.assert_allclose(function.value(table), model.predict(table), rtol=1e-12)
    result = function.gradient(table)
    weights = dict(zip(model[0].get_feature_names_out(), model[-1].coef_, strict=True))
    for label in ("colour", "smokes"):  # Σ_c β_c (1[x = c] − p_c)
        own = table[label].map(lambda c: weights[f"onehotencoder__{label}_{c}"])  # noqa: B023
        np.testing.assert_allclose(result[label], own - own.mean(), atol=1e-12)
    table = TEXT[TEXT["colour"].notna()]  # one that data never misses may be missing
    coded = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), ["colour"])
    )
    model = make_pipeline(coded, Ridge()).fit(table, Y[table.index])
    row = table.iloc[[0]].assign(colour=None)
    result = po.wrap(model, data=table).gradient(row)["colour"].iloc[0]
    expected = model.predict(row)[0] - model.predict(table).mean()
    assert result == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("form", [lambda t: t, lambda t: t.to_numpy()], ids=["df", "a"])
def test_observed_values_count_as_often_as_they_occur(form):
    table = form(pd.DataFrame({"a": [1.0, 1.0, 1.0, 5.0, np.nan]}))
    function = po.wrap(lambda t: np.nan_to_num(np.asarray(t)[:, 0] ** 2), data=table)
    result = np.asarray(function.gradient(table))[:, 0]
    np.testing.assert_allclose(result, [2, 2, 2, 10, 0 - 28 / 4], rtol=1e-8)


def test_missing_numbers_that_data_has_none_or_nothing_else_of():
    function = po.wrap(lambda t: t["a"].fillna(7) + t["b"], data=PAIR)
    result = function.gradient(pd.DataFrame({"a": [np.nan], "b": [1]}))
    np.testing.assert_allclose(result, [[7 - 2, 1]], rtol=1e-9)
    table = X.assign(age=np.nan)  # a column without any value has no effect
    function = po.wrap(lambda t: t["dose"].fillna(0.0), data=table)
    np.testing.assert_array_equal(function.gradient(table)["age"], 0.0)
    np.testing.assert_array_equal(function.schema.scales("std")[0], 0.0)
    rows = np.array([[1.0, pd.NA], [None, 2.0]], dtype=object)
    result = po.wrap(lambda X: np.nan_to_num(X).sum(axis=1)).value(rows)
    np.testing.assert_array_equal(result, [1.0, 2.0])


def filled(table):
    """A model of each library's own tables, for which a null is a null."""
    if isinstance(table, pl.DataFrame):
        return table.select(pl.col("age").fill_null(3.0)).to_series()
    if isinstance(table, pa.Table):
        return np.asarray(table["age"].fill_null(3.0))
    return table["age"].fillna(3.0)


FORMS = {"pandas": lambda t: t, "polars": pl.from_pandas, "arrow": pa.Table.from_pandas}
LINEAR = LinearRegression().fit(COMPLETE, Y)
INFINITE = PAIR.assign(a=[1.0, np.inf, 2.0])
SUM = po.wrap(lambda X: np.nan_to_num(X).sum(axis=1))
ADDED = po.wrap(lambda t: t["a"] + t["b"])
HALF = pd.DataFrame({"a": [1], "b": np.nan})
TOLD = po.wrap(lambda t: t["a"], data=PAIR)


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
@pytest.mark.parametrize("told", [True, False])
def test_nulls_of_other_libraries_reach_the_model_as_nulls(form, told):
    table = form(X)
    function = po.wrap(filled, data=table if told else X.to_numpy())
    np.testing.assert_array_equal(function.value(table), X["age"].fillna(3.0))
    result = np.asarray(function.gradient(table)["age"], float)
    expected = np.where(X["age"].isna(), 3.0 - X["age"].mean(), 1.0)
    np.testing.assert_allclose(result, expected, rtol=1e-9)


def test_what_a_model_says_of_missing_values_is_passed_on():
    model = KNeighborsRegressor().fit(COMPLETE, Y)
    message = (
        r"has missing values in 'age', 'dose', 'weight'; its message: .* contains NaN"
    )
    for data in (X, X.to_numpy()):
        function = po.wrap(model, data=data)
        with pytest.raises(InvalidInput, match=message) as caught:
            function.value(X)
        assert isinstance(caught.value.__cause__, ValueError)


def test_a_failure_without_missing_values_is_the_models_own():
    def model(_):
        raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine"):
        po.wrap(model).value(COMPLETE)
    with pytest.raises(InvalidInput, match=r"values in 'age'.* its message: mine"):
        po.wrap(model).value(X[["age"]])


@pytest.mark.parametrize(("line", "message"), refusals(__file__, "missing values"))
def test_what_cannot_be_answered_is_refused(line, message):
    with pytest.raises(InvalidInput, match=message):
        eval(line)
