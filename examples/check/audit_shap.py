"""
SHAP values audited: one slip among 1,200 numbers
=================================================

One sign is wrong. The audit reports the row, the column and the right number. Without
the slip, numbers remain: how much of the differences of similar rows is removable.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.ensemble import RandomForestRegressor

import propopt as po


# %%
# Exact SHAP values of a forest, with one wrong sign.
X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
model = RandomForestRegressor(30, max_depth=4, random_state=0).fit(X, y)
patients, background = X.iloc[:120], X.iloc[200:300]
function = po.wrap(model, data=X)
shap = po.explainers.ExactShap(data=background).explain(function, patients)
given = shap.to_frame()
given["base_value"] = model.predict(background).mean()
given.loc[7, "bmi"] *= -1.0

# %%
# The audit has three checks with an error and a verdict, and names the mistake.
audit = po.audit(given, model, patients, data=background)
print(audit)
slip = audit["values"]
assert patients.columns[list(slip.features)].tolist() == ["bmi"]
assert (slip.count, slip.rows, round(slip.expected, 1)) == (1, (7,), -21.7)

# %%
# Without the slip every number is reproduced.
right = po.audit(shap, model, patients, data=background)
print(right)
assert right.verdict == "exact"

# %%
# All values against the exact ones: 1,199 of 1,200 are on the line.
figure, ax = plt.subplots(figsize=(5.4, 4.8), layout="constrained")
exact, audited = shap.attributions, given[X.columns].to_numpy()
wrong = np.abs(exact - audited) > 1e-9
assert wrong.sum() == 1
ax.axline((0, 0), slope=1, color="0.6", lw=1, zorder=0, label="equal")
right_dots = {"ms": 4, "alpha": 0.4, "color": "#0072b2", "label": "right"}
ax.plot(exact[~wrong], audited[~wrong], "o", **right_dots)
ax.plot(exact[wrong], audited[wrong], "o", ms=9, color="#d55e00", label="wrong")
position = exact[wrong][0] + 4, audited[wrong][0]
ax.annotate("patient 7, bmi", position, color="#d55e00", va="center")
ax.set(
    xlabel="exact contribution to the predicted progression",
    ylabel="audited contribution to the predicted progression",
)
ax.legend()

# %%
# Read on: :doc:`/guide/audit`.
