"""Linear functions under normal samples: limits and scatter of LIME, in closed form."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from papers.lime.gaussian_theory import Gains, Geometry, gains_at, rows_of_law
from propopt.base.arrays import Array, Attributions, Values
from propopt.base.checks import read_array, read_count
from propopt.base.errors import InvalidInput
from propopt.lime.exact_limits import Limits
from propopt.lime.laws.lime_law import LimeLaw, Tilt
from propopt.structures.products.families import Powers


def linear_limits(gains: Gains, slopes: ArrayLike, intercept: float = 0.0) -> Limits:
    """The limits of LIME for f(x) = aᵀx + b, in closed form.

    β_j = a_j g_j,  β_0 = f(μ̃) − Σ_j α_j β_j.

    Parameters
    ----------
    found : Gains
        Of the law, at the rows.
    slopes : array (D,)
        a.
    intercept : float
        b.

    Raises
    ------
    InvalidInput
        If there is not one finite slope for each column, or a column that has one
        is not of normal numbers.
    """
    a = read_array(slopes, "slopes", ndim=1)
    if a.shape != gains.gain.shape[1:]:
        raise InvalidInput(
            f"slopes: expected {gains.gain.shape[1]} numbers, got {len(a)}"
        )
    used = a != 0.0
    absent = np.isnan(gains.gain).any(axis=0) & used
    if absent.any():
        name = gains.labels.feature_names(len(a))[int(absent.argmax())]
        raise InvalidInput(
            f"slopes: column {name!r} has a slope, but is not of numbers alone; "
            "po.lime.limits explains functions of categories and missing numbers"
        )
    coefficients = np.where(used, a * gains.gain, 0.0)
    mean = intercept + gains.mean[:, used] @ a[used]
    return Limits(coefficients, mean, gains.alpha, gains.log_weight)


# ---- How single runs of LIME scatter for linear functions, in closed form


def linear_noise(
    law: LimeLaw, slopes: ArrayLike, X: Any, n_samples: int = 5000
) -> Attributions:
    """Standard deviations of the coefficients of one run of LIME, without sampling.

    As n grows, √n (β̂ − β) tends to N(0, Σ⁻¹ E[π² r² ZZᵀ] Σ⁻¹) with the residual
    r = f − βᵀZ: of f(x) = aᵀx + b a sum of one term for each column, which are
    independent under the law of the weights π², a kernel of the width ν/√2. So no
    samples are needed, but means and variances of truncated normals.

    Parameters
    ----------
    law : GaussianLaw or GlimeLaw
        The law, without ridge and first row.
    slopes : array (D,)
        a; 0 for columns that are not of numbers alone. The intercept does not matter.
    X : DataFrame or array (n, D)
        The rows; categories as codes.
    n_samples : int
        Of the run.

    Returns
    -------
    array (n, D)

    Raises
    ------
    InvalidInput
        If the law has no normal samples, X is no table of its columns, or a slope is of
        a column that has none.

    Examples
    --------
    >>> import propopt as po
    >>> from papers.lime.linear_limits import linear_noise
    >>> law = po.lime.GaussianLaw.of([0.0] * 5, scale=1.0, kernel_width=0.5)
    >>> slopes, row = [1.0, -2.0, 0.0, 0.0, 0.0], [[1.0, 0.5, 1.0, 0.2, -1.0]]
    >>> lime = linear_noise(law, slopes, row)
    >>> glime = linear_noise(po.lime.GlimeLaw(law), slopes, row)
    >>> (lime / glime).round(1)
    array([[4.5, 4.7, 4.5, 4.8, 4.5]])
    """
    a, n = read_array(slopes, "slopes", ndim=1), read_count(n_samples, "n_samples")
    law, points, labels = rows_of_law(law, X)
    geometry = Geometry.of(law)
    result = gains_at(geometry, points, labels)
    limits = linear_limits(result, a)
    # of differences from μ, which keep their digits
    used = a != 0.0
    mean = np.where(used, geometry.mean, 0.0)
    own = law.widths(points)
    narrow = law.squared_widths(own)
    terms = [
        _Term.of(tilt, a[j], mean[j], limits.coefficients[:, j])
        for j, tilt in enumerate(law.tilts(points, narrow))
    ]
    squares = _squares(terms, result.alpha, limits.intercept - a @ mean)
    log_ratio = law.log_weights(points, narrow) - 2.0 * law.log_weights(points, own)
    spread = result.alpha * result.complement
    deviations = np.sqrt(squares * np.exp(log_ratio)[:, None] / n)
    return np.divide(deviations, spread, out=np.zeros(points.shape), where=spread > 0.0)


class _Term(NamedTuple):
    """a_j (x_j − μ_j) − β_j z_j under the law of π², for n rows: by bits 0 and 1."""

    shares: Array
    """Probabilities of both bits, (2, n)."""

    means: Array
    """(2, n)."""

    variances: Array
    """(2, n)."""

    @classmethod
    def of(cls, tilt: Tilt, slope: float, mean: float, coefficients: Values) -> _Term:
        """That of one column; zeros where it has no slope."""
        shares = np.stack([tilt.complement, tilt.alpha])
        if slope == 0.0:
            return cls(shares, *np.zeros((2, *shares.shape)))
        first, second = _moments(tilt, mean)
        means = slope * first
        means[1] -= coefficients
        return cls(shares, means, slope**2 * (second - first**2))

    @property
    def mean(self) -> Values:
        """Of both bits together, (n,)."""
        return np.asarray((self.shares * self.means).sum(axis=0))

    @property
    def variance(self) -> Values:
        """Likewise."""
        apart = self.means - self.mean
        return np.asarray((self.shares * (self.variances + apart**2)).sum(axis=0))


def _moments(tilt: Tilt, mean: float) -> tuple[Array, Array]:
    """E (x − μ) and E (x − μ)² by the bit 0 and 1, (2, n) each."""
    powers = Powers(np.zeros(2, np.intp), np.array([1, 2]), np.full(2, mean))
    one, zero = tilt.given(tilt.pieces.expect(powers))
    first, second = np.stack([zero, one], axis=1)
    return first, second


def _squares(terms: list[_Term], alpha: Array, intercept: Values) -> Array:
    """E r² (z_j − α_j)² under the law of π², (n, D); r is the sum of terms less β_0.

    Given the bit of column j its own term and the sum of all others are independent.
    """
    total = np.sum([term.mean for term in terms], axis=0) - intercept
    spread = np.sum([term.variance for term in terms], axis=0)
    squares = np.empty(alpha.shape)
    for j, term in enumerate(terms):
        rest, scatter = total - term.mean, spread - term.variance
        by_bit = term.variances + (term.means + rest) ** 2 + np.maximum(scatter, 0.0)
        bits = np.stack([-alpha[:, j], 1.0 - alpha[:, j]])
        squares[:, j] = (term.shares * by_bit * bits**2).sum(axis=0)
    return squares
