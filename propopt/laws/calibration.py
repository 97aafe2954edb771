"""Calibration of drawn rows: weights with which their traits have the means of a table.

Some of N rows are drawn, and traits z (T,) of all rows are known, such as f and the
columns. The weights of P draws that change least, in squares, and
give z the mean over all N rows are

    w = 1/P + (z̄ of all rows − z̄ of the draws) Z⁺,  Z⁺ (T, P) of the centred traits

(Deville and Särndal 1992). Σ w y is then the estimate of the mean of y by regression on
the traits (Cassel, Särndal and Wretman 1976). Differences between rows that traits
explain are not errors of it; only the residuals are. Each of ten blocks of draws gives
the estimate plus its mean residual.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from propopt.base.arrays import Array, Points, Values


N_DRAWN_BLOCKS: Final = 10
"""Blocks of draws, which estimate the error."""

DRAWS_A_TRAIT: Final = 2
"""The smallest number of drawn rows per trait."""

_DEPENDENT: Final = 1e-6
"""Traits count as linear in others below this share of the largest singular value."""

_LEAST_SHARE: Final = 0.01
"""The smallest share 1 − h of a draw by which its residual is divided."""


def linear_traits(rows: Points, values: Values, mean: float | None = None) -> Array:
    """Traits of rows (N, T): f minus a mean, and principal components of the columns.

    By default all have the mean zero.
    """
    left, sizes, _ = np.linalg.svd(_standardised(rows), full_matrices=False)
    components = left[:, sizes > _DEPENDENT * sizes.max(initial=0.0)]
    return np.hstack([_of_unit_norm(values[:, None], mean), components])


def _standardised(rows: Points) -> Array:
    """Columns of mean zero and norm 1; missing numbers count as the mean."""
    is_present = ~np.isnan(rows)
    count = np.maximum(is_present.sum(axis=0), 1)
    means = np.where(is_present, rows, 0.0).sum(axis=0) / count
    return _of_unit_norm(np.where(is_present, rows - means, 0.0))


def _of_unit_norm(columns: Array, mean: float | None = None) -> Array:
    """Centred columns of norm 1, without constant ones."""
    centred = columns - (columns.mean(axis=0) if mean is None else mean)
    sizes = np.abs(centred).max(axis=0)
    varies = sizes > _DEPENDENT * np.abs(columns).max(axis=0)
    centred = centred[:, varies] / sizes[varies]
    return centred / np.linalg.norm(centred, axis=0)


def calibrated_weights(traits: Array, means: Values) -> tuple[Values, Array]:
    """Weights w (P,), and those of ten blocks minus w, (10, P).

    The error of Σ w y is that of the mean of residuals, each from a regression on the
    other draws: r / (1 − h) for the leverage h of a draw.
    """
    n_draws = len(traits)
    average = traits.mean(axis=0)
    inverse = np.linalg.pinv(traits - average, rcond=_DEPENDENT)
    residual = np.eye(n_draws) - 1.0 / n_draws - (traits - average) @ inverse
    without = residual / np.maximum(np.diag(residual), _LEAST_SHARE)[:, None]
    blocks = without.reshape(N_DRAWN_BLOCKS, -1, n_draws).mean(axis=1)
    weights = 1.0 / n_draws + (means - average) @ inverse
    return weights, blocks - blocks.mean(axis=0)
