"""Sampling laws of LIME: columns, their weighted laws, draws and widths; GLIME."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Final, Protocol, Self, final

import numpy as np
from scipy.special import logsumexp

from propopt.base.arrays import Array, Indices, Mask, Points, Values
from propopt.base.checks import read_positive
from propopt.base.errors import InvalidInput
from propopt.base.resources import Budget
from propopt.base.suggestions import suggests_arguments
from propopt.base.text import plural
from propopt.structures.products.families import Factors, Pieces
from propopt.structures.products.normals import Normals, Quantiles
from propopt.tables.frames import Labels, order_of


# ---- A sampling law of LIME: how samples are drawn, coded as bits and weighted


@final
@dataclass(frozen=True, eq=False)
class Tilt:
    """The weighted law Q_j of column V_j in n situations: rows with kernel widths.

    Under Q_j, the law of the samples times the kernel's factor of this column, V_j is
    a mixture of pieces, and its bit is 1 in some of them.
    """

    pieces: Pieces  # B of them, shared by all situations, or separate for each
    inside: Array  # (B, n): their probabilities given the bit 1
    outside: Array  # (B, n): their probabilities given the bit 0
    alpha: Values  # (n,): the probability of the bit 1
    complement: Values  # (n,): 1 − α, computed without cancellation
    # (n,): log c_j, the mean of the kernel's factor under the law of the samples
    log_weight: Values

    def given(self, means: Array) -> tuple[Array, Array]:
        """E[g | bit 1] and E[g | bit 0], (U, n), from means in each piece (U, B)."""
        occurs = np.asarray((self.inside + self.outside).any(axis=1))
        if not occurs.all():  # a model may refuse a category that is never drawn
            mask = occurs if means.ndim == 2 else occurs[:, None]
            means = np.where(mask, means, 0.0)
        if means.ndim == 2:
            return means @ self.inside, means @ self.outside
        return (
            np.einsum("ubn,bn->un", means, self.inside),
            np.einsum("ubn,bn->un", means, self.outside),
        )

    @property
    def has_contrast(self) -> Array:
        """1 if both bits occur, else 0: a single bin has no coefficient, (n,)."""
        return (self.inside.any(axis=0) & self.outside.any(axis=0)).astype(float)

    def at(self, rows: slice, uniforms: Array) -> tuple[Array, Mask]:
        """The values and bits of uniform numbers (n, S) around some of the rows."""
        chosen = np.empty(uniforms.shape, np.intp)
        where = np.empty(uniforms.shape)
        for n, (ends, u) in enumerate(zip(self._ends[rows], uniforms, strict=True)):
            k = chosen[n] = np.searchsorted(ends[1:], u, side="right")
            lengths = np.diff(ends)
            lengths[lengths == 0.0] = 1.0
            where[n] = (u - ends[k]) / lengths[k]
        single = self.pieces.single
        mean = self.pieces.mean
        at = piece = chosen % len(single)
        n_rows = 1 if mean.ndim == 1 else mean.shape[1]
        if mean.ndim > 1:
            at = piece * n_rows + np.arange(n_rows)[rows, None]
        bits = chosen < len(single)
        if not single.any():
            return self._quantiles.at(at, where), bits
        values = mean.ravel()[at]
        normal = ~single[piece]
        before = np.cumsum(single) * n_rows  # single values before each piece
        values[normal] = self._quantiles.at((at - before[piece])[normal], where[normal])
        return values, bits

    @cached_property
    def _ends(self) -> Array:
        """The ends of pieces between 0 and 1, (n, 2 B + 1), those of bit 1 first."""
        masses = np.vstack([self.alpha * self.inside, self.complement * self.outside])
        ends = np.vstack([np.zeros(masses.shape[1]), np.cumsum(masses, axis=0)])
        ends = np.where(ends == ends[-1], 1.0, ends / ends[-1])
        return np.ascontiguousarray(ends.T)

    @cached_property
    def _quantiles(self) -> Quantiles:
        normals = self.pieces.normals
        parts = (normals.mean, normals.sd, normals.low, normals.high)
        return Quantiles(Normals(*(part.ravel() for part in parts)))


# ---- The means of factors of columns under a law of LIME


@final
@dataclass(eq=False)
class BinMeans:
    """The factors of one column, with cached means in pieces shared by all rows."""

    factors: Factors
    pieces: Pieces | None = None  # the pieces of the means
    means: Array | None = None  # shape (U, B)

    def __call__(self, tilt: Tilt) -> tuple[Array, Array]:
        """E_Q[g | z_j = 1] and E_Q[g | z_j = 0], (U, n) each."""
        return tilt.given(self.of(tilt.pieces))

    def of(self, pieces: Pieces) -> Array:
        """The means in each piece, computed once for pieces shared by all rows."""
        if self.means is not None and self.pieces is pieces:
            return self.means
        means = pieces.expect(self.factors)
        if pieces.mean.ndim == 1:
            self.pieces = pieces
            self.means = means
        return means


@final
@dataclass(frozen=True, eq=False)
class FactorMeans:
    """The means of U factors under the weighted law, in n situations."""

    tilts: tuple[Tilt, ...]  # (D,): the law of each column
    column: Indices  # (U,): the column of each factor
    # (U, n): E_Q[g_u | z_j = 1] and E_Q[g_u | z_j = 0], j the column of factor u
    one: Array
    zero: Array  # shape (U, n)

    @cached_property
    def alpha(self) -> Array:
        """The probability α of the bit 1 of every column, (D, n)."""
        return np.stack([tilt.alpha for tilt in self.tilts])

    @cached_property
    def complement(self) -> Array:
        """The probability 1 − α of the bit 0 of every column, (D, n)."""
        return np.stack([tilt.complement for tilt in self.tilts])

    @cached_property
    def contrasted(self) -> Array:
        """1 if both bits of a column occur, else 0, (D, n)."""
        return np.stack([tilt.has_contrast for tilt in self.tilts])

    @cached_property
    def mean(self) -> Array:
        """The means E_Q g_u of the factors, (U, n)."""
        return self.mixed(self.one, self.zero)

    def mixed(self, one: Array, zero: Array) -> Array:
        """The mixture α_j one + (1 − α_j) zero, j the column of a factor, (U, n)."""
        alpha = self.alpha[self.column]
        return alpha * one + self.complement[self.column] * zero

    def contrast(self, one: Array, zero: Array) -> Array:
        """The contrast one − zero, or 0 if only one bit occurs, (U, n)."""
        contrast = one - zero
        if not self.contrasted.all():
            contrast *= self.contrasted[self.column]
        return contrast

    @property
    def measures(self) -> tuple[Array, Array]:
        """The means, and the contrasts E_Q[g_u | z_j = 1] − E_Q[g_u | z_j = 0]."""
        return self.mean, self.contrast(self.one, self.zero)

    @property
    def log_weight(self) -> Values:
        """The logarithm of C, the mean weight of a sample, (n,)."""
        return np.sum([tilt.log_weight for tilt in self.tilts], axis=0)


class LimeColumn(Protocol):
    """One column of a sampling law: its bins, and its weighted law around values."""

    @property
    def bins(self) -> Sequence[str]:
        """The bins in words that follow the name of the column."""

    def bin_index(self, x: Values, /) -> Indices:
        """The index of the bin of each value, (n,)."""

    def beyond(self, x: Values, /) -> Mask:
        """True if values are beyond all samples, or nearly all, (n,)."""

    def tilt(self, x: Values, widths: Values, /) -> Tilt:
        """The weighted law around values x (n,), each with its kernel width (n,).

        An infinite width gives the law of the samples themselves.
        """

    def log_kernel(
        self, x: Array, values: Array, bits: Array, width: Array, /
    ) -> Array:
        """The log of the kernel's factor for samples (n, S); x and width (n, 1)."""


