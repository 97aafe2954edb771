"""The table of docs/notation.md: what is the same in several results has one name."""

from __future__ import annotations

import dataclasses
import inspect
import re
from pathlib import Path

import pytest

import propopt as po


PAGE = Path(__file__).parents[2] / "docs" / "notation.md"
CLASSES = {
    "Explanation": po.Explanation,
    "LimeExplanation": po.lime.LimeExplanation,
    "InteractionScores": po.interactions.InteractionScores,
    "PairScores": po.interactions.PairScores,
}
"""Columns of the table."""


def table() -> list[dict[str, str]]:
    text = PAGE.read_text(encoding="utf-8").split("## Results")[1]
    lines = [line for line in text.splitlines() if line.startswith("|")]
    head, _, *rows = [[c.strip(" `") for c in line.split("|")[1:-1]] for line in lines]
    return [dict(zip(head, row, strict=True)) for row in rows]


@pytest.mark.parametrize("name", CLASSES)
def test_the_names_of_the_table_are_those_of_the_class(name):
    cls = CLASSES[name]
    known = {field.name for field in dataclasses.fields(cls)} | set(dir(cls))
    rows = table()
    assert len(rows) == 5
    for row in rows:
        called, parameter = re.fullmatch(r"(\w+)(?:\((\w+)\))?", row["name"]).groups()
        assert (called in known) is (row[name] == "✓"), called
        if parameter is not None and called in known:
            first = list(inspect.signature(getattr(cls, called)).parameters)[1]
            assert first == parameter


@pytest.mark.parametrize("name", CLASSES)
def test_each_of_them_is_told_in_its_docstrings(name):
    cls = CLASSES[name]
    parameters = cls.__doc__.split("Parameters\n")[1]
    for row in table():
        called = row["name"].split("(")[0]
        if row[name] == "✓":
            own = getattr(getattr(cls, called, None), "__doc__", None)
            assert own or f"{called} :" in parameters, called
