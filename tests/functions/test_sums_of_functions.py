"""Sums and scalings of functions: what changed between models, means of several."""

import pickle

import numpy as np
import pandas as pd
import pytest
from refusals import refusals
from sklearn import ensemble
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVR

import propopt as po
from propopt.base.errors import InvalidInput


RNG = np.random.default_rng(7)
X = RNG.normal(size=(120, 4)).round(2)
Y = X[:, 0] * X[:, 1] + np.sin(X[:, 2]) + 0.1 * RNG.normal(size=120)
FEW = X[:12]
FRAME = pd.DataFrame(X, columns=["age", "dose", "bmi", "pulse"])
FRAME["job"] = RNG.choice(["nurse", "cook", "clerk"], size=len(FRAME))
LABELS = (Y + (FRAME["job"] == "cook") > 0).astype(int)
CLOSE = 1e-12
"""Relative: sums of the same numbers in another order."""


def forest(seed=0):
    return ensemble.RandomForestRegressor(8, max_depth=4, random_state=seed).fit(X, Y)


def versions(n=120):
    """Log-odds of a boosted model of tables with categories, of two versions."""
    features = FRAME.assign(job=FRAME["job"].astype("category"))
    return [
        po.wrap(
            ensemble.HistGradientBoostingClassifier(
                max_iter=k, max_leaf_nodes=6, categorical_features=[4]
            ).fit(features[:m], LABELS[:m]),
            output="log_odds",
            data=features,
            outcome="sick",
        )
        for k, m in ((10, n), (14, len(X)))
    ] + [features]


def assert_same(one, other, scale=None):
    size = np.abs(other if scale is None else scale).max()
    assert size > 0.0
    np.testing.assert_allclose(one, other, rtol=0.0, atol=CLOSE * size)


@pytest.fixture(scope="module")
def f():
    settings = {"n_estimators": 15, "random_state": 0, "subsample": 0.7}
    return po.wrap(ensemble.GradientBoostingRegressor(**settings).fit(X, Y))


@pytest.fixture(scope="module")
def g():
    return po.wrap(SVR(C=3.0).fit(X, Y))


def test_sums_are_what_numbers_make_of_them(f, g):
    a, b = f.value(FEW), g.value(FEW)
    for made, expected in (
        (f + g, a + b),
        (f - g, a - b),
        (-f, -a),
        (2 * f, 2 * a),
        (f * 2, 2 * a),
        (np.float64(2.0) * f, 2 * a),
        (f / 4, a / 4),
        ((f + 3.0) / 4, (a + 3.0) / 4),
        (f + 3.0, a + 3.0),
        (3 + f, a + 3.0),
        (3 - f, 3.0 - a),
        (f - np.float64(3.0), a - 3.0),
        (sum([f, g]), a + b),
        (sum([f, g, f]) / 3, (2 * a + b) / 3),
        (0.3 * (f - 2 * (g + 1)) + f, 1.3 * a - 0.6 * (b + 1)),
    ):
        assert_same(made.value(FEW), expected, np.abs(a) + np.abs(b) + 3)


def test_gradients_are_sums_of_gradients(g):
    ridge = po.wrap(Ridge().fit(X, Y))
    made = ridge - 0.5 * g + 7.0
    assert made.gradient_method == "exact"
    assert_same(made.gradient(FEW), ridge.gradient(FEW) - 0.5 * g.gradient(FEW))
    estimate = made.estimate(FEW)
    assert estimate.exact
    assert estimate.source == "exact"
    assert estimate.quantity == made.quantity


def test_sums_of_sums_are_flat_and_are_pickled(f, g):
    made = (f + g) - 2 * (g - (f + 1.0))
    assert made.as_sum == (((3.0, f), (-1.0, g)), 2.0)
    assert sum([f]) is f
    assert -1 * -f is f
    assert f + 0 is f
    assert (f - f).value(FEW).tolist() == [0.0] * len(FEW)
    again = pickle.loads(pickle.dumps(made))
    assert np.array_equal(again.value(FEW), made.value(FEW))
    assert again.quantity == made.quantity
    formulas = 2 * po.functions.Power(degree=2) + po.functions.Sine()
    read = formulas.products_in(4)
    assert_same(read.value(FEW), (2 * FEW**2 + np.sin(FEW)).sum(axis=1))
    assert "any number" in formulas.products.reason


