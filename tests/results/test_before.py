"""Files that version 0.1 wrote: they hold what they held, to the last digit."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from exact_csv import read_csv
from exact_values import same

import propopt as po
from propopt.explaining.saved_explainer import SavedExplainer


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


def test_an_explainer_of_before_holds_what_one_of_now_does(tmp_path):
    before = SavedExplainer.load(FOLDER / "explainer.npz")
    assert before.reference.labels.features == ("age", "dose", "=x", "\x1bw")
    assert before.schema is not None
    assert before.rows.shape == before.reference.shape == (12, 4)
    assert (before.n_neighbors, before.law) == (8, "auto")
    before.save(tmp_path / "now")
    again = SavedExplainer.load(tmp_path / "now")
    assert same(again.reference, before.reference)
    assert (again.rows == before.rows).all()
