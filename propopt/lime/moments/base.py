"""What surrogates ask of the bits they are fitted to."""

from __future__ import annotations

from typing import Protocol, Self

from propopt._typing import Array, Attributions, Positions, Truths, Values


class BitMoments(Protocol):
    """Means and covariances of D bits under the weighted law Q, in n situations."""

    @property
    def alpha(self) -> Array:
        """Q(z_j = 1), (n, D)."""

    @property
    def log_weight(self) -> Values:
        """Log C, C = E π: the mean weight of a sample, (n,)."""

    def at(self, rows: slice | Positions, /) -> Self:
        """Those of some situations."""

    def covariances(self, coefficients: Attributions, /) -> Array:
        """Cov_Q(z, bᵀz) of coefficients b (n, D), (n, D)."""

    def solved(
        self, vectors: Array, penalty: Values, kept: Truths | None = None, /
    ) -> Array:
        """(Cov_Q(z) + ρ I)⁻¹ x of vectors x (n, S, D), (n, S, D).

        Parameters
        ----------
        vectors : array (n, S, D)
            x.
        penalty : array (n,)
            ρ > 0.
        kept : array of bool (n, D), optional
            The bits that are there: the rows and columns of others are struck out, and
            the solution is 0 there. By default all.
        """

    def share_left(self, penalty: Values, kept: Truths | None = None, /) -> Array:
        """What ρ leaves of a coefficient: the diagonal of (Cov_Q + ρ I)⁻¹ Cov_Q."""


class BitLimits(Protocol):
    """What LIME tends to in n situations, with the bits it is fitted to."""

    @property
    def coefficients(self) -> Attributions:
        """β_j, (n, D)."""

    @property
    def mean(self) -> Values:
        """E_Q f, (n,)."""

    @property
    def bits(self) -> BitMoments:
        """Moments under Q."""
