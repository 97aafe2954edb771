"""
A formula rediscovered: which two columns determine a third?
============================================================

The compactness of a tumor is its perimeter squared over its area. Among fifteen pairs
of columns, only perimeter and area have a clear joint contribution. The confidence
intervals hold for all pairs simultaneously.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

import propopt as po


# %%
# Compactness, in standard deviations, is predicted from six other columns.
data = load_breast_cancer(as_frame=True)
X = data.data.filter(like="mean").rename(columns=lambda name: name[5:])
y = X["compactness"] / X["compactness"].std()
X = X[["radius", "texture", "perimeter", "area", "smoothness", "symmetry"]]
learner = make_pipeline(StandardScaler(), PolynomialFeatures(2), Ridge(1.0))

# %%
# The score of a pair is err(−j) + err(−k) − err(−jk) − err: the joint part of the two
# columns. The model is refitted without each set and evaluated on unseen rows. The
# intervals assume only independent rows.
half = po.interactions.DataSplit()
pairs = po.interactions.ILOCO(learner, half, progress=False).fit(X, y).result_
table = pairs.to_frame()
joint = table[table["ci_low"] > 0]
columns = ["feature_1", "feature_2", "score", "ci_low", "ci_high"]
print(joint[columns].round(4).to_string(index=False))
assert joint[["feature_1", "feature_2"]].to_numpy().tolist() == [["perimeter", "area"]]

figure, ax = plt.subplots(figsize=(6.8, 5), layout="constrained")
pairs.plot(ax=ax)

# %%
# Five other divisions of the rows give the same pair.
for seed in range(5):
    again = po.interactions.ILOCO(learner, half, random_state=seed, progress=False)
    first = again.fit(X, y).result_.top(1)[columns]
    print(first.round(4).to_string(index=False, header=False))
    assert first[["feature_1", "feature_2"]].iloc[0].tolist() == ["perimeter", "area"]
    assert np.all(first["ci_low"] > 0)

# %%
# Read on: :doc:`/guide/interactions`.
