"""Programs without the constants that no coupling sees.

Where F(W) = Σ c φ(A W) + Σ c φ(A' W − T), and A M = 0 for each A without a target, the
optimum for the targets T is M beside the optimum for T − A' M. With M near the targets
what is left is as small as it would be without an offset, and so is its rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TypeAlias, final

import numpy as np

from propopt._typing import Array, Attributions
from propopt.linear.components import Components
from propopt.losses import Bound, Program, PropertyLoss
from propopt.maps import (
    Identity,
    ImplicitOverPoints,
    LinearMap,
    OverFeatures,
    OverPoints,
    PerPoint,
)
from propopt.penalties import Penalty, Squared
from propopt.solvers.base import Prepared, Solution


LARGE = 1e3  # times what is left: constants that cost it three digits

Partitions: TypeAlias = tuple[Components, Components]


def prepare_centred(
    program: Program, prepare: Callable[[Program], Prepared]
) -> Prepared:
    """The program prepared without its constants, where some cost nothing."""
    parts = _free_parts(program)
    if parts is None:
        return prepare(program)
    M = _constants(program, parts)
    return _Centred(prepare(_without(program, M)), program.losses, M)


def _free_parts(program: Program) -> Partitions | None:
    """Parts of points and features on which constants cost nothing but by targets."""
    points, features = (Components(np.arange(size)) for size in program.shape)
    for loss in program.all_losses:
        match loss.map:
            case _ if loss.has_target:
                pass
            case OverPoints(components=own) | ImplicitOverPoints(components=own) if own:
                points = Components.joined([points, own])
            case OverFeatures(components=own) if own:
                features = Components.joined([features, own])
            case _:
                return None
    return points, features


def _constants(program: Program, parts: Partitions) -> Attributions:
    """M, near the targets."""
    points, features = parts
    for loss in program.all_losses:
        if loss.has_target and isinstance(loss.map, Identity):
            M = points.spread(points.firsts(np.asarray(loss.target)))
            return np.broadcast_to(
                features.spread(features.firsts(M.T)).T, program.shape
            )
    w = _least_squares(program, features)[features.labels]
    return np.broadcast_to(w, program.shape)


def _least_squares(program: Program, features: Components) -> Array:
    """The one u that fits the targets best, as the same explanation of all points."""
    spread = np.eye(features.count)[features.labels]
    gram, pull = np.zeros((features.count,) * 2), np.zeros(features.count)
    for designs, target in _regressions(program):
        Z = designs.reshape(-1, designs.shape[2]) @ spread
        gram += Z.T @ Z
        pull += Z.T @ target
    return np.asarray(np.linalg.lstsq(gram, pull)[0])


def _regressions(program: Program) -> Iterator[tuple[Array, Array]]:
    for loss in program.all_losses:
        if isinstance(loss.map, PerPoint) and loss.has_target:
            yield loss.map.designs, np.asarray(loss.target)


def _without(program: Program, M: Attributions) -> Program:
    losses = tuple(_shifted(loss, M) for loss in program.losses)
    bounds = tuple(Bound(_shifted(b.loss, M), b.limit) for b in program.bounds)
    return Program(losses, bounds, program.shape)


def _shifted(loss: PropertyLoss, M: Attributions) -> PropertyLoss:
    return _Shifted(loss, M) if loss.has_target else loss


@final
class _Shifted(PropertyLoss):
    """φ(A(W + M) − T) as a loss of W."""

    def __init__(self, loss: PropertyLoss, M: Attributions) -> None:
        self.name = loss.name
        self._loss = loss
        self._target = np.asarray(loss.target - loss.map(M))

    @property
    def map(self) -> LinearMap:
        return self._loss.map

    @property
    def penalty(self) -> Penalty:
        return self._loss.penalty

    @property
    def target(self) -> Array:
        return self._target


class _Centred(Prepared):
    def __init__(
        self, inner: Prepared, losses: tuple[PropertyLoss, ...], M: Attributions
    ) -> None:
        self._inner = inner
        self._losses = losses
        self._M = M

    def solve(
        self, weights: Array, tolerance: float, start: Solution | None = None
    ) -> Solution:
        begin = None if start is None else replace(start, W=start.W - self._M)
        solution = self._inner.solve(weights, tolerance, begin)
        duals = {**self._exact_duals(solution.W, weights), **solution.duals}
        return replace(solution, W=solution.W + self._M, duals=duals)

    def _exact_duals(self, W: Attributions, weights: Array) -> dict[str, Array]:
        """2c A(W) of squared losses, of which W + M forgets the last digits."""
        if np.abs(self._M).max() <= LARGE * np.abs(W).max():
            return {}
        return {
            loss.name: 2.0 * c * np.asarray(loss.map(W))
            for c, loss in zip(weights, self._losses, strict=True)
            if c > 0 and isinstance(loss.penalty, Squared) and not loss.has_target
            if isinstance(loss.map, OverPoints | OverFeatures)
        }
