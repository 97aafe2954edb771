"""What an inductive explainer takes, keeps and refuses."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.gaussian_process.kernels import RBF

import propopt as po
from propopt.base.errors import InvalidInput
from propopt.functions import Sine
from propopt.inductive import GaussianProcessExplainer


def test_a_graph_without_edges_smooths_nothing(rng):
    X, new = rng.normal(size=(6, 1)), rng.normal(size=(2, 1))
    alone = GaussianProcessExplainer(0.1, 5.0, features=po.chain_graph(1)).fit(X, X)
    without = GaussianProcessExplainer(0.1).fit(X, X)
    np.testing.assert_array_equal(
        alone.explain(new).attributions, without.explain(new).attributions
    )


def test_before_fit_it_says_so():
    with pytest.raises(NotFittedError):
        GaussianProcessExplainer().explain([[0.0]])
    with pytest.raises(NotFittedError):
        GaussianProcessExplainer().sample([[0.0]])


def test_names_are_kept_and_files_read_back(rng, tmp_path):
    names = ["age", "height"]
    X = pd.DataFrame(rng.normal(size=(6, 2)), columns=names)
    new = pd.DataFrame(rng.normal(size=(2, 2)), columns=names, index=["a", "b"])
    explainer = GaussianProcessExplainer().fit(X, function=Sine())
    best = explainer.explain(new, return_std=True, gradients=Sine())
    frame = best.to_frame()
    assert list(frame.columns) == names
    assert list(frame.index) == ["a", "b"]
    best.save(tmp_path / "best")
    same = po.Explanation.load(tmp_path / "best")
    np.testing.assert_array_equal(same.attributions, best.attributions)
    np.testing.assert_array_equal(
        same.details["standard_deviation"], best.details["standard_deviation"]
    )
    assert same.parameters == best.parameters
    assert same.method == "gaussian_process"
    assert list(explainer.explain(new.to_numpy()).to_frame().columns) == names


def test_function_and_gradients_are_the_same(rng):
    X, new = rng.normal(size=(6, 2)), rng.normal(size=(2, 2))
    by_function = GaussianProcessExplainer().fit(X, function=Sine())
    by_gradients = GaussianProcessExplainer().fit(X, Sine().gradient(X))
    np.testing.assert_array_equal(
        by_function.explain(new, gradients=Sine()).attributions,
        by_gradients.explain(new, gradients=Sine().gradient(new)).attributions,
    )


BAD = {
    "robustness: expected a weight > 0": {"robustness": 0.0},
    "robustness: expected a finite number": {"robustness": -1.0},
    "smoothness: a weight of 1 needs similar features": {"smoothness": 1.0},
    "features: expected 2 features": {"features": po.chain_graph(3)},
    "features: expected a positive definite": {"features": np.zeros((2, 2))},
    "features: expected a symmetric": {"features": np.array([[1.0, 2.0], [0.0, 1.0]])},
    "kernel: expected 'gaussian'": {"kernel": "cubic"},
    "lengthscale: a kernel object": {"kernel": RBF(1.0), "lengthscale": 1.0},
    "lengthscale: expected a number > 0": {"lengthscale": 0.0},
    "mean: expected 'none'": {"mean": "zero"},
    "jitter: expected a finite number": {"jitter": -1.0},
    "inducing: expected a rule": {"inducing": 5},
    "inducing: expected 2 features": {"inducing": np.ones((2, 3))},
    "optimize: expected": {"optimize": "likelihood"},
    "optimize: needs inducing=None": {
        "optimize": "leave_one_out",
        "inducing": np.ones((1, 2)),
    },
    "n_restarts: expected an integer": {
        "optimize": "leave_one_out",
        "n_restarts": -1,
    },
    "random_state: expected an integer": {"random_state": -1},
}


@pytest.mark.parametrize("message", BAD)
def test_bad_parameters_are_named_when_fitted(message):
    X = np.arange(8.0).reshape(4, 2)
    with pytest.raises(InvalidInput, match=message):
        GaussianProcessExplainer(**BAD[message]).fit(X, X)


def test_bad_tables_are_named(rng):
    X = rng.normal(size=(4, 2))
    explainer = GaussianProcessExplainer().fit(X, X)
    with pytest.raises(InvalidInput, match="either gradients or function"):
        GaussianProcessExplainer().fit(X)
    with pytest.raises(InvalidInput, match=r"propopt\.wrap"):
        GaussianProcessExplainer().fit(X, function=np.sin)
    with pytest.raises(InvalidInput, match=r"gradients: expected shape \(4, 2\)"):
        GaussianProcessExplainer().fit(X, X[:3])
    with pytest.raises(InvalidInput, match="X_new: expected 2 features"):
        explainer.explain(np.ones((1, 3)))
    with pytest.raises(InvalidInput, match="are infinite"):
        explainer.explain([[0.0, np.inf]])
    with pytest.raises(InvalidInput, match="weights: expected a pair"):
        explainer.explain_path(X, [1.0])
    named = GaussianProcessExplainer().fit(pd.DataFrame(X, columns=["a", "b"]), X)
    with pytest.raises(InvalidInput, match="not those of fit"):
        named.explain(pd.DataFrame(X, columns=["b", "a"]))
    with pytest.raises(InvalidInput, match="all points coincide"):
        GaussianProcessExplainer().fit(np.ones((3, 2)), np.ones((3, 2)))
