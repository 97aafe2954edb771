"""Models of tables with text and categories: values, slopes, calls, baselines."""

import pickle
from dataclasses import dataclass, field

import numpy as np
import pandas as pd
import pytest
from baseline_checks import Z
from coalitions import all_orders
from numpy.testing import assert_allclose, assert_array_equal
from refusals import refusals
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import propopt as po
from propopt.base import resources
from propopt.base.errors import FlatFunctionWarning, InvalidInput
from propopt.base.resources import Budget
from propopt.explaining.explainers import Gradient, Lime, LimePackage, Shap, SmoothGrad
from propopt.functions import models
from propopt.tables.frames import Labels


# ---- a table of people: numbers, text, codes and categories, and models of it
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


def n_rows_of_gradient(table, n_numbers, categories):
    """2·N·D shifted rows, N at the points, and every other category that occurs."""
    others = sum(X[label].nunique() - 1 for label in categories)
    return len(table) * (2 * n_numbers + 1 + others)


@pytest.fixture
def spy():
    return Spy(one_hot_logistic()).fit(X, Y)


@pytest.fixture
def function(spy):
    schema = po.functions.TableSchema.of(X, categorical=["job"])
    return po.wrap(spy, output="log_odds", data=schema)


def of_small(value, table=SMALL):
    return po.wrap(value, data=po.functions.TableSchema.of(table, categorical=["job"]))


SIMPLE = of_small(additive)


# ---- values and slopes
def test_values_and_gradients_are_those_of_the_pipeline(spy, function):
    logits = spy.fitted_.decision_function(X)
    assert_allclose(function.value(X), logits, rtol=1e-9, atol=1e-9)
    result, expected = function.gradient(X), closed_form(spy.fitted_)
    pd.testing.assert_frame_equal(result, expected, rtol=1e-7, atol=1e-8)
    points, labels = function.read(X)
    assert_array_equal(function.value_at(points, labels), function.value(X))
    assert_array_equal(function.gradient_at(points), result)
    again = pickle.loads(pickle.dumps(function))
    pd.testing.assert_frame_equal(again.gradient(X[:5]), result[:5])
    assert function.gradient_method == (
        "central differences, step 6.1e-06 · max(1, |x|); "
        "of a category f(x) − Σ_c p_c f(x with c)"
    )
    outcome = Gradient().explain(function, X)
    assert_allclose(outcome.attributions, expected, atol=1e-7)
    assert outcome.evaluations == n_rows_of_gradient(X, 2, CATEGORIES)


def test_columns_that_encode_one_feature_are_explained_as_one():
    wide = pd.get_dummies(X[["bmi", "colour"]], columns=["colour"])
    members = [label for label in wide if label.startswith("colour")]
    model = LogisticRegression().fit(wide, Y)
    schema = po.functions.TableSchema.of(wide, groups={"colour": members})
    result = po.wrap(model, output="log_odds", data=schema).gradient(wide)
    coefficients = dict(zip(wide.columns, model.coef_[0], strict=True))
    parts = X["colour"].map(lambda c: coefficients[f"colour_{c}"])
    assert list(result.columns) == ["bmi", "colour"]
    assert_allclose(result["colour"], parts - parts.mean(), atol=1e-9)
    assert_allclose(result["bmi"], coefficients["bmi"], rtol=1e-8)


def test_a_table_of_numbers_keeps_the_exact_gradient():
    model = LogisticRegression().fit(X[["bmi"]], Y)
    function = po.wrap(model, output="log_odds", data=X[["bmi"]])
    assert function.gradient_method == "exact"
    assert function.schema is not None
    assert_array_equal(function.gradient(X[["bmi"]]), np.full((N, 1), model.coef_))


def is_red(table):
    return (table["colour"] == "red").astype(float)


def test_a_constant_in_the_numbers_warns_and_only_categories_do_not():
    with pytest.warns(FlatFunctionWarning):
        po.wrap(is_red, data=SMALL).gradient(SMALL)
    red = po.wrap(is_red, data=X[["colour"]])
    assert red.gradient_method == "of a category f(x) − Σ_c p_c f(x with c)"
    absent = X[["colour"]].mask(X["colour"] == "red")
    assert po.wrap(is_red, data=absent).gradient_method == red.gradient_method
    expected = is_red(X) - is_red(X).mean()
    assert_allclose(red.gradient(X[["colour"]])["colour"], expected, atol=1e-12)


