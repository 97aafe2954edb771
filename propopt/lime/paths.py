"""Coefficients of rows and texts over kernel widths, and all changes of sign."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Final, TypeAlias, final

import numpy as np
from numpy.polynomial import chebyshev
from numpy.typing import ArrayLike
from scipy.fft import dct
from scipy.optimize import elementwise

from propopt.base.arrays import Array, Indices, Mask, Points, Values
from propopt.base.checks import read_array
from propopt.base.errors import InvalidInput
from propopt.lime.exact_limits import ExactLimits, ExchangeableBits, Limits
from propopt.lime.laws.binned_columns import binned_columns
from propopt.lime.text.sampled_words import SampledWords, WordMeans
from propopt.lime.text.word_limits import (
    TextLaw,
    WordCoefficients,
    WordRegression,
)
from propopt.structures.subsets.sets import SizeMeans


# ---- Coefficients of one row at any widths, with bounds of rounding errors


SMALLEST_WIDTH: Final = 0.02
"""The smallest width for bits: below it exp(−1 / (2 ν²)) is 0 in float64."""

LARGEST_WIDTH: Final = 1e8
"""The largest ratio to the width of a law: above it weights are 1 in float64."""

_FIRST: Final = 2.0**-12
"""The start of the variable of other kernels: a 64th of the width of the law."""

_EQUAL_SHARES: Final = 1e-14


ROUNDING: Final = 64.0 * np.finfo(np.float64).eps
"""The rounding error of a sum, over the sum of the sizes of its terms."""


Bounded: TypeAlias = tuple[Array, Array]
"""β at n widths, (n, D), and the bounds below which they may be zero."""


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class WidthCurve:
    """The coefficients of one row or document as functions of u in (0, 1).

    u increases with the kernel width ν.
    """

    widths: Callable[[Values, Values], Values]  # ν at u (n,), given u and 1 − u
    # from widths (n,) to the limits there, with coefficients (n, D)
    at: Callable[[Values], Limits | WordCoefficients]
    rounding: Callable[[Values], Array]  # the bounds of their rounding errors
    start: float = 0.0  # the smallest u
    # of β times positive factors as a polynomial in u; None if it is no polynomial
    degree: int | None = None
    factors: Callable[[Values], Array] = lambda widths: np.ones((len(widths), 1))

    def values(self, u: Values, rest: Values) -> Array:
        """The values β times factors at u (n,), with ``rest`` = 1 − u, (n, D)."""
        widths = self.widths(u, rest)
        return self.at(widths).coefficients * self.factors(widths)

    def bounded(self, u: Values, rest: Values) -> Bounded:
        """The values, and the bounds of their rounding errors."""
        widths = self.widths(u, rest)
        return self.values(u, rest), self.rounding(widths) * self.factors(widths)


def rational_widths(scale: float, u: Values, rest: Values) -> Values:
    """The widths ν = s √(u / (1 − u)): moments of normal laws are smooth in u."""
    with np.errstate(divide="ignore"):
        widths = np.minimum(np.sqrt(u / rest), LARGEST_WIDTH)
    return np.asarray(scale * widths)


@final
@dataclass(frozen=True, eq=False)
class RowLimits:
    """The exact limits of one row of a table at any kernel width."""

    exact: ExactLimits
    point: Array  # (D,): the row

    @property
    def width(self) -> float:
        """The kernel width of the law."""
        return self.exact.law.kernel_width

    def at(self, widths: Values) -> Limits:
        """The limits at kernel widths (n,)."""
        return self.exact.of(self._repeated(widths), widths)

    def _repeated(self, widths: Values) -> Points:
        return np.broadcast_to(self.point, (len(widths), len(self.point)))

    def _rounding(self, widths: Values) -> Array:
        """The bounds of rounding errors from the sizes of all terms, (n, D)."""
        parts, products = [], self.exact.function
        of_sizes = replace(products, values=np.abs(products.values))
        for block in self.exact.blocks(len(widths)):
            some = widths[block]
            means = self.exact.factor_means(self._repeated(some), some)
            # sizes of the terms of means and contrasts
            one, zero = np.abs(means.one), np.abs(means.zero)
            sizes = means.mixed(one, zero), means.contrast(one, -zero)
            parts.append(of_sizes.contrasts(*sizes)[1])
        return ROUNDING * np.concatenate(parts)

    @property
    def curve(self) -> WidthCurve:
        """The coefficients as functions of u, polynomials for weights by bits."""
        columns, products = binned_columns(self.exact.law), self.exact.function
        used = np.isin(np.arange(len(self.point)), products.columns)
        used_columns = [
            c for c, u in zip(columns, used, strict=True) if u and c is not None
        ]
        if len(used_columns) == 0 or len(used_columns) < used.sum():
            widths = partial(rational_widths, self.width)
            return WidthCurve(
                widths=widths, at=self.at, rounding=self._rounding, start=_FIRST
            )
        # the share of the row's bin in each column; 1 if weights do not depend on bits
        shares = np.array(
            [
                1.0 if column is None else column.shares[column.bin_index(x[None])[0]]
                for column, x in zip(columns, self.point, strict=True)
            ]
        )
        share, n_used = float(shares[used].mean()), int(used.sum())
        if np.ptp(shares[used]) <= _EQUAL_SHARES and 0.0 < share < 1.0:
            shares = np.full(len(shares), share)
            n_used = int(products.lengths.max(initial=1))
        else:
            share = float(np.clip(share, 0.01, 0.99))
        # the share itself for columns that f does not depend on
        w = np.where(used, shares, share)

        def factors(widths: Values) -> Array:
            # Π_{k≠j} c_k / c, of shares w_k
            eps = np.exp(-0.5 / widths**2)[:, None]
            ratios = (w + (1.0 - w) * eps) / (share + (1.0 - share) * eps)
            return np.asarray(ratios.prod(axis=1, keepdims=True) / ratios)

        return WidthCurve(
            widths=partial(_bit_widths, share),
            at=self.at,
            rounding=self._rounding,
            degree=n_used - 1,
            factors=factors,
        )


def _bit_widths(share: float, u: Values, rest: Values) -> Values:
    """The widths ν = (2 log(1 + (1 − u) / (w u)))^(−1/2).

    u = (1 − α) / (1 − w), α = w / (w + (1 − w) ε) for a share w, ε = exp(−1/(2ν²)).
    With E_Q g = (w_k E[g | 1] + (1 − w_k) ε E[g | 0]) / c_k, c_k = w_k + (1 − w_k) ε,
    the coefficient β_j times Π_{k≠j} c_k is a polynomial in ε. As c_k / c is affine in
    α, c of the reference, β_j Π_{k≠j} c_k / c is one in α, of a degree below the number
    of columns that f depends on; with equal shares the factors are 1, and the degree is
    below that of the longest product.
    """
    with np.errstate(divide="ignore"):
        widths = np.sqrt(0.5 / np.log1p(rest / (share * u)))
    return np.asarray(np.clip(widths, SMALLEST_WIDTH, LARGEST_WIDTH))


# ---- Functions of one variable in (0, 1) as piecewise polynomials


ValuesAt = Callable[[Values, Values], Bounded]
"""Values and bounds at u, given u and 1 − u."""

LARGEST_DEGREE: Final = 64
"""The largest degree of a piece; beyond it the piece is halved."""

_FIRST_DEGREE: Final = 16
_MOST_PIECES: Final = 64

_EPS: Final = 4.0 * np.finfo(np.float64).eps
_LARGEST_NOISE: Final = 1e-10
"""The largest noise of coefficients, over the largest coefficient."""

_SPARE: Final = 2
"""The number of coefficients beyond the degree, which have to be zero."""


@final
@dataclass(frozen=True, eq=False)
class Piece:
    """The polynomials p_j on low ≤ u ≤ high, by their Chebyshev coefficients."""

    low: float
    high: float
    coefficients: Array  # (n, D): of T_0 to T_{n−1} in 2 (u − low) / (high − low) − 1
    nodes: Values  # (n,): increasing values of u
    at_nodes: Bounded  # the interpolated values
    rounding: Array  # (D,): bounds of the difference of polynomials and functions
    resolved: bool  # whether the interpolation error is rounding

    def value(self, u: Values, j: int) -> Values:
        """The polynomial p_j at u (n,)."""
        t = 2.0 * (u - self.low) / (self.high - self.low) - 1.0
        return np.asarray(chebyshev.chebval(t, self.coefficients[:, j]))

    def turns(self, j: int) -> Values:
        """The possible extrema of p_j: real parts of roots of its derivative."""
        coefficients = self.coefficients[:, j]
        certain = np.flatnonzero(
            np.abs(coefficients) > self.rounding[j] / len(coefficients)
        )
        slope = chebyshev.chebder(coefficients[: certain.max(initial=0) + 1])
        roots = chebyshev.chebroots(slope) if len(slope) > 1 else np.zeros(0)
        close = np.real(roots[np.abs(np.imag(roots)) < 0.1])
        t = np.sort(close[np.abs(close) < 1.0])
        return self.low + 0.5 * (self.high - self.low) * (t + 1.0)


def adaptive(evaluate: ValuesAt, start: float) -> Iterator[Piece]:
    """Pieces of (start, 1) with degrees doubled until the error is rounding."""
    ahead, n_pieces = [(start, 1.0)], 1
    while ahead:
        low, high = ahead.pop()
        degree = _FIRST_DEGREE
        piece = _interpolated(evaluate, low, high, degree, degree // 4)
        while not piece.resolved and degree < LARGEST_DEGREE:
            degree *= 2
            piece = _interpolated(evaluate, low, high, degree, degree // 4)
        # close to 0 functions depend on ratios of widths
        middle = np.sqrt(low * high) if low > 0.0 else 0.5 * high
        middle = min(middle, 0.5 * (low + high))
        is_point = not low < middle < high  # at a jump of the function
        if piece.resolved or n_pieces >= _MOST_PIECES or is_point:
            yield piece
        else:
            ahead += [(middle, high), (low, middle)]
            n_pieces += 1


def _interpolated(
    evaluate: ValuesAt, low: float, high: float, n: int, tail: int
) -> Piece:
    """The polynomials through the values at the n roots of T_n."""
    half = (2 * np.arange(n) + 1) * np.pi / (4 * n)
    up, down = np.cos(half) ** 2, np.sin(half) ** 2
    u, rest = low + (high - low) * up, (1.0 - high) + (high - low) * down
    values, bounds = evaluate(u, rest)
    coefficients = dct(values, type=2, axis=0) / n
    coefficients[0] /= 2.0
    left, allowed = _left(np.abs(coefficients), tail), bounds.max(axis=0)
    resolved = bool((left <= np.maximum(allowed, _noise(coefficients, tail))).all())
    backwards, rounding = (values[::-1], bounds[::-1]), 4.0 * np.maximum(left, allowed)
    return Piece(low, high, coefficients, u[::-1], backwards, rounding, resolved)


def _left(sizes: Array, tail: int) -> Array:
    """The largest of the last coefficients, (D,)."""
    return np.asarray(sizes[len(sizes) - tail :].max(axis=0))


def _noise(coefficients: Array, tail: int) -> Array:
    """The level of small coefficients that no longer decrease: noise, (D,)."""
    sizes = np.abs(coefficients)
    least = _EPS * sizes.sum(axis=0)
    left, before = _left(sizes, tail), _left(sizes[: len(sizes) - tail], tail)
    level = (left >= 0.1 * before) & (left <= _LARGEST_NOISE * sizes.max(axis=0))
    return np.where(level, left, least)


# ---- Signs of one coefficient along the widths, and brackets of its roots


def _sign_run(
    curve: WidthCurve, pieces: Sequence[Piece], j: int
) -> tuple[Values, Values, Values, Indices]:
    """The signs of column j between possible extrema of its polynomials.

    Returns the ends of brackets of the C crossings (C,), points where it touches zero
    (T,), and the signs between crossings (C + 1,); empty if it is zero everywhere.
    """
    parts = [_signs_on(curve, piece, j) for piece in pieces]
    u, signs, sizes = (np.concatenate(part) for part in zip(*parts, strict=True))
    certain = np.flatnonzero(signs)
    before, after = certain[:-1], certain[1:]
    changes = signs[before] != signs[after]
    gaps = (after - before > 1) & ~changes
    touches = [
        u[a + 1 + np.argmin(sizes[a + 1 : b])]
        for a, b in zip(before[gaps], after[gaps], strict=True)
    ]
    run_signs = np.concatenate([signs[certain[:1]], signs[after[changes]]]).astype(
        np.intp
    )
    return u[before[changes]], u[after[changes]], np.array(touches), run_signs


def _signs_on(curve: WidthCurve, piece: Piece, j: int) -> tuple[Values, Array, Array]:
    """Increasing points of a piece, with signs (0 for uncertain ones) and sizes."""
    # both ends and possible extrema, then the nodes of interpolation
    turns = np.concatenate([[piece.low], piece.turns(j), [piece.high]])
    values, bounds = piece.value(turns, j), np.full(len(turns), piece.rounding[j])
    uncertain = np.abs(values) <= bounds
    uncertain[[0, -1]] = False
    if uncertain.any():
        exact, rounding = curve.bounded(turns[uncertain], 1.0 - turns[uncertain])
        values[uncertain], bounds[uncertain] = exact[:, j], rounding[:, j]
    u = np.concatenate([turns, piece.nodes])
    values, bounds = (
        np.concatenate([part, at_nodes[:, j]])
        for part, at_nodes in zip((values, bounds), piece.at_nodes, strict=True)
    )
    order = np.argsort(u, kind="stable")
    signs = np.where(np.abs(values) > bounds, np.sign(values), 0.0)
    return u[order], signs[order], np.abs(values)[order]


# ---- The changes of sign of coefficients for kernel widths from 0 to infinity


@final
@dataclass(frozen=True, eq=False)
class ColumnRoots:
    """The kernel widths at which one coefficient is zero."""

    column: int  # j
    widths: Values  # (R,): ν > 0 with β_j(ν) = 0, increasing
    crosses: Mask  # (R,): whether the sign changes there; else β_j touches zero
    signs: Indices  # (C + 1,): −1 or 1 between the C crossings, from ν → 0 to ν → ∞

    @property
    def zero(self) -> bool:
        """Whether β_j is zero at all widths, up to rounding."""
        return len(self.signs) == 0

    @property
    def crossings(self) -> Values:
        """The kernel widths at which the sign changes, (C,)."""
        return self.widths[self.crosses]


@final
@dataclass(frozen=True, eq=False)
class SignChanges:
    """All kernel widths at which coefficients of one row are zero."""

    columns: tuple[ColumnRoots, ...]  # (D,): the roots of each column
    complete: bool  # whether these are proved to be all roots, up to rounding
    statement: str  # the proof, or how roots were computed

    def __getitem__(self, column: int) -> ColumnRoots:
        return self.columns[column]


def sign_changes(limits: RowLimits | WordLimits) -> SignChanges:
    """All kernel widths in (0, ∞) at which coefficients of a row or text are zero."""
    curve = limits.curve
    return roots_of(curve, curve.at(np.ones(1)).coefficients.shape[1])


def roots_of(curve: WidthCurve, n_columns: int) -> SignChanges:
    """All widths at which the coefficients of a curve are zero.

    An interpolating polynomial has at most one root between two possible extrema, so
    that their signs give the number of roots; each is refined on exact values.
    """
    degree = curve.degree
    if degree is None or degree > LARGEST_DEGREE:
        pieces, complete = list(adaptive(curve.bounded, curve.start)), False
    else:
        pieces = [_interpolated(curve.bounded, 0.0, 1.0, degree + 1 + _SPARE, _SPARE)]
        complete = pieces[0].resolved
    runs = [_sign_run(curve, pieces, j) for j in range(n_columns)]
    low, high = (np.concatenate([run[k] for run in runs]) for k in (0, 1))
    columns = np.repeat(np.arange(n_columns), [len(run[0]) for run in runs])
    roots, column_roots = _polished(curve, low, high, columns), []
    for j, (_, _, touches, signs) in enumerate(runs):
        crossed = roots[columns == j]
        u = np.concatenate([crossed, touches])
        order = np.argsort(u, kind="stable")
        widths = curve.widths(u, 1.0 - u)
        column_roots.append(ColumnRoots(j, widths[order], order < len(crossed), signs))
    return SignChanges(
        tuple(column_roots), complete, _statement(curve, pieces, complete)
    )


def _statement(curve: WidthCurve, pieces: Sequence[Piece], complete: bool) -> str:
    if complete:
        n = len(pieces[0].nodes)
        return (
            "these are all roots: times positive factors, coefficients are polynomials "
            f"of degree at most {curve.degree}, which {n} widths determine"
        )
    start = np.array([pieces[0].low])
    low = float(curve.widths(start, 1.0 - start)[0])
    missed = sum(not piece.resolved for piece in pieces)
    rest = f", except on {missed} of them" if missed else ""
    return (
        f"roots of interpolants on {len(pieces)} pieces between the widths {low:.3g} "
        f"and infinity, exact up to rounding{rest}"
    )


def _polished(curve: WidthCurve, low: Values, high: Values, columns: Indices) -> Values:
    """The point u at which the sign changes in each bracket, on exact values."""
    if len(low) == 0:
        return low

    def value(u: Array, j: Array) -> Array:
        values = curve.values(u, 1.0 - u)
        return values[np.arange(len(u)), j.astype(np.intp)]

    result = elementwise.find_root(value, (low, high), args=(columns,))
    return np.asarray(np.where(result.success, result.x, 0.5 * (low + high)))


# ---- Coefficients of one row or document as functions of the kernel width


GRID_SIZE: Final = 50
"""The default number of widths of a path."""

GRID_REACH: Final = 10.0
"""Default widths go from the law's width divided by this to its width times this."""


