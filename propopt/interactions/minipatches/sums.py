"""What is summed over patches, and over how many: their means."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from propopt._typing import Array


Counts: TypeAlias = NDArray[np.float32]
"""Numbers of patches, exact below 2^24."""


@final
@dataclass(frozen=True, eq=False)
class Sums:
    """Over the patches that are without each of q sets, at n rows.

    Parameters
    ----------
    known : array (q, R, n)
        Sums of what is known of the predictions.
    counts : array (q, n)
        How many patches they are.
    """

    known: Array
    counts: Counts

    @classmethod
    def total(cls, groups: Sequence[Sums]) -> Sums:
        """Over all groups of patches."""
        known, counts = groups[0].known.copy(), groups[0].counts.copy()
        for own in groups[1:]:
            known += own.known
            counts += own.counts
        return cls(known, counts)

    def __sub__(self, group: Sums) -> Sums:
        return Sums(self.known - group.known, self.counts - group.counts)

    @property
    def means(self) -> Array:
        """Σ/count, (n, q, R); of no patches something, for errors that need numbers."""
        means = self.known / np.maximum(self.counts, 1.0)[:, None]
        return means.transpose(2, 0, 1)
