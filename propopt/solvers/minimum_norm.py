"""Squared losses that leave W undetermined: the smallest of all minimisers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
import scipy.sparse as sp
import scipy.sparse.linalg as spla

from propopt._typing import Array
from propopt.curvature.quadratic import all_squared_refusal, bounds_refusal
from propopt.losses import Program
from propopt.solvers.base import Prepared, Solution, Solver


@final
@dataclass(frozen=True)
class MinimumNorm(Solver):
    """Of all minimisers of squared losses the one with the smallest ‖W‖, by LSMR."""

    @property
    def name(self) -> str:
        return "minimum_norm"

    def refusal(self, program: Program) -> str | None:
        return bounds_refusal(program) or all_squared_refusal(program.losses)

    def prepare(self, program: Program) -> Prepared:
        return _LeastSquares(program)


class _LeastSquares(Prepared):
    def __init__(self, program: Program) -> None:
        self._shape = program.shape
        self._flats = [loss.map.flat(program.shape) for loss in program.losses]
        self._targets = [
            np.broadcast_to(np.ravel(loss.target), flat.shape[0])
            for loss, flat in zip(program.losses, self._flats, strict=True)
        ]

    def solve(
        self, weights: Array, tolerance: float, start: Solution | None = None
    ) -> Solution:
        del tolerance, start  # started at zero, LSMR ends at the smallest solution
        roots = np.sqrt(weights)
        A = sp.vstack([r * flat for r, flat in zip(roots, self._flats, strict=True)])
        b = np.concatenate([r * t for r, t in zip(roots, self._targets, strict=True)])
        limit = 20 * max(A.shape)
        w = spla.lsmr(A, b, atol=1e-15, btol=1e-15, conlim=0.0, maxiter=limit)[0]
        return Solution(W=w.reshape(self._shape))
