"""Fitted models have exact gradients, and are sums of products, or say why not.

A model that is read exactly is one line here: its value is the model's own, its
gradient that of central differences, and its products are its value.
"""

from itertools import product

import numpy as np
import pytest
from estimators import sk
from hypothesis import given
from hypothesis import strategies as st
from model_answers import is_read, of_class
from sklearn import linear_model
from sklearn.base import clone
from sklearn.gaussian_process.kernels import (
    RBF,
    ConstantKernel,
    DotProduct,
    Matern,
    WhiteKernel,
)
from sklearn.pipeline import make_pipeline
from sklearn.utils import all_estimators
from small_data import BINARY, FRAME, NOISE, THREE, UNIT, X, Y, assert_exact, mlp, same

from propopt.base.errors import InexactBoxesWarning
from propopt.base.resources import Budget
from propopt.base.text import Reason
from propopt.functions import wrap
from propopt.structures import scores
from propopt.structures.fitted_model import FittedModel
from propopt.structures.networks import Monomials
from propopt.structures.readers.fitted_networks import (
    LINEAR_REGRESSORS,
    NETWORKS,
    STEP_MAPS,
    step_map,
)
from propopt.structures.readers.model_products import exact_link, exact_network


def process(kernel, **settings):
    return sk.GaussianProcessRegressor(kernel, alpha=0.01, optimizer=None, **settings)


def scaled(*steps):
    return make_pipeline(sk.StandardScaler(), *steps)


def in_other_units(model, units):
    return sk.TransformedTargetRegressor(model, transformer=units)


def short(part):
    return str(part).replace("\n", "")[:80] if hasattr(part, "fit") else ""


SETTINGS = {  # what makes an estimator of this size converge without a warning
    "LinearSVR": {"max_iter": 100_000},
    "HuberRegressor": {"max_iter": 1000},
    "LassoLarsIC": {"noise_variance": 1.0},
    "QuantileRegressor": {"alpha": 0.01},
    "RidgeCV": {"alphas": (0.1, 1.0)},
}
ACTIVATIONS = ["identity", "logistic", "tanh", "relu"]
POSITIVE = np.exp(Y / 4)
ELSEWHERE = UNIT[:15] + np.random.default_rng(3).normal(0.0, 0.3, size=(15, 4))
ARD = [0.7, 1.3, 2.0, 0.9]
KINK = 1e-8  # a short step, for no kink of a unit to lie between shifted points
MIXED = "mix columns, as PCA does"
# of scaled columns, and why they are no sums of products
REGRESSORS = [
    (linear_model.LinearRegression(), ""),
    (sk.SVR(), ""),
    (sk.SVR(kernel="poly", degree=2, coef0=0.5), ""),
    (sk.SVR(kernel="poly", degree=1, gamma=0.3), ""),
    (sk.SVR(kernel="linear"), ""),
    (sk.NuSVR(gamma="auto"), ""),
    (sk.NuSVR(gamma=0.7), ""),
    (sk.KernelRidge(kernel="rbf", gamma=0.4), ""),
    (sk.KernelRidge(kernel="polynomial", degree=3, coef0=0.5), ""),
    (sk.KernelRidge(kernel="poly", degree=2), ""),
    (sk.KernelRidge(kernel="linear"), ""),
    (process(None), ""),
    (process(RBF(ARD)), ""),
    (process(RBF(ARD) * RBF(0.9) + Matern(nu=np.inf)), ""),
    (process(2.0 * RBF(2.0) + WhiteKernel(0.1) + DotProduct(), normalize_y=True), ""),
    (process(Matern(1.2, nu=1.5)), "a Matérn 3/2 kernel"),
    (process(Matern(ARD, nu=1.5)), "a Matérn 3/2 kernel"),
    (process(Matern(1.2, nu=2.5)), "a Matérn 5/2 kernel"),
    (process(RBF() * DotProduct()), "multiplies a gaussian"),
    (process(RBF(ARD) + DotProduct() * Matern(nu=2.5)), "a Matérn 5/2 kernel"),
    (process(2.0 * RBF(2.0) * RBF(1.3) + ConstantKernel(3.0)), ""),
    (process((DotProduct() + 1.0) * DotProduct(0.7)), ""),
    (make_pipeline(sk.PCA(2), sk.SVR()), MIXED),
    (make_pipeline(sk.PCA(2, whiten=True), sk.SVR()), MIXED),
    (make_pipeline(sk.IncrementalPCA(2, whiten=True), sk.SVR()), MIXED),
    (make_pipeline(sk.TruncatedSVD(2, random_state=0), sk.SVR()), MIXED),
    (make_pipeline(sk.PolynomialFeatures(3), sk.PCA(5), sk.SVR()), MIXED),
    (
        make_pipeline(
            make_pipeline(sk.PolynomialFeatures(2), sk.MaxAbsScaler()), sk.Ridge()
        ),
        "",
    ),
    (in_other_units(sk.SVR(), sk.StandardScaler()), ""),
    (
        scaled(in_other_units(make_pipeline(sk.PCA(2), sk.SVR()), sk.MinMaxScaler())),
        MIXED,
    ),
]
POSITIVE_REGRESSORS = [
    sk.PoissonRegressor(),
    sk.GammaRegressor(),
    sk.TweedieRegressor(power=1.5),
    sk.TweedieRegressor(power=0),
    sk.TweedieRegressor(power=0, link="log"),
]
SCALERS = [
    sk.StandardScaler(),
    sk.StandardScaler(with_mean=False),
    sk.StandardScaler(with_std=False),
    sk.StandardScaler(with_mean=False, with_std=False),
    sk.MinMaxScaler((-1, 3)),
    sk.MaxAbsScaler(),
    sk.RobustScaler(),
    sk.RobustScaler(with_centering=False),
    sk.RobustScaler(with_scaling=False, unit_variance=True),
    "passthrough",
]
# of columns in units of their own
PIPELINES = [
    *(
        (make_pipeline(scaler, "passthrough", mlp(sk.MLPRegressor)), "layers of tanh")
        for scaler in SCALERS
    ),
    (scaled(mlp(sk.MLPRegressor, "identity")), ""),
    (scaled(mlp(sk.MLPRegressor, "relu")), "layers of relu units"),
    (make_pipeline(sk.RobustScaler(), scaled(sk.Ridge())), ""),
    (make_pipeline(sk.MinMaxScaler(), sk.PCA(3), sk.StandardScaler(), sk.Ridge()), ""),
    (sk.KernelRidge(kernel="rbf", gamma=0.01), ""),
    (scaled(sk.PolynomialFeatures(3), sk.StandardScaler(), sk.Ridge()), ""),
    (make_pipeline(sk.PolynomialFeatures(2, interaction_only=True), sk.Ridge()), ""),
]


