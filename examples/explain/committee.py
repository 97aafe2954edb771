"""
Constraints of a committee: which one costs the most?
=====================================================

A committee may require that high blood pressure never counts in a patient's favour, or
that age and sex have small attributions. Each constraint is one line of cvxpy, and the
objective shows its price.
"""

import cvxpy as cp
import matplotlib.pyplot as plt
from sklearn.datasets import load_diabetes
from sklearn.kernel_ridge import KernelRidge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import propopt as po


# %%
# Slopes of a model for 60 patients: changes of the predicted progression per standard
# deviation of each measurement.
X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
learner = KernelRidge(kernel="rbf", gamma=0.1, alpha=0.3)
model = make_pipeline(StandardScaler(), learner).fit(X, y - y.mean())
patients = X.iloc[:60]
slopes = po.wrap(model).gradient(patients) * X.std().to_numpy()
graph = po.graphs.knn_graph(patients / X.std(), n_neighbors=8)
objective = po.GradientMatching(slopes) + 0.05 * po.PairwiseRobustness(graph)
free = po.solve(objective)
print(f"without constraints: gap {free.gap:.0e}")

# %%
# Losses are cvxpy expressions, so any convex constraint can be added.
W = cp.Variable(patients.shape)
age, sex, bp, s1, s2 = (
    W[:, X.columns.get_loc(name)] for name in ("age", "sex", "bp", "s1", "s2")
)
constraints = {
    "bp never lowers\nthe prediction": [bp >= 0],
    "age adds up to 0\nover all patients": [cp.sum(age) == 0],
    "s1 and s2 are\nequal": [s1 == s2],
    "age and sex are\nat most 5 in size": [cp.abs(age) <= 5, cp.abs(sex) <= 5],
}
constraints["all of them"] = [c for some in constraints.values() for c in some]
prices = {}
for name, constraint in constraints.items():
    problem = cp.Problem(cp.Minimize(objective.expression(W)), constraint)
    problem.solve(solver="CLARABEL")
    prices[name] = problem.value / free.objective - 1
    print(f"{' '.join(name.split()):45} {prices[name]:+.1%}")

# %%
# The sign of blood pressure costs almost nothing, because the model nearly always
# agrees. Small attributions of age and sex cost more than all other constraints
# together.
*single, total = prices.values()
assert single[0] < 0.01 < single[1]
assert single[3] > sum(single[:3])
assert total >= max(single)

figure, ax = plt.subplots(figsize=(6.4, 3.8), layout="constrained")
bars = ax.barh(list(prices), [100 * p for p in prices.values()], color="#0072b2")
ax.bar_label(bars, fmt="%+.1f %%", padding=4)
ax.invert_yaxis()
ax.margins(x=0.15)
ax.set_xlabel("rise of the objective, % of the optimum without constraints")

# %%
# Read on: :doc:`/guide/constraints`.
