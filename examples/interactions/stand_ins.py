"""
Petal length or petal width? Each stands in for the other
=========================================================

Without the petal length an iris is recognized almost as well as with it, as if it did
not matter. The pair has a clearly negative score: without one column the other does its
work, and only without both does the model suffer.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import propopt as po


# %%
# Half of 150 flowers fit the model, once with all columns and once without each set of
# one and two. The other half judges.
data = load_iris(as_frame=True)
X = data.data.rename(columns=lambda name: name.removesuffix(" (cm)"))
y = data.target_names[data.target]
learner = make_pipeline(StandardScaler(), LogisticRegression())
scheme = po.interactions.DataSplit()
found = po.interactions.ILOCO(learner, scheme, progress=False).fit(X, y)

# %%
# What is lost without each column alone, in the probability of the true species:
alone = found.main_effects_.to_frame().set_index("feature_1")["estimate"]
print(alone.map("{:+.3f}".format).to_string())

# %%
# What is lost without each of a pair, added up, less what is lost without both:
pairs = found.result_
columns = ["feature_1", "feature_2", "estimate", "ci_low", "ci_high"]
least = pairs.most_negative(1)[columns].iloc[0]
print(least.to_string())
assert {least["feature_1"], least["feature_2"]} == {"petal length", "petal width"}
assert least["ci_high"] < 0

both = alone["petal length"] + alone["petal width"] - least["estimate"]
times = both / alone["petal length"]
print(f"lost without both: {both:+.3f}, {times:.1f} times as much as without length")

# %%
# Blue pairs stand in for each other; red ones matter jointly.
figure, ax = plt.subplots(figsize=(6.4, 4.4), layout="constrained")
po.plots.interaction_heatmap(pairs, ax=ax)

# %%
# The same with intervals, which hold for all six pairs at once.
figure, ax = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
po.plots.interaction_intervals(pairs, ax=ax)

# %%
# Read on: :doc:`/guide/interactions`.
