"""Edge proximity: a small step leads to another explanation."""

from __future__ import annotations

from typing import Final

import numpy as np

from propopt.lime.diagnosis.case import Case
from propopt.lime.diagnosis.rule import Checked, Rule


_NEAR: Final = 0.05


def _check(case: Case) -> Checked:
    distance, edge, beyond = case.edges
    near = (distance < _NEAR) & case.depends
    adjacent = case.moved(near, beyond)
    jumps = np.abs(adjacent - case.beta)

    def sentence(n: int, j: int) -> str:
        return (
            f"the value is {distance[n, j]:.1%} of a bin from the edge "
            f"{edge[n, j]:.6g}; beyond it the coefficient is {case.about}"
            f"{adjacent[n, j]:.4g}, not {case.beta[n, j]:.4g}"
        ).replace("%", " %")

    remedy = "read both coefficients, or the profile over all bins"
    return Checked(
        numbers=np.where(case.depends, distance, np.nan),
        stakes=jumps / case.largest,
        sentence=sentence,
        remedy=remedy,
    )


EDGE_PROXIMITY: Final = Rule(
    name="edge proximity", threshold=_NEAR, below=True, weight=0.35, check=_check
)
