"""Optimised aggregation: the weighted mean of explanations with the best properties."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from functools import reduce

import numpy as np

from propopt.base.errors import InvalidInput, SolverFailure
from propopt.base.suggestions import suggests_arguments
from propopt.base.text import shared
from propopt.losses import Objective, PropertyLoss
from propopt.losses.faithfulness import quantity_of_target, units_of_target
from propopt.losses.maps import CvxpyExpression
from propopt.results.explanation import Explanation, explanations_of
from propopt.tables.frames import Labels
from propopt.tables.imported import AttributionsLike, aligned


_ACCURACY = 1e-10


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
        If the solver gives no answer.

    Examples
    --------
    >>> import numpy as np, propopt as po
    >>> one = po.results.Explanation(attributions=np.array([[1.0]]), method="one")
    >>> three = po.results.Explanation(attributions=np.array([[3.0]]), method="three")
    >>> mixture = aggregate(po.GradientMatching(np.array([[1.5]])), [one, three])
    >>> mixture.details["shares"].round(6)
    array([0.75, 0.25])
    """
    import cvxpy as cp

    start = time.perf_counter()
    objective = Objective.of(objective)
    units = units_of_target(objective.losses)
    parts = list(explanations_of(explanations, "explanation", units))
    labels = reduce(Labels.or_else, (part.labels for part in parts), objective.labels)
    tables = [aligned(part, labels, part.method, "the others") for part in parts]
    kinds = {(W.shape, part.units) for W, part in zip(tables, parts, strict=True)}
    if len(kinds) != 1:
        given = ", ".join(f"{shape} in {kind!r}" for shape, kind in sorted(kinds))
        raise InvalidInput(
            "explanations: expected at least one, all of one shape and in equal units; "
            f"got {given or 'none'}; explanation.scaled(scale) makes 'gradient' "
            "'scaled'"
        )
    values = np.array([objective.value(W) for W in tables])
    best = values.argmin()
    alpha = np.eye(len(tables))[best]
    if len(tables) > 1 and values[best] > 0:
        shares = cp.Variable(len(tables), nonneg=True)
        # Relative to the best single explanation, the optimum is between 0 and 1.
        total = sum(
            weight / values[best] * _loss_of_mean(loss, tables, shares)
            for weight, loss in objective.terms
        )
        program = cp.Problem(cp.Minimize(total), [cp.sum(shares) == 1])
        accuracies = ("tol_gap_abs", "tol_gap_rel", "tol_feas")
        try:
            program.solve(solver="CLARABEL", **dict.fromkeys(accuracies, _ACCURACY))
        except cp.SolverError as error:
            raise SolverFailure("CLARABEL could not mix the explanations") from error
        mixed = np.maximum(np.asarray(shares.value, float), 0.0)
        mixed /= mixed.sum()
        if objective.value(np.tensordot(mixed, tables, axes=1)) < values[best]:
            alpha = mixed
    W = np.tensordot(alpha, tables, axes=1)
    quantities = [part.quantity for part in parts]
    return Explanation(
        attributions=W,
        method="aggregation",
        labels=labels,
        weights=objective.weights,
        losses=objective.breakdown(W),
        details={"shares": alpha},
        units=parts[0].units,
        quantity=shared([*quantities, quantity_of_target(objective.losses)]),
        evaluations=sum(part.evaluations for part in parts),
        solver="CLARABEL",
        seconds=time.perf_counter() - start,
    )


def _loss_of_mean(
    loss: PropertyLoss, tables: list[np.ndarray], shares: CvxpyExpression
) -> CvxpyExpression:
    """φ(Σ_k α_k R_k), as Σ α = 1."""
    import cvxpy as cp

    residuals = [loss.residual(W) for W in tables]
    if loss.is_squared:
        columns = np.stack([residual.ravel() for residual in residuals], axis=1)
        return cp.sum_squares(np.linalg.qr(columns, mode="r") @ shares)
    mixture = sum(shares[k] * residual for k, residual in enumerate(residuals))
    return loss.penalty.expression(mixture)
