"""The prior, the posterior for any weights, and optimal hyper-parameters."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal, TypeAlias, final

import numpy as np
from scipy.optimize import minimize

from propopt.base.arrays import Array, Attributions, Mask, Points
from propopt.base.checks import read_nonnegative
from propopt.base.errors import EdgeWarning, InvalidInput
from propopt.base.resources import BATCH_BUDGET
from propopt.inductive.bases import FeatureBasis, IndependentFeatures
from propopt.inductive.inputs import Candidates, InducingRule, PointKernel
from propopt.inductive.means import Mean, NormalLaws
from propopt.inductive.posterior import (
    ExactPosterior,
    Posterior,
    Queries,
    SparsePosterior,
)


# ---- Priors and posteriors


WeightPair: TypeAlias = tuple[float, float]
"""Weights of robustness (> 0) and of smoothness (>= 0)."""


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class GaussianProcess:
    """A conditioned prior, for any weights."""

    state: Posterior  # inducing inputs and gradients, in one eigenbasis
    basis: FeatureBasis  # V and ς
    mean: Mean  # the constant of the prior

    def with_weights(
        self, weights: WeightPair
    ) -> Callable[[Queries, Array | None], NormalLaws]:
        """The posterior for one pair of weights, in O(r·D)."""
        robustness, smoothness = weights
        lam = 2.0 * robustness
        pull = smoothing(self.basis, smoothness)
        p = 1.0 + pull  # the precision of the observations
        state = self.state
        state.require_condition(p, lam)
        constants = state.constants(p, lam)

        def law(queries: Queries, rotated: Array | None) -> NormalLaws:
            kriging = self.mean.predict(  # without smoothness at new points
                state.weigh_targets(queries[0], p, lam),
                state.variance(queries, p, lam),
                state.slope(queries, p, lam),
                constants,
            )
            if rotated is None:
                return kriging.observe(pull, np.zeros((1, 1)))
            return kriging.observe(p, rotated)

        return law

    def explanations(
        self,
        points: Points,
        rotated: Array | None,
        weights: Sequence[WeightPair],
        return_std: bool,
    ) -> list[tuple[Attributions, Mapping[str, Array]]]:
        """Attributions and details of new points for each pair of weights."""
        shape = len(points), self.basis.n_features
        W = [np.empty(shape) for _ in weights]
        spread = [np.empty(shape) for _ in weights if return_std]
        for rows, n, law in self._laws(points, rotated, weights):
            W[n][rows] = self.basis.unrotate(law.mean)
            if return_std:
                spread[n][rows] = law.deviations(self.basis)
        details = [{"standard_deviation": s} for s in spread] or [{} for _ in weights]
        return list(zip(W, details, strict=True))

    def draws(
        self,
        points: Points,
        rotated: Array | None,
        weights: WeightPair,
        n_samples: int,
        rng: np.random.Generator,
    ) -> Array:
        """Samples for one pair of weights, shape (n_samples, m, D)."""
        samples = np.empty((n_samples, len(points), self.basis.n_features))
        for rows, _, law in self._laws(points, rotated, [weights], n_samples):
            samples[:, rows] = law.draw(self.basis, n_samples, rng)
        return samples

    def _laws(
        self,
        points: Points,
        rotated: Array | None,
        weights: Sequence[WeightPair],
        copies: int = 1,
    ) -> Iterator[tuple[slice, int, NormalLaws]]:
        """The distribution of each block of new points for each pair of weights."""
        laws = [self.with_weights(pair) for pair in weights]
        n_numbers = max(points.shape[1], self.basis.n_features)
        width = max(len(self.state.inducing), 2 * n_numbers * copies)
        for rows in BATCH_BUDGET.blocks(len(points), 8 * width):
            queries = self.state.queries(points[rows])
            gradients = None if rotated is None else rotated[rows]
            for n, law in enumerate(laws):
                yield rows, n, law(queries, gradients)


def smoothing(basis: FeatureBasis, smoothness: float) -> Array:
    """w_s ς_j, as one number if it is equal for all features."""
    pull = smoothness * basis.eigenvalues
    return pull[:1] if (pull == pull[0]).all() else pull


def read_weights(weights: object, basis: FeatureBasis) -> WeightPair:
    """A validated pair of weights (robustness, smoothness)."""
    if not isinstance(weights, Sequence | np.ndarray) or len(weights) != 2:
        raise InvalidInput(
            f"weights: expected a pair (robustness, smoothness), got {weights!r}"
        )
    robust = read_nonnegative(weights[0], "robustness")
    if robust == 0.0:
        raise InvalidInput(
            "robustness: expected a weight > 0; without it, observed gradients do not "
            "determine explanations of new inputs"
        )
    smooth = read_nonnegative(weights[1], "smoothness")
    if smooth > 0 and isinstance(basis, IndependentFeatures):
        raise InvalidInput(
            f"smoothness: a weight of {smooth:g} needs similarities of features; give "
            "features=a graph, or a kernel matrix of the features"
        )
    return robust, smooth


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class Prior:
    """The inputs of a fit: observations, kernel and weights."""

    points: Points  # (n, C): coordinates of the inputs
    rotated: Attributions  # (n, D): rotated gradients
    basis: FeatureBasis  # V and ς
    mean: Mean  # the constant of the prior
    kernel: PointKernel  # k
    weights: WeightPair  # of robustness and of smoothness

    @property
    def lam(self) -> float:
        """The noise λ = 2 w_r in units of the kernel."""
        return 2.0 * self.weights[0]

    @property
    def pull(self) -> Array:
        """The shrinkage w_s ς_j by smoothness, shape (D,) or (1,)."""
        return smoothing(self.basis, self.weights[1])

    def exact(self) -> ExactPosterior:
        """The posterior given all observations."""
        return ExactPosterior.of(self.kernel, self.points, self.rotated)

    def condition(
        self, rule: InducingRule | None, rng: np.random.Generator
    ) -> GaussianProcess:
        """The posterior given all observations, or by inducing inputs."""
        state: Posterior
        if rule is None:
            state = self.exact()
        else:
            noise = self.lam / (1.0 + float(self.pull.max()))
            X = self.points
            kernel = self.kernel
            Z = rule.select(Candidates(X=X, kernel=kernel, noise=noise, rng=rng))
            state = SparsePosterior.of(kernel, X, self.rotated, Z)
        return GaussianProcess(state=state, basis=self.basis, mean=self.mean)


# ---- Optimal hyper-parameters and weights


CriterionName: TypeAlias = Literal["marginal_likelihood"]

_WEIGHT_RANGE = (1e-8, 1e8)
"""Search range of weights, extended to the starting values."""

_N_RESTARTS = 2
_N_DRAWS = 16
_N_WEIGHTS = 9
"""Additional searches; random kernels for their starts; weights for each kernel."""


_SAME = 0.01
"""Nats by which an optimum at an edge must be better than another."""

_AROUND = np.log(30.0)
"""Log range of random kernels around the given one."""


def tuned(prior: Prior) -> Prior:
    """The best prior of three searches.

    They vary log weights (a weight of zero for smoothness is fixed) and the log
    hyper-parameters of the kernel; each step of these is an eigendecomposition. Far
    from the optimum, small steps do not change the criterion. So two searches start
    from the best of random kernels around the given one, each with the best of some
    weights.
    """
    n_weights = 1 + (prior.weights[1] > 0)
    logs = np.log(prior.weights[:n_weights])
    low, high = np.log(_WEIGHT_RANGE)
    limits = np.column_stack([np.minimum(low, logs), np.maximum(high, logs)])
    bounds = np.concatenate([limits, prior.kernel.bounds])
    latest: dict[bytes, ExactPosterior] = {}

    def at(z: Array) -> Prior:
        smoothness = float(np.exp(z[1])) if n_weights == 2 else 0.0
        kernel = prior.kernel.at(z[n_weights:])
        return replace(prior, kernel=kernel, weights=(float(np.exp(z[0])), smoothness))

    def cost(z: Array) -> float:
        tried = at(z)
        key = tried.kernel.theta.tobytes()
        if key not in latest:
            latest.clear()
            latest[key] = tried.exact()
        value = log_evidence(latest[key], tried.pull, tried.lam, tried.mean)
        return -value / tried.rotated.size

    start = np.concatenate([logs, prior.kernel.theta])
    search = partial(minimize, jac="3-point", bounds=bounds, method="L-BFGS-B")
    others = _screened(cost, prior.kernel.theta, bounds, n_weights)
    optima = [search(cost, z) for z in (start, *others)]
    margin = _SAME / prior.rotated.size
    best = min(optima, key=lambda end: end.fun + margin * at_edge(end.x, bounds).any())
    edges = at_edge(best.x, bounds)
    if edges.any():
        names = ["robustness", "smoothness"][:n_weights]
        names += ["a parameter of the kernel"] * (len(edges) - n_weights)
        index = int(edges.argmax())
        warnings.warn(
            f"optimize: {names[index]} ended at {np.exp(best.x[index]):.3g}, an edge "
            f"of its range; {len(optima)} searches found nothing better. The gradients "
            "may not determine it: use another start, or fix it without optimize",
            EdgeWarning,
            stacklevel=4,
        )
    return at(best.x)


def at_edge(z: Array, bounds: Array) -> Mask:
    """Mask of log parameters at an end of their range, up to a thousandth."""
    low, high = bounds.T
    return (high > low) & ((z - low < 1e-3) | (high - z < 1e-3))


def _screened(
    cost: Callable[[Array], float], theta: Array, bounds: Array, n_weights: int
) -> list[Array]:
    """Other starts: the best of random kernels around the given one, and weights."""
    grids = [
        np.linspace(low, high, _N_WEIGHTS + 2)[1:-1] for low, high in bounds[:n_weights]
    ]
    weights = np.stack(np.meshgrid(*grids), axis=-1).reshape(-1, n_weights)
    rng = np.random.default_rng(0)
    steps = rng.uniform(-_AROUND, _AROUND, (_N_DRAWS, len(theta)))
    best = []
    for kernel in np.clip(theta + steps, *bounds[n_weights:].T):
        tried = [np.concatenate([pair, kernel]) for pair in weights]
        best.append(min((cost(z), tuple(z)) for z in tried))
    return [np.array(z) for _, z in sorted(best)[:_N_RESTARTS]]


def log_evidence(state: ExactPosterior, pull: Array, lam: float, mean: Mean) -> float:
    """Log density of the gradients under the prior, summed over features.

    A constant that smoothness ignores has a flat prior of density one. This is the
    restricted likelihood, up to a number that depends only on n and D.
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
