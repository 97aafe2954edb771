"""How much of a term of f* is left in a predictor: the share of patches that see it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, final

from propopt.checks import read_count, read_positive
from propopt.errors import InvalidInput


class KeptShares(Protocol):
    """p_u^T: of the predictors without T, the share whose features include all of u.

    An ideal learner on the features F knows Σ_{u ⊆ F} g_u, so that the mean over its
    predictors without T is Σ_u p_u^T g_u. It depends on the sizes of u and T alone, and
    is 0 where u meets T.
    """

    def share(self, size: int, n_left_out: int) -> float:
        """p_u^T of a set u of ``size`` features, disjoint from T of ``n_left_out``."""


@final
@dataclass(frozen=True)
class Refitted(KeptShares):
    """One predictor on all features but T: p_u^T = 1."""

    def share(self, size: int, n_left_out: int) -> float:
        del size, n_left_out
        return 1.0


@final
@dataclass(frozen=True)
class FixedColumns(KeptShares):
    """Patches of exactly m of M features: p_u^T = C(M − t − s, m − s)/C(M − t, m).

    Without T the other features are in more of the patches, m/(M − t) and not m/M, so
    that main effects are shrunk less: they leak into the scores of other sets.

    Parameters
    ----------
    n_features : int
        M.
    n_kept : int
        m.

    Raises
    ------
    InvalidInput
        If they are no whole numbers, or m is not between 1 and M.

    Examples
    --------
    >>> FixedColumns(n_features=10, n_kept=2).share(1, 0)
    0.2
    """

    n_features: int
    n_kept: int

    def __post_init__(self) -> None:
        n_kept = read_count(self.n_kept, "n_kept")
        if n_kept > read_count(self.n_features, "n_features"):
            raise InvalidInput(
                f"n_kept: expected 1 to n_features={self.n_features}, got {self.n_kept}"
            )

    def share(self, size: int, n_left_out: int) -> float:
        present = self.n_features - n_left_out
        if present < self.n_kept:
            raise InvalidInput(
                f"n_features: patches of {self.n_kept} of {self.n_features} features "
                f"never leave out {n_left_out}; at most {present} would do"
            )
        share = 1.0  # m (m − 1) ... / (M − t) (M − t − 1) ...
        for k in range(size):
            share *= max(self.n_kept - k, 0) / max(present - k, 1)
        return share


@final
@dataclass(frozen=True)
class BernoulliColumns(KeptShares):
    """Patches that each feature enters with probability ρ: p_u^T = ρ^s, whatever T.

    Parameters
    ----------
    probability : float
        ρ = m/M.

    Raises
    ------
    InvalidInput
        If it is not one, or zero.
    """

    probability: float

    def __post_init__(self) -> None:
        if read_positive(self.probability, "probability") > 1.0:
            raise InvalidInput(
                f"probability: expected more than 0 and at most 1, got "
                f"{self.probability}"
            )

    def share(self, size: int, n_left_out: int) -> float:
        del n_left_out
        return self.probability**size
