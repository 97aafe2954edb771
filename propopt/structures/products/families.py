"""Families of functions of one column: the factors of products."""

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
        """The index of the column of each factor, shape (U,)."""

    def __len__(self) -> int: ...

    def take(self, chosen: Indices | Mask, /) -> Self:
        """The chosen factors, in that order."""

    def at(self, values: Array, /) -> Array:
        """Values g_u of numbers, NaN or codes of one column, of any shape S, (U, S)."""

    def under(self, normals: Normals, /) -> Array:
        """Means E g_u(V) under truncated normals V of shape S, one column, (U, S)."""


@runtime_checkable
class ClosedFactors(Factors, Protocol):
    """Factors with derivatives of their means under normals in closed form."""

    def slopes_under(self, normals: Normals, /) -> Array:
        """Derivatives ∂ E g_u(V) / ∂ mean for untruncated V of shape S, (U, S)."""


# ---- Components of mixture laws of one column: single values and normals


@final
@dataclass(frozen=True, eq=False)
class Pieces:
    """B mixture components of one column, or B for each of n rows."""

    single: Mask  # (B,): which components are a single value: a number, a code, or NaN
    # (B,) or (B, n): the value, or the mean of the normal before truncation
    mean: Array
    sd: Array  # (B,) or (B, n): as in Normals; unused for single values
    low: Array  # shape (B,) or (B, n)
    high: Array  # shape (B,) or (B, n)

    @classmethod
    def of_values(cls, values: Array) -> Pieces:
        """Components that are single values (B,)."""
        nothing = np.zeros(len(values))
        every = np.ones(len(values), dtype=bool)
        return cls(every, values, nothing, nothing, nothing)

    def __len__(self) -> int:
        return len(self.single)

    @property
    def normals(self) -> Normals:
        """The components that are truncated normals."""
        chosen = ~self.single
        return Normals(
            self.mean[chosen], self.sd[chosen], self.low[chosen], self.high[chosen]
        )

    def expect(self, factors: Factors) -> Array:
        """Means E g_u(V) of U factors of the column, (U, B) or (U, B, n)."""
        normals = self.normals
        expected = np.empty((len(factors.column), *self.mean.shape))
        expected[:, self.single] = factors.at(self.mean[self.single])
        if not self.single.all():
            expected[:, ~self.single] = factors.under(normals)
        return expected


@dataclass(frozen=True, eq=False)
class Family:
    """Factors stored as arrays with an entry for each factor."""

    column: Indices  # shape (U,)

    def __len__(self) -> int:
        return len(self.column)

    def take(self, chosen: Indices | Mask) -> Self:
        return type(self)(**{name: part[chosen] for name, part in vars(self).items()})

    def _for(self, ndim: int) -> list[Array]:
        """All fields but the columns, shaped for ``ndim`` axes, (U, 1, ..., 1)."""
        fields = vars(self).items()
        return [v.reshape(-1, *(1,) * ndim) for k, v in fields if k != "column"]


# ---- Gaussian bumps of one column: the factors of gaussian kernels


@final
@dataclass(frozen=True, eq=False)
class Bumps(Family):
    """Gaussian bumps g(x) = exp(−(x − center)² / (2 width²))."""

    center: Array  # (U,): width > 0
    width: Array  # shape (U,)

    def at(self, values: Array) -> Array:
        center, width = self._for(values.ndim)
        return np.exp(-0.5 * ((values - center) / width) ** 2)

    def under(self, normals: Normals) -> Array:
        """Means (U, S), from the mass of another normal between the same ends.

        E g = (τ/σ) exp(−(μ − c)²/(2(γ² + σ²))) [Φ((b − m)/τ) − Φ((a − m)/τ)] / mass,
        m = (γ²μ + σ²c)/(γ² + σ²), τ² = γ²σ²/(γ² + σ²)
        (Garreau and von Luxburg 2020, Proposition 8).
        """
        center, width = self._for(len(normals.shape))
        total = width**2 + normals.sd**2
        middle = (width**2 * normals.mean + normals.sd**2 * center) / total
        narrow = width * normals.sd / np.sqrt(total)
        apart = -0.5 * (normals.mean - center) ** 2 / total
        log_mean = (
            np.log(narrow / normals.sd)
            + apart
            + log_mass(
                (normals.low - middle) / narrow, (normals.high - middle) / narrow
            )
            - normals.log_mass
        )
        return np.exp(np.minimum(log_mean, 0.0))

    def slopes_under(self, normals: Normals) -> Array:
        """Derivatives −(μ − c)/(γ² + σ²) E g, shape (U, S)."""
        center, width = self._for(len(normals.shape))
        pull = (center - normals.mean) / (width**2 + normals.sd**2)
        return pull * self.under(normals)


