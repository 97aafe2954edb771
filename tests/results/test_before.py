"""Files of version 0.1: they hold what they held, to the last digit."""

from __future__ import annotations

from pathlib import Path

import pytest

import propopt as po


BEFORE = Path(__file__).parent / "before"
KINDS = {
    "explanation": po.Explanation,
    "contributions": po.Explanation,
    "trade_offs": po.TradeOffs,
}


@pytest.mark.parametrize("name", KINDS)
def test_the_table_of_a_file_of_before_is_what_it_was(name, tmp_path):
    result = KINDS[name].load(BEFORE / f"{name}.npz")
    result.to_csv(tmp_path / "now.csv")
    then = (BEFORE / f"{name}.csv").read_bytes()
    assert (tmp_path / "now.csv").read_bytes() == then
    result.save(tmp_path / "now.npz")
    KINDS[name].load(tmp_path / "now.npz").to_csv(tmp_path / "again.csv")
    assert (tmp_path / "again.csv").read_bytes() == then
