"""What a law of LIME is: columns, tilts, draws, widths; GLIME."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Final, Literal, Protocol, Self, TypeAlias, final

import numpy as np
from scipy.special import logsumexp

from propopt.base.arrays import Array, Points, Positions, Truths, Values
from propopt.base.checks import as_floats, read_count, read_positive
from propopt.base.errors import InvalidInput
from propopt.base.resources import Budget
from propopt.results.certain import plural
from propopt.structures.products.algebra import Pieces
from propopt.structures.products.normals import Normals, Quantiles
from propopt.tables.frames import Labels, order_of


# ---- What a law of LIME is: how samples are drawn, coded as bits and weighted


@final
@dataclass(frozen=True, eq=False)
class Tilt:
    """The law Q_j of V_j in n situations: a row and a kernel width each.

    Under Q_j, the law of the samples times the kernel's factor of this column, V_j is
    a mixture of pieces, and its bit is 1 in some of them.
    """

    pieces: Pieces  # B of them, the same for all situations, or other ones for each
    inside: Array  # (B, n): their probabilities where the bit is 1, and where it is 0
    outside: Array  # shape (B, n)
    # (n,): the probability that the bit is 1, and 1 − α with digits of its own
    alpha: Values
    complement: Values  # shape (n,)
    # (n,): log c_j, the mean of the kernel's factor under the law of the samples
    log_weight: Values

    def given(self, means: Array) -> tuple[Array, Array]:
        """E[g | bit 1] and E[g | bit 0], (U, n), of the means in each piece.

        means (U, B).
        """
        some = np.asarray((self.inside + self.outside).any(axis=1))
        if not some.all():  # a model may refuse a category that is never drawn
            own = some if means.ndim == 2 else some[:, None]
            means = np.where(own, means, 0.0)
        if means.ndim == 2:
            return means @ self.inside, means @ self.outside
        return (
            np.einsum("ubn,bn->un", means, self.inside),
            np.einsum("ubn,bn->un", means, self.outside),
        )

    @property
    def has_contrast(self) -> Array:
        """1 where both bits occur, else 0: one bin alone has no coefficient, (n,)."""
        return (self.inside.any(axis=0) & self.outside.any(axis=0)).astype(float)


# ---- What a law of LIME knows of one column


class LimeColumn(Protocol):
    """One column: its bins, and its weighted law around values."""

    @property
    def bins(self) -> Sequence[str]:
        """What each bin is, in words that are read on behind the name of the column."""

    def place(self, x: Values, /) -> Positions:
        """The bin of each value, (n,)."""

    def tilt(self, x: Values, widths: Values, /) -> Tilt:
        """The weighted law around values x (n,), each with its kernel width (n,).

        A width may be infinite: then it is the law of the samples themselves.
        """

    def log_kernel(
        self, x: Array, values: Array, bits: Array, width: Array, /
    ) -> Array:
        """The logarithm of the kernel's factor of this column, for samples (n, S).

        x (n, 1), values (n, S), bits (n, S), width (n, 1).
        """


# ---- Weighted laws of mixtures, made of the logarithms of their masses


def tilt_of_masses(pieces: Pieces, log_masses: Array, ones: Truths) -> Tilt:
    """The weighted law whose pieces have these masses, P(piece) E[kernel | piece].

    Nothing underflows: shares of pieces that are hardly ever drawn keep their digits,
    and 1 − α does where it rounds to 0 beside 1.

    log_masses (B, n), ones (B, n).
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
    """Shares that sum to 1, or are 0 where all masses are; and the log of the sum."""
    total = logsumexp(log_masses, axis=0)
    some = np.where(np.isneginf(total), 0.0, total)
    return np.exp(log_masses - some), total


def log_of_distance(apart: Array, x: Array, values: Array, width: Array) -> Array:
    """−d² / (2 ν²), where d is 1 if a value is missing on one side only, 0 on both.

    apart, values (n, S); x, width (n, 1). Of missing values apart is NaN.
    """
    absent = np.isnan(apart)
    if absent.any():
        apart = np.where(absent, np.isnan(values) ^ np.isnan(x), apart)
    return np.asarray(-0.5 * (apart / width) ** 2)


# ---- Samples around rows, with their bits and weights


@final
@dataclass(frozen=True, eq=False)
class Draws:
    """S samples around each of n rows."""

    samples: Array  # (n, S, D): where f is evaluated
    bits: Array  # (n, S, D): z, 0 or 1
    weights: Array  # (n, S): π


