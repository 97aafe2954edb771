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
from propopt.lime.text.sampled_words import WordMeans, limits_of
from propopt.lime.text.word_limits import (
    TextLaw,
    WordCoefficients,
    WordRegression,
)
from propopt.structures.subsets.sets import SizeMeans


# ---- Coefficients of one row at any widths, with what rounding leaves uncertain


SMALLEST_WIDTH: Final = 0.02
"""For bits: below it exp(−1 / (2 ν²)) is 0 in float64."""

LARGEST_WIDTH: Final = 1e8
"""Over that of a law: above it weights are 1 in float64."""

_FIRST: Final = 2.0**-12
"""Where the variable of other kernels begins: ν of a 64th of the law's."""

_ALIKE: Final = 1e-14


ROUNDING: Final = 64.0 * np.finfo(np.float64).eps
"""How far a sum may be off, over the sum of the sizes of its terms."""


Bounded: TypeAlias = tuple[Array, Array]
"""β at n widths, (n, D), and below what they are zero as far as can be told."""


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class WidthCurve:
    """β_j of one row, or document, as functions of u in (0, 1), which grows with ν."""

    widths: Callable[[Values, Values], Values]  # ν at u (n,), given u and 1 − u
    at: Callable[[Values], Array]  # from widths (n,) to coefficients there, (n, D)
    rounding: Callable[[Values], Array]  # below what these are zero as far as is told
    start: float = 0.0  # the least u that is looked at
    # of β in u times positive factors, which are functions of widths; None if not known
    degree: int | None = None
    factors: Callable[[Values], Array] = lambda widths: np.ones((len(widths), 1))

    def values(self, u: Values, rest: Values) -> Array:
        """Values at u (n,), where 1 − u is ``rest``, (n, D)."""
        widths = self.widths(u, rest)
        return self.at(widths) * self.factors(widths)

    def bounded(self, u: Values, rest: Values) -> Bounded:
        """The same, and what rounding may be."""
        widths = self.widths(u, rest)
        return self.values(u, rest), self.rounding(widths) * self.factors(widths)


def rational_widths(scale: float, u: Values, rest: Values) -> Values:
    """ν = s √(u / (1 − u)): in u moments of a weighted normal law are smooth."""
    with np.errstate(divide="ignore"):
        widths = np.minimum(np.sqrt(u / rest), LARGEST_WIDTH)
    return np.asarray(scale * widths)


def _curve_of_row(exact: ExactLimits, point: Array) -> WidthCurve:
    """The coefficients of a sum of products."""
    products = exact.function
    of_sizes = replace(products, values=np.abs(products.values))

    def rounding(widths: Values) -> Array:
        parts = []
        for some in exact.blocks(len(widths)):
            own = widths[some]
            means = exact.factor_means(repeated(point, len(own)), own)
            # sizes of the terms that means and contrasts are made of
            one, zero = np.abs(means.one), np.abs(means.zero)
            sizes = means.mixed(one, zero), means.contrast(one, -zero)
            parts.append(of_sizes.contrasts(*sizes)[1])
        return ROUNDING * np.concatenate(parts)

    def at(widths: Values) -> Array:
        return exact.of(repeated(point, len(widths)), widths).coefficients

    columns = binned_columns(exact.law)
    used = np.isin(np.arange(len(point)), exact.function.columns)
    binned = [c for c, u in zip(columns, used, strict=True) if u and c is not None]
    if len(binned) == 0 or len(binned) < used.sum():
        widths = partial(rational_widths, exact.law.kernel_width)
        return WidthCurve(widths=widths, at=at, rounding=rounding, start=_FIRST)
    # of the row's bin in each column; 1 where weights are not by bits
    shares = np.array(
        [
            1.0 if column is None else column.shares[column.bin_index(point[[j]])[0]]
            for j, column in enumerate(columns)
        ]
    )
    share, most = float(shares[used].mean()), int(used.sum())
    if np.ptp(shares[used]) <= _ALIKE and 0.0 < share < 1.0:
        shares = np.full(len(shares), share)
        most = int(products.lengths.max(initial=1))
    else:
        share = float(np.clip(share, 0.01, 0.99))
    # w itself where f has not the column
    w = np.where(used, shares, share)

    def factors(widths: Values) -> Array:
        # Π_{k≠j} c_k / c, of shares w_k
        eps = np.exp(-0.5 / widths**2)[:, None]
        ratios = (w + (1.0 - w) * eps) / (share + (1.0 - share) * eps)
        return np.asarray(ratios.prod(axis=1, keepdims=True) / ratios)

    return WidthCurve(
        widths=partial(_bit_widths, share),
        at=at,
        rounding=rounding,
        degree=most - 1,
        factors=factors,
    )


