"""Cards: what is shown of a result, as plain data; laid out as HTML and as text.

A card says first what was found, then the numbers, then what is proved; settings are
folded. HTML is escaped and without scripts, and takes the colours of the page around
it, light or dark.
"""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias, final

from propopt.base.text import in_html, printable


N_FEATURES: Final = 10
"""Features on a card, the largest."""

N_PRINTED: Final = 5
"""Features that ``print`` shows."""

BAR_RAISES, BAR_LOWERS = "#cc6a1b", "#3b82c9"
"""Of bars: an orange and a blue with a contrast of 3 or more to white and to black."""

TEXT_CELL = 'style="text-align:left;padding:1px 10px"'
NUMBER_CELL = 'style="text-align:right;padding:1px 10px"'

_WIDE = 88  # characters of a line in a terminal

_QUIET, _APART = "opacity:.75", "margin-top:.6em"
_CELL = (
    "padding:2px 12px 2px 0;border:0;background:transparent;text-align:left;"
    "vertical-align:middle;overflow-wrap:break-word;max-width:14em"
)
_NUMBER = (
    f"{_CELL};text-align:right;white-space:nowrap;font-weight:600;"
    "font-variant-numeric:tabular-nums"
)
_FIGURE = (
    f"{_CELL};text-align:right;white-space:nowrap;font-variant-numeric:tabular-nums"
)
_HEAD = f"white-space:normal;font-weight:400;{_QUIET}"
_TABLE = "border-collapse:collapse;border:0;color:inherit;font-size:inherit"
_BAR = "position:absolute;top:0;height:100%;border-radius:2px"


StatementKind: TypeAlias = Literal[
    "proved", "checked", "estimated", "chosen", "not said"
]
"""What a sentence rests on."""


@final
@dataclass(frozen=True, kw_only=True)
class CardRow:
    """One line of a card: a name, a number, and what is to be said of it."""

    name: str
    value: float
    note: str = ""  # such as "raises in all rows"
    parts: tuple[float, float] | None = None  # of the bar; by default to the value
    interval: tuple[float, float] | None = None  # a line across the bar
    sign: Literal["+", "-"] = "+"  # of format(): a distance has no plus

    @property
    def reach(self) -> tuple[float, float]:
        """Both ends of the bar, the first at most zero and the second at least."""
        value = self.value if _finite(self.value) else 0.0
        return self.parts or (min(value, 0.0), max(value, 0.0))

    @property
    def said(self) -> str:
        """The note, with both ends of the bar where nothing is drawn."""
        low, high = self.reach
        ends = f"({low:+.3g} down, {high:+.3g} up)" if low and high else ""
        return " ".join(filter(None, [self.shown_note, ends]))

    @property
    def shown_note(self) -> str:
        """The note, or else the interval."""
        if self.note or self.interval is None or not _finite(*self.interval):
            return self.note
        return "{:+.3g} to {:+.3g}".format(*self.interval)

    @property
    def ends(self) -> tuple[float, float]:
        """What is drawn from where to where, the interval included."""
        low, high = self.reach
        if self.interval is None or not _finite(*self.interval):
            return low, high
        return min(low, self.interval[0]), max(high, self.interval[1])

    @property
    def number(self) -> str:
        """The value with its sign, in three digits; a dash where it is not known."""
        if not _finite(self.value):
            return "–"
        return f"{self.value:{self.sign}.3g}" if self.value else "0"


@final
@dataclass(frozen=True)
class CardTable:
    """A small table of texts: columns of words begin on a line, numbers end on one."""

    head: Sequence[str]
    rows: Sequence[Sequence[str]]

    @property
    def has_words(self) -> list[bool]:
        """The first column has names, and others words where no cell has a digit."""
        columns = list(zip(*self.rows, strict=True)) or [()] * len(self.head)
        return [
            place == 0 or not any(x == "–" or re.search(r"\d", x) for x in cells)
            for place, cells in enumerate(columns)
        ]

    def text(self) -> Iterator[str]:
        """Lines with columns below each other."""
        table = [[printable(cell) for cell in row] for row in (self.head, *self.rows)]
        wide = [max(map(len, column)) for column in zip(*table, strict=True)]
        sides = ["<" if words else ">" for words in self.has_words]
        for line in table:
            cells = zip(line, sides, wide, strict=True)
            yield "  ".join(["", *(f"{x:{side}{w}}" for x, side, w in cells)]).rstrip()

    def html(self) -> str:
        """Cells escaped; in the colours of the page."""
        _, *others = self.has_words
        styles = [f"{_CELL};max-width:26em"]
        styles += [_CELL if words else _FIGURE for words in others]
        heads = [f"{style};{_HEAD}" for style in styles]
        lines = [("th", heads, self.head), *(("td", styles, row) for row in self.rows)]
        return "".join(
            _row(
                *(
                    element(kind, style, in_html(cell))
                    for style, cell in zip(own, cells, strict=True)
                )
            )
            for kind, own, cells in lines
        )


