"""Forests as libraries grow them, to the last row, against whole backgrounds.

Explainers are made before the clock starts. Interventional values by shap grow in
proportion to the background: with all rows, 100 of them are timed and scaled.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.datasets import make_friedman1
from sklearn.ensemble import (
    ExtraTreesRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

import propopt as po
from benchmarks.peers import path_dependent, shap_values
from benchmarks.shapley_values import woodelf_values
from benchmarks.timing import OURS, Method, Row, race


N_ROWS = 100
"""Explained rows."""

N_TIMED = 100
"""Background rows that shap is given."""

Case = tuple[str, Any, Any]
"""A model in words, the fitted model, and its table."""


def friedman(n_rows: int, n_columns: int) -> tuple[Any, Any]:
    """Numbers, and a response of five columns with noise."""
    return make_friedman1(n_rows, n_columns, noise=1.0, random_state=0)


def regression(n_trees: int, n_rows: int, n_columns: int) -> Case:
    """A random forest as it comes."""
    X, y = friedman(n_rows, n_columns)
    model = RandomForestRegressor(n_trees, random_state=0, n_jobs=1).fit(X, y)
    leaves = sum(tree.get_n_leaves() for tree in model.estimators_)
    return (
        f"forest, {n_trees} trees of {leaves:,} leaves, {n_columns} columns",
        model,
        X,
    )


def classes(n_classes: int, n_trees: int, n_rows: int) -> Case:
    """A random forest of classes; the probability of the first is explained."""
    X, y = friedman(n_rows, 20)
    y = np.digitize(y, np.quantile(y, np.arange(1, n_classes) / n_classes))
    model = RandomForestClassifier(n_trees, random_state=0, n_jobs=1).fit(X, y)
    return f"forest, {n_trees} trees, {n_classes} classes, 20 columns", model, X


def one_hot(n_trees: int, n_rows: int) -> Case:
    """Extremely randomised trees behind one-hot columns: 14 numbers, 3 categories."""
    X, y = friedman(n_rows, 14)
    table = pd.DataFrame(X, columns=[f"x{j}" for j in range(14)])
    rng = np.random.default_rng(0)
    for j, count in enumerate((3, 5, 8)):
        codes = rng.integers(count, size=n_rows)
        table[f"c{j}"] = np.array(list("abcdefgh"))[codes]
        y = y + codes
    steps = make_column_transformer(
        (OneHotEncoder(), ["c0", "c1", "c2"]), remainder="passthrough"
    )
    trees = ExtraTreesRegressor(n_trees, random_state=0, n_jobs=1)
    model = make_pipeline(steps, trees).fit(table, y)
    return f"extra trees, {n_trees}, behind one-hot columns, 17 columns", model, table


def boosted_forests(n_trees: int, n_rows: int) -> Iterator[Case]:
    """Random forests of libraries of boosting."""
    X, y = friedman(n_rows, 20)
    if find_spec("xgboost"):
        from xgboost import XGBRFRegressor

        model = XGBRFRegressor(n_trees, n_jobs=1, random_state=0).fit(X, y)
        yield f"XGBRFRegressor, {n_trees} trees, 20 columns", model, X
    from lightgbm import LGBMRegressor

    settings = {"boosting_type": "rf", "bagging_freq": 1, "bagging_fraction": 0.6}
    model = LGBMRegressor(n_estimators=n_trees, n_jobs=1, verbose=-1, **settings)
    yield f"LightGBM rf, {n_trees} trees, 20 columns", model.fit(X, y), X


def cases(quick: bool) -> Iterator[Case]:
    """The models; one size of each if ``quick``."""
    sizes = [(100, 1000, 20)]
    if not quick:
        sizes += [(200, 5000, 20), (100, 5000, 8), (100, 5000, 60), (500, 5000, 20)]
        sizes += [(100, 20_000, 20)]
    for size in sizes:
        yield regression(*size)
    n_rows = 1000 if quick else 5000
    yield classes(2, 100, n_rows)
    yield classes(5, 100, n_rows)
    yield one_hot(100 if quick else 300, 1000 if quick else 3000)
    yield from boosted_forests(100, n_rows)


def forests(quick: bool) -> list[Row]:
    """Forests and extra trees as they come, against all rows of their tables."""
    return [row for case in cases(quick) for row in _values(*case)]


def _values(name: str, model: Any, X: Any) -> list[Row]:
    few = X[-N_ROWS:]
    answer: dict[str, Any] = {"runs": 1, "answer": np.asarray}
    methods = []
    if isinstance(X, np.ndarray):  # shap has no pipelines
        of_shap = shap_values(model, X[:N_TIMED], few)
        methods += [
            Method(
                name="shap, interventional, all rows",
                role="general",
                run=of_shap,
                made=N_TIMED,
                of=len(X),
                runs=1,
            ),
            Method(
                name="shap, interventional, 100 rows",
                role="other",
                run=of_shap,
                runs=1,
                note="another question: a background of 100 rows",
            ),
            path_dependent(model, few, 1),
        ]
        if find_spec("woodelf"):
            run = partial(woodelf_values, model, X, few)
            methods.append(Method(name="woodelf-explainer", run=run, runs=1))
    return race(
        f"Shapley values of {N_ROWS} rows, {len(X):,} background rows: {name}",
        Method(name=OURS, role="propopt", run=_ours(model, X, few), **answer),
        *methods,
    )


def _ours(model: Any, X: Any, few: Any) -> Callable[[], Any]:
    explainer = po.explainers.TreeShap(data=X)
    output = {} if not hasattr(model, "classes_") else {"target": model.classes_[0]}
    function = po.wrap(model, data=X, **output)
    explainer.explain(function, few[:1])  # which reads the trees
    return lambda: explainer.explain(function, few).attributions
