"""The algebra of losses: sums, weights, bounds, and programs.

A loss is a penalty of a residual, φ(A(W) − T). A weighted sum of losses is an
:class:`Objective`; ``loss <= limit`` is a :class:`Bound`.

A relative gap needs a scale. An optimum may be zero, for instance if all gradients are
equal; only rounding is left then. The scale is therefore at least a small share of the
cost of trivial explanations: zero, or the mean gradient at every point. It does not
grow with an offset of the gradients, as their mean then costs less than zero.
"""

from __future__ import annotations

import math
import reprlib
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from inspect import signature
from typing import Any, ClassVar, Final, Literal, NoReturn, TypeAlias, final, get_args

import numpy as np
from numpy.typing import NDArray

from propopt.base.arrays import Array, Attributions
from propopt.base.checks import (
    did_you_mean,
    largest_entry,
    read_nonnegative,
    read_positive,
    refuse_overflow,
    refuse_underflow,
)
from propopt.base.errors import InvalidInput, Refused, WrongType
from propopt.base.suggestions import suggests_arguments
from propopt.base.text import Quantity, repeated
from propopt.losses.linear_algebra import SLAB, plus_row, slabs
from propopt.losses.maps import (
    Absolute,
    CvxpyExpression,
    Identity,
    ImplicitOverPoints,
    LinearMap,
    OverEntries,
    OverFeatures,
    OverPoints,
    Penalty,
    RowSums,
    Squared,
)
from propopt.tables.frames import Labels, differ
from propopt.tables.imported import aligned


class Atom:
    """A convex function of attributions W, usable like an atom of cvxpy."""

    __array_ufunc__ = None  # np.float64(0.3) * loss is handled here, not by NumPy

    @abstractmethod
    def value(self, W: object) -> float:
        """Evaluate the function at attributions W (N, D)."""

    @abstractmethod
    def expression(self, W: CvxpyExpression) -> CvxpyExpression:
        """Build the cvxpy expression for an expression W of shape (N, D)."""

    def __call__(self, W: Any) -> Any:
        """Return an expression for a cvxpy variable or expression, else the value.

        Examples
        --------
        >>> import cvxpy as cp, numpy as np, propopt as po
        >>> loss = po.GradientMatching(np.eye(2))
        >>> loss(np.zeros((2, 2)))
        2.0
        >>> W = cp.Variable((2, 2))
        >>> cp.Problem(cp.Minimize(loss(W)), [W >= 0.5]).is_dcp()
        True
        """
        return self.expression(W) if is_expression(W) else self.value(W)

    def __array__(self, *_: object, **__: object) -> NoReturn:
        """Raise an error, as cvxpy and NumPy call it for a loss used as a number."""
        raise InvalidInput(
            f"{self!r} is a function of attributions, not an array: in cvxpy write "
            "loss(W) for a cp.Variable W, as in cp.Minimize(loss(W)) or "
            "p * loss(W); loss * p, with the loss first, takes a cp.Parameter p, and "
            "po.losses.Custom(lambda W: ...) makes a loss of a cvxpy expression"
        )

    def _cannot(self, sign: str, other: object) -> WrongType:
        """The error of an unsupported operator, with the operand and advice."""
        what = reprlib.repr(other) if _is_number(other) else type(other).__name__
        advice = _WOULD_DO.get(sign, _IN_CVXPY)
        if is_expression(other) and sign not in ("*", "/"):
            advice = _IN_CVXPY
        return WrongType(f"{self!r} {sign} {what}: {advice}")

    def __truediv__(self, number: object) -> Objective:
        if not _is_number(number):
            raise self._cannot("/", number)
        return self * (1.0 / read_positive(number, "divisor"))

    def __mul__(self, weight: object) -> Objective:
        """Multiply all weights, giving an objective."""
        raise NotImplementedError

    def __eq__(self, other: object) -> bool:
        if _is_number(other) or is_expression(other):
            raise self._cannot("==", other)
        return self is other

    def __hash__(self) -> int:
        return id(self)

    def __sub__(self, other: object) -> NoReturn:
        raise self._cannot("-", other)

    def __pow__(self, other: object) -> NoReturn:
        raise self._cannot("**", other)

    def __matmul__(self, other: object) -> NoReturn:
        raise self._cannot("@", other)

    def __ge__(self, other: object) -> NoReturn:
        raise self._cannot(">=", other)

    def __gt__(self, other: object) -> NoReturn:
        raise self._cannot(">", other)

    def __lt__(self, other: object) -> NoReturn:
        raise self._cannot("<", other)

    def __le__(self, other: object) -> Bound:
        raise self._cannot("<=", other)

    def __neg__(self) -> NoReturn:
        raise self._cannot("*", -1)

    def __getitem__(self, key: object) -> NoReturn:
        raise self._cannot("[...] of", key)


