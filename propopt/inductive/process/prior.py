"""A prior with its observations, before one is conditioned on the other."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import final

import numpy as np

from propopt._typing import Array, Attributions, Points
from propopt.inductive.bases.base import FeatureBasis
from propopt.inductive.inducing import Candidates, InducingRule
from propopt.inductive.kernels import PointKernel
from propopt.inductive.process.exact import ExactPosterior
from propopt.inductive.process.means import Mean
from propopt.inductive.process.model import GaussianProcess, WeightPair, smoothing
from propopt.inductive.process.sparse import SparsePosterior


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
    weights: WeightPair

    @property
    def lam(self) -> float:
        """λ = 2 w_r."""
        return 2.0 * self.weights[0]

    @property
    def pull(self) -> Array:
        """w_s ς_j, shape (D,) or (1,)."""
        return smoothing(self.basis, self.weights[1])

    def at(self, kernel: PointKernel, weights: WeightPair) -> Prior:
        """The same observations under another prior."""
        return replace(self, kernel=kernel, weights=weights)

    def exact(self) -> ExactPosterior:
        """Conditioned on all observations."""
        return ExactPosterior.of(self.kernel, self.points, self.rotated)

    def sparse(self, rule: InducingRule, rng: np.random.Generator) -> SparsePosterior:
        """Conditioned on all observations through inducing inputs by a rule."""
        noise = self.lam / (1.0 + float(self.pull.max()))
        choice = Candidates(X=self.points, kernel=self.kernel, noise=noise, rng=rng)
        Z = rule.select(choice)
        return SparsePosterior.of(self.kernel, self.points, self.rotated, Z)

    def condition(
        self, rule: InducingRule | None, rng: np.random.Generator
    ) -> GaussianProcess:
        """Conditioned on all observations, or on what inducing inputs let through."""
        state = self.exact() if rule is None else self.sparse(rule, rng)
        return GaussianProcess(state=state, basis=self.basis, mean=self.mean)