SIGNS = ["f + x", "x + f", "f - x", "x - f", "f * x", "f / x", "f * f"]


@pytest.mark.parametrize("x", ["f", None, [1.0], np.ones(3), LinearRegression()])
@pytest.mark.parametrize("line", SIGNS)
def test_what_is_no_term_is_an_error(f, x, line):
    with pytest.raises(TypeError):
        eval(line, {"f": f, "x": x})


def test_a_call_asks_each_part_once():
    requested = []
    slow = po.wrap(lambda X: (requested.append(len(X)), X[:, 0])[1])
    other = po.wrap(SVR().fit(X, Y))
    made = slow + 2 * (other - 3 * slow)
    made.value(FEW)
    tries = [3, 3]  # the first rows twice, once in the life of the function
    assert requested == [len(FEW), *tries]
    assert (slow.calls.rows, slow.calls.trials, other.calls.rows) == (12, 6, 12)
    assert (made.calls.rows, made.calls.trials) == (12, 6)
    with made.calls.as_trial():
        made.value(FEW)
    assert (slow.calls.rows, slow.calls.trials) == (12, 18)
    assert (made.calls.rows, made.calls.trials) == (12, 18)
    heard = []
    with made.calls.notifying(heard.append):
        made.value(FEW)
        made.value(FEW)
    assert heard == [12, 24]


def test_boxes_and_products_are_summed_where_all_parts_have_some(f, g):
    other = po.wrap(forest())
    made = 2 * f - other + 1.5
    assert made.piecewise_constant
    assert_same(made.boxes.value(FEW), made.value(FEW))
    assert_same(made.margin_boxes.value(FEW), made.value(FEW))
    made = f - 3 * g + 1.0
    assert made.boxes is None
    assert not made.piecewise_constant
    assert_same(made.products.value(FEW), made.value(FEW), g.value(FEW))
    made = f - po.functions.Power(degree=2)  # which has the columns of the model
    assert_same(made.products.value(FEW), made.value(FEW), f.value(FEW))
    made = f + po.wrap(lambda X: X[:, 0])
    assert made.boxes is None
    assert "can only be called" in made.products.reason


def slopes(function, data, rows, **settings):
    given = settings or {"law": "data", "data": data}
    return po.functions.smoothed(function, **given).estimate(rows)


@pytest.mark.parametrize("pair", ["trees", "trees and kernels"])
def test_slopes_shapley_values_and_limits_of_lime_are_linear(f, g, pair):
    other = po.wrap(forest()) if pair == "trees" else g
    three = (f - 2 * other, f, other)
    for settings in ({}, {"scale": 0.5}):
        whole, first, second = (slopes(h, X, FEW, **settings) for h in three)
        assert whole.exact
        assert_same(whole.values, first.values - 2 * second.values, first.values)
    whole, first, second = (
        po.explain(h, FEW, data=X, kind="contributions", robustness=0.0) for h in three
    )
    assert whole.target.source.startswith("exact")
    assert_same(whole.contributions, first.contributions - 2 * second.contributions)
    assert_same(whole.base_value, first.base_value - 2 * second.base_value)
    whole, first, second = (po.lime.limits(h, FEW, data=X) for h in three)
    assert whole.is_exact
    assert_same(whole.coefficients, first.coefficients - 2 * second.coefficients)
    assert_same(whole.intercept, first.intercept - 2 * second.intercept)


def test_what_changed_between_two_versions_of_a_table_with_categories():
    old, new, table = versions(80)
    made, rows = new - old, table[:10]
    best = po.explain(made, rows, data=table, robustness=0.0, kind="slopes")
    assert best.target.source == "exact (computed from the model)"
    whole, first, second = (slopes(h, table, rows) for h in (made, new, old))
    assert_same(whole.values, first.values - second.values)
    assert whole.effects[:, 4].all()
    assert not whole.effects[:, :4].any()


def test_errors_of_sums_are_those_of_blocks(f):
    drawn = po.functions.smoothed(po.wrap(lambda X: X[:, 0] ** 2), law="data", data=X)
    exact = po.functions.smoothed(f, law="data", data=X)
    one, both = drawn.estimate(FEW), (exact - 2 * drawn).estimate(FEW)
    assert not both.exact
    assert_same(both.standard_errors, 2 * one.standard_errors)
    assert_same(both.values, exact.gradient(FEW) - 2 * one.values)
    assert both.evaluations == one.evaluations
    unknown = (po.wrap(lambda X: X[:, 0]) + exact).estimate(FEW)
    assert unknown.standard_errors is None
    assert not unknown.exact


