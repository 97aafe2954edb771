"""Non-local weights: all samples count alike, however far they are."""

from __future__ import annotations

from typing import Final

import numpy as np

from propopt.lime.diagnosis.case import Case
from propopt.lime.diagnosis.rule import Checked, Rule


def _check(case: Case) -> Checked | str:
    share = case.explanation.effective_share
    if not np.isfinite(case.law.kernel_width) or (share == 1.0).all():
        return "samples have no weights"

    def sentence(n: int, j: int) -> str:
        del j
        return (
            f"{share[n]:.2%} of the samples count with the kernel width "
            f"{case.law.kernel_width:.4g}: the explanation is of the whole table, and "
            "the row enters by its bins alone"
        ).replace("%", " %")

    remedy = "a narrower kernel, see the path of coefficients over widths"
    return Checked(
        numbers=share[:, None], stakes=np.ones((1, 1)), sentence=sentence, remedy=remedy
    )


NON_LOCAL: Final = Rule(
    name="non-local weights",
    threshold=0.95,
    weight=0.43,
    per_column=False,
    check=_check,
)