# ---- Weighted laws of mixtures, from the logarithms of their masses


def tilt_of_masses(pieces: Pieces, log_masses: Array, ones: Mask) -> Tilt:
    """The weighted law with these masses of pieces, P(piece) E[kernel | piece].

    Nothing underflows: rare pieces and 1 − α keep their digits.
    """
    inside, log_one = _shares(np.where(ones, log_masses, -np.inf))
    outside, log_zero = _shares(np.where(ones, -np.inf, log_masses))
    log_weight = np.logaddexp(log_one, log_zero)
    return Tilt(
        pieces,
        inside,
        outside,
        np.exp(log_one - log_weight),
        np.exp(log_zero - log_weight),
        log_weight,
    )


def _shares(log_masses: Array) -> tuple[Array, Array]:
    """The shares with the sum 1, or 0 if all masses are 0; and the log of the sum."""
    total = logsumexp(log_masses, axis=0)
    finite = np.where(np.isneginf(total), 0.0, total)
    return np.exp(log_masses - finite), total


def distance_tilt(
    pieces: Pieces,
    log_heights: Array,
    ones: Mask,
    x: Array,
    widths: Array,
    unit: float,
) -> Tilt:
    """The law of pieces (B, n) with weights exp(−(V − ξ)² / (2 (uν)²)).

    Truncated normals stay truncated normals: N(μ, σ²) times the kernel is c N(μ̃, σ̃²),
    with ω = ν² / (ν² + σ²), μ̃ = ω μ + (1 − ω) ξ, σ̃² = ω σ² and
    log c = ½ log ω − (ξ − μ)² / (2 (ν² + σ²)) (Garreau and von Luxburg 2020,
    Appendix A). If only one of both values is missing, the distance is u. Heights
    (B, n) are P(piece) over its mass under the unrestricted normal.
    """
    single = pieces.single[:, None]
    absent = np.isnan(x)
    missing = single & np.isnan(pieces.mean)
    alone = absent | missing
    sd = np.where(single, 0.0, pieces.sd)
    x = np.where(alone, pieces.mean, x)
    wide = np.where(alone, np.inf, unit * widths)
    ratio = (sd / wide) ** 2
    share = 1.0 / (1.0 + ratio)
    apart = (x - pieces.mean) ** 2 / (wide**2 + sd**2)
    logs = -0.5 * (np.log1p(ratio) + apart)
    logs = np.where(absent ^ missing, -0.5 / widths**2, logs)
    logs = np.where(absent & missing, 0.0, logs)
    tilted = replace(
        pieces,
        mean=share * pieces.mean + (1.0 - share) * x,
        sd=np.where(single, 1.0, np.sqrt(share) * sd),
    )
    logs[~pieces.single] += tilted.normals.log_mass
    return tilt_of_masses(tilted, logs + log_heights, ones)