@final
@dataclass(frozen=True, eq=False, repr=False)
class BandwidthPath:
    """The coefficients of LIME for one row or document at many kernel widths."""

    widths: Values  # (M,): ν, increasing
    coefficients: Array  # (M, D): β_j
    intercept: Values  # (M,): β_0
    limits: RowLimits | WordLimits  # at any width
    # (M, D): of estimated coefficients; None if they are exact
    standard_errors: Array | None = None

    def __repr__(self) -> str:
        low, high = self.widths[[0, -1]]
        return (
            f"{type(self).__name__}({len(self.widths)} widths from {low:.3g} to "
            f"{high:.3g}, {self.coefficients.shape[1]} columns)"
        )

    @cached_property
    def sign_changes(self) -> SignChanges:
        """All widths in (0, ∞), also outside the path, with a coefficient of zero."""
        return roots_of(self.limits.curve, self.coefficients.shape[1])


def bandwidth_path(
    limits: RowLimits | WordLimits, widths: ArrayLike | None = None
) -> BandwidthPath:
    """The coefficients of one row or document at many kernel widths (M,)."""
    grid = read_widths(widths, limits.width)
    result = limits.at(grid)
    errors = result.standard_errors
    return BandwidthPath(grid, result.coefficients, result.intercept, limits, errors)


