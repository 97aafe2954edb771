"""What is proved of an explanation, and what is estimated: one is not said alone.

A gap says how good attributions are for the target that they were given. What the error
of that target costs stands beside it wherever it is shown. The layer of explanations is
above this one: they are taken by their attributes.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Any, Final


NOT_KNOWN: Final = "target error not known"

_ROUNDING = 1e-12
"""Percent: smaller errors are those of rounding."""


def gap_in_words(explanation: Any) -> str:
    """The certified gap beside the error of the target, as one sentence."""
    return f"gap {explanation.gap:.1e} (optimization) · {target_in_words(explanation)}"


def target_in_words(explanation: Any) -> str:
    """What is known of the error of the target."""
    target = explanation.target
    return NOT_KNOWN if target is None else str(target.in_words())


def targets_in_words(explanations: Iterable[Any]) -> list[str]:
    """What is known of the errors of several, each thing once; of draws the range."""
    optima = [best for best in explanations if best.gap is not None]
    drawn = [best for best in optima if _is_drawn(best)]
    others = [target_in_words(best) for best in optima if not _is_drawn(best)]
    return [*_range(drawn), *dict.fromkeys(others)]


def _is_drawn(explanation: Any) -> bool:
    return explanation.target is not None and explanation.target.n_blocks > 0


def _range(drawn: list[Any]) -> Iterator[str]:
    """The least and the largest error of some estimated targets, if there are any."""
    errors = [best.target_error for best in drawn]
    sources = " and ".join(dict.fromkeys(best.target.source for best in drawn))
    if errors:
        low, high = percent(min(errors)), percent(max(errors))
        yield f"target error {low}–{high} % ({sources})"


def target_error_cell(explanation: Any) -> str:
    """The relative error of the target, in the column beside that of the gap."""
    if explanation.target is None or math.isnan(explanation.target_error):
        return "not known"
    if not explanation.target.n_blocks:
        return "exact"
    most = "≤ " if explanation.target.relation == "at most" else ""
    return f"{most}{explanation.target_error:.2g}"


def percent(share: float) -> str:
    """Two digits, without an exponent; what is less than rounding is zero.

    Examples
    --------
    >>> percent(0.01234), percent(1.784), percent(1e-17)
    ('1.2', '178', '0')
    """
    number = 100.0 * share
    if number < _ROUNDING:
        return "0"
    return f"{number:.2g}" if number < 99.5 else f"{number:.0f}"
