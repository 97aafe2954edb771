"""The algebra of losses: sums, weights, bounds, and the program that they make.

A loss is a penalty of a residual, φ(A(W) − T). A weighted sum of losses is an
:class:`Objective`; ``loss <= limit`` is a :class:`Bound`.

What explanations without any work cost: zero, and one and the same for all points. A
relative gap needs a size to be relative to. An optimum may be zero, as where all
gradients are equal: then rounding is all there is of it, and its size says nothing. The
cost of an explanation that anybody could give is a size, and does not grow with an
offset of the gradients, for then their mean costs less than zero does.
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
from typing import Any, ClassVar, Final, NoReturn, TypeAlias, final

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
from propopt.base.text import Quantity
from propopt.losses.linear_algebra import SLAB, plus_row, slabs
from propopt.losses.maps import (
    Absolute,
    CvxpyExpression,
    Identity,
    ImplicitOverPoints,
    LinearMap,
    OverPoints,
    Penalty,
    RowSums,
    Squared,
)
from propopt.tables.frames import Labels, differ
from propopt.tables.imported import aligned


class Atom:
    """A convex function of attributions W that is called like an atom of cvxpy."""

    __array_ufunc__ = None  # np.float64(0.3) * loss is ours to answer, not NumPy's

    @abstractmethod
    def value(self, W: object) -> float:
        """The number at attributions W (N, D)."""

    @abstractmethod
    def expression(self, W: CvxpyExpression) -> CvxpyExpression:
        """The cvxpy expression for an expression W of shape (N, D)."""

    def __call__(self, W: Any) -> Any:
        """The expression for a variable or expression of cvxpy, else the value.

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
        """Refused: cvxpy and NumPy ask for it where a loss stands for a number."""
        raise InvalidInput(
            f"{self!r} is a function of attributions, not an array: in cvxpy write "
            "loss(W) for a cp.Variable W, as in cp.Minimize(loss(W)) or "
            "p * loss(W); loss * p, with the loss first, takes a cp.Parameter p, and "
            "po.losses.Custom(lambda W: ...) adds what only cvxpy has"
        )

    def _cannot(self, sign: str, other: object) -> WrongType:
        """The error of an operator: what came, and what would do."""
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
        """The objective of which the weights are multiplied."""
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
    "of a cp.Variable W write loss(W), which is an expression of cvxpy, or "
    "po.losses.Custom(lambda W: ...), which makes a loss of one"
)
_WOULD_DO: Final[Mapping[str, str]] = {
    "+": "losses are added to losses, as in loss + 0.5 * po.Sparsity()",
    "-": f"{_CONVEX}; loss + 0.5 * other, or subject_to=[other <= limit]",
    "*": f"a loss takes a number >= 0 or cp.Parameter(nonneg=True); {_CONVEX}",
    "/": "a loss is divided by a number > 0; loss * p takes cp.Parameter(nonneg=True)",
    "**": "po.losses.Custom(lambda W: cp.square(loss(W))) is a power of a loss",
    "<=": "a limit is a number >= 0 of one loss, as in subject_to=[loss <= 1.0]",
    "<": "write loss <= 1.0, of one loss and a number",
    ">=": "a loss that is at least a number is not convex; write loss <= 1.0",
    ">": "a loss that is at least a number is not convex; write loss <= 1.0",
    "==": "a loss that equals a number is not convex; write loss <= 1.0",
}
"""By operator what would do."""


