"""Deliberate errors in LIME's samples, weights, regressions and limits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

import numpy as np

from papers.engine.gate import Gate, Mistake, Thinned
from papers.lime import gaussian_theory, runs
from papers.tabular_lime import bandwidth as tabular_bandwidth
from papers.text_lime import bandwidth as text_bandwidth
from papers.text_lime import runs as text_runs
from propopt.base.arrays import Array
from propopt.lime.exact_limits import ExactLimits, Limits
from propopt.lime.laws.lime_law import Draws, LimeLaw
from propopt.lime.text.word_limits import WordCoefficients, WordRegression


_FITS: Final = ((runs, "fit_bits"),)
_LIMITS: Final = ((ExactLimits, "of"), (WordRegression, "at"))
_DRAWS: Final = ((LimeLaw, "draw"), (text_runs, "drawn_runs"))
_KERNELS: Final = (
    (tabular_bandwidth, "kernel_weights"),
    (text_bandwidth, "kernel_weights"),
)


def _of_coefficients(change: Any) -> Any:
    """A change of fits (R, D + 1) behind their intercepts."""

    def changed(fits: Array) -> Array:
        return np.concatenate([fits[:, :1], change(fits[:, 1:])], axis=1)

    return changed


def _of_limits(change: Any) -> Any:
    """A change of the coefficients of limits (n, D)."""

    def changed(limits: Limits | WordCoefficients) -> Limits | WordCoefficients:
        return replace(limits, coefficients=change(limits.coefficients))

    return changed


def _squared_weights(
    draws: Draws | tuple[Array, Array] | Array,
) -> Draws | tuple[Array, Array] | Array:
    """The kernel twice."""
    if isinstance(draws, np.ndarray):
        return draws**2
    if isinstance(draws, Draws):
        return replace(draws, weights=draws.weights**2)
    bits, weights = draws
    return bits, weights**2


def _other_bits(draws: Draws | tuple[Array, Array]) -> Draws | tuple[Array, Array]:
    """Bits of the sample before."""
    if isinstance(draws, Draws):
        return replace(draws, bits=np.roll(draws.bits, 1, axis=1))
    bits, weights = draws
    return np.roll(bits, 1, axis=1), weights


LIME_MISTAKES: Final = (
    Mistake(
        name="the kernel twice", places=(*_DRAWS, *_KERNELS), change=_squared_weights
    ),
    Mistake(name="bits of another sample", places=_DRAWS, change=_other_bits),
    Mistake(
        name="samples × 1.1",
        places=((LimeLaw, "draw"),),
        change=lambda draws: replace(draws, samples=1.1 * draws.samples),
    ),
    Mistake(
        name="no intercept",
        places=_FITS,
        change=lambda fits: fits * np.r_[0.0, np.ones(fits.shape[1] - 1)],
    ),
    Mistake(
        name="runs × 1.1", places=_FITS, change=_of_coefficients(lambda x: 1.1 * x)
    ),
    Mistake(
        name="runs with the other sign",
        places=_FITS,
        change=_of_coefficients(np.negative),
    ),
    Mistake(name="runs of zero", places=_FITS, change=_of_coefficients(np.zeros_like)),
    Mistake(
        name="columns of runs permuted",
        places=_FITS,
        change=_of_coefficients(lambda x: np.roll(x, 1, axis=1)),
    ),
    Mistake(
        name="limits × 1.001", places=_LIMITS, change=_of_limits(lambda x: 1.001 * x)
    ),
    Mistake(
        name="columns of limits permuted",
        places=_LIMITS,
        change=_of_limits(lambda x: np.roll(x, 1, axis=1)),
    ),
    Mistake(
        name="limits with the other sign",
        places=_LIMITS,
        change=_of_limits(np.negative),
    ),
    Mistake(
        name="the mean at n samples is the limit × 1.1",
        places=((runs, "expected_at"), (text_runs, "expected_words")),
        change=lambda fit: 1.1 * fit,
    ),
    Mistake(
        name="gains of normal samples with the other sign",
        places=((gaussian_theory, "gains"),),
        change=lambda own: replace(own, gain=-own.gain, theta=-own.theta),
    ),
    Mistake(
        name="critical widths × 1.1",
        places=((gaussian_theory, "critical_bandwidths"),),
        change=lambda widths: 1.1 * widths,
    ),
)
"""What the three papers on LIME have to see."""


def lime_gate(
    thinned: Mapping[str, Thinned],
    *,
    left_out: Mapping[str, str] | None = None,
    excused: Mapping[tuple[str, str], str] | None = None,
    apart: Mapping[tuple[str, str], str] | None = None,
) -> Gate:
    """The gate of a paper on LIME, with 20 runs in the place of 100."""
    return Gate(
        mistakes=LIME_MISTAKES,
        thinned=thinned,
        left_out=left_out or {},
        excused=excused or {},
        apart=apart or {},
        always=(
            Mistake(
                name="few runs",
                places=((runs, "runs_together"),),
                change=lambda counts: [min(sum(counts), 20)],
            ),
        ),
    )
