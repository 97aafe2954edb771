"""Sums of products of functions of one column each, and their Shapley values."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Final, Self, TypeAlias, final

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from propopt.base.arrays import Array, Attributions, Indices, Points, Sparse, Values
from propopt.base.kernels import kernel
from propopt.base.resources import Budget
from propopt.structures.products.families import Factors


def padded_paths(product: Indices, factor: Indices, n_products: int) -> Indices:
    """The factors of each product in one row, padded with −1, shape (L, K)."""
    lengths = np.bincount(product, minlength=n_products)
    paths = np.full((n_products, int(lengths.max(initial=0))), -1)
    starts = np.cumsum(lengths) - lengths
    paths[product, np.arange(len(product)) - starts[product]] = factor
    return paths


def stacked_paths(parts: Sequence[Indices]) -> Indices:
    """The paths of several parts (L, K) below each other, padded with −1."""
    width = max(part.shape[1] for part in parts)
    paths = np.full((sum(map(len, parts)), width), -1)
    row = 0
    for part in parts:
        paths[row : row + len(part), : part.shape[1]] = part
        row += len(part)
    return paths


def joint_paths(paths: Indices, player: Indices) -> tuple[Indices, Indices, Indices]:
    """Products in which the factors of one player are joined.

    From paths (L, K) and the player of each factor (U,): the paths of joint factors,
    the factors of each, padded with −1, (V, K), and their players (V,).
    """
    product, index = np.nonzero(paths >= 0)
    factor = paths[product, index]
    order = np.lexsort([factor, player[factor], product])
    product = product[order]
    factor = factor[order]
    owner = player[factor]
    new = np.ones(len(owner), bool)
    new[1:] = (np.diff(product) != 0) | (np.diff(owner) != 0)
    members = padded_paths(np.cumsum(new) - 1, factor, int(new.sum()))
    index = ranks(members.T) if len(members) > 0 else np.zeros(0, np.intp)
    _, first, joint = np.unique(index, return_index=True, return_inverse=True)
    joined = padded_paths(product[new], joint, len(paths))
    return joined, members[first], owner[new][first]


def ranks(parts: Iterable[NDArray[Any]]) -> Indices:
    """The ranks of rows in lexicographic order, equal for equal rows."""
    indices = np.zeros(1, np.intp)
    for part in parts:
        values, ordered = np.unique(part, return_inverse=True)
        both = indices * max(len(values), 1) + ordered
        _, indices = np.unique(both, return_inverse=True)
    return indices


PRODUCTS_TOLERANCE: Final = 1e-9
"""Allowed difference of sums of products from a model, relative to the range of f."""

_FACTORS_AT_ONCE: Final = 8192
"""Factors that are multiplied in one batch, which stays in the processor's cache."""

VALUES_AT_ONCE: Final = Budget(2**26)
"""A separate budget: batches of other sizes would change the last digits of sums."""

ROWS_AT_ONCE: Final = Budget(2**26, 32)
"""Rows at which factors are evaluated in one batch, which stays in the cache."""

_CACHE_BUDGET: Final = Budget(2**19)
"""A budget of arrays that are multiplied repeatedly and stay in the cache."""

FactorNumbers: TypeAlias = Indices | slice
"""Some of the factors, by their indices."""

Mixing: TypeAlias = Callable[[Any], tuple[Array, Array]]
"""From n positions in a column to two measures, as means and contrasts, (U, n)."""


