"""``po.explain``: from a model and a table to names, precision, laws, units, notes."""

import inspect
import sys
import warnings
from collections import Counter
from dataclasses import fields
from typing import get_args, get_type_hints

import numpy as np
import pandas as pd
import pytest
from estimators import sk
from interaction_scores import scores_of
from refusals import refusals
from sklearn.datasets import make_classification
from sklearn.pipeline import make_pipeline

import propopt as po
from propopt.base import checks
from propopt.base.errors import (
    ImpreciseWarning,
    InvalidInput,
    MissingPatternsWarning,
    Refused,
)
from propopt.explaining import problem
from propopt.explaining.contributions import ContributionChoice
from propopt.explaining.targets import LawChoice
from propopt.problems.jobs.explain import ExplainSection
from propopt.tables.columns import plain_floats, read_numbers
from propopt.tables.schema import TableSchema, read_with_schema


N, D = 60, 3


@pytest.fixture(scope="module")
def X():
    return np.random.default_rng(0).normal(size=(N, D))


@pytest.fixture(scope="module")
def forest(X):
    return sk.RandomForestRegressor(20, random_state=0).fit(X, X[:, 0] + X[:, 1] ** 2)


@pytest.fixture
def people(rng):
    columns = {
        "age": rng.integers(20, 80, N),
        "income": rng.lognormal(3, 1, N),
        "city": rng.choice(["Bonn", "Oslo", "Rome"], N),
    }
    table = pd.DataFrame(columns, index=[f"c{i}" for i in range(N)])
    noise = rng.normal(size=N)
    y = (table["age"] / 30 + (table["city"] == "Rome") + noise > 2).astype(int)
    return table, y


@pytest.fixture
def pipeline(people):
    numbers = ("numbers", sk.StandardScaler(), ["age", "income"])
    columns = sk.ColumnTransformer([numbers, ("city", sk.OneHotEncoder(), ["city"])])
    return make_pipeline(columns, sk.LogisticRegression()).fit(*people)


def test_attributions_are_effects_of_a_standard_deviation(pipeline, people):
    table, _ = people
    result = po.explain(
        pipeline, table, output="log_odds", robustness=0.0, kind="slopes"
    )
    slopes = pipeline[-1].coef_[0]
    exact = np.tile(slopes[:2], (N, 1))  # the scaler divides by the same deviations
    np.testing.assert_allclose(result.attributions[:, :2], exact, rtol=1e-6)
    shares = table["city"].value_counts(normalize=True).sort_index()
    effect = slopes[2:] - shares @ slopes[2:]
    expected = table["city"].map(dict(zip(shares.index, effect, strict=True)))
    np.testing.assert_allclose(result.attributions[:, 2], expected, rtol=1e-9)


@pytest.mark.parametrize(("line", "message"), refusals(__file__, "explain"))
def test_what_cannot_be_explained_is_refused(line, message, pipeline, people, forest):
    table, y = people
    rows = np.random.default_rng(0).normal(size=(N, D))
    linear = sk.LinearRegression().fit(rows, rows[:, 0])
    numbers = sk.LogisticRegression(max_iter=500).fit(table[["age", "income"]], y)
    with pytest.raises((InvalidInput, Refused), match=message):
        eval(line, globals() | locals())


def test_plain_gradients_slopes_and_the_knee(X, forest):
    cube, sine = po.functions.Power(3), po.functions.Sine()
    rows = X * [1.0, 50.0, 1.0]
    result = po.explain(cube, rows, scale=None, robustness=0.0, kind="slopes")
    np.testing.assert_allclose(result.attributions, cube.gradient(rows), rtol=1e-12)
    assert result.parameters["scale"] == "none"
    result = po.explain(
        cube, rows, scale=[1.0, 2.5, 3.0], robustness=0.0, kind="slopes"
    )
    assert result.parameters["scale"] == "1, 2.5, 3"
    model = sk.LinearRegression().fit(X, X @ [1.0, 2.0, 3.0])
    result = po.explain(model, X, kind="slopes")  # one explanation for all rows
    slopes = np.tile([1.0, 2.0, 3.0] * X.std(axis=0), (N, 1))
    np.testing.assert_allclose(result.attributions, slopes, rtol=1e-9)
    assert "jump test" not in result.parameters
    smooth = po.explain(lambda Z: np.sin(Z[:, 0]) * Z[:, 1], X, kind="slopes")
    assert "central differences" in smooth.parameters["gradient"]
    wide = po.explain(po.wrap(forest.predict, step=0.3), X, kind="slopes")
    assert "central differences, step 0.3" in wide.parameters["gradient"]
    ends = [po.explain(sine, X, robustness=c, kind="slopes").losses for c in (0.0, 1e6)]
    for loss, value in po.explain(sine, X, kind="slopes").losses.items():
        low, high = sorted(end[loss] for end in ends)
        assert low < value < 0.8 * high


