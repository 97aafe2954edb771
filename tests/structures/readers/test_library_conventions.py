"""What each library with trees does with offsets, names and dtypes, as we do.

The reference is always the library's own prediction: of a model whose intercept is not
zero, at the columns in the order of its fit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pytest
from coalitions import shapley_by_definition
from library_margins import margin_of, matrix_of
from quiet_boosters import booster
from sklearn.compose import TransformedTargetRegressor, make_column_transformer
from sklearn.ensemble import (
    BaggingRegressor,
    ExtraTreesRegressor,
    GradientBoostingRegressor,
    HistGradientBoostingRegressor,
    RandomForestRegressor,
    VotingRegressor,
)
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler
from sklearn.svm import SVR

import propopt as po
from propopt.base.errors import InvalidInput


RNG = np.random.default_rng(11)
N = 120
NUMBERS = pd.DataFrame(RNG.normal(size=(N, 3)) * 3.0, columns=["a b", "age", "c"])
KINDS = pd.Categorical(RNG.choice(["red", "blue", "green"], N))
RESPONSE = (7.0 + NUMBERS["a b"] * NUMBERS["age"] + (KINDS == "red")).to_numpy()
CLASS = (RESPONSE > 9.0).astype(int)
OFFSET = np.log(RNG.uniform(0.1, 1.0, N))
ORDER = ["c", "a b", "age"]
"""The columns of a table that is given in another order than that of the fit."""

N_ROWS = 3
N_DATA = 12

TABLES: dict[str, Any] = {
    "float64": NUMBERS,
    "float32": NUMBERS.astype(np.float32),
    "int64": NUMBERS.round().astype(np.int64),
    "categories": NUMBERS.assign(c=KINDS),
    "array": NUMBERS.to_numpy(),
}


@dataclass(frozen=True)
class Library:
    """How a library is fitted."""

    fit: Callable[[Any, bool], Any]
    is_classifier: bool = False
    takes_categories: bool = True


def _estimator(package: str, kind: str, **settings: Any) -> Callable[..., Any]:
    def fit(table: Any, categories: bool) -> Any:
        more = dict(settings)
        if package == "catboost" and categories:
            more["cat_features"] = ["c"]
        if package == "xgboost":
            more["enable_categorical"] = True
        model = booster(package, kind, n_estimators=5, max_depth=3, **more)
        return model.fit(table, RESPONSE if kind == "Regressor" else CLASS)

    return fit


def _xgb_native(table: Any, categories: bool) -> Any:
    del categories
    xgboost = pytest.importorskip("xgboost")
    settings = {"max_depth": 3, "nthread": 1, "objective": "binary:logistic"}
    return xgboost.train(settings, matrix_of(table, CLASS), 5)


def _lgb_native(table: Any, categories: bool) -> Any:
    del categories
    lightgbm = pytest.importorskip("lightgbm")
    settings = {"num_leaves": 5, "num_threads": 1, "verbosity": -1}
    return lightgbm.train(settings, lightgbm.Dataset(table, RESPONSE), 5)


def _of_sklearn(make: Callable[[], Any]) -> Library:
    def fit(table: Any, categories: bool) -> Any:
        del categories
        return make().fit(table, RESPONSE)

    takes = make().__class__ is HistGradientBoostingRegressor
    return Library(fit, takes_categories=takes)


LIBRARIES = {
    "catboost": Library(_estimator("catboost", "Regressor")),
    "catboost classes": Library(_estimator("catboost", "Classifier"), True),
    "lightgbm": Library(_estimator("lightgbm", "Regressor")),
    "lightgbm classes": Library(_estimator("lightgbm", "Classifier"), True),
    "lightgbm native": Library(_lgb_native),
    "xgboost": Library(_estimator("xgboost", "Regressor")),
    "xgboost classes": Library(_estimator("xgboost", "Classifier"), True),
    "xgboost native": Library(_xgb_native, True),
    "histograms": _of_sklearn(
        lambda: HistGradientBoostingRegressor(
            max_iter=5, max_leaf_nodes=5, categorical_features="from_dtype"
        )
    ),
    "boosting": _of_sklearn(lambda: GradientBoostingRegressor(n_estimators=5)),
    "forest": _of_sklearn(lambda: RandomForestRegressor(5, max_depth=4)),
    "extra trees": _of_sklearn(lambda: ExtraTreesRegressor(5, max_depth=4)),
}


def _rows(table: Any, rows: slice) -> Any:
    return table.iloc[rows] if isinstance(table, pd.DataFrame) else table[rows]


@pytest.mark.parametrize("permuted", [False, True], ids=["in order", "permuted"])
@pytest.mark.parametrize("dtype", TABLES)
@pytest.mark.parametrize("name", LIBRARIES)
def test_explanations_are_those_of_the_library_s_predictions(
    name: str, dtype: str, permuted: bool
) -> None:
    """An intercept × a margin × the order of columns × dtypes, for each library."""
    library, table = LIBRARIES[name], TABLES[dtype]
    if dtype == "categories" and not library.takes_categories:
        pytest.skip("it takes numbers only")
    if dtype == "array" and permuted:
        pytest.skip("an array has no names")
    model = library.fit(table, dtype == "categories")
    data, rows = _rows(table, slice(40, 40 + N_DATA)), _rows(table, slice(N_ROWS))
    own = OFFSET[:N_ROWS]

    def margin(cells: Any, given: Any = None) -> Any:
        return np.asarray(margin_of(model, cells, given), float)

    wanted = shapley_by_definition(margin, rows, data)
    base, plain, with_margin = margin(data).mean(), margin(rows), margin(rows, own)
    if permuted:
        data, rows = data[ORDER], rows[ORDER]
        wanted = wanted[:, [table.columns.get_loc(column) for column in ORDER]]
    close = {"abs": 4e-6}  # libraries compute in float32
    settings: dict[str, Any] = {"output": "margin"} if library.is_classifier else {}
    found = po.explain(model, rows, data=data, **settings)
    assert found.sampling_excess == 0.0
    assert found.contributions == pytest.approx(wanted, **close)
    assert found.base_value == pytest.approx(np.full(N_ROWS, base), **close)
    assert found.prediction == pytest.approx(plain, **close)
    if permuted:
        assert list(found.to_frame()) == ORDER
    moved = po.explain(model, rows, data=data, base_margin=own, **settings)
    assert moved.prediction == pytest.approx(with_margin, **close)
    ends = moved.base_value + moved.contributions.sum(axis=1)
    assert ends == pytest.approx(with_margin, **close)
    assert np.array_equal(moved.contributions, found.contributions)
    # base margins are no multiple of what they are added to, so that both count
    assert np.abs(with_margin - plain).min() > 1e-3
    assert abs(base) > 0.05


# ---- Columns in another order, by each way to explain


MIXED = NUMBERS.assign(k=KINDS)
TURNED = ["k", "c", "a b", "age"]


def _boosted(package: str, table: Any) -> Any:
    return _estimator(package, "Regressor")(table, categories=False)


def _encoded(table: Any) -> Any:
    steps = make_column_transformer((OneHotEncoder(), ["k"]), remainder="passthrough")
    model = make_pipeline(steps, booster("lightgbm", n_estimators=5))
    return model.fit(table, RESPONSE)


NAMED: dict[str, tuple[Any, Callable[[Any], Any]]] = {
    "catboost": (NUMBERS, lambda X: _boosted("catboost", X)),
    "lightgbm": (MIXED, lambda X: _boosted("lightgbm", X)),
    "lightgbm native": (MIXED, lambda X: _boosted("lightgbm", X).booster_),
    "xgboost": (MIXED, lambda X: _boosted("xgboost", X)),
    "xgboost native": (NUMBERS, lambda X: _boosted("xgboost", X).get_booster()),
    "histograms": (
        MIXED,
        lambda X: HistGradientBoostingRegressor(
            max_iter=5, categorical_features="from_dtype"
        ).fit(X, RESPONSE),
    ),
    "linear": (NUMBERS, lambda X: LinearRegression().fit(X, RESPONSE)),
    "logistic": (NUMBERS, lambda X: LogisticRegression().fit(X, CLASS)),
    "kernel": (NUMBERS, lambda X: SVR().fit(X, RESPONSE)),
    "encoder": (MIXED, _encoded),
    "scaler": (
        NUMBERS,
        lambda X: make_pipeline(StandardScaler(), booster("lightgbm")).fit(X, RESPONSE),
    ),
    "unnamed step": (
        NUMBERS,
        lambda X: make_pipeline(FunctionTransformer(), booster("lightgbm")).fit(
            X, RESPONSE
        ),
    ),
    "search": (
        MIXED,
        lambda X: GridSearchCV(
            booster("lightgbm", n_estimators=4), {"num_leaves": [3, 4]}, cv=2
        ).fit(X, RESPONSE),
    ),
    "target": (
        NUMBERS,
        lambda X: TransformedTargetRegressor(
            booster("catboost", n_estimators=4), transformer=StandardScaler()
        ).fit(X, RESPONSE),
    ),
    "voting": (
        NUMBERS,
        lambda X: VotingRegressor(
            [("a", booster("lightgbm", n_estimators=4)), ("b", LinearRegression())]
        ).fit(X, RESPONSE),
    ),
    "bagging": (
        NUMBERS,
        lambda X: BaggingRegressor(booster("lightgbm", n_estimators=4), 3).fit(
            X, RESPONSE
        ),
    ),
}
NAMES = pytest.mark.parametrize("name", NAMED)


def _turned(table: pd.DataFrame) -> pd.DataFrame:
    return table[[column for column in TURNED if column in table]]


@NAMES
def test_columns_are_found_by_name(name: str, tmp_path: Any) -> None:
    """The result has the columns of the table, and the numbers of the fit's order."""
    table, fit = NAMED[name]
    model, turned = fit(table), _turned(table)
    columns, order = list(turned), [table.columns.get_loc(x) for x in turned]
    settings: dict[str, Any] = {"output": "log_odds"} if name == "logistic" else {}
    if name.endswith("native"):
        settings = {"output": "value"}
    few = slice(0, 5)
    wanted = po.explain(model, table[few], data=table, **settings)
    found = po.explain(model, turned[few], data=turned, **settings)
    assert found.sampling_excess == wanted.sampling_excess == 0.0
    assert list(found.to_frame()) == columns
    assert found.prediction == pytest.approx(wanted.prediction, abs=1e-12)
    same = wanted.contributions[:, order]
    assert found.contributions == pytest.approx(same, abs=1e-12)
    assert found.attributions == pytest.approx(wanted.attributions[:, order], abs=1e-9)
    explainer = po.Explainer(model, turned, **settings).fit()
    explainer.save(tmp_path / "e.npz")
    again = po.Explainer.load(tmp_path / "e.npz", model).transform(turned[few])
    assert list(again)[: len(columns)] == columns
    assert again["prediction"].to_numpy() == pytest.approx(wanted.prediction, abs=1e-12)
    slopes, others = (
        po.explain(model, X[few], data=X, kind="slopes", **settings)
        for X in (turned, table)
    )
    assert slopes.gradient == pytest.approx(others.gradient[:, order], abs=1e-9)
    f = po.wrap(model, data=turned, **settings)
    assert f.value(turned[few]) == pytest.approx(wanted.prediction, abs=1e-12)
    values = po.explain(model, table[few], data=table, robustness=0.0, **settings)
    audit = po.audit(
        values.to_frame()[columns], model, turned[few], data=turned, **settings
    )
    assert audit["row sums"].verdict == "exact"
    assert audit["values"].verdict == "exact"
    other = fit(table.iloc[::-1].set_axis(table.index))
    change, of_order = (
        po.compare(model, other, X[few], data=X, **settings) for X in (turned, table)
    )
    assert change.labels.features == tuple(columns)
    assert change.before == pytest.approx(of_order.before[:, order], abs=1e-9)
    assert change.after == pytest.approx(of_order.after[:, order], abs=1e-9)


@NAMES
def test_other_columns_are_refused_by_name(name: str) -> None:
    """The message names them, and the model is not called by position."""
    table, fit = NAMED[name]
    model = fit(table)
    renamed = table.rename(columns={"age": "years"})
    if name != "encoder":  # a ColumnTransformer decides itself which it needs
        with pytest.raises(InvalidInput, match="missing: 'age'; unexpected: 'years'"):
            po.explain(model, renamed[:3], data=renamed)
    with pytest.raises(InvalidInput, match=r"X\[list\(data.columns\)\]") as refused:
        po.explain(model, _turned(table)[:3], data=table)
    remedy = str(refused.value).rpartition("; ")[2].removesuffix(" has them in order")
    X = eval(remedy, {"X": _turned(table)[:3], "data": table, "list": list})
    f = po.wrap(model, data=table)
    assert np.array_equal(f.value(X), f.value(table[:3]))
