"""
A custom constraint: three backends, one certified optimum
==========================================================

Experts require that age never lowers the prediction. ECOS, OSQP and Clarabel give the
same explanation, each with a certified gap below one in 100,000.
"""

import cvxpy as cp
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.ensemble import HistGradientBoostingRegressor

import propopt as po


# %%
# Slopes of boosted trees, averaged near each row, per standard deviation.
X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
X = (X - X.mean()) / X.std()
model = HistGradientBoostingRegressor(max_iter=60, random_state=0).fit(X, y)
rows = X.iloc[:40]
function = po.functions.smoothed(po.wrap(model, data=X), law="data", data=X)
faithful = po.GradientMatching(function.estimate(rows))
robust = po.PairwiseRobustness(po.graphs.knn_graph(rows, 8))
objective = faithful + 0.1 * robust

# %%
# The constraint is a cvxpy constraint on the variable W (rows × columns).
age = rows.columns.get_loc("age")
constraint = [lambda W: W[:, age] >= 0]
free = po.solve(objective)
solutions = {}
for backend in ("ECOS", "OSQP", "CLARABEL"):
    if backend in cp.installed_solvers():
        solutions[backend] = po.solve(
            objective, backend, subject_to=constraint, tolerance=1e-5
        )
for backend, best in solutions.items():
    certificate = best.certificate
    gap, violation = certificate.gap, certificate.violation
    print(f"{backend:9} gap {gap:.0e}, violation {violation:.0e}")

values = [best.objective for best in solutions.values()]
assert all(best.gap < 1e-5 for best in solutions.values())
assert max(values) - min(values) < 1e-5 * min(values)
lowered = (free.attributions[:, age] < 0).sum()
assert lowered > 0  # without the constraint
cost = values[0] / free.objective - 1
print(f"without the constraint {lowered} of {len(rows)} slopes of age are negative;")
print(f"the constraint raises the objective by {cost:.1%}")

# %%
# The slopes of age, sorted, without and with the constraint.
constrained = next(iter(solutions.values())).attributions[:, age]
order = np.argsort(free.attributions[:, age])
figure, ax = plt.subplots(figsize=(6, 3.2), layout="constrained")
ax.plot(free.attributions[order, age], "o", ms=4, label="without constraint")
ax.plot(constrained[order], "o", ms=4, label="with slope of age ≥ 0")
ax.axhline(0, color="grey", linewidth=0.8)
ax.set(
    xlabel=f"{len(rows)} patients, by their slope without the constraint",
    ylabel="predicted progression per\nstandard deviation of age",
)
ax.legend()
plt.show()
