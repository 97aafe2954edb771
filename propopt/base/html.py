"""Pages of texts with highlighted words: shades tell how large a number is.

Orange and blue stay apart for readers who do not tell red from green, larger numbers
are further from the page in lightness too, and the ink has a contrast of 4.5 at least
on each shade (WCAG 2, level AA), whatever the page is. HTML is escaped and without
scripts.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Final, final

import numpy as np

from propopt.base.arrays import Array, Indices, Mask
from propopt.base.cards import NUMBER_CELL, TEXT_CELL, element
from propopt.base.files import atomic_write
from propopt.base.text import HIDDEN, in_html


# ---- Characters and numbers as a page shows them: what acts has a visible escape


_ACTS: Final = re.compile(
    f"(?![\n\t])(?:{HIDDEN.pattern}|[\u00ad\u180e\u200b\u2060-\u2064\u206a-\u206f])"
)
"""What :mod:`propopt.base.text` escapes, and characters of no width of no script."""

_LINES: Final = re.compile("\r\n|\r|\n")


def visible(text: str) -> str:
    r"""A text as HTML, with its lines; characters that act are shown as escapes."""
    return _ACTS.sub(_seen, escape(_LINES.sub("\n", text)))


def _seen(sign: re.Match[str]) -> str:
    name = f"U+{ord(sign[0]):04X} {unicodedata.name(sign[0], '')}".strip()
    shown = sign[0].encode("unicode_escape").decode("ascii")
    return f'<span style="border:1px dotted" title="{name}">{shown}</span>'


def signed(number: float) -> str:
    """A number with its sign, in four digits."""
    if math.isnan(number):
        return "–"
    sign = "+" if number > 0.0 else "−" if number < 0.0 else ""
    return f"{sign}{abs(number):.4g}"


# ---- A text, the words in it, and a number for each


@final
@dataclass(frozen=True, eq=False)
class MarkedText:
    """A text, the words in it, and a number for each."""

    name: str  # what the document is called
    facts: tuple[str, ...]  # what is said of it, a line each
    text: str
    # where words stand, from the first, and which of the words each is
    spans: Sequence[tuple[int, int, int]]
    words: tuple[str, ...]  # (d,): the distinct words
    weights: Array  # (d,): their numbers; NaN where there is none
    # (d,): standard errors; a word whose number is within two of them of zero is plain
    errors: Array | None = None

    @property
    def certain(self) -> Mask:
        """Whether the sign of a number is known, (d,)."""
        if self.errors is None:
            return np.isfinite(self.weights)
        return np.asarray(np.abs(self.weights) > 2.0 * self.errors)

    @property
    def reach(self) -> float:
        """The largest size of a number; 0 where there is none."""
        return float(np.abs(self.weights[np.isfinite(self.weights)]).max(initial=0.0))


# ---- Shades for words: how large a number is, and its sign, on light and dark pages


def _theme(ink: str, above: Sequence[str], below: Sequence[str]) -> dict[str, str]:
    """Colours by name: of words on all shades, and of shades, the plainest first."""
    shades = [("a", k, colour) for k, colour in enumerate(above, start=1)]
    shades += [("b", k, colour) for k, colour in enumerate(below, start=1)]
    named = {f"--po-{sign}{level}": colour for sign, level, colour in shades}
    return {"--po-ink": ink, **named}


LIGHT: Final = _theme(
    "#111111",
    ("#fde6dc", "#facdb9", "#f5ae92", "#ed8f6e", "#e2735a"),
    ("#e1ecf7", "#c3daee", "#9dc3e2", "#77abd6", "#5c99cc"),
)
DARK: Final = _theme(
    "#ffffff",
    ("#3d211a", "#5b2c21", "#793628", "#954030", "#ad4a36"),
    ("#172b3d", "#1b3c58", "#204e75", "#255f90", "#2a6fa8"),
)

EDGES: Final = (0.05, 0.2, 0.4, 0.6, 0.8)
"""Shades begin at these parts of the largest number; what is smaller has none."""


def levels(values: Array, reach: float) -> Indices:
    """The shade of each number: −5 to −1, 0 for none, 1 to 5; values (n,)."""
    sizes = np.nan_to_num(np.abs(values)) / (reach if reach > 0.0 else 1.0)
    steps = np.searchsorted(EDGES, sizes, side="left")
    return np.asarray(np.where(np.nan_to_num(values) < 0.0, -steps, steps))


def style_of(level: int) -> str:
    """The declarations of a word of one shade; nothing for 0.

    Underlines tell the sign too: one line of positive numbers, dots of negative ones.
    Without the style sheet of :func:`style_sheet` the light shades are there.
    """
    if level == 0:
        return ""
    sign, line = ("a", "solid") if level > 0 else ("b", "dotted")
    names = f"--po-{sign}{abs(level)}", "--po-ink"
    shade, ink = (f"var({name},{LIGHT[name]})" for name in names)
    return (
        f"background:{shade};color:{ink};"
        f"border-bottom:2px {line} {ink};border-radius:2px;padding:0 1px"
    )


def style_sheet(name: str) -> str:
    """The shades of a class of elements, on light pages and on dark ones.

    What a notebook or a page says of itself goes before what the system prefers.
    """
    light, dark = (
        ";".join(f"{shade}:{colour}" for shade, colour in theme.items())
        for theme in (LIGHT, DARK)
    )
    said_dark, said_light = (
        ",".join(f"{where.format(theme, is_light)} .{name}" for where in _SAID)
        for theme, is_light in (("dark", "false"), ("light", "true"))
    )
    return (
        f".{name}{{{light}}}"
        f"@media (prefers-color-scheme:dark){{.{name}{{{dark}}}}}"
        f"{said_dark}{{{dark}}}{said_light}{{{light}}}"
    )


_SAID: Final = (
    'body[data-jp-theme-light="{1}"]',
    "body.vscode-{0}",
    "html[theme={0}]",
    "html[data-theme={0}]",
    "body[data-theme={0}]",
)


# ---- Texts with their words in shades, a legend and tables of the numbers, as pages


CLASS: Final = "propopt-words"
WORDS_LISTED: Final = 10
"""In the table below a text."""


@final
@dataclass(frozen=True)
class HighlightedText:
    """Highlighted texts: what a notebook shows, and a page of it as a file."""

    html: str  # a part of a page, with its own style sheet and without scripts
    title: str  # of the page

    def _repr_html_(self) -> str:
        return self.html

    def page(self) -> str:
        """A whole page, light or dark as the reader prefers; it loads nothing."""
        return (
            '<!DOCTYPE html><html><head><meta charset="utf-8">'
            '<meta name="color-scheme" content="light dark">'
            '<meta http-equiv="Content-Security-Policy" '
            "content=\"default-src 'none'; style-src 'unsafe-inline'\">"
            f"<title>{in_html(self.title)}</title>"
            "<style>body{font-family:sans-serif;max-width:60em;margin:2em auto;"
            "padding:0 1em;line-height:1.6}</style></head>"
            f"<body>{self.html}</body></html>\n"
        )

    def to_html(self, path: str | Path) -> None:
        """Write the page, the whole file or none of it."""
        with atomic_write(path) as draft:
            draft.write_text(self.page(), encoding="utf-8")


def highlighted(
    texts: Sequence[MarkedText],
    title: str,
    units: str,
    facts: Iterable[str] = (),
    n_words: int = WORDS_LISTED,
) -> HighlightedText:
    """Texts with shades on one scale, a legend, and tables of the largest numbers."""
    head = f"<b>{in_html(title)}</b>", "<br>".join(map(in_html, facts))
    return HighlightedText(marked_html(texts, units, head, n_words), title)


def marked_html(
    texts: Sequence[MarkedText],
    units: str,
    head: Iterable[str] = (),
    n_words: int = 0,
) -> str:
    """Texts with shades on one scale behind a legend, as HTML; tables if asked for."""
    reach = max((text.reach for text in texts), default=0.0)
    parts = [*head, _legend(reach, units, any(t.errors is not None for t in texts))]
    for text in texts:
        table = _table(text, n_words) if n_words else ""
        name = f"<b>{in_html(text.name)}</b>"
        head = "<br>".join([name, *map(in_html, text.facts)])
        parts += [head, _shown(text, reach), table]
    body = "".join(element("div", "margin:4px 0", part) for part in parts if part)
    return f'<style>{style_sheet(CLASS)}</style><div class="{CLASS}">{body}</div>'


def _shown(text: MarkedText, reach: float) -> str:
    """The text, with its words in their shades."""
    steps = np.where(text.certain, levels(text.weights, reach), 0)
    parts, end = [], 0
    for start, stop, place in text.spans:
        shown = visible(text.text[start:stop])
        if style := style_of(int(steps[place])):
            number = signed(text.weights[place])
            shown = f'<span style="{style}" title="{number}">{shown}</span>'
        parts += [visible(text.text[end:start]), shown]
        end = stop
    parts.append(visible(text.text[end:]))
    # of the text itself the direction: the first letter that has one
    return (
        '<div dir="auto" style="white-space:pre-wrap;overflow-wrap:anywhere;'
        f'line-height:1.8">{"".join(parts)}</div>'
    )


def _legend(reach: float, units: str, estimated: bool) -> str:
    """The shades, with the numbers at which they begin."""
    if reach == 0.0:
        return in_html(f"no word has a number, in {units}")
    edges = [(k, edge * reach) for k, edge in enumerate(EDGES, start=1)]
    below = [element("span", style_of(-k), f"&lt; −{x:.2g}") for k, x in edges[::-1]]
    above = [element("span", style_of(k), f"&gt; +{x:.2g}") for k, x in edges]
    plain = f"plain: at most {EDGES[0] * reach:.2g}"
    if estimated:
        plain += ", or within 2 standard errors of 0"
    return (
        f"{in_html(f'in {units}, up to {reach:.4g}: negative dotted, positive lined')}"
        f"<br>{' '.join([*below, in_html(plain), *above])}"
    )


def _table(text: MarkedText, n_words: int) -> str:
    """The largest numbers in words, for readers who see no shades."""
    if len(text.words) == 0:
        return ""
    head = ["word", "times", "number"]
    if text.errors is not None:
        head.append("standard error")
    cells = "".join(
        f'<th scope="col" {TEXT_CELL}>{in_html(name)}</th>' for name in head
    )
    rows = "".join(f"<tr>{''.join(row)}</tr>" for row in _rows(text, n_words))
    name = in_html(f"largest numbers: {text.name}")
    return f'<table aria-label="{name}"><tr>{cells}</tr>{rows}</table>'


def _rows(text: MarkedText, n_words: int) -> Iterator[list[str]]:
    known = np.nan_to_num(np.abs(text.weights), nan=-1.0)
    order = np.argsort(-known, kind="stable")
    times = np.bincount([place for *_, place in text.spans], minlength=len(order))
    for j in order[:n_words].tolist():
        word = f'<th scope="row" {TEXT_CELL}><bdi>{visible(text.words[j])}</bdi></th>'
        numbers = [str(times[j]), signed(float(text.weights[j]))]
        if text.errors is not None:
            numbers.append(f"{text.errors[j]:.2g}")
        yield [word, *(f"<td {NUMBER_CELL}>{number}</td>" for number in numbers)]
    rest = order[n_words:]
    if len(rest):
        largest = f"at most {known[rest].max():.4g}" if known[rest[0]] >= 0 else "–"
        others = f"{len(rest)} others"
        yield [f"<td {TEXT_CELL}>{cell}</td>" for cell in (others, "", largest)]
