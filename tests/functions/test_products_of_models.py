"""Fitted models are the sums of products that they are read as, or say why not."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import (
    LinearDiscriminantAnalysis,
    QuadraticDiscriminantAnalysis,
)
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import (
    RBF,
    ConstantKernel,
    DotProduct,
    Matern,
    RationalQuadratic,
    WhiteKernel,
)
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import (
    Lasso,
    LinearRegression,
    LogisticRegression,
    PoissonRegressor,
    Ridge,
)
from sklearn.naive_bayes import GaussianNB
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, PolynomialFeatures, StandardScaler
from sklearn.svm import SVC, SVR, NuSVR

import propopt as po
from propopt.base.text import Reason
from propopt.structures.products.sums import SumOfProducts


RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 4)) * [1.0, 10.0, 0.1, 1.0] + [0.0, 50.0, 0.0, 3.0]
Y = np.sin(X[:, 0]) + 0.1 * X[:, 1] + X[:, 2] ** 2
TWO = (np.median(Y) < Y).astype(int)
THREE = np.digitize(Y, np.quantile(Y, [0.3, 0.6]))
COUNTS = np.random.default_rng(1).poisson(np.exp(0.2 * Y - 0.5))


def scaled(*steps):
    return make_pipeline(StandardScaler(), *steps)


def process(kernel, **settings):
    return GaussianProcessRegressor(kernel, alpha=0.1, optimizer=None, **settings)


def perceptron(**settings):
    return MLPRegressor(
        hidden_layer_sizes=(5,), max_iter=20, random_state=0, **settings
    )


def name(part):
    return str(part).replace("\n", "")[:80] if hasattr(part, "fit") else None


REGRESSORS = [
    LinearRegression(),
    Ridge(),
    Lasso(0.01),
    scaled(Ridge()),
    make_pipeline(MinMaxScaler(), StandardScaler(), Lasso(0.01)),
    make_pipeline(MinMaxScaler(), PCA(3), StandardScaler(), Ridge()),
    KernelRidge(kernel="rbf", gamma=0.01),
    scaled(KernelRidge(kernel="rbf")),
    scaled(KernelRidge(kernel="linear")),
    scaled(KernelRidge(kernel="poly", degree=3)),
    SVR(),
    scaled(SVR()),
    scaled(NuSVR(kernel="poly", degree=2)),
    scaled(process(RBF([1.0, 2.0, 3.0, 4.0]))),
    scaled(process(2.0 * RBF(2.0) + WhiteKernel(0.1) + DotProduct(), normalize_y=True)),
    scaled(process(2.0 * RBF(2.0) ** 2 + ConstantKernel(3.0))),
    scaled(process(RBF([1.0, 2.0, 3.0, 4.0]) * RBF(0.9) + Matern(nu=np.inf))),
    scaled(process((DotProduct() + 1.0) ** 2)),
    scaled(PolynomialFeatures(3), StandardScaler(), Ridge()),
    make_pipeline(PolynomialFeatures(2, interaction_only=True), Ridge()),
    scaled(Nystroem(n_components=20, random_state=0), Ridge()),
    scaled(
        MLPRegressor(
            hidden_layer_sizes=(5,), activation="identity", max_iter=20, random_state=0
        )
    ),
]

CLASSIFIERS = [
    (LogisticRegression(max_iter=2000), TWO, "margin", None),
    (LogisticRegression(max_iter=2000), TWO, "log_odds", 0),
    (scaled(LogisticRegression()), THREE, "margin", 2),
    (scaled(SVC()), TWO, "margin", None),
    (scaled(SVC()), TWO, "margin", 0),
    (GaussianNB(), TWO, "log_odds", None),
    (QuadraticDiscriminantAnalysis(), TWO, "log_odds", None),
    (QuadraticDiscriminantAnalysis(), THREE, "margin", 1),
    (LinearDiscriminantAnalysis(), THREE, "margin", 1),
]


def fitted(model, data, target):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of convergence, which nothing here needs
        return model.fit(data, target)


def is_read(function, data, truth=None):
    """Its sum of products is its value, to rounding."""
    read = function.products
    assert isinstance(read, SumOfProducts), read.reason
    points, _ = function.read(data)
    values = function.value(data) if truth is None else truth
    errors = np.abs(read.value(points) - values) / np.maximum(1.0, np.abs(values))
    assert errors.max() <= 1e-12


@pytest.mark.parametrize("model", REGRESSORS, ids=name)
def test_regressors_are_read(model):
    model = fitted(model, X, Y)
    is_read(po.wrap(model), X, model.predict(X))


@pytest.mark.parametrize(("model", "target", "output", "label"), CLASSIFIERS, ids=name)
def test_scores_of_classifiers_are_read(model, target, output, label):
    model = fitted(model, X, target)
    is_read(po.wrap(model, label, output), X)


@pytest.mark.parametrize("model", [PoissonRegressor(), scaled(PoissonRegressor())])
def test_models_with_a_logarithmic_link_are_one_product(model):
    model = fitted(model, X, COUNTS)
    function = po.wrap(model)
    is_read(function, X, model.predict(X))
    assert len(function.products.values) == 1


@pytest.mark.parametrize("model", [scaled(Ridge()), scaled(SVR())], ids=name)
def test_tables_with_names_are_read_with_and_without_a_schema(model):
    table = pd.DataFrame(X, columns=list("abcd"))
    model = fitted(model, table, Y)
    is_read(po.wrap(model), table, model.predict(table))
    is_read(po.wrap(model, data=table), table, model.predict(table))


REASONS = [
    (LogisticRegression(max_iter=2000), TWO, {}, "output='log_odds'"),
    (scaled(LogisticRegression()), THREE, {"target": 1}, "output='margin'"),
    (
        scaled(LogisticRegression()),
        THREE,
        {"target": 1, "output": "log_odds"},
        "logarithm of a sum over the others",
    ),
    (
        scaled(MLPRegressor(hidden_layer_sizes=(5,), max_iter=20)),
        Y,
        {},
        "layers of relu units",
    ),
    (scaled(process(Matern(nu=1.5))), Y, {}, "a Matérn 3/2 kernel"),
    (scaled(process(RationalQuadratic())), Y, {}, "a rational quadratic kernel"),
    (scaled(process(RBF() * DotProduct())), Y, {}, "multiplies a gaussian"),
    (scaled(SVR(kernel="sigmoid")), Y, {}, "a sigmoid kernel"),
    (scaled(PCA(2), SVR()), Y, {}, "mix columns, as PCA does"),
    (scaled(RBFSampler(random_state=0), Ridge()), Y, {}, "cosines of sums of columns"),
    (
        scaled(PolynomialFeatures(2), StandardScaler(), PoissonRegressor()),
        COUNTS,
        {},
        "only that of a sum over single columns is a product",
    ),
]


@pytest.mark.parametrize(("model", "target", "settings", "reason"), REASONS, ids=name)
def test_what_is_no_sum_of_products_says_why(model, target, settings, reason):
    function = po.wrap(fitted(model, X, target), **settings)
    assert isinstance(function.products, Reason)
    assert reason in function.products.reason


def test_a_function_that_can_only_be_called_says_so():
    function = po.wrap(lambda data: data[:, 0] * data[:, 1])
    assert "can only be called" in function.products.reason
