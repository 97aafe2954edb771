"""Explain a forest on a table with text columns, and compare with SHAP.

    pip install -e ".[baselines]"
    python examples/explain_table.py

The forest is piecewise constant, so that it is explained by the gradients of its mean
over noise; a category gets the effect it has beside the average category. Attributions
are changes of the predicted probability per standard deviation.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

import propopt as po


FOLDER = Path("results")


def customers(n_rows: int) -> tuple[pd.DataFrame, pd.Series]:
    """Customers, and whether they left: the young, those who pay much, and by plan."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            "age": rng.integers(18, 80, n_rows),
            "bill": rng.gamma(4.0, 15.0, n_rows),
            "calls": rng.poisson(3.0, n_rows),
            "plan": rng.choice(["basic", "family", "pro"], n_rows, p=[0.5, 0.3, 0.2]),
            "roaming": rng.random(n_rows) < 0.2,
        },
        index=[f"customer {n}" for n in range(n_rows)],
    )
    odds = 0.05 * (40 - table["age"]) + 0.03 * (table["bill"] - 60)
    odds += table["plan"].map({"basic": 1.0, "family": -1.0, "pro": 0.0})
    left = pd.Series(rng.random(n_rows) < 1 / (1 + np.exp(-odds)), table.index)
    return table, left


def main() -> None:
    """Fit, explain, compare, draw."""
    X, left = customers(1000)
    columns = make_column_transformer(
        (OneHotEncoder(), ["plan", "roaming"]), remainder="passthrough"
    )
    forest = RandomForestClassifier(30, min_samples_leaf=10, random_state=0)
    model = make_pipeline(columns, forest).fit(X, left)

    some = X.iloc[:120]
    best = po.explain(model, some, target=True, data=X)
    print(best.to_frame().head().round(3))
    print(*(f"{name}: {value}" for name, value in best.parameters.items()), sep="\n")

    function = po.wrap(model, target=True, data=X)
    shap = po.explainers.Shap(background=X.sample(20, random_state=0))
    others = shap.explain(function, some.iloc[:20])
    print("mean |attribution|")
    print(
        pd.DataFrame(
            {
                "propopt, per deviation": best.to_frame().abs().mean(),
                "SHAP, in outputs": others.to_frame().abs().mean(),
            }
        ).round(3)
    )

    FOLDER.mkdir(exist_ok=True)
    po.plots.plot_heatmap(best).figure.savefig(FOLDER / "customers.svg")
    po.plots.plot_row(best, "customer 3", X=some).figure.savefig(
        FOLDER / "customer_3.svg"
    )
    print(f"pictures in {FOLDER}/")


if __name__ == "__main__":
    main()
