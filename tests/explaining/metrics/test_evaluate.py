"""What metrics take, put in order and refuse; many of many methods; documents."""

import numpy as np
import pandas as pd
import pytest
from metric_cases import FAITHFUL, FUNCTION, ROBUST, S, asked, explain, f
from text_models import DOCUMENTS, called, forest, linear

import propopt as po
from propopt.base.errors import InvalidInput
from propopt.base.resources import Budget
from propopt.explaining.explainers import Gradient, Lime, Shap, SmoothGrad, TreeShap
from propopt.explaining.metrics import (
    BaselineMethod,
    CompletenessGap,
    FaithfulnessCorrelation,
    Infidelity,
    MaxSensitivity,
    Sparseness,
    UndefinedRowsWarning,
    evaluate,
    evaluate_rows,
)
from propopt.laws import perturbations


NAMES, ROWS = list("abcd"), list("uvwxyz")


def test_frames_reach_function_and_method_as_frames(X):
    frame = pd.DataFrame(X, columns=NAMES, index=ROWS)
    function = po.wrap(lambda table: f(table[NAMES].to_numpy()))

    def by_name(table: pd.DataFrame) -> pd.DataFrame:
        values = explain(table[NAMES].to_numpy())
        return pd.DataFrame(values, columns=NAMES, index=table.index)

    for metric in (*FAITHFUL, *ROBUST):
        given = [by_name(frame) if metric in FAITHFUL else by_name, function, frame]
        if metric in ROBUST:
            del given[1]
        np.testing.assert_array_equal(metric(*given), asked(metric, X))


def test_categories_are_never_perturbed_and_have_no_mean(rng):
    X = pd.DataFrame({"a": rng.normal(size=8), "colour": list("rgbrgbrg")})

    def model(table: pd.DataFrame) -> np.ndarray:
        return np.exp(table["a"].to_numpy()) * (table["colour"] == "r").to_numpy()

    function = po.wrap(model, data=X)
    table = evaluate([*ROBUST, *FAITHFUL[:2]], function, X, [Gradient()])
    assert np.isfinite(table.to_numpy()).all()
    flat = X["colour"].to_numpy() != "r"  # there f is zero, whatever the number
    errors = Infidelity()(np.zeros((8, 2)), function, X)
    assert (errors[flat] == 0).all()
    assert (errors[~flat] > 0).all()
    for metric in (CompletenessGap(), FaithfulnessCorrelation()):
        with pytest.raises(InvalidInput, match="categories have no mean"):
            metric(np.ones((8, 2)), function, X)


UNUSABLE = [
    (lambda X: Infidelity()(X[:2], FUNCTION, X), "shape of X"),
    (lambda X: Infidelity()(X, f, X), "propopt.wrap"),
    (lambda X: Infidelity()(X, FUNCTION, X, rng=-1), "rng"),
    (lambda X: Infidelity()(X, FUNCTION, X, rng=True), "rng"),
    (lambda X: FaithfulnessCorrelation(k=5)(X, FUNCTION, X), "k: expected at most"),
    (lambda X: FaithfulnessCorrelation(baseline=[1.0])(X, FUNCTION, X), "baseline"),
    (lambda X: CompletenessGap(data=[[1.0]])(X, FUNCTION, X), "data: expected"),
    (lambda X: MaxSensitivity()(X, X), "BaselineMethod"),
    (lambda X: MaxSensitivity()(lambda p: p[:, :2], X), "of shape"),
    (lambda X: MaxSensitivity()(lambda p: p * np.nan, X), "not finite"),
    (lambda _: Sparseness()([1.0, 2.0]), "2 dimensions"),
    (lambda _: MaxSensitivity(units="percent"), "units"),
    (lambda _: MaxSensitivity(scale=0), "scale"),
    (lambda _: MaxSensitivity(distribution="cauchy"), "distribution"),
    (lambda _: Infidelity(rescaling="some"), "rescaling"),
    (lambda _: FaithfulnessCorrelation(k=0), "k:"),
    (lambda _: FaithfulnessCorrelation(n_samples=1), "n_samples"),
    (lambda _: BaselineMethod(explainer=Shap(), function=FUNCTION), "data=X"),
]


