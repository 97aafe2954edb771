"""Situations in which explainers of trees have been wrong, as small models."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np
import pandas as pd
from sklearn.ensemble import (
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.tree import DecisionTreeRegressor


N_BACKGROUND, N_ROWS = 12, 5
Table = pd.DataFrame
Answer = Callable[[Table], Any]


@dataclass(frozen=True)
class Case:
    """A fitted model, what it is asked, and its own answer."""

    model: Any
    rows: Table
    background: Table
    answer: Answer  # the model's own prediction, in the units to explain
    n_trees: int  # how many numbers its predictions add up
    eps: float  # of the arithmetic in which it adds them
    target: int | None = None  # the class or column
    output: str = "auto"  # "value", "margin" or "probability"

    @property
    def rounding(self) -> float:
        """Of one prediction, relative: a sum of n terms, each of which is rounded."""
        return (self.n_trees + 1) * self.eps


Maker = Callable[[np.random.Generator], Case]
MAKERS: dict[tuple[str, str], Maker] = {}
"""By situation and library, what makes a case of random numbers."""

SINGLE, DOUBLE = float(np.finfo(np.float32).eps), float(np.finfo(np.float64).eps)


def case(situation: str, library: str) -> Callable[[Maker], Maker]:
    def keep(maker: Maker) -> Maker:
        MAKERS[situation, library] = maker
        return maker

    return keep


# ---- Tables


def numbers(rng: np.random.Generator, n: int = 240, D: int = 4) -> Table:
    """Normal columns."""
    return pd.DataFrame(rng.normal(size=(n, D)), columns=list("abcdef")[:D])


def categories(rng: np.random.Generator, n: int = 300) -> Table:
    """Two columns of categories in no order, and two of numbers."""
    table = numbers(rng, n, 2)
    for name, levels in (("city", 7), ("plan", 4)):
        codes = rng.integers(levels, size=n)
        names = [f"{name}{k}" for k in range(levels)]
        table[name] = pd.Categorical.from_codes(codes, names)
    return table


def with_missing(rng: np.random.Generator, n: int = 300) -> Table:
    """A fifth of all values is missing."""
    table = numbers(rng, n)
    return table.mask(rng.random(table.shape) < 0.2)


def response(table: Table, rng: np.random.Generator) -> Any:
    """A product, a jump, an effect of each category and of each missing value."""
    codes = table.apply(lambda x: x.cat.codes if x.dtype == "category" else x)
    values = np.nan_to_num(codes.to_numpy(float), nan=1.7)
    values = (values - values.mean(axis=0)) / (values.std(axis=0) + 1e-9)
    joint = values[:, 0] * values[:, 1] + 1.5 * (np.sin(3 * values[:, -1]) > 0)
    return joint + values[:, 2] * values[:, -1] + 0.1 * rng.normal(size=len(values))


def labels(y: Any, n_classes: int = 2) -> Any:
    """Classes by quantiles of a response."""
    cuts = np.quantile(y, np.arange(1, n_classes) / n_classes)
    return np.searchsorted(cuts, y)


def asked(table: Table) -> dict[str, Table]:
    """Background rows and explained rows of a table, which keep its dtypes."""
    background = table.iloc[:N_BACKGROUND].reset_index(drop=True)
    rows = table.iloc[N_BACKGROUND : N_BACKGROUND + N_ROWS].reset_index(drop=True)
    return {"rows": rows, "background": background}


# ---- Models, and their own answers


def lightgbm(kind: str = "Regressor", **settings: Any) -> Any:
    import lightgbm

    quiet = {"verbose": -1, "n_jobs": 1, "random_state": 0}
    small = {"n_estimators": 8, "num_leaves": 8, "min_child_samples": 5}
    return getattr(lightgbm, f"LGBM{kind}")(**quiet | small | settings)


def xgboost(kind: str = "Regressor", **settings: Any) -> Any:
    import xgboost

    small = {"n_estimators": 8, "max_depth": 3, "n_jobs": 1, "random_state": 0}
    return getattr(xgboost, f"XGB{kind}")(**small | settings)


def catboost(kind: str = "Regressor", **settings: Any) -> Any:
    import catboost

    quiet = {"verbose": 0, "thread_count": 1, "allow_writing_files": False}
    small = {"iterations": 8, "depth": 3, "random_seed": 0}
    return getattr(catboost, f"CatBoost{kind}")(**quiet | small | settings)


def hist(cls: Any = HistGradientBoostingRegressor, **settings: Any) -> Any:
    small = {"max_iter": 8, "max_leaf_nodes": 8, "min_samples_leaf": 5}
    return cls(**small | {"random_state": 0} | settings)


def of_lightgbm(model: Any, table: Table, k: int | None = None) -> Case:
    """Its raw score, which it adds up in double precision."""

    def answer(X: Table) -> Any:
        scores = model.predict(X, raw_score=True)
        return scores if scores.ndim == 1 else scores[:, k]

    n = int(model.booster_.num_trees())
    return Case(model, **asked(table), answer=answer, n_trees=n, eps=DOUBLE, target=k)


def of_xgboost(model: Any, table: Table, k: int | None = None, **more: Any) -> Case:
    """Its margin, which it adds up in single precision."""

    def answer(X: Table) -> Any:
        margin = model.predict(X, output_margin=True)
        return margin if margin.ndim == 1 else margin[:, k]

    n = len(model.get_booster().get_dump())
    return Case(
        model, **asked(table), answer=answer, n_trees=n, eps=SINGLE, target=k, **more
    )


def of_catboost(model: Any, table: Table, k: int | None = None) -> Case:
    """Its raw formula, which it adds up in double precision."""

    def answer(X: Table) -> Any:
        raw = model.predict(X, prediction_type="RawFormulaVal")
        return raw if raw.ndim == 1 else raw[:, k]

    n = int(model.tree_count_)
    return Case(model, **asked(table), answer=answer, n_trees=n, eps=DOUBLE, target=k)


def of_values(model: Any, table: Table, n_trees: int) -> Case:
    """A regressor of scikit-learn."""
    return Case(
        model, **asked(table), answer=model.predict, n_trees=n_trees, eps=DOUBLE
    )


def of_margin(model: Any, table: Table, n_trees: int, k: int | None = None) -> Case:
    """A boosted classifier of scikit-learn, by its decision function."""

    def answer(X: Table) -> Any:
        margin = model.decision_function(X)
        return margin if margin.ndim == 1 else margin[:, k]

    return Case(
        model, **asked(table), answer=answer, n_trees=n_trees, eps=DOUBLE, target=k
    )


def of_probability(model: Any, table: Table, k: int) -> Case:
    """A forest, by the probability of one class."""

    def answer(X: Table) -> Any:
        return model.predict_proba(X)[:, k]

    return Case(
        model,
        **asked(table),
        answer=answer,
        n_trees=len(model.estimators_),
        eps=DOUBLE,
        target=k,
        output="probability",
    )


# ---- Categorical splits


@case("categorical splits, many against many", "LightGBM")
def _(rng: np.random.Generator) -> Case:
    X = categories(rng)
    many = {"min_data_per_group": 5, "cat_smooth": 1.0, "max_cat_to_onehot": 1}
    return of_lightgbm(lightgbm(**many).fit(X, response(X, rng)), X)


@case("categorical splits, one against the rest", "LightGBM")
def _(rng: np.random.Generator) -> Case:
    X = categories(rng)
    one = {"max_cat_to_onehot": 20, "cat_smooth": 1.0}
    return of_lightgbm(lightgbm(**one).fit(X, response(X, rng)), X)


@case("categorical splits, many against many", "XGBoost")
def _(rng: np.random.Generator) -> Case:
    X = categories(rng)
    model = xgboost(enable_categorical=True, tree_method="hist", max_cat_to_onehot=1)
    return of_xgboost(model.fit(X, response(X, rng)), X)


@case("categorical splits, one against the rest", "XGBoost")
def _(rng: np.random.Generator) -> Case:
    X = categories(rng)
    model = xgboost(enable_categorical=True, tree_method="hist", max_cat_to_onehot=20)
    return of_xgboost(model.fit(X, response(X, rng)), X)


@case("categorical splits, many against many", "HistGradientBoosting")
def _(rng: np.random.Generator) -> Case:
    X = categories(rng)
    model = hist(categorical_features="from_dtype").fit(X, response(X, rng))
    return of_values(model, X, 9)


@case("categorical splits, classifier", "HistGradientBoosting")
def _(rng: np.random.Generator) -> Case:
    X = categories(rng)
    model = hist(HistGradientBoostingClassifier, categorical_features="from_dtype")
    return of_margin(model.fit(X, labels(response(X, rng))), X, 9)


@case("categorical splits, one against the rest", "CatBoost")
def _(rng: np.random.Generator) -> Case:
    X = categories(rng)
    model = catboost(cat_features=["city", "plan"], one_hot_max_size=20)
    return of_catboost(model.fit(X, response(X, rng)), X)


@case("categorical splits, target statistics", "CatBoost")
def _(rng: np.random.Generator) -> Case:
    X = categories(rng)
    model = catboost(cat_features=["city", "plan"], one_hot_max_size=2)
    return of_catboost(model.fit(X, response(X, rng)), X)


@case("a category is missing", "LightGBM")
def _(rng: np.random.Generator) -> Case:
    X = categories(rng)
    X.loc[rng.random(len(X)) < 0.25, "city"] = np.nan
    many = {"min_data_per_group": 5, "cat_smooth": 1.0, "max_cat_to_onehot": 1}
    return of_lightgbm(lightgbm(**many).fit(X, response(X, rng)), X)


@case("a category is missing", "XGBoost")
def _(rng: np.random.Generator) -> Case:
    X = categories(rng)
    X.loc[rng.random(len(X)) < 0.25, "city"] = np.nan
    model = xgboost(enable_categorical=True, tree_method="hist", max_cat_to_onehot=1)
    return of_xgboost(model.fit(X, response(X, rng)), X)


@case("a category is missing", "HistGradientBoosting")
def _(rng: np.random.Generator) -> Case:
    X = categories(rng)
    X.loc[rng.random(len(X)) < 0.25, "city"] = np.nan
    model = hist(categorical_features="from_dtype").fit(X, response(X, rng))
    return of_values(model, X, 9)


# ---- Missing values


@case("missing values, default directions", "LightGBM")
def _(rng: np.random.Generator) -> Case:
    X = with_missing(rng)
    return of_lightgbm(lightgbm().fit(X, response(X, rng)), X)


@case("missing values, unseen in training", "LightGBM")
def _(rng: np.random.Generator) -> Case:
    X = numbers(rng)
    model = lightgbm().fit(X, response(X, rng))
    return of_lightgbm(model, X.mask(rng.random(X.shape) < 0.2))


@case("zero_as_missing", "LightGBM")
def _(rng: np.random.Generator) -> Case:
    X = with_missing(rng)
    X = X.mask(rng.random(X.shape) < 0.2, 0.0)
    return of_lightgbm(lightgbm(zero_as_missing=True).fit(X, response(X, rng)), X)


@case("use_missing=False", "LightGBM")
def _(rng: np.random.Generator) -> Case:
    X = with_missing(rng)
    return of_lightgbm(lightgbm(use_missing=False).fit(X, response(X, rng)), X)


@case("missing values, default directions", "XGBoost")
def _(rng: np.random.Generator) -> Case:
    X = with_missing(rng)
    return of_xgboost(xgboost().fit(X, response(X, rng)), X)


@case("missing=-999", "XGBoost")
def _(rng: np.random.Generator) -> Case:
    X = with_missing(rng)
    y = response(X, rng)
    X = X.fillna(-999.0)
    return of_xgboost(xgboost(missing=-999.0).fit(X, y), X)


@case("missing values, default directions", "HistGradientBoosting")
def _(rng: np.random.Generator) -> Case:
    X = with_missing(rng)
    return of_values(hist().fit(X, response(X, rng)), X, 9)


@case("missing values, default directions", "RandomForest")
def _(rng: np.random.Generator) -> Case:
    X = with_missing(rng)
    model = RandomForestRegressor(8, max_depth=4, random_state=0)
    return of_values(model.fit(X, response(X, rng)), X, 8)


@case("missing values, as the least", "CatBoost")
def _(rng: np.random.Generator) -> Case:
    X = with_missing(rng)
    return of_catboost(catboost(nan_mode="Min").fit(X, response(X, rng)), X)


@case("missing values, as the most", "CatBoost")
def _(rng: np.random.Generator) -> Case:
    X = with_missing(rng)
    return of_catboost(catboost(nan_mode="Max").fit(X, response(X, rng)), X)


# ---- float32


STEP = 4.0 * SINGLE
"""Between adjacent numbers of single precision from 4 to 8."""


def on_edges(rng: np.random.Generator, n: int = 240) -> Table:
    """Values near 4 that are adjacent in float32, with thresholds between them."""
    steps = rng.integers(0, 6, size=(n, 4))
    return pd.DataFrame(4.0 + steps * STEP, columns=list("abcd"))


def beside_edges(table: Table, rng: np.random.Generator) -> Table:
    """Moved by less than half a step of float32: it rounds each value back."""
    return table + STEP * rng.uniform(-0.45, 0.45, table.shape)


@case("thresholds between adjacent float32", "RandomForest")
def _(rng: np.random.Generator) -> Case:
    X = on_edges(rng)
    model = RandomForestRegressor(8, max_depth=4, random_state=0)
    return of_values(model.fit(X, response(X, rng)), X, 8)


@case("rows that round across a threshold", "RandomForest")
def _(rng: np.random.Generator) -> Case:
    X = on_edges(rng)
    model = RandomForestRegressor(8, max_depth=4, random_state=0)
    return of_values(model.fit(X, response(X, rng)), beside_edges(X, rng), 8)


@case("rows that round across a threshold", "GradientBoosting")
def _(rng: np.random.Generator) -> Case:
    X = on_edges(rng)
    model = GradientBoostingRegressor(n_estimators=8, random_state=0)
    return of_values(model.fit(X, response(X, rng)), beside_edges(X, rng), 9)


@case("rows that round across a threshold", "XGBoost")
def _(rng: np.random.Generator) -> Case:
    X = on_edges(rng)
    model = xgboost(tree_method="exact").fit(X, response(X, rng))
    return of_xgboost(model, beside_edges(X, rng))


@case("rows that round across a threshold", "CatBoost")
def _(rng: np.random.Generator) -> Case:
    X = on_edges(rng)
    return of_catboost(catboost().fit(X, response(X, rng)), beside_edges(X, rng))


@case("rows that float32 would round across", "LightGBM")
def _(rng: np.random.Generator) -> Case:
    X = beside_edges(on_edges(rng), rng)
    return of_lightgbm(lightgbm().fit(X, response(X, rng)), X)


@case("rows that float32 would round across", "HistGradientBoosting")
def _(rng: np.random.Generator) -> Case:
    X = beside_edges(on_edges(rng), rng)
    return of_values(hist().fit(X, response(X, rng)), X, 9)


def at_thresholds(found: list[tuple[int, float]], table: Table) -> Table:
    """The first rows have in each column thresholds of the model."""
    values = table.to_numpy(copy=True)
    for j in range(values.shape[1]):
        own = [t for column, t in found if column == j] or [0.0]
        n = N_BACKGROUND + N_ROWS
        values[:n, j] = np.resize(own, n)
    return pd.DataFrame(values, columns=table.columns)


@case("rows exactly at thresholds", "LightGBM")
def _(rng: np.random.Generator) -> Case:
    X = numbers(rng)
    model = lightgbm().fit(X, response(X, rng))
    splits = model.booster_.trees_to_dataframe().dropna(subset=["threshold"])
    places = [list(X.columns).index(name) for name in splits.split_feature]
    return of_lightgbm(
        model, at_thresholds([*zip(places, splits.threshold, strict=True)], X)
    )


@case("rows exactly at thresholds", "XGBoost")
def _(rng: np.random.Generator) -> Case:
    X = numbers(rng)
    model = xgboost().fit(X, response(X, rng))
    splits = model.get_booster().trees_to_dataframe().dropna(subset=["Split"])
    places = [list(X.columns).index(name) for name in splits.Feature]
    return of_xgboost(
        model, at_thresholds([*zip(places, splits.Split, strict=True)], X)
    )


@case("rows exactly at thresholds", "RandomForest")
def _(rng: np.random.Generator) -> Case:
    X = numbers(rng)
    model = RandomForestRegressor(8, max_depth=4, random_state=0)
    model.fit(X, response(X, rng))
    splits = [
        (int(j), float(t))
        for one in model.estimators_
        for j, t in zip(one.tree_.feature, one.tree_.threshold, strict=True)
        if j >= 0
    ]
    return of_values(model, at_thresholds(splits, X), 8)


@case("rows one step beside thresholds", "RandomForest")
def _(rng: np.random.Generator) -> Case:
    X = numbers(rng)
    model = RandomForestRegressor(8, max_depth=4, random_state=0)
    model.fit(X, response(X, rng))
    splits = [
        (int(j), float(np.nextafter(t, way)))
        for one in model.estimators_
        for j, t in zip(one.tree_.feature, one.tree_.threshold, strict=True)
        for way in (-np.inf, np.inf)
        if j >= 0
    ]
    return of_values(model, at_thresholds(splits, X), 8)


@case("integers beyond float32", "XGBoost")
def _(rng: np.random.Generator) -> Case:
    X = numbers(rng)
    X["d"] = 2**24 + rng.integers(0, 40, size=len(X))
    return of_xgboost(xgboost().fit(X, response(X, rng)), X)


@case("integers beyond float32", "RandomForest")
def _(rng: np.random.Generator) -> Case:
    X = numbers(rng)
    X["d"] = 2**24 + rng.integers(0, 40, size=len(X))
    model = RandomForestRegressor(8, max_depth=4, random_state=0)
    return of_values(model.fit(X, response(X, rng)), X, 8)


@case("int8 columns", "LightGBM")
def _(rng: np.random.Generator) -> Case:
    codes = rng.integers(-128, 128, size=(240, 4)).astype(np.int8)
    X = pd.DataFrame(codes, columns=list("abcd"))
    return of_lightgbm(lightgbm().fit(X, response(X.astype(float), rng)), X)


@case("infinite values", "LightGBM")
def _(rng: np.random.Generator) -> Case:
    X = numbers(rng)
    y = response(X, rng)
    X = X.mask(rng.random(X.shape) < 0.1, np.inf)
    X = X.mask(rng.random(X.shape) < 0.1, -np.inf)
    return of_lightgbm(lightgbm().fit(X, y), X)


# ---- Deep trees


@case("a tree to the last row", "DecisionTree")
def _(rng: np.random.Generator) -> Case:
    X = numbers(rng, 400, 6)
    model = DecisionTreeRegressor(random_state=0).fit(X, response(X, rng))
    return of_values(model, X, 1)


@case("a chain of 60 splits", "DecisionTree")
def _(rng: np.random.Generator) -> Case:
    X = numbers(rng, 61)
    X["a"] = rng.permutation(np.arange(61.0))
    model = DecisionTreeRegressor(random_state=0).fit(X, 2.0 ** (X["a"] / 3))
    return of_values(model, X, 1)


@case("trees to the last row", "LightGBM")
def _(rng: np.random.Generator) -> Case:
    X = numbers(rng, 400, 6)
    deep = {"num_leaves": 300, "min_child_samples": 1, "n_estimators": 3}
    return of_lightgbm(lightgbm(**deep).fit(X, response(X, rng)), X)


@case("trees to the last row", "XGBoost")
def _(rng: np.random.Generator) -> Case:
    X = numbers(rng, 400, 6)
    deep = {"max_depth": 0, "grow_policy": "lossguide", "min_child_weight": 0}
    model = xgboost(n_estimators=3, tree_method="hist", **deep)
    return of_xgboost(model.fit(X, response(X, rng)), X)


@case("trees that are not symmetric", "CatBoost")
def _(rng: np.random.Generator) -> Case:
    X = numbers(rng)
    model = catboost(grow_policy="Lossguide", max_leaves=8)
    return of_catboost(model.fit(X, response(X, rng)), X)


@case("symmetric trees", "CatBoost")
def _(rng: np.random.Generator) -> Case:
    X = numbers(rng)
    return of_catboost(catboost(depth=6).fit(X, response(X, rng)), X)


# ---- Several outputs


@case("multi-class", "LightGBM")
def _(rng: np.random.Generator) -> Case:
    X = numbers(rng)
    return of_lightgbm(lightgbm("Classifier").fit(X, labels(response(X, rng), 3)), X, 1)


@case("multi-class", "XGBoost")
def _(rng: np.random.Generator) -> Case:
    X = numbers(rng)
    return of_xgboost(xgboost("Classifier").fit(X, labels(response(X, rng), 3)), X, 1)


@case("multi-class", "CatBoost")
def _(rng: np.random.Generator) -> Case:
    X = numbers(rng)
    return of_catboost(catboost("Classifier").fit(X, labels(response(X, rng), 3)), X, 1)


@case("multi-class", "HistGradientBoosting")
def _(rng: np.random.Generator) -> Case:
    X = numbers(rng)
    model = hist(HistGradientBoostingClassifier)
    return of_margin(model.fit(X, labels(response(X, rng), 3)), X, 9, 1)


@case("multi-class", "GradientBoosting")
def _(rng: np.random.Generator) -> Case:
    X = numbers(rng)
    model = GradientBoostingClassifier(n_estimators=8, random_state=0)
    return of_margin(model.fit(X, labels(response(X, rng), 3)), X, 9, 1)


@case("multi-class", "RandomForest")
def _(rng: np.random.Generator) -> Case:
    X = numbers(rng)
    model = RandomForestClassifier(8, max_depth=4, random_state=0)
    return of_probability(model.fit(X, labels(response(X, rng), 3)), X, 1)


@case("two outputs", "RandomForest")
def _(rng: np.random.Generator) -> Case:
    X = numbers(rng)
    y = response(X, rng)
    model = RandomForestRegressor(8, max_depth=4, random_state=0)
    model.fit(X, np.stack([y, np.abs(y)], axis=1))
    return Case(
        model,
        **asked(X),
        answer=lambda table: model.predict(table)[:, 1],
        n_trees=8,
        eps=DOUBLE,
        target=1,
    )


@case("two classes, probability", "RandomForest")
def _(rng: np.random.Generator) -> Case:
    X = numbers(rng)
    model = RandomForestClassifier(8, max_depth=4, random_state=0)
    return of_probability(model.fit(X, labels(response(X, rng))), X, 1)


@case("two classes, margin", "GradientBoosting")
def _(rng: np.random.Generator) -> Case:
    X = numbers(rng)
    model = GradientBoostingClassifier(n_estimators=8, random_state=0)
    return of_margin(model.fit(X, labels(response(X, rng))), X, 9)


@case("two classes, margin", "CatBoost")
def _(rng: np.random.Generator) -> Case:
    X = numbers(rng)
    return of_catboost(catboost("Classifier").fit(X, labels(response(X, rng))), X)


# ---- What all trees are added to


@case("base_score=300", "XGBoost")
def _(rng: np.random.Generator) -> Case:
    X = numbers(rng)
    return of_xgboost(xgboost(base_score=300.0).fit(X, response(X, rng)), X)


@case("base_score=.2, two classes", "XGBoost")
def _(rng: np.random.Generator) -> Case:
    X = numbers(rng)
    model = xgboost("Classifier", base_score=0.2)
    return of_xgboost(model.fit(X, labels(response(X, rng))), X)


@case("base score of the data, two classes", "XGBoost")
def _(rng: np.random.Generator) -> Case:
    X = numbers(rng)
    y = response(X, rng) > 1
    return of_xgboost(xgboost("Classifier").fit(X, y.astype(int)), X)


@case("log link", "XGBoost")
def _(rng: np.random.Generator) -> Case:
    X = numbers(rng)
    model = xgboost(objective="count:poisson", base_score=3.0)
    y = np.floor(np.exp(response(X, rng).clip(-2, 2)))
    return of_xgboost(model.fit(X, y), X, output="margin")


@case("boost_from_average", "LightGBM")
def _(rng: np.random.Generator) -> Case:
    X = numbers(rng)
    return of_lightgbm(lightgbm().fit(X, 300.0 + response(X, rng)), X)


@case("boost_from_average=False", "LightGBM")
def _(rng: np.random.Generator) -> Case:
    X = numbers(rng)
    model = lightgbm("Classifier", boost_from_average=False)
    return of_lightgbm(model.fit(X, response(X, rng) > 1), X)


@case("bias", "CatBoost")
def _(rng: np.random.Generator) -> Case:
    X = numbers(rng)
    return of_catboost(catboost().fit(X, 300.0 + response(X, rng)), X)


@case("scale and bias, set later", "CatBoost")
def _(rng: np.random.Generator) -> Case:
    X = numbers(rng)
    model = catboost().fit(X, response(X, rng))
    model.set_scale_and_bias(2.0, 5.0)
    return of_catboost(model, X)


@case("mean first", "GradientBoosting")
def _(rng: np.random.Generator) -> Case:
    X = numbers(rng)
    model = GradientBoostingRegressor(n_estimators=8, random_state=0)
    return of_values(model.fit(X, 300.0 + response(X, rng)), X, 9)


# ---- How trees are weighted, averaged and ended


@case("DART", "LightGBM")
def _(rng: np.random.Generator) -> Case:
    X = numbers(rng)
    model = lightgbm(boosting_type="dart", drop_rate=0.5, skip_drop=0.0)
    return of_lightgbm(model.fit(X, response(X, rng)), X)


@case("DART", "XGBoost")
def _(rng: np.random.Generator) -> Case:
    X = numbers(rng)
    model = xgboost(booster="dart", rate_drop=0.5)
    return of_xgboost(model.fit(X, response(X, rng)), X)


@case("a boosted forest, averaged", "LightGBM")
def _(rng: np.random.Generator) -> Case:
    X = numbers(rng)
    sample = {"bagging_freq": 1, "bagging_fraction": 0.6, "feature_fraction": 0.8}
    model = lightgbm(boosting_type="rf", **sample).fit(X, response(X, rng))
    return of_values(model, X, 8)  # its raw score is the sum, not the mean


@case("trees in parallel", "XGBoost")
def _(rng: np.random.Generator) -> Case:
    X = numbers(rng)
    return of_xgboost(xgboost("RFRegressor").fit(X, response(X, rng)), X)


@case("trees in parallel, boosted", "XGBoost")
def _(rng: np.random.Generator) -> Case:
    X = numbers(rng)
    few = {"n_estimators": 3, "num_parallel_tree": 3, "subsample": 0.6}
    return of_xgboost(xgboost(**few).fit(X, response(X, rng)), X)


@case("random thresholds", "ExtraTrees")
def _(rng: np.random.Generator) -> Case:
    X = numbers(rng)
    model = ExtraTreesRegressor(8, max_depth=4, random_state=0)
    return of_values(model.fit(X, response(X, rng)), X, 8)


def halves(table: Table, rng: np.random.Generator) -> Any:
    """A noisy response, so that boosting stops early: what is fitted, what is held."""
    y = response(table, rng) + 3.0 * rng.normal(size=len(table))
    k = len(table) // 2
    return table[:k], y[:k], [(table[k:], y[k:])]


@case("early stopping", "LightGBM")
def _(rng: np.random.Generator) -> Case:
    from lightgbm import early_stopping

    X = numbers(rng)
    fitted, y, held = halves(X, rng)
    stop = [early_stopping(5, verbose=False)]
    model = lightgbm(n_estimators=60).fit(
        fitted, y, eval_X=held[0][0], eval_y=held[0][1], callbacks=stop
    )
    return of_lightgbm(model, X)


@case("early stopping", "XGBoost")
def _(rng: np.random.Generator) -> Case:
    X = numbers(rng)
    fitted, y, held = halves(X, rng)
    model = xgboost(n_estimators=60, early_stopping_rounds=5)
    return of_xgboost(model.fit(fitted, y, eval_set=held, verbose=False), X)


@case("early stopping", "CatBoost")
def _(rng: np.random.Generator) -> Case:
    X = numbers(rng)
    fitted, y, held = halves(X, rng)
    model = catboost(iterations=60, early_stopping_rounds=5, use_best_model=True)
    return of_catboost(model.fit(fitted, y, eval_set=held), X)


@case("early stopping", "HistGradientBoosting")
def _(rng: np.random.Generator) -> Case:
    X = numbers(rng)
    model = hist(max_iter=60, early_stopping=True, n_iter_no_change=3)
    return of_values(model.fit(X, response(X, rng)), X, 61)


@case("monotone columns", "LightGBM")
def _(rng: np.random.Generator) -> Case:
    X = numbers(rng)
    model = lightgbm(monotone_constraints=[1, 0, -1, 0])
    return of_lightgbm(model.fit(X, response(X, rng)), X)


@case("monotone columns", "XGBoost")
def _(rng: np.random.Generator) -> Case:
    X = numbers(rng)
    model = xgboost(monotone_constraints=(1, 0, -1, 0))
    return of_xgboost(model.fit(X, response(X, rng)), X)


@case("monotone columns", "HistGradientBoosting")
def _(rng: np.random.Generator) -> Case:
    X = numbers(rng)
    model = hist(monotonic_cst=[1, 0, -1, 0]).fit(X, response(X, rng))
    return of_values(model, X, 9)


@case("trees of one leaf", "XGBoost")
def _(rng: np.random.Generator) -> Case:
    X = numbers(rng)
    return of_xgboost(xgboost(gamma=30.0).fit(X, response(X, rng)), X)


@case("trees of one leaf", "LightGBM")
def _(rng: np.random.Generator) -> Case:
    X = numbers(rng)
    model = lightgbm(min_split_gain=30.0).fit(X, response(X, rng))
    return of_lightgbm(model, X)


@case("exclusive columns in bundles", "LightGBM")
def _(rng: np.random.Generator) -> Case:
    one_hot = np.eye(5)[rng.integers(5, size=300)]
    X = pd.DataFrame(one_hot, columns=list("abcde"))
    X["f"] = rng.normal(size=300)
    y = one_hot @ rng.normal(size=5) * X["f"] + one_hot[:, 0]
    return of_lightgbm(lightgbm(enable_bundle=True).fit(X, y), X)


# ---- All


NEEDS = {"LightGBM": "lightgbm", "XGBoost": "xgboost", "CatBoost": "catboost"}
"""What has to be installed; models of scikit-learn are there always."""


def cases(seeds: int) -> Iterator[tuple[str, str, int]]:
    """All situations by library and seed, those whose library is installed."""
    for situation, library in MAKERS:
        if library in NEEDS and find_spec(NEEDS[library]) is None:
            continue
        for seed in range(seeds):
            yield situation, library, seed


def made(situation: str, library: str, seed: int) -> Case:
    """One case: its random numbers depend on its name and its seed alone."""
    name = f"{situation}, {library}".encode()
    return MAKERS[situation, library](np.random.default_rng([seed, *name]))
