"""Normal samples in closed form: gains and critical bandwidths."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, final

import numpy as np
from scipy.special import log_ndtr

from propopt.base.arrays import Array, Attributions, Mask, Points, Values
from propopt.base.errors import InvalidInput
from propopt.lime.laws.gaussian_law import GaussianLaw, NormalColumn
from propopt.lime.laws.lime_law import GlimeLaw, LimeLaw
from propopt.structures.products.normals import log_mass, mean_of_interval, mills
from propopt.tables.frames import Labels, read_points


# ---- Where the bins of rows lie, and the normal law of weighted samples


class Near(NamedTuple):
    """Rows among their bins, (n, D) each, NaN where a value is not a number."""

    low: Array
    """q⁻."""

    high: Array
    """q⁺."""

    mean: Array
    """μ̃ = (ν²μ + σ²ξ) / (ν² + σ²)."""

    deviation: Array
    """σ̃ = νσ / √(ν² + σ²)."""

    log_weight: Array
    """log c_j."""


@final
@dataclass(frozen=True, eq=False)
class Geometry:
    """The numbers of a gaussian law, by columns, for closed forms."""

    law: GaussianLaw
    normal: Mask  # (D,): which columns are of normal numbers that are never missing
    mean: Array  # (D,): μ; NaN for other columns
    scale: Array  # (D,): σ; NaN for other columns
    width: Array  # (D,): u_j ν, the width of the kernel in units of the column

    @classmethod
    def of(cls, law: LimeLaw) -> Geometry:
        """That of a gaussian law, or of GLIME's law of one."""
        gaussian = gaussian_of(law)
        columns = [
            column
            if isinstance(column, NormalColumn) and column.missing == 0.0
            else None
            for column in gaussian.columns
        ]
        rows = [
            (np.nan, np.nan, np.nan)
            if column is None
            else (column.mean, column.scale, column.unit * law.kernel_width)
            for column in columns
        ]
        normal = np.array([column is not None for column in columns])
        return cls(gaussian, normal, *np.array(rows).T)

    def ends(self, points: Points) -> tuple[Array, Array]:
        """q⁻ and q⁺ of the bins of rows, (n, D)."""
        low, high = np.full((2, *points.shape), np.nan)
        for j, column in enumerate(self.law.columns):
            if self.normal[j] and isinstance(column, NormalColumn):
                known = ~np.isnan(points[:, j])
                bin_index = column.bin_index(points[known, j])
                low[known, j] = column.ends[bin_index]
                high[known, j] = column.ends[bin_index + 1]
        return low, high

    def near(self, points: Points) -> Near:
        """Rows (n, D) among their bins, under the weighted law."""
        total = self.width**2 + self.scale**2
        mean = (self.width**2 * self.mean + self.scale**2 * points) / total
        deviation = self.width * self.scale / np.sqrt(total)
        apart = (points - self.mean) ** 2 / total
        return Near(
            *self.ends(points),
            mean,
            np.broadcast_to(deviation, points.shape),
            -0.5 * (np.log1p((self.scale / self.width) ** 2) + apart),
        )


def gaussian_of(law: LimeLaw) -> GaussianLaw:
    """The law whose samples are normal, refused if there is none."""
    inner = law.law if isinstance(law, GlimeLaw) else law
    if not isinstance(inner, GaussianLaw):
        raise InvalidInput(
            "law: expected a GaussianLaw, or a GlimeLaw of one, got "
            f"{type(law).__name__}"
        )
    return inner


def rows_of_law(law: LimeLaw, X: Any) -> tuple[LimeLaw, Points, Labels]:
    """Rows with their names, and the law of their columns, in the order of X."""
    points, labels = read_points(X, "X")
    own = law.aligned(labels, points.shape[1])
    return own, points, labels.or_else(own.labels)


# ---- Masses of a bin and of what is outside it, where one of them rounds to zero


class Tails(NamedTuple):
    """A standard normal law and the interval (lo, hi], of any shape S."""

    alpha: Array
    """Φ(hi) − Φ(lo)."""

    complement: Array
    """1 − α, with digits of its own."""

    theta: Array
    """φ(hi) − φ(lo) = −α E[V | in] = (1 − α) E[V | out]."""

    contrast: Array
    """E[V | in] − E[V | out] = −θ / (α (1 − α)); 0 where nothing is outside."""


def tails(lo: Array, hi: Array) -> Tails:
    """The masses of lo < V ≤ hi, and of what is outside; NaN where an end is."""
    with np.errstate(invalid="ignore"):
        log_out = np.logaddexp(log_ndtr(lo), log_ndtr(-hi))
    alpha, complement = np.exp(log_mass(lo, hi)), np.exp(log_out)
    inside = np.asarray(sum(mean_of_interval(lo, hi)))
    outside = _pull(hi, log_out) - _pull(-lo, log_out)
    theta = np.where(alpha < 0.5, -alpha * inside, complement * outside)
    contrast = np.where(np.isneginf(log_out), 0.0, inside - outside)
    return Tails(alpha, complement, theta, contrast)


