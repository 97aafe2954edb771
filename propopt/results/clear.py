"""Clear signs and ranks: no small change of a row's attributions turns them.

A row w of contributions is compared with its contributions φ before optimization, and
with 2w − φ at twice the distance. A row moves linearly from φ towards the values that
its neighbours suggest. A statement that holds at φ and at 2w − φ therefore holds for
every move up to twice the chosen one. A linear form ⟨ℓ, w⟩ > 0 is clear if it is
positive at both ends, and for every v with ‖v − w‖ ≤ δ and 1ᵀv = 1ᵀw. By the
Cauchy-Schwarz inequality on the subspace of equal sums, the least ⟨ℓ, v⟩ is

    ⟨ℓ, w⟩ − δ √(‖ℓ‖² − (1ᵀℓ)²/D),

and it is attained. For a sign, ℓ is s_d at d, with the root √(1 − 1/D). The size of w_d
is above that of w_e if s_d v_d − s_e v_e and s_d v_d + s_e v_e are both positive. The
roots are √2 if the two signs in ℓ differ and √(2 − 4/D) if they agree. In the order of
values there is one form, v_d − v_e. A group of m columns is a form of m ones. D counts
all columns. Slopes have no sum, so the second term is left out, and the ends are the
slopes before and after optimization. For sampled values, t standard errors are
subtracted from each form, and those of two columns are added.

φ_d − φ_e is made only of mixtures of rows that separate d and e. Where data never has
these (:mod:`propopt.laws.mixtures`), only the sum of the group of d and e is backed by
data. Then a sign is clear only if the sum of its group has it too, at w and at both
ends, and no order within the group is clear.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from propopt.base.arrays import Array, Attributions, Mask
from propopt.base.cards import N_ON_CARD
from propopt.base.checks import read_option
from propopt.base.declared import field
from propopt.base.document import (
    Document,
    Fact,
    Facts,
    Span,
    Table,
    number_text,
    shape_text,
    share_text,
    subtitle_of,
    table_chapter,
    title_of,
)
from propopt.base.errors import InvalidInput
from propopt.base.text import Quantity
from propopt.base.vocabulary import Basis
from propopt.losses.faithfulness import Units, step_of
from propopt.proofs.near_optimal import ZERO, OrderBy, errors_in_interval
from propopt.proofs.optimum import Optimum, blocks_of, small_change_of
from propopt.results.result import Result
from propopt.tables.frames import Labels, group_sums


_AT_ONCE: Final = 4_000_000
"""Pairs of columns that are compared in one block."""


class SignsAndRanks(Result):
    """Signs and ranks of attributions that hold under all changes of some kind."""

    rows_are_named = True

    attributions: Attributions = field("N D", nonempty=True)
    signs: NDArray[np.int8] = field("N D")
    best_ranks: NDArray[np.int64] = field("N D", low=1)
    worst_ranks: NDArray[np.int64] = field("N D", low=1)
    small_change: float = field(low=0.0)
    unit: str
    sampling_error: float = field(low=0.0, missing=True, infinite=True)
    labels: Labels = Labels()
    quantity: Quantity | None = None

    def validate(self) -> None:
        """Raise an error if signs, ranks or names do not follow from other fields."""
        self.labels.check(self.shape, "labels")
        if ((self.signs != 0) & (self.signs != np.sign(self.attributions))).any():
            raise InvalidInput("signs: not those of the attributions")
        if not (self.best_ranks <= self.worst_ranks).all():
            raise InvalidInput("best_ranks: some are above the worst ranks")
        if (self.worst_ranks > self.shape[1]).any():
            raise InvalidInput("worst_ranks: some are above the number of features")

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers N of rows and D of features."""
        N, D = self.attributions.shape
        return N, D

    @property
    def features(self) -> tuple[str, ...]:
        """The names of the features, in the order of columns."""
        return self.labels.feature_names(self.shape[1])

    def _card(self, kind: str, columns: Mapping[str, str], fact: Fact) -> Document:
        """A card of the largest features, with labels for columns of shares."""
        facts = [fact, error_fact(self.sampling_error)]
        parts = (shape_text(*self.shape), self.unit)
        return card_of_shares(self, self.quantity, kind, columns, facts, parts)

    @property
    def _change(self) -> str:
        return f"small change {number_text(self.small_change)}"


