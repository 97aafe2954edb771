"""Newton's method on edge weights, for max-differences.

    F(W) = ‖W − G‖² + ⟨W, P W + W Q⟩ + Σ_i c_i φ_i(A_i W),

where P (N, N) and Q (D, D) are the Gram matrices of a robustness and a smoothness loss.
For duals Y_i, with the slope ∇ = 2(W − G + P W + W Q) + Σ A_iᵀ Y_i,

    F(W) − min F ≤ Σ_i c_i φ_i(A_i W) + (c_i φ_i)*(Y_i) − ⟨Y_i, A_i W⟩  +  ‖∇‖²/4.

Where rows have given sums, W is V + z uᵀ with V u = 0
(:mod:`propopt.losses.completeness`), and the part of ∇ along u is dropped.

Linear systems (δ_j I + P) w_j = r_j, one for each feature j in the eigenbasis V of Q:

* dense, one shift δ: the inverse, from a Cholesky factor;
* dense, several shifts: the eigenbasis of P, which serves all shifts;
* larger or narrower (points in two or three dimensions): sparse LU;
* large and wide: conjugate gradients, all features at once.

Newton's method: Σ_g c_g max_{e ∈ g} ‖z_e‖² with z_e = w_t − w_h is the largest
Σ s_e ‖z_e‖² over weights s ≥ 0 with Σ_{e ∈ g} s_e = c_g. Exchanging the two gives the
concave program

    max_s  φ(s) = min_W ‖W − G‖² + ⟨W, P W + W Q⟩ + Σ_e s_e ‖z_e‖²,

pairwise robustness with the worst weights. Its W solves one linear system, and

    ∂φ/∂s_e = q_e = ‖z_e‖²,   −∂²φ/∂s_e∂s_f = H_ef = 2 Σ_j z_ej z_fj b_eᵀ M_j⁻¹ b_f,

with M_j the matrix of feature j and b_e the row of edge e. The number of
unknowns does not depend on the features, and only edges at the largest difference have
a weight: each Newton step is a small quadratic program over these, by conjugate
gradients and block pivoting. The subgradient of the loss is y_e = 2 s_e z_e.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, TypeAlias, final

import numpy as np
import scipy.linalg as la
import scipy.sparse as sp
from numpy.typing import NDArray

from propopt.base.arrays import Array, Attributions, Indices, Sparse, quotient
from propopt.losses import MaxDifferenceRobustness, PropertyLoss
from propopt.losses.completeness import Totals
from propopt.losses.linear_algebra import (
    Action,
    conjugate_gradients,
    incidence,
    positive_inverse,
)
from propopt.losses.maps import (
    GroupMax,
    LinearMap,
    OverPoints,
    Penalty,
    dense_matrix,
)
from propopt.solvers.factored import bandwidth, positive_factors, solved_in_groups
from propopt.solvers.solver import Solution


# ---- The normalised program of splitting solvers, and the gap by which they stop


Layout: TypeAlias = Literal["dense", "lu", "cg"]

_SMALL = 300
"""Points up to which N×N matrices are always dense."""
_DENSE_POINTS = 2000
"""Points up to which they are if the graph is not narrow."""
LU_LIMIT = 2e10
"""Operations N·bandwidth² up to which a sparse LU is taken."""

_LARGEST = 1e12
"""Largest ratio of P to δ for which a dense inverse of δI + P is accurate."""

_REDUCTION = 1e-22
"""Of the energy of a residual, that is, 1e-11 of its size: as steps of ADMM need."""


@final
@dataclass(frozen=True, eq=False)
class System:
    """Systems (δ_j I + P) w_j = r_j, one for each column of W, or of W V."""

    solved: Action  # W for the right-hand sides R
    # by the ends of k edges (e_t − e_h)ᵀ (δ_j I + P)⁻¹ (e_t − e_h), or nearly, (k, 1)
    # or (k, D)
    resistances: Callable[[Indices, Indices], Array]
    inverse: Array | None = None  # (δI + P)⁻¹, if computed
    vectors: Array | None = None  # V, if features are coupled
    totals: Totals | None = None

    def solve(self, R: Attributions) -> Attributions:
        """The solution for the right-hand side R, in the features of W."""
        W = self.solved(self.rotate(R))
        return W if self.vectors is None else W @ self.vectors.T

    def rotate(self, R: Array) -> Array:
        """R V without its part along u, which has no effect."""
        R = R if self.totals is None else self.totals.coordinates(R)
        return R if self.vectors is None else R @ self.vectors


def choose_layout(grams: Sequence[Sparse | Array]) -> Layout:
    """Choose the fastest layout for systems with these matrices in P."""
    size = grams[0].shape[0] if grams else 0
    if size <= _SMALL or any(isinstance(gram, np.ndarray) for gram in grams):
        return "dense"
    # N·bandwidth² operations make a band LU
    width = bandwidth(sum((abs(gram) for gram in grams[1:]), abs(grams[0])))
    is_cheap = size * width**2 <= LU_LIMIT
    if size <= _DENSE_POINTS and not (is_cheap and width <= size / 8):
        return "dense"
    return "lu" if is_cheap else "cg"


def factorise(P: Sparse | Array, shifts: Array, layout: Layout) -> System:
    """Prepare the systems for many right-hand sides."""
    if layout == "dense":
        return _dense(dense_matrix(P), shifts)
    diagonals = P.diagonal()[:, None] + shifts

    def resistances(tails: Indices, heads: Indices) -> Array:
        return 1.0 / diagonals[tails] + 1.0 / diagonals[heads]

    def descended(R: Attributions) -> Attributions:
        W = np.zeros_like(R)
        conjugate_gradients(
            lambda V: rows @ V + shifts * V,
            W,
            R.copy(),
            precondition=lambda residual: residual / diagonals,
            most_steps=2 * len(R),
            reduction=_REDUCTION,
            per_column=True,
        )
        return W

    if layout == "cg":
        rows = sp.csr_array(P)
        return System(descended, resistances)
    # symmetric positive definite: no pivoting, fill-reducing by minimum degree
    columns = sp.csc_array(P)
    eye = sp.eye_array(P.shape[0], format="csc")
    distinct, groups = np.unique(shifts, return_inverse=True)
    factors = [
        positive_factors(sp.csc_array(columns + s * eye)).solve for s in distinct
    ]
    return System(lambda R: solved_in_groups(factors, groups, R), resistances)


def _dense(P: Array, shifts: Array) -> System:
    """Systems by the inverse; if inaccurate, in the basis of P = U diag(λ) Uᵀ."""
    shift = float(shifts[0])
    largest = float(np.abs(P).sum(axis=1).max())
    if (shifts == shift).all() and largest <= _LARGEST * shift:
        inverse = shifted_inverse(P, shift)

        def of_inverse(tails: Indices, heads: Indices) -> Array:
            diagonal = np.diagonal(inverse)
            edges = diagonal[tails] + diagonal[heads] - 2 * inverse[tails, heads]
            return edges[:, None]

        return System(lambda R: inverse @ R, of_inverse, inverse)
    values, U = la.eigh(P, check_finite=False)
    entries = np.maximum(values, 0.0)[:, None] + shifts

    def of_basis(tails: Indices, heads: Indices) -> Array:
        return (U[tails] - U[heads]) ** 2 @ (1.0 / entries)

    return System(lambda R: U @ ((U.T @ R) / entries), of_basis)


def shifted_inverse(P: Array, shift: float) -> Array:
    """The inverse (δI + P)⁻¹, from the Cholesky factor."""
    matrix = np.array(P, order="F")
    matrix.flat[:: len(matrix) + 1] += shift
    return positive_inverse(matrix)


@dataclass(frozen=True, eq=False)
class Term:
    """A term c φ(A W), with A the identity or a sparse matrix over points."""

    weight: float  # c > 0
    penalty: Penalty  # φ
    map: LinearMap
    # Aᵀ stored by rows, for faster products; None for the identity
    transpose: Sparse | None
    gram: Sparse | Array | None  # AᵀA (N, N), sparse or dense; None for the identity

    @classmethod
    def of(cls, loss: PropertyLoss, *, as_dense: bool) -> Term:
        """The loss with weight one."""
        match loss.map:
            case OverPoints(matrix) as coupled:
                gram = dense_matrix(coupled.gram) if as_dense else coupled.gram
                return cls(1.0, loss.penalty, coupled, sp.csr_array(matrix.T), gram)
            case other:
                return cls(1.0, loss.penalty, other, None, None)

    def adjoint(self, Y: Array) -> Attributions:
        """The adjoint AᵀY of the term."""
        return Y if self.transpose is None else self.transpose @ Y


@dataclass(frozen=True, eq=False)
class Point:
    """Attributions and one dual per term, with the gap they prove."""

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
    """The normalised program; see the formula of the module."""

    G: Attributions  # (N, D): the target
    P: Sparse | Array | None  # gram matrices, with their weights
    Q: Array | None
    terms: tuple[Term, ...]  # the losses that are not smooth
    layout: Layout  # how systems are solved; "dense" needs dense matrices
    totals: Totals | None = None  # the given row sums

    def coupling(self, W: Attributions) -> Attributions:
        """The coupling P W + W Q."""
        coupled = np.zeros_like(W) if self.P is None else self.P @ W
        return coupled if self.Q is None else coupled + W @ self.Q

    def point(self, W: Attributions, duals: Sequence[Array]) -> Point:
        """The gap of W and the duals, after moving the duals into their domains."""
        coupled = self.coupling(W)
        D = W - self.G
        slope = 2.0 * (D + coupled)
        value = float(np.vdot(D, D) + np.vdot(W, coupled))
        excess = 0.0
        inside = []
        for term, dual in zip(self.terms, duals, strict=True):
            c = term.weight
            R = term.map(W)
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
        """W, or the nearest attributions with the given row sums."""
        return W if self.totals is None else self.totals.expanded(W)

    def minimiser(self, system: System, R: Attributions) -> Attributions:
        """The allowed W with the smallest ½⟨W, H W⟩ − ⟨R, W⟩ for a system H."""
        if self.totals is None:
            return system.solve(R)
        # H z uᵀ is a multiple of uᵀ except z(Q u)ᵀ, and V has no such part
        if self.Q is not None:
            R = R - np.outer(self.totals.heights, self.Q @ self.totals.axis)
        return self.totals.expanded(system.solve(R))

    def system(self, shift: float, extra: Sparse | Array | None) -> System:
        """The system (shift + 1) W + P W + W Q + extra W = R for W, or for V."""
        parts = [part for part in (self.P, extra) if part is not None]
        size = len(self.G)
        P = sum(parts[1:], parts[0]) if parts else sp.csr_array((size, size))
        values, vectors = self._feature_basis
        system = factorise(P, values + (1.0 + shift), self.layout)
        return replace(system, vectors=vectors, totals=self.totals)

    @cached_property
    def _feature_basis(self) -> tuple[Array, Array | None]:
        """Q, or (I − uuᵀ)Q(I − uuᵀ) with sums, as V diag(ν) Vᵀ; V is None without Q."""
        if self.Q is None:
            return np.zeros(self.G.shape[1]), None
        Q = self.Q
        if self.totals is not None:
            Q = self.totals.coordinates(self.totals.coordinates(Q).T)
        values, vectors = la.eigh(Q)
        return np.maximum(values, 0.0), vectors


# ---- Newton's method on edge weights, for max-difference losses


_MATRIX_EDGES = 600
"""Active edges up to which H is formed."""
_PIVOTS = 12
_INNER_STEPS = 400
_PATIENCE = 5
_DAMPING = 0.1
"""Share of the diagonal added to H, times the root of the gap.

