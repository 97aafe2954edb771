"""Means of patches that saw neither a row nor some features, for all sets at once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, Final, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from propopt._typing import Array, Truths
from propopt.batches import Budget
from propopt.interactions.features import WHOLE, Features, Places
from propopt.interactions.left_out import LeftOutErrors
from propopt.interactions.minipatches.drawing.counts import check_order, never_left_out
from propopt.interactions.minipatches.drawing.patches import Patches
from propopt.interactions.minipatches.drawing.usable import Usable
from propopt.interactions.minipatches.learners import Learners, kept
from propopt.interactions.minipatches.sums import Counts, Sums
from propopt.interactions.minipatches.without import PatchesWithout, patches_without
from propopt.interactions.row_errors import RowError


Bits: TypeAlias = NDArray[np.uint8]

ROWS_OF_SUMS: Final = 128

KNOWN_AT_ONCE: Final = Budget(2**22, ROWS_OF_SUMS)
"""Predictions of a group of patches, which stay near while they are summed."""

SUMS_AT_ONCE: Final = Budget(2**25)
"""Sums of all groups at those rows, and masks of all patches."""


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
    used : frozenset of int or None
        Places of features that a learner uses; None of all.
    learners : Learners or None
        Those that predicted, where they were kept.

    Notes
    -----
    Beside the predictions, 8 B N R bytes in memory or on disk, are held: the errors of
    q sets, 8 q (N + G + 1) bytes, and those without none or one of the M features from
    then on; which rows and features a patch has, B (N/8 + M); and at most 128 MiB of
    sums and masks, whatever B, N, M, R and q.
    """

    patches: Patches
    predictions: Array
    y: NDArray[Any]
    error: RowError
    features: Features
    row_weights: Array
    n_groups: int = 20
    used: frozenset[int] | None = None
    learners: Learners | None = None

    @property
    def row_groups(self) -> None:
        """Rows are drawn by themselves, and taken to be independent."""
        return None

    def errors(self, sets: Places) -> LeftOutErrors:
        if sets.shape[1] == 0:
            return self._of_all
        if np.array_equal(sets, self.features.all_sets(1)):
            return self._of_each
        return self._errors(sets)

    @cached_property
    def _of_all(self) -> LeftOutErrors:
        """Of the whole predictor, which all scores have in common."""
        return self._errors(WHOLE)

    @cached_property
    def _of_each(self) -> LeftOutErrors:
        """Without each feature, which scores of all pairs and main effects share."""
        return self._errors(self.features.all_sets(1))

    def _errors(self, sets: Places) -> LeftOutErrors:
        n_sets = len(sets)
        found = LeftOutErrors(
            np.empty((n_sets, len(self.y))).T,
            np.zeros((len(self._groups), n_sets)),
            np.full(n_sets, np.inf),
        )
        for own in self._set_blocks(n_sets):
            without = patches_without(sets[own], self._present, self._groups)
            for rows in self._row_blocks():
                groups = self._sums(without, rows)
                total = Sums.total(groups)
                fewest = total.counts.min(axis=1)
                self._require_patches(fewest, sets[own])
                found.counts[own] = np.minimum(found.counts[own], fewest)
                found.rows[rows, own] = self._judged(total, rows)
                weights = self.row_weights[rows] / len(self.y)
                for replicate, group in zip(found.replicates, groups, strict=True):
                    replicate[own] += weights @ self._judged(total - group, rows)
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

    def _set_blocks(self, n_sets: int) -> Iterator[slice]:
        """So many sets that their sums and masks keep to the budget."""
        known = 8 * int(self.predictions.shape[2]) + 4  # a sum of float64, and a count
        sums = ROWS_OF_SUMS * len(self._groups) * known
        return SUMS_AT_ONCE.blocks(n_sets, max(sums, len(self.patches)))

    def _row_blocks(self) -> Iterator[slice]:
        """So many rows, a multiple of 8, that predictions of a group stay near."""
        n_known = int(self.predictions.shape[2])
        row_bytes = 8 * n_known * -(-len(self.patches) // len(self._groups))
        size = max(8, KNOWN_AT_ONCE.rows(row_bytes) // 8 * 8)
        return Budget(size).blocks(len(self.y), 1)

    @cached_property
    def _groups(self) -> list[slice]:
        """Patches that follow each other, in G groups as equal as can be."""
        n_patches = len(self.patches)
        ends = np.linspace(0, n_patches, min(self.n_groups, n_patches) + 1).astype(int)
        return [slice(*own) for own in pairwise(ends.tolist())]

    @cached_property
    def _bits(self) -> list[Bits]:
        """Which rows are in no patch, of each group."""
        inside = self.patches.rows
        return [_bits_of_out(inside[own], len(self.y)) for own in self._groups]

    @cached_property
    def _present(self) -> Truths:
        """Whether a feature is in a patch, (M, B)."""
        return np.ascontiguousarray(self.patches.features.T)

    def _sums(self, without: list[PatchesWithout], rows: slice) -> list[Sums]:
        """Of patches without q sets, at n rows, in each group."""
        groups = zip(without, self._groups, self._bits, strict=True)
        return [
            self._sums_of_group(patches, own, _some_out(bits, rows), rows)
            for patches, own, bits in groups
        ]

    def _sums_of_group(
        self, patches: PatchesWithout, own: slice, out: Truths, rows: slice
    ) -> Sums:
        predicted = np.moveaxis(self.predictions[own, rows], 2, 1)
        known = np.zeros(predicted.shape)  # (b, R, n)
        np.copyto(known, predicted, where=out[:, None])
        total = patches.sums(known.reshape(len(known), -1))
        counts = patches.sums(out.astype(np.float32))
        return Sums(total.reshape(-1, *known.shape[1:]), counts)

    def _judged(self, sums: Sums, rows: slice) -> Array:
        """Err of the means at n rows, (n, q); NaN where there is no patch."""
        errors = self.error.of(self.y[rows], sums.means)
        if sums.counts.all():
            return errors
        return np.where(sums.counts.T == 0.0, np.nan, errors)

    def _require_patches(self, fewest: Counts, sets: Places) -> None:
        """Refuse sets that no patch leaves out at some row."""
        if fewest.all():
            return
        usable = Usable.of(self.patches)
        check_order(usable, sets.shape[1])
        needed = usable.patches_needed(sets.shape[1], len(sets) * len(self.y))
        own = sets[np.argmin(fewest)]
        raise never_left_out(self.patches, own, needed, self.features.names)


def _bits_of_out(inside: NDArray[np.intp], n_rows: int) -> Bits:
    """Whether a row is in none of b patches of given rows, 8 rows to a byte."""
    out = np.ones((len(inside), n_rows), dtype=bool)
    np.put_along_axis(out, inside, False, axis=1)
    return np.packbits(out, axis=1)


def _some_out(bits: Bits, rows: slice) -> Truths:
    """The same at some rows, from a multiple of 8 on, (b, n)."""
    some = bits[:, rows.start // 8 : -(-rows.stop // 8)]
    return np.unpackbits(some, axis=1, count=rows.stop - rows.start).view(bool)