def draws_at(
    columns: Sequence[LimeColumn], points: Points, widths: Values, uniforms: Array
) -> Draws:
    """The samples of Q that uniform numbers are, with weights of one.

    columns (D,), points (n, D), widths (n, D), uniforms (n, S, D).
    """
    samples, bits = np.empty((2, *uniforms.shape))
    blocks = list(_SAMPLES_AT_ONCE.blocks(len(points), uniforms.shape[1]))
    for j, column in enumerate(columns):
        tilt = column.tilt(points[:, j], widths)
        mixture = _Mixtures(tilt)
        for rows in blocks:
            chosen, where = mixture.chosen(rows, uniforms[rows, :, j])
            bits[rows, :, j] = chosen < len(tilt.inside)
            samples[rows, :, j] = mixture.values(rows, chosen, where)
    return Draws(samples, bits, np.ones(uniforms.shape[:2]))


_SAMPLES_AT_ONCE: Final = Budget(2**14, 1)
"""So many of a column stay near the processor."""


@final
@dataclass(frozen=True, eq=False)
class _Mixtures:
    """The law of one column around n rows, as what uniform numbers become."""

    tilt: Tilt

    def chosen(self, rows: slice, uniforms: Array) -> tuple[Positions, Array]:
        """A piece where the bit is 1, B + one where it is 0; where in it: (n, S)."""
        chosen = np.empty(uniforms.shape, np.intp)
        where = np.empty(uniforms.shape)
        ends = self._ends[rows]
        for n, (own, u) in enumerate(zip(ends, uniforms, strict=True)):
            k = chosen[n] = np.searchsorted(own[1:], u, side="right")
            lengths = np.diff(own)
            lengths[lengths == 0.0] = 1.0
            where[n] = (u - own[k]) / lengths[k]
        return chosen, where

    @cached_property
    def _ends(self) -> Array:
        """Where pieces end between 0 and 1: a piece of no probability is empty."""
        tilt = self.tilt
        masses = np.vstack([tilt.alpha * tilt.inside, tilt.complement * tilt.outside])
        ends = np.vstack([np.zeros(masses.shape[1]), np.cumsum(masses, axis=0)])
        ends = np.where(ends == ends[-1], 1.0, ends / ends[-1])
        return np.ascontiguousarray(ends.T)

    def values(self, rows: slice, chosen: Positions, where: Array) -> Array:
        """The value of each sample in its piece, (n, S)."""
        pieces = self.tilt.pieces
        piece = chosen % len(pieces.single)
        at = piece
        if pieces.mean.ndim > 1:
            n_rows = pieces.mean.shape[1]
            at = piece * n_rows + np.arange(n_rows)[rows, None]
        if not pieces.single.any():
            return self._quantiles.at(at, where)
        values = pieces.mean.ravel()[at]
        some = ~pieces.single[piece]
        which = at - self._skipped[piece]
        values[some] = self._quantiles.at(which[some], where[some])
        return values

    @cached_property
    def _quantiles(self) -> Quantiles:
        normals = self.tilt.pieces.normals
        parts = (normals.mean, normals.sd, normals.low, normals.high)
        return Quantiles(Normals(*(part.ravel() for part in parts)))

    @cached_property
    def _skipped(self) -> Positions:
        """How many single values are before each piece, (B,)."""
        pieces = self.tilt.pieces
        n_rows = 1 if pieces.mean.ndim == 1 else pieces.mean.shape[1]
        return np.asarray(np.cumsum(pieces.single) * n_rows)


