"""
A column that matters, and a coefficient near zero
==================================================

Between the bins of colour intensity, the mean output of a forest changes by 0.29. Yet
LIME's coefficient is 0.006 for one wine, because LIME compares the bin of the row with
the mean of the three others, and here the two are equal. The diagnosis detects such
rows.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_wine
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split

import propopt as po


# %%
# A forest that classifies 44 of 45 wines correctly, and the limits of LIME for each
# wine.
data = load_wine(as_frame=True)
y = data.target_names[data.target]
X_train, X_new, y_train, y_new = train_test_split(data.data, y, random_state=0)
model = RandomForestClassifier(50, max_depth=5, random_state=0).fit(X_train, y_train)
print(f"correct: {model.score(X_new, y_new) * len(X_new):.0f} of {len(X_new)}")
limit = po.lime.limits(model, X_new, data=X_train, target="class_1")

# %%
# The most severe case of the diagnosis.
diagnosis = limit.diagnose(progress=False)
hidden = diagnosis.of("cancellation by binning")
worst = max(hidden, key=lambda item: item.severity)
column, wine = X_new.columns[worst.column], X_new.index[worst.row]
print(f"{len(hidden)} cases in {len({item.row for item in hidden})} wines")
print(f"wine {wine}, {column}: {worst.rule}, {worst.number:.3f}")
assert column == "color_intensity"
assert abs(limit.coefficients[worst.row, worst.column]) < 0.01

# %%
# LIME's coefficients: the one of colour intensity is among the smallest of 13.
figure, ax = plt.subplots(figsize=(6.4, 4.6), layout="constrained")
limit.plot(wine, n_features=13, ax=ax)

# %%
# The mean output with this wine moved to each bin, minus the mean of the bins other
# than its own. The bar of its own bin is the coefficient.

# sphinx_gallery_thumbnail_number = 2
figure, ax = plt.subplots(figsize=(6, 4.2), layout="constrained")
limit.plot.profile(column, wine, ax=ax)

# %%
# Slopes do not depend on bins: the mean slope near each row shows the importance of the
# column.
best = po.explain(model, X_new, data=X_train, target="class_1", kind="slopes")
sizes = best.to_frame().abs().mean().sort_values(ascending=False)
print(sizes.head(3).map("{:.3f} per standard deviation".format).to_string())
assert column in sizes.index[:3]

# %%
# Read on: :doc:`/guide/lime`.