@final
class Clear(
    SignsAndRanks, kind="propopt clear", noun="saved clear statements", version=3
):
    """Signs and ranks that no small change of the row's attributions flips.

    A sign, or the rank of a column in its row, is *clear* if it survives every change
    of the row by δ that does not change the row sum, and is the same before
    optimization and at twice the move. Zero among the signs means "not clear", never
    "zero".

    Parameters
    ----------
    attributions : array (N, D)
        W.
    signs : array of int (N, D)
        1 and −1 where the sign is clear, else 0.
    best_ranks, worst_ranks : array of int (N, D)
        The rank of a column in its row, from 1, lies between these.
    by : {"size", "value"}
        Whether ranks are those of |w| or of w.
    small_change : float
        δ, the Euclidean length of a change, in the unit of the attributions.
    unit : str
        The kind and unit of the attributions, such as "contributions, in log-odds".
    sampling_error : float
        The root mean square error of sampled values, as a share of their size; NaN if
        unknown. Standard errors are subtracted before a sign or a rank is clear.
    labels : Labels
        Names of points and features.
    quantity : Quantity, optional
        The explained quantity.

    Examples
    --------
    >>> import numpy as np, propopt as po
    >>> W = np.array([[2.0, -1.0, 0.1], [1.5, -0.05, 1.4]])
    >>> parts = po.results.Explanation(attributions=W, method="mine", units="output")
    >>> clear = parts.clear(0.2)
    >>> clear.sign
    array([[ True,  True, False],
           [ True, False,  True]])
    >>> clear.order
    array([[ True,  True,  True],
           [False,  True, False]])
    """

    by: OrderBy

    @property
    def sign(self) -> Mask:
        """A mask (N, D) of signs that no small change of the row flips."""
        return self.signs != 0

    @property
    def order(self) -> Mask:
        """A mask (N, D) of ranks that no small change of the row alters."""
        return self.best_ranks == self.worst_ranks

    @property
    def clear_signs(self) -> float:
        """The share of signs, of nonzero values, that no small change flips."""
        W = self.attributions
        count = int(np.count_nonzero(np.abs(W) > dust_of(W)))
        return float(np.count_nonzero(self.signs)) / count if count else 1.0

    def to_frame(self) -> pd.DataFrame:
        """A table of how often the sign of each feature is clear, one row each.

        ``clear_rows``, ``clearly_positive`` and ``clearly_negative`` are shares of all
        rows in which the sign is clear, and clearly positive or negative;
        ``clearly_first`` is the share of rows with the feature clearly first;
        ``mean_size`` is the mean of |w|.
        """
        columns = {
            "clear_rows": self.sign,
            "clearly_positive": self.signs > 0,
            "clearly_negative": self.signs < 0,
            "clearly_first": self.worst_ranks == 1,
            "mean_size": np.abs(self.attributions),
        }
        index = pd.Index(self.features, name="feature")
        means = {name: values.mean(axis=0) for name, values in columns.items()}
        return pd.DataFrame(means, index=index)

    def document(self) -> Document:
        """Summarise which signs no small change of their row of attributions flips."""
        labels = {
            "clear_rows": "clear rows",
            "clearly_positive": "clearly +",
            "clearly_negative": "clearly −",
            "clearly_first": "clearly first",
        }
        basis = error_fact(self.sampling_error).basis
        fact = Fact("clear signs", self.clear_signs, "%", basis, self._change)
        card = self._card("Clear signs", labels, fact)
        has_all = self.shape[1] <= N_ON_CARD
        return replace(card, chapters=tuple) if has_all else card


