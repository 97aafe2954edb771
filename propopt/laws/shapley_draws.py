"""Shapley values of a black-box function: over all sets of columns, or some of them.

v(S) is the mean of f over the background rows b, with the columns S replaced by
those of x, and the Shapley value of column j is a mean of v(S ∪ j) − v(S) over sets S.
For few columns all sets are evaluated, and nothing is estimated.

Otherwise each background row is a separate game, with separate sets, and the values
are the mean over these games. Each set is evaluated with its complement, which leaves
the odd part (:mod:`propopt.laws.odd_games`). A game has either

- an **order** of the columns, which are replaced one by one: D − 1 sets, and each
  change belongs to a column. It is exact for sums of functions of one column, and
  needs the fewest sets (Mitchell et al. 2022), or
- **many sets**, three times as many and more, and a Gaussian process.

The error is that of the games. The rows of a table are no draws, and differences
between them are no error. Each has many sets, or an order, and ten of them at least, of
the largest weights, have a second one: differences d between orders of a row show the
error. As long as few do, (Σ d²)² < 20 Σ d⁴ over rows and points, ten more rows have
one. The variance of a column is pooled with the mean of all columns and points (Smyth
2004, Linear models and empirical Bayes methods). If a table is large, some of its rows
are drawn, and differences between games are an error: with a single order in each they
contain that of the orders. Effects in fewer than one order in a hundred may be missing
from values and errors.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final, TypeAlias, final

import numpy as np

from propopt.base.arrays import Array, Indices, Mask, Points, Values
from propopt.base.resources import BATCH_BUDGET, DrawPlan
from propopt.laws.background import Background
from propopt.laws.calibration import N_DRAWN_BLOCKS
from propopt.laws.odd_games import (
    estimates_of_sets,
    fewest_of_many,
    intervals,
    more_sets,
)
from propopt.laws.sampling import DrawCost, Sampler
from propopt.losses.faithfulness import relative_error
from propopt.structures.subsets.conjunctions import MOST_ENUMERATED


_Evaluator: TypeAlias = Callable[[Points], Array]

_MOST_SETS: Final = 600
"""Sets of a game from which on there are further games of a row."""

_CHECKED_SETS: Final = 50
"""Sets that unused columns must not change."""

_CHECKED_OF: Final = 450
"""Among fewer sets no columns are sought that are unused."""

_ALIKE: Final = 5
"""Orders that the mean variance of all columns and points counts as, in each."""

_DIFFERENCES: Final = 20
"""Differences between orders, by the squares that they add, that show an error."""

_SEEN: Final = 100
"""Orders without differences after which there are none."""

_ROUNDING: Final = 1e-12
"""Changes below this share of the largest are rounding."""

_EXACT_AT: Final = 2.5
"""The largest cost of all sets, relative to the first draw of orders."""

QUICK_ROWS: Final = 2**13
"""Rows of f per explained row for fast models: 6 columns with 100 background rows,
8 with 32, 10 with 8."""


def all_sets_are_cheap(
    shape: tuple[int, ...], n_background: int, draws: DrawPlan, quick_rows: int = 0
) -> bool:
    """Whether evaluating all sets of D columns is cheap enough.

    They take M (2^D − 2) rows of f per explained row, and P pairs of orders take
    2 P (D − 1). With P = M that is 1, 1.5 and 2.33 times as many for 2, 3 and 4
    columns, and 3.75 times for 5. Fast models may take more: ``quick_rows`` per
    explained row.
    """
    n_points, width = shape
    if width > MOST_ENUMERATED:
        return False
    inner = n_points * (2.0**width - 2.0) * n_background
    most = draws.max_evaluations
    if most is not None and inner + n_points + n_background > most:
        return False
    usual = _EXACT_AT * 2 * n_points * (width - 1) * draws.n_samples
    return inner <= max(usual, n_points * quick_rows)


# ---- Games of single background rows


@final
@dataclass(frozen=True, eq=False)
class ShapleyDraws(Sampler):
    """Shapley values of points, as the mean of games of background rows."""

    game: _Game
    background: Background
    signs: Array  # (G, n, D): sets of each game
    odd: Array  # (N, G, n + 1): odd parts at its sets, and at the set of all columns
    unused: Mask  # (N, D): columns without effect
    seed: int
    n_checked: int = 0  # sets that show that columns are without effect

    @classmethod
    def of(
        cls,
        value: _Evaluator,
        background: Background,
        points: Points,
        rng: np.random.Generator,
        draws: DrawPlan,
        *,
        ends: tuple[Values, Values],  # f at the points and at the background
        players: Indices | None = None,  # (D,): of the columns, if grouped
        quick_rows: int = 0,  # of f per explained row for fast models
    ) -> ShapleyDraws:
        """Take all sets if they are cheap, else orders or many sets; D ≥ 2 players."""
        columns = np.arange(points.shape[1]) if players is None else players
        n_points = len(points)
        n_rows = len(background.points)
        game = _Game(value, points, background.points, columns, *ends)
        width = game.width
        drawn = cls(
            game,
            background,
            signs=np.empty((0, 0, width)),
            odd=np.empty((n_points, 0, 1)),
            unused=np.zeros((n_points, width), bool),
            seed=int(rng.integers(2**63)),
        )
        if all_sets_are_cheap((n_points, width), n_rows, draws, quick_rows):
            return drawn.of_sets(n_rows * (2 ** (width - 1) - 1))
        wanted = replace(draws, n_samples=draws.n_samples * (width - 1))
        n_sets = game.cost.first(wanted)
        # one order of each row says nothing of its error
        many = fewest_of_many(width) + _CHECKED_SETS // n_rows + 1
        of_drawn = width - 1 if draws.precision is None else many
        least = n_rows * of_drawn
        if background.is_whole:
            twice = min(n_rows, N_DRAWN_BLOCKS)
            least = max(least, (n_rows + twice) * (width - 1))
        if draws.max_evaluations is None and n_rows <= draws.n_samples:
            n_sets = max(n_sets, least)
        if n_sets < least:
            most = min(
                n_sets // of_drawn, n_rows - N_DRAWN_BLOCKS * background.is_whole
            )
            at_rows = ends[1][background.drawn_places(most)]
            background = background.thinned(most, ends[1])
            game = replace(game, rows=background.points, at_rows=at_rows)
            drawn = replace(drawn, game=game, background=background)
        drawn = drawn.of_sets(n_sets)
        most = 2 * n_rows * (width - 1)
        if draws.max_evaluations is not None:
            most = min(most, drawn.cost.affordable(draws.max_evaluations))
        ten = N_DRAWN_BLOCKS * (width - 1)
        while drawn.tells_little and drawn.n_draws + drawn.fewest_more <= most:
            drawn = drawn.extended(min(drawn.n_draws + ten, most))
        return drawn

    @property
    def n_draws(self) -> int:  # type: ignore[override]
        """The number of sets with their complements, of all games."""
        return self.n_checked + self.signs.shape[0] * self.signs.shape[1]

    @property
    def cost(self) -> DrawCost:
        return self.game.cost

    @property
    def fewest_more(self) -> int:
        n_games, n_sets, _ = self.signs.shape
        return n_sets * self._step if self._is_full else n_games

    @property
    def is_exact(self) -> bool:
        """Whether the games have all sets."""
        n_sets, width = self.signs.shape[1:]
        return bool(n_sets == 2 ** (width - 1) - 1)

    @property
    def n_units(self) -> int:
        """The number of orders or sets, without their reversals or complements."""
        n_games, n_sets, _ = self.signs.shape
        return n_games if self.has_orders else n_games * n_sets

    @property
    def in_words(self) -> str:
        """Describe the draws."""
        return "orders" if self.has_orders else "sets"

    @property
    def error(self) -> float:
        blocks = self.blocks(0.0)
        ends = np.concatenate([self.game.at_points, self.game.at_rows])
        if np.abs(blocks).max() <= _ROUNDING * np.abs(ends).max():
            return 0.0  # values that are rounding have no error
        return relative_error(blocks)

    @property
    def has_orders(self) -> bool:
        n_sets, width = self.signs.shape[1:]
        return n_sets < fewest_of_many(width)

    @property
    def _step(self) -> int:
        """Further games at once: of some rows if they are orders of a whole table."""
        some = self.has_orders and self.background.is_whole
        return 1 if some else len(self.background.points)

    @property
    def _is_full(self) -> bool:
        """Whether more sets are drawn for further games."""
        return self.has_orders or self.signs.shape[1] >= _MOST_SETS

    def extended(self, n_draws: int) -> ShapleyDraws:
        """Add sets to each game, or games."""
        more = n_draws - self.n_draws
        n_games, n_sets, _ = self.signs.shape
        if self._is_full:
            return self._with_games(more // self.fewest_more * self._step, n_sets)
        wanted = min(n_sets + more // n_games, _MOST_SETS)
        signs = more_sets(self.signs, wanted, self.seed)
        new = self.game.odd_parts(self.row, signs[:, n_sets:])
        odd = np.concatenate([self.odd[:, :, :-1], new], axis=2)
        return replace(self, signs=signs, odd=odd)

    def blocks(self, correction: float | None = None) -> Array:
        """Estimates (10, N, D); their scatter is the error.

        The error of drawn rows counts by ``correction``, that of the background.
        """
        of_rows, errors, moves = self._games
        rows = self.background
        blocks = rows.mean(of_rows.swapaxes(1, 2)) + _scaled(moves, errors)
        if rows.deviations is not None:
            factor = rows.correction if correction is None else correction
            if self.has_orders and len(self.signs) < 2 * len(rows.points):
                # their scatter has the error of orders in an unknown share, which the
                # correction is not for: without it, the error is an upper bound
                factor = 1.0
            between = rows.deviations @ of_rows
            blocks = blocks + factor * between.transpose(1, 0, 2)
        largest = _ROUNDING * np.abs(self.odd).max(axis=(1, 2))[:, None]
        unused = self.unused | (np.abs(of_rows).max(axis=1) <= largest)
        blocks = np.where(unused, 0.0, blocks)
        total = self.game.at_points - rows.mean(self.game.at_rows)
        missed = total - blocks.mean(axis=0).sum(axis=1)
        shares = ~unused / np.maximum((~unused).sum(axis=1), 1)[:, None]
        return blocks + missed[:, None] * shares

    @property
    def tells_little(self) -> bool:
        """Whether few second orders of a whole table show the error of the orders."""
        if not (self.has_orders and self.background.is_whole):
            return False
        apart = _differences(self._of_orders, self.row, self._weights)
        squares = (apart**2).sum(axis=2)
        largest = _ROUNDING * np.abs(self.odd).max()
        if np.abs(apart).max() * len(self._weights) <= largest:
            n_seconds = len(self.row) - len(self._weights)
            return len(squares) * n_seconds < _SEEN
        return bool(squares.sum() ** 2 < _DIFFERENCES * (squares**2).sum())

    @property
    def row(self) -> Indices:
        """The background rows of the games, (G,)."""
        return self._rows_of(np.arange(len(self.signs)))

    def _rows_of(self, games: Indices) -> Indices:
        """The rows of games: each in turn, then each in the order of the weights."""
        n_rows = len(self.background.points)
        by_weight = np.argsort(-self._weights, kind="stable")
        return np.where(games < n_rows, games, by_weight[games % n_rows])

    @cached_property
    def _weights(self) -> Values:
        """The weights of the rows, (M,)."""
        n_rows = len(self.background.points)
        weights = self.background.weights
        return np.full(n_rows, 1.0 / n_rows) if weights is None else weights

    @cached_property
    def _of_orders(self) -> Array:
        """The change of the odd part by each column, (N, G, D)."""
        ends = np.ones((len(self.signs), 1, self.game.width))
        steps = np.diff(np.concatenate([-ends, self.signs, ends], axis=1), axis=1)
        along = np.concatenate([-self.odd[:, :, -1:], self.odd], axis=2)
        values = np.empty((*self.odd.shape[:2], self.game.width))
        places = np.broadcast_to(steps.argmax(axis=2), values.shape)
        np.put_along_axis(values, places, np.diff(along, axis=2), axis=2)
        return values

    @cached_property
    def _games(self) -> tuple[Array, Array, Array]:
        """Values of rows (N, M, D), errors of their mean, its blocks (10, N, D)."""
        if self.has_orders:
            values = self._of_orders
            errors, moves = _errors_of_orders(values, self.row, self._weights)
        else:
            shares = (self._weights / np.bincount(self.row))[self.row]
            values, errors, moves = estimates_of_sets(self.signs, self.odd, shares)
        return _means_of_rows(values, self.row), errors, moves

    def of_sets(self, n_sets: int) -> ShapleyDraws:
        """The first games, with at most so many sets of all rows."""
        width = self.game.width
        n_rows = len(self.background.points)
        of_row = n_sets // n_rows
        if of_row >= 2 ** (width - 1) - 1:
            return self._with_games(n_rows, 2 ** (width - 1) - 1)
        checks = -(-_CHECKED_SETS // n_rows) * (of_row * n_rows >= _CHECKED_OF)
        many = fewest_of_many(width)
        if of_row - checks < many or many > _MOST_SETS:
            orders = n_sets // (width - 1) // self._step * self._step
            return self._with_games(orders, width - 1)
        n_each = -(-(of_row - checks) // _MOST_SETS)
        return self._with_games(n_each * n_rows, (of_row - checks) // n_each)

    def _with_games(self, n_games: int, n_sets: int) -> ShapleyDraws:
        """The same with further games."""
        width = self.game.width
        first = len(self.signs)
        if n_sets < fewest_of_many(width):
            signs = _orders(n_games, width, [self.seed, first])
        else:
            signs = more_sets(np.empty((n_games, 0, width)), n_sets, self.seed + first)
        row = self._rows_of(np.arange(first, first + n_games))
        odd = self.game.odd_parts(row, signs)
        if first:
            signs = np.concatenate([self.signs, signs])
            odd = np.concatenate([self.odd, odd], axis=1)
            return replace(self, signs=signs, odd=odd)
        drawn = replace(self, signs=signs, odd=odd)
        return drawn if drawn.is_exact or drawn.has_orders else drawn.checked()

    def checked(self) -> ShapleyDraws:
        """Find columns that change nothing: neither alone nor in some other sets."""
        largest = _ROUNDING * np.abs(self.odd).max(axis=(1, 2))[:, None]
        inside = self.signs > 0.0
        alone = inside & (inside.sum(axis=2) == 1)[:, :, None]
        alone = alone.reshape(-1, len(inside.T))
        moves = np.abs(self.odd[:, :, :-1] + self.odd[:, :, -1:]) > largest[:, :, None]
        unused = alone.any(axis=0) & ~(moves.reshape(len(moves), -1) @ alone)
        n_sets = self.signs.shape[1]
        if not unused.any() or len(alone) < _CHECKED_OF - _CHECKED_SETS:
            return self
        rng = np.random.default_rng(self.seed)
        some = rng.permutation(len(alone))[:_CHECKED_SETS]
        game, index = np.divmod(some, n_sets)
        rows = self.row[game]
        for n in np.flatnonzero(unused.any(axis=1)):
            turned = np.where(unused[n], -1.0, 1.0) * self.signs[game, index]
            odd = self.game.of_point(int(n)).odd_parts(rows, turned[:, None])
            if (np.abs(odd[0, :, 0] - self.odd[n, game, index]) > largest[n]).any():
                unused[n] = False
        return replace(self, unused=unused, n_checked=_CHECKED_SETS)


@final
@dataclass(frozen=True, eq=False)
class _Game:
    """f of points and background rows, each with columns of the other."""

    value: _Evaluator
    points: Points  # (N, columns)
    rows: Points  # (M, columns)
    players: Indices  # (columns,)
    at_points: Values  # (N,)
    at_rows: Values  # (M,)

    @property
    def width(self) -> int:
        return int(self.players.max()) + 1

    @property
    def cost(self) -> DrawCost:
        """Sets are evaluated with their complements; an order has D − 1."""
        ends = len(self.points) + len(self.at_rows)
        fewest = 2 * min(len(self.at_rows), N_DRAWN_BLOCKS) * (self.width - 1)
        return DrawCost(2 * len(self.points), ends, fewest)

    def of_point(self, n: int) -> _Game:
        """The game of one point."""
        return replace(self, points=self.points[[n]], at_points=self.at_points[[n]])

    def odd_parts(self, row: Indices, signs: Array) -> Array:
        """(v(S) − v(Sᶜ))/2 for games of rows (G,) and sets (G, n, D), and of all.

        The last of (N, G, n + 1) are those of all columns.
        """
        n_points = len(self.points)
        n_games, n_sets, _ = signs.shape
        odd = np.empty((n_points * n_games, n_sets + 1))
        row_bytes = 32 * n_sets * len(self.players)
        for block in BATCH_BUDGET.blocks(len(odd), row_bytes):
            n, g = np.divmod(np.arange(block.start, block.stop), n_games)
            from_point = signs[g][:, :, self.players] > 0.0
            point = self.points[n, None]
            b = self.rows[row[g], None]
            mixed = [np.where(from_point, point, b), np.where(from_point, b, point)]
            values = self.value(np.concatenate(mixed).reshape(-1, len(self.players)))
            halves = values.reshape(2, len(n), n_sets) / 2.0
            odd[block, :-1] = halves[0] - halves[1]
            odd[block, -1] = (self.at_points[n] - self.at_rows[row[g]]) / 2.0
        return odd.reshape(n_points, n_games, n_sets + 1)


def _means_of_rows(values: Array, row: Indices) -> Array:
    """Means over the games of each row, (N, M, D) of (N, G, D)."""
    order = np.argsort(row, kind="stable")
    counts = np.bincount(row)
    starts = np.append(0, counts.cumsum()[:-1])
    sums = np.add.reduceat(values[:, order], starts, axis=1)
    return sums / counts[:, None]


def _orders(n_games: int, width: int, seed: list[int]) -> Array:
    """The D − 1 sets of random orders of D columns, as signs (G, D − 1, D)."""
    rng = np.random.default_rng(seed)
    ranks = rng.random((n_games, width)).argsort(axis=1).argsort(axis=1)
    taken = ranks[:, None] < np.arange(1, width)[:, None]
    return np.where(taken, 1.0, -1.0)


def _differences(
    values: Array,  # (N, G, D)
    row: Indices,  # (G,): the rows of the orders
    weights: Values,  # (M,): of the rows
) -> Array:
    """Orders minus the means of their rows, scaled: Σ squares is a variance, (N, D)."""
    counts = np.bincount(row)
    # from Σ w²(m − 1)σ² over rows of m orders to Σ w²σ²/m
    share = weights**2 @ (1.0 / counts) / (weights**2 @ (counts - 1.0))
    apart = values - _means_of_rows(values, row)[:, row]
    return apart * (weights * np.sqrt(share))[row, None]


def _errors_of_orders(
    values: Array, row: Indices, weights: Values
) -> tuple[Array, Array]:
    """Standard errors (N, D) of the mean of rows, and its blocks (10, N, D)."""
    n_points, n_games, width = values.shape
    shape = (N_DRAWN_BLOCKS, n_points, width)
    freedom = n_games - len(weights)
    if freedom == 0:
        return np.zeros((n_points, width)), np.zeros(shape)
    apart = _differences(values, row, weights)
    of_each = (apart**2).sum(axis=1)
    n_used = max(np.count_nonzero(values.any(axis=1)), 1)
    of_all = of_each.sum() / n_used
    pooled = (freedom * of_each + _ALIKE * of_all) / (freedom + _ALIKE)
    rng = np.random.default_rng(1)
    block = rng.permutation(n_games) % N_DRAWN_BLOCKS
    of_blocks = (block == np.arange(N_DRAWN_BLOCKS)[:, None]) * 1.0
    moves = (of_blocks @ apart).swapaxes(0, 1) * np.sqrt(freedom)
    noise = rng.normal(size=(N_DRAWN_BLOCKS, 1, width))
    moves += noise * np.sqrt(_ALIKE * of_all / N_DRAWN_BLOCKS)
    return np.sqrt(pooled) * intervals(freedom), moves


def _scaled(moves: Array, errors: Array) -> Array:
    """Moves of blocks (10, N, D) about zero with these standard errors (N, D)."""
    moves = moves - moves.mean(axis=0)
    scatter = np.sqrt((moves**2).sum(axis=0) / (len(moves) * (len(moves) - 1)))
    factor = np.divide(errors, scatter, out=np.zeros_like(errors), where=scatter > 0.0)
    return moves * factor
