"""The function under explanation, and sums of several functions."""

from __future__ import annotations

import math
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from functools import cached_property, reduce
from typing import Any, Final, TypeAlias, TypeGuard, TypeVar, final, overload

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from propopt.base.arrays import Array, Attributions, Points, Values
from propopt.base.errors import InvalidInput
from propopt.base.resources import EvaluationCounter
from propopt.base.text import MOST_WRITTEN, Quantity, Reason, linear_sum
from propopt.functions.jumps import JUMP_SEED, Jumps, Segments, Trial, jumps_along
from propopt.losses.faithfulness import Estimate
from propopt.structures.boxes.boxes import Boxes
from propopt.structures.boxes.links import LinkedScores
from propopt.structures.products.sums import SumOfProducts
from propopt.tables.columns import ObservedValues
from propopt.tables.frames import NO_NAMES, Labels, listed, read_points
from propopt.tables.schema import Encoding, TableSchema


_Item = TypeVar("_Item")

EXACT = "exact"


def describe_step(step: float) -> str:
    """The description of central differences with their step."""
    return f"central differences, step {step:.2g} · max(1, |x|)"


class Function(ABC):
    """A real function of D features, f: R^D → R, with its gradient.

    Subclasses define ``_value``, ``_gradient`` and :attr:`gradient_method`; their
    inputs have been checked, and their results are checked here.

    Functions of the same inputs can be added and scaled like numbers: ``f - g`` is the
    change between two models, ``(f + g) / 2`` their mean.

    Examples
    --------
    >>> import numpy as np
    >>> from propopt.functions import Power
    >>> cube = Power(degree=3)
    >>> X = np.array([[1.0, 2.0], [0.0, -1.0]])
    >>> cube.value(X)
    array([ 9., -1.])
    >>> cube.gradient(X)
    array([[ 3., 12.],
           [ 0.,  3.]])
    >>> (2 * cube - Power(degree=1) + 3.0).value(X)
    array([18.,  2.])
    """

    __array_ufunc__ = None  # np.float64(0.5) * function calls __rmul__

    def __add__(self, other: object) -> Function:
        first_terms, base = self.as_sum
        if _is_number(other):
            return self._summed(first_terms, base + float(other))
        if not isinstance(other, Function):
            return NotImplemented
        terms, constant = other.as_sum
        return self._summed(_merged((*first_terms, *terms)), base + constant)

    __radd__ = __add__

    def __mul__(self, weight: object) -> Function:
        if not _is_number(weight):
            return NotImplemented
        number = float(weight)
        terms, base = self.as_sum
        return self._summed(tuple((number * w, f) for w, f in terms), number * base)

    __rmul__ = __mul__

    def __neg__(self) -> Function:
        return self * -1.0

    def __sub__(self, other: object) -> Function:
        if not (_is_number(other) or isinstance(other, Function)):
            return NotImplemented
        return self + -1.0 * other

    def __rsub__(self, other: object) -> Function:
        return (-self).__add__(other)

    def __truediv__(self, number: object) -> Function:
        if not _is_number(number):
            return NotImplemented
        if number == 0:
            raise InvalidInput(f"{self!r}: a function cannot be divided by zero")
        terms, base = self.as_sum
        by = float(number)
        return self._summed(tuple((w / by, f) for w, f in terms), base / by)

    @property
    def as_sum(self) -> tuple[WeightedFunctions, float]:
        """The function as a weighted sum of functions, and a constant."""
        return ((1.0, self),), 0.0

    def _summed(self, terms: WeightedFunctions, base: float) -> Function:
        """A sum of functions that includes this one or its terms."""
        if not all(map(math.isfinite, (base, *(weight for weight, _ in terms)))):
            raise InvalidInput(f"{self!r}: weights and constants have to be finite")
        alone = len(terms) == 1 and terms[0][0] == 1.0 and base == 0.0
        return terms[0][1] if alone else self._sum_of(terms, base)

    def _sum_of(self, terms: WeightedFunctions, base: float) -> Function:
        """The sum of weighted functions as one function."""
        return SumOfFunctions(terms, base)

    def value(self, X: ArrayLike | pd.DataFrame) -> Values:
        """Values f(x_n) of the function, shape (N,).

        Parameters
        ----------
        X : array or DataFrame (N, D)
            The points; values may be missing if the model accepts that.

        Raises
        ------
        InvalidInput
            If X is not a table of finite or missing values, if its columns differ from
            the function's, if the model fails for a missing value, or if a value of f
            is not finite; the message names the first such row.
        """
        function = self.with_categories_of(X)
        return function.value_at(*function.read(X))

    def with_categories_of(self, X: object) -> Function:
        """The same function, extended to new categories in the table X.

        New categories have frequency zero; the model decides how to treat them.

        Parameters
        ----------
        X : DataFrame (N, D)
            The rows.

        Returns
        -------
        Function
            The function itself if X has no new categories, or no model is called.

        Examples
        --------
        >>> import pandas as pd, propopt as po
        >>> X = pd.DataFrame({"colour": ["red", "blue"]})
        >>> f = po.wrap(lambda table: table["colour"].str.len(), data=X)
        >>> new = pd.DataFrame({"colour": ["green"]})
        >>> f.with_categories_of(X) is f, f.with_categories_of(new).read(new)[0]
        (True, array([[3.]]))
        """
        del X
        return self

    @overload
    def gradient(self, X: pd.DataFrame) -> pd.DataFrame: ...

    @overload
    def gradient(self, X: ArrayLike) -> Attributions: ...

    def gradient(self, X: ArrayLike | pd.DataFrame) -> Attributions | pd.DataFrame:
        """Gradients G of the function, G_nd = ∂f/∂x_d at x_n, shape (N, D).

        Parameters
        ----------
        X : array or DataFrame (N, D)
            The points.

        Returns
        -------
        array or DataFrame (N, D)
            A DataFrame with the index and the columns of X, if X is one; with a schema
            its columns are the encoded ones.

        Raises
        ------
        InvalidInput
            For the same reasons as :meth:`value`.
        """
        points, labels = self.read(X)
        return self._named(self.gradient_at(points, labels), X, labels)

    def estimate(self, X: ArrayLike | pd.DataFrame) -> Estimate:
        """The :meth:`gradient`, with the way it was computed and its sampling error.

        Parameters
        ----------
        X : array or DataFrame (N, D)
            The points.

        Returns
        -------
        Estimate
            Exact if :attr:`gradient_method` is; else without an error, unless a
            subclass estimates it in :meth:`estimate_at`.

        Examples
        --------
        >>> from propopt.functions import Power
        >>> Power(degree=3).estimate([[1.0, 2.0]]).source
        'exact'
        """
        return replace(self.estimate_at(*self.read(X)), quantity=self.quantity)

    def estimate_at(self, points: Points, labels: Labels) -> Estimate:
        """The :meth:`estimate` at points that :meth:`read` returned.

        Parameters
        ----------
        points : array (N, D)
            Numbers and codes; not checked.
        labels : Labels
            The names of their rows and columns.

        Returns
        -------
        Estimate
        """
        before = self.calls.rows
        values = self.gradient_at(points, labels)
        return Estimate(
            values=values,
            source=self.gradient_method,
            exact=self.gradient_method == EXACT,
            evaluations=self.calls.rows - before,
            labels=labels,
            effects=self.effects_at(points),
        )

    def effects_at(self, points: Points) -> NDArray[np.bool_] | None:
        """A mask (N, D) of gradients that are differences of outputs, not slopes.

        Categories and missing numbers have no slope: their effect has the unit of the
        output. None if all gradients are slopes.
        """
        effects = np.isnan(points) | ~self.numeric_columns(points)
        return effects if effects.any() else None

    @cached_property
    def quantity(self) -> Quantity:
        """The name, kind and unit of the output, such as "probability of yes"."""
        return Quantity(model=type(self).__name__)

    @property
    def observed(self) -> tuple[ObservedValues | None, ...] | None:
        """The observed values of each column of the table given to ``wrap``, (D,).

        Effects of missing numbers are measured against them. None for a column that is
        not numeric, or has very many values; None for all if no table was given.
        """
        return None if self.schema is None else self.schema.observed

    def _named(self, values: Array, X: object, labels: Labels) -> Array | pd.DataFrame:
        """``values`` (N, D) with the names of X; an array if X is one."""
        if self.encoding is not None and not isinstance(X, list | tuple | np.ndarray):
            index = X.index if isinstance(X, pd.DataFrame | pd.Series) else None
            return pd.DataFrame(values, index, self.encoding.encoded_header)
        if isinstance(X, pd.DataFrame):
            return pd.DataFrame(values, index=X.index, columns=X.columns)
        return values if labels.kind is None else labels.frame(values)

    def metadata(self, points: Points) -> dict[str, Any]:
        """Fields of an explanation: the points (N, D) and the category labels."""
        words = {} if self.schema is None else self.schema.words_of_codes
        return {"points": points, "categories": words}

    @property
    def schema(self) -> TableSchema | None:
        """The schema of the function's table; None if it takes any numeric table."""
        return None

    @property
    def encoding(self) -> Encoding | None:
        """Encoder from the function's input to points; None if the input is numeric."""
        return self.schema

    @property
    def takes_texts(self) -> bool:
        """Whether points stand for documents, with words as columns."""
        return self.encoding is not None and self.schema is None

    @property
    def features(self) -> tuple[str, ...] | None:
        """The columns that the model was fitted on; None if it does not record them."""
        return None

    @property
    def piecewise_constant(self) -> bool:
        """Whether f is constant between jumps, with zero gradient, as trees are.

        :func:`propopt.functions.smoothed` gives an average of f with nonzero gradient.
        """
        return False

    @property
    def jumps(self) -> Jumps | None:
        """The result of the jump test; None if it was not made."""
        return self.trial.jumps

    @cached_property
    def trial(self) -> Trial:
        """The results of calls of the model at test rows, such as whether it jumps."""
        return Trial()

    @property
    def boxes(self) -> Boxes | None:
        """The function as a sum of boxes, which are leaves of trees; None for others.

        A box is a rectangle of values of the encoded columns. Results computed
        from boxes are exact, once the boxes were compared with values
        (:func:`propopt.functions.smoothed` does that).
        """
        return None

    @property
    def products(self) -> SumOfProducts | Reason:
        """The function as a sum of products of functions of one encoded column each.

        Sums of trees, linear and additive functions, and gaussian kernel machines have
        this form; for others it is the reason why not. Results computed from it are
        exact, once it was compared with values.
        """
        return self.boxes or Reason(f"{self!r} can only be called")

    def products_in(self, n_columns: int) -> SumOfProducts | Reason:
        """The function as a sum of products of one-column functions, for D columns.

        Parameters
        ----------
        n_columns : int
            The number D of columns.

        Returns
        -------
        SumOfProducts or Reason
            Also for functions that take any number of columns.

        Examples
        --------
        >>> from propopt.functions import Power
        >>> Power(degree=3).products_in(2)
        SumOfProducts(2 products of 2 factors (Powers) in 2 columns)
        """
        del n_columns
        return self.products

    @property
    def margin_boxes(self) -> Boxes | None:
        """The score before the link as a sum of leaves of trees; None for others.

        For boosted trees with a probability, a count or any other output with a link
        it is their sum before the link; without a link it is :attr:`boxes`.
        """
        return self.boxes

    @property
    def links(self) -> tuple[LinkedScores, ...]:
        """Candidate forms f = link(score) with exact scores, such as log-odds of trees.

        The values of the function show which candidate is right.
        """
        return ()

    @cached_property
    def calls(self) -> EvaluationCounter:
        """The number of rows given to the model so far; zero for formulas."""
        return EvaluationCounter()

    def read(self, X: object, what: str = "X") -> tuple[Points, Labels]:
        """Convert a table to numbers; with a schema, categories become codes.

        A missing number is NaN. Functions pass it on: the model decides how to treat
        it.

        Parameters
        ----------
        X : array or DataFrame (N, D)
            The points.
        what : str
            The name of the points in error messages.

        Returns
        -------
        array (N, D), Labels
            The arguments of :meth:`value_at` and :meth:`gradient_at`.

        Raises
        ------
        InvalidInput
            If X is not a table of finite or missing values, or does not fit the schema.
        """
        if self.encoding is not None:
            return self.encoding.encode(X, what)
        remedy = (
            f"for text and categories give the table, wrap(model, data={what}), or, if "
            "numeric columns are categories too, data=po.functions.TableSchema.of("
            f"{what}, categorical=[...], groups={{...}})"
        )
        points, labels = read_points(X, what, remedy)
        fits = self.features is not None and len(self.features) == points.shape[1]
        return points, labels.or_else(Labels(features=self.features if fits else None))

    def value_at(self, points: Points, labels: Labels = NO_NAMES) -> Values:
        """Values at points that :meth:`read` returned, shape (N,).

        Parameters
        ----------
        points : array (N, D)
            Numbers, NaN where one is missing, and codes; not checked.
        labels : Labels, optional
            The names of their rows and columns.

        Returns
        -------
        array (N,)
            The same as :meth:`value`.

        Raises
        ------
        InvalidInput
            If a value is not finite; the message names the first such row.
        """
        values = self._value(points, labels)
        self._check(values, points.shape[:1], "value", labels, points)
        return values

    def gradient_at(self, points: Points, labels: Labels = NO_NAMES) -> Attributions:
        """Gradients at points that :meth:`read` returned, shape (N, D).

        Parameters
        ----------
        points : array (N, D)
            Numbers, NaN where one is missing, and codes; not checked.
        labels : Labels, optional
            The names of their rows and columns.

        Returns
        -------
        array (N, D)
            The same as :meth:`gradient`, as an array.

        Raises
        ------
        InvalidInput
            If a gradient is not finite; the message names the first such row.
        """
        gradients = self._gradient(points, labels)
        self._check(gradients, points.shape, "gradient", labels, points)
        return gradients

    def jumps_at(self, points: Points, labels: Labels = NO_NAMES) -> Jumps | None:
        """Test on given rows whether f jumps; the first result is retained.

        Only a model without a known structure is tested.

        Parameters
        ----------
        points : array (N, D)
            The rows.
        labels : Labels, optional
            The names of their rows and columns.

        Returns
        -------
        Jumps or None
            None if no test is needed, or there are fewer than two rows.
        """
        if self.trial.jumps is not None or not self._may_jump:
            return self.trial.jumps
        rng = np.random.default_rng(JUMP_SEED)
        segments = Segments.between(points, self.numeric_columns(points), rng)
        if segments is not None:
            names = labels.of_columns()
            with self.calls.as_trial(), self._announced_test(segments.starts, names):
                self.trial.jumps = jumps_along(
                    lambda between: self._value(between, names), segments, self
                )
        return self.trial.jumps

    @property
    def _may_jump(self) -> bool:
        """Whether nothing rules jumps out."""
        return False

    def _announced_test(
        self, points: Points, names: Labels, /
    ) -> AbstractContextManager[None]:
        """A context in which the jump test runs."""
        del points, names
        return nullcontext()

    def numeric_columns(self, points: Points) -> NDArray[np.bool_]:
        """Which encoded columns are numeric, shape (D,)."""
        if self.schema is None:
            # words are not numeric
            return np.full(points.shape[1], self.encoding is None)
        return ~self.schema.categorical

    @property
    @abstractmethod
    def gradient_method(self) -> str:
        """How gradients are computed: ``"exact"``, or the finite-difference rule."""

    @abstractmethod
    def _value(self, points: Points, labels: Labels, /) -> Values:
        """Values at checked points, shape (N,)."""

    @abstractmethod
    def _gradient(self, points: Points, labels: Labels, /) -> Attributions:
        """Gradients at checked points, shape (N, D)."""

    def missing_columns(self, points: Points, labels: Labels) -> tuple[str, ...]:
        """The names of columns in which a number or a category is missing.

        Parameters
        ----------
        points : array (n, D)
            Numbers and codes.
        labels : Labels
            The names of the columns.

        Returns
        -------
        tuple of str
            The names, in the order of the columns; empty if no value is missing.
        """
        absent = (
            np.isnan(points) if self.schema is None else self.schema.missing(points)
        )
        names = labels.feature_names(points.shape[1])
        return tuple(names[j] for j in np.flatnonzero(absent.any(axis=0)))

    def _check(
        self,
        numbers: Array,
        shape: tuple[int, ...],
        label: str,
        labels: Labels,
        points: Points,
    ) -> None:
        if numbers.shape != shape:
            raise InvalidInput(
                f"{self!r}: expected a {label} of shape {shape}, got {numbers.shape}"
            )
        good = np.asarray(np.isfinite(numbers).reshape(len(numbers), -1).all(axis=1))
        if not good.all():
            first = int(np.argmin(good))
            name = labels.row(first)
            absent = self.missing_columns(points[[first]], labels)
            reason = f", where {listed(absent)} is missing" if absent else ""
            raise InvalidInput(
                f"{self!r}: the {label} is not finite in {len(good) - int(good.sum())} "
                f"of {len(good)} rows of X; the first is row {name!r}{reason}"
            )