def test_what_cannot_be_used_is_refused(X):
    for call, message in UNUSABLE:
        with pytest.raises(InvalidInput, match=message):
            call(X)


def test_attributions_in_another_order_are_read_by_name(X, rng):
    frame = pd.DataFrame(X, columns=NAMES)
    W = pd.DataFrame(rng.normal(size=X.shape), columns=NAMES)
    for axis in ("index", "columns"):
        given = {"W": W, "other": W.sort_index(axis=axis, ascending=False)}
        table = evaluate([Infidelity(), Sparseness()], FUNCTION, frame, given)
        assert table.loc["other"].equals(table.loc["W"])


@pytest.mark.parametrize(
    "explainer",
    [SmoothGrad(scale=0.2, n_samples=5), Lime(scale=0.2, n_samples=12)],
    ids=lambda e: e.method,
)
def test_a_method_draws_afresh_whatever_its_blocks(explainer, X, monkeypatch):
    method = BaselineMethod(explainer=explainer, function=FUNCTION, rng=4)
    np.testing.assert_array_equal(method(X), method(X))
    metric = MaxSensitivity(n_samples=S)
    whole = metric(method, X)
    np.testing.assert_array_equal(metric(method, X), whole)
    monkeypatch.setattr(perturbations, "PERTURBED_POINTS", Budget(8 * 4 * 7))
    np.testing.assert_allclose(metric(method, X), whole, rtol=1e-7)


@pytest.fixture
def explained(X):
    given = po.results.Explanation(attributions=explain(X), method="given")
    return [Gradient(), SmoothGrad(scale=0.3, n_samples=7), given]


def test_evaluate_is_the_mean_of_each_metric(explained, X):
    columns = [*ROBUST, *FAITHFUL, Sparseness()]
    table = evaluate(columns, FUNCTION, X, explained, rng=5)
    assert list(table.index) == ["gradient", "smoothgrad", "given"]
    assert list(table.columns) == [metric.name for metric in columns]
    # names tell the settings that are not the default
    correlation = "FaithfulnessCorrelation(n_samples=9, baseline=4)"
    named = {"Sparseness", "Infidelity(n_samples=9, rescaling='best')", correlation}
    assert named <= set(table.columns)
    smooth = explained[1].explain(FUNCTION, X, rng=5)
    for metric in FAITHFUL:
        expected = metric(smooth, FUNCTION, X, rng=5).mean()
        assert table.loc["smoothgrad", metric.name] == pytest.approx(expected)
    method = BaselineMethod(explainer=explained[1], function=FUNCTION, rng=5)
    expected = ROBUST[0](method, X, rng=5).mean()
    assert table.loc["smoothgrad", ROBUST[0].name] == pytest.approx(expected)
    # an explanation has no robustness elsewhere
    assert table.loc["given"].isna().tolist() == [True, True, *5 * [False]]
    assert table.drop("given").notna().all(axis=None)
    # a generator gives one seed for all
    rng, seed = np.random.default_rng(8), np.random.default_rng(8).integers(2**63)
    pd.testing.assert_frame_equal(
        evaluate(FAITHFUL, FUNCTION, X, explained, rng=rng),
        evaluate(FAITHFUL, FUNCTION, X, explained, rng=int(seed)),
    )


def test_rows_and_columns_have_names(X):
    frame = pd.DataFrame(X, columns=NAMES, index=ROWS)
    function = po.wrap(lambda table: f(table.to_numpy()))
    rows = evaluate_rows({"gini": Sparseness()}, function, frame, [Gradient()])
    assert rows.index.names == ["method", "point"]
    assert rows.loc["gradient"].index.tolist() == ROWS
    W = Gradient().explain(function, frame)
    np.testing.assert_array_equal(rows["gini"], Sparseness()(W))
    settings = {"near": MaxSensitivity(scale=0.01), "far": MaxSensitivity(scale=0.5)}
    methods = {"ours": explain, "gradient": Gradient()}
    table = evaluate(settings, FUNCTION, X, methods)
    assert list(table.columns) == ["near", "far"]
    assert (table["near"] < table["far"]).all()