def read_widths(widths: ArrayLike | None, center: float) -> Values:
    """The widths in increasing order; by default a geometric grid around a center."""
    if widths is None:
        return np.geomspace(center / GRID_REACH, center * GRID_REACH, GRID_SIZE)
    grid = read_array(widths, "widths", ndim=1)
    if (grid <= 0.0).any():
        wrong = float(grid[grid <= 0.0][0])
        raise InvalidInput(f"widths: expected numbers > 0, got {wrong}")
    return np.sort(grid)


# ---- Changes of sign around one kernel width, for many rows at once


_RATIOS: Final = np.append(2.0 ** np.linspace(-3.0, 5.0, 33), LARGEST_WIDTH)
"""Ratios of widths to that of the law, at which signs are computed."""

_AT_LAW: Final = 12
_CLEAR: Final = 1e-9
"""Coefficients below this part of the largest of the row have no sign."""


@final
@dataclass(frozen=True, eq=False)
class SignsAround:
    """The changes of sign of coefficients around one width, in n rows."""

    roots: Array  # (n, D): the width of the nearest change by ratio; NaN if none
    turned: Mask  # (n, D): whether the sign differs from that without weights
    wide: Array  # (n, D): coefficients without weights


def _signs_around(
    at: Callable[[Indices, Values], Array], n_rows: int, width: float
) -> SignsAround:
    """The signs at widths a quarter of an octave apart; roots use exact values.

    Two roots closer than that may be missed.
    """
    widths, K = width * _RATIOS, len(_RATIOS)
    every = at(np.tile(np.arange(n_rows), K), np.repeat(widths, n_rows))
    values = every.reshape(K, n_rows, -1)
    clear = _CLEAR * np.abs(values).max(axis=(0, 2))[:, None]
    signs = np.where(np.abs(values) > clear, np.sign(values), 0.0)
    turned = signs[_AT_LAW] * signs[-1] < 0.0
    # an uncertain sign is replaced by the one before
    for k in range(1, K):
        signs[k] = np.where(signs[k] == 0.0, signs[k - 1], signs[k])
    roots = np.full(values.shape[1:], np.nan)
    before, n, j = np.nonzero(signs[1:] * signs[:-1] < 0.0)
    if len(before) > 0:
        # in 1 / ν, in which β is smooth up to infinity
        ends = 1.0 / widths[before + 1], 1.0 / widths[before]

        def value(inverse: Array, n: Array, j: Array) -> Array:
            beta = at(n.astype(np.intp), 1.0 / inverse)
            return beta[np.arange(len(beta)), j.astype(np.intp)]

        result = elementwise.find_root(value, ends, args=(n, j))
        middle = 0.5 * (ends[0] + ends[1])
        root_widths = 1.0 / np.where(result.success, result.x, middle)
        order = np.argsort(-np.abs(np.log(root_widths / width)), kind="stable")
        roots[n[order], j[order]] = root_widths[order]  # the nearest comes last
    return SignsAround(roots, turned, values[-1])


