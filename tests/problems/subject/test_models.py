"""Models that a problem file may name: their settings, and gradients of trees."""

from __future__ import annotations

import inspect
import sys

import numpy as np
import pandas as pd
import pytest

import propopt as po
from propopt.problems.subject.model_sections import TreesSection
from propopt.problems.subject.models import MODEL_KINDS


TREES = [model for model in MODEL_KINDS if issubclass(model, TreesSection)]
TASKS = ("classification", "regression")
SMOOTH = "smooth: {scale: 0.4, n_samples: 60}"
FILE = """\
data: {sklearn: diabetes, explain: 20, standardize: true}
model: {kind: forest, n_estimators: 5, SMOOTH}
objective: {gradient_matching: 1}
seed: 3
"""


def kind_of(model):
    return model.model_fields["kind"].annotation.__args__[0]


def made(model, task="regression", seed=0, **settings):
    """The estimator that a section makes, without what stands before it."""
    section = model.model_validate({"kind": kind_of(model), **settings})
    others = {"categorical": (), "vectorizer": None}
    return section.make(seed=seed, task=task, **others)[-1]


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("model", TREES, ids=kind_of)
def test_settings_of_trees_and_their_defaults_are_those_of_the_estimator(model, task):
    parameters = inspect.signature(type(made(model, task))).parameters
    common = set(TreesSection.model_fields) | {"kind"}
    own = {n: f.default for n, f in model.model_fields.items() if n not in common}
    assert len(own) >= (2 if kind_of(model) == "tree" else 3)
    assert own == {name: parameters[name].default for name in own}
    # settings and the seed reach the estimator
    sizes = ("max_iter", "n_estimators", "min_samples_leaf")
    size = next(name for name in sizes if name in own)
    settings = made(model, task, seed=11, max_depth=2, **{size: 7}).get_params()
    names = (size, "max_depth", "random_state")
    assert [settings[name] for name in names] == [7, 2, 11]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("table", ["diabetes", "iris"])
@pytest.mark.parametrize("model", TREES, ids=kind_of)
def test_trees_learn_of_either_kind_and_are_the_same_twice(model, table, subject):
    text = f"kind: {kind_of(model)}, max_depth: 3"
    if table == "iris":
        text += ", target_class: setosa"
    text = FILE.replace("kind: forest, n_estimators: 5", text)
    text = text.replace("diabetes", table).replace("SMOOTH", SMOOTH)
    one, other = subject(text), subject(text)
    G = one.gradient(one.points).to_numpy()
    assert np.abs(G).max() > 0.01
    np.testing.assert_array_equal(G, other.gradient(other.points))
    assert one.score.value > {"diabetes": 0.1, "iris": 0.85}[table]


@pytest.mark.parametrize("model", TREES, ids=kind_of)
def test_slopes_of_trees_are_those_of_the_data_law_of_the_fitted_rows(model, problem):
    text = f"kind: {kind_of(model)}, max_depth: 3"
    text = FILE.replace("kind: forest, n_estimators: 5", text)
    text += "baselines: [{method: gradient}]\n"
    file = problem(text.replace(", SMOOTH", ""))
    ours = file.subject
    function = po.wrap(ours.estimator)
    law = po.smoothed(function, law="data", data=ours.others)
    estimate = ours.estimate(ours.points)
    assert estimate.exact
    np.testing.assert_array_equal(estimate.values, law.gradient(ours.points))
    assert np.abs(estimate.values).max() > 1
    asked = problem(text.replace("SMOOTH", "smooth: {law: data}")).subject
    np.testing.assert_array_equal(asked.gradient(ours.points), estimate.values)
    values = function.value(ours.points)
    np.testing.assert_array_equal(ours.sloped.value(ours.points), values)
    (gradient,) = file.build().baselines()
    np.testing.assert_array_equal(gradient.attributions, estimate.values)


def test_gradients_are_those_of_the_mean_and_values_those_of_the_model(subject):
    ours = subject(FILE.replace("SMOOTH", SMOOTH))
    X, function = ours.points, po.wrap(ours.estimator)
    deviations = ours.others.std(ddof=0).to_numpy()
    mean = po.smoothed(function, 0.4 * deviations, n_samples=60, rng=3)
    np.testing.assert_allclose(ours.gradient(X), mean.gradient(X), rtol=1e-9)
    np.testing.assert_array_equal(ours.function.value(X), function.value(X))
    assert ours.function.gradient_method == mean.gradient_method


def test_without_lightgbm_a_sentence_says_how_to_install_it(complaint, monkeypatch):
    monkeypatch.setitem(sys.modules, "lightgbm", None)
    text = FILE.replace("forest, n_estimators: 5, SMOOTH", "lightgbm")
    message = complaint(text)
    assert message.startswith("file.yaml:2: model: lightgbm could not be imported")
    assert message.endswith('install it with: pip install "propopt[boosting]"')


def test_trees_take_categories(subject, tmp_path, rng):
    table = pd.DataFrame({"a": rng.normal(size=60), "c": rng.choice(list("xyz"), 60)})
    table = table.assign(y=table["a"] + (table["c"] == "x"))
    table.to_csv(tmp_path / "table.csv", index=False)
    text = FILE.replace(
        "{sklearn: diabetes, explain: 20, standardize: true}",
        "{csv: table.csv, target: y, categorical: [c], explain: 20}",
    ).replace("kind: forest", "kind: forest, task: regression")
    ours = subject(text.replace("SMOOTH", SMOOTH))
    G = ours.gradient(ours.points)
    assert list(G) == ["a", "c"]
    assert G["a"].mean() > 0.3
    effects = G["c"].groupby(ours.points["c"], observed=True).mean()
    assert effects["x"] > max(effects["y"], effects["z"]) + 0.3
