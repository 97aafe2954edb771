"""
Reasons that are clear and those that are not
=============================================

Each patient gets the four largest reasons for a malignant tumor. A reason is clear if
no small change of the patient's contributions alters its direction or its rank. Columns
that data never has apart are explained together.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.model_selection import train_test_split

import propopt as po


# %%
# Boosted trees classify tumors by ten measurements. Contributions add up to the
# log-odds of malignant.
data = load_breast_cancer(as_frame=True)
X = data.data.filter(like="mean").rename(columns=lambda name: name[5:])
y = data.target_names[data.target]
X_train, X_new, y_train, _ = train_test_split(X, y, test_size=0.3, random_state=0)
model = HistGradientBoostingClassifier(max_iter=60, max_leaf_nodes=8, random_state=0)
model.fit(X_train, y_train)
given = {"target": "malignant", "data": X_train}
best = po.explain(model, X_new, groups="auto", **given)
print(best)

# %%
# The reasons of one patient. A reason is clear if no change of the row by 5 % of a
# typical row alters its direction or its rank.
patient = X_new.index[0]
reasons = best.reasons(towards="higher")
print(reasons.sheet(patient))

# %%
# The threshold is a choice: more reasons are clear after smaller changes, fewer after
# larger ones.
deltas = {0.02: "#56b4e9", 0.1: "#0072b2", 0.5: "#003a5c"}
shares = {delta: best.reasons(small_change=delta).clear_rows for delta in deltas}
for delta, clear in shares.items():
    print(f"changes by {delta:4} log-odds:", *map("{:6.1%}".format, clear))
assert shares[0.02][0] >= shares[0.1][0] >= shares[0.5][0] > 0.0
assert shares[0.1][0] > shares[0.1][2]

# %%
# Each column by itself: data has no patient in whom the columns of a group differ as in
# the mixtures that contributions are made of, so their ranks in a group are not clear.
alone = po.explain(model, X_new, **given)
clear = alone.reasons(small_change=0.1).clear_rows
print("each column by itself:  ", *map("{:6.1%}".format, clear))
assert clear[0] < 0.5 * shares[0.1][0]

figure, ax = plt.subplots(figsize=(6, 4), layout="constrained")
for k, (delta, color) in enumerate(deltas.items()):
    x = [rank + 0.27 * (k - 1) for rank in range(4)]
    heights = [100 * share for share in shares[delta]]
    ax.bar(x, heights, 0.25, color=color, label=f"{delta} log-odds")
ax.set_xticks(range(4), ["first", "second", "third", "fourth"])
ax.set(xlabel="rank of the reason", ylabel="patients with a clear reason, %")
ax.legend(title="after changes by", ncols=3, loc="lower right", bbox_to_anchor=(1, 1))

# %%
# Signs of one patient's contributions: a small change of the row may reverse the
# hatched ones.
figure, ax = plt.subplots(figsize=(6.4, 4.4), layout="constrained")
best.plot.waterfall(patient, certain=best.clear(), ax=ax)

# %%
# Read on: :doc:`/guide/reasons`.
