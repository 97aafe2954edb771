"""What a function under explanation is, and how often it was called."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeAlias, final, overload

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from propopt.base.arrays import Array, Attributions, Points, Values
from propopt.base.errors import InvalidInput
from propopt.base.text import Quantity, Reason
from propopt.functions.jumps import Jumps
from propopt.losses.faithfulness import Estimate
from propopt.structures.boxes.boxes import Boxes
from propopt.structures.products.sums import SumOfProducts
from propopt.tables.columns import Atoms
from propopt.tables.frames import Labels, as_frame, listed, read_points, text_in
from propopt.tables.schema import Encoding, TableSchema


# ---- What a function under explanation is: values and gradients at points


Hearer: TypeAlias = Callable[[int], None]


@final
@dataclass
class Calls:
    """How often a model was asked; not exact if several threads ask at once."""

    rows: int = 0  # rows given to the model
    batches: int = 0  # tables that they were given in
    trials: int = 0  # rows that it was given besides
    is_trial: bool = field(default=False, init=False, repr=False, compare=False)
    """Whether what is asked now is a trial, of a few rows."""

    _hearer: Hearer | None = field(default=None, init=False, repr=False, compare=False)

    def add(self, rows: int) -> None:
        """Count one table of so many rows, which the model is given next."""
        if self._hearer is not None:
            self._hearer(self.rows)
        self.rows += rows
        self.batches += 1

    @contextmanager
    def trying_out(self) -> Iterator[None]:
        """Count what is asked meanwhile as a trial."""
        before, was_trial = (self.rows, self.batches), self.is_trial
        self.is_trial = True
        try:
            with self.heard_by(None):
                yield
        finally:
            self.is_trial = was_trial
            self.trials += self.rows - before[0]
            self.rows, self.batches = before

    @contextmanager
    def heard_by(self, hearer: Hearer | None) -> Iterator[None]:
        """Within, tell before each call how many rows the model was given."""
        before, self._hearer = self._hearer, hearer
        try:
            yield
        finally:
            self._hearer = before

    def try_out(self, rows: int) -> None:
        """Count so many rows of a trial."""
        self.trials += rows


EXACT = "exact"


class Function(ABC):
    """A real function of D features, f: R^D → R, with its gradient.

    Subclasses give ``_value``, ``_gradient`` and :attr:`gradient_method`; what they are
    given has been checked, and what they return is checked here.

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
    """

    def value(self, X: ArrayLike | pd.DataFrame) -> Values:
        """Values f(x_n), shape (N,).

        Parameters
        ----------
        X : array or DataFrame (N, D)
            The points; values may be missing, if the model takes them.

        Raises
        ------
        InvalidInput
            If X is no table of finite or missing values, if its columns are not those
            of the function, if the model fails for a missing value, or if a value of f
            is not finite; the first such row is named.
        """
        return self.value_at(*self.read(X))

    @overload
    def gradient(self, X: pd.DataFrame) -> pd.DataFrame: ...

    @overload
    def gradient(self, X: ArrayLike) -> Attributions: ...

    def gradient(self, X: ArrayLike | pd.DataFrame) -> Attributions | pd.DataFrame:
        """Gradients G with G_nd = ∂f/∂x_d at x_n, shape (N, D).

        Parameters
        ----------
        X : array or DataFrame (N, D)
            The points.

        Returns
        -------
        array or DataFrame (N, D)
            A DataFrame, with the index and the columns of X, where X is one; with a
            schema its columns are the encoded ones.

        Raises
        ------
        InvalidInput
            As :meth:`value` does.
        """
        points, labels = self.read(X)
        return self._named(self.gradient_at(points, labels), X, labels)

    def estimate(self, X: ArrayLike | pd.DataFrame) -> Estimate:
        """:meth:`gradient` as a target, with what is known of its error.

        Parameters
        ----------
        X : array or DataFrame (N, D)
            The points.

        Returns
        -------
        Estimate
            Exact where :attr:`gradient_method` says so; else its error is not known,
            unless a subclass knows it, by :meth:`estimate_at`.

        Examples
        --------
        >>> from propopt.functions import Power
        >>> Power(degree=3).estimate([[1.0, 2.0]]).source
        'exact'
        """
        return replace(self.estimate_at(*self.read(X)), quantity=self.quantity)

    def estimate_at(self, points: Points, labels: Labels) -> Estimate:
        """:meth:`estimate` at points that :meth:`read` gave, or others of that kind.

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
        """Which gradients are effects, in units of the output, (N, D); None if none.

        They are for categories and for numbers that are missing.
        """
        effects = np.isnan(points)
        if self.schema is not None:
            effects |= self.schema.categorical
        return effects if effects.any() else None

    @cached_property
    def quantity(self) -> Quantity:
        """What its values are, in words."""
        return Quantity(model=type(self).__name__)

    @property
    def observed(self) -> tuple[Atoms | None, ...] | None:
        """The values of each column of the table that the function was told of, (D,).

        Effects of missing numbers are measured against them. None for a column that is
        not of numbers, or has very many; None for all where no table is known.
        """
        return None if self.schema is None else self.schema.observed

    def _named(self, values: Array, X: object, labels: Labels) -> Array | pd.DataFrame:
        """``values`` (N, D) with the names of X, an array where X is one."""
        if self.encoding is None or isinstance(X, list | tuple | np.ndarray):
            return named_like(values, X, labels)
        if isinstance(X, pd.DataFrame | pd.Series):
            return self.encoding.frame(values, X.index)
        return self.encoding.frame(values, pd.RangeIndex(len(values)))

    def told(self, points: Points) -> dict[str, Any]:
        """What an explanation of points (N, D) says of them: numbers, and words."""
        words = {} if self.schema is None else self.schema.words_of_codes
        return {"points": points, "categories": words}

    @property
    def schema(self) -> TableSchema | None:
        """The table that the function takes; None if it takes any table of numbers."""
        return None

    @property
    def encoding(self) -> Encoding | None:
        """What makes points of what the function takes; None if that is numbers."""
        return self.schema

    @property
    def features(self) -> tuple[str, ...] | None:
        """The columns that a model was fitted on, where it tells; arrays have them."""
        return None

    @property
    def piecewise_constant(self) -> bool:
        """True if f is known to jump and else be flat, as trees are: its gradient is 0.

        :func:`propopt.smoothed` gives a function near it whose gradient is not.
        """
        return False

    @property
    def jumps(self) -> Jumps | None:
        """What the jump test found; None while, or if, it was not made."""
        return None

    @property
    def boxes(self) -> Boxes | None:
        """Values as a sum of boxes of the encoded columns, as trees are; None if not.

        What is computed of them is exact; they are believed once they were checked
        against values (:func:`propopt.smoothed` does).
        """
        return None

    @property
    def products(self) -> SumOfProducts | Reason:
        """Values as a sum of products of functions of one encoded column each.

        Sums of trees are, linear and additive functions, and gaussian kernel machines;
        of others the reason why they are not. What is computed of it is exact, and
        believed once it was checked against values.
        """
        if self.boxes is not None:
            return self.boxes.as_products()
        return Reason(f"{self!r} can only be called")

    def products_in(self, n_columns: int) -> SumOfProducts | Reason:
        """:attr:`products`, of a table of so many columns: some take any number.

        Parameters
        ----------
        n_columns : int
            D.

        Returns
        -------
        SumOfProducts or Reason

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
        """The score that values are made of, as a sum of boxes; None if it is none.

        Of boosted trees with a probability, a count or any other output behind a link
        it is their sum before the link; where values have no link, it is
        :attr:`boxes`.
        """
        return self.boxes

    @cached_property
    def calls(self) -> Calls:
        """Rows that a model was given for this function so far; formulas count none."""
        return Calls()

    def read(self, X: object, what: str = "X") -> tuple[Points, Labels]:
        """A table as numbers, and codes of categories where there is a schema.

        A missing number is NaN. Functions pass it on: what a model says of missing
        values is its own.

        Parameters
        ----------
        X : array or DataFrame (N, D)
            The points.
        what : str
            What errors call them.

        Returns
        -------
        array (N, D), Labels
            What :meth:`value_at` and :meth:`gradient_at` take.

        Raises
        ------
        InvalidInput
            If X is no table of finite or missing values, or not one of the schema.
        """
        if self.encoding is not None:
            return self.encoding.encode(X, what)
        frame = as_frame(X, what)
        if frame is not None:
            _refuse_text(frame.table, what)
        points, labels = read_points(X if frame is None else frame, what)
        return points, labels.or_else(self._own_names(points))

    def value_at(self, points: Points, labels: Labels | None = None) -> Values:
        """Values at points that :meth:`read` gave, or at others of that kind.

        Parameters
        ----------
        points : array (N, D)
            Numbers, NaN where one is missing, and codes; not checked.
        labels : Labels, optional
            The names of their rows and columns.

        Returns
        -------
        array (N,)
            As :meth:`value` gives them.

        Raises
        ------
        InvalidInput
            If a value is not finite; the first such row is named.
        """
        names = Labels() if labels is None else labels
        values = self._value(points, names)
        self._check(values, points.shape[:1], "value", names, points)
        return values

    def gradient_at(self, points: Points, labels: Labels | None = None) -> Attributions:
        """Gradients at points that :meth:`read` gave, or at others of that kind.

        Parameters
        ----------
        points : array (N, D)
            Numbers, NaN where one is missing, and codes; not checked.
        labels : Labels, optional
            The names of their rows and columns.

        Returns
        -------
        array (N, D)
            As :meth:`gradient` gives them.

        Raises
        ------
        InvalidInput
            If a gradient is not finite; the first such row is named.
        """
        names = Labels() if labels is None else labels
        gradients = self._gradient(points, names)
        self._check(gradients, points.shape, "gradient", names, points)
        return gradients

    def jumps_at(self, points: Points, labels: Labels | None = None) -> Jumps | None:
        """Whether f jumps between rows that :meth:`read` gave: tested once, then known.

        Only a model of which nothing is known is tested.

        Parameters
        ----------
        points : array (N, D)
            The rows.
        labels : Labels, optional
            The names of their rows and columns.

        Returns
        -------
        Jumps or None
            None where there is no need of the test, or no two rows to move between.
        """
        del points, labels
        return self.jumps

    @property
    @abstractmethod
    def gradient_method(self) -> str:
        """How gradients are computed: ``"exact"``, or the numerical rule in words."""

    @abstractmethod
    def _value(self, points: Points, labels: Labels, /) -> Values:
        """Values at checked points."""

    @abstractmethod
    def _gradient(self, points: Points, labels: Labels, /) -> Attributions:
        """Gradients at checked points."""

    def _own_names(self, points: Points) -> Labels:
        """The names of columns for tables that have none."""
        fit = self.features is not None and len(self.features) == points.shape[1]
        return Labels(features=self.features) if fit else Labels()

    def missing_columns(self, points: Points, labels: Labels) -> tuple[str, ...]:
        """The names of columns in which a number or a category is missing.

        Parameters
        ----------
        points : array (n, D)
            Numbers and codes.
        labels : Labels
            The names of the columns.
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
            name = first if labels.points is None else labels.points[first]
            absent = self.missing_columns(points[[first]], labels)
            reason = f", where {listed(absent)} is missing" if absent else ""
            raise InvalidInput(
                f"{self!r}: the {label} is not finite in {len(good) - int(good.sum())} "
                f"of {len(good)} rows of X; the first is row {name!r}{reason}"
            )


