"""Exact slopes of trees under the data law, beside TreeSHAP and beside draws."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from lightgbm import LGBMRegressor
from sklearn.ensemble import RandomForestRegressor

import propopt as po
from benchmarks.peers import path_dependent, shap_values
from benchmarks.timing import OURS, Method, Row, race


N_ROWS, N_FEATURES = 3000, 13


def table() -> tuple[Any, Any]:
    """Normal columns, and a response with interactions and noise."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N_ROWS, N_FEATURES))
    linear = X[:, 3:] @ rng.normal(size=N_FEATURES - 3)
    noise = 0.3 * rng.normal(size=N_ROWS)
    return X, X[:, 0] * X[:, 1] + np.sin(3 * X[:, 2]) + linear + noise


def tree_slopes(quick: bool) -> list[Row]:
    """Slopes of trees: exact, and by draws; TreeSHAP answers another question."""
    X, y = table()
    boosted = LGBMRegressor(n_estimators=100, num_leaves=31, verbose=-1, n_jobs=1)
    models = {"LightGBM, 100 trees of 31 leaves": boosted}
    if not quick:
        forest = RandomForestRegressor(100, max_depth=8, random_state=0)
        models["forest, 100 trees of depth 8"] = forest
    rows = []
    for name, model in models.items():
        rows += _compared(name, model.fit(X, y), X, 50 if quick else 300)
    return rows


def _compared(name: str, model: Any, X: Any, n_rows: int) -> list[Row]:
    few = X[:n_rows]
    smooth = po.functions.smoothed(po.wrap(model), law="data", data=X)
    smooth.gradient(few[:1])  # boxes are made once
    called = po.wrap(lambda P: model.predict(P))
    sampled = po.functions.smoothed(called, law="data", data=X, n_samples=500)
    return race(
        f"slopes of {n_rows} rows, {N_ROWS:,} reference rows, {N_FEATURES} columns: "
        f"{name}",
        Method(
            name=OURS,
            role="propopt",
            run=partial(smooth.gradient, few),
            runs=3,
            answer=np.asarray,
            note="exact",
        ),
        Method(
            name="500 draws of the same law by propopt",
            role="other",
            run=partial(sampled.gradient, few),
            runs=1,
            answer=np.asarray,
            note="sampled",
        ),
        path_dependent(model, few, 3),
        Method(
            name="shap, interventional, 100 background rows",
            role="other",
            run=shap_values(model, X[:100], few),
            runs=1,
            note="another question: Shapley values",
        ),
    )
