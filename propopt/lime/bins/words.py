"""What bins are called, so that no two edges look the same."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from propopt._typing import Array


def interval_words(edges: Array, *, below: bool = True) -> tuple[str, ...]:
    """The words of bins between inner edges, to stand behind the name of a column.

    Edges have the fewest digits, at least four, that tell them apart. They belong to
    the bin below them, or to the one above.

    Examples
    --------
    >>> interval_words(np.array([0.5, 2.0]))
    ('≤ 0.5', '> 0.5 and ≤ 2', '> 2')
    >>> interval_words(np.array([1.00001, 1.00002]))
    ('≤ 1.00001', '> 1.00001 and ≤ 1.00002', '> 1.00002')
    >>> interval_words(np.array([0.5]), below=False)
    ('< 0.5', '≥ 0.5')
    """
    if len(edges) == 0:
        return ("any",)
    ends = _told_apart(edges)
    over, under = (">", "≤") if below else ("≥", "<")
    between = (f"{over} {low} and {under} {high}" for low, high in pairwise(ends))
    return (f"{under} {ends[0]}", *between, f"{over} {ends[-1]}")


def _told_apart(edges: Array) -> list[str]:
    for digits in range(4, 17):
        ends = [f"{edge:.{digits}g}" for edge in edges]
        if len(set(ends)) == len(ends) and _close(edges, ends):
            return ends
    return [f"{edge:.17g}" for edge in edges]


def _close(edges: Array, ends: list[str]) -> bool:
    """Whether what is written is nearer to its edge than a tenth of any bin."""
    written = np.array(ends, np.float64)
    narrowest = np.diff(edges).min(initial=np.inf)
    return bool((np.abs(written - edges) <= 0.1 * narrowest).all())
