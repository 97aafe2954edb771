"""Names of classes: a value that raises P(class) is shown as raising that class."""

import numpy as np
import pandas as pd
import pytest
from refusals import refusals
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import (
    LinearRegression,  # noqa: F401  # of refusals.txt
    LogisticRegression,
)

import propopt as po
from propopt.base.errors import InvalidInput
from propopt.base.text import Quantity


RNG = np.random.default_rng(11)
X = pd.DataFrame(RNG.normal(size=(120, 3)), columns=["a", "b", "c"])
# "a" raises class 1, and nothing else has a sign
Y = (2.0 * X["a"] + 0.3 * RNG.normal(size=120) > 0.4).astype(int).to_numpy()
NAMES = {0: "refused", 1: "paid"}
ROWS = X.sort_values("a").iloc[[0, 1, -2, -1]]  # two that are refused, two that paid
MODELS = {
    "log-odds": LogisticRegression(),
    "boosted": GradientBoostingClassifier(n_estimators=10, random_state=0),
    "probability": RandomForestClassifier(20, max_depth=3, random_state=0),
}


def fitted(name, y=Y):
    return MODELS[name].fit(X, y)


def told(function_or_result):
    return function_or_result.quantity.in_words()


# ---- The name of a class


@pytest.mark.parametrize(
    ("labels", "target", "outcome", "words"),
    [
        ((0, 1), None, "churn", "churn"),
        ((0, 1), 0, "churn", "churn = 0"),
        ((0, 1), 1, NAMES, "paid"),
        ((0, 1), 0, NAMES, "refused"),
        ((False, True), False, "churn", "churn = False"),
        ((False, True), False, {False: "no", True: "yes"}, "no"),
        (("0", "1"), None, "churn", "churn"),
        ((-1, 1), None, "grade", "grade = 1"),
        (("no", "yes"), None, "churn", "churn = yes"),
        (("no", "yes"), "no", {"no": "stays", "yes": "leaves"}, "stays"),
        (("no", "yes"), "no", None, "no"),
        ((0, 1), 0, None, "class 0"),
        ((0, 1, 2), 1, "grade", "grade = 1"),  # one of three
        ((0, 1, 2), 1, {0: "low", 1: "middle", 2: "high"}, "middle"),
    ],
)
def test_a_class_has_its_name(labels, target, outcome, words):
    y = np.array(labels)[np.arange(len(X)) % len(labels)]
    model = LogisticRegression().fit(X, y)
    for output in ("log_odds", "probability"):
        function = po.wrap(model, target, output, data=X, outcome=outcome)
        assert told(function) == f"{function.quantity.noun} of {words}"
        column = list(model.classes_).index(labels[1] if target is None else target)
        p = model.predict_proba(X)[:, column]
        expected = p if output == "probability" else np.log(p) - np.log1p(-p)
        np.testing.assert_allclose(function.value(X), expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(("line", "message"), refusals(__file__, "class names"))
def test_names_cover_the_classes(line, message):
    model, outcome = eval(line)
    with pytest.raises(InvalidInput, match=f"outcome: .*{message}"):
        po.explain(model.fit(X, Y), ROWS, data=X, outcome=outcome)


def test_native_boosters_and_modules_have_scores_without_labels():
    xgboost = pytest.importorskip("xgboost")
    booster = xgboost.XGBClassifier(n_estimators=3).fit(X, Y).get_booster()
    assert told(po.wrap(booster, data=X, outcome="churn")) == "log-odds of churn"
    assert told(po.wrap(booster, data=X, outcome=NAMES)) == "log-odds of paid"


# ---- The sign, compared with the label, wherever it is shown


SIDES = [(0, "refused", "paid"), (1, "paid", "refused")]


@pytest.mark.parametrize(("target", "name", "other"), SIDES)
@pytest.mark.parametrize("model", MODELS)
def test_signs_are_those_of_the_named_class(model, target, name, other):
    model = fitted(model)
    p = model.predict_proba(X)[:, target]
    best = po.explain(model, ROWS, data=X, target=target, outcome=NAMES)
    # the card
    assert told(best).endswith(f" of {name}")
    w = best.to_frame()["a"].to_numpy()
    is_likely = model.predict_proba(ROWS)[:, target] > p.mean()
    assert ((w > 0.0) == is_likely).all()
    # reasons are for the class that they raise
    reasons = best.reasons()
    table = reasons.to_frame().query("rank == 1 and feature == 'a'")
    assert set(table["row"]) == set(ROWS.index[is_likely])
    named = best.reasons(towards=name).to_frame()
    pd.testing.assert_frame_equal(named, reasons.to_frame())
    against = best.reasons(towards=other)
    table = against.to_frame().query("rank == 1 and feature == 'a'")
    assert set(table["row"]) == set(ROWS.index[~is_likely])
    assert (against.to_frame()["contribution"] < 0.0).all()
    with pytest.raises(InvalidInput, match=r"towards: .* got 'pied'"):
        best.reasons(towards="pied")


@pytest.mark.parametrize(("target", "name"), list(NAMES.items()))
@pytest.mark.parametrize("model", ["log-odds", "boosted"])
def test_audits_and_comparisons_name_the_class(model, target, name):
    model = fitted(model)
    asked = {"target": target, "outcome": NAMES}
    best = po.explain(model, ROWS, data=X, robustness=0, **asked)
    W = best.attributions
    audit = po.audit(W, model, ROWS, data=X, output="log_odds", **asked)
    assert audit["values"].verdict == "exact"
    assert f" of {name}" in audit.document().title
    wrong = po.audit(-W, model, ROWS, data=X, output="log_odds", **asked)
    assert wrong["values"].verdict == "wrong"
    newer = type(model)().fit(X, Y)
    found = po.compare(model, newer, ROWS, data=X, **asked)
    assert f" of {name}" in found.document().title
    np.testing.assert_array_equal(found.before, best.contributions)


@pytest.mark.parametrize("target", [0, 1])
def test_lime_has_the_signs_of_the_named_class(target):
    model = fitted("log-odds")
    limits = po.lime.limits(model, ROWS, data=X, target=target, outcome=NAMES)
    assert told(limits) == f"probability of {NAMES[target]}"
    at = limits.to_frame().query("feature == 'a'")
    f = model.predict_proba(ROWS)[:, target]
    high = f > model.predict_proba(X)[:, target].mean()
    assert ((at["coefficient"].to_numpy() > 0.0) == high).all()


# ---- Saved results and explainers, and problem files


@pytest.mark.parametrize("y", [Y, Y.astype(bool), np.array(["r", "p"])[Y]])
def test_names_are_saved(y, tmp_path):
    model = LogisticRegression().fit(X, y)
    first, second = model.classes_.tolist()
    names = {first: "refused", second: "paid"}
    explainer = po.Explainer(model, data=X, target=first, outcome=names).fit()
    best = explainer.explain(ROWS)
    assert told(best) == "log-odds of refused"
    explainer.save(tmp_path / "explainer.npz")
    loaded = po.Explainer.load(tmp_path / "explainer.npz", model)
    again = loaded.explain(ROWS)
    assert again.quantity == best.quantity
    assert again.quantity.alternative == best.quantity.alternative == "probability"
    assert str(again) == str(best)


def write(folder, outcome, job="explain: {}"):
    X.assign(y=Y).to_csv(folder / "data.csv", index=False)
    (folder / "p.yaml").write_text(
        "data: {csv: data.csv, target: y, explain: 20, "
        f"outcome: {outcome}}}\nmodel: {{kind: logistic, target_class: 0}}\n{job}\n",
        encoding="utf-8",
    )
    return po.problems.read_problem(folder / "p.yaml")


@pytest.mark.parametrize(
    ("outcome", "words"),
    [("{0: refused, 1: paid}", "refused"), ("debt", "debt = 0"), ("null", "y = 0")],
)
def test_files_name_classes_and_reasons_take_one(outcome, words, tmp_path):
    towards = "paid" if "paid" in outcome else "lower"
    job = f"explain: {{reasons: {{towards: {towards}}}}}"
    problem = write(tmp_path, outcome, job)
    best = problem.run(tmp_path / "out", quiet=True)
    assert told(best) == f"log-odds of {words}"
    expected = -problem.subject.estimator.decision_function(problem.subject.points)
    np.testing.assert_allclose(best.prediction, expected, rtol=1e-8)
    table = pd.read_csv(tmp_path / "out" / "p_reasons.csv")
    assert (table["contribution"] < 0.0).all()


# ---- Quantities by themselves


def test_reasons_are_for_a_class_or_against_it():
    churn = Quantity(model="m", kind="log_odds", label=1, outcome="churn")
    assert churn.decision("higher") == "for churn = 1"
    named = churn.of_outcome("churn")
    assert named.decision("higher") == "for churn"
    assert named.decision("lower") == "against churn"
    both = churn.of_outcome({0: "stays", 1: "leaves"})
    assert both.decision("lower") == "for stays"
    assert Quantity(model="m").decision("lower") == "for a lower output"
