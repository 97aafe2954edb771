"""Max-differences by alternating directions.

    a‖W − G‖² + b‖B W‖² + c‖W Cᵀ‖² + Σ_i c_i φ_i(A_i W),

where each φ_i is an ℓ1 norm of W itself or a max-difference. Data and weights are
normalised first (W = σW', F = aσ²F'). Then

* where all φ_i are max-differences, a few steps of ADMM find roughly which edges
  carry weight, and Newton's method on those weights
  (:mod:`propopt.solvers.edge_newton`) takes over; if it stalls, ADMM runs
  twice as long before the next attempt;
* otherwise ADMM alone;
* a program that is not certified after ``ADMM_STEPS`` steps is solved by Clarabel too,
  if it is small enough, and the better of the two results is returned.

ADMM on Z_i = A_i W, over-relaxed, with a penalty ρ_i for each term:

    W   ← argmin ‖W − G‖² + ⟨W, P W + W Q⟩ + Σ ρ_i/2 ‖A_i W − Z_i + U_i‖²
    Z_i ← prox_{c_i φ_i/ρ_i}(α A_i W + (1 − α) Z_i + U_i)
    U_i ← U_i + α A_i W + (1 − α) Z_i^{before} − Z_i

and Y_i = ρ_i U_i is a subgradient of c_i φ_i at Z_i (Boyd et al. 2011, section 3).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import final

import numpy as np

from propopt.base.arrays import Array, Attributions, Sparse
from propopt.base.errors import SolverFailure
from propopt.base.resources import few_threads, memory_refusal
from propopt.losses import Program, PropertyLoss
from propopt.losses.completeness import Totals
from propopt.losses.maps import (
    Absolute,
    Identity,
    ImplicitOverPoints,
    OverPoints,
    dense_matrix,
)
from propopt.losses.operators import Operator
from propopt.proofs.curvature import Quadratic, bounds_refusal, quadratic_refusal
from propopt.solvers.conic import Conic
from propopt.solvers.edge_newton import (
    Composite,
    EdgeNewton,
    Point,
    Term,
    choose_layout,
    is_applicable,
)
from propopt.solvers.reductions import prepare_centred
from propopt.solvers.solver import Prepared, Solution, Solver, gap_of


_RELAXATION = 1.7
_CHECK_EVERY = 10
_LARGEST = 1e8
"""Largest ρ/2 AᵀA: its sum with the identity is inverted in double precision."""


class Admm:
    """A run of ADMM that can be continued."""

    def __init__(
        self, program: Composite, W: Attributions, duals: Sequence[Array]
    ) -> None:
        self._program = program
        self._W = W
        self._Z = [term.map(W) for term in program.terms]
        self.rho: list[float] = [  # ρ_i
            _bounded(term, _penalty(term, Z, Y))
            for term, Z, Y in zip(program.terms, self._Z, duals, strict=True)
        ]
        self._U = [Y / rho for Y, rho in zip(duals, self.rho, strict=True)]
        self._n_steps = 0
        self._next_change = _CHECK_EVERY
        self._factorise()
        self.best: Point = program.point(W, duals)

    def run(self, n_steps: int, tolerance: float) -> Point:
        """The best point after ``n_steps``, or once its gap is within tolerance."""
        for _ in range(n_steps):
            if self.best.gap <= tolerance:
                break
            before = list(self._Z)
            self._step()
            self._n_steps += 1
            if self._n_steps % _CHECK_EVERY == 0:
                self._check()
            if self._n_steps >= self._next_change:
                self._balance(before)
                # ρ settles: it must stay constant in the end for convergence
                self._next_change = int(1.4 * self._n_steps) + _CHECK_EVERY
        return self.best

    @property
    def duals(self) -> list[Array]:
        """The duals Y_i = ρ_i U_i of all terms."""
        return [rho * U for rho, U in zip(self.rho, self._U, strict=True)]

    def _step(self) -> None:
        program = self._program
        right = program.G.copy()
        for term, rho, Z, U in zip(
            program.terms, self.rho, self._Z, self._U, strict=True
        ):
            right += term.adjoint((0.5 * rho) * (Z - U))
        self._W = program.minimiser(self._system, right)
        for i, term in enumerate(program.terms):
            ahead = term.map(self._W) - self._Z[i]
            V = self._Z[i] + _RELAXATION * ahead + self._U[i]
            Z = term.penalty.prox(V, term.weight / self.rho[i])
            self._Z[i] = Z
            self._U[i] = V - Z

    def _check(self) -> None:
        W = self._W
        totals = self._program.totals
        for term, Z in zip(self._program.terms, self._Z, strict=True):
            # an ℓ1 loss of W itself needs exact zeros
            if isinstance(term.map, Identity) and isinstance(term.penalty, Absolute):
                W = Z if totals is None else totals.on_support(Z)
        point = self._program.point(W, self.duals)
        if point.excess < self.best.excess:
            self.best = point

    def _balance(self, before: Sequence[Array]) -> None:
        """Change ρ_i if relative primal and dual residuals differ by a large factor."""
        changed = False
        for i, term in enumerate(self._program.terms):
            rho = self.rho[i]
            Z = self._Z[i]
            U = self._U[i]
            image = term.map(self._W)
            primal = _ratio(_norm(image - Z), max(_norm(image), _norm(Z)))
            moved = _norm(term.adjoint(Z - before[i]))
            dual = _ratio(moved, _norm(term.adjoint(U)))
            factor = np.clip(np.sqrt(_ratio(primal, dual)), 0.05, 20.0)
            factor = _bounded(term, rho * factor) / rho
            if not 0.5 < factor < 2.0:
                self.rho[i] = rho * factor
                self._U[i] = U / factor
                changed = True
        if changed:
            self._factorise()

    def _factorise(self) -> None:
        shift = 0.0
        extra: Sparse | Array | None = None
        for term, rho in zip(self._program.terms, self.rho, strict=True):
            if term.gram is None:
                shift += 0.5 * rho
            else:
                part = (0.5 * rho) * term.gram
                extra = part if extra is None else extra + part
        self._system = self._program.system(shift, extra)


def _penalty(term: Term, Z: Array, Y: Array) -> float:
    """ρ = ‖Y‖/‖Z‖ if both are positive, else ρ‖A‖² about the curvature 2."""
    if _norm(Y) > 0 and _norm(Z) > 0:
        return _norm(Y) / _norm(Z)
    if term.gram is None:
        return 2.0
    return 2.0 / float(term.gram.diagonal().mean())


def _bounded(term: Term, rho: float) -> float:
    """ρ for which I + ρ/2 AᵀA keeps half its digits.

    If all differences vanish, residuals are rounding and their ratio would change ρ
    forever.
    """
    size = 1.0 if term.gram is None else 0.5 * float(term.gram.diagonal().max())
    return float(np.clip(rho, 1.0 / (_LARGEST * size), _LARGEST / size))


def _norm(R: Array) -> float:
    return float(np.linalg.norm(R))


def _ratio(above: float, below: float) -> float:
    return above / max(below, 1e-300) if above > 0 else 1e-300


ADMM_STEPS = 5000
_FIRST_STEPS = 20
"""Steps of ADMM before the first of Newton's method."""
_NEWTON_STEPS = 25
CLARABEL_ROWS = 50_000
"""Largest number of residuals for which Clarabel is tried after ADMM."""


