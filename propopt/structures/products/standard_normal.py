"""Masses and means of intervals of the standard normal law, with all their digits.

Differences of distribution functions lose digits in narrow intervals, and in tails
logarithms of them lose as many as z² has; each has a form of its own here.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from scipy.special import erfcx, ndtr

from propopt._typing import Array, Truths


NARROW_INTERVAL: Final = 0.1
"""Intervals of length h about m are so, if h (1 + |m|) is below: there series hold."""

FAR_INTERVAL: Final = -20.0
"""Intervals below are far: distribution functions have too few digits there."""


def log_mass(low: Array, high: Array) -> Array:
    """log(Φ(high) − Φ(low)) for low < high."""
    a, b = _mirrored(low, high)
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.asarray(np.log(ndtr(b) - ndtr(a)))
    narrow = is_narrow(a, b)
    far = (b < FAR_INTERVAL) & ~narrow
    if far.any():
        logs[far] = log_density(b[far]) + np.log(_tail(a[far], b[far]))
    if narrow.any():
        h, m = _length_and_middle(a[narrow], b[narrow])
        logs[narrow] = log_density(m) + np.log(h) + np.log1p(_even(h, m))
    return logs


def log_density(z: Array) -> Array:
    """Log φ(z)."""
    return np.asarray(-0.5 * z**2 - 0.5 * np.log(2.0 * np.pi))


def share(low: Array, high: Array, start: Array, stop: Array) -> Array:
    """(Φ(stop) − Φ(start)) / (Φ(high) − Φ(low)), for low ≤ start < stop ≤ high.

    Densities are divided before they are multiplied by what is left, so that tails lose
    nothing to the squares of where they are.
    """
    inner, outer = _nearest(start, stop), _nearest(low, high)
    log_ratio = 0.5 * (outer - inner) * (outer + inner)
    scaled = _log_scaled(start, stop, inner) - _log_scaled(low, high, outer)
    return np.exp(np.minimum(log_ratio + scaled, 0.0))


def mean_of_interval(low: Array, high: Array) -> tuple[Array, Array]:
    """E[Z | low < Z ≤ high] as a point of reference and what is added to it.

    The reference is an end of the interval where both are on one side of zero, or near
    each other, so that the second part has digits of its own.
    """
    sign = np.where(_is_right(low, high), -1.0, 1.0)
    a, b = _mirrored(low, high)
    with np.errstate(over="ignore", invalid="ignore"):
        pull = np.exp(log_density(a) - log_mass(a, b)) - np.exp(
            log_density(b) - log_mass(a, b)
        )
    reference, rest = np.zeros(a.shape), np.asarray(pull)
    narrow = is_narrow(a, b)
    far = (b < 0.0) & ~narrow
    if far.any():
        reference[far], rest[far] = b[far], -_below(a[far], b[far])
    if narrow.any():
        h, m = _length_and_middle(a[narrow], b[narrow])
        reference[narrow] = b[narrow]
        rest[narrow] = -0.5 * h - _odd(h, m) / (1.0 + _even(h, m))
    return sign * reference, sign * rest


def is_narrow(low: Array, high: Array, limit: float = NARROW_INTERVAL) -> Truths:
    """Whether h (1 + |m|) < limit, for the length h and the middle m."""
    with np.errstate(invalid="ignore"):
        h, m = _length_and_middle(low, high)
        return np.asarray(h * (1.0 + np.abs(m)) < limit)


def _length_and_middle(low: Array, high: Array) -> tuple[Array, Array]:
    return high - low, 0.5 * (low + high)


def _is_right(low: Array, high: Array) -> Truths:
    del high
    return low > 0.0


def _mirrored(low: Array, high: Array) -> tuple[Array, Array]:
    """The interval, or its mirror image where it is above zero."""
    right = _is_right(low, high)
    return np.where(right, -high, low), np.where(right, -low, high)


def _nearest(low: Array, high: Array) -> Array:
    """The point of an interval that is nearest to zero."""
    return np.clip(0.0, low, high)


def _log_scaled(low: Array, high: Array, nearest: Array) -> Array:
    """Log of the mass over the density at the nearest point, up to a constant."""
    a, b = _mirrored(low, high)
    logs = log_mass(a, b) - log_density(nearest)
    narrow = is_narrow(a, b)
    far = (b < FAR_INTERVAL) & ~narrow
    if far.any():
        logs[far] = np.log(_tail(a[far], b[far]))
    if narrow.any():
        h, m = _length_and_middle(a[narrow], b[narrow])
        r = nearest[narrow]
        beside = -0.25 * h * (2.0 * np.abs(r) + 0.5 * h)  # (r² − m²) / 2
        apart = np.where(r == 0.0, -0.5 * m**2, beside)
        logs[narrow] = apart + np.log(h) + np.log1p(_even(h, m))
    return logs


def _even(h: Array, m: Array) -> Array:
    """∫ φ(m + t) dt / (h φ(m)) − 1, |t| ≤ h/2: Σ_k He_2k(m) h^2k / (4^k (2k+1)!)."""
    u, v = (m * h) ** 2, h**2
    second = u - v
    fourth = u * (u - 6.0 * v) + 3.0 * v * v
    sixth = u * (u * (u - 15.0 * v) + 45.0 * v * v) - 15.0 * v**3
    return np.asarray(second / 24.0 + fourth / 1920.0 + sixth / 322560.0)


def _odd(h: Array, m: Array) -> Array:
    """−∫ t φ(m + t) dt / (h φ(m)) over |t| ≤ h/2, by odd polynomials of Hermite."""
    s, v = m * h, h**2
    u = s**2
    third = u - 3.0 * v
    fifth = u * (u - 10.0 * v) + 15.0 * v * v
    return np.asarray(h * s * (1.0 / 12.0 + third / 480.0 + fifth / 53760.0))


def mills(z: Array) -> Array:
    """(1 − Φ(z)) / φ(z)."""
    return np.asarray(np.sqrt(0.5 * np.pi) * erfcx(z / np.sqrt(2.0)))


def decay(a: Array, b: Array) -> Array:
    """φ(a) / φ(b) for a < b < 0, from the difference of the squares as a product."""
    return np.asarray(np.exp(0.5 * (b - a) * (a + b)))


def _tail(a: Array, b: Array) -> Array:
    """(Φ(b) − Φ(a)) / φ(b) for a < b < 0."""
    return np.asarray(mills(-b) - mills(-a) * decay(a, b))


def _below(a: Array, b: Array) -> Array:
    """How far E[Z | a < Z ≤ b] is below b, for a < b < 0.

    With R = (1 − Φ)/φ, y = −b, y′ = −a and q(y) = 1 − y R(y):
    [q(y) − φ(a)/φ(b) (q(y′) + (y′ − y) R(y′))] / [R(y) − R(y′) φ(a)/φ(b)].
    """
    kept = decay(a, b)
    some = kept > 0.0
    far = np.where(some, -a, 1.0)
    beyond = _left_of_one(far) + (far + b) * mills(far)
    return np.asarray((_left_of_one(-b) - kept * beyond) / _tail(a, b))


def _left_of_one(y: Array) -> Array:
    """1 − y R(y), by its asymptotic series where the difference has no digits."""
    with np.errstate(over="ignore"):
        s = 1.0 / np.maximum(y, 40.0) ** 2
    series = s * (1 - s * (3 - s * (15 - s * (105 - s * (945 - s * 10395)))))
    return np.where(y > 40.0, series, 1.0 - y * mills(np.minimum(y, 40.0)))
