"""Means of sums of products under the data law: exact, against enumeration."""

import itertools
import math

import numpy as np
import pandas as pd
import pytest
from column_oracle import contrast_at, law_at
from sklearn.compose import make_column_transformer
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel
from sklearn.impute import SimpleImputer
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LinearRegression, PoissonRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    OneHotEncoder,
    SplineTransformer,
    StandardScaler,
)
from sklearn.svm import SVC, SVR
from sklearn.tree import DecisionTreeRegressor

import propopt as po
from propopt.functions.means import SampledMean
from propopt.laws.data_law import DataLaw, Reference
from propopt.structures.products.sums import ProductShapley


RNG = np.random.default_rng(0)
N = 40
X = pd.DataFrame(
    {
        "few": RNG.choice([0.0, 1.0, 2.5, 4.0], N),
        "two": RNG.choice([-1.0, 3.0], N),
        "many": RNG.integers(0, 6, N) / 2.0,
        "kind": RNG.choice(["a", "b", "c"], N),
    }
)
HOLES = X.copy()
HOLES.loc[::7, "few"] = np.nan
HOLES.loc[3, "kind"] = None
Y = np.sin(X.few) * X.two + X.many**2 + (X.kind == "b")


def pipeline(model, *steps):
    numbers = ["few", "two", "many"]
    columns = make_column_transformer(
        (make_pipeline(SimpleImputer(), StandardScaler(), *steps), numbers),
        (OneHotEncoder(handle_unknown="ignore"), ["kind"]),
    )
    return make_pipeline(columns, model)


MODELS = {
    "svr": pipeline(SVR(C=10.0)),
    "kernel ridge": pipeline(KernelRidge(kernel="rbf", gamma=0.3)),
    "gaussian process": pipeline(
        GaussianProcessRegressor(ConstantKernel(3.0) * RBF(1.5), alpha=0.1)
    ),
    "polynomial": pipeline(KernelRidge(kernel="poly", degree=3, coef0=1.0)),
    "splines": pipeline(LinearRegression(), SplineTransformer(4)),
    "poisson": pipeline(PoissonRegressor(alpha=0.1)),
}
FITTED = {name: model.fit(X, Y - Y.min()) for name, model in MODELS.items()}
each_model = pytest.mark.parametrize("name", MODELS)


def enumerated(function, law, point):
    """E f(V) and all contrasts at an encoded row, by every row that the law knows."""
    D = len(point)
    laws = [law_at(law.columns[j], point[j]) for j in range(D)]
    contrasts = [contrast_at(law.columns[j], point[j]) for j in range(D)]

    def total(measures):
        grid = np.array(list(itertools.product(*(m.values for m in measures))))
        products = itertools.product(*(m.masses for m in measures))
        weights = list(map(math.prod, products))
        return float(np.array(weights) @ function.value(function.schema.decode(grid)))

    slopes = [total([*laws[:j], contrasts[j], *laws[j + 1 :]]) for j in range(D)]
    return total(laws), slopes


@each_model
@pytest.mark.parametrize("table", [X, HOLES], ids=["whole", "with holes"])
def test_means_and_slopes_are_those_of_enumeration(name, table):
    function = po.wrap(FITTED[name], data=table)
    smooth = po.smoothed(function, law="data", data=table)
    some = [0, 3, 7, 20]
    law = DataLaw(Reference.of(table, function.schema))
    points, _ = function.schema.encode(table)
    means = smooth.value(table.iloc[some])
    slopes = np.asarray(smooth.gradient(table.iloc[some]))
    for n, mean, slope in zip(some, means, slopes, strict=True):
        expected, wanted = enumerated(function, law, points[n])
        size = max(abs(expected), np.abs(wanted).max())
        assert abs(mean - expected) <= 1e-12 * size
        np.testing.assert_allclose(slope, wanted, rtol=0, atol=1e-12 * size)


@each_model
def test_it_is_said_to_be_exact_and_asks_for_nothing_more(name):
    function = po.wrap(FITTED[name], data=X)
    smooth = po.smoothed(function, law="data", data=X)
    estimate = smooth.estimate(X)
    assert estimate.exact
    assert estimate.source == "exact (products)"
    assert estimate.evaluations == 0
    assert smooth.gradient_method.startswith("exact (products), data law of 40 rows")


@each_model
def test_draws_agree_with_it(name):
    """|z| < 5 in each of 160 entries: a false alarm in 10⁴ seeds."""
    function = po.wrap(FITTED[name], data=X)
    exact = po.smoothed(function, law="data", data=X).estimate(X)
    law = DataLaw(Reference.of(X, function.schema))
    drawn = SampledMean(function, law, 1000, 1).estimate(X)
    errors = np.maximum(drawn.standard_errors, 1e-9 * np.abs(exact.values).max())
    assert (np.abs(drawn.values - exact.values) <= 5.0 * errors).all()


