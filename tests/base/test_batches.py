"""Batches cover every row once, in order, within the budget."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from propopt.base.resources import MODEL_CALLS, Budget, row_blocks


COUNTS = st.integers(1, 200)


@given(COUNTS, COUNTS, COUNTS, COUNTS, st.integers(1, 5))
def test_blocks_cover_every_row_once_and_keep_to_the_budget(
    n_bytes, most, n_rows, row_bytes, copies
):
    blocks = list(Budget(n_bytes, most).blocks(n_rows, row_bytes, copies))
    assert [n for b in blocks for n in range(b.start, b.stop)] == list(range(n_rows))
    longest = max(b.stop - b.start for b in blocks)
    assert longest == 1 or longest * copies <= min(most, n_bytes // row_bytes)


def test_no_rows_are_no_blocks():
    assert list(Budget(10).blocks(0, 1)) == []


@pytest.mark.parametrize(
    ("n_columns", "copies", "expected"),
    [(10, 1, 2**14), (10, 2, 2**13), (1024, 1, 2**12), (1024, 3, 1365), (2**23, 1, 1)],
)
def test_calls_of_models_have_32_mib_and_16384_rows(n_columns, copies, expected):
    first, *_ = row_blocks(10**6, n_columns, copies=copies)
    assert first == slice(0, expected)
    assert expected == MODEL_CALLS.rows(8 * n_columns, copies)
