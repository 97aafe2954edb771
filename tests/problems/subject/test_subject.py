"""The subject of all jobs, and models that a file may name."""

import sys
import types

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_diabetes

import propopt as po
from propopt.base.errors import InvalidInput
from propopt.problems import Code
from propopt.problems.subject import subject as subjects
from propopt.problems.subject.models import MODEL_KINDS, TreesModel


X, Y = load_diabetes(return_X_y=True, as_frame=True)
FILE = """\
data: {sklearn: diabetes, explain: 50, standardize: true}
model: {kind: linear}
objective: {gradient_matching: 1}
seed: 5
"""


def r2(model, points, target):
    """1 − Σ (y − f)² / Σ (y − ȳ)², by hand."""
    y = np.asarray(target)
    errors = y - model.predict(points)
    return 1 - errors @ errors / ((y - y.mean()) @ (y - y.mean()))


def test_the_score_is_of_the_rows_that_were_left_out(subject, monkeypatch):
    ours = subject(FILE)
    with monkeypatch.context() as patch:
        patch.setattr(subjects, "fit", lambda *_: pytest.fail("fitted"))
        points, others = ours.points, ours.others
        assert (len(points), len(others)) == (50, 392)
        for part, y in ((points, ours.target), (others, ours.others_target)):
            pd.testing.assert_series_equal(y, Y[part.index])
    assert set(points.index).isdisjoint(others.index)
    given = r2(ours.estimator, points, Y[points.index])
    assert ours.score.value == pytest.approx(given, rel=1e-12)
    assert ours.score.in_words() == f"R² {ours.score.value:.3f} on 50 held-out rows"


def test_where_there_is_no_score_it_is_said_why(subject):
    ours = subject(FILE.replace(", explain: 50", ""))
    assert ours.others is ours.points
    assert ours.score.in_words() == "fitted on all 442 rows, no held-out score"
    ours = subject(FILE.replace("explain: 50", "explain: 1"))
    assert ours.score.in_words() == "one held-out row, too few for R²"
    ours = subject(FILE.replace("model: {kind: linear}", "function: {name: sine}"))
    assert (ours.estimator, ours.score) == (None, None)
    assert ours.function is ours.function


def test_the_score_changes_nothing_that_follows(subject):
    text = FILE.replace("linear", "mlp, hidden: [4]")
    one, other = subject(text), subject(text)
    assert one.score.value > 0
    X = one.points
    np.testing.assert_array_equal(one.gradient(X), other.gradient(X))
    assert one.function.calls == other.function.calls


IMPORTED = """\
data: {sklearn: diabetes, explain: 50}
model: {import: "own_models:model"}
objective: {gradient_matching: 1}
seed: 5
"""


@pytest.fixture
def imported(monkeypatch, subject):
    """The subject of a file whose model is this one."""

    def of(model, text=IMPORTED):
        module = types.ModuleType("own_models")
        module.model = model
        monkeypatch.setitem(sys.modules, "own_models", module)
        return subject(text, Code.ALLOWED)

    return of


def test_what_jumps_has_the_slopes_of_the_data_law(imported):
    ours = imported(lambda table: np.sign(table["bmi"].to_numpy()))
    estimate = ours.estimate(ours.points)
    assert not estimate.exact
    sizes = np.abs(estimate.values).mean(axis=0)
    assert sizes[2] > 5 * np.delete(sizes, 2).max()


def test_a_gradient_of_zero_is_refused_where_nothing_jumps(imported):
    same = imported(lambda table: np.ones(len(table)))
    with pytest.raises(InvalidInput, match=r"zero everywhere.*function_matching"):
        same.gradient(same.points)


TREES = [model for model in MODEL_KINDS if issubclass(model, TreesModel)]
OF_TREES = """\
data: {sklearn: diabetes, explain: 20, standardize: true}
model: {kind: forest, n_estimators: 5}
objective: {gradient_matching: 1}
seed: 3
"""


def kind_of(model):
    return model.model_fields["kind"].annotation.__args__[0]


@pytest.mark.parametrize("task", ["classification", "regression"])
@pytest.mark.parametrize("model", TREES, ids=kind_of)
def test_settings_of_trees_and_the_seed_reach_the_estimator(model, task):
    size = "max_iter" if "max_iter" in model.model_fields else "n_estimators"
    section = model.model_validate({"kind": kind_of(model), "max_depth": 2, size: 7})
    made = section.make(seed=11, task=task, categorical=(), vectorizer=None)[-1]
    names = (size, "max_depth", "random_state")
    assert [made.get_params()[name] for name in names] == [7, 2, 11]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("table", ["diabetes", "iris"])
@pytest.mark.parametrize("model", TREES, ids=kind_of)
def test_trees_learn_of_either_kind_and_are_the_same_twice(model, table, subject):
    text = f"kind: {kind_of(model)}, max_depth: 3"
    if table == "iris":
        text += ", target_class: setosa"
    text = OF_TREES.replace("kind: forest, n_estimators: 5", text)
    text = text.replace("diabetes", table)
    one, other = subject(text), subject(text)
    G = one.gradient(one.points).to_numpy()
    assert np.abs(G).max() > 0.01
    np.testing.assert_array_equal(G, other.gradient(other.points))
    assert one.score.value > {"diabetes": 0.1, "iris": 0.85}[table]


@pytest.mark.parametrize("model", TREES, ids=kind_of)
def test_slopes_of_trees_are_those_of_the_data_law_of_the_fitted_rows(model, problem):
    text = f"kind: {kind_of(model)}, max_depth: 3"
    text = OF_TREES.replace("kind: forest, n_estimators: 5", text)
    text += "baselines: [{method: gradient}]\n"
    file = problem(text)
    ours = file.subject
    function = po.wrap(ours.estimator)
    law = po.functions.smoothed(function, law="data", data=ours.others)
    estimate = ours.estimate(ours.points)
    assert estimate.exact
    np.testing.assert_array_equal(estimate.values, law.gradient(ours.points))
    assert np.abs(estimate.values).max() > 1
    values = function.value(ours.points)
    np.testing.assert_array_equal(ours.function_with_slopes.value(ours.points), values)
    (gradient,) = file.build().baselines()
    np.testing.assert_array_equal(gradient.attributions, estimate.values)
