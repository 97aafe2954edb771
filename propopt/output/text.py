r"""Names as text: what a column is called is no command to a terminal or a page.

Names come from tables, files and users. Wherever one is shown, control characters, the
escape codes made of them, marks that turn the direction of writing, and bytes that are
no UTF-8 become visible escapes such as ``\x1b``.
"""

from __future__ import annotations

import math
import re
from html import escape


HIDDEN = re.compile(
    "[\x00-\x1f\x7f-\x9f"  # controls, among them the escape of terminals
    "\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069"  # ends of lines, direction
    "\ufeff\ufff9-\ufffb\ufffe\uffff"  # marks, and what no XML may hold
    "\ud800-\udfff]"  # halves of characters: bytes of file names that are no UTF-8
)
_MARKDOWN = re.compile(r"[\\`*_\[\]<&$~]")


def printable(name: object) -> str:
    r"""The name on one line, with a visible escape for each character that acts.

    Examples
    --------
    >>> printable("a\x1b[31mb\n")
    'a\\x1b[31mb\\n'
    """
    return HIDDEN.sub(_escaped, str(name))


def printable_lines(text: object) -> str:
    """The same for a message of several lines, whose ends of lines are meant."""
    return "\n".join(map(printable, str(text).split("\n")))


def drawn(name: object) -> str:
    r"""The name for matplotlib, to which a pair of ``$`` would be a formula.

    Examples
    --------
    >>> print(drawn("income in $, debt in $"))
    income in \$, debt in \$
    """
    return printable(name).replace("$", r"\$")


def in_markdown(text: object) -> str:
    """The text for a Markdown page, where nothing in it is markup or HTML."""
    return _MARKDOWN.sub(r"\\\g<0>", printable(text))


def in_html(text: object) -> str:
    """The text for an HTML page."""
    return escape(printable(text))


def in_percent(share: float) -> str:
    """A share; a dash where it is not defined.

    Examples
    --------
    >>> in_percent(0.53993), in_percent(float("nan")), in_percent(float("-inf"))
    ('54.0 %', '–', '–')
    """
    return f"{100.0 * share:.1f} %" if math.isfinite(share) else "–"


def _escaped(sign: re.Match[str]) -> str:
    return sign[0].encode("unicode_escape").decode("ascii")
