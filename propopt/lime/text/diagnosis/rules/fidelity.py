"""The surrogate is not f: at the document, or because f is not seen there."""

from __future__ import annotations

from typing import Final

import numpy as np

from propopt.lime.diagnosis.rule import Checked, Rule
from propopt.lime.text.diagnosis.case import TextCase


_SMALL: Final = 0.01
"""Of the range of means: smaller steps are no news."""


def _check_gap(case: TextCase) -> Checked:
    gap = case.limits.value - case.limits.at_row

    return Checked(
        numbers=np.array([[abs(gap) / case.largest]]),
        stakes=np.array([[abs(gap) / case.largest]]),
        sentence=(
            f"f is {case.limits.value:.4g} at the document and the sum of all "
            f"coefficients {case.limits.at_row:.4g}: they do not add up to it"
        ),
        remedy="Shapley values add up to it; or look at what words do together",
    )


SUM_GAP: Final = Rule(
    name="low fidelity: local gap",
    threshold=0.5,
    weight=0.7,
    per_column=False,
    check=_check_gap,
)
"""Its number is |f − Σ β| at the document over the largest |β|."""


def _check_blind(case: TextCase) -> Checked | str:
    means = case.by_size
    if means is None:
        return "coefficients are estimated"
    last, before = abs(means[-1] - means[-2]), abs(means[-2] - means[-3])
    small = last <= _SMALL * float(np.ptp(means))
    ratio = last / before if before > 0.0 else (np.inf if last > 0.0 else 0.0)

    return Checked(
        numbers=np.array([[ratio]]),
        stakes=np.array([[last / (float(np.ptp(means)) or 1.0)]]),
        sentence=(
            f"f is {means[-1]:.4g} at the document, {means[-2]:.4g} in the mean of "
            f"texts without one word and {means[-3]:.4g} without two: what holds for "
            "all words together is in no sample, as one word at least is deleted"
        ),
        remedy="look at f less f without each word, or at Shapley values",
        excuses={"f changes little with the first word": np.array([[small]])},
    )


BLIND: Final = Rule(
    name="blind spot",
    threshold=5.0,
    weight=0.8,
    per_column=False,
    check=_check_blind,
)
"""Its number is |f − E_(d−1) f| over |E_(d−1) f − E_(d−2) f|: 1 for sums of words."""
