"""Explanations of inputs that come later, against dense algebra and other libraries."""

from __future__ import annotations

import dataclasses
import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.linalg as la
from hypothesis import given
from hypothesis import strategies as st
from scipy import fft
from scipy.spatial.distance import cdist
from scipy.stats import multivariate_normal, norm
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import (
    RBF,
    ConstantKernel,
    DotProduct,
    Matern,
    RationalQuadratic,
)

import propopt as po
from propopt.errors import InvalidInput
from propopt.functions import Sine
from propopt.inductive import (
    DenseFeatures,
    FeatureBasis,
    GaussianProcessExplainer,
    IndependentFeatures,
    exact,
)
from propopt.inductive.exact import Exact
from propopt.inductive.features import read_features
from propopt.inductive.kernels import distances, read_kernel
from propopt.inductive.means import read_mean
from propopt.inductive.model import smoothing
from propopt.inductive.tuning import Criterion, log_evidence, log_leave_one_out


# Bound on |error| / standard error: one check in 5e8 would fail by chance where errors
# are gaussian, as counts and means of hundreds of draws nearly are.
Z = 6.0

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
    def fitted(self) -> GaussianProcessExplainer:
        return clone(self.explainer).fit(self.X, self.G)

    def kernel_matrix(self, X: np.ndarray) -> np.ndarray:
        return self.fitted.kernel_(X) + self.explainer.jitter * np.eye(len(X))


def similar_features(kind: str, n_features: int, rng: np.random.Generator) -> tuple:
    """What an explainer takes for ``features``, and P with the loss tr(W P Wᵀ)."""
    if kind == "none":
        return None, np.zeros((n_features, n_features))
    if kind == "kernel":
        root = rng.normal(size=(n_features, n_features))
        K_s = root @ root.T + 0.5 * np.eye(n_features)
        return K_s, 2 * np.linalg.inv(K_s)
    graph = {
        "chain": po.chain_graph(n_features),
        "gaussian": po.gaussian_graph(rng.normal(size=(n_features, 2)), 1.0),
        "groups": po.group_graph(np.arange(n_features) % 2),
    }[kind]
    return graph, 2 * graph.laplacian.toarray()


@st.composite
def cases(draw: st.DrawFn) -> Case:
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


def prior_precision(
    K: np.ndarray, P: np.ndarray, explainer: GaussianProcessExplainer
) -> np.ndarray:
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


