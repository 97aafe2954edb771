"""Models of tables with text, categories and codes: what they see, and explanations."""

from __future__ import annotations

import itertools
import math
import pickle
from dataclasses import dataclass, field

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import propopt as po
from propopt import batches
from propopt.batches import Budget
from propopt.errors import FlatFunctionWarning, InvalidInput
from propopt.explainers import (
    Baseline,
    Gradient,
    Lime,
    LimePackage,
    Shap,
    SmoothGrad,
)
from propopt.functions import calls
from propopt.sampling import perturbations
from propopt.tables.names import Labels


# Bound on |error| / standard error: one entry in 5e8 fails by chance, and the seeds are
# fixed, hence a test that passes keeps passing.
Z = 6.0

N = 120
RNG = np.random.default_rng(5)
X = pd.DataFrame(
    {
        "age": RNG.integers(18, 80, N),
        "bmi": RNG.normal(25.0, 4.0, N),
        "colour": RNG.choice(["red", "green", "blue"], N, p=[0.5, 0.3, 0.2]),
        "job": RNG.choice([1, 2, 7], N),
        "size": pd.Categorical(RNG.choice(list("sl"), N), categories=list("sml")),
        "smokes": RNG.random(N) < 0.3,
    },
    index=[f"p{n}" for n in range(N)],
)
Y = (X["bmi"] + 3 * (X["colour"] == "red") + X["job"] + 4 * X["smokes"] > 28).to_numpy()
NUMBERS = ["age", "bmi"]
CATEGORIES = ["colour", "job", "size", "smokes"]


def one_hot_logistic():
    encoder = OneHotEncoder(handle_unknown="ignore")
    columns = ColumnTransformer(
        [("n", StandardScaler(), NUMBERS), ("c", encoder, CATEGORIES)]
    )
    return make_pipeline(columns, LogisticRegression())


@dataclass(eq=False)
class Spy(ClassifierMixin, BaseEstimator):
    """A classifier that refuses tables of other columns or dtypes, and counts rows."""

    model: object = None
    sizes: list[int] = field(default_factory=list)

    def fit(self, X, y):
        self.like_ = X.iloc[:0]
        self.fitted_ = self.model.fit(X, y)
        self.classes_ = self.fitted_.classes_
        return self

    def predict_proba(self, X):
        assert isinstance(X, pd.DataFrame)
        assert list(X.columns) == list(self.like_.columns)
        for label, dtype in self.like_.dtypes.items():
            # a shifted or average age is no whole number
            assert X[label].dtype == dtype or (
                label == "age" and X[label].dtype == float
            )
        self.sizes.append(len(X))
        return self.fitted_.predict_proba(X)


@pytest.fixture
def spy():
    return Spy(one_hot_logistic()).fit(X, Y)


@pytest.fixture
def function(spy):
    schema = po.TableSchema.of(X, categorical=["job"])
    return po.wrap(spy, output="log_odds", data=schema)


def contributions(model, label):
    """β_c of every category of a column, in the units of the log-odds."""
    names = model[0].get_feature_names_out()
    coefficients = dict(zip(names, model[1].coef_[0], strict=True))
    return {c: coefficients.get(f"c__{label}_{c}", 0.0) for c in X[label].unique()}


def closed_form(model):
    """Slopes of numbers, Σ_c β_c (1[x = c] − p_c) of categories: (N, 6)."""
    expected = pd.DataFrame(index=X.index, columns=X.columns, dtype=float)
    scaler = model[0].named_transformers_["n"]
    for j, label in enumerate(NUMBERS):
        expected[label] = model[1].coef_[0][j] / scaler.scale_[j]
    for label in CATEGORIES:
        parts = X[label].map(contributions(model, label)).astype(float)
        expected[label] = parts - parts.mean()
    return expected


@pytest.fixture
def expected(spy):
    return closed_form(spy.fitted_)


