"""Losses and constraints that only cvxpy knows: functions of W that users write.

``po.losses.Custom(lambda W: ...)`` is a loss, ``lambda W: [...]`` in ``subject_to`` has
constraints. Both are called with a variable of cvxpy, and must follow its rules of
convex programs (DCP). Nothing else is known of them: they have no map and no penalty,
so only :func:`propopt.solve` takes them, and by a conic solver.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn, TypeAlias, final

import numpy as np

from propopt.base.arrays import Attributions
from propopt.base.errors import InvalidInput, Refused
from propopt.losses.algebra import Bound, PropertyLoss, is_expression
from propopt.losses.maps import CvxpyConstraint, CvxpyExpression


@final
class Custom(PropertyLoss):
    """A loss of your own: any convex expression of cvxpy that is at least zero.

    ``po.solve`` takes it beside other losses, with ``solver="conic"`` or any conic
    backend, and recomputes the gap from conic duals. Sweeps, aims and
    ``target_radius`` do not take it.

    Parameters
    ----------
    function : callable
        Maps W, a cvxpy expression of shape (N, D), to a scalar expression. It must be
        convex by the rules of cvxpy (DCP), and its sign must be known as nonnegative.
    name : str
        What results call it.

    Raises
    ------
    InvalidInput
        If ``function`` cannot be called; where it is used, if the expression is not
        scalar, not convex, or not known to be nonnegative.

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
        """The expression of the function at W, checked.

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
                f"{made.shape}; cp.sum(...) adds it up"
            )
        if not made.is_convex():
            raise InvalidInput(
                f"{self.name}: {made} is not convex by the rules of cvxpy (DCP); see "
                "dcp.stanford.edu for atoms that are"
            )
        if not made.is_nonneg():
            raise InvalidInput(
                f"{self.name}: {made} is not known to be nonnegative, so the objective "
                "may have no smallest value; use cp.pos(...), add a constant inside "
                "it, or make it a constraint, as in subject_to=[lambda W: [...]]"
            )
        return made

    def value_at(self, W: Attributions) -> float:
        import cvxpy as cp

        variable = cp.Variable(W.shape)  # of a constant signs and curvature differ
        variable.value = W
        value = self.expression(variable).value
        if value is None:
            raise InvalidInput(
                f"{self.name}: its expression has no value at given attributions; it "
                "may depend on W and on parameters that have values, not on variables"
            )
        value = float(np.asarray(value).reshape(()))
        if not math.isfinite(value):
            raise InvalidInput(f"{self.name}: its value is {value} at these W")
        return value

    def _refuse(self) -> NoReturn:
        raise Refused(
            f"{self.name} is known to cvxpy alone: po.solve(objective, subject_to=...) "
            "takes it for given weights; sweeps, aims, target_radius, gradients and "
            "shares do not"
        )

    @property
    def map(self) -> Any:
        """Refused: there is no linear map."""
        self._refuse()

    @property
    def penalty(self) -> Any:
        """Refused: there is no penalty."""
        self._refuse()

    @property
    def value_at_zero(self) -> float:
        """Refused: the shape of W is not known."""
        self._refuse()


@final
@dataclass(frozen=True, eq=False)
class CustomConstraints:
    """Constraints of cvxpy as a function of W."""

    function: Callable[[CvxpyExpression], Any]
    place: int  # in subject_to

    def of(self, W: CvxpyExpression) -> list[CvxpyConstraint]:
        """The constraints for a variable or a constant W of shape (N, D).

        Raises
        ------
        InvalidInput
            If they are not a list of constraints that follow the rules of DCP.
        """
        import cvxpy as cp

        label = f"subject_to[{self.place}]"
        made = _called(self.function, W, label)
        found = [made] if isinstance(made, cp.Constraint) else made
        if not isinstance(found, list | tuple) or not found:
            raise InvalidInput(
                f"{label}: expected a list of constraints from its function, such as "
                f"lambda W: [W[:, 0] >= 0], got {made!r}"
            )
        for constraint in found:
            if not isinstance(constraint, cp.Constraint):
                raise InvalidInput(
                    f"{label}: {constraint!r} is no constraint of cvxpy; write "
                    "W[:, 0] >= 0, with the W that the function is given"
                )
            if not constraint.is_dcp():
                raise InvalidInput(
                    f"{label}: {constraint} is not convex by the rules of cvxpy (DCP)"
                )
        return list(found)


ConstraintFunction: TypeAlias = Callable[[Any], Any]
"""From W to constraints of cvxpy."""


def split_custom_constraints(
    subject_to: Any,
) -> tuple[tuple[CustomConstraints, ...], list[Any]]:
    """Functions in ``subject_to``, and the rest of it."""
    if _is_function(subject_to):
        subject_to = [subject_to]
    if not isinstance(subject_to, Iterable):
        return (), subject_to  # which is then refused as what it is
    given = list(subject_to)
    own = (CustomConstraints(x, n) for n, x in enumerate(given) if _is_function(x))
    return tuple(own), [x for x in given if not _is_function(x)]


def has_custom(losses: Iterable[PropertyLoss], bounds: Sequence[Bound] = ()) -> bool:
    """Whether only cvxpy knows one of these losses."""
    every = (*losses, *(bound.loss for bound in bounds))
    return any(isinstance(loss, Custom) for loss in every)


def _is_function(constraint: object) -> bool:
    return callable(constraint) and not isinstance(constraint, PropertyLoss)


def _called(function: Callable[[Any], Any], W: Any, label: str) -> Any:
    """What a function of users says, or an error that says whose error it is."""
    try:
        return function(W)
    except Exception as error:
        raise InvalidInput(
            f"{label}: its function failed for W of shape {W.shape}: "
            f"{type(error).__name__}: {error}"
        ) from error