def is_read_or_says(function, points, reason):
    """Its sum of products is its value, or it has none and says why."""
    if reason:
        assert isinstance(function.products, Reason)
        assert reason in function.products.reason
    else:
        is_read(function, points, 2e-12)


@pytest.mark.parametrize(("model", "reason"), REGRESSORS, ids=short)
def test_regressors(model, reason):
    model = clone(model).fit(UNIT, Y)
    expected = model.predict(ELSEWHERE)
    assert_exact(wrap(model), ELSEWHERE, expected)
    is_read_or_says(wrap(model), ELSEWHERE, reason)


@pytest.mark.parametrize(("model", "reason"), PIPELINES, ids=short)
def test_pipelines(model, reason):
    model = clone(model).fit(X, Y)
    assert_exact(wrap(model), X, model.predict(X), KINK if "relu" in reason else None)
    is_read_or_says(wrap(model), X, reason)


@pytest.mark.parametrize("model", POSITIVE_REGRESSORS, ids=str)
@pytest.mark.parametrize(
    "step", [sk.StandardScaler(), sk.PolynomialFeatures(2)], ids=short
)
def test_regressors_of_positive_numbers_are_one_product_of_single_columns(model, step):
    model = make_pipeline(sk.StandardScaler(), step, clone(model)).fit(X, POSITIVE)
    expected = model.predict(X)
    assert_exact(wrap(model), X, expected)
    linear = model[-1].get_params().get("power") == 0 and model[-1].link == "auto"
    many = isinstance(step, sk.PolynomialFeatures) and not linear
    reason = "only that of a sum over single columns is a product" * many
    is_read_or_says(wrap(model), X, reason)
    if not many and not linear:
        assert len(wrap(model).products.values) == 1


ESTIMATORS = {f"sklearn.{name}": kind for name, kind in all_estimators()}


@pytest.mark.parametrize("kind", [ESTIMATORS[name] for name in LINEAR_REGRESSORS])
def test_linear_regressors_are_exact(kind):
    many = kind.__name__.startswith("MultiTask")
    y = np.column_stack([Y, NOISE]) if many else Y
    model = kind(**SETTINGS.get(kind.__name__, {})).fit(UNIT, y)
    expected = model.predict(UNIT)
    function = wrap(model, target=1 if many else None)
    assert_exact(function, UNIT, expected[:, 1] if many else expected)


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_perceptrons(activation):
    step = KINK if activation == "relu" else None
    for sizes, y in (((7, 5), Y), ((), Y), ((7, 5), np.column_stack([Y, NOISE]))):
        model = mlp(sk.MLPRegressor, activation).set_params(hidden_layer_sizes=sizes)
        expected = model.fit(UNIT, y).predict(UNIT)
        function = wrap(model, target=None if y is Y else 1)
        assert_exact(function, UNIT, expected if y is Y else expected[:, 1], step)


