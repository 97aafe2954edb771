"""
A column that matters, and a coefficient near zero
==================================================

The colour intensity of a wine moves the mean answer of a forest by 0.29. For some wines
LIME gives it 0.006. It compares the bin of the row with the mean of the three others,
and this wine's bin lies there. The diagnosis finds such rows, and says by how much.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_wine
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split

import propopt as po


# %%
# A forest that recognizes 44 of 45 wines, and what LIME tends to for each of them.
data = load_wine(as_frame=True)
y = data.target_names[data.target]
X_train, X_new, y_train, y_new = train_test_split(data.data, y, random_state=0)
model = RandomForestClassifier(50, max_depth=5, random_state=0).fit(X_train, y_train)
print(f"correct: {model.score(X_new, y_new) * len(X_new):.0f} of {len(X_new)}")
limit = po.lime.limits(model, X_new, data=X_train, target="class_1")

# %%
# The wine where most is hidden, in the words of the diagnosis.
diagnosis = limit.diagnose(progress=False)
hidden = diagnosis.of("cancellation by binning")
worst = max(hidden, key=lambda item: item.severity)
column, wine = X_new.columns[worst.column], X_new.index[worst.row]
print(f"{len(hidden)} cases in {len({item.row for item in hidden})} wines")
print(f"wine {wine}, {column}:", worst.sentence)
assert column == "color_intensity"
assert abs(limit.coefficients[worst.row, worst.column]) < 0.01

# %%
# What LIME shows: the coefficient is among the smallest of 13.
figure, ax = plt.subplots(figsize=(6.4, 4.6), layout="constrained")
po.plots.lime_coefficients(limit, wine, n_features=13, ax=ax)

# %%
# The mean answer with this wine moved to each bin. The dark bin is its own, the dashed
# line the mean of the others: the coefficient is the distance of both.

# sphinx_gallery_thumbnail_number = 2
figure, ax = plt.subplots(figsize=(6, 4.2), layout="constrained")
po.plots.lime_profile(limit, column, wine, ax=ax)

# %%
# Slopes do not compare bins: the mean slope near each row ranks the column by what it
# does there.
best = po.explain(model, X_new, data=X_train, target="class_1", kind="slopes")
sizes = best.to_frame().abs().mean().sort_values(ascending=False)
print(sizes.head(3).map("{:.3f} per standard deviation".format).to_string())
assert column in sizes.index[:3]

# %%
# Read on: :doc:`/guide/lime`.