@pytest.mark.parametrize("kind", ["slopes", "contributions"])
def test_robustness_by_a_share_is_that_of_its_weight(X, kind):
    jointly = po.wrap(lambda x: x[:, 0] * x[:, 1] * (1.0 + x[:, 2]), data=X)
    quadratic = po.functions.Power(2) if kind == "slopes" else jointly
    settings = {"kind": kind}
    best = po.explain(quadratic, X, robustness="-70%", **settings)
    assert best.loss_shares["pairwise_robustness"] == pytest.approx(0.7, abs=1e-6)
    assert best.parameters["weight rule"] == "roughness 70 % smaller"
    weight = best.weights["pairwise_robustness"]
    same = po.explain(quadratic, X, robustness=weight, **settings)
    np.testing.assert_array_equal(same.attributions, best.attributions)
    explainer = po.Explainer(quadratic, data=X, robustness="-70%", kind=kind).fit()
    shares = explainer.reference_.loss_shares
    assert shares["pairwise_robustness"] == pytest.approx(0.7, abs=1e-6)


def test_a_forest_is_explained_by_its_mean_over_observed_values(forest, X, rng):
    result = po.explain(
        forest, X, sampling=po.Sampling(precision=1e-9), kind="slopes"
    )  # warnings are errors
    assert result.parameters["gradient"] == "exact (computed from the model)"
    assert result.sampling_excess == 0.0
    noise = po.explain(forest, X, law="gaussian", kind="slopes")
    assert noise.gradient.shape == result.gradient.shape
    assert (noise.gradient != result.gradient).any()
    # scales are those of the reference table
    few = X[:6].copy()
    few[:, 2] = 0.3  # constant here, and not in the table
    result = po.explain(forest, few, data=X, robustness=0.0, kind="slopes")
    slopes = po.functions.smoothed(po.wrap(forest), law="data", data=X).gradient(few)
    np.testing.assert_allclose(result.attributions, slopes * X.std(axis=0), rtol=1e-12)
    many = rng.normal(size=(12, 260))
    wide = sk.RandomForestRegressor(2, random_state=0).fit(many, many[:, 0])
    assert po.explain(wide, many, kind="slopes").attributions.shape == (12, 260)


@pytest.fixture(scope="module")
def sampled(forest, X):
    """The forest behind a lambda: nothing of it can be read."""
    return po.explain(lambda Z: forest.predict(Z), X, robustness=0.1, kind="slopes")


def test_a_model_that_jumps_is_explained_under_the_data_law(sampled, forest, X):
    assert sampled.parameters["jump test"].startswith("jumps")
    assert sampled.parameters["gradient"].startswith("500 draws, 10 blocks")
    assert f"values near each row from {N} rows" in sampled.parameters["gradient"]
    assert sampled.target.n_blocks == 10
    assert sampled.evaluations == 500 * N
    assert 0.0 < sampled.sampling_excess < 0.5
    # the error that is printed is about the true one
    exact = po.explain(forest, X, robustness=0.1, kind="slopes")
    objective = po.GradientMatching(exact.gradient) + 0.1 * (
        po.PairwiseRobustness(po.graphs.knn_graph(X / X.std(axis=0), 8))
    )
    true = objective.value(sampled.attributions) / exact.objective - 1.0
    low, high = sampled.target.interval
    assert low < true < high
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the network has not converged
        network = sk.MLPRegressor(hidden_layer_sizes=5, max_iter=50)
        vote = sk.VotingRegressor([("forest", forest), ("network", network)])
        vote.fit(X, X[:, 0])
    result = po.explain(vote, X[:9], data=X, kind="slopes")
    assert f"values near each row from {N} rows" in result.parameters["gradient"]
    assert result.sampling_excess > 0.0


