"""Alignment artifacts: coefficients of what is far from the row, in its row or column.

A bump that shares a bin with the row in one column, and lies anywhere in the others,
gives that column a coefficient, though nothing changes near the row.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from propopt.lime.diagnosis.case import Case
from propopt.lime.diagnosis.rule import Checked, Rule
from propopt.lime.fidelity import split_by_columns


_FLAT: Final = 0.1
"""Of |β_j|: a standard deviation of f in the cell of the row below it is flat."""


def _check(case: Case) -> Checked | str:
    if case.subject.exact is None:
        return "coefficients are estimated"
    split = split_by_columns(case.subject.exact, case.points)
    outside, own = split.outside, split.parts[:, 0]
    far = (outside > ALIGNMENT.threshold) & case.depends & (case.beta != 0.0)
    rows, sd = np.flatnonzero(far.any(axis=1)), np.full(len(outside), np.nan)
    sd[rows] = case.cell_sd(rows)
    flat = sd[:, None] < _FLAT * np.abs(case.beta)

    def sentence(n: int, j: int) -> str:
        return (
            f"with the other columns in the bins of the row the coefficient is "
            f"{own[n, j]:.4g}, not {case.beta[n, j]:.4g}: {outside[n, j]:.1%} of it "
            "comes from where other columns are elsewhere, and in the cell of the row "
            f"f has a standard deviation of {sd[n]:.2g}"
        ).replace("%", " %")

    remedy = "do not read it as local: compare with a map of cells, or a gradient"
    return Checked(
        numbers=np.where(case.depends & (case.beta != 0.0), outside, np.nan),
        stakes=case.sizes,
        sentence=sentence,
        remedy=remedy,
        excuses={"f is not flat in the cell of the row": ~flat},
    )


ALIGNMENT: Final = Rule(
    name="alignment artifact",
    threshold=0.8,
    weight=0.95,
    check=_check,
)
"""Its number is Σ_{m≥1} |β_j^(m)| / Σ_m |β_j^(m)| by columns that leave the row."""