def card_of_shares(
    result: Result,
    quantity: Quantity | None,
    kind: str,
    columns: Mapping[str, str],
    facts: Sequence[Fact],
    parts: Sequence[str],
) -> Document:
    """A card of the features with the largest mean sizes, and some columns of shares.

    The words for each column of :meth:`to_frame` are in ``columns``, and those of the
    subtitle in ``parts``.
    """
    table = result.to_frame().dropna(subset="mean_size")  # others are in no row
    named = table.rename(columns=lambda name: name.replace("_", " "))
    table = table.sort_values("mean_size", ascending=False, kind="stable")
    largest = table[:N_ON_CARD]
    sizes = largest["mean_size"]
    shares = {x: largest[name].map(share_text) for name, x in columns.items()}
    return Document(
        title=title_of(kind, quantity),
        subtitle=subtitle_of(quantity, *parts),
        blocks=[
            Table(
                pd.DataFrame({"mean size": sizes, **shares}),
                total=len(table),
                bars={"mean size": [*map(Span.of, sizes)]},
            ),
            Facts(facts),
        ],
        chapters=lambda: [table_chapter("All features", named)],
    )


def dust_of(W: Attributions) -> Array:
    """The size up to which attributions of each row count as zero (N, 1)."""
    return ZERO * np.abs(W).max(axis=1, initial=0.0, keepdims=True)


def unit_of(quantity: Quantity | None) -> str:
    """The unit of contributions in words."""
    return "units of the output" if quantity is None else quantity.unit


def unit_text(
    units: Units, quantity: Quantity | None, parameters: Mapping[str, Any]
) -> str:
    """The kind and the unit of attributions, once for the whole card."""
    if units == "output":
        return f"contributions, in {unit_of(quantity)}"
    return f"slopes, in {unit_of(quantity)} per {step_of(units, parameters)}"


def sampling_error_of(best: Optimum) -> float:
    """The sampling error; NaN if no standard errors are subtracted for it."""
    is_counted = is_exact(best) or best.standard_errors is not None
    return best.sampling_error if is_counted else math.nan


def error_fact(error: float) -> Fact:
    """The sampling error of a result, which is estimated unless it is zero."""
    basis: Basis = "estimated" if error > 0.0 else "computed"
    return Fact("sampling error", error, "%", basis)


def is_exact(best: Optimum) -> bool:
    """Whether the target of an explanation was computed without sampling error."""
    return best.target is not None and best.target.value == 0.0


def clear_of(
    best: Optimum,
    *,
    small_change: float | None = None,
    by: OrderBy = "size",
    groups: Mapping[str, Sequence[str]] | None = None,
) -> Clear:
    """Compute the result of :meth:`propopt.results.Explanation.clear`."""
    read_option(by, OrderBy, "order")
    delta = small_change_of(best, small_change)
    parts = list[tuple[NDArray[Any], ...]]()
    for some in blocks_of(best):
        rows = _Rows(some, delta, groups)
        parts.append((rows.W, rows.signs(), *rows.ranks(by)))
    W, signs, first, last = map(_joined, zip(*parts, strict=True))
    return Clear(
        attributions=W,
        signs=signs,
        best_ranks=first,
        worst_ranks=last,
        by=by,
        small_change=delta,
        unit=unit_text(best.units, best.quantity, best.parameters),
        sampling_error=sampling_error_of(best),
        labels=best.labels
        if groups is None
        else replace(rows.labels, points=best.labels.points),
        quantity=best.quantity,
    )


def clear_rows(best: Optimum) -> tuple[Array, float, float]:
    """Shares of rows (D,) with clear signs, that of nonzero signs, δ; without ranks."""
    delta = small_change_of(best)
    clear = np.zeros(best.shape[1])
    count = 0
    for some in blocks_of(best):
        rows = _Rows(some, delta, None)
        clear += np.count_nonzero(rows.signs(), axis=0)
        count += int(np.count_nonzero(np.abs(rows.W) > rows.dust))
    share = float(clear.sum()) / count if count else 1.0
    return clear / best.shape[0], share, delta


