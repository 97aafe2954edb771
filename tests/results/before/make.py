"""Results as files, with the table of each: made once, by version 0.1.

They are loaded by the versions after it: what they hold has to stay what it was.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.ensemble import GradientBoostingRegressor, RandomForestRegressor
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

import propopt as po


def table() -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(60, 4)), columns=["age", "dose", "=x", "\x1bw"])
    y = X["age"] * X["dose"] + X["=x"] + rng.normal(size=60) / 10
    return X, y.to_numpy()


TEXTS = [
    f"{w} food {v} staff" for w in ("good", "bad", "fine") for v in ("kind", "rude")
]


def results() -> dict[str, object]:
    X, y = table()
    model = GradientBoostingRegressor(n_estimators=8, random_state=0).fit(X, y)
    few = X.iloc[:6].set_axis(list("abcdef"), axis=0)
    best = po.explain(model, few, data=X, robustness=0.1)
    parts = po.explain(model, few, data=X, units="output")
    G = np.array([[1.0, -2.0], [1.2, 1.5], [0.9, -1.0]])
    objective = po.GradientMatching(G) + 0.25 * po.PairwiseRobustness(po.chain_graph(3))
    plain = po.solve(objective)
    texts = make_pipeline(TfidfVectorizer(), LogisticRegression())
    texts.fit(TEXTS, [1, 1, 0, 0, 1, 0])
    limits = po.lime.limits(model, few, data=X)
    sweep = po.sweep(
        objective,
        {"pairwise_robustness": [0.1, 1.0]},
        [po.Explanation(attributions=G / 2, method="half")],
    )
    iloco = po.interactions.ILOCO(
        RandomForestRegressor(5, random_state=0), random_state=0
    )
    return {
        "explanation": best,
        "contributions": parts,
        "certain": plain.certain(),
        "shares": plain.shares(),
        "stability": plain.stability(),
        "lime": limits,
        "diagnosis": limits.diagnose(),
        "text_lime": po.lime.text_limits(texts, TEXTS[:3]),
        "trade_offs": sweep,
        "interactions": iloco.fit(X, y).result_,
        "explainer": po.Explainer(model, X, robustness=0.1, n_reference=12).fit(),
    }


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    for name, result in results().items():
        result.save(folder / f"{name}.npz")
        if hasattr(result, "to_csv"):
            result.to_csv(folder / f"{name}.csv")
