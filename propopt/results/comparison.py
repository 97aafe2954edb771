"""Results of comparisons: changes between two versions, or differences between groups.

Columns are compared row by row and by their mean sizes |φ|, versions by their base
too. All are tested against the same refits, with one joint rate of false alarms.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Final, Literal, TypeAlias, final

import numpy as np
import pandas as pd
from scipy.stats import t as student

from propopt.base.arrays import Array, Indices, Mask, Values
from propopt.base.declared import Declared, field
from propopt.base.document import (
    Bar,
    Bars,
    Chapter,
    Document,
    Finding,
    minus,
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
from propopt.proofs.optimum import Parameter
from propopt.results.result import Result
from propopt.tables.frames import Labels


# ---- The level: how much columns change by chance alone


LevelKind: TypeAlias = Literal[
    "split_half_refits", "bootstrap_refits", "seed_refits", "permutations"
]

ALARMS: Final[Mapping[LevelKind, tuple[int, int]]] = {
    "split_half_refits": (3, 400),
    "bootstrap_refits": (14, 400),
    "permutations": (15, 400),
}
"""Tables without a change that were flagged, and all tables, in a simulation by
``benchmarks/version_changes.py``. Seeds alone give no level for a change."""

_FACTORS: Final[Mapping[LevelKind, float]] = {"bootstrap_refits": 1.25}
"""Bootstraps share rows and differ less than new tables, so their level is raised."""

SHARE_OF_ALARMS: Final = 0.05
"""Upper bound on the rate of false alarms: exact for random divisions; for versions,
with tables of equal size, distances and sizes share it."""

SHARE_OF_SIZES: Final = 0.024
"""Upper bound on false alarms from mean sizes and the base together. Distances have
the rest: P(|Z| > √2 maxₖ|Zₖ|) = 2.6 % with ten splits: their differences have twice the
variance. Distances that sum several squares exceed the largest less often."""

MIN_SIZE_CHANGE: Final = 0.01
"""Changes below this share of all mean sizes together are not flagged."""


@final
class NullLevel(Declared, eq=True):
    """How much columns change by chance: between refits, or random divisions."""

    kind: LevelKind
    n_models: int = field(low=1)  # refits, or divisions
    distances: Array = field("R D", low=0.0, nonempty=True)
    # changes of mean |φ|, for all columns together in the last
    sizes: Array | None = field("R S", default=None)
    least: float = field(low=0.0, default=0.0)  # smaller changes are not flagged
    bases: Values | None = field("R", default=None)  # changes of the base

    def validate(self) -> None:
        """Refuse sizes with another number of columns."""
        n_columns = self.distances.shape[1]
        if self.sizes is not None and self.sizes.shape[1] != n_columns + 1:
            raise InvalidInput(
                f"sizes: expected {n_columns} numbers, for each column and for all "
                f"together, got {self.sizes.shape[1]}"
            )

    @property
    def limit(self) -> float:
        """The distance above which a column is flagged: the largest of any column.

        The real division and P random ones are equally likely to be among the 5 %
        largest, so the ⌈0.95 (P + 1)⌉-th smallest has at most 5 % false alarms.
        """
        largest = self.distances.max(axis=1)
        if self.kind == "permutations":
            rank = math.ceil((1.0 - SHARE_OF_ALARMS) * (len(largest) + 1))
            return float(np.sort(largest)[min(rank, len(largest)) - 1])
        return _FACTORS.get(self.kind, 1.0) * float(largest.max())

    @property
    def quantile(self) -> float:
        """The largest change of a mean size or the base by chance, in scales.

        A change between halves is equally likely up and down, and its scale is the root
        mean square of R of them, so that a change over its scale is Student's t with R
        degrees of freedom. All columns, their sum and the base share one rate. M
        bootstrap models give M − 1 degrees.
        """
        n_tests = self.distances.shape[1] + 1 + (self.bases is not None)
        degrees = self.n_models
        if self.kind != "split_half_refits":
            degrees = max(self.n_models - 1, 1)
        tail = SHARE_OF_SIZES / (2 * n_tests)
        return _FACTORS.get(self.kind, 1.0) * float(student.isf(tail, degrees))

    @property
    def size_limits(self) -> Values:
        """The changes of mean |φ| above which columns are flagged, (D + 1,).

        The last is for all columns together. They limit differences: their scale is
        the same close to zero as elsewhere, unlike that of logarithms.
        """
        if self.sizes is None:
            return np.full(self.distances.shape[1] + 1, math.nan)
        return self._limits(self.sizes)

    @property
    def base_limit(self) -> float:
        """The change above which the base is flagged; NaN without a base."""
        return math.nan if self.bases is None else float(self._limits(self.bases))

    def _limits(self, changes: Array) -> Array:
        """The limits of changes (R, …), by their root mean square."""
        scales = np.sqrt((changes**2).mean(axis=0))
        return np.maximum(self.quantile * scales, self.least)

    @property
    def in_words(self) -> str:
        """Where columns changed by chance, after "any column did"."""
        match self.kind:
            case "split_half_refits":
                return f"in {self.n_models} refits on halves of the old data"
            case "bootstrap_refits":
                return f"between {self.n_models} bootstraps of the old data, plus 25 %"
            case "seed_refits":
                return f"in {self.n_models} refits with other seeds"
            case _:
                return f"in 95 % of {self.n_models:,} random divisions"


# ---- Statistics: row by row for equal rows, of means for different ones


def distances_of(before: Array, after: Array) -> Values:
    """(Σ_n (φ'_nj − φ_nj)²/N)^½ for each column, (D,), at the same rows (N, D)."""
    return np.sqrt(((after - before) ** 2).mean(axis=0))


def group_distances(before: Array, after: Array) -> Values:
    """The larger difference of each column, of mean φ or of mean |φ|, (D,)."""
    both = mean_changes(before, after), size_changes(before, after)
    return np.abs(both).max(axis=0)


def mean_changes(before: Array, after: Array) -> Values:
    """The difference of mean φ for each column with its sign, (D,)."""
    return after.mean(axis=0) - before.mean(axis=0)


def size_changes(before: Array, after: Array) -> Values:
    """The difference of mean |φ| for each column with its sign, (D,)."""
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


# ---- The comparison


_STATISTICS: Final = {
    "versions": "root mean square over the same rows",
    "groups": "difference of means, or of mean sizes",
}
"""The distance of a column, in words."""

_HEADS: Final = {
    "distance_of": "distance of",
    "distance_ratio": "in levels",
    "distance_flagged": "flagged",
    "mean_difference": "difference of means",
    "mean_size_before": "mean size before",
    "mean_size_after": "after",
    "size_factor": "factor",
    "size_ratio": "size in levels",
    "size_flagged": "size flagged",
    "detectable_factor": "detectable factor",
    "optimized_distance": "distance if optimized",
    "price": "price in mean rows",
}
"""Columns of the table as a page names them."""

_MAX_BARS: Final = 15  # number of columns with a bar
_MAX_NAMED: Final = 3  # number of columns with a sentence each; the others share one
# mean rows below which other near-optimal explanations may hide a change
_MIN_PRICE: Final = 1.0


def _factors(before: Values, after: Values) -> Values:
    """After over before; infinite from zero, NaN from zero to zero."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return after / before


def _times(factor: float) -> str:
    """A factor in two digits, such as ×1.6 or ×270."""
    return f"×{float(f'{factor:.2g}'):g}"


def _growth(before: float, after: float) -> str:
    """The factor in brackets, if there is one."""
    return f" ({_times(after / before)})" if before > 0.0 else ""


@final
class Comparison(
    Result, kind="propopt comparison", noun="a saved comparison", version=1, eq=True
):
    """Differences between two models or groups in each column, compared with chance.

    Parameters
    ----------
    kind : {"versions", "groups"}
        Two versions of a model at the same rows; or one model at two groups of rows.
    names : tuple of two str
        The names of the two sides.
    before, after : array (N, D), (M, D)
        The targets of each side: Shapley values or slopes, before anything is
        optimized. For versions the rows are the same.
    labels : Labels
        Names of the rows of ``before`` and of the features.
    sources : tuple of two str
        How these numbers were computed.
    level : NullLevel or None
        How much columns change by chance. Without it nothing is flagged.
    optimized : array (D,) or None
        Distances of the optimized explanations of both sides.
    prices : array (D,) or None
        The cost of hiding the change of a column: both explanations would have to be
        worse by at least this many mean rows of the first objective, ‖d_j‖²_H/4 over
        F(W)/N, minus the gaps of both certificates.
    base_values : tuple of two floats or None
        The base of the contributions of each side.
    units : {"gradient", "output", "scaled"}
        The units of everything but the prices.
    quantity : Quantity or None
        The explained output.
    parameters : mapping
        The settings.

    Examples
    --------
    >>> import numpy as np, propopt as po
    >>> W = np.array([[1.0, 2.0], [3.0, -2.0]])
    >>> old = po.results.Explanation(attributions=W, method="old")
    >>> new = po.results.Explanation(attributions=W + [0.0, 0.5], method="new")
    >>> comparison = po.compare(old, new)
    >>> comparison.to_frame()["distance"].tolist()
    [0.5, 0.0]
    >>> comparison.distance_flagged.tolist()
    [False, False]
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
        """Raise an error if the two sides or the level differ in shape or names."""
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
            raise InvalidInput(
                f"level: {self.level.kind} are not for comparing {self.kind}"
            )

    @property
    def features(self) -> tuple[str, ...]:
        """The names of the columns."""
        return self.labels.feature_names(self.before.shape[1])

    @property
    def distances(self) -> Values:
        """The distance between the attributions of both sides in each column, (D,)."""
        measure = distances_of if self.kind == "versions" else group_distances
        return measure(self.before, self.after)

    @property
    def _limit(self) -> float:
        """The limit of distances; NaN, which nothing exceeds, without a level."""
        return math.nan if self.level is None else self.level.limit

    @property
    def distance_ratios(self) -> Values:
        """The distance of each column, divided by the largest expected by chance, (D,).

        NaN without refits, which measure the distance by chance (``level``).
        """
        return self.distances / self._limit

    @property
    def distance_flagged(self) -> Mask:
        """A mask (D,) of columns with a larger distance than expected by chance."""
        return self.distances > self._limit

    @property
    def _size_ratios(self) -> Values:
        """Changes of mean sizes over their levels, all together last, (D + 1,)."""
        changes = np.abs(column_sizes(self.after) - column_sizes(self.before))
        if self.level is None:
            return np.full(len(changes), math.nan)
        if self.kind == "groups":
            return np.append(changes[:-1] / self.level.limit, math.nan)
        return changes / self.level.size_limits

    @property
    def size_ratios(self) -> Values:
        """The change of mean |φ|, divided by the largest expected by chance, (D,).

        For versions this limit differs by column; for groups it is that of distances.
        NaN without a level.
        """
        return self._size_ratios[:-1]

    @property
    def size_flagged(self) -> Mask:
        """A mask (D,) of columns whose mean |φ| changed more than by chance."""
        return self.size_ratios > 1.0

    @property
    def flagged(self) -> Mask:
        """The columns that are flagged by their distance or their mean size, (D,)."""
        return self.distance_flagged | self.size_flagged

    @property
    def total_flagged(self) -> bool:
        """True if the mean size of all columns together changed more than by chance."""
        return bool(self._size_ratios[-1] > 1.0)

    @property
    def detectable_factor(self) -> Values:
        """The smallest growth factor of mean |φ| that flags a column, (D,).

        NaN without a level, and for groups; infinite for a column without size before.
        """
        sizes = np.abs(self.before).mean(axis=0)
        if self.level is None or self.kind == "groups":
            return np.full(len(sizes), math.nan)
        return _factors(sizes, sizes + self.level.size_limits[:-1])

    @property
    def base_flagged(self) -> bool:
        """True if the base value changed more than expected by chance."""
        if self.level is None or self.base_values is None:
            return False
        one, other = self.base_values
        return bool(abs(other - one) > self.level.base_limit)

    def to_frame(self) -> pd.DataFrame:
        """A table with a row for each column, the largest distance first."""
        one, other = (column_sizes(side)[:-1] for side in (self.before, self.after))
        means, sizes = (
            f(self.before, self.after) for f in (mean_changes, size_changes)
        )
        kinds = np.where(np.abs(means) >= np.abs(sizes), "means", "sizes")
        W = self.optimized
        c = self.prices
        table = pd.DataFrame(
            {
                "distance": self.distances,
                "distance_of": "rows" if self.kind == "versions" else kinds,
                "distance_ratio": self.distance_ratios,
                "distance_flagged": self.distance_flagged,
                "mean_difference": means,
                "mean_size_before": one,
                "mean_size_after": other,
                "size_factor": _factors(one, other),
                "size_ratio": self.size_ratios,
                "size_flagged": self.size_flagged,
                "detectable_factor": self.detectable_factor,
                "optimized_distance": math.nan if W is None else W,
                "price": math.nan if c is None else c,
            },
            index=pd.Index(self.features, name="feature"),
        )
        return table.iloc[self._order].reset_index()

    # ---- findings

    def findings(self) -> Iterator[Finding]:
        """The findings of the comparison, a sentence each with its basis."""
        order = self._order.tolist()
        level = self.level
        flagged = [j for j in order if self.distance_flagged[j]]
        if level is None:
            words = (
                "No refits were given: columns are ranked, not tested against chance."
            )
            yield Finding(words, "assumed")
            words = f"{' and '.join(self.names)} are the same in every column."
            if self.distances.any():
                how = "per row (root mean square)"
                how = how if self.kind == "versions" else "on average"
                size = f"{self.distances[order[0]]:.3g}{self._noun}"
                words = f"{' and '.join(self.names)} differ most in "
                words += f"{self.features[order[0]]}: by {size} {how}."
            yield Finding(words, "computed")
            yield from self._base(level)
        else:
            is_groups = self.kind == "groups"
            sizes = [*(self._means(flagged) if is_groups else self._sizes(level))]
            flags = [*self._flags(level, flagged, alone=not sizes)]
            yield from [*flags, *sizes] if flagged else [*sizes, *flags]
            if not self.base_flagged:
                yield from self._base(level)
            quiet = np.flatnonzero(~self.flagged)
            if len(quiet):
                yield Finding(self._rest(plural(len(quiet), "column")), "assumed")
            if self.kind == "versions":
                yield from self._power(quiet)
        if flagged and self.prices is not None:
            yield self._price_of(flagged[0], float(self.prices[flagged[0]]))

    def _flags(
        self, level: NullLevel, flagged: list[int], alone: bool
    ) -> Iterator[Finding]:
        """The columns above the level, and the rate of such alarms by chance."""
        verb = self._verb
        sentences = []
        if not flagged:
            start = "No column" if alone else "Row by row, no column"
            how = f"{verb} more than columns did"
            sentences.append(f"{start} {how} {level.in_words}.")
        ratios = self.distance_ratios
        for j in flagged[:_MAX_NAMED]:
            words = f"{self.features[j]} {verb} {ratios[j]:.1f} times as much as any "
            sentences.append(f"{words}column did {level.in_words}.")
        if rest := flagged[_MAX_NAMED:]:
            names = [f"{self.features[j]} (×{ratios[j]:.1f})" for j in rest]
            sentences.append(f"The same holds for {enumerated(names, 'and')}.")
        if level.kind == "seed_refits":
            sentences.append("This is the level of seeds alone; new data change more.")
        elif flagged:
            alarms, pairs = ALARMS[level.kind]
            words = f"In simulations without a {self._change}, {alarms:,} of {pairs:,} "
            sentences.append(f"{words}comparisons had such an alarm.")
        for words in sentences:
            yield Finding(words, "estimated")

    def _sizes(self, level: NullLevel) -> Iterator[Finding]:
        """The mean sizes that changed, with their factor, and the base."""
        ratios = self._size_ratios
        before = column_sizes(self.before)
        after = column_sizes(self.after)
        names = [*self.features, "all columns together"]
        order = np.argsort(-np.nan_to_num(ratios), kind="stable")
        changed = [j for j in order.tolist() if ratios[j] > 1.0]
        for j in changed[:_MAX_NAMED]:
            verb = "rose" if after[j] > before[j] else "fell"
            words = f"The mean size of {names[j]} {verb} from {before[j]:.3g} to "
            words += f"{after[j]:.3g}{_growth(before[j], after[j])}, {ratios[j]:.1f} "
            yield Finding(f"{words}times the level of chance.", "estimated")
        if rest := changed[_MAX_NAMED:]:
            sizes = [f"{names[j]}{_growth(before[j], after[j])}" for j in rest]
            words = f"So did the mean size of {enumerated(sizes, 'and')}."
            yield Finding(words, "estimated")
        if self.base_flagged:
            yield from self._base(level)
        if (changed or self.base_flagged) and level.kind != "seed_refits":
            share = f"{100.0 * SHARE_OF_SIZES:.1f} %"
            words = (
                f"By chance, at most {share} of comparisons flag a size or the base."
            )
            yield Finding(words, "estimated")

    def _base(self, level: NullLevel | None) -> Iterator[Finding]:
        """The change of the base, and the change that would be flagged."""
        if self.base_values is None or self.kind == "groups":
            return
        one, other = self.base_values
        verb = "rose" if other > one else "fell"
        words = f"The base {verb} from {one:.4g} to {other:.4g}{self._noun} "
        words += f"({other - one:+.3g})"
        if f"{one:.4g}" == f"{other:.4g}":
            words = f"The base stayed at {one:.4g}{self._noun}"
        if level is not None and level.bases is not None:
            words += f"; a change of {level.base_limit:.2g} would be flagged"
            if self.base_flagged:
                ratio = abs(other - one) / level.base_limit
                words = words.partition(";")[0]
                words += f", {ratio:.1f} times the level of chance"
        is_tested = level is not None and level.bases is not None
        yield Finding(minus(f"{words}."), "estimated" if is_tested else "computed")

    def _power(self, quiet: Indices) -> Iterator[Finding]:
        """The factor from which a growth of quiet columns would be flagged."""
        factors = self.detectable_factor
        finite = [j for j in quiet.tolist() if np.isfinite(factors[j])]
        if not finite:
            return
        finite.sort(key=lambda j: float(factors[j]))
        ends = [f"{_times(factors[j])} in {self.features[j]}" for j in finite]
        words = " and ".join(ends[:1] + ends[1:][-1:])
        words = f"A growth of the mean size by {words} would be flagged"
        more = "; the others lie between" if len(finite) > 2 else ""
        yield Finding(f"{words}{more}.", "estimated")

    def _means(self, flagged: list[int]) -> Iterator[Finding]:
        """The direction in which groups differ: in means, in mean sizes, or in both."""
        first, second = self.names
        changes = [
            ("mean", mean_changes(self.before, self.after)),
            ("mean size", size_changes(self.before, self.after)),
        ]
        for j in flagged[:_MAX_NAMED]:
            for noun, change in changes:
                if abs(change[j]) > self._limit:
                    words = f"The {noun} of {self.features[j]} is {abs(change[j]):.3g}"
                    words += f"{self._noun} {'higher' if change[j] > 0.0 else 'lower'} "
                    yield Finding(f"{words}in {second} than in {first}.", "estimated")

    def _price_of(self, j: int, price: float) -> Finding:
        """The sentence on near-optimal explanations that may hide a change."""
        what = f"the {self._change} of {self.features[j]}"
        words = f"No near-optimal explanations hide {what}; both would be worse by at "
        words += f"least {price:.3g} times the mean loss of a row."
        if price < _MIN_PRICE:
            words = (
                f"Other near-optimal explanations may hide {what}; both are worse by "
            )
            words += f"{price:.2g} times the mean loss of a row."
        return Finding(words, "proved")

    @property
    def _change(self) -> str:
        return "change" if self.kind == "versions" else "difference"

    @property
    def _verb(self) -> str:
        """Groups differ; seeds alone show no change."""
        if self.kind == "groups" or self.level is None:
            return "differs"
        return "differs" if self.level.kind == "seed_refits" else "changed"

    def _rest(self, columns: str) -> str:
        """The sentence on the columns that are not flagged."""
        if self.kind == "groups":
            words = "may be chance; this does not show that they agree"
            return f"The difference of {columns} {words}."
        if self._verb == "differs":
            return f"{columns} differ no more than with other seeds."
        words = "no more than by refitting; this does not show that they are unchanged"
        return f"{columns} changed {words}."

    @property
    def _noun(self) -> str:
        """The unit after a number, if it has a name."""
        quantity = self.quantity
        has_name = quantity is not None and quantity.kind != "value"
        noun = f" {quantity.noun}" if quantity is not None and has_name else ""
        return f"{noun} per scale" if self.units == "scaled" else noun

    @property
    def unit(self) -> str:
        """The unit of distances in words."""
        has_name = self.quantity is not None and self.quantity.kind != "value"
        noun = self._noun
        return noun.strip() if has_name else f"units of the prediction{noun}"

    @property
    def _order(self) -> Indices:
        return np.argsort(-self.distances, kind="stable")

    # ---- the document

    def document(self) -> Document:
        """The findings as blocks, with a bar for the distance of each column."""
        first, *others = self.findings()
        order = self._order.tolist()
        subtitle = f"distance between {' and '.join(self.names)} in each column: "
        subtitle += f"{_STATISTICS[self.kind]}, in {self.unit}"
        subtitle += "" if self.level is None else f"; the level is {self._limit:.3g}"
        rest = self.distances[order[_MAX_BARS:]]
        bars = Bars([self._bar(j) for j in order[:_MAX_BARS]], subtitle, rest)
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
        """The basis of the findings, and how often chance raises an alarm."""
        if self.prices is not None:
            words = "the least cost of one explanation for both versions is proved"
            yield Finding(words, "proved")
        if self.level is None:
            words = "without refits, no change is tested against chance"
            yield Finding(words, "assumed")
        elif self.level.kind in ALARMS:
            alarms, pairs = ALARMS[self.level.kind]
            yield Finding(
                "changes are tested; false alarms were counted by simulation",
                first.basis,
                "How often does chance raise an alarm?",
                f"{alarms:,} of {pairs:,}",
            )

    def _chapters(self) -> list[Chapter]:
        """The chapter of the page: the table of all columns."""
        table = self.to_frame().set_index("feature")
        if self.level is None:  # untested columns are not "not flagged"
            table = table.drop(columns=["distance_flagged", "size_flagged"])
        table = table.dropna(axis=1, how="all").rename(columns=_HEADS)
        return [table_chapter("Columns", table, sentence(_STATISTICS[self.kind]))]

    def _bar(self, j: int) -> Bar:
        """The distance of a column, with its mean size before and after."""
        one, other = (np.abs(side[:, j]).mean() for side in (self.before, self.after))
        note = f"mean size {one:.3g} before, {other:.3g} after"
        if self.kind == "groups":
            means = [f"{side[:, j].mean():+.3g}" for side in (self.before, self.after)]
            note = minus(f"mean {' to '.join(means)}; {note}")
        if self.level is not None:
            note = f"{self.distance_ratios[j]:.2f} × the level; {note}"
            if np.isfinite(factor := self.detectable_factor[j]):
                note += f"{_growth(one, other)}, flagged from {_times(factor)}"
        return Bar(name=self.features[j], value=self.distances[j], note=note, sign="-")

    def __repr__(self) -> str:
        words = " ".join(finding.sentence for finding in self.findings())
        return f"Comparison({printable(words)})"