class LimeLaw(ABC):
    """Independent columns, a bit for each, and weights that are products.

    A sample x̃ has bits z_j, 1 where it is in the bin of the row in column j, and the
    weight π = Π_j k_j. Under Q, the law of the samples weighted by π, columns are
    independent, so that weighted least squares of f on the bits tends to

    β_j = E_Q[f | z_j = 1] − E_Q[f | z_j = 0],  β_0 = E_Q f − Σ_j α_j β_j,

    with α_j = Q(z_j = 1), for any f (after Garreau and von Luxburg 2020).

    Subclasses have ``columns`` (D,), the law of each; ``kernel_width``, ν; and
    ``labels``, the names of the columns.
    """

    columns: tuple[LimeColumn, ...]
    kernel_width: float
    labels: Labels

    @abstractmethod
    def with_width(self, kernel_width: float) -> Self:
        """The same law with another kernel width."""

    @property
    def method(self) -> str:
        """What it is called in files."""
        return type(self).__name__

    def widths(self, points: Points, widths: Values | None = None) -> Values:
        """Those given, or the law's own for each point, (n,)."""
        if widths is not None:
            return widths
        return np.full(len(points), self.kernel_width)

    def squared_widths(self, widths: Values) -> Values:
        """The widths of π², (n,): gaussian kernels of ν / √2."""
        return np.asarray(widths / np.sqrt(2.0))

    def aligned(self, labels: Labels, n_columns: int) -> Self:
        """This law of the columns of a table, in the order that they have there.

        Parameters
        ----------
        labels : Labels
            Names of its columns; where one side has none, position decides.
        n_columns : int
            D, of the table.

        Raises
        ------
        InvalidInput
            If the law has other columns.
        """
        if len(self.columns) != n_columns:
            raise InvalidInput(
                f"law: it has {len(self.columns)} columns, and X has {n_columns}"
            )
        own = self.labels.features
        order = order_of(own, labels.features, "law: its columns", "X")
        return self if order is None else self.reordered(order)

    @abstractmethod
    def reordered(self, order: Positions) -> Self:
        """The same law of columns in another order, (D,)."""

    def cells(self, points: Points) -> Points:
        """What the weighted law around each row depends on, besides the width, (n, D).

        Rows that are equal there have the same limits, and these are computed once. The
        rows themselves, if nothing better is known.
        """
        return points

    def tilts(self, points: Points, widths: Values) -> tuple[Tilt, ...]:
        """The weighted law of each column around rows, (D,)."""
        columns = zip(self.columns, points.T, strict=True)
        return tuple(column.tilt(x, widths) for column, x in columns)

    def log_weights(self, points: Points, widths: Values) -> Values:
        """Log C, the logarithm of the mean weight around rows, (n,)."""
        tilts = self.tilts(points, widths)
        return np.asarray(np.sum([tilt.log_weight for tilt in tilts], axis=0))

    def draw(
        self,
        points: Points,
        n_samples: int,
        rng: np.random.Generator,
        *,
        first_row: bool = False,
    ) -> Draws:
        """Samples of the law itself, with their bits and weights: what LIME draws.

        Parameters
        ----------
        points : array (n, D)
            The rows.
        n_samples : int
            S, for each row.
        rng : numpy.random.Generator
            Where the draws come from.
        first_row : bool
            Whether the first sample is the row itself with weight 1, as in the package.
        """
        # samples without weights are those of an infinite width
        wide, widths = np.full(len(points), np.inf), self.widths(points)
        uniforms = rng.random((len(points), n_samples, len(self.columns)))
        draws = draws_at(self.columns, points, wide, uniforms)
        samples, bits, logs = draws.samples, draws.bits, np.zeros(draws.weights.shape)
        for j, (column, x) in enumerate(zip(self.columns, points.T, strict=True)):
            values, own = samples[..., j], bits[..., j]
            logs += column.log_kernel(x[:, None], values, own, widths[:, None])
        weights = np.exp(logs)
        if first_row:
            samples[:, 0], bits[:, 0], weights[:, 0] = points, 1.0, 1.0
        return Draws(samples, bits, weights)

    def draw_weighted(
        self, points: Points, n_samples: int, rng: np.random.Generator
    ) -> Draws:
        """Samples of Q, all with weight 1: the same limits, and less scatter."""
        uniforms = rng.random((len(points), n_samples, len(self.columns)))
        return draws_at(self.columns, points, self.widths(points), uniforms)

    def notes(self, points: Points) -> tuple[str, ...]:
        """What a reader of explanations of these rows has to know, a sentence each."""
        del points
        return ()


# ---- Laws that are their columns, a kernel width and names


@dataclass(frozen=True, eq=False, repr=False)
class LawOfColumns(LimeLaw):
    """A law that is known by these three: others are made of it by replacing."""

    columns: tuple[LimeColumn, ...]  # (D,): the law of each column
    kernel_width: float  # ν
    labels: Labels = Labels()

    @property
    def names(self) -> tuple[str, ...]:
        """Of the columns, (D,)."""
        return self.labels.feature_names(len(self.columns))

    def with_width(self, kernel_width: float) -> Self:
        """The same columns with another width; those of columns keep their ratios."""
        return replace(self, kernel_width=read_positive(kernel_width, "kernel_width"))

    def reordered(self, order: Positions) -> Self:
        """The same law of columns in another order, (D,)."""
        columns = tuple(self.columns[j] for j in order.tolist())
        return replace(self, columns=columns, labels=self.labels.of_features(order))

    def __repr__(self) -> str:
        n_bins = sum(len(column.bins) for column in self.columns)
        return (
            f"{type(self).__name__}({plural(len(self.columns), 'column')}, "
            f"{plural(n_bins, 'bin')}, kernel_width={self.kernel_width:.4g})"
        )


# ---- GLIME: samples of the weighted neighbourhood itself, with weights of one