@final
@dataclass(frozen=True)
class Splitting(Solver):
    """ADMM with a Newton finish, for largest differences and sparsity."""

    name = "splitting"

    def refusal(self, program: Program) -> str | None:
        return (
            _bounds_refusal(program)
            or _loss_refusal(program.losses)
            or quadratic_refusal(program)
            or _memory_refusal(program)
        )

    def prepare(self, program: Program) -> Prepared:
        return prepare_centred(program, _Split)


def minimise(program: Composite, tolerance: float, start: Point | None = None) -> Point:
    """The best point, with a gap within tolerance unless steps ran out."""
    if not program.terms:
        best = program.minimiser(program.system(0.0, None), program.G)
        return program.point(best, ())
    newton = EdgeNewton(program) if is_applicable(program) else None
    if start is None:
        zeros = [np.zeros_like(term.map(program.G)) for term in program.terms]
        start = program.point(program.allowed(program.G), zeros)
    elif newton is not None:
        start = _lesser(start, newton.run(start.duals, _NEWTON_STEPS, tolerance))
    if start.gap <= tolerance:
        return start
    return _alternate(program, tolerance, start, newton)


def _alternate(
    program: Composite, tolerance: float, start: Point, newton: EdgeNewton | None
) -> Point:
    """Alternate ADMM and Newton, with more ADMM steps each time."""
    admm = Admm(program, start.W, start.duals)
    best = start
    n_steps = _FIRST_STEPS if newton is not None else ADMM_STEPS
    done = 0
    while best.gap > tolerance and done < ADMM_STEPS:
        best = _lesser(best, admm.run(n_steps, tolerance))
        done += n_steps
        n_steps *= 2
        if newton is not None and best.gap > tolerance:
            best = _lesser(best, newton.run(admm.duals, _NEWTON_STEPS, tolerance))
    return best


def _lesser(first: Point, second: Point) -> Point:
    return first if first.excess <= second.excess else second


