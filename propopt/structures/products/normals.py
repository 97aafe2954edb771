"""Truncated normal laws: masses, means, quantiles, quadrature, with all their digits.

Differences of distribution functions lose digits in narrow intervals, and in tails
their logarithms lose as many digits as z² has; both cases have special forms here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Final, final

import numpy as np
from scipy.special import erfcx, ndtr, ndtri, roots_legendre

from propopt.base.arrays import Array, Indices, Mask


NARROW_INTERVAL: Final = 0.1
"""Series are accurate if h (1 + |m|) is below, for an interval of length h about m."""

FAR_INTERVAL: Final = -20.0
"""Below this, in the tail, distribution functions have too few digits."""


def log_mass(low: Array, high: Array, reference: Array | float = 0.0) -> Array:
    """log(Φ(high) − Φ(low)) − reference for low < high.

    The reference may be log φ of the point nearest to zero: no digit is lost then.
    """
    a, b = _mirrored(low, high)
    with np.errstate(divide="ignore", invalid="ignore"):
        # without digits in narrow intervals and far tails
        logs: Array = np.log(ndtr(b) - ndtr(a))
    logs -= reference
    narrow = is_narrow(a, b)
    far = (b < FAR_INTERVAL) & ~narrow
    if far.any():
        above = log_density(b[far]) - np.broadcast_to(reference, logs.shape)[far]
        logs[far] = above + np.log(_tail(a[far], b[far]))
    if narrow.any():
        h, m = _length_and_middle(a[narrow], b[narrow])
        r = np.clip(0.0, a[narrow], b[narrow])
        nonzero = -0.25 * h * (2.0 * np.abs(r) + 0.5 * h)  # (r² − m²) / 2
        apart = np.where(r == 0.0, -0.5 * m**2, nonzero)
        above = log_density(r) - np.broadcast_to(reference, logs.shape)[narrow] + apart
        logs[narrow] = above + _log_length(h) + np.log1p(_even(h, m))
    return logs


def log_density(z: Array) -> Array:
    """Log-density log φ(z) of the standard normal."""
    return -0.5 * z**2 - 0.5 * np.log(2.0 * np.pi)


def share(low: Array, high: Array, start: Array, stop: Array) -> Array:
    """(Φ(stop) − Φ(start)) / (Φ(high) − Φ(low)), for low ≤ start < stop ≤ high."""
    # densities are divided first, so that tails lose no digits to large squares
    inner = np.clip(0.0, start, stop)
    outer = np.clip(0.0, low, high)
    log_ratio = 0.5 * (outer - inner) * (outer + inner)
    scaled = log_mass(start, stop, log_density(inner)) - log_mass(
        low, high, log_density(outer)
    )
    return np.exp(np.minimum(log_ratio + scaled, 0.0))


def mean_of_interval(low: Array, high: Array) -> tuple[Array, Array]:
    """E[Z | low < Z ≤ high] as an end, or 0, plus a difference, to all digits."""
    sign = np.where(low > 0.0, -1.0, 1.0)
    a, b = _mirrored(low, high)
    with np.errstate(over="ignore", invalid="ignore"):
        mass = log_mass(a, b)
        pull = np.exp(log_density(a) - mass) - np.exp(log_density(b) - mass)
    reference = np.zeros(a.shape)
    rest = np.asarray(pull)
    narrow = is_narrow(a, b)
    far = (b < 0.0) & ~narrow
    if far.any():
        reference[far] = b[far]
        rest[far] = -_below(a[far], b[far])
    if narrow.any():
        h, m = _length_and_middle(a[narrow], b[narrow])
        reference[narrow] = b[narrow]
        rest[narrow] = -0.5 * h - _odd(h, m) / (1.0 + _even(h, m))
    return sign * reference, sign * rest


def is_narrow(low: Array, high: Array, limit: float = NARROW_INTERVAL) -> Mask:
    """Whether h (1 + |m|) < limit, for the length h and the middle m of an interval."""
    with np.errstate(invalid="ignore"):
        return (high - low) * (1.0 + np.abs(0.5 * (low + high))) < limit


def _length_and_middle(low: Array, high: Array) -> tuple[Array, Array]:
    return high - low, 0.5 * (low + high)


def _mirrored(low: Array, high: Array) -> tuple[Array, Array]:
    """The interval, or its mirror image if it lies above zero."""
    right = low > 0.0
    return np.where(right, -high, low), np.where(right, -low, high)


def _log_length(h: Array) -> Array:
    """The logarithm of a length; −∞ if rounding closed the interval."""
    with np.errstate(divide="ignore"):
        return np.log(h)


def _even(h: Array, m: Array) -> Array:
    """∫ φ(m + t) dt / (h φ(m)) − 1, |t| ≤ h/2: Σ_k He_2k(m) h^2k / (4^k (2k+1)!)."""
    u = (m * h) ** 2
    v = h**2
    second = u - v
    fourth = u * (u - 6.0 * v) + 3.0 * v * v
    sixth = u * (u * (u - 15.0 * v) + 45.0 * v * v) - 15.0 * v**3
    return second / 24.0 + fourth / 1920.0 + sixth / 322560.0


def _odd(h: Array, m: Array) -> Array:
    """−∫ t φ(m + t) dt / (h φ(m)) over |t| ≤ h/2, by odd polynomials of Hermite."""
    s = m * h
    v = h**2
    u = s**2
    third = u - 3.0 * v
    fifth = u * (u - 10.0 * v) + 15.0 * v * v
    return h * s * (1.0 / 12.0 + third / 480.0 + fifth / 53760.0)


def mills(z: Array) -> Array:
    """The Mills ratio (1 − Φ(z)) / φ(z) of the standard normal."""
    return np.sqrt(0.5 * np.pi) * erfcx(z / np.sqrt(2.0))


def decay(a: Array, b: Array) -> Array:
    """φ(a) / φ(b) for a < b < 0, with the difference of the squares as a product."""
    return np.exp(0.5 * (b - a) * (a + b))


def _tail(a: Array, b: Array) -> Array:
    """(Φ(b) − Φ(a)) / φ(b) for a < b < 0."""
    return mills(-b) - mills(-a) * decay(a, b)


def _below(a: Array, b: Array) -> Array:
    """The distance of E[Z | a < Z ≤ b] from b, for a < b < 0."""
    # with R = (1 − Φ)/φ, y = −b, y′ = −a and q(y) = 1 − y R(y):
    # [q(y) − φ(a)/φ(b) (q(y′) + (y′ − y) R(y′))] / [R(y) − R(y′) φ(a)/φ(b)]
    ratio = decay(a, b)
    is_positive = ratio > 0.0
    far = np.where(is_positive, -a, 1.0)
    beyond = _left_of_one(far) + (far + b) * mills(far)
    return (_left_of_one(-b) - ratio * beyond) / _tail(a, b)


def _left_of_one(y: Array) -> Array:
    """1 − y R(y), by its asymptotic series where the difference loses all digits."""
    with np.errstate(over="ignore"):
        s = 1.0 / np.maximum(y, 40.0) ** 2
    series = s * (1 - s * (3 - s * (15 - s * (105 - s * (945 - s * 10395)))))
    return np.where(y > 40.0, series, 1.0 - y * mills(np.minimum(y, 40.0)))


@final
@dataclass(frozen=True, eq=False)
class Normals:
    """Truncated normal laws N(mean, sd²) on low < V ≤ high, of a common shape S."""

    mean: Array  # before truncation; sd > 0
    sd: Array
    low: Array  # low < high, infinite where there is no end
    high: Array

    @classmethod
    def of(cls, mean: object, sd: object, low: object, high: object) -> Normals:
        """Truncated normals from numbers and arrays that broadcast together."""
        parts = [np.atleast_1d(np.asarray(x, float)) for x in (mean, sd, low, high)]
        return cls(*np.broadcast_arrays(*parts))

    @property
    def shape(self) -> tuple[int, ...]:
        """The common shape S of all fields."""
        return self.mean.shape

    def standardised(self, x: Array) -> Array:
        """Standardised values (x − mean) / sd."""
        return (x - self.mean) / self.sd

    @property
    def log_mass(self) -> Array:
        """Log P(low < V ≤ high) of the normal law before truncation, shape S."""
        return log_mass(self.standardised(self.low), self.standardised(self.high))

    @property
    def means(self) -> Array:
        """Means E V = mean + sd (φ(l) − φ(r)) / (Φ(r) − Φ(l)), shape S."""
        low = self.standardised(self.low)
        high = self.standardised(self.high)
        reference, rest = mean_of_interval(low, high)
        at_low = reference == low
        at_high = reference == high
        start = np.where(at_low, self.low, np.where(at_high, self.high, self.mean))
        return np.clip(start + self.sd * rest, self.low, self.high)

    def shares(self, low: Array, high: Array) -> Array:
        """P(low < V ≤ high) under the truncated laws; 0 for empty intersections."""
        start = np.maximum(low, self.low)
        stop = np.minimum(high, self.high)
        overlaps = start < stop
        a = self.standardised(np.where(overlaps, start, self.low))
        b = self.standardised(np.where(overlaps, stop, self.high))
        return np.where(
            overlaps,
            share(self.standardised(self.low), self.standardised(self.high), a, b),
            0.0,
        )


# ---- Quantiles of truncated normal laws, for many samples from few laws


_STRAIGHT: Final = 1e-4
"""Intervals as narrow as this have an exponential density to nine digits."""


@final
@dataclass(frozen=True, eq=False)
class Quantiles:
    """Quantile functions F⁻¹ of B truncated normal laws, with precomputed constants."""

    normals: Normals  # the laws, (B,)

    def at(self, which: Indices, uniforms: Array) -> Array:
        """F⁻¹(u) of law ``which`` for each u in [0, 1), both of shape (S,)."""
        special = self._straight | self._far
        if not special.any():
            return self._between(which, uniforms)
        values = np.empty(uniforms.shape)
        methods = (
            (self._straight, self._along),
            (self._far, self._in_tail),
            (~special, self._between),
        )
        for laws, method in methods:
            chosen = laws[which]
            if chosen.any():
                values[chosen] = method(which[chosen], uniforms[chosen])
        return values

    @cached_property
    def _ends(self) -> tuple[Array, Array]:
        normals = self.normals
        return normals.standardised(normals.low), normals.standardised(normals.high)

    @cached_property
    def _straight(self) -> Mask:
        return is_narrow(*self._ends, _STRAIGHT)

    @cached_property
    def _far(self) -> Mask:
        low, high = self._ends
        return (np.maximum(low, -high) > -FAR_INTERVAL) & ~self._straight

    @cached_property
    def _masses(self) -> tuple[Array, Array, Array]:
        """The masses below, within and above each interval."""
        low, high = self._ends
        return ndtr(low), np.exp(self.normals.log_mass), ndtr(-high)

    def _between(self, which: Indices, u: Array) -> Array:
        below, within, above = self._masses
        left = below[which] + u * within[which]
        right = above[which] + (1.0 - u) * within[which]
        z = np.where(left < right, 1.0, -1.0) * ndtri(np.minimum(left, right))
        normals = self.normals
        values = normals.mean[which] + normals.sd[which] * z
        return np.clip(values, normals.low[which], normals.high[which])

    def _along(self, which: Indices, u: Array) -> Array:
        """The value low + h s, with a density ∝ exp(−m h s) of s in [0, 1]."""
        a, b = (ends[which] for ends in self._ends)
        v = 0.5 * (b - a) * (a + b)
        flat = v == 0.0
        curved = np.where(flat, 1.0, v)
        s = np.where(flat, u, -np.log1p(u * np.expm1(-curved)) / curved)
        low = self.normals.low[which]
        high = self.normals.high[which]
        return np.clip(low + (high - low) * s, low, high)

    def _in_tail(self, which: Indices, u: Array) -> Array:
        """Quantiles in a far tail, from the inner end, by Newton's method."""
        # with y = |z| at that end and R = (1 − Φ)/φ, the distance t beyond it solves
        # log R(y + t) − log R(y) − t (y + t/2) = log v, v the share beyond
        low, high = (ends[which] for ends in self._ends)
        right = low > 0.0
        inner = np.where(right, low, -high)
        outer = np.where(right, high, -low)
        beyond = mills(outer) / mills(inner) * decay(-outer, -inner)
        log_v = np.log1p(-np.where(right, u, 1.0 - u) * (1.0 - beyond))
        t = -log_v / inner
        for _ in range(4):
            R = mills(inner + t)
            t += R * (np.log(R / mills(inner)) - t * (inner + 0.5 * t) - log_v)
        normals = self.normals
        start = np.where(right, normals.low[which], normals.high[which])
        values = start + np.where(right, t, -t) * normals.sd[which]
        return np.clip(values, normals.low[which], normals.high[which])


