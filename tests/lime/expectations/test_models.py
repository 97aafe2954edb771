"""Limits of LIME of fitted models: against draws of its law, other sums, and laws."""

from __future__ import annotations

import copy
import itertools
import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import (
    GradientBoostingRegressor,
    RandomForestRegressor,
    VotingRegressor,
)
from sklearn.impute import SimpleImputer
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import Lasso, PoissonRegressor, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    OneHotEncoder,
    PolynomialFeatures,
    PowerTransformer,
    SplineTransformer,
    StandardScaler,
)
from sklearn.svm import SVR
from sklearn.tree import DecisionTreeRegressor

import propopt as po
from propopt.functions.formulas import Additive, Multiplicative
from propopt.lime import TabularLaw
from propopt.lime.expectations import ExactLimits


RNG = np.random.default_rng(0)
N, D = 300, 4
X = RNG.normal(size=(N, D)) * [1.0, 3.0, 0.5, 1.0] + [0.0, 5.0, 0.0, 0.0]
Y = np.sin(X[:, 0]) + 0.2 * X[:, 1] * X[:, 2] + 0.1 * RNG.normal(size=N)
COUNTS = np.random.default_rng(1).poisson(np.exp(0.3 * X[:, 0] + 0.1 * X[:, 1]))
TABLE = pd.DataFrame(X, columns=list("abcd")).assign(
    color=RNG.choice(["red", "green", "blue"], N)
)
TABLE.loc[::9, "b"] = np.nan
LEVEL = Y + 0.5 * (TABLE["color"] == "red") + 0.3 * TABLE["b"].isna()
LAW = TabularLaw.from_data(X)


def behind_columns(model):
    numbers = make_pipeline(SimpleImputer(), StandardScaler())
    parts = [("n", numbers, list("abcd")), ("c", OneHotEncoder(), ["color"])]
    return make_pipeline(ColumnTransformer(parts), model)


def draws_agree(function, law, points, n_samples=20_000):
    """|z| < 5 for each difference of means: false alarm below 6e-7 each."""
    result = ExactLimits(function.products, law).of(points)
    draws = law.draw_weighted(points, n_samples, np.random.default_rng(7))
    for n in range(len(points)):
        values = function.value_at(draws.samples[n])
        for j in range(points.shape[1]):
            inside = draws.bits[n, :, j] == 1
            one, zero = values[inside], values[~inside]
            error = np.sqrt(one.var() / len(one) + zero.var() / len(zero))
            difference = one.mean() - zero.mean()
            assert abs(difference - result.coefficients[n, j]) < 5 * error + 1e-9
        scatter = values.std() / np.sqrt(n_samples)
        assert abs(values.mean() - result.mean[n]) < 5 * scatter


MODELS = [
    (make_pipeline(StandardScaler(), Ridge()), Y),
    (make_pipeline(StandardScaler(), SVR()), Y),
    (make_pipeline(StandardScaler(), KernelRidge(kernel="poly", degree=3)), Y),
    (make_pipeline(PolynomialFeatures(2), Ridge()), Y),
    (make_pipeline(StandardScaler(), PoissonRegressor()), COUNTS),
    (RandomForestRegressor(10, max_depth=5, random_state=0), Y),
    (GradientBoostingRegressor(n_estimators=20, random_state=0), Y),
    (make_pipeline(PowerTransformer(), Ridge()), Y),
    (make_pipeline(SplineTransformer(n_knots=4), Ridge()), Y),
    (make_pipeline(FunctionTransformer(np.cos), Ridge()), Y),
]


@pytest.mark.parametrize(("model", "target"), MODELS)
def test_draws_tend_to_the_limits_of_models(model, target):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        function = po.wrap(model.fit(X, target))
    draws_agree(function, LAW, X[:2])


@pytest.mark.parametrize("model", [Ridge(), SVR()])
def test_draws_tend_to_the_limits_of_models_of_tables(model):
    function = po.wrap(behind_columns(model).fit(TABLE, LEVEL), data=TABLE)
    points, _ = function.read(TABLE)
    law = TabularLaw.from_data(TABLE, function.schema)
    draws_agree(function, law, points[:2])


