"""One bound on a squared loss: a scalar root on the exact curve.

On the curve of min F(W) + μ·loss(W) the loss falls as μ grows, so that "F as small as
possible with loss ≤ limit" is the one μ where loss(μ) = limit (or zero, where the bound
is not active). Each step of the root search costs one point of the curve, and no W.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
import scipy.optimize as opt

from propopt._typing import Array, Attributions
from propopt.errors import SolverFailure
from propopt.losses import Program
from propopt.maps import Identity
from propopt.solvers.base import Curve, Prepared, Solution, Solver
from propopt.solvers.curves import choose_curve_solver


DECADES = 40  # how far the multiplier is sought, each way from the scale of the weights


@final
@dataclass(frozen=True)
class Constrained(Solver):
    """One bound, by a root search on the curve of the spectral or Krylov solver.

    Parameters
    ----------
    curve : Curve, optional
        The curve itself, where it has been prepared for other limits already.
    """

    curve: Curve | None = None

    @property
    def name(self) -> str:
        return "constrained"

    def refusal(self, program: Program) -> str | None:
        if len(program.bounds) != 1:
            return f"it takes one bound, and there are {len(program.bounds)}"
        if program.bounds[0].limit == 0.0:
            return "a limit of zero needs an infinite multiplier"
        free = _with_bound_as_loss(program)
        return choose_curve_solver(free).refusal(free)

    def prepare(self, program: Program) -> Prepared:
        return _OnCurve(program, self.curve or self.curve_of(program))

    def curve_of(self, program: Program) -> Curve:
        """The curve of the objective and the bounded loss together."""
        free = _with_bound_as_loss(program)
        curve = choose_curve_solver(free).prepare(free)
        assert isinstance(curve, Curve), "spectral and krylov prepare curves"
        return curve


def _with_bound_as_loss(program: Program) -> Program:
    return Program(program.all_losses, (), program.shape)


class _OnCurve(Prepared):
    def __init__(self, program: Program, curve: Curve) -> None:
        self._curve = curve
        self._shape = program.shape
        self._bound = program.bounds[0]

    def solve(
        self, weights: Array, tolerance: float, start: Solution | None = None
    ) -> Solution:
        del start
        # W solves a linear system: its losses err by the root of the objective's excess
        fine = tolerance**2
        limit = self._bound.limit * (1.0 - 0.01 * tolerance)
        if self._free_loss(weights, fine) <= limit:
            return Solution(
                W=self._free_attributions(weights, fine), multipliers=(0.0,)
            )
        multiplier = self._root(weights, limit, fine)
        found = self._curve.solve(np.append(weights, multiplier), fine)
        return Solution(W=found.W, multipliers=(multiplier,))

    def _root(self, weights: Array, limit: float, tolerance: float) -> float:
        def excess(log_multiplier: float) -> float:
            point = np.append(weights, np.exp(log_multiplier))
            loss = self._curve.measure(point, tolerance).losses[-1]
            return float(np.log(max(loss, 1e-300) / limit))

        low = high = float(np.log(weights.max()))
        step = np.log(10.0)
        for _ in range(DECADES):
            if excess(high) <= 0.0:
                break
            low, high = high, high + step
        else:
            raise SolverFailure(
                f"no multiplier up to {np.exp(high):.0e} meets {self._bound}"
            )
        while low == high or excess(low) <= 0.0:
            low -= step
        return float(np.exp(opt.brentq(excess, low, high, xtol=1e-14, rtol=1e-14)))

    def _free_loss(self, weights: Array, tolerance: float) -> float:
        """The bounded loss where the bound is left out."""
        if self._is_faithfulness:
            return self._bound.loss.value(np.zeros(self._shape))
        return float(self._curve.measure(np.append(weights, 0.0), tolerance).losses[-1])

    def _free_attributions(self, weights: Array, tolerance: float) -> Attributions:
        if self._is_faithfulness:  # nothing else ties W to the function
            return np.zeros(self._shape)
        return self._curve.solve(np.append(weights, 0.0), tolerance).W

    @property
    def _is_faithfulness(self) -> bool:
        return isinstance(self._bound.loss.map, Identity)
