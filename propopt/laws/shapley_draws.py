"""Shapley values of a black-box function: over all sets of columns, or drawn orders.

v(S) is the mean of f over the background rows b, with the columns S replaced by
those of x, and the Shapley value of column j is a mean of v(S ∪ j) − v(S) over sets S.
For few columns all sets are evaluated, and nothing is estimated.

Along an order of the columns, those of a background row b are replaced by those of x
one by one, and the change of f at each step belongs to its column. The mean over
all orders and background rows is the Shapley value. Each order is walked backwards too,
with the same b, which cancels antisymmetric errors (Mitchell et al. 2022).

Orders are independent. Background rows are used in turn: none is repeated before all
were used. The changes d_i (D,) of pair i with row b_i are regressed on traits z of
the row, which all rows have (Cassel, Särndal and Wretman 1976):

    estimate = d̄ + (z̄ of all rows − z̄ of the pairs) β,  residuals r_i = d_i − d̄ − z_i β.

If each row is used equally often, this is d̄. Differences between rows explained by
traits are not errors of the estimate; only the residuals are: each of ten blocks of
pairs is the estimate plus its scaled mean residual. With at least four pairs per row,
traits are indicators of rows; otherwise they are f(b), the columns of b, and its
proximity to some rows. Unexplained differences between rows count as error, although
all rows may have been used: with one order per row they cannot be separated from the
noise of the orders. On average the stated errors are then too large. Effects in fewer
than one pair in a hundred may be missing from values and errors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from propopt.base.arrays import Array, Indices, Points, Values
from propopt.base.resources import BATCH_BUDGET, DrawPlan
from propopt.laws.background import mean_of_rows
from propopt.laws.draws import N_BLOCKS
from propopt.laws.sampling import BlockEstimates, DrawCost, Pooled
from propopt.structures.subsets.conjunctions import MOST_ENUMERATED
from propopt.structures.subsets.sets import all_sets, shapley_of_coalitions


_Evaluator: TypeAlias = Callable[[Points], Array]

_TRAITS_AMONG: Final = 4
"""The smallest number of pairs per trait."""

_ORDERS_A_ROW: Final = 4
"""Orders per row that suffice to estimate their variance within a row."""

_DEPENDENT: Final = 1e-6
"""Traits count as linear in others below this share of the largest singular value."""

_CENTRES: Final = 100
"""The largest number of rows with their proximity as a trait."""


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
    parts: Sequence[Indices],
    weights: Values | None = None,  # of the rows, if there is one part
    players: Indices | None = None,  # (D,): of the columns, if grouped
) -> Array:
    """Exact values against each part of the background, (parts, N, D)."""
    player_of_column = _alone(points) if players is None else players
    n_points = len(points)
    width = int(player_of_column.max()) + 1
    at_points, at_background = ends
    sets = all_sets(width)
    # v(S) − f(x), so that unused columns get exactly zero
    worths = np.zeros((len(parts), n_points, len(sets)))
    for k, part in enumerate(parts):
        differences = at_background[part] - at_points[:, None]
        worths[k, :, 0] = mean_of_rows(differences, weights)
    size = len(sets) - 2
    for block in BATCH_BUDGET.blocks(n_points * size, 8 * background.size):
        n, s = np.divmod(np.arange(block.start, block.stop), size)
        from_row = sets[s + 1][:, player_of_column]
        mixed = np.where(from_row[:, None], points[n, None], background)
        values = value(mixed.reshape(-1, len(player_of_column))).reshape(len(n), -1)
        for k, part in enumerate(parts):
            differences = values.take(part, axis=1) - at_points[n, None]
            worths[k, n, s + 1] = mean_of_rows(differences, weights)
    return shapley_of_coalitions(worths)


def _alone(points: Points) -> Indices:
    """Each column as a separate player, (D,)."""
    return np.arange(points.shape[1])


# ---- Drawn orders of the columns, in blocks for their error


def shapley_orders(
    value: _Evaluator,
    background: Points,
    points: Points,
    rng: np.random.Generator,
    draws: DrawPlan,
    parts: Sequence[Indices] = (),
    weights: Values | None = None,  # of the rows, of sum 1
    players: Indices | None = None,  # (D,): of the columns, if grouped
) -> Pooled:
    """Estimates (10, N, D) from drawn orders in ten blocks; D ≥ 2 players.

    With ten ``parts`` of the background, a second (10, N, D) has the effect of traits
    on the values, from the mean of the parts to each of them.
    """
    at_points = value(points)
    at_background = value(background)
    player_of_column = _alone(points) if players is None else players
    width = int(player_of_column.max()) + 1
    cost = _cost_of_orders(len(points), width, len(background))
    traits = _traits(background, at_background)
    in_turn = _in_turn(len(background), rng)
    by_weight = in_turn if weights is None else _by_weight(weights, rng)

    def batch(n_pairs: int, _: int) -> BlockEstimates:  # one continued stream
        few = n_pairs < _ORDERS_A_ROW * len(background)
        used = np.fromiter(by_weight if few else in_turn, np.intp, n_pairs)
        weights_of_estimates = _weights_of_pairs(traits, used, parts, weights)
        drawn_rows = background[used], at_background[used]
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
        fewest=N_BLOCKS,
        step=N_BLOCKS,
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


def _traits(background: Points, at_background: Values) -> Array:
    """Traits of rows (M, T), the most useful first.

    They are f, principal components of the columns, and proximity to other rows.
    """
    is_present = ~np.isnan(background)
    count = np.maximum(is_present.sum(axis=0), 1)
    means = np.where(is_present, background, 0.0).sum(axis=0) / count
    columns = _of_unit_norm(np.where(is_present, background - means, 0.0))
    left, sizes, _ = np.linalg.svd(columns, full_matrices=False)
    components = left[:, sizes > _DEPENDENT * sizes.max(initial=0.0)]
    chosen = np.random.default_rng(0).permutation(len(columns))[:_CENTRES]
    squares = (columns**2).sum(axis=1)
    distances = squares[:, None] + squares[chosen] - 2.0 * columns @ columns[chosen].T
    distances = np.maximum(distances, 0.0)
    proximity = _of_unit_norm(np.exp(-distances / (np.median(distances) or 1.0)))
    return np.hstack([_of_unit_norm(at_background[:, None]), components, proximity])


def _of_unit_norm(columns: Array) -> Array:
    """Centred columns of norm 1, without constant ones."""
    centred = columns - columns.mean(axis=0)
    sizes = np.abs(centred).max(axis=0)
    varies = sizes > _DEPENDENT * np.abs(columns).max(axis=0)
    centred = centred[:, varies] / sizes[varies]
    return centred / np.linalg.norm(centred, axis=0)


def _weights_of_pairs(
    traits: Array,
    used: Indices,
    parts: Sequence[Indices],
    row_weights: Values | None,
) -> list[Array]:
    """Weights of P pairs (10, P) in blocks of the estimate, and in parts if any."""
    n_rows = len(traits)
    n_pairs = len(used)
    if n_pairs >= _ORDERS_A_ROW * n_rows:
        traits = np.eye(n_rows)
    else:  # unused rows are predicted from others, not by indicators
        count = n_pairs if row_weights is None else len(np.unique(used))
        traits = traits[:, : count // _TRAITS_AMONG]
    centred = traits[used] - traits[used].mean(axis=0)
    inverse = np.linalg.pinv(centred, rcond=_DEPENDENT)  # β = Z⁺ d
    shift = mean_of_rows(traits.T, row_weights) - traits[used].mean(axis=0)
    weights = 1.0 / n_pairs + shift @ inverse
    block = np.repeat(np.eye(N_BLOCKS), n_pairs // N_BLOCKS, axis=1)  # (10, P)
    residual = block - block.mean(axis=1, keepdims=True) - block @ centred @ inverse
    # residuals of independent errors have Σ_k (their sum in block k)² = σ² Σ R²;
    # blocks are scaled so that Σ_k (deviation)²/(B (B − 1)) expects σ² Σ w²
    expected = (residual**2).sum() / (N_BLOCKS * (N_BLOCKS - 1))
    residual *= np.sqrt((weights**2).sum() / expected)
    weights_of_estimates = [weights + residual]
    if parts:
        means = np.array([traits[part].mean(axis=0) for part in parts])
        weights_of_estimates.append((means - means.mean(axis=0)) @ inverse)
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
