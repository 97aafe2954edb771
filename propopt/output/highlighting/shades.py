"""Shades for words: how large a number is, and its sign, on light and dark pages.

Orange and blue stay apart for readers who do not tell red from green, larger numbers
are further from the page in lightness too, and the ink has a contrast of 4.5 at least
on each shade (WCAG 2, level AA), whatever the page is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, final

import numpy as np

from propopt._typing import Array, Positions


@final
@dataclass(frozen=True)
class Theme:
    """Shades of one kind of page.

    Parameters
    ----------
    ink : str
        The colour of words on all shades.
    above, below : tuple of str
        Shades of positive and of negative numbers, from small to large ones.
    """

    ink: str
    above: tuple[str, ...]
    below: tuple[str, ...]

    def named(self) -> dict[str, str]:
        """Colours by the names that they have in a style sheet."""
        signs = {"a": self.above, "b": self.below}
        shades = {
            f"--po-{sign}{level}": colour
            for sign, colours in signs.items()
            for level, colour in enumerate(colours, start=1)
        }
        return {"--po-ink": self.ink, **shades}


LIGHT: Final = Theme(
    "#111111",
    ("#fde6dc", "#facdb9", "#f5ae92", "#ed8f6e", "#e2735a"),
    ("#e1ecf7", "#c3daee", "#9dc3e2", "#77abd6", "#5c99cc"),
)
DARK: Final = Theme(
    "#ffffff",
    ("#3d211a", "#5b2c21", "#793628", "#954030", "#ad4a36"),
    ("#172b3d", "#1b3c58", "#204e75", "#255f90", "#2a6fa8"),
)

EDGES: Final = (0.05, 0.2, 0.4, 0.6, 0.8)
"""Shades begin at these parts of the largest number; what is smaller has none."""


def levels(values: Array, reach: float) -> Positions:
    """The shade of each number: −5 to −1, 0 for none, 1 to 5.

    Parameters
    ----------
    values : array (n,)
        The numbers; what is not known is NaN, and has no shade.
    reach : float
        The largest of their sizes, which has the last shade.

    Examples
    --------
    >>> levels(np.array([1.0, -0.3, 0.01, 0.0]), 1.0)
    array([ 5, -2,  0,  0])
    """
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
    shade = (LIGHT.above if level > 0 else LIGHT.below)[abs(level) - 1]
    ink = f"var(--po-ink,{LIGHT.ink})"
    return (
        f"background:var(--po-{sign}{abs(level)},{shade});color:{ink};"
        f"border-bottom:2px {line} {ink};border-radius:2px;padding:0 1px"
    )


def style_sheet(name: str) -> str:
    """The shades of a class of elements, on light pages and on dark ones.

    What a notebook or a page says of itself goes before what the system prefers.

    Parameters
    ----------
    name : str
        The class.
    """
    light, dark = _declared(LIGHT), _declared(DARK)
    said_dark = ",".join(f"{where} .{name}" for where in _SAID_DARK)
    said_light = ",".join(f"{where} .{name}" for where in _SAID_LIGHT)
    return (
        f".{name}{{{light}}}"
        f"@media (prefers-color-scheme:dark){{.{name}{{{dark}}}}}"
        f"{said_dark}{{{dark}}}{said_light}{{{light}}}"
    )


_SAID_DARK: Final = (
    'body[data-jp-theme-light="false"]',
    "body.vscode-dark",
    "html[theme=dark]",
    "html[data-theme=dark]",
    "body[data-theme=dark]",
)
_SAID_LIGHT: Final = (
    'body[data-jp-theme-light="true"]',
    "body.vscode-light",
    "html[theme=light]",
    "html[data-theme=light]",
    "body[data-theme=light]",
)


def _declared(theme: Theme) -> str:
    return ";".join(f"{name}:{colour}" for name, colour in theme.named().items())
