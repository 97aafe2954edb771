"""Means over all sets of one size, by independent words and a generating function.

Let each of d words be retained with probability p, independently of the others, and let
S be the number of retained words. For a block B of b words, with factors a and values v
of its sets, put

    z_B = Σ_i P(i of b) ā_i t^i,   V_B = Σ_i P(i of b) ã_i t^i / z_B,

where ā_i and ã_i are means of a and of v a over the sets of i words. Then

    F(t) = Π_B z_B · Σ_B V_B

is the generating function of means over sets of one size: its coefficient of t^m is P(S
= m) E_m[Π a Σ v]. The coefficient is a mean of F(t) t^(−m) over t = e^(iφ), by the
midpoint rule with M angles. The rule adds the coefficients of m ± M, m ± 2M and so on;
M is so large that P(S = m ± M) is below 1e-18 of P(S = m). The mean loses few digits if
p d is close to m. A few p serve all sizes, each for sizes within 2.5 standard
deviations of S. Angles at which F is negligible are left out. So d words take some 6 √d
angles, and not d. Where p > 1/2, t counts the words that are left out instead, so that
phases are small (Trefethen and Weideman, "The exponentially convergent trapezoidal
rule", 2014).

The chain rule gives the derivatives of a weighted sum of means with respect to each ā_i
and ã_i, and from these the moments of the sets that retain a word. Single words of
equal size have the same z, and are treated as one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, Final, TypeAlias, final

import numpy as np
from scipy.stats import binom

from propopt.base.arrays import Array, Indices, Values
from propopt.structures.subsets.sets import Blocks


_REACH: Final = 2.5
"""Standard deviations of S between its mean and the sizes that a circle serves."""

_LITTLE: Final = 1e-18
"""Shares of a mean that are negligible."""

_AT_ONCE: Final = 2**14
"""Complex numbers of one array that stays in the processor's cache."""


# ---- Circles: probabilities, angles, and weights from F to means of one size


@final
@dataclass(frozen=True, eq=False)
class _Circles:
    """Probabilities p of all words, each for consecutive sizes m, with some angles."""

    p: Values  # (C,)
    circle: Indices  # (P,): of each point
    angles: Values  # (P,): φ, above 0 and below π
    # (sizes, A) of each circle: means over sets of m words are the real part of this @
    # F at its points
    weights: list[Array]

    def means(self, F: Array) -> Values:
        """Means at m = 1, …, d − 1, from values of F at all points (P,)."""
        ends = np.cumsum([len(weights.T) for weights in self.weights])
        parts = zip(self.weights, np.split(F, ends[:-1]), strict=True)
        return np.concatenate([(weights @ part).real for weights, part in parts])

    def adjoint(self, weights: Array) -> Array:
        """The derivatives of sums of means with weights (K, d + 1) by F, (K, P)."""
        ends = np.cumsum([len(of_circle) for of_circle in self.weights])
        parts = np.split(weights[:, 1:-1], ends[:-1], axis=1)
        return np.concatenate(list(map(np.matmul, parts, self.weights)), axis=1)


@lru_cache(maxsize=4)
def _circles(d: int) -> _Circles:
    """The circles that serve the sizes m = 1, …, d − 1 of d words."""
    # m = d sin²(θ/2) has a standard deviation of 1/√d in θ, whatever p
    theta = 2.0 * np.arcsin(np.sqrt(np.arange(1, d) / d))
    span = theta[-1] - theta[0]
    count = max(1, math.ceil(span * math.sqrt(d) / (2.0 * _REACH)))
    position = np.minimum((theta - theta[0]) / (span or 1.0) * count, count - 1)
    used, first = np.unique(position.astype(int), return_index=True)
    middles = [theta[0] + (k + 0.5) * span / count for k in used.tolist()]
    p = np.array([np.sin(middle / 2.0) ** 2 for middle in middles])
    sizes = np.split(np.arange(1, d), first[1:])
    each = [_angles(d, *pair) for pair in zip(p.tolist(), sizes, strict=True)]
    angles, weights = zip(*each, strict=True)
    circle = np.repeat(np.arange(len(p)), list(map(len, angles)))
    return _Circles(p, circle, np.concatenate(angles), list(weights))


