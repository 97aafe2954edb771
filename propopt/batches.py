"""Batches: work in parts of bounded size, which never changes a result."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final, final


@final
@dataclass(frozen=True)
class Budget:
    """How much is built at once.

    Parameters
    ----------
    n_bytes : int
        The largest table; a single row may take more.
    n_rows : int
        The most rows of a table, however small they are.

    Examples
    --------
    >>> list(Budget(n_bytes=100).blocks(7, row_bytes=32))
    [slice(0, 3, None), slice(3, 6, None), slice(6, 7, None)]
    >>> Budget(n_bytes=100, n_rows=2).rows(row_bytes=1)
    2
    """

    n_bytes: int
    n_rows: int = sys.maxsize

    def rows(self, row_bytes: int, copies: int = 1) -> int:
        """How many rows of so many bytes, ``copies`` of each; one at least."""
        return max(1, min(self.n_rows, self.n_bytes // row_bytes) // copies)

    def blocks(self, n_rows: int, row_bytes: int, copies: int = 1) -> Iterator[slice]:
        """Consecutive slices of ``range(n_rows)`` that keep to the budget."""
        size = self.rows(row_bytes, copies)
        for start in range(0, n_rows, size):
            yield slice(start, min(start + size, n_rows))


MODEL_CALLS: Final = Budget(2**25, 2**14)
"""One call of a model, which may need memory per row that we cannot see."""


def row_blocks(n_rows: int, n_columns: int, copies: int = 1) -> Iterator[slice]:
    """Consecutive rows of a float64 table of which ``copies`` go into one call."""
    return MODEL_CALLS.blocks(n_rows, 8 * n_columns, copies)


def call_blocks(shape: tuple[int, ...], most: int) -> Iterator[slice]:
    """Consecutive rows of a float64 table for calls of at most ``most`` rows."""
    n_rows, n_columns = shape
    calls = replace(MODEL_CALLS, n_rows=min(MODEL_CALLS.n_rows, most))
    return calls.blocks(n_rows, 8 * n_columns)
