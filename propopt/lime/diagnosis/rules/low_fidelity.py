"""Low fidelity: the surrogate is not the function, around the row or at it."""

from __future__ import annotations

from typing import Final

import numpy as np

from propopt.lime.diagnosis.case import Case
from propopt.lime.diagnosis.rule import Checked, Rule


_REMEDY: Final = "look at interactions: main effects of bins cannot hold them"


def _check_r2(case: Case) -> Checked:
    r2, interactions = case.explanation.r2, case.interactions

    def sentence(n: int, j: int) -> str:
        del j
        return (
            f"the surrogate has {r2[n]:.1%} of the variance of f; interactions "
            f"of columns have {interactions[n]:.1%}, and the rest is within bins"
        ).replace("%", " %")

    # what bins leave out of a sum of functions of one column misleads nobody
    return Checked(
        numbers=r2[:, None],
        stakes=np.minimum(interactions, 1.0 - r2)[:, None],
        sentence=sentence,
        remedy=_REMEDY,
    )


R2: Final = Rule(
    name="low fidelity: r2",
    threshold=0.5,
    below=True,
    weight=0.8,
    per_column=False,
    check=_check_r2,
)


def _check_gap(case: Case) -> Checked:
    gap, own = case.explanation.local_gap, case.explanation
    sd = np.sqrt(own.runs.variance)
    ratio = np.divide(np.abs(gap), sd, out=np.zeros(len(gap)), where=sd > 0.0)

    def sentence(n: int, j: int) -> str:
        del j
        return (
            f"f is {own.values[n]:.4g} at the row and the surrogate "
            f"{own.at_row[n]:.4g}, {ratio[n]:.2g} sd of f under the weighted law away"
        )

    # in sd of f; of an additive f the surrogate is its mean over the row's cell
    stakes = np.minimum(ratio, np.sqrt(case.interactions))
    return Checked(
        numbers=ratio[:, None],
        stakes=stakes[:, None],
        sentence=sentence,
        remedy=_REMEDY,
    )


LOCAL_GAP: Final = Rule(
    name="low fidelity: local gap",
    threshold=0.5,
    weight=0.7,
    per_column=False,
    check=_check_gap,
)
