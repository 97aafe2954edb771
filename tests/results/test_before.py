"""Files that version 0.1 wrote give the tables that they gave."""

from __future__ import annotations

from pathlib import Path

import pytest

import propopt as po


FOLDER = Path(__file__).parent / "before"
KINDS = {
    "certain": po.Certain,
    "shares": po.Shares,
    "stability": po.ConclusionStability,
}


@pytest.mark.parametrize("name", KINDS)
def test_a_file_of_before_gives_the_table_of_before(name, tmp_path):
    result = KINDS[name].load(FOLDER / f"{name}.npz")
    result.to_csv(tmp_path / "now.csv")
    assert (tmp_path / "now.csv").read_bytes() == (FOLDER / f"{name}.csv").read_bytes()
    result.save(tmp_path / "now.npz")  # sound: it is what this version saves
    KINDS[name].load(tmp_path / "now.npz").to_csv(tmp_path / "again.csv")
    assert (tmp_path / "again.csv").read_bytes() == (tmp_path / "now.csv").read_bytes()