def test_precision_is_reached_by_more_draws_or_said(sampled, forest, X, capsys):
    def called(Z):
        return forest.predict(Z)

    goal = sampled.sampling_excess / 3.0
    settings = {"robustness": 0.1, "progress": False, "kind": "slopes"}
    result = po.explain(called, X, sampling=po.Sampling(precision=goal), **settings)
    assert result.sampling_excess <= goal
    assert result.evaluations > 2 * sampled.evaluations
    # errors that are not known are never precise
    with pytest.warns(ImpreciseWarning, match="central differences"):
        po.explain(
            lambda Z: np.sin(Z).sum(axis=1),
            X,
            sampling=po.Sampling(precision=0.5),
            kind="slopes",
        )
    capsys.readouterr()
    po.explain(called, X, robustness=0.1, progress=True, kind="slopes")
    assert "evaluations, about" in capsys.readouterr().err


def test_batches_are_no_larger_than_asked(X):
    sizes = []

    def remote(Z):
        sizes.append(len(Z))
        return np.round(Z).sum(axis=1)

    settings = {"data": X, "robustness": 0.1, "progress": False}
    for rows, batch in ((X[:10], 100), (X[:1], 7)):  # alone it is asked in parts too
        sizes.clear()
        po.explain(remote, rows, sampling=po.Sampling(batch_rows=batch), **settings)
        assert max(sizes) <= batch


@pytest.fixture(scope="module")
def gaps(X):
    table = pd.DataFrame(X.copy(), columns=["a", "b", "c"])
    table.loc[::3, "b"] = np.nan
    model = sk.HistGradientBoostingClassifier(max_iter=10, min_samples_leaf=5)
    return model.fit(table, X[:, 0] + X[:, 1] > 0), table


def test_neighbours_with_other_gaps_are_warned_of_or_left_out(gaps):
    model, table = gaps
    words = "different missing columns.*same_pattern=True"
    with pytest.warns(MissingPatternsWarning, match=words):
        po.explain(model, table, robustness=0.1, kind="slopes")
    po.explain(
        model, table, kind="contributions", robustness=0.1
    )  # parts are of one unit
    alike = po.graphs.Nearest(same_pattern=True)
    settings = {"robustness": 0.0, "graph": alike, "kind": "slopes"}
    result = po.explain(model, table, **settings)  # warnings are errors
    assert result.sampling_excess == 0.0  # of the margin, which is a sum of trees
    assert "log-odds" in result.parameters["function"]
    assert result.gradient[:, 1][::3].any()  # effects of what is missing
    sampled = po.explain(model, table, output="probability", **settings)
    assert sampled.sampling_excess > 0.0
    assert "margin" in sampled.parameters["gradient"]


def test_slopes_are_scaled_and_effects_are_not(gaps, X):
    table, absent = gaps[1], gaps[1].isna().to_numpy()
    model = make_pipeline(sk.SimpleImputer(), sk.Ridge()).fit(table, X[:, 0] + X[:, 1])
    best = po.explain(
        model,
        table,
        robustness=0.0,
        graph=po.graphs.Nearest(same_pattern=True),
        kind="slopes",
    )
    slopes = np.broadcast_to(model[-1].coef_ * table.std(ddof=0).to_numpy(), X.shape)
    # what is missing is imputed by the mean
    expected = np.where(absent, 0.0, slopes)
    np.testing.assert_allclose(best.gradient, expected, rtol=1e-6, atol=1e-8)