def _joined(parts: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """Blocks of rows as one array; a single block as it is."""
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


class _Rows:
    """Rows of an explanation with both ends, the change δ and sampling errors."""

    def __init__(
        self,
        best: Optimum,
        delta: float,
        groups: Mapping[str, Sequence[str]] | None,
    ) -> None:
        W = best.attributions
        labels = best.labels
        self.keeps_sums = best.units == "output"
        self.delta = delta
        before = best.contributions if self.keeps_sums else best.gradient
        errors = half_widths(best)
        ends = (
            []
            if before is None
            else [before, 2.0 * W - before if self.keeps_sums else W]
        )
        self.n_columns = W.shape[1]  # before groups are summed
        self.sizes: Array = np.ones(W.shape[1])
        if groups is not None:
            sums, names = group_sums(groups, best.features)
            labels = Labels(labels.points, names)
            self.sizes = sums.sum(axis=1)
            W = W @ sums.T
            errors = errors @ sums.T
            ends = [end @ sums.T for end in ends]
        # (K, K): whether data never has mixtures that separate two columns
        self.together: Array | None = None
        if best.together:
            names = labels.feature_names(W.shape[1])
            self.together = np.eye(len(names))
            for group in best.together_of(groups):
                members = [*map(names.index, group)]
                self.together[np.ix_(members, members)] = 1.0
        self.W = W
        self.ends = ends
        self.errors = errors
        self.labels = labels
        self.dust = dust_of(W)

    def signs(self) -> NDArray[np.int8]:
        """1 and −1 where a sign is clear, else 0."""
        s = np.sign(self.W)
        least = self.errors + self.dust
        clear = s * self.W > self._reach(self.sizes, self.sizes) + least
        for end in self.ends:
            clear &= s * end > least
        if self.together is not None:
            for end in (self.W, *self.ends):
                clear &= s * (end @ self.together) > self.dust
        return (s * clear).astype(np.int8)

    def ranks(self, by: OrderBy) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Best and worst ranks of each column in its row."""
        N, K = self.W.shape
        first = np.ones((N, K), np.int64)
        last = np.full((N, K), K, np.int64)
        # columns that are zero at all ends, such as absent words, share their ranks
        zero = (self.W == 0.0) & (self.errors == 0.0) & (self.sizes == 1.0)
        for end in self.ends:
            zero &= end == 0.0
        if self.together is not None:
            zero &= self.together.sum(axis=1) == 1.0
        width = min(K, int((~zero).sum(axis=1).max(initial=0)) + 1)
        step = max(1, _AT_ONCE // width**2)
        counts = np.ones(width, np.int64)
        counts[-1] += K - width
        for start in range(0, N, step):
            rows = np.arange(start, min(start + step, N))[:, None]
            columns = np.argsort(zero[rows[:, 0]], axis=1, kind="stable")[:, :width]
            above = self._above(rows, columns, by)
            best = 1 + np.einsum("nde,d->ne", above, counts)
            worst = K - np.einsum("nde,e->nd", above, counts)
            first[rows] = best[:, None, -1:]
            last[rows] = worst[:, None, -1:]
            first[rows, columns] = best
            last[rows, columns] = worst
        return first, last

    def _above(self, rows: Any, columns: Any, by: OrderBy) -> Mask:
        """Whether each column is clearly above each other one (n, d, d)."""
        W = self.W[rows, columns]
        m = self.sizes[columns]
        errors = self.errors[rows, columns]
        dust = self.dust[rows[:, 0]][:, :, None]
        s = np.ones(W.shape) if by == "value" else np.where(W < 0.0, -1.0, 1.0)
        squares = m[:, :, None] + m[:, None]
        least = errors[:, :, None] + errors[:, None] + dust
        above = np.ones(squares.shape, bool)
        if self.together is not None:
            above = self.together[columns[:, :, None], columns[:, None]] == 0.0
        for sign in (1.0, -1.0) if by == "size" else (1.0,):
            sums = (s * m)[:, :, None] - sign * (s * m)[:, None]
            reach = self._reach(squares, sums)
            for end, far in ((W, reach), *((x[rows, columns], 0.0) for x in self.ends)):
                v = s * end
                above &= v[:, :, None] - sign * v[:, None] > far + least
        return above

    def _reach(self, squares: Array, sums: Array) -> Array:
        """The largest decrease of a form with ‖ℓ‖² and 1ᵀℓ in changes by δ."""
        preserved = sums**2 / self.n_columns if self.keeps_sums else 0.0
        return self.delta * np.sqrt(np.maximum(squares - preserved, 0.0))


def half_widths(best: Optimum, level: float = 0.95) -> Array:
    """Half-widths (N, D) of intervals for sampling; 0 without standard errors."""
    errors = best.standard_errors
    if errors is None:
        return np.zeros(best.shape)
    widths = errors_in_interval(best, level) * errors
    return np.where(np.isfinite(errors), widths, np.inf)
