"""What every baseline has in common: tables in, one :class:`Explanation` out."""

from __future__ import annotations

import dataclasses
import hashlib
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, ClassVar, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from propopt._typing import Array, Attributions, Points
from propopt.checks import read_array, read_rng
from propopt.errors import InvalidInput
from propopt.functions import Function
from propopt.functions.base import read_function
from propopt.output.progress import progress_bar
from propopt.results.explanation import Explanation, Parameter, Units
from propopt.tables.names import Labels


Found: TypeAlias = tuple[Attributions, Mapping[str, Array]]
"""Attributions (N, D), and the details that a method knows besides."""


def _silently(n_points: float) -> None:
    del n_points


@dataclass(frozen=True, kw_only=True, eq=False)
class Task:
    """A function, the points at which to explain it, and a source of randomness.

    Parameters
    ----------
    function : Function
        f, as the user gave it.
    points : array (N, D)
        X; in a categorical column the codes of the function's schema.
    labels : Labels
        The names that came with X.
    rng : numpy.random.Generator
        Where every draw comes from.
    advance : callable
        Is told how many points were finished; may be a fraction.
    """

    function: Function
    points: Points
    labels: Labels
    rng: np.random.Generator
    advance: Callable[[float], None] = _silently

    @cached_property
    def categorical(self) -> NDArray[np.bool_]:
        """Which columns hold codes of categories, shape (D,)."""
        schema = self.function.schema
        if schema is None:
            return np.zeros(self.points.shape[1], dtype=bool)
        return schema.categorical

    def value(self, points: Array) -> Array:
        """Values of f at points (..., D), as an array of shape (...)."""
        rows = points.reshape(-1, points.shape[-1])
        return self.function.value_at(rows, self._names).reshape(points.shape[:-1])

    def gradient(self, points: Array) -> Array:
        """Gradients of f at points (..., D), as an array of the same shape."""
        rows = points.reshape(-1, points.shape[-1])
        return self.function.gradient_at(rows, self._names).reshape(points.shape)

    def scales(self, relative: bool) -> Array:
        """The units in which a method perturbs, (D,): standard deviations, or ones."""
        if not relative:
            return np.ones(self.points.shape[1])
        if self.function.schema is None:
            raise InvalidInput(
                "relative: standard deviations are those of a schema, and the function "
                "has none; wrap(model, data=X) makes one that does"
            )
        return self.function.schema.scales("std")

    def noise_units(self, relative: bool) -> Array:
        """As :meth:`scales`, but 0 for categories, which no noise is added to."""
        return np.where(self.categorical, 0.0, self.scales(relative))

    def row_seeds(self) -> list[int]:
        """One seed per point, for packages that take a 32-bit integer.

        That of point n depends on the generator and on n alone.
        """
        return [int(seed) for seed in self.rng.integers(2**32, size=len(self.points))]

    @property
    def _names(self) -> Labels:
        # Only the columns are named: a perturbed point is no longer a row of X.
        return self.labels.of_columns()


@dataclass(frozen=True, kw_only=True)
class Baseline(ABC):
    """A method that explains a function at given points.

    Each baseline is a frozen dataclass: its fields are its settings. A new one gives
    ``method``, the name it has in files, and ``_attributions``.

    Examples
    --------
    >>> import numpy as np
    >>> from propopt.explainers import Gradient
    >>> from propopt.functions import Power
    >>> X = np.array([[0.0, 1.0], [2.0, 3.0]])
    >>> Gradient().explain(Power(3), X).attributions
    array([[ 0.,  3.],
           [12., 27.]])
    """

    method: ClassVar[str]

    def explain(
        self,
        function: Function,
        X: object,
        *,
        rng: int | np.random.Generator | None = None,
        progress: bool | None = None,
    ) -> Explanation:
        """Explain ``function`` at the rows of ``X``.

        Parameters
        ----------
        function : Function
            f; see :func:`propopt.wrap` for models and callables.
        X : array or DataFrame (N, D)
            The points. A DataFrame reaches the function as a DataFrame, and its names
            are kept in the result.
        rng : int, numpy.random.Generator or None
            A seed, or a generator, which is then advanced. None is seed 0: a result
            never changes from run to run unless another seed is asked for.
        progress : bool, optional
            Show a bar on standard error; by default only on a terminal.

        Returns
        -------
        Explanation
            With ``method``, ``parameters``, ``labels``, ``units``, ``seconds``,
            ``evaluations`` and the ``details`` that the method documents. With a schema
            its columns are the encoded ones, and the attribution of a category is the
            effect of that category on the output.

        Raises
        ------
        InvalidInput
            If an argument cannot be used, or if the function gives attributions that
            are not finite.
        """
        start = time.perf_counter()
        known = read_function(function)
        points, labels = known.read(X)
        before = known.calls.rows
        with progress_bar(self.method, len(points), progress) as bar:
            task = Task(
                function=known,
                points=points,
                labels=labels,
                rng=read_rng(rng),
                advance=partial(bar.advance, bar.task_ids[0]),
            )
            attributions, details = self._attributions(task)
        return Explanation(
            attributions=read_array(attributions, f"{self.method} of X", ndim=2),
            method=self.method,
            labels=labels,
            parameters=self.parameters,
            details=details,
            units=self.units,
            evaluations=known.calls.rows - before,
            seconds=time.perf_counter() - start,
        )

    @property
    def units(self) -> Units:
        """What the attributions of numbers are: slopes, unless a method says other."""
        return "gradient"

    @property
    def parameters(self) -> dict[str, Parameter]:
        """The settings as plain values; a table is named by its shape and digest."""
        return {
            field.name: _plain(getattr(self, field.name))
            for field in dataclasses.fields(self)
        }

    @abstractmethod
    def _attributions(self, task: Task) -> Found:
        """The attributions of the task's points, and details."""


def _plain(value: Any) -> Parameter:
    if isinstance(value, np.ndarray | pd.DataFrame):
        digest = hashlib.sha256(_bytes(value)).hexdigest()
        return f"{'x'.join(map(str, value.shape))} sha256:{digest[:12]}"
    if isinstance(value, np.generic):
        return value.item()
    return value


def _bytes(table: Array | pd.DataFrame) -> bytes:
    """What a table holds; of text its hash, for objects have addresses as bytes."""
    if isinstance(table, pd.DataFrame) and not all(
        isinstance(dtype, np.dtype) and dtype.kind in "biuf" for dtype in table.dtypes
    ):
        return pd.util.hash_pandas_object(table).to_numpy().tobytes()
    return np.ascontiguousarray(table).tobytes()
