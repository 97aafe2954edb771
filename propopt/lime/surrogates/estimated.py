"""Limits that samples told, with their errors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from propopt._typing import Array, Attributions, Values
from propopt.lime.expectations.limits import Limits


@final
@dataclass(frozen=True, eq=False)
class EstimatedLimits:
    """Limits that were estimated, in n situations.

    Parameters
    ----------
    limits : Limits
        The estimates; α and log C are exact.
    standard_errors : array (n, D)
        Of the coefficients, from the scatter of 20 independent blocks of draws.
    intercept_error : array (n,)
        Of the intercept.
    evaluations : int
        Of the function.
    """

    limits: Limits
    standard_errors: Attributions
    intercept_error: Values
    evaluations: int

    @property
    def coefficients(self) -> Attributions:
        """β, (n, D)."""
        return self.limits.coefficients

    @property
    def mean(self) -> Values:
        """E_Q f, (n,)."""
        return self.limits.mean

    @property
    def alpha(self) -> Array:
        """Q(z_j = 1), (n, D)."""
        return self.limits.alpha

    @property
    def log_weight(self) -> Values:
        """Log C, (n,)."""
        return self.limits.log_weight

    @property
    def intercept(self) -> Values:
        """β_0, (n,)."""
        return self.limits.intercept

    @property
    def at_row(self) -> Values:
        """The surrogate at the row itself, Σ β, (n,)."""
        return self.limits.at_row
