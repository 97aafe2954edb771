"""What holds in every near-optimal explanation: signs, orders, ranges."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, final, get_args

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from propopt._typing import Array, Attributions, Truths
from propopt.checks import read_nonnegative, sealed
from propopt.errors import InvalidInput, Refused
from propopt.losses import Objective, Program
from propopt.losses.entries import Support, counted
from propopt.output.csv import write_csv
from propopt.output.html import html_card, html_table
from propopt.output.text import in_html
from propopt.results.conclusions.near_optimal import NearOptimal
from propopt.results.conclusions.orders import OrderBy, RowOrder, in_order
from propopt.results.conclusions.saved_certain import read_certain, write_certain
from propopt.results.conclusions.target_scatter import TargetScatter, scatter_of
from propopt.tables.names import Labels


if TYPE_CHECKING:
    from propopt.results.explanation import Explanation


BUDGET = 0.1
"""The budget of a statement, in mean rows."""

_MOST_WORK = 1e10
"""Σ d_n³: products for the orders of all rows, beyond which rows have to be named."""


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class Certain:
    """What every explanation says whose objective is almost as good.

    The *price* of a sign is the least rise of the objective at which that attribution
    can be zero, w²/[H⁻¹] for half the Hessian H of the squared losses; other convex
    losses can only make it higher. A sign, or an order of two features, is *certain*
    if no explanation within the budget has another, the error of the target included.
    Zero among the signs means "not certain", never "zero".

    Parameters
    ----------
    attributions : array (N, D)
        W.
    signs : array of int (N, D)
        1 and −1 where the sign is certain, else 0.
    half_widths : array (N, D)
        How far an attribution can be from W within the budget, the 95 % interval of
        the target's error added.
    prices : array (N, D)
        Of the signs, in units of the objective: lower bounds.
    best_ranks, worst_ranks : array of int (N, D)
        The rank of a feature in its row, from 1, lies between these; 1 and D in rows
        whose orders were not asked for.
    order_prices : array (N, D − 1)
        The price of exchanging a feature with the next in the row's order; zero in rows
        whose orders were not asked for.
    order : {"size", "value"}
        What ranks are of: |w| or w.
    budget : float
        Of each statement, in mean rows.
    optimum : float
        The objective of the explanation.
    notes : tuple of str
        What is included, and what was not computed.
    labels : Labels
        Names of points and features.
    present : array of bool (N, D), optional
        The features that each row has, such as the words of a document; all by default.
        Nothing is said of others: they are zero in every explanation, and their ranks
        come after those of all that are present.

    Examples
    --------
    >>> import numpy as np, propopt as po
    >>> objective = po.GradientMatching(np.array([[1.0, -2.0], [1.2, 0.01]]))
    >>> best = po.solve(objective + po.PairwiseRobustness(po.chain_graph(2)))
    >>> certain = best.certain()
    >>> certain.signs
    array([[ 1, -1],
           [ 1, -1]], dtype=int8)
    >>> certain.in_mean_rows.round(1)
    array([[2.4, 2.9],
           [2.6, 1.3]])
    """

    attributions: Attributions
    signs: NDArray[np.int8]
    half_widths: Attributions
    prices: Attributions
    best_ranks: NDArray[np.int64]
    worst_ranks: NDArray[np.int64]
    order_prices: Array
    order: OrderBy
    budget: float
    optimum: float
    notes: tuple[str, ...] = ()
    labels: Labels = Labels()
    present: Truths | None = None

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if isinstance(value, np.ndarray):
                vars(self)[name] = sealed(value)

    @property
    def shape(self) -> tuple[int, int]:
        """N and D."""
        N, D = self.attributions.shape
        return N, D

    @property
    def share(self) -> float:
        """The share of signs that are certain, of features that are present."""
        return float(np.count_nonzero(self.signs)) / max(self.count, 1)

    @property
    def count(self) -> int:
        """How many attributions something is said of."""
        return int(self._present.sum())

    @property
    def _present(self) -> Truths:
        return np.ones(self.shape, bool) if self.present is None else self.present

    @property
    def in_mean_rows(self) -> Attributions:
        """The prices of signs in what the mean row costs, the optimum over N."""
        return _quotient(self.prices, self.optimum / len(self.prices))

    @property
    def in_shares(self) -> Attributions:
        """The prices of signs in shares of the optimum."""
        return _quotient(self.prices, self.optimum)

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the features."""
        return self.labels.feature_names(self.shape[1])

    def to_frame(self) -> pd.DataFrame:
        """One row per feature.

        ``certain``, ``positive`` and ``negative`` are shares of the rows in which the
        sign is certain, and certainly that; ``median_price`` is in mean rows,
        ``median_half_width`` and ``mean_size`` of |w| in units of the attributions;
        ``certain_first`` is the share of rows that it certainly leads. All are of the
        rows in which the feature is present, and NaN where there is none.
        """
        measures = {
            "certain": (self.signs != 0, "mean"),
            "positive": (self.signs > 0, "mean"),
            "negative": (self.signs < 0, "mean"),
            "median_price": (self.in_mean_rows, "median"),
            "median_half_width": (self.half_widths, "median"),
            "mean_size": (np.abs(self.attributions), "mean"),
            "certain_first": (self.worst_ranks == 1, "mean"),
        }
        columns = {
            name: pd.DataFrame(np.where(self._present, values, np.nan)).agg(how)
            for name, (values, how) in measures.items()
        }
        return pd.DataFrame(columns).set_axis(
            pd.Index(self.features, name="feature"), axis=0
        )

    def of_row(self, row: Hashable) -> pd.DataFrame:
        """The features of one row in their order, with all that is known of them.

        Only those that are present.

        Parameters
        ----------
        row : label or int
            The row's name in the index of the inputs; its position where they had none.

        Returns
        -------
        DataFrame
            ``attribution``, ``half_width``, ``sign``, ``price`` of the sign and
            ``price_of_order`` with the next feature in mean rows, ``best_rank`` and
            ``worst_rank``.

        Raises
        ------
        InvalidInput
            If there is no such row.
        """
        n = self.labels.position(row, len(self.signs))
        here = self._present[[n]]
        count = int(here.sum())
        places = in_order(self.attributions[[n]], self.order, here)[0, :count]
        prices = self.order_prices[n, : max(count - 1, 0)]
        orders = _quotient(prices, self.optimum / len(self.prices))
        table = pd.DataFrame(
            {
                "attribution": self.attributions[n],
                "half_width": self.half_widths[n],
                "sign": self.signs[n],
                "price": self.in_mean_rows[n],
                "best_rank": self.best_ranks[n],
                "worst_rank": self.worst_ranks[n],
            },
            index=pd.Index(self.features, name="feature"),
        ).iloc[places]
        return table.assign(price_of_order=[*orders, np.nan][:count])

    def top(self, count: int = 3) -> pd.DataFrame:
        """Which feature is certainly first in each row, second, and so on.

        Empty text where that is not certain.
        """
        names = np.array(self.features, dtype=object)
        fixed = (self.best_ranks == self.worst_ranks) & self._present
        columns = {}
        for rank in range(1, min(count, self.shape[1]) + 1):
            here = fixed & (self.best_ranks == rank)
            named = np.where(here.any(axis=1), names[here.argmax(axis=1)], "")
            columns[f"rank {rank}"] = named
        return pd.DataFrame(columns, index=self.labels.points)

    def to_csv(self, path: str | Path) -> None:
        """Write :meth:`to_frame`, features in the first column."""
        write_csv(path, self.to_frame().reset_index(), names_of_rows=False)

    def save(self, path: str | Path) -> None:
        """Write to an ``.npz`` file: arrays, and one JSON header; no pickles.

        Raises
        ------
        InvalidInput
            If the folder is not there, or a field is not what can be loaded again.
        """
        write_certain(path, vars(self))

    @classmethod
    def load(cls, path: str | Path) -> Certain:
        """Read what :meth:`save` wrote.

        Raises
        ------
        InvalidInput
            If the file is another one, or holds what no such result has.
        FileNotFoundError
            If there is none.
        """
        return cls(**read_certain(path))

    def __repr__(self) -> str:
        return (
            f"Certain({self.share:.0%} of {self.count:,} signs, within "
            f"{self.budget:g} mean rows; {'; '.join(self.notes)})"
        )

    def _repr_html_(self) -> str:
        title = f"<b>{self.share:.0%} of {self.count:,} signs are certain</b>"
        mean = self.optimum / len(self.prices)
        within = f"budget of a statement: {self.budget:g} mean rows of {mean:.3g}"
        facts = "<br>".join(in_html(fact) for fact in (within, *self.notes))
        head = ("feature", "certain sign", "positive", "negative", "median price")
        return html_card([title, facts, html_table(head, self._cells())])

    def _cells(self) -> Iterable[list[str]]:
        every = self.to_frame().dropna(subset="certain")  # others are in no row
        table = every.sort_values("mean_size", ascending=False)
        shares = table[["certain", "positive", "negative"]]
        for name, values, price in zip(
            table.index, shares.to_numpy(), table["median_price"], strict=True
        ):
            yield [in_html(name), *(f"{v:.0%}" for v in values), f"{price:.3g}"]


