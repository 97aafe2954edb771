"""The tables of docs/lime.md: false alarms, and planted cases that are named."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

from propopt.lime.diagnosis.rules import LIME_RULES


FILE = Path(__file__).parents[3] / "examples" / "lime_alarms.py"


@pytest.fixture(scope="module")
def tables():
    return runpy.run_path(str(FILE))


def test_harmless_rows_have_few_findings_but_signs_against_slopes(tables):
    result = tables["harmless"]()
    assert (result["false alarms"] <= 0.3).all()
    # half of the quartiles are below their mean, where a contrast is negative: 60 rows
    # times D fair coins, beyond 5 sd once in 2e6
    share = result["signs against the slope"] / result.index
    sd = (0.25 / (60 * result.index.to_numpy())) ** 0.5
    assert (abs(share - 0.5) < 5.0 * sd).all()


def test_all_that_is_planted_is_named(tables):
    result = tables["planted"]()
    assert set(result.index) == {rule.name for rule in LIME_RULES} - {
        "package: free intercept"  # whose weight is that of a note
    }
    notes = result.index[result["named as"] == "note"]
    assert list(notes) == ["package: unequal bins"]  # which misleads nobody
    assert (result["named as"] != "nothing").all()
