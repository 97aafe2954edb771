"""Custom losses and constraints: functions of W that return cvxpy expressions.

``po.losses.Custom(lambda W: ...)`` is a loss, ``lambda W: [...]`` in ``subject_to`` has
constraints. Both are called with a variable of cvxpy, and must follow its rules of
convex programs (DCP). They have no map and no penalty, so only :func:`propopt.solve`
takes them, with a conic solver.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NoReturn, TypeAlias, final

import numpy as np

from propopt.base.arrays import Attributions
from propopt.base.errors import InvalidInput, Refused
from propopt.losses.algebra import PropertyLoss, is_expression
from propopt.losses.maps import CvxpyConstraint, CvxpyExpression


@final
class Custom(PropertyLoss):
    """A custom loss: any convex, nonnegative expression of cvxpy.

    ``po.solve`` takes it, alone or with other losses, with ``solver="conic"`` or any
    conic backend, and recomputes the gap from conic duals. Sweeps and aims
    do not take it.

    Parameters
    ----------
    function : callable
        Maps W, a cvxpy expression of shape (N, D), to a scalar expression. It must be
        convex by the rules of cvxpy (DCP), and cvxpy must recognise it as nonnegative.
    name : str
        The name of the loss in results.

    Raises
    ------
    InvalidInput
        If ``function`` cannot be called; where it is used, if the expression is not
        scalar, not convex, or not recognised as nonnegative.

    Examples
    --------
    >>> import cvxpy as cp, numpy as np, propopt as po
    >>> G = np.array([[3.0, 1.0], [2.0, 4.0]])
    >>> rank = po.losses.Custom(lambda W: cp.normNuc(W), name="nuclear norm")
    >>> float(round(rank(np.diag([3.0, 4.0])), 6))
    7.0
    >>> best = po.solve(po.GradientMatching(G) + 2 * rank)
    >>> best.gap < 1e-5
    True
    """

    def __init__(
        self,
        function: Callable[[CvxpyExpression], CvxpyExpression],
        *,
        name: str = "custom",
    ) -> None:
        if not callable(function):
            raise InvalidInput(
                "function: expected a function of W that gives a cvxpy expression, "
                f"such as lambda W: cp.norm(W[0]), got {type(function).__name__}"
            )
        if not name:
            raise InvalidInput(f"name: expected a text, got {name!r}")
        self.function = function
        self.name = name

    def expression(self, W: CvxpyExpression) -> CvxpyExpression:
        """Build and check the cvxpy expression at W.

        Raises
        ------
        InvalidInput
            If it is not a scalar, convex and nonnegative expression.
        """
        self.check_shape(W.shape)
        made = _called(self.function, W, self.name)
        if not is_expression(made):
            raise InvalidInput(
                f"{self.name}: expected a cvxpy expression from its function, got "
                f"{type(made).__name__}; use atoms of cvxpy, such as cp.norm(W)"
            )
        if not made.is_scalar():
            raise InvalidInput(
                f"{self.name}: expected one number, got an expression of shape "
                f"{made.shape}; use cp.sum(...)"
            )
        if not made.is_convex():
            raise InvalidInput(
                f"{self.name}: {made} is not convex by the rules of cvxpy (DCP); see "
                "dcp.stanford.edu for atoms that are"
            )
        if not made.is_nonneg():
            raise InvalidInput(
                f"{self.name}: {made} is not recognised as nonnegative, so the "
                "objective may have no minimum; use cp.pos(...), add a constant inside "
                "it, or make it a constraint, as in subject_to=[lambda W: [...]]"
            )
        return made

    def value_at(self, W: Attributions) -> float:
        import cvxpy as cp

        variable = cp.Variable(W.shape)  # for a constant, signs and curvature differ
        variable.value = W
        value = self.expression(variable).value
        if value is None:
            raise InvalidInput(
                f"{self.name}: its expression has no value at given attributions; it "
                "may depend on W and on parameters with values, not on variables"
            )
        value = float(np.asarray(value).reshape(()))
        if not math.isfinite(value):
            raise InvalidInput(f"{self.name}: expected a finite loss of W, got {value}")
        return value

    def _refuse(self) -> NoReturn:
        raise Refused(
            f"{self.name} is a cvxpy expression: po.solve(objective, subject_to=...) "
            "takes it with fixed weights; sweeps, aims, gradients and shares "
            "do not"
        )

    @property
    def map(self) -> Any:
        """Raise ``Refused``: a custom loss has no linear map."""
        self._refuse()

    @property
    def penalty(self) -> Any:
        """Raise ``Refused``: a custom loss has no penalty."""
        self._refuse()

    @property
    def value_at_zero(self) -> float:
        """Raise ``Refused``: a custom loss does not determine the shape of W."""
        self._refuse()


ConstraintFunction: TypeAlias = Callable[[Any], Any]
"""A function from W to constraints of cvxpy."""


def constraints_of(
    function: ConstraintFunction, index: int, W: CvxpyExpression
) -> list[CvxpyConstraint]:
    """Build and check the constraints for a variable W of shape (N, D).

    Raises
    ------
    InvalidInput
        If they are not a list of constraints that follow the rules of DCP.
    """
    import cvxpy as cp

    label = f"subject_to[{index}]"
    made = _called(function, W, label)
    constraints = [made] if isinstance(made, cp.Constraint) else made
    if not isinstance(constraints, list | tuple) or not constraints:
        raise InvalidInput(
            f"{label}: expected a list of constraints from its function, such as "
            f"lambda W: [W[:, 0] >= 0], got {made!r}"
        )
    for constraint in constraints:
        if not isinstance(constraint, cp.Constraint):
            raise InvalidInput(
                f"{label}: expected constraints of cvxpy, got {constraint!r}; "
                "write W[:, 0] >= 0, with the argument W of the function"
            )
        if not constraint.is_dcp():
            raise InvalidInput(
                f"{label}: {constraint} is not convex by the rules of cvxpy (DCP)"
            )
    return list(constraints)


def _called(function: Callable[[Any], Any], W: Any, label: str) -> Any:
    """Call a function of the user, with a clear error if it fails."""
    try:
        return function(W)
    except Exception as error:
        raise InvalidInput(
            f"{label}: its function failed for W of shape {W.shape}: "
            f"{type(error).__name__}: {error}"
        ) from error
