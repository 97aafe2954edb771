"""Faithfulness correlation: whether attributions foretell effects of removal."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from propopt._typing import Array, Attributions
from propopt.checks import read_array, read_count
from propopt.errors import InvalidInput
from propopt.explainers.request import Request
from propopt.metrics.base import Better, FaithfulnessMetric, quotient
from propopt.metrics.reading import BACKGROUND_OF_TEXTS, mean_point, read_size
from propopt.metrics.sampling import Sampling, Statistic
from propopt.sampling.perturbations import Perturbations
from propopt.tables.alignment import aligned_vector


_NEGLIGIBLE = 1e-12
"""Relative to the largest term, a spread below this is rounding."""


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class FaithfulnessCorrelation(FaithfulnessMetric):
    """Correlation of attributions and effects of removal (Bhatt et al. 2020).

    Pearson's correlation over random subsets S of the features, all of one size k, of
    Σ_{i∈S} w_i and f(x) − f(x with x_i = b_i for i ∈ S) (arXiv 2005.00631). Between −1
    and 1; asks for attributions in units of output, such as Shapley values or w·(x−b),
    and does not depend on their scale. Undefined (0/0) where either side is the same
    for all subsets, to rounding.

    Parameters
    ----------
    k : int, optional
        The size of the subsets, 1 ≤ k < D; by default a quarter of D, at least 1.
    n_samples : int
        The number of subsets per point, at least 2.
    baseline : array or Series (D,), optional
        b, which stands for "feature unknown"; by default the mean of X.

    Examples
    --------
    >>> import numpy as np, propopt as po
    >>> line = po.wrap(lambda X: X @ [1.0, 2.0, 3.0])
    >>> metric = FaithfulnessCorrelation(baseline=np.zeros(3))
    >>> metric([[1.0, 2.0, 3.0]], line, [[1.0, 1.0, 1.0]]).round(6)
    array([1.])
    """

    better: ClassVar[Better] = "higher"

    k: int | None = None
    n_samples: int = 100
    baseline: ArrayLike | pd.Series[Any] | None = None

    def __post_init__(self) -> None:
        if self.k is not None:
            read_count(self.k, "k")
        if read_count(self.n_samples, "n_samples") < 2:
            raise InvalidInput("n_samples: expected at least 2, got 1")
        if self.baseline is not None:
            object.__setattr__(self, "baseline", _own(self.baseline))

    def _texts_refusal(self) -> str | None:
        return None if self.baseline is None else BACKGROUND_OF_TEXTS

    def _rows(self, task: Request, attributions: Attributions) -> Array:
        values = task.value(task.points)
        sizes = np.stack([np.abs(attributions).max(axis=1), np.abs(values)], axis=1)
        pieces = self._subsets(task).rows(self._pairs(task, attributions, values))
        return np.concatenate(
            [_correlation(pairs, sizes[rows]) for rows, pairs in pieces]
        )

    def _subsets(self, task: Request) -> Sampling:
        # The k smallest of D independent uniform keys are a random subset of size k.
        keys = Perturbations(
            scale=1.0, n_samples=self.n_samples, distribution="uniform"
        )
        every = np.zeros(task.points.shape, dtype=bool)
        return Sampling(perturbations=keys, fixed=every, rng=task.rng)

    def _pairs(
        self, task: Request, attributions: Attributions, values: Array
    ) -> Statistic:
        """Σ_{i∈S} w_i and the effect of removing S, (n, s, 2)."""
        size = read_size(self.k, task.points.shape[1])
        baseline = self._baseline(task)

        def pairs(rows: slice, keys: Array) -> Array:
            removed = smallest(keys, size)
            sums = (removed @ attributions[rows, :, None])[..., 0]
            points = np.where(removed, baseline, task.points[rows, None])
            return np.stack([sums, values[rows, None] - task.value(points)], axis=-1)

        return pairs

    def _baseline(self, task: Request) -> Array:
        if self.baseline is None:
            return mean_point(task)
        features = task.labels.features
        baseline = aligned_vector(self.baseline, features, "baseline", "X")
        if len(baseline) != task.points.shape[1]:
            raise InvalidInput(
                f"baseline: expected {task.points.shape[1]} features as in X, got "
                f"{len(baseline)}"
            )
        return baseline


def _own(baseline: ArrayLike | pd.Series[Any]) -> Array | pd.Series[Any]:
    """A checked copy, with the names that a Series has."""
    checked = read_array(baseline, "baseline", ndim=1)
    if isinstance(baseline, pd.Series):
        return pd.Series(checked, index=baseline.index)
    return checked


def smallest(keys: Array, size: int) -> Array:
    """1.0 for the ``size`` smallest of the last axis, 0.0 for the others."""
    last = np.partition(keys, size - 1, axis=-1)[..., size - 1 : size]
    return (keys <= last).astype(float)


def _correlation(pairs: Array, sizes: Array) -> Array:
    """Pearson's correlation over S of pairs (n, S, 2); NaN for a constant side.

    ``sizes`` (n, 2) are what rounding errors of either side are proportional to.
    """
    centred = pairs - pairs.mean(axis=1, keepdims=True)
    spread = np.abs(centred).max(axis=1)
    scale = np.maximum(np.abs(pairs).max(axis=1), sizes)
    constant = (spread <= _NEGLIGIBLE * scale).any(axis=1)
    spread[constant] = 1
    unit = centred / spread[:, None]
    norms = np.linalg.norm(unit, axis=1)
    product = (unit[..., 0] * unit[..., 1]).sum(axis=1)
    correlation = quotient(product, norms.prod(axis=1))
    return np.where(constant, np.nan, np.clip(correlation, -1, 1))
