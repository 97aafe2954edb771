"""Runs of LIME whose scatter is almost nothing, and ways to break them."""

import dataclasses

import numpy as np

from papers.lime.runs import Runs


LIMIT = np.array([1.0, 2.0, -3.0, 0.5, 4.0])


def exact_runs(n_runs: int = 100, scatter: float = 1e-6) -> Runs:
    """Runs about their limit, of four columns."""
    noise = np.random.default_rng(0).normal(size=(n_runs, len(LIMIT)))
    return Runs(
        estimates=LIMIT + scatter * noise,
        limit=LIMIT,
        expected=LIMIT,
        labels=("a", "b", "c", "d"),
        printed=LIMIT,
    )


def with_parts(runs: Runs, **parts: np.ndarray) -> Runs:
    return dataclasses.replace(runs, **parts)


def a_thousandth_off(values: np.ndarray) -> np.ndarray:
    return 1.001 * values


def permuted(values: np.ndarray) -> np.ndarray:
    """Coefficients of one column are those of the next; the intercept stays."""
    return np.r_[values[:1], np.roll(values[1:], 1)]


def nothing(values: np.ndarray) -> np.ndarray:
    return np.zeros(values.shape)


WRONG = (a_thousandth_off, permuted, nothing)
