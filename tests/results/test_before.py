"""Files that version 0.1 wrote: they hold what they held, to the last digit."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from exact_csv import read_csv
from sklearn.ensemble import GradientBoostingRegressor

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


def test_an_explainer_of_before_answers_as_one_that_is_fitted_now():
    rng = np.random.default_rng(0)  # as in before/make.py
    X = pd.DataFrame(rng.normal(size=(60, 4)), columns=["age", "dose", "=x", "\x1bw"])
    y = X["age"] * X["dose"] + X["=x"] + rng.normal(size=60) / 10
    model = GradientBoostingRegressor(n_estimators=8, random_state=0).fit(X, y)
    before = po.Explainer.load(FOLDER / "explainer.npz", model).explain(X[:4])
    now = po.Explainer(model, X, robustness=0.1, n_reference=12).fit().explain(X[:4])
    np.testing.assert_allclose(before.attributions, now.attributions, rtol=1e-9)