def log_of_distance(apart: Array, x: Array, values: Array, width: Array) -> Array:
    """−d² / (2 ν²), where d is 1 if one of both values is missing, 0 if both are."""
    absent = np.isnan(apart)
    if absent.any():
        apart = np.where(absent, np.isnan(values) ^ np.isnan(x), apart)
    return -0.5 * (apart / width) ** 2


# ---- Samples around rows, with their bits and weights


@final
@dataclass(frozen=True, eq=False)
class Draws:
    """S samples around each of n rows, with bits and weights."""

    samples: Array  # (n, S, D): points at which f is evaluated
    bits: Array  # (n, S, D): z, 0 or 1
    weights: Array  # (n, S): π


def draws_at(
    columns: Sequence[LimeColumn], points: Points, widths: Values, uniforms: Array
) -> Draws:
    """The samples of Q from uniform numbers (n, S, D), with weights of one."""
    samples, bits = np.empty((2, *uniforms.shape))
    blocks = _SAMPLES_AT_ONCE.blocks(len(points), uniforms.shape[1])
    for j, column in enumerate(columns):
        tilt = column.tilt(points[:, j], widths)
        for rows in blocks:
            drawn = tilt.at(rows, uniforms[rows, :, j])
            samples[rows, :, j], bits[rows, :, j] = drawn
    return Draws(samples, bits, np.ones(uniforms.shape[:2]))


_SAMPLES_AT_ONCE: Final = Budget(2**14)
"""The samples of a column that fit in the cache of the processor."""


