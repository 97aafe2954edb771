"""Explanations of inputs that come later, against dense algebra and other solvers."""

import numpy as np
import pytest
from baseline_checks import Z
from hypothesis import given
from inductive_cases import (
    MEANS,
    Case,
    cases,
    close,
    dense_posterior,
    prior_precision,
    similar_features,
    solve_case,
)
from scipy.spatial.distance import cdist
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern

import propopt as po
from propopt.base.errors import EdgeWarning
from propopt.base.resources import Budget
from propopt.inductive import GaussianProcessExplainer, model, posterior
from propopt.inductive.bases import read_features
from propopt.inductive.inputs import cross_distances, read_kernel
from propopt.inductive.means import read_mean
from propopt.inductive.model import log_evidence, smoothing
from propopt.inductive.posterior import ExactPosterior


each_mean = pytest.mark.parametrize("mean", MEANS)


def are_equal(result, expected, rtol):
    assert close(result.attributions, expected.attributions, rtol)
    deviations = (x.details["standard_deviation"] for x in (result, expected))
    assert close(*deviations, rtol)


# ---- dense algebra
@given(cases())
def test_explanations_and_deviations_are_those_of_dense_conditioning(case):
    gradients = np.cos(case.new)  # at new inputs: one more observation
    for given_gradients in (None, gradients):
        result = case.fitted.explain(case.new, True, given_gradients)
        for n, x in enumerate(case.new):
            reference = None if given_gradients is None else gradients[n]
            row, covariance = dense_posterior(case, x, reference)
            assert close(result.attributions[n], row)
            deviation = result.details["standard_deviation"][n]
            assert close(deviation, np.sqrt(np.diag(covariance)))


# ---- other solvers
def solved(case, gradient):
    K = case.kernel_matrix(np.vstack([case.X, case.new]))
    objective = (
        po.GradientMatching(np.vstack([case.G, gradient]))
        + case.explainer.robustness
        * po.losses.KernelRobustness(K, mean=case.explainer.mean)
        + case.explainer.smoothness * po.Smoothness(case.explainer.features)
    )
    return po.solve(objective).attributions[-1]


@pytest.mark.parametrize("mean", ["none", "per_feature"])
def test_with_a_gradient_it_is_what_solve_gives(mean, rng):
    case = solve_case(rng, mean)
    gradient = rng.normal(size=(1, 4))
    result = case.fitted.explain(case.new, gradients=gradient).attributions[0]
    assert close(result, solved(case, gradient))
    # a gradient equal to the optimal row costs nothing, so it does not move the optimum
    result = case.fitted.explain(case.new).attributions
    assert close(result[0], solved(case, result))


@pytest.mark.parametrize("kernel", [RBF(1.2), Matern(0.8, nu=1.5)])
def test_without_smoothness_and_mean_it_is_scikit_learns_regression(kernel, rng):
    X, G = rng.normal(size=(2, 40, 3))
    new = rng.normal(size=(9, 3))
    explainer = GaussianProcessExplainer(0.35, kernel=kernel, mean="none").fit(X, G)
    result = explainer.explain(new, return_std=True)
    scaled = ConstantKernel(1 / 0.7) * kernel
    peer = GaussianProcessRegressor(scaled, alpha=1.0, optimizer=None).fit(X, G)
    mean, deviation = peer.predict(new, return_std=True)
    np.testing.assert_allclose(result.attributions, mean, rtol=0, atol=1e-10)
    deviations = result.details["standard_deviation"]
    np.testing.assert_allclose(deviations, deviation, rtol=0, atol=1e-10)


# ---- distances, kernels by name, and their default width
@pytest.mark.parametrize("n_features", [3, 80, 1000])
def test_distances_of_far_near_and_equal_points_are_right(n_features, rng):
    X = 100.0 + rng.normal(size=(30, n_features))
    Z = np.vstack([X[:5], X[5:10] + 1e-9, X[10:15] + 1e-3, X[15:] + 1.0])
    expected = cdist(X, Z)
    result = cross_distances(X, Z)
    np.testing.assert_allclose(result, expected, rtol=1e-11)
    assert (np.diag(result)[:5] == 0).all()


@pytest.mark.parametrize("name", ["gaussian", "matern"])
def test_kernels_by_name_are_those_of_scikit_learn(name, rng):
    X, new = rng.normal(size=(20, 90)), rng.normal(size=(5, 90))
    named = GaussianProcessExplainer(0.1, kernel=name, lengthscale=9.0).fit(X, X)
    given = {"gaussian": RBF(9.0), "matern": Matern(9.0, nu=2.5)}[name]
    peer = GaussianProcessExplainer(0.1, kernel=given).fit(X, X)
    assert close(named.explain(new).attributions, peer.explain(new).attributions, 1e-11)
    twice = np.repeat(X, 2, axis=0)
    scale = GaussianProcessExplainer().fit(twice, twice).kernel_.length_scale
    graph = po.graphs.gaussian_graph(twice)
    np.testing.assert_allclose(scale, graph.parameters["lengthscale"], rtol=1e-12)


