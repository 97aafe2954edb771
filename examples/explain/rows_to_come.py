"""
An explanation function for rows to come, which says where it guesses
=====================================================================

It is fitted once, to patients of usual weight. Then it explains others without asking
the model. Of heavier patients it knows less, says so, and errs more.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.kernel_ridge import KernelRidge

import propopt as po


# %%
# The model, and its slopes at all patients: changes of the predicted progression per
# standard deviation of a measurement.
X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
Z = (X - X.mean()) / X.std()
model = KernelRidge(kernel="rbf", gamma=0.1, alpha=0.3).fit(Z, y - y.mean())
slopes = po.wrap(model).gradient(Z)

# %%
# The function knows the slopes of patients with a body mass index below 28, but for a
# third of them. Those and all heavier ones are explained.
usual = X["bmi"] < 28
known = usual & (np.random.default_rng(0).random(len(X)) < 2 / 3)
explainer = po.inductive.GaussianProcessExplainer(robustness=0.003, lengthscale=2.0)
explainer.fit(Z[known], slopes[known])
found = explainer.explain(Z[~known], return_std=True)
doubt = found.details["standard_deviation"].mean(axis=1)
error = np.sqrt(((found.attributions - slopes[~known]) ** 2).mean(axis=1)).to_numpy()
heavy = ~usual[~known].to_numpy()

for name, who in (("usual", ~heavy), ("heavier", heavy)):
    print(f"{who.sum()} {name} patients: their mean standard deviation is", end=" ")
    print(f"{doubt[who].mean():.1f}, their mean error {error[who].mean():.1f}")
assert doubt[heavy].mean() > 1.5 * doubt[~heavy].mean()
assert error[heavy].mean() > 1.5 * error[~heavy].mean()

# %%
# The standard deviation orders patients by how wrong the function may be. Its unit is
# that of slopes whose noise is one, so that it ranks, and does not measure.
order = np.corrcoef(doubt.argsort().argsort(), error.argsort().argsort())[0, 1]
print(f"rank correlation of standard deviation and error: {order:.2f}")
assert order > 0.7

# %%
figure, ax = plt.subplots(figsize=(6, 4.4), layout="constrained")
for label, who, color in (
    ("bmi below 28", ~heavy, "#0072b2"),
    ("bmi of 28 or more", heavy, "#d55e00"),
):
    ax.plot(doubt[who], error[who], "o", ms=5, alpha=0.7, color=color, label=label)
ax.set(
    xlabel="standard deviation that the function gives",
    ylabel="error beside the model's slopes,\nprogression per standard deviation",
)
ax.legend(title="patients that it does not know")

# %%
# Read on: :doc:`/guide/inductive`.
