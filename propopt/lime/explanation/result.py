"""What LIME tends to at rows of a table, with what is known of its error."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Final, final

import numpy as np
import pandas as pd

from propopt._typing import Array, Attributions, Points, Values
from propopt.checks import sealed
from propopt.lime.diagnosis.result import diagnose
from propopt.lime.expectations import Limits
from propopt.lime.explanation.beside import cells_of_row, path_of_row, profile_of_row
from propopt.lime.explanation.like_lime import list_of_row, map_of_row
from propopt.lime.explanation.places import (
    asked_subject,
    explanation_of_rows,
    place_of_column,
    place_of_row,
)
from propopt.lime.explanation.runs import (
    mean_of_runs,
    noise_of_runs,
    run_of_samples,
    samples_required,
)
from propopt.lime.explanation.saved import read_lime, write_lime
from propopt.lime.explanation.scatter import RunScatter, run_of, weighted_variance
from propopt.lime.explanation.subject import LimeSubject
from propopt.lime.explanation.table import lime_frame, write_records
from propopt.lime.explanation.words import in_words_of, lime_html, lime_text
from propopt.lime.finite.run import SingleRun
from propopt.lime.laws import LimeLaw
from propopt.output.csv import write_csv
from propopt.tables.names import Labels


EXACT_LIMITS: Final = "exact"


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class LimeExplanation:
    """The coefficients that LIME tends to, for each row of a table.

    g(z) = β_0 + Σ_j β_j z_j, where bit z_j says whether a sample is in the bin of the
    row; β_j = E_Q[f | z_j = 1] − E_Q[f | z_j = 0] is in units of the output.

    Parameters
    ----------
    coefficients : array (N, D)
        β_j. Exact ones need no seed. The same rows in any order have the same to the
        last bit; beside other rows, sums may be rounded otherwise.
    intercept : array (N,)
        β_0.
    standard_errors : array (N, D) or None
        Of estimated coefficients; None where they are exact.
    source : str
        ``"exact"``, or how they were estimated.
    reason : str
        Why they could not be exact, a sentence; empty where they are.
    alpha : array (N, D)
        Q(z_j = 1): the weighted share of samples in the bin of the row.
    log_weight : array (N,)
        log C, C = E π.
    effective_share : array (N,)
        (E π)² / E π²: how many samples without weights one with weight is worth.
    values : array (N,)
        f at the rows.
    points : array (N, D)
        The rows, encoded.
    cells : tuple of tuples (N, D)
        Their values: numbers, names of categories, None.
    bins : tuple of tuples of str (N, D)
        The bin of each value, in words.
    law_in_words : str
        The law, its bins and its width.
    n_samples : int
        Of one run of LIME, for ``noise``, ``expected`` and tables.
    ridge : float
        λ of one run; the package has 1.
    first_row : bool
        Whether the row itself is the first sample of a run, as it is in the package.
    labels : Labels
        Names of rows and columns.
    evaluations : int
        Rows that the model was given.
    notes : tuple of str
        What a reader has to know, a sentence each.
    scatter : RunScatter or None
        What is known of the scatter of single runs.
    subject : LimeSubject or None
        The model and the law. They are not saved: of a loaded explanation it is None.
    """

    units: ClassVar[str] = "units of the output"

    coefficients: Attributions
    intercept: Values
    standard_errors: Array | None = None
    source: str = EXACT_LIMITS
    reason: str = ""
    alpha: Array
    log_weight: Values
    effective_share: Values
    values: Values
    points: Points
    cells: tuple[tuple[Any, ...], ...]
    bins: tuple[tuple[str, ...], ...]
    law_in_words: str
    n_samples: int
    ridge: float
    first_row: bool
    labels: Labels = Labels()
    evaluations: int = 0
    notes: tuple[str, ...] = ()
    scatter: RunScatter | None = None
    subject: LimeSubject | None = None

    def __post_init__(self) -> None:
        self.labels.check(self.shape, "labels")
        for array in vars(self).values():
            if isinstance(array, np.ndarray):
                sealed(array)

    @property
    def shape(self) -> tuple[int, int]:
        """N and D."""
        N, D = self.coefficients.shape
        return N, D

    @property
    def is_exact(self) -> bool:
        """Whether coefficients have no error but rounding."""
        return self.source == EXACT_LIMITS

    @property
    def explained_in_words(self) -> str:
        """What is explained, such as "probability of malignant"."""
        return in_words_of(self.subject)

    @property
    def law(self) -> LimeLaw:
        """The law of the samples."""
        return self.asked("law").law

    @cached_property
    def limits(self) -> Limits:
        """Coefficients, E_Q f, α and log C: what rooms of formulas take."""
        return Limits(self.coefficients, self.mean, self.alpha, self.log_weight)

    @property
    def mean(self) -> Values:
        """E_Q f, (N,)."""
        pulls = np.einsum("nd,nd->n", self.alpha, self.coefficients)
        return np.asarray(self.intercept + pulls)

    @property
    def mean_weight(self) -> Values:
        """C = E π, (N,)."""
        return np.asarray(np.exp(self.log_weight))

    @property
    def at_row(self) -> Values:
        """The surrogate at the row itself, β_0 + Σ_j β_j, (N,)."""
        return np.asarray(self.intercept + self.coefficients.sum(axis=1))

    @property
    def local_gap(self) -> Values:
        """f(x) less the surrogate at the row, (N,)."""
        return np.asarray(self.values - self.at_row)

    @property
    def explained(self) -> Values:
        """Σ_j α_j(1 − α_j) β_j²: the variance of the surrogate under Q, (N,)."""
        parts = self.alpha * (1.0 - self.alpha) * self.coefficients**2
        return np.asarray(parts.sum(axis=1))

    @property
    def r2(self) -> Values:
        """The share of Var_Q f that the surrogate explains, (N,); 1 where f is flat."""
        total = np.maximum(self.runs.variance, self.explained)
        return np.divide(
            self.explained, total, out=np.ones(len(total)), where=total > 0
        )

    @cached_property
    def runs(self) -> RunScatter:
        """How single runs scatter, estimated from samples when first asked."""
        if self.scatter is not None:
            return self.scatter
        return RunScatter(
            self.own_run.standard_deviations, weighted_variance(self), self.n_samples
        )

    @cached_property
    def own_run(self) -> SingleRun:
        """One run of ``n_samples``."""
        return run_of(self, self.n_samples)

    def to_frame(self) -> pd.DataFrame:
        """One row for each row and column of X: coefficient, bin, error, noise."""
        return lime_frame(self)

    def to_csv(self, path: str | Path) -> None:
        """Write :meth:`to_frame`; numbers read back to the same value."""
        write_csv(path, self.to_frame(), names_of_rows=False)

    def to_json(self, path: str | Path) -> None:
        """Write :meth:`to_frame` as a list of objects; what is not known is null."""
        write_records(path, self)

    def save(self, path: str | Path) -> None:
        """Write to an ``.npz`` file without pickles; model and law stay behind.

        Raises
        ------
        InvalidInput
            If the folder is not there.
        """
        write_lime(path, self)

    @classmethod
    def load(cls, path: str | Path) -> LimeExplanation:
        """Read what :meth:`save` wrote.

        Raises
        ------
        InvalidInput
            If the file is another one, or holds what no such result has.
        FileNotFoundError
            If there is none.
        """
        return cls(**read_lime(path))

    single_run = run_of_samples
    noise = noise_of_runs
    required_n = samples_required
    expected = mean_of_runs
    column = place_of_column
    position = place_of_row
    of_rows = explanation_of_rows
    asked = asked_subject
    diagnose = diagnose
    profile = profile_of_row
    cells_of = cells_of_row
    path = path_of_row
    as_list = list_of_row
    as_map = map_of_row
    __repr__ = lime_text
    _repr_html_ = lime_html