def _angles(d: int, p: float, sizes: Indices) -> tuple[Values, Array]:
    """The angles of a circle, and their weights for each of the sizes."""
    pmf = binom.pmf(np.arange(d + 1), d, p)
    least = pmf[sizes].min()
    relevant = np.flatnonzero(pmf > _LITTLE * least)
    n_angles = max(int(relevant[-1] - sizes[0]), int(sizes[-1] - relevant[0])) + 1
    n_angles = min(n_angles, d + 1)
    n_angles += n_angles % 2  # an even number of midpoints has no φ = π: no z is 0
    phi = np.pi * (2.0 * np.arange(n_angles // 2) + 1.0) / n_angles
    # |z| ≤ max(1 − p, |1 − p + p e^(iφ)|) for any factor in [0, 1]
    logs = 0.5 * np.log1p(-4.0 * p * (1.0 - p) * np.sin(phi / 2.0) ** 2)
    logs = (d - 1.0) * np.maximum(logs, np.log1p(-p))
    phi = phi[logs > math.log(_LITTLE * least)]
    turned = np.exp(-1j * np.outer(sizes if p <= 0.5 else d - sizes, phi))
    return phi, turned * (2.0 / n_angles / pmf[sizes])[:, None]


def _product(z: Array) -> Array:
    """The product over the first axis, by halves: NumPy's is ten times slower."""
    while len(z) > 1:
        half = len(z) // 2
        z = np.concatenate([z[:half] * z[half : 2 * half], z[2 * half :]])
    return z[0] if len(z) else np.ones(z.shape[1:], complex)


# ---- Words, and blocks of words, at pairs of a node u and a point (p, φ)


@final
@dataclass(frozen=True, eq=False)
class _Pairs:
    """Nodes with a point of a circle each, n pairs."""

    nodes: Indices  # (n,): increasing
    rates: Values  # (n,): u
    p: Values  # (n,)
    angles: Values  # (n,): φ

    @cached_property
    def retained(self) -> Array:
        """The factor of a retained word: p t, or p if t counts the others."""
        return np.where(self.p <= 0.5, self._t, 1.0) * self.p

    @cached_property
    def absent(self) -> Array:
        """The factor of a word that is left out."""
        return np.where(self.p <= 0.5, 1.0, self._t) * (1.0 - self.p)

    @property
    def _t(self) -> Array:
        return np.exp(1j * self.angles)


@final
class _Words:
    """Blocks of one word, grouped by their U different sizes.

    ``bounds`` has logarithms of Π z, and Σ |v| Q at φ = 0, (Q,) each. ``at`` has Π z, V
    (n,) and what ``accumulate`` needs to add derivatives by factors and values, given
    those by Π z V, (n, K); ``derivatives`` are those by the sets that retain a word,
    (K, G, b).
    """

    def __init__(self, blocks: Blocks, rates: Values, n_rows: int) -> None:
        self.words = blocks.words
        self._v = blocks.values[:, 1]
        sizes, which, counts = np.unique(
            blocks.sizes[:, 1], return_inverse=True, return_counts=True
        )
        order = np.argsort(counts > 1, kind="stable")  # those of one word come first
        self._which = np.argsort(order)[which]
        self._sizes = sizes[order]
        self._counts = counts[order].astype(float)
        self._n_alone = int(np.count_nonzero(counts == 1))
        self._a = np.exp(-np.outer(self._sizes, rates))
        self._values = np.bincount(self._which, self._v).astype(complex)
        self._absolutes = np.bincount(self._which, np.abs(self._v))
        # of Q, Q V and Q²
        self._sums = np.zeros((3, len(sizes), n_rows))

    @property
    def n_numbers(self) -> int:
        return len(self._sizes)

    def bounds(self, p: float) -> tuple[Values, Values]:
        retained = p * self._a
        z = 1.0 - p + retained
        return self._counts @ np.log(z), self._absolutes @ (retained / z)

    def at(self, pairs: _Pairs) -> tuple[Array, Array, Any]:
        Q = self._a[:, pairs.nodes] * pairs.retained
        z = Q + pairs.absent
        whole = _product(z[: self._n_alone]) * self._powers(pairs, z[self._n_alone :])
        Q /= z
        return whole, self._values @ Q, Q

    def _powers(self, pairs: _Pairs, z: Array) -> Array:
        """Π z over sizes of more than one word, by logarithms."""
        fall = -np.expm1(-np.outer(self._sizes[self._n_alone :], pairs.rates))
        # |z|² − 1 without a difference, since |z| close to 1 is raised to a high power
        sure = pairs.p * fall
        turned = 4.0 * pairs.p * (1.0 - pairs.p) * np.sin(pairs.angles / 2.0) ** 2
        square = sure * (sure - 2.0) - turned * (1.0 - fall)
        close = np.log1p(np.maximum(square, -0.5))
        logs = np.where(square > -0.5, close, np.log(z.real**2 + z.imag**2))
        counts = self._counts[self._n_alone :]
        return np.exp(0.5 * (counts @ logs) + 1j * (counts @ np.angle(z)))

    def accumulate(self, cached: Any, pairs: _Pairs, due: Array, V: Array) -> None:
        del pairs  # all nodes are added up
        Q = cached
        self._sums[0] += (Q @ due).real
        self._sums[1] += (Q @ (V[:, None] * due)).real
        Q *= Q
        self._sums[2] += (Q @ due).real

    def derivatives(self) -> Array:
        alone, with_values, both = self._sums[:, self._which].transpose(0, 2, 1)
        return (with_values + self._v * (alone - both))[:, :, None]


@final
class _Shared:
    """Blocks of b words that share features, by means over sets of i words."""

    def __init__(self, blocks: Blocks, rates: Values, n_rows: int) -> None:
        self.words = blocks.words
        self._blocks = blocks
        self._rates = rates
        b = blocks.n_words
        i = np.arange(1, b + 1)
        self._i = i[:, None]
        self._ways = np.array([[math.comb(b, k)] for k in i])
        self._plain, self._tilted, self._most = (
            np.zeros((len(blocks.words), b, len(rates))) for _ in range(3)
        )
        means = blocks.shares[:, 1:]
        for q, u in enumerate(rates):
            a = np.exp(-u * blocks.sizes)
            self._plain[:, :, q] = a @ means
            self._tilted[:, :, q] = (a * blocks.values) @ means
            self._most[:, :, q] = (a * np.abs(blocks.values)) @ means
        # to a and v a, of each
        self._sums = np.zeros((2, n_rows, *self._plain.shape))

    @property
    def n_numbers(self) -> int:
        return self._plain.shape[0] * self._plain.shape[1]

    def _law(self, retained: Any, absent: Any) -> tuple[Any, Any]:
        """The factors of i of b retained words, for all i, and of none."""
        b = self._blocks.n_words
        return self._ways * retained**self._i * absent ** (b - self._i), absent**b

    def bounds(self, p: float) -> tuple[Values, Values]:
        law, none = self._law(p, 1.0 - p)
        z = none + (law * self._plain).sum(axis=1)
        values = (law * self._most).sum(axis=1) / z
        return np.log(z).sum(axis=0), values.sum(axis=0)

    def at(self, pairs: _Pairs) -> tuple[Array, Array, Any]:
        turns, none = self._law(pairs.retained, pairs.absent)
        z = none + (turns * self._plain[:, :, pairs.nodes]).sum(axis=1)
        values = (turns * self._tilted[:, :, pairs.nodes]).sum(axis=1) / z
        return _product(z), values.sum(axis=0), (turns / z[:, None], values)

    def accumulate(self, cached: Any, pairs: _Pairs, due: Array, V: Array) -> None:
        to_tilted, values = cached
        to_plain = to_tilted * (V - values)[:, None]
        nodes, starts = np.unique(pairs.nodes, return_index=True)
        for k, row in enumerate(due.T):
            for sums, part in zip(self._sums, (to_plain, to_tilted), strict=True):
                sums[k][:, :, nodes] += np.add.reduceat(
                    (part * row).real, starts, axis=2
                )

    def derivatives(self) -> Array:
        blocks = self._blocks
        shares = self._blocks.shares[:, 1:].T
        result = np.zeros((self._sums.shape[1], *self.words.shape))
        for q, u in enumerate(self._rates):
            plain, tilted = self._sums[..., q]
            of_sets = plain @ shares + (tilted @ shares) * blocks.values
            of_sets *= np.exp(-u * blocks.sizes)
            result += of_sets @ blocks.retained
        return result


# ---- Means of products, and their first moments


_BlockKind: TypeAlias = _Words | _Shared


@final
@dataclass(frozen=True, eq=False)
class SymmetricMeans:
    """Means over sets of one size of Σ_q w_q Π exp(−u_q sizes) Σ values.

    For sets of 1 to d − 1 of d ≥ 2 words.
    """

    blocks: Sequence[Blocks]  # each word is in one block
    rates: Values  # (Q,): u > 0
    weights: Values  # (Q,): w > 0

    def means(self) -> Values:
        """Means over the sets of m = 1, …, d − 1 words, shape (d − 1,)."""
        return self._circles.means(self._F)

    @cached_property
    def _F(self) -> Array:
        return self._walked(self._kinds(0), np.zeros((0, len(self._circles.angles))))

    def first_moments(self, weights: Array) -> Array:
        """Sums Σ_m w_m (mean over sets that retain word j) for w (K, d + 1), (K, d)."""
        kinds = self._kinds(len(weights))
        F = self._walked(kinds, self._circles.adjoint(weights))
        vars(self)["_F"] = F  # fills the ``cached_property``
        result = np.zeros((len(weights), self._n_words))
        for kind in kinds:
            result[:, kind.words] = kind.derivatives()
        return result

    @property
    def n_steps(self) -> float:
        """An upper bound on computed numbers, for one row of weights."""
        n_numbers = sum(kind.n_numbers for kind in self._kinds(0))
        return float(len(self.rates)) * len(self._circles.angles) * n_numbers

    def _walked(self, kinds: list[_BlockKind], F_derivatives: Array) -> Array:
        """F at all points (P,); derivatives by F, (K, P), are added to the kinds."""
        F = np.zeros(len(self._circles.angles), complex)
        nodes, points = self._pairs(kinds)
        size = max(16, _AT_ONCE // sum(kind.n_numbers for kind in kinds))
        for start in range(0, len(nodes), size):
            q = nodes[start : start + size]
            here = points[start : start + size]
            p = self._circles.p[self._circles.circle[here]]
            pairs = _Pairs(q, self.rates[q], p, self._circles.angles[here])
            whole = self.weights[q].astype(complex)
            V = np.zeros(len(q), complex)
            intermediate = []
            for kind in kinds:
                factor, value, cache = kind.at(pairs)
                whole *= factor
                V += value
                intermediate.append(cache)
            np.add.at(F, here, whole * V)
            if len(F_derivatives):
                due = (F_derivatives[:, here] * whole).T
                for kind, cache in zip(kinds, intermediate, strict=True):
                    kind.accumulate(cache, pairs, due, V)
        return F

    def _pairs(self, kinds: list[_BlockKind]) -> tuple[Indices, Indices]:
        """The relevant nodes and points: |F| is at most F of |v| at φ = 0."""
        parts = np.zeros((len(self.rates), len(self._circles.p)))
        for k, p in enumerate(self._circles.p):
            log = np.log(self.weights)
            size = np.zeros(len(self.rates))
            for kind in kinds:
                more, values = kind.bounds(float(p))
                log = log + more
                size = size + values
            parts[:, k] = np.exp(log) * size
        matters = parts > _LITTLE * parts.sum(axis=0)
        nodes, points = np.nonzero(matters[:, self._circles.circle])
        return nodes, points

    def _kinds(self, n_rows: int) -> list[_BlockKind]:
        return [
            (_Words if blocks.n_words == 1 else _Shared)(blocks, self.rates, n_rows)
            for blocks in self.blocks
        ]

    @cached_property
    def _n_words(self) -> int:
        return sum(blocks.words.size for blocks in self.blocks)

    @property
    def _circles(self) -> _Circles:
        return _circles(self._n_words)
