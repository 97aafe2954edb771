"""Chapters of a report: what is said, with what it rests on, a table, a picture.

A result says what its chapters are. The first has its name and what is found in short.
Each sentence has a kind, and stands on the page once: in its chapter with a badge, or
in a list at the end.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final, final

import numpy as np
import pandas as pd

from propopt.base.cards import Card, CardRow
from propopt.base.cards import StatementKind as StatementKind
from propopt.base.errors import InvalidInput
from propopt.base.text import in_html, percent


# ---- Sentences, each with what it rests on


KINDS: Final[Mapping[StatementKind, str]] = {
    "proved": "Holds for certain, by a bound or an identity.",
    "checked": "Computed without draws, or compared with another way.",
    "estimated": "From samples, refits or a fit: others give other numbers.",
    "chosen": "By whoever asked, or by default: other choices give other numbers.",
    "not said": "What nobody should read into the rest.",
}
"""By kind what it means, as a page says it."""


@final
@dataclass(frozen=True)
class Statement:
    """A sentence, and what it rests on."""

    text: str  # plain text, of at most twenty words or so
    kind: StatementKind

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise InvalidInput(f"kind: expected one of {(*KINDS,)}, got {self.kind!r}")


@final
@dataclass(frozen=True)
class Headline:
    """A question, the number or word that answers it, and a sentence about that."""

    question: str
    answer: str
    text: str = ""
    kind: StatementKind | None = None  # what the text rests on


# ---- Chapters: what a page is made of


@dataclass(frozen=True, kw_only=True, eq=False)
class Chapter:
    """A title, sentences, a table and a picture; whatever of these there is."""

    title: str
    lead: str = ""  # what is shown here, before all else
    statements: Sequence[Statement] = ()  # chosen ones only at the end of the page
    headlines: Sequence[Headline] = ()
    table: pd.DataFrame | None = None  # its index has names of rows, unless it counts
    caption: str = ""  # of the table: what it is of, and in which unit
    # inline SVG, or HTML, escaped already; with a title that says what is seen
    picture: str | None = None
    # names of columns and of rules, in which our words do not mean what they mean
    no_words: Collection[Hashable] = ()
    # for what people sign; such a chapter stands at the end of the page
    signatures: Sequence[str] = ()

    can_be_explored: ClassVar[bool] = False
    """Whether rows are chosen in it, by the script of the page."""

    @property
    def head(self) -> list[str]:
        """Names of the columns of the table as they are shown."""
        assert self.table is not None, "only tables have columns"
        name = self.table.index.name
        own = [] if self._counts else ["" if name is None else str(name)]
        return [*own, *map(str, self.table.columns)]

    def rows(self) -> Iterator[list[str]]:
        """Cells of the table as they are shown, the name of the row first."""
        assert self.table is not None, "only tables have rows"
        columns = [self.table.iloc[:, j] for j in range(self.table.shape[1])]
        for place, name in enumerate(self.table.index):
            own = [] if self._counts else [cell_text(name)]
            yield [*own, *(cell_text(column.iloc[place]) for column in columns)]

    @property
    def are_words(self) -> list[bool]:
        """Which columns hold words, as they are shown: these begin on one line."""
        cells = zip(*self.rows(), strict=True)
        known = [any(map(_WORDS.search, column)) for column in cells]
        return known or [False] * len(self.head)

    @property
    def _counts(self) -> bool:
        return self.table is None or isinstance(self.table.index, pd.RangeIndex)

    @property
    def in_place(self) -> list[Statement]:
        """Its sentences that stand in it; all others stand at the end of the page."""
        if self.headlines:
            return []
        bare = self.table is None and not self.picture and not self.lead
        return [x for x in self.statements if bare or x.kind not in _AT_THE_END]

    @property
    def shows_more(self) -> bool:
        """Whether there is more in it than sentences."""
        has = (self.lead, self.headlines, self.picture, self.can_be_explored)
        return any(has) or self.table is not None

    def words(self) -> Iterator[str]:
        """All that it says, for those who look words up."""
        yield from (self.title, self.lead, self.caption)
        yield from (statement.text for statement in self.statements)
        for line in self.headlines:
            yield from (line.question, line.answer, line.text)
        if self.table is not None:
            yield from self.head


_AT_THE_END: Final = ("chosen", "not said")

_WORDS: Final = re.compile(r"[^\W\d_]{2}")
"""Two letters: no number has them, with its unit in per cent."""


def cell_text(value: Any) -> str:
    """A cell: four digits of a number, nothing of what is not known."""
    if value is None or value is pd.NA or value != value:  # NaN
        return ""
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    if isinstance(value, float | np.floating):
        return minus(f"{float(f'{float(value):.4g}'):.10g}")
    return str(value).replace(" %", "\N{NO-BREAK SPACE}%")


def sentence(text: str) -> str:
    """Words that begin with a capital and end with a full stop."""
    return f"{text[:1].upper()}{text[1:].rstrip('.')}." if text else ""


def gap_text(gap: float) -> str:
    """A certified gap in a sentence on what could be better."""
    return f"{gap:.0e} of the objective" if gap > GAP_OF_ROUNDING else "rounding"


GAP_OF_ROUNDING: Final = 1e-12
"""Smaller gaps are those of arithmetic."""


def best_possible(gap: float, holds: bool) -> Headline:
    """Whether anything is better, and by how much at most."""
    return Headline(
        "Is it the best possible?",
        "yes" if holds else f"within {percent(gap)} %",
        "For the chosen losses and weights no explanation is better by more than "
        f"{gap_text(gap)}.",
        "proved",
    )


def faithful(share: float, where: str = "") -> Headline:
    """How much of what the model does itself an explanation keeps."""
    return Headline(
        f"How faithful is it{where}?",
        f"{100.0 * share:.0f} %",
        "of faithfulness is kept; 100 % is what the model does itself.",
        "checked",
    )


def minus(text: str) -> str:
    """Numbers in it with a minus of their own; words keep their hyphens."""
    return _MINUS.sub("−", text)


_MINUS: Final = re.compile(r"(?<![^\W_])-(?=\d|\.\d|inf)|(?<=\de)-(?=\d)")


def named(attribution: float, value: str) -> str:
    """An attribution with its sign, and the value that it is of."""
    number = minus(f"{attribution:+.3g}")
    return f"{number} (value {minus(value)})" if value else number


# ---- What a result has that says nothing else: its card and its table


CELLS_ON_PAGE: Final = 12_000
"""The cells of one table that a page has room for; the CSV file has all."""


def rows_on_page(table: pd.DataFrame) -> int:
    """How many rows of a table a page has room for."""
    return max(CELLS_ON_PAGE // max(table.shape[1] + 1, 1), 1)


def chapters_of_card(card: Card, table: pd.DataFrame) -> tuple[Chapter, ...]:
    """A chapter of the card, with bars, and one of the table's first rows."""
    small = card.table
    return (
        Chapter(
            title=card.title,
            statements=[*said_by(card), *chosen(card)],
            table=None
            if small is None
            else pd.DataFrame([*small.rows], columns=[*small.head]),
            caption=card.subtitle,
            picture=bars(card.rows, card.subtitle or card.title) if card.rows else None,
        ),
        table_chapter("Table", table),
    )


