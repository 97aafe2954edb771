"""iLOCO of sets of features, with what is known of its error."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from pathlib import Path
from typing import final

import numpy as np
import pandas as pd

from propopt._typing import Array, Truths, Values
from propopt.checks import known_word, read_count, sealed
from propopt.errors import InvalidInput
from propopt.interactions.features import Places, pairs_matrix
from propopt.interactions.inference.adjust import (
    Adjustment,
    adjusted_p_values,
    interval_alpha,
)
from propopt.interactions.inference.equal_rows import (
    EqualRows,
    ErrorRange,
    are_equal,
)
from propopt.interactions.inference.law import (
    ALTERNATIVES,
    Alternative,
    ErrorKind,
    Null,
    ScoreLaw,
    Side,
)
from propopt.interactions.inference.level import read_alpha
from propopt.interactions.reading.card import scores_html
from propopt.interactions.reading.frame import scores_frame
from propopt.interactions.reading.saved import read_scores, write_scores
from propopt.interactions.reading.words import (
    cautions,
    largest_in_words,
    scores_text,
)
from propopt.output.csv import write_csv
from propopt.quantity import Quantity


def _number(value: float) -> Values:
    return np.array(value)


@final
@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class InteractionScores:
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

    sets: Places
    names: tuple[Hashable, ...]
    estimates: Values
    standard_errors: Values
    monte_carlo: Values
    counts: Values
    n_rows: int
    n_candidates: int
    method: str
    error: str
    units: str
    notes: tuple[str, ...] = ()
    leak: Values = field(default_factory=lambda: _number(0.0))
    effective_rows: Values = field(default_factory=lambda: _number(np.nan))
    n_groups: int = 0
    error_range: ErrorRange = ErrorRange(0.0, 1.0, proved=False)
    main: InteractionScores | None = None
    columns: tuple[tuple[Hashable, ...], ...] = ()
    n_patches: int = 0
    n_row_groups: int = 0
    not_used: tuple[int, ...] = ()
    quantity: Quantity | None = None

    def __post_init__(self) -> None:
        own = vars(self)
        own["columns"] = self.columns or tuple((name,) for name in self.names)
        for name in ("leak", "effective_rows"):
            own[name] = np.array(np.broadcast_to(own[name], len(self.sets)))
        for name, value in own.items():
            if isinstance(value, np.ndarray):
                own[name] = sealed(value)

    def __len__(self) -> int:
        return len(self.sets)

    @property
    def order(self) -> int:
        """How many features a set has: of LOCO 1, of pairs 2."""
        return int(self.sets.shape[1])

    @property
    def total_errors(self) -> Values:
        """√(se² + se_mc²): of other rows and of other patches, shape (Q,)."""
        return np.hypot(self.standard_errors, self.monte_carlo)

    @property
    def explained(self) -> str:
        """What scores are made of, such as "squared error of predicted price"."""
        what = self.quantity
        if what is None:
            return f"{self.error} error"
        if what.kind == "value":
            return f"{self.error} error of {what.in_words()}"
        error = "" if self.error == "probability" else f"{self.error} error of the "
        whose = "" if what.outcome is None else f" of {what.outcome}"
        own = f"1 − probability of the true class{whose}, by {what.model}"
        return f"{error}probabilities of {what.model}" if error else own

    @property
    def n_independent(self) -> int:
        """Rows, or groups of rows, of which errors are made."""
        return self.n_row_groups or self.n_rows

    @property
    def are_not_used(self) -> Truths:
        """Where a set has a feature that no fitted learner uses, (Q,).

        At no row of the table does a prediction change when the values of such a
        feature are exchanged between the rows. What leaving it out changes all the same
        is chance (ties, seeds) or the number of columns; it is not counted.
        """
        own = np.isin(self.sets, np.array(self.not_used, np.intp))
        return np.asarray(own.any(axis=1))

    @property
    def degenerate(self) -> Truths:
        """Where all rows have one score, so that no spread can be estimated, (Q,).

        Not of features that are not used: their score is known.
        """
        rounding = self.error_range.rounding(self.order)
        equal = are_equal(self.standard_errors, self.n_rows, rounding)
        return equal & ~self.are_not_used

    def intervals(
        self,
        *,
        level: float = 0.9,
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
        alpha, law = read_alpha(level), self._law(errors, against)
        side = known_word(side, Side, "side")
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
        p = law.p_values(known_word(alternative, Alternative, "alternative"))
        return adjusted_p_values(p, adjust, self.n_candidates)

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
        alpha, law = read_alpha(level), self._law(errors, against)
        p = law.p_values(ALTERNATIVES[known_word(side, Side, "side")])
        adjusted = adjusted_p_values(p, adjust, self.n_candidates)
        ends = law.intervals(interval_alpha(p, adjust, self.n_candidates, alpha), side)
        return scores_frame(self, law, ends, adjusted, alpha)

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

    def to_csv(self, path: str | Path) -> None:
        """Write :meth:`to_frame`; numbers read back to the same value."""
        write_csv(path, self.to_frame(), names_of_rows=False)

    def save(self, path: str | Path) -> None:
        """Write all of it to an ``.npz`` file without pickles, for :meth:`load`.

        Raises
        ------
        InvalidInput
            If the folder is not there, or a field is not what can be loaded again.
        """
        write_scores(path, self)

    @classmethod
    def load(cls, path: str | Path) -> InteractionScores:
        """What :meth:`save` wrote; names that are no numbers are text.

        Raises
        ------
        InvalidInput
            If the file is another one, or holds what no scores have.
        FileNotFoundError
            If there is none.
        """
        fields = read_scores(path)
        main = fields.pop("main")
        return cls(**fields, main=None if main is None else cls(**main))

    def sentences(self, k: int = 5) -> tuple[str, ...]:
        """The k scores of largest size in words, each with a 90 % interval.

        All intervals hold together at that level, by Bonferroni's correction.
        """
        return largest_in_words(self, read_count(k, "k"))

    @property
    def cautions(self) -> tuple[str, ...]:
        """What the numbers do not say, a sentence each.

        What main effects leak into scores where all patches have one number of
        features; rows that are all equal, or so few that no normal law holds; errors of
        patches that are not known.
        """
        return tuple(cautions(self))

    def __repr__(self) -> str:
        return scores_text(self)

    def _repr_html_(self) -> str:
        return scores_html(self)

    def _law(self, errors: ErrorKind, against: Null) -> ScoreLaw:
        total = known_word(errors, ErrorKind, "errors") == "total"
        leak = known_word(against, Null, "against") == "leak"
        spread = self.total_errors if total else self.standard_errors
        return ScoreLaw(
            estimates=self.estimates,
            errors=spread,
            degrees=self._degrees(spread) if total else self._degrees_of_rows,
            null=self.leak if leak else np.zeros(len(self)),
            equal=self.degenerate,
            equal_rows=EqualRows(
                self.estimates,
                self.error_range.of_score(self.order),
                self.n_independent,
            ),
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
