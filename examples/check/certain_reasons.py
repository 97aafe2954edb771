"""
Reasons that are certain and those that are not
===============================================

Each patient is told the four largest reasons for a malignant tumor. Of the first ones,
half are first in every explanation that is almost as good. Of the fourth ones, none is
fourth in all of them.
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
best = po.explain(model, X_new, target="malignant", data=X_train, kind="contributions")

# %%
# The sheet of one patient. A rank is certain if it holds in every explanation that is
# almost as good. Almost means: worse by at most a tenth of what a mean patient costs.
patient = X_new.index[0]
reasons = best.reasons(towards="higher")
print(reasons.sheet(patient))

# %%
# That tenth is chosen. With a smaller budget more ranks are certain, with a larger one
# fewer.
budgets = {0.02: "#56b4e9", 0.1: "#0072b2", 0.5: "#003a5c"}
shares = {budget: best.reasons(budget=budget).shares for budget in budgets}
for budget, known in shares.items():
    print(f"budget of {budget:4.0%} of a mean row:", *map("{:6.1%}".format, known))
assert 0.4 < shares[0.1][0] < 0.6
assert shares[0.1][3] == 0.0

figure, ax = plt.subplots(figsize=(6, 4), layout="constrained")
for place, (budget, color) in enumerate(budgets.items()):
    x = [rank + 0.27 * (place - 1) for rank in range(4)]
    heights = [100 * share for share in shares[budget]]
    ax.bar(x, heights, 0.25, color=color, label=f"{budget:.0%} of a mean row")
ax.set_xticks(range(4), ["first", "second", "third", "fourth"])
ax.set(xlabel="reason", ylabel="of all patients who have it: rank is certain, %")
ax.legend(title="as good means within")
ax.spines[["top", "right"]].set_visible(False)

# %%
# The same for signs: what is hatched has another sign in an explanation as good.
figure, ax = plt.subplots(figsize=(6.4, 4.4), layout="constrained")
po.plots.plot_row(best, patient, certain=best.certain(), ax=ax)

# %%
# Read on: :doc:`/guide/reasons`.
