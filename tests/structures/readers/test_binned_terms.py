"""Explainable boosting machines are read as what they predict, term by term."""

import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from coalitions import shapley_by_definition
from model_answers import is_read
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import propopt as po
from propopt.base.errors import InexactBoxesWarning
from propopt.structures.boxes.boxes import Boxes
from propopt.structures.kinds import is_a


N = 240


def table() -> pd.DataFrame:
    """Numbers with gaps, few values, two kinds of categories, a constant."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "amount": rng.normal(size=N),
            "count": rng.integers(0, 4, N),
            "job": rng.choice(["a", "b", "c"], N),
            "code": pd.Categorical(rng.choice(["7", "11"], N)),
            "same": np.ones(N),
        }
    )
    frame["amount"] = frame["amount"].mask(rng.random(N) < 0.1)
    return frame


X = table()
Y = X["amount"].fillna(0.7) * X["count"] + 2.0 * (X["job"] == "b")
Y = Y + (X["code"] == "7") * (X["job"] != "c")
SETTINGS = {"outer_bags": 2, "max_rounds": 40, "n_jobs": 1, "random_state": 0}


def machine(kind="Regressor", target=Y, data=X, interactions=3, **settings):
    """One that is fitted; a test without the library is skipped."""
    library = pytest.importorskip("interpret.glassbox")
    made = getattr(library, f"ExplainableBoosting{kind}")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of its own plots
        settings = {**SETTINGS, **settings}
        return made(interactions=interactions, **settings).fit(data, target)


THREE = np.digitize(Y, [0, 2])
CASES = {
    "regression": (lambda: machine(), {}),
    "additive": (lambda: machine(interactions=0), {}),
    "of three columns": (lambda: machine(interactions=[(0, 1, 2), (2, 3)]), {}),
    "two classes": (lambda: machine("Classifier", Y > 1), {"output": "margin"}),
    "first class": (
        lambda: machine("Classifier", Y > 1),
        {"output": "log_odds", "target": False},
    ),
    "three classes": (
        lambda: machine("Classifier", THREE),
        {"output": "margin", "target": 2},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_it_is_read_as_it_predicts(name):
    fit, asked = CASES[name]
    function = po.wrap(fit(), data=X, **asked)
    read = is_read(function, X)
    points, _ = function.read(X)
    other = replace(read, values=1.001 * read.values)
    assert np.abs(other.value(points) - function.value(X)).max() > 1e-5


def test_missing_and_new_categories_have_bins_of_their_own():
    model = machine(data=X[X["job"] != "c"], target=Y[X["job"] != "c"])
    rows = X.assign(job=X["job"].where(X.index % 5 > 0, None))
    is_read(po.wrap(model, data=rows), rows)
    missing = rows["job"].isna()
    assert np.ptp(model.eval_terms(rows)[missing, 2]) == 0.0


def test_numbers_are_cut_where_the_model_cuts_them():
    model, cut = machine(), machine().bins_[0][0]
    edges = np.concatenate([np.nextafter(cut, -np.inf), cut, np.nextafter(cut, np.inf)])
    rows = X.sample(len(edges), replace=True, random_state=0).assign(amount=edges)
    is_read(po.wrap(model, data=rows), rows)


def test_behind_a_scaler():
    numbers = X[["amount", "count"]].fillna(0.0)
    scaler = StandardScaler().set_output(transform="pandas")
    model = make_pipeline(scaler, machine(data=scaler.fit_transform(numbers)))
    is_read(po.wrap(model, data=numbers), numbers)
    assert is_a(po.wrap(model, data=numbers).boxes, "propopt.Boxes")


def test_numbers_as_categories():
    """As codes of shops are, which are no quantities."""
    rows = X[["count", "amount"]]
    model = machine(data=rows, feature_types=["nominal", "continuous"])
    read = is_read(po.wrap(model, data=rows), rows)
    assert isinstance(read, Boxes)


def test_contributions_are_those_of_all_coalitions():
    model = machine("Classifier", Y > 1)
    rows, background = X.iloc[[0, 3, 5]], X.iloc[40:52]
    found = po.explain(model, rows, data=background, robustness=0)
    truth = shapley_by_definition(model.decision_function, rows, background)
    assert found.target_error == 0.0
    assert found.quantity.kind == "log_odds"
    assert found.contributions == pytest.approx(truth, abs=1e-12)


def test_it_is_believed_only_if_it_is_right():
    model = machine()
    function = po.wrap(model, data=X)
    assert function.boxes is not None
    model.term_scores_[0][1:] += np.linspace(0, 0.3, len(model.term_scores_[0]) - 1)
    with pytest.warns(InexactBoxesWarning, match="differs from its values"):
        po.explain(function, X.iloc[:3], data=X.iloc[:40], robustness=0)


def test_the_value_of_another_link_is_no_sum():
    model = machine(target=np.exp(Y / 4), objective="poisson_deviance")
    function = po.wrap(model, data=X)
    assert function.boxes is None