def read_function(function: object) -> Function:
    """The function itself; models and callables that were not wrapped are refused."""
    if not isinstance(function, Function):
        raise InvalidInput(
            f"function: expected a propopt Function, got {type(function).__name__}; "
            "propopt.wrap(model) makes one of a model or a callable"
        )
    return function


class DerivedFunction(Function):
    """A function derived from another one, such as its mean, with the same schema."""

    function: Function

    @cached_property
    def quantity(self) -> Quantity:
        return self.function.quantity

    @property
    def schema(self) -> TableSchema | None:
        return self.function.schema

    @property
    def features(self) -> tuple[str, ...] | None:
        return self.function.features

    @cached_property
    def calls(self) -> EvaluationCounter:
        return self.function.calls

    def _evaluator(self, kind: str, labels: Labels) -> Callable[[Points], Values]:
        """A function of points of some kind, which error messages mention."""
        names = labels.of_columns()

        def evaluate(points: Points) -> Values:
            try:
                return self.function.value_at(points, names)
            except InvalidInput as error:
                raise InvalidInput(f"at {kind}: {error}") from error

        return evaluate


@dataclass(frozen=True, eq=False, repr=False)
class WrappedModel(Function):
    """One output of a model, as a function."""

    quantity: Quantity = field()  # the output
    # the schema of the table, if one was given
    schema: TableSchema | None = field(default=None, kw_only=True)
    # the most rows in one call of the model
    batch_rows: int = field(default=sys.maxsize, kw_only=True)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.quantity})"


