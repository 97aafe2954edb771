"""Newton's method on the non-zeros of a lasso, with conjugate gradients.

Minimises F(W) = ½⟨W, HW⟩ − 2⟨G, W⟩ + ‖G‖² + λ‖W‖₁ for H = 2(I + βP + γQ) ≽ 2I, the
form of :mod:`propopt.solvers.lasso.base`:

1. A gradient step in the metric M ≽ H, V = soft(W − M⁻¹∇q(W), λM⁻¹), tells which
   attributions are not zero, A, and their signs s.
2. On these, F is quadratic: H_AA x = (2G − λs)_A by preconditioned conjugate gradients,
   as exactly as the step deserves.
3. W moves towards x as far as F falls: F is piecewise quadratic on the way, and its
   minimum is found exactly. Where x keeps all signs, that is x itself. Where it does
   not, x with the entries of wrong sign at zero is tried too. Where F does not fall
   enough, W moves to V, where it does.

Once A and s are those of the optimum, x is the optimum. F falls at every step by a
share of what a gradient step guarantees, so that all of this converges from anywhere;
from the optimum for weights nearby it takes two or three steps.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from propopt._typing import Array
from propopt.curvature.quadratic import Quadratic
from propopt.linear.conjugate_gradients import Action, conjugate_gradients
from propopt.losses.effortless import objective_scale
from propopt.solvers.lasso.base import (
    LassoMethod,
    LassoOptimum,
    LassoProblem,
    best_dual,
    proven_gap,
)
from propopt.solvers.lasso.curvature import Couplings, Curvature
from propopt.threads import few_threads


_MOST_STEPS = 300
_INNER_STEPS = 3_000
_FORCING = 0.2  # the residual that is left of a Newton system
_DESCENT = 0.05  # of the decrease that a gradient step guarantees


@final
class NewtonLasso(LassoMethod):
    """Newton's method for the target G and the couplings P and Q."""

    def __init__(self, quadratic: Quadratic) -> None:
        self._G = quadratic.G
        self._couplings = Couplings.of(quadratic)

    def minimum(self, lasso: LassoProblem, start: LassoOptimum | None) -> LassoOptimum:
        H = self._couplings.curvature(lasso.beta, lasso.gamma)
        G = H.stored(self._G)
        W = _first(H, G, lasso.weight) if start is None else H.stored(start.W)
        objective = _Objective(H, G, lasso.weight)
        with few_threads(self._couplings.dense_size):
            point = _descend(objective, W, lasso.tolerance)
        Y = best_dual(point.W, point.slope, lasso.weight)
        return LassoOptimum(
            W=H.restored(point.W),
            Y=H.restored(Y),
            gap=objective.gap(point) / objective.scale(point),
        )


def _first(H: Curvature, G: Array, weight: float) -> Array:
    """Where to start: at the optimum for λ = 0, if it is at hand, less what λ takes."""
    guess = H.guess(2.0 * G)
    return np.zeros_like(G) if guess is None else _soft(guess, np.array(0.5 * weight))


@dataclass(frozen=True, eq=False)
class _Point:
    """W and the slope ∇q(W)."""

    W: Array
    slope: Array


