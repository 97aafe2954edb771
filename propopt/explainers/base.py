"""What every baseline has in common: tables in, one :class:`Explanation` out."""

from __future__ import annotations

import dataclasses
import hashlib
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

import numpy as np
import pandas as pd

from propopt._typing import Array, Attributions, Points
from propopt.checks import read_array
from propopt.errors import InvalidInput
from propopt.explanation import Explanation, Parameter
from propopt.functions import Function
from propopt.labels import Labels, read_table


Found: TypeAlias = tuple[Attributions, Mapping[str, Array]]
"""Attributions (N, D), and the details that a method knows besides."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Task:
    """A function, the points at which to explain it, and a source of randomness.

    Parameters
    ----------
    function : Function
        f, as the user gave it.
    points : array (N, D)
        X.
    labels : Labels
        The names that came with X.
    rng : numpy.random.Generator
        Where every draw comes from.
    """

    function: Function
    points: Points
    labels: Labels
    rng: np.random.Generator

    def value(self, points: Array) -> Array:
        """Values of f at points (..., D), as an array of shape (...)."""
        return np.asarray(self.function.value(self._table(points)), float).reshape(
            points.shape[:-1]
        )

    def gradient(self, points: Array) -> Array:
        """Gradients of f at points (..., D), as an array of the same shape."""
        gradients = self.function.gradient(self._table(points))
        return np.asarray(gradients, float).reshape(points.shape)

    def row_seeds(self) -> list[int]:
        """One seed per point, for packages that take a 32-bit integer.

        That of point n depends on the generator and on n alone.
        """
        return [int(seed) for seed in self.rng.integers(2**32, size=len(self.points))]

    def _table(self, points: Array) -> Any:
        # Only the columns are named: a perturbed point is no longer a row of X.
        rows = points.reshape(-1, points.shape[-1])
        return Labels(features=self.labels.features).table(rows)


@dataclass(frozen=True, kw_only=True)
class Explainer(ABC):
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

        Returns
        -------
        Explanation
            With ``method``, ``parameters``, ``labels``, ``seconds`` and the ``details``
            that the method documents.

        Raises
        ------
        InvalidInput
            If an argument cannot be used, or if the function gives attributions that
            are not finite.
        """
        start = time.perf_counter()
        points, labels = read_table(X, "X")
        task = Task(
            function=_read_function(function),
            points=points,
            labels=labels,
            rng=_read_rng(rng),
        )
        attributions, details = self._attributions(task)
        return Explanation(
            attributions=read_array(attributions, f"{self.method} of X", ndim=2),
            method=self.method,
            labels=labels,
            parameters=self.parameters,
            details=details,
            seconds=time.perf_counter() - start,
        )

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
        digest = hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()
        return f"{'x'.join(map(str, value.shape))} sha256:{digest[:12]}"
    if isinstance(value, np.generic):
        return value.item()
    return value


def _read_function(function: object) -> Function:
    if not isinstance(function, Function):
        raise InvalidInput(
            f"function: expected a propopt Function, got {type(function).__name__}; "
            "propopt.wrap makes one of a model or a callable"
        )
    return function


def _read_rng(rng: object) -> np.random.Generator:
    if rng is None:
        return np.random.default_rng(0)
    if isinstance(rng, np.random.Generator):
        return rng
    if isinstance(rng, bool) or not isinstance(rng, int | np.integer) or rng < 0:
        raise InvalidInput(
            f"rng: expected an integer >= 0 or a numpy.random.Generator, got {rng!r}"
        )
    return np.random.default_rng(int(rng))
