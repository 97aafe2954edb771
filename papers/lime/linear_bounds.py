"""How many samples the linear paper proves to be enough; in practice nobody has them.

What a precision takes is told by the scatter of single runs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike

from papers.lime.gaussian_theory import Gains, Geometry, gains_at, rows_of_law
from papers.lime.linear_limits import linear_limits
from propopt.base.arrays import Array, Values
from propopt.base.checks import read_array, read_positive
from propopt.base.errors import InvalidInput
from propopt.lime.laws.lime_law import GlimeLaw, LimeLaw


@final
@dataclass(frozen=True, eq=False)
class LinearTheorem:
    """Numbers of samples after which ‖β̂ − β‖ ≤ ε with probability 1 − η, for n rows.

    Parameters
    ----------
    paper : array (n, 3)
        The three that Theorem 10.1 asks for; the largest is its bound. Its proof takes
        the largest entry of a matrix for its norm, and is not valid.
    repaired : array (n,)
        A bound that is proved.
    inverse_norm : array (n,)
        K = ‖Σ⁻¹‖, which the paper bounds by 3 d A / C.
    """

    paper: Array
    repaired: Values
    inverse_norm: Values


def linear_theorem_samples(
    law: LimeLaw,
    slopes: ArrayLike,
    X: Any,
    error: float,
    failure: float,
    intercept: float = 0.0,
) -> LinearTheorem:
    """Bounds of the samples for a linear function; vacuous in practice.

    As printed (Garreau and von Luxburg 2020, "Explaining the explainer", Theorem 10.1),
    with A = max_j 1/(α_j(1 − α_j)), F² = 3 f(μ̃)² + σ̃²‖a‖² and C = E π, the largest of

    288 ‖a‖²σ²d²A² log(12d/η) / (ε²C²),  18 d²A² log(24d²/η) / C²,
    648 d⁵A⁴F² log(24d²/η) / (C²ε²).

    Its lemma on P(‖Σ̂ − Σ‖ ≥ t) is false: for 20 columns, 200 samples and ν = 50 it
    claims less than 1.8e-4 where 0.89 is measured. The repaired bound has the entries
    of Σ̂ and Γ̂ by Hoeffding, their norms by d + 1, and the range R of π f,

    R = |f(ξ)| + 2 ‖a‖ ν e^{−1/2}:  n ≥ max((d+1)²/2 · max(4K², 16K⁴‖Γ‖²/ε²) log(4N/η),
    8(d+1) R²K²/ε² · log(4(d+1)/η)),  N = 1 + d + d(d−1)/2.

    For ten columns it asks for 1e14 samples where some ten thousands do.

    Parameters
    ----------
    law : GaussianLaw
        Of numbers alone, with one scale in units of the distance, as the paper has it.
    slopes : array (D,)
        a.
    X : DataFrame or array (n, D)
        The rows.
    error : float
        ε > 0, for the coefficients and the intercept together.
    failure : float
        η in (0, 1), the probability that the error is larger.
    intercept : float
        b.

    Raises
    ------
    InvalidInput
        If a number is out of its range, or the law is another one.
    """
    epsilon, eta = read_positive(error, "error"), _read_probability(failure)
    a = read_array(slopes, "slopes", ndim=1)
    law, points, labels = rows_of_law(law, X)
    geometry = Geometry.of(law)
    unit = _one_unit(law, geometry)
    result = gains_at(geometry, points, labels)
    mean = linear_limits(result, a, intercept).mean
    size = float(np.linalg.norm(a)) * unit
    steepest = 2.0 * size * law.kernel_width * math.exp(-0.5)
    largest = np.abs(points @ a + intercept) + steepest
    with np.errstate(over="ignore", under="ignore", divide="ignore"):
        norms = _inverse_norms(result)
        scatter = size * geometry.scale[0] / unit, size * result.deviation[:, 0] / unit
        paper = _paper(result, mean, *scatter, epsilon, eta)
        mended = _mended(norms, _gammas(result, a, mean), largest, epsilon, eta, len(a))
        share = np.exp(result.log_weight)
        return LinearTheorem(
            paper / share[:, None] ** 2, mended / share**2, norms / share
        )


def _paper(
    gains: Gains, mean: Values, size: float, tilted: Array, epsilon: float, eta: float
) -> Array:
    """The three terms of the theorem, times C², (n, 3)."""
    d = gains.alpha.shape[1]
    A = (1.0 / (gains.alpha * gains.complement)).max(axis=1)
    F2 = 3.0 * mean**2 + tilted**2
    log = math.log(24.0 * d**2 / eta)
    terms = (
        288.0 * (size * d * A / epsilon) ** 2 * math.log(12.0 * d / eta),
        18.0 * (d * A) ** 2 * log,
        648.0 * d**5 * A**4 * F2 / epsilon**2 * log,
    )
    return np.stack(terms, axis=1)


def _mended(
    norms: Values, gammas: Values, largest: Values, epsilon: float, eta: float, d: int
) -> Values:
    """The larger one of both terms that hold, times C², (n,)."""
    n_entries = 1 + d + d * (d - 1) // 2
    steepness = np.maximum(4.0 * norms**2, 16.0 * (norms**2 * gammas / epsilon) ** 2)
    of_matrix = 0.5 * (d + 1) ** 2 * steepness * math.log(4.0 * n_entries / eta)
    of_vector = 8.0 * (d + 1) * (largest * norms / epsilon) ** 2
    return np.asarray(np.maximum(of_matrix, of_vector * math.log(4.0 * (d + 1) / eta)))


def _inverse_norms(gains: Gains) -> Values:
    """‖(Σ / C)⁻¹‖, (n,); infinite where nothing is outside some bin."""
    n, d = gains.alpha.shape
    inverse = np.zeros((n, d + 1, d + 1))
    inverse[:, 0, 0] = 1.0 + (gains.alpha / gains.complement).sum(axis=1)
    inverse[:, 0, 1:] = inverse[:, 1:, 0] = -1.0 / gains.complement
    diagonal = np.arange(1, d + 1)
    inverse[:, diagonal, diagonal] = 1.0 / (gains.alpha * gains.complement)
    finite = np.isfinite(inverse).all(axis=(1, 2))
    norms = np.full(n, np.inf)
    norms[finite] = np.linalg.eigvalsh(inverse[finite])[:, -1]
    return norms


def _gammas(gains: Gains, a: Array, mean: Values) -> Values:
    """‖Γ / C‖ with Γ / C = (f(μ̃), α_j f(μ̃) − a_j θ_j), (n,)."""
    slopes = gains.alpha * mean[:, None] - a * gains.theta
    return np.asarray(np.sqrt(mean**2 + (slopes**2).sum(axis=1)))


def _one_unit(law: LimeLaw, geometry: Geometry) -> float:
    """The unit of distance, refused where columns differ in it or in their scale."""
    units = geometry.width / law.kernel_width
    alike = np.ptp(units) == 0.0 and np.ptp(geometry.scale) == 0.0
    if isinstance(law, GlimeLaw) or not (geometry.normal.all() and alike):
        raise InvalidInput(
            "law: the theorem is about weighted samples of numbers that have one scale "
            "and one unit of distance; GaussianLaw.of(mean, scale=1.0) is such a law"
        )
    return float(units[0])


def _read_probability(failure: object) -> float:
    eta = read_positive(failure, "failure")
    if eta >= 1.0:
        raise InvalidInput(f"failure: expected a probability below 1, got {failure!r}")
    return eta
