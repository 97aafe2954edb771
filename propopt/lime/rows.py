"""The coefficients that LIME converges to for the rows of a table."""

from __future__ import annotations

from functools import cached_property, partial
from typing import Any, ClassVar, Final, final

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from propopt.base.arrays import Array, Indices, Mask, Points, Values
from propopt.base.declared import field, transient
from propopt.base.errors import InvalidInput, Refused
from propopt.lime.diagnosis.diagnosis import run_rules
from propopt.lime.diagnosis.evidence import Evidence, LimeFinding, RowsEvidence
from propopt.lime.diagnosis.rules import LIME_RULES
from propopt.lime.exact_limits import Limits
from propopt.lime.explanation import (
    LimeExplanation,
    deviations_of,
)
from propopt.lime.finite_samples import RunScatter, expected
from propopt.lime.paths import BandwidthPath, path_of_row
from propopt.lime.plots import LimePlots
from propopt.lime.sampled_limits import LimeSubject
from propopt.tables.frames import Labels


_COLUMNS: Final = (
    "row",
    "feature",
    "value",
    "bin",
    "coefficient",
    "standard_error",
    "alpha",
    "single_run_sd",
    "single_run_sd_source",
    "expected",
    "n_samples",
    "intercept",
    "prediction",
    "base",
    "surrogate_at_row",
    "effective_share",
    "source",
    "units",
)


@final
class LimeRows(
    LimeExplanation, kind="propopt lime", noun="saved limits of LIME", version=5
):
    """The coefficients that LIME converges to, for rows of a table.

    The bit z_j of the surrogate says whether a sample is in the bin of the row in
    column j. The other parameters are those of :class:`LimeExplanation`.

    Parameters
    ----------
    cells, bins : tuple of tuples (N, D)
        The values in a table (numbers, names of categories, None) and their bins in
        words.
    ridge : float
        The ridge λ of one run; that of the package ``lime`` is 1.
    first_row : bool
        Whether the row itself is the first sample of a run, as in the package.
    """

    nouns: ClassVar[tuple[str, str]] = ("row", "feature")
    computed_by: ClassVar[str] = "limits"
    compared: ClassVar[str] = "bin of the value minus other bins"
    per_row: ClassVar[tuple[str, ...]] = ("sources", "reasons", "cells", "bins")
    runs_have_means: ClassVar[bool] = False

    cells: tuple[tuple[float | str | bool | None, ...], ...] = field(missing=True)
    bins: tuple[tuple[str, ...], ...] = field()
    ridge: float = field(low=0.0, default=1.0)
    first_row: bool = field(default=True)
    subject: LimeSubject | None = transient(default=None)

    def _validate_names(self, N: int) -> None:
        for name, rows in (("cells", self.cells), ("bins", self.bins)):
            if len(rows) != N or len({len(row) for row in rows}) != 1:
                raise InvalidInput(f"{name}: expected a table of {N} rows")
        if len(self.cells[0]) != len(self.bins[0]):
            raise InvalidInput("cells: expected as many columns as bins")
        self.labels.check(self.shape, "labels")

    @property
    def shape(self) -> tuple[int, int]:
        """The number of rows N and of columns D."""
        return len(self.bins), len(self.bins[0])

    @property
    def features(self) -> tuple[str, ...]:
        """The names of the D columns, ``x0, x1, ...`` without names."""
        return self.labels.feature_names(self.shape[1])

    @property
    def plot(self) -> LimePlots:
        """Plots: ``limit.plot(row)``, or a method such as ``limit.plot.path(row)``."""
        return LimePlots(self)

    @property
    def points(self) -> Points:
        """The rows as encoded numbers, (N, D)."""
        return self.require_subject("points").points

    @cached_property
    def limits(self) -> Limits:
        """The arrays of coefficients for infinitely many samples."""
        return Limits(
            self.coefficients,
            self.base,
            self.alpha,
            self.log_weight,
            self.standard_errors,
        )

    @property
    def r2(self) -> Values:
        """The share of Var_Q f that the surrogate explains, (N,); 1 for constant f.

        Var_Q f is estimated from some thousands of draws.
        """
        return self.limits.r2(self.runs.variance)

    @property
    def beyond(self) -> Mask:
        """The values that no sample reaches, or hardly any, as a mask (N, D)."""
        return self.law.beyond(self.points)

    @property
    def _lengths(self) -> list[int]:
        return [len(row) for row in self.bins]

    def _table_of(self, rows: Indices) -> pd.DataFrame:
        return self.labels.of_columns().frame(self.coefficients[rows])

    def _split(self, flat: Array) -> Array:
        return flat.reshape(*self.shape, *flat.shape[1:])

    def _names(self, n: int) -> tuple[str, ...]:
        # a bin may start with a sign
        return tuple(
            f"{name} {bin}" if bin[:1] in "<>≤≥=" else f"{name}: {bin}"
            for name, bin in zip(self.features, self.bins[n], strict=True)
        )

    # ---- single runs, paths and diagnosis

    def _computed_runs(self) -> RunScatter:
        deviations = deviations_of(self.evidence(self.n_samples, "noise"))
        variance = self.require_subject("noise").variance()
        return RunScatter(deviations, variance, self.n_samples)

    def _evidence(self, n_samples: int) -> tuple[Evidence, ...]:
        case = RowsEvidence(
            subject=self.require_subject("evidence"),
            limits=self.limits,
            scatter=partial(getattr, self, "runs"),
            ridge=self.ridge,
            first_row=self.first_row,
            **self._block(n_samples, self.features, slice(None), self.coefficients),
        )
        return (case,)

    def _flat_means(self, n_samples: int | None) -> Array:
        n = self._read_samples(n_samples)
        fit = expected(self.limits, self.values, n, self.ridge, self.first_row)
        return fit.coefficients.ravel()

    def _path(self, n: int, widths: ArrayLike | None) -> BandwidthPath:
        subject = self.require_subject("path")
        if subject.exact is None:
            raise Refused(f"path: coefficients are estimated, as {self.reason}")
        return path_of_row(subject.exact, subject.points[n], widths)

    def _findings(
        self, n_samples: int, progress: bool | None
    ) -> tuple[list[LimeFinding], Labels]:
        (case,) = self.evidence(n_samples, "diagnose")
        assert isinstance(case, RowsEvidence), "see _evidence"
        with case.announced(progress):
            findings = run_rules(LIME_RULES, lambda rule: rule.findings(case), progress)
        return findings, self.labels

    # ---- the table and the document

    def _framed(self, shared: dict[str, Any], lines: Indices) -> pd.DataFrame:
        sampled = self.scatter is not None or self.subject is not None
        cells = [cell for row in self.cells for cell in row]
        columns = {
            **shared,
            "feature": self.features * self.shape[0],
            "value": pd.Series(cells, dtype=object),
            "bin": [bin for row in self.bins for bin in row],
            "alpha": self.flat_alpha,
            # deviations of runs are estimated, also where coefficients are exact
            "single_run_sd_source": (
                f"estimate ({self.runs.n_draws:,} draws a row)" if sampled else ""
            ),
            "effective_share": self.effective_share[lines],
        }
        return pd.DataFrame({name: columns[name] for name in _COLUMNS})

    def _coefficients_on_page(self) -> pd.DataFrame:
        return self._named_table(np.arange(self.shape[0]))

    @property
    def _run_settings(self) -> dict[str, str]:
        settings = {"ridge": f"{self.ridge:g}"}
        if self.subject is not None:
            outside = np.count_nonzero(self.beyond.any(axis=1))
            settings["rows beyond samples"] = f"{outside:,}"
        return settings
