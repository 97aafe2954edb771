"""
Sparse and robust at once: the second costs almost nothing
==========================================================

Half of the sparsity loss is removed for a fifth of the faithfulness. To remove half of
the robustness loss as well costs half a per cent more.
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
# An aim says how much of a loss has to go; the weights follow from it.
half = "-50%"
found = {
    "robust": po.solve(faithful + robust, aim={robust.name: half}),
    "sparse": po.solve(faithful + sparse, aim={sparse.name: half}),
    "both": po.solve(
        faithful + robust + sparse, aim={robust.name: half, sparse.name: half}
    ),
}
kept = {}
for name, best in found.items():
    kept[name] = best.loss_shares[faithful.name]
    used = (best.attributions != 0).sum(axis=1).mean()
    print(f"{name:6} keeps {kept[name]:.1%} of the faithfulness, gap {best.gap:.0e};")
    print(f"       {used:.0f} of 30 columns in a row are not zero")
assert kept["sparse"] - kept["both"] < 0.01 < 1 - kept["robust"]

# %%
# Each column of a picture is a tumor, in one order in all of them. White is zero.
figure, axes = plt.subplots(1, 3, figsize=(8, 5.4), sharey=True, layout="constrained")
pictures = {"slopes": faithful.G} | {name: x.attributions for name, x in found.items()}
order = np.argsort(-np.abs(faithful.G).mean(axis=0))
rows = np.argsort(function.value(tumors))
for ax, name in zip(axes, ("slopes", "sparse", "both"), strict=True):
    picture = pictures[name][np.ix_(rows, order)].T
    image = ax.imshow(picture, cmap="RdBu_r", vmin=-3, vmax=3, aspect="auto")
    ax.set(title=name, xlabel="100 tumors, by log-odds")
axes[0].set_yticks(range(30), X.columns[order], fontsize=6)
figure.colorbar(image, ax=axes, label="log-odds per standard deviation")

# %%
# Read on: :doc:`/guide/aims`.
