"""From an objective to a certified explanation."""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np

from propopt._typing import Array, Attributions
from propopt.certificate import Certificate, certify
from propopt.checks import read_positive, sealed
from propopt.errors import InvalidInput, TrivialObjectiveWarning, UncertifiedWarning
from propopt.losses import (
    Bound,
    Faithfulness,
    MaxDifferenceRobustness,
    Objective,
    Program,
    PropertyLoss,
)
from propopt.losses.base import common_labels
from propopt.losses.effortless import Effortless
from propopt.results.deferred import Deferred
from propopt.results.explanation import Explanation
from propopt.solvers.auto import chosen_solver
from propopt.solvers.base import Curve, Prepared, Solution, Solver
from propopt.solvers.splitting.edge_weights import edge_weights
from propopt.tables.names import Labels
from propopt.threads import few_threads


FINEST = 1e-13
"""No gap below this is asked of attributions on a curve: rounding takes the rest."""


def solve(
    objective: Objective | PropertyLoss,
    solver: str | Solver = "auto",
    *,
    subject_to: Sequence[Bound] = (),
    tolerance: float = 1e-6,
) -> Explanation:
    """The attributions with the smallest objective, with proof.

    Parameters
    ----------
    objective : Objective
        A weighted sum of losses.
    solver : str or Solver
        ``"auto"`` (see :class:`propopt.solvers.Auto`), ``"spectral"``, ``"conic"``,
        ``"minimum_norm"``, or a cvxpy backend by name, such as ``"CLARABEL"``.
    subject_to : sequence of Bound
        Constraints such as ``po.PairwiseRobustness(graph) <= 2.0``.
    tolerance : float
        The certified relative gap that is wanted; a warning says if it was missed.

    Returns
    -------
    Explanation
        With ``.attributions``, ``.losses``, ``.objective``, ``.gap``, ``.certificate``,
        ``.multipliers``, ``.solver`` and ``.seconds``.

    Raises
    ------
    Refused
        If the solver cannot treat the objective, with the reason.
    Infeasible
        If no attributions satisfy all bounds, with what is attainable.
    SolverFailure
        If the backend stopped without an answer.

    Examples
    --------
    >>> import numpy as np, propopt as po
    >>> X = np.linspace(-1, 1, 5)[:, None]
    >>> objective = po.GradientMatching(3 * X**2) + po.PairwiseRobustness(
    ...     po.chain_graph(5)
    ... )
    >>> best = po.solve(objective)
    >>> best.solver, best.gap < 1e-12
    ('spectral', True)
    """
    began = time.perf_counter()
    task = Task(Objective.of(objective), tuple(subject_to), solver)
    limit = read_positive(tolerance, "tolerance")
    return task.explain(task.solve(task.objective, limit), task.objective, limit, began)


