"""Tables of a user's own: empty cells, the class that is explained, scores."""

import numpy as np
import pandas as pd
import pytest
from problem_texts import build
from sklearn.datasets import load_diabetes
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.linear_model import LinearRegression

import propopt as po
from propopt.problems.subject.models import Code
from propopt.problems.subject.subject import score_of


TEXT = """\
data: {csv: table.csv, target: y, explain: 20, standardize: true, CATEGORIES}
model: {MODEL}
objective:
  gradient_matching: 1
  pairwise_robustness: {weight: 0.5, graph: {kind: knn, n_neighbors: 4}}
baselines: [{method: gradient}]
"""


@pytest.fixture
def table(tmp_path, rng):
    frame = pd.DataFrame(rng.normal(size=(80, 3)), columns=["a", "b", "c"])
    frame["y"] = frame["a"] - 2 * frame["b"]
    frame["a"] = frame["a"].mask(rng.random(80) < 0.2)
    frame["c"] = frame["c"].mask(rng.random(80) < 0.2)
    frame["city"] = rng.choice(["Rome", "Oslo", None], 80)
    frame.to_csv(tmp_path / "table.csv", index=False)
    return frame


def text(model, categories="categorical: [city]"):
    return TEXT.replace("CATEGORIES", categories).replace("MODEL", model)


def read(path, code=Code.REFUSED):
    return po.problems.read_problem(path, code=code)


@pytest.mark.parametrize("kind", ["hist_gradient_boosting", "forest"])
def test_trees_are_fitted_to_empty_cells_and_explained(kind, table, write):
    size = {"hist_gradient_boosting": "max_iter"}.get(kind, "n_estimators")
    settings = f"{size}: 10, min_samples_leaf: 4"
    model = f"kind: {kind}, task: regression, {settings}"
    subject = read(write(text(model))).subject
    points = subject.points
    assert points["a"].isna().any()
    absent = table.loc[points.index, ["a", "c"]].isna()
    np.testing.assert_array_equal(points[["a", "c"]].isna(), absent)
    result = subject.function_with_slopes.gradient(points)
    assert list(result) == ["a", "b", "c", "city"]
    assert (result["a"][absent["a"]] != 0).any()
    assert subject.score.value > 0.2


def test_losses_take_empty_cells_or_say_what_they_need(table, write, tmp_path):
    model = "kind: forest, task: regression, n_estimators: 5"
    best = po.solve(read(write(text(model))).build().objective)
    assert best.gap <= 1e-9
    assert best.attributions.shape == (20, 4)
    loss = "  kernel_robustness: {lengthscale: 1}\n"
    message = build(write(text(model).replace("  pairwise", loss + "  pairwise")))
    assert "no kernel is positive definite for distances between such rows" in message
    table.drop(columns="city").to_csv(tmp_path / "table.csv", index=False)
    numbers = text(model, "categorical: []")
    path = write(numbers.replace("gradient_matching", "function_matching"))
    assert "wᵀx is undefined; use GradientMatching" in build(path)


X, Y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)


def test_a_model_that_beats_no_constant_is_told_so_and_no_other():
    mean = score_of(DummyRegressor().fit(X[:300], Y[:300]), X[300:], Y[300:])
    assert mean.value <= 0 == mean.constant
    assert mean.in_words().endswith("on 142 held-out rows, no better than a constant")
    labels = np.where(Y > 200, "high", "low")
    dummy = DummyClassifier().fit(X[:300], labels[:300])
    common = score_of(dummy, X[300:], labels[300:])
    assert common.constant == common.value == (labels[300:] == "low").mean()
    assert "no better than a constant" in common.in_words()
    good = score_of(LinearRegression().fit(X[:300], Y[:300]), X[300:], Y[300:])
    assert good.value > 0
    assert good.in_words().endswith("on 142 held-out rows")


def test_a_network_does_not_depend_on_the_units_of_a_standardized_target(tmp_path):
    network = {"kind": "mlp", "hidden": [32, 16], "regularization": 10}
    network |= {"task": "regression", "target": "standardized"}

    def explained(target):
        X.assign(y=target).to_csv(tmp_path / "own.csv", index=False)
        data = {"csv": "own.csv", "target": "y", "explain": 147, "standardize": True}
        sections = {"data": data, "model": network, "explain": {}}
        return po.problems.read_sections(sections, folder=tmp_path).subject

    # a power of two and no offset: standardized targets are the same to the last bit
    plain = explained(Y)
    expected = 1024.0 * plain.function.value(plain.points)
    other = explained(1024.0 * Y)
    np.testing.assert_allclose(other.function.value(other.points), expected, rtol=1e-12)
    # least squares has R² 0.48 on such rows; four standard errors of R² are below 0.3
    assert plain.score.value > 0.2


@pytest.mark.parametrize("labels", [(0, 1), ("no", "yes"), ("stays", "leaves")])
def test_the_second_of_two_sorted_labels_is_explained_however_rare(labels, tmp_path):
    rng = np.random.default_rng(0)
    complains = rng.integers(0, 2, 240)
    table = pd.DataFrame({"complains": complains, "age": rng.normal(size=240)})
    # complaints raise the chance of churn, which one in four rows has
    churns = rng.uniform(size=240) < 0.05 + 0.4 * complains
    table["churn"] = [labels[int(c)] for c in churns]
    table.to_csv(tmp_path / "table.csv", index=False)
    sections = {
        "data": {"csv": "table.csv", "target": "churn", "explain": 80},
        "model": {"kind": "logistic", "output": "log_odds"},
        "explain": {"kind": "contributions"},
    }
    file = po.problems.read_sections(sections, folder=tmp_path)
    best = file.job.solve(file)
    label = sorted(labels)[1]
    in_words = "log-odds of churn" + ("" if label == 1 else f" = {label}")
    assert best.quantity.in_words() == in_words
    rises = best.to_frame()["complains"].corr(table["complains"]) > 0
    assert rises == (label == labels[1])
