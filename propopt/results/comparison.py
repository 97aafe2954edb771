"""What changed between two versions of a model, or differs between groups of rows."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, Literal, TypeAlias, final

import numpy as np
import pandas as pd

from propopt.base.arrays import Array, Positions, Truths, Values
from propopt.base.cards import N_FEATURES, Card, CardRow, others_in_words
from propopt.base.checks import read_count
from propopt.base.declared import Declared, stored
from propopt.base.errors import InvalidInput
from propopt.base.text import Quantity, enumerated, in_short
from propopt.losses.faithfulness import Units
from propopt.results.certain import explained, plural
from propopt.results.explanation import Parameter
from propopt.results.report.chapters import (
    Chapter,
    Headline,
    Statement,
    bars,
    chosen,
    sentence,
)
from propopt.results.result import Result
from propopt.tables.frames import Labels


# ---- How far columns move without a change, and what that is worth as a level


LevelKind: TypeAlias = Literal["halvings", "bootstraps", "reseedings", "permutations"]

ALARMS: Final[Mapping[LevelKind, tuple[int, int]]] = {
    "halvings": (3, 400),
    "bootstraps": (14, 400),
    "permutations": (15, 400),
}
"""Tables without a change that were flagged, of how many: counted by simulation in
``benchmarks/version_changes.py``. Seeds alone are no level of a change."""

_FACTORS: Final[Mapping[LevelKind, float]] = {"bootstraps": 1.25}
"""Bootstraps share rows, and move less than tables do: their level is raised."""

SHARE: Final = 0.05
"""Of divisions by chance that are above the level of permutations."""


@final
class NullLevel(Declared, eq=True):
    """How far columns moved where nothing changed: between refits, or by chance."""

    kind: LevelKind
    n_models: int = stored(low=1)  # refits, or divisions
    distances: Array = stored("R D", low=0.0, nonempty=True)
    sizes: Array = stored("R D", low=0.0)  # |difference of mean |φ||
    cells: Values | None = stored("R", low=0.0, default=None)  # the largest of each

    @property
    def limit(self) -> float:
        """The distance beyond which a column is flagged: that of any column."""
        return self._of(self.distances.max(axis=1))

    @property
    def size_limit(self) -> float:
        """The same of differences of mean |φ|, which flag nothing."""
        return self._of(self.sizes.max(axis=1))

    @property
    def cell_limit(self) -> float:
        """The same of single cells: the largest of a whole table; NaN if not known."""
        return math.nan if self.cells is None else self._of(self.cells)

    def _of(self, largest: Values) -> float:
        """Of the largest of each pair, (R,).

        Of P divisions by chance and the real one each is equally likely to be among the
        5 % largest, so that the ⌈0.95 (P + 1)⌉-th smallest errs in 5 % at most.
        """
        if self.kind == "permutations":
            place = math.ceil((1.0 - SHARE) * (len(largest) + 1)) - 1
            return float(np.sort(largest)[min(place, len(largest) - 1)])
        return _FACTORS.get(self.kind, 1.0) * float(largest.max())

    @property
    def in_words(self) -> str:
        """What moved them, behind "than any column did"."""
        match self.kind:
            case "halvings":
                return f"in {self.n_models} refits on halves of the old data"
            case "bootstraps":
                return (
                    f"between {self.n_models} bootstraps of the old data, by a quarter"
                )
            case "reseedings":
                return f"in {self.n_models} refits with other seeds"
            case _:
                return f"in 95 % of {self.n_models:,} divisions by chance"


# ---- The statistics: row by row where rows are the same, of means where they are not


def distances_of(before: Array, after: Array) -> Values:
    """(Σ_n (φ'_nj − φ_nj)²/N)^½ of each column, (D,): of the same rows (N, D)."""
    return np.asarray(np.sqrt(((after - before) ** 2).mean(axis=0)))


def group_distances(before: Array, after: Array) -> Values:
    """How far means of φ or of |φ| are apart, whichever is more, (D,): of any rows."""
    moved = after.mean(axis=0) - before.mean(axis=0)
    return np.asarray(np.maximum(np.abs(moved), size_changes(before, after)))


def size_changes(before: Array, after: Array) -> Values:
    """The difference of mean |φ| of each column in size, (D,)."""
    means = np.abs(after).mean(axis=0) - np.abs(before).mean(axis=0)
    return np.asarray(np.abs(means))


# ---- What is found


_MOST_NAMED: Final = 3
"""Columns that have a sentence each; the others share one."""

_QUESTIONS: Final = {"versions": "What changed", "groups": "What differs"}

_MEANS: Final = {
    "versions": "root mean square over the same rows",
    "groups": "means of attributions, or of their sizes",
}
"""What a distance of two columns is."""

_HEADS: Final = {
    "levels": "in levels",
    "mean_size_before": "mean size before",
    "mean_size_after": "after",
    "size_levels": "size in levels",
    "optimized_distance": "distance if optimized",
    "price": "price in mean rows",
}
"""Columns of the table on a page, in words."""

_LEAST_PRICE: Final = 1.0
"""Mean rows: a change that costs less to hide is said to be within the choice."""


@final
class Comparison(
    Result, kind="propopt comparison", noun="a saved comparison", version=1, eq=True
):
    """Where two versions differ, column by column, beside what chance alone does.

    Parameters
    ----------
    kind : {"versions", "groups"}
        Two versions of a model at the same rows; or one model at two groups of rows.
    names : tuple of two str
        What the two sides are called.
    before, after : array (N, D), (M, D)
        What each side says: Shapley values or slopes, before anything is optimized. Of
        versions their rows are the same.
    labels : Labels
        Names of the rows of ``before`` and of the features.
    sources : tuple of two str
        How these numbers were made.
    level : NullLevel or None
        How far columns move without a change. Without one there are no flags.
    optimized : array (D,) or None
        Distances of the optimized explanations of both sides.
    prices : array (D,) or None
        What hiding the change of a column costs: both explanations would have to be
        worse by at least so many mean rows of the first objective, ‖d_j‖²_H/4 over
        F(W)/N, less what the certificates of both leave open.
    base_values : tuple of two floats or None
        What contributions of each side are added to.
    units : {"gradient", "output", "scaled"}
        Of all but the prices.
    quantity : Quantity or None
        What both explain.
    parameters : mapping
        The settings.

    Examples
    --------
    >>> import numpy as np, propopt as po
    >>> W = np.array([[1.0, 2.0], [3.0, -2.0]])
    >>> old = po.results.Explanation(attributions=W, method="old")
    >>> new = po.results.Explanation(attributions=W + [0.0, 0.5], method="new")
    >>> found = po.compare(old, new)
    >>> found.to_frame()["distance"].tolist(), found.beyond.tolist()
    ([0.5, 0.0], [False, False])
    """

    kind: Literal["versions", "groups"] = stored()
    names: tuple[str, str] = stored()
    before: Array = stored("N D", nonempty=True)
    after: Array = stored("M D", nonempty=True)
    labels: Labels = stored(default=Labels())
    sources: tuple[str, str] = stored()
    level: NullLevel | None = stored(default=None)
    optimized: Values | None = stored("D", low=0.0, default=None)
    prices: Values | None = stored("D", low=0.0, default=None)
    base_values: tuple[float, float] | None = stored(default=None)
    units: Units = stored(default="output")
    quantity: Quantity | None = stored(default=None)
    parameters: Mapping[str, Parameter] = stored(factory=dict)

    def contradictions(self) -> None:
        """Refuse other rows, other names, and a level of other columns."""
        self.labels.check(self.before.shape, "labels")
        if self.kind == "versions" and self.before.shape != self.after.shape:
            raise InvalidInput(
                f"after: expected the shape of before, {self.before.shape}, got "
                f"{self.after.shape}"
            )
        if self.level is None:
            return
        n_columns = self.before.shape[1]
        if self.level.distances.shape[1] != n_columns:
            raise InvalidInput(f"level: expected distances of {n_columns} columns")
        if (self.level.kind == "permutations") != (self.kind == "groups"):
            raise InvalidInput(f"level: {self.level.kind} are none of {self.kind}")

    @property
    def features(self) -> tuple[str, ...]:
        """The names of the columns."""
        return self.labels.feature_names(self.before.shape[1])

    @property
    def distances(self) -> Values:
        """How far the two sides are apart in each column, (D,)."""
        measure = distances_of if self.kind == "versions" else group_distances
        return measure(self.before, self.after)

    @property
    def _limits(self) -> tuple[float, float, float]:
        """Of distances, sizes and cells; NaN, which nothing is beyond, if not known."""
        own = self.level
        if own is None:
            return math.nan, math.nan, math.nan
        return own.limit, own.size_limit, own.cell_limit

    @property
    def ratios(self) -> Values:
        """Distances in levels, (D,); NaN without a level."""
        return np.asarray(self.distances / self._limits[0])

    @property
    def beyond(self) -> Truths:
        """The columns that differ more than any does by chance, (D,)."""
        return np.asarray(self.distances > self._limits[0])

    def to_frame(self) -> pd.DataFrame:
        """One row for each column, the farthest apart first."""
        sizes = [np.abs(side).mean(axis=0) for side in (self.before, self.after)]
        unknown, W, c = math.nan, self.optimized, self.prices
        table = pd.DataFrame(
            {
                "distance": self.distances,
                "levels": self.ratios,
                "beyond": self.beyond,
                "mean_size_before": sizes[0],
                "mean_size_after": sizes[1],
                "size_levels": size_changes(self.before, self.after) / self._limits[1],
                "optimized_distance": unknown if W is None else W,
                "price": unknown if c is None else c,
            },
            index=pd.Index(self.features, name="feature"),
        )
        return table.iloc[self._order].reset_index()

    def cells(self, k: int = 10) -> pd.DataFrame:
        """The k cells that differ most, (row, feature), beside the table-wide level.

        Parameters
        ----------
        k : int
            How many.

        Returns
        -------
        DataFrame
            ``before`` and ``after``, and in ``levels`` their difference over the
            largest difference of any cell between refits; NaN without these.

        Raises
        ------
        InvalidInput
            If groups are compared, which have no rows in common.
        """
        if self.kind == "groups":
            raise InvalidInput("cells: two groups have no rows in common")
        moved = np.abs(self.after - self.before)
        order = np.argsort(-moved, axis=None, kind="stable")[: read_count(k, "k")]
        rows, columns = np.unravel_index(order, moved.shape)
        return pd.DataFrame(
            {
                "row": [self.labels.row(n) for n in rows.tolist()],
                "feature": [self.features[j] for j in columns.tolist()],
                "before": self.before[rows, columns],
                "after": self.after[rows, columns],
                "levels": moved[rows, columns] / self._limits[2],
            }
        )

    def in_words(self) -> list[str]:
        """What was found, a sentence each; the first is the finding."""
        return [statement.text for statement in self.statements()]

    def statements(self) -> Iterator[Statement]:
        """The same with what each rests on."""
        order, level = self._order.tolist(), self.level
        flagged = [j for j in order if self.beyond[j]]
        if level is None:
            words = "No refits were given: columns are ranked, and none is flagged."
            yield Statement(words, "not said")
            how = (
                "a row (root mean square)" if self.kind == "versions" else "on average"
            )
            size = f"{self.distances[order[0]]:.3g}{self._noun} {how}"
            words = f"{self.features[order[0]]} differs most, by {size}."
            if not self.distances.any():
                words = f"{' and '.join(self.names)} are the same in every column."
            yield Statement(words, "checked")
        else:
            yield from self._flags(level, flagged)
            if quiet := len(order) - len(flagged):
                yield Statement(self._rest(plural(quiet, "column")), "not said")
        if flagged and self.prices is not None:
            yield self._price_of(flagged[0])
        if self.base_values is not None and self.kind == "versions":
            one, other = self.base_values
            words = f"The base went from {one:.4g} to {other:.4g}{self._noun}."
            yield Statement(words, "checked")
        if level is not None and level.cells is not None:
            moved = np.abs(self.after - self.before) > level.cell_limit
            words = f"{int(moved.sum()):,} of {moved.size:,} cells moved more than any"
            yield Statement(f"{words} cell did in refits.", "estimated")

    def _flags(self, level: NullLevel, flagged: list[int]) -> Iterator[Statement]:
        """Which columns are beyond the level, and how often one is without a change."""
        verb, told = self._verb, []
        if not flagged:
            told.append(f"No column {verb} more than any did {level.in_words}.")
        for j in flagged[:_MOST_NAMED]:
            words = f"{self.features[j]} {verb} more ({self.ratios[j]:.1f}×) than any"
            told.append(f"{words} column did {level.in_words}.")
        if rest := flagged[_MOST_NAMED:]:
            names = [f"{self.features[j]} ({self.ratios[j]:.1f}×)" for j in rest]
            told.append(f"So did {enumerated(names, 'and')}.")
        if level.kind == "reseedings":
            told.append("This is the level of seeds alone; new data move more.")
        elif flagged:
            alarms, pairs = ALARMS[level.kind]
            words = f"Such an alarm without a {self._change} came in {alarms:,} of "
            told.append(f"{words}{pairs:,} simulations, of other data.")
        for words in told:
            yield Statement(words, "estimated")

    def _price_of(self, j: int) -> Statement:
        """Whether a choice among explanations can account for a change."""
        assert self.prices is not None, "it is asked for where it is known"
        price, name = float(self.prices[j]), self.features[j]
        words = f"No near-optimal explanation hides the {self._change} of {name}: both "
        words += f"would be worse by {price:.3g} mean rows or more."
        if price < _LEAST_PRICE:
            words = "Another choice among explanations could perhaps hide the "
            words += f"{self._change} of {name}, for {price:.2g} mean rows of each."
        return Statement(words, "proved")

    @property
    def _change(self) -> str:
        """What is looked for."""
        return "change" if self.kind == "versions" else "difference"

    @property
    def _verb(self) -> str:
        """Seeds alone show no change, and groups are none."""
        if self.kind == "groups" or self.level is None:
            return "differs"
        return "differs" if self.level.kind == "reseedings" else "changed"

    def _rest(self, columns: str) -> str:
        """What is said of the others, and what that does not show."""
        if self.kind == "groups":
            words = "no difference is beyond chance; that does not show that they agree"
            return f"Of {columns} {words}."
        if self._verb == "differs":
            return f"Of {columns} no difference is beyond that of seeds."
        words = "changed no more than refitting does; that does not show that they are"
        return f"{columns} {words} unchanged."

    @property
    def _noun(self) -> str:
        """The unit of a number behind it, where it has a name."""
        own = self.quantity
        noun = "" if own is None or own.kind == "value" else f" {own.noun}"
        return f"{noun} per scale" if self.units == "scaled" else noun

    @property
    def _unit(self) -> str:
        """That of distances."""
        known = self.quantity is not None and self.quantity.kind != "value"
        return self._noun.strip() if known else f"units of the prediction{self._noun}"

    @property
    def _order(self) -> Positions:
        return np.argsort(-self.distances, kind="stable")

    def card(self, n_features: int = N_FEATURES) -> Card:
        """What was found, distances of columns, and how likely a false alarm is."""
        first, *sentences = self.in_words()
        order = self._order
        shown = order[: read_count(n_features, "n_features")].tolist()
        level = "" if self.level is None else f"; the level is {self.level.limit:.3g}"
        return Card(
            title=f"{first.rstrip('.')}{explained(self.quantity)}",
            subtitle=f"how far {' and '.join(self.names)} are apart in each column: "
            f"{_MEANS[self.kind]}, in {self._unit}{level}",
            rows=[self._row(j) for j in shown],
            rest=others_in_words(self.distances[order[len(shown) :]]),
            lines=sentences,
            proof=self._proof,
            settings={name: in_short(x) for name, x in self.parameters.items()},
        )

    def _row(self, j: int) -> CardRow:
        """The distance of a column, in levels if there is one, and its mean |φ|."""
        one, other = (np.abs(side[:, j]).mean() for side in (self.before, self.after))
        note = f"mean size {one:.3g} to {other:.3g}"
        if self.level is not None:
            note = f"{self.ratios[j]:.2f} × the level; {note}"
        return CardRow(
            name=self.features[j], value=self.distances[j], note=note, sign="-"
        )

    @property
    def _proof(self) -> str:
        """What is proved, what is tested, and what is not said."""
        parts = ["prices are proved"] if self.prices is not None else []
        if self.level is None:
            parts.append("nothing is tested without refits")
        elif self.level.kind in ALARMS:
            parts.append("changes are tested; false alarms were counted by simulation")
        return "; ".join(parts)

    def chapters(self) -> Sequence[Chapter]:
        """What a report has: what changed, each column, and the cells that moved most.

        A picture has the distances of the columns, the farthest apart first.
        """
        statements, card = [*self.statements()], self.card()
        caption = sentence(card.subtitle)
        title = f"{_QUESTIONS[self.kind]} between {' and '.join(self.names)}"
        table = self.to_frame().set_index("feature")
        if self.level is None:  # what is not tested is no "no"
            table = table.drop(columns="beyond").dropna(axis=1, how="all")
        table = table.rename(columns=_HEADS)
        parts = [
            Chapter(
                title=f"{title}{explained(self.quantity)}",
                statements=[*statements, *chosen(card)],
                headlines=[*self._headlines(statements[0].text)],
                picture=bars(card.rows, caption),
                no_words=self.features,
            ),
            Chapter(
                title="Columns",
                lead=" ".join(self.in_words()),
                table=table,
                caption=caption,
            ),
        ]
        if self.kind == "versions":
            words = (
                "The attributions that differ most; a cell is one row in one column."
            )
            parts.append(
                Chapter(
                    title="Cells",
                    table=self.cells().dropna(axis=1, how="all"),
                    caption=words,
                )
            )
        return tuple(parts)

    def _headlines(self, finding: str) -> Iterator[Headline]:
        """What is farthest apart, how often that is chance, and what hides it."""
        question, j = f"{_QUESTIONS[self.kind]}?", int(self._order[0])
        if self.level is None:
            yield Headline(question, "not tested", finding)
            return
        if not self.beyond[j]:
            yield Headline(question, "nothing that is seen", finding)
            return
        flagged = [self.features[i] for i in self._order if self.beyond[i]]
        answer = plural(len(flagged), "column")
        if len(flagged) <= _MOST_NAMED:
            answer = enumerated(flagged, "and")
        yield Headline(question, answer, finding)
        if self.level.kind in ALARMS:
            alarms, pairs = ALARMS[self.level.kind]
            words = f"simulations without a {self._change}, of other data, had such an "
            words += "alarm."
            yield Headline("Could it be chance?", f"{alarms:,} of {pairs:,}", words)
        if self.prices is not None:
            price = f"{self.prices[j]:.3g} mean rows"
            question = "What would another explanation cost?"
            yield Headline(question, price, self._price_of(j).text)

    def __repr__(self) -> str:
        return f"Comparison({' '.join(self.in_words())})"