def test_perceptrons_of_counts():
    pytest.importorskip("sklearn", minversion="1.7")  # loss
    model = mlp(sk.MLPRegressor, loss="poisson").fit(UNIT, np.abs(Y))
    assert_exact(wrap(model), UNIT, model.predict(UNIT))


def test_regressors_of_several_outputs_or_of_one_column():
    processes = process(RBF(1.2)), process(RBF(1.2), normalize_y=True)
    for model in (sk.KernelRidge(kernel="rbf"), *processes):
        model.fit(UNIT, np.column_stack([Y, NOISE]))
        for target in (0, 1):
            expected = model.predict(ELSEWHERE)[:, target]
            assert_exact(wrap(model, target), ELSEWHERE, expected)
    model = sk.Ridge().fit(X, Y[:, None])
    assert_exact(wrap(model), X, model.predict(X).ravel())


# ---- classifiers


MARGIN, LOGIT = ("margin",), ("probability", "log_odds")
CLASSIFIERS = [
    (sk.LogisticRegression(), (*LOGIT, *MARGIN)),
    (make_pipeline(sk.MinMaxScaler(), scaled(sk.LogisticRegression())), LOGIT),
    (scaled(sk.PolynomialFeatures(2), sk.LogisticRegression(max_iter=1000)), LOGIT),
    (sk.LinearDiscriminantAnalysis(), (*LOGIT, *MARGIN)),
    (sk.LinearDiscriminantAnalysis(solver="lsqr", shrinkage=0.2), (*LOGIT, *MARGIN)),
    (sk.QuadraticDiscriminantAnalysis(), (*LOGIT, *MARGIN)),
    (sk.QuadraticDiscriminantAnalysis(reg_param=0.3), (*LOGIT, *MARGIN)),
    (sk.GaussianNB(), LOGIT),
    (sk.GaussianNB(var_smoothing=0.3), LOGIT),
    (sk.LinearSVC(), MARGIN),
    (linear_model.SGDClassifier(random_state=0), MARGIN),
    (linear_model.Perceptron(random_state=0), MARGIN),
    (linear_model.RidgeClassifier(), MARGIN),
    (linear_model.RidgeClassifierCV(), MARGIN),
    (sk.SVC(), MARGIN),
    (sk.SVC(kernel="poly", coef0=1.0), MARGIN),
    (sk.NuSVC(gamma=0.8), MARGIN),
    *((mlp(sk.MLPClassifier, activation), LOGIT) for activation in ACTIVATIONS),
]


@pytest.mark.parametrize(("model", "outputs"), CLASSIFIERS, ids=short)
@pytest.mark.parametrize("y", [BINARY, THREE], ids=["two", "three"])
def test_classifiers(model, outputs, y):
    if y is THREE and "SVC" in str(model) and "Linear" not in str(model):
        return  # votes between pairs, below
    model = clone(model).fit(UNIT, y)
    step = KINK if "relu" in str(model) else None
    for output, (column, label) in product(outputs, enumerate(model.classes_)):
        function = wrap(model, label, output)
        expected = of_class(model, output, column, ELSEWHERE)
        digits = 1e-9 if output == "log_odds" else 1e-12
        assert_exact(function, ELSEWHERE, expected, step, digits)
        if output == "margin" or (output == "log_odds" and y is BINARY):
            reason = "layers of" if isinstance(model, sk.MLPClassifier) else ""
            reason = "" if "identity" in str(model) else reason
            is_read_or_says(function, ELSEWHERE, reason)
        else:
            assert isinstance(function.products, Reason)
        if y is BINARY and column == 1:
            same_function = wrap(model, output=output)
            same(same_function.value(ELSEWHERE), expected, digits)
    if outputs == MARGIN and y is BINARY:
        margin = of_class(model, "margin", 1, ELSEWHERE)
        same(wrap(model).value(ELSEWHERE), margin, 1e-12)


