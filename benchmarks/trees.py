"""Exact slopes of trees under the data law, beside TreeSHAP and beside draws."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import shap
from lightgbm import LGBMRegressor
from sklearn.ensemble import RandomForestRegressor

import propopt as po
from benchmarks.timing import OURS, Row, median_seconds, with_ratios


N_ROWS, N_FEATURES = 3000, 13
MILLISECONDS = 5.0
"""For one row, at most."""


def table() -> tuple[Any, Any]:
    """Normal columns, and a response with interactions and noise."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N_ROWS, N_FEATURES))
    linear = X[:, 3:] @ rng.normal(size=N_FEATURES - 3)
    noise = 0.3 * rng.normal(size=N_ROWS)
    return X, X[:, 0] * X[:, 1] + np.sin(3 * X[:, 2]) + linear + noise


def tree_slopes(quick: bool) -> list[Row]:
    """Attributions of trees: exact, by draws with their error, and TreeSHAP."""
    X, y = table()
    boosted = LGBMRegressor(n_estimators=100, num_leaves=31, verbose=-1, n_jobs=1)
    models = {"LightGBM, 100 x 31 leaves": boosted}
    if not quick:
        forest = RandomForestRegressor(100, max_depth=8, random_state=0)
        models["forest, 100 trees of depth 8"] = forest
    rows = []
    for name, model in models.items():
        rows += _compared(name, model.fit(X, y), X, 50 if quick else 300)
    return rows


def _compared(name: str, model: Any, X: Any, n_rows: int) -> list[Row]:
    work = f"slopes of {n_rows} rows, {name}, {N_ROWS} x {N_FEATURES}"
    few = X[:n_rows]
    smooth = po.functions.smoothed(po.wrap(model), law="data", data=X)
    smooth.gradient(few[:1])  # boxes are made once
    seconds, exact = median_seconds(lambda: smooth.gradient(few), 3)
    target = f"<= {MILLISECONDS:g} ms a row: {1e3 * seconds / n_rows:.2g}"
    ours = Row(work=work, method=OURS, seconds=seconds, target=target)
    return with_ratios(
        [ours, *_drawn(work, model, X, few, exact), *_shap(work, model, X, few)]
    )


def _drawn(work: str, model: Any, X: Any, few: Any, exact: Any) -> Iterator[Row]:
    """The same law by draws, and what their error of 1 % would take."""
    called = po.wrap(lambda P: model.predict(P))
    sampled = po.functions.smoothed(called, law="data", data=X, n_samples=500)
    seconds, slopes = median_seconds(lambda: sampled.gradient(few), 1)
    error = np.linalg.norm(slopes - exact) / np.linalg.norm(exact)
    yield Row(
        work=work,
        method="500 draws",
        seconds=seconds,
        solves=f"error {error:.0%} rms",
    )
    yield Row(
        work=work,
        method="draws to an error of 1 % rms",
        seconds=seconds * (error / 0.01) ** 2,
        solves="scaled",
    )


def _shap(work: str, model: Any, X: Any, few: Any) -> Iterator[Row]:
    explainers = {
        "shap TreeExplainer, path-dependent": shap.TreeExplainer(model),
        "shap TreeExplainer, interventional": shap.TreeExplainer(model, X[:100]),
    }
    for method, explainer in explainers.items():
        run = partial(explainer.shap_values, few)
        yield Row(work=work, method=method, seconds=median_seconds(run, 1)[0])
