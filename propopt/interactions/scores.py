"""Scores of interactions: what they are, what is sure of them, and in words."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from typing import Final, final

import numpy as np
import pandas as pd

from propopt.base.arrays import Array, Indices, Mask, Values
from propopt.base.cards import N_ON_CARD
from propopt.base.checks import read_count, read_level, read_option
from propopt.base.declared import field
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
from propopt.base.text import Quantity, plain_name, plural, printable
from propopt.interactions.features import (
    FeatureSets,
    pairs_matrix,
)
from propopt.interactions.inference import (
    ALTERNATIVES,
    FEW_ROWS,
    Adjustment,
    Alternative,
    ErrorKind,
    ErrorRange,
    Null,
    ScoreLaw,
    Side,
    adjusted_p_values,
    interval_alpha,
)
from propopt.results.explanation import Explanation
from propopt.results.result import Result
from propopt.tables.frames import Labels, listed, order_of


# ---- Scores in words: what the largest say, and what a reader has to be careful with


SET_NOUNS: Final = {1: "feature", 2: "pair", 3: "triple"}
WORDS_LEVEL: Final = 0.9
"""Of intervals in words, all together."""


_ON_PAGE: Final = 15
"""Scores with a bar, the largest."""


def level_in_words(level: float) -> str:
    """In percent, with as many digits as it has."""
    return f"{100.0 * level:.4g} %"


def counted_sets(scores: InteractionScores, count: int) -> str:
    """So many of the sets that are scored."""
    noun = SET_NOUNS.get(scores.order)
    if noun is None:
        return f"{plural(count, 'set')} of {scores.order} features"
    return plural(count, noun)


def aim_of_intervals(scores: InteractionScores) -> str:
    """What the intervals are for."""
    if scores.n_groups:
        return "for new rows, whatever patches are drawn"
    if scores.n_row_groups:
        return (
            f"for rows of new groups ({scores.n_row_groups} were judged) and the "
            "predictors as they are fitted here"
        )
    return "for new rows and the predictors as they are fitted here"


def _beyond(leak: Values, low: Values, high: Values) -> tuple[Mask, Mask]:
    """Where intervals are above zero and the leak, and where below both, (Q,)."""
    return np.asarray(low > np.maximum(leak, 0.0)), np.asarray(
        high < np.minimum(leak, 0.0)
    )


def _finding(scores: InteractionScores, above: int, below: int) -> str:
    """How many scores are clear, and what that says of the features."""
    many = f"{counted_sets(scores, above)} of {len(scores)}"
    if not above:
        many = f"No {counted_sets(scores, 1)[2:]} of {len(scores)} clearly"
    verb = "matter" if above > 1 else "matters"
    whom = _predicted(scores)
    match scores.order:
        case 1:
            it = "them" if above > 1 else "it"
            what = f"{whom}: errors are larger without {it}" if above else whom
            others = plural(below, "other" if above else "feature")
            also = f"errors are smaller without {others}"
        case 2:
            what = f" jointly{whom}, beyond what each feature does alone"
            also = f"in {below} each stands in for the other"
        case _:
            what = f" jointly{whom}, beyond what fewer features do"
            also = f"what {below} of them do is had from fewer features"
    return "; ".join([f"{many} {verb}{what}", *([also] if below else [])])


def _predicted(scores: InteractionScores) -> str:
    """To what features matter, after "matter"."""
    label = scores.quantity
    if label is None:
        return ""
    if label.kind == "value":
        return f" to {label.in_words()}"
    return f" to probabilities of {label.outcome or label.model}"


_FORMULAS: Final = {
    1: "rise without the feature",
    2: "rise without one feature, plus without the other, less without both",
}


_RISES: Final = "rises without its parts, added and subtracted in turn by their size"


# ---- What the numbers do not say: each a verdict, a number, and what to do


def _of_leak(scores: InteractionScores) -> str:
    """Fixed numbers of columns: a score of zero is not what no interaction gives."""
    if not scores.leak.any():
        return ""
    verdict = "Excluding zero is no finding: patches of one size leak"
    cure = "Draw columns='bernoulli'."
    if np.isnan(scores.leak).all():
        unknown = f"into scores, how much is unknown for {scores.error} errors"
        return f"{verdict} {unknown}. {cure}"
    above, below = _beyond(scores.leak, *scores.intervals(WORDS_LEVEL).T)
    beyond = int((above | below).sum())
    leak = f"{np.nanmin(scores.leak):.3g} to {np.nanmax(scores.leak):.3g}"
    verb = "goes" if beyond == 1 else "go"
    return (
        f"{verdict} {leak} into scores. {plural(beyond, 'interval')} {verb} beyond. "
        f"{cure}"
    )


def _of_few_patches(scores: InteractionScores) -> str:
    """se_mc² falls as 1/B: with B (se_mc/se)² patches it is what se is now.

    Where a score is near zero in all rows, se is itself of patches and falls with them,
    so that the ratio may stay; the total error falls all the same.
    """
    known = (scores.standard_errors > 0.0) & (scores.monte_carlo > 0.0)
    ratios = scores.monte_carlo[known] / scores.standard_errors[known]
    worst = float(ratios.max(initial=0.0))
    if worst <= 1.0:
        return ""
    count = int((ratios > 1.0).sum())
    more = two_digits_up(max(scores.n_patches, 1) * worst**2)
    cure = (
        f"Take n_patches={more}" if scores.n_patches else f"Take {more} times as many"
    )
    return (
        f"Few patches limit {count} of {counted_sets(scores, len(scores))}: they add "
        f"up to {worst:.2g} times the error of rows. {cure} or more."
    )


def two_digits_up(number: float) -> int:
    """The next whole number of two digits and zeros."""
    unit = 10 ** max(0, math.floor(math.log10(number)) - 1)
    return math.ceil(number / unit) * unit


def _cautions(scores: InteractionScores) -> Iterator[str]:
    """All of them; empty where there is nothing to be said."""
    yield _of_leak(scores)
    yield _of_few_patches(scores)
    label = "group" if scores.n_row_groups else "row"
    if count := len(scores.not_used):
        verb = "is" if count == 1 else "are"
        yield (
            f"{plural(count, 'feature')} {verb} not used by any fit: scores of sets "
            "with such a feature are 0. Leave it out to save time."
        )
    if count := int(scores.degenerate.sum()):
        bound = scores.error_range
        seen = "" if bound.proved else " (as seen)"
        yield (
            f"All rows score alike in {counted_sets(scores, count)}: intervals assume "
            f"errors stay within {bound.low:.4g} to {bound.high:.4g}{seen}. Judge over "
            f"{plural(scores.n_independent, label)}."
        )
    if count := int((scores.effective_rows < FEW_ROWS).sum()):
        yield (
            f"Fewer than {FEW_ROWS} {label}s carry the error of "
            f"{counted_sets(scores, count)} (at least "
            f"{np.nanmin(scores.effective_rows):.1f}). A normal law is doubtful there: "
            f"judge more {label}s."
        )
    if count := int(np.isnan(scores.monte_carlo).sum()):
        yield (
            f"The error of few patches is unknown for {counted_sets(scores, count)}: a "
            "row has all its patches in one group. Draw more patches."
        )


# ---- iLOCO of sets of features, with what is known of its error


_ROUNDING: Final = 1e-9
"""Of counts of rows that are sums of powers."""


@final
class InteractionScores(
    Result, kind="propopt interactions", noun="saved interactions", version=2
):
    """Scores of Q sets of r features: how much the features matter jointly.

    Of pairs a large score is a contribution beyond those of the two, and a very
    negative one that each stands in for the other. Scores are in units of the error of
    one learner: those of another learner are not compared with them.

    Parameters
    ----------
    sets : array of int (Q, r)
        Places of the features of each set, ascending.
    names : tuple (M,)
        Of the features.
    estimates : array (Q,)
        iLOCO_S, in ``units``.
    standard_errors : array (Q,)
        Of other rows.
    monte_carlo : array (Q,)
        Of other patches; zero where there are none.
    counts : array (Q,)
        Predictions that are averaged, where they are fewest.
    n_rows : int
        N, rows that were judged.
    n_candidates : int
        Sets among which these were chosen: corrections count all of them.
    method : str
        How predictors without features were had, in words.
    error : str
        Err, by its name.
    units : str
        Of the scores.
    notes : tuple of str
        What a reader has to know, a sentence each.
    leak : array (Q,)
        What a model without any interaction would show, by patches that all have one
        number of features; zero otherwise.
    effective_rows : array (Q,)
        How many rows carry the standard error; NaN where it is not known.
    n_groups : int
        Of patches, from which ``monte_carlo`` is estimated; 0 where it is exact.
    error_range : ErrorRange
        Between what the error of a row lies.
    main : InteractionScores or None
        LOCO of each feature.
    columns : tuple of tuple (M,)
        Names of the columns of each feature; by default one, called as the feature.
    n_patches : int
        B; 0 where predictors are no means of patches.
    n_row_groups : int
        C, of rows that are judged and belong together; 0 where each row is its own.
    not_used : tuple of int
        Places of features that no fitted learner uses: scores of sets with them are 0,
        without error.
    quantity : Quantity or None
        What the learner predicts, whose error is measured.

    Examples
    --------
    >>> import numpy as np
    >>> from propopt.interactions import InteractionScores
    >>> scores = InteractionScores(
    ...     sets=np.array([[0, 1], [0, 2], [1, 2]]),
    ...     names=("a", "b", "c"),
    ...     estimates=np.array([0.5, -0.1, 0.02]),
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
    estimates: Values = field("Q", missing=True)
    n_rows: int = field(low=1)
    method: str = field()
    units: str = field()
    standard_errors: Values = field("Q", low=0.0, missing=True)
    monte_carlo: Values = field("Q", low=0.0, missing=True)
    counts: Values = field("Q", low=0.0)
    n_candidates: int = field(low=0)
    error: str = field()
    notes: tuple[str, ...] = field(default=())
    leak: Values = field("Q", default=0.0, missing=True)
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
        own = vars(self)
        own["columns"] = self.columns or tuple((name,) for name in self.names)
        for name in ("leak", "effective_rows"):
            if np.ndim(own[name]) == 0:
                own[name] = np.full(len(self.sets), own[name])
        super().__post_init__()

    def validate(self) -> None:
        """Refuse sets of features that are not there, and what others contradict."""
        inside = (self.sets >= 0) & (self.sets < len(self.names))
        ascending = inside.all() and (np.diff(self.sets, axis=1) > 0).all()
        if not (self.order and ascending):
            raise InvalidInput(
                f"sets: expected ascending places from 0 to {len(self.names) - 1}"
            )
        n_features, unused = len(self.names), self.not_used
        errors = self.standard_errors, self.monte_carlo
        zero = [values[self.are_not_used] for values in (self.estimates, *errors)]
        most_rows = self.n_independent * (1.0 + _ROUNDING)
        bound, main = self.error_range, self.main
        nested = main is not None and (main.order != 1 or main.main is not None)
        for wrong, expected in (
            (self.n_candidates < len(self), "n_candidates: at least the sets"),
            (len(self.columns) != n_features, "columns: those of each feature"),
            (not all(self.columns), "columns: at least one of each feature"),
            (any(k >= n_features for k in unused), "not_used: places of features"),
            (len(set(unused)) < len(unused), "not_used: each feature once"),
            (np.any(zero), "not_used: scores 0, without error, of sets with them"),
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
        """How many features a set has: of LOCO 1, of pairs 2."""
        return int(self.sets.shape[1])

    @property
    def labels(self) -> Labels:
        """Names: of sets, as rows of :meth:`to_frame`, and of features.

        ``labels.points`` (Q,) are such as "age × dose", ``labels.features`` (M,).
        """
        return Labels(
            points=tuple(map(self._name_of, range(len(self)))),
            features=tuple(map(str, self.names)),
        )

    def matrix(self) -> Array:
        """Scores of pairs as a symmetric matrix (M, M); NaN where there is none.

        Raises
        ------
        InvalidInput
            If the sets are no pairs.
        """
        if self.order != 2:
            raise InvalidInput(f"matrix: expected pairs, got sets of {self.order}")
        return pairs_matrix(self.estimates, self.sets, len(self.names))

    def _name_of(self, q: int) -> str:
        return " × ".join(str(self.names[place]) for place in self.sets[q])

    def _features(self) -> dict[str, list[Hashable]]:
        """The first columns of :meth:`to_frame`."""
        return {
            f"feature_{k + 1}": [self.names[place] for place in self.sets[:, k]]
            for k in range(self.order)
        }

    @property
    def total_errors(self) -> Values:
        """√(se² + se_mc²): of other rows and of other patches, shape (Q,)."""
        return np.hypot(self.standard_errors, self.monte_carlo)

    @property
    def explained(self) -> str:
        """What scores are made of, such as "squared error of predicted price"."""
        label = self.quantity
        if label is None:
            return f"{self.error} error"
        if label.kind == "value":
            return f"{self.error} error of {label.in_words()}"
        error = "" if self.error == "probability" else f"{self.error} error of the "
        whose = "" if label.outcome is None else f" of {label.outcome}"
        own = f"1 − probability of the true class{whose}, by {label.model}"
        return f"{error}probabilities of {label.model}" if error else own

    @property
    def n_independent(self) -> int:
        """Rows, or groups of rows, of which errors are made."""
        return self.n_row_groups or self.n_rows

    @property
    def are_not_used(self) -> Mask:
        """Where a set has a feature that no fitted learner uses, (Q,).

        At no row of the table does a prediction change when the values of such a
        feature are exchanged between the rows. What leaving it out changes all the same
        is chance (ties, seeds) or the number of columns; it is not counted.
        """
        own = np.isin(self.sets, np.array(self.not_used, np.intp))
        return np.asarray(own.any(axis=1))

    @property
    def degenerate(self) -> Mask:
        """Where all rows have one score, so that no spread can be estimated, (Q,).

        Not of features that are not used: their score is known.
        """
        rounding = self.error_range.rounding(self.order)
        equal = self.standard_errors * np.sqrt(self.n_rows) <= rounding
        return np.asarray(equal & ~self.are_not_used)

    def intervals(
        self,
        level: float = 0.9,
        *,
        adjust: Adjustment = "bonferroni",
        side: Side = "both",
        errors: ErrorKind = "total",
        against: Null = "zero",
    ) -> Array:
        """Confidence intervals (Q, 2) of what scores estimate.

        Parameters
        ----------
        level : float
            1 − α, of all intervals together as ``adjust`` has it.
        adjust : Adjustment
            "none", "bonferroni", "holm" (whose intervals are those of Bonferroni),
            "benjamini-hochberg" or "benjamini-yekutieli" (intervals of the R sets that
            are found have 1 − R α/m).
        side : {"both", "lower", "upper"}
            Which ends are finite.
        errors : {"total", "rows"}
            With the error of finitely many patches, or without, as in the paper. The
            former is known from groups of patches, with as many degrees of freedom less
            one, and the law is Student's.
        against : {"zero", "leak"}
            The null by which sets are found: only the last two adjustments read it.

        Raises
        ------
        InvalidInput
            If the level is not between 0 and 1, or a name is none of these.
        """
        alpha, law = 1.0 - read_level(level), self._law(errors, against)
        side = read_option(side, Side, "side")
        p = law.p_values(ALTERNATIVES[side])
        return law.intervals(interval_alpha(p, adjust, self.n_candidates, alpha), side)

    def p_values(
        self,
        alternative: Alternative = "two-sided",
        *,
        adjust: Adjustment = "none",
        errors: ErrorKind = "total",
        against: Null = "zero",
    ) -> Values:
        """p-values (Q,) of "the score is zero".

        Parameters
        ----------
        alternative : {"two-sided", "greater", "less"}
            Greater than zero is 1 − Φ(T), of "it is at most zero".
        adjust : Adjustment
            Across all ``n_candidates``.
        errors : {"total", "rows"}
            As :meth:`intervals` has it.
        against : {"zero", "leak"}
            What stands for zero; the leak counts as known.

        Raises
        ------
        InvalidInput
            If a name is none of these.
        """
        law = self._law(errors, against)
        p = law.p_values(read_option(alternative, Alternative, "alternative"))
        return adjusted_p_values(p, adjust, self.n_candidates)

    def to_frame(
        self,
        *,
        level: float = 0.9,
        adjust: Adjustment = "bonferroni",
        side: Side = "both",
        errors: ErrorKind = "total",
        against: Null = "zero",
    ) -> pd.DataFrame:
        """One row for each set, in the order of the sets.

        ``feature_1`` to ``feature_r``; ``estimate``; ``se`` of other rows, ``se_mc`` of
        other patches and ``se_total``; ``ci_low`` and ``ci_high``; ``stat``, T =
        (estimate − null)/error; ``p_one`` of "at most the null" and ``p_two``, each by
        itself; ``p_adj``, that of the side, adjusted; ``reject`` where it is at most
        1 − level; ``leak``; ``n_patches_min``; ``degenerate``; ``effective_rows``;
        ``used``, False of sets with a feature that no learner uses.
        Parameters are those of :meth:`intervals`.
        """
        alpha, law = 1.0 - read_level(level), self._law(errors, against)
        p = law.p_values(ALTERNATIVES[read_option(side, Side, "side")])
        adjusted = adjusted_p_values(p, adjust, self.n_candidates)
        ends = law.intervals(interval_alpha(p, adjust, self.n_candidates, alpha), side)
        return pd.DataFrame(
            {
                **self._features(),
                "estimate": self.estimates,
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
                "leak": self.leak,
                "n_patches_min": self.counts,
                "degenerate": self.degenerate,
                "effective_rows": self.effective_rows,
                "used": ~self.are_not_used,
            }
        )

    def top(
        self, k: int = 10, *, level: float = 0.9, adjust: Adjustment = "bonferroni"
    ) -> pd.DataFrame:
        """The k largest scores, rows of :meth:`to_frame`: what matters jointly."""
        frame = self.to_frame(level=level, adjust=adjust)
        return frame.nlargest(read_count(k, "k"), "estimate")

    def most_negative(
        self, k: int = 10, *, level: float = 0.9, adjust: Adjustment = "bonferroni"
    ) -> pd.DataFrame:
        """The k smallest scores: features that stand in for each other."""
        frame = self.to_frame(level=level, adjust=adjust)
        return frame.nsmallest(read_count(k, "k"), "estimate")

    @property
    def cautions(self) -> tuple[str, ...]:
        """What the numbers do not say, a sentence each.

        What main effects leak into scores where all patches have one number of
        features; rows that are all equal, or so few that no normal law holds; errors of
        patches that are not known.
        """
        return tuple(filter(None, _cautions(self)))

    def noted_in(self, explanation: Explanation) -> Explanation:
        """Say in an explanation which sets of its features clearly matter jointly.

        No additive attribution can show that. Pairs that stand in for each other are
        named too.

        Parameters
        ----------
        explanation : Explanation
            Of the same features, by name, or in their order where they have none.

        Returns
        -------
        Explanation
            The same with the sentence in ``parameters["notes"]``.

        Raises
        ------
        InvalidInput
            If these are scores of single features, or of other features.
        """
        labels, n_features = explanation.labels, explanation.shape[1]
        above, below = clear_scores(self)
        columns = labels.features if labels.columns is None else labels.columns
        members = explained_members(self, columns, n_features)
        own = labels.feature_names(n_features)
        shown = [
            printable(own[indices[0]] if len(indices) == 1 else name)
            for name, indices in zip(self.names, members, strict=True)
        ]
        sets = [" × ".join(shown[n] for n in one) for one in self.sets.tolist()]
        notes = [_joint_sentence(self, sets, above, below)]
        if "notes" in explanation.parameters:
            notes.insert(0, str(explanation.parameters["notes"]))
        told = {**explanation.parameters, "notes": "; ".join(notes)}
        return replace(explanation, parameters=told)

    def document(self) -> Document:
        """What is found, the largest scores with intervals, what these are for."""
        ends = self.intervals(WORDS_LEVEL)
        order = np.argsort(-np.abs(self.estimates), kind="stable")
        shown, others = order[:_ON_PAGE], order[_ON_PAGE:]
        above, below = _beyond(self.leak, *ends.T)
        notes = np.where(np.isnan(ends[:, 0]), "its error is not known", "")
        notes = np.where(self.are_not_used, "not used", notes).tolist()
        more = int((above | below)[order[N_ON_CARD:]].sum())
        subtitle = f"{self.explained}: {_FORMULAS.get(self.order, _RISES)}; in "
        subtitle += f"{self.units}; {plural(self.n_rows, 'row')}"
        rows = [
            Bar(
                name=self._name_of(q),
                value=float(self.estimates[q]),
                note=notes[q],
                interval=(float(ends[q, 0]), float(ends[q, 1])),
            )
            for q in shown
        ]
        rest = f"{more} of them clearly not zero" if more else ""
        level = level_in_words(WORDS_LEVEL)
        aims = f"intervals: {level}, all {self.n_candidates:,} together"
        return Document(
            title=_finding(self, int(above.sum()), int(below.sum())),
            subtitle=subtitle,
            blocks=[
                Bars(rows, subtitle, self.estimates[others].tolist(), rest),
                *(Finding(text, "estimated") for text in (*self.notes, *self.cautions)),
            ],
            trust=[
                Finding(aims, "estimated"),
                Finding(aim_of_intervals(self), "estimated"),
            ],
            settings={
                "learner": "–" if self.quantity is None else self.quantity.model,
                "without features": self.method,
                "units": f"scores are in {self.units}; they are compared within one "
                "learner, not with those of another",
            },
            chapters=self._chapters,
            names=self.names,
        )

    def _chapters(self) -> list[Chapter]:
        """All scores with intervals, and features by themselves."""
        table = self.top(len(self)).set_index("feature_1")
        others = {f"feature_{k}": f"feature {k}" for k in range(2, self.order + 1)}
        told_as = {
            **others,
            "estimate": "score",
            "ci_low": "from",
            "ci_high": "to",
            "p_adj": "p-value, adjusted",
            "used": "used by a fit",
        }
        table = table[list(told_as)].rename(columns=told_as).rename_axis("feature")
        caption = f"The largest first; intervals of {level_in_words(WORDS_LEVEL)}."
        scores = "Scores" if self.order > 1 else "Scores by themselves"
        chapters = [table_chapter(scores, table, caption)]
        if self.main is not None:
            alone = self.main.document()
            blocks = [*alone.blocks, *alone.trust]
            chapters.append(Chapter(alone.title, blocks, sentence(alone.subtitle)))
            chapters += alone.chapters()
        return chapters

    def __repr__(self) -> str:
        words = [
            counted_sets(self, len(self)),
            plural(len(self.names), "feature"),
            plural(self.n_rows, "row"),
            f"{self.error} error",
            self.method,
        ]
        if len(self) > 0 and not np.isnan(self.estimates).all():
            best = int(np.nanargmax(self.estimates))
            value, error = self.estimates[best], self.total_errors[best]
            words.append(f"largest {self._name_of(best)} {value:.4g} ± {error:.2g}")
        return f"InteractionScores({printable('; '.join(words))})"

    def _law(self, errors: ErrorKind, against: Null) -> ScoreLaw:
        total = read_option(errors, ErrorKind, "errors") == "total"
        leak = read_option(against, Null, "against") == "leak"
        spread = self.total_errors if total else self.standard_errors
        return ScoreLaw(
            estimates=self.estimates,
            errors=spread,
            degrees=self._degrees(spread) if total else self._degrees_of_rows,
            null=self.leak if leak else np.zeros(len(self)),
            equal=self.degenerate,
            half_range=self.error_range.of_score(self.order),
            n_rows=self.n_independent,
        )

    def _degrees(self, total: Values) -> Values:
        """(G − 1) (se_total/se_mc)⁴, by Satterthwaite: only se_mc is known from few."""
        if self.n_groups < 2:
            return self._degrees_of_rows
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.where(self.monte_carlo == 0.0, np.inf, total / self.monte_carlo)
        return np.asarray((self.n_groups - 1) * ratio**4)

    @property
    def _degrees_of_rows(self) -> Values:
        """C − 1 of groups of rows; of so many rows the law is taken as normal."""
        degrees = self.n_row_groups - 1 if self.n_row_groups else np.inf
        return np.full(len(self), float(degrees))


# ---- Features of a result among columns of a table: by name, or by position of arrays


def indices_of_columns(
    result: InteractionScores,
    names: Sequence[Hashable] | None,  # shape (D,)
    n_columns: int,
    whose: str,
) -> list[Indices]:
    """Where the columns of each of the M features of a result stand among others.

    Names decide where both sides have them, position where columns are counted.
    """
    members = _members(result, names)
    own = list(chain.from_iterable(members))
    if names is None or (are_positions(own) and not are_positions(names)):
        indices = _by_position(own, n_columns, whose, grouped=len(own) > len(members))
    else:
        order = order_of(own, names, "interactions: their columns", whose, counted=True)
        indices = np.arange(n_columns) if order is None else np.argsort(order)
    return np.split(indices, np.cumsum([len(columns) for columns in members])[:-1])


def are_positions(names: Sequence[Hashable]) -> bool:
    """Whether names only count from zero, in any order: those of columns of arrays."""
    numbers = {name for name in names if isinstance(name, int | np.integer)}
    return numbers == set(range(len(names)))


def _members(
    result: InteractionScores, names: Sequence[Hashable] | None
) -> tuple[tuple[Hashable, ...], ...]:
    """The columns of each feature; the feature itself where the others have it."""
    if names is not None and set(map(plain_name, names)) == set(
        map(plain_name, result.names)
    ):
        return tuple((name,) for name in result.names)
    return result.columns


def _by_position(
    own: Sequence[Hashable], n_columns: int, whose: str, *, grouped: bool
) -> Indices:
    if len(own) != n_columns:
        raise InvalidInput(
            f"interactions: expected scores of the {n_columns} columns of {whose}, got "
            f"those of {len(own)}: {listed(own, 4)}"
        )
    if are_positions(own):
        return np.array(own, dtype=np.intp)
    if grouped:
        raise InvalidInput(
            f"interactions: which of the columns of {whose} are one feature is known "
            "by their names, and they have none; give a DataFrame"
        )
    return np.arange(n_columns)


# ---- Which scores are clear: their intervals exclude what no interaction would show


_ADJUSTED: Final = {
    "bonferroni": "Bonferroni",
    "holm": "Holm",
    "benjamini-hochberg": "Benjamini–Hochberg",
    "benjamini-yekutieli": "Benjamini–Yekutieli",
}


def clear_scores(
    result: InteractionScores,
    level: float = 0.9,
    adjust: Adjustment = "bonferroni",
) -> tuple[Mask, Mask]:
    """Which scores are clearly joint contributions, and which stand in, (Q,) each.

    Their intervals, which hold for all candidates at once, are above zero and the leak
    of patches of one size, as far as it is known; or below both.
    """
    if not isinstance(result, InteractionScores):
        raise InvalidInput(
            "result: expected InteractionScores, such as ILOCO(...).fit(X, y).result_, "
            f"got {type(result).__name__}"
        )
    ends = result.intervals(level=level, adjust=adjust)
    return _beyond(np.nan_to_num(result.leak, nan=0.0), *ends.T)


def require_pairs(result: InteractionScores, label: str) -> None:
    """Refuse scores of sets of other sizes, and of none."""
    if result.order != 2:
        raise InvalidInput(
            f"{label}: expected scores of pairs, got sets of {result.order}: "
            "interactions(order=2) of a fitted ILOCO gives pairs, and "
            "interaction_intervals draws sets of any size"
        )
    if not len(result.sets):
        raise InvalidInput(f"{label}: there are no pairs")


def intervals_in_words(
    result: InteractionScores,
    level: float = 0.9,
    adjust: Adjustment = "bonferroni",
) -> str:
    """What they are, such as "90 % intervals, each alone"."""
    name = _ADJUSTED.get(adjust)
    of = "each alone" if name is None else f"{name} of {result.n_candidates:,}"
    return f"{level_in_words(level)} intervals, {of}"


# ---- A sentence beside attributions: what matters jointly


_MOST_NAMED: Final = 5
"""Sets that are named; of others it is said how many there are."""


def explained_members(
    result: InteractionScores, names: Sequence[Hashable] | None, n_features: int
) -> list[Indices]:
    """Where the columns of each feature of a result stand among those explained."""
    if result.order < 2:
        raise InvalidInput(
            "interactions: expected scores of pairs or larger sets, got those of "
            "single features, which attributions show; interactions(order=2) of a "
            "fitted ILOCO gives pairs"
        )
    return indices_of_columns(result, names, n_features, "the explained table")


def _joint_sentence(
    result: InteractionScores, sets: Sequence[str], joint: Mask, instead: Mask
) -> str:
    above = _named(sets, joint, result.estimates)
    below = _named(sets, instead, result.estimates)
    parts = []
    if above:
        parts.append(f"{above} matter jointly, which no additive attribution can show")
    if below and result.order == 2:
        parts.append(
            f"{below} stand in for each other, so that another fit may divide their "
            "attributions otherwise where they are correlated"
        )
    if not parts:
        parts.append(f"of {len(sets):,} sets of features none clearly matters jointly")
    return (
        f"interactions (iLOCO of learners that were fitted again, in "
        f"{printable(result.units)}, {intervals_in_words(result)}): "
        f"{', and '.join(parts)}"
    )


def _named(sets: Sequence[str], own: Mask, scores: Values) -> str:
    """The largest of some sets with their scores, and how many more there are."""
    indices: Indices = np.flatnonzero(own)
    order = indices[np.argsort(-np.abs(scores[indices]), kind="stable")]
    words = [f"{sets[q]} ({scores[q]:.3g})" for q in order[:_MOST_NAMED]]
    if len(order) > _MOST_NAMED:
        words.append(f"{len(order) - _MOST_NAMED:,} more")
    return " and ".join(filter(None, [", ".join(words[:-1]), *words[-1:]]))