def _with_constant(X, unit):
    """A table whose last column is constant but in two new rows, and its model."""
    table = pd.DataFrame(X, columns=list("abc")).assign(same=50_000.0 / unit)
    new = table.iloc[:20].copy()
    new.iloc[3, 3], new.iloc[7, 3] = 60_000.0 / unit, 0.0
    model = sk.LogisticRegression().fit(table.assign(same=0.0), X[:, 0] > 0.0)
    model.coef_ = np.array([[1.0, -2.0, 0.5, 2e-5 * unit]])
    return model, table, new


@pytest.mark.parametrize("law", ["auto", "gaussian"])
def test_a_constant_column_is_zero_per_standard_deviation(X, law):
    settings = {"law": law, "robustness": 0.1, "kind": "slopes"}
    units = {}
    for unit in (1.0, 1e6):
        model, table, new = _with_constant(X, unit)
        units[unit] = po.explain(model, new, data=table, **settings)
        alone = po.Explainer(model, table, **settings).fit().explain(new)
        np.testing.assert_array_equal(alone.attributions[:, 3], 0.0)
    result = units[1.0]
    np.testing.assert_array_equal(result.attributions[:, 3], 0.0)
    # whatever its unit, it has no part in distances
    np.testing.assert_allclose(units[1e6].attributions, result.attributions, rtol=1e-6)
    # the log-odds are linear: c_j s_j, which no neighbour differs from
    log_odds = po.explain(model, new, data=table, output="log_odds", **settings)
    expected = np.tile([1.0, -2.0, 0.5] * X.std(axis=0), (20, 1))
    np.testing.assert_allclose(log_odds.attributions[:, :3], expected, rtol=1e-6)


def test_a_constant_column_is_zero_in_baselines_per_standard_deviation(X):
    model, table, new = _with_constant(X, 1.0)
    function = po.wrap(model, data=table, output="log_odds")
    scales = function.schema.scales("std")
    for baseline in (
        po.explainers.Gradient(),
        po.explainers.SmoothGrad(scale=0.5, relative=True),
        po.explainers.Lime(scale=0.5, relative=True),
        po.explainers.Lime(scale=0.5, relative=True, kernel_width=1.0),
    ):
        result = baseline.explain(function, new, rng=0).scaled(scales).attributions
        np.testing.assert_array_equal(result[:, 3], 0.0)
        np.testing.assert_allclose(result[0, :3], [1.0, -2.0, 0.5] * X.std(axis=0))


def test_one_row_is_a_baseline_of_parts_of_the_output(X):
    linear = sk.LinearRegression().fit(X, X[:, 0])
    settings = {"kind": "contributions", "scale": None, "robustness": 0.0}
    result = po.explain(linear, X, data=X[:1], **settings)
    expected = (X - X[0]) * linear.coef_
    np.testing.assert_allclose(result.attributions, expected, atol=1e-9)


NAMES = ("a", "b", "c", "d")
SCORES = {(0, 1): 2.0, (0, 2): 0.1, (1, 2): -1.0, (2, 3): 0.5}
"""Of errors of 0.1: clear are all but (0, 2)."""


def told(T, result, **settings):
    explanation = po.explain(
        lambda Z: np.asarray(Z) @ (1.0 + np.arange(Z.shape[1])),
        T,
        robustness=1.0,
        **settings,
    )
    return result.noted_in(explanation).parameters[f"clear {result.noun}s"]


@pytest.fixture(name="T", scope="module")
def made_table():
    rng = np.random.default_rng(0)
    return pd.DataFrame(rng.normal(size=(12, 4)), columns=list(NAMES))


CLEAR = "a × b +2, b × c −1, c × d +0.5"
PAIRS = {(j, k): 1.0 + k for j in range(4) for k in range(j + 1, 4)}
TRIPLES = {(0, 1, 2): 4.0, (0, 1, 3): 3.0, (0, 2, 3): 2.0, (1, 2, 3): -5.0}
ORDERED = {(0, 1): 1.0, (0, 2): 2.0, (1, 2): -1.0, (2, 3): -2}


def of(scores, names=NAMES, table=lambda T: T, **settings):
    return lambda T: told(table(T), scores_of(names, scores, **settings))


