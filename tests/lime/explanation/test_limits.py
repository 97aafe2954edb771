"""What limits are asked for and given: exact where they can be, estimated elsewhere."""

import numpy as np
import pandas as pd
import pytest
from lime_functions import Known
from normal_samples import weighted_fit, with_intercept
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import RandomForestRegressor
from sklearn.impute import SimpleImputer
from sklearn.linear_model import Lasso, LinearRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, SplineTransformer, StandardScaler
from sklearn.svm import SVR
from sklearn.tree import DecisionTreeRegressor

import propopt as po
from propopt.base.errors import InexactBoxesWarning, InvalidInput
from propopt.lime import GlimeLaw, LimeExplainer, TabularLaw, explaining, limits
from propopt.structures.products.families import Curves
from propopt.structures.products.sums import SumOfProducts


@pytest.fixture
def table(rng):
    return rng.uniform(-10.0, 10.0, (400, 4))


@pytest.fixture
def forest(table):
    y = table[:, 0] * (table[:, 1] > 0.0) + table[:, 2]
    return RandomForestRegressor(10, max_depth=5, random_state=0).fit(table, y)


def test_what_can_only_be_called_is_estimated_and_says_why(forest, table):
    exact = limits(forest, table[:3], data=table)
    called = limits(forest.predict, table[:3], data=table, n_samples=4000)
    assert called.source.startswith("estimate")
    assert "can only be called" in called.reason
    assert called.evaluations == 3 * 4000 + 3
    z = (called.coefficients - exact.coefficients) / called.standard_errors
    # 12 scores with 19 degrees of freedom: one above 6 once in 9,000 seeds
    assert np.abs(z).max() < 6.0
    assert np.sqrt((z**2).mean()) > 0.3
    # an estimate is the same for the same seed
    one, same, other = (
        limits(forest.predict, table[:2], rng=seed, data=table, n_samples=500)
        for seed in (3, 3, 4)
    )
    assert (one.coefficients == same.coefficients).all()
    assert (one.coefficients != other.coefficients).all()


def test_names_categories_and_gaps_come_through():
    ages = [20.0, 30.0, np.nan, 50.0, 60.0, 70.0]
    X = pd.DataFrame({"age": ages, "town": list("abcabc")}, index=list("uvwxyz"))
    f = po.wrap(lambda X: X["age"].fillna(0.0) + (X["town"] == "a"), data=X)
    result = limits(f, X, n_samples=500)
    frame = result.to_frame()
    assert frame["row"].tolist() == [name for name in "uvwxyz" for _ in range(2)]
    assert frame["value"].tolist()[:6] == [20.0, "a", 30.0, "b", None, "c"]
    assert frame["bin"][4] == "missing"
    assert frame["bin"][1] == "= a"
    assert result.as_list("u")[0][0] in ("age ≤ 30", "town = a")


def test_what_is_no_question_is_refused(forest, table):
    law = TabularLaw.from_data(table)
    tree = DecisionTreeRegressor(max_depth=2)
    three = tree.fit(table[:, :3], table[:, 0])
    huge = DecisionTreeRegressor(max_depth=2).fit(table, 1e160 * table[:, 0])
    for arguments, settings, message in (
        ((forest, table[:1]), {}, "give the training data"),
        ((three, table[:2, :3], law), {}, "it has 4 columns, and X has 3"),
        ((forest, table[:1], "tabular"), {"data": table}, r"a law .* got str"),
        (
            (huge, table[:1]),
            {"data": table},
            "expected values below .*; divide the output",
        ),
    ):
        with pytest.raises(InvalidInput, match=message):
            limits(*arguments, **settings)


@pytest.mark.parametrize("scale", [2.0**-1000, 2.0**900])
def test_the_unit_of_a_column_changes_nothing(scale, table):
    f, scaled = (LinearRegression().fit(table, table[:, 0]) for _ in range(2))
    f.coef_, scaled.coef_ = np.eye(4)[0], np.eye(4)[0] / scale
    unscaled = limits(f, table[:3], data=table).coefficients
    other = limits(scaled, table[:3] * scale, data=table * scale).coefficients
    assert other == pytest.approx(unscaled, rel=1e-9)


def additive(terms, knots):
    """Σ_j terms[j](x_j), with the knots of each term."""
    curves = Curves(np.arange(len(terms)), tuple(terms), tuple(map(np.array, knots)))
    weights = np.ones(len(terms))
    return Known(SumOfProducts.additive(0.0, weights, curves, len(terms)))


