"""Forests as libraries grow them, to the last row, against whole backgrounds.

The cases have each level of kind, task, trees, rows and columns, not all combinations.
Our time begins with the fitted model: the trees are read, and tables are made of them.
Explainers of peers are made before the clock starts. Large forests are too long for
them: they get the first trees and, where they take one row after another, some rows.
"""

from __future__ import annotations

import copy
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import joblib
import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.datasets import make_friedman1
from sklearn.ensemble import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder

import propopt as po
from benchmarks.peers import shap_values
from benchmarks.shapley_values import woodelf_values
from benchmarks.timing import OURS, Method, Role, Row, race


N_ROWS = 100
"""Explained rows."""

N_BACKGROUND = 100
"""Rows of the small background, which are also those that shap is given of all."""

REGRESSORS = {"forest": RandomForestRegressor, "extra trees": ExtraTreesRegressor}
CLASSIFIERS = {"forest": RandomForestClassifier, "extra trees": ExtraTreesClassifier}


class Case(NamedTuple):
    """A fitted model and its table; the first class is explained."""

    name: str
    model: Any
    X: Any

    @property
    def few(self) -> Any:
        """The explained rows."""
        return self.X[-N_ROWS:]

    def first_trees(self, n_leaves: int) -> tuple[Any, int, int]:
        """The first k trees with about so many leaves, k, and the number of all trees.

        The small trees of boosting packages are not taken apart.
        """
        if not hasattr(self.model, "estimators_"):
            return self.model, 1, 1
        trees = self.model.estimators_
        k = min(
            max(round(len(trees) * n_leaves / leaves_of(self.model)), 1), len(trees)
        )
        part = copy.copy(self.model)
        part.estimators_, part.n_estimators = trees[:k], k
        return part, k, len(trees)


def leaves_of(model: Any) -> int:
    """The leaves of all trees of a forest of scikit-learn."""
    return sum(tree.get_n_leaves() for tree in model.estimators_)


# ---- The cases


def friedman(n_rows: int, n_columns: int) -> tuple[Any, Any]:
    """Numbers, and a response of five columns with noise."""
    return make_friedman1(n_rows, n_columns, noise=1.0, random_state=0)


def regression(n_trees: int, n_rows: int, n_columns: int, kind: str = "forest") -> Case:
    """A forest as it comes."""
    X, y = friedman(n_rows, n_columns)
    model = REGRESSORS[kind](n_trees, random_state=0, n_jobs=1).fit(X, y)
    trees = f"{n_trees} trees of {leaves_of(model):,} leaves"
    return Case(f"{kind}, {trees}, {n_columns} columns", model, X)


def classes(
    n_classes: int, n_trees: int, n_rows: int, n_columns: int, kind: str = "forest"
) -> Case:
    """The same of equally frequent classes."""
    X, y = friedman(n_rows, n_columns)
    y = np.digitize(y, np.quantile(y, np.arange(1, n_classes) / n_classes))
    model = CLASSIFIERS[kind](n_trees, random_state=0, n_jobs=1).fit(X, y)
    trees = f"{n_trees} trees of {leaves_of(model):,} leaves"
    return Case(f"{kind}, {n_classes} classes, {trees}, {n_columns} columns", model, X)


def one_hot(n_trees: int, n_rows: int, kind: str) -> Case:
    """A forest behind one-hot columns: 14 numbers, 3 categories."""
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
    trees = REGRESSORS[kind](n_trees, random_state=0, n_jobs=1)
    model = make_pipeline(steps, trees).fit(table, y)
    name = f"{kind}, {n_trees} trees of {leaves_of(model[-1]):,} leaves"
    return Case(f"{name}, behind one-hot columns, 17 columns", model, table)


def xgboost_forest(n_trees: int, n_rows: int) -> Case:
    """The random forest of XGBoost, of depth 6."""
    from xgboost import XGBRFRegressor

    X, y = friedman(n_rows, 20)
    model = XGBRFRegressor(n_estimators=n_trees, n_jobs=1, random_state=0).fit(X, y)
    return Case(f"XGBRFRegressor, {n_trees} trees, 20 columns", model, X)


def lightgbm_forest(n_trees: int, n_rows: int) -> Case:
    """The random forest of LightGBM, of 31 leaves a tree."""
    from lightgbm import LGBMRegressor

    X, y = friedman(n_rows, 20)
    settings: dict[str, Any] = {
        "boosting_type": "rf",
        "bagging_freq": 1,
        "bagging_fraction": 0.6,
    }
    model = LGBMRegressor(n_estimators=n_trees, n_jobs=1, verbose=-1, **settings)
    return Case(f"LightGBM rf, {n_trees} trees, 20 columns", model.fit(X, y), X)


QUICK: tuple[Callable[[], Case], ...] = (
    partial(regression, 100, 1000, 20),
    partial(classes, 5, 100, 1000, 8),
    partial(one_hot, 100, 1000, "extra trees"),
    partial(lightgbm_forest, 100, 1000),
)

