"""The prior, what it has seen, and what it says under given weights."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias, final

import numpy as np
import scipy.linalg as la

from propopt._typing import Array, Attributions, Points
from propopt.checks import read_nonnegative
from propopt.errors import InvalidInput
from propopt.inductive.bases.base import FeatureBasis
from propopt.inductive.bases.features import IndependentFeatures
from propopt.inductive.process.means import Constants, Kriging, Mean
from propopt.inductive.process.normals import NormalLaws
from propopt.inductive.process.posterior import Posterior, Queries, blocks
from propopt.memory import require_memory


WeightPair: TypeAlias = tuple[float, float]
"""Weights of robustness (> 0) and of smoothness (>= 0)."""


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class GaussianProcess:
    """A conditioned prior whose weights are still free.

    Parameters
    ----------
    state : Posterior
        Inducing inputs and gradients, in one eigenbasis.
    basis : FeatureBasis
        V and ς.
    mean : Mean
        The constant of the prior.
    """

    state: Posterior
    basis: FeatureBasis
    mean: Mean

    def under(self, weights: WeightPair) -> WeightedPosterior:
        """The model under one pair of weights, in O(r·D)."""
        robustness, smoothness = weights
        pull = smoothing(self.basis, smoothness)
        posterior = WeightedPosterior(model=self, lam=2.0 * robustness, pull=pull)
        self.state.require_condition(posterior.p, posterior.lam)
        return posterior

    def information_loss(self, weights: WeightPair) -> float:
        """At most so many nats were lost to inducing inputs, under these weights."""
        posterior = self.under(weights)
        return self.state.information_loss(posterior.p, posterior.lam, self.mean)


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class WeightedPosterior:
    """A model under one pair of weights.

    Parameters
    ----------
    model : GaussianProcess
        The rest.
    lam : float
        λ = 2 w_r.
    pull : array (D,) or (1,)
        w_s ς_j: how strongly smoothness draws rotated feature j to zero.
    """

    model: GaussianProcess
    lam: float
    pull: Array

    @property
    def p(self) -> Array:
        """1 + w_s ς_j, precision of the observations."""
        return 1.0 + self.pull

    @cached_property
    def constants(self) -> Constants:
        """What the observations say of the constants."""
        return self.model.state.constants(self.p, self.lam)

    def before(self, queries: Queries) -> NormalLaws:
        """Kriging from the inducing inputs, before smoothness acts at new points."""
        state = self.model.state
        kriging = Kriging(
            mean=state.mean(queries, self.p, self.lam),
            variance=state.variance(queries, self.p, self.lam),
            slope=self.slope(queries),
            constants=self.constants,
        )
        return self.model.mean.predict(kriging)

    def slope(self, queries: Queries) -> Array:
        """How kriging moves with a constant, shape (m, D) or (m, 1)."""
        return self.model.state.slope(queries, self.p, self.lam)

    def covariance(self, X: Points, queries: Queries, feature: int) -> Array:
        """That of kriging between new points in one rotated feature, (m, m)."""
        p = float(self.p[min(feature, len(self.p) - 1)])
        return self.model.state.covariance(X, queries, p, self.lam)

    def law(self, queries: Queries, rotated: Array | None) -> NormalLaws:
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


def read_weights(weights: object, basis: FeatureBasis) -> WeightPair:
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


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class NewInputs:
    """New inputs of which a model is asked.

    Parameters
    ----------
    model : GaussianProcess
        With its weights still free.
    points : array (m, C)
        Where the new inputs lie.
    rotated : array (m, D) or None
        Their rotated gradients, where these are to be used.
    """

    model: GaussianProcess
    points: Points
    rotated: Array | None

    def answers(
        self, weights: Sequence[WeightPair], return_std: bool
    ) -> list[tuple[Attributions, Mapping[str, Array]]]:
        """Attributions and details under each pair of weights."""
        basis = self.model.basis
        shape = len(self.points), basis.n_features
        W = [np.empty(shape) for _ in weights]
        spread = [np.empty(shape) for _ in weights if return_std]
        for rows, n, law in self._laws(weights):
            W[n][rows] = basis.unrotate(law.mean)
            if return_std:
                spread[n][rows] = law.deviations(basis)
        details = [{"standard_deviation": s} for s in spread] or [{} for _ in weights]
        return list(zip(W, details, strict=True))

    def draws(
        self, weights: WeightPair, n_samples: int, rng: np.random.Generator
    ) -> Array:
        """Draws under one pair of weights, shape (n_samples, m, D)."""
        shape = n_samples, len(self.points), self.model.basis.n_features
        samples = np.empty(shape)
        for rows, _, law in self._laws([weights], n_samples):
            samples[:, rows] = law.draw(self.model.basis, n_samples, rng)
        return samples

    def _laws(
        self, weights: Sequence[WeightPair], copies: int = 1
    ) -> Iterator[tuple[slice, int, NormalLaws]]:
        """The law of each block of new points under each pair of weights."""
        state = self.model.state
        models = [self.model.under(pair) for pair in weights]
        n_numbers = max(self.points.shape[1], self.model.basis.n_features)
        width = max(len(state.inducing), 2 * n_numbers * copies)
        for rows in blocks(len(self.points), 8 * width):
            queries = state.queries(self.points[rows])
            gradients = None if self.rotated is None else self.rotated[rows]
            for n, model in enumerate(models):
                yield rows, n, model.law(queries, gradients)


def joint(posterior: WeightedPosterior, X: Points) -> Array:
    """Rotated attributions of all of X, appended without gradients, shape (m, D).

    Before smoothness, rotated feature j has the mean m_j and, with its constant held,
    the covariance C_j; smoothness Λ_j then gives (I + Λ_j C_j)⁻¹m_j, and the constants
    move by what that leaves unexplained. One factorisation of order m for each Λ_j > 0.
    """
    require_memory(
        32.0 * len(X) ** 2, f"{len(X)} new inputs at once", "explain fewer together"
    )
    queries = posterior.model.state.queries(X)
    mean = posterior.before(queries).mean.copy()
    slope = np.broadcast_to(posterior.slope(queries), mean.shape)
    pull, moved = np.broadcast_to(posterior.pull, mean.shape[1:]), slope.copy()
    push, information = np.zeros(mean.shape[1]), np.zeros(mean.shape[1])
    for j in np.flatnonzero(pull):
        system = pull[j] * posterior.covariance(X, queries, int(j))
        system[np.diag_indices_from(system)] += 1.0
        both = np.column_stack([mean[:, j], slope[:, j]])
        solved = la.solve(system, both, assume_a="pos")
        push[j], information[j] = pull[j] * (slope[:, j] @ solved)
        mean[:, j], moved[:, j] = solved.T
    step = posterior.model.mean.step(-push, information, posterior.constants)
    return np.asarray(mean + moved * step)
