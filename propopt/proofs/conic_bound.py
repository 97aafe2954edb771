r"""A lower bound of any conic program, from duals that are checked here.

A backend of cvxpy is given min ½xᵀPx + cᵀx + d subject to s = b − Ax ∈ K. For any x̂ and
any z in the dual cone K*, with P positive semidefinite and r = Px̂ + c + Aᵀz,

    ½xᵀPx + cᵀx ≥ −½x̂ᵀPx̂ − bᵀz + rᵀx   for every feasible x,

since ½(x − x̂)ᵀP(x − x̂) ≥ 0 and zᵀs ≥ 0. No status and no residual of the backend is
believed: z is moved into K*, x̂ is chosen so that r is zero where P is positive, the
rest of r is computed from the data, and r times a box is taken off. The box follows
from the rows of the program alone, as in presolving: it holds all feasible x whose
objective is at most that of the given attributions. Others need no bound.

P has to be diagonal, so that its sign can be read off; else the program is written
without P. Where Clarabel is the backend, one solve gives W and the duals.

What cvxpy makes of the expressions is taken as it is; atoms that it approximates are
refused.
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
from propopt.base.errors import InvalidInput, Refused
from propopt.base.text import Reason
from propopt.losses import Bound, Objective, Program, PropertyLoss
from propopt.losses.algebra import aligned_attributions, objective_scale
from propopt.losses.custom import Custom, CustomConstraints, has_custom
from propopt.losses.linear_algebra import EPSILON
from propopt.losses.maps import Absolute, CvxpyConstraint, Identity, Squared
from propopt.proofs.certificate import Certificate


_SLACK = 1e-9
"""Relative: by this much boxes are wider than their rounded numbers."""

_ACCURACY = 1e-9
"""What Clarabel is asked for, where nobody says what gap is wanted."""

_LARGEST = 600.0
"""An exponent that double precision has a number for."""

_ROUNDS = 50
"""Of propagation: bounds that are not known then are not known."""


def clarabel_options(accuracy: float) -> dict[str, float]:
    """How Clarabel is told its accuracy."""
    return dict.fromkeys(("tol_gap_abs", "tol_gap_rel", "tol_feas"), accuracy)


@final
class Solved:
    """What Clarabel is given for a problem of cvxpy that minimises, and its answer."""

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
            warnings.simplefilter("ignore")  # what it gives is checked, not believed
            self.raw = self.chain.solve_via_data(
                problem, self.data, solver_opts=dict(options)
            )

    def unpack(self) -> None:
        """Its primal answer, as values of the variables of cvxpy."""
        self.problem.unpack_results(self.raw, self.chain, self.inverse)

    def bound(
        self,
        variable: Any,  # W, a cvxpy.Variable of the problem
        box: tuple[Array, Array],  # (N, D): where W is if the objective is <= most
        most: float,  # the objective of some attributions
    ) -> float | Reason:
        """A number that no feasible point has less than, or why there is none."""
        approximated = next(_approximated(self.problem), None)
        if approximated is not None:
            return Reason(f"cvxpy approximates {approximated}")
        if self.P is None:
            return Reason("its quadratic form is not diagonal")
        program = ConicProgram.of(self.data, self.P, variable, box)
        z = np.array(self.raw.z, dtype=np.float64)
        if not np.isfinite(z).all():
            return Reason(f"Clarabel found no duals ({self.raw.status})")
        return program.bound(z, most)


def _nonnegative_diagonal(data: dict[str, Any]) -> Array | None:
    """That of P, shape (n,); None where P is anything else."""
    if data.get("P") is None:
        return np.zeros(len(data["c"]))
    matrix = sp.csr_array(data["P"])
    diagonal: Array = matrix.diagonal()
    rest = (matrix - sp.diags_array(diagonal)).count_nonzero()
    return None if rest or (diagonal < 0.0).any() else diagonal


def _approximated(problem: Any) -> Iterator[str]:
    """Atoms for which cvxpy poses another program than is written."""
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
    """min ½xᵀPx + cᵀx + d subject to b − Ax ∈ K, for a diagonal P ≥ 0."""

    P: Array  # (n,): the diagonal
    c: Array
    d: float
    A: Sparse
    b: Array
    dims: Any
    low: Array  # (n,): that of W; else infinite
    high: Array

    @classmethod
    def of(
        cls, data: dict[str, Any], P: Array, variable: Any, box: tuple[Array, Array]
    ) -> ConicProgram:
        """What cvxpy gives to Clarabel, with its quadratic form as a diagonal."""
        n = len(data["c"])
        posed = data["param_prob"]
        offset = posed.apply_parameters(quad_obj=data.get("P") is not None)[-3]
        first = posed.var_id_to_col[variable.id]
        low, high = np.full(n, -np.inf), np.full(n, np.inf)
        place = slice(first, first + variable.size)
        low[place], high[place] = (side.ravel(order="F") for side in box)
        c, b = (np.asarray(data[key], dtype=np.float64) for key in ("c", "b"))
        A = sp.csr_array(data["A"])
        return cls(P, c, float(offset), A, b, data["dims"], low, high)

    def bound(self, z: Array, most: float) -> float | Reason:
        """That of the duals z, moved into the dual cone."""
        target = most - self.d
        low, high = self.box(target)
        best: float | Reason = Reason("")
        for dual in (z, self._repaired(z)):
            found = self._bound_of(self.in_dual_cone(dual), low, high)
            if isinstance(found, Reason):
                best = found if isinstance(best, Reason) else best
            elif isinstance(best, Reason) or found > best:
                best = found
        if isinstance(best, Reason):
            return best
        return min(best + self.d - 4.0 * EPSILON * abs(self.d), most)

    def _bound_of(self, z: Array, low: Array, high: Array) -> float | Reason:
        pull = self.A.T @ z
        curved = np.where(self.P > 0.0, self.P, 1.0)
        x = np.where(self.P > 0.0, -(self.c + pull) / curved, 0.0)  # x̂
        r = self.P * x + self.c + pull
        terms = self.P * np.abs(x) + np.abs(self.c) + abs(self.A).T @ np.abs(z)
        error = EPSILON * (3.0 + np.diff(self.A.tocsc().indptr)) * terms
        # the least of (r + e) x over the box, for all |e| ≤ error
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
                f"nothing limits {count} unknowns of the conic program; give limits to "
                "what the objective leaves open, such as cp.abs(V) <= 100 for a "
                "variable V of your own; cp.power takes approx=False"
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
        """(low, high), shape (n,) each, infinite where nothing is known."""
        low, high = self.low.copy(), self.high.copy()
        implied, limits = self._implied
        every = sp.csr_array(sp.vstack([self.A, implied]))
        rows = np.repeat(np.arange(every.shape[0]), np.diff(every.indptr))
        columns, values = every.indices, every.data
        for _ in range(_ROUNDS):
            before = np.isfinite(low).sum() + np.isfinite(high).sum()
            least, greatest = self._rows_between(low, high)
            least = np.concatenate([least, np.full(len(limits), -np.inf)])
            greatest = np.concatenate([greatest, limits])
            # a x_k = (row) − (the others), by rows from below and above
            for sign, top in ((1.0, greatest), (-1.0, -least)):
                a = sign * values
                others = _without_own(rows, a, low[columns], high[columns], len(top))
                limit = top[rows] - others
                limit += _SLACK * (np.abs(top[rows]) + np.abs(others))
                known = np.isfinite(limit) & (a != 0.0)
                ends = limit[known] / a[known]
                up, k = a[known] > 0.0, columns[known]
                _lower_to(high, k[up], ends[up])
                _lower_to(minus_low := -low, k[~up], -ends[~up])
                low = -minus_low
            low, high = self._by_objective(low, high, most)
            if np.isfinite(low).sum() + np.isfinite(high).sum() == before:
                break
        return low, high

    @property
    def _implied(self) -> tuple[Sparse, Array]:
        """Rows and limits of s_0 ± s_i ≥ 0 in cones of three: products a b ≥ x²."""
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
        """Between which numbers each row of Ax is, by its cone."""
        least = np.full(len(self.b), -np.inf)
        greatest = np.full(len(self.b), np.inf)
        # s = b − Ax is at most this, by the box
        lowest = _activity(self.A, low, high)
        largest = self.b - lowest
        for kind, part, _ in self._cones():
            b = self.b[part]
            match kind:
                case "zero":
                    least[part] = greatest[part] = b
                case "nonneg":
                    greatest[part] = b
                case "soc":
                    S = max(float(largest[part][0]), 0.0)
                    least[part], greatest[part] = b - S, b + S
                    greatest[part.start] = b[0]
                case "psd":
                    on = _diagonal_of(part.stop - part.start)
                    S = math.sqrt(2.0) * max(float(largest[part][on].max()), 0.0)
                    least[part], greatest[part] = b - S, b + S
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
        """½Px² + cx of one unknown is at most what the others leave of ``most``."""
        P, c = self.P, self.c
        with np.errstate(invalid="ignore", divide="ignore"):
            linear = np.minimum(c * low, c * high)
            own = np.where(P > 0.0, -(c**2) / (2.0 * P), np.where(c == 0, 0.0, linear))
        infinite = ~np.isfinite(own)
        total = math.fsum(own[~infinite])
        size = math.fsum(np.abs(own[~infinite])) + abs(most)
        if infinite.sum() > 1:
            return low, high
        rest = total - np.where(infinite, 0.0, own)
        rest = np.where(infinite.sum() - infinite > 0, -np.inf, rest)
        left = most - rest + _SLACK * size
        with np.errstate(invalid="ignore", divide="ignore"):
            root = np.sqrt(np.maximum(c**2 + 2.0 * P * left, 0.0))
            up = np.where(P > 0.0, (root - c) / P, left / c)
            down = np.where(P > 0.0, -(root + c) / P, left / c)
        up = np.where((P > 0.0) | (c > 0.0), up, np.inf)
        down = np.where((P > 0.0) | (c < 0.0), down, -np.inf)
        up, down = up + _SLACK * np.abs(up), down - _SLACK * np.abs(down)
        return np.maximum(low, down), np.minimum(high, up)

    # ---- Cones

    def _cones(self) -> Iterator[tuple[str, slice, Any]]:
        """Kind, rows and exponents of each cone, in the order of Clarabel."""
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
        """The duals moved to where they are feasible, also in rounded numbers."""
        y = z.copy()
        for kind, part, exponents in self._cones():
            own = y[part]
            match kind:
                case "zero":
                    pass
                case "nonneg":
                    y[part] = np.maximum(own, 0.0)
                case "soc":
                    norm = float(np.linalg.norm(own[1:]))
                    own[0] = max(own[0], norm * (1.0 + EPSILON * (4 + len(own))))
                case "psd":
                    on = _diagonal_of(len(own))
                    matrix = _symmetric(own, len(on))
                    lowest = float(np.linalg.eigvalsh(matrix)[0])
                    size = float(np.abs(matrix).sum())
                    own[on] += max(-lowest, 0.0) + EPSILON * 8 * len(on) * size
                case "exp":  # u < 0, w ≥ −u exp(v/u − 1)
                    own[0] = min(own[0], 0.0)
                    if own[0] == 0.0 or own[1] / own[0] > _LARGEST:
                        own[0] = 0.0
                        own[1:] = np.maximum(own[1:], 0.0)
                    else:
                        least = -own[0] * math.exp(own[1] / own[0] - 1.0)
                        own[2] = max(own[2], least * (1.0 + 1e-12))
                case "power":  # Π (u_i/α_i)^α_i ≥ |w|
                    u = np.maximum(own[:-1], 0.0)
                    own[:-1] = u
                    mean = float(np.prod((u / exponents) ** exponents))
                    mean *= 1.0 - 1e-12
                    own[-1] = min(max(own[-1], -mean), mean)
        return y


def _activity(A: Sparse, low: Array, high: Array) -> Array:
    """The least of each row of Ax over a box."""
    rows = np.repeat(np.arange(A.shape[0]), np.diff(A.indptr))
    parts = _least_parts(A.data, low[A.indices], high[A.indices])
    result = np.bincount(rows, weights=parts, minlength=A.shape[0])
    sizes = np.bincount(rows, weights=np.abs(parts), minlength=A.shape[0])
    with np.errstate(invalid="ignore"):
        return np.asarray(
            np.where(np.isfinite(sizes), result - _SLACK * sizes, -np.inf)
        )


def _least_parts(a: Array, low: Array, high: Array) -> Array:
    with np.errstate(invalid="ignore"):
        parts = np.where(a > 0.0, a * low, a * high)
    return np.asarray(np.where(a == 0.0, 0.0, parts))


def _without_own(
    rows: NDArray[np.integer], a: Array, low: Array, high: Array, count: int
) -> Array:
    """For each entry the least that the others of its row add up to."""
    parts = _least_parts(a, low, high)
    finite = np.isfinite(parts)
    kept = np.where(finite, parts, 0.0)
    total = np.bincount(rows, weights=kept, minlength=count)
    sizes = np.bincount(rows, weights=np.abs(kept), minlength=count)
    missing = np.bincount(rows, weights=~finite, minlength=count)
    others = total[rows] - kept - _SLACK * sizes[rows]
    return np.asarray(np.where(missing[rows] - ~finite > 0, -np.inf, others))


def _lower_to(high: Array, positions: NDArray[np.integer], limits: Array) -> None:
    """Lower some bounds in place, a little less than to their rounded limits."""
    np.minimum.at(high, positions, limits + _SLACK * np.abs(limits))


def _diagonal_of(length: int) -> NDArray[np.intp]:
    """Where the diagonal stands in an upper triangle, column by column."""
    k = (math.isqrt(8 * length + 1) - 1) // 2
    return np.cumsum(np.arange(1, k + 1)) - 1


def _symmetric(triangle: Array, k: int) -> Array:
    """The matrix of an upper triangle whose entries off the diagonal are times √2."""
    columns = np.repeat(np.arange(k), np.arange(1, k + 1))
    rows = np.concatenate([np.arange(n) for n in range(1, k + 1)])
    matrix = np.zeros((k, k))
    matrix[rows, columns] = triangle / math.sqrt(2.0)
    matrix += matrix.T
    matrix[np.diag_indices(k)] = triangle[_diagonal_of(len(triangle))]
    return matrix


# ---- Programs with losses and constraints of users: as cvxpy has them, and their proof


@final
class CustomProgram:
    """An objective with losses or constraints that only cvxpy knows."""

    known: Program  # the part that is known to us, with the shape and names of W
    objective: Objective  # with its parameters as they are
    bounds: tuple[Bound, ...]
    own: tuple[CustomConstraints, ...]
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
        own: tuple[CustomConstraints, ...],
        shape: tuple[int, int] | None = None,  # by default what the losses agree on
    ) -> None:
        import cvxpy as cp

        Program(objective.losses, bounds, (1, 1))  # refuses equal names
        self.known = Program(
            tuple(x for x in objective.losses if not isinstance(x, Custom)),
            tuple(b for b in bounds if not isinstance(b.loss, Custom)),
            shape,
        )
        shape = self.known.shape

        self.objective = objective.trusted(objective.terms)
        self.bounds, self.own, self.shape = bounds, own, shape
        # W = σV and F/unit of order one, for backends that need it
        G = self._target
        self.size = float(np.sqrt(np.mean(np.square(G)))) or 1.0
        self.unit = self._value_at(np.zeros(shape)) or 1.0
        self.V = cp.Variable(shape)
        self.W = self.size * self.V
        self.limits = [self._limit(bound) for bound in bounds]
        self.constraints = [x for made in own for x in made.of(self.W)]
        self.problem = cp.Problem(
            cp.Minimize(self.objective.expression(self.W) / self.unit),
            [*self.limits, *self.constraints],
        )
        if self.problem.is_mixed_integer():
            raise InvalidInput(
                "subject_to: whole-number variables make the program not convex; "
                "nothing could be proved of its answer"
            )
        for parameter in self.problem.parameters():
            if parameter.value is None:
                raise InvalidInput(
                    f"the parameter {parameter} has no value; set its .value"
                )

    @property
    def losses(self) -> tuple[PropertyLoss, ...]:
        """All losses, those of bounds last."""
        return self.objective.losses + tuple(bound.loss for bound in self.bounds)

    def _limit(self, bound: Bound) -> Any:
        if bound.limit == 0.0 and not isinstance(bound.loss, Custom):
            return bound.loss.residual(self.W) == 0.0  # else no dual is sure to exist
        return bound.loss.expression(self.W) <= bound.limit

    def violation(self, W: Attributions) -> float:
        """The largest relative excess over a constraint.

        Of one of users it is relative to the largest number that it compares, or to the
        largest attribution, whichever is larger. Its other variables have the values
        that they were last solved for.
        """
        import cvxpy as cp

        tiny = np.finfo(float).tiny
        excesses = [0.0]
        for bound in self.bounds:
            value = bound.loss.value_at(W)
            if bound.limit > 0.0 or isinstance(bound.loss, Custom):
                excesses.append(max(value - bound.limit, 0.0) / max(bound.limit, tiny))
                continue
            missed = np.abs(bound.loss.residual(W)).max(initial=0.0)
            size = np.abs(W).max() + np.abs(bound.loss.target).max(initial=0.0)
            excesses.append(float(missed) / max(float(size), tiny))
        at_W = cp.Variable(self.shape)
        at_W.value = W
        for made in self.own:
            for constraint in made.of(at_W):
                numbers = [
                    np.abs(x.value) for x in constraint.args if x.value is not None
                ]
                if len(numbers) < len(constraint.args):
                    return math.inf
                sizes = [float(np.max(x, initial=0.0)) for x in numbers]
                excess = float(np.max(constraint.violation()))
                excesses.append(excess / max(*sizes, float(np.abs(W).max()), tiny))
        return max(excesses)

    def certificate(
        self, W: Attributions, values: dict[str, float], solved: Solved
    ) -> Certificate | Reason:
        """What is proved of attributions W (N, D) by duals of the conic program."""
        terms = self.objective.terms
        value = math.fsum(c * values[loss.name] for c, loss in terms)
        most = value * (1.0 + _SLACK)
        box = self.bounding_box(most)
        scaled = box[0] / self.size, box[1] / self.size
        found = solved.bound(self.V, scaled, most / self.unit)
        if isinstance(found, Reason):
            return found
        lower = self.unit * found * (1.0 - 4.0 * EPSILON)
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
        """The target of W itself; zero where there is none."""
        for loss in self.losses:
            own = isinstance(loss, Custom)
            if not own and isinstance(loss.map, Identity) and loss.has_target:
                return np.asarray(loss.target)
        return np.zeros(self.shape)

    def _value_at(self, W: Attributions) -> float:
        """The objective of W (N, D) without losses of users, which may be infinite."""
        return math.fsum(
            c * loss.value_at(W)
            for c, loss in self.objective.terms
            if not isinstance(loss, Custom)
        )

    def bounding_box(self, most: float) -> tuple[Array, Array]:
        """Where W is if the objective is at most this, by losses of W itself."""
        low, high = np.full(self.shape, -np.inf), np.full(self.shape, np.inf)
        limits = [(most / c, loss) for c, loss in self.objective.terms if c > 0.0]
        limits += [(b.limit, b.loss) for b in self.bounds if not has_custom([b.loss])]
        for limit, loss in limits:
            if has_custom([loss]) or not isinstance(loss.map, Identity):
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
    own: tuple[CustomConstraints, ...],
) -> Certificate:
    """What :func:`propopt.proofs.certify` says of such a program."""
    every = [*objective.losses, *(bound.loss for bound in bounds)]
    array = aligned_attributions(every, W, "W")
    program = CustomProgram(objective, bounds, own, (array.shape[0], array.shape[1]))
    values = {loss.name: loss.value_at(array) for loss in program.losses}
    solved = Solved(program.problem, clarabel_options(_ACCURACY))
    found = program.certificate(array, values, solved)
    if isinstance(found, Reason):
        raise Refused(f"certify: nothing can be proved: {found.reason}")
    return found
