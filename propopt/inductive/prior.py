"""A prior with its observations, before one is conditioned on the other."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import final

import numpy as np

from propopt._typing import Array, Attributions, Points
from propopt.inductive.exact import Exact
from propopt.inductive.feature_basis import FeatureBasis
from propopt.inductive.inducing import InducingRule, Observed
from propopt.inductive.kernels import PointKernel
from propopt.inductive.means import Mean
from propopt.inductive.model import Model, Pair, smoothing
from propopt.inductive.sparse import Sparse


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class Prior:
    """Everything that a fit starts from.

    Parameters
    ----------
    points : array (n, C)
        Where the inputs lie.
    rotated : array (n, D)
        Rotated gradients.
    basis : FeatureBasis
        V and ς.
    mean : Mean
        The constant of the prior.
    kernel : PointKernel
        k.
    weights : pair
        Of robustness and of smoothness.
    """

    points: Points
    rotated: Attributions
    basis: FeatureBasis
    mean: Mean
    kernel: PointKernel
    weights: Pair

    @property
    def scale(self) -> float:
        """λ = 2 w_r."""
        return 2.0 * self.weights[0]

    @property
    def pull(self) -> Array:
        """w_s ς_j, shape (D,) or (1,)."""
        return smoothing(self.basis, self.weights[1])

    def at(self, kernel: PointKernel, weights: Pair) -> Prior:
        """The same observations under another prior."""
        return replace(self, kernel=kernel, weights=weights)

    def exact(self) -> Exact:
        """Conditioned on all observations."""
        return Exact.of(self.kernel, self.points, self.rotated)

    def condition(self, rule: InducingRule | None, rng: np.random.Generator) -> Model:
        """Conditioned on all observations, through inducing inputs by a rule."""
        if rule is None:
            return Model(state=self.exact(), basis=self.basis, mean=self.mean)
        noise = self.scale / (1.0 + float(self.pull.max()))
        seen = Observed(X=self.points, kernel=self.kernel, noise=noise, rng=rng)
        state = Sparse.of(self.kernel, self.points, self.rotated, rule.select(seen))
        return Model(state=state, basis=self.basis, mean=self.mean)
