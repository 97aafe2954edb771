"""Documents as text for a terminal and as a card for a notebook.

Both show findings, then how far to trust them; settings are folded. The HTML of cards
is escaped, has no scripts, and takes the colours of the page around it.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from itertools import zip_longest
from typing import Final

from propopt.base.document import (
    Block,
    Chapter,
    Document,
    Fact,
    Facts,
    Markup,
    Table,
    minus,
)
from propopt.base.text import in_html, printable
from propopt.base.vocabulary import TERMS


N_ON_CARD: Final = 10
"""The number of rows of a ranked table on a card, the largest ones."""

N_PRINTED: Final = 5
"""The number of rows of a ranked table that ``print`` shows."""

N_LINES: Final = 20
"""The number of table rows in a terminal."""

BAR_RAISES = "#cc6a1b"
BAR_LOWERS = "#3b82c9"
"""Colours of bars, with a contrast of at least 3 to white and to black."""

_WIDE: Final = 88  # characters of a line in a terminal
_LONGEST_CELL: Final = 60  # and of a cell of its tables


# ---- A terminal


def to_text(document: Document, *, details: bool = False) -> str:
    """A document as lines of text, without settings.

    Parameters
    ----------
    document : Document
        The document of a result.
    details : bool
        Whether to add all chapters of the page.

    Returns
    -------
    str
    """
    lines = [printable(document.title)]
    lines += _wrapped(document.subtitle)
    for text in document.dangers:
        lines += _wrapped(text)
    for block in document.blocks:
        lines += _lines(block)
    for chapter in document.chapters() if details else ():
        lines += ["", *_chapter_lines(chapter)]
    return "\n".join(lines)


def _shown(text: str) -> str:
    """Text without control characters, with minus signs; names stay as they are."""
    return printable(minus(text))


def _chapter_lines(chapter: Chapter) -> Iterator[str]:
    yield from (printable(x) for x in (chapter.title, chapter.lead) if x)
    for block in chapter.blocks:
        yield from _lines(block)


def _lines(block: Block) -> Iterator[str]:
    """The lines of a block."""
    match block:
        case tuple():
            yield from ("", *_fact_lines(block))
        case Table():
            yield from _table_lines(block)
        case Markup():
            yield from map(printable, filter(None, block.text.split("\n")))
        case _:
            yield from _table_lines(block.as_table())


def _wrapped(text: str) -> list[str]:
    """Lines of at most 88 characters, not broken at hyphens or before a %."""
    whole = _shown(text).replace(" %", "\N{NO-BREAK SPACE}%")
    lines = textwrap.wrap(whole, _WIDE, subsequent_indent="  ", break_on_hyphens=False)
    return [line.replace("\N{NO-BREAK SPACE}", " ") for line in lines]


def _fact_lines(facts: Facts) -> list[str]:
    """Labels, numbers and remarks in two columns if they fit, else in one."""
    wide = max((len(x.label) for x in facts), default=0)
    lines = [f"  {x.label:<{wide}}  {printable(x.text)}" for x in facts]
    half = (len(lines) + 1) // 2
    first = lines[:half]
    second = lines[half:]
    room = max(map(len, first), default=0)
    if room + 2 + max(map(len, second), default=0) > _WIDE:
        return lines
    pairs = zip_longest(first, second, fillvalue="")
    return [f"{one:<{room}}  {other}".rstrip() for one, other in pairs]


def _table_lines(table: Table) -> Iterator[str]:
    """Lines with words aligned left and numbers aligned right."""
    table = table.first(N_LINES if table.total is None else N_PRINTED)
    columns = [
        (
            [  # cut if it is long; CSV files and pages have all
                x if len(x) <= _LONGEST_CELL else f"{x[: _LONGEST_CELL - 1]}…"
                for x in map(printable, (head, *cells))
            ],
            is_words or not index,
        )
        for index, (head, cells, is_words) in enumerate(table.columns())
    ]
    padded = [
        [f"{x:{'<' if is_words else '>'}{max(map(len, cells))}}" for x in cells]
        for cells, is_words in columns
    ]
    for line in zip(*padded, strict=True):
        yield "  ".join(["", *line]).rstrip().replace("\N{NO-BREAK SPACE}", " ")
    if table.rest:
        yield printable(table.rest)


# ---- A card of a notebook


TEXT_CELL = 'style="text-align:left;padding:1px 10px"'
NUMBER_CELL = 'style="text-align:right;padding:1px 10px"'

_QUIET = "opacity:.75"
_APART = "margin-top:.6em"
_CELL = (
    "padding:2px 12px 2px 0;border:0;background:transparent;text-align:left;"
    "vertical-align:middle;overflow-wrap:break-word;max-width:14em"
)
_FIGURE = (
    f"{_CELL};text-align:right;white-space:nowrap;font-variant-numeric:tabular-nums"
)
_HEAD = f"white-space:normal;font-weight:400;{_QUIET}"
_TABLE = "border-collapse:collapse;border:0;color:inherit;font-size:inherit"
_BAR = "position:absolute;top:0;height:100%;border-radius:2px"
_SPANS: Final = {
    "lowers": f"background:{BAR_LOWERS};{_BAR}",
    "raises": f"background:{BAR_RAISES};{_BAR}",
    "range": "background:currentColor;position:absolute;top:44%;height:12%;"
    "min-height:1px",
    "zero": "position:absolute;top:-15%;height:130%;border-left:1px solid "
    "currentColor;opacity:.5",
}


def to_card(document: Document) -> str:
    """A document as HTML for notebooks, in the colours of the page around it."""
    title = element("div", "font-weight:600;font-size:1.08em", in_html(document.title))
    parts = [
        title,
        _div(_QUIET, minus(document.subtitle)),
        *(_div(_APART, minus(text)) for text in document.dangers),
        *map(_block_html, document.blocks),
        _settings_html(document),
    ]
    style = "max-width:46em;line-height:1.45;margin:.4em 0"
    return element("div", style, "".join(parts))


def _block_html(block: Block) -> str:
    match block:
        case tuple():
            return _table_html("".join(map(_fact_html, block)))
        case Table():
            table = block.first(N_LINES if block.total is None else N_ON_CARD)
            return _table_html(_rows_html(table)) + _div(_QUIET, table.rest)
        case Markup():
            return block.html
        case _:
            return _block_html(block.as_table())


def element(kind: str, style: str, inside: str) -> str:
    """An HTML element around escaped HTML."""
    return f'<{kind} style="{style}">{inside}</{kind}>'


def _div(style: str, text: str) -> str:
    return element("div", style, in_html(text)) if text else ""


def _row(*cells: str) -> str:
    return element("tr", "background:transparent", "".join(cells))


def _table_html(rows: str) -> str:
    """Rows of HTML in a table that scrolls on narrow screens."""
    table = element("table", f"{_TABLE};margin:.6em 0 0", rows)
    return element("div", "overflow-x:auto", table) if rows else ""


def _fact_html(fact: Fact) -> str:
    """A row with the label, its definition as a tooltip, the number and a remark."""
    return _row(
        element("td", _CELL, _defined(fact.label)),
        element("td", f"{_CELL};font-weight:600", in_html(fact.number)),
        element("td", f"{_CELL};{_QUIET};max-width:26em", in_html(fact.remark)),
    )


def _defined(label: str) -> str:
    """A label with its definition as a tooltip, if the vocabulary has it."""
    if label not in TERMS:
        return in_html(label)
    return f'<span title="{in_html(TERMS[label].text)}">{in_html(label)}</span>'


def _rows_html(table: Table) -> str:
    """The head and rows of a table, with numbers aligned right, perhaps after bars."""
    styles = []
    columns = []
    for index, (head, cells, is_words) in enumerate(table.columns()):
        styles.append(_CELL if is_words or not index else _FIGURE)
        bars = (_spans_html(table, head, n) for n in range(len(cells)))
        text = _defined if head == "check" else in_html
        cells = [bar + text(x) for bar, x in zip(bars, cells, strict=True)]
        columns.append([_defined(head), *cells])
    styles[:1] = [f"{_CELL};max-width:26em"] * len(styles[:1])
    lines = []
    for number, line in enumerate(zip(*columns, strict=True)):
        kind, more = ("td", "") if number else ("th", f";{_HEAD}")
        pairs = zip(styles, line, strict=True)
        lines.append(_row(*(element(kind, style + more, x) for style, x in pairs)))
    return "".join(lines)


def _spans_html(table: Table, head: str, n: int) -> str:
    """The bar of a cell, left of its number; empty in columns without bars."""
    spans = "".join(
        element("span", f"left:{left:.1f}%;width:{width:.1f}%;{_SPANS[kind]}", "")
        for kind, left, width in table.spans(head, n)
    )
    frame = "position:relative;float:left;width:clamp(3em,14vw,10em);height:.85em"
    frame += ";margin:.2em .8em 0 0"  # floats have one zero in all rows
    return spans and element("span", frame, spans)


def _settings_html(document: Document) -> str:
    if not document.settings:
        return ""
    names = f"{_CELL};{_QUIET};vertical-align:top"
    rows = "".join(
        _row(element("td", names, in_html(x)), element("td", _CELL, in_html(text)))
        for x, text in document.settings.items()
    )
    label = element("summary", "cursor:pointer", "Settings and details")
    return element("details", "margin-top:.4em", label + element("table", _TABLE, rows))