def test_a_margin_is_exact_and_what_can_only_be_called_is_sampled():
    model = pipeline(SVC()).fit(X, np.where(Y.median() < Y, "high", "low"))
    margin = po.smoothed(po.wrap(model, data=X), law="data", data=X)
    assert margin.estimate(X).exact
    called = po.wrap(lambda rows: np.sin(rows.few * rows.two), data=X)
    assert isinstance(po.smoothed(called, law="data", data=X), SampledMean)


@each_model
@pytest.mark.parametrize("table", [X, HOLES], ids=["whole", "with holes"])
def test_shapley_values_are_those_of_all_subsets(name, table):
    function = po.wrap(FITTED[name], data=table)
    structure = function.products
    points, _ = function.schema.encode(table)
    rows, background = points[[0, 3, 7]], points[5:17]
    exact = ProductShapley(structure, background).values(rows)
    D, wanted = rows.shape[1], np.zeros(rows.shape)
    for n, row in enumerate(rows):
        value = {}
        for bits in itertools.product([False, True], repeat=D):
            mixed = np.where(bits, row, background)
            value[bits] = function.value(function.schema.decode(mixed)).mean()
        for bits, j in itertools.product(value, range(D)):
            if not bits[j]:
                size = sum(bits)
                share = math.factorial(size) * math.factorial(D - size - 1)
                more = value[(*bits[:j], True, *bits[j + 1 :])] - value[bits]
                wanted[n, j] += share / math.factorial(D) * more
    np.testing.assert_allclose(exact, wanted, rtol=0, atol=1e-12 * abs(wanted).max())


def test_explanations_that_add_up_are_of_exact_contributions():
    best = po.explain(FITTED["svr"], X, data=X, units="output")
    assert best.parameters["contributions"].startswith("exact (Shapley values of ")
    assert best.target.value == 0.0
    missed = best.contributions.sum(axis=1) - (best.prediction - best.base_value)
    assert np.abs(missed).max() <= 1e-12 * np.abs(best.prediction).max()
    explainer = po.Explainer(FITTED["svr"], data=X, units="output").fit()
    one = explainer.explain(X.iloc[[5]])
    together = explainer.explain(X.iloc[3:9])
    np.testing.assert_array_equal(one.contributions[0], together.contributions[2])


def test_explanations_by_the_data_law_have_an_exact_target():
    best = po.explain(FITTED["svr"], X, data=X, law="data")
    assert best.target.value == 0.0
    assert best.parameters["gradient"] == "exact (products)"


# ---- under gaussian noise too


NOISY = {
    "svr": SVR(C=10.0),
    "kernel ridge": KernelRidge(kernel="poly", degree=3, coef0=1.0),
    "gaussian process": GaussianProcessRegressor(
        ConstantKernel(3.0) * RBF(1.5), alpha=0.1, optimizer=None
    ),
    "poisson": PoissonRegressor(alpha=0.1),
}


@pytest.mark.parametrize("name", NOISY)
def test_means_and_slopes_under_noise_are_those_of_quadrature(name):
    """By 60 × 60 nodes of Gauss and Hermite, and values of the model alone."""
    points, scale = X[["few", "many"]].to_numpy(), np.array([0.7, 0.4])
    function = po.wrap(NOISY[name].fit(points, Y - Y.min()))
    smooth = po.smoothed(function, scale)
    assert smooth.gradient_method == "exact (products), gaussian law, scale=per feature"
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    e = np.array(list(itertools.product(nodes, nodes)))
    w = np.outer(weights, weights).ravel() / (2.0 * math.pi)
    values, slopes = smooth.value(points[:5]), smooth.gradient(points[:5])
    for n, x in enumerate(points[:5]):
        f = function.value(x + scale * e)
        size = w @ np.abs(f)
        assert values[n] == pytest.approx(w @ f, rel=0.0, abs=1e-12 * size)
        expected = (w * f) @ e / scale
        np.testing.assert_allclose(slopes[n], expected, rtol=0, atol=1e-11 * size)
    assert not smooth.gradient_error(points).any()


def test_noise_on_splines_is_sampled():
    """Their means are by quadrature, which may not settle."""
    points = X[["few", "many"]].to_numpy()
    model = make_pipeline(SplineTransformer(4), LinearRegression()).fit(points, Y)
    assert "Stein" in po.smoothed(po.wrap(model), 0.5).gradient_method


def test_sums_of_trees_and_kernels_are_exact_under_noise():
    points = X[["few", "many"]].to_numpy()
    tree = po.wrap(DecisionTreeRegressor(max_depth=4).fit(points, Y))
    svr = po.wrap(SVR().fit(points, Y))
    alone = [po.smoothed(function, 0.5) for function in (tree, svr)]
    whole = po.smoothed(tree - 2.0 * svr, 0.5)
    assert whole.estimate(points).source == "exact (products)"
    for one, other in (
        (whole.value, [f.value(points) for f in alone]),
        (whole.gradient, [f.gradient(points) for f in alone]),
    ):
        expected = other[0] - 2.0 * other[1]
        size = np.abs(other).max()
        np.testing.assert_allclose(one(points), expected, rtol=0, atol=1e-12 * size)
