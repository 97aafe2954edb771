import numpy as np
import pytest
from sklearn.kernel_ridge import KernelRidge

import propopt as po
from propopt.base.errors import InvalidInput


WIDTHS = np.geomspace(0.3, 20.0, 9)


@pytest.fixture(scope="module")
def ridge():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    y = np.sin(2 * X[:, 0]) + X[:, 0] * X[:, 1]
    return po.wrap(KernelRidge(kernel="rbf", gamma=0.3).fit(X, y), data=X), X


@pytest.fixture(scope="module")
def curve(ridge):
    function, X = ridge
    rows = X[:30]
    objective = po.GradientMatching(function.gradient(rows)) + po.PairwiseRobustness(
        po.gaussian_graph(rows)
    )
    family = [
        po.explainers.ExactLime(units="gradient", kernel_width=float(width)).explain(
            function, rows
        )
        for width in WIDTHS
    ]
    weights = {"pairwise_robustness": np.geomspace(1e-3, 1e3, 25)}
    return po.sweep(objective, weights, family)


def test_no_width_beats_an_optimum_at_its_weights(curve):
    assert (curve.distances()["excess"] >= -1e-9).all()
    for best in curve.optimized:
        for one in curve.baselines:
            value = sum(c * one.losses[name] for name, c in best.rates.items())
            optimum = sum(c * best.losses[name] for name, c in best.rates.items())
            assert value >= optimum * (1 - 1e-9)


def test_the_nearest_width_has_the_least_excess(curve):
    frame = curve.distances()
    nearest = curve.nearest("exact_lime")
    place = int(frame["excess"].argmin())
    assert nearest is curve.baselines[place]
    assert nearest.parameters["kernel_width"] == WIDTHS[place]
    assert frame["excess"].max() > 1.01 * frame["excess"].min()


def test_nothing_is_nearest_where_nothing_can_be_compared(ridge, curve):
    function, X = ridge
    with pytest.raises(InvalidInput, match="'shap'"):
        curve.nearest("shap")
    lime = po.explainers.ExactLime(kernel_width=1.0).explain(function, X[:30])
    objective = po.GradientMatching(function.estimate(X[:30])) + po.Sparsity()
    other = po.sweep(objective, {"sparsity": [0.1]}, [lime])
    with pytest.raises(InvalidInput, match="distances"):
        other.nearest()