def said_by(card: Card) -> Iterator[Statement]:
    """Its lines, then the parts of its proof, each with what the card says of it."""
    for text in (*card.lines, *filter(None, card.proof.split(" · "))):
        yield Statement(sentence(text), card.rests_on.get(text, "checked"))


def chosen(card: Card) -> Iterator[Statement]:
    """How it was made, as the card has it."""
    for name, text in card.settings.items():
        yield Statement(sentence(f"{name}: {text}"), "chosen")


def table_chapter(title: str, table: pd.DataFrame, caption: str = "") -> Chapter:
    """All rows of a table, or as many as there is room for."""
    room = rows_on_page(table)
    rest = f"The first {room:,} of {len(table):,} rows; the CSV file has all."
    told = [caption, rest if len(table) > room else ""]
    words = " ".join(filter(None, told)) or "All numbers."
    return Chapter(title=title, table=table.iloc[:room], caption=words)


# ---- Pictures, whose colours are those of the page, light or dark


def tag(kind: str, *inside: str, **attributes: object) -> str:
    """An element of HTML or SVG around what is escaped already.

    Attributes are escaped; their names may end in _ where Python has such a word.
    """
    told = "".join(
        f' {name.rstrip("_").replace("_", "-")}="{in_html(_short(value))}"'
        for name, value in attributes.items()
    )
    return f"<{kind}{told}>{''.join(inside)}</{kind}>"


def _short(value: object) -> str:
    """A coordinate, to a hundredth."""
    if isinstance(value, float | np.floating):
        return f"{float(value):.2f}".rstrip("0").rstrip(".")
    return str(value)


def bars(rows: Sequence[CardRow], title: str) -> str:
    """A table with a bar in each row: what lowers to the left, what raises right."""
    low = -min((row.ends[0] for row in rows), default=0.0)
    high = max((row.ends[1] for row in rows), default=0.0)
    size = max(low, high) or 1.0  # so that no sum overflows
    whole = low / size + high / size or 1.0
    zero = 100.0 * low / size / whole
    lines = []
    for row in rows:
        below, above = (100.0 * (abs(end) / size) / whole for end in row.reach)
        drawn = "".join(
            tag("span", class_=name, style=f"left:{left:.1f}%;width:{wide:.1f}%")
            for left, wide, name in (
                (zero - below, below, "lowers"),
                (zero, above, "raises"),
            )
            if wide > 0.0
        )
        if row.interval is not None and all(map(math.isfinite, row.interval)):
            start, end = (zero + 100.0 * (x / size) / whole for x in row.interval)
            place = f"left:{start:.1f}%;width:{end - start:.1f}%"
            drawn += tag("span", class_="range", style=place)
        axis = tag("span", class_="zero", style=f"left:{zero:.1f}%")
        lines.append(
            tag(
                "tr",
                tag("th", in_html(row.name), scope="row", dir="auto"),
                tag("td", drawn, axis, class_="plot"),
                tag("td", in_html(minus(row.number))),
                tag("td", in_html(minus(row.shown_note)), class_="soft note"),
            )
        )
    caption = tag("caption", in_html(sentence(title)), dir="auto")
    return tag("table", caption, tag("tbody", *lines), class_="bars")
