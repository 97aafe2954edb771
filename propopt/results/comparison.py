"""Results of comparisons: changes between two versions, or differences between groups.

Columns are compared row by row and by their mean sizes |φ|, versions by their base
too. All are tested against the same refits, with one joint rate of false alarms.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, Literal, TypeAlias, final

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import t as student

from propopt.base.arrays import Array, Indices, Mask, Values
from propopt.base.charts import Steps
from propopt.base.checks import read_count
from propopt.base.declared import Declared, field
from propopt.base.document import (
    Chapter,
    Document,
    Fact,
    Facts,
    Span,
    Table,
    cell_text,
    number_text,
    rows_on_page,
    shape_text,
    subtitle_of,
    table_chapter,
    title_of,
)
from propopt.base.errors import InvalidInput
from propopt.base.text import Quantity, in_short, plural, printable
from propopt.losses.faithfulness import Units
from propopt.plots.drawing import draw
from propopt.plots.style import Axes
from propopt.proofs.optimum import Parameter
from propopt.results.result import Result
from propopt.tables.frames import Labels, position_of


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
    def source(self) -> str:
        """The number and kind of the models that differ by chance alone."""
        return f"{self.n_models:,} {_SOURCES[self.kind]}"


_SOURCES: Final[Mapping[LevelKind, str]] = {
    "split_half_refits": "refits of halves",
    "bootstrap_refits": "bootstraps, plus 25 %",
    "seed_refits": "refits with other seeds",
    "permutations": "divisions",
}


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


_HEADS: Final = {
    "distance_of": "distance of",
    "mean_difference": "difference of means",
    "mean_size_before": "mean size before",
    "mean_size_after": "mean size after",
    "size_factor": "factor",
    "size_ratio": "size × level",
    "detectable_factor": "detectable factor",
    "optimized_distance": "distance if optimized",
    "price": "cost of hiding, in mean rows",
}
"""The columns of the second table of a page, with their names there."""


def _factors(before: Values, after: Values) -> Values:
    """After over before; infinite from zero, NaN from zero to zero."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return after / before


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
    def times_level(self) -> Values:
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
        """A mask (D,) of columns with a larger change of mean |φ| than by chance."""
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
                "times_level": self.times_level,
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

    @property
    def unit(self) -> str:
        """The unit of distances in words."""
        noun = "units of the output" if self.quantity is None else self.quantity.unit
        return f"{noun} per scale" if self.units == "scaled" else noun

    @property
    def _order(self) -> Indices:
        return np.argsort(-self.distances, kind="stable")

    # ---- the plot and the document

    def plot(
        self,
        n_features: int = 15,
        *,
        features: Sequence[str] | None = None,
        ax: Axes | None = None,
    ) -> Axes:
        """Draw the distance between two versions in each column, the largest first.

        A line across a bar spans the distances between refits, or between random
        divisions of the rows. The dotted line is the level, one for all columns: bars
        within it are hatched.

        Parameters
        ----------
        n_features : int
            The number of columns to draw.
        features : sequence of str, optional
            The columns to draw, in this order, such as the same ones in several panels.
            By default those with the largest distances.
        ax : matplotlib Axes, optional
            The axes to draw on; a new figure by default.

        Returns
        -------
        matplotlib Axes

        Raises
        ------
        InvalidInput
            If a name is no column of the comparison.

        Examples
        --------
        >>> import numpy as np, propopt as po
        >>> old = po.results.Explanation(attributions=np.eye(2), method="old")
        >>> new = po.results.Explanation(attributions=2.0 * np.eye(2), method="new")
        >>> axes = po.compare(old, new).plot()
        >>> [label.get_text() for label in axes.get_yticklabels()]
        ['x0', 'x1']
        """
        shown = self._order[: read_count(n_features, "n_features")].tolist()
        if features is not None:
            shown = [position_of(one, "features", self.features) for one in features]
        tested: dict[str, Any] = {}
        caption = f"distance of {' and '.join(self.names)}, in {self.unit}"
        if self.level is not None:
            null = self.level.distances[:, shown]
            lines = "refits" if self.kind == "versions" else "random divisions"
            caption += f"\nlines: distances between {lines}"
            tested = {
                "intervals": np.stack([null.min(axis=0), null.max(axis=0)], axis=1),
                "hatched": ~self.distance_flagged[shown],
                "hatching": "within the level of chance",
                "marks": {"level of chance": self.level.limit},
            }
        return draw(
            Steps(
                names=[self.features[j] for j in shown],
                parts=self.distances[shown],
                sign="-",
                caption=caption,
                title="output" if self.quantity is None else self.quantity.in_words(),
                **tested,
            ),
            ax,
        )

    def document(self) -> Document:
        """The distance of each column, compared with the level of chance."""
        N, D = self.before.shape
        groups = f"{N:,} and {len(self.after):,} rows × {plural(D, 'feature')}"
        size = shape_text(N, D) if self.kind == "versions" else groups
        sides = "mean size" if self.kind == "versions" else "mean"
        return Document(
            title=title_of(f"Two {self.kind}", self.quantity),
            subtitle=subtitle_of(
                self.quantity, size, f"distance and {sides}, in {self.unit}"
            ),
            dangers=_DANGERS if self._is_of_seeds else (),
            blocks=[self._ranked(), Facts([*self._facts()])],
            settings={name: in_short(x) for name, x in self.parameters.items()},
            chapters=self._chapters,
        )

    @property
    def _is_of_seeds(self) -> bool:
        return self.level is not None and self.level.kind == "seed_refits"

    def _ranked(self) -> Table:
        """The columns with the largest distances: sizes or means, and verdicts."""
        order = self._order[: rows_on_page(6)]
        is_versions = self.kind == "versions"
        both = (self.before, self.after)
        sides = [(np.abs(x) if is_versions else x).mean(axis=0)[order] for x in both]
        heads = ("size before", "size after") if is_versions else self.names
        distances = self.distances[order]
        parts: list[pd.Series[Any]] = [pd.Series(distances, name="distance")]
        if self.level is not None:
            times = [f"{x:.2f}" for x in self.times_level[order]]
            parts.append(pd.Series(times, name="× level"))
        parts += [pd.Series(x, name=head) for head, x in zip(heads, sides, strict=True)]
        if self.level is not None:
            parts.append(pd.Series(self._verdicts()[order], name="verdict"))
        table = pd.concat(parts, axis=1)
        table.index = pd.Index([self.features[j] for j in order], name="feature")
        spans = [*map(Span.of, distances.tolist())]
        return Table(table, total=len(self.features), bars={"distance": spans})

    def _verdicts(self) -> NDArray[np.object_]:
        """The word of each flagged column; seeds alone show no change, (D,)."""
        word = "changed"
        if self.kind == "groups" or self._is_of_seeds:
            word = "differs"
        by_size = np.where(self.size_flagged, f"size {word}", _WITHIN)
        return np.where(self.distance_flagged, word, by_size).astype(object)

    def _facts(self) -> Iterator[Fact]:
        """The level, the rate of false alarms, and the base with its level."""
        level = self.level
        if level is not None:
            yield Fact("level", level.limit, note=level.source)
            if level.kind in ALARMS:
                alarms, pairs = ALARMS[level.kind]
                yield Fact("false alarms", alarms / pairs, "%")
        if self.kind == "groups":
            return
        if self.base_values is not None:
            limit = math.nan if level is None else level.base_limit
            yield _change("base", *self.base_values, limit)
        if self.total_flagged and level is not None:
            one, other = (column_sizes(x)[-1] for x in (self.before, self.after))
            yield _change("total size", one, other, level.size_limits[-1])

    def _chapters(self) -> list[Chapter]:
        """The chapter of the page: the numbers of all columns that a card lacks."""
        table = (
            self.to_frame().set_index("feature")[[*_HEADS]].dropna(axis=1, how="all")
        )
        return [table_chapter("All features", table.rename(columns=_HEADS))]

    def __repr__(self) -> str:
        pairs = zip(self.features, self._verdicts(), strict=True)
        flagged = [f"{name} {verdict}" for name, verdict in pairs if verdict != _WITHIN]
        words = ", ".join([self.kind, shape_text(*self.before.shape), *flagged])
        return f"Comparison({printable(words)})"


def _change(label: str, before: float, after: float, limit: float) -> Fact:
    """A number of both sides, the change by chance, and whether it is larger."""
    note = f"chance ±{number_text(limit)}" if math.isfinite(limit) else ""
    note += ", changed" if abs(after - before) > limit else ""
    return Fact(
        label, f"{cell_text(before)} before, {cell_text(after)} after", note=note
    )


_WITHIN: Final = "within level"
"""The word of columns that are not flagged."""

_DANGERS: Final = (
    "The level is of other seeds alone. New data differ more, so no change is shown.",
    "Next: level=po.null_models.split_half_refits(fit, X, y).",
)
"""The warning of a level from seeds alone."""
