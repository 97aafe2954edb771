"""Which features matter jointly, which no additive attribution can show.

    python examples/explain_interactions.py

What a drug does depends on dose and weight together; age adds to it by itself, and two
readings of the same pressure stand in for each other. iLOCO of pairs has confidence
intervals that hold for all pairs at once; the pairs that are clear are drawn, named by
the explanation of a model, and joined in a graph over which attributions are smooth.
"""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import numpy as np
import pandas as pd
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

import propopt as po
from propopt.interactions import ILOCO, Minipatches, interaction_graph


FOLDER = Path("results")


def patients(n_rows: int) -> tuple[pd.DataFrame, pd.Series]:
    """Patients, and the effect of a drug."""
    rng = np.random.default_rng(0)
    dose, weight, age, pulse, pressure, noise = rng.normal(size=(6, n_rows))
    table = pd.DataFrame(
        {
            "dose": dose,
            "weight": weight,
            "age": age,
            "pulse": pulse,
            "pressure left": pressure,
            "pressure right": pressure + 0.1 * rng.normal(size=n_rows),
        }
    )
    effect = 2.0 * dose * weight + age + pressure + 0.5 * noise
    return table, pd.Series(effect, name="effect")


def main() -> None:
    """Score all pairs, draw them, and explain a model with them in mind."""
    mpl.use("Agg")
    X, y = patients(300)
    learner = make_pipeline(StandardScaler(), PolynomialFeatures(2), Ridge(1.0))
    scheme = Minipatches(n_patches=600)
    pairs = ILOCO(learner, scheme, progress=False).fit(X, y).result_
    columns = ["feature_1", "feature_2", "estimate", "ci_low", "ci_high"]
    print(pairs.top(2)[columns].to_string(index=False))
    print(pairs.most_negative(2)[columns].to_string(index=False))

    FOLDER.mkdir(exist_ok=True)
    for draw in (
        po.plots.interaction_heatmap,
        po.plots.interaction_intervals,
        po.plots.interaction_network,
    ):
        draw(pairs).figure.savefig(FOLDER / f"{draw.__name__}.svg")

    model = learner.fit(X, y)
    best = po.explain(model, X[:60], data=X, interactions=pairs, progress=False)
    print(best.parameters["notes"])

    graph = interaction_graph(pairs, X)
    matching = po.GradientMatching(po.wrap(model, data=X).gradient(X[:60]))
    smooth = po.solve(matching + 0.5 * po.Smoothness(graph))
    print(f"{graph}: smooth attributions, proved optimal to {smooth.gap:.1g}")


if __name__ == "__main__":
    main()
