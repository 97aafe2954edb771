"""Property losses in a cvxpy program of your own, with a constraint of your own.

A bank explains a credit score and wants attributions that are faithful, that agree
between similar customers, and that are never negative for the feature "income".
"""

import cvxpy as cp
import numpy as np

import propopt as po


rng = np.random.default_rng(0)
X = rng.normal(size=(40, 3))  # income, debt, age


def score(x):
    """Income counts less the more debt there is."""
    return np.tanh(x[:, 0] - x[:, 1] ** 2) + 0.1 * x[:, 2] - 0.3 * x[:, 0] * x[:, 1]


faithfulness = po.GradientMatching(po.wrap(score).gradient(X))
robustness = po.PairwiseRobustness(po.graphs.knn_graph(X, n_neighbors=5))
objective = faithfulness + 0.02 * robustness

W = cp.Variable(X.shape)
problem = cp.Problem(cp.Minimize(objective.expression(W)), [W[:, 0] >= 0])
problem.solve(solver="CLARABEL")

free = po.solve(objective)
print(f"without the constraint: {free.objective:.4f}, certified gap {free.gap:.0e}")
print(f"with it:                {problem.value:.4f}")
print(f"negative incomes:       {(free.attributions[:, 0] < 0).sum()} before, "
      f"{(W.value[:, 0] < -1e-6).sum()} after")  # fmt: skip
