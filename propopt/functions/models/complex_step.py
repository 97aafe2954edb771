"""Derivatives without subtraction, from one evaluation at a complex point."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.exceptions import ComplexWarning
from numpy.typing import NDArray

from propopt._typing import Attributions, Points
from propopt.batches import call_blocks, row_blocks
from propopt.errors import InvalidInput
from propopt.functions.models.called import CalledModel
from propopt.functions.models.columns import as_given
from propopt.functions.models.readout import read_column
from propopt.tables.names import Labels


COMPLEX_STEP: Final = 1e-30
"""Its square is lost beside 1 in any precision; it is far above the smallest float."""

Complex: TypeAlias = NDArray[np.complexfloating[Any, Any]]


@dataclass(frozen=True, eq=False, repr=False)
class ComplexStep(CalledModel):
    """A callable that takes complex tables, ∂f/∂x_d = Im f(x + i h e_d) / h.

    There is no subtraction, so the error is that of rounding f itself (Squire and Trapp
    1998, Eq. 6), with h = 1e-30 · max(1, |x_d|). It is for functions that are made of
    analytic ones; ``abs``, ``maximum`` of a complex number and conjugation are not, and
    where they do not drop the imaginary part altogether they make the result wrong:
    :func:`central_differences` tells.

    Parameters
    ----------
    model : callable
        A table (n, D), real or complex, to (n,) or (n, K) numbers.
    index : int or None
        The column that is read; None if there can be only one.

    Examples
    --------
    >>> import numpy as np, propopt as po
    >>> function = po.wrap(lambda X: np.exp(X[:, 0]) * X[:, 1], step="complex")
    >>> function.gradient([[0.0, 3.0]])
    array([[3., 1.]])
    """

    model: Callable[[Any], Any]
    index: int | None

    @property
    def gradient_method(self) -> str:
        """Always ``"complex step"``."""
        return "complex step"

    def _gradient(self, points: Points, labels: Labels, /) -> Attributions:
        if not self.trial.done:
            self._ask_twice(points, labels)
        slopes = np.empty(points.size)
        for block in row_blocks(points.size, points.shape[1], copies=2):
            entries = np.arange(block.start, block.stop)
            rows, columns = np.divmod(entries, points.shape[1])
            shifted = points[rows].astype(np.complex128)
            h = COMPLEX_STEP * np.maximum(1.0, np.abs(points[rows, columns]))
            shifted[np.arange(len(rows)), columns] += 1j * h
            slopes[block] = self._evaluate(shifted, labels).imag / h
        return slopes.reshape(points.shape)

    def _evaluate(self, points: Complex, labels: Labels) -> Complex:
        """One complex number for each point."""
        blocks = call_blocks(points.shape, self.batch_rows)
        return np.concatenate([self._part(points[rows], labels) for rows in blocks])

    def _part(self, points: Complex, labels: Labels) -> Complex:
        """Those of one call."""
        answer = self._call(_table(points, labels))
        self.calls.add(len(points))
        if answer.ndim not in (1, 2) or len(answer) != len(points):
            raise InvalidInput(
                f"the model returned shape {answer.shape} for {len(points)} rows; "
                f"expected ({len(points)},) or ({len(points)}, outputs)"
            )
        columns = answer.reshape(len(points), -1)
        return columns[:, read_column(self.index, columns.shape[1])]

    def _call(self, table: object) -> Complex:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error", ComplexWarning)
                answer = np.asarray(self.model(table))
        except (TypeError, ValueError, AttributeError, ComplexWarning) as error:
            raise InvalidInput(
                f"step: {self.quantity.model} fails on a complex table ({error}); "
                "leave step='complex' out for central differences"
            ) from error
        if not np.issubdtype(answer.dtype, np.complexfloating):
            raise InvalidInput(
                f"step: {self.quantity.model} returned {answer.dtype} for a complex "
                "table: it drops the imaginary part; leave step='complex' out for "
                "central differences"
            )
        return answer


def _table(points: Any, labels: Labels) -> object:
    """What the user gave, with complex numbers in it."""
    return as_given(points, labels.of_columns())
