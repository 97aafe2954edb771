"""Chapters for somebody who signs: the record, every row, every value, a tolerance.

What values are compared with is None where exact values are not known.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, Literal, final

import numpy as np
import pandas as pd

from propopt.base.arrays import Array, Mask
from propopt.base.document import (
    CELLS_ON_PAGE,
    Chapter,
    Finding,
    Table,
    minus,
    sentence,
)
from propopt.base.text import plural
from propopt.proofs.optimum import Optimum
from propopt.results.record import Decision, Record, digest_of_array


_DUST: Final = 1e-9
"""Of the largest value: a smaller difference is rounding, and shown as 0."""

_COLUMNS: Final = 10
"""Columns of a table; of wider ones each row has its largest values, line by line."""


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class ReviewSheet:
    """Numbers of all rows beside the exact ones, and what somebody sets for them."""

    result: Optimum
    noun: Literal["audited", "optimized"]
    unit: str  # such as "in log-odds"
    exact: Array | None  # (N, D)
    other: Literal["exact", "sampled"] = "exact"  # what these are
    base: Array  # (N,)
    prediction: Array  # (N,)
    tolerance: float | None = None
    decision: Decision | None = None

    @cached_property
    def _values(self) -> Array:
        return np.asarray(self.result.attributions)

    @cached_property
    def _apart(self) -> Array | None:
        """|w − exact|, (N, D); rounding is 0."""
        if self.exact is None:
            return None
        apart = np.abs(self._values - self.exact)
        return np.where(apart > self._dust, apart, 0.0)

    @cached_property
    def _missed(self) -> Array:
        """Σ w − (prediction − base), (N,); rounding is 0."""
        missed = self._values.sum(axis=1) - (self.prediction - self.base)
        return np.where(np.abs(missed) > self._dust, missed, 0.0)

    @cached_property
    def _dust(self) -> float:
        sizes = [np.abs(self._values).max(), np.abs(self.prediction).max()]
        return _DUST * float(max(sizes))

    @cached_property
    def _fails(self) -> Mask:
        """Which rows do not keep the tolerance, (N,)."""
        wrong = np.abs(self._missed) > (self.tolerance or 0.0)
        if self._apart is not None:
            wrong |= (self._apart > (self.tolerance or 0.0)).any(axis=1)
        return np.asarray(wrong)

    # ---- the verdict

    def verdict(self) -> Iterator[Finding]:
        """Whether all numbers keep the tolerance, where one is set."""
        if self.tolerance is None:
            return
        wrong, N = int(self._fails.sum()), len(self._fails)
        words = f"{plural(wrong, 'row')} of {N:,} {'fails' if wrong == 1 else 'fail'}."
        if not wrong:
            words = f"All {plural(N, 'row')} pass."
        asked = f"Within the tolerance of {self.tolerance:g}?"
        yield Finding(words, "checked", asked, "fail" if wrong else "pass")

    def _findings(self) -> Iterator[Finding]:
        """How far numbers are from exact ones and sums from predictions."""
        if self._apart is None:
            yield Finding(
                "Exact values are not known: only the sums are checked.", "not said"
            )
        else:
            apart = self._apart
            n, j = np.unravel_index(int(apart.argmax()), apart.shape)
            yield Finding(
                f"The largest difference from {self._kind} value is "
                f"{apart[n, j]:.3g}, in row {self._row(int(n))}, {self._names[int(j)]}."
                if apart.any()
                else f"All {apart.size:,} values equal the {self.other} ones up to "
                "rounding.",
                "checked",
            )
        if self.tolerance is not None:
            yield Finding(
                f"The tolerance is {self.tolerance:g}, {self.unit}, for each value and "
                "for each sum of a row.",
                "chosen",
            )
        if self.decision is not None:
            d = self.decision
            yield Finding(
                f"The decision is “{d.above}” where the prediction is {d.threshold:g} "
                f"or more, and “{d.below}” elsewhere.",
                "chosen",
            )

    # ---- tables

    def chapters(self) -> Iterator[Chapter]:
        """Every row with its sum, then every value with the exact one."""
        yield self._of_rows()
        yield self._of_values()

    def _of_rows(self) -> Chapter:
        names, columns = self._names, dict[str, Sequence[Any]]()
        columns["base"] = [*map(float, self.base)]
        columns["prediction"] = [*map(float, self.prediction)]
        if self.decision is not None:
            columns["decision"] = [*map(self.decision.of, self.prediction.tolist())]
        columns["sum of values"] = [*map(float, self._values.sum(axis=1))]
        columns["misses the prediction by"] = [*map(float, self._missed)]
        if self._apart is not None:
            places = self._apart.argmax(axis=1).tolist()
            most = self._apart.max(axis=1)
            columns[f"largest difference from {self.other}"] = [*map(float, most)]
            columns["in column"] = [
                str(names[j]) if x else "" for j, x in zip(places, most, strict=True)
            ]
        if self.tolerance is not None:
            columns["tolerance"] = ["fail" if x else "pass" for x in self._fails]
        table = pd.DataFrame(columns, index=self._index([*range(len(self.base))]))
        room = CELLS_ON_PAGE // (table.shape[1] + 1)
        kept = self._failing_first(room)
        caption = f"{sentence(self.unit)} {self._rest(len(kept))}"
        shown = Table(table.iloc[kept], caption)
        return Chapter("Row by row", [*self._findings(), shown])

    def _of_values(self) -> Chapter:
        D = self._values.shape[1]
        is_wide = D <= _COLUMNS
        cells = D + 1 if is_wide else 6 * (_COLUMNS + 1)
        kept = self._failing_first(max(CELLS_ON_PAGE // cells, 1))
        told = f"{sentence(self.unit)} {self._rest(len(kept))}"
        if is_wide:
            names = [str(name) for name in self._names]
            lines = [[self._cell(n, j) for j in range(D)] for n in kept]
            table = pd.DataFrame(lines, index=self._index(kept), columns=names)
            if self.exact is not None:
                told += f" Each cell has the {self.noun} value, then the {self.other} "
                told += "one."
                if self.tolerance is not None and self._fails.any():
                    told += " ✗ marks a difference beyond the tolerance."
        else:
            table = pd.DataFrame([line for n in kept for line in self._lines(n)])
            table = table.set_index("row")
            told += f" Each row has its {_COLUMNS} largest values."
        title = f"Every {self.noun} value compared with the {self.other} one"
        if self.exact is None:
            title = "Every value"
        return Chapter(title, [Table(table, told)])

    def _cell(self, n: int, j: int) -> str:
        """A value, the exact one, and whether they are too far apart."""
        own = _signed(float(self._values[n, j]))
        if self.exact is None or self._apart is None:
            return own
        is_far = self.tolerance is not None and self._apart[n, j] > self.tolerance
        mark = " ✗" if is_far else ""
        return f"{own}\N{NO-BREAK SPACE}/ {_signed(float(self.exact[n, j]))}{mark}"

    def _lines(self, n: int) -> Iterator[dict[str, Any]]:
        """The largest values of a row, a line each, and what is left of the others."""
        own = self._values[n]
        exact = None if self.exact is None else self.exact[n]
        size = np.abs(own) if exact is None else np.maximum(np.abs(own), np.abs(exact))
        order = np.argsort(-size, kind="stable")
        for j in order[:_COLUMNS].tolist():
            value = minus(self.result.value_of(n, j))
            yield self._line(n, str(self._names[j]), value, [j])
        if rest := order[_COLUMNS:].tolist():
            yield self._line(n, f"{plural(len(rest), 'other')}, their sum", "", rest)

    def _line(self, n: int, name: str, value: str, at: list[int]) -> dict[str, Any]:
        line: dict[str, Any] = {"row": self._row(n), "column": name, "value": value}
        line[self.noun] = _signed(float(self._values[n, at].sum()))
        if self.exact is not None and self._apart is not None:
            most = float(self._apart[n, at].max())
            line[self.other] = _signed(float(self.exact[n, at].sum()))
            line["difference"] = f"{most:.3g}" if most else "0"
            if self.tolerance is not None:
                line["tolerance"] = "fail" if most > self.tolerance else "pass"
        return line

    def _failing_first(self, room: int) -> list[int]:
        """As many rows as there is room for, in order; rows that fail have priority."""
        N = len(self.base)
        if room >= N:
            return [*range(N)]
        order = np.argsort(~self._fails, kind="stable")[:room]
        return sorted(order.tolist())

    def _rest(self, shown: int) -> str:
        N = len(self.base)
        if shown == N:
            return f"All {plural(N, 'row')}."
        which = "" if self.tolerance is None else ", including those that fail"
        return f"{shown:,} of {N:,} rows{which}; the CSV files have all."

    @property
    def _kind(self) -> str:
        return f"{'an' if self.other == 'exact' else 'a'} {self.other}"

    @property
    def _names(self) -> Sequence[Any]:
        names: Sequence[Any] = self.result.labels.feature_names(self._values.shape[1])
        return names

    def _row(self, n: int) -> str:
        return str(self.result.labels.row(n))

    def _index(self, rows: Sequence[int]) -> pd.Index[Any]:
        return pd.Index([*map(self._row, rows)], name="row")


def _signed(value: float) -> str:
    """A contribution in four digits with its sign."""
    return minus(f"{float(f'{value:.4g}'):+.10g}") if value else "0"


# ---- The record, and space to sign


def record_chapter(
    record: Record | None, arrays: Mapping[str, Array | None]
) -> Chapter:
    """Date, versions and digests; those of arrays are computed from what is shown."""
    lines: list[tuple[str, str]] = []
    if record is not None:
        lines += [("date", record.date), ("model", record.model)]
        lines += [*record.versions.items()]
        lines += [(f"digest: {name}", told) for name, told in record.digests.items()]
    for name, array in arrays.items():
        if array is not None:
            lines.append((f"digest: {name}", digest_of_array(array)))
    table = pd.DataFrame([x for x in lines if x[1]], columns=["what", "which"])
    caption = (
        "Versions, and digests: the first twelve digits of a SHA-256 of these bytes, "
        "numbers in float64."
    )
    return Chapter("What was examined", [Table(table, caption)])


SIGNATURES: Final = Chapter(
    "Signatures", signatures=("For the analysis", "For its review")
)
"""Where two people sign: who did it, and who checked it."""