def _bit_widths(share: float, u: Values, rest: Values) -> Values:
    """ν = (2 log(1 + (1 − u) / (w u)))^(−1/2).

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


def repeated(point: Array, n: int) -> Points:
    """The row n times, (n, D)."""
    return np.broadcast_to(point, (n, len(point)))


# ---- Several functions of one variable in (0, 1) as polynomials, piece by piece


ValuesAt = Callable[[Values, Values], Bounded]
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
    """Polynomials p_j on low ≤ u ≤ high, by their Chebyshev coefficients."""

    low: float  # where it is
    high: float
    coefficients: Array  # (n, D): of T_0 to T_{n−1} in 2 (u − low) / (high − low) − 1
    nodes: Values  # (n,): increasing values of u
    at_nodes: Bounded  # what was interpolated there
    rounding: Array  # (D,): how far the polynomials may be from the functions
    resolved: bool  # whether what is left is rounding

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


def adaptive(evaluate: ValuesAt, start: float) -> Iterator[Piece]:
    """Pieces of (start, 1) whose degree doubles until what is left is rounding."""
    ahead, n_pieces = [(start, 1.0)], 1
    while ahead:
        low, high = ahead.pop()
        degree = _FIRST_DEGREE
        piece = _interpolated(evaluate, low, high, degree, degree // 4)
        while not piece.resolved and degree < LARGEST_DEGREE:
            degree *= 2
            piece = _interpolated(evaluate, low, high, degree, degree // 4)
        # beside 0 functions vary by the ratio of widths
        middle = np.sqrt(low * high) if low > 0.0 else 0.5 * high
        middle = min(middle, 0.5 * (low + high))
        is_point = not low < middle < high  # where a function jumps, at last
        if piece.resolved or n_pieces >= _MOST_PIECES or is_point:
            yield piece
        else:
            ahead += [(middle, high), (low, middle)]
            n_pieces += 1


def _interpolated(
    evaluate: ValuesAt, low: float, high: float, n: int, tail: int
) -> Piece:
    """Polynomials through the values at the n roots of T_n."""
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
    """Coefficients that are small and do not fall any more are noise, (D,)."""
    sizes = np.abs(coefficients)
    least = _EPS * sizes.sum(axis=0)
    left, before = _left(sizes, tail), _left(sizes[: len(sizes) - tail], tail)
    level = (left >= 0.1 * before) & (left <= _LARGEST_NOISE * sizes.max(axis=0))
    return np.where(level, left, least)


# ---- Signs of one coefficient along the widths, and brackets of its roots


def _sign_run(
    curve: WidthCurve, pieces: Sequence[Piece], j: int
) -> tuple[Values, Values, Values, Indices]:
    """The signs of column j between places at which its polynomials may turn.

    Where brackets of the C crossings begin and end (C,), where it touches zero (T,),
    and the signs between crossings (C + 1,); none if it is zero everywhere.
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
    own = np.concatenate([signs[certain[:1]], signs[after[changes]]]).astype(np.intp)
    return u[before[changes]], u[after[changes]], np.array(touches), own


def _signs_on(curve: WidthCurve, piece: Piece, j: int) -> tuple[Values, Array, Array]:
    """Places on a piece in their order, the signs there (0 unknown), and sizes."""
    # both ends and where the polynomial may turn, then where it was interpolated
    turns = np.concatenate([[piece.low], piece.turns(j), [piece.high]])
    values, bounds = piece.value(turns, j), np.full(len(turns), piece.rounding[j])
    near = np.abs(values) <= bounds
    near[[0, -1]] = False
    if near.any():
        own, rounding = curve.bounded(turns[near], 1.0 - turns[near])
        values[near], bounds[near] = own[:, j], rounding[:, j]
    u = np.concatenate([turns, piece.nodes])
    values, bounds = (
        np.concatenate([part, at_nodes[:, j]])
        for part, at_nodes in zip((values, bounds), piece.at_nodes, strict=True)
    )
    order = np.argsort(u, kind="stable")
    signs = np.where(np.abs(values) > bounds, np.sign(values), 0.0)
    return u[order], signs[order], np.abs(values)[order]