@dataclass(frozen=True, eq=False)
class Task:
    """An objective made ready for solving, once for all its weights.

    Losses of weight zero take part in the program only if ``all_losses`` is set: then
    they can be given a weight later.
    """

    objective: Objective
    bounds: tuple[Bound, ...] = ()
    solver: str | Solver = "auto"
    all_losses: bool = False

    @cached_property
    def program(self) -> Program:
        """The program: active losses and bounds, of the shape that all losses give."""
        _ = self.labels  # refuses losses of different tables
        shape = Program(self.objective.losses, self.bounds).shape
        kept = [loss for c, loss in self.objective.terms if c > 0 or self.all_losses]
        return Program(tuple(kept), self.bounds, shape)

    @cached_property
    def labels(self) -> Labels:
        """Names of points and features, from the losses and those of the bounds."""
        limited = [bound.loss for bound in self.bounds]
        return common_labels([*self.objective.losses, *limited])

    @cached_property
    def chosen(self) -> Solver:
        """The solver that takes the program."""
        return chosen_solver(self.solver, self.program)

    @cached_property
    def prepared(self) -> Prepared:
        """The program made ready by its solver."""
        with few_threads(self.program.shape[0]):
            return self.chosen.prepare(self.program)

    def solve(
        self, objective: Objective, tolerance: float, start: Solution | None = None
    ) -> Solution:
        """The minimiser for the weights of ``objective``, which has the same losses."""
        if not any(weight > 0 for weight in objective.weights.values()):
            raise InvalidInput("weights: all are zero, so every explanation is optimal")
        shape = self.program.shape
        if self._zero_is_free(objective):
            if not self._is_faithful(objective):
                warnings.warn(
                    f"{objective!r} has no faithfulness loss with a weight above zero, "
                    "so its optimum is the zero explanation",
                    TrivialObjectiveWarning,
                    stacklevel=3,
                )
            return Solution(W=np.zeros(shape), multipliers=(0.0,) * len(self.bounds))
        with few_threads(shape[0]):
            return self.prepared.solve(self._weights(objective), tolerance, start)

    def explain(
        self, found: Solution, objective: Objective, tolerance: float, began: float
    ) -> Explanation:
        """The solution with its losses and its certificate."""
        with few_threads(self.program.shape[0]):
            losses = self._measured(objective, found.W)
            certificate = self._certified(found, objective, losses, tolerance)
        return Explanation(
            attributions=sealed(found.W),
            method="optimized",
            labels=self.labels,
            weights=objective.weights,
            certificate=certificate,
            multipliers={
                bound.loss.name: multiplier
                for bound, multiplier in zip(
                    self.bounds, found.multipliers, strict=True
                )
            },
            losses=losses,
            details=self._details(found),
            solver=self._solver_name(objective),
            seconds=time.perf_counter() - began,
        )

    def _measured(self, objective: Objective, W: Attributions) -> dict[str, float]:
        limited = {bound.loss.name: bound.loss.value(W) for bound in self.bounds}
        return {**objective.breakdown(W), **limited}

    def _certified(
        self,
        found: Solution,
        objective: Objective,
        losses: dict[str, float],
        tolerance: float,
    ) -> Certificate:
        certificate = certify(
            objective,
            found.W,
            duals=found.duals,
            bounds=self.bounds,
            multipliers=found.multipliers,
            losses=losses,
        )
        if not certificate.holds(tolerance):
            warnings.warn(
                f"{self._solver_name(objective)} reached a certified gap of "
                f"{certificate.gap:.1e} and a violation of bounds of "
                f"{certificate.violation:.1e}, where {tolerance:.1e} was wanted; "
                "another solver may do better",
                UncertifiedWarning,
                stacklevel=4,
            )
        return certificate

    def _details(self, found: Solution) -> dict[str, Array]:
        """Where the explanation has to change fastest, for max-differences in l2."""
        return {
            f"edge_weights.{loss.name}": sealed(edge_weights(loss, found))
            for loss in self.program.losses
            if isinstance(loss, MaxDifferenceRobustness)
            and loss.norm == "l2"
            and loss.name in found.duals
        }

    def _solver_name(self, objective: Objective) -> str:
        return "none" if self._zero_is_free(objective) else self.chosen.name

    def knows_curve(self, objective: Objective) -> bool:
        """True if the losses of the optimum are known without its attributions."""
        return isinstance(self.prepared, Curve) and not self._zero_is_free(objective)

    def on_curve(
        self, objective: Objective, tolerance: float, began: float
    ) -> Explanation:
        """The losses of the optimum; its attributions when they are first read.

        Now, if the curve does not know its losses to the tolerance: attributions may
        prove more, and say so if they do not.
        """
        assert isinstance(self.prepared, Curve), "see knows_curve"
        names = [loss.name for loss in self.program.losses]
        weights = self._weights(objective)
        measurement = self.prepared.measure(weights, tolerance)
        value = float(weights @ measurement.losses)
        certificate = Certificate(
            value=value,
            lower_bound=value - measurement.excess,
            scale=self._effortless.scale(value, objective.weights),
            kind="curve",
        )
        best = Explanation(
            attributions=self._deferred(objective, tolerance),
            method="optimized",
            labels=self.labels,
            weights=objective.weights,
            losses=dict(zip(names, measurement.losses.tolist(), strict=True)),
            certificate=certificate,
            solver=self.chosen.name,
            seconds=time.perf_counter() - began,
        )
        if not certificate.holds(tolerance):
            _ = best.attributions
        return best

    def _deferred(self, objective: Objective, tolerance: float) -> Deferred:
        return Deferred(
            shape=self.program.shape,
            compute=partial(self._explained, objective, tolerance),
            tolerance=tolerance,
        )

    def _weights(self, objective: Objective) -> Array:
        """The weights in the order of the program."""
        weights = objective.weights
        return np.array([weights[loss.name] for loss in self.program.losses])

    def _explained(self, objective: Objective, tolerance: float) -> Explanation:
        began = time.perf_counter()
        # losses err by the root of the excess: these are to agree with the curve's
        fine = max(tolerance**2, min(tolerance, FINEST))
        found = self.solve(objective, fine)
        return self.explain(found, objective, tolerance, began)

    def _zero_is_free(self, objective: Objective) -> bool:
        """True if zero attributions cost nothing and respect all bounds."""
        costs = self._effortless.zero
        within = all(costs[bound.loss.name] <= bound.limit for bound in self.bounds)
        return within and self._value_of_zero(objective) == 0.0

    def _value_of_zero(self, objective: Objective) -> float:
        weights = objective.weights
        return sum(weights[name] * self._effortless.zero[name] for name in weights)

    @cached_property
    def _effortless(self) -> Effortless:
        """The value of each loss for explanations without work."""
        return Effortless.of(
            (*self.objective.losses, *(bound.loss for bound in self.bounds))
        )

    def _is_faithful(self, objective: Objective) -> bool:
        """True if a loss with a weight above zero, or a bound, ties W to f."""
        weighed = [loss for weight, loss in objective.terms if weight > 0]
        limited = [bound.loss for bound in self.bounds]
        return any(isinstance(loss, Faithfulness) for loss in weighed + limited)
