"""Rows of a patch: uniformly from all rows, or from those of each class."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from propopt.errors import InvalidInput


@final
@dataclass(frozen=True, eq=False)
class Strata:
    """Disjoint sets of rows, and how many of each are in a patch.

    Parameters
    ----------
    members : tuple of array of int
        Rows of each.
    sizes : tuple of int
        Rows of each that a patch has: at least one, and never all.
    """

    members: tuple[NDArray[np.intp], ...]
    sizes: tuple[int, ...]

    @classmethod
    def of(cls, n_table: int, n_rows: int, labels: NDArray[Any] | None) -> Strata:
        """One stratum for each label, or one of all rows.

        Parameters
        ----------
        n_table, n_rows : int
            N and n.
        labels : array (N,) or None
            Such as classes.

        Raises
        ------
        InvalidInput
            If a label has one row only, or n is too small or large to have rows of each
            label in a patch and out of it.

        Examples
        --------
        >>> Strata.of(10, 4, np.array([0] * 7 + [1] * 3)).sizes
        (3, 1)
        """
        if labels is None:
            return cls((np.arange(n_table),), (n_rows,))
        _, place, counts = np.unique(labels, return_inverse=True, return_counts=True)
        n_labels = len(counts)
        if counts.min() < 2 or not n_labels <= n_rows <= n_table - n_labels:
            raise InvalidInput(
                f"row_sampling: 'stratified' needs rows of each of {n_labels} classes "
                f"in each patch and out of it, so that {n_labels} <= n <= "
                f"{n_table - n_labels} and each class has two rows; got n = {n_rows} "
                f"and a class of {counts.min()} rows; take 'uniform'"
            )
        members = tuple(np.flatnonzero(place == k) for k in range(n_labels))
        return cls(members, _shares(counts, n_rows))

    @property
    def largest_share(self) -> float:
        """n/N, of the stratum whose rows are in most patches."""
        pairs = zip(self.sizes, self.members, strict=True)
        return max(size / len(own) for size, own in pairs)

    def draw(self, rng: np.random.Generator, n_patches: int) -> NDArray[np.intp]:
        """Rows of each of so many patches, ascending, (n_patches, n)."""
        keys = rng.random((n_patches, sum(map(len, self.members))))
        parts = [
            own[np.argpartition(keys[:, own], size - 1, axis=1)[:, :size]]
            for own, size in zip(self.members, self.sizes, strict=True)
        ]
        return np.sort(np.concatenate(parts, axis=1), axis=1)


def _shares(counts: NDArray[np.intp], n_rows: int) -> tuple[int, ...]:
    """Numbers in proportion to the counts: one at least in, one at least out."""
    quotas = n_rows * counts / counts.sum()
    sizes = np.clip(np.floor(quotas).astype(np.intp), 1, counts - 1)
    while sizes.sum() != n_rows:
        step = 1 if sizes.sum() < n_rows else -1
        may = sizes < counts - 1 if step == 1 else sizes > 1
        lack = np.where(may, step * (quotas - sizes), -np.inf)
        sizes[np.argmax(lack)] += step
    return tuple(sizes.tolist())