def signs_around(exact: ExactLimits, points: Points) -> SignsAround:
    """The changes of sign around the width of the law, for rows of points (n, D)."""

    def at(rows: Indices, widths: Values) -> Array:
        return exact.of(points[rows], widths).coefficients

    return _signs_around(at, len(points), exact.law.kernel_width)


def signs_of_words(function: SizeMeans, bandwidth: float) -> SignsAround:
    """The changes of sign around a bandwidth, for the words of a document, (1, d)."""
    limits = WordRegression(TabledMeans(function))

    def at(_: Indices, bandwidths: Values) -> Array:
        return limits.at(bandwidths).coefficients

    return _signs_around(at, 1, bandwidth)


# ---- Coefficients of words as functions of the bandwidth


_WIDTHS: Final = np.append(np.geomspace(1e-3, 1e3, 400), np.inf)
"""Bandwidths with weights that span those of all others."""

_RANK: Final = 1e-15
"""Directions below this part of the largest singular value are left out."""

_APART: Final = 1e-12
"""Weights with a larger relative error are evaluated without the table."""


@final
@dataclass(frozen=True, eq=False)
class TabledMeans:
    """A table of sums over sizes, for weights of any bandwidth.

    R directions span the weights up to rounding, 40 for 50 words and 80 for 5,000:
    Σ_m w_m E_m[z_j f] follows from R sums for each word. Other weights are summed
    directly.
    """

    function: SizeMeans  # f

    @property
    def n_words(self) -> int:
        """The number of distinct words, d."""
        return self.function.n_words

    @cached_property
    def means(self) -> Values:
        """The means E_m f by number of remaining words, (d + 1,), computed once."""
        return self.function.mean_by_size()

    def mean_by_size(self) -> Values:
        """The means E_m f for m = 0, ..., d remaining words, (d + 1,)."""
        return self.means

    def first_moments(self, weights: Array, /) -> Array:
        """The sums Σ_m w_m E_m[z_j f] for weights (K, d + 1) of sizes: (K, d)."""
        parts = weights @ self._directions.T
        off = np.abs(parts @ self._directions - weights).max(axis=1)
        other = off > _APART * np.abs(weights).max(axis=1)
        result = parts @ self._table
        if other.any():
            result[other] = self.function.first_moments(weights[other])
        return np.asarray(result)

    @cached_property
    def _directions(self) -> Array:
        """An orthonormal basis of the weights of all bandwidths, (R, d + 1)."""
        d = self.n_words
        weights = np.array([TextLaw(float(nu)).shares(d) for nu in _WIDTHS])
        _, sizes, directions = np.linalg.svd(weights, full_matrices=False)
        return np.asarray(directions[sizes > _RANK * sizes[0]])

    @cached_property
    def _table(self) -> Array:
        """The sums for each direction, (R, d)."""
        return self.function.first_moments(self._directions)


