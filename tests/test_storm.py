"""Thousands of random problems of all kinds: right to the last digit, or announced.

Each result is held against the definitions in extended precision and against
explanations found otherwise; see ``tests/storm``.
"""

import pytest
from storm.verdict import weather


BLOCK = 25
IN_SUITE = range(0, 500, BLOCK)
LONG = range(
    100_000, 120_000, 500
)  # the second seed; the suite's numbers are the first


def faults(first, count):
    return {
        number: found
        for number in range(first, first + count)
        if (found := weather(number).faults)
    }


@pytest.mark.parametrize("first", IN_SUITE)
def test_random_problems_are_right_or_announced(first):
    assert faults(first, BLOCK) == {}


@pytest.mark.slow
@pytest.mark.parametrize("first", LONG)
def test_many_more_random_problems_are_right_or_announced(first):
    assert faults(first, 500) == {}