H is singular where there are more active edges than attributions, so that the quadratic
programs need it; it goes to zero with the gap, so that convergence stays fast.
"""


def is_applicable(program: Composite) -> bool:
    """Whether every term is a max-difference."""
    return bool(program.terms) and all(
        isinstance(term.penalty, GroupMax) for term in program.terms
    )


@dataclass(frozen=True, eq=False)
class State:
    """The state for weights s: the system, W, the differences Z, q and φ."""

    s: Array
    system: System
    W: Attributions
    Z: Array
    q: Array
    bound: float


class EdgeNewton:
    """Newton's method for one program; see the module."""

    def __init__(self, program: Composite) -> None:
        self._program = program
        self._ends = [_ends(term) for term in program.terms]
        self._tails = np.concatenate([ends[0] for ends in self._ends])
        self._heads = np.concatenate([ends[1] for ends in self._ends])
        groups = []
        totals = []
        first = 0
        for term in program.terms:
            assert isinstance(term.penalty, GroupMax), "see is_applicable"
            group = term.penalty.group
            n_groups = int(group[-1]) + 1
            groups.append(group + first)
            first += n_groups
            totals.append(np.full(n_groups, term.weight))
        self._groups = np.concatenate(groups)
        self._totals = np.concatenate(totals)

    def run(self, duals: Sequence[Array], n_steps: int, tolerance: float) -> Point:
        """The best point after Newton steps from the weights s that the duals imply.

        φ rises at each step, but the gap need not fall: hence ``_PATIENCE``.
        """
        state = self._state(self._weights(duals))
        best = point = self._point(state)
        wait = 0
        for _ in range(n_steps):
            if best.gap <= tolerance or wait > _PATIENCE:
                break
            following = self._step(state, min(point.gap, 1.0))
            if following is None:
                break
            state = following
            point = self._point(following)
            wait = 0 if point.excess <= 0.7 * best.excess else wait + 1
            if point.excess < best.excess:
                best = point
        return best

    def _weights(self, duals: Sequence[Array]) -> Array:
        """s_e ∝ ‖y_e‖ in each group, as ‖z_e‖ is equal for all s_e > 0."""
        sizes = [np.sqrt(np.einsum("ed,ed->e", Y, Y)) for Y in duals]
        s = np.concatenate(sizes)
        largest = np.zeros(len(self._totals))
        np.maximum.at(largest, self._groups, s)
        s[s <= 1e-9 * largest[self._groups]] = 0.0
        s[largest[self._groups] == 0.0] = 1.0
        return self._scaled(s, self._groups)

    def _scaled(self, s: Array, groups: Indices) -> Array:
        """The multiple of s in each group with Σ_{e ∈ g} s_e = c_g."""
        return s * (self._totals / np.bincount(groups, s, len(self._totals)))[groups]

    def _state(self, s: Array) -> State:
        program = self._program
        positive = s > 0
        tails = self._tails[positive]
        heads = self._heads[positive]
        laplacian = _laplacian(
            tails, heads, s[positive], len(program.G), program.layout == "dense"
        )
        system = program.system(0.0, laplacian)
        W = program.minimiser(system, program.G)
        Z = W[self._tails] - W[self._heads]
        q = np.einsum("ed,ed->e", Z, Z)
        D = W - program.G
        smooth = np.vdot(D, D) + np.vdot(W, program.coupling(W))
        return State(s, system, W, Z, q, float(smooth + s @ q))

    def _point(self, state: State) -> Point:
        ends = np.cumsum([len(tails) for tails, _ in self._ends])[:-1]
        Y = (2.0 * state.s)[:, None] * state.Z
        return self._program.point(state.W, np.split(Y, ends))

    def _step(self, state: State, gap: float) -> State | None:
        """A step towards the maximiser of the quadratic model, if φ rises."""
        levels = np.bincount(self._groups, state.s * state.q) / self._totals
        active = np.flatnonzero((state.s > 0) | (state.q > levels[self._groups]))
        x = state.s[active]
        q = state.q[active]
        product, diagonal = self._curvature(state, active, _DAMPING * gap**0.5)
        right = q + product(x)
        groups = self._groups[active]
        accuracy = 0.1 * min(gap, 1e-2)
        target = self._maximiser(product, diagonal, right, x, groups, accuracy)
        change = target - x
        rise = float(q @ change)
        if not rise > 0.0:
            return None
        for length in (1.0, 0.5, 0.25, 0.125, 1 / 16, 1 / 64):
            s = state.s.copy()
            s[active] = x + length * change
            following = self._state(s)
            if following.bound >= state.bound + 1e-4 * length * rise:
                return following
            if rise < 1e-12 * state.bound:
                return following  # the rise is below rounding; the gap decides
        return None

    def _maximiser(
        self,
        product: Action,
        diagonal: Array,
        right: Array,
        x: Array,
        groups: Indices,
        accuracy: float,
    ) -> Array:
        """The x ≥ 0 of least ½xᵀHx − rᵀx with Σ_{e ∈ g} x_e = c_g; block pivoting."""
        free = np.ones(len(x), dtype=bool)
        for _ in range(_PIVOTS):
            inverses = np.where(free, 1.0 / diagonal, 0.0)
            x, prices = self._equality(
                product, inverses, right, x, groups, free, accuracy
            )
            negative = free & (x < 0.0)
            slack = right - product(x) - prices[groups]
            wanted = ~free & (slack > 1e-9 * np.abs(right))
            if not (negative.any() or wanted.any()):
                break
            free = (free & ~negative) | wanted
            x = self._scaled(np.where(free, np.maximum(x, 0.0), 0.0), groups)
        return self._scaled(np.maximum(x, 0.0), groups)

    def _equality(
        self,
        product: Action,
        inverses: Array,
        right: Array,
        x: Array,
        groups: Indices,
        free: NDArray[np.bool_],
        accuracy: float,
    ) -> tuple[Array, Array]:
        """The same without x ≥ 0, on the free edges: (x, multipliers of the sums)."""
        totals = np.bincount(groups, inverses, len(self._totals)).astype(np.float64)
        prices = np.zeros(len(totals))

        def projected(r: Array) -> Array:
            """R over the diagonal minus its price in each group, so that sums are zero.

            Prices leave r itself: their rounding would stop conjugate gradients early.
            """
            price = np.bincount(groups, inverses * r, len(totals)) / totals
            r[:] = np.where(free, r - price[groups], 0.0)
            np.add(prices, price, out=prices)
            return inverses * r

        x = x.copy()
        conjugate_gradients(
            product,
            x,
            right - product(x),
            precondition=projected,
            most_steps=_INNER_STEPS,
            reduction=accuracy**2,
        )
        return x, prices

    def _curvature(
        self, state: State, active: Indices, damp: float
    ) -> tuple[Action, Array]:
        """Product and approximate diagonal of the damped H on the active edges."""
        tails = self._tails[active]
        heads = self._heads[active]
        system = state.system
        Z = state.Z[active]
        shares = system.resistances(tails, heads)
        rotated = system.rotate(Z)
        diagonal = 2.0 * (shares * rotated**2).sum(axis=1)
        diagonal += 1e-12 * diagonal.max(initial=0.0) + np.finfo(float).tiny
        damping = damp * diagonal
        if system.inverse is not None and len(active) <= _MATRIX_EDGES:
            rows = np.ascontiguousarray(
                (system.inverse[tails] - system.inverse[heads]).T
            )
            couplings = rows[tails] - rows[heads]  # b_eᵀ M⁻¹ b_f
            H = 2.0 * couplings * (rotated @ rotated.T)
            return lambda x: H @ x + damping * x, diagonal
        edges = incidence(np.column_stack([tails, heads]), len(state.W))
        columns = sp.csr_array(edges.T)

        def product(x: Array) -> Array:
            # how q falls, to first order, as the weights of edges rise by x
            V = system.solve(columns @ (x[:, None] * Z))
            return 2.0 * np.einsum("ed,ed->e", Z, edges @ V) + damping * x

        return product, diagonal


