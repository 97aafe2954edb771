"""Chapters for a reviewer: every row, every value, a tolerance, and the record."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, Literal, final

import numpy as np
import pandas as pd

from propopt.base.arrays import Array, Mask
from propopt.base.checks import largest_entry
from propopt.base.document import (
    CELLS_ON_PAGE,
    Chapter,
    Fact,
    Table,
    cell_text,
    minus,
)
from propopt.base.row_sample import RowSample
from propopt.proofs.optimum import Optimum
from propopt.results.record import Decision, Record, digest_of_array


_ROUNDING: Final = (1e-9, 1e-6)
"""Differences below these shares of the largest value are rounding, shown as 0: in
double precision, and in single precision unless the tolerance is smaller."""

_COLUMNS: Final = 13
"""The most columns of values; the others of a wider table are summed."""

_PER_TABLE: Final = 10
_LINE: Final = 105
"""The most columns, and about the most characters in a line, of a printed table."""


_OF_ROWS: Final = 8
"""The most columns of the table of rows."""


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class ReviewSheet:
    """All values compared with exact ones, with a tolerance and a decision rule."""

    result: Optimum
    noun: Literal["audited", "optimized"]
    unit: str  # such as "in log-odds"
    exact: Array | None  # (N, D); None if exact values are unavailable
    other: str = "exact"  # the kind of these values
    base: Array  # (N,)
    prediction: Array  # (N,)
    tolerance: float | None = None
    decision: Decision | None = None

    @cached_property
    def _values(self) -> Array:
        return self.result.attributions

    @cached_property
    def _expected(self) -> Array:
        """The exact values, or else the values themselves, (N, D)."""
        return self._values if self.exact is None else self.exact

    @cached_property
    def _differences(self) -> Array:
        """Absolute differences from the exact values, (N, D), without rounding."""
        differences = np.abs(self._values - self._expected)
        return np.where(differences > self._rounding, differences, 0.0)

    @cached_property
    def _sum_errors(self) -> Array:
        """Errors of the sums, Σ w − (prediction − base), (N,), without rounding."""
        errors = self._values.sum(axis=1) - (self.prediction - self.base)
        return np.where(np.abs(errors) > self._rounding, errors, 0.0)

    @cached_property
    def _rounding(self) -> float:
        """The size of rounding errors, in the unit of the values."""
        size = max(largest_entry(self._values), largest_entry(self.prediction))
        tolerance = math.inf if self.tolerance is None else self.tolerance
        return float(np.clip(tolerance, *np.multiply(size, _ROUNDING)))

    @cached_property
    def _fails(self) -> Mask:
        """Rows with a difference or a sum error beyond the tolerance, (N,)."""
        tolerance = self.tolerance or 0.0
        wrong = np.abs(self._sum_errors) > tolerance
        return wrong | (self._differences > tolerance).any(axis=1)

    def tolerances(self) -> Iterator[Fact]:
        """The tolerance with the number of rows that fail, if one is set."""
        if self.tolerance is not None:
            note = f"{int(self._fails.sum()):,} of {len(self._fails):,} rows fail"
            yield Fact("tolerance", self.tolerance, note=note)

    # ---- tables

    def chapters(self) -> Iterator[Chapter]:
        """A chapter with the sums of rows, and a chapter with all values."""
        yield self._of_rows()
        yield self._of_values()

    def _of_rows(self) -> Chapter:
        rows = self._failing_first(CELLS_ON_PAGE // _OF_ROWS)
        columns = dict[str, Sequence[Any]]()
        words = list[str]()
        if (self.base == self.base[0]).all():
            words.append(f"base {cell_text(float(self.base[0]))}")
        else:
            columns["base"] = [*map(float, self.base[rows])]
        columns["prediction"] = [*map(float, self.prediction[rows])]
        if self.decision is not None:
            columns["decision"] = [*map(self.decision.of, columns["prediction"])]
        columns["error of the sum"] = [*map(float, self._sum_errors[rows])]
        if self.exact is not None:
            differences = self._differences[rows]
            indices = differences.argmax(axis=1).tolist()
            most = differences.max(axis=1)
            columns[f"largest difference from {self.other}"] = [*map(float, most)]
            columns["in column"] = [
                self.result.features[j] if x else ""
                for j, x in zip(indices, most, strict=True)
            ]
        if self.tolerance is not None:
            fails = self._fails[rows]
            columns["tolerance"] = ["fail" if x else "pass" for x in fails]
        table = pd.DataFrame(columns, index=self._index(rows))
        if (d := self.decision) is not None:
            words.append(f"decision: {d.above} from {d.threshold:g} on, else {d.below}")
        return Chapter("Rows", [Table(table, self._caption(len(rows), *words))])

    def _of_values(self) -> Chapter:
        D = self._values.shape[1]
        columns = [*range(D)]
        words = []
        if D > _COLUMNS:  # those with the largest differences, then the largest values
            sizes = np.abs(self._values).mean(axis=0)
            errors = self._differences.max(axis=0)
            columns = np.sort(np.lexsort((-sizes, -errors))[:_COLUMNS]).tolist()
            words.append(f"{_COLUMNS} of {D} columns, the sum of the others")
        if self.exact is not None:
            words.append(f"{self.noun} ({self.other}, where they differ)")
        if self.tolerance is not None and self._fails.any():
            words.append("✗: beyond the tolerance")
        parts = [(self.result.features[j], [j]) for j in columns]
        if rest := [*{*range(D)} - {*columns}]:
            parts.append(("others", rest))
        rows = self._failing_first(max(CELLS_ON_PAGE // (len(parts) + 1), 1))
        caption = self._caption(len(rows), *words)
        cells = [[self._cell(n, at) for _, at in parts] for n in rows]
        widest = max(len(cell) for line in cells for cell in line)
        count = -(-len(parts) // min(max(_LINE // widest, 1), _PER_TABLE))
        names = pd.Index([name for name, _ in parts], name="feature")
        frame = pd.DataFrame(cells, index=self._index(rows), columns=names)
        tables = [
            Table(frame.iloc[:, few], "" if few[0] else caption)
            for few in np.array_split(range(len(parts)), count)
        ]
        return Chapter("Values", tables)

    def _cell(self, n: int, columns: list[int]) -> str:
        """A sum of values, the exact one if it differs, and a mark if it is far."""
        value = self._signed(self._values[n, columns])
        exact = self._signed(self._expected[n, columns])
        most = self._differences[n, columns].max()
        is_far = self.tolerance is not None and most > self.tolerance
        if exact == value and not is_far:
            return value
        cell = f"{value} ({exact}){' ✗' if is_far else ''}"
        return cell.replace(" ", "\N{NO-BREAK SPACE}")

    def _signed(self, values: Array) -> str:
        """A sum of values with its sign, in as many decimals as all others."""
        total = round(float(values.sum()), self._decimals)
        return minus(f"{total:+.{self._decimals}f}") if total else "0"

    @cached_property
    def _decimals(self) -> int:
        """Decimals that give the largest value three digits."""
        largest = largest_entry(self._values) or 1.0
        return max(2 - math.floor(math.log10(largest)), 0)

    def _failing_first(self, room: int) -> list[int]:
        """The rows that fit, in order: those of an audit that fail, then a sample."""
        rows: list[int] = RowSample.of(len(self.base), room).rows.tolist()
        if self.noun == "audited" and room < len(self.base):
            failing = np.flatnonzero(self._fails).tolist()
            rows = sorted([*dict.fromkeys([*failing, *rows])][:room])
        return rows

    def _caption(self, shown: int, *words: str) -> str:
        """The unit, the rows that are shown, and more."""
        sample = RowSample.of(len(self.base), shown)
        rows = sample.in_words()
        if not sample.is_whole:
            rows += "" if self.tolerance is None else ", including those that fail"
            rows += "; the CSV files have all"
        return " · ".join(filter(None, (self.unit, rows, *words)))

    def _index(self, rows: Sequence[int]) -> pd.Index[Any]:
        labels = self.result.labels
        return pd.Index([str(labels.row(n)) for n in rows], name="row")


# ---- The record and fields for signatures


def record_chapter(
    record: Record | None, arrays: Mapping[str, Array | None]
) -> Chapter:
    """A table with the date, versions, and digests of data and of given arrays."""
    lines: list[tuple[str, str]] = []
    if record is not None:
        lines += [("date", record.date), ("model", record.model)]
        lines += [*record.versions.items()]
        lines += [
            (f"digest: {name}", digest) for name, digest in record.digests.items()
        ]
    for name, array in arrays.items():
        if array is not None:
            lines.append((f"digest: {name}", digest_of_array(array)))
    table = pd.DataFrame([x for x in lines if x[1]], columns=["what", "which"])
    caption = "Digest: first twelve digits of a SHA-256 of bytes, numbers in float64."
    return Chapter("Record", [Table(table, caption)])


SIGNATURES: Final = Chapter(
    "Signatures", signatures=("For the analysis", "For its review")
)
"""Fields for the signatures of the analyst and the reviewer."""
