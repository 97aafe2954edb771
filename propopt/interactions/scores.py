"""Scores of interactions, with their intervals, tests and documents."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator
from dataclasses import replace
from itertools import chain
from typing import Final, final

import numpy as np
import pandas as pd

from propopt.base.arrays import Array, Mask, Values, largest_first, quotient
from propopt.base.charts import Steps
from propopt.base.checks import read_count, read_level, read_option
from propopt.base.declared import field
from propopt.base.document import (
    Chapter,
    Document,
    Fact,
    Facts,
    Span,
    Table,
    interval_text,
    share_text,
    signed_text,
)
from propopt.base.errors import InvalidInput
from propopt.base.suggestions import suggests_arguments
from propopt.base.text import Quantity, plain_name, plural, printable
from propopt.interactions.features import FeatureSets, with_any
from propopt.interactions.inference import (
    ALTERNATIVES,
    FEW_ROWS,
    Adjustment,
    Alternative,
    ErrorKind,
    ErrorRange,
    ScoreLaw,
    Side,
    adjusted_p_values,
    interval_alpha,
)
from propopt.plots.drawing import draw
from propopt.plots.style import Axes
from propopt.results.explanation import Explanation
from propopt.results.result import Result
from propopt.tables.frames import Labels, listed


# ---- Scores in words: counts, formulas and cautions


SET_NOUNS: Final = {1: "feature", 2: "pair", 3: "triple"}
WORDS_LEVEL: Final = 0.9
"""Simultaneous level of intervals in words."""


_ON_PAGE: Final = 200
"""Number of the largest scores that are on a page; CSV files have all."""


def level_in_words(level: float) -> str:
    """A level in per cent, such as "90%"."""
    return f"{100.0 * level:.4g}%"


def counted_sets(scores: InteractionScores, count: int) -> str:
    """A number of the scored sets, such as "3 pairs"."""
    noun = SET_NOUNS.get(scores.order)
    if noun is None:
        return f"{plural(count, 'set')} of {scores.order} features"
    return plural(count, noun)


def signs_in_words(scores: InteractionScores) -> tuple[str, str]:
    """The meaning of scores below zero, and of scores above zero."""
    if scores.order == 1:
        return "no worse without it", "worse without it"
    if scores.order == 2:
        return "can replace each other", "needed together"
    return "fewer of them suffice", "needed together"


_FORMULAS: Final = {
    1: "error without the feature − with it",
    2: "error without a + without b − without both − with both",
}


_OTHER_FORMULA: Final = "alternating sum of the errors without its subsets"


# ---- Cautions: a verdict, a number, and a remedy


def two_digits_up(number: float) -> int:
    """The number rounded up to two significant digits."""
    unit = 10 ** max(0, math.floor(math.log10(number)) - 1)
    return math.ceil(number / unit) * unit


def _cautions(scores: InteractionScores) -> Iterator[str]:
    """All cautions on the scores.

    There are few patches if se_mc > se; with B (se_mc/se)² patches it falls to se. If a
    score is almost zero in all rows, se is due to patches too, so that the ratio may
    remain; the total error decreases nevertheless.
    """
    ratios = quotient(scores.monte_carlo, scores.standard_errors)
    if count := int((ratios > 1.0).sum()):
        worst = float(np.nanmax(ratios))
        more = two_digits_up(max(scores.n_patches, 1) * worst**2)
        cure = f"n_patches={more}" if scores.n_patches else f"{more} times as many"
        yield (
            f"Few patches limit {count} of {counted_sets(scores, len(scores))}: their "
            f"error is up to {worst:.2g} times that of rows. Use {cure} or more."
        )
    label = "group" if scores.n_row_groups else "row"
    if count := int(scores.degenerate.sum()):
        bound = scores.error_range
        seen = "" if bound.proved else " (observed)"
        yield (
            f"All rows have the same score in {counted_sets(scores, count)}: intervals "
            f"assume errors from {bound.low:.4g} to {bound.high:.4g}{seen}. Test more "
            f"than {plural(scores.n_independent, label)}."
        )
    if count := int((scores.effective_rows < FEW_ROWS).sum()):
        yield (
            f"Fewer than {FEW_ROWS} {label}s determine the standard error of "
            f"{counted_sets(scores, count)} (at least "
            f"{np.nanmin(scores.effective_rows):.1f}). The normal approximation is "
            f"doubtful there: test more {label}s."
        )
    if count := int(np.isnan(scores.monte_carlo).sum()):
        yield (
            f"The error due to patches is unknown for {counted_sets(scores, count)}: "
            "a row has all its patches in one group. Draw more patches."
        )


# ---- iLOCO scores of sets of features with their errors


_ROUNDING: Final = 1e-9
"""Relative rounding of effective numbers of rows."""


@final
class InteractionScores(
    Result, kind="propopt interactions", noun="saved interactions", version=3
):
    """Interaction scores of Q sets of r features, with their standard errors.

    The score of a pair is the increase of the error without one feature, plus that
    without the other, minus that without both. A large score means that a part of the
    accuracy needs both features; a very negative score means that each can replace the
    other. Scores are in units of the error of one learner, and cannot be compared
    between learners.

    Parameters
    ----------
    sets : array of int (Q, r)
        Indices of the features of each set, ascending.
    names : tuple (M,)
        Names of the features.
    scores : array (Q,)
        Scores iLOCO_S, in ``units``.
    standard_errors : array (Q,)
        Standard errors due to rows.
    monte_carlo : array (Q,)
        Standard errors due to patches; zero without patches.
    counts : array (Q,)
        Number of averaged predictions, in the row with fewest.
    n_rows : int
        N, the number of test rows.
    n_candidates : int
        Number of sets that these were chosen from, for corrections.
    method : str
        How predictors without features were fitted, in words.
    error : str
        Name of the error.
    units : str
        Units of the scores.
    patch_error : float
        Root mean square of ``monte_carlo`` over some sets, relative to the error of a
        constant prediction; NaN if it was not estimated.
    effective_rows : array (Q,)
        Effective numbers of rows behind the standard errors; NaN if unknown.
    n_groups : int
        Groups of patches that give ``monte_carlo``; 0 without patches.
    error_range : ErrorRange
        Range of the error of a row.
    main : InteractionScores or None
        LOCO scores of single features.
    columns : tuple of tuple (M,)
        Names of the columns of each feature; by default the name of the feature.
    n_patches : int
        B; 0 without patches.
    n_row_groups : int
        C, groups of dependent test rows; 0 if rows are independent.
    not_used : tuple of int
        Indices of features that no fitted learner uses: sets with them have score and
        error 0.
    quantity : Quantity or None
        The predicted quantity.

    Examples
    --------
    >>> import numpy as np
    >>> from propopt.interactions import InteractionScores
    >>> scores = InteractionScores(
    ...     sets=np.array([[0, 1], [0, 2], [1, 2]]),
    ...     names=("a", "b", "c"),
    ...     scores=np.array([0.5, -0.1, 0.02]),
    ...     counts=np.ones(3),
    ...     standard_errors=np.array([0.1, 0.08, 0.03]),
    ...     monte_carlo=np.zeros(3),
    ...     n_rows=100,
    ...     n_candidates=3,
    ...     method="split",
    ...     error="squared",
    ...     units="u²",
    ... )
    >>> scores.intervals(level=0.9, adjust="bonferroni").round(3)
    array([[ 0.287,  0.713],
           [-0.27 ,  0.07 ],
           [-0.044,  0.084]])
    >>> scores.p_values("greater").round(3)
    array([0.   , 0.894, 0.252])
    """

    sets: FeatureSets = field("Q R")
    names: tuple[Hashable, ...] = field()
    scores: Values = field("Q", missing=True)
    n_rows: int = field(low=1)
    method: str = field()
    units: str = field()
    standard_errors: Values = field("Q", low=0.0, missing=True)
    monte_carlo: Values = field("Q", low=0.0, missing=True)
    counts: Values = field("Q", low=0.0)
    n_candidates: int = field(low=0)
    error: str = field()
    patch_error: float = field(default=math.nan, low=0.0, missing=True)
    effective_rows: Values = field("Q", default=math.nan, low=0.0, missing=True)
    n_groups: int = field(default=0, low=0)
    error_range: ErrorRange = field(default=ErrorRange(0.0, 1.0, proved=False))
    main: InteractionScores | None = field(default=None)
    columns: tuple[tuple[Hashable, ...], ...] = field(default=(), nonempty=True)
    n_patches: int = field(default=0, low=0)
    n_row_groups: int = field(default=0, low=0)
    not_used: tuple[int, ...] = field(default=(), low=0)
    quantity: Quantity | None = field(default=None)

    def __post_init__(self) -> None:
        fields = vars(self)
        fields["columns"] = self.columns or tuple((name,) for name in self.names)
        if np.ndim(self.effective_rows) == 0:
            fields["effective_rows"] = np.full(len(self.sets), self.effective_rows)
        super().__post_init__()

    def validate(self) -> None:
        """Raise an error if fields are inconsistent with each other."""
        inside = (self.sets >= 0) & (self.sets < len(self.names))
        ascending = inside.all() and (np.diff(self.sets, axis=1) > 0).all()
        if not (self.order and ascending):
            raise InvalidInput(
                f"sets: expected ascending indices from 0 to {len(self.names) - 1}"
            )
        n_features = len(self.names)
        unused = self.not_used
        errors = self.standard_errors, self.monte_carlo
        zero = [values[self.are_not_used] for values in (self.scores, *errors)]
        most_rows = self.n_independent * (1.0 + _ROUNDING)
        bound = self.error_range
        main = self.main
        nested = main is not None and (main.order != 1 or main.main is not None)
        for wrong, expected in (
            (self.n_candidates < len(self), "n_candidates: at least the sets"),
            (len(self.columns) != n_features, "columns: those of each feature"),
            (not all(self.columns), "columns: at least one of each feature"),
            (any(k >= n_features for k in unused), "not_used: indices of features"),
            (len(set(unused)) < len(unused), "not_used: each feature once"),
            (np.any(zero), "not_used: score and error 0 of sets with them"),
            (not self.n_groups and errors[1].any(), "monte_carlo: 0 without groups"),
            (self.n_row_groups > self.n_rows, "n_row_groups: at most the rows"),
            ((self.effective_rows > most_rows).any(), "effective_rows: no more rows"),
            (bound.low > bound.high, "error_range: two numbers in order"),
            (nested, "main: single features"),
        ):
            if wrong:
                raise InvalidInput("{}: expected{}".format(*expected.split(":")))

    def __len__(self) -> int:
        return len(self.sets)

    @property
    def order(self) -> int:
        """The number of features of a set: 1 for LOCO, 2 for pairs."""
        return int(self.sets.shape[1])

    @property
    def labels(self) -> Labels:
        """Names of the sets and of the features.

        ``labels.points`` (Q,) such as "age × dose", and ``labels.features`` (M,).
        """
        return Labels(
            points=tuple(map(self.name_of, range(len(self)))),
            features=tuple(map(str, self.names)),
        )

    def matrix(self) -> Array:
        """Scores of pairs as a symmetric matrix (M, M); NaN for pairs without a score.

        Raises
        ------
        InvalidInput
            If the sets are not pairs.
        """
        if self.order != 2:
            raise InvalidInput(
                f"matrix: expected pairs, got sets of {self.order}; "
                "fitted_iloco.interactions(order=2) gives pairs"
            )
        scores = np.full((len(self.names), len(self.names)), np.nan)
        first, second = self.sets.T
        scores[first, second] = scores[second, first] = self.scores
        return scores

    @suggests_arguments
    def plot(
        self,
        n_sets: int = 20,
        *,
        level: float = 0.9,
        adjust: Adjustment = "bonferroni",
        ax: Axes | None = None,
    ) -> Axes:
        """Draw the largest scores as bars with confidence intervals.

        Above zero are sets whose features are needed together, below zero features that
        can replace each other. Bars whose interval contains zero are hatched.

        Parameters
        ----------
        n_sets : int
            The number of sets to draw, those with the largest |score|.
        level : float
            The confidence level of the intervals.
        adjust : Adjustment
            The correction for multiple intervals, which counts all scored sets, as in
            :meth:`intervals`.
        ax : matplotlib Axes, optional
            The axes to draw on; a new figure by default.

        Returns
        -------
        matplotlib Axes

        Examples
        --------
        >>> import numpy as np, propopt as po
        >>> from sklearn.tree import DecisionTreeRegressor
        >>> X = np.random.default_rng(0).normal(size=(120, 3))
        >>> scheme = po.interactions.DataSplit()
        >>> pairs = po.interactions.ILOCO(DecisionTreeRegressor(), scheme)
        >>> pairs = pairs.fit(X, 3 * X[:, 0] * X[:, 1])
        >>> axes = pairs.result_.plot()
        >>> print(axes.get_title())
        Squared error of DecisionTreeRegressor
        90% intervals, Bonferroni of 3
        """
        order = largest_first(np.abs(self.scores))
        order = order[: read_count(n_sets, "n_sets")]
        ends = self.intervals(level, adjust=adjust)[order]
        title = f"{self.explained[:1].upper()}{self.explained[1:]}\n"
        title += intervals_in_words(self, level, adjust)
        noun = "LOCO score" if self.order == 1 else "iLOCO score"
        below, above = signs_in_words(self)
        return draw(
            Steps(
                names=[self.name_of(q) for q in order],
                parts=self.scores[order],
                intervals=ends,
                hatched=~((ends[:, 0] > 0.0) | (ends[:, 1] < 0.0)),
                hatching="the interval contains 0",
                caption=f"{noun}, in {self.units}\nbelow 0: {below}; above 0: {above}",
                title=title,
            ),
            ax,
        )

    def name_of(self, q: int) -> str:
        """The name of a set by its position, such as "age × dose"."""
        return " × ".join(str(self.names[feature]) for feature in self.sets[q])

    @property
    def total_errors(self) -> Values:
        """Standard errors √(se² + se_mc²) due to rows and patches, shape (Q,)."""
        return np.hypot(self.standard_errors, self.monte_carlo)

    @property
    def explained(self) -> str:
        """The error that scores compare, such as "squared error of predicted price"."""
        quantity = self.quantity
        if quantity is None:
            return f"{self.error} error"
        if quantity.kind == "value":
            predicted = quantity.model if quantity.is_by_name else quantity.in_words()
            return f"{self.error} error of {predicted}"
        if self.error != "probability":
            return f"{self.error} error of the probabilities of {quantity.model}"
        of_outcome = "" if quantity.outcome is None else f" of {quantity.outcome}"
        return f"1 − probability of the true class{of_outcome}, by {quantity.model}"

    @property
    def n_independent(self) -> int:
        """The number of independent rows, or of groups of rows."""
        return self.n_row_groups or self.n_rows

    @property
    def are_not_used(self) -> Mask:
        """Mask (Q,) of sets with a feature that no fitted learner uses.

        Permuting the values of such a feature between rows changes no prediction.
        Leaving it out may still change fits by chance (ties, seeds) or by the number of
        columns; this is not counted.
        """
        return with_any(self.sets, self.not_used)

    @property
    def degenerate(self) -> Mask:
        """Mask (Q,) of sets with the same score in all rows, so without a spread.

        Sets with unused features are excluded: their score is 0.
        """
        rounding = self.error_range.rounding(self.order)
        equal = self.standard_errors * np.sqrt(self.n_rows) <= rounding
        return equal & ~self.are_not_used

    def intervals(
        self,
        level: float = 0.9,
        *,
        adjust: Adjustment = "bonferroni",
        side: Side = "both",
        errors: ErrorKind = "total",
    ) -> Array:
        """Confidence intervals (Q, 2) of the scores.

        Parameters
        ----------
        level : float
            1 − α, for all intervals together by ``adjust``.
        adjust : Adjustment
            "none", "bonferroni", "holm" (with the intervals of Bonferroni),
            "benjamini-hochberg" or "benjamini-yekutieli" (intervals have the level
            1 − R α/m if R of m sets are rejected).
        side : {"both", "lower", "upper"}
            Which ends are finite.
        errors : {"total", "rows"}
            With the error due to patches, or without, as in the paper. The former is
            estimated from groups of patches, with Student's law of one degree of
            freedom fewer than groups.

        Returns
        -------
        array (Q, 2)
            Lower and upper ends in ``units``; infinite on an open side.

        Raises
        ------
        InvalidInput
            If the level is not between 0 and 1, or a name is invalid.
        """
        alpha = 1.0 - read_level(level)
        law = self._law(errors)
        side = read_option(side, Side, "side")
        p = law.p_values(ALTERNATIVES[side])
        return law.intervals(interval_alpha(p, adjust, self.n_candidates, alpha), side)

    def p_values(
        self,
        alternative: Alternative = "two-sided",
        *,
        adjust: Adjustment = "none",
        errors: ErrorKind = "total",
    ) -> Values:
        """p-values (Q,) of the null hypothesis that a score is zero.

        Parameters
        ----------
        alternative : {"two-sided", "greater", "less"}
            "greater" gives 1 − Φ(T), for the null hypothesis "at most zero".
        adjust : Adjustment
            Correction for all ``n_candidates``.
        errors : {"total", "rows"}
            See :meth:`intervals`.

        Returns
        -------
        array (Q,)
            One p-value for each set, with this correction.

        Raises
        ------
        InvalidInput
            If a name is invalid.
        """
        law = self._law(errors)
        p = law.p_values(read_option(alternative, Alternative, "alternative"))
        return adjusted_p_values(p, adjust, self.n_candidates)

    def to_frame(
        self,
        *,
        level: float = 0.9,
        adjust: Adjustment = "bonferroni",
        side: Side = "both",
        errors: ErrorKind = "total",
    ) -> pd.DataFrame:
        """A table with one row for each set, in the order of the sets.

        Parameters
        ----------
        level : float
            The confidence level 1 − α, between 0 and 1.
        adjust : Adjustment
            The correction for many sets, as for :meth:`intervals`.
        side : {"both", "lower", "upper"}
            The finite ends of intervals, and the side of ``p_adj``.
        errors : {"total", "rows"}
            Standard errors with or without the error due to patches.

        Returns
        -------
        DataFrame
            ``feature_1`` to ``feature_r``; ``estimate``; ``se`` due to rows, ``se_mc``
            due to patches and ``se_total``; ``ci_low`` and ``ci_high``. These numbers
            are in ``units``. Tests: ``stat``, T = estimate/error; ``p_one`` of "at
            most zero" and ``p_two``, without correction; ``p_adj``, corrected,
            for the side; ``reject`` if it is at most 1 − level. Checks:
            ``n_patches_min``; ``degenerate``; ``effective_rows``; ``used``, False for
            sets with a feature that no learner uses.

        Raises
        ------
        InvalidInput
            If the level is not between 0 and 1, or a name is invalid.
        """
        alpha = 1.0 - read_level(level)
        law = self._law(errors)
        ends = self.intervals(level, adjust=adjust, side=side, errors=errors)
        adjusted = self.p_values(ALTERNATIVES[side], adjust=adjust, errors=errors)
        return pd.DataFrame(
            {
                **{
                    f"feature_{k + 1}": [self.names[feature] for feature in features]
                    for k, features in enumerate(self.sets.T)
                },
                "score": self.scores,
                "se": self.standard_errors,
                "se_mc": self.monte_carlo,
                "se_total": self.total_errors,
                "ci_low": ends[:, 0],
                "ci_high": ends[:, 1],
                "stat": law.statistics,
                "p_one": law.p_values("greater"),
                "p_two": law.p_values("two-sided"),
                "p_adj": adjusted,
                "reject": adjusted <= alpha,
                "n_patches_min": self.counts,
                "degenerate": self.degenerate,
                "effective_rows": self.effective_rows,
                "used": ~self.are_not_used,
            }
        )

    def top(
        self, k: int = 10, *, level: float = 0.9, adjust: Adjustment = "bonferroni"
    ) -> pd.DataFrame:
        """The k sets with the largest scores, as rows of :meth:`to_frame`.

        Parameters
        ----------
        k : int
            The number of sets, at least one.
        level : float
            The confidence level 1 − α, between 0 and 1.
        adjust : Adjustment
            The correction for many sets, as for :meth:`intervals`.

        Returns
        -------
        DataFrame
            At most k rows of :meth:`to_frame`, the largest estimate first.

        Raises
        ------
        InvalidInput
            If an argument is invalid.
        """
        frame = self.to_frame(level=level, adjust=adjust)
        return frame.nlargest(read_count(k, "k"), "score")

    def most_negative(
        self, k: int = 10, *, level: float = 0.9, adjust: Adjustment = "bonferroni"
    ) -> pd.DataFrame:
        """The k smallest scores: features that can replace each other.

        Parameters
        ----------
        k : int
            The number of sets, at least one.
        level : float
            The confidence level 1 − α, between 0 and 1.
        adjust : Adjustment
            The correction for many sets, as for :meth:`intervals`.

        Returns
        -------
        DataFrame
            At most k rows of :meth:`to_frame`, the smallest estimate first.

        Raises
        ------
        InvalidInput
            If an argument is invalid.
        """
        frame = self.to_frame(level=level, adjust=adjust)
        return frame.nsmallest(read_count(k, "k"), "score")

    @property
    def cautions(self) -> tuple[str, ...]:
        """Limits of these scores, and what to do, two sentences each.

        They are about equal rows, or too few for a normal law, few patches, and unknown
        errors due to patches.
        """
        return tuple(_cautions(self))

    def noted_in(self, explanation: Explanation) -> Explanation:
        """A copy of an explanation with the features that clearly interact.

        Additive attributions cannot show interactions. Scores below zero are of
        features that can replace each other.

        Parameters
        ----------
        explanation : Explanation
            For the same features by name, or for as many without names.

        Returns
        -------
        Explanation
            A copy with their names and scores in ``parameters["clear pairs"]``.

        Raises
        ------
        InvalidInput
            If the scores are of single features, or of other features.
        """
        if self.order < 2:
            raise InvalidInput(
                "interactions: expected scores of pairs or larger sets, got scores of "
                "single features; fitted_iloco.interactions(order=2) gives pairs"
            )
        self._refuse_others(explanation)
        above, below = clear_scores(self)
        clear = np.flatnonzero(above | below)
        order = clear[largest_first(np.abs(self.scores[clear]))]
        largest = order[:_MOST_NAMED].tolist()
        named = [
            f"{printable(self.name_of(q))} {signed_text(self.scores[q])}"
            for q in largest
        ]
        if len(order) > _MOST_NAMED:
            named.append(f"{len(order) - _MOST_NAMED:,} more")
        text = ", ".join(named) or f"none of {len(self):,}"
        parameters = {**explanation.parameters, f"clear {self.noun}s": text}
        return replace(explanation, parameters=parameters)

    def _refuse_others(self, explanation: Explanation) -> None:
        """Refuse an explanation of other features; without names they are counted."""
        labels = explanation.labels
        columns = labels.features if labels.columns is None else labels.columns
        wanted = [*map(plain_name, columns or range(explanation.shape[1]))]
        parts = [*map(plain_name, chain.from_iterable(self.columns))]
        ours = [{*map(plain_name, self.names)}, set(parts)]
        is_counted = set(range(len(parts))) in (set(wanted), *ours)
        if set(wanted) not in ours and (not is_counted or len(wanted) != len(parts)):
            raise InvalidInput(
                f"interactions: expected scores of {listed(wanted, 4)}, got scores of "
                f"{listed(parts, 4)}"
            )

    def document(self) -> Document:
        """The largest scores with intervals, the count of clear ones, a caution."""
        quantity = self.quantity
        model = "" if quantity is None else quantity.model
        kind = "Interactions (iLOCO)" if self.order > 1 else "Importance (LOCO)"
        title = f"{kind} · {self.explained}"
        size = f"{plural(self.n_rows, 'row')}, {counted_sets(self, len(self))}"
        formula = _FORMULAS.get(self.order, _OTHER_FORMULA)
        parts = "" if model in title else model, size
        return Document(
            title=title,
            subtitle=" · ".join(
                filter(None, [*parts, f"score: {formula}, in {self.units}"])
            ),
            dangers=self.cautions[:1],
            blocks=[self._largest(), Facts([*self._facts()])],
            settings={"learner": model or "–", "without features": self.method},
            chapters=self._chapters,
        )

    @property
    def noun(self) -> str:
        """The noun of a score: a feature, a pair, a triple, or a set."""
        return SET_NOUNS.get(self.order, "set")

    def _largest(self) -> Table:
        """The largest scores by size, with their intervals as lines across bars."""
        order = largest_first(np.abs(self.scores))[:_ON_PAGE].tolist()
        ends = self.intervals(WORDS_LEVEL)[order].tolist()
        scores = self.scores[order].tolist()
        texts = [interval_text(pair) or "unknown" for pair in ends]
        unused = self.are_not_used[order]
        table = pd.DataFrame(
            {
                "score": [signed_text(x) if x == x else "unknown" for x in scores],
                "interval": np.where(unused, "not used", texts),
            },
            pd.Index([self.name_of(q) for q in order], name=self.noun),
        )
        bars = {"score": [*map(Span.of, scores, map(tuple, ends))]}
        return Table(table, total=len(self), bars=bars)

    def _facts(self) -> Iterator[Fact]:
        """Counts of clear scores and of patches, and the level of intervals."""
        above, below = (int(mask.sum()) for mask in clear_scores(self))
        clear = f"{above + below:,} of {counted_sets(self, len(self))}"
        yield Fact("clear", clear, "", "estimated", f"{below} below 0" if below else "")
        level = f"{level_in_words(WORDS_LEVEL)} for all {self.noun}s together"
        aim = "new rows and patches" if self.n_groups else "new rows"
        if self.n_row_groups:
            aim = f"new groups of rows, {self.n_row_groups} tested"
        yield Fact("interval", level, note=aim)
        if self.n_patches:
            share = self.patch_error
            note = "" if np.isnan(share) else f"error {share_text(share)} of a constant"
            yield Fact("patches", self.n_patches, note=note)

    def _chapters(self) -> list[Chapter]:
        """The scores of single features."""
        if self.main is None:
            return []
        alone = self.main.document()
        return [Chapter(alone.title, alone.blocks)]

    def _law(self, errors: ErrorKind) -> ScoreLaw:
        total = read_option(errors, ErrorKind, "errors") == "total"
        spread = self.total_errors if total else self.standard_errors
        return ScoreLaw(
            estimates=self.scores,
            errors=spread,
            degrees=self._degrees(spread) if total else self._degrees_of_rows,
            equal=self.degenerate,
            half_range=self.error_range.of_score(self.order),
            n_rows=self.n_independent,
        )

    def _degrees(self, total: Values) -> Values:
        """(G − 1) (se_total/se_mc)⁴, by Satterthwaite: only se_mc has few degrees."""
        if self.n_groups < 2:
            return self._degrees_of_rows
        errors = self.monte_carlo
        return (self.n_groups - 1) * quotient(total, errors, np.inf, errors != 0.0) ** 4

    @property
    def _degrees_of_rows(self) -> Values:
        """C − 1 for groups of rows; infinite for independent rows."""
        degrees = self.n_row_groups - 1 if self.n_row_groups else np.inf
        return np.full(len(self), float(degrees))


# ---- Clear scores: intervals without the scores of a model without interactions


def clear_scores(result: InteractionScores) -> tuple[Mask, Mask]:
    """Masks (Q,) of clear joint contributions, and of features that replace others.

    Their intervals, which hold simultaneously for all candidates, exclude zero.
    """
    ends = result.intervals(WORDS_LEVEL)
    return ends[:, 0] > 0.0, ends[:, 1] < 0.0


def intervals_in_words(
    result: InteractionScores, level: float, adjust: Adjustment
) -> str:
    """Level and correction of intervals, such as "90 % intervals, uncorrected"."""
    correction = "uncorrected"
    if adjust != "none":
        name = adjust.title().replace("-", "–")
        correction = f"{name} of {result.n_candidates:,}"
    return f"{level_in_words(level)} intervals, {correction}"


_MOST_NAMED: Final = 5
"""Number of sets that are named; the others are counted."""
