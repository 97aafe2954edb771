"""Scores of sets, from predictors that are fitted: all that a reader has to know."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import final

import numpy as np

from propopt._typing import Values
from propopt.errors import DegenerateVarianceWarning
from propopt.interactions.features import WHOLE, Features, Places
from propopt.interactions.inference.equal_rows import ErrorRange
from propopt.interactions.inference.scores import set_scores
from propopt.interactions.left_out import LeftOut
from propopt.interactions.minipatches.means import PatchErrors
from propopt.interactions.minipatches.scheme import Minipatches
from propopt.interactions.reading.words import counted_sets
from propopt.interactions.result import InteractionScores
from propopt.interactions.row_errors import ProbabilityError, RowError
from propopt.interactions.scheme import Scheme
from propopt.interactions.theory.leak import additive_leak
from propopt.quantity import Quantity
from propopt.results.conclusions.words import plural


@final
@dataclass(frozen=True, eq=False)
class Scoring:
    """Fitted predictors, and how they were had.

    Parameters
    ----------
    source : LeftOut
        The predictors.
    scheme : Scheme
        How they were had.
    error : RowError
        Err.
    method : str
        How predictors were had, where the source is of other rows than the fit was.
    quantity : Quantity or None
        What the learner predicts.
    """

    source: LeftOut
    scheme: Scheme
    error: RowError
    method: str = ""
    quantity: Quantity | None = None

    @property
    def features(self) -> Features:
        """The M features."""
        return self.source.features

    def main_effects(self) -> InteractionScores:
        """LOCO of each feature."""
        return self.of(self.features.all_sets(1), None, n_candidates=len(self.features))

    def of(
        self,
        sets: Places,
        main: InteractionScores | None,
        *,
        n_candidates: int,
        notes: tuple[str, ...] = (),
    ) -> InteractionScores:
        """Scores of Q sets.

        Parameters
        ----------
        sets : array of int (Q, r)
            Of one size.
        main : InteractionScores or None
            LOCO of each feature, from which the leak is had; None where these are they.
        n_candidates : int
            Sets among which these were chosen.
        notes : tuple of str
            What has to be known of the choice.
        """
        found, not_used = set_scores(self.source, sets), self._not_used()
        counted = ~np.isin(sets, np.array(not_used, np.intp)).any(axis=1)
        effects = found.estimates if main is None else main.estimates
        return InteractionScores(
            sets=sets,
            names=self.features.names,
            columns=self.features.column_names,
            estimates=np.where(counted, found.estimates, 0.0),
            standard_errors=np.where(counted, found.standard_errors, 0.0),
            monte_carlo=np.where(counted, found.monte_carlo, 0.0),
            counts=found.counts,
            effective_rows=np.where(counted, found.effective_rows, np.nan),
            n_groups=found.n_groups,
            n_rows=int(np.count_nonzero(self.source.row_weights)),
            n_candidates=n_candidates,
            method=self.method or self._method(),
            error=self.error.name,
            units=self._units(),
            quantity=self.quantity,
            error_range=self._error_range(),
            leak=np.where(counted, self._leak(effects, sets), 0.0),
            notes=notes,
            main=main,
            n_patches=self._n_patches(),
            n_row_groups=self._n_row_groups(),
            not_used=not_used,
        )

    def _units(self) -> str:
        """With the name of the target, where it has one."""
        outcome = None if self.quantity is None else self.quantity.outcome
        units = self.error.units
        return units if outcome is None else units.replace("the target", outcome)

    def _not_used(self) -> tuple[int, ...]:
        """Not by patches of one size: a feature without use takes the place of others.

        Their target of such a feature is a leak, and not zero.
        """
        used = None if self._of_one_size else self.source.used
        n_features = len(self.features)
        return () if used is None else tuple(sorted(set(range(n_features)) - used))

    @property
    def _of_one_size(self) -> bool:
        return isinstance(self.scheme, Minipatches) and self.scheme.columns == "fixed"

    def _n_patches(self) -> int:
        return len(self.source.patches) if isinstance(self.source, PatchErrors) else 0

    def _n_row_groups(self) -> int:
        groups, weights = self.source.row_groups, self.source.row_weights
        return 0 if groups is None else len(np.unique(groups[weights > 0.0]))

    def _method(self) -> str:
        if not isinstance(self.source, PatchErrors):
            return repr(self.scheme)
        patches = self.source.patches
        share = patches.features.sum(axis=1).mean()
        return (
            f"{len(patches):,} minipatches of {plural(patches.rows.shape[1], 'row')} "
            f"and {share:.3g} of {plural(len(self.features), 'feature')}"
        )

    def _error_range(self) -> ErrorRange:
        """Of probabilities 0 to 1; else of errors seen without one feature, or none."""
        if isinstance(self.error, ProbabilityError):
            return ErrorRange(0.0, 1.0, proved=True)
        seen = [
            self.source.errors(own).rows for own in (WHOLE, self.features.all_sets(1))
        ]
        low = min(float(own.min()) for own in seen)
        high = max(float(own.max()) for own in seen)
        return ErrorRange(min(low, 0.0), max(high, 0.0), proved=False)

    def _leak(self, effects: Values, sets: Places) -> Values:
        """By patches that all have one number of features; else there is none."""
        source = self.source
        if not (self._of_one_size and isinstance(source, PatchErrors)):
            return np.zeros(len(sets))
        n_kept = int(source.patches.features[0].sum())
        return additive_leak(effects, n_kept, sets, self.error)


def warn_of_equal_rows(scores: InteractionScores) -> None:
    """Say it once, of scores that a user asked for."""
    count = int(scores.degenerate.sum())
    if count > 0:
        warnings.warn(
            f"{count} of {counted_sets(scores, len(scores))} have one score in all "
            "rows; their intervals are what so many equal rows allow, see cautions",
            DegenerateVarianceWarning,
            stacklevel=4,
        )
