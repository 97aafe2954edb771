"""Texts with their words in shades, a legend and tables of the numbers, as pages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, final

import numpy as np

from propopt._typing import Positions
from propopt.output.files import written_whole
from propopt.output.highlighting.characters import signed, visible
from propopt.output.highlighting.marked import MarkedText
from propopt.output.highlighting.shades import EDGES, levels, style_of, style_sheet
from propopt.output.html import NUMBER_CELL, TEXT_CELL, html_card
from propopt.output.text import in_html


CLASS: Final = "propopt-words"
WORDS_LISTED: Final = 10
"""In the table below a text."""


@final
@dataclass(frozen=True)
class HighlightedText:
    """Highlighted texts: what a notebook shows, and a page of it as a file.

    Parameters
    ----------
    html : str
        A part of a page, with its own style sheet and without scripts.
    title : str
        Of the page.

    Examples
    --------
    >>> HighlightedText("<b>good</b>", "a page").page().startswith("<!DOCTYPE html>")
    True
    """

    html: str
    title: str

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
        """Write the page, the whole file or none of it.

        Parameters
        ----------
        path : path
            Where to write.

        Raises
        ------
        InvalidInput
            If its folder is not there.
        Unwritten
            If the operating system refuses.
        """
        with written_whole(path) as draft:
            draft.write_text(self.page(), encoding="utf-8")


def highlighted(
    texts: Sequence[MarkedText],
    title: str,
    units: str,
    facts: Iterable[str] = (),
    n_words: int = WORDS_LISTED,
) -> HighlightedText:
    """Texts with shades on one scale, a legend, and tables of the largest numbers.

    Parameters
    ----------
    texts : sequence of MarkedText
        What is shown.
    title : str
        What it is.
    units : str
        Of the numbers.
    facts : iterable of str
        What is said of all, a line each.
    n_words : int
        How many numbers are listed below each text, the largest.
    """
    reach = max((text.reach for text in texts), default=0.0)
    parts = [f"<b>{in_html(title)}</b>", "<br>".join(map(in_html, facts))]
    parts.append(_legend(reach, units, any(text.errors is not None for text in texts)))
    for text in texts:
        parts += [_heading(text), _shown(text, reach), _table(text, n_words)]
    inside = html_card(parts)
    style = f"<style>{style_sheet(CLASS)}</style>"
    return HighlightedText(f'{style}<div class="{CLASS}">{inside}</div>', title)


def _heading(text: MarkedText) -> str:
    return "<br>".join([f"<b>{in_html(text.name)}</b>", *map(in_html, text.facts)])


def _shown(text: MarkedText, reach: float) -> str:
    """The text, with its words in their shades."""
    steps = np.where(text.certain, levels(text.weights, reach), 0)
    parts, end = [], 0
    for start, stop, place in text.spans:
        parts.append(visible(text.text[end:start]))
        parts.append(_word(text, visible(text.text[start:stop]), place, steps))
        end = stop
    parts.append(visible(text.text[end:]))
    # of the text itself the direction: the first letter that has one
    return (
        '<div dir="auto" style="white-space:pre-wrap;overflow-wrap:anywhere;'
        f'line-height:1.8">{"".join(parts)}</div>'
    )


def _word(text: MarkedText, shown: str, place: int, steps: Positions) -> str:
    style = style_of(int(steps[place]))
    if not style:
        return shown
    return f'<span style="{style}" title="{signed(text.weights[place])}">{shown}</span>'


def _legend(reach: float, units: str, estimated: bool) -> str:
    """The shades, with the numbers at which they begin."""
    if reach == 0.0:
        return in_html(f"no word has a number, in {units}")
    steps = [k for k in range(-len(EDGES), len(EDGES) + 1) if k]
    boxes = [
        f'<span style="{style_of(k)}">{_beyond(k, EDGES[abs(k) - 1] * reach)}</span>'
        for k in steps
    ]
    half = len(boxes) // 2
    plain = f"plain: at most {EDGES[0] * reach:.2g}"
    if estimated:
        plain += ", or within 2 standard errors of 0"
    shown = [*boxes[:half], in_html(plain), *boxes[half:]]
    return (
        f"{in_html(f'in {units}, up to {reach:.4g}: negative dotted, positive lined')}"
        f"<br>{' '.join(shown)}"
    )


def _beyond(step: int, edge: float) -> str:
    return f"&lt; −{edge:.2g}" if step < 0 else f"&gt; +{edge:.2g}"


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
