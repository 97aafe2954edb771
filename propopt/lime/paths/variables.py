"""Kernel widths from 0 to infinity as a variable between 0 and 1."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol, final

import numpy as np

from propopt._typing import Array, Truths, Values
from propopt.lime.expectations import ExactLimits
from propopt.lime.laws.binned import BinnedColumn
from propopt.lime.laws.in_bins import binned_columns


SMALLEST_WIDTH: Final = 0.02
"""For bits: below it exp(−1 / (2 ν²)) is 0 in float64."""

LARGEST_WIDTH: Final = 1e8
"""Over that of a law: above it weights are 1 in float64."""

_FIRST: Final = 2.0**-12
"""Where the variable of other kernels begins: ν of a 64th of the law's."""

_ALIKE: Final = 1e-14


class WidthVariable(Protocol):
    """A variable u in (0, 1) that grows with the width ν."""

    @property
    def degree(self) -> int | None:
        """The degree that coefficients times their factor have in u, if known."""

    @property
    def start(self) -> float:
        """The smallest u that is looked at."""

    def widths(self, u: Values, rest: Values, /) -> Values:
        """ν at u (n,), where 1 − u is ``rest``."""

    def factors(self, widths: Values, /) -> Array:
        """What coefficients are multiplied by, positive, (n, D)."""


@final
@dataclass(frozen=True, eq=False)
class BitVariable:
    """u = (1 − α) / (1 − w), α = w / (w + (1 − w) ε) for a share w, ε = exp(−1/(2ν²)).

    With E_Q g = (w_k E[g | 1] + (1 − w_k) ε E[g | 0]) / c_k, c_k = w_k + (1 − w_k) ε,
    the coefficient β_j times Π_{k≠j} c_k is a polynomial in ε. As c_k / c is affine in
    α, c of the reference, β_j Π_{k≠j} c_k / c is one in α, of a degree below the number
    of columns that f depends on; with equal shares the factors are 1, and the degree is
    below that of the longest product.

    Parameters
    ----------
    share : float
        w, of the reference.
    shares : array (D,)
        w_k, the share of the row's bin in each column.
    used : array (D,)
        Whether f depends on the column.
    degree : int
        As above.
    scale : float
        The width of each column over ν.
    """

    share: float
    shares: Array
    used: Truths
    degree: int
    scale: float = 1.0
    start: float = 0.0

    def widths(self, u: Values, rest: Values) -> Values:
        """ν = (2 log(1 + (1 − u) / (w u)))^(−1/2)."""
        with np.errstate(divide="ignore"):
            minus_log_eps = np.log1p(rest / (self.share * u))
            widths = np.sqrt(0.5 / minus_log_eps)
        return np.asarray(np.clip(widths, SMALLEST_WIDTH, LARGEST_WIDTH) / self.scale)

    def factors(self, widths: Values) -> Array:
        """Π_{k≠j} c_k / c over the columns that f depends on."""
        eps = np.exp(-0.5 / (self.scale * widths) ** 2)[:, None]
        own = self.shares + (1.0 - self.shares) * eps
        ratios = np.where(self.used, own / (self.share + (1.0 - self.share) * eps), 1.0)
        return np.asarray(ratios.prod(axis=1, keepdims=True) / ratios)


@final
@dataclass(frozen=True, eq=False)
class RationalVariable:
    """u = ν² / (ν² + s²): in it the moments of a weighted normal law are smooth.

    Parameters
    ----------
    scale : float
        s, the law's own width.
    n_columns : int
        D.
    """

    scale: float
    n_columns: int
    start: float = _FIRST

    @property
    def degree(self) -> None:
        """Not known."""

    def widths(self, u: Values, rest: Values) -> Values:
        """ν = s √(u / (1 − u))."""
        with np.errstate(divide="ignore"):
            widths = np.minimum(np.sqrt(u / rest), LARGEST_WIDTH)
        return np.asarray(self.scale * widths)

    def factors(self, widths: Values) -> Array:
        """1."""
        return np.ones((len(widths), self.n_columns))


def width_variable(exact: ExactLimits, point: Array) -> WidthVariable:
    """The variable in which coefficients of a row are simplest."""
    columns = binned_columns(exact.law)
    used = np.zeros(len(point), dtype=bool)
    used[exact.function.columns] = True
    binned = [c for c, u in zip(columns, used, strict=True) if u and c is not None]
    scales = {column.scale for column in binned}
    if len(scales) != 1 or len(binned) < used.sum():
        return RationalVariable(exact.law.kernel_width, len(point))
    longest = int(exact.function.products.lengths.max(initial=1))
    return _of_bits(_own_shares(columns, point), used, longest, scales.pop())


def _of_bits(shares: Array, used: Truths, longest: int, scale: float) -> BitVariable:
    share = float(shares[used].mean())
    if np.ptp(shares[used]) <= _ALIKE and 0.0 < share < 1.0:
        shares, most = np.full(len(shares), share), longest
    else:
        share, most = float(np.clip(share, 0.01, 0.99)), int(used.sum())
    return BitVariable(share, shares, used, most - 1, scale)


def _own_shares(columns: Sequence[BinnedColumn | None], point: Array) -> Array:
    """The share of the row's bin in each column; 1 where weights are not by bits."""
    return np.array(
        [
            1.0 if column is None else column.shares[column.place(point[[j]])[0]]
            for j, column in enumerate(columns)
        ]
    )
