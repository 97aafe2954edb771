"""Shapley values of a black-box function: over all sets of columns, or drawn orders.

v(S) is the mean of f over the background rows b, with the columns S replaced by
those of x, and the Shapley value of column j is a mean of v(S ∪ j) − v(S) over sets S.
For few columns all sets are evaluated, and nothing is estimated.

Along an order of the columns, those of a background row b are replaced by those of x
one by one, and the change of f at each step belongs to its column. The mean over
all orders and background rows is the Shapley value. Each order is walked backwards too,
with the same b, which cancels antisymmetric errors (Mitchell et al. 2022).

Orders are independent. Background rows are used in turn: none is repeated before all
were used. The changes of the pairs are weighted by traits of their rows
(:mod:`propopt.laws.calibration`): if each row is used equally often, they are averaged.
Traits are indicators of rows if there are four pairs per row. Unexplained differences
between rows count as error, although all rows may have been used: with one order per
row they cannot be separated from the noise of the orders. On average the stated errors
are then too large. Effects in fewer than one pair in a hundred may be missing from
values and errors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from propopt.base.arrays import Array, Indices, Points, Values
from propopt.base.resources import BATCH_BUDGET, DrawPlan
from propopt.laws.background import Background, mean_of_rows
from propopt.laws.calibration import (
    DRAWS_A_TRAIT,
    N_DRAWN_BLOCKS,
    calibrated_weights,
    slopes_on,
    traits_of_rows,
)
from propopt.laws.sampling import BlockEstimates, DrawCost, Pooled
from propopt.structures.subsets.conjunctions import MOST_ENUMERATED
from propopt.structures.subsets.sets import all_sets, shapley_of_coalitions


_Evaluator: TypeAlias = Callable[[Points], Array]

_PAIRS_A_TRAIT: Final = 4
"""The smallest number of pairs per trait, if all rows are used."""

_ORDERS_A_ROW: Final = 4
"""Orders per row that suffice to estimate their variance within a row."""

# ---- All sets of the columns


_EXACT_AT: Final = 2.5
"""The largest cost of exact values, relative to the first draw of orders."""


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
    cost = _cost_of_orders(n_points, width, n_background)
    inner = n_points * (2.0**width - 2.0) * n_background
    most = draws.max_evaluations
    if most is not None and inner + cost.once > most:
        return False
    usual = _EXACT_AT * cost.per_draw * cost.first(draws)
    return inner <= max(usual, n_points * quick_rows)


def shapley_of_sets(
    value: _Evaluator,
    background: Points,
    points: Points,
    ends: tuple[Array, Array],  # f at the points and at the background
    estimates: Array,  # (K, M): weights of the rows in each of K means
    players: Indices | None = None,  # (D,): of the columns, if grouped
) -> Array:
    """Exact values for each of several weightings of the background, (K, N, D)."""
    player_of_column = _alone(points) if players is None else players
    n_points = len(points)
    width = int(player_of_column.max()) + 1
    at_points, at_background = ends
    sets = all_sets(width)
    # v(S) − f(x), so that unused columns get exactly zero
    worths = np.zeros((len(estimates), n_points, len(sets)))
    differences = at_background - at_points[:, None]
    for k, weights in enumerate(estimates):
        worths[k, :, 0] = mean_of_rows(differences, weights)
    size = len(sets) - 2
    for block in BATCH_BUDGET.blocks(n_points * size, 8 * background.size):
        n, s = np.divmod(np.arange(block.start, block.stop), size)
        from_row = sets[s + 1][:, player_of_column]
        mixed = np.where(from_row[:, None], points[n, None], background)
        values = value(mixed.reshape(-1, len(player_of_column))).reshape(len(n), -1)
        differences = values - at_points[n, None]
        for k, weights in enumerate(estimates):
            worths[k, n, s + 1] = mean_of_rows(differences, weights)
    return shapley_of_coalitions(worths)


def _alone(points: Points) -> Indices:
    """Each column as a separate player, (D,)."""
    return np.arange(points.shape[1])


# ---- Drawn orders of the columns, in blocks for their error


def shapley_orders(
    value: _Evaluator,
    background: Background,
    points: Points,
    rng: np.random.Generator,
    draws: DrawPlan,
    players: Indices | None = None,  # (D,): of the columns, if grouped
) -> Pooled:
    """Estimates (10, N, D) from drawn orders in ten blocks; D ≥ 2 players.

    For a drawn background, a second (10, N, D) has the part of its error that traits
    of the rows explain.
    """
    rows = background.points
    at_points = value(points)
    at_background = value(rows)
    player_of_column = _alone(points) if players is None else players
    width = int(player_of_column.max()) + 1
    cost = _cost_of_orders(len(points), width, len(rows))
    in_turn = _in_turn(len(rows), rng)
    by_weight = in_turn
    if background.is_whole and background.weights is not None:
        by_weight = _by_weight(background.weights, rng)

    def batch(n_pairs: int, _: int) -> BlockEstimates:  # one continued stream
        few = n_pairs < _ORDERS_A_ROW * len(rows)
        used = np.fromiter(by_weight if few else in_turn, np.intp, n_pairs)
        weights_of_estimates = _weights_of_pairs(background, at_background, used)
        drawn_rows = rows[used], at_background[used]
        shape = len(points), width
        estimates = [
            np.empty((len(block_weights), *shape))
            for block_weights in weights_of_estimates
        ]
        for block in BATCH_BUDGET.blocks(len(points), 24 * n_pairs * points.shape[1]):
            of_points = points[block], at_points[block]
            changes = _pairs(value, of_points, drawn_rows, rng, player_of_column)
            pairs = zip(estimates, weights_of_estimates, strict=True)
            for blocks, block_weights in pairs:
                blocks[:, block] = (block_weights @ changes).transpose(1, 0, 2)
        return tuple(estimates)

    return Pooled.of(batch, cost, cost.first(draws))


def _cost_of_orders(n_points: int, n_columns: int, n_background: int) -> DrawCost:
    """The cost of orders: ends of walks are shared, and a pair has two walks."""
    return DrawCost(
        2 * n_points * (n_columns - 1),
        once=n_points + n_background,
        fewest=N_DRAWN_BLOCKS,
        step=N_DRAWN_BLOCKS,
    )


def _in_turn(n_rows: int, rng: np.random.Generator) -> Iterator[int]:
    """Yield rows in random order, each once before any is repeated."""
    stream = np.random.default_rng(rng.integers(2**63))
    while True:
        yield from stream.permutation(n_rows).tolist()


def _by_weight(weights: Values, rng: np.random.Generator) -> Iterator[int]:
    """Yield rows in random order, each ⌊M w⌋ or ⌈M w⌉ times in M steps.

    This is systematic sampling. With at least four orders per row, all rows are used in
    turn instead: traits then identify the rows, and weight them.
    """
    stream = np.random.default_rng(rng.integers(2**63))
    n_rows = len(weights)
    while True:
        order = stream.permutation(n_rows)
        ends = n_rows * np.cumsum(weights[order])
        at = np.arange(n_rows) + stream.random()
        chosen = order[np.minimum(np.searchsorted(ends, at, "right"), n_rows - 1)]
        yield from stream.permutation(chosen).tolist()


def _weights_of_pairs(
    background: Background, at_background: Values, used: Indices
) -> list[Array]:
    """Weights of P pairs (10, P) in blocks of the estimate, and of a drawn sample."""
    n_pairs = len(used)
    n_rows = len(at_background)
    are_drawn = background.deviations is not None
    if n_pairs >= _ORDERS_A_ROW * n_rows:
        are_drawn = False
        traits = np.eye(n_rows)
    elif background.traits is not None:
        traits = background.traits[:, : n_pairs // DRAWS_A_TRAIT]
    else:  # unused rows are predicted from others, not by indicators
        count = n_pairs if background.weights is None else len(np.unique(used))
        traits = traits_of_rows(background.points, at_background)
        traits = traits[:, : count // _PAIRS_A_TRAIT]
    weights, residual = calibrated_weights(traits[used], background.mean(traits.T))
    if not are_drawn:  # traits are fixed: variances are Σ r²/(1 − h), and h = T/P
        residual *= np.sqrt(1.0 - traits.shape[1] / n_pairs)
    weights_of_estimates = [weights + residual]
    if background.deviations is not None:
        moves = background.deviations @ traits @ slopes_on(traits[used])
        weights_of_estimates.append(moves)
    return weights_of_estimates


def _pairs(
    value: _Evaluator,
    at_points: tuple[Points, Array],  # (n, D), (n,)
    at_background: tuple[Points, Array],  # rows for each pair (P, D), and f (P,)
    rng: np.random.Generator,
    players: Indices,  # (D,)
) -> Array:
    """Changes of f by each player, averaged over both walks, (n, P, players)."""
    points, last = at_points
    rows, first = at_background
    shape = len(points), len(rows), int(players.max()) + 1
    orders = np.argsort(rng.random(shape), axis=2).reshape(-1, shape[2])
    n, m = np.divmod(np.arange(len(orders)), shape[1])
    total = np.zeros(orders.shape)
    for block in BATCH_BUDGET.blocks(len(orders), 8 * shape[2] * len(players)):
        ends = (rows[m[block]], first[m[block]]), (points[n[block]], last[n[block]])
        for order in (orders[block], orders[block, ::-1]):
            total[block] += _changes(value, *ends, order, players)
    return total.reshape(shape) / 2.0


def _changes(
    value: _Evaluator,
    start: tuple[Points, Array],  # (K, D) and f there
    end: tuple[Points, Array],
    order: NDArray[np.intp],  # (K, players)
    players: Indices,  # (D,)
) -> Array:
    """The change of f by each player (K, players), along one order each."""
    width = order.shape[1]
    rank = np.argsort(order, axis=1)
    # (K, players − 1, D)
    taken = rank[:, None, players] < np.arange(1, width)[:, None]
    mixed = np.where(taken, end[0][:, None], start[0][:, None])
    between = value(mixed.reshape(-1, len(players))).reshape(-1, width - 1)
    along = np.diff(np.column_stack([start[1], between, end[1]]), axis=1)
    changes = np.empty(order.shape)
    np.put_along_axis(changes, order, along, axis=1)
    return changes