# ---- Coefficients of one document at any bandwidths, and bounds of rounding


_SCALE: Final = 0.25
"""The bandwidth of the package ``lime``, in the middle of the variable."""

_NEGLIGIBLE: Final = 40.0
"""Weights below exp(−40) do not count, as in the limit ν → 0."""


@final
@dataclass(frozen=True, eq=False)
class WordLimits:
    """The limits of one document at any bandwidth, with errors if they are sampled."""

    means: WordMeans
    width: float = _SCALE  # the bandwidth in the middle of paths

    def at(self, widths: Values) -> WordCoefficients:
        """The limits at bandwidths (n,), with standard errors for estimates."""
        means = self.means
        limits = means if isinstance(means, SampledWords) else WordRegression(means)
        return limits.at(widths)

    @property
    def curve(self) -> WidthCurve:
        """The coefficients as functions of u = ν² / (ν² + s²) in (0, 1)."""
        tabled, d = TabledMeans(self.means), self.means.n_words
        gap = -float(np.diff(TextLaw(np.sqrt(0.5)).log_weights(d)[-3:-1])[0])
        smallest = abs(gap) / (2.0 * _NEGLIGIBLE)
        return WidthCurve(
            widths=partial(rational_widths, _SCALE),
            at=WordRegression(tabled).at,
            rounding=partial(_rounding, tabled),
            start=smallest / (smallest + _SCALE**2),
        )


def _rounding(function: TabledMeans, widths: Values) -> Array:
    """Rounding bounds of slopes and of (Γ_j − mean of Γ) / (α_1 − α_2), (n, d)."""
    d = function.n_words
    logs = np.array([TextLaw(float(nu)).log_weights(d) for nu in widths])
    bits = ExchangeableBits(logs)
    # E |m − E m| / Var m is at most two for integer sizes
    of_slope = 1.0 / np.sqrt(np.maximum(d * bits.along, 0.25))
    of_word = bits.share / bits.apart
    largest = float(np.abs(function.means).max())
    size = ROUNDING * largest * (of_slope + of_word)
    return np.repeat(size[:, None], d, axis=1)
