"""Shapley values of trees against background rows, beside shap, woodelf, fasttreeshap.

Explainers are made before the clock starts. Interventional values by shap grow in
proportion to the background; where that is long, some rows of it are timed. woodelf is
not asked for the deep forest, where it takes minutes.
"""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable
from functools import cache, partial
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
import pandas as pd
from lightgbm import LGBMRegressor
from sklearn.ensemble import RandomForestRegressor

import propopt as po
from benchmarks.peers import path_dependent, shap_values
from benchmarks.timing import OURS, Method, Row, race


N_TIMED = 100
"""Background rows that shap is given."""

FAST = "fasttreeshap_fixed"
"""FastTreeSHAP for NumPy 2; ``fasttreeshap`` 0.1.6 is built for NumPy 1."""


def table(n_columns: int, n_rows: int = 12_000) -> tuple[Any, Any]:
    """Normal columns, and a response with an interaction and noise."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_rows, n_columns))
    linear = X[:, 3:] @ rng.normal(size=n_columns - 3)
    noise = 0.3 * rng.normal(size=n_rows)
    return X, X[:, 0] * X[:, 1] + np.sin(3 * X[:, 2]) + linear + noise


@cache
def boosted(n_columns: int = 30, n_leaves: int = 31) -> tuple[Any, Any]:
    """LightGBM of 100 trees, and its table."""
    X, y = table(n_columns)
    model = LGBMRegressor(n_estimators=100, num_leaves=n_leaves, verbose=-1, n_jobs=1)
    return model.fit(X[:5000], y[:5000]), X


@cache
def xgboost() -> tuple[Any, Any]:
    """500 trees of depth 6."""
    from xgboost import XGBRegressor

    X, y = table(30)
    model = XGBRegressor(n_estimators=500, max_depth=6, n_jobs=1)
    return model.fit(X[:5000], y[:5000]), X


@cache
def forest(n_rows: int = 12_000) -> tuple[Any, Any]:
    """10 trees that are grown to the end."""
    X, y = table(30)
    model = RandomForestRegressor(10, random_state=0, n_jobs=1)
    return model.fit(X[:n_rows], y[:n_rows]), X


def shapley_values(quick: bool) -> list[Row]:
    """Growth in the background, in columns and in leaves; several models; one row."""
    backgrounds = (100, 1000) if quick else (100, 1000, 10_000)
    n_rows = 64 if quick else 256
    lightgbm = "LightGBM, 100 trees of 31 leaves, 30 columns"
    rows = [
        row
        for size in backgrounds
        for row in _values(lightgbm, *boosted(), n_rows, size, memory=not quick)
    ]
    rows += _values(lightgbm, *boosted(), 1, 2000)
    for n_columns, n_leaves in [(10, 31), (100, 31), (30, 7), (30, 127)]:
        name = f"LightGBM, 100 trees of {n_leaves} leaves, {n_columns} columns"
        rows += _values(name, *boosted(n_columns, n_leaves), n_rows, 1000)
    if find_spec("xgboost"):
        name = "XGBoost, 500 trees of depth 6, 30 columns"
        rows += _values(name, *xgboost(), n_rows, 1000)
    deep, X = forest(2000 if quick else 12_000)
    leaves = sum(tree.get_n_leaves() for tree in deep.estimators_)
    name = f"forest, 10 trees of {leaves:,} leaves, 30 columns"
    for size in backgrounds[:2]:
        rows += _values(name, deep, X, n_rows, size, runs=1)
    return rows


def _values(
    name: str,
    model: Any,
    X: Any,
    n_rows: int,
    size: int,
    *,
    runs: int = 3,
    memory: bool = False,
) -> list[Row]:
    background, few = X[:size], X[-n_rows:]
    timed = min(size, N_TIMED)
    answer: dict[str, Any] = {"runs": runs, "answer": np.asarray}
    rows = "one row" if n_rows == 1 else f"{n_rows} rows"
    methods = [
        Method(
            name="shap, interventional",
            role="general",
            run=shap_values(model, X[:timed], few),
            made=timed,
            of=size,
            runs=runs,
            answer=np.asarray if timed == size else None,
        ),
        path_dependent(model, few, runs),
    ]
    if find_spec(FAST):
        fast = import_module(FAST).TreeExplainer(model, n_jobs=1)
        methods.append(
            Method(
                name="fasttreeshap, path-dependent",
                role="other",
                run=partial(fast.shap_values, few, check_additivity=False),
                runs=runs,
                note="another question: Shapley values without a background",
            )
        )
    if find_spec("woodelf") and not isinstance(model, RandomForestRegressor):
        methods.insert(
            0,
            Method(
                name="woodelf-explainer",
                run=partial(woodelf_values, model, background, few),
                apart=partial(lightgbm_by_woodelf, size) if memory else None,
                note="prepares in each call",
                **answer,
            ),
        )
    return race(
        f"Shapley values of {rows}, {size:,} background rows: {name}",
        Method(
            name=OURS,
            role="propopt",
            run=_prepared(model, background, few),
            apart=partial(lightgbm_values, size) if memory else None,
            **answer,
        ),
        *methods,
    )


def _prepared(model: Any, background: Any, few: Any) -> Callable[[], Any]:
    """Ours, after a first call."""
    explainer = po.explainers.TreeShap(data=background)
    function = po.wrap(model, data=background)
    explainer.explain(function, few[:1])
    return lambda: explainer.explain(function, few).attributions


def woodelf_values(model: Any, background: Any, few: Any) -> Any:
    import woodelf

    with contextlib.redirect_stdout(io.StringIO()):
        explainer = woodelf.WoodelfExplainer(model, pd.DataFrame(background))
        return np.asarray(explainer.shap_values(pd.DataFrame(few), verbose=False))


# ---- memory


def lightgbm_values(size: int) -> Any:
    """256 rows against a background, from the model on."""
    model, X = boosted()
    return _prepared(model, X[:size], X[-256:])()


def lightgbm_by_woodelf(size: int) -> Any:
    model, X = boosted()
    return woodelf_values(model, X[:size], X[-256:])
