"""Pages of texts with words highlighted in shades of their numbers.

Orange and blue differ for colour-blind readers, larger numbers also differ more in
lightness from the page, and text has a contrast of at least 4.5 on each shade (WCAG 2,
level AA), on light and dark pages. HTML is escaped and has no scripts.
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

from propopt.base.arrays import Array, Indices, Mask, largest_first
from propopt.base.cards import NUMBER_CELL, TEXT_CELL, element
from propopt.base.checks import largest_entry
from propopt.base.files import atomic_write
from propopt.base.text import HIDDEN, in_html


# ---- Characters and numbers on a page: control characters have visible escapes


_ACTS: Final = re.compile(
    f"(?![\n\t])(?:{HIDDEN.pattern}|[\u00ad\u180e\u200b\u2060-\u2064\u206a-\u206f])"
)
"""Characters escaped by :mod:`propopt.base.text`, and those without a width."""

_LINES: Final = re.compile("\r\n|\r|\n")


def visible(text: str) -> str:
    r"""A text as HTML with its line breaks; control characters appear as escapes."""
    return _ACTS.sub(_seen, escape(_LINES.sub("\n", text)))


def _seen(sign: re.Match[str]) -> str:
    name = f"U+{ord(sign[0]):04X} {unicodedata.name(sign[0], '')}".strip()
    shown = sign[0].encode("unicode_escape").decode("ascii")
    return f'<span style="border:1px dotted" title="{name}">{shown}</span>'


def signed(number: float) -> str:
    """A number with its sign in four digits."""
    if math.isnan(number):
        return "–"
    sign = "+" if number > 0.0 else "−" if number < 0.0 else ""
    return f"{sign}{abs(number):.4g}"


# ---- A text, the words in it, and a number for each


@final
@dataclass(frozen=True, eq=False)
class MarkedText:
    """A text, the words in it, and a number for each."""

    name: str  # the name of the document
    facts: tuple[str, ...]  # remarks, one line each
    text: str
    # start, end and word index of each occurrence of a word, in the order of the text
    spans: Sequence[tuple[int, int, int]]
    words: tuple[str, ...]  # (d,): the distinct words
    weights: Array  # (d,): their numbers; NaN if a word has none
    # (d,): standard errors; numbers within two of them of zero are not highlighted
    errors: Array | None = None

    @property
    def certain(self) -> Mask:
        """Whether each number is certain to differ from zero, (d,)."""
        if self.errors is None:
            return np.isfinite(self.weights)
        return np.abs(self.weights) > 2.0 * self.errors

    @property
    def reach(self) -> float:
        """The largest |number|; 0 without numbers."""
        return largest_entry(self.weights[np.isfinite(self.weights)])


# ---- Shades for words: how large a number is, and its sign, on light and dark pages


def _theme(ink: str, above: Sequence[str], below: Sequence[str]) -> dict[str, str]:
    """CSS variables: the text colour, and shades from weak to strong."""
    shades = {
        f"--po-{sign}{level}": colour
        for sign, colours in (("a", above), ("b", below))
        for level, colour in enumerate(colours, start=1)
    }
    return {"--po-ink": ink, **shades}


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
"""Lower limits of the shades, as shares of the largest number."""


def levels(values: Array, reach: float) -> Indices:
    """The shade of each number: −5 to −1, 0 for none, 1 to 5; values (n,)."""
    sizes = np.nan_to_num(np.abs(values)) / (reach if reach > 0.0 else 1.0)
    steps = np.searchsorted(EDGES, sizes, side="left")
    return np.where(np.nan_to_num(values) < 0.0, -steps, steps)


def style_of(level: int) -> str:
    """The CSS declarations of a word with one shade; empty for 0.

    Positive numbers are also underlined, and negative ones dotted. Without the style
    sheet of :func:`style_sheet` the light shades apply.
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
    """The style sheet of the shades for a CSS class, on light and dark pages.

    The theme that a notebook or page declares overrides the preference of the system.
    """
    light, dark = (
        ";".join(f"{shade}:{colour}" for shade, colour in theme.items())
        for theme in (LIGHT, DARK)
    )
    declared_dark, declared_light = (
        ",".join(f"{page.format(theme, is_light)} .{name}" for page in _DECLARED_THEMES)
        for theme, is_light in (("dark", "false"), ("light", "true"))
    )
    return (
        f".{name}{{{light}}}"
        f"@media (prefers-color-scheme:dark){{.{name}{{{dark}}}}}"
        f"{declared_dark}{{{dark}}}{declared_light}{{{light}}}"
    )