# ---- Arbitrary functions of one column, with means by quadrature


CurveRule: TypeAlias = Callable[[Array], Array]
"""A function from values (n,) of a column, numbers or codes or NaN, to numbers (n,)."""

CURVE_TOLERANCE: Final = 1e-10
"""Tolerance between two quadratures, relative to the mean of |g|."""

_ROUNDING: Final = 1e-14
"""Tolerance relative to the largest mean of |g| in any component of a column."""

_FEWEST: Final = 32
_MOST: Final = 4096
"""The fewest and the most nodes between knots."""

_FARTHER: Final = 15.0
"""The increase of the tail length at each refinement."""


@final
@dataclass(frozen=True, eq=False)
class Curves(Family):
    """Functions g(x) given as callables, with means by quadrature between knots."""

    rules: tuple[CurveRule, ...]  # (U,): g
    knots: tuple[Array, ...]  # (U,): the kinks and jumps of g, increasing

    def take(self, chosen: Indices | Mask) -> Curves:
        indices = np.arange(len(self))[chosen].tolist()
        return Curves(
            self.column[chosen],
            tuple(self.rules[u] for u in indices),
            tuple(self.knots[u] for u in indices),
        )

    def at(self, values: Array) -> Array:
        each = [_values(rule, values) for rule in self.rules]
        return np.reshape(each, (len(self), *values.shape))

    def under(self, normals: Normals) -> Array:
        curves = zip(self.rules, self.knots, self.column.tolist(), strict=True)
        each = [_mean(rule, knots, normals, j) for rule, knots, j in curves]
        return np.reshape(each, (len(self), *normals.shape))


def _mean(rule: CurveRule, knots: Array, normals: Normals, column: int) -> Array:
    """The mean by more nodes, and farther into the tails, until two results agree."""
    n_nodes = _FEWEST
    log_tail = LOG_TAIL
    before, _ = _by_nodes(rule, knots, normals, n_nodes, log_tail)
    while n_nodes < _MOST:
        n_nodes = 2 * n_nodes
        log_tail = log_tail + _FARTHER
        mean, size = _by_nodes(rule, knots, normals, n_nodes, log_tail)
        largest = size.max(axis=0, initial=0.0)
        with np.errstate(invalid="ignore"):
            tolerance = CURVE_TOLERANCE * size + _ROUNDING * largest
            apart = ~(np.abs(mean - before) <= tolerance)
        if not apart.any():
            return mean
        before = mean
    worst = np.unravel_index(int(apart.argmax()), apart.shape)
    raise Refused(
        f"the mean of the function of column {column} (counted from 0) between "
        f"{normals.low[worst]:.6g} and {normals.high[worst]:.6g} could not be "
        f"computed: {_MOST} quadrature nodes give {mean[worst]:.6g}, and half as many "
        "give another value"
    )


def _by_nodes(
    rule: CurveRule, knots: Array, normals: Normals, n_nodes: int, log_tail: float
) -> tuple[Array, Array]:
    """Means of g and of |g| with a given number of nodes."""
    x, weights = normal_nodes(normals, n_nodes, log_tail, knots)
    with np.errstate(over="ignore", invalid="ignore"):
        values = np.where(weights > 0.0, _values(rule, x), 0.0)
        mean = np.einsum("...q,...q->...", values, weights)
        return mean, np.einsum("...q,...q->...", np.abs(values), weights)


def _values(rule: CurveRule, values: Array) -> Array:
    """Values of a function at an array of any shape."""
    if values.size == 0:
        return np.zeros(values.shape)
    answer = np.asarray(rule(values.ravel()), dtype=np.float64)
    return np.broadcast_to(answer, values.size).reshape(values.shape)


# ---- Exponentials of one column: the factors of models with a logarithmic link