# ---- paths, blocks, samples
@pytest.mark.parametrize("mean", MEANS)
def test_path_equals_single_fits(mean, rng):
    graph = po.graphs.chain_graph(3)
    X, G = rng.normal(size=(2, 15, 3))
    new = rng.normal(size=(4, 3))
    explainer = GaussianProcessExplainer(features=graph, mean=mean).fit(X, G)
    pairs = [(0.01, 0.0), (1.0, 0.5), (30.0, 7.0)]
    for pair, result in zip(
        pairs, explainer.explain_path(new, pairs, True), strict=True
    ):
        single = GaussianProcessExplainer(*pair, features=graph, mean=mean).fit(X, G)
        expected = single.explain(new, return_std=True)
        np.testing.assert_array_equal(result.attributions, expected.attributions)
        np.testing.assert_array_equal(
            result.details["standard_deviation"], expected.details["standard_deviation"]
        )
        assert result.parameters == expected.parameters


@each_mean
def test_blocks_change_nothing_but_rounding(mean, rng, monkeypatch):
    X, G = rng.normal(size=(2, 9, 4))
    new, chain = rng.normal(size=(7, 4)), po.graphs.chain_graph(4)
    explainer = GaussianProcessExplainer(0.1, 0.3, features=chain, mean=mean).fit(X, G)
    whole, draws = explainer.explain(new, True), explainer.sample(new, 3)
    for tables in ("BATCH_BUDGET", "CACHED_TABLES"):
        monkeypatch.setattr(posterior, tables, Budget(150))
    are_equal(explainer.explain(new, True), whole, 1e-13)
    assert close(explainer.sample(new, 3), draws, 1e-12)


@pytest.mark.parametrize("mean", MEANS)
def test_samples_have_the_mean_and_covariance_of_the_posterior(mean, rng):
    # 3 + 9 numbers for each mean, each within Z standard errors
    graph, P = similar_features("chain", 3, rng)
    explainer = GaussianProcessExplainer(
        0.3, 0.4, features=graph, lengthscale=1.0, mean=mean, jitter=1e-6
    )
    X, G = rng.normal(size=(2, 6, 3))
    new = rng.normal(size=(1, 3))
    case = Case(X, G, new, explainer, P)
    samples = case.fitted.sample(new, 20_000, random_state=5)[:, 0]
    expected, covariance = dense_posterior(case, new[0])
    variance = np.diag(covariance)
    error = np.abs(samples.mean(axis=0) - expected)
    assert (error <= Z * np.sqrt(variance / len(samples))).all()
    # var of a sample covariance of gaussians: (c_ij² + c_ii c_jj)/S
    spread = np.sqrt((covariance**2 + np.outer(variance, variance)) / len(samples))
    assert (np.abs(np.cov(samples.T) - covariance) <= Z * spread).all()


# ---- limits: doubled inputs, extreme weights
@each_mean
@pytest.mark.parametrize("lengthscale", [1e-6, 1.0, 1e4])
@pytest.mark.parametrize("jitter", [0.0, 1e-12])
def test_doubled_inputs_count_as_two_observations(mean, lengthscale, jitter, rng):
    X, G = rng.normal(size=(2, 6, 2))
    new = rng.normal(size=(3, 2))
    settings = {"mean": mean, "lengthscale": lengthscale, "jitter": jitter}
    twice = GaussianProcessExplainer(0.5, **settings).fit(
        np.vstack([X, X]), np.vstack([G, G])
    )
    # two observations of variance one are one of variance 1/2: half the weight
    once = GaussianProcessExplainer(0.25, **settings).fit(X, G)
    expected, result = once.explain(new, True), twice.explain(new, True)
    np.testing.assert_allclose(result.attributions, expected.attributions, atol=1e-6)
    np.testing.assert_allclose(
        result.details["standard_deviation"] * np.sqrt(2.0),
        expected.details["standard_deviation"],
        rtol=1e-6,
    )


def test_extreme_weights_give_gradients_means_and_equal_features(rng):
    X, G = rng.uniform(-3, 3, size=(8, 3)), rng.normal(size=(8, 3))
    result = GaussianProcessExplainer(1e-9, lengthscale=0.5).fit(X, G).explain(X, True)
    np.testing.assert_allclose(result.attributions, G, atol=1e-5)
    np.testing.assert_allclose(result.details["standard_deviation"], 1.0, atol=1e-4)
    new, chain = X[:2] + 0.1, po.graphs.chain_graph(3)
    result = GaussianProcessExplainer(1e9).fit(X, G).explain(new)
    np.testing.assert_allclose(result.attributions, [G.mean(axis=0)] * 2, atol=1e-6)
    result = GaussianProcessExplainer(0.1, 1e10, features=chain).fit(X, G).explain(new)
    assert np.ptp(result.attributions, axis=1).max() < 1e-6
    assert np.isfinite(result.attributions).all()
    one = GaussianProcessExplainer(lengthscale=1.0).fit([[0.0]], [[3.0]])
    np.testing.assert_allclose(one.explain([[9.0]]).attributions, 3.0)


