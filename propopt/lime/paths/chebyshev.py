"""Several functions of one variable in (0, 1) as polynomials, piece by piece."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, final

import numpy as np
from numpy.polynomial import chebyshev
from scipy.fft import dct

from propopt._typing import Array, Values
from propopt.lime.paths.curve import CurveValues


ValuesAt = Callable[[Values, Values], CurveValues]
"""Values at u, given u and 1 − u."""

LARGEST_DEGREE: Final = 64
"""Of one piece; beyond it a piece is halved."""

_FIRST_DEGREE: Final = 16
_MOST_PIECES: Final = 64

_EPS: Final = 4.0 * np.finfo(np.float64).eps
_LARGEST_NOISE: Final = 1e-10
"""Of coefficients, over the largest."""

_SPARE: Final = 2
"""Coefficients beyond a known degree, which have to be zero."""


@final
@dataclass(frozen=True, eq=False)
class Piece:
    """Polynomials p_j on low ≤ u ≤ high, by their Chebyshev coefficients.

    Parameters
    ----------
    low, high : float
        Where it is.
    coefficients : array (n, D)
        Of T_0 to T_{n−1} in 2 (u − low) / (high − low) − 1.
    at_nodes : CurveValues
        What was interpolated.
    nodes : array (n,)
        Where: increasing values of u.
    rounding : array (D,)
        How far the polynomials may be from the functions.
    resolved : bool
        Whether what is left is rounding.
    """

    low: float
    high: float
    coefficients: Array
    at_nodes: CurveValues
    nodes: Values
    rounding: Array
    resolved: bool

    def value(self, u: Values, j: int) -> Values:
        """p_j at places u (n,)."""
        t = 2.0 * (u - self.low) / (self.high - self.low) - 1.0
        return np.asarray(chebyshev.chebval(t, self.coefficients[:, j]))

    def turns(self, j: int) -> Values:
        """Where p_j may turn: real parts of the roots of its derivative, increasing."""
        own = self.coefficients[:, j]
        certain = np.flatnonzero(np.abs(own) > self.rounding[j] / len(own))
        slope = chebyshev.chebder(own[: certain.max(initial=0) + 1])
        roots = chebyshev.chebroots(slope) if len(slope) > 1 else np.zeros(0)
        near = np.real(roots[np.abs(np.imag(roots)) < 0.1])
        t = np.sort(near[np.abs(near) < 1.0])
        return self.low + 0.5 * (self.high - self.low) * (t + 1.0)


def of_degree(evaluate: ValuesAt, degree: int) -> Piece:
    """Polynomials of a known degree, on (0, 1)."""
    return _interpolated(evaluate, 0.0, 1.0, degree + 1 + _SPARE, _SPARE)


def adaptive(evaluate: ValuesAt, start: float) -> Iterator[Piece]:
    """Pieces of (start, 1) whose degree doubles until what is left is rounding."""
    ahead, n_pieces = [(start, 1.0)], 1
    while ahead:
        low, high = ahead.pop()
        piece = _doubled(evaluate, low, high)
        # beside 0 functions vary by the ratio of widths
        middle = np.sqrt(low * high) if low > 0.0 else 0.5 * high
        middle = min(middle, 0.5 * (low + high))
        is_point = not low < middle < high  # where a function jumps, at last
        if piece.resolved or n_pieces >= _MOST_PIECES or is_point:
            yield piece
        else:
            ahead += [(middle, high), (low, middle)]
            n_pieces += 1


def _doubled(evaluate: ValuesAt, low: float, high: float) -> Piece:
    degree = _FIRST_DEGREE
    piece = _interpolated(evaluate, low, high, degree, degree // 4)
    while not piece.resolved and degree < LARGEST_DEGREE:
        degree *= 2
        piece = _interpolated(evaluate, low, high, degree, degree // 4)
    return piece


def _interpolated(
    evaluate: ValuesAt, low: float, high: float, n: int, tail: int
) -> Piece:
    """Polynomials through the values at the n roots of T_n."""
    half = (2 * np.arange(n) + 1) * np.pi / (4 * n)
    up, down = np.cos(half) ** 2, np.sin(half) ** 2
    u, rest = low + (high - low) * up, (1.0 - high) + (high - low) * down
    found = evaluate(u, rest)
    coefficients = dct(found.values, type=2, axis=0) / n
    coefficients[0] /= 2.0
    left, allowed = _left(np.abs(coefficients), tail), found.rounding.max(axis=0)
    resolved = bool((left <= np.maximum(allowed, _noise(coefficients, tail))).all())
    backwards = CurveValues(found.values[::-1], found.rounding[::-1])
    rounding = 4.0 * np.maximum(left, allowed)
    return Piece(low, high, coefficients, backwards, u[::-1], rounding, resolved)


def _left(sizes: Array, tail: int) -> Array:
    """The largest of the last coefficients, (D,)."""
    return np.asarray(sizes[len(sizes) - tail :].max(axis=0))


def _noise(coefficients: Array, tail: int) -> Array:
    """Coefficients that are small and do not fall any more are noise, (D,)."""
    sizes = np.abs(coefficients)
    least = _EPS * sizes.sum(axis=0)
    left, before = _left(sizes, tail), _left(sizes[: len(sizes) - tail], tail)
    level = (left >= 0.1 * before) & (left <= _LARGEST_NOISE * sizes.max(axis=0))
    return np.where(level, left, least)
