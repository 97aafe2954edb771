"""Differentiable maps from features to more features: monomials and cosines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from propopt._typing import Array, Points, Positions
from propopt.structures.networks import Network, Pullback


Monomial: TypeAlias = tuple[int, ...]
"""The features that are multiplied, in order: (0, 0, 2) is x_0² x_2."""


@dataclass(frozen=True)
class Level:
    """All monomials of one degree, each a parent of one degree less times a feature."""

    parents: Positions
    features: Positions


@dataclass(frozen=True)
class Slope:
    """∂m_j/∂x_d = p_jd · m_j / x_d, for the monomials j in which x_d stands."""

    columns: Positions
    quotients: Positions
    exponents: Array


@dataclass(frozen=True)
class Monomials(Network):
    """Products of powers, m_j(x) = Π_d x_d^p_jd.

    Every monomial is one product of a smaller one, and every slope a multiple of one:
    with the monomials wanted are kept all that divide them. Make it by :meth:`of`.

    Parameters
    ----------
    levels : tuple of Level
        The monomials of degrees 1, 2, ..., after the empty one at position 0.
    outputs : array (F,)
        Where the monomials wanted stand.
    slopes : tuple of Slope
        One for each feature.
    """

    levels: tuple[Level, ...]
    outputs: Positions
    slopes: tuple[Slope, ...]

    @classmethod
    def of(cls, powers: NDArray[np.integer]) -> Monomials:
        """The monomials with the given exponents p, shape (F, D)."""
        monomials = [_monomial(row) for row in powers]
        levels = _divisors(monomials)
        places = {m: place for place, m in enumerate(chain.from_iterable(levels))}
        return cls(
            levels=tuple(_level(level, places) for level in levels[1:]),
            outputs=np.array([places[m] for m in monomials], dtype=np.intp),
            slopes=tuple(_slope(monomials, d, places) for d in range(powers.shape[1])),
        )

    @property
    def exponents(self) -> NDArray[np.intp]:
        """p, (F, D)."""
        unit = np.eye(len(self.slopes), dtype=np.intp)
        powers = [np.zeros_like(unit[:1])]
        for level in self.levels:
            smaller = np.concatenate(powers)[level.parents]
            powers.append(smaller + unit[level.features])
        return np.concatenate(powers)[self.outputs]

    @property
    def n_scores(self) -> int:
        """The number F of monomials wanted."""
        return len(self.outputs)

    @property
    def width(self) -> int:
        """All monomials, and the factors of one slope."""
        return 1 + self._n_products + 3 * self.n_scores

    def scores(self, points: Points) -> Array:
        """Monomials, shape (n, F)."""
        return self._all(points)[:, self.outputs]

    def linearized(self, points: Points) -> tuple[Array, Pullback]:
        """Monomials, and the map C ↦ Σ_j C_nj ∂m_j/∂x_n."""
        monomials = self._all(points)

        def pullback(cotangents: Array) -> Array:
            pulled = np.empty(points.shape)
            for feature, slope in enumerate(self.slopes):
                slopes = monomials[:, slope.quotients] * slope.exponents
                pulled[:, feature] = (cotangents[:, slope.columns] * slopes).sum(axis=1)
            return pulled

        return monomials[:, self.outputs], pullback

    def _all(self, points: Points) -> Array:
        """The monomials wanted and all that divide them, degree by degree."""
        products = np.ones((len(points), 1 + self._n_products))
        stop = 1
        for level in self.levels:
            start, stop = stop, stop + len(level.parents)
            parents, factors = products[:, level.parents], points[:, level.features]
            np.multiply(parents, factors, out=products[:, start:stop])
        return products

    @property
    def _n_products(self) -> int:
        return sum(len(level.parents) for level in self.levels)


@dataclass(frozen=True)
class Cosines(Network):
    """Waves, s cos(xᵀw_q + b_q): random Fourier features (Rahimi and Recht 2007).

    Parameters
    ----------
    frequencies : array (D, Q)
        The columns w_q.
    phases : array (Q,)
        b_q.
    amplitude : float
        s.
    """

    frequencies: Array
    phases: Array
    amplitude: float

    @property
    def n_scores(self) -> int:
        """The number Q of waves."""
        return len(self.phases)

    @property
    def width(self) -> int:
        """Angles, waves and their slopes."""
        return 3 * self.n_scores

    def scores(self, points: Points) -> Array:
        """Waves, shape (n, Q)."""
        return self.amplitude * np.cos(points @ self.frequencies + self.phases)

    def linearized(self, points: Points) -> tuple[Array, Pullback]:
        """Waves, and the map C ↦ −s (C ∘ sin) Wᵀ."""
        angles = points @ self.frequencies + self.phases
        slopes = -self.amplitude * np.sin(angles)
        return self.amplitude * np.cos(angles), (
            lambda cotangents: (cotangents * slopes) @ self.frequencies.T
        )


def _monomial(powers: NDArray[np.integer]) -> Monomial:
    return tuple(int(d) for d in np.repeat(np.arange(len(powers)), powers))


def _divisors(monomials: Sequence[Monomial]) -> list[list[Monomial]]:
    """All monomials that divide one of these, sorted, by degree from 0."""
    degree = max(map(len, monomials))
    levels: list[set[Monomial]] = [set() for _ in range(degree + 1)]
    for monomial in monomials:
        levels[len(monomial)].add(monomial)
    for upper, lower in zip(levels[:0:-1], levels[-2::-1], strict=True):
        lower.update(_without(monomial, d) for monomial in upper for d in set(monomial))
    return [sorted(level) for level in levels]


def _level(level: Sequence[Monomial], places: Mapping[Monomial, int]) -> Level:
    return Level(
        parents=np.array([places[m[:-1]] for m in level], dtype=np.intp),
        features=np.array([m[-1] for m in level], dtype=np.intp),
    )


def _slope(
    monomials: Sequence[Monomial], feature: int, places: Mapping[Monomial, int]
) -> Slope:
    columns = [j for j, monomial in enumerate(monomials) if feature in monomial]
    quotients = [places[_without(monomials[j], feature)] for j in columns]
    exponents = [monomials[j].count(feature) for j in columns]
    return Slope(
        np.array(columns, dtype=np.intp),
        np.array(quotients, dtype=np.intp),
        np.array(exponents, dtype=np.float64),
    )


def _without(monomial: Monomial, feature: int) -> Monomial:
    """The quotient by one feature."""
    place = monomial.index(feature)
    return monomial[:place] + monomial[place + 1 :]
