"""What LIME tends to at one document."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, final

import numpy as np

from propopt._typing import Array
from propopt.checks import sealed
from propopt.functions.base import EXACT
from propopt.tables.text import Document


NOTHING: Final = "none"
"""The source of limits that there are none of."""


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class DocumentLimits:
    """The coefficients that LIME tends to for one document, with their error.

    Parameters
    ----------
    document : Document
        The text, and its d words.
    coefficients : array (d,)
        β of its words; NaN where there are none.
    intercept : float
        β_0.
    value : float
        f of the document.
    standard_errors : array (d,) or None
        Of estimated coefficients; None where they are exact.
    intercept_error : float
        Of the intercept.
    source : str
        ``"exact"``, how they were estimated, or ``"none"``.
    reason : str
        Why they are not exact, or why there are none; empty where they are exact.
    """

    document: Document
    coefficients: Array
    intercept: float
    value: float
    standard_errors: Array | None = None
    intercept_error: float = 0.0
    source: str = EXACT
    reason: str = ""

    def __post_init__(self) -> None:
        sealed(self.coefficients)
        if self.standard_errors is not None:
            sealed(self.standard_errors)

    @classmethod
    def without(cls, document: Document, value: float, reason: str) -> DocumentLimits:
        """Of a document that LIME says nothing of."""
        return cls(
            document=document,
            coefficients=np.full(document.n_words, np.nan),
            intercept=np.nan,
            value=value,
            intercept_error=np.nan,
            source=NOTHING,
            reason=reason,
        )

    @property
    def words(self) -> tuple[str, ...]:
        """The distinct words, in the order in which they first come."""
        return self.document.words

    @property
    def is_exact(self) -> bool:
        """Whether coefficients have no error but rounding."""
        return self.source.startswith(EXACT)

    @property
    def is_known(self) -> bool:
        """Whether there are coefficients."""
        return self.source != NOTHING

    @property
    def at_row(self) -> float:
        """The surrogate at the document itself, β_0 + Σ_j β_j."""
        return float(self.intercept + self.coefficients.sum())

    @property
    def errors(self) -> Array:
        """Standard errors, 0 of what is exact and NaN of what is not known, (d,)."""
        if self.standard_errors is not None:
            return self.standard_errors
        return np.where(np.isnan(self.coefficients), np.nan, 0.0)
