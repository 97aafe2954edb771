"""Every solver agrees with Clarabel on random small problems, within the gaps.

Sizes, graphs, losses, their weights (over six decades, in units of the problem) and the
scale of the data (over twelve decades) are drawn; every structured solver that does not
refuse a problem is compared.
"""

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF

import propopt as po
from propopt.losses import Program
from propopt.solvers.centred import Transposed
from propopt.solvers.curves import Spectral
from propopt.solvers.lasso import Lasso
from propopt.solvers.normal_equations import NormalEquations
from propopt.solvers.splitting import Splitting


N_PROBLEMS = 400
SOLVERS = {
    "spectral": Spectral(),
    "krylov": po.solvers.Krylov(),
    "lasso": Lasso(),
    "splitting": Splitting(),
    "normal_equations": NormalEquations(),
    "transposed": Transposed(po.solvers.Auto()),
}
compared = dict.fromkeys(SOLVERS, 0)


def draw(number):
    """A random problem: an objective, whose data have a random scale."""
    rng = np.random.default_rng(number)
    n_points, n_features = int(rng.integers(2, 25)), int(rng.integers(1, 6))
    X = rng.normal(size=(n_points, n_features))
    scale = 10.0 ** rng.uniform(-6, 6)
    G = scale * rng.normal(size=X.shape)
    terms = [matching(rng, X, G)]
    terms += [
        10.0 ** rng.uniform(-3, 3) * loss
        for loss in (robustness(rng, X), smoothness(rng, n_features))
        if rng.random() < 0.7 and loss is not None
    ]
    if rng.random() < 0.3:
        # the weight of an ℓ1 loss that matters is of the size of G
        terms.append(scale * 10.0 ** rng.uniform(-2, 0.5) * po.Sparsity())
    if rng.random() < 0.3:
        terms.append(max_difference(rng, X, scale))
    return sum(terms)


def matching(rng, X, G):
    objective = 1.0 * po.GradientMatching(G)
    if rng.random() < 0.2:
        values = G.sum(axis=1)
        objective = objective + 10.0 ** rng.uniform(-2, 1) * po.FunctionMatching(
            X, values
        )
    return objective


def graph(rng, X):
    kinds = [
        lambda: po.gaussian_graph(X),
        lambda: po.gaussian_graph(X, 1.0, cutoff=0.1),
        lambda: po.knn_graph(X, min(3, len(X) - 1)),
        lambda: po.threshold_graph(X, 2.0),
        lambda: po.complete_graph(len(X)),
        lambda: po.chain_graph(len(X)),
        lambda: po.graphs.LatticeGraph((len(X),)),
    ]
    return kinds[rng.integers(len(kinds))]()


def robustness(rng, X):
    if rng.random() < 0.2:
        kernel = RBF(1.0)(X) + 1e-3 * np.eye(len(X))
        return po.KernelRobustness(kernel, mean=rng.choice(["per_feature", "none"]))
    return po.PairwiseRobustness(graph(rng, X))


def smoothness(rng, n_features):
    if n_features == 1:
        return None
    kinds = [
        lambda: po.chain_graph(n_features),
        lambda: po.complete_graph(n_features),
        lambda: po.group_graph(rng.integers(2, size=n_features)),
        lambda: po.correlation_graph(rng.normal(size=(20, n_features))),
    ]
    return po.Smoothness(kinds[rng.integers(len(kinds))]())


def max_difference(rng, X, scale):
    edges = po.knn_graph(X, min(3, len(X) - 1))
    norm = str(rng.choice(["l2", "l1", "linf"]))
    loss = po.MaxDifferenceRobustness(edges, str(rng.choice(["max", "sum"])), norm)
    unit = 1.0 if norm == "l2" else scale  # so that the weight matters at any scale
    return unit * 10.0 ** rng.uniform(-1, 1.5) * loss


def slack(explanation):
    """How far the optimum may be, and rounding."""
    return (explanation.gap + 1e-9) * explanation.certificate.scale


@pytest.mark.sampled(7)
@pytest.mark.parametrize("first", range(0, N_PROBLEMS, 20))
def test_solvers_agree_with_clarabel(first):
    for number in range(first, first + 20):
        objective = draw(number)
        reference = po.solve(objective, "CLARABEL")
        for name, solver in SOLVERS.items():
            if solver.refusal(Program(objective.losses)) is None:
                result = po.solve(objective, solver)
                difference = abs(result.objective - reference.objective)
                assert difference <= slack(result) + slack(reference), (number, name)
                compared[name] += 1


def test_every_structured_solver_was_compared():
    assert all(count >= 20 for count in compared.values()), compared
