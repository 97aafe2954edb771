"""
An explanation that states what it cannot show
==============================================

One number for each column cannot show a joint effect of two columns. With interaction
scores, an explanation names the pairs whose effects it divides.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

import propopt as po


# %%
# The model predicts the compactness of a tumor (perimeter squared over area) from six
# other columns.
data = load_breast_cancer(as_frame=True)
X = data.data.filter(like="mean").rename(columns=lambda name: name[5:])
y = (X["compactness"] / X["compactness"].std()).rename("compactness")
X = X[["radius", "texture", "perimeter", "area", "smoothness", "symmetry"]]
learner = make_pipeline(StandardScaler(), PolynomialFeatures(2), Ridge(1.0))

# %%
# Pairs are scored by refits on one half of the rows, evaluated on the other half.
scheme = po.interactions.DataSplit()
pairs = po.interactions.ILOCO(learner, scheme, progress=False).fit(X, y).result_

# %%
# The explanation of the model, with the pairs whose effects it divides.
model = learner.fit(X, y)
best = pairs.noted_in(po.explain(model, X.iloc[:60], data=X, outcome="compactness"))
print("clear pairs:", best.parameters["clear pairs"])
print(f"gap {best.gap:.0e}")
assert "perimeter × area +0.0221" in best.parameters["clear pairs"]

# %%
# Orange bars are pairs that contribute jointly; blue ones stand in for each other.
figure, ax = plt.subplots(figsize=(6.4, 4.6), layout="constrained")
pairs.plot(ax=ax)

# %%
# The attributions: perimeter and area have opposite signs.
figure, ax = plt.subplots(figsize=(6.4, 3.4), layout="constrained")
best.plot(ax=ax)

# %%
# Read on: :doc:`/guide/interactions`.
