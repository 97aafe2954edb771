"""What a run of n samples is: how many count, what ridge and choices do to it."""

from __future__ import annotations

from typing import Final

import numpy as np

from propopt.lime.diagnosis.rule import Checked, Rule
from propopt.lime.diagnosis.rules.collapse import counting_samples
from propopt.lime.text.diagnosis.case import PACKAGE_RIDGE, TOO_MANY, TextCase
from propopt.lime.text.finite import kept_words


N_KEPT: Final = 10
"""Words that the package keeps by default."""


_WIDER: Final = "a wider kernel, more samples, or the limits themselves"


def _check_samples(case: TextCase) -> Checked:
    shares = np.array([case.moments.effective_share])
    return counting_samples(case.n_samples, shares, case.n_words + 1, _WIDER)


SAMPLES_OF_TEXTS: Final = Rule(
    name="weight collapse: samples",
    threshold=1.0,
    below=True,
    weight=0.85,
    per_row=False,
    per_column=False,
    check=_check_samples,
)
"""Its number is n (E π)² / E π² over ten for each coefficient."""


def _check_ridge(case: TextCase) -> Checked:
    number = PACKAGE_RIDGE * case.moments.inverse_norm / case.n_samples

    def sentence(n: int, j: int) -> str:
        del n, j
        top = int(np.argmax(case.sizes))
        mean = case.expected().coefficients[top]
        return (
            f"the ridge of {PACKAGE_RIDGE:g} is {number:.2g} of the least that the "
            f"samples tell: the mean of runs of {case.n_samples:,} gives "
            f"{case.words[top]!r} {mean:.3g}, the limit is {case.beta[top]:.3g}"
        )

    return Checked(
        numbers=np.array([[number]]),
        stakes=np.ones((1, 1)),
        sentence=sentence,
        remedy=_WIDER,
    )


COLLAPSE: Final = Rule(
    name="weight collapse: ridge",
    threshold=0.05,
    weight=0.85,
    per_row=False,
    per_column=False,
    check=_check_ridge,
)
"""Its number is λ ‖Σ⁻¹‖ / n."""


def _check_selection(case: TextCase) -> Checked | str:
    if case.is_long:
        return TOO_MANY
    if case.n_words <= N_KEPT:
        return f"there are no more than {N_KEPT} words"
    own, n = case.limits.value, case.n_samples
    kept = kept_words(case.known, case.law, own, N_KEPT, n_samples=n)
    fitted, whole = case.expected(kept), case.expected()
    moved = np.where(kept, np.abs(fitted.coefficients - whole.coefficients), np.nan)

    def sentence(n: int, j: int) -> str:
        del n
        return (
            f"where {N_KEPT} words are kept, as by default, {case.words[j]!r} has "
            f"{fitted.coefficients[j]:.3g} in the mean of runs, and "
            f"{whole.coefficients[j]:.3g} beside all {case.n_words}: it stands for "
            "words that are left out"
        )

    return Checked(
        numbers=(moved / case.largest)[None],
        stakes=(moved / case.largest)[None],
        sentence=sentence,
        remedy="fit all words, feature_selection='none'",
    )


SELECTION: Final = Rule(
    name="words left out", threshold=0.1, weight=0.5, check=_check_selection
)
"""Its number is the change of β_j over the largest of the document."""
