"""Non-local weights: all samples count alike, however far they are."""

from __future__ import annotations

from typing import Final

import numpy as np

from propopt.lime.diagnosis.case import Case
from propopt.lime.diagnosis.rule import Checked, Rule


_ALL: Final = 0.1
"""Of the variance of f: with more of it in interactions, the width decides."""


def _check(case: Case) -> Checked | str:
    share = case.explanation.effective_share
    if not np.isfinite(case.law.kernel_width) or (share == 1.0).all():
        return "samples have no weights"
    number, most = float(np.median(share)), float(case.interactions.max())

    def sentence(n: int, j: int) -> str:
        del n, j
        return (
            f"{number:.2%} of the samples count with the kernel width "
            f"{case.law.kernel_width:.4g}: the explanation is of the whole table, and "
            "a row enters by its bins alone; interactions have "
            f"{most:.1%} of the variance of f, or less"
        ).replace("%", " %")

    remedy = "a narrower kernel, see the path of coefficients over widths"
    # coefficients of a sum of functions of one column are the same at all widths
    stakes = np.array([[min(1.0, most / _ALL)]])
    return Checked(
        numbers=np.array([[number]]), stakes=stakes, sentence=sentence, remedy=remedy
    )


NON_LOCAL: Final = Rule(
    name="non-local weights",
    threshold=0.95,
    weight=0.43,
    per_row=False,
    per_column=False,
    check=_check,
)
"""Its number is the median of (E π)² / E π²: it depends on law, width and D alone."""