TERMS = [np.sin, np.square, lambda x: np.exp(-np.abs(x)), np.cos]


@pytest.mark.parametrize("width", [0.5, 2.0])
def test_draws_tend_to_the_limits_of_terms(width):
    for kind in (Additive, Multiplicative):
        draws_agree(kind(TERMS, knots={2: [0.0]}), LAW.with_width(width), X[:2])


def test_limits_of_additive_functions_do_not_depend_on_the_width():
    exact = ExactLimits(Additive(TERMS, base=0.3, knots={2: [0.0]}).products, LAW)
    rows = np.repeat(X[:1], 3, axis=0)
    result = exact.of(rows, np.array([0.2, 1.5, 1e6]))
    both = np.column_stack([result.coefficients, result.intercept])
    np.testing.assert_allclose(both, both[[0, 0, 0]], rtol=1e-12)


def limits_of(model, law=LAW, rows=X[:5]):
    return ExactLimits(po.wrap(model).products, law).of(rows)


def test_models_that_are_constant_have_no_coefficients():
    for model in (Lasso(alpha=1e6), make_pipeline(StandardScaler(), Lasso(alpha=1e6))):
        result = limits_of(model.fit(X, Y))
        assert (result.coefficients == 0.0).all()
        np.testing.assert_allclose(result.intercept, Y.mean())
    for level in (-1e3, 0.1, 7.0):
        tree = DecisionTreeRegressor().fit(X, np.full(N, level))
        result = limits_of(tree, TabularLaw.from_data(X, n_bins=3))
        rounding = 1e-15 * abs(level)  # of means in leaves
        np.testing.assert_allclose(result.coefficients, 0.0, atol=rounding)
        np.testing.assert_allclose(result.intercept, level, rtol=1e-14)


def test_columns_that_a_model_ignores_have_exactly_zero():
    tree = DecisionTreeRegressor(max_depth=3).fit(X[:, :2], Y)
    assert po.wrap(lambda data: tree.predict(data[:, :2])).products.reason
    for model, unused in (
        (DecisionTreeRegressor(max_depth=3).fit(X * [1, 1, 0, 0], Y), [2, 3]),
        (make_pipeline(StandardScaler(), Ridge()).fit(X * [1, 0, 1, 0], Y), [1, 3]),
    ):
        zero = limits_of(model, rows=X[:20]).coefficients == 0.0
        assert (zero == np.isin(np.arange(D), unused)).all()


def test_limits_of_a_sum_are_the_sum_of_limits():
    """β^{f+g} = β^f + β^g, of a vote of a tree, a kernel machine and a line."""
    members = [
        ("line", make_pipeline(StandardScaler(), Ridge())),
        ("tree", DecisionTreeRegressor(max_depth=5, random_state=0)),
        ("machine", make_pipeline(StandardScaler(), SVR())),
    ]
    vote = VotingRegressor(members, weights=[1.0, 2.0, 3.0]).fit(X, Y)
    parts = [limits_of(member).coefficients for member in vote.estimators_]
    expected = sum(w / 6.0 * part for w, part in zip([1, 2, 3], parts, strict=True))
    result = limits_of(vote).coefficients
    np.testing.assert_allclose(result, expected, rtol=0, atol=1e-13)


