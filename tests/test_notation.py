"""The page of symbols says one thing of each letter, and one name is one thing."""

from __future__ import annotations

import dataclasses
import inspect
import re
from pathlib import Path

import pytest

import propopt as po


PAGE = Path(__file__).parents[1] / "docs" / "notation.md"
SYMBOLS, _, RESULTS = PAGE.read_text("utf-8").partition("## Results")


def cells(text):
    """Of the table in a text: the head, and the rows."""
    lines = [line for line in text.splitlines() if line[:1] == "|"]
    head, _, *rows = [[c.strip() for c in line.strip("|").split("|")] for line in lines]
    return head, rows


def test_each_row_has_a_symbol_of_its_own_a_meaning_a_shape_and_a_place():
    root, (_, rows) = PAGE.parents[1] / "propopt", cells(SYMBOLS)
    assert len(rows) > 20
    for row in rows:
        assert len(row) == 4
        symbols, meaning, _, where = row
        assert symbols
        assert meaning
        assert where
        for place in where.replace("everywhere", "").replace("`", "").split(", "):
            path = root / place.replace(".", "/")
            assert path.is_dir() or path.with_suffix(".py").is_file(), place
    symbols = [symbol for row in rows for symbol in row[0].split(", ")]
    assert len(symbols) == len(set(symbols))


CLASSES = {
    "Explanation": po.Explanation,
    "LimeExplanation": po.lime.LimeExplanation,
    "InteractionScores": po.interactions.InteractionScores,
    "PairScores": po.interactions.PairScores,
}
"""Columns of the table."""


@pytest.mark.parametrize("name", CLASSES)
def test_names_of_results_are_those_of_the_class_and_its_docstrings(name):
    cls, (head, rows) = CLASSES[name], cells(RESULTS)
    known = {field.name for field in dataclasses.fields(cls)} | set(dir(cls))
    parameters = cls.__doc__.split("Parameters\n")[1]
    assert len(rows) == 5
    for line in rows:
        row = dict(zip([c.strip("`") for c in head], line, strict=True))
        named = re.fullmatch(r"(\w+)(?:\((\w+)\))?", row["name"].strip("`"))
        called, parameter = named.groups()
        assert (called in known) is (row[name] == "✓"), called
        if parameter is not None and called in known:
            first = list(inspect.signature(getattr(cls, called)).parameters)[1]
            assert first == parameter
        if row[name] == "✓":
            own = getattr(getattr(cls, called, None), "__doc__", None)
            assert own or f"{called} :" in parameters, called