def additive(frame):
    """A function of a DataFrame that is linear in indicators, and in age."""
    parts = {"red": 1.0, "green": -2.0, "blue": 0.5}
    jobs = {1: 0.0, 2: 3.0, 7: -1.0}
    return (
        0.5 * frame["age"]
        + frame["colour"].map(parts).astype(float)
        + frame["job"].map(jobs).astype(float)
    ).to_numpy()


SMALL = X[["age", "colour", "job"]]


def interacting(frame):
    return frame["age"] * (frame["colour"] == "red") + (frame["job"] == 2) * 3.0


@pytest.fixture
def simple():
    return po.wrap(additive, data=po.TableSchema.of(SMALL, categorical=["job"]))


def worst_z(explanation, truth):
    error = np.abs(explanation.attributions - truth)
    return float((error / explanation.standard_errors).max())


# --- values and gradients


def test_values_are_those_of_the_pipeline(spy, function):
    logits = spy.fitted_.decision_function(X)
    np.testing.assert_allclose(function.value(X), logits, rtol=1e-9, atol=1e-9)


def test_gradients_are_slopes_of_numbers_and_effects_of_categories(function, expected):
    found = function.gradient(X)
    pd.testing.assert_frame_equal(found, expected, rtol=1e-7, atol=1e-8)


def test_the_effect_does_not_depend_on_the_category_that_is_left_out():
    for drop in ("first", [2]):
        dummies = pd.get_dummies(X["job"]).astype(float)
        kept = dummies.columns[1:] if drop == "first" else [1, 7]
        target = X["job"].map({1: 0.0, 2: 3.0, 7: -1.0}).to_numpy()
        model = LinearRegression().fit(dummies[kept].to_numpy(), target)

        def value(frame, model=model, kept=kept):
            columns = [(frame["job"] == c).astype(float) for c in kept]
            return model.predict(np.column_stack(columns))

        schema = po.TableSchema.of(X[["job"]], categorical=["job"])
        found = po.wrap(value, data=schema).gradient(X[["job"]])
        np.testing.assert_allclose(found["job"], target - target.mean(), atol=1e-9)


def test_columns_that_encode_one_feature_are_explained_as_one():
    wide = pd.get_dummies(X[["bmi", "colour"]], columns=["colour"])
    members = [label for label in wide if label.startswith("colour")]
    model = LogisticRegression().fit(wide, Y)
    schema = po.TableSchema.of(wide, groups={"colour": members})
    function = po.wrap(model, output="log_odds", data=schema)
    found = function.gradient(wide)
    coefficients = dict(zip(wide.columns, model.coef_[0], strict=True))
    parts = X["colour"].map(lambda c: coefficients[f"colour_{c}"])
    assert list(found.columns) == ["bmi", "colour"]
    np.testing.assert_allclose(found["colour"], parts - parts.mean(), atol=1e-9)
    np.testing.assert_allclose(found["bmi"], coefficients["bmi"], rtol=1e-8)


def test_the_rules_are_told(function):
    assert function.gradient_method == (
        "central differences, step 6.1e-06 · max(1, |x|); "
        "of a category f(x) − Σ_c p_c f(x with c)"
    )
    only = po.wrap(lambda X: np.zeros(len(X)), data=X[["colour"]])
    assert only.gradient_method == "of a category f(x) − Σ_c p_c f(x with c)"


def test_a_table_of_numbers_keeps_the_exact_gradient():
    model = LogisticRegression().fit(X[["bmi"]], Y)
    function = po.wrap(model, output="log_odds", data=X[["bmi"]])
    assert function.gradient_method == "exact"
    assert function.schema is not None
    np.testing.assert_array_equal(
        function.gradient(X[["bmi"]]), np.full((N, 1), model.coef_)
    )
    with pytest.raises(InvalidInput, match="missing: 'bmi'; unexpected: 'age'"):
        function.value(X[["age"]])


