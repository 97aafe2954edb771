"""Which inputs carry the prior: a few, chosen among many observations."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import final

import numpy as np
from sklearn.cluster import KMeans

from propopt._typing import Array, Points
from propopt.checks import read_array, read_count, read_positive
from propopt.errors import InvalidInput
from propopt.inductive.kernels import PointKernel
from propopt.memory import require_memory


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class Candidates:
    """What inducing inputs are chosen for.

    Parameters
    ----------
    X : array (N, D)
        The observed inputs.
    kernel : PointKernel
        k.
    noise : float
        Variance of the least noisy observation in units of the kernel, λ/max_j p_j.
    rng : numpy.random.Generator
        Where draws come from.
    """

    X: Points
    kernel: PointKernel
    noise: float
    rng: np.random.Generator


class InducingRule(ABC):
    """How inducing inputs are chosen; never more than there are different points."""

    @abstractmethod
    def select(self, candidates: Candidates, /) -> Points:
        """Inducing inputs Z, shape (M, D)."""


@final
@dataclass(frozen=True, eq=False)
class GivenInputs(InducingRule):
    """Inducing inputs that are given.

    Parameters
    ----------
    inputs : array (M, D)
        Z; they need not be observed inputs.
    """

    inputs: object

    def select(self, candidates: Candidates, /) -> Points:
        inputs = read_array(self.inputs, "inducing", ndim=2)
        n_features = candidates.X.shape[1]
        if inputs.shape[1] != n_features:
            raise InvalidInput(
                f"inducing: expected {n_features} features as in X, got shape "
                f"{inputs.shape}"
            )
        return inputs


@final
@dataclass(frozen=True)
class RandomInputs(InducingRule):
    """Observed inputs, uniformly at random.

    Parameters
    ----------
    count : int
        M.
    """

    count: int

    def select(self, candidates: Candidates, /) -> Points:
        different = _different(candidates.X)
        count = min(read_count(self.count, "count"), len(different))
        return different[
            np.sort(candidates.rng.choice(len(different), count, replace=False))
        ]


@final
@dataclass(frozen=True)
class KMeansInputs(InducingRule):
    """Centres of k-means, from one k-means++ start (Arthur and Vassilvitskii 2007).

    Parameters
    ----------
    count : int
        M.
    """

    count: int

    def select(self, candidates: Candidates, /) -> Points:
        different = _different(candidates.X)
        count = read_count(self.count, "count")
        if count >= len(different):
            return different
        seed = int(candidates.rng.integers(2**31))
        clusters = KMeans(count, init="k-means++", n_init=1, random_state=seed).fit(
            candidates.X
        )
        return np.asarray(clusters.cluster_centers_, dtype=np.float64)


@final
@dataclass(frozen=True)
class FarthestInputs(InducingRule):
    """Each the observed input farthest from those before it (Gonzalez 1985).

    The first is the one nearest to the mean. No point is then farther from its nearest
    inducing input than twice the best possible for so many.

    Parameters
    ----------
    count : int
        M.
    """

    count: int

    def select(self, candidates: Candidates, /) -> Points:
        X = candidates.X
        chosen = [int(np.argmin(_squares(X, X.mean(axis=0))))]
        nearest = _squares(X, X[chosen[0]])
        for _ in range(1, min(read_count(self.count, "count"), len(X))):
            farthest = int(np.argmax(nearest))
            if nearest[farthest] == 0:
                break
            chosen.append(farthest)
            nearest = np.minimum(nearest, _squares(X, X[farthest]))
        return X[chosen]


@final
@dataclass(frozen=True)
class GreedyVariance(InducingRule):
    """Each the observed input whose prior variance the others explain least.

    This is the pivoted Cholesky factorisation of K; it stops when the trace of what is
    left, tr(K − Q), is at most ``tolerance`` times the noise λ/max_j p_j. With t = tr(K
    − Q)/λ, the part t·p_j/2 of the information lost in feature j (Titsias 2009, Eq. 9)
    is then at most tolerance/2 nats. What a ``WhiteKernel`` adds cannot be explained,
    so that with one the rule goes on to ``max_count``; use ``jitter`` instead.

    Parameters
    ----------
    max_count : int
        M at most; reaching it is no error, ``information_loss_`` tells what it cost.
    tolerance : float
        See above.

    Examples
    --------
    >>> import numpy as np
    >>> from propopt.inductive import GaussianProcessExplainer, GreedyVariance
    >>> X = np.linspace(0, 1, 500)[:, None]
    >>> explainer = GaussianProcessExplainer(inducing=GreedyVariance(50))
    >>> len(explainer.fit(X, X).inducing_inputs_) < 20
    True
    """

    max_count: int
    tolerance: float = 0.01

    def select(self, candidates: Candidates, /) -> Points:
        X, kernel = candidates.X, candidates.kernel
        limit = read_positive(self.tolerance, "tolerance") * candidates.noise
        count = min(read_count(self.max_count, "max_count"), len(X))
        require_memory(8.0 * count * len(X), "a pivoted factor", "lower max_count")
        # what jitter adds can be explained by no other point
        left = kernel.diagonal(X) - kernel.jitter
        rounding = len(X) * np.finfo(float).eps * left.max()
        factor, chosen = np.empty((count, len(X))), list[int]()
        while len(chosen) < count and left.max() > rounding:
            if chosen and left.sum() <= limit:
                break
            pivot, m = int(np.argmax(left)), len(chosen)
            factor[m] = _pivoted(kernel, X, pivot, factor[:m], left[pivot])
            left = np.maximum(left - factor[m] ** 2, 0.0)
            left[pivot] = 0.0
            chosen.append(pivot)
        return X[chosen or [0]]


def read_inducing(inducing: object) -> InducingRule | None:
    """A rule, inputs (M, D) that are given, or None: all observations."""
    if inducing is None or isinstance(inducing, InducingRule):
        return inducing
    if isinstance(inducing, int | np.integer):
        raise InvalidInput(
            f"inducing: expected a rule, inputs or None, got {inducing!r}; "
            f"GreedyVariance({inducing!r}) is a rule"
        )
    return GivenInputs(inducing)


def _pivoted(
    kernel: PointKernel, X: Points, pivot: int, before: Array, left: float
) -> Array:
    """The next row of the factor: (k(x_p, X) − Σ rows r_p r)/√left."""
    row = kernel.cross(X[pivot : pivot + 1], X)[0] - before[:, pivot] @ before
    return np.asarray(row / np.sqrt(left))


def _different(X: Points) -> Points:
    return np.unique(X, axis=0)


def _squares(X: Points, x: Array) -> Array:
    difference = X - x
    return np.einsum("nd,nd->n", difference, difference)
