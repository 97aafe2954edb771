"""One bound on a squared loss: a scalar root on the exact curve.

On the curve of min F(W) + μ·loss(W) the loss falls as μ grows, from what it is at the
free optimum (μ = 0) to zero, so that "F as small as possible with loss ≤ limit" is the
one μ where loss(μ) = limit, or zero, where the bound is not active. Each step of the
root search costs one point of the curve, and no W. Its equation is

    log loss/(free − loss) = log limit/(free − limit),

nearly linear in log μ at both ends: free − loss goes to zero with μ, loss with 1/μ².

Where the bound is on faithfulness, F alone decides on the free optimum: it is what is
nearest to the gradients among the W that cost nothing, means over the components.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import final

import numpy as np
import scipy.optimize as opt

from propopt._typing import Array, Attributions
from propopt.errors import Refused, SolverFailure
from propopt.losses import Bound, Program
from propopt.losses.restricted import Restriction, has_known_zeros
from propopt.maps import Identity
from propopt.solvers.base import Curve, Dispatcher, Prepared, Solution, Solver
from propopt.solvers.curves.choice import choose_curve_solver


MARGIN = 0.01  # of the tolerance, by which the loss is kept below its limit
SLACK = 0.3  # of the tolerance, by which the free optimum may exceed the limit


@final
@dataclass(frozen=True)
class OneBound(Dispatcher):
    """One bound, by a root search on the curve of the spectral or Krylov solver.

    Parameters
    ----------
    curve : Curve, optional
        The curve itself, where it has been prepared for other limits already.
    solver : Solver, optional
        What prepares the curve, where that has been chosen already.
    """

    curve: Curve | None = None
    solver: Solver | None = None

    @property
    def name(self) -> str:
        return "one_bound"

    def take(self, program: Program) -> Solver | str:
        reason = _bound_refusal(program)
        if reason is not None:
            return reason
        if self.curve is not None:
            return self
        solver = choose_curve_solver(_with_bound_as_loss(program))
        return solver if isinstance(solver, str) else replace(self, solver=solver)

    def prepare(self, program: Program) -> Prepared:
        return _OnCurve(program, self.curve or self.curve_of(program))

    def curve_of(self, program: Program) -> Curve:
        """The curve of the objective and the bounded loss together."""
        free = _with_bound_as_loss(program)
        solver = self.solver or choose_curve_solver(free)
        if isinstance(solver, str):
            raise Refused(solver)
        curve = solver.prepare(free)
        assert isinstance(curve, Curve), "spectral and krylov prepare curves"
        return curve


def _bound_refusal(program: Program) -> str | None:
    """Why the bounds are not one above zero on a loss whose curve may be known."""
    if len(program.bounds) != 1:
        return f"it takes one bound, and there are {len(program.bounds)}"
    bound = program.bounds[0]
    if bound.limit == 0.0:
        return "a limit of zero needs an infinite multiplier"
    if _is_faithfulness(bound):
        for loss in program.losses:
            if not has_known_zeros(loss):
                return f"what costs no {loss.name} is not known"
    return None


def _with_bound_as_loss(program: Program) -> Program:
    return Program(program.all_losses, (), program.shape)


class _OnCurve(Prepared):
    def __init__(self, program: Program, curve: Curve) -> None:
        self._curve = curve
        self._losses = program.losses
        self._shape = program.shape
        self._bound = program.bounds[0]

    def solve(
        self, weights: Array, tolerance: float, start: Solution | None = None
    ) -> Solution:
        del start
        # W solves a linear system: its losses err by the root of the objective's excess
        fine = tolerance**2
        limit = self._bound.limit
        free = self._free_loss(weights, fine)
        if free <= limit * (1.0 + SLACK * tolerance):
            W = self._free_attributions(weights, fine)
            return Solution(W=W, multipliers=(0.0,))
        limit -= MARGIN * tolerance * min(limit, free - limit)
        multiplier = self._root(weights, limit, free, fine)
        solution = self._curve.solve(np.append(weights, multiplier), fine)
        return Solution(W=solution.W, multipliers=(multiplier,))

    def _root(
        self, weights: Array, limit: float, free: float, tolerance: float
    ) -> float:
        tiny = np.finfo(float).tiny

        def height(log_multiplier: float) -> float:
            point = np.append(weights, np.exp(log_multiplier))
            loss = max(self._curve.measure(point, tolerance).losses[-1], tiny)
            return float(np.log(loss / max(free - loss, tiny)) - level)

        level = float(np.log(limit / (free - limit)))
        low, high = self._enclosed(height, float(np.log(weights.max())))
        return float(np.exp(opt.brentq(height, low, high, xtol=1e-14, rtol=1e-14)))

    def _enclosed(
        self, height: Callable[[float], float], middle: float
    ) -> tuple[float, float]:
        """Logarithms of a multiplier that is too small and of one that is too large."""
        rises = height(middle) > 0.0
        near = middle
        for decades in np.cumsum(np.arange(1, 11)):
            far = middle + (1.0 if rises else -1.0) * decades * np.log(10.0)
            if (height(far) > 0.0) != rises:
                return (near, far) if rises else (far, near)
            near = far
        raise SolverFailure(
            f"no multiplier up to {np.exp(near):.0e} meets {self._bound}"
        )

    def _free_loss(self, weights: Array, tolerance: float) -> float:
        """The bounded loss where the bound is left out."""
        if _is_faithfulness(self._bound):
            return self._bound.loss.value_at(
                self._free_attributions(weights, tolerance)
            )
        return float(self._curve.measure(np.append(weights, 0.0), tolerance).losses[-1])

    def _free_attributions(self, weights: Array, tolerance: float) -> Attributions:
        if not _is_faithfulness(self._bound):
            return self._curve.solve(np.append(weights, 0.0), tolerance).W
        costly = [loss for loss, c in zip(self._losses, weights, strict=True) if c > 0]
        costless = Restriction.to_zero(costly, self._shape)
        if costless.only is not None:
            return costless.only
        G = np.broadcast_to(self._bound.loss.target, self._shape)
        return costless.expanded(costless.coordinates(G))


def _is_faithfulness(bound: Bound) -> bool:
    return isinstance(bound.loss.map, Identity)
