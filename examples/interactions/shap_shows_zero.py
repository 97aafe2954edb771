"""
An interaction of body mass index and blood fat, which shap shows as zero
=========================================================================

In a diabetes forecast 16 % of the contribution of body mass index comes from pairs of
columns, above all from that with triglycerides. Against background rows the package
``shap`` gives 0 for each pair.
"""

import matplotlib.pyplot as plt
import numpy as np
import shap
from sklearn.datasets import load_diabetes
from sklearn.ensemble import GradientBoostingRegressor

import propopt as po


# %%
X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
X = X.rename(columns={"s5": "triglycerides"})
model = GradientBoostingRegressor(n_estimators=60, random_state=0).fit(X, y)
patients, background = X.iloc[:150], X.iloc[150:]

# %%
# Each contribution is split into a part of its column alone and halves of pairs. All of
# it adds up to the forecast minus the base.
function = po.wrap(model, data=background)
found = po.explainers.TreeInteractions(data=background).explain(function, patients)
print(found)
largest = found.to_frame().iloc[0]
assert {largest["feature"], largest["with"]} == {"bmi", "triglycerides"}
assert round(100 * found.from_pairs[X.columns.get_loc("bmi")]) == 16

contributions = po.explainers.TreeShap(data=background).explain(function, patients)
difference = found.contributions - contributions.attributions
print(f"largest difference from SHAP values: {np.abs(difference).max():.1e}")

# %%
# The same game with the package:
explainer = shap.TreeExplainer(model, background)
theirs = explainer.shap_interaction_values(patients)
print(f"largest interaction value of shap: {np.abs(theirs).max()}")
assert np.abs(theirs).max() == 0.0

# %%
# Are the zeros right? For the patient with the largest value, the model itself says no:
# both columns together change its mean forecast by more than each of them alone.
pair = ["bmi", "triglycerides"]
of_pair = found.pairs[:, X.columns.get_loc(pair[0]), X.columns.get_loc(pair[1])]
n = int(np.abs(of_pair).argmax())


def forecast(columns):
    """The mean over the background, with these columns of the patient."""
    return model.predict(background.assign(**patients.iloc[n][columns])).mean()


alone = [forecast([column]) - forecast([]) for column in pair]
both = forecast(pair) - forecast([])
print(f"alone {alone[0]:+.0f} and {alone[1]:+.0f}, together {both:+.0f}")
print(f"interaction value {of_pair[n]:+.0f}")
assert (both - sum(alone)) * of_pair[n] > 25

# %%
# The mean sizes of all parts, and those of this patient:
figure, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
found.plot(n_features=6, ax=axes[0])
found.plot(n, n_features=6, ax=axes[1])

# %%
# Read on: :doc:`/guide/from_shap`.
