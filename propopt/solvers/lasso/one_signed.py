"""Lassos in features whose attributions cannot change sign.

Without smoothness features are separate. If the gradients g of one have the same sign s
on each component, and all |g| > λ/2a, then for similarities ≥ 0

    argmin a‖w − g‖² + b wᵀP w + λ‖w‖₁ = argmin a‖w − g‖² + b wᵀP w  −  s λ/2a:

(a I + b P)⁻¹ a takes g to averages of g, which are beyond λ/2a too, and constants to
themselves. So sparsity moves such features and does nothing else: their curve is solved
beside no offset, to the last digit, and the lasso is left with the others.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from propopt._typing import Array, Attributions
from propopt.errors import Refused
from propopt.linear.components import Components
from propopt.losses import Program
from propopt.maps import ImplicitOverPoints, OverFeatures, OverPoints
from propopt.solvers.base import Prepared, Solution
from propopt.solvers.centred import prepare_centred
from propopt.solvers.curves.choice import choose_curve_solver


Columns = NDArray[np.bool_]


def averaging_parts(program: Program) -> Components | None:
    """The parts on which (a I + b P)⁻¹ a averages; None where it may not."""
    parts = Components(np.arange(program.shape[0]))
    for loss in program.losses:
        match loss.map:
            case OverPoints(matrix=np.ndarray()):  # of a kernel: weights below zero
                return None
            case OverPoints(components=own) | ImplicitOverPoints(components=own):
                if own is None:
                    return None
                parts = own
            case OverFeatures():
                return None
            case _:
                pass
    return parts


class OneSigned(Prepared):
    """A lasso program with such features apart.

    Parameters
    ----------
    program : Program
        One for which :func:`averaging_parts` are known.
    place : int
        Of its sparsity loss.
    G : array (N, D)
        Gradients.
    lasso : callable
        Makes the program of some features alone ready, from a mask (D,).
    """

    def __init__(
        self,
        program: Program,
        place: int,
        G: Attributions,
        lasso: Callable[[Columns], Prepared],
    ) -> None:
        self._program = program
        self._place = place
        self._signs = np.sign(G)
        self._reach = _reach(G, averaging_parts(program))
        self._lasso = lasso
        self._prepared: dict[bytes, Prepared] = {}

    def solve(
        self, weights: Array, tolerance: float, start: Solution | None = None
    ) -> Solution:
        a = sum(
            float(c)
            for c, loss in zip(weights, self._program.losses, strict=True)
            if loss.has_target
        )
        weight = float(weights[self._place])
        apart = 2.0 * a * self._reach > weight
        if not apart.any():
            return self._rest(apart).solve(weights, tolerance, start)
        smooth = self._smooth.solve(np.delete(weights, self._place), tolerance)
        name = self._program.losses[self._place].name
        W = smooth.W - self._signs * (weight / (2.0 * a))
        Y = weight * self._signs
        if apart.all():
            return Solution(W=W, duals={**smooth.duals, name: Y})
        begin = None if start is None else _columns(start, ~apart, name)
        rest = self._rest(apart).solve(weights, tolerance, begin)
        W[:, ~apart], Y[:, ~apart] = rest.W, rest.duals[name]
        return Solution(W=W, duals={name: Y})

    def _rest(self, apart: Columns) -> Prepared:
        key = apart.tobytes()
        if key not in self._prepared:
            self._prepared[key] = self._lasso(~apart)
        return self._prepared[key]

    @cached_property
    def _smooth(self) -> Prepared:
        losses = self._program.losses
        others = losses[: self._place] + losses[self._place + 1 :]
        program = Program(others, sizes=self._program.shape)
        solver = choose_curve_solver(program)
        if isinstance(solver, str):  # memory is refused where it is taken
            raise Refused(solver)
        return prepare_centred(program, solver.prepare)


def _reach(G: Attributions, parts: Components | None) -> Array:
    """For each feature the smallest |g|; zero where a component has both signs."""
    if parts is None:
        return np.zeros(G.shape[1])
    signs = np.sign(G)
    same = (signs == parts.spread(parts.firsts(signs))).all(axis=0)
    return np.where(same, np.abs(G).min(axis=0), 0.0)


def _columns(solution: Solution, kept: Columns, name: str) -> Solution:
    duals = {name: solution.duals[name][:, kept]} if name in solution.duals else {}
    return Solution(W=solution.W[:, kept], duals=duals)
