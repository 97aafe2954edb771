"""
Is the sign of LIME's coefficient noise? Compute its limit
==========================================================

Twenty runs of LIME with 5,000 samples disagree on the sign of blood pressure. Their
limit, computed without sampling, is negative, although the model can only rise with
blood pressure. So the wrong sign is not noise: more samples would confirm it.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.model_selection import train_test_split

import propopt as po


# %%
# The model has monotonic constraints: it rises with body mass index, blood pressure and
# s5.
X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
X_train, X_new, y_train, _ = train_test_split(X, y, random_state=0)
rising = {"bmi": 1, "bp": 1, "s5": 1}
model = HistGradientBoostingRegressor(
    max_iter=60,
    max_leaf_nodes=8,
    min_samples_leaf=10,
    monotonic_cst=rising,
    random_state=0,
).fit(X_train, y_train)


# %%
# A patient with blood pressure between the median and the upper quartile.
third = X_train["bp"].quantile([0.5, 0.75])
patient = X_new.index[X_new["bp"].between(*third, inclusive="right")][0]
limit = po.lime.limits(model, X_new, data=X_train, outcome="progression")
bp, n = X.columns.get_loc("bp"), X_new.index.get_loc(patient)
exact, noise = limit.coefficients[n, bp], limit.noise()[n, bp]
print(f"limit {exact:.2f}, standard deviation of a run {noise:.2f}")

function = po.wrap(model, data=X_train)
package = po.explainers.LimePackage(data=X_train)
row = X_new.loc[[patient]]
explanations = [package.explain(function, row, rng=seed) for seed in range(20)]
runs = np.array([run.attributions[0, bp] for run in explanations])
print(f"{(runs > 0).sum()} of 20 runs are positive, and {(runs < 0).sum()} negative")
assert 0 < (runs > 0).sum() < 20
assert exact < 0

# %%
# The diagnosis has its statistic below the limit: LIME compares the bin of the row with
# the other three.
for item in limit.diagnose().of("sign against the profile"):
    if (item.row, item.column) == (n, bp):
        print(f"{item.rule}: {item.number:.2f}, flagged if < 0")

figure, axes = plt.subplots(1, 2, figsize=(9, 5.2), layout="constrained")
band = {"color": "0.9", "label": "limit ± 2 standard deviations of a run"}
axes[0].axvspan(exact - 2 * noise, exact + 2 * noise, **band)
axes[0].plot(runs, range(1, 21), "o", color="0.55", label="run of 5,000 samples")
axes[0].axvline(exact, color="#d55e00", lw=2, label="limit, without sampling")
axes[0].axvline(0, color="0.4", lw=1, ls="--", label="zero")
axes[0].set(
    xlabel="LIME's coefficient of blood pressure,\nin units of the prediction",
    ylabel="seed of the run",
)
axes[0].set_yticks([1, 5, 10, 15, 20])
axes[0].legend(loc="upper center", bbox_to_anchor=(0.5, -0.18))
limit.plot.profile("bp", patient, ax=axes[1])

# %%
# This patient is not an exception.
negative = (limit.coefficients[:, bp] < 0).mean()
print(f"limit below zero for {negative:.0%} of {len(X_new)} patients")
assert negative > 0.5

# %%
# Read on: :doc:`/guide/lime`.