def test_means_leave_out_what_is_undefined():
    given = po.results.Explanation(
        attributions=np.array([[0.0, 0], [0, 1]]), method="given"
    )
    with pytest.warns(UndefinedRowsWarning, match="1 of 2"):
        table = evaluate([Sparseness()], FUNCTION, np.ones((2, 2)), [given])
    assert table.loc["given", "Sparseness"] == 0.5


@pytest.mark.parametrize(
    ("columns", "rows"),
    [
        ([Sparseness(), Sparseness()], [Gradient()]),
        ([Sparseness()], [Gradient(), Gradient()]),
        ([], [Gradient()]),
        ([Sparseness()], []),
    ],
)
def test_names_that_are_not_unique_are_refused(columns, rows, X):
    with pytest.raises(InvalidInput, match="different names"):
        evaluate(columns, FUNCTION, X, rows)


TEXTS = [text for text in DOCUMENTS if text]


@pytest.fixture(scope="module")
def of_texts():
    function = po.wrap(forest(), data=DOCUMENTS)
    return function, TreeShap().explain(function, TEXTS)


def test_sums_over_words_are_complete_where_they_are_shapley_values(of_texts):
    function, shapley = of_texts
    assert CompletenessGap()(shapley, function, TEXTS).max() < 1e-12
    effects = Gradient().explain(function, TEXTS)
    assert CompletenessGap()(effects, function, TEXTS).max() > 0.01
    text = ["a bad not at"]
    gap = CompletenessGap()(np.ones((1, 4)), po.wrap(called, data=text), text)
    assert gap == pytest.approx([3.0])
    result = TreeShap().explain(function, DOCUMENTS)
    with pytest.warns(UndefinedRowsWarning):
        gaps = CompletenessGap()(result, function, DOCUMENTS)
    assert np.flatnonzero(np.isnan(gaps)).tolist() == [DOCUMENTS.index("")]
    # additive effects are perfectly correlated
    texts = ["one two three four five", "six seven eight nine"]
    function = po.wrap(lambda t: [3.0 * x.count("o") for x in t], data=texts)
    effects = Gradient().explain(function, texts[:1])
    correlation = FaithfulnessCorrelation(k=2)
    assert correlation(effects, function, texts[:1]) == pytest.approx([1.0])


NO_NOISE, ODD = "present or absent", np.zeros((1, 3))


def robustness(metric):
    return lambda f, _: metric(BaselineMethod(explainer=Gradient(), function=f), TEXTS)


SILENT = [
    (lambda f, W: Infidelity(scale=0.1)(W, f, TEXTS), NO_NOISE),
    (lambda f, W: CompletenessGap(data=ODD)(W, f, TEXTS), "text without any w"),
    (lambda _, W: Sparseness()(W, present=ODD), "present: expected the shape"),
    *((robustness(m), f"{m.name[:9]}.*: .*SharedRobustness") for m in ROBUST),
]


def test_what_says_nothing_of_words_is_refused(of_texts):
    for call, message in SILENT:
        with pytest.raises(InvalidInput, match=message):
            call(*of_texts)


def test_sparseness_is_of_the_words_of_a_document():
    metric = Sparseness()
    function = po.wrap(linear(), output="log_odds", data=DOCUMENTS)
    counts, shapley = function.read(TEXTS)[0], TreeShap().explain(function, TEXTS)
    result = metric(shapley, present=counts)
    for n, row in enumerate(shapley.attributions):
        assert result[n] == pytest.approx(metric(row[None, counts[n] > 0])[0])
    assert (result < metric(shapley) - 0.1).all()  # which is diluted
    table = evaluate([metric], function, TEXTS, [shapley])
    assert table.iloc[0, 0] == pytest.approx(result.mean())
    # an optimum knows its words
    best = po.explain(function, TEXTS, progress=False)
    np.testing.assert_array_equal(metric(best), metric(best, present=counts))
