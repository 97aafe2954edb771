"""
Reasons that are clear and those that are not
=============================================

Each patient gets the four largest reasons for a malignant tumor. Many first reasons
stay first after any small change of the patient's contributions. Fewer third reasons
stay third.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.model_selection import train_test_split

import propopt as po


# %%
# Boosted trees for tumors with ten measurements, and contributions that add up to the
# log-odds of malignant.
data = load_breast_cancer(as_frame=True)
X = data.data.filter(like="mean").rename(columns=lambda name: name[5:])
y = data.target_names[data.target]
X_train, X_new, y_train, _ = train_test_split(X, y, test_size=0.3, random_state=0)
model = HistGradientBoostingClassifier(max_iter=60, max_leaf_nodes=8, random_state=0)
model.fit(X_train, y_train)
best = po.explain(model, X_new, target="malignant", data=X_train)

# %%
# The sheet of one patient. A reason is clear if its direction and its place survive any
# change of the row by 5 % of a typical row, before optimization and after it.
patient = X_new.index[0]
reasons = best.reasons(towards="higher")
print(reasons.sheet(patient))

# %%
# That threshold is chosen. After a smaller change more reasons are clear, after a
# larger one fewer.
deltas = {0.02: "#56b4e9", 0.1: "#0072b2", 0.5: "#003a5c"}
shares = {delta: best.reasons(delta=delta).shares for delta in deltas}
for delta, known in shares.items():
    print(f"changes by {delta:4} log-odds:", *map("{:6.1%}".format, known))
assert shares[0.02][0] >= shares[0.1][0] >= shares[0.5][0] > 0.0
assert shares[0.1][0] > shares[0.1][2]

figure, ax = plt.subplots(figsize=(6, 4), layout="constrained")
for place, (delta, color) in enumerate(deltas.items()):
    x = [rank + 0.27 * (place - 1) for rank in range(4)]
    heights = [100 * share for share in shares[delta]]
    ax.bar(x, heights, 0.25, color=color, label=f"{delta} log-odds")
ax.set_xticks(range(4), ["first", "second", "third", "fourth"])
ax.set(xlabel="reason", ylabel="clear, % of the patients who have it")
ax.legend(title="after changes by")
ax.spines[["top", "right"]].set_visible(False)

# %%
# The same for signs: a small change of the row may turn those that are hatched.
figure, ax = plt.subplots(figsize=(6.4, 4.4), layout="constrained")
po.plots.plot_row(best, patient, certain=best.clear(), ax=ax)

# %%
# Read on: :doc:`/guide/reasons`.
