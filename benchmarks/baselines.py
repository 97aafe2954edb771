"""SmoothGrad and LIME at all rows at once, beside a loop over the lime package."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from lime.lime_tabular import LimeTabularExplainer

import propopt as po
from benchmarks.timing import OURS, Row, median_seconds, with_ratios
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
    n_rows, n_samples = (100, 1000) if quick else (1000, 1000)
    X = np.random.default_rng(0).normal(size=(n_rows, N_FEATURES))
    function = po.wrap(smooth_step, gradient=slope_of_smooth_step)
    ours = {
        "Lime": Lime(scale=1.0, n_samples=n_samples),
        "SmoothGrad": SmoothGrad(scale=1.0, n_samples=n_samples),
    }
    peers: list[tuple[str, bool]] = [
        ("lime, row by row, as by default", True),
        ("lime, row by row, discretize_continuous=False", False),
    ]
    looped = {
        name: _scaled_loop(partial(_lime_loop, X, n_samples, discretize), n_rows)
        for name, discretize in peers
    }
    rows = []
    for name, explainer in ours.items():
        work = f"{name}, {n_rows} rows, D={N_FEATURES}, {n_samples} perturbations"
        run = partial(explainer.explain, function, X)
        compared = [Row(work=work, method=OURS, seconds=median_seconds(run, 3)[0])]
        for peer, (seconds, solves) in looped.items():
            target = ">= 20x" if peer == peers[0][0] and not quick else ""
            compared.append(
                Row(
                    work=work,
                    method=peer,
                    seconds=seconds,
                    solves=solves,
                    target=target,
                )
            )
        rows += with_ratios(compared)
    return rows


def _scaled_loop(loop: Callable[[int], Any], n_rows: int) -> tuple[float, str]:
    """Seconds of a loop over all rows, from a tenth of them."""
    some = n_rows // 10
    began = time.perf_counter()
    loop(some)
    seconds = time.perf_counter() - began
    return seconds * n_rows / some, f"{some} of {n_rows} rows, scaled"


def _lime_loop(X: Any, n_samples: int, discretize: bool, some: int) -> None:
    explainer = LimeTabularExplainer(
        X, mode="regression", discretize_continuous=discretize, random_state=0
    )
    for row in X[:some]:
        explainer.explain_instance(
            row, smooth_step, num_features=N_FEATURES, num_samples=n_samples
        )
