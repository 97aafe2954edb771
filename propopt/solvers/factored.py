"""The same losses as the closed form, by a factor of the graph for each weight.

Column j of W, in the eigenbasis of CᵀC, solves A_j w = a g for A_j = s_j I + b P and
s_j = a + c ν_j. Where P has a cheap factor (:mod:`propopt.solvers.factors`) that is
all there is to do, whatever the weight: Lanczos and conjugate gradients take ever more
steps as b grows, 1e5 of them on long chains.

Means of components are taken out first. The losses are those of W as it stands in
memory, with differences taken along edges. For the residual r = A w − a g the objective
is rᵀA⁻¹r ≤ ‖r‖²/s above the optimum; where rounding makes the right side useless, the
left one is bounded by the step δ ≈ A⁻¹r of a refinement,

    √(rᵀA⁻¹r) ≤ √(δᵀA δ) + ‖r − A δ‖/√s.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from propopt._typing import Array, Attributions
from propopt.curvature.eigenbasis import Eigenbasis
from propopt.curvature.quadratic import Quadratic, curve_refusal
from propopt.losses import Program
from propopt.maps import OverPoints
from propopt.memory import memory_refusal
from propopt.solvers.base import Curve, Measurement, Prepared, Solution, Solver
from propopt.solvers.factors import Elimination, Factor


REFINEMENTS = 3

_ABC: TypeAlias = tuple[float, float, float]


@final
@dataclass(frozen=True)
class Factored(Solver):
    """Sparse Cholesky factors, one for each weight; see the module's formulas."""

    @property
    def name(self) -> str:
        return "factored"

    def refusal(self, program: Program) -> str | None:
        return curve_refusal(program) or _graph_refusal(program)

    def prepare(self, program: Program) -> Prepared:
        quadratic = Quadratic.of(program.losses, program.shape)
        place = quadratic.places[1]
        assert place is not None, "it refuses programs without a graph"
        loss = program.losses[place]
        assert isinstance(loss.map, OverPoints), "it refuses other graphs"
        return _Factors(quadratic, loss.map, loss.name)


def stored_graph(program: Program) -> OverPoints | None:
    """The sparse map over points of a program, if there is one."""
    for loss in program.losses:
        if isinstance(loss.map, OverPoints) and not isinstance(
            loss.map.matrix, np.ndarray
        ):
            return loss.map
    return None


def _graph_refusal(program: Program) -> str | None:
    graph = stored_graph(program)
    if graph is None:
        return "there is no robustness loss whose graph is stored, and sparse"
    n_points, n_features = program.shape
    n_bytes = Elimination.of(graph.gram).n_bytes + 100.0 * n_points * n_features
    what = f"a factor of the graph of {n_points} points"
    return memory_refusal(n_bytes, what, "the krylov solver works without it")


class _Factors(Curve):
    def __init__(self, quadratic: Quadratic, graph: OverPoints, name: str) -> None:
        self._quadratic = quadratic
        self._graph = graph
        self._name = name
        self._elimination = Elimination.of(graph.gram)
        self._basis = Eigenbasis(
            quadratic.Q, quadratic.feature_parts, quadratic.G.shape[1]
        )
        self._means, self._G = self._split(quadratic.G)
        parts = graph.components
        self._sizes = np.zeros(0) if parts is None else parts.sizes

    def _split(self, W: Attributions) -> tuple[Array, Array]:
        """Means of components and the rest, in the basis of features."""
        rest = W - self._quadratic.constants
        means = np.zeros((0, W.shape[1]))
        if self._graph.components is not None:
            means, rest = self._graph.components.split(rest)
        return self._basis.forward(means.T).T, self._basis.forward(rest.T).T

    def _joined(self, means: Array, rest: Array) -> Attributions:
        """The inverse of :meth:`_split`."""
        W = np.ascontiguousarray(self._basis.backward(rest.T).T)
        if self._graph.components is not None:
            W += self._graph.components.spread(self._basis.backward(means.T).T)
        W += self._quadratic.constants
        return W

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
        W = self._joined(means, rest)
        return Solution(W=W, duals=self._duals(W, systems, tolerance))

    def _duals(
        self, W: Attributions, systems: _Systems, tolerance: float
    ) -> dict[str, Array]:
        """2bB(W − δ) for the δ by which rounding moved W, where that matters.

        The last digits of W, times a large b, are a slope that would prove nothing.
        """
        _, rest = self._split(W)
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
        return _Systems.of(self._elimination, self._graph, abc, shifts)

    def _value(self, W: Array, abc: _ABC) -> float:
        return float(np.dot(abc, self._losses(W, abc)))

    def _losses(self, W: Array, abc: _ABC) -> _ABC:
        """Of W and of the means beside it."""
        a, _, c = abc
        nu = self._basis.values
        kept, lost = a / (a + c * nu), c * nu / (a + c * nu)
        squares = self._sizes @ self._means**2
        own = _square(W - self._G) + float(squares @ lost**2)
        over_features = (W**2).sum(axis=0) + squares * kept**2
        return own, _square(self._graph(W)), float(over_features @ nu)


@dataclass(frozen=True, eq=False)
class _Systems:
    """A w = r for all columns: A_j = s_j I + b BᵀB."""

    abc: _ABC
    shifts: Array
    graph: OverPoints
    factors: tuple[Factor, ...]
    groups: NDArray[np.intp]

    @classmethod
    def of(
        cls,
        elimination: Elimination,
        graph: OverPoints,
        abc: _ABC,
        shifts: Array,
    ) -> _Systems:
        """One factor for each distinct shift."""
        distinct, groups = np.unique(shifts, return_inverse=True)
        factors = tuple(elimination.factor(float(s), abc[1]) for s in distinct)
        return cls(abc, shifts, graph, factors, groups)

    def solve(self, R: Array) -> Array:
        if len(self.factors) == 1:
            return self.factors[0].solve(R)
        W = np.empty_like(R)
        for group, factor in enumerate(self.factors):
            own = self.groups == group
            W[:, own] = factor.solve(R[:, own])
        return W

    def product(self, W: Array) -> Array:
        """A w, by differences along edges: what they have in common leaves nothing."""
        forces = self.graph.adjoint(self.graph(W))
        return np.asarray(self.shifts * W + self.abc[1] * forces)

    def norm(self, R: Array) -> float:
        """A bound of √(rᵀA⁻¹r)."""
        return float(np.sqrt(((R * R).sum(axis=0) / self.shifts).sum()))


def _square(R: Array) -> float:
    return float(np.vdot(R, R))
