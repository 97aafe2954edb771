"""Exact gradients agree with central differences of the model's own outputs."""

from __future__ import annotations

import numpy as np
import pytest
from differentiated import central_differences
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.decomposition import PCA, IncrementalPCA, TruncatedSVD
from sklearn.discriminant_analysis import (
    LinearDiscriminantAnalysis,
    QuadraticDiscriminantAnalysis,
)
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import (
    RBF,
    ConstantKernel,
    DotProduct,
    ExpSineSquared,
    Matern,
    RationalQuadratic,
    WhiteKernel,
)
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import (
    GammaRegressor,
    LinearRegression,
    LogisticRegression,
    PoissonRegressor,
    Ridge,
    TweedieRegressor,
)
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    MaxAbsScaler,
    MinMaxScaler,
    PolynomialFeatures,
    StandardScaler,
)
from sklearn.svm import SVC, SVR, NuSVC, NuSVR, OneClassSVM

from propopt.base.errors import InvalidInput
from propopt.base.resources import Budget
from propopt.functions import wrap
from propopt.structures import networks
from propopt.structures.networks import Monomials


RNG = np.random.default_rng(3)
X = RNG.normal([1.0, -2.0, 0.0], [1.0, 2.0, 0.5], size=(40, 3))
UNIT = StandardScaler().fit_transform(X)
NOISE = RNG.normal(size=40)
Y = np.sin(X[:, 0]) - X[:, 1] * X[:, 2] + 0.1 * NOISE
POSITIVE = np.exp(Y / 2)
TWO = np.where(UNIT[:, 0] + 0.5 * NOISE > 0.0, "yes", "no")
THREE = np.array(["a", "b", "c"])[np.digitize(UNIT[:, 0] + 0.5 * NOISE, [-0.5, 0.5])]
ELSEWHERE = UNIT[:15] + RNG.normal(0.0, 0.3, size=(15, 3))  # not at the centers


def process(kernel, **settings):
    return GaussianProcessRegressor(kernel, alpha=0.01, optimizer=None, **settings)


ARD = [0.7, 1.3, 2.0]
REGRESSORS = [
    SVR(),
    SVR(kernel="poly", degree=2, coef0=0.5),
    SVR(kernel="poly", degree=1, gamma=0.3),
    SVR(kernel="sigmoid", gamma=0.05, coef0=0.1),
    SVR(kernel="linear"),
    NuSVR(gamma="auto"),
    NuSVR(gamma=0.7),
    KernelRidge(kernel="rbf"),
    KernelRidge(kernel="rbf", gamma=0.4),
    KernelRidge(kernel="polynomial", degree=3, coef0=0.5),
    KernelRidge(kernel="poly", degree=2),
    KernelRidge(kernel="sigmoid", gamma=0.05),
    KernelRidge(kernel="linear"),
    process(None),
    process(RBF(1.5), normalize_y=True),
    process(RBF(ARD)),
    process(Matern(1.2, nu=1.5)),
    process(Matern(ARD, nu=1.5)),
    process(Matern(1.2, nu=2.5)),
    process(Matern(ARD, nu=np.inf)),
    process(RationalQuadratic(0.8, alpha=0.6)),
    process(RBF(2.0) + 0.01 * ExpSineSquared(1.5, periodicity=9.0)),
    process(DotProduct(0.7)),
    process(DotProduct(0.7) ** 3),
    process(2.0 * RBF(ARD) + DotProduct() * Matern(1.0, nu=2.5) + WhiteKernel(0.1)),
    process((ConstantKernel(0.5) + RBF(2.0)) ** 2.0, normalize_y=True),
    make_pipeline(Nystroem(n_components=9, random_state=0), Ridge()),
    make_pipeline(
        Nystroem(kernel="polynomial", n_components=9, random_state=0), Ridge()
    ),
    make_pipeline(Nystroem(kernel="sigmoid", gamma=0.1, n_components=9), Ridge()),
    make_pipeline(Nystroem(kernel="linear", n_components=3), Ridge()),
    make_pipeline(RBFSampler(gamma=0.3, n_components=20, random_state=0), Ridge()),
    make_pipeline(PCA(2), SVR()),
    make_pipeline(PCA(2, whiten=True), SVR()),
    make_pipeline(IncrementalPCA(2, whiten=True), SVR()),
    make_pipeline(TruncatedSVD(2, random_state=0), SVR()),
    make_pipeline(PolynomialFeatures(3), PCA(5), SVR()),
    make_pipeline(make_pipeline(PolynomialFeatures(2), MaxAbsScaler()), Ridge()),
    TransformedTargetRegressor(SVR(), transformer=StandardScaler()),
    make_pipeline(
        StandardScaler(),
        TransformedTargetRegressor(
            make_pipeline(PCA(2), KernelRidge(kernel="rbf")), transformer=MinMaxScaler()
        ),
    ),
]
POSITIVE_REGRESSORS = [
    PoissonRegressor(),
    GammaRegressor(),
    TweedieRegressor(power=1.5),
    TweedieRegressor(power=0),
    TweedieRegressor(power=0, link="log"),
]
UP = MinMaxScaler(feature_range=(0.1, 1.0))
CLASSIFIERS = [
    LinearDiscriminantAnalysis(),
    LinearDiscriminantAnalysis(solver="lsqr", shrinkage=0.2),
    QuadraticDiscriminantAnalysis(),
    QuadraticDiscriminantAnalysis(reg_param=0.3),
    GaussianNB(),
    GaussianNB(var_smoothing=0.3),
]
SUPPORT_VECTOR_CLASSIFIERS = [
    SVC(),
    SVC(kernel="poly", coef0=1.0),
    SVC(kernel="sigmoid", gamma=0.1),
    SVC(kernel="linear"),
    NuSVC(gamma=0.8),
]


