"""Reasons: the largest contributions of a row towards a decision, and which ranks hold.

Of contributions w_n1, ..., w_nD, which add up to f(x_n) less its base, those with
s w > 0 speak for the decision, s = 1 for a higher output and −1 for a lower one. The
first reason has the largest s w, the second the next. In every V whose objective is at
most β above the optimum,

    s ⟨ℓ, V⟩ ≥ s ⟨ℓ, W⟩ − √(β ⟨ℓ, H⁻¹ℓ⟩)

(:mod:`propopt.results.certain`). A rank is certain where this keeps s v_d above zero,
s (v_d − v_e) above zero for every e that comes later and below it for every e that
comes earlier. For a group ℓ is one on each of its features, so that it is judged as the
sum that it is, not feature by feature.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from itertools import islice, pairwise
from typing import Any, Final, Literal, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from propopt.base.arrays import Array, Truths, Values
from propopt.base.cards import Card, CardTable
from propopt.base.checks import known_word, read_count, read_nonnegative
from propopt.base.declared import stored
from propopt.base.errors import InvalidInput, Refused
from propopt.base.text import (
    Quantity,
    Reason,
    plain_name,
    printable,
    rounded_percent,
)
from propopt.results.certain import (
    BUDGET,
    Certain,
    in_order,
    note_rests_on,
    plural,
    without_dust,
)
from propopt.results.report.chapters import (
    Chapter,
    Headline,
    Statement,
    rows_on_page,
    sentence,
)
from propopt.results.result import Result
from propopt.tables.frames import group_sums


Towards: TypeAlias = Literal["higher", "lower"]
"""Which output the decision is for."""

N_REASONS: Final = 4
"""As many as letters on decisions mostly have."""

_MEMBERS: Final = 3
"""Features of a group whose values are told, the largest contributions."""


_HEAD: Final = ("reason", "rows that have it", "certain")


class Reasons(Result, kind="propopt reasons", noun="saved reasons", version=1):
    """The k largest contributions of each row towards a decision, in words.

    Reasons stand one behind the other, row by row and the first reason of a row first.
    A row with fewer than k contributions towards the decision has fewer reasons. A rank
    is *certain* if every explanation within the budget has this feature at this rank,
    with a contribution towards the decision, the error of the target included as far as
    it is known.

    Parameters
    ----------
    names : tuple
        The M rows that were asked for, by name or position.
    k : int
        How many reasons a row has at most.
    towards : {"higher", "lower"}
        The side of the output that the decision is on.
    rows : array of int (R,)
        The row of each reason, as a position in ``names``.
    ranks : array of int (R,)
        1 for the first reason of a row.
    features, values : tuple of str (R,)
        The feature or group, and its value in that row; empty where it is not known.
    are_groups : array of bool (R,)
        Whether it is a group, whose value is that of its features.
    contributions : array (R,)
        In units of the output.
    best_ranks, worst_ranks : array of int (R,)
        The rank lies between these in every explanation within the budget; the worst is
        ``n_features + 1`` where one has no contribution towards the decision there.
    n_features : int
        How many features or groups were ranked.
    unit : str
        What contributions are numbers of.
    budget : float
        Of each statement, in mean rows.
    notes : tuple of str
        What is included in what is certain, and what was not computed.
    quantity : Quantity, optional
        What is explained.

    Examples
    --------
    >>> import numpy as np, propopt as po
    >>> W = np.array([[2.0, -1.0, 0.5], [1.5, -0.5, 0.6]])
    >>> parts = po.results.Explanation(attributions=W, method="mine", units="output")
    >>> robust = po.PairwiseRobustness(po.graphs.chain_graph(2))
    >>> best = po.solve(po.GradientMatching(parts) + 0.5 * robust)
    >>> best.reasons(groups={"pair": ["x1", "x2"]}, towards="lower").to_frame()["words"]
    0    pair (x1, x2): -0.3 output, certain
    1    pair (x1, x2): -0.1 output, direction not certain
    Name: words, dtype: object
    """

    names: tuple[Hashable, ...] = stored()
    k: int = stored(low=1)
    towards: Towards
    rows: NDArray[np.int64] = stored("R", low=0)
    ranks: NDArray[np.int64] = stored("R", low=1)
    features: tuple[str, ...] = stored(halves=True)
    values: tuple[str, ...] = stored(halves=True)
    are_groups: Truths = stored("R")
    contributions: Values = stored("R")
    best_ranks: NDArray[np.int64] = stored("R", low=1)
    worst_ranks: NDArray[np.int64] = stored("R", low=1)
    n_features: int = stored(low=1)
    unit: str
    budget: float = stored(low=0.0)
    notes: tuple[str, ...] = ()
    quantity: Quantity | None = None

    @classmethod
    def of(
        cls,
        best: Any,
        known: Certain | Reason,
        *,
        k: int = N_REASONS,
        towards: Towards = "higher",
        groups: Mapping[str, Sequence[str]] | None = None,
        rows: Sequence[int] | None = None,
        budget: float = BUDGET,
    ) -> Reasons:
        """Those of an explanation in units of the output, by what is certain of it.

        ``known`` is of the order of values and of the same groups, or why nothing is.
        """
        W, labels, (N, D) = best.attributions, best.labels, best.shape
        sums, names = np.eye(D), labels.feature_names(D)
        if groups is not None:
            sums, names = group_sums(groups, names)
        members = [np.flatnonzero(own) for own in sums]
        merged = np.array([name in (groups or ()) for name in names])
        side = 1.0 if towards == "higher" else -1.0
        keys = side * without_dust(W @ sums.T)
        told = range(N) if rows is None else rows
        best_ranks, worst_ranks = _ranks(known, keys, towards)
        order = in_order(keys, "value", keys > 0.0)
        count = np.minimum((keys > 0.0).sum(axis=1), k)
        places = [(m, n, r) for m, n in enumerate(told) for r in range(count[n])]
        m, n, r = np.array(places, np.int64).reshape(-1, 3).T
        d = order[n, r]
        return cls(
            names=tuple(map(labels.row, told)),
            k=k,
            towards=towards,
            rows=m,
            ranks=r + 1,
            features=tuple(names[j] for j in d),
            values=tuple(
                _of_group(best, i, members[j])
                if merged[j]
                else best.value_of(i, members[j][0])
                for i, j in zip(n.tolist(), d.tolist(), strict=True)
            ),
            are_groups=merged[d],
            contributions=side * keys[n, d],
            best_ranks=best_ranks[n, d],
            worst_ranks=worst_ranks[n, d],
            n_features=len(names),
            unit=_unit(best.quantity),
            budget=budget,
            notes=_notes(known, all_rows=rows is None),
            quantity=best.quantity,
        )

    def contradictions(self) -> None:
        """Refuse reasons out of order, of another side, or of ranks that cannot be."""
        if not len(self.rows) == len(self.features) == len(self.values):
            raise InvalidInput("features, values: expected one for each reason")
        if (self.rows >= len(self.names)).any() or (np.diff(self.rows) < 0).any():
            raise InvalidInput(f"rows: expected {len(self.names)} rows, in order")
        starts = np.searchsorted(self.rows, self.rows)
        if (self.ranks != np.arange(len(self.rows)) - starts + 1).any():
            raise InvalidInput("ranks: expected 1, 2 and so on in each row")
        if (self.ranks > min(self.k, self.n_features)).any():
            raise InvalidInput("ranks: a row has more reasons than k, or than features")
        sizes = self.contributions * (1.0 if self.towards == "higher" else -1.0)
        later = self.ranks[1:] > 1
        if (sizes <= 0.0).any() or (np.diff(sizes)[later] > 0.0).any():
            raise InvalidInput(
                f"contributions: expected those towards {self.towards}, largest first"
            )
        above = (self.best_ranks > self.ranks) | (self.ranks > self.worst_ranks)
        if above.any() or (self.worst_ranks > self.n_features + 1).any():
            raise InvalidInput("best_ranks, worst_ranks: expected the rank between")

    @property
    def certain(self) -> NDArray[np.bool_]:
        """Whether the rank of each reason is certain, (R,)."""
        return np.asarray(self.best_ranks == self.worst_ranks)

    @property
    def shares(self) -> tuple[float, ...]:
        """The share of certain first reasons, second ones and so on, of those had."""
        own = [self.certain[self.ranks == rank] for rank in range(1, self.k + 1)]
        return tuple(float(x.mean()) for x in own if len(x))

    @property
    def words(self) -> tuple[str, ...]:
        """Such as "Complains = yes: +2.1 log-odds, certain", one for each reason."""
        forms = {True: "{} ({})", False: "{} = {}"}
        named = (
            forms[bool(own)].format(feature, value) if value else feature
            for feature, value, own in zip(
                self.features, self.values, self.are_groups, strict=True
            )
        )
        return tuple(
            f"{name}: {w:+.3g} {self.unit}, {known}"
            for name, w, known in zip(
                named, self.contributions, self._certainties(), strict=True
            )
        )

    def _certainties(self) -> Iterator[str]:
        """What is known of each direction and place, in words."""
        for low, high in zip(self.best_ranks, self.worst_ranks, strict=True):
            if low == high:
                yield "certain"
            elif high > self.n_features:
                yield "direction not certain"
            else:
                yield f"direction certain, place {ordinal(low)} to {ordinal(high)}"

    def to_frame(self) -> pd.DataFrame:
        """One row per reason, for systems that write letters.

        ``row``, ``rank``, ``feature``, ``value``, ``contribution``, ``unit``,
        ``certain`` and ``words``, in which all of it is said.
        """
        return pd.DataFrame(
            {
                "row": pd.Series([self.names[m] for m in self.rows], dtype=object),
                "rank": self.ranks,
                "feature": pd.Series(self.features, dtype=object),
                "value": pd.Series(self.values, dtype=object),
                "contribution": self.contributions,
                "unit": pd.Series([self.unit] * len(self.rows), dtype=object),
                "certain": self.certain,
                "words": pd.Series(self.words, dtype=object),
            }
        )

    def sheet(self, row: Hashable) -> str:
        """The reasons of one row as lines of text.

        Parameters
        ----------
        row : label or int
            The row's name in the index of the inputs; its position where they had none.

        Raises
        ------
        InvalidInput
            If there are no reasons of such a row.
        """
        names = [plain_name(name) for name in self.names]
        if plain_name(row) not in names:
            raise InvalidInput(
                f"row: there is no row {row!r} among the {len(names)} with reasons; "
                f"the first is named {names[0]!r}"
            )
        place = names.index(plain_name(row))
        return next(islice(self.sheets(), place, None))

    def sheets(self) -> Iterator[str]:
        """Those of all rows, one after the other."""
        words, output = self.words, self._output
        ends = np.searchsorted(self.rows, np.arange(len(self.names) + 1))
        for name, (start, end) in zip(self.names, pairwise(ends), strict=True):
            lines = [f"Row {name}: reasons for a {self.towards} {output}"]
            lines += [f"  {r}. {x}" for r, x in enumerate(words[start:end], 1)]
            if start == end:
                lines.append(f"  No contribution makes the {output} {self.towards}.")
            elif end - start < self.k:
                lines.append("  No other contribution goes that way.")
            yield "\n".join(map(printable, lines))

    @property
    def _output(self) -> str:
        return "output" if self.quantity is None else self.quantity.in_words()

    def card(self) -> Card:
        """How often each rank is certain, what that means, and one row in full."""
        N = len(self.names)
        return Card(
            title=f"Reasons for a {self.towards} {self._output}: {self._finding}",
            subtitle=f"contributions towards it, the largest first; up to {self.k} of "
            f"each of {plural(N, 'row')}",
            table=CardTable(_HEAD, [*self._by_rank]),
            lines=self.words if N == 1 else (),
            proof=" · ".join([f"certain: {self._meaning}", *self.notes]),
            settings={"ranked": plural(self.n_features, "feature or group")},
        )

    def chapters(self) -> Sequence[Chapter]:
        """How often ranks are certain, with what that rests on; rows one by one."""
        notes = [Statement(sentence(note), note_rests_on(note)) for note in self.notes]
        drawn = any(note.kind == "estimated" for note in notes)
        said = [
            Statement(sentence(self._finding), "estimated" if drawn else "proved"),
            *notes,
            Statement(f"Certain means that {self._meaning}.", "chosen"),
            Statement(f"Reasons are those for a {self.towards} output.", "chosen"),
            Statement("A place that is not certain need not be wrong.", "not said"),
        ]
        first = rounded_percent(self.shares[0]) if self.shares else "–"
        asked = Headline("Do the reasons hold?", first, "of first reasons are certain")
        table = self.to_frame()[["row", "rank", "words"]]
        room = rows_on_page(table)
        return (
            Chapter(
                title=f"Reasons for a {self.towards} {self._output}",
                statements=said,
                headlines=[asked],
                table=pd.DataFrame([*self._by_rank], columns=[*_HEAD]),
                caption="How many rows have such a reason, and how many of these are "
                "certain.",
            ),
            Chapter(
                title="Reasons, row by row",
                table=table.iloc[:room],
                caption=f"{plural(len(table), 'reason')}."
                if room >= len(table)
                else f"The first {room:,} of {plural(len(table), 'reason')}; the CSV "
                "file has all.",
            ),
        )

    @property
    def _finding(self) -> str:
        """Of first reasons, half a sentence."""
        if not self.shares:
            return "no row has a reason"
        rows, share = int((self.ranks == 1).sum()), rounded_percent(self.shares[0])
        return f"the first reason is certain in {share} of {plural(rows, 'row')}"

    @property
    def _by_rank(self) -> Iterator[tuple[str, str, str]]:
        """How many rows have a first reason, a second, and how many are certain."""
        counts = np.bincount(self.ranks)[1:].tolist()
        for rank, (n, share) in enumerate(zip(counts, self.shares, strict=True), 1):
            yield ordinal(rank), f"{n:,}", rounded_percent(share)

    @property
    def _meaning(self) -> str:
        return (
            "every explanation whose objective is up to "
            f"{self.budget:g} mean rows above the optimum has it at this rank"
        )

    def __repr__(self) -> str:
        said = ", ".join(map(rounded_percent, self.shares)) or "none"
        return (
            f"Reasons({plural(len(self.rows), 'reason')} of "
            f"{plural(len(self.names), 'row')} towards {self.towards}; certain by "
            f"rank: {said})"
        )


def ordinal(rank: int) -> str:
    """``1st``, ``2nd``, ``3rd``, ``4th``."""
    last = rank % 10 if rank % 100 not in (11, 12, 13) else 0
    return f"{rank}{_ENDINGS.get(last, 'th')}"


_ENDINGS: Final = {1: "st", 2: "nd", 3: "rd"}


def reasons_of(
    best: Any,
    objective: Any,
    *,
    k: int,
    towards: Towards,
    groups: Mapping[str, Sequence[str]] | None,
    rows: Sequence[Hashable] | None,
    budget: float,
) -> Reasons:
    """See :meth:`propopt.results.Explanation.reasons`."""
    known_word(towards, Towards, "towards")
    if best.units != "output":
        raise InvalidInput(
            "reasons: these are slopes, how fast the output changes, and no "
            "contributions to it; po.explain(model, X, data=X, kind='contributions') gives "
            "contributions"
        )
    N, D = best.shape
    asked = None if rows is None else [best.labels.position(row, N) for row in rows]
    if groups is not None:
        group_sums(groups, best.labels.feature_names(D))
    how: dict[str, Any] = {"k": read_count(k, "k"), "towards": towards}
    how |= {"groups": groups, "budget": read_nonnegative(budget, "budget")}
    known: Certain | Reason
    try:
        known = best.certain(budget, objective, rows=rows, order="value", groups=groups)
    except (InvalidInput, Refused) as error:
        if objective is not None:
            raise
        known = Reason(str(error).replace("certain(objective", "reasons(objective"))
    return Reasons.of(best, known, rows=asked, **how)


def _ranks(
    known: Certain | Reason, keys: Array, towards: Towards
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Between which ranks each is, (N, K); the worst is K + 1 where it may be none.

    Ranks by value are counted from the largest, and for a lower output from the least.
    """
    N, K = keys.shape
    if isinstance(known, Reason):
        return np.ones((N, K), np.int64), np.full((N, K), K + 1, np.int64)
    first, last = known.best_ranks, known.worst_ranks
    if towards == "lower":
        present = np.ones((N, K), bool) if known.present is None else known.present
        count = present.sum(axis=1)[:, None] + 1
        first, last = count - last, count - first
    sure = known.signs == (1 if towards == "higher" else -1)
    return np.maximum(first, 1), np.where(sure, last, K + 1)


