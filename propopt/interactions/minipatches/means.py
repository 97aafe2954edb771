"""Means of patches that saw neither a row nor some features, for all sets at once."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, Final, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from propopt._typing import Array, Truths
from propopt.batches import Budget
from propopt.errors import InvalidInput
from propopt.interactions.features import Features, Places
from propopt.interactions.left_out import LeftOutErrors
from propopt.interactions.minipatches.learners import Learners, kept
from propopt.interactions.minipatches.patches import Patches
from propopt.interactions.minipatches.sums import PatchesWithout, patches_without
from propopt.interactions.row_errors import RowError
from propopt.tables.names import listed


Bits: TypeAlias = NDArray[np.uint8]

Counts: TypeAlias = NDArray[np.float32]
"""Exact below 2^24."""

ROWS_AT_ONCE: Final = Budget(sys.maxsize, 128)
"""Predictions of a group of patches at so few rows stay near while they are summed."""

SUMS_AT_ONCE: Final = Budget(2**25)
"""Of all groups, at those rows."""


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
        set_bytes = ROWS_AT_ONCE.n_rows * len(self._groups) * self._n_bytes
        for own in SUMS_AT_ONCE.blocks(n_sets, max(set_bytes, len(self.patches))):
            without = patches_without(sets[own], self._present, self._groups)
            for rows in ROWS_AT_ONCE.blocks(len(self.y), 1):
                sums, counts = self._sums(without, rows)
                self._require_patches(counts.sum(axis=0).min(axis=1), sets[own])
                self._add_block(found, rows, own, sums, counts)
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

    @cached_property
    def _bits(self) -> list[Bits]:
        """Which rows are in no patch, of each group."""
        inside = self.patches.rows
        return [_bits_of_out(inside[own], len(self.y)) for own in self._groups]

    @property
    def _n_bytes(self) -> int:
        """Of one set at one row in one group: sums of float64, a count of float32."""
        return 8 * int(self.predictions.shape[2]) + 4

    @cached_property
    def _present(self) -> Truths:
        """Whether a feature is in a patch, (M, B)."""
        return np.ascontiguousarray(self.patches.features.T)

    def _sums(self, without: list[PatchesWithout], rows: slice) -> tuple[Array, Counts]:
        """Of patches without q sets, at n rows, in each group.

        Sums of what is known (G, q, R, n), and how many they are (G, q, n).
        """
        sums, counts = [], []
        groups = zip(without, self._groups, self._bits, strict=True)
        for patches, own, bits in groups:
            out = _some_out(bits, rows)
            predicted = np.moveaxis(self.predictions[own, rows], 2, 1)
            known = np.zeros(predicted.shape)  # (b, R, n)
            np.copyto(known, predicted, where=out[:, None])
            total = patches.sums(known.reshape(len(known), -1))
            sums.append(total.reshape(-1, *known.shape[1:]))
            counts.append(patches.sums(out.astype(np.float32)))
        return np.stack(sums), np.stack(counts)

    def _add_block(
        self,
        found: LeftOutErrors,
        rows: slice,
        own: slice,
        sums: Array,
        counts: Counts,
    ) -> None:
        """Write the errors of some rows and sets, and add to means over the rows."""
        weights = self.row_weights[rows] / len(self.y)
        total, count = sums.sum(axis=0), counts.sum(axis=0)
        found.counts[own] = np.minimum(found.counts[own], count.min(axis=1))
        found.rows[rows, own] = self._judged(total, count, rows)
        for g, replicate in enumerate(found.replicates):
            rest = self._judged(total - sums[g], count - counts[g], rows)
            replicate[own] += weights @ rest

    def _judged(self, sums: Array, counts: Counts, rows: slice) -> Array:
        """Err of the means (q, R, n) at n rows, (n, q); NaN where there is no patch."""
        means = sums / np.maximum(counts, 1.0)[:, None]
        errors = self.error.of(self.y[rows], means.transpose(2, 0, 1))
        return errors if counts.all() else np.where(counts.T == 0.0, np.nan, errors)

    def _require_patches(self, fewest: Counts, sets: Places) -> None:
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


def _bits_of_out(inside: NDArray[np.intp], n_rows: int) -> Bits:
    """Whether a row is in none of b patches of given rows, 8 rows to a byte."""
    out = np.ones((len(inside), n_rows), dtype=bool)
    np.put_along_axis(out, inside, False, axis=1)
    return np.packbits(out, axis=1)


def _some_out(bits: Bits, rows: slice) -> Truths:
    """The same at some rows, from a multiple of 8 on, (b, n)."""
    some = bits[:, rows.start // 8 : -(-rows.stop // 8)]
    return np.unpackbits(some, axis=1, count=rows.stop - rows.start).view(bool)
