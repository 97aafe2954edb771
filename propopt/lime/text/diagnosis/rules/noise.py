"""Noise: what one run says of signs and of ranks."""

from __future__ import annotations

from typing import Final

import numpy as np

from propopt.lime.diagnosis.rule import Checked, Rule
from propopt.lime.diagnosis.rules.noise import (
    MOST_NAMED,
    naming_largest,
    wrong_signs,
)
from propopt.lime.text.diagnosis.case import TOO_MANY, TextCase


_ESTIMATED: Final = "coefficients are estimated"


def _check_noise(case: TextCase) -> Checked | str:
    if case.is_long:
        return TOO_MANY
    if case.run is None:
        return _ESTIMATED
    sd = case.run.standard_deviations[0]
    contrast = np.abs(case.beta - np.median(case.beta))
    ratio = np.full(case.n_words, np.nan)
    np.divide(contrast, sd, out=ratio, where=(sd > 0.0) & ~case.ignored)

    def sentence(n: int, j: int) -> str:
        del n
        return (
            f"{case.words[j]!r} is {contrast[j]:.2g} from the median of all words, "
            f"{ratio[j]:.2g} standard deviations of a run of {case.n_samples:,} "
            f"samples (sd {sd[j]:.2g}): a run does not tell it from words that do "
            "nothing"
        )

    def remedy(n: int, j: int) -> str:
        del n
        needed = case.n_samples * (2.0 / max(ratio[j], 1e-9)) ** 2
        return (
            "the exact coefficient has no noise; a run needs "
            f"{needed:.2g} samples for two standard deviations"
        )

    return Checked(
        numbers=ratio[None],
        stakes=wrong_signs(contrast / case.largest, sd / case.largest)[None],
        sentence=sentence,
        remedy=remedy,
    )


WORD_NOISE: Final = Rule(
    name="noise", threshold=2.0, below=True, weight=0.85, check=_check_noise
)
"""Its number is |β_j − median β| over the standard deviation of a run."""


def _check_ranking(case: TextCase) -> Checked | str:
    if case.is_long:
        return TOO_MANY
    if case.run is None:
        return _ESTIMATED
    if case.n_words <= MOST_NAMED:
        return f"there are no more than {MOST_NAMED} words"
    return naming_largest(case.run, case.beta[None])


WORD_RANKING: Final = Rule(
    name="unstable ranking",
    threshold=0.9,
    below=True,
    weight=0.42,
    per_column=False,
    check=_check_ranking,
)