class PropertyLoss(Atom, ABC):
    """A convex loss φ(A(W) − T) ≥ 0 of attributions W (N, D).

    A subclass gives ``name``, ``map`` (A), ``penalty`` (φ) and, where it is not zero,
    ``target`` (T), and what it knows of the shape of W. All else follows.
    ``loss(W)`` is :meth:`value` for an array and :meth:`expression` for a variable or
    expression of cvxpy.
    """

    _too_many = "; a weight stands before a loss, as in 0.5 * po.Sparsity()"

    name: str
    n_points: int | None = None
    """N, where this loss fixes it."""
    n_features: int | None = None
    """D, where this loss fixes it."""
    labels: Labels = Labels()
    """Names of points and features, where this loss knows them."""
    offset: Attributions | None = None
    """What attributions are set beside, G (N, D): then A(W) − T is A(W − G)."""

    reduces: ClassVar[str] = ""
    """What is smaller by the share of it that is removed, such as "total size"."""
    share: ClassVar[str] = "kept or removed"
    """What its share is: of faithfulness "kept", of what it reduces "removed"."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "__init__" in vars(cls):
            suggests_arguments(cls)

    @cached_property
    def map(self) -> LinearMap:
        """The linear map A."""
        raise NotImplementedError

    @property
    @abstractmethod
    def penalty(self) -> Penalty:
        """The penalty φ."""

    @cached_property
    def target(self) -> Array | float:
        """The target T, of the shape of A(W)."""
        return 0.0

    def residual(self, W: Any) -> Any:
        """A(W) − T, for a NumPy array or a cvxpy expression."""
        return self.map(W) - self.target

    def value(self, W: object) -> float:
        """The loss of attributions W (N, D).

        Parameters
        ----------
        W : array, DataFrame, Explanation or shap.Explanation
            Rows and columns with names are put in the order of the loss's own.

        Raises
        ------
        InvalidInput
            If W has another shape, other names, or a value that is not finite.
        """
        return self.value_at(self._read(W))

    def gradient(self, W: object) -> Attributions:
        """2Aᵀ(A(W) − T), shape (N, D), the gradient of a squared loss.

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
        if not isinstance(self.penalty, Squared):
            raise Refused(
                f"{self.name} has no gradient: its penalty has kinks; use its proximal "
                "operator, loss.penalty.prox(residual, step)"
            )
        return self.gradient_at(self._read(W))

    def value_at(self, W: Attributions) -> float:
        """The loss of W (N, D), finite and in the order of the loss; not checked."""
        if isinstance(self.penalty, Squared) and not self.has_target:
            return self.map.energy(W)
        if isinstance(self.map, Identity) and isinstance(self.penalty, Squared):
            parts = (self.residual_of(rows, W) for rows in slabs(W))
            return math.fsum(map(self.penalty.value, parts))
        return self.penalty.value(self.residual(W))

    def value_of_row(self, row: Array, n_points: int) -> float:
        """The loss where a row (1, D) explains each point."""
        T, is_squared = self.target, isinstance(self.penalty, Squared)
        if is_squared and isinstance(self.map, Identity) and isinstance(T, np.ndarray):
            parts = (plus_row(T[rows], -row) for rows in slabs(T))
            return math.fsum(map(self.penalty.value, parts))
        return self.value_at(np.repeat(row, n_points, axis=0))

    def residual_of(self, rows: slice, W: Attributions) -> Array:
        """Some rows of the residual W − T, of a loss of W itself."""
        target = self.target
        return np.subtract(
            W[rows], target[rows] if isinstance(target, np.ndarray) else target
        )

    def gradient_at(self, W: Attributions) -> Attributions:
        """The gradient of a squared loss at such W; not checked."""
        if self.has_target:
            slope = self.map.adjoint(self.residual(W))  # one of them is new
            slope *= 2.0
            return slope
        return 2.0 * self.map.gradient(W)

    def arrays(self, shape: tuple[int, int]) -> Iterator[tuple[str, NDArray[Any]]]:
        """What a file holds of it, by key, so that it can be computed from W (N, D).

        The keys are those of ``propopt/proofs/problem_data.py``. A loss with another
        formula yields nothing, and ``tools/verify.py`` reports that it derived nothing.
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

    @property
    def has_target(self) -> bool:
        """True where T is an array; else it is zero."""
        return isinstance(self.target, np.ndarray)

    @property
    def value_at_zero(self) -> float:
        """The loss of zero attributions, φ(−T)."""
        target = self.target  # penalties are even
        return self.penalty.value(target) if isinstance(target, np.ndarray) else 0.0

    def expression(self, W: CvxpyExpression) -> CvxpyExpression:
        """The loss as a convex expression of cvxpy, of one for W (N, D).

        Both are :class:`cvxpy.expressions.expression.Expression`.
        """
        self.check_shape(W.shape)
        return self.penalty.expression(self.residual(W))

    def check_shape(self, shape: tuple[int, ...]) -> None:
        """Refuse a shape that is not that of attributions W (N, D) of this loss."""
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
    """A loss that ties the explanation to the function."""

    share: ClassVar[str] = "kept"
    quantity: Quantity | None = None
    """What is explained; None where the target does not say."""


def kind_of(name: str) -> type[PropertyLoss] | None:
    """The loss of this package that has a name by default; None of a user's name."""
    from propopt import losses

    for public in dir(losses):
        kind = getattr(losses, public)
        if isinstance(kind, type) and issubclass(kind, PropertyLoss):
            own = signature(kind).parameters.get("name")
            if own is not None and own.default == name:
                return kind
    return None


