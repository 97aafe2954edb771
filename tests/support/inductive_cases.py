"""Small problems of new inputs, and their answers by dense algebra."""

import dataclasses

import numpy as np
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.gaussian_process.kernels import RBF, Matern, RationalQuadratic

import propopt as po
from propopt.inductive import GaussianProcessExplainer


MEANS = ["none", "per_feature", "common"]

KERNELS = {
    "gaussian": "gaussian",
    "matern": "matern",
    "rough": Matern(0.7, nu=0.5),
    "sum": 0.5 * RBF(2.0) + RationalQuadratic(1.0, 2.0),
}


@dataclasses.dataclass(frozen=True)
class Case:
    """A small problem, with the settings of an explainer for it."""

    X: np.ndarray
    G: np.ndarray
    new: np.ndarray
    explainer: GaussianProcessExplainer
    smoothing: np.ndarray

    @property
    def fitted(self):
        return clone(self.explainer).fit(self.X, self.G)

    def kernel_matrix(self, X):
        return self.fitted.kernel_(X) + self.explainer.jitter * np.eye(len(X))


def similar_features(kind, n_features, rng):
    """What an explainer takes for ``features``, and P with the loss tr(W P Wᵀ)."""
    if kind == "none":
        return None, np.zeros((n_features, n_features))
    if kind == "kernel":
        root = rng.normal(size=(n_features, n_features))
        K_s = root @ root.T + 0.5 * np.eye(n_features)
        return K_s, 2 * np.linalg.inv(K_s)
    graph = {
        "chain": po.graphs.chain_graph(n_features),
        "gaussian": po.graphs.gaussian_graph(rng.normal(size=(n_features, 2)), 1.0),
        "groups": po.graphs.group_graph(np.arange(n_features) % 2),
    }[kind]
    return graph, 2 * graph.laplacian.toarray()


@st.composite
def cases(draw):
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n, D = draw(st.integers(1, 8)), draw(st.integers(1, 5))
    kind = draw(st.sampled_from(["none", "kernel", "chain", "gaussian", "groups"]))
    features, P = similar_features(kind, D, rng)
    kernel = draw(st.sampled_from(sorted(KERNELS)))
    explainer = GaussianProcessExplainer(
        robustness=10.0 ** draw(st.floats(-3, 3)),
        smoothness=10.0 ** draw(st.floats(-3, 3)) if P.any() else 0.0,
        features=features if P.any() else None,
        kernel=KERNELS[kernel],
        lengthscale=1.3 if isinstance(KERNELS[kernel], str) else None,
        mean=draw(st.sampled_from(MEANS)),
        jitter=1e-3,
    )
    X, new = rng.normal(size=(n, D)), rng.normal(size=(3, D))
    return Case(X, rng.normal(size=(n, D)), new, explainer, P)


def prior_precision(K, P, explainer):
    """The Hessian of w_r KernelRobustness + w_s Smoothness, halved, (nD, nD)."""
    inverse, eye = np.linalg.inv(K), np.eye(len(P))
    sums = inverse.sum(axis=1)
    robust = np.kron(inverse, eye)
    if explainer.mean == "per_feature":
        robust = np.kron(inverse - np.outer(sums, sums) / sums.sum(), eye)
    if explainer.mean == "common":
        both = np.kron(sums, np.ones(len(P)))
        robust -= np.outer(both, both) / (sums.sum() * len(P))
    smooth = np.kron(np.eye(len(K)), P)
    return 2 * explainer.robustness * robust + explainer.smoothness * smooth


def dense_posterior(case, x, gradient=None):
    """Row of x, and its covariance, in the dense program with x appended."""
    n, D = case.G.shape
    K = case.kernel_matrix(np.vstack([case.X, x]))
    precision = prior_precision(K, case.smoothing, case.explainer)
    observed = np.ones(n + 1)
    observed[-1] = gradient is not None
    precision += np.kron(np.diag(observed), np.eye(D))
    last = np.zeros(D) if gradient is None else gradient
    right = np.concatenate([case.G.ravel(), last])
    covariance = np.linalg.inv(precision)
    return (covariance @ right)[-D:], covariance[-D:, -D:]


def close(result, expected, rtol=1e-8):
    return bool(np.abs(result - expected).max() <= rtol * np.abs(expected).max())


def solve_case(rng, mean):
    graph, P = similar_features("chain", 4, rng)
    explainer = GaussianProcessExplainer(
        0.3, 0.2, features=graph, lengthscale=1.5, mean=mean, jitter=1e-6
    )
    X, G = rng.normal(size=(12, 4)), rng.normal(size=(12, 4))
    return Case(X, G, rng.normal(size=(1, 4)), explainer, P)