def test_jumps_are_those_of_the_sum(f, g):
    assert (f - po.wrap(forest())).jumps_at(X) is None  # known to be flat
    smooth = g + po.wrap(lambda X: X[:, 0] ** 2)
    assert smooth.jumps is None
    assert smooth.jumps_at(X).kind == "smooth"
    assert smooth.jumps.kind == "smooth"
    assert smooth.calls.rows == 0
    assert smooth.calls.trials >= smooth.jumps.evaluations
    assert (0.01 * g + f).jumps_at(X).kind == "jumps"
    assert (po.wrap(Ridge().fit(X, Y)) + g).jumps_at(X) is None  # exact


def of_columns(*names, read=True):
    table = FRAME[list(names)]
    return po.wrap(Ridge().fit(table, Y), data=table if read else None)


def of_table(table):
    return po.wrap(lambda rows: rows["age"].to_numpy(), data=table)


TURNED = pd.Categorical(FRAME["job"], categories=["nurse", "cook", "clerk"])
DOSE, BMI = of_columns("age", "dose"), of_columns("age", "bmi")
DOSE_FITTED = of_columns("age", "dose", read=False)
BMI_FITTED = of_columns("age", "bmi", read=False)
JOBS, COOKS = of_table(FRAME), FRAME["job"] == "cook"
TEXTS = ["good food and good wine", "no food", "bad wine, no good", "food food wine"]
LIKED = [1, 0, 0, 1]


@pytest.mark.parametrize(("line", "message"), refusals(__file__, "sums"))
def test_other_tables_and_numbers_are_named(f, line, message):
    for sign in "-+":
        with pytest.raises(InvalidInput, match=message):
            eval(line.replace("±", sign), globals() | locals())


def test_tables_may_be_told_to_one_and_have_other_frequencies():
    assert (BMI_FITTED - BMI).schema is BMI.schema
    doubled = pd.concat([FRAME, FRAME[COOKS]])
    assert (JOBS - of_table(doubled)).schema is not None


def of_texts(vectoriser, C=1.0, data=TEXTS):
    model = make_pipeline(vectoriser, LogisticRegression(C=C)).fit(TEXTS, LIKED)
    return po.wrap(model, output="log_odds", data=data)


def test_functions_of_texts_are_summed():
    one = of_texts(TfidfVectorizer(token_pattern=r"\w+"))
    other = of_texts(CountVectorizer(token_pattern=r"\w+"), C=0.3)
    made = one - 2 * other + 1.0
    assert made.as_sum == (((1.0, one), (-2.0, other)), 1.0)
    assert_same(made.value(TEXTS), one.value(TEXTS) - 2 * other.value(TEXTS) + 1)
    assert_same(made.gradient(TEXTS), one.gradient(TEXTS) - 2 * other.gradient(TEXTS))
    assert (made.calls.rows, one.calls.trials) == (4 + 4 + 12, 6)
    assert made.calls.trials == 0  # its parts were tried
    with made.calls.as_trial():
        made.value(TEXTS)
    assert (made.calls.rows, made.calls.trials, one.calls.trials) == (20, 4, 10)
    document = made.text_schema.documents[0]
    bits = np.array([[1, 1, 0, 0], [0, 1, 1, 1], [1, 1, 1, 1]], bool)
    retained = [h.subsets(document).value(bits) for h in (made, one, other)]
    assert_same(retained[0], retained[1] - 2 * retained[2] + 1.0)
    whole, first, second = (po.lime.text_limits(h, TEXTS) for h in (made, one, other))
    assert whole.is_exact
    for row, a, b in zip(
        whole.coefficients, first.coefficients, second.coefficients, strict=True
    ):
        assert_same(row, a - 2 * b)
    # a sum is read where all parts are
    read = of_texts(CountVectorizer(token_pattern=r"\w+"))
    called = po.wrap(lambda texts: [len(t) for t in texts], data=read.text_schema)
    made = read + called
    assert not made.has_structure
    assert made.structure is called.structure
    assert_same(made.value(TEXTS), read.value(TEXTS) + [len(t) for t in TEXTS])
