"""The page of symbols says one thing of each letter."""

from pathlib import Path

import pytest


PAGE = Path(__file__).parents[1] / "docs" / "notation.md"


@pytest.fixture
def rows():
    page, _, _ = PAGE.read_text("utf-8").partition("## Results")  # another table
    lines = [line for line in page.splitlines() if line[:1] == "|"]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def test_each_row_has_a_symbol_a_meaning_a_shape_and_a_place(rows):
    assert len(rows) > 20
    for row in rows:
        assert len(row) == 4
        symbols, meaning, _, where = row
        assert symbols
        assert meaning
        assert where


def test_no_symbol_has_two_rows(rows):
    symbols = [symbol for row in rows for symbol in row[0].split(", ")]
    assert len(symbols) == len(set(symbols))


def test_every_place_is_a_package_or_a_module(rows):
    root = PAGE.parents[1] / "propopt"
    for *_, where in rows:
        for place in where.replace("everywhere", "").replace("`", "").split(", "):
            path = root / place.replace(".", "/")
            assert path.is_dir() or path.with_suffix(".py").is_file(), place
