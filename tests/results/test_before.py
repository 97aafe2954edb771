"""Files that version 0.1 wrote: they hold what they held, to the last digit."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from exact_csv import read_csv

import propopt as po


FOLDER = Path(__file__).parent / "before"
KINDS = {
    "explanation": po.Explanation,
    "contributions": po.Explanation,
    "trade_offs": po.TradeOffs,
    "certain": po.Certain,
    "shares": po.Shares,
    "stability": po.ConclusionStability,
    "interactions": po.interactions.InteractionScores,
    "lime": po.lime.LimeExplanation,
    "text_lime": po.lime.TextLimeExplanation,
    "diagnosis": po.lime.LimeDiagnosis,
}


@pytest.mark.parametrize("name", KINDS)
def test_a_file_of_before_gives_the_table_of_before(name, tmp_path):
    result = KINDS[name].load(FOLDER / f"{name}.npz")
    result.to_csv(tmp_path / "now.csv")
    now, then = tmp_path / "now.csv", FOLDER / f"{name}.csv"
    if name == "interactions":  # p-values, whose last digits are SciPy's of the day
        one, other = read_csv(now), read_csv(then)
        pd.testing.assert_frame_equal(one, other, rtol=1e-12, atol=1e-12)
    else:
        assert now.read_bytes() == then.read_bytes()
    result.save(tmp_path / "now.npz")  # sound: it is what this version saves
    KINDS[name].load(tmp_path / "now.npz").to_csv(tmp_path / "again.csv")
    assert (tmp_path / "again.csv").read_bytes() == now.read_bytes()
