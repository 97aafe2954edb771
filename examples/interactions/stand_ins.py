"""
Petal length or petal width? Each stands in for the other
=========================================================

Without the petal length, irises are classified almost as well, as if it did not matter.
But the pair has a clearly negative score: each column replaces the other, and only the
loss of both hurts the model.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import propopt as po


# %%
# The model is fitted to half of 150 flowers, with all columns and without each set of
# one or two columns. It is evaluated on the other half.
data = load_iris(as_frame=True)
X = data.data.rename(columns=lambda name: name.removesuffix(" (cm)"))
y = data.target_names[data.target]
learner = make_pipeline(StandardScaler(), LogisticRegression())
scheme = po.interactions.DataSplit()
iloco = po.interactions.ILOCO(learner, scheme, progress=False).fit(X, y)

# %%
# The loss without each column, in the probability of the true species:
alone = iloco.main_effects_.to_frame().set_index("feature_1")["score"]
print(alone.map("{:+.3f}".format).to_string())

# %%
# The score of a pair: the losses without each column, minus the loss without both:
pairs = iloco.result_
columns = ["feature_1", "feature_2", "score", "ci_low", "ci_high"]
least = pairs.most_negative(1)[columns].iloc[0]
print(least.to_string())
assert {least["feature_1"], least["feature_2"]} == {"petal length", "petal width"}
assert least["ci_high"] < 0

both = alone["petal length"] + alone["petal width"] - least["score"]
times = both / alone["petal length"]
print(f"loss without both: {both:+.3f}, {times:.1f} times that without petal length")

# %%
# Blue pairs stand in for each other; orange pairs contribute jointly. The intervals
# hold for all six pairs simultaneously.
figure, ax = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
pairs.plot(ax=ax)

# %%
# Read on: :doc:`/guide/interactions`.
