"""What contrasts of bins hide of profiles: which way they go, and that they matter."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final, final

import numpy as np

from propopt._typing import Array, Truths
from propopt.lime.diagnosis.case import Case
from propopt.lime.diagnosis.rule import Checked, Rule
from propopt.lime.laws import GaussianLaw, LimeLaw, TabularLaw
from propopt.lime.laws.in_bins import binned_columns
from propopt.lime.views.columns import inner_edges, with_bins


SMALL_SHARE: Final = 0.1
"""Of the range of the profile: a smaller coefficient hides it."""

MATTERS: Final = 0.1
"""Of the largest range of the row: columns with less do not matter."""

_FEW: Final = 20
"""Of estimated coefficients so many are told with other bins."""

_TINY: Final = float(np.finfo(float).tiny)


_ERRORS: Final = 3.0
"""Standard errors of estimates; of exact numbers errors are bounds already."""


def _check_contrast(case: Case) -> Checked | str:
    if None in binned_columns(case.law):
        return "bins have no profile of their own, as weights are of distances"
    numbers = np.full(case.beta.shape, np.nan)
    ends = np.full((2, *case.beta.shape), np.nan)
    own_errors = case.explanation.standard_errors
    exact = own_errors is None
    profiles = zip(case.profiles, case.profile_errors, strict=True)
    for j, (profile, errors) in enumerate(profiles):
        if case.coded[j]:
            continue  # categories have no order
        # without the bin of missing numbers, which comes last, and empty ones
        n_bins = len(inner_edges(case.law.columns[j])) + 1
        known = ~np.isnan(profile[:, :n_bins]).any(axis=0)
        h, error = profile[:, :n_bins][:, known], errors[:, :n_bins][:, known]
        if h.shape[1] < 2:
            continue
        allowed = (1.0 if exact else _ERRORS) * np.hypot(error[:, 1:], error[:, :-1])
        rise, steps = h[:, -1] - h[:, 0], np.diff(h, axis=1)
        way = np.sign(rise)
        far = (1.0 if exact else _ERRORS) * np.hypot(error[:, 0], error[:, -1])
        monotone = (way[:, None] * steps >= -allowed).all(axis=1) & (np.abs(rise) > far)
        zero = error.max(axis=1) if own_errors is None else _ERRORS * own_errors[:, j]
        beta = np.where(np.abs(case.beta[:, j]) > zero, case.beta[:, j], 0.0)
        numbers[monotone, j] = (way * beta)[monotone] / np.abs(rise)[monotone]
        ends[:, :, j] = h[:, 0], h[:, -1]

    def sentence(n: int, j: int) -> str:
        low, high = ends[:, n, j]
        way, sign = ("falls", "positive") if high < low else ("rises", "negative")
        return (
            f"over the bins of the column the mean of f {way} without exception, from "
            f"{case.about}{low:.4g} to {high:.4g}, and the coefficient is {sign}, "
            f"{case.beta[n, j]:.4g}: it is a contrast of bins and not a slope"
        )

    return Checked(
        numbers=numbers,
        stakes=case.sizes,
        sentence=sentence,
        remedy="read the profile, or ask po.explain for the slope at the row",
    )


CONTRAST: Final = Rule(
    name="sign against the profile",
    threshold=0.0,
    below=True,
    weight=1.0,
    least=0.96,
    check=_check_contrast,
)
"""Its number is β_j over the rise of a monotone profile, negative if signs differ."""


def _check(case: Case) -> Checked:
    ranges = case.ranges
    shares = ranges / np.maximum(ranges.max(axis=1, keepdims=True), _TINY)
    some = shares > MATTERS
    ratio = np.full(ranges.shape, np.nan)
    np.divide(np.abs(case.beta), ranges, out=ratio, where=some)

    others = _Rebinned(case, ratio < SMALL_SHARE)

    def sentence(n: int, j: int) -> str:
        profile = case.profiles[j][n]
        return (
            f"the column moves the mean of f by {case.about}{ranges[n, j]:.4g}, from "
            f"{np.nanmin(profile):.4g} to {np.nanmax(profile):.4g} over its bins, and "
            f"has the coefficient {case.beta[n, j]:.4g}: its bin is near the mean of "
            f"the others{others.told(n, j)}"
        )

    remedy = "look at the profile over all bins, or choose another number of bins"
    return Checked(
        numbers=ratio,
        stakes=ranges / case.largest,  # what a coefficient could have shown
        sentence=sentence,
        remedy=remedy,
    )


@final
@dataclass(frozen=True, eq=False)
class _Rebinned:
    """Coefficients with one bin less and one more, where they are told.

    Estimates are made for the first few only: each takes draws of its own.
    """

    case: Case
    wanted: Truths

    def told(self, n: int, j: int) -> str:
        """The end of a sentence."""
        own = len(inner_edges(self.case.law.columns[j])) + 1
        known = [
            f"{value:.4g} with {count} bins"
            for count in (own - 1, own + 1)
            if not np.isnan(value := self._coefficients[j, count][n])
        ]
        return f"; it is {' and '.join(known)}" if known else ""

    @cached_property
    def _coefficients(self) -> dict[tuple[int, int], Array]:
        """By columns and numbers of bins, (N,): NaN where it is not told."""
        found, columns = {}, np.flatnonzero(self._few.any(axis=0))
        for j in np.flatnonzero(self.wanted.any(axis=0)).tolist():
            own = len(inner_edges(self.case.law.columns[j])) + 1
            for count in (own - 1, own + 1):
                values = np.full(len(self.wanted), np.nan)
                rows = np.flatnonzero(self._few[:, j])
                law = rebinned(self.case, j, count) if j in columns else None
                if law is not None:
                    values[rows] = self.case.rebinned(law, rows, j)
                found[j, count] = values
        return found

    @cached_property
    def _few(self) -> Truths:
        """Which are computed."""
        if self.case.subject.exact is not None:
            return self.wanted
        return self.wanted & (np.cumsum(self.wanted).reshape(self.wanted.shape) <= _FEW)


def rebinned(case: Case, j: int, n_bins: int) -> LimeLaw | None:
    """The law with another number of bins in column j; None if there are none."""
    law = case.law
    if n_bins < 2 or not isinstance(law, TabularLaw | GaussianLaw):
        return None
    table = case.subject.reference[:, j] if case.subject.has_table else None
    column = with_bins(law.columns[j], n_bins, table)
    if column is None:
        return None
    columns: tuple[Any, ...] = (*law.columns[:j], column, *law.columns[j + 1 :])
    return replace(law, columns=columns)


CANCELLATION: Final = Rule(
    name="cancellation by binning",
    threshold=SMALL_SHARE,
    below=True,
    weight=0.95,
    check=_check,
)