# ---- Gauss-Legendre nodes for means under truncated normals


LOG_TAIL: Final = 45.0
"""Tails are included until the density is e^−45 of its largest value."""


def normal_nodes(
    normals: Normals,
    n_nodes: int = 64,
    log_tail: float = LOG_TAIL,
    cuts: Array | Sequence[float] = (),  # (K,)
) -> tuple[Array, Array]:
    """Nodes x (S, Q) and weights w (S, Q), E g(V) ≈ Σ_q w_q g(x_q), Σ_q w_q = 1."""
    # between the ends, or as far from the mode as the density is relevant
    low = normals.standardised(normals.low)
    high = normals.standardised(normals.high)
    mode = np.clip(0.0, low, high)  # z of the most likely value
    # φ(mode + t) / φ(mode) = exp(−t (2 mode + t) / 2)
    reach = 2.0 * log_tail / (np.sqrt(mode**2 + 2.0 * log_tail) + np.abs(mode))
    nearest = np.clip(normals.mean, normals.low, normals.high)
    mode, reach, x0, sd = (v[..., None] for v in (mode, reach, nearest, normals.sd))
    start = np.maximum(low[..., None] - mode, -reach)
    stop = np.minimum(high[..., None] - mode, reach)
    inner = np.clip((np.asarray(cuts, float) - x0) / sd, start, stop)
    ends = np.concatenate([start, inner, stop], -1)
    unit, lengths = legendre(n_nodes)
    parts = np.diff(ends)[..., None]
    t = (ends[..., :-1, None] + parts * unit).reshape(*normals.shape, -1)
    weights = (parts * lengths).reshape(t.shape) * np.exp(-0.5 * t * (2.0 * mode + t))
    return x0 + sd * t, weights / weights.sum(axis=-1, keepdims=True)


@cache
def legendre(n_nodes: int) -> tuple[Array, Array]:
    """Gauss-Legendre nodes and weights on [0, 1]."""
    nodes, weights = roots_legendre(n_nodes)
    return 0.5 * (1.0 + nodes), 0.5 * weights
