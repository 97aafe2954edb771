"""The mean of LIME on a text with few samples: those of high leverage weigh less."""

from __future__ import annotations

from typing import Final

import numpy as np

from propopt.base.arrays import Values
from propopt.lime.finite_samples import FiniteFit
from propopt.lime.text.word_limits import ExchangeableBits, TextLaw, WordRegression
from propopt.structures.subsets.sets import SizeMeans


_MOST_STEPS: Final = 20_000
_SETTLED: Final = 1e-13

_HEAVIEST: Final = float(np.log(1e140))
"""The largest log ratio of the document's weight to others with a finite square."""


def effective_log_weights(
    law: TextLaw,
    n_words: int,
    n_samples: int,
    ridge: float = 1.0,
    first_row: bool = True,
) -> Values:
    """The log weights of samples in the mean of runs, (d + 1,).

    A sample with the leverage q = Zᵀ A⁻¹ Z pulls the fit to itself, so that its weight
    is π̃ = π / (1 + π q), A = (n − 1) E[π̃ Z Zᵀ] + v vᵀ + λ D, by fixed-point steps.
    """
    logs = law.log_weights(n_words)
    ratio = np.ones(n_words + 1)
    for _ in range(_MOST_STEPS):
        before = ratio
        system = _whole_run(logs + np.log(ratio), n_samples, ridge, first_row)
        ratio = 1.0 / (1.0 + _pulls(*system, logs))
        if np.abs(ratio - before).max() < _SETTLED:
            break
    return np.asarray(logs + np.log(ratio))


def _whole_run(
    log_weights: Values, n_samples: int, ridge: float, first_row: bool
) -> tuple[ExchangeableBits, float]:
    """The bits of all samples of a run, and the ridge over their weight T."""
    logs = log_weights + np.log((n_samples - first_row) / (len(log_weights) - 1.0))
    if first_row:
        logs[-1] = min(0.0, logs.max() + _HEAVIEST)
    bits = ExchangeableBits(logs[None])
    with np.errstate(divide="ignore"):
        log_penalty = float(np.log(ridge) - bits.log_weight[0])
    return bits, float(np.exp(min(log_penalty, _HEAVIEST)))


def _pulls(bits: ExchangeableBits, penalty: float, log_weights: Values) -> Values:
    """The leverage π E_m[Zᵀ A⁻¹ Z] of samples with weights π, (d + 1,).

    Zᵀ A⁻¹ Z = (1 + (m − m̄)² / (d (L + ρ)) + m (d − m) / (d (P + ρ))) / T with the
    eigenvalues L and P of the covariance of bits, along (1, ..., 1) and orthogonal.
    """
    weights = np.exp(log_weights - bits.log_weight[0])
    along = bits.along[0] + penalty
    apart = bits.apart[0] + penalty
    of_level = bits.off_mean[0] ** 2 / (bits.n_words * along)
    return np.asarray(weights * (1.0 + of_level + bits.spread / apart))


def mean_of_runs(
    function: SizeMeans,
    law: TextLaw,
    n_samples: int,
    ridge: float = 1.0,
    first_row: bool = True,
) -> FiniteFit:
    """The mean of runs of n samples: normal equations with effective weights."""
    value = float(function.mean_by_size()[-1])
    logs = effective_log_weights(law, function.n_words, n_samples, ridge, first_row)
    limits = WordRegression(function).weighed(np.exp(logs - logs.max())[None])
    bits = ExchangeableBits(logs[None] - np.log(len(logs) - 1.0))
    return FiniteFit(
        limits.coefficients,
        limits.intercept + bits.share * limits.coefficients.sum(axis=1),
        bits,
        np.array([value]) if first_row else None,
        n_samples,
        ridge,
    )
