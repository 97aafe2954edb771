"""ADMM on Z_i = A_i W, over-relaxed, with a penalty ρ_i for each term.

    W   ← argmin ‖W − G‖² + ⟨W, P W + W Q⟩ + Σ ρ_i/2 ‖A_i W − Z_i + U_i‖²
    Z_i ← prox_{c_i φ_i/ρ_i}(α A_i W + (1 − α) Z_i + U_i)
    U_i ← U_i + α A_i W + (1 − α) Z_i^{before} − Z_i

and Y_i = ρ_i U_i is a subgradient of c_i φ_i at Z_i (Boyd et al. 2011, section 3).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from propopt._typing import Array, Attributions, Sparse
from propopt.solvers.splitting.composite import Composite, Point, Term


_RELAXATION = 1.7
_RELAXATION_LINEAR = 1.9
"""Where all terms are max-differences in l1 or linf: half the steps of 1.7 there."""
_CHECK_EVERY = 10
_LARGEST = 1e8
"""Of ρ/2 AᵀA beside the identity: their sum is inverted in double precision."""


class Admm:
    """A run of ADMM that can be continued.

    Parameters
    ----------
    program : Composite
        What to minimise.
    W : array (N, D)
        Attributions to start from.
    duals : sequence of arrays
        One per term, to start from.
    """

    def __init__(
        self, program: Composite, W: Attributions, duals: Sequence[Array]
    ) -> None:
        self._program = program
        self._W = W
        self._Z = [term.map(W) for term in program.terms]
        self._rho = [
            _bounded(term, _penalty(term, Z, Y))
            for term, Z, Y in zip(program.terms, self._Z, duals, strict=True)
        ]
        self._U = [Y / rho for Y, rho in zip(duals, self._rho, strict=True)]
        linear = all(
            t.gram is not None and t.penalty.degree == 1 for t in program.terms
        )
        self._relaxation = _RELAXATION_LINEAR if linear else _RELAXATION
        self._n_steps = 0
        self._next_change = _CHECK_EVERY
        self._factorise()
        self.best = program.point(W, duals)

    def run(self, n_steps: int, tolerance: float) -> Point:
        """The best point after so many steps, or once its gap is within tolerance."""
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
    def penalties(self) -> list[float]:
        """ρ_i."""
        return list(self._rho)

    @property
    def duals(self) -> list[Array]:
        """Y_i = ρ_i U_i."""
        return [rho * U for rho, U in zip(self._rho, self._U, strict=True)]

    def _step(self) -> None:
        program = self._program
        right = program.G.copy()
        for term, rho, Z, U in zip(
            program.terms, self._rho, self._Z, self._U, strict=True
        ):
            right += term.adjoint((0.5 * rho) * (Z - U))
        self._W = program.minimiser(self._system, right)
        for i, term in enumerate(program.terms):
            ahead = term.map(self._W) - self._Z[i]
            V = self._Z[i] + self._relaxation * ahead + self._U[i]
            Z = term.penalty.prox(V, term.weight / self._rho[i])
            self._Z[i] = Z
            self._U[i] = V - Z

    def _check(self) -> None:
        W = self._W
        for term, Z in zip(self._program.terms, self._Z, strict=True):
            if term.selects:
                W = self._program.supported(Z)  # with zeros that are exact
        point = self._program.point(W, self.duals)
        if point.excess < self.best.excess:
            self.best = point

    def _balance(self, before: Sequence[Array]) -> None:
        """ρ_i is moved where relative primal and dual residuals differ much."""
        changed = False
        for i, term in enumerate(self._program.terms):
            rho, Z, U = self._rho[i], self._Z[i], self._U[i]
            image = term.map(self._W)
            primal = _ratio(_norm(image - Z), max(_norm(image), _norm(Z)))
            moved = _norm(term.adjoint(Z - before[i]))
            dual = _ratio(moved, _norm(term.adjoint(U)))
            factor = np.clip(np.sqrt(_ratio(primal, dual)), 0.05, 20.0)
            factor = _bounded(term, rho * factor) / rho
            if not 0.5 < factor < 2.0:
                self._rho[i], self._U[i] = rho * factor, U / factor
                changed = True
        if changed:
            self._factorise()

    def _factorise(self) -> None:
        shift = 0.0
        extra: Sparse | Array | None = None
        for term, rho in zip(self._program.terms, self._rho, strict=True):
            if term.gram is None:
                shift += 0.5 * rho
            else:
                part = (0.5 * rho) * term.gram
                extra = part if extra is None else extra + part
        self._system = self._program.system(shift, extra)


def _penalty(term: Term, Z: Array, Y: Array) -> float:
    """ρ = ‖Y‖/‖Z‖ where both are known; else ρ‖A‖² about equals the curvature 2."""
    if _norm(Y) > 0 and _norm(Z) > 0:
        return _norm(Y) / _norm(Z)
    if term.gram is None:
        return 2.0
    return 2.0 / float(term.gram.diagonal().mean())


def _bounded(term: Term, rho: float) -> float:
    """ρ for which I + ρ/2 AᵀA keeps half its digits.

    Where all differences vanish, residuals are rounding and their ratio would move ρ
    on for ever.
    """
    size = 1.0 if term.gram is None else 0.5 * float(term.gram.diagonal().max())
    return float(np.clip(rho, 1.0 / (_LARGEST * size), _LARGEST / size))


def _norm(R: Array) -> float:
    return float(np.linalg.norm(R))


def _ratio(above: float, below: float) -> float:
    return above / max(below, 1e-300) if above > 0 else 1e-300
