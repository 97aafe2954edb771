"""Newton's method on edge weights, for max-difference losses in l2.

Σ_g c_g max_{e ∈ g} ‖z_e‖² with z_e = w_t − w_h is the largest Σ s_e ‖z_e‖² over weights
s ≥ 0 with Σ_{e ∈ g} s_e = c_g. Exchanging the two gives the concave program

    max_s  φ(s) = min_W ‖W − G‖² + ⟨W, P W + W Q⟩ + Σ_e s_e ‖z_e‖²,

a pairwise robustness with the worst weights. Its W solves one linear system, and

    ∂φ/∂s_e = q_e = ‖z_e‖²,   −∂²φ/∂s_e∂s_f = H_ef = 2 Σ_j z_ej z_fj b_eᵀ M_j⁻¹ b_f,

with M_j the matrix of feature j and b_e the row of edge e. The number of features is
gone from the unknowns, and only edges at the largest difference have a weight: each
Newton step is a small quadratic program over those, by conjugate gradients and block
pivoting. The subgradient of the loss is y_e = 2 s_e z_e.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from propopt._typing import Array, Attributions, Sparse
from propopt.linear.conjugate_gradients import conjugate_gradients
from propopt.maps import OverPoints
from propopt.penalties import GroupMax
from propopt.solvers.splitting.composite import Composite, Point, RotatedSystem, Term
from propopt.solvers.splitting.systems import Inverse


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
    """True where every term is a max-difference in l2."""
    return bool(program.terms) and all(
        isinstance(t.penalty, GroupMax) and t.penalty.degree == 2 for t in program.terms
    )


@dataclass(frozen=True, eq=False)
class State:
    """What weights s imply: the systems, W, the differences Z, q and φ."""

    s: Array
    system: RotatedSystem
    W: Attributions
    Z: Array
    q: Array
    bound: float


class EdgeNewton:
    """Newton's method for one program; see the module.

    Parameters
    ----------
    program : Composite
        A program for which :func:`is_applicable`.
    """

    def __init__(self, program: Composite) -> None:
        self._program = program
        self._ends = [_ends(term) for term in program.terms]
        self._tails = np.concatenate([ends[0] for ends in self._ends])
        self._heads = np.concatenate([ends[1] for ends in self._ends])
        groups, totals, first = [], [], 0
        for term in program.terms:
            own = _groups(term)
            groups.append(own + first)
            first += int(own[-1]) + 1
            totals.append(np.full(int(own[-1]) + 1, term.weight))
        self._groups = np.concatenate(groups)
        self._totals = np.concatenate(totals)

    def run(self, duals: Sequence[Array], n_steps: int, tolerance: float) -> Point:
        """The best point after Newton steps from the weights s that the duals imply.

        φ rises at each step, but the gap need not fall: it stops early where the gap
        has not become clearly smaller for ``_PATIENCE`` steps.
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
            state, point = following, self._point(following)
            wait = 0 if point.excess <= 0.7 * best.excess else wait + 1
            if point.excess < best.excess:
                best = point
        return best

    def _weights(self, duals: Sequence[Array]) -> Array:
        """s_e ∝ ‖y_e‖ in each group, for ‖z_e‖ is the same where s_e > 0."""
        sizes = [np.sqrt(np.einsum("ed,ed->e", Y, Y)) for Y in duals]
        s = np.concatenate(sizes)
        largest = np.zeros(len(self._totals))
        np.maximum.at(largest, self._groups, s)
        s[s <= 1e-9 * largest[self._groups]] = 0.0
        s[largest[self._groups] == 0.0] = 1.0
        return self._scaled(s, self._groups)

    def _scaled(self, s: Array, groups: NDArray[np.intp]) -> Array:
        """The multiple of s in each group with Σ_{e ∈ g} s_e = c_g."""
        sums = np.bincount(groups, s, len(self._totals))
        return s * (self._totals / sums)[groups]

    def _state(self, s: Array) -> State:
        program = self._program
        held = s > 0
        tails, heads = self._tails[held], self._heads[held]
        laplacian = _laplacian(
            tails, heads, s[held], len(program.G), program.layout == "dense"
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
        """Towards the maximiser of the quadratic model, if φ rises on the way."""
        levels = np.bincount(self._groups, state.s * state.q) / self._totals
        active = np.flatnonzero((state.s > 0) | (state.q > levels[self._groups]))
        x, q = state.s[active], state.q[active]
        model = _Model.of(
            state,
            self._tails[active],
            self._heads[active],
            active,
            _DAMPING * gap**0.5,
        )
        right = q + model.product(x)
        groups = self._groups[active]
        target = self._maximiser(model, right, x, groups, 0.1 * min(gap, 1e-2))
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
                return following  # the rise is below rounding; the gap will tell
        return None

    def _maximiser(
        self,
        model: _Model,
        right: Array,
        x: Array,
        groups: NDArray[np.intp],
        accuracy: float,
    ) -> Array:
        """The x ≥ 0 of least ½xᵀHx − rᵀx with Σ_{e ∈ g} x_e = c_g; block pivoting."""
        free = np.ones(len(x), dtype=bool)
        for _ in range(_PIVOTS):
            x, prices = self._equality(model, right, x, groups, free, accuracy)
            negative = free & (x < 0.0)
            slack = right - model.product(x) - prices[groups]
            wanted = ~free & (slack > 1e-9 * np.abs(right))
            if not (negative.any() or wanted.any()):
                break
            free = (free & ~negative) | wanted
            x = self._scaled(np.where(free, np.maximum(x, 0.0), 0.0), groups)
        return self._scaled(np.maximum(x, 0.0), groups)

    def _equality(
        self,
        model: _Model,
        right: Array,
        x: Array,
        groups: NDArray[np.intp],
        free: NDArray[np.bool_],
        accuracy: float,
    ) -> tuple[Array, Array]:
        """The same without x ≥ 0, on the free edges: (x, multipliers of the sums)."""
        projection = _Projection.of(model, groups, free, len(self._totals))
        x = x.copy()
        conjugate_gradients(
            model.product,
            x,
            right - model.product(x),
            precondition=projection,
            most_steps=_INNER_STEPS,
            reduction=accuracy**2,
        )
        return x, projection.prices


@dataclass(frozen=True, eq=False)
class _Projection:
    """The preconditioner of free edges that keeps the sums of all groups.

    r less its price in each group, so that r over the diagonal adds up to zero there.
    Prices are taken out of r itself, and added up: rounding of a large price would stop
    conjugate gradients early.
    """

    inverses: Array
    free: NDArray[np.bool_]
    groups: NDArray[np.intp]
    totals: Array
    prices: Array

    @classmethod
    def of(
        cls,
        model: _Model,
        groups: NDArray[np.intp],
        free: NDArray[np.bool_],
        n_groups: int,
    ) -> _Projection:
        inverses = np.where(free, 1.0 / model.diagonal, 0.0)
        totals = np.bincount(groups, inverses, n_groups).astype(np.float64)
        return cls(inverses, free, groups, totals, np.zeros(n_groups))

    def __call__(self, r: Array) -> Array:
        sums = np.bincount(self.groups, self.inverses * r, len(self.totals))
        prices = sums / self.totals
        r[:] = np.where(self.free, r - prices[self.groups], 0.0)
        np.add(self.prices, prices, out=self.prices)
        return self.inverses * r


@dataclass(frozen=True, eq=False)
class _Model:
    """H on the active edges, damped: its product and its diagonal, or nearly."""

    product: Callable[[Array], Array]
    diagonal: Array

    @classmethod
    def of(
        cls,
        state: State,
        tails: NDArray[np.intp],
        heads: NDArray[np.intp],
        active: NDArray[np.intp],
        damp: float,
    ) -> _Model:
        system, Z = state.system, state.Z[active]
        shares = system.system.resistances(tails, heads)
        rotated = system.rotate(Z)
        diagonal = 2.0 * (shares * rotated**2).sum(axis=1)
        diagonal += 1e-12 * diagonal.max(initial=0.0) + np.finfo(float).tiny
        damping = damp * diagonal
        if isinstance(system.system, Inverse) and len(active) <= _MATRIX_EDGES:
            H = _matrix(system.system, rotated, tails, heads)
            return cls(lambda x: H @ x + damping * x, diagonal)
        rows = _incidence(tails, heads, system.size)
        columns = sp.csr_array(rows.T)

        def product(x: Array) -> Array:
            # how q falls, to first order, as the weights of edges rise by x
            V = system.solve(columns @ (x[:, None] * Z))
            return 2.0 * np.einsum("ed,ed->e", Z, rows @ V) + damping * x

        return cls(product, diagonal)


def _matrix(
    system: Inverse, Z: Array, tails: NDArray[np.intp], heads: NDArray[np.intp]
) -> Array:
    rows = np.ascontiguousarray((system.inverse[tails] - system.inverse[heads]).T)
    couplings = rows[tails] - rows[heads]  # b_eᵀ M⁻¹ b_f
    return np.asarray(2.0 * couplings * (Z @ Z.T))


def _incidence(tails: NDArray[np.intp], heads: NDArray[np.intp], size: int) -> Sparse:
    """b_eᵀ, one row for each edge."""
    ends = np.column_stack([tails, heads]).ravel()
    signs = np.tile([1.0, -1.0], len(tails))
    starts = np.arange(len(tails) + 1) * 2
    return sp.csr_array((signs, ends, starts), shape=(len(tails), size))


def _laplacian(
    tails: NDArray[np.intp], heads: NDArray[np.intp], s: Array, size: int, dense: bool
) -> Sparse | Array:
    """Σ_e s_e b_e b_eᵀ."""
    if dense:
        flat = np.bincount(tails * size + heads, s, size * size)
        upper = flat.reshape(size, size)
        similarities = upper + upper.T
        laplacian = -similarities
        laplacian.flat[:: size + 1] += similarities.sum(axis=1)
        return laplacian
    rows = np.concatenate([tails, heads, tails, heads])
    columns = np.concatenate([tails, heads, heads, tails])
    entries = np.concatenate([s, s, -s, -s])
    return sp.csr_array(sp.coo_array((entries, (rows, columns)), shape=(size, size)))


def _ends(term: Term) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Where each edge starts and ends: row e of A is 1 there and −1 here."""
    assert isinstance(term.map, OverPoints)
    matrix = sp.csr_array(term.map.matrix)
    ends = matrix.indices.reshape(-1, 2).astype(np.intp)
    forward = matrix.data[::2] > 0
    return (
        np.where(forward, ends[:, 0], ends[:, 1]),
        np.where(forward, ends[:, 1], ends[:, 0]),
    )


def _groups(term: Term) -> NDArray[np.intp]:
    assert isinstance(term.penalty, GroupMax)
    sizes = np.diff(term.penalty.starts, append=term.penalty.n_rows)
    return np.repeat(np.arange(len(sizes)), sizes)
