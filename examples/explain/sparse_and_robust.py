"""
Sparse and robust: the second property costs almost nothing
===========================================================

Halving the sparsity loss costs a fifth of the faithfulness. Halving the robustness loss
as well costs half a per cent more.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import propopt as po


# %%
# A neural network for tumors with 30 measurements, and its slopes: changes of the
# log-odds of malignant per standard deviation.
data = load_breast_cancer(as_frame=True)
X, y = data.data, data.target_names[data.target]
network = MLPClassifier((16,), alpha=1.0, solver="lbfgs", max_iter=2000, random_state=0)
model = make_pipeline(StandardScaler(), network).fit(X, y)
tumors, deviations = X.iloc[:100], X.std().to_numpy()
function = po.wrap(model, target="malignant", output="log_odds")
slopes = function.gradient(tumors) * deviations
faithful = po.GradientMatching(slopes)
robust = po.PairwiseRobustness(po.graphs.knn_graph(tumors / deviations, 8))
sparse = po.Sparsity()

# %%
# An aim states how much of a loss to remove; the weights follow from it.
half = "-50%"
solutions = {
    "robust": po.solve(faithful + robust, aim={robust.name: half}),
    "sparse": po.solve(faithful + sparse, aim={sparse.name: half}),
    "both": po.solve(
        faithful + robust + sparse, aim={robust.name: half, sparse.name: half}
    ),
}
shares = {}
for name, best in solutions.items():
    shares[name] = best.loss_shares[faithful.name]
    used = (best.attributions != 0).sum(axis=1).mean()
    print(f"{name:6} {shares[name]:.1%} as faithful, gap {best.gap:.0e};", end=" ")
    print(f"{used:.0f} of 30 attributions of a row are not zero")
assert shares["sparse"] - shares["both"] < 0.01 < 1 - shares["robust"]

# %%
# Each column of a panel is a tumor, sorted by its log-odds. White is zero.
figure, axes = plt.subplots(1, 3, figsize=(8, 5.4), sharey=True, layout="constrained")
maps = {name: best.attributions for name, best in solutions.items()}
maps["slopes"] = faithful.G
order = np.argsort(-np.abs(faithful.G).mean(axis=0))
rows = np.argsort(function.value(tumors))
for ax, name in zip(axes, ("slopes", "sparse", "both"), strict=True):
    values = maps[name][np.ix_(rows, order)].T
    image = ax.imshow(values, cmap="PuOr_r", vmin=-3, vmax=3, aspect="auto")
    ax.set(title=name, xlabel="100 tumors, by log-odds")
    ax.grid(False)
axes[0].set_yticks(range(30), X.columns[order], fontsize=6)
label = "change of the log-odds of malignant per standard deviation"
figure.colorbar(image, ax=axes, label=label)

# %%
# Read on: :doc:`/guide/aims`.