def certain_of(
    best: Explanation,
    program: Program,
    *,
    budget: float,
    rows: Sequence[Hashable] | None,
    order: OrderBy,
) -> Certain:
    """See :meth:`propopt.Explanation.certain`."""
    if order not in get_args(OrderBy):
        raise InvalidInput(f"order: expected 'size' or 'value', got {order!r}")
    W = best.attributions
    near = NearOptimal.around(best, program)
    share = read_nonnegative(budget, "budget")
    assert best.certificate is not None, "the set around W has seen it"
    statements = _Statements(
        best=best,
        near=near,
        beta=share * best.certificate.value / len(W),
        scatter=scatter_of(best, program, near),
        order=order,
        support=counted(program),
        asked=rows,
    )
    return statements.certain(share)


@dataclass(frozen=True, eq=False)
class _Statements:
    """The statements about W, in the rows that were asked for or can be afforded."""

    best: Explanation
    near: NearOptimal
    beta: float
    scatter: TargetScatter
    order: OrderBy
    support: Support | None
    asked: Sequence[Hashable] | None

    def certain(self, budget: float) -> Certain:
        W = self.best.attributions
        sizes = np.abs(W)
        widths = self.near.reach(self.beta, self.variances) + self.scatter.of_entries()
        widths = np.where(self.present, widths, 0.0)
        best_ranks, worst_ranks, order_prices = self._orders()
        certificate = self.best.certificate
        return Certain(
            attributions=W,
            signs=(np.sign(W) * (sizes > widths)).astype(np.int8),
            half_widths=np.asarray(widths),
            prices=self.near.price(sizes, self.variances),
            best_ranks=best_ranks,
            worst_ranks=worst_ranks,
            order_prices=order_prices,
            order=self.order,
            budget=budget,
            optimum=0.0 if certificate is None else certificate.value,
            notes=tuple(self._notes()),
            labels=self.best.labels,
            present=None if self.support is None else self.present,
        )

    @cached_property
    def present(self) -> Truths:
        """The features that each row has."""
        every = np.ones(self.best.shape, bool)
        return every if self.support is None else self.support.mask

    @cached_property
    def rows(self) -> Sequence[int]:
        """Rows whose blocks of H⁻¹ are computed."""
        N, _ = self.best.shape
        if self.asked is None:
            work = float((self.present.sum(axis=1, dtype=float) ** 3).sum())
            affordable = self.exact is not None and work <= _MOST_WORK
            return range(N) if affordable else []
        return [self.best.labels.position(row, N) for row in self.asked]

    @cached_property
    def exact(self) -> Attributions | None:
        """The diagonal of H⁻¹; None where it is too large to be had."""
        try:
            return self.near.hessian.inverse_diagonal()
        except Refused:
            return None

    @cached_property
    def variances(self) -> Attributions:
        """The diagonal of H⁻¹, or 1/a, which is no less."""
        if self.exact is not None:
            return self.exact
        variances = np.where(self.present, 1.0 / self.near.modulus, 0.0)
        for row in self.rows:
            here = np.flatnonzero(self.present[row])
            variances[row, here] = np.diag(self.near.hessian.block_of(row, here))
        return variances

    def _orders(self) -> tuple[NDArray[np.int64], NDArray[np.int64], Array]:
        W = self.best.attributions
        N, D = W.shape
        best, worst = np.ones((N, D), np.int64), np.full((N, D), D, np.int64)
        prices = np.zeros((N, max(D - 1, 0)))
        counts = np.broadcast_to(self.present.sum(axis=1)[:, None], (N, D))
        best[~self.present] = counts[~self.present] + 1
        worst[self.present] = counts[self.present]
        for n in self.rows:
            here = np.flatnonzero(self.present[n])
            w, every = W[n, here], np.ones((1, len(here)), bool)
            pairs = RowOrder.of(
                w, n, here, self.near, self.beta, self.scatter, self.order
            )
            best[n, here], worst[n, here] = pairs.best_ranks, pairs.worst_ranks
            places = in_order(w[None], self.order, every)[0]
            following = pairs.prices[places[:-1], places[1:]]
            prices[n, : len(following)] = following
        return best, worst, prices

    def _notes(self) -> Iterable[str]:
        yield self.scatter.words
        N, _ = self.best.shape
        if self.exact is None and len(self.rows) < N:
            yield (
                "half-widths of rows that were not named are those of a ball, which "
                "are safe; certain(rows=...) makes them as narrow as can be"
            )
        elif len(self.rows) < N:
            yield "orders are those of the rows that were named"


def claimed(best: Explanation, objective: Objective) -> Explanation:
    """The explanation with a certificate for the objective: its own, or a new one."""
    same = best.measured(objective)  # without claims if a loss is another
    if same.weights == objective.weights and same.certificate is not None:
        return same
    return best.certified(objective)


def _quotient(prices: Array, unit: float) -> Array:
    """Prices over a unit; of an optimum that costs nothing all are infinite."""
    if unit > 0.0:
        return prices / unit
    return np.where(prices > 0.0, np.inf, 0.0)
