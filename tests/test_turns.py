"""Turns of parameters: together they are the suite, and each has every test."""

import importlib.util
from dataclasses import dataclass, field
from pathlib import Path

import pytest


PLACE = Path(__file__).parents[1] / "conftest.py"
spec = importlib.util.spec_from_file_location("conftest_of_all", PLACE)
assert spec is not None
conftest = importlib.util.module_from_spec(spec)
spec.loader.exec_module(conftest)


@dataclass(eq=False)
class Item:
    nodeid: str
    marks: set = field(default_factory=set)

    def get_closest_marker(self, name):
        return name if name in self.marks else None


def family(name, n, *marks):
    return [Item(f"tests/test_a.py::{name}[{k}]", set(marks)) for k in range(n)]


@pytest.mark.parametrize("count", [2, 3, 4])
def test_turns_are_the_whole_and_each_has_every_test(count):
    families = [family("one", 1), family("two", 2), family("many", 11)]
    items = [item for one in families for item in one]
    kept = [
        set(items) - conftest.of_other_turns(items, first, count)
        for first in range(count)
    ]
    assert set.union(*kept) == set(items)
    for turn in kept:
        assert all(turn & set(one) for one in families)
        many = len(turn & set(families[-1]))
        assert many in (11 // count, -(-11 // count))