def test_labels_that_are_no_text_are_seen_and_results_name_features_as_text():
    frame = pd.DataFrame({10: [1.0, 2.0], ("a", 1): [3.0, 4.0]})
    observed = []

    def model(table):
        observed.append(list(table.columns))
        return table[10] * table[("a", 1)]

    for function in (po.wrap(model), po.wrap(model, data=frame)):
        result = function.gradient(frame)
        assert_allclose(result, [[3, 1], [4, 2]], atol=1e-9)
        assert list(result.columns) == [10, ("a", 1)]
    assert all(columns == [10, ("a", 1)] for columns in observed)
    frame = pd.DataFrame({10: [1.0], "c": ["a"]}, index=["n"])
    result = Gradient().explain(po.wrap(lambda X: 2.0 * X[10], data=frame), frame)
    assert result.labels == Labels(("n",), ("10", "c"))
    assert list(result.to_frame().columns) == ["10", "c"]


# ---- trees of another library, which are flat in the numbers
def test_a_booster_has_effects_of_categories():
    lightgbm = pytest.importorskip("lightgbm")
    table = X.astype({"colour": "category"}).drop(columns="smokes")
    model = lightgbm.LGBMRegressor(n_estimators=10, min_child_samples=5, verbose=-1)
    model.fit(table, Y * 1.0)
    function, rows = po.wrap(model, data=po.functions.TableSchema.of(table)), table[:10]
    assert_array_equal(function.value(table), model.predict(table))
    with pytest.warns(FlatFunctionWarning):
        result = function.gradient(rows)
    for label in ("colour", "size"):  # f(x) − Σ_c p_c f(x with c), column by column
        expected = model.predict(rows)
        for category, share in table[label].value_counts(normalize=True).items():
            column = pd.Series([category] * 10, rows.index).astype(table[label].dtype)
            expected -= share * model.predict(rows.assign(**{label: column}))
        assert_allclose(result[label], expected, atol=1e-12)
    assert np.abs(result["colour"]).max() > 0.01


# ---- how often models are called, with what, and what they refuse
BMI = X[["bmi"]]


@pytest.mark.parametrize("data", [None, BMI])
def test_rows_have_their_names_in_models_and_in_refusals(data, monkeypatch):
    monkeypatch.setattr(models, "WORTH_TIMING", np.inf)
    monkeypatch.setattr(resources, "MODEL_CALLS", Budget(2**25, 7))
    names = []

    def model(table):
        names.extend(table.index)
        return table["bmi"]

    po.wrap(model, data=data).value(BMI)
    assert names == [*X.index, *X.index[:3], *X.index[:3]]  # the last are a trial
    broken = X["bmi"].iloc[50]

    def hole(table):
        return np.where(np.abs(table["bmi"] - broken) < 0.01, np.nan, table["bmi"] ** 2)

    close = int((np.abs(X["bmi"] - broken) < 0.01).to_numpy().argmax())
    for method in ("value", "gradient"):
        with pytest.raises(
            InvalidInput, match=f"the {method} is not .* row 'p{close}'"
        ):
            getattr(po.wrap(hole, data=data), method)(BMI)


ZEROS = po.wrap(lambda X: np.zeros(len(X)))

MODEL = po.wrap(
    Spy(one_hot_logistic()).fit(X, Y),
    data=po.functions.TableSchema.of(X, categorical=["job"]),
)


@pytest.mark.parametrize(("line", "message"), refusals(__file__, "models"))
def test_what_is_refused(line, message):
    with pytest.raises(InvalidInput, match=message):
        eval(line)


# ---- baselines, against closed forms and brute force
IN_UNITS = SmoothGrad(scale=0.1, n_samples=4, relative=True)
BASELINES = [
    Gradient(),
    SmoothGrad(scale=0.1, n_samples=4),
    IN_UNITS,
    Shap(),
    Shap(data=X[:5], units="gradient"),
    LimePackage(n_samples=40, data=X),
]


@pytest.mark.parametrize("explainer", BASELINES, ids=lambda e: e.method)
def test_explainers_keep_names_and_count(explainer, spy, function):
    pytest.importorskip("shap" if isinstance(explainer, Shap) else "lime")
    rows = X[:4]
    result = explainer.explain(function, rows)
    assert list(result.to_frame().index) == list(rows.index)
    assert list(result.to_frame().columns) == list(X.columns)
    assert result.evaluations == sum(spy.sizes) - function.calls.trials > 0
    assert np.isfinite(result.attributions).all()
    assert result.units == getattr(explainer, "units", "gradient")


def test_of_an_additive_model_smoothgrad_is_its_gradient():
    rows = SMALL[:6]
    slopes = SIMPLE.gradient(rows).to_numpy()
    for relative in (False, True):
        smooth = SmoothGrad(scale=0.3, n_samples=5, relative=relative)
        assert_allclose(smooth.explain(SIMPLE, rows).attributions, slopes, atol=1e-7)