@dataclass(frozen=True, eq=False)
class _Objective:
    """F, with steps that make it smaller."""

    H: Curvature
    G: Array
    weight: float

    def at(self, W: Array) -> _Point:
        """The point W, with ∇q(W) = HW − 2G."""
        slope = self.H.product(W)
        slope -= self.G
        slope -= self.G
        return _Point(W, slope)

    def scale(self, point: _Point) -> float:
        """What the gap at W is relative to."""
        zero = float(np.vdot(self.G, self.G))
        # ½⟨W, HW⟩ − 2⟨G, W⟩ + ‖G‖² = ½⟨W, ∇q(W)⟩ − ⟨G, W⟩ + ‖G‖²
        smooth = 0.5 * float(np.vdot(point.W, point.slope)) + zero
        smooth -= float(np.vdot(self.G, point.W))
        value = smooth + self.weight * float(np.abs(point.W).sum())
        return objective_scale(value, zero)

    def gap(self, point: _Point) -> float:
        """A proven bound of F(W) − min F."""
        return proven_gap(point.W, point.slope, self.weight)

    def change(self, point: _Point, other: _Point) -> float:
        """F(other) − F(point) = ½⟨∇q + ∇q', W' − W⟩ + λ(‖W'‖₁ − ‖W‖₁)."""
        rise = np.abs(other.W)
        rise -= np.abs(point.W)
        smooth = float(np.vdot(point.slope + other.slope, other.W - point.W))
        return 0.5 * smooth + self.weight * float(rise.sum())

    def lower(self, point: _Point, goal: float) -> _Point | None:
        """A point with a smaller objective; None if rounding allows none."""
        bound = self.H.bound
        gradient_step = _soft(point.W - point.slope / bound, self.weight / bound)
        signs = np.sign(gradient_step)
        gradient_step -= point.W
        needed = 0.5 * _DESCENT * float(np.vdot(gradient_step, bound * gradient_step))
        lower = self._newton(point, signs, goal)
        if self.change(point, lower) <= -needed:
            return lower
        gradient_step += point.W
        lower = self.at(gradient_step)
        return lower if self.change(point, lower) < 0.0 else None

    def _newton(self, point: _Point, signs: Array, goal: float) -> _Point:
        """The better of two ways to x: as far as F falls, or all the way and cut."""
        end = self.at(self._orthant_minimum(point, signs, goal))
        crossing = end.W * signs < 0.0
        if not crossing.any():
            return self._along(point, end)
        cut = self.at(np.where(crossing, 0.0, end.W))
        part = self._along(point, end)
        return min(part, cut, key=lambda other: self.change(point, other))

    def _orthant_minimum(self, point: _Point, signs: Array, goal: float) -> Array:
        """The x with H_AA x_A ≈ (2G − λs)_A that is zero where the sign s is."""
        active = np.abs(signs)
        x = np.where(point.W * signs > 0.0, point.W, 0.0)
        start = point if np.array_equal(x, point.W) else self.at(x)
        residual = (-self.weight) * signs - start.slope
        residual *= active
        square = float(np.vdot(residual, residual))
        enough = max(_FORCING**2 * square, goal)
        conjugate_gradients(
            _masked(self.H.product, active),
            x,
            residual,
            precondition=_masked(self.H.precondition, active),
            most_steps=_INNER_STEPS,
            is_enough=lambda _, R: float(np.vdot(R, R)) <= enough,
        )
        return x

    def _along(self, point: _Point, end: _Point) -> _Point:
        """Where F is smallest between a point and an end, which is overwritten."""
        share = _line_minimum(point, end, self.weight)
        if share == 1.0:
            return end
        for moved, origin in ((end.W, point.W), (end.slope, point.slope)):
            moved -= origin
            moved *= share
            moved += origin
        return end


def _descend(objective: _Objective, W: Array, tolerance: float) -> _Point:
    """A minimiser to a relative gap, or the best that rounding and steps allow."""
    point = best = objective.at(W)
    smallest = np.inf
    for _ in range(_MOST_STEPS):
        gap, scale = objective.gap(point), objective.scale(point)
        if gap < smallest:
            smallest, best = gap, point
        if gap <= 0.5 * tolerance * scale:
            break
        lower = objective.lower(point, tolerance * scale)
        if lower is None:
            break
        point = lower
    return best


def _masked(action: Action, mask: Array) -> Action:
    """The action on the entries of a mask of zeros and ones, into the same."""

    def masked(V: Array) -> Array:
        image = action(V)
        image *= mask
        return image

    return masked


def _line_minimum(point: _Point, end: _Point, weight: float) -> float:
    """The t in [0, 1] with the smallest F(W + t(x − W)).

    The derivative rises linearly, and jumps by 2λ|x − W| where an entry changes sign.
    """
    W, x = point.W, end.W
    step = x - W
    crossing = W * x < 0.0
    signs = np.where(W == 0.0, np.sign(x), np.sign(W))
    initial = float(np.vdot(point.slope, step))
    rate = float(np.vdot(end.slope, step)) - initial
    initial += weight * float(np.vdot(signs, step))
    breaks = W[crossing] / (W[crossing] - x[crossing])
    order = np.argsort(breaks)
    jumps = 2.0 * weight * np.abs(step[crossing])[order]
    levels = initial + np.concatenate([[0.0], np.cumsum(jumps)])
    ends = np.concatenate([breaks[order], [1.0]])
    rising = np.flatnonzero(levels + rate * ends >= 0.0)
    if len(rising) == 0:
        return 1.0
    piece = rising[0]
    first = float(ends[piece - 1]) if piece else 0.0
    root = -levels[piece] / rate if rate > 0.0 else first
    return float(np.clip(root, first, ends[piece]))


def _soft(V: Array, threshold: Array) -> Array:
    """sign(V)·max(|V| − threshold, 0), with exact zeros; overwrites V."""
    V -= np.clip(V, -threshold, threshold)
    return V
