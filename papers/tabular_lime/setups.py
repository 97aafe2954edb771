"""Training data and laws that several figures share."""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.random import RandomState
from sklearn.datasets import load_wine

from propopt.base.arrays import Array
from propopt.lime.laws.tabular_law import TabularLaw


def uniform_law(
    X: Array | pd.DataFrame, n_bins: int = 4, kernel_width: float | None = None
) -> TabularLaw:
    """Bins between quantiles of the columns of X (m, D), all equally likely."""
    table = X if isinstance(X, pd.DataFrame) else _named(X)
    return TabularLaw.from_data(
        table, n_bins=n_bins, kernel_width=kernel_width, weights="uniform"
    )


def uniform_data(random: RandomState, n_columns: int, n_rows: int = 1000) -> Array:
    """Training rows that are uniform over [−10, 10]^D, as in the authors' code."""
    return random.uniform(-10.0, 10.0, (n_rows, n_columns))


def wine_table() -> tuple[pd.DataFrame, Array]:
    """The 178 wines of scikit-learn, and their classes."""
    table, classes = load_wine(return_X_y=True, as_frame=True)
    return table, classes.to_numpy(np.float64)


def standard_wine() -> tuple[pd.DataFrame, Array]:
    """The same with each column standardised."""
    table, classes = wine_table()
    return (table - table.mean()) / table.std(ddof=0), classes


def _named(X: Array) -> pd.DataFrame:
    return pd.DataFrame(X, columns=[f"x{j + 1}" for j in range(X.shape[1])])