def test_a_constant_in_the_numbers_warns():
    flat = po.wrap(lambda X: (X["colour"] == "red").astype(float), data=SMALL)
    with pytest.warns(FlatFunctionWarning):
        flat.gradient(SMALL)


def test_only_categories_do_not_warn():
    red = po.wrap(lambda X: (X["colour"] == "red").astype(float), data=X[["colour"]])
    found = red.gradient(X[["colour"]])["colour"]
    is_red = X["colour"] == "red"
    np.testing.assert_allclose(found, is_red - is_red.mean(), atol=1e-12)


@given(st.randoms(use_true_random=False))
def test_permuted_rows_give_permuted_results(random):
    function = po.wrap(additive, data=po.TableSchema.of(SMALL, categorical=["job"]))
    order = list(range(N))
    random.shuffle(order)
    permuted = SMALL.iloc[order]
    np.testing.assert_array_equal(
        function.value(permuted), function.value(SMALL)[order]
    )
    pd.testing.assert_frame_equal(
        function.gradient(permuted), function.gradient(SMALL).iloc[order]
    )


def test_a_function_of_a_table_survives_pickling(function):
    again = pickle.loads(pickle.dumps(function))
    pd.testing.assert_frame_equal(again.gradient(X[:5]), function.gradient(X[:5]))


def test_encoded_points_give_what_the_table_gives(function):
    points, labels = function.read(X)
    np.testing.assert_array_equal(function.value_at(points, labels), function.value(X))
    np.testing.assert_array_equal(function.gradient_at(points), function.gradient(X))


# --- labels


def test_a_callable_sees_labels_that_are_no_text():
    frame = pd.DataFrame({10: [1.0, 2.0], ("a", 1): [3.0, 4.0]})
    seen = []

    def model(table):
        seen.append(list(table.columns))
        return table[10] * table[("a", 1)]

    for function in (po.wrap(model), po.wrap(model, data=frame)):
        np.testing.assert_allclose(
            function.gradient(frame), [[3, 1], [4, 2]], atol=1e-9
        )
        assert list(function.gradient(frame).columns) == [10, ("a", 1)]
    assert all(columns == [10, ("a", 1)] for columns in seen)


def test_results_name_features_as_text():
    frame = pd.DataFrame({10: [1.0], "c": ["a"]}, index=["n"])
    function = po.wrap(lambda X: 2.0 * X[10], data=frame)
    found = Gradient().explain(function, frame)
    assert found.labels == Labels(("n",), ("10", "c"))
    assert list(found.to_frame().columns) == ["10", "c"]


# --- calls


def n_rows_of_gradient(table, n_numbers, categories):
    """2·N·D shifted rows, N at the points, and every other category that occurs."""
    others = sum(table[label].nunique() - 1 for label in categories)
    return len(table) * (2 * n_numbers + 1 + others)


def trials(function):
    """Three rows asked twice at first, and again where the gradient is numerical."""
    assert function.calls.trials == 12
    return function.calls.trials


def test_calls_are_counted_where_the_model_is_called(spy, function):
    function.value(X)
    assert (function.calls.rows, function.calls.batches) == (N, 1)
    function.gradient(X)
    expected = N + n_rows_of_gradient(X, 2, CATEGORIES)
    assert function.calls.rows == sum(spy.sizes) - trials(function) == expected
    assert function.calls.batches == len(spy.sizes) - 4


def test_calls_of_numerical_and_exact_models_are_counted():
    numerical = po.wrap(lambda X: X[:, 0] * X[:, 1])
    numerical.value(np.ones((5, 2)))
    assert numerical.calls == calls.Calls(rows=5, batches=1, trials=6)
    numerical.gradient(np.ones((5, 2)))
    assert numerical.calls == calls.Calls(rows=5 + 20, batches=2, trials=12)
    exact = po.wrap(LogisticRegression().fit(X[["bmi"]].to_numpy(), Y))
    exact.gradient(X[["bmi"]].to_numpy())
    assert exact.calls == calls.Calls(rows=N, batches=1)


