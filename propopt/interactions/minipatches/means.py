"""Means of patches that saw neither a row nor some features, for all sets at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from propopt._typing import Array
from propopt.errors import InvalidInput
from propopt.interactions.features import Features, Places
from propopt.interactions.left_out import LeftOutErrors
from propopt.interactions.minipatches.patches import Patches
from propopt.interactions.row_errors import RowError


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class PatchErrors:
    """f_(−i)^(−T)(x_i): the mean of patches with i not in I_b and T disjoint from F_b.

    Σ_b 1{i ∉ I_b} 1{T ∩ F_b = ∅} f_b(x_i) / Σ_b 1{i ∉ I_b} 1{T ∩ F_b = ∅} (Little,
    Zheng & Allen, Algorithm 2), as matrix products over all rows and sets.

    Parameters
    ----------
    patches : Patches
        B patches.
    predictions : array (B, N, R)
        What is known of each prediction; of rows in the patch it is not read.
    y : array (N,)
        The target.
    error : RowError
        Err.
    features : Features
        M features.
    row_weights : array (N,)
        Of rows in means.
    n_groups : int
        Of patches, for the jackknife.
    """

    patches: Patches
    predictions: Array
    y: NDArray[Any]
    error: RowError
    features: Features
    row_weights: Array
    n_groups: int = 20

    def errors(self, sets: Places) -> LeftOutErrors:
        out = self.patches.out
        absent = ~self.patches.features
        without: Array = np.asarray(absent[:, sets].all(axis=2), dtype=np.float64)
        known = np.where(out[..., None], self.predictions, 0.0)  # (B, N, R)
        group = np.arange(len(self.patches)) % self.n_groups
        sums: list[Array] = []
        counts: list[Array] = []
        for g in range(self.n_groups):
            own = group == g
            sums.append(np.einsum("bnr,bq->nqr", known[own], without[own]))
            counts.append(out[own].astype(np.float64).T @ without[own])
        total: Array = np.stack(sums).sum(axis=0)
        count: Array = np.stack(counts).sum(axis=0)
        if not count.all():
            raise InvalidInput("n_patches: a set is never left out; draw more patches")
        rows = self.error.of(self.y, total / count[..., None])
        replicates = [
            self.row_weights
            @ self.error.of(self.y, (total - own) / (count - n)[..., None])
            / len(self.y)
            for own, n in zip(sums, counts, strict=True)
        ]
        return LeftOutErrors(rows, np.array(replicates), count.min(axis=0))
