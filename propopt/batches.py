"""Batches: tables of bounded size, whose size never changes a result."""

from __future__ import annotations

from collections.abc import Iterator


BATCH_BYTES = 2**25
"""Largest table that is built at once."""

BATCH_ROWS = 2**14
"""Most rows in one call: models may need memory per row that we cannot see."""


def rows_at_once(row_bytes: int) -> int:
    """How many rows of so many bytes go into one table; one at least."""
    return max(1, min(BATCH_ROWS, BATCH_BYTES // row_bytes))


def row_blocks(n_rows: int, n_columns: int, copies: int = 1) -> Iterator[slice]:
    """Consecutive rows of a float64 table of which ``copies`` go into one call."""
    size = max(1, rows_at_once(8 * n_columns) // copies)
    for start in range(0, n_rows, size):
        yield slice(start, min(start + size, n_rows))