def assert_exact(function, points, expected_value):
    """Its value is the model's own, and its gradient that of its differences."""
    assert function.gradient_method == "exact"
    scale = np.abs(expected_value).max()
    np.testing.assert_allclose(
        function.value(points), expected_value, rtol=1e-9, atol=1e-9 * scale
    )
    differences = central_differences(function.value, points)
    largest = np.abs(differences).max()
    np.testing.assert_allclose(
        function.gradient(points), differences, rtol=1e-5, atol=1e-6 * largest
    )


@pytest.mark.parametrize("model", REGRESSORS, ids=str)
def test_regressors_are_exact(model):
    model = clone(model).fit(UNIT, Y)
    assert_exact(wrap(model), ELSEWHERE, model.predict(ELSEWHERE))


@pytest.mark.parametrize(
    ("model", "y", "target"),
    [
        (TransformedTargetRegressor(SVR(), func=np.log, inverse_func=np.exp), 1, None),
        (TransformedTargetRegressor(PoissonRegressor(), transformer=UP), 1, None),
        (TransformedTargetRegressor(Ridge(), transformer=StandardScaler()), 2, 1),
    ],
    ids=["no scaler", "no score", "two outputs"],
)
def test_what_is_not_affine_in_a_score_is_numerical(model, y, target):
    outputs = POSITIVE if y == 1 else np.column_stack([Y, POSITIVE])
    function = wrap(model.fit(UNIT, outputs), target=target)
    assert function.gradient_method != "exact"


@pytest.mark.parametrize("model", POSITIVE_REGRESSORS, ids=str)
def test_generalized_linear_regressors_are_exact(model):
    model = clone(model).fit(UNIT, POSITIVE)
    assert_exact(wrap(model), ELSEWHERE, model.predict(ELSEWHERE))


@pytest.mark.parametrize(
    "model", [*REGRESSORS, *POSITIVE_REGRESSORS, LinearRegression()], ids=str
)
def test_pipelines_of_scaled_products_are_exact(model):
    steps = StandardScaler(), PolynomialFeatures(2), StandardScaler(), PCA(3)
    model = make_pipeline(*steps, clone(model)).fit(X, POSITIVE)
    points = X[:10] + 0.1
    assert_exact(wrap(model), points, model.predict(points))


@pytest.mark.parametrize("model", CLASSIFIERS, ids=str)
@pytest.mark.parametrize("output", ["probability", "log_odds"])
@pytest.mark.parametrize("y", [TWO, THREE], ids=["two", "three"])
def test_probabilities_of_generative_classifiers_are_exact(model, output, y):
    model = clone(model).fit(UNIT, y)
    p = model.predict_proba(ELSEWHERE)
    for column, label in enumerate(model.classes_):
        expected = p[:, column]
        if output == "log_odds":
            expected = np.log(expected) - np.log(np.delete(p, column, 1).sum(axis=1))
        assert_exact(wrap(model, label, output), ELSEWHERE, expected)


@pytest.mark.parametrize("model", CLASSIFIERS[:4], ids=str)
def test_margins_of_generative_classifiers_are_exact(model):
    model = clone(model).fit(UNIT, TWO)
    margin = model.decision_function(ELSEWHERE)
    assert_exact(wrap(model, "yes", "margin"), ELSEWHERE, margin)
    assert_exact(wrap(model, "no", "margin"), ELSEWHERE, -margin)
    model.fit(UNIT, THREE)
    margins = model.decision_function(ELSEWHERE)
    for column, label in enumerate(model.classes_):
        assert_exact(wrap(model, label, "margin"), ELSEWHERE, margins[:, column])


@pytest.mark.parametrize("model", SUPPORT_VECTOR_CLASSIFIERS, ids=str)
def test_margins_of_support_vector_classifiers_of_two_classes_are_exact(model):
    model = clone(model).fit(UNIT, TWO)
    margin = model.decision_function(ELSEWHERE)
    assert_exact(wrap(model), ELSEWHERE, margin)
    assert_exact(wrap(model, "no"), ELSEWHERE, -margin)


def test_votes_between_pairs_of_classes_are_numerical():
    model = SVC().fit(UNIT, THREE)
    assert "differences" in wrap(model, "a").gradient_method