@final
@dataclass(frozen=True, eq=False)
class Exponentials(Family):
    """Exponentials g(x) = exp(rate (x − center)), factors of models with a log link."""

    rate: Array  # (U,): any numbers
    center: Array  # shape (U,)

    def at(self, values: Array) -> Array:
        rate, center = self._for(values.ndim)
        return np.exp(rate * (values - center))

    def under(self, normals: Normals) -> Array:
        """Means (U, S), from the mass of another normal between the same ends.

        E g = exp(r (μ − c) + r²σ²/2) [Φ(b/σ − s) − Φ(a/σ − s)] / mass, where a and b
        are ends minus μ, and s = r σ.
        """
        rate, center = self._for(len(normals.shape))
        shift = rate * normals.sd
        low = normals.standardised(normals.low) - shift
        high = normals.standardised(normals.high) - shift
        peak = rate * (normals.mean - center) + 0.5 * shift**2
        return np.exp(peak + log_mass(low, high) - normals.log_mass)

    def slopes_under(self, normals: Normals) -> Array:
        """Derivatives rate · E g, shape (U, S)."""
        return self._for(len(normals.shape))[0] * self.under(normals)


# ---- Factors with a separate value for missing numbers


@final
@dataclass(frozen=True, eq=False)
class Imputed:
    """Factors with the value ``missing`` at NaN, as after an imputer."""

    factors: ClosedFactors
    missing: Array  # (U,): the values at NaN

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
    """Powers g(x) = (x − center)^degree, factors of polynomials."""

    degree: NDArray[np.intp]  # (U,): at least 1
    # (U,): subtracted first, so that differences of close numbers keep their digits
    center: Array

    @classmethod
    def first(cls, columns: Indices) -> Powers:
        """The columns themselves, as powers of degree 1."""
        return cls(columns, np.ones(len(columns), np.intp), np.zeros(len(columns)))

    def at(self, values: Array) -> Array:
        degree, center = self._for(values.ndim)
        return (values - center) ** degree

    def under(self, normals: Normals) -> Array:
        # by quadrature: in far tails the recursion of the moments loses all digits
        means = np.empty((len(self), *normals.shape))
        first = self.degree == 1
        _, center = self._for(len(normals.shape))
        means[first] = normals.means - center[first]
        for u in np.flatnonzero(~first).tolist():
            k = int(self.degree[u])
            # |x|^k φ(x) decays later than φ, and needs more nodes
            x, weights = normal_nodes(normals, _NODES + 2 * k, LOG_TAIL + 2 * k)
            means[u] = np.einsum("...q,...q->...", (x - self.center[u]) ** k, weights)
        return means

    def slopes_under(self, normals: Normals) -> Array:
        """Means of k (V − center)^(k − 1), shape (U, S)."""
        k, _ = self._for(len(normals.shape))
        lower = replace(self, degree=np.maximum(self.degree - 1, 1))
        return np.where(k == 1, 1.0, k * lower.under(normals))


# ---- Functions of one column given by a table of values


@final
@dataclass(frozen=True, eq=False)
class Tables(Family):
    """Functions by tables: entries[k] at key k, ``other`` elsewhere, or ``missing``."""

    keys: Array  # (K,): codes, or numbers, increasing
    entries: Array  # (U, K): the values at the keys
    other: Array  # (U,): the values elsewhere
    missing: Array  # shape (U,)

    def take(self, chosen: Indices | Mask) -> Tables:
        fields = (self.entries, self.other, self.missing)
        return Tables(self.column[chosen], self.keys, *(x[chosen] for x in fields))

    def at(self, values: Array) -> Array:
        K = len(self.keys)
        index = np.searchsorted(self.keys, values)
        is_key = np.append(self.keys, np.nan)[index] == values
        index = np.where(np.isnan(values), K + 1, np.where(is_key, index, K))
        # entries, then the values elsewhere and at NaN
        return np.column_stack([self.entries, self.other, self.missing])[:, index]

    def under(self, normals: Normals) -> Array:
        # single values have probability 0 under a normal
        shape = (-1, *(1,) * len(normals.shape))
        return np.broadcast_to(self.other.reshape(shape), (len(self), *normals.shape))

    def slopes_under(self, normals: Normals) -> Array:
        return np.zeros((len(self), *normals.shape))
