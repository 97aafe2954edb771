"""
What changed between two versions? A broken scale, and no false alarm
=====================================================================

The scale of a clinic breaks: the body mass index of new patients is random. The model
is trained anew. One column changed more than any does by refitting, and it is that one.
Five repetitions show how often this is seen, and how often it is said in error.
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


def versions(seed):
    """Comparisons of a version with one of a broken scale, and with a sound one."""
    X_old, X_new, y_old, y_new = train_test_split(
        X, y, test_size=0.5, random_state=seed
    )
    shuffled = np.random.default_rng(seed).permutation(X_new["bmi"])
    old = clone(learner).fit(X_old, y_old)
    level = po.null_models.split_half_refits(learner, X_old, y_old)
    for table in (X_new.assign(bmi=shuffled), X_new):
        new = clone(learner).fit(table, y_new)
        yield po.compare(old, new, X_old.iloc[:60], data=X_old, level=level)


# %%
# The level is that of ten refits on halves of the old table: the farthest that any
# column moved in any of them.
broken, sound = versions(seed=0)
for name, found in (("broken scale", broken), ("sound scale", sound)):
    print(f"{name}: {found.to_frame().query('distance_flagged')['feature'].tolist()}")

figure, axes = plt.subplots(1, 2, figsize=(8.4, 5), sharex=True, layout="constrained")
order = [broken.features[j] for j in np.argsort(-broken.distances)]
for ax, (title, found) in zip(
    axes, {"a broken scale": broken, "nothing broken": sound}.items(), strict=True
):
    po.plots.plot_changes(found, features=order, ax=ax)
    ax.set_title(title, loc="left", fontsize="large")

# %%
# Tables of 221 patients are small, and their halves differ much. Of five divisions of
# the patients two show the broken scale; none of five has an alarm without a fault.
flagged = np.array(
    [[found.distance_flagged.any() for found in versions(k)] for k in range(5)]
)
seen, alarms = flagged.sum(axis=0)
print(f"broken scale seen in {seen} of 5 divisions; alarms without a fault: {alarms}")
assert broken.features[int(np.flatnonzero(broken.distance_flagged)[0])] == "bmi"
assert (seen, alarms) == (2, 0)

# %%
# Read on: :doc:`/guide/compare`.
