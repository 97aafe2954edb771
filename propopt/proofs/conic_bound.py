r"""A lower bound of any conic program, from duals that are verified here.

A backend of cvxpy is given min ½xᵀPx + cᵀx + d subject to s = b − Ax ∈ K. For any x̂ and
any z in the dual cone K*, with P positive semidefinite and r = Px̂ + c + Aᵀz,

    ½xᵀPx + cᵀx ≥ −½x̂ᵀPx̂ − bᵀz + rᵀx   for every feasible x,

since ½(x − x̂)ᵀP(x − x̂) ≥ 0 and zᵀs ≥ 0. No status and no residual of the backend is
trusted: z is moved into K*, x̂ is chosen so that r is zero where P is positive, the
remaining r is computed from the data, and r times a box is subtracted. The box follows
only from the rows of the program, as in presolving: it contains all feasible x with an
objective of at most that of the given attributions. Others need no bound.

P has to be diagonal, so that its sign is known; otherwise the program is written
without P. If Clarabel is the backend, one solve gives W and the duals.

The reductions of cvxpy are trusted; atoms that it approximates are refused.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, final

import numpy as np
import scipy.sparse as sp
import scipy.sparse.linalg as spla
from numpy.typing import NDArray

from propopt.base.arrays import Array, Attributions, Sparse
from propopt.base.checks import largest_entry
from propopt.base.errors import InvalidInput, Refused
from propopt.base.text import Reason
from propopt.losses import Bound, Objective, Program, PropertyLoss
from propopt.losses.algebra import aligned_attributions, objective_scale
from propopt.losses.completeness import is_completeness
from propopt.losses.custom import ConstraintFunction, Custom
from propopt.losses.linear_algebra import EPSILON
from propopt.losses.maps import Absolute, CvxpyConstraint, Squared
from propopt.proofs.certificate import Certificate


_SLACK = 1e-9
"""Relative widening of boxes, against rounding."""

_ACCURACY = 1e-9
"""The accuracy of Clarabel if no gap was requested."""

_LARGEST = 600.0
"""The largest exponent of exp in double precision."""

_ROUNDS = 50
"""Rounds of propagation of bounds."""


def clarabel_options(accuracy: float) -> dict[str, float]:
    """The options of Clarabel for an accuracy."""
    return dict.fromkeys(("tol_gap_abs", "tol_gap_rel", "tol_feas"), accuracy)


@final
class Solved:
    """The conic data of a cvxpy minimisation problem, and Clarabel's solution."""

    problem: Any
    data: dict[str, Any]
    chain: Any
    inverse: Any
    P: Array | None  # (n,): the diagonal of the quadratic form, if it is one
    raw: Any

    def __init__(self, problem: Any, options: Mapping[str, Any]) -> None:
        self.problem = problem
        for use_quad in (True, False):
            self.data, self.chain, self.inverse = problem.get_problem_data(
                "CLARABEL", solver_opts={**options, "use_quad_obj": use_quad}
            )
            self.P = _nonnegative_diagonal(self.data)
            if self.P is not None:
                break
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the result is verified
            self.raw = self.chain.solve_via_data(
                problem, self.data, solver_opts=dict(options)
            )

    def unpack(self) -> None:
        """Set the values of the cvxpy variables to the primal solution."""
        self.problem.unpack_results(self.raw, self.chain, self.inverse)

    def bound(
        self,
        variable: Any,  # W, a cvxpy.Variable of the problem
        box: tuple[Array, Array],  # (N, D): contains W if the objective is <= most
        most: float,  # the objective of some attributions
    ) -> float | Reason:
        """A lower bound of the objective, or the reason why there is none."""
        approximated = next(_approximated(self.problem), None)
        if approximated is not None:
            return Reason(f"cvxpy approximates {approximated}")
        if self.P is None:
            return Reason("its quadratic form is not diagonal")
        program = ConicProgram.of(self.data, self.P, variable, box)
        z = np.array(self.raw.z, dtype=np.float64)
        if not np.isfinite(z).all():
            return Reason(f"Clarabel gave no duals ({self.raw.status})")
        return program.bound(z, most)


