"""How columns that a part of a model sees come from those of the table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, final

import numpy as np

from propopt._typing import Array
from propopt.structures.products import NoProducts, SumOfProducts
from propopt.structures.products.seen.columns import (
    Bent,
    Line,
    Listed,
    SeenColumn,
    constant,
)
from propopt.structures.products.seen.pulling import by_table
from propopt.structures.readers.trees.pipelines.views import (
    CodedColumn,
    Curved,
    Rising,
    Same,
    Steps,
    View,
    table_numbers,
)
from propopt.structures.readers.trees.questions import Questions


FAR_PROBE: Final = 2.0**40
"""Lines are asked for these numbers, which are exact in single precision."""

_MOST_KEPT: Final = 32


def through_view(function: SumOfProducts, view: View) -> SumOfProducts | NoProducts:
    """A function of the columns that are seen, by the columns of the table.

    Parameters
    ----------
    function : SumOfProducts
        Of the M columns of the view.
    view : View
        What is seen.
    """
    used = function.columns.tolist()
    columns = SeenColumns(view, used)
    broken = [k for k in used if columns.is_broken(k)]
    if broken:
        j = view.sources[broken[0]].column
        return NoProducts(
            f"what it is given of column {j} (counted from 0) is no affine function of "
            "its numbers, as those of scalers are, nor of a few categories"
        )
    unused: SeenColumn = constant(0, np.nan)
    seen = [columns.of(k) if k in used else unused for k in range(len(view.sources))]
    return by_table(function, seen, view.n_columns)


@final
@dataclass(frozen=True, eq=False)
class SeenColumns:
    """The columns of a view, asked of the steps before it.

    Parameters
    ----------
    view : View
        What is seen.
    used : sequence of int
        The columns that are asked for.
    """

    view: View
    used: Sequence[int]

    def is_broken(self, k: int) -> bool:
        """Whether it is a map of numbers with kinks or jumps that are not known."""
        source = self.view.sources[k]
        return isinstance(source, Rising) and not source.straight

    def of(self, k: int) -> SeenColumn:
        """A column that is not broken."""
        match self.view.sources[k]:
            case Same(j):
                return Line(j, missing=self._missing[k])
            case Rising(j, _):
                return self._line(j, k)
            case Steps(j, values, _) as source:
                return self._listed(j, k, np.array(values), source.elsewhere)
            case Curved(j, knots):
                return Bent(j, Asked(self, k), np.array(knots))
            case CodedColumn(j):
                seen = self._asked.codes(k)
                return Listed(j, np.arange(float(len(seen))), seen)

    @cached_property
    def _asked(self) -> Questions:
        return Questions(self.view, table_numbers)

    @cached_property
    def _missing(self) -> dict[int, float]:
        """What is seen of missing numbers."""
        coded = [isinstance(self.view.sources[k], CodedColumn) for k in self.used]
        numeric = [k for k, c in zip(self.used, coded, strict=True) if not c]
        return dict(self._asked.missing(numeric)) if numeric else {}

    def _line(self, j: int, k: int) -> SeenColumn:
        low, middle, high = self.seen(
            k, np.array([-FAR_PROBE, 0.0, FAR_PROBE])
        ).tolist()
        slope = (high - low) / (2.0 * FAR_PROBE)
        if slope == 0.0:
            return constant(j, middle, self._missing[k])
        return Line(j, slope, -middle / slope, self._missing[k])

    def _listed(self, j: int, k: int, values: Array, elsewhere: bool) -> Listed:
        if not elsewhere:  # other values are refused
            return Listed(j, values, self.seen(k, values), missing=self._missing[k])
        beyond = np.floor(values[-1]) + 1.0
        *seen, other = self.seen(k, np.append(values, beyond)).tolist()
        return Listed(j, values, np.array(seen), other, self._missing[k])

    def seen(self, k: int, values: Array) -> Array:
        """What is seen in one column of values of its source.

        Parameters
        ----------
        k : int
            The column that is seen.
        values : array (n,)
            Of the column of the table.
        """
        columns = np.full(len(values), k, np.intp)
        with np.errstate(all="ignore"):  # such as logarithms of other columns at 0
            return self.view.ask(table_numbers, columns, values)


@final
@dataclass(frozen=True, eq=False)
class Asked:
    """What is seen of a column, asked of the steps; a few answers are kept.

    Parameters
    ----------
    columns : SeenColumns
        All columns.
    k : int
        Which.
    """

    columns: SeenColumns
    k: int

    def __call__(self, values: Array) -> Array:
        """Of values (n,): many factors of a column ask for the same."""
        key = values.tobytes()
        if key not in self._kept:
            if len(self._kept) >= _MOST_KEPT:
                self._kept.clear()
            self._kept[key] = self.columns.seen(self.k, values)
        return self._kept[key]

    @cached_property
    def _kept(self) -> dict[bytes, Array]:
        return {}