# ---- Where coefficients change their sign as the kernel width goes from 0 to infinity


@final
@dataclass(frozen=True, eq=False)
class ColumnRoots:
    """The kernel widths at which one coefficient is zero."""

    column: int  # j
    widths: Values  # (R,): ν > 0 with β_j(ν) = 0, increasing
    crosses: Mask  # (R,): whether the sign changes there; where not, β_j touches zero
    signs: Indices  # (C + 1,): −1 or 1 between the C crossings, from ν → 0 to ν → ∞

    @property
    def zero(self) -> bool:
        """Whether β_j is zero at all widths, as far as rounding tells."""
        return len(self.signs) == 0

    @property
    def crossings(self) -> Values:
        """The widths at which the sign changes, (C,)."""
        return self.widths[self.crosses]


@final
@dataclass(frozen=True, eq=False)
class SignChanges:
    """All widths at which coefficients of one row are zero."""

    columns: tuple[ColumnRoots, ...]  # (D,): those of each column
    complete: bool  # whether these are known to be all roots, up to rounding
    statement: str  # why they are all, or how they were sought

    def __getitem__(self, column: int) -> ColumnRoots:
        return self.columns[column]


def sign_changes(exact: ExactLimits, point: Array) -> SignChanges:
    """All kernel widths in (0, ∞) at which coefficients of a row (D,) are zero."""
    return roots_of(_curve_of_row(exact, point), len(point))