def _pull(z: Array, log_out: Array) -> Array:
    """E[V 1(V > z)] over what is outside: its share, times φ(z) / (1 − Φ(z))."""
    log_tail = log_ndtr(-z)
    some = ~np.isneginf(log_tail)
    shares = np.exp(log_tail - np.where(some, log_out, 0.0))
    return np.divide(shares, mills(z), out=np.zeros(z.shape), where=some)


# ---- Linear functions under normal samples: all that their coefficients are made of


@final
@dataclass(frozen=True, eq=False)
class Gains:
    """What becomes of the slopes of linear functions: β_j = a_j g_j.

    g_j = E_Q[x_j | in the bin] − E_Q[x_j | outside] = −θ_j / (α_j (1 − α_j)) is the
    same for all linear functions. It differs between columns, so that coefficients of
    different columns do not compare, and it is negative where the bin lies left of the
    mean μ̃_j of the weighted samples: then the coefficient has the sign that the
    gradient has not.
    """

    gain: Attributions  # (n, D): g; NaN where a column or a value is not a number
    # (n, D): α, the probability of the bin under weighted samples, and 1 − α
    alpha: Array
    complement: Array  # shape (n, D)
    theta: Array  # (n, D): σ̃ (φ(hi) − φ(lo))
    mean: Array  # (n, D): μ̃
    deviation: Array  # (n, D): σ̃ of the weighted samples
    log_weight: Values  # (n,): log C, the mean weight of a sample
    labels: Labels = Labels()


def gains(law: LimeLaw, X: Any) -> Gains:
    """What LIME with normal samples makes of the slopes of linear functions.

    X (n, D).
    """
    law, points, labels = rows_of_law(law, X)
    return gains_at(Geometry.of(law), points, labels)


def gains_at(geometry: Geometry, points: Points, labels: Labels) -> Gains:
    """As :func:`gains`, at rows that are read."""
    near = geometry.near(points)
    masses = tails(
        (near.low - near.mean) / near.deviation,
        (near.high - near.mean) / near.deviation,
    )
    alpha, complement = masses.alpha, masses.complement
    log_weight = near.log_weight
    # what is no number has no gain, but a bin and a weight
    for j in np.flatnonzero(np.isnan(masses.contrast).any(axis=0)):
        tilt = geometry.law.columns[j].tilt(points[:, j], geometry.law.widths(points))
        alpha[:, j], complement[:, j] = tilt.alpha, tilt.complement
        log_weight[:, j] = tilt.log_weight
    return Gains(
        near.deviation * masses.contrast,
        alpha,
        complement,
        near.deviation * masses.theta,
        near.mean,
        near.deviation,
        log_weight.sum(axis=1),
        labels,
    )


# ---- The kernel widths at which coefficients of linear functions change sign


def hidden_at(law: LimeLaw, points: Points) -> Array:
    """The kernel widths at which the coefficient of a linear function is 0, (n, D).

    (u_j ν)² = σ_j² (2 ξ_j − q_j⁻ − q_j⁺) / (q_j⁻ + q_j⁺ − 2 μ_j), if that is positive:
    there the mean of the weighted samples crosses the middle of the bin. NaN if the
    gain never changes its sign, and for columns of categories.
    """
    result = np.full(points.shape, np.nan)
    for j, column in enumerate(law.columns):
        if not isinstance(column, NormalColumn) or column.missing:
            continue
        x = points[:, j]
        bin_index = column.bin_index(points[:, j])
        low = column.ends[bin_index]
        high = column.ends[bin_index + 1]
        middle = np.where(np.isfinite(low + high), 0.5 * low + 0.5 * high, np.nan)
        # a bin around the mean has its middle there but for rounding
        off = middle - column.mean
        rounding = 16.0 * np.finfo(float).eps * (np.abs(low) + abs(column.mean))
        square = np.full(len(x), np.nan)
        np.divide(x - middle, off, out=square, where=np.abs(off) > rounding)
        root = np.sqrt(np.where(square > 0.0, square, np.nan))
        result[:, j] = root * column.scale / column.unit
    return result


def critical_bandwidths(law: LimeLaw, X: Any) -> Array:
    """The kernel widths at which LIME hides columns from linear functions, (n, D).

    See :func:`hidden_at`.
    """
    law, points, _ = rows_of_law(law, X)
    gaussian_of(law)
    return hidden_at(law, points)
