"""Means of patches that saw neither a row nor some features, for all sets at once."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, Final, final

import numpy as np
from numpy.typing import NDArray

from propopt._typing import Array, Truths
from propopt.batches import Budget
from propopt.errors import InvalidInput
from propopt.interactions.features import Features, Places
from propopt.interactions.left_out import LeftOutErrors
from propopt.interactions.minipatches.learners import Learners, kept
from propopt.interactions.minipatches.patches import Patches
from propopt.interactions.minipatches.sums import sums_without
from propopt.interactions.row_errors import RowError
from propopt.tables.names import listed


ROWS_AT_ONCE: Final = 1024
"""Rows of the table; of memory-mapped predictions so many are read together."""

SUMS_AT_ONCE: Final = Budget(2**27)
"""Sums of all groups; blocks of rows and sets keep to it."""

ERRORS_AT_ONCE: Final = Budget(2**20)
"""Sums of one group that errors are made of, small enough to stay near."""


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class PatchErrors:
    """f_(−i)^(−T)(x_i): the mean of patches with i not in I_b and T disjoint from F_b.

    Σ_b 1{i ∉ I_b} 1{T ∩ F_b = ∅} f_b(x_i) / Σ_b 1{i ∉ I_b} 1{T ∩ F_b = ∅} (Little,
    Zheng & Allen, Algorithm 2), as matrix products over all rows and sets. The patches
    are summed in G groups, so that the means without one group come with them.

    Parameters
    ----------
    patches : Patches
        B patches.
    predictions : array (B, N, R)
        What is known of each prediction; of rows in the patch it is not read. It may be
        memory-mapped: blocks of it are read.
    y : array (N,)
        The target.
    error : RowError
        Err.
    features : Features
        M features.
    row_weights : array (N,)
        Of rows in means.
    n_groups : int
        G, of patches that follow each other, for the jackknife.
    learners : Learners or None
        Those that predicted, where they were kept.
    """

    patches: Patches
    predictions: Array
    y: NDArray[Any]
    error: RowError
    features: Features
    row_weights: Array
    n_groups: int = 20
    learners: Learners | None = None

    def errors(self, sets: Places) -> LeftOutErrors:
        n_sets = len(sets)
        found = LeftOutErrors(
            np.empty((n_sets, len(self.y))).T,
            np.zeros((len(self._groups), n_sets)),
            np.full(n_sets, np.inf),
        )
        for rows in Budget(ROWS_AT_ONCE).blocks(len(self.y), 1):
            n_bytes = 8 * self.n_groups * self._n_summed * (rows.stop - rows.start)
            for own in SUMS_AT_ONCE.blocks(n_sets, n_bytes):
                self._add_block(found, rows, own, sets[own])
        return found

    def judged_on(self, table: Any, y: NDArray[Any]) -> PatchErrors:
        return replace(
            self,
            patches=self.patches.seen_by_none(len(y)),
            predictions=kept(self.learners).known(table, y),
            y=y,
            row_weights=np.ones(len(y)),
        )

    def predict(self, table: Any) -> Array:
        return kept(self.learners).mean(table)

    @cached_property
    def _groups(self) -> list[slice]:
        """Patches that follow each other, in G groups as equal as can be."""
        n_patches = len(self.patches)
        ends = np.linspace(0, n_patches, min(self.n_groups, n_patches) + 1).astype(int)
        return [slice(*own) for own in pairwise(ends.tolist())]

    @property
    def _n_summed(self) -> int:
        """R + 1: what is known of predictions, and how many they are."""
        return int(self.predictions.shape[2]) + 1

    @cached_property
    def _present(self) -> Truths:
        """Whether a feature is in a patch, (M, B)."""
        return np.ascontiguousarray(self.patches.features.T)

    def _add_block(
        self, found: LeftOutErrors, rows: slice, own: slice, sets: Places
    ) -> None:
        """Write the errors of some rows and sets, and add to means over the rows."""
        sums = self._sums(rows, sets)  # (G, q, R + 1, n)
        n_bytes = sums[0, 0].nbytes
        for part in ERRORS_AT_ONCE.blocks(len(sets), n_bytes):
            at = slice(own.start + part.start, own.start + part.stop)
            total = sums[:, part].sum(axis=0)
            fewest = total[:, -1].min(axis=1)
            self._require_patches(fewest, sets[part])
            found.counts[at] = np.minimum(found.counts[at], fewest)
            found.rows[rows, at] = self._judged(total, rows)
            weights = self.row_weights[rows] / len(self.y)
            for replicate, group in zip(found.replicates, sums, strict=True):
                replicate[at] += weights @ self._judged(total - group[part], rows)

    def _sums(self, rows: slice, sets: Places) -> Array:
        """Sums without q sets at n rows, in each group, (G, q, R + 1, n)."""
        without = sums_without(sets, float(self._present.mean()))
        shape = (len(sets), self._n_summed, rows.stop - rows.start)
        sums = np.empty((len(self._groups), *shape))
        for group, own in zip(sums, self._groups, strict=True):
            found = without.over(self._present[:, own], self._summed(own, rows))
            group[:] = found.reshape(shape)
        return sums

    def _summed(self, own: slice, rows: slice) -> Array:
        """What is known of b patches at n rows, and at last 1, or 0 of rows in them."""
        out = _out(self.patches.rows[own], rows)
        known = np.moveaxis(self.predictions[own, rows], 2, 1)
        n_patches, n_known, n_rows = known.shape
        summed = np.zeros((n_patches, n_known + 1, n_rows))
        np.copyto(summed[:, :-1], known, where=out[:, None])
        summed[:, -1] = out
        return summed.reshape(n_patches, -1)

    def _judged(self, sums: Array, rows: slice) -> Array:
        """Err of the means, (n, q); NaN where there is no patch."""
        counts = sums[:, -1]
        means = sums[:, :-1] / np.maximum(counts, 1.0)[:, None]
        errors = self.error.of(self.y[rows], means.transpose(2, 0, 1))
        return errors if counts.all() else np.where(counts.T == 0.0, np.nan, errors)

    def _require_patches(self, fewest: Array, sets: Places) -> None:
        """Refuse sets that no patch leaves out at some row."""
        if fewest.all():
            return
        without = sets[np.argmin(fewest)].tolist()
        names = [self.features.names[place] for place in without]
        usable = (~self._present[without]).all(axis=0).mean()
        usable *= 1.0 - self.patches.rows.shape[1] / len(self.y)
        raise InvalidInput(
            f"n_patches: of {len(self.patches)} none is without {listed(names)} and "
            f"without some row; {_patches_needed(usable, len(self.y))}"
        )


def _patches_needed(usable: float, n_rows: int) -> str:
    """How many patches have each of N rows in one that is usable, with 99%.

    With the share p of usable patches a row is without one in (1 − p)^B, and some row
    in at most N (1 − p)^B.
    """
    if usable == 0.0:
        return "no patch at all: draw more of them, or fewer features for each"
    if usable == 1.0:
        return "draw more of them"
    needed = math.ceil(math.log(0.01 / n_rows) / math.log1p(-usable))
    return f"draw {needed} or more, by which each row has one in 99 of 100 cases"


def _out(inside: NDArray[np.intp], rows: slice) -> Truths:
    """Whether each of n rows is in none of b patches of given rows, (b, n)."""
    out = np.ones((len(inside), rows.stop - rows.start), dtype=bool)
    patch, place = np.nonzero((inside >= rows.start) & (inside < rows.stop))
    out[patch, inside[patch, place] - rows.start] = False
    return out
