"""Tables of a user's own: the model on them, the class that is explained, scores."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_diabetes
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.linear_model import LinearRegression

import propopt as po
from propopt.cli import main
from propopt.problems.file import sections_of_table
from propopt.problems.subject.learning import ModelScore


@pytest.fixture
def told(tmp_path, capsys):
    """What is told of a table by its name, and the folder of what is written."""

    def told_of(table, target):
        table.to_csv(tmp_path / "table.csv", index=False)
        out = tmp_path / "out"
        asked = ("--csv", str(tmp_path / "table.csv"), "--target", target)
        assert main(["explain", *asked, "-o", str(out)]) == 0
        return " ".join(capsys.readouterr().out.split()), out

    return told_of


@pytest.mark.parametrize("labels", [(0, 1), ("no", "yes"), ("stays", "leaves")])
def test_the_second_of_two_sorted_labels_is_explained_however_rare(labels, told):
    rng = np.random.default_rng(0)
    complains = rng.integers(0, 2, 240)
    X = pd.DataFrame({"complains": complains, "age": rng.normal(size=240)})
    # complaints raise the chance of churn, which one in four rows has
    churns = rng.uniform(size=240) < 0.05 + 0.4 * complains
    label = sorted(labels)[1]
    said, out = told(X.assign(churn=[labels[int(c)] for c in churns]), "churn")
    in_words = f"log-odds of churn = {label}"
    assert f"explained: {in_words}, by " in said
    attributions = pd.read_csv(out / "table_attributions.csv", index_col=0)
    assert (attributions["complains"].mean() > 0) == (label == labels[1])
    stored = json.loads((out / "table.json").read_text())
    assert stored["quantity"]["label"] == label
    assert stored["quantity"]["in_words"] == in_words
    units = f"change of the {in_words} per standard deviation of each feature"
    assert stored["units"] == units
    assert po.Explanation.load(out / "table.npz").quantity.in_words() == in_words


def test_of_several_labels_the_commonest_is_explained_and_said_so(told):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(90, 2)), columns=["a", "b"])
    said, _ = told(X.assign(kind=["x", "y", "z", "z", "y", "z"] * 15), "kind")
    assert "kind has 3 labels; 'z', the commonest, is explained" in said
    assert "explained: log-odds of kind = z" in said


# ---- a model is held against the best constant answer


X, Y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)


def test_a_model_that_beats_no_constant_is_told_so_and_no_other():
    mean = ModelScore.of(DummyRegressor().fit(X[:300], Y[:300]), X[300:], Y[300:])
    assert mean.value <= 0 == mean.constant
    assert mean.in_words().endswith("on 142 held-out rows, no better than a constant")
    labels = np.where(Y > 200, "high", "low")
    dummy = DummyClassifier().fit(X[:300], labels[:300])
    common = ModelScore.of(dummy, X[300:], labels[300:])
    assert common.constant == common.value == (labels[300:] == "low").mean()
    assert "no better than a constant" in common.in_words()
    good = ModelScore.of(LinearRegression().fit(X[:300], Y[:300]), X[300:], Y[300:])
    assert good.value > 0
    assert good.in_words().endswith("on 142 held-out rows")


def test_the_network_of_a_table_does_not_depend_on_the_units_of_its_target(tmp_path):
    def sections(table):
        table.to_csv(tmp_path / "own.csv", index=False)
        return sections_of_table(tmp_path / "own.csv", "y")

    def explained(target):
        own = sections(X.assign(y=target)) | {"explain": {}}
        return po.problems.read_sections(own, "t").subject

    # a power of two and no offset: standardized targets are the same to the last bit
    plain, other = explained(Y), explained(1024.0 * Y)
    values = 1024.0 * plain.function.value(plain.points)
    np.testing.assert_allclose(other.function.value(other.points), values, rtol=1e-12)
    # least squares has R² 0.48 on such rows; four standard errors of R² are below 0.3
    assert plain.score.value > 0.2
    # columns of text are categories
    own = sections(pd.DataFrame({"job": ["a", "b", "c"] * 20, "y": np.arange(60) % 7}))
    assert own["data"]["categorical"] == ["job"]
    assert own["model"]["target"] == "standardized"