@final
@dataclass(frozen=True, kw_only=True)
class Card:
    """What is shown of a result."""

    title: str  # what was found, of whom
    subtitle: str = ""  # in which unit
    rows: Sequence[CardRow] = ()  # the most important first
    table: CardTable | None = None
    rest: str = ""  # what is said of those that have no row
    lines: Sequence[str] = ()  # a sentence each
    proof: str = ""  # what is proved, and what is estimated; parts are set off by " · "
    # by line, or part of the proof, what it rests on where that is no check
    rests_on: Mapping[str, StatementKind] = field(default_factory=dict)
    settings: Mapping[str, str] = field(default_factory=dict)  # folded
    inside: str = ""  # HTML, escaped already, which stands before the proof

    def text(self) -> str:
        """Lines for a terminal, without settings."""
        names = [printable(row.name) for row in self.rows]
        wide = max(map(len, names), default=0)
        digits = max((len(row.number) for row in self.rows), default=0)
        lines = [
            f"  {name:<{wide}}  {row.number:>{digits}}  {printable(row.said)}".rstrip()
            for name, row in zip(names, self.rows, strict=True)
        ]
        if self.table is not None:
            lines += self.table.text()
        if self.rest:
            lines.append(printable(self.rest))
        for sentence in self.lines:
            whole = printable(sentence).replace(" %", "\N{NO-BREAK SPACE}%")
            wrapped = textwrap.wrap(
                whole, _WIDE, subsequent_indent="  ", break_on_hyphens=False
            )
            lines += [line.replace("\N{NO-BREAK SPACE}", " ") for line in wrapped]
        if self.proof:
            lines.append(printable(self.proof))
        head = filter(None, (self.title, self.subtitle))
        return "\n".join([*map(printable, head), *lines])

    def html(self) -> str:
        """For notebooks: it takes the colours of the page around it."""
        head = element("div", "font-weight:600;font-size:1.08em", in_html(self.title))
        parts = (
            f"{head}{_div(_QUIET, self.subtitle)}{self._table()}"
            f"{_div(_QUIET, self.rest)}"
            f"{''.join(_div(_APART, line) for line in self.lines)}{self.inside}"
            f"{_div(_APART, self.proof)}{self._folded()}"
        )
        return element("div", "max-width:46em;line-height:1.45;margin:.4em 0", parts)

    def _table(self) -> str:
        if not self.rows and self.table is None:
            return ""
        low = -min((row.ends[0] for row in self.rows), default=0.0)
        high = max((row.ends[1] for row in self.rows), default=0.0)
        rows = "".join(_row_html(row, low, high) for row in self.rows)
        rows += "" if self.table is None else self.table.html()
        table = element("table", f"{_TABLE};margin:.6em 0 0", rows)
        return element("div", "overflow-x:auto", table)  # on narrow screens

    def _folded(self) -> str:
        if not self.settings:
            return ""
        names = f"{_CELL};{_QUIET};vertical-align:top"
        rows = "".join(
            _row(element("td", names, in_html(x)), element("td", _CELL, in_html(text)))
            for x, text in self.settings.items()
        )
        label = element("summary", "cursor:pointer", "Settings and details")
        table = element("table", _TABLE, rows)
        return element("details", "margin-top:.4em", label + table)


def element(kind: str, style: str, inside: str) -> str:
    """An element of a page, of what is HTML already."""
    return f'<{kind} style="{style}">{inside}</{kind}>'


def _row(*cells: str) -> str:
    return element("tr", "background:transparent", "".join(cells))


def others_in_words(numbers: Iterable[float]) -> str:
    """A sentence on those that have no row."""
    sizes = [abs(float(number)) for number in numbers]
    known = [size for size in sizes if _finite(size)]
    if not known:
        return f"{len(sizes)} more, not known" if sizes else ""
    words = "1 other, " if len(sizes) == 1 else f"{len(sizes)} others, at most "
    return f"{words}{max(known):.3g} in size"


def _finite(*numbers: float) -> bool:
    return all(map(math.isfinite, numbers))


def _div(style: str, text: str) -> str:
    return element("div", style, in_html(text)) if text else ""


def _row_html(row: CardRow, low: float, high: float) -> str:
    """A name, a bar from ``-low`` to ``high``, a number, a note or the interval."""
    note, quiet = in_html(row.note), f"{_CELL};{_QUIET}"
    if not row.note:
        note = in_html(row.shown_note.replace("-", "−"))
        quiet += ";min-width:min(9.5em,24vw)"  # on one line, but on narrow pages
    return _row(
        element("td", _CELL, in_html(row.name)),
        element("td", _CELL, _bar_html(row, low, high)),
        element("td", _NUMBER, in_html(row.number.replace("-", "−"))),
        element("td", quiet, note),
    )


def _bar_html(row: CardRow, low: float, high: float) -> str:
    size = max(low, high) or 1.0  # so that no sum overflows
    whole = low / size + high / size or 1.0
    zero = 100.0 * (low / size) / whole
    below, above = (100.0 * (abs(end) / size) / whole for end in row.reach)
    parts = ((zero - below, below, BAR_LOWERS), (zero, above, BAR_RAISES))
    styles = [
        f"{_BAR};left:{left:.1f}%;width:{width:.1f}%;background:{colour}"
        for left, width, colour in parts
        if width > 0.0
    ]
    if row.interval is not None and _finite(*row.interval):
        start, end = (zero + 100.0 * (x / size) / whole for x in row.interval)
        styles.append(
            "position:absolute;top:44%;height:12%;min-height:1px;"
            f"background:currentColor;left:{start:.1f}%;width:{end - start:.1f}%"
        )
    styles.append(
        f"position:absolute;left:{zero:.1f}%;top:-15%;height:130%;"
        "border-left:1px solid currentColor;opacity:.5"
    )
    place = "position:relative;width:clamp(3em,16vw,14em);height:.85em"
    return element("div", place, "".join(element("span", x, "") for x in styles))


def note_rests_on(note: str) -> StatementKind:
    """What a note about the target, or about what is not known, rests on."""
    if "not " in note or "no " in note:
        return "not said"
    return "estimated" if "error" in note else "checked"
