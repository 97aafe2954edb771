"""Characters and numbers as a page shows them: what acts has a visible escape."""

from __future__ import annotations

import math
import re
import unicodedata
from html import escape
from typing import Final

from propopt.output.text import HIDDEN


_ACTS: Final = re.compile(
    f"(?![\n\t])(?:{HIDDEN.pattern}|[\u00ad\u180e\u200b\u2060-\u2064\u206a-\u206f])"
)
"""What :mod:`propopt.output.text` escapes, and characters of no width of no script."""

_LINES: Final = re.compile("\r\n|\r|\n")


def visible(text: str) -> str:
    r"""A text as HTML, with its lines; characters that act are shown as escapes.

    Parameters
    ----------
    text : str
        As it is.

    Examples
    --------
    >>> visible("a < b\r\nc\td")
    'a &lt; b\nc\td'
    >>> print(visible("\x00"))
    <span style="border:1px dotted" title="U+0000">\x00</span>
    """
    return _ACTS.sub(_seen, escape(_LINES.sub("\n", text)))


def _seen(sign: re.Match[str]) -> str:
    name = f"U+{ord(sign[0]):04X} {unicodedata.name(sign[0], '')}".strip()
    shown = sign[0].encode("unicode_escape").decode("ascii")
    return f'<span style="border:1px dotted" title="{name}">{shown}</span>'


def signed(number: float) -> str:
    """A number with its sign, in four digits.

    Parameters
    ----------
    number : float
        What is written; NaN is a dash.

    Examples
    --------
    >>> signed(0.25), signed(-1.0), signed(0.0), signed(float("nan"))
    ('+0.25', '−1', '0', '–')
    """
    if math.isnan(number):
        return "–"
    sign = "+" if number > 0.0 else "−" if number < 0.0 else ""
    return f"{sign}{abs(number):.4g}"
