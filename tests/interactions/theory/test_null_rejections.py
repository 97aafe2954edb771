"""Pairs that do not interact: fixed patches reject nearly all, independent draws 10 %.

The tables are those of ``benchmarks/null_rejections.py``.
"""

import runpy
from pathlib import Path

import numpy as np
import pytest

from propopt.interactions import Minipatches


STUDY = runpy.run_path(
    str(Path(__file__).parents[3] / "benchmarks" / "null_rejections.py")
)
ROWS, TOTAL, LEAK = range(3)


def rejected(
    learner: str, columns: str, n_rows: int, n_patches: int, n_tables: int
) -> np.ndarray:
    """Shares of pairs without effects: by se alone, by the total, against the leak."""
    scheme = Minipatches(
        n_patches=n_patches, rows="sqrt", n_features=2, columns=columns
    )
    study = STUDY["Study"](learner, scheme, n_rows)
    return np.mean([study.rejected(seed)[0] for seed in range(n_tables)], axis=0)


def test_linear_fits_of_small_tables() -> None:
    """300 pairs of 30 tables, rates with sd 0.02: a false alarm is beyond 3.5 sd."""
    exact = rejected("least squares", "bernoulli", 100, 600, 30)
    assert 0.03 <= exact[TOTAL] <= 0.17
    assert exact[ROWS] > 0.5  # without the error of finitely many patches
    leaky = rejected("least squares", "fixed", 100, 600, 10)
    assert leaky[ROWS] > 0.85
    assert leaky[TOTAL] > 0.45
    assert 0.0 <= leaky[LEAK] <= 0.25


@pytest.mark.slow
@pytest.mark.parametrize("learner", ["known effects", "least squares", "kernel ridge"])
def test_rates_that_are_stated(learner: str) -> None:
    """1000 pairs of 100 tables, rates near 0.1 with sd 0.012: 4 sd to both ends."""
    exact = rejected(learner, "bernoulli", 250, 1000, 100)
    assert 0.05 <= exact[TOTAL] <= 0.15
    leaky = rejected(learner, "fixed", 250, 4000, 20)
    assert leaky[TOTAL] > 0.95
    assert leaky[ROWS] > 0.99
    assert leaky[LEAK] <= 0.17