def test_smoothgrad_averages_effects_over_noise_in_the_numbers():
    table = X[["bmi", "colour"]]
    function = po.wrap(lambda own: own["bmi"] ** 2 * is_red(own), data=table)
    result = SmoothGrad(scale=2.0, n_samples=3000).explain(function, table[:8])
    red, x = is_red(table).to_numpy(), table["bmi"].to_numpy()[:8]
    truth = np.stack([2 * x * red[:8], (x**2 + 4) * (red[:8] - red.mean())], axis=1)
    loud = result.standard_errors > 0  # slopes of the others are zero
    errors = np.where(loud, result.standard_errors, 1.0)
    assert (np.abs(result.attributions - truth) / errors).max() < Z
    assert_array_equal(loud[:, 0], red[:8])


def test_noise_is_in_units_of_deviations_and_a_ball_has_the_dimension_of_numbers():
    observed = []

    def value(frame):
        observed.append(frame["age"].to_numpy() - SMALL["age"].iloc[0])
        return additive(frame)

    function = of_small(value)
    SmoothGrad(scale=0.5, n_samples=4000, relative=True).explain(function, SMALL[:1])
    spread = np.concatenate(observed).std()
    assert spread == pytest.approx(0.5 * X["age"].std(ddof=0), rel=0.05)


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"kernel_width": 0.8},
        {"ridge": 3.0},
        {"relative": True, "kernel_width": 0.5},
        {"fit_intercept": False, "kernel_width": 2.0, "ridge": 0.5},
    ],
)
def test_lime_is_a_weighted_ridge_regression_on_its_samples(settings):
    tables = []
    numbers = X[["age", "bmi"]]

    def value(frame):
        tables.append(frame)
        return (frame["age"] * frame["bmi"]).to_numpy()

    units = numbers.std(ddof=0) if "relative" in settings else 1.0
    scale = 3.0 / numbers["age"].std(ddof=0)
    lime = Lime(n_samples=80, **{"scale": scale, **settings})
    function = po.wrap(value, data=numbers)
    function.value(numbers[:1])
    tables.clear()  # of the trial
    result = lime.explain(function, numbers[:1])
    samples, point = pd.concat(tables), numbers.iloc[0]
    width = np.inf if lime.kernel_width is None else lime.kernel_width
    squares = (((samples - point) / units) ** 2).sum(axis=1)
    ridge = Ridge(lime.ridge, fit_intercept=lime.fit_intercept, tol=1e-12)
    products = samples["age"] * samples["bmi"]
    ridge.fit(samples, products, np.exp(-squares / (2 * width**2)))
    assert_allclose(result.attributions[0], ridge.coef_, rtol=1e-6, atol=1e-9)
    constant = result.details["intercept"][0]
    assert_allclose(constant, ridge.intercept_, rtol=1e-6, atol=1e-9)


def test_shap_replaces_whole_categories_and_leaves_them_in_slopes():
    pytest.importorskip("shap")
    background, rows = SMALL[50:57], SMALL[:3]
    f = of_small(interacting)
    result = Shap(data=background).explain(f, rows).attributions
    assert_allclose(result, all_orders(f, rows, background), atol=1e-9)
    output = Shap(data=SMALL).explain(SIMPLE, rows).attributions
    slopes = Shap(data=SMALL, units="gradient").explain(SIMPLE, rows).attributions
    assert_allclose(slopes[:, 0], 0.5)
    assert_array_equal(slopes[:, 1:], output[:, 1:])
    # f is additive: φ_j = f_j(x) − mean f_j, which is the effect
    assert_allclose(output[:, 1:], SIMPLE.gradient(SMALL)[["colour", "job"]][:3])
    # a reference of means and modes
    result = Shap(data="mean").explain(SIMPLE, SMALL)
    modes = [SMALL["colour"].mode()[0], SMALL["job"].mode()[0]]
    typical = pd.DataFrame([[SMALL["age"].mean(), *modes]], columns=SMALL.columns)
    assert_allclose(result.base_value, additive(typical)[0])


def test_lime_package_hands_the_categories_to_the_package():
    tabular = pytest.importorskip("lime.lime_tabular")
    result = LimePackage(n_samples=300, data=SMALL).explain(SIMPLE, SMALL[:2])
    points, _ = SIMPLE.read(SMALL)
    seeds = np.random.default_rng(0).integers(2**32, size=2)
    for n, seed in enumerate(seeds):
        package = tabular.LimeTabularExplainer(
            points, mode="regression", categorical_features=[1, 2],
            feature_selection="none", random_state=int(seed),
        )  # fmt: skip
        fit = package.explain_instance(
            points[n], SIMPLE.value_at, num_features=3, num_samples=300
        )
        expected = [slope for _, slope in sorted(fit.as_map()[1])]
        assert_allclose(result.attributions[n], expected)
