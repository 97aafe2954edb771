"""Reasons: the largest contributions of each row towards a decision.

Contributions φ_n1, ..., φ_nD add up to f(x_n) minus its base. Those with s φ > 0 favour
the decision, with s = 1 for a higher output and −1 for a lower one. The first reason
has the largest s φ, the second the next. φ are the contributions before optimization if
they are known, else the attributions: a reason belongs to the model, and neighbours
neither add nor remove any. Direction and rank are clear if neither a small change of
the row nor optimization turns them (:mod:`propopt.results.clear`). They are stable if
models of other training samples agree (:mod:`propopt.results.stable`). A group is
treated as one sum, not feature by feature.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice, pairwise
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import expit

from propopt.base.arrays import Array, Mask, Values, largest_first
from propopt.base.cards import to_text
from propopt.base.checks import read_count
from propopt.base.declared import field
from propopt.base.document import (
    Block,
    Document,
    Fact,
    Facts,
    Table,
    minus,
    share_text,
    subtitle_of,
    table_chapter,
    title_of,
)
from propopt.base.errors import InvalidInput
from propopt.base.row_sample import SHARE_LEVEL, RowSample
from propopt.base.text import Quantity, plain_name
from propopt.proofs.near_optimal import in_order
from propopt.proofs.optimum import Optimum, of_rows
from propopt.results.clear import (
    Clear,
    clear_of,
    dust_of,
    error_fact,
    sampling_error_of,
    unit_of,
)
from propopt.results.result import Result
from propopt.results.stable import (
    N_REASONS,
    Stable,
    Towards,
    decision_text,
    side_of,
)
from propopt.tables.frames import group_sums, name_of_group, sums_of_groups


LEAST_SHARE: Final = 0.01
"""Least share of all contributions towards the decision that is a reason."""

MOST_LISTED: Final = 100_000
"""Rows up to which all have reasons by default; as many of 30 columns take 4 s."""

_MEMBERS: Final = 3
"""Features of a group with a value in words: those of the largest contributions."""

_NAMED: Final = 3
"""Features that are named for each rank."""

UNTESTED: Final = Fact("stable", "not tested by refits", basis="computed")

_STABLE: Final = ("not shown", "yes", "as first")
"""What a sheet says of the stability of a reason."""


class Reasons(Result, kind="propopt reasons", noun="saved reasons", version=6):
    """The k largest contributions of each row towards a decision.

    Reasons are sorted by row and rank. A row with fewer than k contributions towards
    the decision has fewer reasons. A reason is *clear* if its direction and its rank
    survive every small change of the attributions, before and after optimization. It is
    *stable* if it stays among the first k in models of other training samples.

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
    partners : tuple of str (R,)
        The features that data hardly ever has apart, of which the feature is one; empty
        if it is in no such group.
    together : array (R,)
        The sum of the contributions of these features; missing without them.
    best_ranks, worst_ranks : array of int (R,)
        The rank clearly lies between these; the worst is ``n_features + 1`` if the
        direction is not clear.
    n_features : int
        The number of ranked features or groups.
    more : array of int (M,)
        For each row, the number of further contributions towards the decision of at
        least the least share.
    unit : str
        The unit of contributions.
    least_share : float
        The least share of all contributions towards the decision that is a reason.
    small_change : float
        The change of a row that clear reasons survive, in units of the output.
    sampling_error : float
        The root mean square error of sampled contributions, as a share of their size;
        NaN if unknown.
    bases, predictions : array (M,), optional
        Where contributions of each row begin, and its prediction.
    votes : array of int (R,), optional
        How many retrained models have the reason among the first k of its row.
    stable : array of int (R,), optional
        1 if the reason is stable among the first k, 2 if also as the first, else 0.
    n_models : int
        The number of retrained models; 0 if stability was not tested.
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
    >>> lower.to_frame()[["feature", "contribution", "clear"]]
      feature  contribution  clear
    0    pair         -0.50   True
    1    pair         -0.05  False
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
    partners: tuple[str, ...] = field(halves=True)
    together: Values = field("R", missing=True)
    best_ranks: NDArray[np.int64] = field("R", low=1)
    worst_ranks: NDArray[np.int64] = field("R", low=1)
    n_features: int = field(low=1)
    more: NDArray[np.int64] = field("M", low=0)
    unit: str
    least_share: float = field(low=0.0, high=1.0)
    small_change: float = field(low=0.0)
    sampling_error: float = field(low=0.0, missing=True, infinite=True)
    bases: Values | None = field("M", default=None)
    predictions: Values | None = field("M", default=None)
    votes: NDArray[np.int64] | None = field("R", default=None, low=0)
    stable: NDArray[np.int64] | None = field("R", default=None, low=0, high=2)
    n_models: int = field(default=0, low=0)
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
        small_change: float | None = None,
        models: Sequence[Any] | None = None,
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
        small_change : float, optional
            The change of a row that clear reasons survive, in units of the output; by
            default 5 % of the root mean square size of a row.
        models : sequence, optional
            Retrained models, which show what is stable.

        Returns
        -------
        Reasons
            Sorted by row and rank.

        Raises
        ------
        InvalidInput
            If attributions are slopes, ``small_change`` is negative, or ``groups``
            are not disjoint, nonempty lists of features.
        """
        direction = side_of(best, towards)
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
        clear = clear_of(some, small_change=small_change, by="value", groups=groups)
        sums = np.eye(D)
        names = best.features
        if groups is not None:
            sums, names = group_sums(groups, names)
        members = [np.flatnonzero(row) for row in sums]
        merged = np.array([name in (groups or ()) for name in names])
        side = 1.0 if direction == "higher" else -1.0
        phi = some.attributions if some.contributions is None else some.contributions
        keys = side * phi @ sums.T
        keys = np.where(np.abs(keys) <= dust_of(keys), 0.0, keys)
        apart = best.together_of(groups)
        together = sums_of_groups(side * keys, names, apart)
        partners = {x: name_of_group(group) for group in apart for x in group}
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
        votes: dict[str, Any] = {}
        if models is not None:
            among = Stable.of(some, models, k=k, towards=direction, groups=groups)
            stable = among.lines[n, d].astype(np.int64) + (among.first[n] & (r == 0))
            votes = {"votes": among.votes[n, d], "stable": stable}
            votes["n_models"] = among.n_models
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
            partners=tuple(partners.get(names[j], "") for j in d),
            together=together[n, d],
            best_ranks=np.minimum(best_ranks[n, d], r + 1),
            worst_ranks=np.maximum(worst_ranks[n, d], r + 1),
            n_features=len(names),
            more=every - count,
            unit=unit_of(best.quantity),
            least_share=float(least_share),
            small_change=clear.small_change,
            sampling_error=sampling_error_of(best),
            bases=some.base_value,
            predictions=some.prediction,
            **votes,
            quantity=best.quantity,
            drawn_from=drawn_from,
        )

    def validate(self) -> None:
        """Raise an error for reasons out of order, wrong signs and impossible ranks."""
        texts = (self.features, self.values, self.partners)
        if {*map(len, texts)} != {len(self.rows)}:
            raise InvalidInput(
                "features, values, partners: expected one for each reason"
            )
        if (self.rows >= len(self.names)).any() or (np.diff(self.rows) < 0).any():
            raise InvalidInput(f"rows: expected {len(self.names)} rows, in order")
        if self.drawn_from is not None and self.drawn_from <= len(self.names):
            raise InvalidInput("drawn_from: expected more rows than have reasons")
        if len(self.more) != len(self.names):
            raise InvalidInput(f"more: expected {len(self.names)} rows")
        if (self.votes is None) != (self.n_models == 0):
            raise InvalidInput("n_models: expected that of the votes")
        if self.votes is not None and self.votes.max(initial=0) > self.n_models:
            raise InvalidInput(f"votes: more than {self.n_models} models")
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
    def clear_rows(self) -> tuple[float, ...]:
        """For each rank, the share of reasons with clear direction and rank."""
        clear_by_rank = [
            self.clear[self.ranks == rank] for rank in range(1, self.k + 1)
        ]
        return tuple(float(x.mean()) for x in clear_by_rank if len(x))

    @property
    def _sample(self) -> RowSample:
        """The rows, and the number that they were drawn from."""
        count = len(self.names)
        return RowSample(np.arange(count), self.drawn_from or count)

    def to_frame(self) -> pd.DataFrame:
        """The reasons as a table, one row each, for software that writes notices.

        Columns are ``row``, ``rank``, ``feature``, ``value``, ``contribution`` (which
        determines ranks), ``optimized``, ``partners`` (features that data hardly ever
        has apart), ``together`` (the sum of their contributions), ``unit``, ``clear``,
        ``best_rank`` and ``worst_rank`` (the rank clearly lies between these; the worst
        is beyond the number of features if the direction is not clear),
        ``sampling_error``, ``stable`` (among the first k), ``stable_first``, ``votes``
        and ``retrained_models``. Those of stability are missing if it was not tested.
        """
        stable = np.full(len(self.rows), np.nan) if self.stable is None else self.stable
        tested = self.stable is not None
        return pd.DataFrame(
            {
                "row": pd.Series([self.names[m] for m in self.rows], dtype=object),
                "rank": self.ranks,
                "feature": pd.Series(self.features, dtype=object),
                "value": pd.Series(self.values, dtype=object),
                "contribution": self.contributions,
                "optimized": self.attributions,
                "partners": pd.Series(self.partners, dtype=object),
                "together": self.together,
                "unit": pd.Series([self.unit] * len(self.rows), dtype=object),
                "clear": self.clear,
                "best_rank": self.best_ranks,
                "worst_rank": self.worst_ranks,
                "sampling_error": self.sampling_error,
                "stable": stable >= 1 if tested else stable,
                "stable_first": stable == 2 if tested else stable,
                "votes": self.votes if tested else stable,
                "retrained_models": self.n_models,
            }
        )

    def sheet(self, row: Hashable) -> str:
        """The reasons of one row as a table, as text.

        Parameters
        ----------
        row : label or int
            The name of the row in the index of the inputs, or its position.

        Returns
        -------
        str
            A title; a line for each reason, with its value, its contribution, what is
            clear and what is stable; the prediction and the base.

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
        return next(islice(self.sheets(), names.index(plain_name(row)), None))

    def sheets(self) -> Iterator[str]:
        """The sheets of all rows, in order."""
        listed = self._listed
        ends = np.searchsorted(self.rows, np.arange(len(self.names) + 1))
        for m, (start, end) in enumerate(pairwise(ends)):
            yield to_text(self._sheet(m, listed[start:end]))

    def _sheet(
        self, m: int, listed: pd.DataFrame, facts: Sequence[Fact] = ()
    ) -> Document:
        """The sheet of one row: its listed reasons, its prediction and the base."""
        more = int(self.more[m])
        rest = f"{more} more" if more else "" if len(listed) else "none"
        ends = {"prediction": self.predictions, "base": self.bases}
        lines = [
            Fact(label, *self._output(float(values[m])))
            for label, values in ends.items()
            if values is not None
        ]
        unit = 100.0 if self._in_points else 1.0
        sums = {self.partners[i]: self.together[i] for i in listed.index}
        lines += [
            Fact("together", unit * x, note=name) for name, x in sums.items() if name
        ]
        if not self.n_models:
            lines.append(UNTESTED)
        if self.sampling_error != 0.0 and not facts:
            lines.append(error_fact(self.sampling_error))
        table = Table(listed.set_index("feature"), rest=rest)
        return self._card([table, Facts([*lines, *facts])], f"Row {self.names[m]}")

    def _output(self, value: float) -> tuple[float, str, None, str]:
        """An output as the number, unit, basis and note of a fact."""
        if self._in_points:
            return value, "%", None, ""
        if not self._is_of("log_odds"):
            return value, "", None, ""
        return value, "", None, f"probability {share_text(float(expit(value)))}"

    @property
    def _in_points(self) -> bool:
        """Whether contributions are shown in percentage points of a probability."""
        return self._is_of("probability")

    def _is_of(self, kind: str) -> bool:
        """Whether the output is of this kind, and no sum of outputs."""
        quantity = self.quantity
        return quantity is not None and (quantity.kind, quantity.words) == (kind, None)

    def _card(self, blocks: Sequence[Block], kind: str, *size: str) -> Document:
        """Blocks below a title, and a line with model, size, decision and unit."""
        unit = "percentage points" if self._in_points else self.unit
        return Document(
            title=title_of(kind, self.quantity),
            subtitle=subtitle_of(
                self.quantity,
                *size,
                f"{decision_text(self.quantity, self.towards)}, in {unit}",
            ),
            blocks=blocks,
        )

    @property
    def _listed(self) -> pd.DataFrame:
        """The feature, value, contribution, clarity and stability of each reason."""
        names = ["feature", "value", "contribution"]
        table = self.to_frame()[names if any(self.values) else names[::2]]
        if any(self.values):
            table["value"] = table["value"].map(minus)
        if self._in_points:
            table["contribution"] *= 100.0
        has_direction = self.worst_ranks <= self.n_features
        table["clear"] = np.where(
            self.clear, "yes", np.where(has_direction, "direction", "no")
        )
        if self.votes is not None and self.stable is not None:
            table["retrained models"] = [f"{x} of {self.n_models}" for x in self.votes]
            table["stable"] = np.array(_STABLE)[self.stable]
        return table

    def document(self) -> Document:
        """Summarise by rank how often reasons are clear, and which are frequent."""
        sample = self._sample
        listed = self._listed
        facts = [
            Fact("small change", self.small_change),
            error_fact(self.sampling_error),
        ]
        if not sample.is_whole:
            facts.append(Fact("interval", SHARE_LEVEL, "%"))
        if len(self.names) == 1:
            card = self._sheet(0, listed, facts)
        else:
            if not self.n_models:
                facts.append(UNTESTED)
            card = self._card(
                [self._by_rank, Facts(facts)], "Reasons", sample.in_words()
            )
        frame = self.to_frame()[["row", "rank"]].join(listed)
        chapters = [table_chapter("Reasons, row by row", frame)][: len(self.names) - 1]
        return replace(
            card,
            settings={
                "features": f"{self.n_features:,}",
                "least share": share_text(self.least_share),
            },
            chapters=lambda: chapters,
        )

    @property
    def _by_rank(self) -> Table:
        """For each rank its rows, the clear share, and its most frequent features."""
        lines = []
        for rank, share in enumerate(self.clear_rows, 1):
            features = np.array(self.features, object)[self.ranks == rank]
            often = ", ".join(
                f"{name} {share_text(count / len(features))}"
                for name, count in Counter(features).most_common(_NAMED)
            )
            shown = self._sample.percent(share, len(features))
            line = [f"{rank}", f"{len(features):,}", shown]
            if self.stable is not None:
                share = float((self.stable[self.ranks == rank] > 0).mean())
                line.append(self._sample.percent(share, len(features)))
            lines.append((*line, often))
        stable = ["stable rows"] * (self.stable is not None)
        return Table.of(("rank", "rows", "clear rows", *stable, "most often"), lines)


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


def _of_group(best: Optimum, phi: Array, n: int, members: NDArray[np.intp]) -> str:
    """The values of the features of a group that contribute most in a row."""
    names = best.features
    sizes = np.abs(phi[n, members])
    most = members[np.sort(largest_first(sizes)[:_MEMBERS])].tolist()
    values = [(names[j], best.value_of(n, j)) for j in most]
    parts = [f"{name} = {value}" if value else name for name, value in values]
    more = len(members) - len(most)
    return ", ".join([*parts, f"{more} more"] if more else parts)
