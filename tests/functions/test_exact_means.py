"""Means of boxes and products are exact, once what was read was checked."""

import itertools
import math
import pickle
import re
import warnings
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
import pytest
from coalitions import all_orders
from column_oracle import enumerated
from estimators import sk
from random_trees import boxes_of_trees, random_tree, some_rows, walk_all
from scipy.stats import norm
from sklearn.compose import TransformedTargetRegressor, make_column_transformer
from sklearn.gaussian_process.kernels import RBF, ConstantKernel
from sklearn.pipeline import make_pipeline

import propopt as po
from propopt.base.errors import InexactBoxesWarning, InvalidInput, Refused
from propopt.base.text import Reason
from propopt.functions import PAPER_FUNCTIONS, Function
from propopt.functions.means import CheckedStructure, ExactMean
from propopt.laws.background import Reference
from propopt.laws.data_law import DataLaw, Means
from propopt.structures.boxes.boxes import Boxes
from propopt.structures.boxes.sets import Tree
from propopt.structures.products.normals import Normals
from propopt.structures.products.sums import Game, ProductShapley
from propopt.tables.frames import Labels


@dataclass(frozen=True, eq=False)
class BoxFunction(Function):
    """The sum of trees that see the table as it is."""

    trees: tuple
    claimed: Boxes | None

    @property
    def boxes(self):
        return self.claimed

    @property
    def piecewise_constant(self):
        return True

    @property
    def gradient_method(self):
        return "none"

    def _value(self, points, _):
        self.calls.add(len(points))
        return walk_all(self.trees, points)

    def _gradient(self, points, _):
        return np.zeros(points.shape)


D = 4
RNG = np.random.default_rng(0)
X = some_rows(RNG, 80, D, missing=0.0)
TREES = tuple(random_tree(RNG, D, 4) for _ in range(5))
BOXES = boxes_of_trees(TREES, n_columns=D)
FUNCTION = BoxFunction(TREES, BOXES)


def wrong(by):
    """The function, and boxes one of which is wrong by a number in row 7."""
    units = np.eye(len(BOXES.values))
    alone = [replace(BOXES, base=0.0, values=v) for v in units]
    inside = [n for n, box in enumerate(alone) if box.value(X[7:8])[0] > 0]
    values = BOXES.values.copy()
    values[inside[0]] += by
    return BoxFunction(TREES, replace(BOXES, values=values))


def test_the_data_law_is_exact_for_boxes():
    smooth = po.functions.smoothed(FUNCTION, law="data", data=X)
    means, attributions = Means(BOXES, DataLaw(Reference.of_points(X))).of(X)
    np.testing.assert_array_equal(smooth.value(X), means)
    np.testing.assert_array_equal(smooth.gradient(X), attributions)
    estimate = smooth.estimate(X)
    assert estimate.exact
    assert estimate.source == "exact (computed from the model)"
    np.testing.assert_array_equal(estimate.values, attributions)
    np.testing.assert_array_equal(estimate.standard_errors, 0.0)
    assert (
        smooth.gradient_method
        == "exact (computed from the model), values near each row from 80 rows, "
        "4 columns"
    )
    reference = Reference.of_points(X)
    given = po.functions.smoothed(FUNCTION, law="data", data=reference)
    assert given.law.reference is reference
    for _ in range(2):  # before it was asked, and with all that it then keeps
        copy = pickle.loads(pickle.dumps(given))
        np.testing.assert_array_equal(copy.gradient(X), attributions)
        np.testing.assert_array_equal(given.gradient(X), attributions)


def test_boxes_are_compared_at_a_thousand_reference_rows_and_where_some_are_missing():
    function = BoxFunction(TREES, BOXES)
    smooth = po.functions.smoothed(function, law="data", data=X)
    assert smooth.estimate(X).evaluations == 0  # the model is not asked again
    assert (function.calls.rows, function.calls.trials) == (0, 80)
    table = np.tile(X, (31, 1))
    function = BoxFunction(TREES, BOXES)
    po.functions.smoothed(function, law="data", data=table)
    assert function.calls.trials == 827  # every third
    table[1001, 2] = np.nan  # no row of every third
    function = BoxFunction(TREES, BOXES)
    smooth = po.functions.smoothed(function, law="data", data=table)
    assert function.calls.trials == 828
    smooth.gradient(table[1000:1010])
    assert function.calls.trials == 828


