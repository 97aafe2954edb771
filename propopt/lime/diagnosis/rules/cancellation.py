"""Cancellation by binning: a column that matters, in a bin at the mean."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

import numpy as np

from propopt.lime.diagnosis.case import Case
from propopt.lime.diagnosis.rule import Checked, Rule
from propopt.lime.laws import GaussianLaw, TabularLaw
from propopt.lime.views.columns import inner_edges, with_bins


SMALL_SHARE: Final = 0.1
"""Of the range of the profile: a smaller coefficient hides it."""

MATTERS: Final = 0.1
"""Of the largest range of the row: columns with less do not matter."""


_TINY: Final = float(np.finfo(float).tiny)


def _check(case: Case) -> Checked:
    ranges = case.ranges
    shares = ranges / np.maximum(ranges.max(axis=1, keepdims=True), _TINY)
    some = shares > MATTERS
    ratio = np.full(ranges.shape, np.nan)
    np.divide(np.abs(case.beta), ranges, out=ratio, where=some)

    def sentence(n: int, j: int) -> str:
        profile = case.profiles[j][n]
        return (
            f"the column moves the mean of f by {ranges[n, j]:.4g}, from "
            f"{np.nanmin(profile):.4g} to {np.nanmax(profile):.4g} over its bins, and "
            f"has the coefficient {case.beta[n, j]:.4g}: its bin is near the mean of "
            f"the others{_other_bins(case, n, j)}"
        )

    def remedy(n: int, j: int) -> str:
        del n, j
        return "look at the profile over all bins, or choose another number of bins"

    return Checked(
        numbers=ratio,
        stakes=shares,
        sentence=sentence,
        remedy=remedy,
    )


def _other_bins(case: Case, n: int, j: int) -> str:
    """Coefficients with one bin less and one more."""
    own = len(inner_edges(case.law.columns[j])) + 1
    known = [
        f"{value:.4g} with {count} bins"
        for count in (own - 1, own + 1)
        if (value := rebinned_coefficient(case, n, j, count)) is not None
    ]
    return f"; it is {' and '.join(known)}" if known else ""


def rebinned_coefficient(case: Case, n: int, j: int, n_bins: int) -> float | None:
    """β_j with another number of bins in column j; None if there are none."""
    law = case.law
    if n_bins < 2 or not isinstance(law, TabularLaw | GaussianLaw):
        return None
    table = case.subject.reference[:, j] if case.subject.has_table else None
    column = with_bins(law.columns[j], n_bins, table)
    if column is None:
        return None
    columns: tuple[Any, ...] = (*law.columns[:j], column, *law.columns[j + 1 :])
    return case.under(replace(law, columns=columns), n, j)


CANCELLATION: Final = Rule(
    name="cancellation by binning",
    threshold=SMALL_SHARE,
    below=True,
    weight=0.85,
    check=_check,
)
