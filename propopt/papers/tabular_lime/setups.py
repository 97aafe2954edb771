"""Training data and laws that several figures share."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from propopt._typing import Array
from propopt.lime.laws import TabularLaw
from propopt.lime.laws.binned import BinnedColumn
from propopt.structures.products import Normals, Pieces
from propopt.tables.names import Labels


DRAFT = "n and ν of the authors' code, which are not those of the caption"


def uniform_law(
    X: Array,
    n_bins: int = 4,
    kernel_width: float | None = None,
    labels: tuple[str, ...] | None = None,
) -> TabularLaw:
    """Bins between quantiles of the columns of X (m, D), all equally likely."""
    columns = tuple(_binned(x, n_bins) for x in X.T)
    names = labels or tuple(f"x{j + 1}" for j in range(X.shape[1]))
    return TabularLaw.of(columns, kernel_width, Labels(features=names))


def _binned(x: Array, n_bins: int) -> BinnedColumn:
    edges = np.quantile(x, np.linspace(0.0, 1.0, n_bins + 1))
    own = np.searchsorted(edges[1:-1], x)
    inside = [x[own == b] for b in range(n_bins)]
    means, sds = ([f(part) for part in inside] for f in (np.mean, np.std))
    return BinnedColumn(
        Pieces.of_normals(Normals.of(means, sds, edges[:-1], edges[1:])),
        np.full(n_bins, 1.0 / n_bins),
        edges[1:-1],
        tuple(f"({a:.3g}, {b:.3g}]" for a, b in pairwise(edges)),
    )


def uniform_data(
    random: np.random.RandomState, n_columns: int, n_rows: int = 1000
) -> Array:
    """Training rows that are uniform over [−10, 10]^D, as in the authors' code."""
    return random.uniform(-10.0, 10.0, (n_rows, n_columns))
