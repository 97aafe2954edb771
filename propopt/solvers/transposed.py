"""Few points with very many features, such as images: points and features exchanged.

With V = Wᵀ, a loss over the points of W is one over the features of V and the other way
round, and sums of squares or of absolute values are what they were. Solvers that need
an eigenbasis over features (D³ time, D² memory) then need one over points.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import final

import numpy as np

from propopt._typing import Array
from propopt.curvature.quadratic import bounds_refusal
from propopt.losses import Program, PropertyLoss
from propopt.maps import Identity, LinearMap, OverFeatures, OverPoints
from propopt.penalties import Absolute, Penalty, Squared
from propopt.solvers.base import (
    Curve,
    Dispatcher,
    Measurement,
    Prepared,
    Solution,
    Solver,
)


@final
@dataclass(frozen=True)
class Transposed(Dispatcher):
    """Another solver, given the program with points and features exchanged.

    It takes losses of W itself, over points and over features, squared or absolute, and
    no bounds. Results are those of the program as it was given.

    Parameters
    ----------
    solver : Solver
        What solves the exchanged program.
    """

    solver: Solver

    @property
    def name(self) -> str:
        return f"{self.solver.name}, transposed"

    def take(self, program: Program) -> Solver | str:
        reason = bounds_refusal(program) or _loss_refusal(program.losses)
        if reason is not None:
            return reason
        inner = self.solver.take(exchanged(program))
        return inner if isinstance(inner, str) else Transposed(inner)

    def prepare(self, program: Program) -> Prepared:
        inner = self.solver.prepare(exchanged(program))
        return _ExchangedCurve(inner) if isinstance(inner, Curve) else _Exchanged(inner)


def _loss_refusal(losses: tuple[PropertyLoss, ...]) -> str | None:
    """Why a loss of W is none of Wᵀ; None if they all are."""
    for loss in losses:
        if not isinstance(loss.map, Identity | OverPoints | OverFeatures):
            return f"{loss.name} is not the same with points and features exchanged"
        if not isinstance(loss.penalty, Squared | Absolute):
            return f"{loss.name} treats points and features differently"
    return None


def exchanged(program: Program) -> Program:
    """The program of V = Wᵀ; :meth:`Transposed.take` tells whether there is one."""
    n_points, n_features = program.shape
    losses = tuple(map(_ExchangedLoss, program.losses))
    return Program(losses, sizes=(n_features, n_points))


@final
class _ExchangedLoss(PropertyLoss):
    """φ(A(Vᵀ) − T) as a loss of V."""

    def __init__(self, loss: PropertyLoss) -> None:
        self.name = loss.name
        self._loss = loss

    @property
    def map(self) -> LinearMap:
        match self._loss.map:
            case OverPoints(matrix=B, components=components):
                return OverFeatures(B, components)
            case OverFeatures(matrix=C, components=components):
                return OverPoints(C, components)
            case other:
                return other

    @property
    def penalty(self) -> Penalty:
        return self._loss.penalty

    @property
    def target(self) -> Array | float:
        target = self._loss.target
        return target.T.copy() if isinstance(target, np.ndarray) else target

    @property
    def n_points(self) -> int | None:
        return self._loss.n_features

    @property
    def n_features(self) -> int | None:
        return self._loss.n_points


class _Exchanged(Prepared):
    def __init__(self, inner: Prepared) -> None:
        self._inner = inner

    def solve(
        self, weights: Array, tolerance: float, start: Solution | None = None
    ) -> Solution:
        begin = None if start is None else _transposed(start)
        return _transposed(self._inner.solve(weights, tolerance, begin))


class _ExchangedCurve(Curve):
    def __init__(self, inner: Curve) -> None:
        self._inner = inner

    def solve(
        self, weights: Array, tolerance: float, start: Solution | None = None
    ) -> Solution:
        return _Exchanged(self._inner).solve(weights, tolerance, start)

    def measure(self, weights: Array, tolerance: float) -> Measurement:
        return self._inner.measure(weights, tolerance)


def _transposed(solution: Solution) -> Solution:
    duals = {name: dual.T for name, dual in solution.duals.items()}
    return replace(solution, W=np.ascontiguousarray(solution.W.T), duals=duals)