@pytest.fixture
def seven_rows(monkeypatch):
    monkeypatch.setattr(batches, "MODEL_CALLS", Budget(2**25, 7))


def test_batches_keep_to_the_budget_and_change_nothing(spy, function, monkeypatch):
    whole = function.value(X), function.gradient(X)
    spy.sizes.clear()
    monkeypatch.setattr(batches, "MODEL_CALLS", Budget(2**25, 7))
    np.testing.assert_allclose(function.value(X), whole[0], rtol=1e-12)
    np.testing.assert_allclose(function.gradient(X), whole[1], atol=1e-9)
    assert max(spy.sizes) == 7
    assert sum(spy.sizes) == N + n_rows_of_gradient(X, 2, CATEGORIES)


def test_batches_keep_to_the_bytes(spy, function, monkeypatch):
    monkeypatch.setattr(batches, "MODEL_CALLS", Budget(8 * X.shape[1] * 10))
    function.gradient(X[:20])
    assert max(spy.sizes) == 10


@pytest.mark.usefixtures("seven_rows")
def test_models_without_schema_are_called_in_batches_too():
    sizes = []

    def model(table):
        sizes.append(len(table))
        return table[:, 0] ** 2

    function = po.wrap(model)
    points = np.arange(20.0)[:, None]
    np.testing.assert_array_equal(function.value(points), points[:, 0] ** 2)
    function.gradient(points)
    assert max(sizes) <= 7
    assert sum(sizes) - trials(function) == function.calls.rows == 20 + 40


@pytest.mark.usefixtures("seven_rows")
@pytest.mark.parametrize("data", [None, X[["bmi"]]])
def test_a_model_sees_the_names_of_the_rows_it_is_given(data):
    names = []

    def model(table):
        names.extend(table.index)
        return table["bmi"]

    po.wrap(model, data=data).value(X[["bmi"]])
    assert names == [*X.index, *X.index[:3], *X.index[:3]]  # the last are a trial


@pytest.mark.usefixtures("seven_rows")
@pytest.mark.parametrize("method", ["value", "gradient"])
@pytest.mark.parametrize("data", [None, X[["bmi"]]])
def test_a_value_that_is_not_finite_is_named_by_its_row(method, data):
    broken = X["bmi"].iloc[50]

    def model(table):
        return np.where(np.abs(table["bmi"] - broken) < 0.01, np.nan, table["bmi"] ** 2)

    near = int((np.abs(X["bmi"] - broken) < 0.01).to_numpy().argmax())
    function = po.wrap(model, data=data)
    with pytest.raises(InvalidInput, match=f"the {method} is not .* row 'p{near}'"):
        getattr(function, method)(X[["bmi"]])


# --- refusals


@pytest.mark.parametrize("label", ["colour", "size"])
def test_text_without_a_schema_says_what_makes_one(label):
    function = po.wrap(lambda X: np.zeros(len(X)))
    with pytest.raises(InvalidInput, match=rf"'{label}', row 'p0' .*data=X\)"):
        function.value(X[["bmi", label]])
    with pytest.raises(InvalidInput, match=r"wrap\(model, data=X\)"):
        Gradient().explain(function, X[["bmi", label]])


@pytest.mark.parametrize(
    ("table", "complaint"),
    [
        (X.assign(colour="pink"), "'colour', row 'p0': unknown category 'pink'"),
        (X[X.columns[::-1]], "another order"),
        (X.to_numpy(), "expected a DataFrame"),
    ],
)
def test_tables_that_do_not_fit_are_refused(function, table, complaint):
    for method in (function.value, function.gradient):
        with pytest.raises(InvalidInput, match=complaint):
            method(table)


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ({"data": X, "gradient": np.cos}, "leave gradient and"),
        ({"data": X, "step": "complex"}, "leave gradient and"),
        ({"data": X.to_numpy()}, "data: expected a DataFrame"),
    ],
)
def test_arguments_that_do_not_go_together_are_refused(arguments, complaint):
    with pytest.raises(InvalidInput, match=complaint):
        po.wrap(np.sin, **arguments)


