"""How faithful one can be at given other losses: enclosed from both sides.

For an explanation b let A(b) be its faithfulness loss and B(b) its other losses. The
most faithful W that is no worse in the others has the loss

    A* = min A(W)  subject to  B_i(W) <= B_i(b).

Every certified optimum for weights μ bounds it from below, since for all W

    A(W) + Σ μ_i B_i(W) >= lower(μ)  and so  A* >= lower(μ) − Σ μ_i B_i(b),

and mixtures of optima bound it from above, since losses are convex: if the mixture
Σ θ_k B_i(W_k) respects the limits, so does Σ θ_k W_k, and A* <= Σ θ_k A(W_k). The best
mixture is a linear program; its multipliers are the weights to solve for next (Dantzig
and Wolfe 1960), until both sides agree.

A limit of zero is met by no optimum under a finite weight, where constants are free: it
is the end of the front. The weight is then infinite, which is a program with a linear
constraint, for cvxpy; its optimum bounds A* from both sides.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.optimize as opt

from propopt.base.arrays import Array
from propopt.base.errors import SolverFailure
from propopt.losses import Objective, Program
from propopt.losses.restricted import Restriction
from propopt.results.explanation import Explanation
from propopt.solvers import Task, solve


_ROUNDS = 40
_TINY = np.finfo(float).tiny
_NOTHING = 1e-24
"""Smaller limits, relative to the largest B_i, are zero: A* changes by at most about
the root of it, which is rounding."""
_WIDE = 1e6
"""An optimum that exceeds a limit so many times has no share in a mixture: less than
1e-6, which the rounding of shares would spoil."""
_GROWTH = 10.0
_CLOSE, _SAME = 1e-2, 1e-7
"""Widths of an enclosure, relative to A(b): where b is beaten, and where it is not."""


@dataclass(frozen=True, kw_only=True)
class Enclosure:
    """The best A at the other losses of an explanation, beside its own A."""

    cost: float  # A(b)
    lower: float  # A* is between them
    upper: float

    @property
    def saved(self) -> float:
        """1 − A*/A(b), the share of its loss that b gave away; at least this."""
        return 1.0 - self.upper / self.cost if self.cost > 0.0 else 0.0


@dataclass(frozen=True, eq=False)
class _Optimum:
    """A vertex: the losses of an optimum, and the bound that comes with it.

    An infinite weight is that of a loss which is held at zero.
    """

    cost: float
    others: Array
    weights: Array
    lower: float


class Frontier:
    """Certified optima of an objective: its first loss is traded against the others."""

    def __init__(
        self,
        objective: Objective,  # its first loss is A; the others are the B_i
        # optima that are known already; more are added where they are needed
        optima: Iterable[Explanation],
        tolerance: float = 1e-6,  # certified relative gap of those that are added
    ) -> None:
        self._objective = objective
        self._tolerance = tolerance
        self._first, *others = objective.losses
        self._others = [loss.name for loss in others]
        zero = [loss.value_at_zero for loss in objective.losses]
        nothing = np.zeros(len(others))
        self._optima = [_Optimum(zero[0], np.array(zero[1:]), nothing, 0.0)]
        self._optima += [self._read(optimum) for optimum in optima]

    def enclose(self, losses: Mapping[str, float]) -> Enclosure:
        """Bounds on the best A at the other losses of an explanation."""
        cost = losses[self._first.name]
        if cost == 0.0:  # nothing is better
            return Enclosure(cost=0.0, lower=0.0, upper=0.0)
        limits = self._limits(losses)
        if not (limits.all() or self._has_end(limits == 0.0)):
            self._optima.append(self._optimum(np.where(limits > 0.0, 1.0, np.inf)))
        enclosure, weights = self._bounds(cost, limits)
        for _ in range(_ROUNDS):
            width = (enclosure.upper - enclosure.lower) / cost
            close = width <= (_CLOSE if enclosure.upper <= cost else _SAME)
            if close or (self._weights == weights).all(axis=1).any():
                break  # the same weights again would say nothing new
            self._optima.append(self._optimum(weights))
            enclosure, weights = self._bounds(cost, limits)
        return enclosure

    def _limits(self, losses: Mapping[str, float]) -> Array:
        """The other losses of an explanation, without what is rounding."""
        limits = np.array([losses[name] for name in self._others])
        return np.where(limits <= _NOTHING * self._reached.max(axis=0), 0.0, limits)

    def _has_end(self, held: Array) -> bool:
        """True if there is an optimum with just these losses held at zero."""
        return any((np.isinf(best.weights) == held).all() for best in self._optima)

    @property
    def _reached(self) -> Array:
        """B (K, I) of the optima at hand, without what is rounding."""
        others = np.array([optimum.others for optimum in self._optima])
        return np.where(others <= _NOTHING * others.max(axis=0), 0.0, others)

    @property
    def _weights(self) -> Array:
        """Their weights (K, I)."""
        return np.array([optimum.weights for optimum in self._optima])

    def _bounds(self, cost: float, limits: Array) -> tuple[Enclosure, Array]:
        """Both sides from the optima at hand, and the weights to try next."""
        lowers = np.array([optimum.lower for optimum in self._optima])
        prices = np.zeros_like(self._weights)
        np.multiply(self._weights, limits, out=prices, where=limits > 0.0)  # not ∞·0
        lower = max(float((lowers - prices.sum(axis=1)).max()), 0.0)
        upper, multipliers = self._best_mixture(cost, limits)
        enclosure = Enclosure(cost=cost, lower=lower, upper=upper)
        return enclosure, self._next_weights(limits, multipliers)

    def _next_weights(self, limits: Array, multipliers: Array) -> Array:
        """The multipliers; more than ever where no optimum comes near a limit."""
        used = self._weights[(self._weights > 0.0) & np.isfinite(self._weights)]
        smallest = 1e-2 * used.min() if used.size else 1e-6
        largest = used.max() if used.size else 1.0
        far = (self._reached > _WIDE * limits).any(axis=0) & (multipliers <= 0.0)
        weights = np.where(far, _GROWTH * largest, np.maximum(multipliers, smallest))
        return np.where(limits > 0.0, weights, np.inf)

    def _best_mixture(self, cost: float, limits: Array) -> tuple[float, Array]:
        """The least Σ θ_k A_k subject to Σ θ_k B_k <= limits, and its multipliers."""
        near = (self._reached <= _WIDE * limits).all(axis=1)
        costs = np.array([optimum.cost for optimum in self._optima])[near]
        units = np.maximum(limits, _TINY)
        mixture = opt.linprog(
            costs / cost,
            A_ub=(self._reached[near] / units).T,
            b_ub=limits / units,
            A_eq=np.ones((1, len(costs))),
            b_eq=[1.0],
            method="highs-ds",
            options={"primal_feasibility_tolerance": 1e-10, "presolve": False},
        )
        if mixture.x is None:
            raise SolverFailure(f"HIGHS found no mixture of optima: {mixture.message}")
        multipliers: Array = -mixture.ineqlin.marginals * cost / units
        return float(mixture.fun) * cost, multipliers

    def _optimum(self, weights: Array) -> _Optimum:
        """The optimum for these weights, beside a weight of one on A."""
        if np.isinf(weights).any():
            return self._end(weights)
        all_weights = np.append(1.0, weights)
        began = time.perf_counter()
        if self._task.has_curve(all_weights):
            return self._read(self._task.on_curve(all_weights, self._tolerance, began))
        solution = self._task.solve(all_weights, self._tolerance)
        best = self._task.explain(solution, all_weights, self._tolerance, began)
        return self._read(best)

    def _end(self, weights: Array) -> _Optimum:
        """The optimum with losses held at zero, those with an infinite weight."""
        terms = list(zip(weights, self._objective.losses[1:], strict=True))
        free = tuple((float(c), loss) for c, loss in terms if np.isfinite(c))
        held = [loss for c, loss in terms if np.isinf(c)]
        objective = Objective(((1.0, self._first), *free))
        shape = Program(self._objective.losses).shape
        zero = Restriction.to_zero(held, shape)
        W = zero.only
        if W is None:
            best = solve(
                objective,
                subject_to=lambda W: [loss.residual(W) == 0.0 for loss in held],
                tolerance=self._tolerance,
            )
            # which meets the constraints to rounding
            W = zero.nearest(best.attributions)
            lower = best.certificate.lower_bound if best.certificate else 0.0
        else:
            lower = objective.value(W)
        return _Optimum(
            cost=self._first.value_at(W),
            others=np.array([x.value_at(W) for x in self._objective.losses[1:]]),
            weights=weights,
            lower=lower,
        )

    @cached_property
    def _task(self) -> Task:
        return Task(Program(self._objective.losses))

    def _read(self, optimum: Explanation) -> _Optimum:
        unit = optimum.weights[self._first.name]
        bound = optimum.certificate.lower_bound if optimum.certificate else 0.0
        return _Optimum(
            cost=optimum.losses[self._first.name],
            others=np.array([optimum.losses[name] for name in self._others]),
            weights=np.array([optimum.weights[name] for name in self._others]) / unit,
            lower=bound / unit,
        )
