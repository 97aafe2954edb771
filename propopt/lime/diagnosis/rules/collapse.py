"""Weight collapse: ridge and the row itself decide what a run says."""

from __future__ import annotations

from typing import Final

import numpy as np

from propopt._typing import Values
from propopt.lime.diagnosis.case import Case
from propopt.lime.diagnosis.rule import Checked, Rule
from propopt.lime.finite import first_row_shift


FLOOR: Final = 0.1
"""Of the largest coefficient of the row: shifts are compared with no less."""


_WIDER: Final = (
    "a wider kernel, or exact limits, or GLIME's samples of the neighbourhood"
)


def _check_ridge(case: Case) -> Checked | str:
    if case.explanation.ridge == 0.0:
        return "runs have no ridge"
    left = np.where(case.depends, case.finite.share_left, np.nan)
    means = case.finite.coefficients
    # it depends on the shares of bins, the width and D alone
    worst = np.where(np.isnan(left), np.inf, left).argmin(axis=0)
    rows = worst, np.arange(left.shape[1])

    def sentence(_: int, j: int) -> str:
        n = worst[j]
        return (
            f"the ridge of {case.explanation.ridge:g} leaves {left[n, j]:.1%} of the "
            f"coefficient: the mean of runs of {case.n_samples:,} samples is "
            f"{means[n, j]:.4g}, the limit {case.beta[n, j]:.4g}"
        ).replace("%", " %")

    return Checked(
        numbers=left[rows][None],
        stakes=case.sizes.max(axis=0)[None],
        sentence=sentence,
        remedy=_WIDER,
    )


RIDGE: Final = Rule(
    name="weight collapse: ridge",
    threshold=0.95,
    below=True,
    weight=0.85,
    per_row=False,
    check=_check_ridge,
)


def _check_first_row(case: Case) -> Checked | str:
    own = case.explanation
    if not own.first_row:
        return "the row itself is no sample of a run"
    shift = first_row_shift(own.limits, own.values, case.n_samples).coefficients
    # of a tenth of the largest where the coefficient is smaller: no news of zeros
    ratio = np.abs(shift) / np.maximum(np.abs(case.beta), FLOOR * case.largest)
    means = case.finite.coefficients

    def sentence(n: int, j: int) -> str:
        return (
            f"the row itself, the first sample of the package, shifts the coefficient "
            f"by {shift[n, j]:+.3g} (to the first order): the mean of runs of "
            f"{case.n_samples:,} samples is {means[n, j]:.4g}, the limit "
            f"{case.beta[n, j]:.4g}"
        )

    stakes = np.abs(means - case.beta) / case.largest
    return Checked(numbers=ratio, stakes=stakes, sentence=sentence, remedy=_WIDER)


FIRST_ROW: Final = Rule(
    name="weight collapse: first row",
    threshold=0.1,
    weight=0.85,
    check=_check_first_row,
)


def _check_samples(case: Case) -> Checked:
    least = case.explanation.effective_share.min(keepdims=True)
    return counting_samples(case.n_samples, least, case.beta.shape[1] + 1, _WIDER)


def counting_samples(
    n_samples: int, shares: Values, n_fitted: int, remedy: str
) -> Checked:
    """How many samples count, over ten for each number that is fitted, (N, 1).

    Parameters
    ----------
    n_samples : int
        Of a run.
    shares : array (N,)
        (E π)² / E π².
    n_fitted : int
        The intercept and the coefficients.
    remedy : str
        What would do.
    """
    effective = n_samples * shares

    def sentence(n: int, j: int) -> str:
        del j
        return (
            f"of {n_samples:,} samples {effective[n]:.3g} count, for {n_fitted} "
            "coefficients"
        )

    return Checked(
        numbers=effective[:, None] / (10.0 * n_fitted),
        stakes=np.ones((1, 1)),
        sentence=sentence,
        remedy=remedy,
    )


SAMPLES: Final = Rule(
    name="weight collapse: samples",
    threshold=1.0,
    below=True,
    weight=0.85,
    per_row=False,
    per_column=False,
    check=_check_samples,
)
