"""What a result says to people, once: typed blocks, most important first.

A result makes one :class:`Document`; renderers make of it the text of a terminal, the
card of a notebook (:mod:`propopt.base.cards`), a page (:mod:`propopt.results.report`)
and pictures (:mod:`propopt.plots.blocks`).
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, Protocol, Self, TypeAlias, final, get_args

import numpy as np
import pandas as pd

from propopt.base.errors import InvalidInput
from propopt.base.text import plural


Basis: TypeAlias = Literal["proved", "checked", "estimated", "chosen", "not said"]
"""What a sentence rests on."""

BASES: Final[Mapping[Basis, str]] = {
    "proved": "Holds for certain, by a bound or an identity.",
    "checked": "Computed without draws, or compared with another way.",
    "estimated": "From samples, refits or a fit: others give other numbers.",
    "chosen": "By whoever asked, or by default: other choices give other numbers.",
    "not said": "What nobody should read into the rest.",
}
"""By basis what it means, as a page says it."""


# ---- Blocks


@final
@dataclass(frozen=True)
class Finding:
    """A sentence, and what it rests on; perhaps the answer to a question.

    Parameters
    ----------
    sentence : str
        Plain text of at most 25 words or so.
    basis : str
        One of ``BASES``.
    question, answer : str
        Of a sentence about a number or a word, which a page shows in large letters.

    Raises
    ------
    InvalidInput
        If there is no such basis.
    """

    sentence: str
    basis: Basis = "checked"
    question: str = ""
    answer: str = ""

    def __post_init__(self) -> None:
        if self.basis not in get_args(Basis):
            raise InvalidInput(
                f"basis: expected one of {get_args(Basis)}, got {self.basis!r}"
            )

    @property
    def text(self) -> str:
        """Question, answer and sentence on one line."""
        words = ": ".join(filter(None, (self.answer, self.sentence)))
        words = f"{words[:1].upper()}{words[1:]}" if self.question else words
        return f"{self.question} {words}".strip()


@final
@dataclass(frozen=True, kw_only=True)
class Bar:
    """A name, a number, and what is said of it."""

    name: str
    value: float
    note: str = ""  # such as "raises in all rows"
    parts: tuple[float, float] | None = None  # of the bar; by default to the value
    interval: tuple[float, float] | None = None  # a line across the bar
    sign: Literal["+", "-"] = "+"  # of format(): a distance has no plus

    @property
    def reach(self) -> tuple[float, float]:
        """Both ends of the bar, the first at most zero and the second at least."""
        value = self.value if math.isfinite(self.value) else 0.0
        return self.parts or (min(value, 0.0), max(value, 0.0))

    @property
    def line(self) -> tuple[float, float] | None:
        """The interval, where both of its ends are finite."""
        ends = self.interval
        return ends if ends is not None and all(map(math.isfinite, ends)) else None

    @property
    def note_or_interval(self) -> str:
        """The note, or else the interval."""
        if self.note or self.line is None:
            return self.note
        return "{:+.3g} to {:+.3g}".format(*self.line)

    @property
    def printed_note(self) -> str:
        """The note, with both ends of the bar where nothing is drawn."""
        low, high = self.reach
        ends = f"({low:+.3g} down, {high:+.3g} up)" if low and high else ""
        return " ".join(filter(None, [self.note_or_interval, ends]))

    @property
    def number(self) -> str:
        """The value with its sign, in three digits; a dash where it is not known."""
        if not math.isfinite(self.value):
            return "–"
        return f"{self.value:{self.sign}.3g}" if self.value else "0"


@final
@dataclass(frozen=True)
class Bars:
    """Numbers as bars, the largest first; of those without a bar the sizes.

    Parameters
    ----------
    rows : sequence of Bar
        As many as a page has room for; renderers show the first of them.
    caption : str
        What the numbers are of, and in which unit.
    others : sequence of float
        The numbers that have no row, of which the count and the largest are said.
    rest : str
        What else is said of them.
    """

    rows: Sequence[Bar]
    caption: str = ""
    others: Sequence[float] = ()
    rest: str = ""

    def first(self, count: int) -> Bars:
        """The first rows; the values of the others count among the others."""
        rest = [row.value for row in self.rows[count:]]
        return Bars(self.rows[:count], self.caption, [*rest, *self.others], self.rest)

    @property
    def others_in_words(self) -> str:
        """How many numbers have no row, and how large they are at most."""
        sizes = [abs(float(number)) for number in self.others]
        known = [size for size in sizes if math.isfinite(size)]
        text = f"{len(sizes)} more, not known" if sizes else ""
        if known:
            start = "1 other, " if len(sizes) == 1 else f"{len(sizes)} others, at most "
            text = f"{start}{max(known):.3g} in size"
        return "; ".join(filter(None, [text, self.rest]))

    @property
    def has_directions(self) -> bool:
        """Whether bars go to both sides, so that a legend has to say what that is."""
        return any(row.sign == "+" or row.parts is not None for row in self.rows)

    def spans(self, row: Bar) -> Iterator[tuple[str, float, float]]:
        """What is drawn of a row: kind, left end and width in per cent of the room.

        Kinds are ``lowers``, ``raises``, ``range`` and ``zero``, which has no width.
        """
        ends = [end for one in self.rows for end in (*one.reach, *(one.line or ()))]
        low, high = -min(ends, default=0.0), max(ends, default=0.0)
        size = max(low, high) or 1.0  # so that no sum overflows
        whole = low / size + high / size or 1.0
        zero = 100.0 * (low / size) / whole
        below, above = (100.0 * (abs(end) / size) / whole for end in row.reach)
        if below > 0.0:
            yield "lowers", zero - below, below
        if above > 0.0:
            yield "raises", zero, above
        if row.line is not None:
            start, end = (zero + 100.0 * (x / size) / whole for x in row.line)
            yield "range", start, end - start
        yield "zero", zero, 0.0


@final
@dataclass(frozen=True, eq=False)
class Table:
    """A table, whose columns of numbers have as many decimals as they need.

    Parameters
    ----------
    frame : DataFrame
        Its index is the first column, unless it only counts.
    caption : str
        What it is of, and in which unit.
    rest : str
        What is said of lines that have no room.
    """

    frame: pd.DataFrame
    caption: str = ""
    rest: str = ""

    @classmethod
    def of(
        cls, head: Sequence[str], rows: Sequence[Sequence[object]], rest: str = ""
    ) -> Self:
        """A table of cells that are words already."""
        return cls(pd.DataFrame([*map(list, rows)], columns=[*head]), rest=rest)

    def columns(self) -> Iterator[tuple[str, list[str], bool]]:
        """Each column: its name, its cells, and whether these are words."""
        frame = self.frame
        if not isinstance(frame.index, pd.RangeIndex):
            name = "" if frame.index.name is None else str(frame.index.name)
            yield name, [*map(cell_text, frame.index)], True
        for place in range(frame.shape[1]):
            cells = column_texts(frame.iloc[:, place])
            yield str(frame.columns[place]), cells, any(map(_WORDS.search, cells))

    def first(self, count: int) -> Table:
        """The first lines, and how many there are."""
        rest = f"{len(self.frame) - count:,} more lines"
        if len(self.frame) <= count:
            return self
        return Table(self.frame.iloc[:count], self.caption, self.rest or rest)


@final
@dataclass(frozen=True)
class Markup:
    """HTML that is escaped already, and the text that a terminal shows for it."""

    html: str
    text: str = ""


class PageBlock(Protocol):
    """A block that only a page can draw: elsewhere its table stands for it."""

    def as_table(self) -> Table:
        """What other renderers show of it."""
        ...


Block: TypeAlias = Finding | Bars | Table | Markup | PageBlock


# ---- Documents


@dataclass(frozen=True)
class Chapter:
    """A part of a page, with a title of its own."""

    title: str
    blocks: Sequence[Block] = ()
    lead: str = ""  # what is shown here, before all else
    signatures: Sequence[str] = ()  # for what people sign, at the end of the page


@final
@dataclass(frozen=True, kw_only=True)
class Document:
    """What a result says: what was found, how far to trust it, how it was made.

    Parameters
    ----------
    title : str
        What was found, of whom.
    subtitle : str
        Of what the numbers are, and in which unit.
    blocks : sequence of Block
        What was found, most important first.
    trust : sequence of Finding
        What is proved and what is estimated; a terminal has them on one line.
    settings : mapping
        How it was made, by name; folded.
    chapters : callable
        Makes the chapters that only a page has, when a page is made.
    names : collection
        Names of columns and rules, in which words of the glossary mean nothing.
    """

    title: str
    subtitle: str = ""
    blocks: Sequence[Block] = ()
    trust: Sequence[Finding] = ()
    settings: Mapping[str, str] = field(default_factory=dict)
    chapters: Callable[[], Sequence[Chapter]] = tuple
    names: Collection[Hashable] = ()

    @property
    def findings(self) -> list[Finding]:
        """Its sentences on what was found."""
        return [block for block in self.blocks if isinstance(block, Finding)]


def basis_of_note(note: str) -> Basis:
    """What a note about the target, or about what is not known, rests on."""
    if "not " in note or "no " in note:
        return "not said"
    return "estimated" if "error" in note else "checked"


# ---- Cells


_WORDS: Final = re.compile(r"[^\W\d_]{2}")
"""Two letters: no number has them, with its unit in per cent."""

_MINUS: Final = re.compile(r"(?<![^\W_])-(?=\d|\.\d|inf)|(?<=\de)-(?=\d)")

_ALIGNED: Final = 100.0
"""Columns whose numbers differ by a larger factor have four digits in each cell."""


def minus(text: str) -> str:
    """Numbers in it with a minus of their own; words keep their hyphens."""
    return _MINUS.sub("−", text)


def cell_text(value: Any) -> str:
    """A cell: four digits of a number, nothing of what is missing."""
    if value is None or value is pd.NA or value != value:  # NaN
        return ""
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    if isinstance(value, float | np.floating):
        return minus(f"{float(f'{value:.4g}'):.10g}")
    return str(value).replace(" %", "\N{NO-BREAK SPACE}%")


def column_texts(column: pd.Series[Any]) -> list[str]:
    """Cells of a column; numbers of one size have as many decimals as each other."""
    sizes = np.abs(column.to_numpy(float)) if column.dtype.kind == "f" else np.zeros(0)
    sizes = sizes[np.isfinite(sizes) & (sizes > 0.0)]
    if not sizes.size or sizes.max() > _ALIGNED * sizes.min():
        return [*map(cell_text, column)]
    decimals = 3 - math.floor(math.log10(sizes.max()))
    if not 0 <= decimals <= 6 or not (sizes % 1.0).any():
        return [*map(cell_text, column)]
    return [
        minus(f"{x:.{decimals}f}") if math.isfinite(x) else cell_text(x) for x in column
    ]


def sentence(text: str) -> str:
    """Words that begin with a capital and end with a full stop, as sentences do."""
    if not text or text.endswith((".", "?")):  # it may begin with a name
        return text
    return f"{text[:1].upper()}{text[1:]}."


CELLS_ON_PAGE: Final = 12_000
"""The cells of one table that a page has room for; the CSV file has all."""


def rows_on_page(table: pd.DataFrame) -> int:
    """How many rows of a table a page has room for."""
    return max(CELLS_ON_PAGE // max(table.shape[1] + 1, 1), 1)


def table_chapter(title: str, table: pd.DataFrame, caption: str = "") -> Chapter:
    """All rows of a table, or as many as there is room for."""
    room = rows_on_page(table)
    rest = f"The first {room:,} of {plural(len(table), 'row')}; the CSV file has all."
    words = [caption, rest if len(table) > room else ""]
    text = " ".join(filter(None, words)) or "All numbers."
    return Chapter(title, [Table(table.iloc[:room], text)])