def dense_posterior(
    case: Case, x: np.ndarray, gradient: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Row of x, and its covariance, in the dense program with x appended."""
    n, D = case.G.shape
    K = case.kernel_matrix(np.vstack([case.X, x]))
    precision = prior_precision(K, case.smoothing, case.explainer)
    seen = np.ones(n + 1)
    seen[-1] = gradient is not None
    precision += np.kron(np.diag(seen), np.eye(D))
    last = np.zeros(D) if gradient is None else gradient
    right = np.concatenate([case.G.ravel(), last])
    covariance = np.linalg.inv(precision)
    return (covariance @ right)[-D:], covariance[-D:, -D:]


def close(found: np.ndarray, expected: np.ndarray, rtol: float = 1e-8) -> bool:
    return bool(np.abs(found - expected).max() <= rtol * np.abs(expected).max())


@given(cases())
def test_explanation_is_the_row_of_the_transductive_optimum(case):
    found = case.fitted.explain(case.new).attributions
    for x, row in zip(case.new, found, strict=True):
        assert close(row, dense_posterior(case, x)[0])


@given(cases())
def test_deviation_is_that_of_dense_conditioning(case):
    found = case.fitted.explain(case.new, return_std=True)
    for x, row in zip(case.new, found.details["standard_deviation"], strict=True):
        assert close(row, np.sqrt(np.diag(dense_posterior(case, x)[1])))


@given(cases())
def test_gradient_at_a_new_input_is_one_more_observation(case):
    gradients = np.cos(case.new)
    found = case.fitted.explain(case.new, True, gradients)
    for n, x in enumerate(case.new):
        row, covariance = dense_posterior(case, x, gradients[n])
        assert close(found.attributions[n], row)
        deviation = found.details["standard_deviation"][n]
        assert close(deviation, np.sqrt(np.diag(covariance)))


@given(cases())
def test_together_is_the_program_with_all_new_inputs_appended(case):
    found = case.fitted.explain_together(case.new).attributions
    n, D = case.G.shape
    K = case.kernel_matrix(np.vstack([case.X, case.new]))
    seen = np.diag([1.0] * n + [0.0] * len(case.new))
    precision = prior_precision(K, case.smoothing, case.explainer)
    precision += np.kron(seen, np.eye(D))
    right = np.concatenate([case.G.ravel(), np.zeros(case.new.size)])
    expected = np.linalg.solve(precision, right)[n * D :].reshape(case.new.shape)
    assert close(found, expected)


@pytest.mark.parametrize("mean", MEANS)
def test_together_is_one_by_one_where_features_are_independent(mean, rng):
    X, G, new = (
        rng.normal(size=(9, 3)),
        rng.normal(size=(9, 3)),
        rng.normal(size=(4, 3)),
    )
    for inducing in [None, X[:5]]:
        fitted = GaussianProcessExplainer(0.2, mean=mean, inducing=inducing).fit(X, G)
        together = fitted.explain_together(new).attributions
        assert close(together, fitted.explain(new).attributions, 1e-12)


@pytest.mark.parametrize("mean", MEANS)
def test_one_new_input_together_is_that_input_alone(mean, rng):
    X, G, new = (
        rng.normal(size=(9, 3)),
        rng.normal(size=(9, 3)),
        rng.normal(size=(1, 3)),
    )
    for inducing in [None, X[:5]]:
        fitted = GaussianProcessExplainer(
            0.2, 0.7, features=po.chain_graph(3), mean=mean, inducing=inducing
        ).fit(X, G)
        together = fitted.explain_together(new).attributions
        assert close(together, fitted.explain(new).attributions, 1e-9)


def solve_case(rng: np.random.Generator, mean: str) -> Case:
    graph, P = similar_features("chain", 4, rng)
    explainer = GaussianProcessExplainer(
        0.3, 0.2, features=graph, lengthscale=1.5, mean=mean, jitter=1e-6
    )
    X, G = rng.normal(size=(12, 4)), rng.normal(size=(12, 4))
    return Case(X, G, rng.normal(size=(1, 4)), explainer, P)


def solved(case: Case, gradient: np.ndarray) -> np.ndarray:
    K = case.kernel_matrix(np.vstack([case.X, case.new]))
    objective = (
        po.GradientMatching(np.vstack([case.G, gradient]))
        + case.explainer.robustness * po.KernelRobustness(K, mean=case.explainer.mean)
        + case.explainer.smoothness * po.Smoothness(case.explainer.features)
    )
    return po.solve(objective).attributions[-1]


@pytest.mark.parametrize("mean", ["none", "per_feature"])
def test_with_a_gradient_it_is_what_solve_gives(mean, rng):
    case = solve_case(rng, mean)
    gradient = rng.normal(size=(1, 4))
    found = case.fitted.explain(case.new, gradients=gradient).attributions[0]
    assert close(found, solved(case, gradient))


@pytest.mark.parametrize("mean", ["none", "per_feature"])
def test_without_a_gradient_solve_agrees_once_it_is_told_the_explanation(mean, rng):
    # a gradient equal to the optimal row costs nothing, so it does not move the optimum
    case = solve_case(rng, mean)
    found = case.fitted.explain(case.new).attributions
    assert close(found[0], solved(case, found))


@pytest.mark.parametrize("kernel", [RBF(1.2), Matern(0.8, nu=1.5)])
def test_without_smoothness_and_mean_it_is_scikit_learns_regression(kernel, rng):
    X, G, new = (
        rng.normal(size=(40, 3)),
        rng.normal(size=(40, 3)),
        rng.normal(size=(9, 3)),
    )
    explainer = GaussianProcessExplainer(0.35, kernel=kernel, mean="none").fit(X, G)
    found = explainer.explain(new, return_std=True)
    scaled = ConstantKernel(1 / 0.7) * kernel
    peer = GaussianProcessRegressor(scaled, alpha=1.0, optimizer=None).fit(X, G)
    mean, deviation = peer.predict(new, return_std=True)
    np.testing.assert_allclose(found.attributions, mean, rtol=0, atol=1e-10)
    deviations = found.details["standard_deviation"]
    np.testing.assert_allclose(deviations, deviation, rtol=0, atol=1e-10)


@pytest.mark.parametrize("mean", MEANS)
def test_path_equals_single_fits(mean, rng):
    graph = po.chain_graph(3)
    X, G, new = (
        rng.normal(size=(15, 3)),
        rng.normal(size=(15, 3)),
        rng.normal(size=(4, 3)),
    )
    explainer = GaussianProcessExplainer(features=graph, mean=mean).fit(X, G)
    pairs = [(0.01, 0.0), (1.0, 0.5), (30.0, 7.0)]
    for pair, found in zip(
        pairs, explainer.explain_path(new, pairs, True), strict=True
    ):
        single = GaussianProcessExplainer(*pair, features=graph, mean=mean).fit(X, G)
        expected = single.explain(new, return_std=True)
        np.testing.assert_array_equal(found.attributions, expected.attributions)
        np.testing.assert_array_equal(
            found.details["standard_deviation"], expected.details["standard_deviation"]
        )
        assert found.parameters == expected.parameters


@pytest.mark.parametrize("mean", MEANS)
def test_blocks_change_nothing_but_rounding(mean, rng, monkeypatch):
    X, G, new = (
        rng.normal(size=(9, 4)),
        rng.normal(size=(9, 4)),
        rng.normal(size=(7, 4)),
    )
    explainer = GaussianProcessExplainer(
        0.1, 0.3, features=po.chain_graph(4), mean=mean
    ).fit(X, G)
    whole, draws = explainer.explain(new, True), explainer.sample(new, 3)
    monkeypatch.setattr(exact, "BLOCK_BYTES", 150)
    parts = explainer.explain(new, True)
    assert close(parts.attributions, whole.attributions, 1e-13)
    assert close(explainer.sample(new, 3), draws, 1e-12)
    assert close(
        parts.details["standard_deviation"],
        whole.details["standard_deviation"],
        1e-13,
    )


@pytest.mark.parametrize("mean", MEANS)
def test_samples_have_the_mean_and_covariance_of_the_posterior(mean, rng):
    # 3 + 9 numbers for each mean, each within Z standard errors
    graph, P = similar_features("chain", 3, rng)
    explainer = GaussianProcessExplainer(
        0.3, 0.4, features=graph, lengthscale=1.0, mean=mean, jitter=1e-6
    )
    X, G, new = (
        rng.normal(size=(6, 3)),
        rng.normal(size=(6, 3)),
        rng.normal(size=(1, 3)),
    )
    case = Case(X, G, new, explainer, P)
    samples = case.fitted.sample(new, 20_000, rng=5)[:, 0]
    expected, covariance = dense_posterior(case, new[0])
    variance = np.diag(covariance)
    error = np.abs(samples.mean(axis=0) - expected)
    assert (error <= Z * np.sqrt(variance / len(samples))).all()
    # var of a sample covariance of gaussians: (c_ij² + c_ii c_jj)/S
    spread = np.sqrt((covariance**2 + np.outer(variance, variance)) / len(samples))
    assert (np.abs(np.cov(samples.T) - covariance) <= Z * spread).all()


@pytest.mark.parametrize("level", [0.5, 0.9])
def test_intervals_cover_as_often_as_they_say(level, rng):
    # one input and one feature from each of 400 draws of the prior: a binomial count
    graph, P = similar_features("chain", 3, rng)
    explainer = GaussianProcessExplainer(
        0.1, 0.2, features=graph, lengthscale=1.0, mean="none", jitter=1e-6
    )
    X = rng.normal(size=(9, 3))
    case = Case(X[:-1], np.zeros((8, 3)), X[-1:], explainer, P)
    covariance = np.linalg.inv(prior_precision(case.kernel_matrix(X), P, explainer))
    W = rng.multivariate_normal(np.zeros(27), covariance, size=400).reshape(-1, 9, 3)
    G = W[:, :-1] + rng.normal(size=(400, 8, 3))
    half = norm.ppf(0.5 + level / 2)
    inside = sum(_covered(case, w, g, half) for w, g in zip(W, G, strict=True))
    assert abs(inside - 400 * level) <= Z * np.sqrt(400 * level * (1 - level))


def _covered(case: Case, W: np.ndarray, G: np.ndarray, half: float) -> bool:
    fitted = dataclasses.replace(case, G=G).fitted
    found = fitted.explain(case.new, return_std=True)
    error = abs(W[-1, 1] - found.attributions[0, 1])
    return bool(error <= half * found.details["standard_deviation"][0, 1])


@pytest.mark.parametrize("mean", MEANS)
def test_no_new_row_gives_a_lower_objective(mean, rng):
    """The law of optimality, for the program with the new row appended."""
    case = solve_case(rng, mean)
    best = case.fitted.explain(case.new).attributions[0]
    K = case.kernel_matrix(np.vstack([case.X, case.new]))
    R = prior_precision(K, case.smoothing, case.explainer)
    seen = np.kron(np.diag([1.0] * 12 + [0.0]), np.eye(4))
    target = np.concatenate([case.G.ravel(), np.zeros(4)])

    def least(row: np.ndarray) -> float:
        H = R + seen
        rest = la.solve(H[:48, :48], target[:48] - H[:48, 48:] @ row, assume_a="pos")
        W = np.concatenate([rest, row])
        return float(W @ R @ W + seen.diagonal() @ (W - target) ** 2)

    floor = least(best)
    for _ in range(20):
        assert least(best + 0.1 * rng.normal(size=4)) > floor


def test_common_constant_pools_features(rng):
    # far from all inputs only the constant is left: the same for all features
    X, G = rng.normal(size=(20, 3)), rng.normal((0.0, 1.0, 5.0), size=(20, 3))
    far = np.full((1, 3), 1e3)
    rows = {
        mean: GaussianProcessExplainer(0.5, mean=mean, lengthscale=1.0)
        .fit(X, G)
        .explain(far)
        .attributions[0]
        for mean in MEANS
    }
    np.testing.assert_allclose(rows["none"], 0.0, atol=1e-12)
    np.testing.assert_allclose(rows["common"], rows["common"][0], rtol=1e-12)
    assert np.ptp(rows["per_feature"]) > 3


def test_strong_robustness_gives_the_mean_gradient(rng):
    X, G = rng.normal(size=(20, 3)), rng.normal(size=(20, 3))
    found = GaussianProcessExplainer(1e9).fit(X, G).explain(X[:2] + 0.1)
    np.testing.assert_allclose(found.attributions, [G.mean(axis=0)] * 2, atol=1e-6)


def test_strong_smoothness_gives_equal_features(rng):
    X, G, new = (
        rng.normal(size=(20, 3)),
        rng.normal(size=(20, 3)),
        rng.normal(size=(2, 3)),
    )
    chain = po.chain_graph(3)
    found = GaussianProcessExplainer(0.1, 1e10, features=chain).fit(X, G).explain(new)
    assert np.ptp(found.attributions, axis=1).max() < 1e-6
    assert np.isfinite(found.attributions).all()


# ------------------------------------------------------------------ hyper-parameters


def evidence_case(rng: np.random.Generator, mean: str, features: str) -> Case:
    similar, P = similar_features(features, 3, rng)
    explainer = GaussianProcessExplainer(
        0.3,
        0.2 if P.any() else 0.0,
        features=similar,
        lengthscale=1.0,
        mean=mean,
        jitter=1e-4,
    )
    X, G = rng.normal(size=(6, 3)), rng.normal(size=(6, 3))
    return Case(X, G, X[:1], explainer, P)


def measured(
    explainer: GaussianProcessExplainer,
    X: np.ndarray,
    G: np.ndarray,
    criterion: Criterion,
) -> float:
    """The criterion at the parameters of an explainer, optimising nothing."""
    basis = read_features(explainer.features, X.shape[1])
    kernel = read_kernel(explainer.kernel, explainer.lengthscale, X, explainer.jitter)
    return criterion(
        Exact.of(kernel, X, basis.rotate(G)),
        smoothing(basis, explainer.smoothness),
        2.0 * explainer.robustness,
        read_mean(explainer.mean, basis),
    )


@pytest.mark.parametrize("mean", MEANS)
@pytest.mark.parametrize("features", ["none", "kernel", "chain"])
def test_evidence_is_that_of_dense_contrasts(mean, features, rng):
    case = evidence_case(rng, mean, features)
    R = prior_precision(case.kernel_matrix(case.X), case.smoothing, case.explainer)
    values, vectors = np.linalg.eigh(R)
    proper = values > 1e-9 * values[-1]  # an improper direction carries no density
    root = vectors[:, proper]
    covariance = (root / values[proper]) @ root.T + root @ root.T
    pseudo = np.linalg.pinv(covariance, rcond=1e-12, hermitian=True)
    g = case.G.ravel()
    inside = np.linalg.eigvalsh(covariance)
    log_det = np.log(inside[inside > 1e-9]).sum()
    # contrasts are orthonormal here; a flat prior of density one counts 1ᵀ1 besides
    n_flat = int((~proper).sum())
    lengths = {"none": 0.0, "per_feature": np.log(6.0), "common": np.log(18.0)}[mean]
    dense = g @ pseudo @ g + log_det + proper.sum() * np.log(2 * np.pi)
    dense += n_flat * lengths
    np.testing.assert_allclose(
        measured(case.explainer, case.X, case.G, log_evidence), -0.5 * dense, rtol=1e-7
    )


@pytest.mark.parametrize("mean", MEANS)
@pytest.mark.parametrize("features", ["none", "kernel", "chain"])
def test_leaving_one_out_is_explaining_each_point_from_the_others(mean, features, rng):
    case = evidence_case(rng, mean, features)
    total = 0.0
    for n in range(len(case.X)):
        rest = dataclasses.replace(
            case, X=np.delete(case.X, n, 0), G=np.delete(case.G, n, 0)
        )
        row, covariance = dense_posterior(rest, case.X[n])
        law = multivariate_normal(row, covariance + np.eye(3))
        total += law.logpdf(case.G[n])
    np.testing.assert_allclose(
        measured(case.explainer, case.X, case.G, log_leave_one_out), total, rtol=1e-7
    )


@pytest.mark.parametrize("optimize", ["marginal_likelihood", "leave_one_out"])
def test_optimised_parameters_beat_a_grid(optimize, rng):
    X = rng.uniform(-3, 3, size=(40, 2))
    G = 3 * np.sin(X) + rng.normal(size=X.shape)
    explainer = GaussianProcessExplainer(optimize=optimize, mean="none").fit(X, G)
    criterion = {
        "marginal_likelihood": log_evidence,
        "leave_one_out": log_leave_one_out,
    }[optimize]
    for lengthscale in [0.3, 1.0, 1.5, 3.0, 10.0]:
        for robustness in [0.001, 0.01, 0.1, 1.0]:
            other = GaussianProcessExplainer(
                robustness, lengthscale=lengthscale, mean="none"
            )
            value = measured(other, X, G, criterion)
            assert explainer.criterion_ >= value - 1e-6


def test_optimum_is_that_of_scikit_learn(rng):
    X = rng.uniform(-3, 3, size=(40, 2))
    G = 3 * np.sin(X) + rng.normal(size=X.shape)
    explainer = GaussianProcessExplainer(
        optimize="marginal_likelihood", mean="none", n_restarts=2
    ).fit(X, G)
    peer = GaussianProcessRegressor(
        ConstantKernel(1.0) * RBF(1.0),
        alpha=1.0,
        n_restarts_optimizer=2,
        random_state=0,
    ).fit(X, G)
    np.testing.assert_allclose(
        explainer.criterion_, peer.log_marginal_likelihood_value_, rtol=1e-6
    )
    np.testing.assert_allclose(
        explainer.kernel_.length_scale, peer.kernel_.k2.length_scale, rtol=1e-2
    )


def test_smoothness_is_found_where_features_are_alike(rng):
    X = rng.uniform(-3, 3, size=(50, 4))
    G = 3 * np.sin(X[:, :1]) + rng.normal(size=X.shape)  # all features the same
    explainer = GaussianProcessExplainer(
        0.1,
        0.01,
        features=po.chain_graph(4),
        optimize="marginal_likelihood",
        mean="none",
    ).fit(X, G)
    assert explainer.smoothness_ > 1.0
    assert explainer.smoothness == 0.01


# --------------------------------------------------------------- degenerate numbers


@pytest.mark.parametrize("mean", MEANS)
@pytest.mark.parametrize("lengthscale", [1e-6, 1.0, 1e4])
@pytest.mark.parametrize("jitter", [0.0, 1e-12])
def test_doubled_inputs_count_as_two_observations(mean, lengthscale, jitter, rng):
    X, G, new = (
        rng.normal(size=(6, 2)),
        rng.normal(size=(6, 2)),
        rng.normal(size=(3, 2)),
    )
    settings = {"mean": mean, "lengthscale": lengthscale, "jitter": jitter}
    twice = GaussianProcessExplainer(0.5, **settings).fit(
        np.vstack([X, X]), np.vstack([G, G])
    )
    # two observations of variance one are one of variance 1/2: half the weight
    once = GaussianProcessExplainer(0.25, **settings).fit(X, G)
    expected, found = once.explain(new, True), twice.explain(new, True)
    np.testing.assert_allclose(found.attributions, expected.attributions, atol=1e-6)
    np.testing.assert_allclose(
        found.details["standard_deviation"] * np.sqrt(2.0),
        expected.details["standard_deviation"],
        rtol=1e-6,
    )


def test_singular_kernels_are_welcome(rng):
    # a linear kernel of rank two, against ridge regression of the gradients
    X, G, new = (
        rng.normal(size=(30, 2)),
        rng.normal(size=(30, 2)),
        rng.normal(size=(4, 2)),
    )
    explainer = GaussianProcessExplainer(
        0.5, kernel=DotProduct(0.0, "fixed"), mean="none"
    ).fit(X, G)
    ridge = new @ la.solve(X.T @ X + np.eye(2), X.T @ G)
    np.testing.assert_allclose(explainer.explain(new).attributions, ridge, atol=1e-12)


def test_at_an_input_of_little_robustness_the_gradient_is_found(rng):
    X, G = rng.uniform(-3, 3, size=(8, 2)), rng.normal(size=(8, 2))
    found = GaussianProcessExplainer(1e-9, lengthscale=0.5).fit(X, G).explain(X, True)
    np.testing.assert_allclose(found.attributions, G, atol=1e-5)
    np.testing.assert_allclose(found.details["standard_deviation"], 1.0, atol=1e-4)


def test_weights_lost_to_rounding_are_refused(rng):
    X = rng.normal(size=(50, 2))
    explainer = GaussianProcessExplainer(1e-15, lengthscale=3.0)
    with pytest.raises(InvalidInput, match=r"lost to rounding.*jitter"):
        explainer.fit(X, X)


def test_one_input_and_one_feature_will_do():
    explainer = GaussianProcessExplainer(lengthscale=1.0).fit([[0.0]], [[3.0]])
    np.testing.assert_allclose(explainer.explain([[9.0]]).attributions, 3.0)


# -------------------------------------------------------------------- conventions


def test_clone_and_parameters_go_round():
    explainer = GaussianProcessExplainer(
        2.0, 0.5, features=po.chain_graph(3), kernel="matern", mean="common"
    )
    copy = clone(explainer)
    given, taken = explainer.get_params(), copy.get_params()
    assert given.keys() == taken.keys()
    assert taken["kernel"] == "matern"
    assert copy.set_params(robustness=7.0).robustness == 7.0
    assert explainer.robustness == 2.0


def test_fit_leaves_the_parameters_alone(rng):
    X = rng.normal(size=(5, 2))
    explainer = GaussianProcessExplainer(optimize="leave_one_out", kernel=RBF(2.0))
    before = explainer.get_params()
    explainer.fit(X, np.sin(X))
    assert all(explainer.get_params()[name] is before[name] for name in before)


def test_fitted_explainers_are_pickled(rng):
    X = rng.normal(size=(6, 2))
    explainer = GaussianProcessExplainer(0.1, 0.2, features=po.chain_graph(2)).fit(X, X)
    same = pickle.loads(pickle.dumps(explainer))
    np.testing.assert_array_equal(
        same.explain(X + 1).attributions, explainer.explain(X + 1).attributions
    )
    assert "smoothness=0.2" in repr(same)


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
    "rng: expected an integer": {"rng": -1},
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
    with pytest.raises(InvalidInput, match="not finite"):
        explainer.explain([[0.0, np.nan]])
    with pytest.raises(InvalidInput, match="weights: expected a pair"):
        explainer.explain_path(X, [1.0])
    named = GaussianProcessExplainer().fit(pd.DataFrame(X, columns=["a", "b"]), X)
    with pytest.raises(InvalidInput, match="not those of fit"):
        named.explain(pd.DataFrame(X, columns=["b", "a"]))
    with pytest.raises(InvalidInput, match="all points coincide"):
        GaussianProcessExplainer().fit(np.ones((3, 2)), np.ones((3, 2)))


# ------------------------------------------------------------------------ features


@pytest.mark.parametrize("kind", ["kernel", "chain", "gaussian", "groups"])
def test_basis_is_an_eigenbasis_of_smoothness(kind, rng):
    similar, P = similar_features(kind, 5, rng)
    basis = (
        DenseFeatures.of_kernel(similar)
        if kind == "kernel"
        else DenseFeatures.of_graph(similar)
    )
    W = rng.normal(size=(4, 5))
    rotated = basis.rotate(W)
    np.testing.assert_allclose(basis.unrotate(rotated), W, atol=1e-12)
    np.testing.assert_allclose(
        (basis.eigenvalues * rotated**2).sum(), np.trace(W @ P @ W.T), rtol=1e-10
    )
    s = rng.uniform(size=(2, 5))
    V = basis.unrotate(np.eye(5)).T
    expected = [np.diag(V @ np.diag(row) @ V.T) for row in s]
    np.testing.assert_allclose(basis.unrotate_variances(s), expected, atol=1e-12)


def test_components_of_a_graph_are_exact_zeros():
    basis = DenseFeatures.of_graph(po.group_graph([0, 0, 1, 1, 1, 2]))
    assert (basis.eigenvalues == 0).sum() == 3


def test_many_independent_features_need_no_square_matrix(rng):
    X = rng.normal(size=(5, 200_000))
    explainer = GaussianProcessExplainer(
        features=IndependentFeatures(200_000), lengthscale=100.0
    ).fit(X, X)
    found = explainer.explain(X[:2] + 0.1, return_std=True)
    assert found.attributions.shape == (2, 200_000)


@dataclasses.dataclass(frozen=True)
class Cosines(FeatureBasis):
    """The chain's basis by fast transforms: V is never formed to rotate."""

    count: int

    @property
    def eigenvalues(self) -> np.ndarray:
        return 4 - 4 * np.cos(np.pi * np.arange(self.count) / self.count)

    def rotate(self, rows: np.ndarray) -> np.ndarray:
        return fft.dct(rows, norm="ortho")

    def unrotate(self, rows: np.ndarray) -> np.ndarray:
        return fft.idct(rows, norm="ortho")

    def unrotate_variances(self, variances: np.ndarray) -> np.ndarray:
        # cos² = (1 + cos 2·)/2, evaluated at the middles of cells
        position = (2 * np.arange(self.count) + 1) / (2 * self.count)
        wave = np.cos(2 * np.pi * np.outer(np.arange(self.count), position))
        share = (1 + wave) / self.count
        share[0] = 1 / self.count
        return variances @ share


@pytest.mark.parametrize("mean", MEANS)
def test_a_basis_by_transforms_gives_what_a_dense_one_gives(mean, rng):
    X, G, new = (
        rng.normal(size=(9, 6)),
        rng.normal(size=(9, 6)),
        rng.normal(size=(4, 6)),
    )
    by_graph, by_cosines = (
        GaussianProcessExplainer(0.3, 0.8, features=features, mean=mean)
        .fit(X, G)
        .explain(new, return_std=True)
        for features in (po.chain_graph(6), Cosines(6))
    )
    assert close(by_cosines.attributions, by_graph.attributions, 1e-12)
    assert close(
        by_cosines.details["standard_deviation"],
        by_graph.details["standard_deviation"],
        1e-12,
    )


# ----------------------------------------------------------------------- distances


@pytest.mark.parametrize("n_features", [3, 80, 1000])
def test_distances_of_far_near_and_equal_points_are_right(n_features, rng):
    X = 100.0 + rng.normal(size=(30, n_features))
    Z = np.vstack([X[:5], X[5:10] + 1e-9, X[10:15] + 1e-3, X[15:] + 1.0])
    expected = cdist(X, Z)
    found = distances(X, Z)
    np.testing.assert_allclose(found, expected, rtol=1e-11)
    assert (np.diag(found)[:5] == 0).all()


def test_lengthscale_of_many_features_is_the_rule_of_gaussian_graph(rng):
    X = np.repeat(rng.normal(size=(20, 100)), 2, axis=0)
    explainer = GaussianProcessExplainer().fit(X, X)
    graph = po.gaussian_graph(X)
    scale = explainer.kernel_.length_scale
    np.testing.assert_allclose(scale, graph.parameters["lengthscale"], rtol=1e-12)


@pytest.mark.parametrize("name", ["gaussian", "matern"])
def test_kernels_by_name_are_those_of_scikit_learn(name, rng):
    X, new = rng.normal(size=(20, 90)), rng.normal(size=(5, 90))
    named = GaussianProcessExplainer(0.1, kernel=name, lengthscale=9.0).fit(X, X)
    given = {"gaussian": RBF(9.0), "matern": Matern(9.0, nu=2.5)}[name]
    peer = GaussianProcessExplainer(0.1, kernel=given).fit(X, X)
    assert close(named.explain(new).attributions, peer.explain(new).attributions, 1e-11)


# ---- tables


@pytest.fixture
def customers(rng):
    table = pd.DataFrame(
        {
            "age": rng.normal(40, 10, 50),
            "bill": rng.gamma(2, 20, 50),
            "plan": rng.choice(["a", "b", "c"], 50),
        },
        index=[f"c{n}" for n in range(50)],
    )
    return table, po.wrap(
        lambda t: t["age"] ** 2 / 40 + 3 * (t["plan"] == "b"), data=table
    )


def test_tables_with_categories_are_explained_where_their_schema_puts_them(customers):
    table, function = customers
    known, new = table.iloc[:40], table.iloc[40:]
    explainer = GaussianProcessExplainer(0.1, scale="std", lengthscale=1.0)
    found = explainer.fit(known, function=function).explain(new, return_std=True)
    assert list(found.to_frame().columns) == ["age", "bill", "plan"]
    assert list(found.to_frame().index) == list(new.index)
    schema = function.schema
    places, others = (schema.coordinates(t, "std") for t in (known, new))
    plain = GaussianProcessExplainer(0.1, lengthscale=1.0)
    G = function.gradient(known).to_numpy()
    columns = [
        # one feature at a time: without smoothness they do not meet
        plain.fit(places, np.tile(G[:, [j]], places.shape[1])).explain(others)
        for j in range(3)
    ]
    expected = np.column_stack([c.attributions[:, 0] for c in columns])
    np.testing.assert_allclose(found.attributions, expected, rtol=1e-10)


def test_own_gradients_of_a_table_are_used(customers):
    table, function = customers
    explainer = GaussianProcessExplainer(1e-6, scale="std", lengthscale=1.0)
    explainer.fit(table.iloc[:40], function=function)
    new = table.iloc[40:]
    found = explainer.explain(new, gradients=function)
    G = function.gradient(new)
    # hardly any robustness: the variance before is so large that E(x) is the gradient
    error = np.abs(found.to_frame() - G).to_numpy()
    assert (error <= 1e-4 * np.abs(G).to_numpy().max()).all()


def test_scale_is_what_columns_are_divided_by(rng):
    X, new, G = rng.normal(size=(3, 30, 2)) * [1.0, 50.0]
    sizes = X.std(axis=0)
    scaled = GaussianProcessExplainer(0.1, scale="std").fit(X, G).explain(new)
    by_hand = GaussianProcessExplainer(0.1).fit(X / sizes, G).explain(new / sizes)
    np.testing.assert_allclose(scaled.attributions, by_hand.attributions, rtol=1e-12)


def test_names_of_scales_need_a_schema(rng):
    with pytest.raises(InvalidInput, match="names need a table with a schema"):
        GaussianProcessExplainer(scale={"a": 2.0}).fit(*rng.normal(size=(2, 5, 2)))


def test_gradients_in_another_order_than_the_inputs_are_read_by_name(rng):
    X, G = (pd.DataFrame(a, columns=list("abc")) for a in rng.normal(size=(2, 9, 3)))
    explainer = GaussianProcessExplainer(lengthscale=1.0)
    expected = explainer.fit(X, G).explain(X, gradients=G).attributions
    other = G.iloc[::-1][["c", "a", "b"]]
    found = explainer.fit(X, other).explain(X, gradients=other).attributions
    np.testing.assert_array_equal(found, expected)


def test_gradients_with_other_names_than_the_inputs_are_refused(rng):
    X, G = (pd.DataFrame(a, columns=list("abc")) for a in rng.normal(size=(2, 9, 3)))
    explainer = GaussianProcessExplainer(lengthscale=1.0)
    with pytest.raises(InvalidInput, match="its columns are not those of X: 'c' miss"):
        explainer.fit(X, G.rename(columns={"c": "d"}))
    with pytest.raises(InvalidInput, match="its rows are not those of X: 8 missing"):
        explainer.fit(X, G.rename(index={8: 9}))
    with pytest.raises(InvalidInput, match="its columns are not those of X: 'c' miss"):
        explainer.fit(X, G).explain(X, gradients=G.rename(columns={"c": "d"}))


def test_kernels_of_another_width_are_refused(rng):
    kernel = RBF([1.0, 2.0])
    with pytest.raises(InvalidInput, match="distances are measured in 3 columns"):
        GaussianProcessExplainer(kernel=kernel).fit(*rng.normal(size=(2, 5, 3)))