@suggests_arguments
@dataclass(frozen=True, eq=False, repr=False)
class LimeLaw:
    """LIME's sampling distribution: independent columns, and weights of samples.

    A sample x̃ has bits z_j, 1 where it is in the bin of the row in column j, and the
    weight π = Π_j k_j. Under Q, the law of the samples weighted by π, columns are
    independent, so that weighted least squares of f on the bits tends to

    β_j = E_Q[f | z_j = 1] − E_Q[f | z_j = 0],  β_0 = E_Q f − Σ_j α_j β_j,

    with α_j = Q(z_j = 1), for any f (after Garreau and von Luxburg 2020).

    Parameters
    ----------
    columns : tuple of LimeColumn (D,)
        The law of each column.
    kernel_width : float
        The width ν > 0 of the kernel, in the units of its distance.
    labels : Labels
        The names of the columns; by default x0, x1, …
    """

    columns: tuple[LimeColumn, ...]  # (D,): the law of each column
    kernel_width: float  # ν
    labels: Labels = Labels()  # the names of the columns

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns, (D,)."""
        return self.labels.feature_names(len(self.columns))

    def with_width(self, kernel_width: float | None) -> Self:
        """The same columns with another kernel width; None leaves that of the law."""
        if kernel_width is None:
            return self
        return replace(self, kernel_width=read_positive(kernel_width, "kernel_width"))

    def widths(self, points: Points, widths: Values | None = None) -> Values:
        """The kernel width for each point, (n,): the given ones, or that of the law.

        Parameters
        ----------
        points : array (n, D)
            The rows around which samples are drawn.
        widths : array (n,), optional
            The kernel width for each row; None gives all rows the width of the law.

        Returns
        -------
        array (n,)
            The width ν for each row, in the units of the kernel's distance.
        """
        if widths is not None:
            return widths
        return np.full(len(points), self.kernel_width)

    def squared_widths(self, widths: Values) -> Values:
        """The kernel widths (n,) that give squared weights π²: ν / √2 for gaussians."""
        return widths / np.sqrt(2.0)

    def aligned(self, labels: Labels, n_columns: int) -> Self:
        """The sampling law with its columns in the order of a table.

        Parameters
        ----------
        labels : Labels
            Names of the table's columns; without names the position decides.
        n_columns : int
            The number of columns of the table.

        Returns
        -------
        LimeLaw
            The same law with reordered columns.

        Raises
        ------
        InvalidInput
            If the law has other columns.
        """
        if len(self.columns) != n_columns:
            raise InvalidInput(
                f"law: it has {len(self.columns)} columns, and X has {n_columns}"
            )
        order = order_of(self.labels.features, labels.features, "law: its columns", "X")
        return self if order is None else self.reordered(order)

    def reordered(self, order: Indices) -> Self:
        """The same sampling law with columns in another order (D,)."""
        columns = tuple(self.columns[j] for j in order.tolist())
        return replace(self, columns=columns, labels=self.labels.of_features(order))

    def tilts(self, points: Points, widths: Values) -> tuple[Tilt, ...]:
        """The distribution of each column after weighting by the kernel, (D,).

        Parameters
        ----------
        points : array (n, D)
            The rows around which samples are drawn.
        widths : array (n,)
            The kernel width ν > 0 for each row; infinite for samples without weights.

        Returns
        -------
        tuple of Tilt (D,)
            The law of each column for all n rows.

        Raises
        ------
        ValueError
            If the rows and the law have different numbers of columns.
        """
        columns = zip(self.columns, points.T, strict=True)
        return tuple([column.tilt(x, widths) for column, x in columns])

    def log_weights(self, points: Points, widths: Values) -> Values:
        """The logarithm of the mean weight C around rows, (n,).

        Parameters
        ----------
        points : array (n, D)
            The rows around which samples are drawn.
        widths : array (n,)
            The kernel width ν > 0 for each row; infinite for samples without weights.

        Returns
        -------
        array (n,)
            The natural logarithm of C, without units.

        Raises
        ------
        ValueError
            If the rows and the law have different numbers of columns.
        """
        tilts = self.tilts(points, widths)
        return np.sum([tilt.log_weight for tilt in tilts], axis=0)

    def draw(
        self,
        points: Points,
        n_samples: int,
        rng: np.random.Generator,
        *,
        first_row: bool = False,
    ) -> Draws:
        """Draw samples as LIME does, with their bits and weights.

        Parameters
        ----------
        points : array (n, D)
            The rows.
        n_samples : int
            The number of samples S for each row.
        rng : numpy.random.Generator
            The source of random numbers.
        first_row : bool
            Whether the first sample is the row itself with weight 1, as in the package.

        Returns
        -------
        Draws
            Samples and bits (n, S, D), weights (n, S).
        """
        uniforms = rng.random((len(points), n_samples, len(self.columns)))
        draws = self._drawn(points, uniforms)
        if first_row:
            draws.samples[:, 0] = points
            draws.bits[:, 0] = 1.0
            draws.weights[:, 0] = 1.0
        return draws

    def _drawn(self, points: Points, uniforms: Array) -> Draws:
        # samples without weights are those of an infinite width
        wide = np.full(len(points), np.inf)
        widths = self.widths(points)
        draws = draws_at(self.columns, points, wide, uniforms)
        logs = np.zeros(draws.weights.shape)
        for j, (column, x) in enumerate(zip(self.columns, points.T, strict=True)):
            values = draws.samples[..., j]
            bits = draws.bits[..., j]
            logs += column.log_kernel(x[:, None], values, bits, widths[:, None])
        return replace(draws, weights=np.exp(logs))

    def beyond(self, points: Points) -> Mask:
        """The values that no sample reaches, or hardly any, as a mask (n, D)."""
        pairs = zip(self.columns, points.T, strict=True)
        return np.stack([column.beyond(x) for column, x in pairs], axis=1)

    def __repr__(self) -> str:
        n_bins = sum([len(column.bins) for column in self.columns])
        return (
            f"{type(self).__name__}({plural(len(self.columns), 'column')}, "
            f"{plural(n_bins, 'bin')}, kernel_width={self.kernel_width:.4g})"
        )


@final
@suggests_arguments
@dataclass(frozen=True, eq=False, repr=False, init=False)
class GlimeLaw(LimeLaw):
    """GLIME: samples drawn from the weighted distribution of another sampling law.

    LIME draws from P and weights by π; this law draws from Q ∝ π P, with weights of one
    (Tan, Tian and Li 2023, "GLIME", arXiv 2311.15722). It has the limits of the other
    law for any f and wastes no samples: n samples are worth n, while weighted ones are
    worth n C(ν)² / E π², which decreases exponentially with the number of columns.

    Parameters
    ----------
    law : LimeLaw
        Any other law.

    Examples
    --------
    >>> import numpy as np
    >>> from propopt.lime import GaussianLaw
    >>> law = GlimeLaw(GaussianLaw.of(np.zeros(10), scale=1.0, kernel_width=0.5))
    >>> draws = law.draw(np.zeros((1, 10)), 100, np.random.default_rng(0))
    >>> bool((draws.weights == 1.0).all())
    True
    """

    law: LimeLaw = field(init=False)

    def __init__(self, law: LimeLaw) -> None:
        given: object = law
        if not isinstance(given, LimeLaw) or isinstance(given, GlimeLaw):
            raise InvalidInput(
                "law: expected a sampling law of LIME, such as "
                f"TabularLaw.from_data(X), got a {type(law).__name__}"
            )
        super().__init__(law.columns, law.kernel_width, law.labels)
        object.__setattr__(self, "law", law)

    def with_width(self, kernel_width: float | None) -> GlimeLaw:
        """The neighbourhood with another kernel width."""
        return GlimeLaw(self.law.with_width(kernel_width))

    def squared_widths(self, widths: Values) -> Values:
        """The given widths, as squares of weights of one are one."""
        return widths

    def reordered(self, order: Indices) -> GlimeLaw:
        """The neighbourhood with columns in another order."""
        return GlimeLaw(self.law.reordered(order))

    def tilts(self, points: Points, widths: Values) -> tuple[Tilt, ...]:
        """The distribution of each column in the wrapped law, where all weights are 1.

        Parameters
        ----------
        points : array (n, D)
            The rows around which samples are drawn.
        widths : array (n,)
            The kernel width ν > 0 for each row.

        Returns
        -------
        tuple of Tilt (D,)
            The law of each column for all n rows, with ``log_weight`` zero.

        Raises
        ------
        ValueError
            If the rows and the law have different numbers of columns.
        """
        row_widths = np.where(np.isinf(widths), self.kernel_width, widths)
        none = np.zeros(len(points))
        tilts = self.law.tilts(points, row_widths)
        return tuple([replace(tilt, log_weight=none) for tilt in tilts])

    def _drawn(self, points: Points, uniforms: Array) -> Draws:
        return draws_at(self.columns, points, self.widths(points), uniforms)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.law!r})"