# ---- Sums of functions, such as the change between two models


WeightedFunctions: TypeAlias = "tuple[tuple[float, Function], ...]"
"""Functions, each with its weight."""

NO_SUM: Final = "functions of different tables cannot be added"

REMEDY: Final = "give wrap the same table for all, po.wrap(model, data=X_train)"


@final
@dataclass(frozen=True, eq=False, repr=False)
class SumOfFunctions(Function):
    """A weighted sum of functions of one table, exact if all of them are."""

    terms: WeightedFunctions  # at least one; no function twice
    base: float = 0.0  # the constant

    def __post_init__(self) -> None:
        _refuse_other_tables(self.parts)

    def __repr__(self) -> str:
        if len(self.terms) > MOST_WRITTEN:
            return f"{type(self).__name__}({len(self.terms)} functions)"
        sign = "-" if self.base < 0.0 else "+"
        constant = f" {sign} {abs(self.base):.6g}" if self.base else ""
        return linear_sum((w, repr(part)) for w, part in self.terms) + constant

    @property
    def parts(self) -> tuple[Function, ...]:
        """The functions without their weights."""
        return tuple(part for _, part in self.terms)

    @property
    def as_sum(self) -> tuple[WeightedFunctions, float]:
        """The function as a flat weighted sum of functions, and a constant."""
        return self.terms, self.base

    @cached_property
    def quantity(self) -> Quantity:
        """The sum, or the difference, of the quantities of the parts."""
        quantities = [(weight, part.quantity) for weight, part in self.terms]
        return Quantity.sum_of(quantities, self.base)

    @cached_property
    def calls(self) -> EvaluationCounter:
        """The count of rows given to the sum; each part counts its rows, too."""
        return EvaluationCounter(parts=tuple(part.calls for part in self.parts))

    @property
    def schema(self) -> TableSchema | None:
        return _first(part.schema for part in self.parts)

    @property
    def features(self) -> tuple[str, ...] | None:
        return _first(part.features for part in self.parts)

    @property
    def observed(self) -> tuple[ObservedValues | None, ...] | None:
        return _first(part.observed for part in self.parts)

    @property
    def gradient_method(self) -> str:
        """``"exact"`` if all parts are exact; else the rules of the parts."""
        return "; ".join(dict.fromkeys(part.gradient_method for part in self.parts))

    @property
    def piecewise_constant(self) -> bool:
        return all(part.piecewise_constant for part in self.parts)

    @property
    def _may_jump(self) -> bool:
        has_exact_slopes = self.piecewise_constant or self.gradient_method == EXACT
        return not has_exact_slopes and self.boxes is None

    @cached_property
    def boxes(self) -> Boxes | None:
        return self.products if isinstance(self.products, Boxes) else None

    @cached_property
    def margin_boxes(self) -> Boxes | None:
        parts = [(weight, part.margin_boxes) for weight, part in self.terms]
        scaled = [boxes.scaled(w) for w, boxes in parts if boxes is not None]
        if len(scaled) < len(parts) or len({part.n_columns for part in scaled}) > 1:
            return None
        whole = SumOfProducts.sum_of(scaled).plus(self.base)
        return whole if isinstance(whole, Boxes) else None

    @cached_property
    def products(self) -> SumOfProducts | Reason:
        """The sum of the products of all parts; formulas take the models' columns."""
        structures = [part.products for part in self.parts]
        counts = {one.n_columns for one in structures if isinstance(one, SumOfProducts)}
        if len(counts) == 1:
            return self.products_in(counts.pop())
        return _first(one for one in structures if isinstance(one, Reason)) or Reason(
            f"{self!r} adds up functions of {listed(sorted(counts))} columns"
        )

    def products_in(self, n_columns: int) -> SumOfProducts | Reason:
        scaled = []
        for weight, part in self.terms:
            structure = part.products_in(n_columns)
            if isinstance(structure, Reason):
                return structure
            scaled.append(structure.scaled(weight))
        if any(part.n_columns != n_columns for part in scaled):
            return Reason(f"{self!r} has parts of other than {n_columns} columns")
        return SumOfProducts.sum_of(scaled).plus(self.base)

    def with_categories_of(self, X: object) -> Function:
        terms = tuple(
            (weight, part.with_categories_of(X)) for weight, part in self.terms
        )
        pairs = zip(terms, self.terms, strict=True)
        same = all(part is part_before for (_, part), (_, part_before) in pairs)
        return self if same else replace(self, terms=terms)

    def effects_at(self, points: Points) -> NDArray[np.bool_] | None:
        return _either([part.effects_at(points) for part in self.parts])

    def estimate_at(self, points: Points, labels: Labels) -> Estimate:
        """Sum of the parts' estimates, with errors from blocks of draws of the sum."""
        before = self.calls.rows
        with self.calls.counting_parts():
            estimates = [part.estimate_at(points, labels) for part in self.parts]
        sampled = [one for one in estimates if not one.exact]
        sizes = {None if one.blocks is None else len(one.blocks) for one in sampled}
        in_blocks = len(sizes) == 1 and None not in sizes
        weights = [weight for weight, _ in self.terms]
        pairs = list(zip(weights, estimates, strict=True))
        blocks = [
            weight * (one.values[None] if one.blocks is None else one.blocks)
            for weight, one in pairs
        ]
        return Estimate(
            values=_total([weight * one.values for weight, one in pairs]),
            source="; ".join(dict.fromkeys(one.source for one in estimates)),
            exact=not sampled,
            blocks=_total(blocks) if in_blocks else None,
            n_draws=max(one.n_draws for one in estimates),
            evaluations=self.calls.rows - before,
            labels=reduce(Labels.or_else, (one.labels for one in estimates)),
            effects=_either([one.effects for one in estimates]),
        )

    def _value(self, points: Points, labels: Labels, /) -> Values:
        with self.calls.counting_parts():
            values = [w * part.value_at(points, labels) for w, part in self.terms]
        return _total(values) + self.base

    def _gradient(self, points: Points, labels: Labels, /) -> Attributions:
        with self.calls.counting_parts():
            return _total(
                [w * part.gradient_at(points, labels) for w, part in self.terms]
            )