THREE = "b × c × d −5, a × b × c +4, a × b × d +3, a × c × d +2"
NOTES = [
    (of(SCORES), CLEAR),
    (of(SCORES, table=lambda T: T[["d", "b", "a", "c"]]), CLEAR),
    # one side is an array, without names
    (of(SCORES, range(4)), "0 × 1 +2, 1 × 2 −1, 2 × 3 +0.5"),
    (of(SCORES, table=lambda T: T.to_numpy()), CLEAR),
    (
        of(SCORES, (5, 6, 7, 8), lambda T: T.set_axis([7, 5, 6, 8], axis=1)),
        "5 × 6 +2, 6 × 7 −1, 7 × 8 +0.5",
    ),
    (of(SCORES, errors=9.0), "none of 4"),
    (of(ORDERED), "a × c +2, c × d −2, a × b +1, b × c −1"),
    (of(TRIPLES, order=3), THREE),
    (of(PAIRS), "a × d +4, b × d +4, c × d +4, a × c +3, b × c +3, 1 more"),
]


@pytest.mark.parametrize(("note", "words"), NOTES)
def test_clear_sets_are_named_with_their_signs(note, words, T):
    assert note(T) == words


@pytest.mark.parametrize("kind", ["contributions", "slopes"])
def test_columns_that_are_newly_missing_are_named(kind):
    def f(X):
        return np.nan_to_num(X[:, 0]) * X[:, 1] + X[:, 2]

    X = np.random.default_rng(0).normal(size=(40, 3))
    rows = np.where([[True, False, False], [False] * 3], np.nan, X[:2] + 0.1)
    fitted = po.Explainer(f, data=X, kind=kind).fit()
    assert fitted.explain(rows).parameters["newly missing"] == "x0"
    assert "newly missing" not in fitted.explain(rows[1:]).parameters


def test_one_hot_columns_and_groups_are_the_feature_that_is_said(T):
    red = (T["a"] > 0).astype(float)
    table = T.drop(columns=["a"]).assign(a_red=red, a_blue=1.0 - red)
    schema = po.functions.TableSchema.of(table, groups={"a": ["a_red", "a_blue"]})
    model = sk.LinearRegression().fit(table, T["a"])
    scores = scores_of(NAMES, SCORES)
    best = scores.noted_in(po.explain(model, table, data=schema, robustness=1.0))
    assert best.parameters["clear pairs"] == CLEAR
    with pytest.raises(InvalidInput, match=r"expected scores of .*'a_red'"):
        scores.noted_in(po.explain(model, table, robustness=1.0))
    groups = {"columns": (("d",), ("a", "c"), ("b",))}
    pairs = {(0, 1): 2.0, (1, 2): -1.0}
    grouped = scores_of(("d", "a and c", "b"), pairs, **groups)
    note = told(T, grouped)
    assert note == "d × a and c +2, a and c × b −1"


DECLARED = {field.name: field for field in fields(problem.Settings)}


@pytest.mark.parametrize("call", [po.explain, po.compare, po.Explainer])
def test_signatures_have_the_settings_by_name_and_default(call):
    signature = inspect.signature(call)
    own = [p for p in signature.parameters.values() if p.name in DECLARED]
    assert [p.name for p in own] == list(DECLARED)
    assert all(p.kind is p.KEYWORD_ONLY for p in own)
    assert {p.name: p.default for p in own} == {
        name: field.default for name, field in DECLARED.items()
    }
    several = {"target": "Target | list[Any]"} if call is po.explain else {}
    assert {p.name: p.annotation for p in own} == {
        name: field.type for name, field in DECLARED.items()
    } | several
    kinds = {p.kind for p in signature.parameters.values()}
    assert inspect.Parameter.VAR_KEYWORD not in kinds


def test_problem_files_know_the_same_words():
    expected = get_type_hints(ExplainSection)
    words = {
        "kind": (problem.KindChoice, type(None)),
        "contributions": get_args(ContributionChoice),
        "metric": get_args(problem.MetricChoice),
        "law": (*get_args(LawChoice), "lime"),
    }
    assert {key: get_args(expected[key]) for key in words} == words


