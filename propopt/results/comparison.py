"""Results of comparisons: changes between two versions, or differences between groups.

Columns are compared row by row and by their mean sizes |φ|, versions by their base
too. All are tested against the same refits, with one joint rate of false alarms.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, Final, Literal, final

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import t as student

from propopt.base.arrays import Array, Indices, Mask, Values, largest_first
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
from propopt.base.text import Quantity, in_short, plural
from propopt.losses.faithfulness import Units
from propopt.plots.drawing import draw
from propopt.plots.style import Axes
from propopt.proofs.optimum import Parameter
from propopt.results.clear import unit_of
from propopt.results.result import Result
from propopt.tables.frames import Labels


# ---- The level: how much columns change by chance alone


SHARE_OF_ALARMS: Final = 0.05
"""Upper bound on the share of comparisons without a change that have any flag."""

MIN_CHANGE: Final = 0.01
"""Changes below this share of all mean sizes together are not flagged."""

_MIN_SPREAD: Final = 0.05
"""Least standard deviation of the log of a distance by chance."""


@final
class NullLevel(Declared, eq=True):
    r"""The changes that are tested, and how large they are by chance.

    Parameters
    ----------
    kind : {"bootstrap_refits", "pooled_refits", "permutations"}
        Refits of both versions on bootstrap samples of their own tables; two models for
        each random division of both tables; random divisions of the rows of two groups.
    least : float
        Smaller changes are not flagged.
    tested : array (D,)
        The distance of each column: between the means of the refits of both versions;
        for divisions that of the two sides themselves.
    distances : array (R, D)
        Distances by chance: of pairs of refits of one version, or of divisions.
    before, after : array (M, S), (P, S)
        Mean sizes of all columns, their sum, and the base, if there is one: of each
        refit; or of the two sides themselves and then of each division.

    Notes
    -----
    α = 5 % is the probability of any flag without a change, in m = D + S tests. For
    bootstraps, with means and variances over refits,

    .. math::

        |\bar s' − \bar s| &> t_{M + P − 2}(α / 2m) \sqrt{(1 + 1/P) v' + (1 + 1/M) v} \\
        \log(d + ε) &> \bar l + t_{R − 1}(α / m) \, \sigma_l \sqrt{1 + 1/R}

    flag a size and a distance. Here l are logs of the distances by chance plus ε, which
    is ``least``. The variances v include that of seeds, which means average out.

    The real division and R others are standardised alike: a size by its root mean
    square, a distance by mean and standard deviation. The limit is the
    ⌊α(R + 1)⌋-th largest maximum over all tests, which is exact [1]_.

    References
    ----------
    .. [1] Westfall and Young, Resampling-Based Multiple Testing, Wiley, 1993.
    """

    kind: Literal["bootstrap_refits", "pooled_refits", "permutations"] = field()
    least: float = field(low=0.0)
    tested: Values = field("D", low=0.0)
    distances: Array = field("R D", low=0.0, nonempty=True)
    before: Array = field("M S")
    after: Array = field("P S")

    @property
    def size_changes(self) -> Values:
        """The tested changes of sizes, their sum and the base, (S,)."""
        changes = self.after[:1] - self.before[:1]
        if self.kind == "bootstrap_refits":
            changes = self.after.mean(axis=0) - self.before.mean(axis=0)
        return np.ravel(changes)

    @property
    def size_limits(self) -> Values:
        """The changes above which sizes, their sum and the base are flagged, (S,)."""
        return self._limits[: self.before.shape[1]]

    @property
    def distance_limits(self) -> Values:
        """The distances above which columns are flagged, (D,)."""
        return self._limits[self.before.shape[1] :]

    @property
    def _limits(self) -> Values:
        """The limits of sizes, then of distances, (S + D,)."""
        is_of_refits = self.kind == "bootstrap_refits"
        limits = self._of_refits() if is_of_refits else self._of_divisions()
        return np.maximum(limits, self.least)

    def _of_refits(self) -> Values:
        """By Student's t with one joint rate, Bonferroni's."""
        sides = (self.before, self.after)
        variances = sum(x.var(axis=0, ddof=1) * (1.0 + 1.0 / len(x)) for x in sides)
        logs = np.log(self.distances + self.least)
        R = len(logs)
        spreads = np.maximum(logs.std(axis=0, ddof=1), _MIN_SPREAD)
        degrees = sum(map(len, sides)) - 2
        tail = SHARE_OF_ALARMS / (len(variances) + len(spreads))
        sizes = student.isf(tail / 2.0, degrees) * np.sqrt(variances)
        above = student.isf(tail, R - 1) * spreads * math.sqrt(1.0 + 1.0 / R)
        return np.append(sizes, np.exp(logs.mean(axis=0) + above) - self.least)

    def _of_divisions(self) -> Values:
        """The real division first, all standardised alike; their largest scores."""
        sizes = np.abs(self.after - self.before)
        distances = np.vstack([self.tested, self.distances])
        values = np.hstack([sizes, distances])
        centers = np.append(np.zeros(sizes.shape[1]), distances.mean(axis=0))
        moments = ((values - centers) ** 2).mean(axis=0)
        scales = np.maximum(np.sqrt(moments), self.least / 2.0)
        largest = np.sort(((values - centers) / scales)[1:].max(axis=1))
        rank = math.ceil((1.0 - SHARE_OF_ALARMS) * len(values))
        return centers + scales * largest[min(rank, len(largest)) - 1]

    @property
    def source(self) -> str:
        """The number of refits or of divisions."""
        if self.kind == "bootstrap_refits":
            return f"{len(self.before)} and {len(self.after)} refits"
        return f"{len(self.distances):,} divisions"


# ---- Statistics: row by row for equal rows, of means for different ones


def distances_of(before: Array, after: Array) -> Values:
    """(Σ_n (φ'_nj − φ_nj)²/N)^½ for each column, (D,), at the same rows (N, D)."""
    return np.sqrt(((after - before) ** 2).mean(axis=0))


def mean_changes(before: Array, after: Array) -> Values:
    """The difference of mean φ for each column with its sign, (D,)."""
    return after.mean(axis=0) - before.mean(axis=0)


def column_sizes(phi: Array) -> Values:
    """The mean |φ| of each column, and of all together, (D + 1,)."""
    sizes = np.abs(phi).mean(axis=0)
    return np.append(sizes, sizes.sum())


# ---- The comparison


_HEADS: Final = {
    "mean_difference": "difference of means",
    "mean_size_before": "mean size before",
    "mean_size_after": "mean size after",
    "size_limit": "size change by chance",
    "size_ratio": "size × level",
    "optimized_distance": "distance if optimized",
    "price": "cost of hiding, in mean rows",
}
"""The columns of the second table of a page, with their names there."""


@final
class Comparison(
    Result, kind="propopt comparison", noun="a saved comparison", version=2, eq=True
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
        The tested changes, and how large they are by chance. Without it nothing is
        tested.
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
    >>> comparison.level is None
    True
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
        D = self.before.shape[1]
        if (self.level.kind == "permutations") != (self.kind == "groups"):
            raise InvalidInput(
                f"level: {self.level.kind} are not for comparing {self.kind}"
            )
        n_sizes = self.level.before.shape[1]
        if len(self.level.tested) != D or n_sizes not in (D + 1, D + 2):
            raise InvalidInput(f"level: expected changes of {D} columns")

    @property
    def features(self) -> tuple[str, ...]:
        """The names of the columns."""
        return self.labels.feature_names(self.before.shape[1])

    @property
    def distances(self) -> Values:
        """The distance between both sides in each column, of rows or of means, (D,)."""
        if self.kind == "versions":
            return distances_of(self.before, self.after)
        return np.abs(mean_changes(self.before, self.after))

    @property
    def _chance(self) -> NullLevel:
        """The level; without one there is no verdict."""
        if self.level is None:
            raise InvalidInput(
                "nothing is tested without refits; compare with level=(old_refits, "
                "new_refits)"
            )
        return self.level

    @property
    def times_level(self) -> Values:
        """The tested distance of each column, divided by its limit by chance, (D,)."""
        return self._chance.tested / self._chance.distance_limits

    @property
    def distance_flagged(self) -> Mask:
        """A mask (D,) of columns with a larger distance than expected by chance."""
        return self.times_level > 1.0

    @property
    def _size_ratios(self) -> Values:
        """Changes of sizes, all together and the base, over their limits, (S,)."""
        return np.abs(self._chance.size_changes) / self._chance.size_limits

    @property
    def size_ratios(self) -> Values:
        """The tested change of mean |φ|, up or down, divided by its limit, (D,)."""
        return self._size_ratios[: len(self.features)]

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
        return bool(self._size_ratios[len(self.features)] > 1.0)

    @property
    def base_flagged(self) -> bool:
        """True if the base value changed more than expected by chance."""
        return bool((self._size_ratios[len(self.features) + 1 :] > 1.0).any())

    def to_frame(self) -> pd.DataFrame:
        """A table with a row for each column, the largest distance first."""
        one, other = (column_sizes(side)[:-1] for side in (self.before, self.after))
        W = self.optimized
        c = self.prices
        columns: dict[str, Any] = {
            "distance": self.distances,
            "mean_difference": mean_changes(self.before, self.after),
            "mean_size_before": one,
            "mean_size_after": other,
            "optimized_distance": math.nan if W is None else W,
            "price": math.nan if c is None else c,
        }
        if self.level is not None:
            columns |= {
                "times_level": self.times_level,
                "distance_flagged": self.distance_flagged,
                "size_limit": self.level.size_limits[: len(one)],
                "size_ratio": self.size_ratios,
                "size_flagged": self.size_flagged,
            }
        table = pd.DataFrame(columns, index=pd.Index(self.features, name="feature"))
        return table.iloc[self._order].reset_index()

    @property
    def unit(self) -> str:
        """The unit of distances in words."""
        noun = unit_of(self.quantity)
        return f"{noun} per scale" if self.units == "scaled" else noun

    @property
    def _order(self) -> Indices:
        return largest_first(self.distances)

    # ---- the plot and the document

    def plot(
        self,
        n_features: int = 15,
        *,
        ax: Axes | None = None,
    ) -> Axes:
        """Draw the distance between two versions in each column, the largest first.

        A line across a bar spans the distances by chance: between refits of one
        version, or between random divisions. Bars that are not flagged are hatched.

        Parameters
        ----------
        n_features : int
            The number of columns to draw.
        ax : matplotlib Axes, optional
            The axes to draw on; a new figure by default.

        Returns
        -------
        matplotlib Axes

        Raises
        ------
        InvalidInput
            If ``n_features`` is no positive number.

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
        tested: dict[str, Any] = {}
        caption = f"distance of {' and '.join(self.names)}, in {self.unit}"
        if self.level is not None:
            null = self.level.distances[:, shown]
            lines = "refits" if self.kind == "versions" else "random divisions"
            caption += f"\nlines: distances between {lines}"
            tested = {
                "intervals": np.stack([null.min(axis=0), null.max(axis=0)], axis=1),
                "hatched": ~self.flagged[shown],
                "hatching": "within the level of chance",
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
            blocks=[self._ranked(), Facts([*self._facts()])],
            settings={name: in_short(x) for name, x in self.parameters.items()},
            chapters=self._chapters,
        )

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
            ratios = np.maximum(self.times_level, self.size_ratios)
            times = [f"{x:.2f}" for x in ratios[order]]
            parts.append(pd.Series(times, name="× level"))
        parts += [pd.Series(x, name=head) for head, x in zip(heads, sides, strict=True)]
        if self.level is not None:
            parts.append(pd.Series(self._verdicts()[order], name="verdict"))
        table = pd.concat(parts, axis=1)
        table.index = pd.Index([self.features[j] for j in order], name="feature")
        spans = [*map(Span.of, distances.tolist())]
        return Table(table, total=len(self.features), bars={"distance": spans})

    def _verdicts(self) -> NDArray[np.object_]:
        """The word of each column, (D,)."""
        word = "changed" if self.kind == "versions" else "differs"
        by_size = np.where(self.size_flagged, f"size {word}", _WITHIN)
        return np.where(self.distance_flagged, word, by_size).astype(object)

    def _facts(self) -> Iterator[Fact]:
        """The level, the rate of false alarms, and the base with its level."""
        limits = np.empty(0)
        if self.level is not None:
            yield Fact("level", self.level.source)
            yield Fact("false alarms", SHARE_OF_ALARMS, "%", note="at most")
            limits = self.level.size_limits
        D = len(self.features)
        if self.kind == "groups":
            return
        if self.base_values is not None:
            flagged = self.level is not None and self.base_flagged
            yield _change("base", *self.base_values, limits[D + 1 :], flagged)
        if self.level is not None and self.total_flagged:
            one, other = (column_sizes(x)[-1] for x in (self.before, self.after))
            yield _change("total size", one, other, limits[D:], True)

    def _chapters(self) -> list[Chapter]:
        """The chapter of the page: the numbers of all columns that a card lacks."""
        table = self.to_frame().set_index("feature")
        table = table[[x for x in _HEADS if x in table]].dropna(axis=1, how="all")
        return [table_chapter("All features", table.rename(columns=_HEADS))]


def _change(
    label: str, before: float, after: float, limits: Values, flagged: bool
) -> Fact:
    """A number of both sides, the change by chance, and whether it is larger."""
    notes = [f"chance ±{number_text(x)}" for x in limits[:1].tolist()]
    notes += ["changed"] * flagged
    sides = f"{cell_text(before)} before, {cell_text(after)} after"
    return Fact(label, sides, note=", ".join(notes))


_WITHIN: Final = "within level"
"""The word of columns that are not flagged."""
