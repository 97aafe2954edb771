"""
Main effects: differences that similar patients should keep
===========================================================

Main effects explain 87 % of the differences between similar patients' SHAP values:
another body mass index, another contribution. These differences are justified. By
default, robust explanations keep them, and reduce only the remaining differences.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.ensemble import GradientBoostingRegressor

import propopt as po


# %%
X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
model = GradientBoostingRegressor(n_estimators=60, random_state=0).fit(X, y)
patients, background = X.iloc[:150], X.iloc[150:].sample(100, random_state=0)

# %%
# A main effect is the contribution of a column by its value alone: its centred partial
# dependence over the background. It is computed exactly from the trees.
effects = po.explainers.main_effects(model, patients, data=background)
function = po.wrap(model, data=background)
shap = po.explainers.TreeShap(data=background).explain(function, patients)
coordinates = po.functions.TableSchema.of(X).coordinates(patients)
graph = po.graphs.knn_graph(coordinates, n_neighbors=8)
shares = effects.difference_shares(shap, graph)
print(shares)
assert round(100 * shares.main_effects) == 87

# %%
# Three explanations that add up: SHAP values, robust ones, and robust ones that keep
# main effects (the default). The second flattens the effect of body mass index; the
# third does not.
robust = po.explain(model, patients, data=background, offset=None, robustness="knee")
default = po.explain(model, patients, data=background)
explanations = {
    "SHAP values": shap.attributions,
    "robust": robust.attributions,
    "robust, with main effects": default.attributions,
}
bmi = X.columns.get_loc("bmi")
figure, axes = plt.subplots(
    1, 3, figsize=(8.4, 5), sharex=True, sharey=True, layout="constrained"
)
order = np.argsort(patients["bmi"])
for ax, (name, W) in zip(axes, explanations.items(), strict=True):
    ax.plot(
        patients["bmi"],
        W[:, bmi],
        "o",
        ms=4,
        alpha=0.6,
        color="#0072b2",
        label="patient",
    )
    curve = effects.explanation.attributions[order, bmi]
    ax.plot(patients["bmi"].iloc[order], curve, color="#d55e00", label="main effect")
    distance = np.sqrt(((W - effects.explanation.attributions)[:, bmi] ** 2).mean())
    ax.set_title(f"{name}\nrms distance {distance:.1f}", fontsize="medium")
    print(f"{name:25} rms distance from the main effect of bmi: {distance:.1f}")
axes[0].set_ylabel("contribution of body mass index\nto the predicted progression")
axes[1].set_xlabel("body mass index, kg/m²")
axes[0].legend()

# %%
# Read on: :doc:`/guide/main_effects`.
