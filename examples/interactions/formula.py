"""
A formula found again: which pair of columns makes up a third?
==============================================================

The compactness of a tumor is its perimeter squared over its area. Of fifteen pairs of
columns one is clearly joint beyond chance, with intervals that hold for all at once: it
is perimeter and area.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

import propopt as po


# %%
# Compactness is predicted from six other columns, in its standard deviations.
data = load_breast_cancer(as_frame=True)
X = data.data.filter(like="mean").rename(columns=lambda name: name[5:])
y = X["compactness"] / X["compactness"].std()
X = X[["radius", "texture", "perimeter", "area", "smoothness", "symmetry"]]
learner = make_pipeline(StandardScaler(), PolynomialFeatures(2), Ridge(1.0))

# %%
# How much worse are predictions without both columns than the losses of each alone add
# up to? The model is fitted again without each set, and judged by rows that it has not
# seen. The intervals assume that rows are independent, and nothing of the model.
half = po.interactions.DataSplit()
pairs = po.interactions.ILOCO(learner, half, progress=False).fit(X, y).result_
table = pairs.to_frame()
joint = table[table["ci_low"] > 0]
columns = ["feature_1", "feature_2", "estimate", "ci_low", "ci_high"]
print(joint[columns].round(4).to_string(index=False))
assert joint[["feature_1", "feature_2"]].to_numpy().tolist() == [["perimeter", "area"]]

figure, ax = plt.subplots(figsize=(6.8, 5), layout="constrained")
po.plots.interaction_intervals(pairs, ax=ax)

# %%
# Another half of the rows, another seed: the same pair, five times.
for seed in range(5):
    again = po.interactions.ILOCO(learner, half, random_state=seed, progress=False)
    first = again.fit(X, y).result_.top(1)[columns]
    print(first.round(4).to_string(index=False, header=False))
    assert first[["feature_1", "feature_2"]].iloc[0].tolist() == ["perimeter", "area"]
    assert np.all(first["ci_low"] > 0)

# %%
# Read on: :doc:`/guide/interactions`.
