"""Words that are not what the model sees."""

from __future__ import annotations

from typing import Final

import numpy as np

from propopt.lime.diagnosis.rule import Checked, Rule
from propopt.lime.text.diagnosis.case import TextCase


_NOT_SEEN: Final = "what the model sees of texts is not known"
_CROSSING: Final = "features of the model are made of several words"
_OWN_WORDS: Final = "take the words of the vectoriser, words='model'"


def _check_shared(case: TextCase) -> Checked | str:
    seen = case.seen
    if seen is None:
        return _NOT_SEEN
    if seen.crossing:
        return _CROSSING
    groups = np.array(seen.beside)
    together = np.array([np.abs(case.beta[groups == name]).sum() for name in groups])

    def sentence(n: int, j: int) -> str:
        del n
        others = np.flatnonzero((groups == groups[j]) & (np.arange(len(groups)) != j))
        return (
            f"{case.words[j]!r} and {case.named(others)} are one feature of the model, "
            f"{seen.beside[j]!r}, and are deleted one by one: the coefficient "
            f"{case.beta[j]:.3g} is what it adds beside the others, not what the "
            "feature does"
        )

    return Checked(
        numbers=seen.alike[None].astype(np.float64),
        stakes=(together / case.largest)[None],
        sentence=sentence,
        remedy=_OWN_WORDS,
    )


SHARED: Final = Rule(
    name="words that are one feature", threshold=1.0, weight=0.9, check=_check_shared
)


def _check_crossing(case: TextCase) -> Checked | str:
    seen = case.seen
    if seen is None:
        return _NOT_SEEN
    return Checked(
        numbers=np.array([[float(len(seen.crossing))]]),
        stakes=np.ones((1, 1)),
        sentence="; ".join(seen.crossing),
        remedy=(
            "read a coefficient as the effect of deleting a word with all features "
            f"that it is part of, or {_OWN_WORDS}"
        ),
    )


CROSSING: Final = Rule(
    name="features of several words",
    threshold=0.0,
    weight=0.5,
    per_column=False,
    check=_check_crossing,
)


def _check_unknown(case: TextCase) -> Checked | str:
    seen = case.seen
    if seen is None:
        return _NOT_SEEN
    if seen.crossing:
        return _CROSSING
    unknown = np.flatnonzero(~seen.known)
    share = len(unknown) / case.n_words

    def sentence(n: int, j: int) -> str:
        del n, j
        return (
            f"the model knows {case.n_words - len(unknown)} of {case.n_words} words; "
            f"{case.named(unknown)} change nothing, and have "
            f"coefficients up to {np.abs(case.beta[unknown]).max():.2g}"
        )

    return Checked(
        numbers=np.array([[share]]),
        stakes=np.full((1, 1), share),
        sentence=sentence,
        remedy=_OWN_WORDS,
    )


UNKNOWN_WORDS: Final = Rule(
    name="unknown words",
    threshold=0.5,
    weight=0.35,
    per_column=False,
    check=_check_unknown,
)


def _check_ignored(case: TextCase) -> Checked:
    some = np.flatnonzero(case.ignored)

    def sentence(n: int, j: int) -> str:
        del n
        return (
            f"the model ignores {case.words[j]!r}; its coefficient {case.beta[j]:.3g} "
            f"is that of all {len(some)} such words, and comes of what other words do "
            "together"
        )

    return Checked(
        numbers=np.where(case.ignored, case.sizes, np.nan)[None],
        stakes=case.sizes[None],
        sentence=sentence,
        remedy="read coefficients less that of such words, or take a wider kernel",
    )


IGNORED: Final = Rule(
    name="ignored words with coefficients",
    threshold=0.1,
    weight=0.9,
    check=_check_ignored,
)
"""Its number is |β_j| over the largest of the document."""
