"""An explanation names what its attributions cannot show."""

import numpy as np
import pandas as pd
import pytest
from interaction_scores import scores_of
from sklearn.linear_model import LinearRegression

import propopt as po
from propopt.base.errors import InvalidInput
from propopt.explaining.plan import with_note


NAMES = ("a", "b", "c", "d")
SCORES = {(0, 1): 2.0, (0, 2): 0.1, (1, 2): -1.0, (2, 3): 0.5}
"""Of errors of 0.1: clear are all but (0, 2)."""
JOINT = "interactions (iLOCO of learners that were fitted again, in squared units of "
JOINT += "the target, 90 % intervals, Bonferroni of 4): "


def told(X, result, **settings):
    explanation = po.explain(
        lambda Z: np.asarray(Z) @ np.arange(1.0, 5.0),
        X,
        robustness=1.0,
        interactions=result,
        **settings,
    )
    return explanation.parameters["notes"]


@pytest.fixture(name="X", scope="module")
def made_table():
    rng = np.random.default_rng(0)
    return pd.DataFrame(rng.normal(size=(12, 4)), columns=list(NAMES))


CLEAR = "a × b (2) and c × d (0.5) matter"
PAIRS = {(j, k): 1.0 + k for j in range(4) for k in range(j + 1, 4)}
TRIPLES = {(0, 1, 2): 4.0, (0, 1, 3): 3.0, (0, 2, 3): 2.0, (1, 2, 3): -5.0}
ORDERED = {(0, 1): 1.0, (0, 2): 2.0, (1, 2): -1.0, (2, 3): -2}
LEAK = np.array([1.9, 0.0, -2.0, 0.0])


def of(scores, names=NAMES, table=None, **settings):
    return lambda X: told(
        table(X) if table else X, scores_of(names, scores, **settings)
    )


JOINTLY = "jointly, which no additive attribution can show"
WHOLE = (
    f"{JOINT}{CLEAR} {JOINTLY}, and b × c (-1) stand in for each other, so that "
    "another fit may divide their attributions otherwise where they are correlated"
)
THREE = "a × b × c (4), a × b × d (3) and a × c × d (2) matter"
NOTES = [
    (of(SCORES), WHOLE),
    (of(SCORES, table=lambda X: X[["d", "b", "a", "c"]]), CLEAR),
    # position decides where one side is an array
    (of(SCORES, range(4)), CLEAR),
    (of(SCORES, table=lambda X: X.to_numpy()), "x0 × x1 (2)"),
    (of(SCORES, (5, 6, 7, 8), lambda X: X.set_axis([7, 5, 6, 8], axis=1)), "5 × 6 (2)"),
    (of(SCORES, errors=9.0), f"{JOINT}of 4 sets of features none clearly matters join"),
    (of(ORDERED), "a × c (2) and a × b (1) matter"),
    (of(ORDERED), "c × d (-2) and b × c (-1) stand"),
    (of(SCORES, leak=LEAK), f": c × d (0.5) matter {JOINTLY}"),  # no interaction
    (of(TRIPLES, order=3), THREE),
    (of(PAIRS), "c × d (4), "),
    (of(PAIRS), " and 1 more matter jointly"),
]


@pytest.mark.parametrize(("note", "words"), NOTES)
def test_clear_sets_are_named_with_their_signs(note, words, X):
    said = note(X)
    assert words in said
    assert ("stand in" in said) == ("(-" in said)


def test_other_notes_are_kept():
    one, two = {"notes": "one", "scale": "std"}, {"notes": "two"}
    assert with_note(one, two) == {"notes": "one; two", "scale": "std"}
    assert with_note({"scale": "std"}, two) == {"scale": "std", "notes": "two"}
    assert with_note(one, {}) == one


def test_one_hot_columns_and_groups_are_the_feature_that_is_said(X):
    red = (X["a"] > 0).astype(float)
    table = X.drop(columns=["a"]).assign(a_red=red, a_blue=1.0 - red)
    schema = po.TableSchema.of(table, groups={"a": ["a_red", "a_blue"]})
    model = LinearRegression().fit(table, X["a"])
    settings = {"robustness": 1.0, "interactions": scores_of(NAMES, SCORES)}
    best = po.explain(model, table, data=schema, **settings)
    assert CLEAR in best.parameters["notes"]
    with pytest.raises(InvalidInput, match="'a_red', 'a_blue' missing, 'a' not"):
        po.explain(model, table, **settings)
    groups = {"columns": (("d",), ("a", "c"), ("b",))}
    pairs = {(0, 1): 2.0, (1, 2): -1.0}
    grouped = scores_of(("d", "a and c", "b"), pairs, **groups)
    note = told(X, grouped)
    assert "d × a and c (2) matter" in note
    assert "a and c × b (-1) stand" in note
    with pytest.raises(InvalidInput, match="known by their names, and they have none"):
        told(X.to_numpy(), grouped)


def test_contributions_cards_and_explainers_have_the_note(X, tmp_path):
    model = LinearRegression().fit(X, X["a"])
    assert "notes" not in po.explain(model, X, robustness=1.0).parameters
    settings = {"robustness": 1.0, "interactions": scores_of(NAMES, SCORES)}
    best = po.explain(model, X, units="output", **settings)
    assert "a × b (2)" in best.parameters["notes"]
    assert "a × b (2)" in best._repr_html_()
    explainer = po.Explainer(model, X, **settings).fit()
    explainer.save(tmp_path / "explainer.npz")
    again = po.Explainer.load(tmp_path / "explainer.npz", model)
    alone = po.explain(model, X[:1], data=X, **settings)
    for found in (explainer.explain(X[:1]), again.explain(X[:1]), alone):
        assert found.parameters["notes"].startswith(f"{JOINT}{CLEAR}")


SINGLE = scores_of(NAMES, {(0,): 1.0}, order=1)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (of(SCORES, ("a", "b", "c", "e")), "explained table: 'd' missing, 'e' not kn"),
        (of(SCORES, table=lambda X: X.to_numpy()[:, :3]), "scores of the 3 columns"),
        (lambda X: told(X, SINGLE), "single features, which attributions show"),
        (lambda X: told(X, [("a", "b")]), "expected InteractionScores"),
        (
            lambda _: po.explain(len, ["a text", "another"], interactions=SINGLE),
            "interactions: they are of columns",
        ),
    ],
)
def test_what_is_no_result_of_these_features_is_refused(call, message, X):
    with pytest.raises(InvalidInput, match=message):
        call(X)
