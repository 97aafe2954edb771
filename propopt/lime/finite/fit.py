"""The fit to n samples in their mean, solved by hand, for many rows at once."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final, final

import numpy as np

from propopt._typing import Array, Positions, Truths, Values
from propopt.checks import read_count, read_nonnegative
from propopt.errors import InvalidInput
from propopt.lime.moments import BitLimits


_LEAST: Final = 1e-300
"""Of λ / N: columns that nothing else tells apart have equal parts."""


@final
@dataclass(frozen=True, eq=False)
class FiniteFit:
    """Normal equations of n samples, each sum in them replaced by its mean.

    ((n − 1) Σ + v vᵀ + λ D) b = (n − 1) Γ + v f(ξ),  v = 1, D = diag(0, 1, ..., 1)

    With N = (n − 1) C, S = Cov_Q(z), R = (S + λ/N)⁻¹ and u = 1 − α this gives

    b = R S β + q t / (N + 1),  b_0 = E_Q f − αᵀ b + t / (N + 1),  q = R u,
    t = (f(ξ) − E_Q f − uᵀ R S β) / (1 + h),  h = uᵀ q / (N + 1).

    R S β is what ridge leaves of the coefficients, and t is what the row itself is off
    the fit. Bits of tables are independent and those of texts exchangeable, so that R
    is known by hand. Nothing is divided by N, so that weights may underflow.

    Parameters
    ----------
    limits : BitLimits
        β, E_Q f, and the moments of bits, α, S and log C, in n situations.
    values : array (n,) or None
        f(ξ); None where the row itself is no sample.
    n_samples : int
        Samples, the row itself included where it is one.
    ridge : float
        λ ≥ 0, on all coefficients but the intercept.
    kept : array of bool (n, D), optional
        The columns that are fitted; by default all.
    """

    limits: BitLimits
    values: Values | None
    n_samples: int
    ridge: float = 1.0
    kept: Truths | None = None

    @classmethod
    def of(
        cls,
        limits: BitLimits,
        values: Values | None,
        n_samples: int,
        ridge: float,
        first_row: bool,
        kept: Truths | None,
    ) -> FiniteFit:
        """The same; ``values`` count where the row itself is the first sample.

        Raises
        ------
        InvalidInput
            If they are needed and not given, or a setting is out of its range.
        """
        if first_row and values is None:
            raise InvalidInput(
                "values: where the row itself is a sample, give f at the rows"
            )
        return cls(limits, values if first_row else None, n_samples, ridge, kept)

    def __post_init__(self) -> None:
        read_count(self.n_samples, "n_samples")
        read_nonnegative(self.ridge, "ridge")
        if self.values is not None and self.n_samples < 2:
            raise InvalidInput(
                "n_samples: expected at least 2, the row itself and one more"
            )

    @property
    def n_drawn(self) -> int:
        """Samples that are drawn."""
        return self.n_samples - (self.values is not None)

    @cached_property
    def total(self) -> Values:
        """N, the mean weight of all that is drawn, (n,)."""
        return np.asarray(np.exp(self._log_total))

    @property
    def _log_total(self) -> Values:
        return np.asarray(np.log(self.n_drawn) + self.limits.bits.log_weight)

    @cached_property
    def penalty(self) -> Values:
        """λ / N, (n,), never quite 0."""
        with np.errstate(over="ignore", divide="ignore"):
            per_weight = np.exp(np.log(self.ridge) - self._log_total)
        return np.maximum(per_weight, _LEAST)

    @cached_property
    def alpha(self) -> Array:
        """Q(z_j = 1), (n, D)."""
        # sums are the same to the last digit, however limits lie in memory
        return np.ascontiguousarray(self.limits.bits.alpha)

    @cached_property
    def pull(self) -> Array:
        """q, (n, D): 0 for what is not fitted."""
        return self._solved(1.0 - self.alpha)

    @property
    def share_left(self) -> Array:
        """What ridge leaves of a coefficient, (n, D): the diagonal of R S."""
        return self.limits.bits.share_left(self.penalty, self.kept)

    @cached_property
    def left_by_ridge(self) -> Array:
        """R S β, (n, D)."""
        return self._solved(self.limits.bits.covariances(self.limits.coefficients))

    def _solved(self, vectors: Array) -> Array:
        """R x of vectors (n, D)."""
        found = self.limits.bits.solved(vectors[:, None], self.penalty, self.kept)
        return np.ascontiguousarray(found[:, 0])

    @cached_property
    def leverage(self) -> Values:
        """h, (n,): 0 where the row itself is no sample."""
        if self.values is None:
            return np.zeros(len(self.total))
        loads = (self.pull * (1.0 - self.alpha)).sum(axis=1)
        return np.asarray(loads / (self.total + 1.0))

    @cached_property
    def left_at_row(self) -> Values:
        """t, what the fit leaves of f(ξ), (n,): 0 where the row is no sample."""
        if self.values is None:
            return np.zeros(len(self.total))
        rises = (1.0 - self.alpha) * self.left_by_ridge
        off = self.values - self.limits.mean - rises.sum(axis=1)
        return np.asarray(off / (1.0 + self.leverage))

    @cached_property
    def coefficients(self) -> Array:
        """b_1, ..., b_D, (n, D)."""
        raised = self.pull * (self.left_at_row / (self.total + 1.0))[:, None]
        return np.asarray(self.left_by_ridge + raised)

    @cached_property
    def intercept(self) -> Values:
        """b_0, (n,)."""
        pulls = (self.alpha * self.coefficients).sum(axis=1)
        return np.asarray(
            self.limits.mean - pulls + self.left_at_row / (self.total + 1.0)
        )

    def influences(self, rows: slice | Positions, bits: Array) -> Array:
        """N A⁻¹ Z of samples with bits (m, S, D) around some rows, (m, S, 1 + D).

        A is the matrix of the normal equations: a sample with weight π and residual r
        moves (b_0, ..., b_D) by π r A⁻¹ Z, with

        ψ = R (z − α) − q τ,  τ = (1 + qᵀ (z − α)) / ((N + 1) (1 + h)),
        ψ_0 = (N − Σ (N α_j + 1) ψ_j) / (N + 1)

        where the row is a sample; else τ = 0 and ψ_0 = 1 − Σ α_j ψ_j.
        """
        centred = bits - self.alpha[rows, None]
        q, kept = self.pull[rows], None if self.kept is None else self.kept[rows]
        loads = (centred @ q[..., None])[..., 0]
        tau = (1.0 + loads) * self._row_share[rows, None]
        own = self.limits.bits.at(rows).solved(centred, self.penalty[rows], kept)
        psi = own - q[:, None] * tau[..., None]
        first = self._of_intercept(psi, rows)
        return np.concatenate([first[..., None], psi], axis=-1)

    @property
    def mean_influence(self) -> Array:
        """E r ψ for samples of the weighted law, (n, 1 + D); 0 without ridge and row.

        E r = −t / (N + 1) and E r (z − α) = S (β − b).
        """
        level = -self.left_at_row / (self.total + 1.0)
        off = self.limits.coefficients - self.coefficients
        slopes = self.limits.bits.covariances(off)
        tau = (level + (self.pull * slopes).sum(axis=1)) * self._row_share
        psi = self._solved(slopes) - self.pull * tau[:, None]
        weight, ends = self._shares
        first = weight * level - (ends * psi).sum(axis=1)
        return np.concatenate([first[:, None], psi], axis=1)

    @property
    def _row_share(self) -> Values:
        """1 / ((N + 1)(1 + h)), (n,): 0 where the row is no sample."""
        if self.values is None:
            return np.zeros(len(self.total))
        return np.asarray(1.0 / ((self.total + 1.0) * (1.0 + self.leverage)))

    @property
    def _shares(self) -> tuple[Values, Array]:
        """What the draws have of all weight, and the mean of bits over all samples."""
        if self.values is None:
            return np.ones(len(self.total)), self.alpha
        all_weight = self.total + 1.0
        weighted = self.total[:, None] * self.alpha + 1.0
        return self.total / all_weight, np.asarray(weighted / all_weight[:, None])

    def _of_intercept(self, psi: Array, rows: slice | Positions) -> Array:
        weight, ends = self._shares
        pulls = (psi @ ends[rows, :, None])[..., 0]
        return np.asarray(weight[rows, None] - pulls)
