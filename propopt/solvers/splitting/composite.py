"""The normalised program of splitting solvers, and the gap by which they stop.

    F(W) = ‖W − G‖² + ⟨W, P W + W Q⟩ + Σ_i c_i φ_i(A_i W),

where P (N, N) and Q (D, D) are the Gram matrices of a robustness and a smoothness loss.
For duals Y_i, with the slope ∇ = 2(W − G + P W + W Q) + Σ A_iᵀ Y_i,

    F(W) − min F ≤ Σ_i c_i φ_i(A_i W) + (c_i φ_i)*(Y_i) − ⟨Y_i, A_i W⟩  +  ‖∇‖²/4,

which is the certificate of :mod:`propopt.certificate` for the modulus 2. Where rows
have given sums, W is V + z uᵀ with V u = 0 (:mod:`propopt.losses.totals`), and ∇ counts
without its part along u.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.linalg as la
import scipy.sparse as sp

from propopt._typing import Array, Attributions, Sparse
from propopt.losses import PropertyLoss
from propopt.losses.totals import Totals
from propopt.maps import Identity, LinearMap, OverPoints, dense_matrix
from propopt.penalties import Absolute, Penalty
from propopt.solvers.splitting.systems import Layout, System, factorise


@dataclass(frozen=True, eq=False)
class Term:
    """c φ(A W), with A the identity or a sparse matrix over points.

    Parameters
    ----------
    weight : float
        c > 0.
    penalty, map
        φ and A.
    transpose : matrix or None
        Aᵀ stored by rows, for products with it are faster so; None for the identity.
    gram : matrix or None
        AᵀA (N, N), sparse or dense; None for the identity.
    """

    weight: float
    penalty: Penalty
    map: LinearMap
    transpose: Sparse | None
    gram: Sparse | Array | None

    @classmethod
    def of(cls, loss: PropertyLoss, *, as_dense: bool) -> Term:
        """The loss with weight one."""
        match loss.map:
            case OverPoints(matrix) as coupled:
                gram = dense_matrix(coupled.gram) if as_dense else coupled.gram
                return cls(1.0, loss.penalty, coupled, sp.csr_array(matrix.T), gram)
            case other:
                return cls(1.0, loss.penalty, other, None, None)

    @property
    def selects(self) -> bool:
        """True for an ℓ1 loss of W itself: it wants entries that are exactly zero."""
        return isinstance(self.map, Identity) and isinstance(self.penalty, Absolute)

    def adjoint(self, Y: Array) -> Attributions:
        """AᵀY."""
        return Y if self.transpose is None else np.asarray(self.transpose @ Y)


@dataclass(frozen=True, eq=False)
class Point:
    """Attributions and one dual per term, with what they prove."""

    W: Attributions
    duals: tuple[Array, ...]
    value: float
    excess: float

    @property
    def gap(self) -> float:
        """The certified relative gap."""
        return self.excess / max(self.value, np.finfo(float).tiny)


@dataclass(frozen=True, eq=False)
class Composite:
    """The normalised program; see the formula of the module.

    Parameters
    ----------
    G : array (N, D)
        The target.
    P, Q : matrix or None
        Gram matrices, with their weights.
    terms : tuple of Term
        The losses that are not smooth.
    layout : {"dense", "lu", "cg"}
        How systems are solved; "dense" asks for dense matrices.
    totals : Totals, optional
        What rows add up to, where that is given.
    """

    G: Attributions
    P: Sparse | Array | None
    Q: Array | None
    terms: tuple[Term, ...]
    layout: Layout
    totals: Totals | None = None

    def coupling(self, W: Attributions) -> Attributions:
        """P W + W Q."""
        coupled = np.zeros_like(W) if self.P is None else self.P @ W
        return coupled if self.Q is None else coupled + W @ self.Q

    def point(self, W: Attributions, duals: Sequence[Array]) -> Point:
        """What W and the duals prove, once the duals are in their domains."""
        coupled = self.coupling(W)
        D = W - self.G
        slope = 2.0 * (D + coupled)
        value = float(np.vdot(D, D) + np.vdot(W, coupled))
        excess = 0.0
        inside = []
        for term, dual in zip(self.terms, duals, strict=True):
            c, R = term.weight, term.map(W)
            Y = term.penalty.shrink(dual, c)
            loss = c * term.penalty.value(R)
            value += loss
            # Fenchel-Young: c φ(R) + (c φ)*(Y) − ⟨Y, R⟩ ≥ 0
            excess += loss + term.penalty.conjugate(Y, c) - float(np.vdot(Y, R))
            slope += term.adjoint(Y)
            inside.append(Y)
        if self.totals is not None:
            slope = self.totals.coordinates(slope)
        excess = max(excess, 0.0) + float(np.vdot(slope, slope)) / 4.0
        return Point(W, tuple(inside), value, excess)

    def allowed(self, W: Attributions) -> Attributions:
        """W, or the nearest whose rows have the given sums."""
        return W if self.totals is None else self.totals.expanded(W)

    def supported(self, W: Attributions) -> Attributions:
        """W, or one near it whose rows have the given sums, with zeros where W has."""
        return W if self.totals is None else self.totals.on_support(W)

    def minimiser(self, system: RotatedSystem, R: Attributions) -> Attributions:
        """The allowed W of least ½⟨W, H W⟩ − ⟨R, W⟩ for a system H."""
        if self.totals is None:
            return system.solve(R)
        # H z uᵀ is a multiple of uᵀ but for z(Q u)ᵀ, and V is free of those
        if self.Q is not None:
            R = R - np.outer(self.totals.heights, self.Q @ self.totals.axis)
        return self.totals.expanded(system.solve(R))

    def system(self, shift: float, extra: Sparse | Array | None) -> RotatedSystem:
        """Solves (shift + 1) W + P W + W Q + extra W = R for W, or for V."""
        parts = [part for part in (self.P, extra) if part is not None]
        size = len(self.G)
        P = sum(parts[1:], parts[0]) if parts else sp.csr_array((size, size))
        values, vectors = self._feature_basis
        system = factorise(P, values + (1.0 + shift), self.layout)
        return RotatedSystem(system, vectors, size, self.totals)

    @cached_property
    def _feature_basis(self) -> tuple[Array, Array | None]:
        """Q = V diag(ν) Vᵀ, of V alone (I − uuᵀ)Q(I − uuᵀ); V is None where Q is."""
        if self.Q is None:
            return np.zeros(self.G.shape[1]), None
        Q = self.Q
        if self.totals is not None:
            Q = self.totals.coordinates(self.totals.coordinates(Q).T)
        values, vectors = la.eigh(Q)
        return np.maximum(values, 0.0), vectors


@dataclass(frozen=True, eq=False)
class RotatedSystem:
    """Systems that are separate for the columns of W V."""

    system: System
    vectors: Array | None
    size: int
    totals: Totals | None = None

    def solve(self, R: Attributions) -> Attributions:
        """The solution for the right-hand side R, in the features of W."""
        R = self._free(R)
        if self.vectors is None:
            return self.system.solve(R)
        return np.asarray(self.system.solve(R @ self.vectors) @ self.vectors.T)

    def rotate(self, R: Array) -> Array:
        """R V."""
        R = self._free(R)
        return R if self.vectors is None else R @ self.vectors

    def _free(self, R: Array) -> Array:
        """What is not along u: nothing answers to the rest."""
        return R if self.totals is None else self.totals.coordinates(R)
