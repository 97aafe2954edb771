"""How a column that a model sees comes from a column of the table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, final

import numpy as np
from numpy.typing import NDArray

from propopt._typing import Array


class ColumnMap(Protocol):
    """A column of the model, g(x_j): a function of one column j of the table.

    Of a numeric column g is nondecreasing in floating-point arithmetic, and finite,
    infinite or constant wherever x_j is a number: scalers and monotone transforms are.
    Of a categorical column g maps the codes 0, 1, ... of the table to what the model
    sees: a number, its own code, or NaN. g(NaN) is what it sees of a missing number,
    NaN or the number of an imputer.
    """

    @property
    def source(self) -> int:
        """j, the position of the column among the encoded columns of the table."""

    @property
    def n_codes(self) -> int | None:
        """How many codes the column of the table has; None if it is numeric."""

    def __call__(self, values: Array, /) -> Array:
        """What the model sees of values, or codes, of the column, shape (n,)."""


@final
@dataclass(frozen=True)
class SameColumn:
    """A column that the model sees as the table has it.

    Parameters
    ----------
    source : int
        Its position.
    n_codes : int or None
        Its number of codes, if it is categorical.
    """

    source: int
    n_codes: int | None = None

    def __call__(self, values: Array, /) -> Array:
        """The values themselves."""
        return values


def largest_at_most(
    column: ColumnMap, thresholds: Array, between: tuple[Array, Array] | None = None
) -> Array:
    """The largest float64 x with g(x) ≤ t, for each threshold t, shape (n,).

    So x ≤ the result exactly if g(x) ≤ t, whatever the rounding of g, which is
    nondecreasing: the numbers of float64 are bisected in their order. −∞ stands for
    thresholds that no number is under. Where it is known to lie is a pair of numbers
    ``between`` for each threshold, low ≤ x ≤ high.
    """
    everywhere = np.full(len(thresholds), np.inf)
    low, high = map(_rank, between or (-everywhere, everywhere))
    # g(−∞) need not be known: the lower end stands for "none", the upper may be g(∞)
    while (low < high).any():
        middle = (low | high) - ((low ^ high) >> 1)  # (low + high) / 2, rounded up
        with np.errstate(over="ignore", invalid="ignore"):
            under = column(_number(middle)) <= thresholds
        low, high = np.where(under, middle, low), np.where(under, high, middle - 1)
    return _number(low)


_SIGN = np.int64(np.iinfo(np.int64).min)


def _rank(numbers: Array) -> NDArray[np.int64]:
    """The place of each number in the order of float64, 0 for 0.0.

    The bits of a float64 are its place among those of its sign.
    """
    bits = numbers.view(np.int64)
    return np.where(bits >= 0, bits, _SIGN - bits)


def _number(ranks: NDArray[np.int64]) -> Array:
    """The numbers that have these places."""
    return np.where(ranks >= 0, ranks, _SIGN - ranks).view(np.float64)