def test_a_function_takes_no_schema():
    with pytest.raises(InvalidInput, match=r"data: Sine.* is a Function already"):
        po.wrap(po.functions.Sine(), data=X)


# --- explainers


BASELINES = [
    Gradient(),
    SmoothGrad(scale=0.1, n_samples=4),
    SmoothGrad(scale=0.1, n_samples=4, relative=True, distribution="ball"),
    Lime(scale=0.1, n_samples=40, relative=True),
    Shap(),
    Shap(background=X[:5], units="gradient"),
    LimePackage(n_samples=40, background=X),
    LimePackage(n_samples=40, units="gradient", discretize=False),
]


@pytest.mark.parametrize("explainer", BASELINES, ids=lambda e: e.method)
def test_explainers_keep_names_and_count(explainer, spy, function):
    pytest.importorskip("shap" if isinstance(explainer, Shap) else "lime")
    rows = X[:4]
    found = explainer.explain(function, rows)
    assert list(found.to_frame().index) == list(rows.index)
    assert list(found.to_frame().columns) == list(X.columns)
    assert found.evaluations == sum(spy.sizes) - function.calls.trials > 0
    assert np.isfinite(found.attributions).all()
    assert found.units == getattr(explainer, "units", "gradient")


def test_gradients_as_an_explanation(function, expected):
    found = Gradient().explain(function, X)
    np.testing.assert_allclose(found.attributions, expected, atol=1e-7)
    assert found.evaluations == n_rows_of_gradient(X, 2, CATEGORIES)


@pytest.mark.parametrize("relative", [False, True])
def test_smoothgrad_of_an_additive_model_is_its_gradient(relative, simple):
    smooth = SmoothGrad(scale=0.3, n_samples=5, relative=relative)
    found = smooth.explain(simple, SMALL[:9])
    np.testing.assert_allclose(
        found.attributions, simple.gradient(SMALL[:9]), atol=1e-7
    )


def test_smoothgrad_averages_effects_over_noise_in_the_numbers():
    def value(frame):
        return frame["bmi"] ** 2 * (frame["colour"] == "red")

    table = X[["bmi", "colour"]]
    function = po.wrap(value, data=table)
    found = SmoothGrad(scale=2.0, n_samples=3000).explain(function, table[:8])
    red = (table["colour"] == "red").to_numpy()
    x = table["bmi"].to_numpy()[:8]
    truth = np.stack([2 * x * red[:8], (x**2 + 4) * (red[:8] - red.mean())], axis=1)
    loud = found.standard_errors > 0  # slopes of the others are zero
    errors = np.where(loud, found.standard_errors, 1.0)
    assert (np.abs(found.attributions - truth) / errors).max() < Z
    np.testing.assert_array_equal(loud[:, 0], red[:8])


def test_relative_noise_is_in_units_of_the_deviations():
    seen = []

    def value(frame):
        seen.append(frame["age"].to_numpy() - X["age"].iloc[0])
        return frame["age"] + 0.0

    function = po.wrap(value, data=X[["age", "colour"]])
    SmoothGrad(scale=0.5, n_samples=4000, relative=True).explain(
        function, X[["age", "colour"]][:1]
    )
    spread = np.concatenate(seen)
    assert spread.std() == pytest.approx(0.5 * X["age"].std(ddof=0), rel=0.05)


