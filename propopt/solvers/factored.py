"""Banded and sparse Cholesky factors for long chains and lattices.

Column j of W, in the eigenbasis of CᵀC, solves A_j w = a g for A_j = s_j I + b P and
s_j = a + c ν_j. Where P has a cheap factor (:mod:`propopt.solvers.factored`) one
factor solves for any weight, while Lanczos and conjugate gradients take ever more steps
as b grows, 1e5 on long chains.

Means of components are subtracted first. The losses are those of W in floating point,
with differences along edges. For the residual r = A w − a g the objective
is rᵀA⁻¹r ≤ ‖r‖²/s above the optimum; if rounding makes the right side useless, the
left side is bounded by the step δ ≈ A⁻¹r of a refinement,

    √(rᵀA⁻¹r) ≤ √(δᵀA δ) + ‖r − A δ‖/√s.

Cholesky factors of s I + b P for a sparse P, with cost estimates before factorising:

* **Banded**, in the given order of points or by reverse Cuthill and McKee, whichever
  has the smaller bandwidth w. N w² operations; for chains, paths, neighbours on a line.
* **Sparse**. A forest has no fill if each node precedes its parent, as in reversed
  breadth-first order. Other graphs use minimum degree; the envelope in the order of
  Cuthill and McKee bounds their fill loosely from above.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, TypeAlias, final

import numpy as np
import scipy.linalg as la
import scipy.sparse as sp
import scipy.sparse.linalg as spla
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components, reverse_cuthill_mckee

from propopt.base.arrays import Array, Attributions, Sparse
from propopt.base.errors import SolverFailure
from propopt.base.resources import few_threads, memory_refusal
from propopt.base.text import Reason
from propopt.losses import Program
from propopt.losses.maps import OverPoints
from propopt.proofs.curvature import Quadratic, curve_refusal
from propopt.solvers.solver import (
    Curve,
    Dispatcher,
    Measurement,
    Prepared,
    Solution,
)


# ---- The same losses as the closed form, by a factor of the graph for each weight


_Kind: TypeAlias = Literal["banded", "sparse"]

# seconds, by measurement
BAND_NODE = 1.3e-7
BAND_ENTRY = 2e-8
BAND_OPERATION = 5e-10
BAND_SOLVE_NODE = 5e-8
BAND_SOLVE_ENTRY = 4e-9
SPARSE_ENTRY = 1.7e-6
SPARSE_OPERATION = 1e-9
SPARSE_SOLVE = 2.5e-8
NARROW = 4  # up to this bandwidth no other order is tried
BYTES_PER_ENTRY = 16.0  # a factor and the matrix that it is made of, or its indices


Factor: TypeAlias = Callable[[Array], Array]
"""(s I + b P)⁻¹ R for right-hand sides R (N, k)."""


@final
@dataclass(frozen=True, eq=False)
class Elimination:
    """A factorisation method of s I + b P for any s > 0 and b ≥ 0."""

    P: Sparse  # (N, N): symmetric and positive semidefinite
    # (N,): a permutation that makes P narrow, or puts leaves first
    order: NDArray[np.intp] | None
    # (N,): how far left of the diagonal each row of a narrow P reaches
    heights: NDArray[np.intp]
    kind: _Kind  # the cheaper kind

    @classmethod
    def of(cls, P: Sparse) -> Elimination:
        """Choose the cheaper kind of factor, by an estimate of seconds."""
        matrix = sp.csr_array(P)
        order, heights = _narrow(matrix)
        banded = cls(matrix, order, heights, "banded")
        sparse = cls(matrix, None, heights, "sparse")
        n_trees, _ = connected_components(matrix, directed=False)
        if sp.tril(matrix, k=-1).count_nonzero() == len(heights) - n_trees:  # a forest
            sparse = cls(matrix, _by_breadth(matrix), np.ones_like(heights), "sparse")
        return min(banded, sparse, key=lambda choice: choice.seconds(1))

    @property
    def bandwidth(self) -> int:
        """The bandwidth w in the chosen order."""
        return int(self.heights.max(initial=0))

    def seconds(self, n_columns: int) -> float:
        """Estimated seconds for one factor and ``n_columns`` right-hand sides."""
        n_nodes = len(self.heights)
        w = self.bandwidth
        if self.kind == "banded":
            factor = BAND_NODE + w * (BAND_ENTRY + w * BAND_OPERATION)
            solve = BAND_SOLVE_NODE + w * BAND_SOLVE_ENTRY
            return n_nodes * (factor + n_columns * solve)
        operations = float((self.heights.astype(np.float64) ** 2).sum())
        factor = self._fill * SPARSE_ENTRY + operations * SPARSE_OPERATION
        return factor + n_columns * self._fill * SPARSE_SOLVE

    @property
    def n_bytes(self) -> float:
        """Estimated memory of one factor."""
        if self.kind == "banded":
            return BYTES_PER_ENTRY * len(self.heights) * (self.bandwidth + 1.0)
        return BYTES_PER_ENTRY * self._fill

    def factor(self, shift: float, weight: float) -> Factor:
        """The factor of ``shift`` I + ``weight`` P."""
        try:
            factor = self._banded if self.kind == "banded" else self._sparse
            solve = factor(shift, weight)
        except (la.LinAlgError, RuntimeError) as error:
            raise SolverFailure(
                f"{shift:.1e} I + {weight:.1e} P has no Cholesky factor to rounding: "
                "the similarities of the graph span too many orders of magnitude"
            ) from error
        order = self.order
        if order is None:
            return solve

        def reordered(R: Array) -> Array:
            W = np.empty_like(R)
            W[order] = solve(R[order])
            return W

        return reordered

    def _banded(self, shift: float, weight: float) -> Factor:
        matrix = weight * self._band
        matrix[0] += shift
        with few_threads(0):  # blocks of a band are small
            lower = la.cholesky_banded(
                matrix, overwrite_ab=True, lower=True, check_finite=False
            )
        return lambda R: la.cho_solve_banded((lower, True), R, check_finite=False)

    def _sparse(self, shift: float, weight: float) -> Factor:
        columns = "MMD_AT_PLUS_A" if self.order is None else "NATURAL"
        eye = sp.eye_array(len(self.heights))
        factors = positive_factors(
            sp.csc_array(weight * self._ordered + shift * eye), columns
        )
        return lambda R: factors.solve(np.asfortranarray(R))

    @cached_property
    def _ordered(self) -> Sparse:
        return self.P if self.order is None else self.P[self.order][:, self.order]

    @cached_property
    def _band(self) -> Array:
        """The lower band of the ordered P: row k holds its k-th subdiagonal."""
        entries = self._ordered.tocoo()
        row, column = entries.coords
        lower = row >= column
        band = np.zeros((self.bandwidth + 1, len(self.heights)))
        band[(row - column)[lower], column[lower]] = entries.data[lower]
        return band

    @cached_property
    def _fill(self) -> float:
        """A bound of the entries of the factor."""
        return float(self.heights.sum()) + len(self.heights)


def positive_factors(matrix: Sparse, order: str = "MMD_AT_PLUS_A") -> spla.SuperLU:
    """LU factors of a symmetric positive definite matrix: without pivoting."""
    return spla.splu(
        matrix,
        permc_spec=order,
        diag_pivot_thresh=0.0,
        options={"SymmetricMode": True},
    )


def solved_in_groups(
    factors: Sequence[Factor], groups: NDArray[np.intp], R: Array
) -> Array:
    """The solution for right-hand sides R (N, k), each by the factor of its group."""
    if len(factors) == 1:
        return factors[0](R)
    W = np.empty_like(R)
    for group, factor in enumerate(factors):
        members = groups == group
        W[:, members] = factor(R[:, members])
    return W


def _by_breadth(P: sp.csr_array) -> NDArray[np.intp]:
    return reverse_cuthill_mckee(P, symmetric_mode=True).astype(np.intp)


def _narrow(P: sp.csr_array) -> tuple[NDArray[np.intp] | None, NDArray[np.intp]]:
    """The order of the smaller bandwidth, None for the present one, and its heights."""
    heights = _heights(P, None)
    if heights.max(initial=0) <= NARROW:
        return None, heights
    order = _by_breadth(P)
    others = _heights(P, order)
    return (order, others) if others.max() < heights.max() else (None, heights)


def _heights(P: sp.csr_array, order: NDArray[np.integer] | None) -> NDArray[np.intp]:
    """The distance from the diagonal to the first entry of each row of ordered P."""
    n_nodes = P.shape[0]
    rank = np.arange(n_nodes)
    if order is not None:
        rank[order] = np.arange(n_nodes)
    first = np.arange(n_nodes)
    np.minimum.at(first, np.repeat(rank, np.diff(P.indptr)), rank[P.indices])
    return np.arange(n_nodes) - first


def bandwidth(P: Sparse) -> int:
    """The bandwidth of P in the reverse order of Cuthill and McKee."""
    matrix = sp.csr_array(P)
    return int(_heights(matrix, _by_breadth(matrix)).max(initial=0))


REFINEMENTS = 3

_ABC: TypeAlias = tuple[float, float, float]


@final
@dataclass(frozen=True)
class Factored(Dispatcher):
    """Sparse Cholesky factors, one for each weight; see the module's formulas."""

    # of the graph: its order takes seconds for large graphs, and is computed once
    elimination: Elimination | None = None

    name = "factored"

    def take(self, program: Program) -> Factored | Reason:
        reason = curve_refusal(program)
        if reason is not None:
            return Reason(reason)
        graph = stored_graph(program)
        if graph is None:
            return Reason("there is no robustness loss with a stored, sparse graph")
        n_points, n_features = program.shape
        elimination = self.elimination or Elimination.of(graph.gram)
        n_bytes = elimination.n_bytes + 100.0 * n_points * n_features
        label = f"a factor of the graph of {n_points} points"
        too_large = memory_refusal(n_bytes, label, "the krylov solver works without it")
        return Factored(elimination) if too_large is None else Reason(too_large)

    def prepare(self, program: Program) -> Prepared:
        graph = stored_graph(program)
        assert graph is not None, "it refuses other programs"
        elimination = self.elimination or Elimination.of(graph.gram)
        [loss] = program.kinds["robustness"]
        return _Factors(Quadratic.of(program), graph, loss.name, elimination)


