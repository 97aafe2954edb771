"""
An explanation that says what it cannot show
============================================

One number for each column has no place for what two columns do together. An explanation
that is given the pairs says in words which of them it divides.
"""

import textwrap

import matplotlib.pyplot as plt
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

import propopt as po


# %%
# The model predicts how compact a tumor is, from six other columns. Compactness is
# perimeter squared over area.
data = load_breast_cancer(as_frame=True)
X = data.data.filter(like="mean").rename(columns=lambda name: name[5:])
y = (X["compactness"] / X["compactness"].std()).rename("compactness")
X = X[["radius", "texture", "perimeter", "area", "smoothness", "symmetry"]]
learner = make_pipeline(StandardScaler(), PolynomialFeatures(2), Ridge(1.0))

# %%
# Pairs are scored by refits on one half of the rows, judged by the other half.
scheme = po.interactions.DataSplit()
pairs = po.interactions.ILOCO(learner, scheme, progress=False).fit(X, y).result_

# %%
# The explanation is that of the model, and adds a note on what it divides.
model = learner.fit(X, y)
best = pairs.noted_in(po.explain(model, X.iloc[:60], data=X, outcome="compactness"))
print(textwrap.fill(best.parameters["notes"], 80))
print(f"gap {best.gap:.0e}")
assert "perimeter × area (0.0325) matter jointly" in best.parameters["notes"]

# %%
# Lines join what matters jointly, and what stands in for each other.
figure, ax = plt.subplots(figsize=(6.4, 4.6), layout="constrained")
po.plots.interaction_network(pairs, ax=ax)

# %%
# The attributions themselves: perimeter up and area down, each by itself.
figure, ax = plt.subplots(figsize=(6.4, 3.4), layout="constrained")
po.plots.plot_heatmap(best, ax=ax)

# %%
# Read on: :doc:`/guide/interactions`.
