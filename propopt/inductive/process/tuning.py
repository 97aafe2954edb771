"""Lengthscale and weights that account best for the gradients at hand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, TypeAlias, final

import numpy as np
from scipy.optimize import minimize

from propopt._typing import Array
from propopt.errors import InvalidInput
from propopt.inductive.process.exact import ExactPosterior
from propopt.inductive.process.means import LeaveOneOut, Mean
from propopt.inductive.process.prior import Prior


CriterionName: TypeAlias = Literal["marginal_likelihood", "leave_one_out"]
Criterion: TypeAlias = Callable[[ExactPosterior, Array, float, Mean], float]

_WEIGHT_RANGE = (1e-8, 1e8)
"""Weights are sought in this range, widened to hold those to start from."""


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class TunedPrior:
    """A prior, with the value of the criterion there, if one was maximized."""

    prior: Prior
    value: float | None


@final
@dataclass(kw_only=True, eq=False)
class Tuning:
    """A search over log weights and the kernel's log hyper-parameters.

    Parameters
    ----------
    prior : Prior
        Where the search starts. A weight of zero for smoothness stays.
    criterion : callable
        What is maximized.
    """

    prior: Prior
    criterion: Criterion
    _latest: tuple[bytes, ExactPosterior] | None = field(default=None, init=False)

    def best(self, n_restarts: int, rng: np.random.Generator) -> TunedPrior:
        """The best of a search from here and of others from random places.

        L-BFGS-B with slopes by central differences: only a step of the kernel's own
        parameters costs an eigendecomposition, a step of the weights O(n·D).
        """
        bounds = self._bounds()
        random = rng.uniform(bounds[:, 0], bounds[:, 1], (n_restarts, len(bounds)))
        results = [
            minimize(self._cost, start, jac="3-point", bounds=bounds, method="L-BFGS-B")
            for start in [self._start(), *random]
        ]
        best = min(results, key=lambda result: result.fun)
        value = -float(best.fun) * self.prior.rotated.size
        return TunedPrior(prior=self._prior(best.x), value=value)

    @property
    def _n_weights(self) -> int:
        return 1 + (self.prior.weights[1] > 0)

    def _start(self) -> Array:
        weights = np.log(self.prior.weights[: self._n_weights])
        return np.concatenate([weights, self.prior.kernel.theta])

    def _bounds(self) -> Array:
        low, high = np.log(_WEIGHT_RANGE)
        start = self._start()[: self._n_weights]
        limits = np.column_stack([np.minimum(low, start), np.maximum(high, start)])
        return np.concatenate([limits, self.prior.kernel.bounds])

    def _prior(self, z: Array) -> Prior:
        smoothness = float(np.exp(z[1])) if self._n_weights == 2 else 0.0
        kernel = self.prior.kernel.at(z[self._n_weights :])
        return self.prior.at(kernel, (float(np.exp(z[0])), smoothness))

    def _cost(self, z: Array) -> float:
        prior = self._prior(z)
        state = self._state(prior)
        value = self.criterion(state, prior.pull, prior.lam, prior.mean)
        return -value / prior.rotated.size

    def _state(self, prior: Prior) -> ExactPosterior:
        key = prior.kernel.theta.tobytes()
        if self._latest is None or self._latest[0] != key:
            self._latest = key, prior.exact()
        return self._latest[1]


def read_criterion(optimize: object) -> Criterion | None:
    """The criterion with this name; None where nothing is to be optimized."""
    if optimize is None:
        return None
    if optimize == "marginal_likelihood":
        return log_evidence
    if optimize == "leave_one_out":
        return log_leave_one_out
    raise InvalidInput(
        "optimize: expected 'marginal_likelihood', 'leave_one_out' or None, got "
        f"{optimize!r}"
    )


def log_evidence(state: ExactPosterior, pull: Array, lam: float, mean: Mean) -> float:
    """Log density of the gradients under the prior, summed over features.

    A constant that smoothness does not see has the flat prior of density one, which
    gives the density of the contrasts (restricted likelihood) but for a number that
    depends on n and D alone.

    Parameters
    ----------
    state : ExactPosterior
        Gradients at all points.
    pull : array (D,) or (1,)
        Λ_j.
    lam : float
        λ.
    mean : Mean
        The constant of the prior.
    """
    kappa = state.eigenvalues[:, None]
    spectrum = (lam + (1.0 + pull) * kappa) / (lam + pull * kappa)
    n_points, n_features = state.targets.shape
    constants = state.constants(1.0 + pull, lam)
    proper = lam * pull * ((state.ones**2)[:, None] / (lam + pull * kappa)).sum(0)
    proper = np.broadcast_to(proper, n_features)
    squares = (state.targets**2 / spectrum).sum() - mean.gain(constants)
    volume = np.log(spectrum).sum() * (n_features / spectrum.shape[1])
    volume += mean.log_volume(constants, proper)
    count = n_points * n_features - mean.n_flat(proper)
    return float(-0.5 * (squares + volume + count * np.log(2.0 * np.pi)))


def log_leave_one_out(
    state: ExactPosterior, pull: Array, lam: float, mean: Mean
) -> float:
    """Σ_n log density of gradient n given the others (Rasmussen and Williams, 5.11).

    All features of a point are left out together. The mean of that density is what
    ``explain`` gives at x_n from the other points.

    Parameters
    ----------
    state, pull, lam, mean
        As for :func:`log_evidence`.
    """
    n_points, n_features = state.targets.shape
    if n_points < 2:
        raise InvalidInput("optimize: leaving one out needs at least two points")
    left, constants = left_out(state, pull, lam), state.constants(1.0 + pull, lam)
    cost = mean.left_out_cost(left, constants)
    return float(-0.5 * (cost + n_points * n_features * np.log(2.0 * np.pi)))


def left_out(state: ExactPosterior, pull: Array, lam: float) -> LeaveOneOut:
    """Residuals and leverages of every point in O(n² D), with no constant counted."""
    kappa, vectors = state.eigenvalues[:, None], state.basis.vectors
    inverse = (lam + pull * kappa) / (lam + (1.0 + pull) * kappa)
    slope = lam * state.ones[:, None] / (lam + (1.0 + pull) * kappa)
    return LeaveOneOut(
        residual=vectors @ (inverse * state.targets),
        leverage=np.square(vectors) @ inverse,
        slope=vectors @ slope,
    )
