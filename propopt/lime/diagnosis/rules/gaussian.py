"""What hides and turns coefficients under normal samples weighted by distance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, final

import numpy as np

from propopt._typing import Array
from propopt.lime.diagnosis.case import Case
from propopt.lime.diagnosis.rule import Checked, Rule
from propopt.lime.gaussian import CriticalBandwidths, Gains, critical_bandwidths, gains
from propopt.lime.laws import GaussianLaw, GlimeLaw
from propopt.lime.laws.gaussian import FEW_BEYOND


_OTHER_LAW: Final = "samples are not normal"
_LARGEST_STEP: Final = 1.0 / np.sqrt(2.0 * np.pi)
"""Of θ/σ̃."""

_LEAST_OUTSIDE: Final = 30.0
"""Samples outside a bin, by weight, that a coefficient needs."""


@final
@dataclass(frozen=True, eq=False)
class _Normal:
    """Gains and critical widths of the rows."""

    gains: Gains
    critical: CriticalBandwidths

    @classmethod
    def of(cls, case: Case) -> _Normal | None:
        law = case.law
        inner = law.law if isinstance(law, GlimeLaw) else law
        if not isinstance(inner, GaussianLaw):
            return None
        return cls(gains(law, case.points), critical_bandwidths(law, case.points))


def _used(case: Case, numbers: Array) -> Array:
    return np.where(case.depends, numbers, np.nan)


def _check_off(case: Case) -> Checked | str:
    normal = _Normal.of(case)
    if normal is None:
        return _OTHER_LAW
    step = np.abs(normal.gains.theta) / (normal.gains.deviation * _LARGEST_STEP)

    def sentence(n: int, j: int) -> str:
        # θ is 0 where the width is critical
        width = normal.critical.widths[n, j]
        turned = (
            ""
            if np.isnan(width)
            else f"; at the kernel width {width:.4g} it changes its sign"
        )
        return (
            "the weighted samples have about the same density at both ends of the bin: "
            f"of a slope {normal.gains.gain[n, j]:.3g} is left, whatever it is{turned}"
        )

    remedy = "another kernel width or number of bins; compare with the gradient"
    return Checked(
        numbers=_used(case, step),
        stakes=np.ones((1, 1)),
        sentence=sentence,
        remedy=remedy,
    )


SWITCHED_OFF: Final = Rule(
    name="switched off", threshold=0.1, below=True, weight=0.95, check=_check_off
)


def _check_sign(case: Case) -> Checked | str:
    normal = _Normal.of(case)
    if normal is None:
        return _OTHER_LAW
    gain = _used(case, normal.gains.gain)

    def sentence(n: int, j: int) -> str:
        return (
            f"a slope becomes {gain[n, j]:.3g} times itself: where f increases in the "
            f"column the coefficient, {case.beta[n, j]:.4g}, is negative"
        )

    remedy = "do not read the sign as that of the gradient"
    return Checked(numbers=gain, stakes=case.sizes, sentence=sentence, remedy=remedy)


OPPOSITE_SIGN: Final = Rule(
    name="sign opposite to gradient",
    threshold=0.0,
    below=True,
    weight=0.9,
    check=_check_sign,
)


def _check_outside(case: Case) -> Checked | str:
    normal = _Normal.of(case)
    if normal is None:
        return _OTHER_LAW
    weight = case.n_samples * np.exp(case.explanation.log_weight)[:, None]
    count = _used(case, weight * normal.gains.complement)

    def sentence(n: int, j: int) -> str:
        return (
            f"of {case.n_samples:,} samples the weight {count[n, j]:.2g} is outside "
            f"the bin (1 − α = {normal.gains.complement[n, j]:.2g}): a run has nothing "
            "to compare with"
        )

    remedy = "a wider kernel, or exact limits"
    return Checked(numbers=count, stakes=case.sizes, sentence=sentence, remedy=remedy)


NONE_OUTSIDE: Final = Rule(
    name="no samples outside the bin",
    threshold=_LEAST_OUTSIDE,
    below=True,
    weight=0.85,
    check=_check_outside,
)


def _check_far(case: Case) -> Checked | str:
    normal = _Normal.of(case)
    if normal is None:
        return _OTHER_LAW
    # ν → ∞ leaves the law of the samples
    wide = gains(case.law.with_width(1e6 * case.law.kernel_width), case.points)
    far = np.abs(case.points - wide.mean) / wide.deviation

    def sentence(n: int, j: int) -> str:
        return (
            f"the value {case.points[n, j]:.6g} is {far[n, j]:.2g} standard deviations "
            "from the mean of the samples"
        )

    remedy = "few samples are near the row: a wider kernel, or GLIME's law"
    return Checked(
        numbers=_used(case, far), stakes=case.sizes, sentence=sentence, remedy=remedy
    )


FAR_FROM_MEAN: Final = Rule(
    name="far from the mean", threshold=FEW_BEYOND, weight=0.5, check=_check_far
)