CASES: tuple[Callable[[], Case], ...] = (
    partial(regression, 100, 1000, 20),
    partial(regression, 200, 5000, 20),
    partial(regression, 100, 5000, 60),
    partial(regression, 500, 1000, 60),
    partial(regression, 100, 20_000, 8),
    partial(regression, 500, 20_000, 20),
    partial(classes, 2, 100, 5000, 20),
    partial(classes, 2, 500, 1000, 8),
    partial(classes, 5, 100, 5000, 20),
    partial(classes, 5, 100, 1000, 60),
    partial(regression, 100, 5000, 20, "extra trees"),
    partial(regression, 500, 1000, 8, "extra trees"),
    partial(classes, 2, 100, 20_000, 20, "extra trees"),
    partial(one_hot, 300, 3000, "extra trees"),
    partial(one_hot, 100, 5000, "forest"),
    partial(xgboost_forest, 100, 5000),
    partial(xgboost_forest, 500, 20_000),
    partial(lightgbm_forest, 100, 5000),
    partial(lightgbm_forest, 500, 20_000),
)


# ---- Our values, and those of peers


class Peer(NamedTuple):
    """Another package: what it makes of a model, background rows and rows."""

    name: str
    make: Callable[[Any, Any, Any], Callable[[], Any]]
    n_leaves: int  # of the first trees that it is given, about
    n_rows: int = N_ROWS
    n_background: int | None = None  # all
    role: Role = "best"
    note: str = ""

    def method(self, case: Case, size: int) -> Method | str:
        """Its way to the values against so many rows, or why there is none."""
        if isinstance(case.model, Pipeline):
            return f"{self.name} takes no pipelines"
        model, made, of = case.first_trees(self.n_leaves)
        rows = case.X[:size][: self.n_background]
        few = case.few[: self.n_rows]
        try:
            self.make(model, rows[:2], few[:1])()
        except (NotImplementedError, TypeError) as error:
            return f"{self.name} refuses the model ({type(error).__name__})"
        if self.n_background is not None:  # one after another
            made, of = made * len(rows), of * size
        if self.n_rows < N_ROWS:
            made, of = made * self.n_rows, of * N_ROWS
        is_same = self.role != "other" and len(rows) == size
        return Method(
            name=self.name,
            role=self.role,
            run=self.make(model, rows, few),
            runs=1,
            made=made,
            of=of,
            answer=_of_class if is_same else None,
            same=values(model, rows, few) if is_same else None,
            note=self.note,
        )


def _of_class(result: Any) -> Any:
    """Values (N, D) of the first class, where a package gives those of all classes."""
    found = np.asarray(result)
    return found[..., 0] if found.ndim == 3 else found


def _woodelf(model: Any, background: Any, few: Any) -> Callable[[], Any]:
    return partial(woodelf_values, model, background, few)


def _shap_path(model: Any, background: Any, few: Any) -> Callable[[], Any]:
    del background
    return shap_values(model, None, few)


def _shapiq_path(model: Any, background: Any, few: Any) -> Callable[[], Any]:
    """TreeSHAP-IQ of order 1: Linear TreeSHAP, in Python."""
    import shapiq

    del background
    explainer = shapiq.TreeExplainer(model, max_order=1, index="SV", class_index=0)
    return lambda: [explainer.explain(row).get_n_order_values(1) for row in few]


_PATH = "another question: Shapley values without a background"

PEERS = (
    Peer("woodelf-explainer", _woodelf, 1000, note="prepares in each call"),
    Peer(
        "shap, interventional",
        shap_values,
        30_000,
        n_background=N_BACKGROUND,
        role="general",
        note="parts: trees × background rows",
    ),
    Peer("shap, path-dependent", _shap_path, 30_000, role="other", note=_PATH),
    Peer("shapiq, path-dependent", _shapiq_path, 1000, 2, role="other", note=_PATH),
)


def forests(quick: bool) -> list[Row]:
    """Forests and extra trees as they come, against all rows of their tables."""
    return [row for make in (QUICK if quick else CASES) for row in compared(make())]


def compared(case: Case) -> list[Row]:
    """Values against all rows of the table, and against 100 of them."""
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "case.joblib"
        joblib.dump(tuple(case), path)
        for size in (len(case.X), N_BACKGROUND):
            is_whole = size > N_BACKGROUND
            peers = PEERS if is_whole else PEERS[:2]
            found = [peer.method(case, size) for peer in peers]
            refused = [reason for reason in found if isinstance(reason, str)]
            own = Method(
                name=OURS,
                role="propopt",
                run=partial(values, case.model, case.X[:size], case.few),
                runs=1,
                apart=partial(_values_of_file, path, size) if is_whole else None,
                note="; ".join(refused),
            )
            rows += race(
                f"Shapley values of {N_ROWS} rows, {size:,} background rows: "
                f"{case.name}",
                own,
                *(method for method in found if isinstance(method, Method)),
            )
    return rows


def values(model: Any, background: Any, few: Any) -> Any:
    """Ours of the first class, from the fitted model on."""
    output = {} if not hasattr(model, "classes_") else {"target": model.classes_[0]}
    function = po.wrap(model, data=background, **output)
    return po.explainers.TreeShap(data=background).explain(function, few).attributions


def _values_of_file(path: Path, size: int) -> Any:
    case = Case(*joblib.load(path))
    return values(case.model, case.X[:size], case.few)