_DECLARED_THEMES: Final = (
    'body[data-jp-theme-light="{1}"]',
    "body.vscode-{0}",
    "html[theme={0}]",
    "html[data-theme={0}]",
    "body[data-theme={0}]",
)


# ---- Texts with their words in shades, a legend and tables of the numbers, as pages


CLASS: Final = "propopt-words"
WORDS_LISTED: Final = 10
"""The number of words in the table below a text."""


@final
@dataclass(frozen=True)
class HighlightedText:
    """Highlighted texts as HTML, which notebooks show and ``to_html`` writes."""

    html: str  # a part of a page with its style sheet, without scripts
    title: str  # the title of the page

    def _repr_html_(self) -> str:
        return self.html

    def page(self) -> str:
        """A self-contained page, light or dark as the reader prefers."""
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
        """Write the page to a file, completely or not at all."""
        with atomic_write(path) as draft:
            draft.write_text(self.page(), encoding="utf-8")


def highlighted(
    texts: Sequence[MarkedText],
    title: str,
    units: str,
    facts: Iterable[str] = (),
    n_words: int = WORDS_LISTED,
) -> HighlightedText:
    """Highlighted texts with one scale, a legend and tables of the largest numbers."""
    head = f"<b>{in_html(title)}</b>", "<br>".join(map(in_html, facts))
    return HighlightedText(marked_html(texts, units, head, n_words), title)


def marked_html(
    texts: Sequence[MarkedText],
    units: str,
    head: Iterable[str] = (),
    n_words: int = 0,
) -> str:
    """Highlighted texts with a legend as HTML, and tables of ``n_words`` numbers."""
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
    """The text with its words in shades."""
    steps = np.where(text.certain, levels(text.weights, reach), 0)
    parts = []
    end = 0
    for start, stop, index in text.spans:
        shown = visible(text.text[start:stop])
        if style := style_of(int(steps[index])):
            number = signed(text.weights[index])
            shown = f'<span style="{style}" title="{number}">{shown}</span>'
        parts += [visible(text.text[end:start]), shown]
        end = stop
    parts.append(visible(text.text[end:]))
    # dir="auto": the writing direction is that of the text
    return (
        '<div dir="auto" style="white-space:pre-wrap;overflow-wrap:anywhere;'
        f'line-height:1.8">{"".join(parts)}</div>'
    )


def _legend(reach: float, units: str, estimated: bool) -> str:
    """The legend of the shades, with the lower limit of each."""
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
    """A table of the largest numbers, for readers who cannot see shades."""
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
    sizes = np.nan_to_num(np.abs(text.weights), nan=-1.0)
    order = largest_first(sizes)
    times = np.bincount([index for *_, index in text.spans], minlength=len(order))
    for j in order[:n_words].tolist():
        word = f'<th scope="row" {TEXT_CELL}><bdi>{visible(text.words[j])}</bdi></th>'
        numbers = [str(times[j]), signed(float(text.weights[j]))]
        if text.errors is not None:
            numbers.append(f"{text.errors[j]:.2g}")
        yield [word, *(f"<td {NUMBER_CELL}>{number}</td>" for number in numbers)]
    rest = order[n_words:]
    if len(rest):
        largest = f"at most {sizes[rest].max():.4g}" if sizes[rest[0]] >= 0 else "–"
        others = f"{len(rest)} others"
        yield [f"<td {TEXT_CELL}>{cell}</td>" for cell in (others, "", largest)]
