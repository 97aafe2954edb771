"""
Which of LIME's signs depend on the kernel width?
=================================================

One in four changes at some width, and one in fifty within a factor of two of the
default. Coefficients are exact; changes of their signs are found by search.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split

import propopt as po


data = load_wine(as_frame=True)
y = data.target_names[data.target]
X_train, X_new, y_train, y_new = train_test_split(data.data, y, random_state=0)
model = RandomForestClassifier(50, max_depth=5, random_state=0).fit(X_train, y_train)
print(f"correct of {len(X_new)} unseen wines: {model.score(X_new, y_new):.1%}")

# %%
# The limit of each coefficient is exact at any width. Signs are compared at widths a
# sixteenth of an octave apart, and each change is refined.
limit = po.lime.limits(model, X_new, data=X_train, target="class_1")
paths = {wine: limit.path(wine) for wine in X_new.index}
turns = {wine: path.sign_changes for wine, path in paths.items()}

default = limit.law.kernel_width
every = [widths for wine in turns.values() for widths in wine]
often = np.mean([len(widths) > 0 for widths in every])
nearby = np.mean([any((default / 2 < w) & (w < 2 * default)) for w in every])
print(f"coefficients that change their sign at some width: {often:.0%}")
assert nearby < 0.05 < 0.2 < often < 0.3
print(f"within a factor of two of the default width, {default:.2f}: {nearby:.0%}")

# %%
# The coefficients of one wine at each width; circles are changes of sign.
wine = max(turns, key=lambda wine: sum(len(widths) > 0 for widths in turns[wine]))
figure, ax = plt.subplots(figsize=(7, 4.4), layout="constrained")
limit.plot.path(wine, ax=ax)

# %%
# All changes of sign of 45 wines and 13 coefficients.
figure, ax = plt.subplots(figsize=(6, 3.4), layout="constrained")
ax.hist(np.concatenate(every), bins=np.geomspace(0.3, 30, 41), color="#0072b2")
ax.axvline(default, color="#d55e00", label="default width")
ax.set(xscale="log", xlabel="kernel width", ylabel="number of sign changes")
ax.legend()

# %%
# Read on: :doc:`/guide/lime`.