@final
class _RecastLoss(PropertyLoss):
    """A loss of W as one of other coordinates, less a constant."""

    name: str
    map: LinearMap
    target: Array | float

    def __init__(
        self,
        loss: PropertyLoss,  # the loss of W
        over: LinearMap,  # its map of the others
        target: Array | float | None = None,  # its target, where that is another
        constant: float = 0.0,  # what it costs besides
    ) -> None:
        self.name = loss.name
        self.constant = constant
        self._penalty = loss.penalty
        self.map = over
        self.target = loss.target if target is None else target

    @property
    def penalty(self) -> Penalty:
        return self._penalty


@suggests_arguments
@dataclass(frozen=True, eq=False)
class Bound:
    """A limit that a loss keeps, ``loss <= limit``, for ``subject_to``."""

    loss: PropertyLoss
    limit: float

    def __repr__(self) -> str:
        return f"{self.loss.name} <= {self.limit:.6g}"


Rate: TypeAlias = Any
"""A weight: a number, or a parameter of cvxpy whose value is read when it is needed."""


@suggests_arguments
@dataclass(frozen=True, eq=False)
class Objective(Atom):
    """A weighted sum of losses: flat, in order, closed under sums and scaling.

    A weight is a number ≥ 0, or a scalar ``cp.Parameter(nonneg=True)``. A parameter
    stays one in :meth:`expression`, which follows the rules of DPP; elsewhere its
    value counts.

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
        """The objective itself, or a single loss with weight one.

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
        """The objective of terms whose weights and names have been checked before."""
        objective = object.__new__(cls)
        vars(objective)["rates"] = terms
        return objective

    @classmethod
    def weighed(cls, terms: tuple[tuple[Rate, PropertyLoss], ...]) -> Objective:
        """The objective of terms whose weights have been checked before."""
        _refuse_equal_names([loss.name for _, loss in terms])
        return cls.trusted(terms)

    @property
    def terms(self) -> tuple[tuple[float, PropertyLoss], ...]:
        """Weights and losses, in order: numbers, those of parameters as they are now.

        Raises
        ------
        InvalidInput
            If a parameter has no value.
        """
        return tuple((_number(rate, loss), loss) for rate, loss in self.rates)

    @property
    def losses(self) -> tuple[PropertyLoss, ...]:
        """The losses, in order."""
        return tuple(loss for _, loss in self.rates)

    @property
    def coefficients(self) -> Array:
        """The weights as an array (k,), in the order of the losses."""
        return np.array([weight for weight, _ in self.terms], dtype=np.float64)

    @property
    def weights(self) -> dict[str, float]:
        """The weight of each loss, by name."""
        return {loss.name: weight for weight, loss in self.terms}

    @property
    def labels(self) -> Labels:
        """Names of points and features, which all losses that have some share."""
        return common_labels(self.losses)

    def with_weights(self, weights: Mapping[str, float]) -> Objective:
        """The same losses with some weights replaced."""
        unknown = sorted(set(weights) - set(self.weights))
        if unknown:
            raise InvalidInput(
                f"weights: no loss is called {unknown[0]!r}; this objective has "
                f"{', '.join(self.weights)}"
            )
        read: dict[str, Any] = {
            name: read_nonnegative(weights[name], name) for name in weights
        }
        return Objective.trusted(
            tuple((read.get(loss.name, rate), loss) for rate, loss in self.rates)
        )

    def loss(self, key: str | PropertyLoss, what: str) -> PropertyLoss:
        """The loss of that name; or a loss itself, which need not be in it."""
        known = {loss.name: loss for loss in self.losses}
        if isinstance(key, PropertyLoss):
            return key
        if key not in known:
            raise InvalidInput(
                f"{what}: no loss is called {key!r}{did_you_mean(key, list(known))}; "
                f"this objective has {', '.join(known)}; to add another, give the loss "
                "as the key"
            )
        return known[key]

    def breakdown(self, W: object) -> dict[str, float]:
        """The value of each loss, unweighted, by name.

        W is an array or what else :meth:`PropertyLoss.value` takes.

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
        """Σ weight · loss(W), for W as :meth:`breakdown` takes it."""
        values = self.breakdown(W)
        return math.fsum(weight * values[loss.name] for weight, loss in self.terms)

    def expression(self, W: CvxpyExpression) -> CvxpyExpression:
        """Σ weight · loss(W) as a cvxpy expression."""
        return sum(rate * loss.expression(W) for rate, loss in self.rates)

    def __add__(self, other: object) -> Objective:
        if _is_number(other) and other == 0:  # so that sum() works
            return self
        if not isinstance(other, Objective | PropertyLoss):
            raise self._cannot("+", other)
        return Objective(_merged(self.rates + Objective.of(other).rates))

    __radd__ = __add__

    def __mul__(self, factor: object) -> Objective:
        if not (_is_number(factor) or is_expression(factor)):
            raise self._cannot("*", factor)
        scale = _read_rate(factor, "weight")
        return Objective(
            tuple((_product(scale, rate), loss) for rate, loss in self.rates)
        )

    __rmul__ = __mul__

    def __repr__(self) -> str:
        return " + ".join(
            f"{rate:.6g} * {loss.name}" if _is_number(rate) else f"{rate} * {loss.name}"
            for rate, loss in self.rates
        )


def _refuse_equal_names(names: Sequence[str]) -> None:
    for name in names:
        if names.count(name) > 1:
            raise InvalidInput(
                f"two losses are called {name!r}; give one of them another name, "
                f"as in PairwiseRobustness(graph, name='near_neighbours')"
            )


def common_labels(losses: Iterable[PropertyLoss]) -> Labels:
    """Names of points and features, from the first losses that know them."""
    names = Labels()
    for loss in losses:
        for noun in ("points", "features"):
            if differ(getattr(names, noun), getattr(loss.labels, noun)):
                raise InvalidInput(
                    f"{loss.name}: its {noun} have other names, or another order, "
                    "than those of the losses before it; make all tables and graphs "
                    "of rows and columns in one order"
                )
        names = names.or_else(loss.labels)
    return names


def aligned_attributions(
    losses: Sequence[PropertyLoss], W: object, label: str
) -> Attributions:
    """W (N, D), its rows and columns in the order of the losses."""
    array = aligned(W, common_labels(losses), label, "the losses")
    refuse_overflow(array, label)
    for loss in losses:
        loss.check_shape(array.shape)
    return array


def _merged(
    terms: Iterable[tuple[Rate, PropertyLoss]],
) -> tuple[tuple[Rate, PropertyLoss], ...]:
    """Terms with the same loss added up."""
    weights: dict[int, Rate] = {}
    losses: dict[int, PropertyLoss] = {}
    for weight, loss in terms:
        weights[id(loss)] = weights.get(id(loss), 0.0) + weight
        losses[id(loss)] = loss
    return tuple((weights[key], losses[key]) for key in losses)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float | np.number) and not isinstance(value, bool)


def is_expression(value: object) -> bool:
    """Whether it is a variable, parameter or expression of cvxpy."""
    cvxpy = sys.modules.get("cvxpy")  # without which there is none
    return cvxpy is not None and isinstance(value, cvxpy.Expression)


def _read_rate(weight: Any, label: str) -> Rate:
    """A number ≥ 0, or an expression of parameters that is known to be ≥ 0."""
    if not is_expression(weight):
        return read_nonnegative(weight, label)
    if weight.is_constant() and not weight.parameters():
        return read_nonnegative(weight.value, label)
    if not weight.is_constant():
        raise InvalidInput(
            f"{label}: got {weight}, which has variables of cvxpy; a loss takes "
            "numbers and cp.Parameter(nonneg=True); write loss(W) for its expression"
        )
    from cvxpy.utilities.scopes import dpp_scope

    with dpp_scope():  # in which parameters count as variables
        is_affine = weight.is_affine()
    if not (weight.is_scalar() and weight.is_nonneg() and is_affine):
        raise InvalidInput(
            f"{label}: got {weight} of shape {weight.shape}; expected a scalar "
            "parameter that is known to be >= 0, cp.Parameter(nonneg=True), or a "
            "multiple or sum of such"
        )
    return weight


def _product(scale: Rate, rate: Rate) -> Rate:
    """Both times each other; one leaves a parameter what it was."""
    if _is_number(rate) and rate == 1.0:
        return scale
    return rate if _is_number(scale) and scale == 1.0 else scale * rate


def _number(rate: Rate, loss: PropertyLoss) -> float:
    """The weight as a number."""
    if _is_number(rate):
        return float(rate)
    if rate.value is None:
        raise InvalidInput(
            f"weight of {loss.name}: the parameter {rate} has no value; set its .value"
        )
    return read_nonnegative(float(rate.value), f"weight of {loss.name}")


# ---- What a solver prepares: losses, bounds, and what all of them agree on


@suggests_arguments
@dataclass(frozen=True, eq=False)
class Program:
    """What a solver prepares: losses to weigh, bounds to respect, the shape of W."""

    losses: tuple[PropertyLoss, ...]
    bounds: tuple[Bound, ...] = ()
    sizes: tuple[int, int] | None = None

    def __post_init__(self) -> None:
        names = [loss.name for loss in self.all_losses]
        twice = [name for name in names if names.count(name) > 1]
        if twice:
            raise InvalidInput(
                f"{twice[0]!r} names two losses of this program: give one of them "
                "another name= , or keep it in the objective or the bounds only"
            )

    @cached_property
    def shape(self) -> tuple[int, int]:
        """(N, D): ``sizes``, or that on which all losses must agree."""
        if self.sizes is not None:
            return self.sizes
        return self._size("n_points", "points"), self._size("n_features", "features")

    @cached_property
    def labels(self) -> Labels:
        """Names of points and features, on which all losses must agree."""
        return common_labels(self.all_losses)

    @property
    def all_losses(self) -> tuple[PropertyLoss, ...]:
        """The losses, and those of the bounds."""
        return self.losses + tuple(bound.loss for bound in self.bounds)

    def weighed(self, weights: Array) -> Objective:
        """The objective of these weights (k,), ≥ 0; they are not checked."""
        return Objective.trusted(tuple(zip(weights.tolist(), self.losses, strict=True)))

    def _size(self, attribute: str, noun: str) -> int:
        sizes = [
            (getattr(loss, attribute), loss.name)
            for loss in self.all_losses
            if getattr(loss, attribute) is not None
        ]
        if not sizes:
            raise InvalidInput(f"no loss of this objective tells the number of {noun}")
        first, name = sizes[0]
        for size, other in sizes:
            if size != first:
                raise InvalidInput(
                    f"{name} has {first} {noun} and {other} has {size}: they cannot "
                    "be part of one program; po.PairwiseRobustness takes a graph of "
                    "points, and po.Smoothness one of features"
                )
        return int(first)


# ---- What explanations without any work cost: zero, and one and the same for all
# points


_SHARE = 1e-9
"""Of the cost of explaining without work: less is not told apart from an optimum."""
_NO_DIGITS = 1e-20
"""Of the cost of zero: a square of digits that double precision does not have."""


def objective_scale(value: float, zero: float, mean: float = math.inf) -> float:
    """What a gap is relative to: the value, or the size of nothing if larger."""
    return max(value, _SHARE * min(zero, mean), _NO_DIGITS * zero)


@final
@dataclass(frozen=True)
class TrivialLosses:
    """What two explanations without work cost, by the name of each loss."""

    zero: Mapping[str, float]  # the loss of zero attributions, φ(−T)
    mean: Mapping[str, float]  # the loss where the mean gradient explains each point
    sizes: Mapping[str, float]  # max |T| of the losses that have a target

    @classmethod
    def of(cls, losses: Sequence[PropertyLoss]) -> TrivialLosses:
        """The costs by these losses."""
        zero = {loss.name: loss.value_at_zero for loss in losses}
        sizes = {
            loss.name: largest_entry(loss.target)
            for loss in losses
            if isinstance(loss.target, np.ndarray)
        }
        own = (loss for loss in losses if isinstance(loss.map, Identity))
        G = next((loss.target for loss in own if loss.has_target), None)
        if not isinstance(G, np.ndarray):
            return cls(zero, zero, sizes)
        first = G[:1]
        # by BLAS: NumPy is ten times slower where there are few columns
        share = np.full(min(len(G), SLAB), 1.0 / len(G))
        rests = (plus_row(G[rows], -first) for rows in slabs(G))
        mean_rest = sum(share[: len(rest)] @ rest for rest in rests)
        row = first + mean_rest
        mean = {
            # couplings of components see no constant
            loss.name: 0.0
            if isinstance(loss.map, OverPoints | ImplicitOverPoints)
            and loss.map.components is not None
            and not loss.has_target
            else loss.value_of_row(row, len(G))
            for loss in losses
        }
        return cls(zero, mean, sizes)

    def refuse_underflow(self, weights: Mapping[str, float]) -> None:
        """Refuse targets so small that what zero costs by them has no digits."""
        told = {
            name: weights.get(name, 1.0) * self.zero[name]
            for name, size in self.sizes.items()
            if size > 0.0 and weights.get(name, 1.0) > 0.0
        }
        if told:
            name = max(told, key=lambda name: (told[name], self.sizes[name]))
            refuse_underflow(self.sizes[name], name, told[name])

    def scale(self, value: float, weights: Mapping[str, float]) -> float:
        """:func:`objective_scale` of a value under these weights."""
        zero, mean = (
            math.fsum(weights[name] * cost[name] for name in weights)
            for cost in (self.zero, self.mean)
        )
        return objective_scale(value, zero, mean)
