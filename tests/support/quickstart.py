"""What the front page shows, with nothing but what a plain installation brings.

Run by the step of the wheel, from outside the checkout: ``python quickstart.py``.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.model_selection import train_test_split

import propopt as po


X, y = load_breast_cancer(return_X_y=True, as_frame=True)
X_train, X_test, y_train, _ = train_test_split(X, y, random_state=0)
rows, model = X_test[:60], HistGradientBoostingClassifier(max_iter=50)
model.fit(X_train, y_train)

best = po.explain(model, rows, data=X_train, outcome="benign")
print(best)
assert best.gap < 1e-6, best.gap
assert best.to_frame().shape == rows.shape
best.clear(), best.certain()
best.plot()

one = po.Explainer(model, data=X_train, kind="contributions").fit().explain(rows[:1])
assert np.allclose(one.to_frame().sum(axis=1), one.prediction - one.base_value)
print(one.reasons(towards="lower").sheet(rows.index[0]))
one.plot()

limits = po.lime.limits(model, rows[:3], data=X_train)
print(limits)
limits.plot()

near = po.graphs.knn_graph(rows, 8)
slopes = po.explain(model, rows, kind="slopes")
objective = po.GradientMatching(slopes.gradient) + 0.5 * po.PairwiseRobustness(near)
assert po.solve(objective).gap < 1e-6
assert po.solve(objective + 0.1 * po.Sparsity(), solver="conic").gap < 1e-3
po.sweep(objective, {"pairwise_robustness": [0.1, 1.0, 10.0]}).plot()
plt.close("all")
