"""
An explanation function for new rows that reports its uncertainty
=================================================================

The function is fitted once, to patients of usual weight. It then explains other
patients without evaluating the model. For heavier patients it reports larger standard
deviations, and its errors are larger.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.kernel_ridge import KernelRidge

import propopt as po


# %%
# The model and its slopes for all patients: changes of the predicted progression per
# standard deviation of a measurement.
X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
Z = (X - X.mean()) / X.std()
model = KernelRidge(kernel="rbf", gamma=0.1, alpha=0.3).fit(Z, y - y.mean())
slopes = po.wrap(model).gradient(Z)

# %%
# The function is fitted to two thirds of the patients with a body mass index below 28.
# It explains the remaining third and all heavier patients.
usual = X["bmi"] < 28
fitted = usual & (np.random.default_rng(0).random(len(X)) < 2 / 3)
explainer = po.inductive.GaussianProcessExplainer(robustness=0.003, lengthscale=2.0)
explainer.fit(Z[fitted], slopes[fitted])
new = explainer.explain(Z[~fitted], return_std=True)
deviation = new.details["standard_deviation"].mean(axis=1)
error = np.sqrt(((new.attributions - slopes[~fitted]) ** 2).mean(axis=1)).to_numpy()
heavy = ~usual[~fitted].to_numpy()

for name, group in (("usual", ~heavy), ("heavier", heavy)):
    print(f"{group.sum()} {name} patients: mean standard deviation", end=" ")
    print(f"{deviation[group].mean():.1f}, mean error {error[group].mean():.1f}")
assert deviation[heavy].mean() > 1.5 * deviation[~heavy].mean()
assert error[heavy].mean() > 1.5 * error[~heavy].mean()

# %%
# The standard deviation ranks patients by their error. Its scale is arbitrary (slopes
# with unit noise), so it is not an estimate of the error.
order = np.corrcoef(deviation.argsort().argsort(), error.argsort().argsort())[0, 1]
print(f"rank correlation of standard deviation and error: {order:.2f}")
assert order > 0.7

# %%
figure, ax = plt.subplots(figsize=(6, 4.4), layout="constrained")
for label, group, color in (
    ("body mass index below 28", ~heavy, "#0072b2"),
    ("body mass index of 28 or more", heavy, "#d55e00"),
):
    dots = {"ms": 5, "alpha": 0.7, "color": color, "label": label}
    ax.plot(deviation[group], error[group], "o", **dots)
ax.set(
    xlabel="standard deviation reported by the function (arbitrary scale)",
    ylabel="rms error of the slopes,\nprogression per standard deviation",
)
ax.legend(title="new patients")

# %%
# Read on: :doc:`/guide/inductive`.
