"""SHAP values that are robust, and still add up: the front between both.

Neighbours get contributions that are as alike as their predictions allow, for as little
change of the SHAP values as possible; each row adds up to its prediction less the base.
What neighbours differ in because their predictions do, no such explanation removes.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.ensemble import GradientBoostingRegressor

import propopt as po


X, y = load_diabetes(return_X_y=True, as_frame=True)
model = GradientBoostingRegressor(max_depth=3, n_estimators=60, random_state=0)
model.fit(X, y)

patients = X.iloc[:150]
function = po.wrap(model, data=X)
background = X.sample(100, random_state=0)
shap = po.explainers.TreeShap(background=background).explain(function, patients)
total = function.value(patients) - function.value(background).mean()

graph = po.graphs.knn_graph(
    po.functions.TableSchema.of(X).coordinates(patients), n_neighbors=8
)
objective = po.GradientMatching(shap, name="distance_to_shap") + (
    po.PairwiseRobustness(graph, name="roughness")
)
weights = np.geomspace(1e-4, 10, 41)
front = po.sweep(
    objective,
    {"roughness": weights},
    [shap],
    subject_to=[po.losses.Completeness(total)],
)

best = front.knee()
left = float(best.details["irreducible.roughness"])
rough, smooth = shap.measured(objective).losses["roughness"], best.losses["roughness"]
misses = np.abs(best.attributions.sum(axis=1) - total).max()
print(f"roughness of the SHAP values {rough:,.0f}, of which {left:,.0f} stays")
print(f"removed of the rest at the knee: {(rough - smooth) / (rough - left):.1%}")
print(f"rows miss their predictions by at most {misses:.0e}; gap {best.gap:.0e}")

axes = front.plot("distance_to_shap", "roughness")
axes.axhline(left, color="0.5", linestyle=":", label="stays with any sums")
axes.scatter(
    best.losses["distance_to_shap"], smooth, marker="o", color="black", zorder=5
)
axes.annotate(
    "knee",
    (best.losses["distance_to_shap"], smooth),
    (6, 6),
    textcoords="offset points",
)
axes.figure.savefig("robust_shap.svg")
plt.close(axes.figure)