_CONVEX: Final = "losses have weights >= 0, so that their sum is convex"
_IN_CVXPY: Final = (
    "for a cp.Variable W write loss(W), an expression of cvxpy, or "
    "po.losses.Custom(lambda W: ...), which makes a loss of one"
)
_WOULD_DO: Final[Mapping[str, str]] = {
    "+": "losses are added to losses, as in loss + 0.5 * po.Sparsity()",
    "-": f"{_CONVEX}; loss + 0.5 * other, or subject_to=[other <= limit]",
    "*": f"a loss takes a number >= 0 or cp.Parameter(nonneg=True); {_CONVEX}",
    "/": "a loss is divided by a number > 0; loss * p takes cp.Parameter(nonneg=True)",
    "**": "po.losses.Custom(lambda W: cp.square(loss(W))) is a power of a loss",
    "<=": "a limit is a number >= 0 for one loss, as in subject_to=[loss <= 1.0]",
    "<": "write loss <= 1.0, with one loss and a number",
    ">=": "a loss that is at least a number is not convex; write loss <= 1.0",
    ">": "a loss that is at least a number is not convex; write loss <= 1.0",
    "==": "a loss that equals a number is not convex; write loss <= 1.0",
}
"""Advice for each unsupported operator."""


class PropertyLoss(Atom, ABC):
    """A convex loss φ(A(W) − T) ≥ 0 of attributions W (N, D).

    A subclass defines ``name``, ``map`` (A), ``penalty`` (φ), ``target`` (T) unless it
    is zero, and the sizes of W that it fixes. Everything else follows. ``loss(W)`` is
    :meth:`value` for an array and :meth:`expression` for a variable or expression of
    cvxpy.
    """

    _too_many = "; a weight stands before a loss, as in 0.5 * po.Sparsity()"

    name: str
    n_points: int | None = None
    """The number of points N, if this loss fixes it."""
    n_features: int | None = None
    """The number of features D, if this loss fixes it."""
    labels: Labels = Labels()
    """Names of points and features, if this loss has them."""
    offset: Attributions | None = None
    """G (N, D), subtracted from attributions first: A(W) − T is A(W − G)."""

    share_label: ClassVar[str] = "removed"
    """The label of its share on cards, a key of the vocabulary."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "__init__" in vars(cls) and not cls.__name__.startswith("_"):
            suggests_arguments(cls)

    @cached_property
    def map(self) -> LinearMap:
        """The linear map A of the loss φ(A(W) − T), applied to attributions W."""
        raise NotImplementedError

    @property
    @abstractmethod
    def penalty(self) -> Penalty:
        """The convex penalty φ of the residual."""

    @property
    def is_direct(self) -> bool:
        """Whether A is the identity: a loss of W itself."""
        return isinstance(self.map, Identity)

    @property
    def is_squared(self) -> bool:
        """Whether the penalty is the sum of squares."""
        return isinstance(self.penalty, Squared)

    @cached_property
    def target(self) -> Array | float:
        """The target T, of the shape of A(W), or zero."""
        return 0.0

    def residual(self, W: Any) -> Any:
        """The residual A(W) − T, for a NumPy array or a cvxpy expression."""
        return self.map(W) - self.target

    def value(self, W: object) -> float:
        """Compute the loss of attributions W (N, D).

        Parameters
        ----------
        W : array, DataFrame, Explanation or shap.Explanation
            Named rows and columns are put in the order of the loss.

        Raises
        ------
        InvalidInput
            If W has another shape, other names, or a value that is not finite.
        """
        return self.value_at(self._read(W))

    def gradient(self, W: object) -> Attributions:
        """Compute the gradient 2Aᵀ(A(W) − T) of a squared loss, shape (N, D).

        Raises
        ------
        Refused
            If the penalty is not squared: it has kinks, and a proximal operator.

        Examples
        --------
        >>> import numpy as np, propopt as po
        >>> po.GradientMatching(np.ones((1, 2))).gradient(np.zeros((1, 2)))
        array([[-2., -2.]])
        """
        if not self.is_squared:
            raise Refused(
                f"{self.name} has no gradient, as its penalty is not differentiable; "
                "use the proximal operator, loss.penalty.prox(residual, step)"
            )
        return self.gradient_at(self._read(W))

    def value_at(self, W: Attributions) -> float:
        """The loss of W (N, D), ordered as the rows and columns of the loss.

        Neither the order nor the values of W are checked.
        """
        if self.is_squared and not self.has_target:
            return self.map.energy(W)
        if self.is_direct and self.is_squared:
            value = self.penalty.value
            return math.fsum([value(self.residual_of(rows, W)) for rows in slabs(W)])
        return self.penalty.value(self.residual(W))

    def value_of_row(self, row: Array, n_points: int) -> float:
        """The loss if every point has the same row of attributions (1, D).

        Parameters
        ----------
        row : array (1, D)
            The attributions of every point; not checked.
        n_points : int
            The number of points N.

        Returns
        -------
        float
            The loss of the N equal rows, at least 0.
        """
        T = self.target
        if not self.has_target:
            match self.map:  # couplings of components ignore constants
                case (
                    OverPoints(components=parts) | ImplicitOverPoints(components=parts)
                ) if parts is not None:
                    return 0.0
        if self.is_squared and self.is_direct and isinstance(T, np.ndarray):
            value = self.penalty.value
            return math.fsum([value(plus_row(T[rows], -row)) for rows in slabs(T)])
        return self.value_at(np.repeat(row, n_points, axis=0))

    def residual_of(self, rows: slice, W: Attributions) -> Array:
        """Some rows of the residual W − T, for a loss without a linear map of W.

        Parameters
        ----------
        rows : slice
            The n rows to compute.
        W : array (N, D)
            The attributions, in the loss's order of rows and columns; not checked.

        Returns
        -------
        array (n, D)
            The residual, in the units of W.
        """
        return W[rows] - np.broadcast_to(self.target, W.shape)[rows]

    def gradient_at(self, W: Attributions) -> Attributions:
        """The gradient of a squared loss at an array W (N, D), which is not checked."""
        if self.has_target:
            slope = self.map.adjoint(self.residual(W))  # one of them is new
            slope *= 2.0
            return slope
        return 2.0 * self.map.gradient(W)

    def arrays(self, shape: tuple[int, int]) -> Iterator[tuple[str, NDArray[Any]]]:
        """Yield pairs (key, array) from which the loss of W (N, D) can be recomputed.

        Keys are those of ``propopt/proofs/problem_data.py``. A loss with another
        formula yields nothing, and ``tools/verify.py`` reports that it was not
        verified.
        """
        match self.map, self.penalty:
            case Identity(), Squared():
                yield "target", np.array(np.broadcast_to(self.target, shape))
            case Identity(), Absolute():
                yield "sizes", np.array(np.broadcast_to(self.target, shape))
            case RowSums(weights=v), Squared():
                yield "totals", np.asarray(self.target)[:, 0]
                yield "parts", v

    def _read(self, W: object) -> Attributions:
        return aligned_attributions((self,), W, f"{self.name}: W")

    @cached_property
    def has_target(self) -> bool:
        """Whether the target T is an array, not zero."""
        return isinstance(self.target, np.ndarray)

    @cached_property
    def value_at_zero(self) -> float:
        """The loss of zero attributions, φ(−T)."""
        # penalties are even
        return self.penalty.value(np.asarray(self.target)) if self.has_target else 0.0

    def expression(self, W: CvxpyExpression) -> CvxpyExpression:
        """The loss as a convex cvxpy expression of an expression W (N, D).

        Both are :class:`cvxpy.expressions.expression.Expression`.
        """
        self.check_shape(W.shape)
        return self.penalty.expression(self.residual(W))

    def check_shape(self, shape: tuple[int, ...]) -> None:
        """Raise an error if attributions of shape (N, D) do not fit this loss."""
        for axis, (noun, size) in enumerate(
            [("points", self.n_points), ("features", self.n_features)]
        ):
            if len(shape) != 2 or size not in (None, shape[axis]):
                raise InvalidInput(
                    f"{self.name}: expected W with {size or 'any number of'} {noun} "
                    f"on axis {axis}, got shape {shape}"
                )

    def __add__(self, other: object) -> Objective:
        return Objective.of(self) + other

    def __radd__(self, other: object) -> Objective:
        return other + Objective.of(self)

    def __mul__(self, weight: object) -> Objective:
        return Objective.of(self) * weight

    __rmul__ = __mul__

    def __le__(self, limit: object) -> Bound:
        if not _is_number(limit):
            raise self._cannot("<=", limit)
        return Bound(self, read_nonnegative(limit, f"bound on {self.name}"))

    def __repr__(self) -> str:
        sizes = {"points": self.n_points, "features": self.n_features}
        shape = ", ".join(f"{size} {noun}" for noun, size in sizes.items() if size)
        return f"<{self.name}{f': {shape}' if shape else ''}>"


class Faithfulness(PropertyLoss):
    """A loss for the agreement of the explanation with the function."""

    share_label: ClassVar[str] = "faithfulness kept"
    quantity: Quantity | None = None
    """The explained quantity; None if the target has none."""


def kind_of(name: str) -> type[PropertyLoss] | None:
    """The loss class of this package with this default name, or None."""
    from propopt import losses

    for public in dir(losses):
        kind = getattr(losses, public)
        if isinstance(kind, type) and issubclass(kind, PropertyLoss):
            name_parameter = signature(kind).parameters.get("name")
            if name_parameter is not None and name_parameter.default == name:
                return kind
    return None


@final
class _RecastLoss(PropertyLoss):
    """A loss of W as a function of other coordinates, minus a constant."""

    name: str
    map: LinearMap
    target: Array | float
    penalty: Penalty = Squared()

    def __init__(
        self,
        loss: PropertyLoss,  # the loss of W
        over: LinearMap,  # its map of the others
        target: Array | float | None = None,  # its target, where that is another
        constant: float = 0.0,  # what it costs besides
    ) -> None:
        self.name = loss.name
        self.constant = constant
        self.penalty = loss.penalty
        self.map = over
        self.target = loss.target if target is None else target


@dataclass(frozen=True, eq=False)
class Bound:
    """An upper limit on a loss, ``loss <= limit``, for ``subject_to``.

    Parameters
    ----------
    loss : PropertyLoss
        The bounded loss φ(A(W) − T).
    limit : float
        The largest value of the loss, in its units, above zero.

    Raises
    ------
    Refused
        If the limit is zero: that is a linear constraint, which cvxpy takes.
    """

    loss: PropertyLoss
    limit: float

    def __post_init__(self) -> None:
        # row sums are stored with their loss; other maps may be expensive
        if self.limit == 0.0 and not isinstance(vars(self.loss).get("map"), RowSums):
            raise Refused(
                f"{self!r}: a limit is above zero; give a small one, or the linear "
                "constraint to cvxpy, as in subject_to=[lambda W: [W[0] == W[1]]]"
            )

    def __repr__(self) -> str:
        return f"{self.loss.name} <= {self.limit:.6g}"


Rate: TypeAlias = Any
"""A weight: a number, or a cvxpy parameter, evaluated on demand."""


@dataclass(frozen=True, eq=False)
class Objective(Atom):
    """A weighted sum of losses; sums and multiples of objectives are objectives.

    A weight is a number ≥ 0, or a scalar ``cp.Parameter(nonneg=True)``. A parameter
    remains one in :meth:`expression`, which follows the rules of DPP; elsewhere its
    current value is used.

    Examples
    --------
    >>> import numpy as np, propopt as po
    >>> G = np.eye(3)
    >>> objective = po.GradientMatching(G) + 0.5 * po.Sparsity()
    >>> objective
    1 * gradient_matching + 0.5 * sparsity
    >>> objective.value(np.zeros((3, 3)))
    3.0
    """

    rates: tuple[tuple[Rate, PropertyLoss], ...]

    def __post_init__(self) -> None:
        for weight, loss in self.rates:
            _read_rate(weight, f"weight of {loss.name}")
        _refuse_equal_names([loss.name for loss in self.losses])

    @classmethod
    def of(cls, losses: Objective | PropertyLoss) -> Objective:
        """Return an objective, or make one of a single loss with weight one.

        Raises
        ------
        InvalidInput
            If it is neither.
        """
        if isinstance(losses, Objective):
            return losses
        if isinstance(losses, PropertyLoss):
            return cls.trusted(((1.0, losses),))
        raise InvalidInput(
            "objective: expected losses and weights, such as po.GradientMatching(G) + "
            f"0.5 * po.Sparsity(), got {type(losses).__name__}; sum(...) adds a list"
        )

    @classmethod
    def trusted(cls, terms: tuple[tuple[Rate, PropertyLoss], ...]) -> Objective:
        """Make an objective from weights and losses that have already been checked."""
        objective = object.__new__(cls)
        vars(objective)["rates"] = terms
        return objective

    @classmethod
    def weighed(cls, terms: tuple[tuple[Rate, PropertyLoss], ...]) -> Objective:
        """Make an objective from checked weights; equal names raise an error."""
        _refuse_equal_names([loss.name for _, loss in terms])
        return cls.trusted(terms)

    @property
    def terms(self) -> tuple[tuple[float, PropertyLoss], ...]:
        """The weights and losses in order; cvxpy parameters by their current values.

        Raises
        ------
        InvalidInput
            If a parameter has no value.
        """
        if {type(rate) for rate, _ in self.rates} <= {float}:
            return self.rates
        return tuple((_number(rate, loss), loss) for rate, loss in self.rates)

    @cached_property
    def losses(self) -> tuple[PropertyLoss, ...]:
        """The losses of the objective, in order."""
        return tuple(loss for _, loss in self.rates)

    @property
    def coefficients(self) -> Array:
        """The weights as an array (k,), in the order of the losses."""
        return np.array([weight for weight, _ in self.terms], dtype=np.float64)

    @property
    def weights(self) -> dict[str, float]:
        """The weight of each loss by its name."""
        return {loss.name: weight for weight, loss in self.terms}

    @property
    def labels(self) -> Labels:
        """The names of points and features, which all losses with names share."""
        return common_labels(self.losses)

    def with_weights(self, weights: Mapping[str, float]) -> Objective:
        """Return the objective with some weights replaced, by loss name."""
        unknown = sorted(set(weights) - set(self.weights))
        if unknown:
            raise InvalidInput(
                f"weights: no loss is called {unknown[0]!r}; this objective has "
                f"{', '.join(self.weights)}"
            )
        checked: dict[str, Any] = {
            name: read_nonnegative(weights[name], name) for name in weights
        }
        return Objective.trusted(
            tuple((checked.get(loss.name, rate), loss) for rate, loss in self.rates)
        )

    def loss(self, key: str | PropertyLoss, what: str) -> PropertyLoss:
        """Return the loss with this name; a loss given as key is returned itself.

        Parameters
        ----------
        key : str or PropertyLoss
            The name of a loss, or a loss.
        what : str
            The name of the argument in errors.

        Returns
        -------
        PropertyLoss
            The loss of that name, or ``key`` if it is a loss.

        Raises
        ------
        InvalidInput
            If no loss of the objective has that name.
        """
        by_name = {loss.name: loss for loss in self.losses}
        if isinstance(key, PropertyLoss):
            return key
        if key not in by_name:
            raise InvalidInput(
                f"{what}: no loss is called {key!r}{did_you_mean(key, list(by_name))}; "
                f"this objective has {', '.join(by_name)}; to add another, give the "
                "loss as the key"
            )
        return by_name[key]

    def breakdown(self, W: object) -> dict[str, float]:
        """Compute the unweighted value of each loss, by name.

        W is any input of :meth:`PropertyLoss.value`.

        Examples
        --------
        >>> import pandas as pd, propopt as po
        >>> G = pd.DataFrame({"age": [1.0], "dose": [2.0]})
        >>> objective = po.GradientMatching(G) + 0.5 * po.Sparsity()
        >>> objective.breakdown(G[["dose", "age"]])
        {'gradient_matching': 0.0, 'sparsity': 3.0}
        """
        array = aligned_attributions(self.losses, W, "W")
        return {loss.name: loss.value_at(array) for loss in self.losses}

    def value(self, W: object) -> float:
        """Compute Σ weight · loss(W), for any W that :meth:`breakdown` takes."""
        values = self.breakdown(W)
        return math.fsum(weight * values[loss.name] for weight, loss in self.terms)

    def expression(self, W: CvxpyExpression) -> CvxpyExpression:
        """The weighted sum of losses as a cvxpy expression."""
        return sum(rate * loss.expression(W) for rate, loss in self.rates)

    def __add__(self, other: object) -> Objective:
        if _is_number(other) and other == 0:  # for sum()
            return self
        if not isinstance(other, Objective | PropertyLoss):
            raise self._cannot("+", other)
        return Objective.weighed(_merged(self.rates + Objective.of(other).rates))

    __radd__ = __add__

    def __mul__(self, factor: object) -> Objective:
        if not (_is_number(factor) or is_expression(factor)):
            raise self._cannot("*", factor)
        scale = _read_rate(factor, "weight")
        products = [(_product(scale, rate, loss), loss) for rate, loss in self.rates]
        return Objective.trusted(tuple(products))

    __rmul__ = __mul__

    def __repr__(self) -> str:
        return " + ".join(
            f"{f'{rate:.6g}' if _is_number(rate) else rate} * {loss.name}"
            for rate, loss in self.rates
        )


def _refuse_equal_names(names: Sequence[str]) -> None:
    for name in repeated(names):
        raise InvalidInput(
            f"two losses are called {name!r}: give one of them another name=, as in "
            "PairwiseRobustness(graph, name='near_neighbours'), or use it only in the "
            "objective or the bounds"
        )


def common_labels(losses: Iterable[PropertyLoss]) -> Labels:
    """Names of points and features, from the first losses that have them."""
    names = Labels()
    for loss in losses:
        for noun in ("points", "features"):
            if differ(getattr(names, noun), getattr(loss.labels, noun)):
                raise InvalidInput(
                    f"{loss.name}: its {noun} have other names, or another order, "
                    "than those of the previous losses; make all tables and graphs "
                    "with rows and columns in one order"
                )
        names = names.or_else(loss.labels)
    return names


def aligned_attributions(
    losses: Sequence[PropertyLoss], W: object, label: str
) -> Attributions:
    """W (N, D) with rows and columns in the order of the losses."""
    array = aligned(W, common_labels(losses), label, "the losses")
    refuse_overflow(array, label)
    for loss in losses:
        loss.check_shape(array.shape)
    return array


def _merged(
    terms: Iterable[tuple[Rate, PropertyLoss]],
) -> tuple[tuple[Rate, PropertyLoss], ...]:
    """Terms with the weights of equal losses added."""
    merged: dict[PropertyLoss, Rate] = {}
    for weight, loss in terms:
        if loss in merged:
            merged[loss] = _read_rate(merged[loss] + weight, f"weight of {loss.name}")
        else:
            merged[loss] = weight
    return tuple([(weight, loss) for loss, weight in merged.items()])


def _is_number(value: object) -> bool:
    return isinstance(value, int | float | np.number) and not isinstance(value, bool)


def is_expression(value: object) -> bool:
    """Whether a value is a variable, parameter or expression of cvxpy."""
    cvxpy = sys.modules.get("cvxpy")  # there are none if it is not imported
    return cvxpy is not None and isinstance(value, cvxpy.Expression)


def _read_rate(weight: Any, label: str) -> Rate:
    """A number ≥ 0, or an expression of nonnegative cvxpy parameters."""
    if not is_expression(weight):
        return read_nonnegative(weight, label)
    if weight.is_constant() and not weight.parameters():
        return read_nonnegative(weight.value, label)
    if not weight.is_constant():
        raise InvalidInput(
            f"{label}: expected a number or a cp.Parameter(nonneg=True), got {weight}, "
            "which has cvxpy variables; loss(W) is the loss as a cvxpy expression"
        )
    from cvxpy.utilities.scopes import dpp_scope

    with dpp_scope():  # parameters count as variables here
        is_affine = weight.is_affine()
    if not (weight.is_scalar() and weight.is_nonneg() and is_affine):
        raise InvalidInput(
            f"{label}: got {weight} of shape {weight.shape}; expected a scalar "
            "nonnegative parameter, cp.Parameter(nonneg=True), or a "
            "multiple or sum of such"
        )
    return weight


def _product(scale: Rate, rate: Rate, loss: PropertyLoss) -> Rate:
    """The product of two weights; the factor one leaves a parameter unchanged."""
    if _is_number(rate) and rate == 1.0:
        return scale
    if _is_number(scale) and scale == 1.0:
        return rate
    return _read_rate(scale * rate, f"weight of {loss.name}")


def _number(rate: Rate, loss: PropertyLoss) -> float:
    """The current value of a weight, as a number."""
    if _is_number(rate):
        return float(rate)
    if rate.value is None:
        raise InvalidInput(
            f"weight of {loss.name}: the parameter {rate} has no value; set its .value"
        )
    return read_nonnegative(float(rate.value), f"weight of {loss.name}")


# ---- Programs: losses and bounds, with their common shape and names


LossKind: TypeAlias = Literal[
    "gradient-matching",
    "robustness",
    "smoothness",
    "other squared",
    "sparsity",
    "rest",
    "with offset",
    "over entries",
]
"""Squared losses of W itself, over points, over features, or of another map; ℓ1 losses
of W itself without a target; and the rest. Each loss of an objective is of one of these
kinds. With those of bounds, some are also losses of W − G, or couple entries of W."""
_KINDS: Final[tuple[LossKind, ...]] = get_args(LossKind)


def _kind(loss: PropertyLoss) -> LossKind:
    match loss.penalty, loss.map:
        case Squared(), Identity():
            return "gradient-matching"
        case Squared(), OverPoints() | ImplicitOverPoints():
            return "robustness"
        case Squared(), OverFeatures():
            return "smoothness"
        case Squared(), _:
            return "other squared"
        case Absolute(), Identity() if not loss.has_target:
            return "sparsity"
        case _:
            return "rest"


@dataclass(frozen=True, eq=False)
class Program:
    """The losses to weight, the bounds and the shape of W, for a solver.

    Parameters
    ----------
    losses : tuple of PropertyLoss
        The k losses of the objective, without weights.
    bounds : tuple of Bound
        Upper limits on losses; none by default.
    sizes : tuple of int, optional
        The shape (N, D) of W; by default the common shape of all losses.

    Raises
    ------
    InvalidInput
        If two losses have the same name.
    """

    losses: tuple[PropertyLoss, ...]
    bounds: tuple[Bound, ...] = ()
    sizes: tuple[int, int] | None = None

    def __post_init__(self) -> None:
        _refuse_equal_names([loss.name for loss in self.all_losses])

    @classmethod
    def trusted(
        cls,
        losses: tuple[PropertyLoss, ...],
        bounds: tuple[Bound, ...],
        sizes: tuple[int, int],
    ) -> Program:
        """Make a program of losses whose names were checked."""
        program = object.__new__(cls)
        vars(program).update(losses=losses, bounds=bounds, sizes=sizes)
        return program

    @cached_property
    def shape(self) -> tuple[int, int]:
        """The shape (N, D) of W: ``sizes`` if given, else the shape of the losses."""
        if self.sizes is not None:
            return self.sizes
        return self._size("n_points", "points"), self._size("n_features", "features")

    @cached_property
    def labels(self) -> Labels:
        """The common names of points and features of all losses."""
        return common_labels(self.all_losses)

    @cached_property
    def all_losses(self) -> tuple[PropertyLoss, ...]:
        """The losses of the objective and of the bounds."""
        return self.losses + tuple([bound.loss for bound in self.bounds])

    @cached_property
    def kinds(self) -> Mapping[LossKind, Sequence[PropertyLoss]]:
        """The losses by kind: what solvers choose and refuse by, computed once."""
        kinds: dict[LossKind, list[PropertyLoss]] = {kind: [] for kind in _KINDS}
        for loss in self.losses:
            kinds[_kind(loss)].append(loss)
        for loss in self.all_losses:
            if loss.offset is not None:
                kinds["with offset"].append(loss)
            if isinstance(loss.map, OverEntries):
                kinds["over entries"].append(loss)
        return kinds

    @cached_property
    def trivial(self) -> TrivialLosses:
        """All losses of two trivial explanations, losses of bounds last."""
        return TrivialLosses.of(self.all_losses)

    def values_at(self, W: Attributions) -> Array:
        """The values of all losses at W (N, D), losses of bounds last."""
        return np.array([loss.value_at(W) for loss in self.all_losses])

    @cached_property
    def row_sums(self) -> tuple[Bound, ...]:
        """The bounds that fix row sums, the only limits of zero."""
        return tuple([bound for bound in self.bounds if bound.limit == 0.0])

    @cached_property
    def limits(self) -> tuple[Bound, ...]:
        """The other bounds, which are limits above zero."""
        return tuple([bound for bound in self.bounds if bound.limit > 0.0])

    def problem_data(self, shape: tuple[int, int]) -> dict[str, NDArray[Any]]:
        """Make the arrays of all losses, by loss and key, and the limits of bounds.

        ``propopt/proofs/problem_data.py`` lists the keys.
        """
        arrays: dict[str, NDArray[Any]] = {}
        for loss in self.all_losses:
            arrays |= {f"{loss.name}.{key}": x for key, x in loss.arrays(shape)}
        for bound in self.limits:
            arrays[f"{bound.loss.name}.limit"] = np.array(bound.limit)
        return arrays

    def weighed(self, weights: Array) -> Objective:
        """Make the objective with these weights (k,) ≥ 0, which are not checked."""
        return Objective.trusted(tuple(zip(weights.tolist(), self.losses, strict=True)))

    def _size(self, attribute: str, noun: str) -> int:
        sizes = [
            (getattr(loss, attribute), loss.name)
            for loss in self.all_losses
            if getattr(loss, attribute) is not None
        ]
        if not sizes:
            raise InvalidInput(
                f"no loss of the objective determines the number of {noun}"
            )
        first, name = sizes[0]
        for size, other in sizes:
            if size != first:
                raise InvalidInput(
                    f"{name} has {first} {noun} and {other} has {size}: they cannot "
                    "be part of one program; po.PairwiseRobustness takes a graph of "
                    "points, and po.Smoothness one of features"
                )
        return int(first)


def positive_terms(
    weights: Iterable[float], losses: Iterable[PropertyLoss]
) -> list[tuple[float, PropertyLoss]]:
    """Losses with their weights, where these are positive."""
    return [(float(c), loss) for c, loss in zip(weights, losses, strict=True) if c > 0]


# ---- The cost of trivial explanations: zero, and the mean gradient at every point


_SHARE = 1e-9
"""The smallest scale of a gap, as a share of the cost of trivial explanations."""
_NO_DIGITS = 1e-20
"""The smallest scale as a share of the cost of zero: squared double precision."""


def objective_scale(value: float, zero: float, mean: float = math.inf) -> float:
    """The scale of a gap: the value, or a share of trivial costs if larger."""
    return max(value, _SHARE * min(zero, mean), _NO_DIGITS * zero)


@final
@dataclass(frozen=True, eq=False)
class TrivialLosses:
    """The losses of two trivial explanations, in the order of some losses."""

    names: tuple[str, ...]
    zero: Array  # (k,): the losses of zero attributions, φ(−T)
    mean: Array  # (k,): the losses of the mean gradient at every point
    sizes: Array  # (k,): max |T|; zero for a loss without a target

    @classmethod
    def of(cls, losses: Sequence[PropertyLoss]) -> TrivialLosses:
        """Compute these losses of the trivial explanations."""
        names = tuple([loss.name for loss in losses])
        zero = np.zeros(len(losses))
        sizes = np.zeros(len(losses))
        G = None
        for index, loss in enumerate(losses):
            zero[index] = loss.value_at_zero
            if loss.has_target:
                target = np.asarray(loss.target)
                sizes[index] = largest_entry(target)
                if G is None and loss.is_direct:
                    G = target
        if G is None:
            return cls(names, zero, zero, sizes)
        row = _mean_row(G)
        mean = np.array([loss.value_of_row(row, len(G)) for loss in losses])
        return cls(names, zero, mean, sizes)

    def refuse_underflow(self, weights: Array) -> None:
        """Raise an error for targets so small that their squares underflow.

        Losses beyond those with weights (k,) have the weight one.
        """
        rates = np.ones(len(self.names))
        rates[: len(weights)] = weights
        counted = np.flatnonzero((self.sizes > 0.0) & (rates > 0.0)).tolist()
        if counted:
            costs = rates * self.zero
            worst = max(counted, key=lambda k: (costs[k], self.sizes[k]))
            size = float(self.sizes[worst])
            refuse_underflow(size, self.names[worst], float(costs[worst]))

    def scale(self, value: float, weights: Array, first: int = 0) -> float:
        """The :func:`objective_scale` of a value, for weights from a first loss on."""
        weighted = slice(first, first + len(weights))
        zero = math.fsum(weights * self.zero[weighted])
        return objective_scale(value, zero, math.fsum(weights * self.mean[weighted]))


def _mean_row(G: Array) -> Array:
    """The mean (1, D) of the rows of G, by remainders from the first row."""
    first = G[:1]
    # by BLAS: NumPy is ten times slower with few columns
    share = np.full(min(len(G), SLAB), 1.0 / len(G))
    remainder = np.zeros(G.shape[1])
    for rows in slabs(G):
        block = plus_row(G[rows], -first)
        remainder = remainder + share[: len(block)] @ block
    return first + remainder
