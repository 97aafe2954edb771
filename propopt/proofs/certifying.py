"""Certificates for attributions from any source: :func:`certify`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from propopt.base.arrays import Array
from propopt.base.checks import read_nonnegative
from propopt.base.errors import InvalidInput
from propopt.base.suggestions import suggests_arguments
from propopt.losses import Objective, Program, PropertyLoss
from propopt.losses.algebra import aligned_attributions
from propopt.losses.completeness import (
    Constraint,
    has_custom,
    is_completeness,
    split_constraints,
)
from propopt.losses.custom import ConstraintFunction
from propopt.proofs.certificate import (
    Certificate,
    certificate_of,
)
from propopt.proofs.conic_bound import certify_custom


@suggests_arguments
def certify(
    objective: Any,
    W: Any,
    *,
    duals: Mapping[str, Array] | None = None,
    bounds: Sequence[Constraint | ConstraintFunction] = (),
    multipliers: Sequence[float] = (),
    losses: Mapping[str, float] | None = None,
) -> Certificate:
    """Prove how close attributions from any source are to the optimum.

    Parameters
    ----------
    objective : Objective
        The weighted losses.
    W : array, DataFrame, Explanation or shap.Explanation (N, D)
        Attributions; rows and columns with names are put in the order of the losses.
        The two arguments may be exchanged: ``certify(W, objective)``.
    duals : mapping of arrays, optional
        By loss name, a subgradient of weight·φ at the residual. Needed for a tight
        bound if a loss is neither squared nor an ℓ1 norm of W itself; the bound holds
        for any array.
    bounds : sequence of Bound, Completeness or functions, optional
        Constraints that the optimum has to respect; constraints of cvxpy are functions,
        such as ``lambda W: [W[:, 0] >= 0]``. With these, or with a
        :class:`propopt.losses.Custom`, duals and multipliers are not needed: a conic
        solver computes them.
    multipliers : sequence of float, optional
        One multiplier ≥ 0 for each bound; the bound holds for any.
    losses : mapping, optional
        Values of the losses at W by name, if already computed.

    Returns
    -------
    Certificate
        The objective at W, a lower bound of the optimum, and the gap between them.

    Raises
    ------
    InvalidInput
        If W has another shape, other names, or a value that is not finite.
    Refused
        If nothing can be proved with custom losses or constraints, with the reason.

    Examples
    --------
    >>> import numpy as np, propopt as po
    >>> objective = po.GradientMatching(np.eye(3)) + 1.0 * po.Sparsity()
    >>> best = np.eye(3) / 2
    >>> po.proofs.certify(objective, best).gap
    0.0
    >>> po.proofs.certify(objective, np.zeros((3, 3))).gap > 0.1
    True
    """
    if isinstance(W, Objective | PropertyLoss):  # the exchanged order
        objective, W = W, objective
    if W is None:
        raise InvalidInput(
            "certify: W is None, as the value of a cp.Variable before its problem is "
            "solved; expected certify(objective, W)"
        )
    if not isinstance(objective, Objective | PropertyLoss):
        raise InvalidInput(
            "certify: neither argument is an objective; expected "
            f"certify(objective, W), got {type(objective).__name__} and "
            f"{type(W).__name__}"
        )
    weighed = Objective.of(objective)
    custom, limits = split_constraints(bounds, weighed.losses)
    if custom or has_custom(weighed.losses, limits):
        return certify_custom(weighed, W, limits, custom)
    every = (*weighed.losses, *(bound.loss for bound in limits))
    array = aligned_attributions(every, W, "W")
    given = losses or {}
    values = [
        given[loss.name] if loss.name in given else loss.value_at(array)
        for loss in every
    ]
    prices = [
        mu if is_completeness(bound) else read_nonnegative(mu, "multipliers")
        for mu, bound in zip(multipliers, limits, strict=False)
    ]
    # a loss may be in the objective and in a bound
    program = Program.trusted(weighed.losses, limits, (array.shape[0], array.shape[1]))
    program.trivial.refuse_underflow(weighed.coefficients)
    return certificate_of(
        program,
        weighed.coefficients,
        array,
        np.array(values),
        duals=duals or {},
        multipliers=prices,
    )
