"""Functions of one column, by families: the factors of products."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final, Protocol, Self, TypeAlias, final, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from propopt.base.arrays import Array, Indices, Mask
from propopt.base.errors import Refused
from propopt.structures.products.normals import (
    LOG_TAIL,
    Normals,
    log_mass,
    normal_nodes,
)


class Factors(Protocol):
    """U functions g_u, each of one column of a table."""

    @property
    def column(self) -> Indices:
        """The position of the column that each is of, (U,)."""

    def __len__(self) -> int: ...

    def take(self, chosen: Indices | Mask, /) -> Self:
        """Those that are chosen, in that order."""

    def at(self, values: Array, /) -> Array:
        """g_u of values of any shape S, numbers, NaN or codes of one column, (U, S)."""

    def under(self, normals: Normals, /) -> Array:
        """E g_u(V) for truncated normals V of shape S, all of one column, (U, S)."""


@runtime_checkable
class ClosedFactors(Factors, Protocol):
    """Those whose means under normals have slopes in closed form."""

    def slopes_under(self, normals: Normals, /) -> Array:
        """∂ E g_u(V) / ∂ mean for normals V of shape S that have no ends, (U, S)."""


# ---- What mixtures of laws of one column are made of: single values, and normals


@final
@dataclass(frozen=True, eq=False)
class Pieces:
    """B laws of one column, or B for each of n rows."""

    single: Mask  # (B,): which are one value: a number, a code, or NaN for missing
    # (B,) or (B, n): the value, or the mean of the normal before it is restricted
    mean: Array
    sd: Array  # (B,) or (B, n): as in Normals; not read of single values
    low: Array  # shape (B,) or (B, n)
    high: Array  # shape (B,) or (B, n)

    @classmethod
    def of_values(cls, values: Array) -> Pieces:
        """Single values (B,)."""
        nothing = np.zeros(len(values))
        every = np.ones(len(values), dtype=bool)
        return cls(every, values, nothing, nothing, nothing)

    def __len__(self) -> int:
        return len(self.single)

    @property
    def normals(self) -> Normals:
        """Those that are truncated normals."""
        some = ~self.single
        return Normals(self.mean[some], self.sd[some], self.low[some], self.high[some])

    def expect(self, factors: Factors) -> Array:
        """E g_u(V) of U factors of the column, (U, B) or (U, B, n)."""
        expected = np.empty((len(factors), *self.mean.shape))
        expected[:, self.single] = factors.at(self.mean[self.single])
        if not self.single.all():
            expected[:, ~self.single] = factors.under(self.normals)
        return expected


@dataclass(frozen=True, eq=False)
class Family:
    """Factors whose fields are arrays, with an entry for each factor."""

    column: Indices  # shape (U,)

    def __len__(self) -> int:
        return len(self.column)

    def take(self, chosen: Indices | Mask) -> Self:
        return type(self)(**{own: part[chosen] for own, part in vars(self).items()})

    def _for(self, ndim: int) -> list[Array]:
        """All but the columns, for values of so many axes, (U, 1, ..., 1) each."""
        own = vars(self).items()
        return [v.reshape(-1, *(1,) * ndim) for k, v in own if k != "column"]


# ---- Gaussian bumps of one column: the factors of gaussian kernels


@final
@dataclass(frozen=True, eq=False)
class Bumps(Family):
    """g(x) = exp(−(x − center)² / (2 width²))."""

    center: Array  # (U,): width > 0
    width: Array  # shape (U,)

    def at(self, values: Array) -> Array:
        center, width = self._for(values.ndim)
        return np.asarray(np.exp(-0.5 * ((values - center) / width) ** 2))

    def under(self, normals: Normals) -> Array:
        """Means, (U, S): another normal's mass between the same ends.

        E g = (τ/σ) exp(−(μ − c)²/(2(γ² + σ²))) [Φ((b − m)/τ) − Φ((a − m)/τ)] / mass,
        m = (γ²μ + σ²c)/(γ² + σ²), τ² = γ²σ²/(γ² + σ²)
        (Garreau and von Luxburg 2020, Proposition 8).
        """
        center, width = self._for(len(normals.shape))
        total = width**2 + normals.sd**2
        middle = (width**2 * normals.mean + normals.sd**2 * center) / total
        narrow = width * normals.sd / np.sqrt(total)
        ends = (normals.low - middle) / narrow, (normals.high - middle) / narrow
        apart = -0.5 * (normals.mean - center) ** 2 / total
        log_mean = (
            np.log(narrow / normals.sd) + apart + log_mass(*ends) - normals.log_mass
        )
        return np.asarray(np.exp(np.minimum(log_mean, 0.0)))

    def slopes_under(self, normals: Normals) -> Array:
        """−(μ − c)/(γ² + σ²) E g."""
        center, width = self._for(len(normals.shape))
        pull = (center - normals.mean) / (width**2 + normals.sd**2)
        return np.asarray(pull * self.under(normals))


# ---- Any functions of one column, whose means are found by quadrature


CurveRule: TypeAlias = Callable[[Array], Array]
"""From values (n,) of a column, numbers or codes or NaN, to numbers (n,)."""

CURVE_TOLERANCE: Final = 1e-10
"""How near two quadratures have to be, over the mean of |g|."""

_ROUNDING: Final = 1e-14
"""How near is near enough, over the largest mean of |g| in any piece of a column."""

_FEWEST: Final = 32
_MOST: Final = 4096
"""Nodes between knots."""

_FARTHER: Final = 15.0
"""What is added to how far tails are followed, each time."""


@final
@dataclass(frozen=True, eq=False)
class Curves(Family):
    """g(x), a callable each, whose means are by quadrature between knots."""

    rules: tuple[CurveRule, ...]  # (U,): g
    knots: tuple[Array, ...]  # (U,): where g has kinks or jumps, increasing

    def take(self, chosen: Indices | Mask) -> Curves:
        indices = np.arange(len(self))[chosen].tolist()
        return Curves(
            self.column[chosen],
            tuple(self.rules[u] for u in indices),
            tuple(self.knots[u] for u in indices),
        )

    def at(self, values: Array) -> Array:
        result = np.empty((len(self), *values.shape))
        for u, rule in enumerate(self.rules):
            result[u] = _values(rule, values)
        return result

    def under(self, normals: Normals) -> Array:
        means = np.empty((len(self), *normals.shape))
        for u, (rule, knots) in enumerate(zip(self.rules, self.knots, strict=True)):
            means[u] = _mean(rule, knots, normals, int(self.column[u]))
        return means


def _mean(rule: CurveRule, knots: Array, normals: Normals, column: int) -> Array:
    """By more nodes, and farther into the tails, until two answers agree."""
    n_nodes, log_tail = _FEWEST, LOG_TAIL
    before, _ = _by_nodes(rule, knots, normals, n_nodes, log_tail)
    while n_nodes < _MOST:
        n_nodes, log_tail = 2 * n_nodes, log_tail + _FARTHER
        mean, size = _by_nodes(rule, knots, normals, n_nodes, log_tail)
        largest = size.max(axis=0, initial=0.0)
        with np.errstate(invalid="ignore"):
            near = CURVE_TOLERANCE * size + _ROUNDING * largest
            apart = ~(np.abs(mean - before) <= near)
        if not apart.any():
            return mean
        before = mean
    place = np.unravel_index(int(apart.argmax()), apart.shape)
    raise Refused(
        f"the mean of the function of column {column} (counted from 0) between "
        f"{normals.low[place]:.6g} and {normals.high[place]:.6g} is not found: with "
        f"{_MOST} nodes quadrature gives {mean[place]:.6g}, and another answer with "
        "half as many"
    )


def _by_nodes(
    rule: CurveRule, knots: Array, normals: Normals, n_nodes: int, log_tail: float
) -> tuple[Array, Array]:
    """Means of g and of |g|."""
    x, weights = normal_nodes(normals, n_nodes, log_tail, knots)
    with np.errstate(over="ignore", invalid="ignore"):
        values = np.where(weights > 0.0, _values(rule, x), 0.0)
        mean = np.einsum("...q,...q->...", values, weights)
        return mean, np.einsum("...q,...q->...", np.abs(values), weights)


def _values(rule: CurveRule, values: Array) -> Array:
    if values.size == 0:
        return np.zeros(values.shape)
    answer = np.asarray(rule(values.ravel()), dtype=np.float64)
    return np.broadcast_to(answer, values.size).reshape(values.shape)


# ---- Exponentials of one column: the factors of models with a logarithmic link


@final
@dataclass(frozen=True, eq=False)
class Exponentials(Family):
    """g(x) = exp(rate (x − center))."""

    rate: Array  # (U,): any numbers
    center: Array  # shape (U,)

    def at(self, values: Array) -> Array:
        rate, center = self._for(values.ndim)
        return np.asarray(np.exp(rate * (values - center)))

    def under(self, normals: Normals) -> Array:
        """Means, (U, S): another normal's mass between the same ends.

        E g = exp(r (μ − c) + r²σ²/2) [Φ(b/σ − s) − Φ(a/σ − s)] / mass, where a and b
        are ends less μ, and s = r σ.
        """
        rate, center = self._for(len(normals.shape))
        shift = rate * normals.sd
        low = normals.standardised(normals.low) - shift
        high = normals.standardised(normals.high) - shift
        peak = rate * (normals.mean - center) + 0.5 * shift**2
        return np.asarray(np.exp(peak + log_mass(low, high) - normals.log_mass))

    def slopes_under(self, normals: Normals) -> Array:
        """Rate · E g."""
        return self._for(len(normals.shape))[0] * self.under(normals)


# ---- Factors with values of their own where a number is missing


@final
@dataclass(frozen=True, eq=False)
class Imputed:
    """Other factors, which are ``missing`` of NaN, as behind an imputer."""

    factors: ClosedFactors
    missing: Array  # (U,): the values of NaN

    @property
    def column(self) -> Indices:
        return self.factors.column

    def __len__(self) -> int:
        return len(self.missing)

    def take(self, chosen: Indices | Mask) -> Imputed:
        return Imputed(self.factors.take(chosen), self.missing[chosen])

    def at(self, values: Array) -> Array:
        absent = np.isnan(values)
        if not absent.any():
            return self.factors.at(values)
        missing = self.missing.reshape(-1, *(1,) * values.ndim)
        return np.where(absent, missing, self.factors.at(values))

    def under(self, normals: Normals) -> Array:
        return self.factors.under(normals)  # a normal is never missing

    def slopes_under(self, normals: Normals) -> Array:
        return self.factors.slopes_under(normals)


# ---- Powers of one column: the factors of linear functions and of polynomials


_NODES: Final = 64


@final
@dataclass(frozen=True, eq=False)
class Powers(Family):
    """g(x) = (x − center)^degree."""

    degree: NDArray[np.intp]  # (U,): at least 1
    # (U,): what is taken away before: differences of near numbers keep their digits
    center: Array

    @classmethod
    def first(cls, columns: Indices) -> Powers:
        """The columns themselves."""
        ones = np.ones(len(columns), np.intp)
        return cls(columns, ones, np.zeros(len(columns)))

    def at(self, values: Array) -> Array:
        degree, center = self._for(values.ndim)
        return np.asarray((values - center) ** degree)

    def under(self, normals: Normals) -> Array:
        # by quadrature: in far tails the recursion of the moments has no digits
        means = np.empty((len(self), *normals.shape))
        first = self.degree == 1
        _, center = self._for(len(normals.shape))
        means[first] = normals.means - center[first]
        for u in np.flatnonzero(~first).tolist():
            k = int(self.degree[u])
            # |x|^k φ(x) falls later than φ, and has k more turns to be followed
            x, weights = normal_nodes(normals, _NODES + 2 * k, LOG_TAIL + 2 * k)
            means[u] = np.einsum("...q,...q->...", (x - self.center[u]) ** k, weights)
        return means

    def slopes_under(self, normals: Normals) -> Array:
        """Means of k (V − center)^(k − 1)."""
        k, _ = self._for(len(normals.shape))
        lower = replace(self, degree=np.maximum(self.degree - 1, 1))
        return np.where(k == 1, 1.0, k * lower.under(normals))


# ---- Functions of one column that are a number for each code, or for listed values


@final
@dataclass(frozen=True, eq=False)
class Tables(Family):
    """g(x) = entries[k] where x is key k, ``other`` elsewhere, ``missing`` of NaN."""

    keys: Array  # (K,): codes, or numbers, increasing
    entries: Array  # (U, K): the values at the keys
    other: Array  # (U,): the values elsewhere
    missing: Array  # shape (U,)

    def take(self, chosen: Indices | Mask) -> Tables:
        own = (self.entries, self.other, self.missing)
        return Tables(self.column[chosen], self.keys, *(part[chosen] for part in own))

    def at(self, values: Array) -> Array:
        K = len(self.keys)
        place = np.searchsorted(self.keys, values)
        known = np.append(self.keys, np.nan)[place] == values
        place = np.where(np.isnan(values), K + 1, np.where(known, place, K))
        return self.whole[:, place]

    def under(self, normals: Normals) -> Array:
        # single values have no share of a normal
        shape = (-1, *(1,) * len(normals.shape))
        return np.broadcast_to(self.other.reshape(shape), (len(self), *normals.shape))

    def slopes_under(self, normals: Normals) -> Array:
        return np.zeros((len(self), *normals.shape))

    @property
    def whole(self) -> Array:
        """Entries, then what is elsewhere and of missing values, (U, K + 2)."""
        return np.column_stack([self.entries, self.other, self.missing])
