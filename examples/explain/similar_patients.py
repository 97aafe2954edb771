"""
Two similar patients: which method gives them similar reasons?
==============================================================

Two tumors differ by less than half a standard deviation in each of ten measurements.
The model gives them nearly the same log-odds of malignancy. LIME and SHAP give them
different reasons; the robust explanation gives them nearly the same.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.model_selection import train_test_split

import propopt as po


# %%
# The model classifies 95 % of unseen tumors correctly.
data = load_breast_cancer(as_frame=True)
X = data.data.filter(like="mean").rename(columns=lambda name: name[5:])
y = data.target_names[data.target]
X_train, X_new, y_train, y_new = train_test_split(X, y, test_size=0.3, random_state=0)
model = HistGradientBoostingClassifier(max_iter=60, max_leaf_nodes=8, random_state=0)
model.fit(X_train, y_train)
print(f"correct of {len(X_new)} unseen tumors: {model.score(X_new, y_new):.1%}")

# %%
# Robust contributions add up to the log-odds of each tumor, as SHAP values do. This
# example uses the knee of the trade-off; the default changes SHAP values less.
function = po.wrap(model, target="malignant", output="margin", data=X_train)
shap = po.explainers.ExactShap(data=X_train).explain(function, X_new)
plain = {"contributions": shap, "offset": None, "robustness": "knee"}
best = po.explain(model, X_new, target="malignant", data=X_train, **plain)
explanations = {
    "LIME, its limit": po.lime.limits(function, X_new, data=X_train).coefficients,
    "SHAP, exact": best.contributions,
    "robust": best.attributions,
}
print(f"gap {best.gap:.0e}: no explanation is better by a larger share")

# %%
# A rule selects the pair: each measurement differs by less than 0.5 standard
# deviations, and the log-odds by less than 0.3. Among these pairs, its SHAP values
# differ most.
Z, margins = (X_new / X_train.std()).to_numpy(), best.prediction
similar = np.abs(Z[:, None] - Z).max(axis=2) < 0.5
similar = np.triu(similar & (np.abs(margins[:, None] - margins) < 0.3), k=1)
distances = {k: np.abs(W[:, None] - W).sum(axis=2) for k, W in explanations.items()}
a, b = np.unravel_index(np.argmax(similar * distances["SHAP, exact"]), similar.shape)
print(f"{similar.sum()} pairs; log-odds of this one {margins[a]:.2f}, {margins[b]:.2f}")

# %%
# Each line joins the contributions of a measurement for the two patients.
same = {"sharex": True, "sharey": True}
figure, axes = plt.subplots(1, 3, figsize=(8, 5), layout="constrained", **same)
order = np.argsort(np.abs(best.attributions[a]))
rows = range(len(order))
for ax, (name, W) in zip(axes, explanations.items(), strict=True):
    line = {"colors": "#f0ac80", "lw": 3, "label": "difference"}
    ax.hlines(rows, W[a, order], W[b, order], **line)
    ax.plot(W[a, order], rows, "o", color="#0072b2", label="patient A")
    ax.plot(W[b, order], rows, "o", color="#0072b2", mfc="white", label="patient B")
    ax.axvline(0, color="0.6", lw=1, zorder=0)
    ax.set_title(f"{name}\nA and B differ by {distances[name][a, b]:.1f}")
axes[0].set_yticks(rows, X.columns[order])
axes[1].set_xlabel("contribution to the log-odds of malignant")
labels = axes[0].get_legend_handles_labels()
figure.legend(*labels, loc="outside lower center", ncols=3)

# %%
# The same holds on average over all pairs that the rule allows.
means = {name: distance[similar].mean() for name, distance in distances.items()}
print({name: round(float(mean), 2) for name, mean in means.items()})
assert distances["robust"][a, b] < distances["SHAP, exact"][a, b] / 3
assert means["robust"] < min(means["LIME, its limit"], means["SHAP, exact"]) / 2

# %%
# Read on: :doc:`/guide/first_steps`.
