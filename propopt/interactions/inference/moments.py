"""What rows say of a mean: its standard error, and how many of them carry it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, final

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from propopt._typing import Array, Values


FEW_ROWS: Final = 10
"""Where fewer rows carry a variance, no interval of a normal law can be relied on."""


@final
@dataclass(frozen=True, eq=False)
class Moments:
    """Of q columns of N scores z, one for each row.

    Parameters
    ----------
    means : array (q,)
        z̄ = Σ w z/N.
    standard_errors : array (q,)
        √(Σ w² (z − z̄)²/(N (N − 1))): with weights of one s/√N, s with N − 1. Rows
        without weight do not count, as if they were not there.
    effective_rows : array (q,)
        (Σ d²)³/(Σ |d|³)² with d = w (z − z̄): N/ρ², with the normalised third moment ρ
        that has to be bounded. So many rows of one size would be as far from normal.
        NaN where all rows are equal.

    Notes
    -----
    Of rows in C groups of which only the groups are independent, d_c = Σ_{i ∈ c} w_i
    (z_i − z̄) stands for d, and the standard error is √(C/(C − 1) Σ d_c²)/N (Liang and
    Zeger 1986; the factor is that of C independent sums). It grows with whatever rows
    of a group have in common, and with groups of one row it is that above.
    """

    means: Values
    standard_errors: Values
    effective_rows: Values


def moments(
    scores: Array, weights: Values, groups: NDArray[np.intp] | None = None
) -> Moments:
    """Moments of q columns of scores (N, q); the weights (N,) sum to N.

    Parameters
    ----------
    scores : array (N, q)
        z.
    weights : array (N,)
        Of the rows.
    groups : array of int (N,), optional
        Of rows that are not independent, 0, ..., C − 1.

    Examples
    --------
    >>> import numpy as np
    >>> outlier = np.array([[0.0], [0.0], [0.0], [0.0], [1.0]])
    >>> found = moments(outlier, np.ones(5))
    >>> found.means, found.standard_errors.round(3), found.effective_rows.round(1)
    (array([0.2]), array([0.2]), array([1.7]))
    >>> twice = moments(np.repeat(outlier, 2, axis=0), np.ones(10), np.arange(10) // 2)
    >>> twice.standard_errors.round(3)
    array([0.2])
    """
    counted = weights > 0.0
    if not counted.all():
        own = weights[counted]
        codes = None
        if groups is not None:
            codes = np.unique(groups[counted], return_inverse=True)[1]
        return moments(scores[counted], own * (len(own) / own.sum()), codes)
    n_rows = len(scores)
    means = weights @ scores / n_rows
    apart = weights[:, None] * (scores - means)
    if groups is not None:
        apart = sp.csr_array((np.ones(n_rows), (groups, np.arange(n_rows)))) @ apart
    n_sums = len(apart)
    sizes = np.abs(apart).max(axis=0)
    unit = np.abs(apart / np.where(sizes > 0.0, sizes, 1.0))  # so that no cube is lost
    square = unit * unit
    second, third = square.sum(axis=0), (square * unit).sum(axis=0)
    errors = sizes * np.sqrt(second / (n_sums - 1) / n_sums) * (n_sums / n_rows)
    with np.errstate(invalid="ignore"):  # 0/0 where all rows are equal
        return Moments(means, errors, second**3 / third**2)
