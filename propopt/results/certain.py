"""Signs and ranks that hold in every near-optimal explanation."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from propopt.base.arrays import Array, Attributions, Indices, Mask
from propopt.base.checks import read_option
from propopt.base.declared import field
from propopt.base.document import Document, Fact
from propopt.base.errors import InvalidInput, Refused
from propopt.base.resources import BATCH_BUDGET
from propopt.losses import Program
from propopt.losses.restricted import entry_support
from propopt.proofs.near_optimal import (
    NearOptimal,
    OrderBy,
    compared,
    in_order,
    target_half_widths,
)
from propopt.proofs.optimum import Optimum, small_change_of
from propopt.results.clear import (
    SignsAndRanks,
    sampling_error_of,
    unit_text,
)
from propopt.tables.frames import Labels, group_sums


_MOST_WORK = 1e10
"""Most work Σ d_n³ for the ranks of all rows; beyond it rows have to be named."""


@final
class NearOptimalConclusions(
    SignsAndRanks, kind="propopt certain", noun="saved certain statements", version=6
):
    """Signs and ranks that all near-optimal explanations share.

    The *price* of a sign is the least increase of the objective at which that
    attribution can be zero, w²/[H⁻¹] for half the Hessian H of the squared losses;
    other convex losses can only increase it. A sign, or an order of two features, is
    *certain* if every explanation within the budget has it, including the error of the
    target. Zero among the signs means "not certain", never "zero".

    The budget is a small change of a row: a distance δ in the unit of the attributions.
    It corresponds to an increase of the objective by aδ², with the weight a of
    faithfulness: the cost in faithfulness of moving one row by δ. Every explanation
    within the budget is at most δ from the optimum, over all rows jointly. The budget
    neither vanishes with the optimum nor grows with the number of rows.

    Parameters
    ----------
    attributions : array (N, D)
        W.
    signs : array of int (N, D)
        1 and −1 where the sign is certain, else 0.
    half_widths : array (N, D)
        The largest distance of an attribution from W within the budget, plus the 95 %
        interval of the target's error.
    prices : array (N, D)
        Lower bounds of the prices of signs, in units of the objective.
    best_ranks, worst_ranks : array of int (N, D)
        The rank of a feature in its row, from 1, lies between these. In rows without
        computed ranks they follow from the half-widths: features are in order if their
        intervals have no common point.
    order_prices : array (N, D − 1)
        The price of exchanging a feature with the next in the row; zero in rows without
        computed ranks.
    order : {"size", "value"}
        Whether ranks are those of |w| or of w.
    small_change : float
        δ, in the unit of the attributions.
    unit : str
        The kind and unit of the attributions, such as "contributions, in log-odds".
    rate : float
        a, so that β = aδ².
    optimum : float
        The objective of the explanation.
    sampling_error : float
        The root mean square error of sampled values, as a share of their size; NaN if
        unknown.
    are_bounds : bool
        Whether half-widths of rows that were not named are upper bounds.
    labels : Labels
        Names of points and features.
    present : array of bool (N, D), optional
        The features that each row has, such as the words of a document; all by default.
        Others are zero in every explanation and have no signs; their ranks follow those
        of all present features.
    quantity : Quantity, optional
        The explained quantity.

    Examples
    --------
    >>> import numpy as np, propopt as po
    >>> objective = po.GradientMatching(np.array([[1.0, -2.0], [1.2, 0.01]]))
    >>> best = po.solve(objective + po.PairwiseRobustness(po.graphs.chain_graph(2)))
    >>> certain = best.certain()
    >>> certain.signs
    array([[ 1, -1],
           [ 1, -1]], dtype=int8)
    >>> certain.distances.round(1)
    array([[1.4, 1.5],
           [1.4, 1. ]])
    """

    half_widths: Attributions = field("N D", low=0.0, infinite=True)
    prices: Attributions = field("N D", low=0.0, infinite=True)
    order_prices: Array = field("N D-1", low=0.0, infinite=True)
    order: OrderBy
    rate: float = field(low=0.0)
    optimum: float = field(low=0.0)
    are_bounds: bool = False
    present: Mask | None = field("N D", default=None)

    def validate(self) -> None:
        """Raise an error if signs, ranks or names do not follow from other fields."""
        super().validate()
        W = self.attributions
        absent = ~self._present
        if (self.signs != np.sign(W) * (np.abs(W) > self.half_widths)).any():
            raise InvalidInput("signs: not those of attributions beyond half-widths")
        for name in ("attributions", "half_widths", "prices"):
            if getattr(self, name)[absent].any():
                raise InvalidInput(f"{name}: not zero for a feature that a row lacks")

    @property
    def certain_signs(self) -> float:
        """The share of signs on which all near-optimal explanations agree."""
        return float(np.count_nonzero(self.signs)) / max(self.count, 1)

    @property
    def count(self) -> int:
        """The number of attributions of features that their rows have."""
        return int(self._present.sum())

    @property
    def _present(self) -> Mask:
        return np.ones(self.shape, bool) if self.present is None else self.present

    @property
    def distances(self) -> Attributions:
        """How far an explanation must move for each sign to flip, (N, D).

        √(price/a), in the unit of the attributions.
        """
        return np.sqrt(_quotient(self.prices, self.rate))

    @property
    def in_shares(self) -> Attributions:
        """The relative increase of the objective at which each sign flips, (N, D)."""
        return _quotient(self.prices, self.optimum)

    def to_frame(self) -> pd.DataFrame:
        """A table of how often near-optimal explanations agree on a sign, by feature.

        ``certain_rows``, ``certainly_positive`` and ``certainly_negative`` are shares
        of rows in which the sign is certain, and certainly positive or negative;
        ``median_distance`` of signs, ``median_half_width`` and ``mean_size`` of |w| are
        in units of the attributions; ``certainly_first`` is the share of rows with the
        feature certainly first. All refer to rows in which the feature is present, and
        are NaN without such rows.
        """
        measures = {
            "certain_rows": (self.signs != 0, "mean"),
            "certainly_positive": (self.signs > 0, "mean"),
            "certainly_negative": (self.signs < 0, "mean"),
            "median_distance": (self.distances, "median"),
            "median_half_width": (self.half_widths, "median"),
            "mean_size": (np.abs(self.attributions), "mean"),
            "certainly_first": (self.worst_ranks == 1, "mean"),
        }
        columns = {
            name: pd.DataFrame(np.where(self._present, values, np.nan)).agg(how)
            for name, (values, how) in measures.items()
        }
        return pd.DataFrame(columns).set_axis(
            pd.Index(self.features, name="feature"), axis=0
        )

    def of_row(self, row: Hashable) -> pd.DataFrame:
        """List the features of one row by rank, with signs, distances and ranks.

        Only features that are present are listed.

        Parameters
        ----------
        row : label or int
            The name of the row in the index of the inputs, or its position.

        Returns
        -------
        DataFrame
            With ``attribution``, ``half_width``, ``sign``, ``best_rank``,
            ``worst_rank``, and the budgets ``distance`` for another sign and
            ``distance_of_order`` for another order with the next feature.

        Raises
        ------
        InvalidInput
            If there is no such row.
        """
        n = self.labels.position(row, len(self.signs))
        here = self._present[[n]]
        count = int(here.sum())
        indices = in_order(self.attributions[[n]], self.order, here)[0, :count]
        prices = self.order_prices[n, : max(count - 1, 0)]
        orders = np.sqrt(_quotient(prices, self.rate))
        table = pd.DataFrame(
            {
                "attribution": self.attributions[n],
                "half_width": self.half_widths[n],
                "sign": self.signs[n],
                "distance": self.distances[n],
                "best_rank": self.best_ranks[n],
                "worst_rank": self.worst_ranks[n],
            },
            index=pd.Index(self.features, name="feature"),
        ).iloc[indices]
        return table.assign(distance_of_order=[*orders, np.nan][:count])

    def document(self) -> Document:
        """Summarise which signs and ranks all near-optimal explanations share."""
        note = self.are_bounds * "at least, " + self._change
        fact = Fact("certain signs", self.certain_signs, "%", note=note)
        return self._card("Certain signs", {"certain_rows": "certain rows"}, fact)


def certain_of(
    best: Optimum,
    program: Program,
    *,
    small_change: float | None,
    rows: Sequence[Hashable] | None,
    order: OrderBy,
    groups: Mapping[str, Sequence[str]] | None = None,
) -> NearOptimalConclusions:
    """Compute the result of :meth:`propopt.results.Explanation.certain`."""
    read_option(order, OrderBy, "order")
    W = best.attributions
    labels = best.labels
    N = len(W)
    optimal_set = NearOptimal.around(best, program)
    scales = best.scales
    optimal_set = optimal_set if scales is None else optimal_set.scaled(scales)
    delta = small_change_of(best, small_change)
    rate = optimal_set.modulus
    assert best.certificate is not None, "NearOptimal.around checks it"
    optimum = best.certificate.value
    # in a metric ω the least cost of moving a row by δ, a δ²/max ω
    beta = rate * delta**2
    half_widths = target_half_widths(best, program, optimal_set)
    half_widths = half_widths if scales is None else half_widths.scaled(scales)
    support = entry_support(program)
    present = np.ones(W.shape, bool) if support is None else support.mask
    is_little = float((present.sum(axis=1, dtype=float) ** 3).sum()) <= _MOST_WORK
    if groups is not None:
        sums, names = group_sums(groups, best.features)
        W = W @ sums.T
        present = (present @ sums.T) > 0.0
        optimal_set = optimal_set.of_sums(sums)
        half_widths = half_widths.of_sums(sums)
        labels = Labels(labels.points, names)
    exact = None  # if it is too large
    if groups is None or is_little:
        with suppress(Refused):
            exact = optimal_set.hessian.inverse_diagonal()
    if rows is not None:
        ranked: Sequence[int] = [labels.position(row, N) for row in rows]
    else:
        ranked = range(N) if exact is not None and is_little else []
    variances = exact
    if variances is None:  # of H⁻¹ in some rows, else the upper bound 1/a
        variances = np.where(present, 1.0 / optimal_set.modulus, 0.0)
        for n in ranked:
            here = np.flatnonzero(present[n])
            variances[n, here] = np.diag(optimal_set.hessian.block_of(n, here))
    widths = optimal_set.reach(beta, variances) + half_widths.of_entries()
    widths = np.where(present, widths, 0.0)
    pairs = partial(
        compared, near_optimal=optimal_set, beta=beta, scatter=half_widths, by=order
    )
    best_ranks, worst_ranks, order_prices = _orders(
        W, present, widths, ranked, order, pairs
    )
    return NearOptimalConclusions(
        attributions=W,
        signs=(np.sign(W) * (np.abs(W) > widths)).astype(np.int8),
        half_widths=widths,
        prices=optimal_set.price(np.abs(W), variances),
        best_ranks=best_ranks,
        worst_ranks=worst_ranks,
        order_prices=order_prices,
        order=order,
        small_change=delta,
        unit=unit_text(best.units, best.quantity, best.parameters),
        rate=rate,
        optimum=optimum,
        sampling_error=sampling_error_of(best),
        are_bounds=exact is None and len(ranked) < N,
        labels=labels,
        present=None if support is None else present,
        quantity=best.quantity,
    )


def _orders(
    W: Attributions,
    present: Mask,
    widths: Array,
    rows: Sequence[int],
    by: OrderBy,
    pairs: Callable[[Array, int, Indices], tuple[Array, NDArray[np.bool_]]],
) -> tuple[NDArray[np.int64], NDArray[np.int64], Array]:
    """Best and worst ranks, and prices of exchanging adjacent features, by rows.

    Ranks of the other rows follow from half-widths alone: a feature precedes another if
    their intervals have no common point.
    """
    N, D = W.shape
    best = np.ones((N, D), np.int64)
    worst = np.full((N, D), D, np.int64)
    prices = np.zeros((N, max(D - 1, 0)))
    after_all = np.broadcast_to(1 + present.sum(axis=1)[:, None], (N, D))
    best[~present] = after_all[~present]
    others = np.ones(N, bool)
    others[[*rows]] = False
    for block in BATCH_BUDGET.blocks(N, 64 * D):
        here = block.start + np.flatnonzero(others[block])
        bounds = _separated(W[here], widths[here], present[here], by)
        for ranks, bound in zip((best, worst), bounds, strict=True):
            ranks[here] = np.where(present[here], bound, ranks[here])
    for n in rows:
        here = np.flatnonzero(present[n])
        w = W[n, here]
        present_columns = np.ones((1, len(here)), bool)
        rises, above = pairs(w, n, here)
        # ranks follow features certainly above and precede those certainly below
        best[n, here] = 1 + np.count_nonzero(above, axis=0)
        worst[n, here] = len(here) - np.count_nonzero(above, axis=1)
        indices = in_order(w[None], by, present_columns)[0]
        following = rises[indices[:-1], indices[1:]]
        prices[n, : len(following)] = following
    return best, worst, prices


def _separated(
    W: Attributions, widths: Array, present: Mask, by: OrderBy
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Best and worst ranks of features with intervals of ± their half-widths."""
    keys = np.abs(W) if by == "size" else W
    _, D = W.shape
    low = np.where(present, keys - widths, -np.inf)
    high = np.where(present, keys + widths, np.inf)
    # of equal ends the lower one is first: intervals that touch have a common point
    ends = np.concatenate([low, high], axis=1)
    order = np.argsort(ends, axis=1, kind="stable")
    n_low = np.empty(ends.shape, np.int64)
    position = np.empty(ends.shape, np.int64)
    np.put_along_axis(n_low, order, np.cumsum(order < D, axis=1), axis=1)
    np.put_along_axis(position, order, np.arange(1, 2 * D + 1)[None], axis=1)
    above = D - n_low[:, D:]  # lower ends beyond the upper end of a feature
    below = position[:, :D] - n_low[:, :D]  # upper ends before its lower end
    return 1 + above, present.sum(axis=1, keepdims=True) - below


def _quotient(prices: Array, unit: float) -> Array:
    """Prices divided by a unit, infinite for a unit of zero."""
    if unit > 0.0:
        return prices / unit
    return np.where(prices > 0.0, np.inf, 0.0)