def _nonnegative_diagonal(data: dict[str, Any]) -> Array | None:
    """The diagonal of P, shape (n,); None if P is not diagonal and nonnegative."""
    if data.get("P") is None:
        return np.zeros(len(data["c"]))
    matrix = sp.csr_array(data["P"])
    diagonal: Array = matrix.diagonal()
    rest = (matrix - sp.diags_array(diagonal)).count_nonzero()
    return None if rest or (diagonal < 0.0).any() else diagonal


def _approximated(problem: Any) -> Iterator[str]:
    """Yield atoms that cvxpy approximates."""
    stack = [problem.objective.expr]
    stack += [arg for constraint in problem.constraints for arg in constraint.args]
    while stack:
        expression = stack.pop()
        if getattr(expression, "approx_error", 0.0):
            yield str(expression)
        stack.extend(expression.args)


@final
@dataclass(eq=False)
class ConicProgram:
    """The program min ½xᵀPx + cᵀx + d subject to b − Ax ∈ K, diagonal P ≥ 0."""

    P: Array  # (n,): the diagonal
    c: Array
    d: float
    A: Sparse
    b: Array
    dims: Any
    low: Array  # (n,): bounds of W; infinite for other unknowns
    high: Array

    @classmethod
    def of(
        cls, data: dict[str, Any], P: Array, variable: Any, box: tuple[Array, Array]
    ) -> ConicProgram:
        """Take the program from the data that cvxpy prepares for Clarabel."""
        n = len(data["c"])
        parametrised = data["param_prob"]
        offset = parametrised.apply_parameters(quad_obj=data.get("P") is not None)[-3]
        first = parametrised.var_id_to_col[variable.id]
        low = np.full(n, -np.inf)
        high = np.full(n, np.inf)
        columns_of_W = slice(first, first + variable.size)
        low[columns_of_W], high[columns_of_W] = (side.ravel(order="F") for side in box)
        c, b = (np.asarray(data[key], dtype=np.float64) for key in ("c", "b"))
        A = sp.csr_array(data["A"])
        return cls(P, c, float(offset), A, b, data["dims"], low, high)

    def bound(self, z: Array, most: float) -> float | Reason:
        """The lower bound by the duals z, moved into the dual cone."""
        low, high = self.box(most - self.d)
        duals = map(self.in_dual_cone, (z, self._repaired(z)))
        bounds = [self._bound_of(dual, low, high) for dual in duals]
        numbers = [bound for bound in bounds if not isinstance(bound, Reason)]
        if not numbers:
            return bounds[-1]
        return min(max(numbers) + self.d - 4.0 * EPSILON * abs(self.d), most)

    def _bound_of(self, z: Array, low: Array, high: Array) -> float | Reason:
        pull = self.A.T @ z
        curved = np.where(self.P > 0.0, self.P, 1.0)
        x = np.where(self.P > 0.0, -(self.c + pull) / curved, 0.0)  # x̂
        r = self.P * x + self.c + pull
        terms = self.P * np.abs(x) + np.abs(self.c) + abs(self.A).T @ np.abs(z)
        error = EPSILON * (3.0 + np.diff(self.A.tocsc().indptr)) * terms
        # the minimum of (r + e) x over the box, for all |e| ≤ error
        with np.errstate(invalid="ignore"):
            ends = [
                np.where(rate == 0.0, 0.0, rate * side)
                for rate in (r - error, r + error)
                for side in (low, high)
            ]
        least = np.min(ends, axis=0)
        if not np.isfinite(least).all():
            count = int((~np.isfinite(least)).sum())
            return Reason(
                f"{count} unknowns of the conic program are unbounded; bound the "
                "variables that the objective does not limit, such as cp.abs(V) <= 100 "
                "for an added variable V; cp.power takes approx=False"
            )
        parts = np.concatenate([-0.5 * self.P * x**2, -self.b * z, least])
        return math.fsum(parts) - 4.0 * EPSILON * math.fsum(np.abs(parts))

    def _repaired(self, z: Array) -> Array:
        """The duals with those of equalities moved so that r is nearly zero."""
        count = self.dims.zero
        free = self.P == 0.0
        if not count or not free.any():
            return z
        r = (self.c + self.A.T @ z)[free]
        matrix = self.A[:count].T.tocsr()[free]
        step = spla.lsmr(matrix, -r, atol=1e-15, btol=1e-15, conlim=0.0)[0]
        return z + np.concatenate([step, np.zeros(len(z) - count)])

    # ---- The box of all feasible x with an objective of at most ``most``

    def box(self, most: float) -> tuple[Array, Array]:
        """Bounds (low, high) of x, shape (n,) each, infinite if there is none."""
        low = self.low.copy()
        high = self.high.copy()
        implied, limits = self._implied
        matrix = sp.csr_array(sp.vstack([self.A, implied]))
        rows = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
        columns = matrix.indices
        values = matrix.data
        for _ in range(_ROUNDS):
            before = np.isfinite(low).sum() + np.isfinite(high).sum()
            least, greatest = self._rows_between(low, high)
            least = np.concatenate([least, np.full(len(limits), -np.inf)])
            greatest = np.concatenate([greatest, limits])
            # a x_k = (row) − (other terms), from below and above
            for sign, top in ((1.0, greatest), (-1.0, -least)):
                a = sign * values
                others = sums_without_entry(
                    rows, a, low[columns], high[columns], len(top)
                )
                limit = top[rows] - others
                limit += _SLACK * (np.abs(top[rows]) + np.abs(others))
                is_finite = np.isfinite(limit) & (a != 0.0)
                ends = limit[is_finite] / a[is_finite]
                up = a[is_finite] > 0.0
                k = columns[is_finite]
                _lower_to(high, k[up], ends[up])
                _lower_to(minus_low := -low, k[~up], -ends[~up])
                low = -minus_low
            low, high = self._by_objective(low, high, most)
            if np.isfinite(low).sum() + np.isfinite(high).sum() == before:
                break
        return low, high

    @property
    def _implied(self) -> tuple[Sparse, Array]:
        """Rows and limits of s_0 ± s_i ≥ 0 in cones of size 3 (products a b ≥ x²)."""
        cones = [part for kind, part, _ in self._cones() if kind == "soc"]
        starts = np.array(
            [part.start for part in cones if part.stop == part.start + 3], dtype=np.intp
        )
        pairs = [(sign, 1 + i) for sign in (1.0, -1.0) for i in (0, 1)]
        first = self.A[starts]
        matrices = [first + sign * self.A[starts + i] for sign, i in pairs]
        limits = [self.b[starts] + sign * self.b[starts + i] for sign, i in pairs]
        return sp.csr_array(sp.vstack(matrices)), np.concatenate(limits)

    def _rows_between(self, low: Array, high: Array) -> tuple[Array, Array]:
        """Bounds of each row of Ax that follow from its cone."""
        least = np.full(len(self.b), -np.inf)
        greatest = np.full(len(self.b), np.inf)
        # s = b − Ax is at most this, by the box
        largest = self.b - _activity(self.A, low, high)
        for kind, part, _ in self._cones():
            b = self.b[part]
            match kind:
                case "zero":
                    least[part] = greatest[part] = b
                case "nonneg":
                    greatest[part] = b
                case "soc" | "psd":
                    # bounded by the first entry, or by √2 times those on the diagonal
                    on = np.zeros(1, np.intp)
                    rate = 1.0
                    if kind == "psd":
                        on = _diagonal_of(len(b))
                        rate = math.sqrt(2.0)
                    S = rate * max(float(largest[part][on].max()), 0.0)
                    least[part] = b - S
                    greatest[part] = b + S
                    greatest[part.start + on] = b[on]
                case "exp":  # x ≤ y log(z/y) ≤ z/e, y ≥ 0, z ≥ 0
                    S = max(float(largest[part][2]), 0.0)
                    least[part.start] = b[0] - S
                    greatest[part.start + 1 : part.stop] = b[1:]
                case "power":
                    S = max(float(largest[part][:-1].max()), 0.0)
                    greatest[part] = b
                    least[part.stop - 1] = b[-1] - S
                    greatest[part.stop - 1] = b[-1] + S
        return least, greatest

    def _by_objective(
        self, low: Array, high: Array, most: float
    ) -> tuple[Array, Array]:
        """Bounds of each unknown from ½Px² + cx, given the minimum of the others."""
        P = self.P
        c = self.c
        with np.errstate(invalid="ignore", divide="ignore"):
            linear = np.minimum(c * low, c * high)
            minima = np.where(
                P > 0.0, -(c**2) / (2.0 * P), np.where(c == 0, 0.0, linear)
            )
        infinite = ~np.isfinite(minima)
        total = math.fsum(minima[~infinite])
        size = math.fsum(np.abs(minima[~infinite])) + abs(most)
        if infinite.sum() > 1:
            return low, high
        others = total - np.where(infinite, 0.0, minima)
        others = np.where(infinite.sum() - infinite > 0, -np.inf, others)
        remaining = most - others + _SLACK * size
        with np.errstate(invalid="ignore", divide="ignore"):
            root = np.sqrt(np.maximum(c**2 + 2.0 * P * remaining, 0.0))
            up = np.where(P > 0.0, (root - c) / P, remaining / c)
            down = np.where(P > 0.0, -(root + c) / P, remaining / c)
        up = np.where((P > 0.0) | (c > 0.0), up, np.inf)
        down = np.where((P > 0.0) | (c < 0.0), down, -np.inf)
        up = up + _SLACK * np.abs(up)
        down = down - _SLACK * np.abs(down)
        return np.maximum(low, down), np.minimum(high, up)

    # ---- Cones

    def _cones(self) -> Iterator[tuple[str, slice, Any]]:
        """Yield kind, rows and exponents of each cone, in Clarabel's order."""
        start = 0
        sizes: list[tuple[str, int, Any]] = [
            ("zero", self.dims.zero, None),
            ("nonneg", self.dims.nonneg, None),
            *(("soc", size, None) for size in self.dims.soc),
            *(("psd", size * (size + 1) // 2, None) for size in self.dims.psd),
            *(("exp", 3, None) for _ in range(self.dims.exp)),
            *(("power", 3, np.array([a, 1.0 - a])) for a in self.dims.p3d),
            *(("power", len(a) + 1, np.array(a)) for a in self.dims.pnd),
        ]
        for kind, size, exponents in sizes:
            if size:
                yield kind, slice(start, start + size), exponents
            start += size

    def in_dual_cone(self, z: Array) -> Array:
        """The duals moved into the dual cone, with a margin for rounding."""
        y = z.copy()
        for kind, part, exponents in self._cones():
            block = y[part]
            match kind:
                case "nonneg":
                    y[part] = np.maximum(block, 0.0)
                case "soc":
                    norm = float(np.linalg.norm(block[1:]))
                    block[0] = max(block[0], norm * (1.0 + EPSILON * (4 + len(block))))
                case "psd":
                    on = _diagonal_of(len(block))
                    matrix = _symmetric(block, len(on))
                    lowest = float(np.linalg.eigvalsh(matrix)[0])
                    size = float(np.abs(matrix).sum())
                    block[on] += max(-lowest, 0.0) + EPSILON * 8 * len(on) * size
                case "exp":  # u < 0, w ≥ −u exp(v/u − 1)
                    block[0] = min(block[0], 0.0)
                    if block[0] == 0.0 or block[1] / block[0] > _LARGEST:
                        block[0] = 0.0
                        block[1:] = np.maximum(block[1:], 0.0)
                    else:
                        least = -block[0] * math.exp(block[1] / block[0] - 1.0)
                        block[2] = max(block[2], least * (1.0 + 1e-12))
                case "power":  # Π (u_i/α_i)^α_i ≥ |w|
                    u = np.maximum(block[:-1], 0.0)
                    block[:-1] = u
                    mean = float(np.prod((u / exponents) ** exponents))
                    mean *= 1.0 - 1e-12
                    block[-1] = min(max(block[-1], -mean), mean)
        return y


def _activity(A: Sparse, low: Array, high: Array) -> Array:
    """The minimum of each row of Ax over a box."""
    rows = np.repeat(np.arange(A.shape[0]), np.diff(A.indptr))
    parts = _least_parts(A.data, low[A.indices], high[A.indices])
    result = np.bincount(rows, weights=parts, minlength=A.shape[0])
    sizes = np.bincount(rows, weights=np.abs(parts), minlength=A.shape[0])
    with np.errstate(invalid="ignore"):
        return np.where(np.isfinite(sizes), result - _SLACK * sizes, -np.inf)


def _least_parts(a: Array, low: Array, high: Array) -> Array:
    with np.errstate(invalid="ignore"):
        parts = np.where(a > 0.0, a * low, a * high)
    return np.where(a == 0.0, 0.0, parts)


def sums_without_entry(
    rows: NDArray[np.integer], a: Array, low: Array, high: Array, count: int
) -> Array:
    """For each entry, the minimum of the sum of the other entries of its row."""
    parts = _least_parts(a, low, high)
    finite = np.isfinite(parts)
    finite_parts = np.where(finite, parts, 0.0)
    total = np.bincount(rows, weights=finite_parts, minlength=count)
    sizes = np.bincount(rows, weights=np.abs(finite_parts), minlength=count)
    missing = np.bincount(rows, weights=~finite, minlength=count)
    others = total[rows] - finite_parts - _SLACK * sizes[rows]
    return np.where(missing[rows] - ~finite > 0, -np.inf, others)


def _lower_to(high: Array, positions: NDArray[np.integer], limits: Array) -> None:
    """Lower bounds in place, with a margin for the rounding of limits."""
    np.minimum.at(high, positions, limits + _SLACK * np.abs(limits))


def _diagonal_of(length: int) -> NDArray[np.intp]:
    """Indices of the diagonal in an upper triangle stored by columns."""
    k = (math.isqrt(8 * length + 1) - 1) // 2
    return np.cumsum(np.arange(1, k + 1)) - 1


def _symmetric(triangle: Array, k: int) -> Array:
    """The matrix of an upper triangle with off-diagonal entries times √2."""
    columns = np.repeat(np.arange(k), np.arange(1, k + 1))
    rows = np.concatenate([np.arange(n) for n in range(1, k + 1)])
    matrix = np.zeros((k, k))
    matrix[rows, columns] = triangle / math.sqrt(2.0)
    matrix += matrix.T
    matrix[np.diag_indices(k)] = triangle[_diagonal_of(len(triangle))]
    return matrix


# ---- Programs with custom losses and constraints, in cvxpy, and their proof


@final
class CustomProgram:
    """An objective with custom cvxpy losses or constraints."""

    standard: Program  # the losses and bounds of this package, with shape and names
    objective: Objective  # with its parameters as they are
    bounds: tuple[Bound, ...]
    custom: tuple[ConstraintFunction, ...]
    shape: tuple[int, int]
    size: float  # σ
    unit: float  # of the objective
    limits: list[Any]
    constraints: list[CvxpyConstraint]
    problem: Any

    def __init__(
        self,
        objective: Objective,
        bounds: tuple[Bound, ...],
        custom: tuple[ConstraintFunction, ...],
        shape: tuple[int, int] | None = None,  # by default from the losses
    ) -> None:
        import cvxpy as cp

        Program(objective.losses, bounds, (1, 1))  # refuses equal names
        self.standard = Program(
            tuple(x for x in objective.losses if not isinstance(x, Custom)),
            tuple(b for b in bounds if not isinstance(b.loss, Custom)),
            shape,
        )
        shape = self.standard.shape

        self.objective = objective.trusted(objective.terms)
        self.bounds = bounds
        self.custom = custom
        self.shape = shape
        # W = σV and F/unit of order one, for backends that need it
        G = self._target
        self.size = float(np.sqrt(np.mean(np.square(G)))) or 1.0
        self.unit = self._value_at(np.zeros(shape)) or 1.0
        self.V = cp.Variable(shape)
        self.W = self.size * self.V
        self.limits = [self._limit(bound) for bound in bounds]
        self.constraints = [x for made in custom for x in made(self.W)]
        self.problem = cp.Problem(
            cp.Minimize(self.objective.expression(self.W) / self.unit),
            [*self.limits, *self.constraints],
        )
        if self.problem.is_mixed_integer():
            raise InvalidInput(
                "subject_to: integer variables make the program nonconvex; "
                "its solution could not be certified"
            )
        for parameter in self.problem.parameters():
            if parameter.value is None:
                raise InvalidInput(
                    f"the parameter {parameter} has no value; set its .value"
                )

    @property
    def losses(self) -> tuple[PropertyLoss, ...]:
        """All losses, losses of bounds last."""
        return self.objective.losses + tuple(bound.loss for bound in self.bounds)

    def _limit(self, bound: Bound) -> Any:
        if is_completeness(bound):
            return bound.loss.residual(self.W) == 0.0  # otherwise a dual need not exist
        return bound.loss.expression(self.W) <= bound.limit

    def violation(self, W: Attributions) -> float:
        """The largest relative excess over a constraint.

        A custom constraint is relative to its largest number or the largest
        attribution, whichever is larger; its other variables have the values of the
        last solve.
        """
        import cvxpy as cp

        tiny = np.finfo(float).tiny
        excesses = [0.0]
        for bound in self.bounds:
            value = bound.loss.value_at(W)
            if not is_completeness(bound):
                excesses.append(max(value - bound.limit, 0.0) / bound.limit)
                continue
            missed = largest_entry(bound.loss.residual(W))
            size = largest_entry(W) + float(np.abs(bound.loss.target).max(initial=0.0))
            excesses.append(float(missed) / max(float(size), tiny))
        at_W = cp.Variable(self.shape)
        at_W.value = W
        for made in self.custom:
            for constraint in made(at_W):
                numbers = [
                    np.abs(x.value) for x in constraint.args if x.value is not None
                ]
                if len(numbers) < len(constraint.args):
                    return math.inf
                sizes = [float(np.max(x, initial=0.0)) for x in numbers]
                excess = float(np.max(constraint.violation()))
                excesses.append(excess / max(*sizes, largest_entry(W), tiny))
        return max(excesses)

    def certificate(
        self, W: Attributions, values: dict[str, float], solved: Solved
    ) -> Certificate | Reason:
        """The certificate of attributions W (N, D) by duals of the conic program."""
        value = math.fsum(c * values[loss.name] for c, loss in self.objective.terms)
        most = value * (1.0 + _SLACK)
        box = self.bounding_box(most)
        scaled = box[0] / self.size, box[1] / self.size
        bound = solved.bound(self.V, scaled, most / self.unit)
        if isinstance(bound, Reason):
            return bound
        lower = self.unit * bound * (1.0 - 4.0 * EPSILON)
        zero = self._value_at(np.zeros(self.shape))
        mean = self._value_at(np.broadcast_to(self._target.mean(axis=0), self.shape))
        kind = "conic duals" if lower > 0.0 else "nonnegative losses"
        return Certificate(
            value=value,
            lower_bound=min(max(lower, 0.0), value),
            scale=objective_scale(value, zero, mean),
            kind=kind,
            violation=self.violation(W),
        )

    @property
    def _target(self) -> Attributions:
        """The target of W itself, or zero."""
        for loss in self.losses:
            is_custom = isinstance(loss, Custom)
            if not is_custom and loss.is_direct and loss.has_target:
                return np.asarray(loss.target)
        return np.zeros(self.shape)

    def _value_at(self, W: Attributions) -> float:
        """The objective of W (N, D) without custom losses, which may be infinite."""
        return math.fsum(
            c * loss.value_at(W)
            for c, loss in self.objective.terms
            if not isinstance(loss, Custom)
        )

    def bounding_box(self, most: float) -> tuple[Array, Array]:
        """A box that contains W if the objective is at most this, by losses of W."""
        low = np.full(self.shape, -np.inf)
        high = np.full(self.shape, np.inf)
        limits = [(most / c, loss) for c, loss in self.objective.terms if c > 0.0]
        limits += [(bound.limit, bound.loss) for bound in self.bounds]
        for limit, loss in limits:
            if isinstance(loss, Custom) or not loss.is_direct:
                continue
            match loss.penalty:
                case Squared():
                    radius = math.sqrt(limit)
                case Absolute():
                    radius = limit
                case _:
                    continue
            radius *= 1.0 + _SLACK
            low = np.maximum(low, loss.target - radius)
            high = np.minimum(high, loss.target + radius)
        wide = _SLACK * (np.abs(low) + np.abs(high))
        return low - wide, high + wide


def certify_custom(
    objective: Objective,
    W: object,
    bounds: tuple[Bound, ...],
    custom: tuple[ConstraintFunction, ...],
) -> Certificate:
    """The certificate of W for a program with custom losses or constraints."""
    losses_at_W = [*objective.losses, *(bound.loss for bound in bounds)]
    array = aligned_attributions(losses_at_W, W, "W")
    program = CustomProgram(objective, bounds, custom, (array.shape[0], array.shape[1]))
    values = {loss.name: loss.value_at(array) for loss in program.losses}
    solved = Solved(program.problem, clarabel_options(_ACCURACY))
    proof = program.certificate(array, values, solved)
    if isinstance(proof, Reason):
        raise Refused(f"certify: no proof: {proof.reason}")
    return proof
