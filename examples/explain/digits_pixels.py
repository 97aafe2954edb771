"""
Digits as images: pixels that agree with their neighbours
=========================================================

Which pixels make a handwritten 3 an 8? Gradients change from pixel to pixel. Smooth
maps remove four fifths of these changes for a quarter of the faithfulness.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier

import propopt as po


# %%
# A neural network for images of 8 × 8 pixels; unseen threes and eights are explained.
X, y = load_digits(return_X_y=True)
X_train, X_new, y_train, y_new = train_test_split(X / 16, y, random_state=0)
model = MLPClassifier((32,), alpha=0.1, early_stopping=True, random_state=0)
model.fit(X_train, y_train)
print(f"correct of {len(X_new)} unseen digits: {model.score(X_new, y_new):.1%}")
digits = X_new[np.isin(y_new, [3, 8])][:64]
function = po.wrap(model, target=8, output="log_odds")

# %%
# Two losses in addition to faithfulness: neighbouring pixels agree, and similar digits
# agree. The aim is to remove 80 % of each.
shape = po.functions.ImageShape(channels=1, height=8, width=8)
objective = (
    po.GradientMatching(function.estimate(digits))
    + po.Smoothness(shape.pixel_graph())
    + po.PairwiseRobustness(po.graphs.knn_graph(digits, n_neighbors=5))
)
best = po.solve(objective, aim={"smoothness": "-80%", "pairwise_robustness": "-80%"})
faithful = objective.losses[0]
for name, share in best.loss_shares.items():
    print(f"{name:20} {share:.0%} {'kept' if name == faithful.name else 'removed'}")
print(f"gap {best.gap:.0e}")
assert best.loss_shares[faithful.name] > 0.7

# %%
# Orange pixels raise the log-odds of an 8, blue pixels lower it, on one scale.
rows = [0, 1, 3]
figure, axes = plt.subplots(
    1, 2, figsize=(6.4, 5.4), layout="constrained", width_ratios=[1, 2.1]
)
axes[0].imshow(np.vstack(shape.images(digits[rows])[:, 0]), cmap="gray")
axes[0].set(xticks=[], yticks=[])
axes[0].set_title("image", fontsize="small")
best.plot.images(shape, rows, next_to={"gradient": faithful.G}, ax=axes[1])

# %%
# Read on: :doc:`/guide/images`.