@pytest.mark.parametrize("y", [BINARY, THREE], ids=["two", "three"])
def test_cross_validated_logistic_regression_is_exact(y):
    pytest.importorskip("sklearn", minversion="1.8")  # use_legacy_attributes
    model = linear_model.LogisticRegressionCV(
        Cs=2, cv=2, l1_ratios=(0,), scoring="accuracy", use_legacy_attributes=False
    ).fit(UNIT, y)
    function = wrap(model, target=y[0], output="probability")
    column = list(model.classes_).index(y[0])
    assert_exact(function, UNIT, model.predict_proba(UNIT)[:, column])


@pytest.mark.parametrize(
    ("y", "settings", "reason"),
    [
        (BINARY, {"output": "probability"}, "output='log_odds'"),
        (THREE, {"target": "b"}, "output='margin'"),
        (THREE, {"target": "b", "output": "log_odds"}, "logarithm of a sum over the o"),
    ],
)
def test_what_is_no_sum_of_products_says_what_is(y, settings, reason):
    function = wrap(scaled(sk.LogisticRegression()).fit(X, y), **settings)
    is_read_or_says(function, X, reason)


@pytest.mark.parametrize("kernel", ["rbf", "poly", "linear"])
def test_margins_of_outlier_detectors_are_exact(kernel):
    model = sk.OneClassSVM(kernel=kernel, gamma=0.3, nu=0.3).fit(UNIT)
    function = wrap(model)
    expected = model.decision_function(ELSEWHERE)
    assert_exact(function, ELSEWHERE, expected, digits=1e-9)


class Squared(linear_model.LinearRegression):
    """A subclass, which may predict otherwise."""

    def predict(self, X):
        return super().predict(X) ** 2


NUMERICAL = [
    (Squared(), Y),
    (make_pipeline(sk.MinMaxScaler(clip=True), sk.Ridge()), Y),
    (make_pipeline(sk.PowerTransformer(), sk.Ridge()), Y),
    (make_pipeline(sk.SplineTransformer(), sk.Ridge()), Y),
    (scaled(sk.CalibratedClassifierCV(sk.LinearSVC(), cv=2)), BINARY),
    (
        sk.TransformedTargetRegressor(sk.SVR(), func=np.log, inverse_func=np.exp),
        POSITIVE,
    ),
    (in_other_units(sk.PoissonRegressor(), sk.MinMaxScaler((0.1, 1.0))), POSITIVE),
    (process(Matern(1.0, nu=0.5)), Y),
    (process(RBF() * Matern(1.0, nu=0.5)), Y),
    (process(Matern(1.0, nu=2.0)), Y),
    (sk.KernelRidge(kernel="laplacian"), Y),
    (sk.SVR(kernel=lambda A, B: A @ B.T), Y),
    (sk.SVR(kernel="sigmoid", gamma=0.05), Y),
    (process(RBF(2.0) ** 2), Y),
]
POWERS = st.lists(st.integers(0, 3), min_size=4, max_size=4)


@pytest.mark.parametrize(("model", "y"), NUMERICAL, ids=short)
def test_other_models_are_numerical(model, y):
    model = clone(model).fit(UNIT, y)
    function = wrap(model)
    assert function.gradient_method.startswith("central differences")
    expected = model.predict_proba(UNIT)[:, 1] if y is BINARY else model.predict(UNIT)
    same(function.value(UNIT), expected, 1e-12)


def test_outputs_that_are_not_those_of_an_exact_score_are_numerical():
    outputs = np.column_stack([Y, POSITIVE])
    model = sk.TransformedTargetRegressor(sk.Ridge(), transformer=sk.StandardScaler())
    assert wrap(model.fit(UNIT, outputs), target=1).gradient_method != "exact"
    model = sk.SVC().fit(UNIT, THREE)  # votes between pairs of classes
    assert "differences" in wrap(model, "a").gradient_method
    model = sk.LogisticRegression().fit(UNIT, THREE)
    model.solver = "liblinear"  # its probabilities were no softmax before version 1.8
    assert "differences" in wrap(model, "a").gradient_method
    assert wrap(model, "a", "margin").gradient_method == "exact"
    assert FittedModel(model).link("probability", 1) is None
    assert FittedModel(model).link("margin", 1) is not None


@pytest.mark.parametrize("name", [*NETWORKS, *STEP_MAPS])
def test_subclasses_of_what_is_registered_are_not_read(name):
    kind = ESTIMATORS[name]
    subclass = type(f"Sub{kind.__name__}", (kind,), {})
    assert exact_network(subclass()) is None
    assert exact_link(subclass(), "value", 0, 1) is None
    assert step_map(subclass()) is None