def _is_number(other: object) -> TypeGuard[float]:
    return isinstance(other, int | float | np.integer | np.floating)


def _merged(terms: WeightedFunctions) -> WeightedFunctions:
    """Each function once, with the sum of its weights, in order."""
    weights: dict[int, float] = {}
    for weight, part in terms:
        weights[id(part)] = weights.get(id(part), 0.0) + weight
    parts = {id(part): part for _, part in terms}
    return tuple((weights[key], part) for key, part in parts.items())


def _first(items: Iterable[_Item | None]) -> _Item | None:
    """The first item that is not None."""
    return next((item for item in items if item is not None), None)


def _total(parts: Sequence[Array]) -> Array:
    """The sum of arrays, in order."""
    return reduce(np.add, parts)


def _either(effects: Sequence[NDArray[np.bool_] | None]) -> NDArray[np.bool_] | None:
    """The union of masks; None if all are None."""
    masks = [mask for mask in effects if mask is not None]
    return reduce(np.logical_or, masks) if masks else None


def _refuse_other_tables(parts: Sequence[Function]) -> None:
    """Refuse parts with different tables, and name the difference."""
    for part in parts:
        if part.takes_texts:
            raise InvalidInput(f"{NO_SUM}, and {part!r} is a function of texts")
    first = _first(part if part.schema else None for part in parts)
    if first is None:
        named = [part for part in parts if part.features is not None]
        for other in named[1:]:
            _refuse_other_names(named[0], named[0].features, other)
        return
    schema = first.schema
    assert schema is not None
    for other in parts:
        if other.schema is not None:
            differs = schema.difference(other.schema)
            if differs is not None:
                raise InvalidInput(
                    f"{first!r} and {other!r}: {NO_SUM}; their tables differ in "
                    f"{differs}; {REMEDY}"
                )
        elif schema.categorical.any():
            raise InvalidInput(
                f"{other!r}: {NO_SUM}; the table of {first!r} has categories, and "
                f"this function has no schema; {REMEDY}"
            )
        elif other.features is not None:
            _refuse_other_names(first, schema.names, other)


def _refuse_other_names(first: Function, names: Any, other: Function) -> None:
    if tuple(names) != other.features:
        raise InvalidInput(
            f"{first!r} and {other!r}: {NO_SUM}; their columns are "
            f"{listed(tuple(names))} and {listed(other.features or ())}; {REMEDY}"
        )