COLUMNS = list("abcde")
ONCE = (1, len(COLUMNS), 0, 1)
"""Encodings, columns read, tables of numbers read at once, and checks of weights."""
TWO_TABLES = (2, len(COLUMNS), 1, 1)
COUNTED = {
    read_with_schema.__code__: "encodings",
    TableSchema.encode.__code__: "encodings",
    read_numbers.__code__: "columns read",
    plain_floats.__code__: "tables read at once",
    checks.read_nonnegative.__code__: "checks",
    checks.read_each_nonnegative.__code__: "checks",
}


def counted(call, *given, **settings):
    """How often each is called; tolerances are no weights."""
    counts = Counter()

    def heard(frame, event, _):
        name = COUNTED.get(frame.f_code) if event == "call" else None
        if name is not None and frame.f_locals.get("label") != "tolerance":
            counts[name] += 1

    before = sys.getprofile()
    sys.setprofile(heard)
    try:
        call(*given, **settings)
    finally:
        sys.setprofile(before)
    return tuple(counts[name] for name in dict.fromkeys(COUNTED.values()))


@pytest.fixture(scope="module")
def data():
    X, y = make_classification(120, 5, n_informative=4, n_redundant=0, random_state=0)
    table = pd.DataFrame(X, columns=COLUMNS)
    boosted = sk.HistGradientBoostingClassifier(max_iter=5).fit(table, y)
    return sk.LogisticRegression().fit(table, y), boosted, table


def test_explain_reads_its_table_once(data):
    model, boosted, table = data
    slopes = {"kind": "contributions", "contributions": "slopes"}
    alike = po.graphs.Nearest(same_pattern=True)
    plain = {"law": "none", "graph": alike, "kind": "slopes"}
    for settings in ({}, {"robustness": 1.0}, {"kind": "contributions"}, slopes, plain):
        assert counted(po.explain, model, table, **settings) == ONCE
        result = counted(po.explain, model, table[:30], data=table, **settings)
        assert result == TWO_TABLES
    assert counted(po.explain, boosted, table) == ONCE  # a margin is tried too


def test_an_explainer_reads_its_table_once_and_new_rows_once(data):
    model, _, table = data
    for kind, n_reference in (("slopes", 50), ("contributions", 500)):
        explainer = po.Explainer(
            model, table, kind=kind, graph=po.graphs.Nearest(n_reference=n_reference)
        )
        assert counted(explainer.fit) == ONCE
        assert counted(explainer.explain, table[:30]) == (1, 0, 1, 0)
        assert counted(explainer.fit, table[:30]) == TWO_TABLES


def test_several_classes_are_explained_as_each_alone():
    X = pd.DataFrame(np.random.default_rng(0).normal(size=(40, 2)), columns=["a", "b"])
    y = np.array(["low", "mid", "top"])[np.digitize(X.a + X.b, [-0.5, 0.5])]
    model = sk.DecisionTreeClassifier(max_depth=3).fit(X, y)
    rows = X.iloc[:4].set_axis(list("pqrs"), axis=0)
    for target, labels in (None, ["low", "mid", "top"]), (["top", "low"],) * 2:
        by_class = po.explain(model, rows, data=X, target=target)
        assert type(by_class) is po.results.ExplanationsByClass
        assert list(by_class) == labels
        table = by_class.to_frame()
        assert table.columns.names == ["class", "feature"]
        assert list(table.columns) == [(x, name) for x in labels for name in "ab"]
        for label in labels:
            alone = po.explain(model, rows, data=X, target=label)
            assert by_class[label].quantity == alone.quantity
            np.testing.assert_array_equal(table[label], alone.attributions)
    assert list(po.explain(model, X)) == ["low", "mid", "top"]
    with pytest.raises(InvalidInput, match="base_margin: expected none"):
        po.explain(model, rows, data=X, base_margin=np.zeros(4))
    two = sk.DecisionTreeClassifier(max_depth=3).fit(X, y == "top")
    assert po.explain(two, rows, data=X).quantity.label is True
    function = po.wrap(model, target="mid", data=X)
    assert po.explain(function, rows, data=X).quantity.label == "mid"