@pytest.mark.parametrize("by", [1e-3, -1e-8])
def test_boxes_that_differ_are_not_believed(by):
    share = abs(by) / np.ptp(FUNCTION.value(X))
    pattern = f"differs from its values by {share:.2g} of the range of f in row"
    with pytest.warns(InexactBoxesWarning, match=re.escape(pattern)):
        gradient = po.functions.smoothed(wrong(by), 0.5, 20, data=X).gradient(X)
    sampled = po.functions.smoothed(BoxFunction(TREES, None), 0.5, 20).gradient(X)
    np.testing.assert_array_equal(gradient, sampled)


def test_rounding_of_sums_in_single_precision_is_allowed_where_boxes_say_so():
    loose = replace(wrong(1e-6).claimed, tolerance=2e-5)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        smooth = po.functions.smoothed(BoxFunction(TREES, loose), law="data", data=X)
    assert isinstance(smooth, ExactMean)


def test_the_gaussian_law_is_exact_for_boxes():
    stump = Tree.of([0, -1, -1], [0.3, 0, 0], [1, 0, 0], [2, 0, 0], [0, 0, 2.0])
    boxes = boxes_of_trees([stump], n_columns=1)
    smooth = po.functions.smoothed(BoxFunction((stump,), boxes), 0.5)
    points = np.linspace(-1, 1, 9)[:, None]
    z = (points - 0.3) / 0.5
    np.testing.assert_allclose(smooth.gradient(points), 4 * norm.pdf(z), rtol=1e-13)
    np.testing.assert_allclose(smooth.value(points), 2 * norm.cdf(z[:, 0]), rtol=1e-13)
    assert smooth.estimate(points).exact
    assert (
        smooth.gradient_method
        == "exact (computed from the model), gaussian noise, scale=0.5"
    )


def test_boxes_that_differ_where_values_are_missing_are_not_believed():
    table = X.copy()
    other_side = tuple(replace(t, missing_left=~t.missing_left) for t in TREES)
    function = BoxFunction(other_side, BOXES)
    rows = X[:5].copy()
    rows[:, 0] = np.nan
    smooth = po.functions.smoothed(function, law="data", data=table)
    smooth.gradient(X)
    with (
        pytest.warns(InexactBoxesWarning),
        pytest.raises(Refused, match="give reference rows with missing values"),
    ):
        smooth.gradient(rows)
    with pytest.warns(InexactBoxesWarning):
        sampled = po.functions.smoothed(
            function, law="data", data=np.concatenate([table, rows])
        )
    assert not sampled.estimate(rows).exact


# ---- sums of products: believed once they are what the function answers, in any unit


POINTS = np.random.default_rng(0).normal(size=(60, 3))
TARGET = POINTS[:, 0] + np.sin(POINTS[:, 1])
NAMED = Labels(points=tuple(f"p{n}" for n in range(60)))
UNITS = [(1e-10, 0.0), (1e-150, 0.0), (1.0, 1e3), (1e-6, 1.0), (1e12, 0.0)]


def believed(function, points, labels):
    """What a function is, once it was compared with it."""
    return CheckedStructure.of(function, points.shape[1]).at(points, labels)


def test_what_is_right_is_believed_and_what_is_none_keeps_its_reason():
    function = po.wrap(sk.SVR().fit(POINTS, TARGET))
    assert believed(function, POINTS, Labels()) is function.products
    function = po.wrap(lambda data: data[:, 0])
    assert "can only be called" in believed(function, POINTS, Labels()).reason
    assert function.calls.rows == 0
    function = po.wrap(sk.Ridge().fit(POINTS, TARGET))
    gaps = np.where(POINTS > 1.0, np.nan, POINTS)
    with pytest.raises(InvalidInput, match="no missing values"):
        believed(function, gaps, Labels())


def in_units_of(unit, offset):
    """Models of numbers in other units."""
    target = offset + unit * TARGET

    def fitted(trees):  # which stop growing where squares of residuals are tiny
        scaled = TransformedTargetRegressor(trees, transformer=sk.StandardScaler())
        return scaled.fit(POINTS, target)

    return {
        "ridge": make_pipeline(sk.StandardScaler(), sk.Ridge()).fit(POINTS, target),
        "forest": fitted(sk.RandomForestRegressor(5, random_state=0)),
        "boosting": fitted(sk.GradientBoostingRegressor(n_estimators=20)),
        "kernels": sk.KernelRidge(kernel="rbf", gamma=0.3).fit(POINTS, target),
    }


