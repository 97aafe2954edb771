"""Reductions to other coordinates, in which a program is easier to solve.

Where F(W) = Σ c φ(A W) + Σ c φ(A' W − T), and A M = 0 for each A without a target, the
optimum for the targets T is M plus the optimum for T − A' M. With M close to the
targets the remainder is as small as it would be without an offset, as is its rounding.

Few points with very many features, such as images: points and features exchanged. With
V = Wᵀ, a loss over the points of W is one over the features of V and the other way
round, and sums of squares or of absolute values are what they were. Solvers that need
an eigenbasis over features (D³ time, D² memory) then need one over points.

Rows with given sums leave W = V + z uᵀ (:mod:`propopt.losses.completeness`), and the
program of V has no constraint: curves and sweeps cost the same as without sums. Where a
loss over features depends on u, ``splitting`` takes the program with its constraint.

Losses over single entries are losses over the points of a smaller program, with an
entry for each point (:mod:`propopt.losses.restricted`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeAlias, cast, final

import numpy as np

from propopt.base.arrays import Array, Attributions
from propopt.base.checks import largest_entry
from propopt.base.text import Reason
from propopt.losses import Program, PropertyLoss
from propopt.losses.algebra import _RecastLoss, positive_terms
from propopt.losses.completeness import OffAxis, Totals
from propopt.losses.linear_algebra import Components
from propopt.losses.maps import (
    Absolute,
    Coupling,
    Identity,
    ImplicitOverPoints,
    OverFeatures,
    OverPoints,
    PerPoint,
    Squared,
)
from propopt.losses.restricted import (
    Support,
    entries_refusal,
    offset_of,
    without_offset,
)
from propopt.proofs.curvature import bounds_refusal
from propopt.solvers.solver import (
    Prepared,
    PreparedFunction,
    PreparedReduction,
    Reduction,
    Solution,
)


# ---- Programs without the constants that no coupling penalises


LARGE = 1e3  # constants this many times the remainder cost it three digits

Partitions: TypeAlias = tuple[Components, Components]


def prepare_centred(
    program: Program, prepare: Callable[[Program], Prepared]
) -> Prepared:
    """Prepare the program without the constants that cost nothing."""
    parts = _free_parts(program)
    if parts is None:
        return prepare(program)
    M = _constants(program, parts)
    inner = prepare(without_offset(program, M))

    def solve(weights: Array, tolerance: float, start: Solution | None) -> Solution:
        begin = None if start is None else replace(start, W=start.W - M)
        solution = inner.solve(weights, tolerance, begin)
        duals = _exact_duals(program, solution.W, M, weights)
        return replace(solution, W=solution.W + M, duals={**duals, **solution.duals})

    return PreparedFunction(solve)


def _exact_duals(
    program: Program, W: Attributions, M: Attributions, weights: Array
) -> dict[str, Array]:
    """Duals 2c A(W) of squared losses, whose last digits W + M loses."""
    if largest_entry(M) <= LARGE * largest_entry(W):
        return {}
    return {
        loss.name: 2.0 * c * loss.map(W)
        for c, loss in positive_terms(weights, program.losses)
        if loss.is_squared and not loss.has_target
        if isinstance(loss.map, OverPoints | OverFeatures)
    }


def _free_parts(program: Program) -> Partitions | None:
    """Parts of points and features on which only targets penalise constants."""
    points, features = (Components(np.arange(size)) for size in program.shape)
    for loss in program.all_losses:
        match loss.map:
            case _ if loss.has_target:
                pass
            case (
                OverPoints(components=parts) | ImplicitOverPoints(components=parts)
            ) if parts:
                points = Components.joined([points, parts])
            case OverFeatures(components=parts) if parts:
                features = Components.joined([features, parts])
            case _:
                return None
    return points, features


def _constants(program: Program, parts: Partitions) -> Attributions:
    """Constants M close to the targets."""
    points, features = parts
    for loss in program.all_losses:
        if loss.has_target and loss.is_direct:
            M = points.constants(np.asarray(loss.target))
            return np.broadcast_to(features.constants(M.T).T, program.shape)
    w = _least_squares(program, features)[features.labels]
    return np.broadcast_to(w, program.shape)


def _least_squares(program: Program, features: Components) -> Array:
    """The row u that fits all targets best as one explanation of all points."""
    spread = np.eye(features.count)[features.labels]
    gram = np.zeros((features.count,) * 2)
    pull = np.zeros(features.count)
    for loss in program.all_losses:
        if isinstance(loss.map, PerPoint) and loss.has_target:
            designs = loss.map.designs
            Z = designs.reshape(-1, designs.shape[2]) @ spread
            gram += Z.T @ Z
            pull += Z.T @ np.asarray(loss.target)
    return np.asarray(np.linalg.lstsq(gram, pull)[0])


# ---- Losses with an offset G: the program of W − G


@final
@dataclass(frozen=True)
class ShiftReduction(Reduction):
    """Solve the program of W − G, with the same duals and multipliers.

    There is no such program if a loss, such as sparsity, would get a target by it.
    """

    how = "shifted"

    def reduced(self, program: Program) -> Program | Reason:
        G = offset_of(program.all_losses)
        return G if isinstance(G, Reason) else without_offset(program, G)

    def prepare(self, program: Program) -> Prepared:
        G = offset_of(program.all_losses)
        assert not isinstance(G, Reason), "see reduced"
        return PreparedReduction.of(
            self.inner(without_offset(program, G)),
            lambda start: replace(start, W=start.W - G),
            lambda solution: replace(solution, W=solution.W + G),
        )


# ---- Few points with very many features, such as images: points and features exchanged


@final
@dataclass(frozen=True)
class TransposeReduction(Reduction):
    """Solve the program with points and features exchanged."""

    how = "transposed"

    def reduced(self, program: Program) -> Program | Reason:
        reason = bounds_refusal(program) or _loss_refusal(program.losses)
        return transposed_program(program) if reason is None else Reason(reason)

    def prepare(self, program: Program) -> Prepared:
        inner = self.inner(transposed_program(program))
        return PreparedReduction.of(inner, _transposed, _transposed)


def _loss_refusal(losses: tuple[PropertyLoss, ...]) -> str | None:
    """The reason why a loss of W is not one of Wᵀ; None if all are."""
    for loss in losses:
        if not isinstance(loss.map, Identity | OverPoints | OverFeatures):
            return f"{loss.name} is not the same with points and features exchanged"
        if not isinstance(loss.penalty, Squared | Absolute):
            return f"{loss.name} treats points and features differently"
    return None


def transposed_program(program: Program) -> Program:
    """The program of V = Wᵀ, if :meth:`TransposeReduction.take` accepts."""
    n_points, n_features = program.shape
    return Program(tuple(map(_exchanged, program.losses)), sizes=(n_features, n_points))


def _exchanged(loss: PropertyLoss) -> _RecastLoss:
    """The loss φ(A(Vᵀ) − T) as a loss of V."""
    target = loss.target
    transposed = target.T.copy() if isinstance(target, np.ndarray) else target
    over = loss.map
    if isinstance(over, Coupling):
        kind = OverFeatures if isinstance(over, OverPoints) else OverPoints
        over = kind(over.matrix, over.components, over.lattice)
    return _RecastLoss(loss, over, transposed)


def _transposed(solution: Solution) -> Solution:
    duals = {name: dual.T for name, dual in solution.duals.items()}
    return replace(solution, W=np.ascontiguousarray(solution.W.T), duals=duals)


# ---- Rows with given sums: the program in the remaining coordinates


@final
@dataclass(frozen=True)
class CompletenessReduction(Reduction):
    """Solve the program that a :class:`Completeness` constraint leaves.

    Duals belong to the program of V, as does the certificate.
    """

    how = "complete"

    def reduced(self, program: Program) -> Program | Reason:
        totals = Totals.of(program)
        if totals is None:
            return Reason("no constraint fixes row sums")
        reduced = totals.program(program)
        for loss in reduced.all_losses:
            sees_totals = isinstance(loss.map, OverFeatures) and loss.has_target
            if isinstance(loss.map, OffAxis) or sees_totals:
                return Reason(
                    f"{loss.name} has no closed form where rows have given sums"
                )
        return reduced

    def prepare(self, program: Program) -> Prepared:
        totals = Totals.of(program)
        assert totals is not None, "see take"
        reduced = totals.program(program)
        losses = cast(tuple[_RecastLoss, ...], reduced.losses)
        index = program.bounds.index(program.row_sums[0])
        return PreparedReduction.of(
            self.inner(reduced),
            lambda start: replace(start, W=totals.coordinates(start.W)),
            lambda solution: replace(
                solution,
                W=totals.expanded(solution.W),
                multipliers=(
                    *solution.multipliers[:index],
                    math.inf,
                    *solution.multipliers[index:],
                ),
            ),
            reduced,
            np.array([loss.constant for loss in losses]),
        )


# ---- Losses of single entries and their differences: entries become points


@final
@dataclass(frozen=True)
class EntryReduction(Reduction):
    """Solve the program with entries in place of points."""

    how = "of entries"

    def reduced(self, program: Program) -> Program | Reason:
        reason = entries_refusal(program.all_losses)
        return _support(program).program(program) if reason is None else Reason(reason)

    def prepare(self, program: Program) -> Prepared:
        support = _support(program)
        losses = program.losses

        def into(start: Solution) -> Solution:
            duals = support.duals(losses, start.duals)
            return replace(start, W=support.values(start.W), duals=duals)

        def out(solution: Solution) -> Solution:
            duals = support.duals(losses, solution.duals, back=True)
            return replace(solution, W=support.expanded(solution.W), duals=duals)

        return PreparedReduction.of(self.inner(support.program(program)), into, out)


def _support(program: Program) -> Support:
    return Support.of(program.all_losses, program.shape)