def _laplacian(
    tails: Indices, heads: Indices, s: Array, size: int, dense: bool
) -> Sparse | Array:
    """The weighted Laplacian Σ_e s_e b_e b_eᵀ."""
    rows = np.concatenate([tails, heads, tails, heads])
    columns = np.concatenate([tails, heads, heads, tails])
    entries = np.concatenate([s, s, -s, -s])
    laplacian = sp.coo_array((entries, (rows, columns)), shape=(size, size))
    return laplacian.toarray() if dense else sp.csr_array(laplacian)


def _ends(term: Term) -> tuple[Indices, Indices]:
    """Start and end nodes of each edge: row e of A is 1 and −1 there."""
    assert isinstance(term.map, OverPoints)
    matrix = sp.csr_array(term.map.matrix)
    ends = matrix.indices.reshape(-1, 2).astype(np.intp)
    forward = matrix.data[::2] > 0
    tails, heads = np.where(forward[:, None], ends, ends[:, ::-1]).T
    return tails, heads


# ---- Weights of the binding edges, from the dual of a max-difference loss


def edge_weights(loss: MaxDifferenceRobustness, solution: Solution) -> Array:
    """Weights S of edges, (n_edges,), with which pairwise robustness has the same W.

    S is 0 on edges shorter than the largest difference; the sum of 2S is the weight of
    the loss for ``"max"``, N times that for ``"sum"`` (Tadesse et al. 2024, Eq. 13).
    """
    Y = solution.duals[loss.name]
    Z = loss.residual(solution.W)
    squares = np.einsum("ed,ed->e", Z, Z)
    products = np.maximum(np.einsum("ed,ed->e", Y, Z), 0.0)
    # y_e = 2 s_e z_e; an ordered-pair loss counts S_e‖z_e‖² twice
    s = quotient(products, squares)
    return np.asarray(0.25 * np.bincount(_edge_of_row(loss), s, loss.graph.n_edges))


def _edge_of_row(loss: MaxDifferenceRobustness) -> Indices:
    """Index in ``graph.edges`` of each row of the map."""
    assert isinstance(loss.map, OverPoints)
    ends = np.sort(sp.csr_array(loss.map.matrix).indices.reshape(-1, 2), axis=1)
    edges = loss.graph.edges  # in order
    codes = edges[:, 0] * loss.n_points + edges[:, 1]
    wanted = ends[:, 0].astype(np.intp) * loss.n_points + ends[:, 1]
    return np.searchsorted(codes, wanted)
