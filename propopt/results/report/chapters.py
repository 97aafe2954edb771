"""Chapters of a report: what is said, with what it rests on, a table, a picture.

A result says what its chapters are. Each sentence has a kind, and the page ends with
all of them by kind: what is proved, checked, estimated, chosen, and not said.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias, final, get_args

import numpy as np
import pandas as pd

from propopt.base.cards import Card, CardRow
from propopt.base.errors import InvalidInput
from propopt.base.text import in_html


# ---- Sentences, each with what it rests on


StatementKind: TypeAlias = Literal[
    "proved", "checked", "estimated", "chosen", "not said"
]
"""By a certificate or an identity; compared with another way; from samples or a fit;
by whoever asked; and what nobody should read into the rest."""

KINDS: Final[tuple[StatementKind, ...]] = get_args(StatementKind)


@final
@dataclass(frozen=True)
class Statement:
    """A sentence, and what it rests on."""

    text: str  # plain text, of at most twenty words or so
    kind: StatementKind

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise InvalidInput(f"kind: expected one of {KINDS}, got {self.kind!r}")


@final
@dataclass(frozen=True)
class Headline:
    """A question, the number or word that answers it, and a sentence about that."""

    question: str
    answer: str
    text: str = ""


# ---- Chapters: what a page is made of


@dataclass(frozen=True, kw_only=True, eq=False)
class Chapter:
    """A title, sentences, a table and a picture; whatever of these there is."""

    title: str
    statements: Sequence[Statement] = ()
    headlines: Sequence[Headline] = ()  # those of all chapters stand first on the page
    table: pd.DataFrame | None = None  # its index has names of rows, unless it counts
    caption: str = ""  # of the table: what it is of, and in which unit
    # inline SVG, or HTML, escaped already; with a title that says what is seen
    picture: str | None = None

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
        for name, cells in zip(
            self.table.index, self.table.itertuples(index=False), strict=True
        ):
            own = [] if self._counts else [cell_text(name)]
            yield [*own, *map(cell_text, cells)]

    @property
    def _counts(self) -> bool:
        return self.table is None or isinstance(self.table.index, pd.RangeIndex)


def cell_text(value: Any) -> str:
    """A cell: four digits of a number, nothing of what is not known."""
    if value is None or value is pd.NA or value != value:  # NaN
        return ""
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    if isinstance(value, float | np.floating):
        return f"{float(value):.4g}".replace("-", "−")
    return str(value)


# ---- What a result has that says nothing else: its card and its table


ROWS_ON_PAGE: Final = 50
"""Of a table on a page; the CSV file has all."""


def chapters_of_card(card: Card, table: pd.DataFrame) -> tuple[Chapter, ...]:
    """A chapter of the card, with bars, and one of the table's first rows."""
    said = [Statement(text, "estimated") for text in card.lines]
    said += [Statement(text, "checked") for text in filter(None, [card.proof])]
    chosen = [f"{name}: {text}." for name, text in card.settings.items()]
    said += [Statement(text, "chosen") for text in chosen]
    caption = f"The first {ROWS_ON_PAGE} of {len(table)} rows; the CSV file has all."
    if len(table) <= ROWS_ON_PAGE:
        caption = "All numbers."
    return (
        Chapter(
            title=card.title,
            statements=said,
            table=None
            if card.table is None
            else pd.DataFrame([*card.table.rows], columns=[*card.table.head]),
            caption=card.subtitle,
            picture=bars(card.rows, card.subtitle or card.title) if card.rows else None,
        ),
        Chapter(title="Table", table=table.iloc[:ROWS_ON_PAGE], caption=caption),
    )


# ---- Pictures: SVG whose colours are those of the page, light or dark


def shape(kind: str, text: str | None = None, **attributes: object) -> str:
    """An element of a picture; names end in _ where Python has a word like them."""
    told = "".join(
        f' {name.rstrip("_").replace("_", "-")}="{in_html(_short(value))}"'
        for name, value in attributes.items()
    )
    inside = "" if text is None else in_html(text)
    return f"<{kind}{told}>{inside}</{kind}>"


def picture(width: int, height: float, title: str, *shapes: str) -> str:
    """A picture that says to screen readers what is seen."""
    return (
        f'<svg viewBox="0 0 {width} {_short(height)}" role="img" '
        f'aria-label="{in_html(title)}">{"".join(shapes)}</svg>'
    )


def _short(value: object) -> str:
    """A coordinate, to a hundredth."""
    if isinstance(value, float | np.floating):
        return f"{float(value):.2f}".rstrip("0").rstrip(".")
    return str(value)


_WIDE, _LINE, _NAMES, _NUMBERS = 520, 26, 200, 60


def bars(rows: Sequence[CardRow], title: str) -> str:
    """A bar for each row from zero, below to the left and above to the right."""
    low = -min((row.ends[0] for row in rows), default=0.0)
    high = max((row.ends[1] for row in rows), default=0.0)
    unit = (_WIDE - _NAMES - _NUMBERS - 20) / ((low + high) or 1.0)
    zero = _NAMES + 10 + low * unit
    parts, height = [], _LINE * len(rows)
    for place, row in enumerate(rows):
        y = float(_LINE * place)
        below, above = row.reach
        parts += [
            shape("text", row.name, x=_NAMES, y=y + 17, text_anchor="end"),
            *(
                shape(
                    "rect",
                    x=min(zero, zero + end * unit),
                    y=y + 5,
                    width=abs(end) * unit,
                    height=14,
                    class_=name,
                )
                for end, name in ((below, "lowers"), (above, "raises"))
                if end
            ),
            shape("text", _minus(row.number), x=_WIDE, y=y + 17, text_anchor="end"),
        ]
    parts.append(shape("line", x1=zero, x2=zero, y1=0, y2=height, class_="axis"))
    seen = "; ".join(f"{row.name} {row.number}" for row in rows)
    return picture(_WIDE, float(height), f"{title}: {seen}", *parts)


def _minus(number: str) -> str:
    return re.sub("-", "−", number)
