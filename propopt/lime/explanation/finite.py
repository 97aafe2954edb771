"""What runs of finitely many samples give on average."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from propopt._typing import Array


if TYPE_CHECKING:
    from propopt.lime.explanation.result import LimeExplanation


def expected_coefficients(explanation: LimeExplanation, n_samples: int) -> Array:
    """Mean slopes with ridge λ, and the row itself as one of the samples, (N, D).

    ((n − 1) Σ + v vᵀ + λ D) β = (n − 1) Γ + v f(x), v = 1, D = diag(0, 1, ..., 1),
    with 1 for n − 1 and no v where the row is no sample of its own.
    """
    slopes = np.empty(explanation.shape)
    for n in range(len(slopes)):
        slopes[n] = _of_row(explanation, n, n_samples)
    return slopes


def _of_row(explanation: LimeExplanation, n: int, n_samples: int) -> Array:
    alpha, beta = explanation.alpha[n], explanation.coefficients[n]
    spread = alpha * (1.0 - alpha)
    bits = np.append(1.0, alpha)
    sigma = np.outer(bits, bits) + np.diag(np.append(0.0, spread))
    # E_Q[z_j f] = α_j E_Q f + α_j(1 − α_j) β_j
    gamma = bits * explanation.mean[n] + np.append(0.0, spread * beta)
    first = float(explanation.first_row)
    weight = (n_samples - first) * explanation.mean_weight[n]
    system = weight * sigma + first + explanation.ridge * _slopes_only(len(alpha))
    right = weight * gamma + first * explanation.values[n]
    return np.asarray(np.linalg.lstsq(system, right)[0][1:])


def _slopes_only(n_columns: int) -> Array:
    return np.diag(np.append(0.0, np.ones(n_columns)))
