"""
Stopped too early? The gap shows it without the optimum
=======================================================

A solver of five lines has no stopping rule. The certificate uses only the attributions:
no explanation can be better by a larger share than the gap. The gap is an upper bound
of the true excess and goes to zero with it.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.kernel_ridge import KernelRidge

import propopt as po


# %%
# The slopes of a model for 200 tumors with 30 measurements; the explanation should be
# robust and sparse.
data = load_breast_cancer(as_frame=True)
X = (data.data - data.data.mean()) / data.data.std()
model = KernelRidge(kernel="rbf", gamma=0.02, alpha=0.1).fit(X, data.target)
tumors = X.iloc[:200]
faithful = po.GradientMatching(po.wrap(model).gradient(tumors))
robust = po.PairwiseRobustness(po.graphs.knn_graph(tumors, n_neighbors=8))
objective = faithful + 0.1 * robust + 0.05 * po.Sparsity()

# %%
# Proximal gradient steps: each sets small attributions to zero. There is no stopping
# rule.
W, values, gaps = np.zeros(tumors.shape), [], []
for _ in range(101):
    certificate = po.proofs.certify(objective, W)
    values.append(objective.value(W))
    gaps.append(certificate.gap)
    W = W - 0.05 * (faithful.gradient(W) + 0.1 * robust.gradient(W))
    W = np.sign(W) * np.maximum(np.abs(W) - 0.05 * 0.05, 0.0)

# %%
# The optimum, computed afterwards, gives the true excess of the objective at each step.
# The certificate bounded it during the run.
least = po.solve(objective).objective * (1 - 1e-7)
true = np.maximum(1 - least / np.array(values), 0.0)
for steps in (1, 10, 20, 50):
    print(f"{steps:2} steps: gap {gaps[steps]:.1e}, true excess {true[steps]:.1e}")
assert (np.array(gaps) >= true - 2e-7).all()
assert gaps[50] < 1e-4

figure, ax = plt.subplots(figsize=(6, 4), layout="constrained")
ax.semilogy(gaps[:51], color="#0072b2", lw=2, label="gap, certified at each step")
ax.semilogy(
    true[:51], color="#d55e00", ls="--", lw=2, label="true excess over the optimum"
)
ax.set(xlabel="steps of the solver", ylabel="share of the objective", ylim=(1e-6, 1))
ax.legend()
