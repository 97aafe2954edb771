"""Bandwidth fragility: another kernel width gives the coefficient another sign."""

from __future__ import annotations

from typing import Final

import numpy as np

from propopt._typing import Array
from propopt.lime.diagnosis.case import Case
from propopt.lime.diagnosis.rule import Checked, Rule
from propopt.lime.paths.around import signs_around


_OCTAVE: Final = 1.0
"""Widths from half to twice the law's are near."""


def _check(case: Case) -> Checked | str:
    exact, width = case.subject.exact, case.law.kernel_width
    if exact is None:
        return "coefficients are estimated"
    around = signs_around(exact, case.points)
    roots, turned, wide = around.roots, around.turned, around.wide
    distance = np.abs(np.log2(roots / width))

    def sentence(n: int, j: int) -> str:
        return (
            f"the coefficient, {case.beta[n, j]:.4g} at the kernel width {width:.4g}, "
            f"is zero at {roots[n, j]:.4g} and changes its sign there; without weights "
            f"it is {wide[n, j]:.4g}"
        )

    remedy = "see the path of coefficients over widths; read no sign here"
    return Checked(
        numbers=distance,
        stakes=_stakes(case, wide),
        sentence=sentence,
        remedy=remedy,
        also=turned,
    )


def _stakes(case: Case, wide: Array) -> Array:
    """The larger of both coefficients, over the largest of the row."""
    return np.asarray(np.maximum(np.abs(case.beta), np.abs(wide)) / case.largest)


FRAGILITY: Final = Rule(
    name="bandwidth fragility",
    threshold=_OCTAVE,
    below=True,
    weight=0.9,
    check=_check,
)
"""Its number is |log2(root / width)|: 1 for a root at half or twice the width."""
