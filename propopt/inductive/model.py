"""The prior, what it has seen, and what it says under given weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias, final

import numpy as np

from propopt._typing import Array, Points
from propopt.checks import read_nonnegative
from propopt.errors import InvalidInput
from propopt.inductive.conditioning import Conditioned, Queries
from propopt.inductive.feature_basis import FeatureBasis
from propopt.inductive.features import IndependentFeatures
from propopt.inductive.laws import Law
from propopt.inductive.means import Constants, Kriged, Mean


Pair: TypeAlias = tuple[float, float]
"""Weights of robustness (> 0) and of smoothness (>= 0)."""


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class Model:
    """A conditioned prior whose weights are still free.

    Parameters
    ----------
    state : Conditioned
        Inducing inputs and gradients, in one eigenbasis.
    basis : FeatureBasis
        V and ς.
    mean : Mean
        The constant of the prior.
    """

    state: Conditioned
    basis: FeatureBasis
    mean: Mean

    def weighed(self, weights: Pair) -> Weighed:
        """The model under one pair of weights, in O(r·D)."""
        robustness, smoothness = weights
        pull = smoothing(self.basis, smoothness)
        weighed = Weighed(model=self, scale=2.0 * robustness, pull=pull)
        self.state.require_condition(weighed.p, weighed.scale)
        return weighed


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class Weighed:
    """A model under one pair of weights.

    Parameters
    ----------
    model : Model
        The rest.
    scale : float
        λ = 2 w_r.
    pull : array (D,) or (1,)
        w_s ς_j: how strongly smoothness draws rotated feature j to zero.
    """

    model: Model
    scale: float
    pull: Array

    @property
    def p(self) -> Array:
        """1 + w_s ς_j, precision of the observations."""
        return 1.0 + self.pull

    @cached_property
    def constants(self) -> Constants:
        """What the observations say of the constants."""
        return self.model.state.constants(self.p, self.scale)

    def before(self, queries: Queries) -> Law:
        """Kriging from the inducing inputs, before smoothness acts at new points."""
        state = self.model.state
        kriged = Kriged(
            mean=state.mean(queries, self.p, self.scale),
            variance=state.variance(queries, self.p, self.scale),
            slope=self.slope(queries),
            constants=self.constants,
        )
        return self.model.mean.predict(kriged)

    def slope(self, queries: Queries) -> Array:
        """How kriging moves with a constant, shape (m, D) or (m, 1)."""
        return self.model.state.slope(queries, self.p, self.scale)

    def covariance(self, X: Points, queries: Queries, feature: int) -> Array:
        """That of kriging between new points in one rotated feature, (m, m)."""
        p = float(self.p[min(feature, len(self.p) - 1)])
        return self.model.state.covariance(X, queries, p, self.scale)

    def law(self, queries: Queries, rotated: Array | None) -> Law:
        """The posterior at each new point alone.

        Parameters
        ----------
        queries : Queries
            The new points.
        rotated : array (m, D) or None
            Their rotated gradients, where these are to be used too.
        """
        before = self.before(queries)
        if rotated is None:
            return before.observe(self.pull, np.zeros((1, 1)))
        return before.observe(self.p, rotated)


def smoothing(basis: FeatureBasis, smoothness: float) -> Array:
    """w_s ς_j, as one number where it is the same for all features."""
    pull = smoothness * basis.eigenvalues
    return pull[:1] if (pull == pull[0]).all() else pull


def read_weights(weights: object, basis: FeatureBasis) -> Pair:
    """A pair of weights that the model can use."""
    if not isinstance(weights, Sequence | np.ndarray) or len(weights) != 2:
        raise InvalidInput(
            f"weights: expected a pair (robustness, smoothness), got {weights!r}"
        )
    robust = read_nonnegative(weights[0], "robustness")
    if robust == 0.0:
        raise InvalidInput(
            "robustness: expected a weight > 0; with none, the gradients at hand say "
            "nothing about a new input"
        )
    smooth = read_nonnegative(weights[1], "smoothness")
    if smooth > 0 and isinstance(basis, IndependentFeatures):
        raise InvalidInput(
            f"smoothness: a weight of {smooth:g} needs similar features; give "
            "features=a graph, or a kernel matrix of the features"
        )
    return robust, smooth
