"""Changes of sign around one kernel width, for many rows at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, final

import numpy as np
from numpy.polynomial import chebyshev

from propopt._typing import Array, Points, Truths
from propopt.lime.expectations import ExactLimits
from propopt.lime.laws.in_bins import binned_columns
from propopt.lime.paths.sign_changes import sign_changes


REACH: Final = 8.0
"""Roots are sought from the width over this to infinity."""

_NODES: Final = (12, 24, 48)
_GRID: Final = 256
_CLEAR: Final = 1e-9
"""Over the largest coefficient of the row: what is smaller has no sign."""

_HALVINGS: Final = 40


@final
@dataclass(frozen=True, eq=False)
class SignsAround:
    """Whether coefficients change their sign beside a kernel width.

    Parameters
    ----------
    roots : array (n, D)
        The width of the change of sign that is nearest by its ratio to the law's; NaN
        if there is none from an eighth of it to infinity.
    turned : array (n, D)
        Whether the sign at the law's width is not that without weights.
    wide : array (n, D)
        Coefficients without weights, for ν → ∞.
    """

    roots: Array
    turned: Truths
    wide: Array


def signs_around(exact: ExactLimits, points: Points) -> SignsAround:
    """Changes of sign around the law's kernel width ν_0, for all rows.

    Coefficients are interpolated in a bounded variable of the width, by as many widths
    as it takes, and signs are read on 256 places, so that two roots nearer to each
    other than a place may be missed. Rows of which that is not precise enough have
    :func:`sign_changes` to themselves.

    Parameters
    ----------
    exact : ExactLimits
        A sum of products and a law.
    points : array (n, D)
        Encoded rows.
    """
    own, shape = exact.law.kernel_width, points.shape
    wide = exact.of(points, np.full(len(points), np.inf)).coefficients
    roots, turned = np.full(shape, np.nan), np.zeros(shape, bool)
    variable = _Variable(own, None not in binned_columns(exact.law))
    open_rows = np.arange(len(points))
    for n_nodes in _NODES:
        series = _series(exact, points[open_rows], variable, n_nodes)
        size = np.abs(series).sum(axis=0).max(axis=1)
        left = np.abs(series[-n_nodes // 4 :]).max(axis=(0, 2))
        known = left <= 0.1 * _CLEAR * size
        rows = open_rows[known]
        roots[rows], turned[rows] = _read(series[:, known], variable)
        open_rows = open_rows[~known]
        if len(open_rows) == 0:
            break
    for n in open_rows.tolist():
        for j, found in enumerate(sign_changes(exact, points[n]).columns):
            nearest = found.nearest(own)
            if nearest is not None and nearest > own / REACH:
                roots[n, j] = nearest
                turned[n, j] = found.sign_at(own) != found.signs[-1]
    return SignsAround(roots, turned, wide)


@final
@dataclass(frozen=True)
class _Variable:
    """S in [−1, 1] for widths from ν_0 / 8, where it is 1, to infinity.

    Weighted by bits, coefficients are rational in exp(−r) with r = 1 / (2 ν²); weighted
    by distances, smooth in r / (1 + 2 r).
    """

    own: float
    by_bits: bool

    @property
    def last(self) -> float:
        """Of 1 − exp(−r), or r / (1 + 2 r)."""
        r = REACH**2 / (2.0 * self.own**2)
        return float(-np.expm1(-r)) if self.by_bits else r / (1.0 + 2.0 * r)

    def of(self, width: float) -> float:
        """The place of a width."""
        r = 1.0 / (2.0 * width**2)
        s = float(-np.expm1(-r)) if self.by_bits else r / (1.0 + 2.0 * r)
        return 2.0 * s / self.last - 1.0

    def widths(self, places: Array) -> Array:
        """The widths at places."""
        s = 0.5 * self.last * (places + 1.0)
        r = -np.log1p(-s) if self.by_bits else s / (1.0 - 2.0 * s)
        with np.errstate(divide="ignore"):
            return np.asarray(np.sqrt(0.5 / r))


def _series(
    exact: ExactLimits, points: Points, variable: _Variable, n_nodes: int
) -> Array:
    """Chebyshev coefficients of β, (m, n, D)."""
    nodes = chebyshev.chebpts1(n_nodes)
    widths = variable.widths(nodes)
    found = exact.of(np.tile(points, (n_nodes, 1)), np.repeat(widths, len(points)))
    values = found.coefficients.reshape(n_nodes, *points.shape)
    weights = chebyshev.chebvander(nodes, n_nodes - 1) * (2.0 / n_nodes)
    weights[:, 0] /= 2.0
    return np.tensordot(weights.T, values, axes=1)


def _read(series: Array, variable: _Variable) -> tuple[Array, Truths]:
    """The nearest roots, and whether signs are turned, (n, D)."""
    size = np.abs(series).sum(axis=0).max(axis=1)[:, None]
    own = variable.of(variable.own)
    places = np.sort(np.append(np.linspace(-1.0, 1.0, _GRID), own))
    values = np.tensordot(chebyshev.chebvander(places, len(series) - 1), series, 1)
    signs = np.where(np.abs(values) > _CLEAR * size, np.sign(values), 0.0)
    turned = signs[np.searchsorted(places, own)] * signs[0] < 0.0
    # a sign stays until another is certain
    for k in range(1, len(places)):
        signs[k] = np.where(signs[k] == 0.0, signs[k - 1], signs[k])
    roots = np.full(series.shape[1:], np.nan)
    at, n, j = np.nonzero(signs[1:] * signs[:-1] < 0.0)
    if len(at) > 0:
        low, high = places[at], places[at + 1]
        found = _bisected(series[:, n, j], low, high, signs[at, n, j])
        widths = variable.widths(found)
        order = np.argsort(-np.abs(np.log(widths / variable.own)), kind="stable")
        roots[n[order], j[order]] = widths[order]  # the nearest is written last
    return roots, turned


def _bisected(series: Array, low: Array, high: Array, sign: Array) -> Array:
    """A root of each polynomial between places of other signs."""
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        same = np.sign(chebyshev.chebval(middle, series, tensor=False)) == sign
        low, high = np.where(same, middle, low), np.where(same, high, middle)
    return np.asarray(0.5 * (low + high))