@pytest.mark.parametrize(("unit", "offset"), UNITS)
def test_what_is_right_is_believed_and_what_is_wrong_is_found_in_any_unit(unit, offset):
    for model in in_units_of(unit, offset).values():
        for rows in (POINTS, POINTS[3:4]):
            result = believed(po.wrap(model), rows, Labels())
            assert not isinstance(result, Reason)
        values = po.wrap(model).value(POINTS)
        assert np.ptp(values) > 0.5 * unit
        for scale in (-1.0, 1.001, 0.0):  # about the mean of f
            function = po.wrap(model)
            checked = CheckedStructure.of(function, 3)
            offset = (1.0 - scale) * values.mean()
            checked.structure = checked.structure.scaled(scale).plus(offset)
            with pytest.warns(InexactBoxesWarning, match=r"its values .* in row 'p"):
                refused = checked.at(POINTS, NAMED)
            share = abs(scale - 1.0) * np.abs(values - values.mean()).max()
            told = f"by {share / np.ptp(values):.2g} of the range of f in row"
            assert told in refused.reason


def test_a_single_row_is_held_against_the_terms_that_add_up_to_it():
    function = po.wrap(in_units_of(1e-10, 0.0)["ridge"])
    vars(function)["products"] = function.products.scaled(-1.0)
    with pytest.warns(InexactBoxesWarning, match="of f, which is constant, in row 0"):
        result = believed(function, POINTS[:1], Labels())
    assert isinstance(result, Reason)


def test_a_constant_model_is_believed_but_for_rounding():
    constant = sk.GradientBoostingRegressor(n_estimators=3).fit(
        POINTS, np.full(60, 0.1)
    )
    function = po.wrap(constant)
    checked = CheckedStructure.of(function, POINTS.shape[1])
    assert checked.at(POINTS, Labels()) is function.boxes
    off = replace(
        checked, structure=function.boxes.scaled(1.0 + 1e-10), compared_missing=None
    )
    with pytest.warns(InexactBoxesWarning, match="which is constant"):
        assert isinstance(off.at(POINTS, Labels()), Reason)


# ---- their means, slopes and Shapley values, against enumeration


def pipeline(model, *steps):
    numbers = ["few", "two", "many"]
    columns = make_column_transformer(
        (make_pipeline(sk.SimpleImputer(), sk.StandardScaler(), *steps), numbers),
        (sk.OneHotEncoder(handle_unknown="ignore"), ["kind"]),
    )
    return make_pipeline(columns, model)


GENERATOR = np.random.default_rng(0)
N = 40
MIXED = pd.DataFrame(
    {
        "few": GENERATOR.choice([0.0, 1.0, 2.5, 4.0], N),
        "two": GENERATOR.choice([-1.0, 3.0], N),
        "many": GENERATOR.integers(0, 6, N) / 2.0,
        "kind": GENERATOR.choice(["a", "b", "c"], N),
    }
)
HOLES = MIXED.copy()
HOLES.loc[::7, "few"] = np.nan
HOLES.loc[3, "kind"] = None
RESPONSE = np.sin(MIXED.few) * MIXED.two + MIXED.many**2 + (MIXED.kind == "b")
MODELS = {
    "svr": pipeline(sk.SVR(C=10.0)),
    "kernel ridge": pipeline(sk.KernelRidge(kernel="rbf", gamma=0.3)),
    "gaussian process": pipeline(
        sk.GaussianProcessRegressor(ConstantKernel(3.0) * RBF(1.5), alpha=0.1)
    ),
    "polynomial": pipeline(sk.KernelRidge(kernel="poly", degree=3, coef0=1.0)),
    "splines": pipeline(sk.LinearRegression(), sk.SplineTransformer(4)),
    "poisson": pipeline(sk.PoissonRegressor(alpha=0.1)),
}
FITTED = {
    name: model.fit(MIXED, RESPONSE - RESPONSE.min()) for name, model in MODELS.items()
}
each_model = pytest.mark.parametrize("name", MODELS)