# ---- hyper-parameters that account best for gradients
def evidence_case(rng, mean, features):
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


def measured(explainer, X, G):
    """The evidence at the parameters of an explainer, optimizing nothing."""
    basis = read_features(explainer.features, X.shape[1])
    kernel = read_kernel(explainer.kernel, explainer.lengthscale, X, explainer.jitter)
    return log_evidence(
        ExactPosterior.of(kernel, X, basis.rotate(G)),
        smoothing(basis, explainer.smoothness),
        2.0 * explainer.robustness,
        read_mean(explainer.mean, basis),
    )


def reached(explainer, X, G):
    """The evidence at the parameters that an explainer found."""
    given = explainer.robustness_, explainer.smoothness_
    other = GaussianProcessExplainer(
        *given, kernel=explainer.kernel_, mean=explainer.mean
    )
    return measured(other, X, G)


@each_mean
@pytest.mark.parametrize("features", ["none", "kernel", "chain"])
def test_the_evidence_is_that_of_a_dense_density(mean, features, rng):
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
    given = case.explainer, case.X, case.G
    result = measured(*given)
    np.testing.assert_allclose(result, -0.5 * dense, rtol=1e-7)


def test_optimized_parameters_beat_a_grid_and_are_those_of_scikit_learn(rng):
    X = rng.uniform(-3, 3, size=(40, 2))
    G = 3 * np.sin(X) + rng.normal(size=X.shape)
    settings = {"optimize": "marginal_likelihood", "mean": "none"}
    explainer = GaussianProcessExplainer(**settings).fit(X, G)
    best = reached(explainer, X, G)
    for lengthscale in [0.3, 1.0, 1.5, 3.0, 10.0]:
        for robustness in [0.001, 0.01, 0.1, 1.0]:
            other = GaussianProcessExplainer(
                robustness, lengthscale=lengthscale, mean="none"
            )
            value = measured(other, X, G)
            assert best >= value - 1e-6
    peer = GaussianProcessRegressor(
        ConstantKernel(1.0) * RBF(1.0),
        alpha=1.0,
        n_restarts_optimizer=2,
        random_state=0,
    ).fit(X, G)
    theirs = peer.log_marginal_likelihood_value_
    np.testing.assert_allclose(best, theirs, rtol=1e-6)
    scale = peer.kernel_.k2.length_scale
    np.testing.assert_allclose(explainer.kernel_.length_scale, scale, rtol=1e-2)


def test_the_optimum_does_not_depend_on_where_the_search_starts(monkeypatch):
    """From robustness 1 one search of the likelihood ends on a plateau, far below."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3))
    G = 10.0 * np.sin(X) + 0.1 * rng.normal(size=X.shape)

    def result(robustness):
        explainer = GaussianProcessExplainer(robustness, optimize="marginal_likelihood")
        return reached(explainer.fit(X, G), X, G)

    best = result(1.0)
    assert best == pytest.approx(result(1e-6), abs=0.01)  # nats
    assert best == result(1.0)
    monkeypatch.setattr(model, "_screened", lambda *_: [])
    assert result(1.0) < best - 100.0
    assert result(1e-6) == pytest.approx(best, abs=0.01)


def test_an_optimum_at_an_edge_is_told(rng, monkeypatch):
    X = rng.normal(size=(30, 2))
    explainer = GaussianProcessExplainer(optimize="marginal_likelihood")
    explainer.fit(X, 10.0 * np.sin(X))  # inside, without a warning
    assert explainer.robustness_ < 0.4
    monkeypatch.setattr(model, "_WEIGHT_RANGE", (0.5, 2.0))
    with pytest.warns(EdgeWarning, match="robustness ended at 0.5, an edge of its ra"):
        explainer.fit(X, 10.0 * np.sin(X))


def test_smoothness_is_found_where_features_are_alike(rng):
    X = rng.uniform(-3, 3, size=(50, 4))
    G = 3 * np.sin(X[:, :1]) + rng.normal(size=X.shape)  # all features the same
    explainer = GaussianProcessExplainer(
        0.1,
        0.01,
        features=po.graphs.chain_graph(4),
        optimize="marginal_likelihood",
        mean="none",
    ).fit(X, G)
    assert explainer.smoothness_ > 1.0
    assert explainer.smoothness == 0.01