def roots_of(curve: WidthCurve, n_columns: int) -> SignChanges:
    """All widths at which the coefficients of a curve are zero.

    Between two places where an interpolating polynomial may turn it has one root at
    most, so the signs there tell how many there are; each is found on exact values.
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
    roots, found = _polished(curve, low, high, columns), []
    for j, (_, _, touches, signs) in enumerate(runs):
        crossed = roots[columns == j]
        u = np.concatenate([crossed, touches])
        order = np.argsort(u, kind="stable")
        widths = curve.widths(u, 1.0 - u)
        found.append(ColumnRoots(j, widths[order], order < len(crossed), signs))
    return SignChanges(tuple(found), complete, _statement(curve, pieces, complete))


def _statement(curve: WidthCurve, pieces: Sequence[Piece], complete: bool) -> str:
    if complete:
        n = len(pieces[0].nodes)
        return (
            "all roots are found: times positive factors, coefficients are polynomials "
            f"of degree {curve.degree} at most, and {n} widths determine these"
        )
    start = np.array([pieces[0].low])
    low = float(curve.widths(start, 1.0 - start)[0])
    missed = sum(not piece.resolved for piece in pieces)
    rest = f", but for {missed} of them" if missed else ""
    return (
        f"roots of interpolants on {len(pieces)} pieces between the widths {low:.3g} "
        f"and infinity, which are as near as rounding lets{rest}"
    )


def _polished(curve: WidthCurve, low: Values, high: Values, columns: Indices) -> Values:
    """The place of the change of sign of each bracket, on exact values."""
    if len(low) == 0:
        return low

    def value(u: Array, j: Array) -> Array:
        values = curve.values(u, 1.0 - u)
        return values[np.arange(len(u)), j.astype(np.intp)]

    result = elementwise.find_root(value, (low, high), args=(columns,))
    return np.asarray(np.where(result.success, result.x, 0.5 * (low + high)))


# ---- Coefficients of one row, or document, as functions of the kernel width


GRID_SIZE: Final = 50
"""Widths of a path when none are given."""

GRID_REACH: Final = 10.0
"""They go from the law's width divided by this to the law's width times this."""


@final
@dataclass(frozen=True, eq=False, repr=False)
class BandwidthPath:
    """What LIME tends to for one row, or document, at many kernel widths."""

    widths: Values  # (M,): ν, increasing
    coefficients: Array  # (M, D): β_j, exact at each width where f was read
    intercept: Values  # (M,): β_0
    curve: Callable[[], WidthCurve]  # what they are made of
    # (M, D): of coefficients that samples told; None where they are exact
    standard_errors: Array | None = None

    def __repr__(self) -> str:
        low, high = self.widths[[0, -1]]
        return (
            f"{type(self).__name__}({len(self.widths)} widths from {low:.3g} to "
            f"{high:.3g}, {self.coefficients.shape[1]} columns)"
        )

    @cached_property
    def sign_changes(self) -> SignChanges:
        """All widths in (0, ∞), also outside the path, where coefficients are zero."""
        return roots_of(self.curve(), self.coefficients.shape[1])


def _path(
    at: Callable[[Values], Limits | WordCoefficients],
    curve: Callable[[], WidthCurve],
    grid: Values,
) -> BandwidthPath:
    known = at(grid)
    errors = known.standard_errors
    return BandwidthPath(grid, known.coefficients, known.intercept, curve, errors)


def bandwidth_path(
    exact: ExactLimits, point: ArrayLike, widths: ArrayLike | None = None
) -> BandwidthPath:
    """Coefficients of one row (D,) at many kernel widths (M,), exact at each."""
    row = np.asarray(point, np.float64)
    grid = read_widths(widths, exact.law.kernel_width)

    def at(widths: Values) -> Limits:
        return exact.of(repeated(row, len(widths)), widths)

    return _path(at, partial(_curve_of_row, exact, row), grid)


def word_path(
    means: WordMeans, bandwidths: ArrayLike | None = None, own: float = 0.25
) -> BandwidthPath:
    """Coefficients of the words of one document at many bandwidths (M,)."""
    grid = read_widths(bandwidths, own)
    return _path(partial(limits_of, means), partial(_curve_of_words, means), grid)


def read_widths(widths: ArrayLike | None, own: float) -> Values:
    """Widths in increasing order; by default around that of a law, in even ratios."""
    if widths is None:
        return np.geomspace(own / GRID_REACH, own * GRID_REACH, GRID_SIZE)
    grid = read_array(widths, "widths", ndim=1)
    if (grid <= 0.0).any():
        wrong = float(grid[grid <= 0.0][0])
        raise InvalidInput(f"widths: expected numbers > 0, got {wrong}")
    return np.sort(grid)


# ---- Changes of sign around one kernel width, for many rows at once


_RATIOS: Final = np.append(2.0 ** np.linspace(-3.0, 5.0, 33), LARGEST_WIDTH)
"""Of widths to that of the law, at which signs are read."""

_OWN: Final = 12
_CLEAR: Final = 1e-9
"""Over the largest coefficient of the row: what is smaller has no sign."""


@final
@dataclass(frozen=True, eq=False)
class SignsAround:
    """How signs of coefficients change around one width, in n rows."""

    roots: Array  # (n, D): the width of the nearest change by its ratio; NaN of none
    turned: Mask  # (n, D): whether the sign there is not that without weights
    wide: Array  # (n, D): coefficients without weights


def _signs_around(
    at: Callable[[Indices, Values], Array], n_rows: int, own: float
) -> SignsAround:
    """Signs at widths a quarter of an octave apart; roots are found on exact values.

    Two roots nearer than that may be missed.
    """
    widths, K = own * _RATIOS, len(_RATIOS)
    every = at(np.tile(np.arange(n_rows), K), np.repeat(widths, n_rows))
    values = every.reshape(K, n_rows, -1)
    clear = _CLEAR * np.abs(values).max(axis=(0, 2))[:, None]
    signs = np.where(np.abs(values) > clear, np.sign(values), 0.0)
    turned = signs[_OWN] * signs[-1] < 0.0
    # a sign stays until another is certain
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

        found = elementwise.find_root(value, ends, args=(n, j))
        middle = 0.5 * (ends[0] + ends[1])
        where = 1.0 / np.where(found.success, found.x, middle)
        order = np.argsort(-np.abs(np.log(where / own)), kind="stable")
        roots[n[order], j[order]] = where[order]  # the nearest is written last
    return SignsAround(roots, turned, values[-1])


def signs_around(exact: ExactLimits, points: Points) -> SignsAround:
    """Changes of sign around the law's kernel width, for all rows of points (n, D)."""

    def at(rows: Indices, widths: Values) -> Array:
        return exact.of(points[rows], widths).coefficients

    return _signs_around(at, len(points), exact.law.kernel_width)