@pytest.mark.sampled(2)
@each_model
@pytest.mark.parametrize("table", [MIXED, HOLES], ids=["whole", "with holes"])
def test_means_and_slopes_are_those_of_enumeration(name, table):
    function = po.wrap(FITTED[name], data=table)
    smooth = po.functions.smoothed(function, law="data", data=table)
    some = [0, 3, 7, 20]
    points, names = function.schema.encode(table)
    law = DataLaw(Reference.of_points(points, names, function.schema))
    estimate = smooth.estimate(table)
    assert estimate.exact
    assert estimate.source == "exact (computed from the model)"
    assert estimate.evaluations == 0
    assert smooth.gradient_method.startswith(
        "exact (computed from the model), values near each row from 40 rows"
    )
    means = smooth.value(table.iloc[some])
    for n, mean in zip(some, means, strict=True):
        expected, wanted = enumerated(function.value_at, law, points[n])
        size = max(abs(expected), np.abs(wanted).max())
        assert abs(mean - expected) <= 1e-12 * size
        np.testing.assert_allclose(
            estimate.values[n], wanted, rtol=0, atol=1e-12 * size
        )


@pytest.mark.sampled(3)
@each_model
@pytest.mark.parametrize("table", [MIXED, HOLES], ids=["whole", "with holes"])
def test_shapley_values_are_those_of_all_subsets(name, table):
    function = po.wrap(FITTED[name], data=table)
    points, _ = function.schema.encode(table)
    exact = ProductShapley(function.products, Game(points[5:17])).values(
        points[[0, 3, 7]]
    )
    wanted = all_orders(function, table.iloc[[0, 3, 7]], table.iloc[5:17])
    np.testing.assert_allclose(exact, wanted, rtol=0, atol=1e-12 * abs(wanted).max())


NOISY = {
    "svr": sk.SVR(C=10.0),
    "kernel ridge": sk.KernelRidge(kernel="poly", degree=3, coef0=1.0),
    "gaussian process": sk.GaussianProcessRegressor(
        ConstantKernel(3.0) * RBF(1.5), alpha=0.1, optimizer=None
    ),
    "poisson": sk.PoissonRegressor(alpha=0.1),
}


@pytest.mark.parametrize("name", NOISY)
def test_means_and_slopes_under_noise_are_those_of_quadrature(name):
    """By 60 × 60 nodes of Gauss and Hermite, and values of the model alone."""
    points, scale = MIXED[["few", "many"]].to_numpy(), np.array([0.7, 0.4])
    function = po.wrap(NOISY[name].fit(points, RESPONSE - RESPONSE.min()))
    smooth = po.functions.smoothed(function, scale)
    assert (
        smooth.gradient_method
        == "exact (computed from the model), gaussian noise, scale=per feature"
    )
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
    assert smooth.estimate(points).exact


def test_noise_on_splines_is_sampled():
    """Their means are by quadrature, which may not settle."""
    points = MIXED[["few", "many"]].to_numpy()
    model = make_pipeline(sk.SplineTransformer(4), sk.LinearRegression()).fit(
        points, RESPONSE
    )
    assert "Stein" in po.functions.smoothed(po.wrap(model), 0.5).gradient_method


# ---- the functions of the paper


COLUMNS = np.random.default_rng(0).normal(size=(30, 4))


@pytest.mark.parametrize("name", PAPER_FUNCTIONS)
def test_functions_of_the_paper_are_sums_of_products_and_have_means(name):
    """|z| < 5 of 100,000 draws from a normal: false alarm below 6e-7 each."""
    kind = PAPER_FUNCTIONS[name]
    function = kind(degree=3) if name == "power" else kind()
    assert "products_in" in function.products.reason
    for d in (1, 4):
        read, expected = function.products_in(d), function.value(COLUMNS[:, :d])
        np.testing.assert_allclose(
            read.value(COLUMNS[:, :d]), expected, rtol=1e-12, atol=1e-12
        )
    assert CheckedStructure.of(function, 4).at(COLUMNS, Labels()).n_columns == 4
    read, laws = function.products_in(1), Normals.of(0.3, 0.8, -np.inf, np.inf)
    draws = 0.3 + 0.8 * np.random.default_rng(1).normal(size=(100_000, 1))
    values = function.value(draws)
    mean = read.sums(np.concatenate([each.under(laws) for each in read.factors]))[0]
    z = (values.mean() - mean) / (values.std() / np.sqrt(len(values)))
    assert abs(z) < 5
