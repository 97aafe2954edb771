"""What limits are asked for and given: exact where they can be, estimated elsewhere."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import GradientBoostingClassifier, RandomForestRegressor
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import SplineTransformer, StandardScaler
from sklearn.tree import DecisionTreeRegressor

import propopt as po
from propopt.base.errors import InexactBoxesWarning, InvalidInput
from propopt.functions.formulas import Additive
from propopt.lime import LimeExplainer, TabularLaw, explaining_rows, limits


@pytest.fixture
def table(rng):
    return rng.uniform(-10.0, 10.0, (400, 4))


@pytest.fixture
def forest(table):
    y = table[:, 0] * (table[:, 1] > 0.0) + table[:, 2]
    return RandomForestRegressor(10, max_depth=5, random_state=0).fit(table, y)


def test_a_forest_is_exact_and_does_not_depend_on_the_seed(forest, table):
    one, other = (limits(forest, table[:5], data=table, rng=seed) for seed in (0, 1))
    assert one.source == "exact"
    assert one.standard_errors is None
    assert one.reason == ""
    assert (one.coefficients == other.coefficients).all()
    assert (one.intercept == other.intercept).all()


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


def test_the_margin_of_a_boosted_classifier_is_exact(table):
    y = (table[:, 0] * table[:, 1] > 0.0).astype(int)
    model = GradientBoostingClassifier(n_estimators=5, random_state=0).fit(table, y)
    result = limits(model, table[:2], data=table)
    assert result.source == "exact"
    assert result.values == pytest.approx(model.decision_function(table[:2]))


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
        ((forest, table[:1]), {}, "give the table"),
        ((three, table[:2, :3], law), {}, "it has 4 columns, and X has 3"),
        ((forest, table[:1], "tabular"), {"data": table}, r"a law .* got str"),
        ((huge, table[:1]), {"data": table}, "has no square; divide the output"),
    ):
        with pytest.raises(InvalidInput, match=message):
            limits(*arguments, **settings)


@pytest.mark.parametrize("scale", [2.0**-1000, 2.0**900])
def test_the_unit_of_a_column_changes_nothing(scale, table):
    f, scaled = (LinearRegression().fit(table, table[:, 0]) for _ in range(2))
    f.coef_, scaled.coef_ = np.eye(4)[0], np.eye(4)[0] / scale
    own = limits(f, table[:3], data=table).coefficients
    other = limits(scaled, table[:3] * scale, data=table * scale).coefficients
    assert other == pytest.approx(own, rel=1e-9)


# ---- functions whose means no quadrature finds


def wild(x):
    return np.sin(1e6 * x) + x


def test_what_quadrature_does_not_find_is_estimated_and_says_so():
    X = np.random.default_rng(0).normal(size=(200, 2))
    f, tame = (
        Additive([rule, np.abs], knots={1: [0.0]}) for rule in (wild, lambda x: x)
    )
    lime = limits(f, X[:2], data=X, n_samples=2000)
    assert not lime.is_exact
    assert "column 0" in lime.reason
    assert "quadrature" in lime.reason
    assert lime.subject.exact is None
    # 6 standard errors of 4 coefficients: a false alarm in 10^8
    apart = np.abs(lime.coefficients - limits(tame, X[:2], data=X).coefficients)
    assert (apart < 6.0 * lime.standard_errors).all()
    assert (lime.standard_errors > 0.0).any()
    quiet = {item.rule: item.sentence for item in lime.diagnose().quiet}
    assert "estimated" in quiet["bandwidth fragility"]
    # one row refused is a table estimated
    end = TabularLaw.from_data(X[:, :1]).columns[0].edges[-1]
    f = Additive([lambda x: np.sin(1e6 * x) * (x > end)], knots={0: [end]})
    assert not limits(f, X[:3, :1], data=X[:, :1], n_samples=200).is_exact


@pytest.mark.parametrize("steps", [[], [StandardScaler()]])
def test_a_model_on_splines_is_exact(steps, rng):
    X = rng.lognormal(0.0, 1.0, (300, 3)) + 100.0
    steps = [*steps, SplineTransformer(n_knots=5, degree=1), Ridge(0.1)]
    model = make_pipeline(*steps).fit(X, np.sin(X[:, 0]) + X[:, 1])
    result = limits(model, X[:2], data=X, n_samples=500)
    assert result.source == "exact"
    samples = result.law.draw_weighted(X[:2], 40_000, np.random.default_rng(0))
    for n in range(2):
        f, bits = model.predict(samples.samples[n]), samples.bits[n].astype(bool)
        for j, beta in enumerate(result.coefficients[n]):
            sides = f[bits[:, j]], f[~bits[:, j]]
            error = np.hypot(*(side.std() / len(side) ** 0.5 for side in sides))
            # 6 scores: one above 5 once in 290,000 seeds
            assert abs(sides[0].mean() - sides[1].mean() - beta) < 5.0 * error


def test_knots_behind_a_scaler_are_where_the_table_has_them(rng):
    X = rng.normal(1e6, 3.0, (200, 2))
    model = make_pipeline(StandardScaler(), SplineTransformer(n_knots=4), Ridge(0.1))
    products = po.wrap(model.fit(X, X[:, 0]), data=X).products
    scaler, splines = model[0], model[1]
    for factors in products.factors:
        for column, knots in zip(factors.column, factors.knots, strict=True):
            own = splines.bsplines_[column].t * scaler.scale_[column]
            expected = np.unique(own + scaler.mean_[column])
            assert knots == pytest.approx(expected, rel=1e-14)


# ---- a model that is read once


@pytest.mark.parametrize("called", [False, True])
def test_a_model_that_is_read_once_has_the_numbers_of_limits(
    forest, table, called, monkeypatch
):
    model = forest.predict if called else forest
    read, times = explaining_rows.checked_products, []
    monkeypatch.setattr(
        explaining_rows, "checked_products", lambda *a: times.append(1) or read(*a)
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
    message = r"answers otherwise .* make po.lime.LimeExplainer"
    with pytest.raises(InvalidInput, match=message):
        lime.limits(table[:2])


def test_names_of_rows_are_those_of_each_call(table):
    frame = pd.DataFrame(table, columns=list("abcd"))
    forest = RandomForestRegressor(3, random_state=0).fit(frame, table[:, 0])
    lime = LimeExplainer(forest, frame)
    assert lime.limits(frame.iloc[[7]]).labels.points == (7,)
    assert lime.limits(frame.iloc[[3, 9]]).labels.points == (3, 9)
    with pytest.raises(InvalidInput, match="missing: 'a'; unexpected: 'z'"):
        lime.limits(frame.rename(columns={"a": "z"}))


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