@dataclass(frozen=True, eq=False, repr=False)
class SumOfProducts:
    """A sum of products of factors, each a function of one column.

    f(x) = base + Σ_l v_l Π_{u in path l} g_u(x_j(u))

    Examples are sums of trees (:class:`~propopt.structures.boxes.boxes.Boxes`, with
    indicators as factors), gaussian kernels, linear and additive functions, and sums of
    all these. Under independent columns the mean of f is the same sum with the mean of
    g_u in place of g_u, and likewise for any contrast in one column: nothing is
    sampled.
    """

    base: float  # the constant
    values: Array  # (L,): v
    paths: Indices  # (L, K): the factors u of each product, padded with −1 at the end
    factors: tuple[Factors, ...]  # families of factors, numbered consecutively
    n_columns: int  # D
    # allowed difference from the model, relative to the range of f
    tolerance: float = PRODUCTS_TOLERANCE

    @classmethod
    def additive(
        cls, base: float, weights: Array, terms: Factors, n_columns: int
    ) -> SumOfProducts:
        """The additive function base + Σ_u weights_u g_u.

        Parameters
        ----------
        base : float
            The constant.
        weights : array (U,)
            The weight of each term.
        terms : Factors
            The U functions g_u of one column each.
        n_columns : int
            The number D of columns of the table.

        Returns
        -------
        SumOfProducts
        """
        return cls(base, weights, np.arange(len(terms))[:, None], (terms,), n_columns)

    @classmethod
    def constant(cls, value: float, n_columns: int) -> SumOfProducts:
        """The constant function of a table.

        Parameters
        ----------
        value : float
            The value at all points.
        n_columns : int
            The number D of columns of the table.

        Returns
        -------
        SumOfProducts
        """
        return cls(value, np.zeros(0), np.zeros((0, 0), np.intp), (), n_columns)

    def __repr__(self) -> str:
        kinds = ", ".join(type(family).__name__ for family in self.factors)
        return (
            f"{type(self).__name__}({len(self.values)} products of "
            f"{self.n_factors} factors ({kinds}) in {self.n_columns} columns)"
        )

    @cached_property
    def column(self) -> Indices:
        """The column of each factor, shape (U,)."""
        nothing = np.zeros(0, np.intp)
        return np.concatenate([nothing, *(family.column for family in self.factors)])

    @property
    def n_factors(self) -> int:
        """The number U of factors."""
        return len(self.column)

    @cached_property
    def lengths(self) -> Indices:
        """The number of factors of each product, shape (L,)."""
        return (self.paths >= 0).sum(axis=1)

    @cached_property
    def columns(self) -> Indices:
        """The columns that f depends on, increasing."""
        used = np.unique(self.paths)
        return np.unique(self.column[used[used >= 0]])

    @cached_property
    def by_column(self) -> list[tuple[int, FactorNumbers, Factors]]:
        """The columns that f depends on, with their factors, by families."""
        return [
            (j, _run(numbers), factors)
            for j in self.columns.tolist()
            for numbers, factors in self.chosen(np.flatnonzero(self.column == j))
        ]

    @cached_property
    def of_column(self) -> dict[int, list[tuple[FactorNumbers, Factors]]]:
        """The factors of each column that f depends on, as in :attr:`by_column`."""
        parts: dict[int, list[tuple[FactorNumbers, Factors]]] = {}
        for j, numbers, factors in self.by_column:
            parts.setdefault(j, []).append((numbers, factors))
        return parts

    def chosen(self, numbers: Indices) -> Iterator[tuple[Indices, Factors]]:
        """Some factors by their indices, grouped by families."""
        start = 0
        for family in self.factors:
            end = start + len(family.column)
            in_family = numbers[(start <= numbers) & (numbers < end)]
            if len(in_family) > 0:
                yield in_family, family.take(in_family - start)
            start = end

    # ---- Values and sums

    def value(self, points: Points) -> Values:
        """Values of f at points (N, D), shape (N,)."""
        values = np.empty(len(points))
        for rows, G in self.factors_at(points):
            values[rows] = self.sums(G)
        return values

    def terms(self, points: Points) -> Values:
        """Magnitude |base| + Σ_l |v_l Π_u g_u|, which bounds rounding errors, (N,)."""
        sizes = np.empty(len(points))
        whole = replace(self, base=abs(self.base), values=np.abs(self.values))
        for rows, G in self.factors_at(points):
            sizes[rows] = whole.sums(np.abs(G))
        return sizes

    def factors_at(self, points: Points) -> Iterator[tuple[slice, Array]]:
        """Blocks of rows, with the values of all factors there (U, n)."""
        row_bytes = 8 * self.n_factors + self.row_bytes
        for rows in VALUES_AT_ONCE.blocks(len(points), row_bytes):
            G = np.empty((self.n_factors, len(points[rows])))
            for j, numbers, factors in self.by_column:
                G[numbers] = factors.at(points[rows, j])
            yield rows, G

    def plus(self, number: float) -> Self:
        """The function plus a number."""
        return replace(self, base=self.base + number)

    def scaled(self, weight: float) -> Self:
        """The function multiplied by a number."""
        return replace(self, base=weight * self.base, values=weight * self.values)

    @staticmethod
    def sum_of(parts: Sequence[SumOfProducts]) -> SumOfProducts:
        """The sum of functions of the same columns, at least one; boxes for boxes."""
        kinds = {type(part) for part in parts if part.factors}
        kind = kinds.pop() if len(kinds) == 1 else SumOfProducts
        starts = np.cumsum([0, *(part.n_factors for part in parts)])
        moved = [
            np.where(part.paths >= 0, part.paths + start, -1)
            for part, start in zip(parts, starts, strict=False)
        ]
        return kind(
            sum(part.base for part in parts),
            np.concatenate([part.values for part in parts]),
            stacked_paths(moved),
            tuple(family for part in parts for family in part.factors),
            parts[0].n_columns,
            max(part.tolerance for part in parts),
        ).deduplicate()

    def deduplicate(self) -> SumOfProducts:
        """Same function with equal factors merged, if the family can compare them."""
        return self

    # ---- The same sum with measures of the factors

    def mixed(
        self, mixings: Iterable[Mixing], places: Sequence[Any] | Array, n: int
    ) -> tuple[Array, Array]:
        """Two measures of each factor at n positions of its column.

        Parameters
        ----------
        mixings : iterable of Mixing
            The measures of the factors of each column, in the order of ``by_column``.
        places : sequence
            The positions in each of the D columns.
        n : int
            The number of positions.

        Returns
        -------
        array (U, n), array (U, n)
        """
        first, second = np.zeros((2, self.n_factors, n))
        for (j, numbers, _), mixing in zip(self.by_column, mixings, strict=True):
            first[numbers], second[numbers] = mixing(places[j])
        return first, second

    def contrasts(self, P: Array, R: Array) -> tuple[Values, Attributions]:
        """The sum with means of its factors, and with contrasts in each column.

        Parameters
        ----------
        P : array (U, N)
            The mean of each factor at N points.
        R : array (U, N)
            The contrast of each factor.

        Returns
        -------
        array (N,), array (N, D)
            The mean of f, and its contrast in each column.
        """
        compiled = None if np.iscomplexobj(P) else kernel("contrasts")
        if compiled is not None:
            return self._compiled_contrasts(compiled, P, R)
        # generating functions have complex measures
        total, slopes = self.slopes(P)
        ones = np.ones(len(P)), (self.column, np.arange(len(P)))
        by_column = sp.csr_array(ones, shape=(self.n_columns, len(P)))
        return total, np.ascontiguousarray((by_column @ (slopes * R)).T)

    def _compiled_contrasts(
        self, compiled: Callable[..., None], P: Array, R: Array
    ) -> tuple[Values, Attributions]:
        """The same by a compiled kernel, equal up to rounding."""
        n_factors, n = P.shape
        L, K = self.paths.shape
        total = np.full(n, self.base)
        attributions = np.zeros((self.n_columns, n))
        P, R = map(np.ascontiguousarray, (P, R))
        compiled(
            L,
            K,
            n_factors,
            n,
            *self._in_order,
            P,
            R,
            total,
            attributions,
            np.zeros(P.shape),
            np.empty((K + 1, n)),
        )
        return total, np.ascontiguousarray(attributions.T)

    @cached_property
    def _in_order(self) -> tuple[Array, Indices, Indices]:
        """Values, paths and columns in the memory layout of compiled kernels."""
        return (
            np.ascontiguousarray(self.values, np.float64),
            np.ascontiguousarray(self.paths, np.intp),
            np.ascontiguousarray(self.column, np.intp),
        )

    def sums(self, P: Array) -> Values:
        """The sum (N,) of measures P (U, N) of the factors."""
        total = np.full(P.shape[1], self.base + self._constant)
        for factors, paths, sums, _ in self.batches:
            product = P[factors[paths[0]]]
            for indices in paths[1:]:
                product *= P[factors[indices]]
            total += (sums @ product)[0]
        return total

    def slopes(self, P: Array) -> tuple[Values, Array]:
        """The sum (N,), and its derivatives by the measure of each factor (U, N)."""
        total = np.full(P.shape[1], self.base + self._constant, P.dtype)
        slopes = np.zeros(P.shape, P.dtype)
        for factors, paths, sums, scatter in self.batches:
            others, product = _products_of_others(P[factors], paths)
            total += (sums @ product)[0]
            slopes[factors] += scatter @ others
        return total, slopes

    @property
    def row_bytes(self) -> int:
        """The memory that :meth:`contrasts` takes for each point, in bytes."""
        return 8 * 5 * _FACTORS_AT_ONCE

    @cached_property
    def _constant(self) -> float:
        """The sum of the products without factors."""
        return float(self.values[self.lengths == 0].sum())

    @cached_property
    def batches(self) -> tuple[ProductBatch, ...]:
        """All products of at least one factor, in batches of equal length."""
        batches = []
        for length in range(1, self.paths.shape[1] + 1):
            which = np.flatnonzero(self.lengths == length)
            size = max(1, _FACTORS_AT_ONCE // length)
            for start in range(0, len(which), size):
                chosen = which[start : start + size]
                batches.append(
                    self._batch(self.values[chosen], self.paths[chosen, :length].T)
                )
        return tuple(batches)

    def _batch(self, values: Array, paths: Indices) -> ProductBatch:
        factors, index = np.unique(paths, return_inverse=True)
        index = index.reshape(paths.shape)
        scatter = (np.tile(values, len(paths)), (index.ravel(), np.arange(paths.size)))
        return (
            factors,
            index,
            sp.csr_array(values[None, :]),
            sp.csr_array(scatter, shape=(len(factors), paths.size)),
        )


ProductBatch: TypeAlias = tuple[Indices, Indices, Sparse, Sparse]
"""A batch of L products of K factors each: the factors (F,) that occur; those of each
product (K, L), as positions among these; the sums of products with weights v, (1, L);
and v_l where factor k of product l is that of the row (F, K L)."""


def _products_of_others(P: Array, paths: Indices) -> tuple[Array, Array]:
    """Products Π_{i≠k} P of each product (K L, N), and Π P (L, N), without division."""
    factors = P[paths]
    others = np.empty(factors.shape, factors.dtype)
    others[0] = 1.0
    for k in range(1, len(paths)):
        np.multiply(others[k - 1], factors[k - 1], out=others[k])
    product = others[-1] * factors[-1]
    behind = factors[-1]
    for k in range(len(paths) - 2, -1, -1):
        others[k] *= behind
        if k > 0:
            behind *= factors[k]
    return others.reshape(-1, factors.shape[-1]), product


def _run(numbers: Indices) -> FactorNumbers:
    """Consecutive indices as a slice, for faster assignment."""
    first = int(numbers[0])
    stop = int(numbers[-1]) + 1
    return slice(first, stop) if stop - first == len(numbers) else numbers


@final
@dataclass(frozen=True, eq=False, repr=False)
class PlayerProducts(SumOfProducts):
    """A sum of products in which the columns of each player act as one.

    In each product the factors of a player are joined to their product. All rules for
    factors of one column apply to joint factors, too.
    """

    read: SumOfProducts = field(kw_only=True)  # f, by its columns
    # (V, K): the factors of each joint factor, padded with −1
    members: Indices = field(kw_only=True)
    column: Indices = field(kw_only=True)  # (V,): the player of each

    @classmethod
    def of_players(cls, read: SumOfProducts, players: Indices) -> Self:
        """The same function, by the players of its columns (D,)."""
        paths, members, column = joint_paths(read.paths, players[read.column])
        n_players = int(players.max()) + 1
        return cls(
            read.base,
            read.values,
            paths,
            (),
            n_players,
            read.tolerance,
            read=read,
            members=members,
            column=column,
        )

    def factors_at(self, points: Points) -> Iterator[tuple[slice, Array]]:
        """Blocks of rows, with the values of all joint factors there (V, n)."""
        for rows, G in self.read.factors_at(points):
            padded = np.concatenate([G, np.ones((1, G.shape[1]))])
            joint = padded[self.members[:, 0]]
            for factors in self.members.T[1:]:
                joint *= padded[factors]
            yield rows, joint


# ---- Shapley values


@final
@dataclass(frozen=True, eq=False)
class Game:
    """A cooperative game for Shapley values: background rows, weights and players.

    v(S) is the mean over background rows b of f(x on the columns of S, b elsewhere).
    """

    background: Points  # shape (B, D)
    n_blocks: int = 1  # consecutive blocks of the background, of equal size
    # (B,): weights of the rows of a single block, with sum 1
    weights: Values | None = None
    players: Indices | None = None  # (D,): the player of each column, if grouped

    def __post_init__(self) -> None:
        assert self.weights is None or self.n_blocks == 1, (
            "rows of several blocks have equal weights"
        )

    @property
    def n_players(self) -> int:
        """The number of players: D, or the number of groups of columns."""
        players = self.players
        return self.background.shape[1] if players is None else int(players.max()) + 1

    @property
    def blocks(self) -> list[Points]:
        """The rows of each block of the background."""
        return np.split(self.background, self.n_blocks)

    @cached_property
    def digest(self) -> str:
        """The SHA-256 digest of the whole game."""
        content = hashlib.sha256()
        for part in (self.background + 0.0, self.weights, self.players):
            array = np.zeros(0) if part is None else np.ascontiguousarray(part)
            content.update(repr((array.shape, self.n_blocks)).encode())
            content.update(array.tobytes())
        return content.hexdigest()


@final
@dataclass(frozen=True, eq=False)
class ProductShapley:
    """Shapley values of a sum of products against background rows, exactly.

    A feature that is present with probability t has the mean factor t a + (1 − t) b,
    a = g(x) and b = g(y) at a background row y, so that

    φ_j = mean_y Σ_{u of j} (a_u − b_u) ∫_0^1 Σ_{l with u} v_l Π_{w≠u} c_w(t) dt

    with c = t a + (1 − t) b (the multilinear extension, Owen 1972). For products of K
    factors this is a polynomial in t of degree K − 1, for which ⌈K/2⌉ Gauss nodes are
    exact:  N rows against B take N B L K ⌈K/2⌉ multiplications.
    """

    structure: SumOfProducts  # f
    game: Game

    @classmethod
    def of(cls, structure: SumOfProducts, game: Game) -> Self:
        """Prepare a game of a function, by its players if there are any."""
        if game.players is not None:
            structure = PlayerProducts.of_players(structure, game.players)
        return cls(structure, game)

    def of_blocks(self, points: Points) -> Array:
        """Shapley values against each background block separately, (N, blocks, D)."""
        if self.game.n_blocks == 1:
            return self.values(points)[:, None]
        games = map(Game, self.game.blocks)
        each = [ProductShapley(self.structure, one).values(points) for one in games]
        return np.stack(each, axis=1)

    def values(self, points: Points) -> Attributions:
        """Shapley values of points (N, D), exactly 0.0 in columns without a factor."""
        structure = self.structure
        equal = self.game.weights is None
        phi = np.zeros((len(points), structure.n_columns))
        if structure.lengths.max(initial=0) <= 1:
            return self._of_additive(points)
        B = np.concatenate(
            [G for _, G in structure.factors_at(self.game.background)], axis=1
        )
        for rows, A in structure.factors_at(points):
            for chosen, path in self._blocks():
                b = B[path]
                column = structure.column[path]
                values = structure.values[chosen]
                weights = values / len(self.game.background) if equal else values
                for a, row_phi in zip(A.T, phi[rows], strict=True):
                    np.add.at(row_phi, column, self._of_paths(a[path], b) * weights)
        return phi

    def _of_additive(self, points: Points) -> Attributions:
        """Shapley values of additive functions: v (g(x) − mean_y g(y)) by factor."""
        structure = self.structure
        phi = np.zeros((len(points), structure.n_columns))
        alone = structure.lengths == 1
        path = structure.paths[alone, 0]
        values = structure.values[alone]
        mean = np.zeros(structure.n_factors)
        for rows_of_block, B in structure.factors_at(self.game.background):
            if self.game.weights is None:
                mean += B.sum(axis=1) / len(self.game.background)
            else:
                mean += B @ self.game.weights[rows_of_block]
        column = structure.column[path]
        for rows, A in structure.factors_at(points):
            for a, row_phi in zip(A.T, phi[rows], strict=True):
                np.add.at(row_phi, column, (a - mean)[path] * values)
        return phi

    def _of_paths(self, a: Array, b: Array) -> Array:
        """Integrals for factors a (K, L), summed over background rows b (K, L, B)."""
        step = a[:, :, None] - b
        total = np.zeros(b.shape)
        nodes, weights = np.polynomial.legendre.leggauss(max(-(-len(a) // 2), 1))
        for t, weight in zip((nodes + 1.0) / 2.0, weights / 2.0, strict=True):
            mixed = b + t * step
            others = np.ones(b.shape)  # the factors before, then those after
            np.multiply.accumulate(mixed[:-1], axis=0, out=others[1:])
            others[:-1] *= np.multiply.accumulate(mixed[:0:-1], axis=0)[::-1]
            total += weight * others * step
        if self.game.weights is None:
            return total.sum(axis=2)
        return total @ self.game.weights

    def _blocks(self) -> Iterator[tuple[Indices, Indices]]:
        """Batches of products of equal length, with their factors (K, L)."""
        lengths = self.structure.lengths
        for length in np.unique(lengths[lengths > 0]).tolist():
            of_length = np.flatnonzero(lengths == length)
            row_bytes = 8 * length * len(self.game.background)
            for part in _CACHE_BUDGET.blocks(len(of_length), row_bytes):
                chosen = of_length[part]
                yield chosen, self.structure.paths[chosen, :length].T
