"""How simple attributions are: Gini index, entropy, number of non-zeros."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from propopt._typing import Array, Attributions
from propopt.checks import read_nonnegative
from propopt.metrics.base import Better, ComplexityMetric, quotient


@final
@dataclass(frozen=True, kw_only=True)
class Sparseness(ComplexityMetric):
    """Gini index of the absolute attributions (Chalasani et al. 2020; Hurley 2009).

    Σ_i (2i − D − 1) |w|_(i) / (D Σ_i |w_i|), with |w|_(1) ≤ ... ≤ |w|_(D). Between 0,
    for equal attributions, and 1 − 1/D, for a single one. Does not depend on the scale
    of the attributions. Undefined (0/0) for a row of zeros.

    Examples
    --------
    >>> Sparseness()([[0.0, 0.0, 0.0, -2.0], [1.0, 1.0, 1.0, 1.0]])
    array([0.75, 0.  ])
    """

    better: ClassVar[Better] = "higher"

    def _rows(self, attributions: Attributions) -> Array:
        shares = np.sort(_shares(attributions), axis=1)
        n_features = attributions.shape[1]
        ranks = 2 * np.arange(1, n_features + 1) - n_features - 1
        gini: Array = shares @ ranks / n_features
        return gini


@final
@dataclass(frozen=True, kw_only=True)
class Complexity(ComplexityMetric):
    """Entropy of the absolute attributions (Bhatt et al. 2020, arXiv 2005.00631).

    −Σ_i p_i ln p_i with p_i = |w_i| / Σ_j |w_j|, in nats. Between 0, for a single
    attribution, and ln D, for equal ones. Does not depend on the scale of the
    attributions. Undefined (0/0) for a row of zeros.

    Examples
    --------
    >>> Complexity()([[0.0, 3.0], [1.0, -1.0]]).round(4)
    array([0.    , 0.6931])
    """

    better: ClassVar[Better] = "lower"

    def _rows(self, attributions: Attributions) -> Array:
        shares = _shares(attributions)
        logs = np.log(shares, out=np.zeros_like(shares), where=shares != 0)
        entropy: Array = -(shares * logs).sum(axis=1)
        return np.abs(entropy)  # -0.0 for a single attribution


@final
@dataclass(frozen=True, kw_only=True)
class EffectiveComplexity(ComplexityMetric):
    """Number of attributions that count (Nguyen and Rodríguez Martínez 2020).

    #{i: |w_i| > threshold}. The attributions are taken as they are: a threshold for
    attributions that are scaled to a largest one of 1 is another metric.

    Parameters
    ----------
    threshold : float
        At least 0, in the units of the attributions.

    Examples
    --------
    >>> EffectiveComplexity()([[0.0, 1e-6, -3.0], [1.0, 2.0, 3.0]])
    array([1., 3.])
    """

    better: ClassVar[Better] = "lower"

    threshold: float = 1e-5

    def __post_init__(self) -> None:
        read_nonnegative(self.threshold, "threshold")

    def _rows(self, attributions: Attributions) -> Array:
        return (np.abs(attributions) > self.threshold).sum(axis=1).astype(float)


def _shares(attributions: Attributions) -> Array:
    """|w| / Σ|w|, (N, D); NaN in a row of zeros."""
    sizes = np.abs(attributions)
    # relative to the largest, no sum can overflow
    sizes = quotient(sizes, sizes.max(axis=1, keepdims=True))
    return sizes / sizes.sum(axis=1, keepdims=True)