@pytest.mark.parametrize("kernel", ["rbf", "poly", "sigmoid", "linear"])
def test_margins_of_outlier_detectors_are_exact(kernel):
    model = OneClassSVM(kernel=kernel, gamma=0.3, nu=0.3).fit(UNIT)
    function = wrap(model)
    assert_exact(function, ELSEWHERE, model.decision_function(ELSEWHERE))
    with pytest.raises(InvalidInput, match="no 'value'; it has 'margin'"):
        wrap(model, output="value")  # 1 and -1 are labels


@pytest.mark.parametrize(
    "model",
    [KernelRidge(kernel="rbf"), process(RBF(1.2)), process(RBF(1.2), normalize_y=True)],
    ids=str,
)
def test_kernel_regressors_of_several_outputs_are_exact(model):
    model = clone(model).fit(UNIT, np.column_stack([Y, NOISE]))
    for target in (0, 1):
        expected = model.predict(ELSEWHERE)[:, target]
        assert_exact(wrap(model, target), ELSEWHERE, expected)


@pytest.mark.parametrize("interaction_only", [False, True])
@pytest.mark.parametrize("include_bias", [False, True])
@pytest.mark.parametrize("degree", [1, 2, 4, (2, 3), (0, 2)], ids=str)
def test_every_set_of_products_is_exact(degree, interaction_only, include_bias):
    features = PolynomialFeatures(
        degree, interaction_only=interaction_only, include_bias=include_bias
    )
    model = make_pipeline(features, Ridge()).fit(UNIT, Y)
    assert_exact(wrap(model), ELSEWHERE, model.predict(ELSEWHERE))


@given(
    st.lists(
        st.lists(st.integers(0, 3), min_size=3, max_size=3), min_size=1, max_size=6
    )
)
def test_monomials_and_their_slopes_are_those_of_powers(powers):
    powers = np.array(powers)
    monomials = Monomials.of(powers)
    values, pullback = monomials.linearized(ELSEWHERE)
    expected = (ELSEWHERE[:, None, :] ** powers).prod(axis=2)
    np.testing.assert_allclose(values, expected, rtol=1e-12)
    np.testing.assert_array_equal(monomials.scores(ELSEWHERE), values)
    cotangents = np.cos(np.arange(values.size)).reshape(values.shape)
    step = 1e-20  # the complex step has no rounding error
    for d in range(3):
        ahead = ELSEWHERE + step * 1j * (np.arange(3) == d)
        change = (ahead[:, None, :] ** powers).prod(axis=2).imag / step
        np.testing.assert_allclose(
            pullback(cotangents)[:, d],
            (cotangents * change).sum(axis=1),
            rtol=1e-9,
            atol=1e-9,
        )


def test_long_tables_are_taken_in_blocks(monkeypatch):
    model = make_pipeline(PolynomialFeatures(2), process(RBF(2.0))).fit(UNIT, Y)
    function = wrap(model)
    values, gradients = function.value(ELSEWHERE), function.gradient(ELSEWHERE)
    seen = []

    class Spy(networks.Network):
        n_scores = function.network.n_scores
        width = function.network.width

        def scores(self, points):
            seen.append(len(points))
            return function.network.scores(points)

        def linearized(self, points):
            seen.append(len(points))
            return function.network.linearized(points)

    monkeypatch.setattr(networks, "AT_ONCE", Budget(8 * 4 * function.network.width))
    spied = type(function)(function.quantity, function.columns, Spy(), function.link)
    np.testing.assert_allclose(spied.value(ELSEWHERE), values, rtol=1e-12)
    np.testing.assert_allclose(spied.gradient(ELSEWHERE), gradients, rtol=1e-9)
    assert seen == [4, 4, 4, 3] * 2


def test_gradients_at_the_centers_of_smooth_kernels_are_exact():
    model = process(Matern(1.2, nu=1.5)).fit(UNIT, Y)
    assert_exact(wrap(model), UNIT, model.predict(UNIT))


@pytest.mark.parametrize(
    "model",
    [
        process(Matern(1.0, nu=0.5)),
        process(RBF() * Matern(1.0, nu=0.5)),
        process(Matern(1.0, nu=2.0)),
        KernelRidge(kernel="laplacian"),
        KernelRidge(kernel="cosine"),
        SVR(kernel=lambda A, B: A @ B.T),
        make_pipeline(Nystroem(kernel="laplacian", n_components=5), Ridge()),
    ],
    ids=str,
)
def test_kernels_with_kinks_and_of_users_are_numerical(model):
    model = clone(model).fit(UNIT, Y)
    function = wrap(model)
    assert "differences" in function.gradient_method
    np.testing.assert_allclose(function.value(X), model.predict(X), rtol=1e-12)


def test_classifiers_behind_products_are_exact():
    final = LogisticRegression(max_iter=1000)
    model = make_pipeline(StandardScaler(), PolynomialFeatures(2), final).fit(X, THREE)
    expected = model.predict_proba(X)[:, 1]
    assert_exact(wrap(model, "b"), X, expected)