def test_what_quadrature_does_not_find_is_estimated_and_says_so():
    X = np.random.default_rng(0).normal(size=(200, 2))
    rules = (lambda x: np.sin(1e6 * x) + x, lambda x: x)
    f, tame = (additive([rule, np.abs], [[], [0.0]]) for rule in rules)
    lime = limits(f, X[:2], data=X, n_samples=2000)
    assert not lime.is_exact
    assert "column 0" in lime.reason
    assert "quadrature" in lime.reason
    assert lime.subject.exact is None
    # 6 standard errors of 4 coefficients: a false alarm in 10^8
    apart = np.abs(lime.coefficients - limits(tame, X[:2], data=X).coefficients)
    assert (apart < 6.0 * lime.standard_errors).all()
    assert (lime.standard_errors > 0.0).any()
    frame = lime.diagnose().to_frame().set_index("rule")
    assert frame.loc["bandwidth fragility", "kind"] == "not checked"
    # one row refused is a table estimated
    end = TabularLaw.from_data(X[:, :1]).columns[0].edges[-1]
    f = additive([lambda x: np.sin(1e6 * x) * (x > end)], [[end]])
    assert not limits(f, X[:3, :1], data=X[:, :1], n_samples=200).is_exact


@pytest.mark.parametrize("called", [False, True])
def test_a_model_that_is_read_once_has_the_numbers_of_limits(
    forest, table, called, monkeypatch
):
    model = forest.predict if called else forest
    read, times = explaining.checked_products, []
    monkeypatch.setattr(
        explaining, "checked_products", lambda *a: times.append(1) or read(*a)
    )
    lime = LimeExplainer(model, table, n_samples=300)
    parts = [lime.limits(table[n : n + 1]) for n in range(3)]
    assert len(times) == 1
    for n, part in enumerate(parts):
        alone = limits(model, table[n : n + 1], data=table, n_samples=300)
        for name in ("coefficients", "intercept", "values", "effective_share"):
            assert (getattr(part, name) == getattr(alone, name)).all()
        assert part.diagnose().to_frame().equals(alone.diagnose().to_frame())
        assert part.bins == alone.bins
    assert parts[0].subject.exact is parts[2].subject.exact
    assert parts[0].subject.common is parts[2].subject.common
    # one that was fitted anew is noticed
    forest.fit(table, table[:, 3])
    message = r"values changed at .* make a new po.lime.LimeExplainer"
    with pytest.raises(InvalidInput, match=message):
        lime.limits(table[:2])


def test_a_row_where_a_model_is_not_what_it_was_read_as_is_sampled(forest, table):
    predict = forest.predict
    forest.predict = lambda X: predict(X) + (X[:, 0] > 9e3)
    lime = LimeExplainer(forest, table, n_samples=200)
    assert lime.limits(table[:1]).is_exact
    far = table[:1] + np.array([1e4, 0.0, 0.0, 0.0])
    with pytest.warns(InexactBoxesWarning):
        odd = lime.limits(far)
    assert not odd.is_exact
    assert "differs" in odd.reason
    assert lime.limits(table[:1]).is_exact


@pytest.mark.parametrize("model", [Ridge(), SVR()])
def test_draws_tend_to_the_limits_of_models_of_tables(model):
    """|z| < 5 of 6 numbers for each row: false alarm below 1e-5."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(300, 4)) * [1, 3, 0.5, 1], columns=list("abcd"))
    X["color"] = rng.choice(["red", "green", "blue"], 300)
    y = np.sin(X["a"]) + 0.2 * X["b"] * X["c"] + 0.5 * (X["color"] == "red")
    X.loc[::9, "b"] = np.nan
    numbers = make_pipeline(SimpleImputer(), StandardScaler())
    parts = [("n", numbers, list("abcd")), ("c", OneHotEncoder(), ["color"])]
    fitted = make_pipeline(ColumnTransformer(parts), model).fit(X, y)
    result = limits(fitted, X[:2], data=X)
    assert result.is_exact
    draws = GlimeLaw(result.law).draw(result.points, 20_000, rng)
    for n, samples in enumerate(draws.samples):
        values = result.subject.evaluate(samples)
        beta, errors = weighted_fit(draws.bits[n], draws.weights[n], values)
        assert np.abs((beta - with_intercept(result, n)) / errors).max() < 5.0


def test_columns_that_a_model_ignores_have_exactly_zero(table):
    y = table[:, :3].sum(axis=1)
    tree = DecisionTreeRegressor(max_depth=3)
    for model, unused in (
        (tree.fit(table * [1, 1, 0, 0], y), [2, 3]),
        (make_pipeline(StandardScaler(), Ridge()).fit(table * [1, 0, 1, 0], y), [1, 3]),
        (Lasso(alpha=1e6).fit(table, y), [0, 1, 2, 3]),
    ):
        result = limits(model, table[:20], data=table)
        zero = result.coefficients == 0.0
        assert (zero == np.isin(np.arange(4), unused)).all()


def test_knots_behind_a_scaler_are_where_the_table_has_them(rng):
    X = rng.normal(1e6, 3.0, (200, 2))
    model = make_pipeline(StandardScaler(), SplineTransformer(n_knots=4), Ridge(0.1))
    products = po.wrap(model.fit(X, X[:, 0]), data=X).products
    for factors in products.factors:
        for column, knots in zip(factors.column, factors.knots, strict=True):
            knots_after = model[1].bsplines_[column].t * model[0].scale_[column]
            expected = np.unique(knots_after + model[0].mean_[column])
            assert knots == pytest.approx(expected, rel=1e-14)
