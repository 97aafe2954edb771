"""Slopes of trees under the data law, as the reference rows grow."""

from __future__ import annotations

import os
from functools import partial
from typing import Any
from unittest.mock import patch

import numpy as np
from lightgbm import LGBMRegressor

import propopt as po
from benchmarks.peers import path_dependent
from benchmarks.timing import OURS, Method, Row, race
from propopt.laws.background import Reference
from propopt.laws.data_law import DataLaw, Means
from propopt.laws.panels import Panels


N_ROWS = 200


def table(skewed: bool) -> tuple[Any, Any]:
    """30 columns of 12,000 rows, normal or of many kinds, and a response."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(12_000, 30))
    y = X[:, 0] * X[:, 1] + np.sin(3 * X[:, 2]) + X[:, 3:] @ rng.normal(size=27)
    if skewed:
        n = len(X)
        X[:, 5], X[:, 6] = np.exp(1.5 * X[:, 5]), rng.poisson(3, n)
        X[:, 7], X[:, 8] = rng.standard_cauchy(n), X[:, 8] > 0
        X[:, 9] = np.where(X[:, 9] < 0.3, 0.0, X[:, 9])
        X[:, 10] += 5.0 * np.sign(X[:, 10])
    return X, y + 0.3 * rng.normal(size=len(X))


def by_kernels(choice: str, means: Means, rows: Any) -> Any:
    """Slopes of rows, by NumPy or by the kernels that are there."""
    with patch.dict(os.environ, PROPOPT_KERNELS=choice):
        return means.of(rows)[1]


def slopes(quick: bool) -> list[Row]:
    """By tables of moments, with and without a compiler, and value by value."""
    sizes = (10_000,) if quick else (500, 2000, 10_000)
    return [
        row
        for skewed in ((False,) if quick else (False, True))
        for n_reference in sizes
        for row in _slopes(skewed, n_reference)
    ]


def _slopes(skewed: bool, n_reference: int) -> list[Row]:
    X, y = table(skewed)
    model = LGBMRegressor(n_estimators=100, num_leaves=31, verbose=-1, n_jobs=1)
    model.fit(X[:5000], y[:5000])
    P, law = X[-N_ROWS:], DataLaw(Reference.of_points(X[:n_reference]))
    read = po.wrap(model, data=X[:n_reference]).boxes
    tabled, by_value = Means(read, law), Means(read, law)
    vars(by_value)["panels"] = Panels(())
    by_kernels("", tabled, P[:1]), by_kernels("numpy", by_value, P[:1])  # made once
    kind = "columns of many kinds" if skewed else "normal columns"

    def ours(name: str, choice: str, means: Means, role: Any = "other") -> Method:
        run = partial(by_kernels, choice, means, P)
        return Method(name=name, role=role, run=run, answer=np.asarray)

    return race(
        f"slopes of {N_ROWS} rows, {n_reference:,} reference rows, 30 {kind}: "
        "LightGBM, 100 trees of 31 leaves",
        ours(OURS, "", tabled, "propopt"),
        ours("propopt without a compiler", "numpy", tabled),
        ours("propopt, value by value", "numpy", by_value),
        path_dependent(model, P),
    )
