"""Stability as a file, and back."""

from __future__ import annotations

from propopt.output.archives import Format
from propopt.results.checked_file import CheckedFile
from propopt.results.conclusions.agreement import MEASURES
from propopt.results.header import Kinds, is_number, is_positive, is_text


def _is_agreement(value: object) -> bool:
    if not isinstance(value, dict) or value.keys() != {"varied", "worst", *MEASURES}:
        return False
    worst = value["worst"]
    return (
        is_text(value["varied"])
        and all(is_number(value[m]) and 0.0 <= value[m] <= 1.0 for m in MEASURES)
        and isinstance(worst, dict)
        and worst.keys() == set(MEASURES)
        and all(map(is_text, worst.values()))
    )


_KINDS: Kinds = {
    "agreements": (
        lambda value: (
            isinstance(value, list)
            and len(value) > 0
            and all(map(_is_agreement, value))
        ),
        "a list of agreements",
    ),
    "k": (is_positive, "an integer >= 1"),
}
STABILITY_FILE = CheckedFile(
    form=Format("propopt stability", "a saved stability", version=1), kinds=_KINDS
)