def test_a_tree_has_the_limits_of_its_refinement_by_the_grid():
    """Corollary 7, with Proposition 6 for each piece of a leaf in a cell of the grid.

    Uniform weights of p bins; pieces are aligned with the row in a column if they are
    in its bin, and are apart by the number of columns in which they are not.
    """
    p, width, d = 3, 1.1, 3
    data = np.random.default_rng(2).uniform(-1, 1, size=(300, d))
    model = DecisionTreeRegressor(max_depth=4, random_state=0)
    model.fit(data, data[:, 0] * data[:, 1] + np.sign(data[:, 2]))
    law = TabularLaw.from_data(data, n_bins=p, weights="uniform").with_width(width)
    row, boxes = data[:1], po.wrap(model).boxes
    result = ExactLimits(boxes, law).of(row)

    eps = np.exp(-0.5 / width**2)
    c = 1 / p + (1 - 1 / p) * eps
    own = [c.place(x)[0] for c, x in zip(law.columns, row.T, strict=True)]
    beta, intercept = np.zeros(d), boxes.base
    for path, value in zip(boxes.paths, boxes.values, strict=True):
        shares = shares_of_leaf(boxes.sets, path[path >= 0], law)
        for cell in itertools.product(range(p), repeat=d):
            mass = np.prod(shares[np.arange(d), cell])
            aligned = np.array(cell) == own
            apart = int((~aligned).sum())
            inside = mass * eps**apart / (p * c) ** (d - 1)
            outside = -mass * eps ** (apart - 1) / ((p - 1) * (p * c) ** (d - 1))
            piece = np.where(aligned, inside, outside)
            beta += value * piece
            intercept += value * mass * eps**apart / (p * c) ** d
            intercept -= value * piece.sum() / (p * c)
    np.testing.assert_allclose(result.coefficients[0], beta, rtol=0, atol=1e-12)
    np.testing.assert_allclose(result.intercept[0], intercept, rtol=0, atol=1e-12)


def shares_of_leaf(sets, path, law):
    """The share of a leaf in each bin of each column, (D, p)."""
    shares = []
    for j, column in enumerate(law.columns):
        own = [u for u in path if sets.column[u] == j]
        low, high = (sets.low[own[0]], sets.high[own[0]]) if own else (-np.inf, np.inf)
        ends = (np.full(len(column.pieces), end) for end in (low, high))
        shares.append(column.pieces.normals.shares(*ends))
    return np.array(shares)


# ---- laws of laws


@given(seed=st.integers(0, 50), p=st.integers(2, 6), nu=st.floats(0.05, 50.0))
def test_coefficients_are_within_the_bounds_of_stability(seed, p, nu):
    """|β_j| ≤ 2‖f‖ and |β_0| ≤ (1 + 2 Σ α_j) ‖f‖: also of differences f − g."""
    rng = np.random.default_rng(seed)
    rows = [rng.normal(size=150), rng.lognormal(size=150), rng.choice(4, size=150)]
    data = np.column_stack(rows)
    y = data[:, 0] * data[:, 1] + rng.normal(size=150)
    model = DecisionTreeRegressor(max_depth=4, random_state=seed).fit(data, y)
    law = TabularLaw.from_data(data, n_bins=p).with_width(nu)
    result, largest = limits_of(model, law, data[:7]), np.abs(model.predict(data)).max()
    assert (np.abs(result.coefficients) <= 2.0 * largest * (1 + 1e-12)).all()
    bounds = (1.0 + 2.0 * result.alpha.sum(axis=1)) * largest
    assert (np.abs(result.intercept) <= bounds * (1 + 1e-12)).all()


@given(order=st.permutations([0, 1, 2]), seed=st.integers(0, 50))
def test_columns_in_another_order_have_the_same_coefficients(order, seed):
    data = np.random.default_rng(seed).normal(size=(60, 3))
    y = data @ [1.0, -2.0, 0.5] + data[:, 0] * data[:, 1]
    law = TabularLaw.from_data(data, n_bins=3, kernel_width=0.7)
    model = DecisionTreeRegressor(max_depth=3, random_state=0).fit(data, y)
    turned = copy.deepcopy(model)  # the same tree, of columns in another order
    state, place = turned.tree_.__getstate__(), np.argsort(order)
    feature = state["nodes"]["feature"]
    state["nodes"]["feature"] = np.where(feature >= 0, place[feature], feature)
    turned.tree_.__setstate__(state)
    np.testing.assert_array_equal(turned.predict(data[:, order]), model.predict(data))
    result = limits_of(model, law, data[:5])
    other = limits_of(turned, law.reordered(np.array(order)), data[:5, order])
    expected = result.coefficients[:, order]
    np.testing.assert_allclose(other.coefficients, expected, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(other.mean, result.mean, rtol=1e-12)
