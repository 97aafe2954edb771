"""Documents: the statements of a result as typed blocks, most important first.

Each result makes one :class:`Document`. Renderers turn it into text for a terminal, a
card for a notebook (:mod:`propopt.base.cards`) and a page
(:mod:`propopt.results.report`).
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import cached_property
from typing import (
    Any,
    Final,
    NamedTuple,
    Protocol,
    Self,
    TypeAlias,
    final,
)

import numpy as np
import pandas as pd

from propopt.base.errors import InvalidInput
from propopt.base.text import Quantity, plural, value_in_words
from propopt.base.vocabulary import TERMS, Basis


# ---- Blocks


@final
@dataclass(frozen=True)
class Fact:
    """A labelled number with its unit and its basis.

    Parameters
    ----------
    label : str
        A label of the vocabulary, which defines it.
    value : float, int, bool, str or None
        The number, or a text of few words; None if it is unknown.
    unit : str
        The unit; ``"%"`` shows a share as a percentage.
    basis : str, optional
        By default that of the label.
    note : str
        A few words in parentheses, such as the worst row.

    Raises
    ------
    InvalidInput
        If the vocabulary does not have the label.

    Examples
    --------
    >>> fact = Fact("clear signs", 0.534, "%", note="small change 1.88")
    >>> fact.label, fact.text
    ('clear signs', '53% (small change 1.88)')
    """

    label: str
    value: float | str | None
    unit: str = ""
    basis: Basis | None = None
    note: str = ""

    def __post_init__(self) -> None:
        if self.label not in TERMS:
            raise InvalidInput(
                f"label: {self.label!r} has no definition in the vocabulary"
            )

    @property
    def number(self) -> str:
        """The value as text: counts whole, other numbers in three digits."""
        return number_text(self.value, self.unit)

    @property
    def shown_basis(self) -> str:
        """The basis, unless the number is computed or unknown."""
        basis = self.basis or TERMS[self.label].basis
        return "" if basis == "computed" or self.value is None else basis

    @property
    def remark(self) -> str:
        """Basis and note."""
        return ", ".join(filter(None, (self.shown_basis, minus(self.note))))

    @property
    def text(self) -> str:
        """The number, with basis and note in parentheses."""
        return f"{self.number} ({self.remark})" if self.remark else self.number


Facts: TypeAlias = tuple[Fact, ...]
"""Labelled numbers, in the order of a card."""


class Span(NamedTuple):
    """The bar of a cell: from low (at most 0) to high, perhaps with an interval."""

    low: float
    high: float
    line: tuple[float, float] | None = None

    @classmethod
    def of(cls, value: float, line: tuple[float, float] | None = None) -> Span:
        """From 0 to a value; an interval without finite ends is not drawn."""
        size = value if math.isfinite(value) else 0.0
        ends = line if line is not None and all(map(math.isfinite, line)) else None
        return cls(min(size, 0.0), max(size, 0.0), ends)


@final
@dataclass(frozen=True, eq=False)
class Table:
    """A table with a caption, and aligned decimals in columns of numbers.

    Parameters
    ----------
    frame : DataFrame
        The cells. The index is the first column, unless it is a range. Columns of the
        name "feature" are features, and others may be labels of the vocabulary.
    caption : str
        What the table shows, with its unit.
    rest : str
        A remark on rows that are not shown.
    total : int, optional
        The number of rows of the whole table, of which ``frame`` has the largest, the
        largest first. Cards show few of them.
    bars : mapping
        For the names of some columns, the bar of each cell, on one scale.
    """

    frame: pd.DataFrame
    caption: str = ""
    rest: str = ""
    total: int | None = None
    bars: Mapping[str, Sequence[Span]] = field(default_factory=dict)

    @classmethod
    def of(
        cls, head: Sequence[str], rows: Sequence[Sequence[object]], rest: str = ""
    ) -> Self:
        """A table of cells that are strings."""
        return cls(pd.DataFrame([*map(list, rows)], columns=[*head]), rest=rest)

    def columns(self) -> Iterator[tuple[str, list[str], bool]]:
        """The name and cells of each column, and whether the cells are words."""
        frame = self.frame
        if not isinstance(frame.index, pd.RangeIndex):
            name = "" if frame.index.name is None else str(frame.index.name)
            yield name, [*map(cell_text, frame.index)], True
        for index in range(frame.shape[1]):
            cells = column_texts(frame.iloc[:, index])
            is_words = any(map(_WORDS.search, cells))
            shown = cells if is_words else [*map(minus, cells)]
            yield str(frame.columns[index]), shown, is_words

    @property
    def names_features(self) -> bool:
        """Whether the heads are names of features, which no label defines."""
        return self.frame.columns.name == "feature"

    def first(self, count: int) -> Table:
        """The first rows, with a remark on the number of the other rows."""
        total = len(self.frame) if self.total is None else self.total
        if total <= count:
            return self
        rest = f"{total - min(count, len(self.frame)):,} more"
        cut = self.frame.iloc[:count]
        return replace(self, frame=cut, rest=self.rest or rest)

    @cached_property
    def _reach(self) -> tuple[float, float]:
        """How far all bars reach below zero, and above."""
        every = [x for bars in self.bars.values() for x in bars]
        ends = [end for x in every for end in (x.low, x.high, *(x.line or ()))]
        return -min(ends, default=0.0), max(ends, default=0.0)

    def spans(self, column: str, n: int) -> Iterator[tuple[str, float, float]]:
        """The parts of a drawn bar: kind, left end, and width in per cent of the cell.

        Kinds are ``lowers``, ``raises``, ``range`` and ``zero`` (without width). All
        bars of the table, shown or not, have one scale.
        """
        if column not in self.bars:
            return
        low, high = self._reach
        size = max(low, high) or 1.0  # avoids overflow of sums
        whole = low / size + high / size or 1.0
        zero = 100.0 * (low / size) / whole
        bar = self.bars[column][n]
        below, above = (100.0 * (abs(end) / size) / whole for end in bar[:2])
        if below > 0.0:
            yield "lowers", zero - below, below
        if above > 0.0:
            yield "raises", zero, above
        if bar.line is not None:
            start, end = (zero + 100.0 * (x / size) / whole for x in bar.line)
            yield "range", start, end - start
        yield "zero", zero, 0.0


@final
@dataclass(frozen=True)
class Markup:
    """Escaped HTML, with a text for the terminal."""

    html: str
    text: str = ""


class PageBlock(Protocol):
    """A block that only pages can draw; other renderers show its table."""

    def as_table(self) -> Table:
        """The table that other renderers show."""
        ...


Block: TypeAlias = Facts | Table | Markup | PageBlock


# ---- Documents


@dataclass(frozen=True)
class Chapter:
    """A part of a page with a title."""

    title: str
    blocks: Sequence[Block] = ()
    lead: str = ""  # an introduction below the title
    signatures: Sequence[str] = ()  # titles of signature fields at the end of the page


@final
@dataclass(frozen=True, kw_only=True)
class Document:
    """All that a card and a page show of a result.

    Parameters
    ----------
    title : str
        The kind of result and the output.
    subtitle : str
        Model, size and unit.
    dangers : sequence of str
        At most two sentences, only where numbers mislead: what is wrong, and what to
        do next.
    blocks : sequence of Block
        A table, the largest rows first, then facts.
    settings : mapping
        Settings by name, in a folded list.
    chapters : callable
        A function that makes the chapters of a page.
    """

    title: str
    subtitle: str = ""
    dangers: Sequence[str] = ()
    blocks: Sequence[Block] = ()
    settings: Mapping[str, str] = field(default_factory=dict)
    chapters: Callable[[], Sequence[Chapter]] = tuple

    def __post_init__(self) -> None:
        if len(self.dangers) > MOST_SENTENCES:
            raise InvalidInput(
                f"dangers: expected at most {MOST_SENTENCES} sentences, got "
                f"{len(self.dangers)}"
            )

    @property
    def facts(self) -> dict[str, Fact]:
        """The facts of the blocks, by their labels."""
        lists = (x for x in self.blocks if isinstance(x, tuple))
        return {fact.label: fact for facts in lists for fact in facts}


MOST_SENTENCES: Final = 2
"""The most sentences of a card."""


def title_of(kind: str, quantity: Quantity | None) -> str:
    """The title of a card, such as "Explanation · log-odds of churn"."""
    return kind if quantity is None else f"{kind} · {quantity.in_words()}"


def subtitle_of(quantity: Quantity | None, *parts: str) -> str:
    """Model, size and unit; a model in the title is not named again."""
    words = "" if quantity is None else quantity.in_words()
    model = "" if quantity is None or quantity.model in words else quantity.model
    return " · ".join(filter(None, (model, *parts)))


def shape_text(n_rows: int, n_columns: int, column: str = "feature") -> str:
    """A size such as "120 rows × 10 features"."""
    return f"{plural(n_rows, 'row')} × {plural(n_columns, column)}"


# ---- Cells


_WORDS: Final = re.compile(r"[^\W\d_]{2}")
"""Two letters, which numbers and percentages do not contain."""

_MINUS: Final = re.compile(r"(?<![^\W_])-(?=\d|\.\d|inf)|(?<=\de)-(?=\d)")

_ALIGNED: Final = 100.0
"""If numbers of a column differ by a larger factor, each cell has three digits."""


def minus(text: str) -> str:
    """Replace the hyphens of negative numbers by minus signs."""
    return _MINUS.sub("−", text)


def share_text(share: float) -> str:
    """A share in two digits: "0.53%", "34%", "−3%"; only all of it is "100%"."""
    if not math.isfinite(share):
        return ""
    number = 100.0 * abs(share)
    text = f"{number:.0f}"
    if number < _ROUNDING:
        return "0%"
    if number < 99.5:
        text = f"{Decimal(f'{number:.2g}'):f}"
    elif number < 100.0 - 1e-9:
        text = f"{math.floor(10.0 * number) / 10.0:g}"
    return f"−{text}%" if share < 0.0 else f"{text}%"


def share_cell(share: float) -> str:
    """A share in whole per cent, for columns: "34%", "<1%"; only all are "100%"."""
    if not 0.0 < share < 1.0:
        return share_text(share)
    whole = round(100.0 * share)
    return "<1%" if not whole else ">99%" if whole == 100 else f"{whole}%"


def signed_text(number: float) -> str:
    """A number with its sign in three digits: "+49.1", "−0.6", "0"."""
    return minus(f"{number:+.3g}") if abs(number) >= _ROUNDING else "0"


def interval_text(ends: Sequence[float]) -> str:
    """An interval such as "−0.66 to +3.52"; empty if an end is unknown."""
    return " to ".join(map(signed_text, ends)) if np.isfinite(ends).all() else ""


def number_text(value: float | str | None, unit: str = "") -> str:
    """A value with its unit: counts whole, other numbers in three digits."""
    if value is None or value != value:
        return "unknown"
    if unit.startswith("%") and not isinstance(value, str):
        return f"{share_text(value)}{unit[1:]}"
    is_count = isinstance(value, int) and not isinstance(value, bool)
    text = f"{value:,}" if is_count else cell_text(value)
    return f"{minus(text)} {unit}".rstrip()


def cell_text(value: Any) -> str:
    """The text of a cell: numbers in three digits, missing ones empty."""
    if isinstance(value, str):
        return value
    if value is None or value is pd.NA or value != value:  # NaN
        return ""
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    if isinstance(value, float | np.floating):
        size = abs(float(value))
        if size < _ROUNDING:
            return "0"
        return minus(f"{value:.0f}" if 1e3 <= size < 1e16 else f"{value:.3g}")
    if isinstance(value, int | np.integer):
        return minus(str(value))
    return value_in_words(value)


_ROUNDING: Final = 1e-12
"""Numbers below this are rounding."""


def column_texts(column: pd.Series[Any]) -> list[str]:
    """The texts of a column; numbers of similar size have the same decimals."""
    sizes = np.abs(column.to_numpy(float)) if column.dtype.kind == "f" else np.zeros(0)
    sizes = sizes[np.isfinite(sizes) & (sizes > 0.0)]
    if not sizes.size or sizes.max() > _ALIGNED * sizes.min():
        return [*map(cell_text, column)]
    decimals = 2 - math.floor(math.log10(sizes.max()))
    if not 0 <= decimals <= 6 or not (sizes % 1.0).any():
        return [*map(cell_text, column)]
    return [
        minus(f"{x:.{decimals}f}") if math.isfinite(x) else cell_text(x) for x in column
    ]


CELLS_ON_PAGE: Final = 12_000
"""The most cells of one table on a page; CSV files have all."""


def rows_on_page(n_columns: int) -> int:
    """The number of rows of a table that fit on a page."""
    return max(CELLS_ON_PAGE // max(n_columns + 1, 1), 1)


def table_chapter(title: str, table: pd.DataFrame, caption: str = "") -> Chapter:
    """A chapter with a table, cut to the rows that fit on a page."""
    room = rows_on_page(table.shape[1])
    rest = f"The first {room:,} of {plural(len(table), 'row')}; the CSV file has all."
    words = [caption, rest if len(table) > room else ""]
    return Chapter(title, [Table(table.iloc[:room], " ".join(filter(None, words)))])
