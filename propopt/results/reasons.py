"""Reasons: the largest contributions of a row towards a decision, and which are clear.

Contributions φ_n1, ..., φ_nD add up to f(x_n) minus its base. Those with s φ > 0 speak
for the decision, s = 1 for a higher output and −1 for a lower one. The first reason has
the largest s φ, the second the next. φ are the contributions that an explanation is
faithful to, where they are known, and its attributions otherwise: a reason is one of
the model, and neighbours neither add nor remove any. Direction and place are clear if
no small change of the row turns them, and if optimization does not
(:mod:`propopt.results.clear`). A group is judged as the sum that it is, not feature by
feature.

For log-odds, f(x_n) − φ_nd and f(x_n) are two probabilities. Their difference is the
size of φ_nd at this prediction, in per cent. It is not what the model would answer for
a row without the feature.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from itertools import islice, pairwise
from typing import Final, Literal, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import expit

from propopt.base.arrays import Array, Mask, Values
from propopt.base.checks import read_count, read_option
from propopt.base.declared import field
from propopt.base.document import (
    Chapter,
    Document,
    Finding,
    Table,
    basis_of_note,
    table_chapter,
)
from propopt.base.errors import InvalidInput
from propopt.base.text import (
    Quantity,
    in_percent,
    plain_name,
    plural,
    printable,
    rounded_percent,
)
from propopt.proofs.near_optimal import in_order
from propopt.proofs.optimum import Optimum
from propopt.results.clear import Clear, clear_of, dust_of, is_exact
from propopt.results.result import Result
from propopt.tables.frames import group_sums


Towards: TypeAlias = Literal["higher", "lower"]
"""Which output the decision is for."""

N_REASONS: Final = 4
"""As many as letters on decisions mostly have."""

LEAST_SHARE: Final = 0.01
"""Of all contributions towards the decision: what is smaller is no reason."""

_MEMBERS: Final = 3
"""Features of a group whose values are told, the largest contributions."""


_HEAD: Final = ("reason", "rows that have it", "clear")


class Reasons(Result, kind="propopt reasons", noun="saved reasons", version=2):
    """The k largest contributions of each row towards a decision, in words.

    Reasons stand one behind the other, row by row and the first reason of a row first.
    A row with fewer than k contributions towards the decision has fewer reasons. A
    reason is *clear* if its direction and its place survive every small change of the
    row, before optimization and after it.

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
        What reasons are ranked by, in units of the output.
    attributions : array (R,)
        The optimized contributions of the same features.
    best_ranks, worst_ranks : array of int (R,)
        The place clearly lies between these; the worst is ``n_features + 1`` where the
        direction is not clear.
    n_features : int
        How many features or groups were ranked.
    small, more : array of int (M,)
        For each row, how many contributions towards the decision are below the least
        share; how many others are smaller than the k that are listed.
    unit : str
        What contributions are numbers of.
    source : str
        What reasons are ranked by, in words.
    least_share : float
        The least share of all contributions towards the decision that is a reason.
    meaning : str
        What a clear reason does.
    notes : tuple of str
        How the target error is included.
    predictions : array (R,), optional
        f(x) of each reason's row, where it is log-odds.
    quantity : Quantity, optional
        What is explained.

    Examples
    --------
    >>> import numpy as np, propopt as po
    >>> W = np.array([[2.0, -1.0, 0.5], [1.5, -0.5, 0.45]])
    >>> parts = po.results.Explanation(attributions=W, method="mine", units="output")
    >>> lower = parts.reasons(groups={"pair": ["x1", "x2"]}, towards="lower")
    >>> lower.to_frame()["words"]
    0                        pair (x1, x2): -0.5, clear
    1    pair (x1, x2): -0.05, direction not clear
    Name: words, dtype: object
    """

    names: tuple[Hashable, ...] = field()
    k: int = field(low=1)
    towards: Towards
    rows: NDArray[np.int64] = field("R", low=0)
    ranks: NDArray[np.int64] = field("R", low=1)
    features: tuple[str, ...] = field(halves=True)
    values: tuple[str, ...] = field(halves=True)
    are_groups: Mask = field("R")
    contributions: Values = field("R")
    attributions: Values = field("R")
    best_ranks: NDArray[np.int64] = field("R", low=1)
    worst_ranks: NDArray[np.int64] = field("R", low=1)
    n_features: int = field(low=1)
    small: NDArray[np.int64] = field("M", low=0)
    more: NDArray[np.int64] = field("M", low=0)
    unit: str
    source: str
    least_share: float = field(low=0.0, high=1.0)
    meaning: str
    notes: tuple[str, ...] = ()
    predictions: Values | None = field("R", default=None)
    quantity: Quantity | None = None

    @classmethod
    def of(
        cls,
        best: Optimum,
        *,
        k: int = N_REASONS,
        towards: Towards = "higher",
        groups: Mapping[str, Sequence[str]] | None = None,
        rows: Sequence[int] | None = None,
        least_share: float = LEAST_SHARE,
        delta: float | None = None,
    ) -> Reasons:
        """Those of an explanation in units of the output."""
        known = clear_of(best, delta=delta, by="value", groups=groups)
        W, labels, (N, D) = best.attributions, best.labels, best.shape
        sums, names = np.eye(D), labels.feature_names(D)
        if groups is not None:
            sums, names = group_sums(groups, names)
        members = [np.flatnonzero(own) for own in sums]
        merged = np.array([name in (groups or ()) for name in names])
        side = 1.0 if towards == "higher" else -1.0
        own = W if best.contributions is None else best.contributions
        keys = side * own @ sums.T
        keys = np.where(np.abs(keys) <= dust_of(keys), 0.0, keys)
        told = np.arange(N) if rows is None else np.array(rows, np.int64)
        best_ranks, worst_ranks = _ranks(known, towards)
        towards_it = np.maximum(keys, 0.0)
        least = least_share * towards_it.sum(axis=1, keepdims=True)
        is_reason = (keys > 0.0) & (keys >= least)
        order = in_order(keys, "value", is_reason)
        every = is_reason.sum(axis=1)
        count = np.minimum(every, k)
        places = [(m, n, r) for m, n in enumerate(told) for r in range(count[n])]
        m, n, r = np.array(places, np.int64).reshape(-1, 3).T
        d = order[n, r]
        return cls(
            names=tuple(map(labels.row, told.tolist())),
            k=k,
            towards=towards,
            rows=m,
            ranks=r + 1,
            features=tuple(names[j] for j in d),
            values=tuple(
                _of_group(best, own, i, members[j])
                if merged[j]
                else best.value_of(i, members[j][0])
                for i, j in zip(n.tolist(), d.tolist(), strict=True)
            ),
            are_groups=merged[d],
            contributions=side * keys[n, d],
            attributions=known.attributions[n, d],
            best_ranks=np.minimum(best_ranks[n, d], r + 1),
            worst_ranks=np.maximum(worst_ranks[n, d], r + 1),
            n_features=len(names),
            small=((keys > 0.0).sum(axis=1) - every)[told],
            more=(every - count)[told],
            unit=known.unit,
            source=_source(best),
            least_share=least_share,
            meaning=known.meaning,
            notes=known.notes,
            predictions=_log_odds(best, n),
            quantity=best.quantity,
        )

    def validate(self) -> None:
        """Refuse reasons out of order, of another side, or of ranks that cannot be."""
        if not len(self.rows) == len(self.features) == len(self.values):
            raise InvalidInput("features, values: expected one for each reason")
        if (self.rows >= len(self.names)).any() or (np.diff(self.rows) < 0).any():
            raise InvalidInput(f"rows: expected {len(self.names)} rows, in order")
        if len(self.small) != len(self.names):
            raise InvalidInput(f"small, more: expected {len(self.names)} rows")
        starts = np.searchsorted(self.rows, self.rows)
        if (self.ranks != np.arange(len(self.rows)) - starts + 1).any():
            raise InvalidInput("ranks: expected 1, 2 and so on in each row")
        if (self.ranks > min(self.k, self.n_features)).any():
            raise InvalidInput("ranks: a row has more reasons than k, or than features")
        alone = {
            x for x, g in zip(self.features, self.are_groups, strict=True) if not g
        }
        pairs = set(zip(self.rows.tolist(), self.features, strict=True))
        if len(alone) > self.n_features or len(pairs) < len(self.rows):
            raise InvalidInput(
                f"features: expected {self.n_features} at most, each once in a row"
            )
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
    def clear(self) -> NDArray[np.bool_]:
        """Whether direction and place of each reason are clear, (R,)."""
        return np.asarray(self.best_ranks == self.worst_ranks)

    @property
    def shares(self) -> tuple[float, ...]:
        """The share of clear first reasons, second ones and so on, of those had."""
        own = [self.clear[self.ranks == rank] for rank in range(1, self.k + 1)]
        return tuple(float(x.mean()) for x in own if len(x))

    @property
    def probabilities(self) -> Array | None:
        """Without this contribution in the sum, and with it, (R, 2); of log-odds."""
        if self.predictions is None:
            return None
        ends = [self.predictions - self.contributions, self.predictions]
        return np.asarray(expit(np.stack(ends, axis=1)))

    @property
    def words(self) -> tuple[str, ...]:
        """Such as "Complains = yes: +2.1 log-odds, clear", one for each reason.

        With the optimized contribution, where it is another; for log-odds with the
        probabilities at the prediction minus this contribution and at the prediction.
        """
        forms = {True: "{} ({})", False: "{} = {}"}
        named = [
            forms[bool(own)].format(feature, value) if value else feature
            for feature, value, own in zip(
                self.features, self.values, self.are_groups, strict=True
            )
        ]
        steps = [""] * len(named)
        if self.probabilities is not None:
            steps = [
                " ({} → {})".format(*map(in_percent, own)) for own in self.probabilities
            ]
        moved = np.full(len(named), bool(self.source))
        unit = f" {self.unit}" if self._is_named else ""
        return tuple(
            f"{name}: {own:+.3g}{unit}{step}, {known}"
            + (f"; optimized {w:+.3g}" if is_moved else "")
            for name, own, step, known, w, is_moved in zip(
                named,
                self.contributions,
                steps,
                self._clarities(),
                self.attributions,
                moved,
                strict=True,
            )
        )

    def _clarities(self) -> Iterator[str]:
        """What is clear of each direction and place, in words."""
        for low, high in zip(self.best_ranks, self.worst_ranks, strict=True):
            if high > self.n_features:
                yield "direction not clear"
            elif low == high:
                yield "clear"
            else:
                yield f"direction clear, place {ordinal(low)} to {ordinal(high)}"

    def to_frame(self) -> pd.DataFrame:
        """One row per reason, for systems that write letters.

        ``row``, ``rank``, ``feature``, ``value``, ``contribution`` (ranks are by it),
        ``optimized``, ``unit``, ``clear`` and ``words``, in which all of it is said.
        """
        return pd.DataFrame(
            {
                "row": pd.Series([self.names[m] for m in self.rows], dtype=object),
                "rank": self.ranks,
                "feature": pd.Series(self.features, dtype=object),
                "value": pd.Series(self.values, dtype=object),
                "contribution": self.contributions,
                "optimized": self.attributions,
                "unit": pd.Series([self.unit] * len(self.rows), dtype=object),
                "clear": self.clear,
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
        words = self.words
        ends = np.searchsorted(self.rows, np.arange(len(self.names) + 1))
        for m, (start, end) in enumerate(pairwise(ends)):
            lines = [f"Row {self.names[m]}: reasons for {self._side}"]
            if not self._is_named:
                lines[0] += f", in {self.unit}"
            lines += [f"  {r}. {x}" for r, x in enumerate(words[start:end], 1)]
            lines += [f"  {x}" for x in self._rest(m, end - start)]
            yield "\n".join(map(printable, lines))

    def _rest(self, m: int, count: int) -> Iterator[str]:
        """Which contributions towards the decision are not in the list, and why."""
        small, more = int(self.small[m]), int(self.more[m])
        if more:
            yield f"{plural(more, 'smaller contribution')} that way: k = {self.k}."
        if small:
            least = f"below {100.0 * self.least_share:g} % of all that way"
            yield f"{plural(small, 'contribution')} {least}."
        if not small and not count:
            yield f"No contribution makes the {self._output} {self.towards}."
        elif not small and count < self.k:
            yield "No other contribution goes that way."

    @property
    def _output(self) -> str:
        return "output" if self.quantity is None else self.quantity.in_words()

    @property
    def _is_named(self) -> bool:
        """Whether the unit has a name, such as log-odds: it stands at each number."""
        return not self.unit.startswith("units of")

    @property
    def _side(self) -> str:
        """What the reasons are for, such as "a lower price" or "higher log-odds"."""
        article = "" if self._output.startswith("log-odds") else "a "
        return f"{article}{self.towards} {self._output}"

    def document(self) -> Document:
        """How often each rank is clear, what that means; the reasons of all rows."""
        N = len(self.names)
        most = f"; up to {self.k} of each of {N:,} rows" if N > 1 else ""
        notes = [Finding(note, basis_of_note(note)) for note in self._read]
        blocks = [Table.of(_HEAD, [*self._by_rank])] if N > 1 else []
        return Document(
            title=f"Reasons for {self._side}: {self._finding}",
            subtitle=f"contributions towards it in {self.unit}, largest first{most}",
            blocks=blocks if N > 1 else [*map(Finding, self.words)],
            trust=[Finding(f"clear: {self.meaning}", "chosen"), *notes],
            settings={
                "ranked": plural(self.n_features, "feature or group"),
                "least share": f"{100.0 * self.least_share:g} % of all that way",
            },
            chapters=self._row_by_row,
        )

    def _row_by_row(self) -> list[Chapter]:
        table = self.to_frame()[["row", "rank", "words"]]
        return [table_chapter("Reasons, row by row", table)]

    @property
    def _finding(self) -> str:
        """Of first reasons, half a sentence."""
        if not self.shares:
            return "no row has a reason"
        if len(self.names) == 1:
            return f"the first is {'clear' if self.clear[0] else 'not clear'}"
        rows, share = int((self.ranks == 1).sum()), rounded_percent(self.shares[0])
        return f"the first reason is clear in {share} of {plural(rows, 'row')}"

    @property
    def _by_rank(self) -> Iterator[tuple[str, str, str]]:
        """How many rows have a first reason, a second, and how many are clear."""
        counts = np.bincount(self.ranks)[1:].tolist()
        for rank, (n, share) in enumerate(zip(counts, self.shares, strict=True), 1):
            yield ordinal(rank), f"{n:,}", rounded_percent(share)

    @property
    def _read(self) -> Iterator[str]:
        """What has to be known to read the words."""
        if self.source:
            yield f"ranked by {self.source}"
        if self.predictions is not None:
            yield (
                "per cent: the probability at the prediction minus this contribution, "
                "and at the prediction"
            )
        yield from self.notes

    def __repr__(self) -> str:
        said = ", ".join(map(rounded_percent, self.shares)) or "none"
        return (
            f"Reasons({plural(len(self.rows), 'reason')} of "
            f"{plural(len(self.names), 'row')} towards {self.towards}; clear by "
            f"rank: {said})"
        )


def ordinal(rank: int) -> str:
    """``1st``, ``2nd``, ``3rd``, ``4th``."""
    last = rank % 10 if rank % 100 not in (11, 12, 13) else 0
    return f"{rank}{_ENDINGS.get(last, 'th')}"


_ENDINGS: Final = {1: "st", 2: "nd", 3: "rd"}


def reasons_of(
    best: Optimum,
    *,
    k: int,
    towards: Towards,
    groups: Mapping[str, Sequence[str]] | None,
    rows: Sequence[Hashable] | None,
    least_share: float,
    delta: float | None,
) -> Reasons:
    """See :meth:`propopt.results.Explanation.reasons`."""
    read_option(towards, Towards, "towards")
    if best.units != "output":
        raise InvalidInput(
            "reasons: these are slopes, how fast the output changes, and no "
            "contributions to it; po.explain(model, X, data=X) gives contributions"
        )
    if not 0.0 <= least_share < 1.0:
        raise InvalidInput(
            f"least_share: expected a share from 0 to below 1, got {least_share!r}"
        )
    N = best.shape[0]
    asked = None if rows is None else [best.labels.position(row, N) for row in rows]
    return Reasons.of(
        best,
        k=read_count(k, "k"),
        towards=towards,
        groups=groups,
        rows=asked,
        least_share=float(least_share),
        delta=delta,
    )


def _ranks(
    known: Clear, towards: Towards
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Between which places each is, (N, K); the worst is K + 1 where it may be none.

    Places by value are counted from the largest, and for a lower output from the least.
    """
    first, last = known.best_ranks, known.worst_ranks
    K = first.shape[1]
    if towards == "lower":
        first, last = K + 1 - last, K + 1 - first
    sure = known.signs == (1 if towards == "higher" else -1)
    return first, np.where(sure, last, K + 1)


def _source(best: Optimum) -> str:
    """What reasons are ranked by, where it is not what is explained itself."""
    if best.contributions is None:
        return ""
    return f"{'exact' if is_exact(best) else 'estimated'} contributions"


def _log_odds(best: Optimum, rows: NDArray[np.int64]) -> Values | None:
    """Predictions of rows, where they are known and are log-odds of one class."""
    quantity, values = best.quantity, best.prediction
    if quantity is None or values is None or not np.isfinite(values).all():
        return None
    is_plain = quantity.kind == "log_odds" and quantity.words is None
    return values[rows] if is_plain else None


def _of_group(best: Optimum, own: Array, n: int, members: NDArray[np.intp]) -> str:
    """The values of those features of a group that contribute most in a row."""
    names = best.labels.feature_names(best.shape[1])
    sizes = np.abs(own[n, members])
    most = members[np.sort(np.argsort(-sizes, kind="stable")[:_MEMBERS])].tolist()
    values = [(names[j], best.value_of(n, j)) for j in most]
    said = [f"{name} = {value}" if value else name for name, value in values]
    more = len(members) - len(most)
    return ", ".join([*said, f"{more} more"] if more else said)
