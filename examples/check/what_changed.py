"""
What changed between two versions? A broken scale, and no false alarm
=====================================================================

A clinic's scale breaks: the body mass index of new patients is random, and the model is
retrained. Only this column changes more than refits of both models do by chance. Five
repetitions show how often the change is detected, and how often there is a false alarm.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.base import clone
from sklearn.datasets import load_diabetes
from sklearn.linear_model import Ridge
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import propopt as po


X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
learner = make_pipeline(StandardScaler(), Ridge(10.0))
refits = po.null_models.bootstrap_refits


def versions(seed):
    """Comparisons of a version with one from a broken scale, and from a sound one."""
    X_old, X_new, y_old, y_new = train_test_split(
        X, y, test_size=0.5, random_state=seed
    )
    shuffled = np.random.default_rng(seed).permutation(X_new["bmi"])
    old = clone(learner).fit(X_old, y_old)
    old_refits = refits(old, X_old, y_old, times=20)
    for table in (X_new.assign(bmi=shuffled), X_new):
        new = clone(learner).fit(table, y_new)
        level = (old_refits, refits(new, table, y_new, times=20))
        yield po.compare(old, new, X_old.iloc[:60], data=X_old, level=level)


# %%
# Lines are distances between refits of one model on bootstrap samples of its table.
broken, sound = versions(seed=1)
for name, comparison in (("broken scale", broken), ("sound scale", sound)):
    names = np.array(comparison.features)[comparison.flagged]
    print(f"{name}: {names.tolist()}")

figure, axes = plt.subplots(1, 2, figsize=(8.4, 5), sharex=True, layout="constrained")
for ax, (title, comparison) in zip(
    axes, {"a broken scale": broken, "nothing broken": sound}.items(), strict=True
):
    comparison.plot(ax=ax)
    ax.set_title(title, fontsize="large")

# %%
# Tables of 221 patients are small, so models of them differ much. In five divisions of
# the patients, the broken scale is detected three times, and there is no false alarm.
flagged = np.array([[x.flagged.any() for x in versions(seed)] for seed in range(5)])
detected, false_alarms = flagged.sum(axis=0)
print(f"detected in {detected} of 5 divisions; false alarms: {false_alarms}")
assert broken.features[int(np.flatnonzero(broken.flagged)[0])] == "bmi"
assert (detected, false_alarms) == (3, 0)

# %%
# Read on: :doc:`/guide/compare`.
