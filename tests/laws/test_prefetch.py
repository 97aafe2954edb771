"""One step ahead: nothing changes but when items are made."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from propopt.laws.perturbations import prefetch


def test_items_come_in_their_order():
    assert list(prefetch(iter(range(1, 50)))) == list(range(1, 50))
    assert list(prefetch(iter([]))) == []


def test_draws_are_those_of_one_thread():
    def drawn(rng):
        return (rng.normal(size=3) for _ in range(20))

    ahead = list(prefetch(drawn(np.random.default_rng(0))))
    plain = list(drawn(np.random.default_rng(0)))
    np.testing.assert_array_equal(ahead, plain)


def test_the_next_item_is_made_while_one_is_used():
    made = threading.Event()

    def items():
        yield 1
        made.set()
        yield 2

    for item in prefetch(items()):
        if item == 1:
            assert made.wait(timeout=10)


def test_what_goes_wrong_is_raised_where_the_item_is_due():
    def items():
        yield 1
        raise ValueError("broken")

    stream = prefetch(items())
    assert next(stream) == 1
    with pytest.raises(ValueError, match="broken"):
        next(stream)


def test_stopping_early_leaves_no_thread():
    before = threading.active_count()
    stream = prefetch(iter(range(1, 10)))
    next(stream)
    stream.close()
    assert threading.active_count() == before
