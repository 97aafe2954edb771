"""What changed between two versions of a model, or differs between groups of rows.

Columns are compared row by row and by their mean sizes |φ|, versions by their base as
well. All are held against the same refits, and have one rate of false alarms together.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Final, Literal, TypeAlias, final

import numpy as np
import pandas as pd
from scipy.stats import t as student

from propopt.base.arrays import Array, Indices, Mask, Values
from propopt.base.checks import read_count
from propopt.base.declared import Declared, field
from propopt.base.document import (
    Bar,
    Bars,
    Chapter,
    Document,
    Finding,
    sentence,
    table_chapter,
)
from propopt.base.errors import InvalidInput
from propopt.base.text import (
    Quantity,
    enumerated,
    for_quantity,
    in_short,
    plural,
    printable,
)
from propopt.losses.faithfulness import Units
from propopt.results.explanation import Parameter
from propopt.results.result import Result
from propopt.tables.frames import Labels


# ---- How far columns move without a change, and what that is worth as a level


LevelKind: TypeAlias = Literal[
    "split_half_refits", "bootstrap_refits", "seed_refits", "permutations"
]

ALARMS: Final[Mapping[LevelKind, tuple[int, int]]] = {
    "split_half_refits": (3, 400),
    "bootstrap_refits": (14, 400),
    "permutations": (15, 400),
}
"""Tables without a change that were flagged, of how many: counted by simulation in
``benchmarks/version_changes.py``. Seeds alone are no level of a change."""

_FACTORS: Final[Mapping[LevelKind, float]] = {"bootstrap_refits": 1.25}
"""Bootstraps share rows, and move less than tables do: their level is raised."""

SHARE_OF_ALARMS: Final = 0.05
"""The false alarms of a comparison, at most: of divisions by chance, exactly; of
versions, whose tables have as many rows, those of distances and of sizes together."""

SHARE_OF_SIZES: Final = 0.024
"""The false alarms of mean sizes and of the base together, at most. Distances have the
rest: P(|Z| > √2 maxₖ|Zₖ|) = 2.6 % with ten split_half_refits, whose differences have twice the
variance. Distances that add up more squares than one exceed the largest less often."""

LEAST_SIZE: Final = 0.01
"""Of all mean sizes together: what changes by less than this is not flagged."""


@final
class NullLevel(Declared, eq=True):
    """How far columns moved where nothing changed: between refits, or by chance."""

    kind: LevelKind
    n_models: int = field(low=1)  # refits, or divisions
    distances: Array = field("R D", low=0.0, nonempty=True)
    sizes: Array | None = field("R S", default=None)  # changes of mean |φ|; of all
    least: float = field(low=0.0, default=0.0)  # changes that are no finding
    bases: Values | None = field("R", default=None)  # changes
    cells: Values | None = field("R", low=0.0, default=None)  # the largest of each

    def validate(self) -> None:
        """Refuse sizes of other columns."""
        n_columns = self.distances.shape[1]
        if self.sizes is not None and self.sizes.shape[1] != n_columns + 1:
            raise InvalidInput(
                f"sizes: expected {n_columns} columns and all together, got "
                f"{self.sizes.shape[1]}"
            )

    @property
    def limit(self) -> float:
        """The distance beyond which a column is flagged: that of any column."""
        return self._of(self.distances.max(axis=1))

    @property
    def quantile(self) -> float:
        """How many scales a mean size or the base changes by chance, at most.

        A change between halves is as likely up as down, and its scale is the root mean
        square of R of them, so that a change over its scale is Student's with R degrees
        of freedom. All columns, their sum and the base share one rate. Bootstraps are
        of M models, and have M − 1 degrees.
        """
        n_tests = self.distances.shape[1] + 1 + (self.bases is not None)
        free = (
            self.n_models
            if self.kind == "split_half_refits"
            else max(self.n_models - 1, 1)
        )
        tail = SHARE_OF_SIZES / (2 * n_tests)
        return _FACTORS.get(self.kind, 1.0) * float(student.isf(tail, free))

    @property
    def size_limits(self) -> Values:
        """Beyond which changes of mean |φ| are flagged, (D + 1,), the last of all.

        They are of differences, whose scale is the same near zero as elsewhere; that of
        their logarithms is not.
        """
        if self.sizes is None:
            return np.full(self.distances.shape[1] + 1, math.nan)
        scales = np.sqrt((self.sizes**2).mean(axis=0))
        return np.maximum(self.quantile * scales, self.least)

    @property
    def base_limit(self) -> float:
        """Beyond which a change of the base is flagged; NaN if there is none."""
        if self.bases is None:
            return math.nan
        scale = math.sqrt(float((self.bases**2).mean()))
        return max(self.quantile * scale, self.least)

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
            place = math.ceil((1.0 - SHARE_OF_ALARMS) * (len(largest) + 1)) - 1
            return float(np.sort(largest)[min(place, len(largest) - 1)])
        return _FACTORS.get(self.kind, 1.0) * float(largest.max())

    @property
    def in_words(self) -> str:
        """What moved them, behind "than any column did"."""
        match self.kind:
            case "split_half_refits":
                return f"in {self.n_models} refits on halves of the old data"
            case "bootstrap_refits":
                return f"between {self.n_models} bootstrap_refits of the old data, by a quarter"
            case "seed_refits":
                return f"in {self.n_models} refits with other seeds"
            case _:
                return f"in 95 % of {self.n_models:,} divisions by chance"


# ---- The statistics: row by row where rows are the same, of means where they are not


def distances_of(before: Array, after: Array) -> Values:
    """(Σ_n (φ'_nj − φ_nj)²/N)^½ of each column, (D,): of the same rows (N, D)."""
    return np.asarray(np.sqrt(((after - before) ** 2).mean(axis=0)))


def group_distances(before: Array, after: Array) -> Values:
    """How far means of φ or of |φ| are apart, whichever is more, (D,): of any rows."""
    both = mean_changes(before, after), size_changes(before, after)
    return np.asarray(np.abs(both).max(axis=0))


def mean_changes(before: Array, after: Array) -> Values:
    """The difference of means of φ in each column, (D,), with its sign."""
    return np.asarray(after.mean(axis=0) - before.mean(axis=0))


def size_changes(before: Array, after: Array) -> Values:
    """The difference of mean |φ| of each column, (D,), with its sign."""
    return mean_changes(np.abs(before), np.abs(after))


def column_sizes(phi: Array) -> Values:
    """The mean |φ| of each column, and of all together, (D + 1,)."""
    sizes = np.abs(phi).mean(axis=0)
    return np.append(sizes, sizes.sum())


def unfolded_changes(one: Array, other: Array) -> Values:
    """Changes of mean |φ| between two halves, and of all columns, (D + 1,).

    Each row has |φ'_n − φ_n|, with the sign of |φ'_n| − |φ_n|. If φ_n and φ'_n have one
    sign, this is the change of |φ_n| itself. An effect in one half of a table is as far
    above that in the whole as the effect in the other half is below. If the whole has
    almost none, the two sizes agree, although the effects do not.
    """
    grown = np.sign(np.abs(other) - np.abs(one)) * np.abs(other - one)
    means = grown.mean(axis=0)
    return np.append(means, means.sum())


# ---- What is found


_ON_PAGE: Final = 15
"""Columns with a bar, those that are farthest apart."""

_MOST_NAMED: Final = 3
"""Columns that have a sentence each; the others share one."""

_MEANS: Final = {
    "versions": "root mean square over the same rows",
    "groups": "means of attributions, or of their sizes",
}
"""What a distance of two columns is."""

_HEADS: Final = {
    "levels": "in levels",
    "mean_size_before": "mean size before",
    "mean_size_after": "after",
    "size_factor": "factor",
    "size_ratios": "factor in levels",
    "size_flagged": "size beyond",
    "detectable_factor": "seen from factor",
    "mean_difference": "difference of means",
    "distance_of": "distance of",
    "optimized_distance": "distance if optimized",
    "price": "price in mean rows",
}
"""Columns of the table on a page, in words."""

_LEAST_PRICE: Final = 1.0
"""Mean rows: a change that costs less to hide is said to be within the choice."""


def _factors(before: Values, after: Values) -> Values:
    """After over before; infinite where nothing was, NaN where nothing is either."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(after / before)


def _number(x: float, how: str = ".4g") -> str:
    """A number with a minus sign that is one."""
    return format(x, how).replace("-", "−")


def _times(before: float, after: float) -> str:
    """A factor in brackets, where there is one."""
    return f" (×{after / before:.2g})" if before > 0.0 else ""


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

    kind: Literal["versions", "groups"] = field()
    names: tuple[str, str] = field()
    before: Array = field("N D", nonempty=True)
    after: Array = field("M D", nonempty=True)
    labels: Labels = field(default=Labels())
    sources: tuple[str, str] = field()
    level: NullLevel | None = field(default=None)
    optimized: Values | None = field("D", low=0.0, default=None)
    prices: Values | None = field("D", low=0.0, default=None)
    base_values: tuple[float, float] | None = field(default=None)
    units: Units = field(default="output")
    quantity: Quantity | None = field(default=None)
    parameters: Mapping[str, Parameter] = field(factory=dict)

    def validate(self) -> None:
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
    def _limits(self) -> tuple[float, float]:
        """Of distances and cells; NaN, which nothing is beyond, if not known."""
        own = self.level
        return (math.nan,) * 2 if own is None else (own.limit, own.cell_limit)

    @property
    def ratios(self) -> Values:
        """Distances in levels, (D,); NaN without a level."""
        return np.asarray(self.distances / self._limits[0])

    @property
    def distance_flagged(self) -> Mask:
        """The columns that are farther apart than any is by chance, (D,)."""
        return np.asarray(self.distances > self._limits[0])

    @property
    def _size_levels(self) -> Values:
        """Changes of mean sizes in levels, (D + 1,), the last of all together."""
        own, moved = (
            self.level,
            np.abs(column_sizes(self.after) - column_sizes(self.before)),
        )
        if own is None:
            return np.full(len(moved), math.nan)
        if self.kind == "groups":
            return np.append(moved[:-1] / own.limit, math.nan)
        return np.asarray(moved / own.size_limits)

    @property
    def size_ratios(self) -> Values:
        """Changes of mean |φ| in their levels, (D,); NaN without a level.

        Of versions each column has its own level; of groups it is that of distances.
        """
        return self._size_levels[:-1]

    @property
    def size_flagged(self) -> Mask:
        """The columns whose mean |φ| changed more than by chance, (D,)."""
        return self.size_ratios > 1.0

    @property
    def flagged(self) -> Mask:
        """The columns that are flagged by their distance or their mean size, (D,)."""
        return self.distance_flagged | self.size_flagged

    @property
    def total_flagged(self) -> bool:
        """Whether mean sizes of all columns together did."""
        return bool(self._size_levels[-1] > 1.0)

    @property
    def detectable_factor(self) -> Values:
        """The factors from which a growth of mean |φ| would have been flagged, (D,).

        NaN without a level, and of groups; infinite for a column without size before.
        """
        sizes = np.abs(self.before).mean(axis=0)
        if self.level is None or self.kind == "groups":
            return np.full(len(sizes), math.nan)
        return _factors(sizes, sizes + self.level.size_limits[:-1])

    @property
    def base_flagged(self) -> bool:
        """Whether the base changed more than by chance."""
        if self.level is None or self.base_values is None:
            return False
        one, other = self.base_values
        return bool(abs(other - one) > self.level.base_limit)

    @property
    def _distance_of(self) -> list[str]:
        """What is apart by each distance: rows, means or mean sizes."""
        if self.kind == "versions":
            return ["rows"] * len(self.features)
        moved = (f(self.before, self.after) for f in (mean_changes, size_changes))
        one, other = map(np.abs, moved)
        return np.where(one >= other, "means", "sizes").tolist()

    def to_frame(self) -> pd.DataFrame:
        """One row for each column, the farthest apart first."""
        one, other = (column_sizes(side)[:-1] for side in (self.before, self.after))
        unknown, W, c = math.nan, self.optimized, self.prices
        table = pd.DataFrame(
            {
                "distance": self.distances,
                "distance_of": self._distance_of,
                "levels": self.ratios,
                "beyond": self.distance_flagged,
                "mean_difference": mean_changes(self.before, self.after),
                "mean_size_before": one,
                "mean_size_after": other,
                "size_factor": _factors(one, other),
                "size_ratios": self.size_ratios,
                "size_flagged": self.size_flagged,
                "detectable_factor": self.detectable_factor,
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
                "levels": moved[rows, columns] / self._limits[1],
            }
        )

    def findings(self) -> Iterator[Finding]:
        """What was found, a sentence each with what it rests on."""
        order, level = self._order.tolist(), self.level
        flagged = [j for j in order if self.distance_flagged[j]]
        if level is None:
            words = "No refits were given: columns are ranked, and none is flagged."
            yield Finding(words, "not said")
            how = (
                "a row (root mean square)" if self.kind == "versions" else "on average"
            )
            size = f"{self.distances[order[0]]:.3g}{self._noun} {how}"
            words = f"{self.features[order[0]]} differs most, by {size}."
            if not self.distances.any():
                words = f"{' and '.join(self.names)} are the same in every column."
            yield Finding(words, "checked")
            yield from self._base(level)
        else:
            resized = [*self._resized(level)]
            if self.kind == "groups":
                resized = [*self._apart(flagged)]
            flags = [*self._flags(level, flagged, alone=not resized)]
            yield from [*flags, *resized] if flagged else [*resized, *flags]
            if not self.base_flagged:
                yield from self._base(level)
            quiet = ~self.flagged
            if quiet.any():
                words = self._rest(plural(int(quiet.sum()), "column"))
                yield Finding(words, "not said")
            if self.kind == "versions":
                yield from self._power(np.flatnonzero(quiet))
        if flagged and self.prices is not None:
            yield self._price_of(flagged[0])
        if level is not None and level.cells is not None:
            moved = np.abs(self.after - self.before) > level.cell_limit
            words = f"{int(moved.sum()):,} of {moved.size:,} cells moved more than any"
            yield Finding(f"{words} cell did in refits.", "estimated")

    def _flags(
        self, level: NullLevel, flagged: list[int], alone: bool
    ) -> Iterator[Finding]:
        """Which columns are beyond the level, and how often one is without a change."""
        verb, told = self._verb, []
        if not flagged:
            start = "No column" if alone else "Row by row no column"
            told.append(f"{start} {verb} more than any did {level.in_words}.")
        for j in flagged[:_MOST_NAMED]:
            words = f"{self.features[j]} {verb} more ({self.ratios[j]:.1f}×) than any"
            told.append(f"{words} column did {level.in_words}.")
        if rest := flagged[_MOST_NAMED:]:
            names = [f"{self.features[j]} ({self.ratios[j]:.1f}×)" for j in rest]
            told.append(f"So did {enumerated(names, 'and')}.")
        if level.kind == "seed_refits":
            told.append("This is the level of seeds alone; new data move more.")
        elif flagged:
            alarms, pairs = ALARMS[level.kind]
            words = f"Such an alarm without a {self._change} came in {alarms:,} of "
            told.append(f"{words}{pairs:,} simulations, of other data.")
        for words in told:
            yield Finding(words, "estimated")

    def _resized(self, level: NullLevel) -> Iterator[Finding]:
        """Which mean sizes changed, by which factor, and the base, by how much."""
        levels = self._size_levels
        pair = [column_sizes(side) for side in (self.before, self.after)]
        names = [*self.features, "all columns together"]
        order = np.argsort(-np.nan_to_num(levels), kind="stable")
        found = [j for j in order.tolist() if levels[j] > 1.0]
        for j in found[:_MOST_NAMED]:
            one, other = (float(sizes[j]) for sizes in pair)
            words = f"The mean size of {names[j]} went from {one:.3g} to {other:.3g}"
            words += f"{_times(one, other)}, {levels[j]:.1f}× the level of chance."
            yield Finding(words, "estimated")
        if rest := found[_MOST_NAMED:]:
            said = [f"{names[j]}{_times(pair[0][j], pair[1][j])}" for j in rest]
            words = f"So did the mean size of {enumerated(said, 'and')}."
            yield Finding(words, "estimated")
        if self.base_flagged:
            yield from self._base(level)
        if (found or self.base_flagged) and level.kind != "seed_refits":
            words = "Chance alone gives such a size or base in at most "
            words += f"{100.0 * SHARE_OF_SIZES:.1f} % of comparisons."
            yield Finding(words, "estimated")

    def _base(self, level: NullLevel | None) -> Iterator[Finding]:
        """What the base was and is, and which change would have been seen."""
        if self.base_values is None or self.kind == "groups":
            return
        one, other = self.base_values
        said = _number(one), f"{_number(other)}{self._noun}"
        words = f"The base went from {' to '.join(said)} "
        words += f"({_number(other - one, '+.3g')})"
        if level is None or level.bases is None:
            yield Finding(f"{words}.", "checked")
        elif self.base_flagged:
            ratio = abs(other - one) / level.base_limit
            yield Finding(f"{words}, {ratio:.1f}× the level of chance.", "estimated")
        else:
            words += f"; a change of {level.base_limit:.2g} would have been seen."
            yield Finding(words, "estimated")

    def _power(self, quiet: Indices) -> Iterator[Finding]:
        """From which factor on sizes of the quiet columns would have been flagged."""
        known = [j for j in quiet.tolist() if np.isfinite(self.detectable_factor[j])]
        if not known:
            return
        order = sorted(known, key=lambda j: float(self.detectable_factor[j]))
        said = [
            f"×{self.detectable_factor[j]:.2g} in {self.features[j]}" for j in order
        ]
        if len(said) > 1:
            said = [said[0], f"of {said[-1]}"]
        words = f"A change of mean size of {' and '.join(said)} would have been seen"
        more = "; others lie between" if len(known) > 2 else ""
        yield Finding(f"{words}{more}.", "estimated")

    def _apart(self, flagged: list[int]) -> Iterator[Finding]:
        """Which way groups differ: in means with their sign, in sizes, or in both."""
        first, second = self.names
        assert self.level is not None, "columns are flagged"
        moved = [
            ("mean", mean_changes(self.before, self.after)),
            ("mean size", size_changes(self.before, self.after)),
        ]
        for j in flagged[:_MOST_NAMED]:
            for noun, by in moved:
                if abs(by[j]) > self.level.limit:
                    words = f"The {noun} of {self.features[j]} is {abs(by[j]):.3g}"
                    words += f"{self._noun} {'higher' if by[j] > 0.0 else 'lower'} in "
                    yield Finding(f"{words}{second} than in {first}.", "estimated")

    def _price_of(self, j: int) -> Finding:
        """Whether a choice among explanations can account for a change."""
        assert self.prices is not None, "it is asked for where it is known"
        price, name = float(self.prices[j]), self.features[j]
        words = f"No near-optimal explanation hides the {self._change} of {name}: both "
        words += f"would be worse by {price:.3g} mean rows or more."
        if price < _LEAST_PRICE:
            words = "Another choice among explanations could perhaps hide the "
            words += f"{self._change} of {name}, for {price:.2g} mean rows of each."
        return Finding(words, "proved")

    @property
    def _change(self) -> str:
        """What is looked for."""
        return "change" if self.kind == "versions" else "difference"

    @property
    def _verb(self) -> str:
        """Seeds alone show no change, and groups are none."""
        if self.kind == "groups" or self.level is None:
            return "differs"
        return "differs" if self.level.kind == "seed_refits" else "changed"

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
    def unit(self) -> str:
        """That of distances."""
        known = self.quantity is not None and self.quantity.kind != "value"
        return self._noun.strip() if known else f"units of the prediction{self._noun}"

    @property
    def _order(self) -> Indices:
        return np.argsort(-self.distances, kind="stable")

    def document(self) -> Document:
        """What was found, distances of columns, and how likely a false alarm is."""
        (first, *others), order = self.findings(), self._order.tolist()
        level = "" if self.level is None else f"; the level is {self.level.limit:.3g}"
        subtitle = f"how far {' and '.join(self.names)} are apart in each column: "
        subtitle += f"{_MEANS[self.kind]}, in {self.unit}{level}"
        shown, rest = order[:_ON_PAGE], self.distances[order[_ON_PAGE:]]
        bars = Bars([self._row(j) for j in shown], subtitle, rest)
        return Document(
            title=f"{first.sentence.rstrip('.')}{for_quantity(self.quantity)}",
            subtitle=subtitle,
            blocks=[bars, *others],
            trust=[*self._trust(first)],
            settings={name: in_short(x) for name, x in self.parameters.items()},
            chapters=self._chapters,
            names=self.features,
        )

    def _trust(self, first: Finding) -> Iterator[Finding]:
        """What is proved, what is tested, and how often chance does the same."""
        if self.prices is not None:
            yield Finding("prices are proved", "proved")
        if self.level is None:
            yield Finding("nothing is tested without refits", "not said")
        elif self.level.kind in ALARMS:
            alarms, pairs = ALARMS[self.level.kind]
            yield Finding(
                "changes are tested; false alarms were counted by simulation",
                first.basis,
                "How often does chance raise an alarm?",
                f"{alarms:,} of {pairs:,}",
            )

    def _chapters(self) -> list[Chapter]:
        """Each column, and the cells that moved most."""
        table = self.to_frame().set_index("feature")
        if self.level is None:  # what is not tested is no "no"
            table = table.drop(columns=["beyond", "size_flagged"])
        table = table.dropna(axis=1, how="all").rename(columns=_HEADS)
        parts = [table_chapter("Columns", table, sentence(_MEANS[self.kind]))]
        if self.kind == "versions":
            words = "The attributions that differ most; a cell is one row of a column."
            cells = self.cells().dropna(axis=1, how="all")
            parts.append(table_chapter("Cells", cells, words))
        return parts

    def _row(self, j: int) -> Bar:
        """The distance of a column, in levels if there is one, and its mean |φ|."""
        one, other = (np.abs(side[:, j]).mean() for side in (self.before, self.after))
        note = f"mean size {one:.3g} to {other:.3g}"
        if self.kind == "groups":
            means = (side[:, j].mean() for side in (self.before, self.after))
            said = [_number(float(x), "+.3g") for x in means]
            note = f"mean {' to '.join(said)}; {note}"
        if self.level is not None:
            note = f"{self.ratios[j]:.2f} × the level; {note}"
            if np.isfinite(seen := self.detectable_factor[j]):
                note += f"{_times(one, other)}, seen from ×{seen:.2g}"
        return Bar(name=self.features[j], value=self.distances[j], note=note, sign="-")

    def __repr__(self) -> str:
        words = " ".join(finding.sentence for finding in self.findings())
        return f"Comparison({printable(words)})"
