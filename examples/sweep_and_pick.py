"""Sweep a trade-off, look at it, and pick one explanation.

The rule here: the most robust explanation that keeps nine tenths of the faithfulness,
measured between plain gradients (loss 0) and one vector for all points (the worst).
"""

import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import propopt as po


X, y = load_diabetes(return_X_y=True, as_frame=True)
model = make_pipeline(
    StandardScaler(),
    MLPRegressor(
        hidden_layer_sizes=(16,),
        alpha=1.0,
        solver="lbfgs",
        max_iter=5000,
        random_state=0,
    ),
).fit(X, y)

patients = X.iloc[:80]
function = po.wrap(model)
objective = po.GradientMatching(function.estimate(patients)) + po.PairwiseRobustness(
    po.graphs.knn_graph(patients, n_neighbors=6)
)
smoothgrad = [
    po.explainers.SmoothGrad(scale=scale).explain(function, patients, rng=0)
    for scale in (0.005, 0.01, 0.02, 0.04)
]
curve = po.sweep(
    objective, {"pairwise_robustness": np.geomspace(1e-5, 10, 31)}, smoothgrad
)
print(curve.distances()[["method", "parameter.scale", "excess"]].to_string(index=False))

worst = max(e.losses["gradient_matching"] for e in curve.optimized)
faithful = [e for e in curve.optimized if e.losses["gradient_matching"] <= 0.1 * worst]
chosen = min(faithful, key=lambda e: e.losses["pairwise_robustness"])
print(chosen)
print(chosen.to_frame().head(3).round(1).to_string())
