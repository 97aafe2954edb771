"""SmoothGrad, and the best mixture of explanations that are there."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, ClassVar, final

import numpy as np

from propopt.base.arrays import Array, Attributions
from propopt.base.checks import read_count, read_only
from propopt.base.errors import InvalidInput, SolverFailure
from propopt.base.resources import DrawPlan
from propopt.base.suggestions import suggests_arguments
from propopt.explaining.explainers.baseline import Baseline, Findings, Request
from propopt.laws.perturbations import Perturbations
from propopt.laws.sampling import DrawCost, Sampler
from propopt.losses import Objective, PropertyLoss
from propopt.losses.faithfulness import (
    Units,
    quantity_of_target,
    relative_size,
    units_of_target,
)
from propopt.losses.maps import CvxpyExpression, Squared
from propopt.results.explanation import Explanation, explanations_of
from propopt.tables.frames import Labels
from propopt.tables.imported import AttributionsLike, aligned


@suggests_arguments
@dataclass(frozen=True, kw_only=True)
class SmoothGrad(Baseline):
    """Mean gradient over perturbed copies of each point.

    w_n = (1/S) Σ_s ∇f(x_n + ε_s) (Tadesse et al. 2024, Eq. 15; Smilkov et al. 2017).

    The result has ``standard_errors`` (N, D): the Monte-Carlo standard error of each
    attribution, to be halved by four times as many samples. Memory stays
    bounded for any N, S and D: gradients are averaged as they come. Categories are kept
    as they are; their effects are averaged over the noise in the numeric columns.

    Parameters
    ----------
    scale : float
        δ > 0, in the units of the features: the standard deviation of the noise.
    n_samples : int
        S ≥ 2 gradients per point.
    precision : float, optional
        Draw on until the standard errors of all attributions together, √Σ e², are this
        part of √Σ w², such as 0.02.
    max_evaluations : int, optional
        The most gradients for it; if they are too few, a warning says what was reached.
    relative : bool
        Whether ``scale`` is in units of the standard deviations of the function's
        schema, see :func:`propopt.wrap` and its ``data``.

    Raises
    ------
    InvalidInput
        If a setting is outside its range.

    Examples
    --------
    The mean of 3(x + ε)² is 3x² + 3δ².

    >>> import numpy as np
    >>> from propopt.functions import Power
    >>> smooth = SmoothGrad(scale=1.0, n_samples=2000).explain(Power(3), [[2.0]])
    >>> error = smooth.attributions - 15
    >>> bool(np.abs(error) < 4 * smooth.standard_errors)
    True
    """

    method: ClassVar[str] = "smoothgrad"

    scale: float
    n_samples: int = 100
    relative: bool = False
    precision: float | None = None
    max_evaluations: int | None = None

    def __post_init__(self) -> None:
        if read_count(self.n_samples, "n_samples") < 2:
            raise InvalidInput(
                "n_samples: expected at least 2, which a standard error needs, got "
                f"{self.n_samples}"
            )
        self.noise(self.n_samples)
        _ = self._draws

    def _texts_refusal(self) -> str:
        return (
            "words get no noise; Gradient is the effect of each word, and "
            "Lime(law=po.lime.TextLaw()) is about texts in which others are deleted too"
        )

    def _findings(self, request: Request) -> Findings:
        drawn = SmoothedGradients.of(self, request, self._draws)
        errors = drawn.standard_errors
        self._draws.warn_if_larger(drawn.error)
        return Findings(attributions=drawn.mean, standard_errors=errors)

    @property
    def _draws(self) -> DrawPlan:
        return DrawPlan(self.n_samples, 0, self.precision, self.max_evaluations)

    def noise(self, n_samples: int) -> Perturbations:
        """Make the given number of noise draws ε around each point."""
        return Perturbations(scale=self.scale, n_samples=n_samples)


@final
@dataclass(frozen=True, eq=False)
class SmoothedGradients(Sampler):
    """Means and squares, joined as they come (Chan, Golub and LeVeque 1983)."""

    method: SmoothGrad
    request: Request
    mean: Attributions  # (N, D)
    squares: Array  # (N, D)
    n_draws: int

    @classmethod
    def of(
        cls, method: SmoothGrad, request: Request, draws: DrawPlan
    ) -> SmoothedGradients:
        """Sample as many as requested, or as the precision requires."""
        mean, squares = np.zeros((2, *request.points.shape))
        empty = cls(method, request, mean, squares, 0)
        return empty.extended(empty.cost.first(draws)).enough(draws)

    @property
    def cost(self) -> DrawCost:
        return DrawCost(len(self.mean), fewest=2)

    @property
    def standard_errors(self) -> Array:
        """Of the means, (N, D)."""
        return np.sqrt(self.squares / (self.n_draws - 1) / self.n_draws)

    @property
    def error(self) -> float:
        return relative_size(self.standard_errors, self.mean)

    def extended(self, n_draws: int) -> SmoothedGradients:
        mean = self.mean.copy()
        squares = self.squares.copy()
        count = np.full((len(mean), 1), float(self.n_draws))
        request = self.request
        more = n_draws - self.n_draws
        noise = self.method.noise(more)
        units = request.noise_units(self.method.relative)
        for rows, draws in noise.blocks(
            mean.shape, request.rng, units=units, split=True
        ):
            samples = request.gradient(request.points[rows, None] + draws)
            means = samples.mean(axis=1)
            new = samples.shape[1]
            shift = means - mean[rows]
            part = new / (count[rows] + new)
            squares[rows] += ((samples - means[:, None]) ** 2).sum(axis=1)
            squares[rows] += shift**2 * count[rows] * part
            mean[rows] += shift * part
            count[rows] += new
            if self.n_draws == 0:
                request.advance(draws.shape[0] * draws.shape[1] / more)
        return replace(self, mean=mean, squares=squares, n_draws=n_draws)


# ---- The best mixture of explanations that are already there


BACKEND = "CLARABEL"
ACCURACY = 1e-10


@suggests_arguments
def aggregate(
    objective: Objective | PropertyLoss,
    explanations: Iterable[AttributionsLike] | Mapping[str, AttributionsLike],
) -> Explanation:
    """Find the weighted mean of explanations with the smallest objective.

    minimise over α ≥ 0, Σ_k α_k = 1:  F(Σ_k α_k W_k)

    (Bhatt et al. 2020; Decker et al. 2024). The same α serves all points. The result is
    never worse than the best of the given explanations, and never better than
    :func:`propopt.solve`, which is free to choose W. Since Σ α = 1 the residuals mix
    like the attributions, so a squared loss is ‖Rα‖² with a K×K triangle R: the cost of
    the program does not grow with N.

    ``details["shares"]`` (K,) is α, in the order of ``explanations``.

    Parameters
    ----------
    objective : Objective or PropertyLoss
        F.
    explanations : sequence
        At least one: each an Explanation, a ``shap.Explanation``, a DataFrame or an
        array, all of one shape. Rows and columns with names are put in the order of the
        losses, or of the first that has names.

    Returns
    -------
    Explanation
        With ``method`` ``"aggregation"``, and the objective's weights and losses.

    Raises
    ------
    InvalidInput
        If there is no explanation, or if their shapes or their units differ: a sum of
        slopes and of parts of the output is neither.
    SolverFailure
        If the backend gives no answer.

    Examples
    --------
    >>> import numpy as np, propopt as po
    >>> one = po.results.Explanation(attributions=np.array([[1.0]]), method="one")
    >>> three = po.results.Explanation(attributions=np.array([[3.0]]), method="three")
    >>> mixture = aggregate(po.GradientMatching(np.array([[1.5]])), [one, three])
    >>> mixture.details["shares"].round(6)
    array([0.75, 0.25])
    """
    start = time.perf_counter()
    objective = Objective.of(objective)
    units = units_of_target(objective.losses)
    parts = list(explanations_of(explanations, "explanation", units))
    labels = reduce(Labels.or_else, (e.labels for e in parts), objective.labels)
    stack = _stack(parts, labels)
    quantities = {part.quantity for part in parts}
    quantities = (quantities | {quantity_of_target(objective.losses)}) - {None}
    shares = _best_shares(objective, stack)
    attributions = read_only(np.tensordot(shares, stack, axes=1))
    return Explanation(
        attributions=attributions,
        method="aggregation",
        labels=labels,
        weights=objective.weights,
        losses=objective.breakdown(attributions),
        details={"shares": shares},
        units=_common_units(parts),
        quantity=quantities.pop() if len(quantities) == 1 else None,
        evaluations=sum(part.evaluations for part in parts),
        solver=BACKEND,
        seconds=time.perf_counter() - start,
    )


def _common_units(parts: Sequence[Explanation]) -> Units:
    """The common units; raises if they differ."""
    methods = {part.units: part.method for part in parts}
    if len(methods) != 1:
        units_by_method = " and ".join(
            f"{units!r} ({name})" for units, name in methods.items()
        )
        raise InvalidInput(
            f"explanations: expected equal units, got {units_by_method}; compute them "
            "with the same units=; explanation.scaled(scale) makes 'gradient' 'scaled'"
        )
    return next(iter(methods))


def _stack(parts: Sequence[Explanation], labels: Labels) -> Array:
    """All attributions, (K, N, D), with rows and columns in one order."""
    tables = [aligned(part, labels, part.method, "the others") for part in parts]
    shapes = {W.shape for W in tables}
    if len(shapes) != 1:
        sizes = ", ".join(map(str, sorted(shapes))) or "none"
        raise InvalidInput(
            f"explanations: expected at least one, all of one shape; got {sizes}"
        )
    return np.array(tables)


def _best_shares(objective: Objective, stack: Array) -> Array:
    import cvxpy as cp

    values = np.array([objective.value(W) for W in stack])
    alone: Array = np.eye(len(stack))[values.argmin()]
    if len(stack) == 1 or values.min() == 0:
        return alone
    shares = cp.Variable(len(stack), nonneg=True)
    # Relative to the best single explanation, the optimum is between 0 and 1.
    total = sum(
        weight / values.min() * _mixed_loss(loss, stack, shares)
        for weight, loss in objective.terms
    )
    _solve(cp.Problem(cp.Minimize(total), [cp.sum(shares) == 1]))
    optimum = np.maximum(np.asarray(shares.value, float), 0)
    optimum /= optimum.sum()
    better = objective.value(np.tensordot(optimum, stack, axes=1)) < values.min()
    return optimum if better else alone


def _mixed_loss(
    loss: PropertyLoss, stack: Array, shares: CvxpyExpression
) -> CvxpyExpression:
    """φ(Σ_k α_k R_k), the loss of the mixture."""
    import cvxpy as cp

    residuals = [loss.residual(W) for W in stack]
    if isinstance(loss.penalty, Squared):
        columns = np.stack([residual.ravel() for residual in residuals], axis=1)
        return cp.sum_squares(np.linalg.qr(columns, mode="r") @ shares)
    mixture = sum(shares[k] * residual for k, residual in enumerate(residuals))
    return loss.penalty.expression(mixture)


def _solve(problem: Any) -> None:
    import cvxpy as cp

    with warnings.catch_warnings():
        # the result is used only where it is better than the best explanation alone
        warnings.filterwarnings("ignore", message="Solution may be inaccurate")
        try:
            problem.solve(
                solver=BACKEND,
                tol_gap_abs=ACCURACY,
                tol_gap_rel=ACCURACY,
                tol_feas=ACCURACY,
            )
        except cp.SolverError as error:
            raise SolverFailure(f"{BACKEND} could not mix the explanations") from error
    if problem.value is None or not np.isfinite(problem.value):
        raise SolverFailure(
            f"{BACKEND} could not mix the explanations: {problem.status}"
        )