def test_the_ball_has_the_dimension_of_the_numbers():
    # E ε² = δ²/(D + 2) with D = 1 number, though there are two categories besides; its
    # standard error is √(4/45 / 4000) δ², and six of them fail once in 5e8
    seen = []

    def value(frame):
        seen.append(frame["age"].to_numpy() - SMALL["age"].iloc[0])
        return additive(frame)

    function = po.wrap(value, data=po.TableSchema.of(SMALL, categorical=["job"]))
    ball = SmoothGrad(scale=3.0, n_samples=4000, distribution="ball")
    ball.explain(function, SMALL[:1])
    assert (np.concatenate(seen) ** 2).mean() == pytest.approx(3.0, abs=Z * 9 * 0.0048)


def test_relative_noise_needs_a_schema():
    for explainer in (SmoothGrad(scale=1, relative=True), Lime(scale=1, relative=True)):
        with pytest.raises(InvalidInput, match=r"relative: .*data=X\)"):
            explainer.explain(po.functions.Sine(), [[0.0]])


@pytest.mark.parametrize("kernel_width", [None, 1.5])
def test_lime_of_an_additive_model_tends_to_its_gradient(kernel_width, simple):
    lime = Lime(scale=0.5, relative=True, n_samples=4000, kernel_width=kernel_width)
    found = lime.explain(simple, SMALL[:6])
    assert worst_z(found, simple.gradient(SMALL[:6]).to_numpy()) < Z
    assert found.standard_errors.max() < 0.2


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"kernel_width": 0.8},
        {"ridge": 3.0},
        {"fit_intercept": False, "kernel_width": 2.0, "ridge": 0.5},
    ],
)
def test_lime_is_a_weighted_ridge_regression_on_its_samples(settings):
    tables = []

    def value(frame):
        tables.append(frame)
        return interacting(frame).to_numpy()

    function = po.wrap(value, data=po.TableSchema.of(SMALL, categorical=["job"]))
    lime = Lime(scale=3.0, n_samples=80, **settings)
    function.value(SMALL[:1])
    tables.clear()  # of the trial
    found = lime.explain(function, SMALL[:1])
    samples, point = pd.concat(tables), SMALL.iloc[0]
    same = samples[["colour", "job"]] == point[["colour", "job"]]
    shares = (SMALL[["colour", "job"]] == point[["colour", "job"]]).mean()
    design = np.column_stack([samples["age"], same - shares])
    width = np.inf if lime.kernel_width is None else lime.kernel_width
    squares = (samples["age"] - point["age"]) ** 2 + (~same).sum(axis=1)
    ridge = Ridge(lime.ridge, fit_intercept=lime.fit_intercept, tol=1e-12)
    ridge.fit(design, interacting(samples), np.exp(-squares / (2 * width**2)))
    slopes = ridge.coef_ * [1.0, *(1 - shares)]
    np.testing.assert_allclose(found.attributions[0], slopes, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(
        found.details["intercept"][0], ridge.intercept_, rtol=1e-6, atol=1e-9
    )


def test_lime_in_standard_units_does_not_see_the_units(simple):
    lime = Lime(scale=0.5, relative=True, n_samples=200, kernel_width=1.0)
    found = lime.explain(simple, SMALL[:3])
    months = SMALL.assign(age=12.0 * SMALL["age"])
    other = po.wrap(
        lambda frame: additive(frame.assign(age=frame["age"] / 12)),
        data=po.TableSchema.of(months, categorical=["job"]),
    )
    again = lime.explain(other, months[:3])
    np.testing.assert_allclose(
        again.attributions * [12, 1, 1], found.attributions, rtol=1e-6
    )


def test_lime_contrasts_a_category_that_the_table_never_has():
    table = pd.DataFrame(
        {"x": np.arange(6.0), "size": pd.Categorical(list("ssslll"), list("sml"))}
    )
    parts = {"s": 1.0, "m": 5.0, "l": 2.0}
    function = po.wrap(
        lambda X: X["size"].map(parts).astype(float) + X["x"], data=table
    )
    rare = table[:1].assign(size=pd.Categorical(["m"], list("sml")))
    found = Lime(scale=0.1, n_samples=3000).explain(function, rare)
    assert worst_z(found, np.array([[1.0, 3.5]])) < Z


def test_a_column_of_one_category_has_no_effect():
    table = SMALL.assign(colour="red")
    function = po.wrap(additive, data=po.TableSchema.of(table, categorical=["job"]))
    for explainer in (
        Gradient(),
        Lime(scale=0.5, n_samples=100),
        Lime(scale=0.5, n_samples=100, kernel_width=1.0, ridge=0.1),
    ):
        found = explainer.explain(function, table[:3])
        np.testing.assert_array_equal(found.attributions[:, 1], 0)


@pytest.mark.parametrize("explainer", [BASELINES[2], BASELINES[3]])
def test_points_are_explained_alike_in_small_blocks(explainer, simple, monkeypatch):
    whole = explainer.explain(simple, SMALL[:6]).attributions
    monkeypatch.setattr(perturbations, "PERTURBED_POINTS", Budget(8 * 3 * 50))
    np.testing.assert_allclose(explainer.explain(simple, SMALL[:6]).attributions, whole)
    fewer = explainer.explain(simple, SMALL[:2]).attributions
    np.testing.assert_allclose(fewer, whole[:2])


def brute_force_shapley(value, row, background):
    """Shapley values from their definition, by replacing columns of DataFrames."""
    labels = list(background.columns)

    def worth(members):
        table = background.assign(**{label: row[label] for label in members})
        return float(np.mean(value(table)))

    values = np.zeros(len(labels))
    for j, label in enumerate(labels):
        others = [other for other in labels if other != label]
        for size in range(len(labels)):
            share = math.factorial(size) * math.factorial(len(labels) - size - 1)
            for members in itertools.combinations(others, size):
                gain = worth((*members, label)) - worth(members)
                values[j] += share / math.factorial(len(labels)) * gain
    return values


def test_shap_replaces_whole_categories():
    pytest.importorskip("shap")
    function = po.wrap(interacting, data=po.TableSchema.of(SMALL, categorical=["job"]))
    background = SMALL[50:57]
    found = Shap(background=background).explain(function, SMALL[:3])
    for n in range(3):
        expected = brute_force_shapley(interacting, SMALL.iloc[n], background)
        np.testing.assert_allclose(found.attributions[n], expected, atol=1e-9)


def test_shap_in_slopes_leaves_categories_as_they_are(simple):
    pytest.importorskip("shap")
    output = Shap(background=SMALL).explain(simple, SMALL[:3])
    slopes = Shap(background=SMALL, units="gradient").explain(simple, SMALL[:3])
    np.testing.assert_allclose(slopes.attributions[:, 0], 0.5)
    np.testing.assert_array_equal(
        slopes.attributions[:, 1:], output.attributions[:, 1:]
    )
    # f is additive: φ_j = f_j(x) − mean f_j, which is the effect
    np.testing.assert_allclose(
        output.attributions[:, 1:], simple.gradient(SMALL)[["colour", "job"]][:3]
    )


def test_shap_by_default_has_means_and_modes_as_reference(simple):
    pytest.importorskip("shap")
    found = Shap().explain(simple, SMALL)
    modes = [SMALL["colour"].mode()[0], SMALL["job"].mode()[0]]
    typical = pd.DataFrame([[SMALL["age"].mean(), *modes]], columns=SMALL.columns)
    np.testing.assert_allclose(found.details["base_value"], additive(typical)[0])


def test_lime_package_hands_the_categories_to_the_package(simple):
    tabular = pytest.importorskip("lime.lime_tabular")
    found = LimePackage(n_samples=300, background=SMALL).explain(simple, SMALL[:2])
    points, _ = simple.read(SMALL)
    seeds = np.random.default_rng(0).integers(2**32, size=2)
    for n, seed in enumerate(seeds):
        package = tabular.LimeTabularExplainer(
            points,
            mode="regression",
            categorical_features=[1, 2],
            feature_selection="none",
            random_state=int(seed),
        )
        fit = package.explain_instance(
            points[n], simple.value_at, num_features=3, num_samples=300
        )
        expected = [slope for _, slope in sorted(fit.as_map()[1])]
        np.testing.assert_allclose(found.attributions[n], expected)


def test_a_background_of_text_is_copied_and_named_by_what_it_holds():
    background = SMALL[:5].copy()
    explainer = Shap(background=background)
    before = explainer.parameters["background"]
    assert Shap(background=SMALL[:5].copy()).parameters["background"] == before
    background.loc["p0", "colour"] = "pink"
    assert explainer.parameters["background"] == before
    assert Shap(background=background).parameters["background"] != before


def test_a_background_with_another_category_is_refused(simple):
    pytest.importorskip("shap")
    explainer: Baseline = Shap(background=SMALL.assign(colour="pink"))
    with pytest.raises(InvalidInput, match="background: column 'colour', row 'p0'"):
        explainer.explain(simple, SMALL[:2])


def test_explanations_are_optimised_on_tables(simple):
    graph = po.gaussian_graph(simple.schema.coordinates(SMALL))
    objective = po.GradientMatching(simple.gradient(SMALL)) + po.PairwiseRobustness(
        graph
    )
    best = po.solve(objective)
    assert list(best.to_frame().columns) == ["age", "colour", "job"]
    assert list(best.to_frame().index) == list(SMALL.index)


# --- packages


def explained(model, table, categorical="auto"):
    """Values and gradients of a model of trees, which are flat in the numbers."""
    function = po.wrap(model, data=po.TableSchema.of(table, categorical))
    np.testing.assert_array_equal(function.value(table), model.predict(table))
    with pytest.warns(FlatFunctionWarning):
        return function.gradient(table[:10])


def effects(model, table, label, shares):
    """f(x) − Σ_c p_c f(x with c), by replacing the column."""
    value = model.predict(table)
    dtype = table[label].dtype
    for category, share in shares.items():
        column = pd.Series([category] * len(table), index=table.index).astype(dtype)
        value = value - share * model.predict(table.assign(**{label: column}))
    return value


def test_lightgbm_with_categories():
    lightgbm = pytest.importorskip("lightgbm")
    table = X.astype({"colour": "category"}).drop(columns="smokes")
    model = lightgbm.LGBMRegressor(n_estimators=10, min_child_samples=5, verbose=-1)
    model.fit(table, Y * 1.0)
    found = explained(model, table)
    for label in ("colour", "size"):
        shares = table[label].value_counts(normalize=True)
        expected = effects(model, table[:10], label, shares)
        np.testing.assert_allclose(found[label], expected, atol=1e-12)
    assert np.abs(found["colour"]).max() > 0.01


def test_catboost_with_text():
    catboost = pytest.importorskip("catboost")
    table = X[["bmi", "colour", "job"]]
    model = catboost.CatBoostRegressor(
        iterations=10,
        verbose=0,
        cat_features=["colour", "job"],
        random_seed=0,
        allow_writing_files=False,
    )
    model.fit(table, Y * 1.0)
    found = explained(model, table, ["job"])
    for label in ("colour", "job"):
        shares = table[label].value_counts(normalize=True)
        expected = effects(model, table[:10], label, shares)
        np.testing.assert_allclose(found[label], expected, atol=1e-12)
    assert np.abs(found["colour"]).max() > 0.001


def test_xgboost_with_numbers():
    xgboost = pytest.importorskip("xgboost")
    table = X[["age", "bmi"]]
    model = xgboost.XGBRegressor(n_estimators=10).fit(table, Y * 1.0)
    explained(model, table)
    np.testing.assert_array_equal(po.wrap(model).value(table), model.predict(table))
