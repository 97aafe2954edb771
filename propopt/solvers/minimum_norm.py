"""Whether squared losses determine W, and the minimiser of smallest norm.

Whether they do determine W follows for small programs from the smallest
eigenvalue of H, for large ones from their structure: a graph leaves only constants on
each of its components undetermined, so that H is positive definite if and only if on
each component Σ_n Z_nᵀZ_n + CᵀC is, a (D, D) matrix, where Z_n are the designs of
function matching and C couples features.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from propopt.base.arrays import Array
from propopt.losses import Program, PropertyLoss
from propopt.losses.algebra import Faithfulness
from propopt.losses.linear_algebra import Components, least_squares
from propopt.losses.maps import (
    ImplicitOverPoints,
    OverFeatures,
    OverPoints,
    PerPoint,
)
from propopt.proofs.certificate import DENSE_LIMIT, smallest_curvature
from propopt.proofs.curvature import all_squared_refusal, bounds_refusal
from propopt.solvers.solver import (
    Prepared,
    PreparedFunction,
    Solution,
    Solver,
)


# ---- Whether squared losses determine W: whether H = Σ AᵀA is positive definite


def undetermined_refusal(program: Program) -> str | None:
    """The reason why squared losses do not determine W; None if they do."""
    losses = program.losses
    if program.bounds or not any(isinstance(loss, Faithfulness) for loss in losses):
        return None
    if not all(loss.is_squared for loss in losses):
        return None
    if any(loss.is_direct for loss in losses):
        return None
    if _determined(losses, program.shape):
        return None
    return (
        f"{' and '.join(loss.name for loss in losses)} leave the attributions "
        "undetermined; add gradient_matching, sparsity or robustness on a connected "
        "graph, or take the smallest minimiser with solver='minimum_norm'"
    )


def _determined(losses: tuple[PropertyLoss, ...], shape: tuple[int, int]) -> bool:
    if shape[0] * shape[1] <= DENSE_LIMIT:
        return smallest_curvature([(1.0, loss) for loss in losses], shape) > 0.0
    tied = _components(losses, shape[0])
    if tied is None:
        return True
    totals = np.zeros((tied.max() + 1, shape[1], shape[1]))
    for loss in losses:
        match loss.map:
            case PerPoint(designs):
                np.add.at(totals, tied, point_grams(designs))
            case OverFeatures() as coupled:
                totals += coupled.gram
    values = np.linalg.eigvalsh(totals)
    return bool((values[:, 0] > 1e-12 * values[:, -1]).all())


def point_grams(designs: Array) -> Array:
    """Gram matrices Z_nᵀZ_n of all points, shape (N, D, D)."""
    return designs.transpose(0, 2, 1) @ designs


def _components(
    losses: tuple[PropertyLoss, ...], n_points: int
) -> NDArray[np.integer] | None:
    """Groups of points tied to one value; None if all are tied to zero."""
    tied = Components(np.arange(n_points))
    for loss in losses:
        match loss.map:
            case OverPoints(components=parts) | ImplicitOverPoints(components=parts):
                if parts is None:
                    return None
                tied = Components.joined([tied, parts])
    return tied.labels


# ---- Squared losses that do not determine W: the minimiser of smallest norm


@final
@dataclass(frozen=True)
class MinimumNorm(Solver):
    """The minimiser of squared losses with the smallest norm ‖W‖, by LSMR."""

    name = "minimum_norm"

    def refusal(self, program: Program) -> str | None:
        return bounds_refusal(program) or all_squared_refusal(program)

    def prepare(self, program: Program) -> Prepared:
        flats = [loss.map.flat(program.shape) for loss in program.losses]
        targets = [
            np.broadcast_to(np.ravel(loss.target), flat.shape[0])
            for loss, flat in zip(program.losses, flats, strict=True)
        ]

        def solve(weights: Array, _: float, __: Solution | None) -> Solution:
            # started at zero, LSMR ends at the smallest solution
            roots = np.sqrt(weights)
            A = sp.vstack([r * flat for r, flat in zip(roots, flats, strict=True)])
            b = np.concatenate([r * t for r, t in zip(roots, targets, strict=True)])
            return Solution(W=least_squares(A, b).reshape(program.shape))

        return PreparedFunction(solve)