def stored_graph(program: Program) -> OverPoints | None:
    """The sparse map over points of a program, if there is one."""
    for loss in program.kinds["robustness"]:
        if isinstance(loss.map, OverPoints) and not isinstance(
            loss.map.matrix, np.ndarray
        ):
            return loss.map
    return None


class _Factors(Curve):
    def __init__(
        self,
        quadratic: Quadratic,
        graph: OverPoints,
        name: str,
        elimination: Elimination,
    ) -> None:
        self._quadratic = quadratic
        self._graph = graph
        self._name = name
        self._elimination = elimination
        self._basis = quadratic.feature_basis
        means, rest = quadratic.split(quadratic.G)
        self._means = means.T
        self._G = rest.T
        parts = graph.components
        self._sizes = np.zeros(0) if parts is None else parts.sizes

    def measure(self, weights: Array, tolerance: float) -> Measurement:
        abc = self._quadratic.coefficients(weights)
        W, excess = self._optimum(self._systems(abc), tolerance)
        losses = self._losses(W, abc)
        return Measurement(
            losses=self._quadratic.in_program_order(*losses), excess=excess
        )

    def solve(
        self, weights: Array, tolerance: float, start: Solution | None = None
    ) -> Solution:
        del start
        systems = self._systems(self._quadratic.coefficients(weights))
        rest, _ = self._optimum(systems, tolerance)
        means = systems.abc[0] * self._means / systems.shifts
        W = self._quadratic.joined(means.T, rest.T)
        return Solution(W=W, duals=self._duals(W, systems, tolerance))

    def _duals(
        self, W: Attributions, systems: _Systems, tolerance: float
    ) -> dict[str, Array]:
        """Duals 2bB(W − δ) without the rounding error δ of W, if b makes it matter."""
        rest = self._quadratic.split(W)[1].T
        residual = systems.product(rest) - systems.abc[0] * self._G
        enough = 0.1 * tolerance * self._value(rest, systems.abc)
        if systems.norm(residual) ** 2 <= enough:
            return {}
        true = self._basis.backward((rest - systems.solve(residual)).T).T
        return {self._name: 2.0 * systems.abc[1] * self._graph(true)}

    def _optimum(self, systems: _Systems, tolerance: float) -> tuple[Array, float]:
        """W without its means, in the basis of features, and a bound of its excess."""
        right = systems.abc[0] * self._G
        W = systems.solve(right)
        enough = 0.1 * tolerance * self._value(W, systems.abc)
        for last in (False,) * REFINEMENTS + (True,):
            residual = systems.product(W) - right
            bound = systems.norm(residual)
            if bound**2 <= enough:
                break
            step = systems.solve(residual)
            image = systems.product(step)
            energy = np.sqrt(max(float(np.vdot(step, image)), 0.0))
            bound = min(bound, energy + systems.norm(residual - image))
            if last or bound**2 <= enough:
                break
            W -= step
        return W, bound**2

    def _systems(self, abc: _ABC) -> _Systems:
        shifts = abc[0] + abc[2] * self._basis.values
        distinct, groups = np.unique(shifts, return_inverse=True)
        factors = tuple(self._elimination.factor(float(s), abc[1]) for s in distinct)
        return _Systems(abc, shifts, self._graph, factors, groups)

    def _value(self, W: Array, abc: _ABC) -> float:
        return float(np.dot(abc, self._losses(W, abc)))

    def _losses(self, W: Array, abc: _ABC) -> _ABC:
        """The three losses of W plus the means of its components."""
        a, _, c = abc
        nu = self._basis.values
        share = a / (a + c * nu)
        removed = c * nu / (a + c * nu)
        squares = self._sizes @ self._means**2
        matching = _square(W - self._G) + float(squares @ removed**2)
        over_features = (W**2).sum(axis=0) + squares * share**2
        return matching, _square(self._graph(W)), float(over_features @ nu)


@dataclass(frozen=True, eq=False)
class _Systems:
    """A w = r for all columns: A_j = s_j I + b BᵀB."""

    abc: _ABC
    shifts: Array
    graph: OverPoints
    factors: tuple[Factor, ...]  # one for each distinct shift
    groups: NDArray[np.intp]

    def solve(self, R: Array) -> Array:
        return solved_in_groups(self.factors, self.groups, R)

    def product(self, W: Array) -> Array:
        """A w by differences along edges, so that common parts cancel exactly."""
        return self.shifts * W + self.abc[1] * self.graph.adjoint(self.graph(W))

    def norm(self, R: Array) -> float:
        """A bound of √(rᵀA⁻¹r)."""
        return float(np.sqrt(((R * R).sum(axis=0) / self.shifts).sum()))


def _square(R: Array) -> float:
    return float(np.vdot(R, R))