@final
@dataclass(frozen=True, eq=False)
class GlimeColumn:
    """A column drawn from its weighted law Q_j, and not weighted any more."""

    column: LimeColumn  # the column that Q_j is made of
    kernel_width: float  # ν, the width of Q_j where samples are drawn

    @property
    def bins(self) -> Sequence[str]:
        """Those of the column."""
        return self.column.bins

    def place(self, x: Values) -> Positions:
        """The bin of each value, (n,)."""
        return self.column.place(x)

    def tilt(self, x: Values, widths: Values) -> Tilt:
        """Q_j, with C = 1; of the law's own width where they are infinite."""
        own = np.where(np.isinf(widths), self.kernel_width, widths)
        return replace(self.column.tilt(x, own), log_weight=np.zeros(len(x)))

    def log_kernel(
        self, x: Array | float, values: Array, bits: Array, width: Array | float
    ) -> Array:
        """Zeros: all weights are one."""
        del x, bits, width
        return np.zeros(values.shape)


def without_glime(column: LimeColumn) -> LimeColumn:
    """The column that a neighbourhood is made of, where it is one.

    Both have the same limits, as they have the same weighted law.
    """
    return column.column if isinstance(column, GlimeColumn) else column


@final
@dataclass(frozen=True, eq=False, repr=False)
class GlimeLaw(LimeLaw):
    """The neighbourhood that another law makes by weights, drawn directly.

    LIME draws from P and weights by π; this law draws from Q ∝ π P, with weights of one
    (Tan, Tian and Li 2023, "GLIME", arXiv 2311.15722). It has the limits of the other
    law, whatever f is, and none of its waste: the n samples count as n, where weighted
    ones count as n C(ν)² / E π², which falls exponentially with the number of columns.

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

    law: LimeLaw
    columns: tuple[GlimeColumn, ...] = field(init=False)
    kernel_width: float = field(init=False)
    labels: Labels = field(init=False)

    def __post_init__(self) -> None:
        law = self.law
        if isinstance(law, GlimeLaw):
            raise InvalidInput("law: expected another law of LIME, got a GlimeLaw")
        if not isinstance(law, LimeLaw):
            raise InvalidInput(
                "law: expected another law of LIME, such as TabularLaw.from_data(X), "
                f"got {type(law).__name__}"
            )
        width = law.kernel_width
        columns = tuple(GlimeColumn(column, width) for column in law.columns)
        object.__setattr__(self, "columns", columns)
        object.__setattr__(self, "kernel_width", width)
        object.__setattr__(self, "labels", law.labels)

    def with_width(self, kernel_width: float) -> GlimeLaw:
        """The neighbourhood of another width."""
        return GlimeLaw(self.law.with_width(kernel_width))

    def squared_widths(self, widths: Values) -> Values:
        """The same: all weights are one."""
        return widths

    def reordered(self, order: Positions) -> GlimeLaw:
        """The neighbourhood of the law in another order."""
        return GlimeLaw(self.law.reordered(order))

    def cells(self, points: Points) -> Points:
        """Those of the law."""
        return self.law.cells(points)

    def notes(self, points: Points) -> tuple[str, ...]:
        """Those of the law."""
        return self.law.notes(points)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.law!r})"


# ---- Kernel widths: those of the literature, and those of several columns in one


WidthConvention: TypeAlias = Literal["package", "paper"]
KernelWidth: TypeAlias = float | WidthConvention | Array | None


def default_kernel_width(
    n_columns: int, convention: WidthConvention = "package"
) -> float:
    """The kernel width that LIME has where none is given."""
    count = read_count(n_columns, "n_columns")
    if convention == "package":
        return 0.75 * math.sqrt(count)
    if convention == "paper":
        return math.sqrt(0.75 * count)
    raise InvalidInput(
        f"kernel_width: expected a number > 0, 'package' or 'paper', got {convention!r}"
    )


def read_kernel_width(user_width: object, n_columns: int) -> tuple[float, Array]:
    """ν, and the factors (D,) by which widths of columns differ from it.

    Widths ν_j of columns become ν with 1/ν² = mean 1/ν_j², and ν_j / ν: a sample of
    which all bits differ has the weight that it has under the common width ν.
    """
    if user_width is None:
        return default_kernel_width(n_columns), np.ones(n_columns)
    if isinstance(user_width, str):
        width = default_kernel_width(n_columns, user_width)  # type: ignore[arg-type]
        return width, np.ones(n_columns)
    if np.ndim(user_width) == 0:  # type: ignore[arg-type]  # of any object
        return read_positive(user_width, "kernel_width"), np.ones(n_columns)
    widths = as_floats(user_width, "kernel_width")
    if widths.shape != (n_columns,):
        raise InvalidInput(
            f"kernel_width: expected a number, or one for each of {n_columns} columns, "
            f"got the shape {widths.shape}"
        )
    if not (widths > 0.0).all() or np.isinf(widths).all():
        raise InvalidInput(
            "kernel_width: expected widths > 0, not all of them infinite, got "
            f"{widths.tolist()}"
        )
    width = float(np.mean(widths**-2.0) ** -0.5)
    return width, widths / width