def signs_of_words(function: SizeMeans, bandwidth: float) -> SignsAround:
    """The same of the words of a document, (1, d)."""
    limits = WordRegression(TabledMeans(function))

    def at(_: Indices, bandwidths: Values) -> Array:
        return limits.at(bandwidths).coefficients

    return _signs_around(at, 1, bandwidth)


# ---- Coefficients of words as functions of the bandwidth


_WIDTHS: Final = np.append(np.geomspace(1e-3, 1e3, 400), np.inf)
"""Bandwidths whose weights tell those of all others."""

_RANK: Final = 1e-15
"""Of the largest singular value: directions of weights with less are left out."""

_APART: Final = 1e-12
"""Of its largest number: weights that are farther off have their own means."""


@final
@dataclass(frozen=True, eq=False)
class TabledMeans:
    """Means of sums over sizes whose weights are those of some bandwidth.

    R directions hold these to rounding, 40 for 50 words and 80 for 5,000: Σ_m w_m
    E_m[z_j f] is known from R sums for each word. Others have sums of their own.
    """

    function: SizeMeans  # f

    @property
    def n_words(self) -> int:
        """The number of words, d."""
        return self.function.n_words

    @cached_property
    def means(self) -> Values:
        """E_m f, known from what sums were taken."""
        return self.function.mean_by_size()

    def mean_by_size(self) -> Values:
        """E_m f for m = 0, ..., d words kept, (d + 1,)."""
        return self.means

    def first_moments(self, weights: Array, /) -> Array:
        """Σ_m w_m E_m[z_j f] for weights (K, d + 1) of sizes m = 0, ..., d: (K, d)."""
        parts = weights @ self._directions.T
        off = np.abs(parts @ self._directions - weights).max(axis=1)
        other = off > _APART * np.abs(weights).max(axis=1)
        result = parts @ self._table
        if other.any():
            result[other] = self.function.first_moments(weights[other])
        return np.asarray(result)

    @cached_property
    def _directions(self) -> Array:
        """An orthonormal basis of weights of bandwidths, (R, d + 1)."""
        d = self.n_words
        weights = np.array([TextLaw(float(nu)).shares(d) for nu in _WIDTHS])
        _, sizes, directions = np.linalg.svd(weights, full_matrices=False)
        return np.asarray(directions[sizes > _RANK * sizes[0]])

    @cached_property
    def _table(self) -> Array:
        """The sums for each direction, (R, d)."""
        return self.function.first_moments(self._directions)


# ---- Coefficients of one document at any bandwidths, and how far rounding goes


_SCALE: Final = 0.25
"""The package's bandwidth, in the middle of the variable."""

_NOTHING: Final = 40.0
"""Below exp of less this weights do not count: there is the limit ν → 0."""


def _curve_of_words(means: SizeMeans) -> WidthCurve:
    """β_j as functions of u = ν² / (ν² + s²) in (0, 1)."""
    tabled, d = TabledMeans(means), means.n_words
    limits = WordRegression(tabled)
    gap = -float(np.diff(TextLaw(np.sqrt(0.5)).log_weights(d)[-3:-1])[0])
    smallest = abs(gap) / (2.0 * _NOTHING)

    def at(widths: Values) -> Array:
        return limits.at(widths).coefficients

    return WidthCurve(
        widths=partial(rational_widths, _SCALE),
        at=at,
        rounding=partial(_rounding, tabled),
        start=smallest / (smallest + _SCALE**2),
    )


def _rounding(function: TabledMeans, widths: Values) -> Array:
    """Of slopes, and of Γ_j less their mean over α_1 − α_2, (n, d)."""
    d = function.n_words
    logs = np.array([TextLaw(float(nu)).log_weights(d) for nu in widths])
    bits = ExchangeableBits(logs)
    # E |m − E m| / Var m is at most two, where sizes are whole numbers
    of_slope = 1.0 / np.sqrt(np.maximum(d * bits.along, 0.25))
    of_word = bits.share / bits.apart
    largest = float(np.abs(function.means).max())
    size = ROUNDING * largest * (of_slope + of_word)
    return np.repeat(size[:, None], d, axis=1)