class _Split(Prepared):
    def __init__(self, program: Program) -> None:
        self._program = program
        self._quadratic = Quadratic.of(program)
        self._totals = Totals.of(program)
        self._size = _size(self._quadratic.G, self._totals)
        self._layout = choose_layout(_grams(program.losses))
        as_dense = self._layout == "dense"
        P = self._quadratic.P
        assert not isinstance(P, Operator), "graphs without stored edges are refused"
        self._P = dense_matrix(P) if as_dense and P is not None else P
        self._terms = {
            index: Term.of(loss, as_dense=as_dense)
            for index, loss in enumerate(program.losses)
            if not loss.is_squared
        }

    def solve(
        self, weights: Array, tolerance: float, start: Solution | None = None
    ) -> Solution:
        a, _, _ = self._quadratic.coefficients(weights)
        if a == 0.0 or self._size == 0.0:
            return self._unmatched()
        # W = σW', F = aσ²F', so that dF/dR = aσ dF'/dR'
        rate = a * self._size
        program = self._normalised(weights)
        begin = self._begin(program, weights, start, rate)
        dense_size = self._program.shape[0] if self._layout == "dense" else 0
        with few_threads(dense_size):
            best = minimise(program, tolerance, begin)
        duals = {
            name: rate * Y
            for name, Y in zip(self._names(weights), best.duals, strict=True)
        }
        solution = Solution(
            W=self._size * best.W,
            duals=duals,
            multipliers=(math.inf,) * len(self._program.bounds),
        )
        if best.gap <= tolerance:
            return solution
        return self._better(solution, best.gap, weights, tolerance)

    def _unmatched(self) -> Solution:
        """Zero attributions, which cost nothing without a target."""
        if self._totals is not None and self._totals.heights.any():
            raise SolverFailure(
                "given row sums without a weight on gradient matching need another "
                "solver: solver='conic'"
            )
        prices = (math.inf,) * len(self._program.bounds)
        return Solution(W=np.zeros(self._program.shape), multipliers=prices)

    def _active(self, weights: Array) -> list[int]:
        """Indices of the non-smooth losses with a positive weight."""
        return [index for index in self._terms if weights[index] > 0]

    def _names(self, weights: Array) -> list[str]:
        return [self._program.losses[index].name for index in self._active(weights)]

    def _normalised(self, weights: Array) -> Composite:
        a, b, c = self._quadratic.coefficients(weights)
        terms = []
        for index in self._active(weights):
            term = self._terms[index]
            unit = a * self._size ** (2 - term.penalty.degree)
            weight = float(weights[index]) / unit
            penalty = term.penalty.scaled(self._size)
            terms.append(replace(term, weight=weight, penalty=penalty))
        Q = self._quadratic.Q
        return Composite(
            G=self._quadratic.G / self._size,
            P=None if self._P is None or b == 0 else (b / a) * self._P,
            Q=None if Q is None or c == 0 else (c / a) * Q,
            terms=tuple(terms),
            layout=self._layout,
            totals=self._totals and self._totals.scaled(1.0 / self._size),
        )

    def _begin(
        self,
        program: Composite,
        weights: Array,
        start: Solution | None,
        rate: float,
    ) -> Point | None:
        """The start in normalised units, if it has the duals of all terms."""
        names = self._names(weights)
        if start is None or not all(name in start.duals for name in names):
            return None
        duals = [start.duals[name] / rate for name in names]
        return program.point(program.allowed(start.W / self._size), duals)

    def _better(
        self, solution: Solution, gap: float, weights: Array, tolerance: float
    ) -> Solution:
        """Clarabel's solution, if the program is small and the solution is better."""
        if self._conic is None:
            return solution
        try:
            other = self._conic.prepare(self._program).solve(weights, tolerance)
        except SolverFailure:
            return solution
        return other if gap_of(self._program, weights, other) < gap else solution

    @cached_property
    def _conic(self) -> Solver | None:
        """Clarabel, if the program is small and it does not refuse."""
        shape = self._program.shape
        if (
            sum(loss.map.flat_rows(shape) for loss in self._program.losses)
            > CLARABEL_ROWS
        ):
            return None
        choice = Conic("CLARABEL").take(self._program)
        return choice if isinstance(choice, Solver) else None


def _size(G: Array, totals: Totals | None) -> float:
    """The expected size of W, root mean square."""
    if totals is not None:
        G = totals.expanded(G)
    return float(np.sqrt(np.mean(G**2)))


def _bounds_refusal(program: Program) -> str | None:
    """The reason why there are bounds other than given row sums, or None."""
    totals = Totals.of(program)
    if totals is not None and not totals.is_shared:
        return "rows add up with different weights"
    return bounds_refusal(replace(program, bounds=program.limits))


def _grams(losses: tuple[PropertyLoss, ...]) -> list[Sparse | Array]:
    """The matrices that couple points."""
    return [loss.map.gram for loss in losses if isinstance(loss.map, OverPoints)]


def _loss_refusal(losses: tuple[PropertyLoss, ...]) -> str | None:
    for loss in losses:
        kinked = isinstance(loss.map, Identity | OverPoints) and not loss.has_target
        if not (loss.is_squared or kinked):
            return f"{loss.name} is neither squared nor a loss of W or its differences"
        if isinstance(loss.map, ImplicitOverPoints):
            return f"{loss.name} has a graph without stored edges"
    return None


def _memory_refusal(program: Program) -> str | None:
    n_points, n_features = program.shape
    rows = sum(
        loss.map.flat_rows(program.shape)
        for loss in program.losses
        if not loss.is_squared
    )
    side = n_points if choose_layout(_grams(program.losses)) == "dense" else 0
    n_bytes = 48.0 * side**2 + 100.0 * (rows + n_points * n_features)
    label = f"splitting with {n_points} points and {rows} differences"
    return memory_refusal(n_bytes, label, "use fewer edges (knn_graph, or a cutoff)")
