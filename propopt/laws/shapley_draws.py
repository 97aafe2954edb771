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
- **many sets**, four times as many and more, and a Gaussian process.

The error is that of the games. For orders it is estimated from rows with two of them:
the rows of a table are no draws, and differences between them are no error. If a table
is large, some of its rows are drawn, and differences between games are: with a single
order in each they contain the error of the orders. Effects in fewer than one order in a
hundred may be missing from values and errors.
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
from propopt.laws.calibration import N_DRAWN_BLOCKS, linear_traits
from propopt.laws.odd_games import (
    counts_of_sets,
    drawn_sets,
    estimates_of_sets,
    size_of,
)
from propopt.laws.sampling import DrawCost, Sampler
from propopt.losses.faithfulness import relative_error
from propopt.structures.subsets.conjunctions import MOST_ENUMERATED


_Evaluator: TypeAlias = Callable[[Points], Array]

_SETS_A_COLUMN: Final = 4
"""The smallest number of sets in a game of many sets, in multiples of D − 1."""

_MOST_COLUMNS: Final = 60
"""Games of more columns have orders: they would need more sets than processes take."""

_MOST_SETS: Final = 600
"""Sets of a game from which on more are drawn for further games."""

_CHECKED_SETS: Final = 50
"""Sets that unused columns must not change."""

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
    rows: Indices  # (G,): the background row of each game
    signs: Array  # (G, n, D): sets of each game
    odd: Array  # (N, G, n + 1): odd parts at its sets, and at the set of all columns
    seed: int
    unused: Mask | None = None  # (N, D): columns without effect; None for orders
    n_discarded: int = 0  # sets of orders that were replaced

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
        game = _Game(value, points, columns, *ends)
        step = game.cost.step
        seed = int(rng.integers(2**63))
        n_orders = game.cost.first(replace(draws, n_samples=draws.n_samples * step))
        n_orders //= step
        none = np.empty((0, game.width - 1, game.width))
        empty = np.empty((len(points), 0, game.width))
        drawn = cls(game, background, np.arange(0), none, empty, seed)
        shape = len(points), game.width
        wanted = len(background.points)
        if all_sets_are_cheap(shape, wanted, draws, quick_rows):
            return drawn._of_sets(2 ** (game.width - 1) - 1, 1)
        if background.is_whole:  # the error is that of rows with two orders
            wanted += N_DRAWN_BLOCKS
        is_free = draws.max_evaluations is None
        if n_orders < wanted <= n_orders + N_DRAWN_BLOCKS and is_free:
            n_orders = wanted
        elif n_orders < wanted:
            most = min(n_orders, wanted - 2 * N_DRAWN_BLOCKS * background.is_whole)
            places = background.drawn_places(most)
            drawn = replace(
                drawn,
                game=replace(game, at_rows=ends[1][places]),
                background=background.thinned(most, ends[1]),
            )
        return drawn.extended(n_orders * step)

    @property
    def n_draws(self) -> int:  # type: ignore[override]
        """The number of sets with their complements, of all games."""
        return self.n_discarded + len(self.rows) * self.signs.shape[1]

    @property
    def cost(self) -> DrawCost:
        return self.game.cost

    @property
    def fewest_more(self) -> int:
        if self.unused is None:
            return self.cost.step
        # many sets are replaced by others, twice as many
        more = self.n_draws > _MOST_SETS * len(self.rows)
        return self.n_draws + _CHECKED_SETS if more else len(self.rows)

    @property
    def is_exact(self) -> bool:
        """Whether the games have all sets."""
        n_sets, width = self.signs.shape[1:]
        return self.unused is not None and n_sets == 2 ** (width - 1) - 1

    @property
    def n_units(self) -> int:
        """The number of orders or sets, without their reversals or complements."""
        n_games, n_sets, _ = self.signs.shape
        return n_games if self.unused is None else n_games * n_sets

    @property
    def in_words(self) -> str:
        """Describe the draws."""
        return "orders" if self.unused is None else "sets"

    @property
    def error(self) -> float:
        blocks = self.blocks(0.0)
        ends = np.concatenate([self.game.at_points, self.game.at_rows])
        if np.abs(blocks).max() <= _ROUNDING * np.abs(ends).max():
            return 0.0  # values that are rounding have no error
        return relative_error(blocks)

    def extended(self, n_draws: int) -> ShapleyDraws:
        """Add games, or sets to each game; many sets replace orders."""
        more = n_draws - self.n_draws
        n_rows = len(self.background.points)
        n_games = len(self.rows)
        n_sets, width = self.signs.shape[1:]
        of_row = (more - _CHECKED_SETS) // n_rows
        if self.unused is None and (
            of_row < _SETS_A_COLUMN * (width - 1) or width > _MOST_COLUMNS
        ):
            return self.with_games(
                _orders(more // n_sets, width, [self.seed, 0, n_games])
            )
        if self.unused is None or n_sets > _MOST_SETS:
            return self._of_sets(of_row, -(-of_row // _MOST_SETS))
        signs = self.with_sets(n_sets + more // n_games)
        new = self.game.odd_parts(self._points_of(self.rows), signs[:, n_sets:])
        odd = np.concatenate([self.odd[:, :, :-1], new, self.odd[:, :, -1:]], axis=2)
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
            if self.unused is None and len(self.rows) == len(rows.points):
                # the scatter has the error of orders, which the correction is not for,
                # in an unknown share: without it, the error is an upper bound
                factor = 1.0
            between = rows.deviations @ of_rows
            blocks = blocks + factor * between.transpose(1, 0, 2)
        if self.unused is None:
            return blocks
        blocks = np.where(self.unused, 0.0, blocks)
        total = self.game.at_points - rows.mean(self.game.at_rows)
        missed = total - blocks.mean(axis=0).sum(axis=1)
        shares = ~self.unused / np.maximum((~self.unused).sum(axis=1), 1)[:, None]
        return blocks + missed[:, None] * shares

    @cached_property
    def _games(self) -> tuple[Array, Array, Array]:
        """Values of rows (N, M, D), errors of their mean, its blocks (10, N, D)."""
        n_rows = len(self.background.points)
        n_games = len(self.rows)
        weights = self.background.weights
        members = self.rows == np.arange(n_rows)[:, None]
        means = members / members.sum(axis=1, keepdims=True)
        shares = (np.full(n_rows, 1.0 / n_rows) if weights is None else weights) @ means
        if self.unused is not None:
            values, errors, moves = estimates_of_sets(self.signs, self.odd, shares)
            return means @ values, errors, moves
        values = _values_of_orders(self.signs, self.odd)
        of_rows = means @ values
        apart = values - of_rows[:, self.rows]
        # scatter that traits of rows do not explain is an upper bound: it counts as a
        # repeat, since few rows with two orders may show no rare effects
        traits = linear_traits(self.background.points, self.game.at_rows)
        traits = traits[:, : n_rows // 2]
        rest = of_rows - of_rows.mean(axis=1, keepdims=True)
        rest = rest - traits @ (np.linalg.pinv(traits) @ rest)
        most = (rest**2).sum(axis=1) / (n_rows - traits.shape[1])
        most *= max(2.0 - n_games / n_rows, 0.0)  # the share of rows with one order
        variances = ((apart**2).sum(axis=1) + most) / max(n_games - n_rows, 1)
        variances *= (shares**2).sum()
        index = np.random.default_rng(1).permutation(n_games) % N_DRAWN_BLOCKS
        of_blocks = (index == np.arange(N_DRAWN_BLOCKS)[:, None]) * shares
        moves = (of_blocks @ apart).transpose(1, 0, 2)
        return of_rows, np.sqrt(variances), moves

    def _of_sets(self, of_row: int, passes: int) -> ShapleyDraws:
        """Other games, of many sets for each row."""
        n_rows = len(self.background.points)
        width = self.game.width
        drawn = replace(
            self,
            rows=self.rows[:0],
            signs=np.empty((passes * n_rows, 0, width)),
            odd=self.odd[:, :0],
            unused=np.zeros((len(self.odd), width), bool),
            n_discarded=self.n_draws,
        )
        drawn = drawn.with_games(drawn.with_sets(of_row // passes))
        unused = drawn.without_effect()
        checked = 0 if drawn.is_exact or not unused.any() else _CHECKED_SETS
        return replace(drawn, unused=unused, n_discarded=self.n_draws + checked)

    def with_sets(self, n_sets: int) -> Array:
        """The sets of each game, and others of all sizes, (G, n, D)."""
        n_games, _, width = self.signs.shape
        wanted = counts_of_sets(width, n_sets)
        counts = np.bincount(size_of(self.signs[0]), minlength=len(wanted) + 1)[1:]
        added = [
            drawn_sets(width, k + 1, range(count, wanted[k]), n_games, self.seed)
            for k, count in enumerate(counts)
        ]
        return np.concatenate([self.signs, *added], axis=1)

    def with_games(self, signs: Array) -> ShapleyDraws:
        """The same with further games (G, n, D), of all rows in turn."""
        n_rows = len(self.background.points)
        first = len(self.rows)
        places = np.arange(first, first + len(signs))
        passes = [
            np.random.default_rng([self.seed, turn]).permutation(n_rows)
            for turn in range(places[-1] // n_rows + 1)
        ]
        rows = np.concatenate(passes)[places]
        odd = self.game.odd_parts(self._points_of(rows), signs)
        full = (self.game.at_points[:, None] - self.game.at_rows[rows]) / 2.0
        odd = np.concatenate([odd, full[:, :, None]], axis=2)
        if not first:
            return replace(self, rows=rows, signs=signs, odd=odd)
        return replace(
            self,
            rows=np.concatenate([self.rows, rows]),
            signs=np.concatenate([self.signs, signs]),
            odd=np.concatenate([self.odd, odd], axis=1),
        )

    def _points_of(self, rows: Indices) -> Points:
        return self.background.points[rows]

    def without_effect(self) -> Mask:
        """Columns (N, D) that change nothing: neither alone nor in some other sets."""
        largest = _ROUNDING * np.abs(self.odd).max(axis=(1, 2))[:, None]
        if self.is_exact:
            return np.asarray(np.abs(self._games[0]).max(axis=1) <= largest)
        alone = (self.signs > 0.0).sum(axis=2) == 1
        game, index = np.nonzero(alone)
        column = self.signs[game, index].argmax(axis=1)
        changes = np.abs(self.odd[:, game, index] + self.odd[:, game, -1]) > largest
        unused = np.zeros((len(self.odd), self.game.width), bool)
        for j in np.unique(column):
            unused[:, j] = ~changes[:, column == j].any(axis=1)
        n_sets = self.signs.shape[1]
        rng = np.random.default_rng(self.seed)
        some = rng.permutation(alone.size)[:_CHECKED_SETS]
        game, index = np.divmod(some, n_sets)
        for n in np.flatnonzero(unused.any(axis=1)):
            turned = np.where(unused[n], -1.0, 1.0) * self.signs[game, index]
            of_point = replace(self.game, points=self.game.points[[n]])
            odd = of_point.odd_parts(self._points_of(self.rows[game]), turned[:, None])
            if (np.abs(odd[0, :, 0] - self.odd[n, game, index]) > largest[n]).any():
                unused[n] = False
        return unused


@final
@dataclass(frozen=True, eq=False)
class _Game:
    """f of points and background rows, each with columns of the other."""

    value: _Evaluator
    points: Points  # (N, columns)
    players: Indices  # (columns,)
    at_points: Values  # (N,)
    at_rows: Values  # (M,)

    @property
    def width(self) -> int:
        return int(self.players.max()) + 1

    @property
    def cost(self) -> DrawCost:
        """Sets are evaluated with their complements; an order has D − 1."""
        step = self.width - 1
        ends = len(self.points) + len(self.at_rows)
        return DrawCost(2 * len(self.points), ends, N_DRAWN_BLOCKS * step, step)

    def odd_parts(self, rows: Points, signs: Array) -> Array:
        """(v(S) − v(Sᶜ))/2 for games of rows (G, columns) and sets (G, n, D)."""
        n_points = len(self.points)
        n_games, n_sets, _ = signs.shape
        odd = np.empty((n_points * n_games, n_sets))
        row_bytes = 32 * n_sets * len(self.players)
        for block in BATCH_BUDGET.blocks(len(odd), row_bytes):
            n, g = np.divmod(np.arange(block.start, block.stop), n_games)
            from_point = signs[g][:, :, self.players] > 0.0
            point = self.points[n, None]
            row = rows[g, None]
            mixed = [np.where(from_point, point, row), np.where(from_point, row, point)]
            values = self.value(np.concatenate(mixed).reshape(-1, len(self.players)))
            halves = values.reshape(2, len(n), n_sets) / 2.0
            odd[block] = halves[0] - halves[1]
        return odd.reshape(n_points, n_games, n_sets)


def _orders(n_games: int, width: int, seed: list[int]) -> Array:
    """The D − 1 sets of random orders of D columns, as signs (G, D − 1, D)."""
    rng = np.random.default_rng(seed)
    ranks = rng.random((n_games, width)).argsort(axis=1).argsort(axis=1)
    taken = ranks[:, None] < np.arange(1, width)[:, None]
    return np.where(taken, 1.0, -1.0)


def _values_of_orders(signs: Array, odd: Array) -> Array:
    """The change of the odd part by each column, (N, G, D)."""
    ends = np.ones((len(signs), 1, signs.shape[2]))
    order = np.diff(np.concatenate([-ends, signs, ends], axis=1), axis=1).argmax(axis=2)
    along = np.concatenate([-odd[:, :, -1:], odd], axis=2)
    values = np.empty((*odd.shape[:2], signs.shape[2]))
    places = np.broadcast_to(order, values.shape)
    np.put_along_axis(values, places, np.diff(along, axis=2), axis=2)
    return values


def _scaled(moves: Array, errors: Array) -> Array:
    """Moves of blocks (10, N, D) about zero with these standard errors (N, D)."""
    moves = moves - moves.mean(axis=0)
    scatter = np.sqrt((moves**2).sum(axis=0) / (len(moves) * (len(moves) - 1)))
    factor = np.divide(errors, scatter, out=np.zeros_like(errors), where=scatter > 0.0)
    return moves * factor
