"""Results that version 0.1 wrote load, and say the same."""

from __future__ import annotations

from pathlib import Path

import pytest

import propopt as po


BEFORE = Path(__file__).parent / "before"
RESULTS = {
    "diagnosis": po.lime.LimeDiagnosis,
    "lime": po.lime.LimeExplanation,
    "text_lime": po.lime.TextLimeExplanation,
}


@pytest.mark.parametrize("name", RESULTS)
def test_a_file_of_before_gives_the_same_table(name, tmp_path):
    result = RESULTS[name].load(BEFORE / f"{name}.npz")
    table = (BEFORE / f"{name}.csv").read_bytes()
    result.to_csv(tmp_path / "table.csv")
    assert (tmp_path / "table.csv").read_bytes() == table
    result.save(tmp_path / "now.npz")
    RESULTS[name].load(tmp_path / "now.npz").to_csv(tmp_path / "again.csv")
    assert (tmp_path / "again.csv").read_bytes() == table