def named_like(values: Array, X: object, labels: Labels) -> Array | pd.DataFrame:
    """``values``, with the index and the columns of X where X has names."""
    if isinstance(X, pd.DataFrame):
        return pd.DataFrame(values, index=X.index, columns=X.columns)
    return values if labels.kind is None else labels.frame(values)


def _refuse_text(X: pd.DataFrame, label: str) -> None:
    place = text_in(X)
    if place is not None:
        raise InvalidInput(
            f"{label}: {place}; for text and categories tell wrap of the table, "
            f"wrap(model, data={label}), or, where columns of numbers are categories "
            "too, data=po.TableSchema.of("
            f"{label}, categorical=[...], groups={{...}})"
        )


def read_function(function: object) -> Function:
    """The function, refused if it is a model or a callable that was not wrapped."""
    if not isinstance(function, Function):
        raise InvalidInput(
            f"function: expected a propopt Function, got {type(function).__name__}; "
            "propopt.wrap makes one of a model or a callable"
        )
    return function


class OfFunction(Function):
    """What is made of a function, such as its mean, and is of what that is of."""

    function: Function

    @cached_property
    def quantity(self) -> Quantity:
        """That of the function."""
        return self.function.quantity

    @property
    def schema(self) -> TableSchema | None:
        """That of the function."""
        return self.function.schema

    @property
    def features(self) -> tuple[str, ...] | None:
        """Those of the function."""
        return self.function.features

    @cached_property
    def calls(self) -> Calls:
        """Those of the function."""
        return self.function.calls
