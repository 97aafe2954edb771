"""
Four models of one table: do their explanations agree?
======================================================

Four ensembles of trees predict about equally well. Their SHAP values have correlations
of 0.94 to 0.97. Robust explanations agree more, for each of the six pairs of models.
"""

from itertools import combinations

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.ensemble import (
    ExtraTreesRegressor,
    GradientBoostingRegressor,
    HistGradientBoostingRegressor,
    RandomForestRegressor,
)
from sklearn.model_selection import train_test_split

import propopt as po


X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
X_train, X_new, y_train, y_new = train_test_split(X, y, random_state=0)
models = {
    "boosted": GradientBoostingRegressor(n_estimators=60, random_state=0),
    "histogram": HistGradientBoostingRegressor(
        max_iter=60, max_leaf_nodes=8, random_state=0
    ),
    "forest": RandomForestRegressor(50, min_samples_leaf=5, random_state=0),
    "extra trees": ExtraTreesRegressor(50, min_samples_leaf=5, random_state=0),
}

# %%
# Both explanations add up to each prediction. The SHAP values are exact.
shap, robust = {}, {}
for name, model in models.items():
    model.fit(X_train, y_train)
    best = po.explain(model, X_new, data=X_train)
    shap[name], robust[name] = best.contributions, best.attributions
    print(f"{name:12} R² {model.score(X_new, y_new):.2f}, gap {best.gap:.0e}")


# %%
def agreement(explanations, pair):
    """The correlation of all contributions of two models."""
    return np.corrcoef(*(explanations[name].ravel() for name in pair))[0, 1]


pairs = sorted(combinations(models, 2), key=lambda pair: agreement(shap, pair))
before = np.array([agreement(shap, pair) for pair in pairs])
after = np.array([agreement(robust, pair) for pair in pairs])
assert (after > before).all()

figure, ax = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
rows = range(len(pairs))
ax.hlines(rows, before, after, color="#0072b2", lw=3, alpha=0.4)
ax.plot(before, rows, "o", color="0.55", label="SHAP values")
ax.plot(after, rows, "o", color="#0072b2", label="robust")
ax.set_yticks(rows, [" and ".join(pair) for pair in pairs])
ax.set_xlabel("correlation of contributions between two models")
ax.legend()

# %%
# Read on: :doc:`/guide/output_units`.
