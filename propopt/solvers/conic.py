"""Any program, through cvxpy: compiled once, with the weights as parameters.

Squared losses stay sums of squares of the incidence form; every other loss gets its
residual as a separate variable, so that the backend's dual of ``A(W) − T == R`` is
the subgradient which the certificate needs.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, final

import numpy as np

from propopt.base.arrays import Array
from propopt.base.errors import Infeasible, SolverFailure
from propopt.base.extras import install_hint
from propopt.base.resources import memory_refusal
from propopt.base.suggestions import suggests_arguments
from propopt.base.text import enumerated
from propopt.losses import Bound, Program, PropertyLoss
from propopt.losses.completeness import Totals, is_completeness
from propopt.losses.maps import (
    CvxpyConstraint,
    CvxpyExpression,
    GroupMax,
)
from propopt.solvers.minimum_norm import undetermined_refusal
from propopt.solvers.reductions import prepare_centred
from propopt.solvers.solver import Prepared, Solution, Solver


ProgramClass: TypeAlias = Literal["LP", "QP", "SOCP"]

AUTOMATIC: Mapping[ProgramClass, str] = {
    "LP": "HIGHS",
    "QP": "CLARABEL",
    "SOCP": "CLARABEL",
}
"""The backend for each class of program, by measurement (see ``benchmarks/``)."""

_ACCURACIES: Mapping[str, Sequence[str]] = {
    "CLARABEL": ("tol_gap_abs", "tol_gap_rel", "tol_feas"),
    "OSQP": ("eps_abs", "eps_rel"),
    "SCS": ("eps_abs", "eps_rel"),
    "ECOS": ("abstol", "reltol", "feastol"),
    "PIQP": ("eps_abs", "eps_rel"),
}
"""Accuracy options of each backend; backends not listed keep their default."""

_OPTIONS: Mapping[str, Mapping[str, Any]] = {
    "OSQP": {"max_iter": 200_000, "polishing": True},
    "SCS": {"max_iters": 500_000},
}
"""Other options of backends."""

_COLD = frozenset({"PIQP"})
"""Started afresh each time: PIQP 0.6 diverges where only the matrix of a cached program
has changed."""


_PACKAGES: Mapping[str, str] = {
    "ECOS": "ecos",
    "ECOS_BB": "ecos",
    "HIGHS": "highspy",
    "PIQP": "piqp",
}
"""The packages of those backends that an extra of ours installs."""


def missing_backend(backend: str) -> str | None:
    """The reason why a backend of an extra is missing; None for others."""
    if backend not in _PACKAGES:
        return None
    import cvxpy as cp

    if backend in cp.installed_solvers():
        return None
    return f"{backend} is not installed; {install_hint(_PACKAGES[backend])}"


@contextmanager
def failures_of(backend: str) -> Iterator[None]:
    """Errors of a backend as those of this package, with advice."""
    import cvxpy as cp

    with warnings.catch_warnings():
        # accuracy is judged by our certificate, not by the backend's status
        warnings.filterwarnings("ignore", message="Solution may be inaccurate")
        try:
            yield
        except cp.SolverError as error:
            raise _stopped(backend, str(error)) from error
        except ValueError as error:  # a status unknown to cvxpy
            if "unpack invalid solution" not in str(error):
                raise
            raise _stopped(backend, "no status that cvxpy knows") from error


def _stopped(backend: str, reason: str) -> SolverFailure:
    names = [name for name in ("CLARABEL", "SCS") if name != backend]
    choices = enumerated([f"solver={name!r}" for name in names], "or")
    return SolverFailure(
        f"{backend} stopped without a solution ({reason}); try another solver, such as "
        f"{choices}"
    )


def options_of(backend: str, accuracy: float) -> dict[str, Any]:
    """Accuracy options of a backend; none for a backend that is not listed."""
    accuracies = dict.fromkeys(_ACCURACIES.get(backend, ()), accuracy)
    return {**accuracies, **_OPTIONS.get(backend, {})}


def accuracy_of(tolerance: float) -> float:
    """The accuracy to request of a backend for a gap within the tolerance."""
    return max(1e-3 * tolerance, 1e-12)


@final
@suggests_arguments
@dataclass(frozen=True)
class Conic(Solver):
    """Any objective and bounds, as a conic program, by a backend of cvxpy.

    What is solved is a :class:`cvxpy.problems.problem.Problem`.

    Parameters
    ----------
    backend : str, optional
        A solver installed for cvxpy, such as ``"CLARABEL"``, ``"OSQP"`` or ``"MOSEK"``;
        by default chosen from the class of the program (see ``AUTOMATIC``).
    options : mapping
        Options passed to the backend unchanged, after those for accuracy.

    Examples
    --------
    >>> import numpy as np, propopt as po
    >>> objective = po.GradientMatching(np.eye(2)) + po.Sparsity()
    >>> po.solve(objective, po.solvers.Conic("CLARABEL")).gap < 1e-6
    True
    """

    backend: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.backend or "conic"

    def refusal(self, program: Program) -> str | None:
        kind = program_class(program)
        return (
            missing_backend(self.backend or AUTOMATIC[kind])
            or (self.backend and _backend_refusal(self.backend, kind))
            or too_large_refusal(program)
            or undetermined_refusal(program)
        )

    def prepare(self, program: Program) -> Prepared:
        backend = self.backend or AUTOMATIC[program_class(program)]
        return prepare_centred(program, lambda p: _Compiled(p, backend, self.options))


def program_class(program: Program) -> ProgramClass:
    """The smallest class of convex programs that holds this one."""
    penalties = [loss.penalty for loss in program.losses]
    limited = [bound.loss.penalty for bound in program.limits]
    second_order = any(isinstance(p, GroupMax) for p in penalties)
    if second_order or any(p.degree == 2 for p in limited):
        return "SOCP"
    return "QP" if any(p.degree == 2 for p in penalties) else "LP"


def _backend_refusal(backend: str, kind: ProgramClass) -> str | None:
    import cvxpy as cp
    from cvxpy.reductions.solvers.defines import SOLVER_MAP_CONIC, SOLVER_MAP_QP

    conic = SOLVER_MAP_CONIC.get(backend)
    cones = conic is not None and cp.SOC in conic.SUPPORTED_CONSTRAINTS
    if kind == "SOCP" and not cones:
        return f"{backend} does not support second-order cones; CLARABEL does"
    if kind == "QP" and not cones and backend not in SOLVER_MAP_QP:
        return f"{backend} does not support squared losses; CLARABEL does"
    return None


def too_large_refusal(program: Program) -> str | None:
    """The reason why the conic program exceeds memory; None if it does not."""
    n_points, n_features = program.shape
    rows = sum(loss.map.flat_rows(program.shape) for loss in program.all_losses)
    n_bytes = BYTES_PER_ROW * (rows + n_points * n_features)
    label = f"a conic program of {rows} rows"
    return memory_refusal(n_bytes, label, "use fewer edges (knn_graph, or a cutoff)")


BYTES_PER_ROW = 4_000.0
"""Clarabel with cvxpy took 1,600 (squared losses) to 4,000 (cones) on kNN graphs."""


class _Compiled(Prepared):
    def __init__(
        self, program: Program, backend: str, options: Mapping[str, Any]
    ) -> None:
        import cvxpy as cp

        self._program = program
        self._backend = backend
        self._options = options
        # σ, the size of W to expect: a steepest-descent step from zero to each target
        sizes = [_step_size(loss, program.shape) for loss in program.all_losses]
        self._size = max(sizes) or 1.0
        self._W = cp.Variable(program.shape)
        self._weights = [cp.Parameter(nonneg=True) for _ in program.losses]
        self._equalities: dict[str, CvxpyConstraint] = {}
        losses = [self._penalty(loss) for loss in program.losses]
        self._bounds = [
            bound.loss.map(self._W) == bound.loss.target / self._size
            if is_completeness(bound)
            else self._penalty(bound.loss)
            <= bound.limit / self._size**bound.loss.penalty.degree
            for bound in program.bounds
        ]
        total = sum(c * loss for c, loss in zip(self._weights, losses, strict=True))
        constraints = [*self._equalities.values(), *self._bounds]
        self._problem = cp.Problem(cp.Minimize(total), constraints)

    def solve(
        self, weights: Array, tolerance: float, start: Solution | None = None
    ) -> Solution:
        # W = σV and an objective of order one: F(W)/unit = Σ (c σ^degree / unit) φ(...)
        powers = [self._size**loss.penalty.degree for loss in self._program.losses]
        scaled = weights * np.array(powers)
        unit = self._typical_value(scaled)
        for parameter, weight in zip(self._weights, scaled / unit, strict=True):
            parameter.value = weight
        if start is not None:
            self._W.value = start.W / self._size
        # without a start the backend forgets what it solved before
        self._run(tolerance, warm=start is not None and self._backend not in _COLD)
        if self._W.value is None:
            status = self._problem.status
            if "infeasible" in status and self._program.bounds:
                raise Infeasible(_smallest_attainable(self._program))
            reason = f"status {status!r} and no attributions"
            raise _stopped(self._backend, reason)
        return self._solution(unit)

    def _typical_value(self, scaled: Array) -> float:
        """The largest weight of a loss with a target: about what zero costs."""
        aims = [
            c
            for c, loss in zip(scaled, self._program.losses, strict=True)
            if loss.has_target
        ]
        return float(max(aims, default=0.0) or scaled.max())

    def _penalty(self, loss: PropertyLoss) -> CvxpyExpression:
        residual = loss.map(self._W) - loss.target / self._size
        penalty = loss.penalty.scaled(self._size)
        # where W itself has one, the gradient of squared losses certifies by itself
        certified = loss.is_squared and any(
            other.is_direct and other.is_squared for other in self._program.all_losses
        )
        if certified or self._absorbs(loss) or residual.size == 0:
            return penalty.expression(residual)
        import cvxpy as cp

        R = cp.Variable(residual.shape)
        self._equalities[loss.name] = residual - R == 0
        return penalty.expression(R)

    def _absorbs(self, loss: PropertyLoss) -> bool:
        """True for the last ℓ1 loss of W itself: its dual follows from the others.

        Not where rows have given sums, which have separate multipliers.
        """
        if self._program.row_sums:
            return False
        direct = [
            other
            for other in self._program.all_losses
            if other.is_direct and not other.is_squared
        ]
        return bool(direct) and loss is direct[-1]

    def _run(self, tolerance: float, *, warm: bool) -> None:
        options = options_of(self._backend, accuracy_of(tolerance))
        with failures_of(self._backend):
            self._problem.solve(
                solver=self._backend, warm_start=warm, **{**options, **self._options}
            )

    def _solution(self, unit: float) -> Solution:
        # a dual of the scaled program is dF'/dR' with F' = F/unit and R' = R/σ
        rate = unit / self._size
        duals = {
            name: rate * np.asarray(constraint.dual_value)
            for name, constraint in self._equalities.items()
        }
        multipliers = tuple(
            self._multiplier(bound, constraint, unit)
            for bound, constraint in zip(
                self._program.bounds, self._bounds, strict=True
            )
        )
        totals = Totals.of(self._program)
        W = self._size * self._W.value
        return Solution(
            W=W if totals is None else totals.expanded(W),
            duals=duals,
            multipliers=multipliers,
        )

    def _multiplier(
        self, bound: Bound, constraint: CvxpyConstraint, unit: float
    ) -> float:
        if is_completeness(bound):  # those of the sums follow from W
            return math.inf
        price = max(float(np.sum(constraint.dual_value)), 0.0)
        return unit / self._size**bound.loss.penalty.degree * price


def _smallest_attainable(program: Program) -> str:
    """For each bound, the least value of its loss that the other bounds allow."""
    sentences = []
    for bound in program.bounds:
        others = tuple(other for other in program.bounds if other is not bound)
        part = Program((bound.loss,), others, sizes=program.shape)
        try:
            W = Conic().prepare(part).solve(np.ones(1), tolerance=1e-6).W
        except Infeasible:
            continue
        named = ", ".join(map(repr, others)) or "no other bound"
        sentences.append(
            f"{bound} cannot hold: under {named} the smallest "
            f"attainable value of {bound.loss.name} is {bound.loss.value_at(W):.6g}"
        )
    return "; ".join(sentences) or "no explanation satisfies all of the bounds"


def _step_size(loss: PropertyLoss, shape: tuple[int, int]) -> float:
    if not np.any(loss.target):
        return 0.0
    slope = loss.map.adjoint(np.asarray(loss.target))
    image = loss.map(slope)
    step = np.vdot(slope, slope) / max(np.vdot(image, image), np.finfo(float).tiny)
    return float(step * np.linalg.norm(slope) / np.sqrt(shape[0] * shape[1]))
