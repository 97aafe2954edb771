"""How single runs of LIME scatter around what they tend to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from propopt._typing import Array, Attributions, Values
from propopt.lime.explanation.subject import LimeSubject


@final
@dataclass(frozen=True, eq=False)
class RunScatter:
    """What samples tell of runs, for each of N rows.

    Parameters
    ----------
    deviations : array (N, D)
        √n times the standard deviation of a coefficient of one run of n samples:
        √(M⁻¹ E[π² r² Z Zᵀ] M⁻¹)_jj / C with E[π Z Zᵀ] = C M.
    variance : array (N,)
        Var_Q f.
    n_draws : int
        Samples of each row that both were estimated from.
    """

    deviations: Array
    variance: Values
    n_draws: int


def run_scatter(
    subject: LimeSubject, coefficients: Attributions, mean: Values, alpha: Array
) -> RunScatter:
    """The scatter of runs around given limits, from samples with their weights."""
    rng = np.random.default_rng(subject.seed)
    deviations = np.empty(coefficients.shape)
    variance = np.empty(len(mean))
    for n in range(len(mean)):
        one = slice(n, n + 1)
        draws = subject.law.draw(subject.points[one], subject.n_draws, rng)
        values = subject.function.value_at(draws.samples[0])
        weights = draws.weights[0] / draws.weights[0].mean()
        centred = draws.bits[0] - alpha[n]
        variance[n] = np.mean(weights * (values - mean[n]) ** 2)
        residuals = values - mean[n] - centred @ coefficients[n]
        # bits are independent, so slopes have the influence π r (z − α)/(C α(1 − α))
        scores = (weights * residuals)[:, None] * centred * _precision(alpha[n])
        deviations[n] = np.sqrt(np.mean(scores**2, axis=0))
    return RunScatter(deviations, variance, subject.n_draws)


def _precision(alpha: Array) -> Array:
    """1/(α(1 − α)), 0 where a bit is always the same."""
    spread = alpha * (1.0 - alpha)
    return np.divide(1.0, spread, out=np.zeros(spread.shape), where=spread > 0.0)