@given(st.lists(POWERS, min_size=1, max_size=6))
def test_monomials_and_their_slopes_are_those_of_powers(powers):
    powers = np.array(powers)
    monomials = Monomials(powers)
    values, pullback = monomials.linearized(ELSEWHERE)
    expected = (ELSEWHERE[:, None, :] ** powers).prod(axis=2)
    np.testing.assert_allclose(values, expected, rtol=1e-12)
    np.testing.assert_array_equal(monomials.scores(ELSEWHERE), values)
    cotangents = np.cos(np.arange(values.size)).reshape(values.shape)
    step = 1e-20  # the complex step has no rounding error
    for d in range(4):
        ahead = ELSEWHERE + step * 1j * (np.arange(4) == d)
        change = (ahead[:, None, :] ** powers).prod(axis=2).imag / step
        slope, own = (cotangents * change).sum(axis=1), pullback(cotangents)[:, d]
        np.testing.assert_allclose(own, slope, rtol=1e-9, atol=1e-9)


def test_long_tables_are_taken_in_blocks(monkeypatch):
    model = make_pipeline(sk.PolynomialFeatures(2), process(RBF(2.0))).fit(UNIT, Y)
    function = wrap(model)
    values, gradients = function.value(ELSEWHERE), function.gradient(ELSEWHERE)
    monkeypatch.setattr(scores, "BATCH_BUDGET", Budget(8 * 4 * function.network.width))
    np.testing.assert_allclose(function.value(ELSEWHERE), values, rtol=1e-12)
    np.testing.assert_allclose(function.gradient(ELSEWHERE), gradients, rtol=1e-9)
    sizes = [len(ELSEWHERE[rows]) for rows in function.network.blocks(ELSEWHERE)]
    assert sizes == [4, 4, 4, 3]


def test_centers_of_smooth_kernels_and_sparsified_models_are_exact():
    model = process(Matern(1.2, nu=1.5)).fit(UNIT, Y)
    assert_exact(wrap(model), UNIT, model.predict(UNIT))
    model = linear_model.SGDClassifier(penalty="l1", random_state=0).fit(UNIT, BINARY)
    dense = model.coef_.copy()
    same(wrap(model.sparsify()).gradient(UNIT), np.tile(dense, (60, 1)), 1e-15)


class _Rounded(RBF):
    """A kernel that no rule knows."""


@pytest.mark.parametrize(
    "kernel",
    [RBF() + _Rounded(), _Rounded() + RBF(), RBF() * _Rounded(), _Rounded() * RBF()],
    ids=str,
)
def test_kernels_of_which_one_half_is_unknown_are_not_read(kernel):
    model = sk.GaussianProcessRegressor(kernel, optimizer=None).fit(UNIT, Y)
    assert exact_network(model) is None
    assert "differences" in wrap(model).gradient_method


def test_an_exact_function_keeps_its_parameters_and_is_a_value():
    model = sk.Ridge().fit(X, Y)
    function, before = wrap(model), model.predict(X)
    model.fit(X, -Y)
    same(function.value(X), before, 1e-12)


def test_tables_with_names_are_read_and_what_can_only_be_called_says_so():
    model = scaled(sk.SVR()).fit(FRAME, Y)
    for function in (wrap(model), wrap(model, data=FRAME)):  # without a schema, too
        is_read(function, FRAME)
    function = wrap(lambda data: data[:, 0] * data[:, 1])
    is_read_or_says(function, X, "can only be called")


@pytest.mark.parametrize(
    ("model", "y", "data", "output", "method"),
    [
        (sk.LogisticRegression(), BINARY, FRAME, "probability", "predict_proba"),
        (sk.LogisticRegression(), BINARY, FRAME, "auto", "decision_function"),
        (sk.LogisticRegression(), BINARY, X, "log_odds", "decision_function"),
        (sk.GaussianNB(), THREE, FRAME, "log_odds", "predict_proba"),
    ],
)
@pytest.mark.parametrize(("factor", "is_read"), [(1 + 1e-12, True), (1.001, False)])
def test_parameters_are_believed_if_the_model_answers_so(
    monkeypatch, model, y, data, output, method, factor, is_read
):
    model.fit(data, y)
    target = model.classes_[-1]
    answer = getattr(model, method)
    monkeypatch.setattr(model, method, lambda table: factor * answer(table))
    if is_read:
        function = wrap(model, target, output, data=data)
        assert function.gradient_method == "exact"
        return
    with pytest.warns(InexactBoxesWarning, match=r"differ .* by up to .* is called"):
        function = wrap(model, target, output, data=data)
    assert "central differences" in function.gradient_method
    if method == "decision_function":
        expected = np.tile(1.001 * model.coef_, (len(data), 1))
        np.testing.assert_allclose(function.gradient(data), expected, rtol=1e-6)
