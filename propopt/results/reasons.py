"""Reasons: the largest contributions of each row towards a decision.

Contributions φ_n1, ..., φ_nD add up to f(x_n) minus its base. Those with s φ > 0 favour
the decision, with s = 1 for a higher output and −1 for a lower one. The first reason
has the largest s φ, the second the next. φ are the contributions before optimization if
they are known, else the attributions: a reason belongs to the model, and neighbours
neither add nor remove any. Direction and rank are clear if neither a small change of
the row nor optimization turns them (:mod:`propopt.results.clear`). A group is treated
as one sum, not feature by feature.

For log-odds, f(x_n) − φ_nd and f(x_n) are two probabilities. Their difference is the
size of φ_nd at this prediction, in per cent. It is not the prediction of the model for
a row without the feature.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from itertools import islice, pairwise
from typing import Any, Final, Literal, TypeAlias

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
    minus,
    table_chapter,
)
from propopt.base.errors import InvalidInput
from propopt.base.row_sample import RowSample
from propopt.base.text import (
    Quantity,
    in_percent,
    plain_name,
    plural,
    printable,
    rounded_percent,
)
from propopt.base.vocabulary import Basis
from propopt.proofs.near_optimal import in_order
from propopt.proofs.optimum import Optimum, of_rows
from propopt.results.clear import Clear, clear_of, dust_of, is_exact
from propopt.results.result import Result
from propopt.tables.frames import group_sums


Towards: TypeAlias = Literal["higher", "lower"]
"""Whether the decision follows from a higher or a lower output."""

N_REASONS: Final = 4
"""Most reasons of a row by default, as common in letters on decisions."""

LEAST_SHARE: Final = 0.01
"""Least share of all contributions towards the decision that is a reason."""

MOST_LISTED: Final = 100_000
"""Rows up to which all have reasons by default; as many of 30 columns take 4 s."""

_MEMBERS: Final = 3
"""Features of a group with a value in words: those of the largest contributions."""


_HEAD: Final = ("reason", "rows", "clear")


class Reasons(Result, kind="propopt reasons", noun="saved reasons", version=4):
    """The k largest contributions of each row towards a decision, in words.

    Reasons are sorted by row and rank. A row with fewer than k contributions towards
    the decision has fewer reasons. A reason is *clear* if its direction and its rank
    survive every small change of the attributions, before and after optimization.

    Parameters
    ----------
    names : tuple
        The M requested rows, by name or position.
    k : int
        The largest number of reasons of a row.
    towards : {"higher", "lower"}
        Whether the decision follows from a higher or a lower output.
    rows : array of int (R,)
        The row of each reason, as a position in ``names``.
    ranks : array of int (R,)
        1 for the first reason of a row.
    features, values : tuple of str (R,)
        The feature or group, and its value in that row; empty if unknown.
    are_groups : array of bool (R,)
        Whether it is a group; its value lists those of its features.
    contributions : array (R,)
        The contributions that rank the reasons, in units of the output.
    attributions : array (R,)
        The optimized contributions of the same features.
    best_ranks, worst_ranks : array of int (R,)
        The rank clearly lies between these; the worst is ``n_features + 1`` if the
        direction is not clear.
    n_features : int
        The number of ranked features or groups.
    small, more : array of int (M,)
        For each row, the number of contributions towards the decision below the least
        share, and of those that are smaller than the k listed ones.
    unit : str
        The unit of contributions.
    source : str
        The origin of the contributions, in words.
    least_share : float
        The least share of all contributions towards the decision that is a reason.
    meaning : str
        The property of a clear reason, in words.
    notes : tuple of Finding
        Notes on the origin of the numbers and on the sampling error.
    predictions : array (R,), optional
        f(x) of the row of each reason, for log-odds.
    quantity : Quantity, optional
        The explained quantity.
    drawn_from : int, optional
        The number of rows that the M rows are a sample of; None if they were requested.

    Examples
    --------
    >>> import numpy as np, propopt as po
    >>> W = np.array([[2.0, -1.0, 0.5], [1.5, -0.5, 0.45]])
    >>> parts = po.results.Explanation(attributions=W, method="mine", units="output")
    >>> lower = parts.reasons(groups={"pair": ["x1", "x2"]}, towards="lower")
    >>> lower.to_frame()["words"]
    0                        pair (x1, x2): −0.5, clear
    1    pair (x1, x2): −0.05, direction not clear
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
    notes: tuple[Finding, ...] = ()
    predictions: Values | None = field("R", default=None)
    quantity: Quantity | None = None
    drawn_from: int | None = None

    @classmethod
    def of(
        cls,
        best: Optimum,
        *,
        k: int = N_REASONS,
        towards: str = "higher",
        groups: Mapping[str, Sequence[str]] | None = None,
        rows: Sequence[int] | None = None,
        drawn_from: int | None = None,
        least_share: float = LEAST_SHARE,
        delta: float | None = None,
    ) -> Reasons:
        """Collect the reasons of an explanation in units of the output.

        Parameters
        ----------
        best : Optimum
            An explanation (N, D) in units of the output, such as an Explanation.
        k : int
            The largest number of reasons of a row.
        towards : {"higher", "lower"} or str
            The output that the decision is for, or a class that has a name.
        groups : mapping of a name to the features it stands for, optional
            Features that are one reason, by the sum of their contributions.
        rows : sequence of int (M,), optional
            The positions of the rows; all by default, or a sample if there are more
            than 100,000.
        drawn_from : int, optional
            The number of rows that ``rows`` were drawn from at random; None if they
            were selected.
        least_share : float
            A contribution below this share of all those towards the decision in its row
            is no reason; from 0 to below 1.
        delta : float, optional
            The change of a row that clear reasons survive, in units of the output; by
            default 5 % of the root mean square size of a row.

        Returns
        -------
        Reasons
            Sorted by row and rank.

        Raises
        ------
        InvalidInput
            If attributions are slopes, ``delta`` is negative, or ``groups`` are not
            disjoint, nonempty lists of features.
        """
        named = towards if best.quantity is None else best.quantity.side(towards)
        direction: Any = read_option(named, Towards, "towards")
        if best.units != "output":
            raise InvalidInput(
                "reasons: expected contributions, got slopes; "
                "po.explain(model, X, data=X) gives contributions"
            )
        if not 0.0 <= least_share < 1.0:
            raise InvalidInput(
                "least_share: expected a share of the row's contributions in this "
                f"direction, from 0 to below 1, got {least_share!r}"
            )
        k = read_count(k, "k")
        labels = best.labels
        N, D = best.shape
        if rows is None and N > MOST_LISTED:
            drawn_from = N
            rows = RowSample.of(N).rows.tolist()
        requested = np.arange(N) if rows is None else np.array(rows, np.int64)
        some = best if rows is None else of_rows(best, requested)
        clear = clear_of(some, delta=delta, by="value", groups=groups)
        W = some.attributions
        sums = np.eye(D)
        names = labels.feature_names(D)
        if groups is not None:
            sums, names = group_sums(groups, names)
        members = [np.flatnonzero(row) for row in sums]
        merged = np.array([name in (groups or ()) for name in names])
        side = 1.0 if direction == "higher" else -1.0
        phi = W if some.contributions is None else some.contributions
        keys = side * phi @ sums.T
        keys = np.where(np.abs(keys) <= dust_of(keys), 0.0, keys)
        best_ranks, worst_ranks = _ranks(clear, direction)
        towards_it = np.maximum(keys, 0.0)
        least = least_share * towards_it.sum(axis=1, keepdims=True)
        is_reason = (keys > 0.0) & (keys >= least)
        order = in_order(keys, "value", is_reason)
        every = is_reason.sum(axis=1)
        count = np.minimum(every, k)
        n = np.repeat(np.arange(len(count)), count)
        r = np.arange(len(n)) - np.repeat(np.cumsum(count) - count, count)
        d = order[n, r]
        return cls(
            names=tuple(map(labels.row, requested.tolist())),
            k=k,
            towards=direction,
            rows=n,
            ranks=r + 1,
            features=tuple(names[j] for j in d),
            values=tuple(
                _of_group(some, phi, i, members[j])
                if merged[j]
                else some.value_of(i, members[j][0])
                for i, j in zip(n.tolist(), d.tolist(), strict=True)
            ),
            are_groups=merged[d],
            contributions=side * keys[n, d],
            attributions=clear.attributions[n, d],
            best_ranks=np.minimum(best_ranks[n, d], r + 1),
            worst_ranks=np.maximum(worst_ranks[n, d], r + 1),
            n_features=len(names),
            small=(keys > 0.0).sum(axis=1) - every,
            more=every - count,
            unit=clear.unit,
            source=_source(best),
            least_share=float(least_share),
            meaning=clear.meaning,
            notes=(*_origin(best), *clear.notes),
            predictions=_log_odds(best, requested[n]),
            quantity=best.quantity,
            drawn_from=drawn_from,
        )

    def validate(self) -> None:
        """Raise an error for reasons out of order, wrong signs and impossible ranks."""
        if not len(self.rows) == len(self.features) == len(self.values):
            raise InvalidInput("features, values: expected one for each reason")
        if (self.rows >= len(self.names)).any() or (np.diff(self.rows) < 0).any():
            raise InvalidInput(f"rows: expected {len(self.names)} rows, in order")
        if self.drawn_from is not None and self.drawn_from <= len(self.names):
            raise InvalidInput("drawn_from: expected more rows than have reasons")
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
        """A mask (R,) of reasons that keep direction and rank under small changes."""
        return self.best_ranks == self.worst_ranks

    @property
    def shares(self) -> tuple[float, ...]:
        """For each rank, the share of reasons whose direction and rank are clear."""
        clear_by_rank = [
            self.clear[self.ranks == rank] for rank in range(1, self.k + 1)
        ]
        return tuple(float(x.mean()) for x in clear_by_rank if len(x))

    @property
    def _sample(self) -> RowSample:
        """The rows, and the number that they were drawn from."""
        count = len(self.names)
        return RowSample(np.arange(count), self.drawn_from or count)

    @property
    def probabilities(self) -> Array | None:
        """Probabilities (R, 2) without and with each contribution to log-odds.

        None for other units.
        """
        if self.predictions is None:
            return None
        ends = [self.predictions - self.contributions, self.predictions]
        return expit(np.stack(ends, axis=1))

    @property
    def words(self) -> tuple[str, ...]:
        """Each reason in words, such as "Complains = yes: +2.1 log-odds, clear".

        They include the optimized contribution if it differs, and for log-odds the
        probabilities at the prediction minus this contribution and at the prediction.
        """
        forms = {True: "{} ({})", False: "{} = {}"}
        named = [
            forms[bool(is_group)].format(feature, minus(value)) if value else feature
            for feature, value, is_group in zip(
                self.features, self.values, self.are_groups, strict=True
            )
        ]
        steps = [""] * len(named)
        if self.probabilities is not None:
            steps = [
                " ({} → {})".format(*map(in_percent, pair))
                for pair in self.probabilities
            ]
        moved = np.full(len(named), bool(self.source))
        unit = f" {self.unit}" if self._is_named else ""
        return tuple(
            f"{name}: {minus(f'{phi:+.3g}')}{unit}{step}, {clarity}"
            + (f"; optimized {minus(f'{w:+.3g}')}" if is_moved else "")
            for name, phi, step, clarity, w, is_moved in zip(
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
        """Whether direction and rank of each reason are clear, in words."""
        for low, high in zip(self.best_ranks, self.worst_ranks, strict=True):
            if high > self.n_features:
                yield "direction not clear"
            elif low == high:
                yield "clear"
            else:
                yield f"direction clear, rank {ordinal(low)} to {ordinal(high)}"

    def to_frame(self) -> pd.DataFrame:
        """The reasons as a table, one row each, for software that writes notices.

        Columns are ``row``, ``rank``, ``feature``, ``value``, ``contribution`` (which
        determines ranks), ``optimized``, ``unit``, ``clear`` and ``words``.
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
        """The reasons of one row as a text with a line for each.

        Parameters
        ----------
        row : label or int
            The name of the row in the index of the inputs, or its position.

        Returns
        -------
        str
            A title and a line for each reason.

        Raises
        ------
        InvalidInput
            If there is no such row.
        """
        names = [plain_name(name) for name in self.names]
        if plain_name(row) not in names:
            raise InvalidInput(
                f"row: there is no row {row!r} among the {len(names)} with reasons; "
                f"the first is named {names[0]!r}"
            )
        index = names.index(plain_name(row))
        return next(islice(self.sheets(), index, None))

    def sheets(self) -> Iterator[str]:
        """The sheets of all rows, in order."""
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
        """Sentences about the contributions that are not listed."""
        small = int(self.small[m])
        more = int(self.more[m])
        if more:
            yield f"{plural(more, 'smaller contribution')} not listed (k = {self.k})."
        if small:
            least = f"below {100.0 * self.least_share:g} % of their sum"
            yield f"{plural(small, 'contribution')} {least}."
        if not small and not count:
            yield f"No contribution makes the {self._output} {self.towards}."
        elif not small and count < self.k:
            yield "No other contribution has this direction."

    @property
    def _output(self) -> str:
        return "output" if self.quantity is None else self.quantity.in_words()

    @property
    def _is_named(self) -> bool:
        """Whether the unit has a name, such as log-odds, to show with each number."""
        return not self.unit.startswith("units of")

    @property
    def _side(self) -> str:
        """The decision in words, such as "a lower price", or the name of a class."""
        if self.quantity is None:
            return f"a {self.towards} output"
        return self.quantity.decision(self.towards)

    def document(self) -> Document:
        """Summarise how often small changes of a row leave its reasons unchanged."""
        N = len(self.names)
        sample = self._sample
        rows = f"{N:,} rows" if sample.is_whole else f"row of {sample.in_words()}"
        of = "each of" if sample.is_whole else "each"
        most = f"; up to {self.k} of {of} {rows}" if N > 1 else ""
        blocks = [Table.of(_HEAD, [*self._by_rank])] if N > 1 else []
        return Document(
            title=f"Reasons for {self._side}: {self._finding}",
            subtitle=f"contributions to {self._side}, in {self.unit}, largest first"
            f"{most}; clear: share of the rows with a reason of this rank",
            blocks=blocks if N > 1 else [*map(Finding, self.words)],
            trust=[
                Finding(f"clear: {self.meaning}", "assumed"),
                *sample.findings(),
                *self.notes,
            ],
            settings={
                "ranked": plural(self.n_features, "feature or group"),
                "least share": f"{100.0 * self.least_share:g} % of all in this "
                "direction",
            },
            chapters=self._row_by_row,
        )

    def _row_by_row(self) -> list[Chapter]:
        table = self.to_frame()[["row", "rank", "words"]]
        return [table_chapter("Reasons, row by row", table)]

    @property
    def _finding(self) -> str:
        """How often the first reason is clear, as a clause."""
        if not self.shares:
            return "no row has a reason"
        if len(self.names) == 1:
            return f"the first is {'clear' if self.clear[0] else 'not clear'}"
        rows = int((self.ranks == 1).sum())
        sample = self._sample
        where = plural(rows, "row") if sample.is_whole else "rows"
        share = sample.percent(self.shares[0], rows)
        return f"the first reason is clear in {share} of {where}"

    @property
    def _by_rank(self) -> Iterator[tuple[str, str, str]]:
        """Table rows: a rank, the number of rows with it, and the clear share."""
        counts = np.bincount(self.ranks)[1:].tolist()
        for rank, (n, share) in enumerate(zip(counts, self.shares, strict=True), 1):
            yield ordinal(rank), f"{n:,}", self._sample.percent(share, n)

    def __repr__(self) -> str:
        shares = ", ".join(map(rounded_percent, self.shares)) or "none"
        return (
            f"Reasons({plural(len(self.rows), 'reason')} of "
            f"{plural(len(self.names), 'row')} towards {self.towards}; clear by "
            f"rank: {shares})"
        )


def ordinal(rank: int) -> str:
    """``1st``, ``2nd``, ``3rd``, ``4th``."""
    last = rank % 10 if rank % 100 not in (11, 12, 13) else 0
    return f"{rank}{_ENDINGS.get(last, 'th')}"


_ENDINGS: Final = {1: "st", 2: "nd", 3: "rd"}


def _ranks(
    clear: Clear, towards: Towards
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Best and worst ranks (N, K); the worst is K + 1 if the direction is not clear.

    Ranks by value are counted from the largest, for a lower output from the least.
    """
    first = clear.best_ranks
    last = clear.worst_ranks
    K = first.shape[1]
    if towards == "lower":
        first, last = K + 1 - last, K + 1 - first
    sure = clear.signs == (1 if towards == "higher" else -1)
    return first, np.where(sure, last, K + 1)


def _source(best: Optimum) -> str:
    """The contributions that rank reasons, in words, if not the attributions."""
    if best.contributions is None:
        return ""
    return f"{'exact' if is_exact(best) else 'estimated'} contributions"


def _origin(best: Optimum) -> Iterator[Finding]:
    """Notes on the contributions that rank reasons, and on probabilities."""
    basis: Basis = "computed" if is_exact(best) else "estimated"
    if source := _source(best):
        yield Finding(f"reasons are ranked by {source}", basis)
    if _log_odds(best, np.arange(0)) is not None:
        words = "per cent: the probability at the prediction minus this contribution, "
        yield Finding(f"{words}and at the prediction", basis)


def _log_odds(best: Optimum, rows: NDArray[np.int64]) -> Values | None:
    """The predictions of rows if they are log-odds of one class, else None."""
    quantity = best.quantity
    values = best.prediction
    if quantity is None or values is None or not np.isfinite(values).all():
        return None
    is_plain = quantity.kind == "log_odds" and quantity.words is None
    return values[rows] if is_plain else None


def _of_group(best: Optimum, phi: Array, n: int, members: NDArray[np.intp]) -> str:
    """The values of the features of a group that contribute most in a row."""
    names = best.labels.feature_names(best.shape[1])
    sizes = np.abs(phi[n, members])
    most = members[np.sort(np.argsort(-sizes, kind="stable")[:_MEMBERS])].tolist()
    values = [(names[j], best.value_of(n, j)) for j in most]
    parts = [f"{name} = {value}" if value else name for name, value in values]
    more = len(members) - len(most)
    return ", ".join([*parts, f"{more} more"] if more else parts)
