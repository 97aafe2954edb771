"""One row of a table or one document, with the coefficients that LIME converges to."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Final, final

import numpy as np

from propopt.base.arrays import Array, largest_first
from propopt.functions.function import EXACT
from propopt.losses.faithfulness import relative_size


NO_COEFFICIENTS: Final = "none"
"""The source of a record for which LIME has no coefficients."""


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class LimeRecord:
    """The coefficients that LIME converges to for one row of a table or one document.

    Its arrays have one number for each feature: each column of a table, each distinct
    word of a document.
    """

    label: Hashable  # the name of the row or document
    names: tuple[str, ...]  # (d,): columns with the bin of the row, or words
    coefficients: Array  # (d,): β_j; NaN where LIME has none
    # (d,): standard errors; 0 for exact coefficients, NaN where LIME has none
    errors: Array
    intercept: float  # β_0
    value: float  # f of the row
    alpha: Array  # (d,): the weighted share of samples that agree with the row
    log_weight: float  # log C, where C is the mean weight of a sample
    effective_share: float  # (E π)² / E π²
    source: str  # "exact", how coefficients were estimated, or "none"
    reason: str  # why coefficients are not exact, or absent; empty for exact ones

    @property
    def is_exact(self) -> bool:
        """Whether the only error of the coefficients is rounding."""
        return self.source.startswith(EXACT)

    @property
    def has_coefficients(self) -> bool:
        """Whether LIME has coefficients for this document."""
        return self.source != NO_COEFFICIENTS

    @property
    def is_estimated(self) -> bool:
        """Whether coefficients have standard errors."""
        return self.has_coefficients and not self.is_exact

    @property
    def at_row(self) -> float:
        """The value of the surrogate at the row itself, β_0 + Σ_j β_j."""
        return float(self.intercept + self.coefficients.sum())

    @property
    def base(self) -> float:
        """The mean of f under the weighted law, E_Q f = β_0 + Σ_j α_j β_j."""
        return float(self.intercept + self.alpha @ self.coefficients)

    @property
    def sampling_error(self) -> float:
        """The standard errors of coefficients relative to their size; 0 if exact."""
        return relative_size(self.errors, self.coefficients)

    def sorted_by_size(self) -> list[tuple[int, float]]:
        """Positions and coefficients, the largest size first."""
        order = largest_first(np.abs(self.coefficients)).tolist()
        return [(j, float(self.coefficients[j])) for j in order]
