"""Programs whose rows add up, and those of least norm.

Small programs are judged by the smallest eigenvalue of H. Large ones are judged by
their structure: a graph leaves open only what is constant on each of its components, so
that H is positive definite if and only if on each component Σ_n Z_nᵀZ_n + CᵀC is, a
(D, D) matrix, where Z_n are the designs of function matching and C couples features.

Rows with given sums: the program of what they leave
(:mod:`propopt.losses.completeness`). W = V + z uᵀ, and the program of V has no
constraint: whole curves and sweeps of it cost
what they cost without. Where a loss over features sees u, it has a target T in V:

    a‖V − G‖² + b‖B V‖² + c‖V Cᵀ − T‖²

is least at the optimum for the target G + (c/a) T C, which is linear in the target: the
optima for G and for T C, side by side in one program of twice as many features, give it
for all weights.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import final

import numpy as np
import scipy.linalg as la
import scipy.sparse as sp
import scipy.sparse.linalg as spla
from numpy.typing import NDArray

from propopt.base.arrays import Array
from propopt.base.errors import SolverFailure
from propopt.base.text import Reason
from propopt.losses import Program, PropertyLoss
from propopt.losses.algebra import Faithfulness, _Recast
from propopt.losses.completeness import OffAxis, Totals
from propopt.losses.linear_algebra import Components
from propopt.losses.maps import (
    Identity,
    ImplicitOverPoints,
    OverFeatures,
    OverPoints,
    PerPoint,
    Squared,
)
from propopt.losses.restricted import is_complete
from propopt.results.certificate import DENSE_LIMIT, smallest_curvature
from propopt.results.curvature import all_squared_refusal, bounds_refusal
from propopt.solvers.solver import (
    Curve,
    CurveElsewhere,
    Elsewhere,
    Posed,
    Prepared,
    Solution,
    Solver,
    with_infinite,
)


# ---- Whether squared losses determine W: whether H = Σ AᵀA is positive definite


def undetermined_refusal(program: Program) -> str | None:
    """Why squared losses leave W open: tied to the function, and not fixed by it."""
    losses = program.losses
    if program.bounds or not any(isinstance(loss, Faithfulness) for loss in losses):
        return None
    if not all(isinstance(loss.penalty, Squared) for loss in losses):
        return None
    if any(isinstance(loss.map, Identity) for loss in losses):
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
    """Z_nᵀZ_n for each point, shape (N, D, D)."""
    return np.asarray(designs.transpose(0, 2, 1) @ designs)


def _components(
    losses: tuple[PropertyLoss, ...], n_points: int
) -> NDArray[np.integer] | None:
    """Which points the couplings tie to one value; None if they tie all to zero."""
    tied = Components(np.arange(n_points))
    for loss in losses:
        match loss.map:
            case OverPoints(components=parts) | ImplicitOverPoints(components=parts):
                if parts is None:
                    return None
                tied = Components.joined([tied, parts])
    return tied.labels


# ---- Rows with given sums: the program of what they leave
# (:mod:`propopt.losses.completeness`)


@final
@dataclass(frozen=True)
class Complete(Posed):
    """Another solver, given the program that a :class:`Completeness` leaves.

    Duals are those of the program of V: the certificate is made there too.
    """

    how = "complete"

    def posed(self, program: Program) -> Program | Reason:
        return without_totals(program)

    def prepare(self, program: Program) -> Prepared:
        totals = Totals.of(program.bounds)
        inner = self.inner(program)
        assert totals is not None, "see without_totals"
        reduced = totals.program(program)
        if any(map(_is_pulled, reduced.losses)):
            return _Pulled(inner, reduced, totals)
        is_sum = [is_complete(bound) for bound in program.bounds]
        is_curve = isinstance(inner, Curve) and not reduced.bounds
        kind = CurveElsewhere if is_curve else Elsewhere
        return kind(
            inner,
            lambda start: replace(start, W=totals.coordinates(start.W)),
            lambda solution: replace(
                solution,
                W=totals.expanded(solution.W),
                multipliers=with_infinite(solution.multipliers, is_sum),
            ),
            reduced,
            np.array([totals.loss(loss).constant for loss in program.losses]),
        )


def without_totals(program: Program) -> Program | Reason:
    """The program of V, for solvers that know no such constraint; or a reason."""
    totals = Totals.of(program.bounds)
    if totals is None:
        return Reason("no constraint says what rows add up to")
    reduced = totals.program(program)
    for loss in reduced.all_losses:
        if isinstance(loss.map, OffAxis):
            return Reason(f"{loss.name} has no closed form where rows have given sums")
    pulled = [loss for loss in reduced.all_losses if _is_pulled(loss)]
    return _side_by_side(reduced) if pulled else reduced


def _is_pulled(loss: PropertyLoss) -> bool:
    return isinstance(loss.map, OverFeatures) and loss.has_target


def _side_by_side(reduced: Program) -> Program | Reason:
    """One program for the targets G and κ T C; see :class:`_Pulled`."""
    own = [loss for loss in reduced.losses if isinstance(loss.map, Identity)]
    pulled = [loss for loss in reduced.all_losses if _is_pulled(loss)]
    if reduced.bounds:
        return Reason(
            f"{reduced.bounds[0]} stands beside {pulled[0].name}, which sees totals"
        )
    if len(own) != 1 or len(pulled) != 1:
        return Reason(
            "it takes one gradient-matching and one smoothness loss that sees totals"
        )
    G, pull = _targets(own[0], pulled[0], reduced.shape)
    targets = np.hstack([G, _unit(G, pull) * pull])
    losses = tuple(_twice(loss, targets) for loss in reduced.losses)
    return Program(losses, sizes=(reduced.shape[0], 2 * reduced.shape[1]))


def _targets(
    own: PropertyLoss, pulled: PropertyLoss, shape: tuple[int, int]
) -> tuple[Array, Array]:
    """G and T C."""
    pull = pulled.map.adjoint(np.asarray(pulled.target))
    return np.broadcast_to(own.target, shape), pull


def _unit(G: Array, pull: Array) -> float:
    """κ: the size of G beside that of the pull, so that both are solved as exactly."""
    size, other = float(np.linalg.norm(G)), float(np.linalg.norm(pull))
    return size / other if size > 0.0 and other > 0.0 else 1.0


def _twice(loss: PropertyLoss, targets: Array) -> _Recast:
    """A squared loss of two attributions side by side, their targets apart."""
    match loss.map:
        case Identity() as same:
            return _Recast(loss, same, targets)
        case OverFeatures(matrix=C):
            return _Recast(loss, OverFeatures(la.block_diag(C, C)), 0.0)
        case other:
            return _Recast(loss, other, 0.0)


class _Pulled(Prepared):
    """V for the target G + (c/a) T C, from the optima for G and for κ T C."""

    def __init__(self, inner: Prepared, reduced: Program, totals: Totals) -> None:
        self._inner = inner
        self._totals = totals
        kinds = [loss.map for loss in reduced.losses]
        self._own = next(k for k, A in enumerate(kinds) if isinstance(A, Identity))
        self._seen = next(
            k for k, loss in enumerate(reduced.losses) if _is_pulled(loss)
        )
        losses = reduced.losses
        G, pull = _targets(losses[self._own], losses[self._seen], reduced.shape)
        self._unit = _unit(G, pull)

    def solve(
        self, weights: Array, tolerance: float, start: Solution | None = None
    ) -> Solution:
        del start  # that of both optima is not kept
        if weights[self._own] == 0.0:
            raise SolverFailure(
                "without a weight on gradient matching, rows of given sums need "
                "another solver: solver='conic'"
            )
        ratio = float(weights[self._seen] / (weights[self._own] * self._unit))
        both = self._inner.solve(weights, tolerance / (1.0 + ratio) ** 2).W
        V, pulled = np.hsplit(both, 2)
        W = self._totals.expanded(V + ratio * pulled)
        return Solution(W=W, multipliers=(math.inf,))


# ---- Squared losses that leave W undetermined: the smallest of all minimisers


@final
@dataclass(frozen=True)
class MinimumNorm(Solver):
    """Of all minimisers of squared losses the one with the smallest ‖W‖, by LSMR."""

    name = "minimum_norm"

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