def _of_group(best: Any, n: int, members: NDArray[np.intp]) -> str:
    """The values of those features of a group that contribute most in a row."""
    names = best.labels.feature_names(best.shape[1])
    sizes = np.abs(best.attributions[n, members])
    most = members[np.sort(np.argsort(-sizes, kind="stable")[:_MEMBERS])].tolist()
    values = [(names[j], best.value_of(n, j)) for j in most]
    said = [f"{name} = {value}" if value else name for name, value in values]
    more = len(members) - len(most)
    return ", ".join([*said, f"{more} more"] if more else said)


def _notes(known: Certain | Reason, *, all_rows: bool) -> tuple[str, ...]:
    """What is included in what is certain, or why nothing is."""
    if isinstance(known, Reason):
        return (f"no rank is certain: {known.reason}",)
    scatter, *others = known.notes
    if not (others and all_rows):
        return (scatter,)
    return scatter, "of so many rows no ranks are known: name some, reasons(rows=...)"


def _unit(quantity: Quantity | None) -> str:
    """What a contribution is a number of."""
    if quantity is None:
        return "output"
    if quantity.words is not None:
        return quantity.in_words()
    is_named = quantity.kind == "value" and quantity.outcome is not None
    return str(quantity.outcome) if is_named else quantity.noun
