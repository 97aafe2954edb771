"""
Main effect: what similar patients may differ in
==============================================

Of the differences between similar patients' SHAP values, 87 % follow from their own
measurements: another body mass index, another contribution. That is no fault. Robust
explanations without main effects leave it, and remove of the rest what predictions allow.
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
# Main effect is what a column contributes by its value alone, over the background. It is
# read from the trees, without an evaluation.
own = po.explainers.main_effects(model, patients, data=background)
function = po.wrap(model, data=background)
shap = po.explainers.TreeShap(data=background).explain(function, patients)
coordinates = po.functions.TableSchema.of(X).coordinates(patients)
graph = po.graphs.knn_graph(coordinates, n_neighbors=8)
share = own.difference_shares(shap, graph)
print(share)
assert round(100 * share.own) == 87

# %%
# Three explanations that add up: SHAP values, robust ones, and robust ones beside own
# values, the default. The second flattens what the body mass index does; the third
# does not.
robust = po.explain(model, patients, data=background, offset=None, robustness="knee")
offset = po.explain(model, patients, data=background)
explanations = {
    "SHAP values": shap.attributions,
    "robust": robust.attributions,
    "robust without main effects": offset.attributions,
}
bmi = X.columns.get_loc("bmi")
figure, axes = plt.subplots(
    1, 3, figsize=(8.4, 5), sharex=True, sharey=True, layout="constrained"
)
order = np.argsort(patients["bmi"])
for ax, (name, W) in zip(axes, explanations.items(), strict=True):
    ax.plot(patients["bmi"], W[:, bmi], "o", ms=4, alpha=0.6, color="#0072b2")
    curve = own.explanation.attributions[order, bmi]
    ax.plot(patients["bmi"].iloc[order], curve, color="#d55e00", label="main effect")
    away = np.sqrt(((W - own.explanation.attributions)[:, bmi] ** 2).mean())
    ax.set_title(f"{name}\nrms {away:.1f} from main effect", fontsize="medium")
    print(f"{name:25} rms distance from main effect {away:.1f}, in bmi")
axes[0].set_ylabel("contribution of bmi to\nthe predicted progression")
axes[1].set_xlabel("body mass index, kg/m²")
axes[0].legend()

# %%
# Read on: :doc:`/guide/main_effects`.
