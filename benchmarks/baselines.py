"""SmoothGrad and LIME at all rows, beside one batched pass and the lime package."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from lime.lime_tabular import LimeTabularExplainer

import propopt as po
from benchmarks.peers import batched_lime, batched_slopes
from benchmarks.timing import OURS, Method, Row, race
from propopt.explaining.explainers import Lime, SmoothGrad


N_FEATURES = 30


def smooth_step(X: Any) -> Any:
    """A model that costs little, so that what is compared is not the model."""
    return np.tanh(X @ np.linspace(-1, 1, N_FEATURES)) + 0.1 * X[:, 0] ** 2


def slope_of_smooth_step(X: Any) -> Any:
    """Its gradient."""
    weights = np.linspace(-1, 1, N_FEATURES)
    slopes = (1 - np.tanh(X @ weights) ** 2)[:, None] * weights
    slopes[:, 0] += 0.2 * X[:, 0]
    return slopes


def perturbation(quick: bool) -> list[Row]:
    """1,000 perturbations at each of 1,000 rows, as many model evaluations for all."""
    n_rows, n_samples = 100 if quick else 1000, 1000
    X = np.random.default_rng(0).normal(size=(n_rows, N_FEATURES))
    function = po.wrap(smooth_step, gradient=slope_of_smooth_step)
    size = f"{n_rows:,} rows, {N_FEATURES} columns, {n_samples:,} draws each"
    ours = {"role": "propopt", "runs": 3, "note": "with standard errors"}
    batched = {"runs": 3, "note": "no standard errors"}
    return [
        *race(
            f"LIME: {size}",
            Method(
                name=OURS,
                run=partial(Lime(scale=1.0, n_samples=n_samples).explain, function, X),
                answer=lambda result: result.attributions,
                **ours,
            ),
            Method(
                name="one batched pass, NumPy",
                run=partial(batched_lime, smooth_step, X, n_samples),
                answer=np.asarray,
                **batched,
            ),
            *(
                Method(
                    name=f"lime, discretize_continuous={discretize}",
                    role="general",
                    run=partial(_lime_loop, X[: n_rows // 10], n_samples, discretize),
                    made=n_rows // 10,
                    of=n_rows,
                    runs=1,
                    note="another law of draws; no standard errors",
                )
                for discretize in (False, True)
            ),
        ),
        *race(
            f"SmoothGrad: {size}",
            Method(
                name=OURS,
                run=partial(
                    SmoothGrad(scale=1.0, n_samples=n_samples).explain, function, X
                ),
                answer=lambda result: result.attributions,
                **ours,
            ),
            Method(
                name="one batched pass, NumPy",
                run=partial(batched_slopes, slope_of_smooth_step, X, n_samples),
                answer=np.asarray,
                **batched,
            ),
        ),
    ]


def _lime_loop(X: Any, n_samples: int, discretize: bool) -> None:
    explainer = LimeTabularExplainer(
        X, mode="regression", discretize_continuous=discretize, random_state=0
    )
    for row in X:
        explainer.explain_instance(
            row, smooth_step, num_features=N_FEATURES, num_samples=n_samples
        )
