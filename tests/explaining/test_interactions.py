"""An explanation names what its attributions cannot show."""

from __future__ import annotations

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


def test_clear_sets_are_named_with_their_signs(X):
    assert told(X, scores_of(NAMES, SCORES)).endswith(
        f"{JOINT}a × b (2) and c × d (0.5) matter jointly, which no additive "
        "attribution can show, and b × c (-1) stand in for each other, so that another "
        "fit may divide their attributions otherwise where they are correlated"
    )


def test_names_stay_with_their_scores_in_another_order_of_columns(X):
    note = told(X[["d", "b", "a", "c"]], scores_of(NAMES, SCORES))
    assert "a × b (2) and c × d (0.5) matter" in note


def test_position_decides_where_one_side_is_an_array(X):
    counted = scores_of(range(4), SCORES)
    assert "a × b (2) and c × d (0.5) matter" in told(X, counted)
    assert "x0 × x1 (2)" in told(X.to_numpy(), scores_of(NAMES, SCORES))


def test_columns_that_are_numbers_keep_their_names(X):
    numbered = X.set_axis([7, 5, 6, 8], axis=1)
    note = told(numbered, scores_of((5, 6, 7, 8), SCORES))
    assert "5 × 6 (2) and 7 × 8 (0.5)" in note


def test_other_features_are_refused(X):
    with pytest.raises(InvalidInput, match=r"explained table: 'd' missing, 'e' not kn"):
        told(X, scores_of(("a", "b", "c", "e"), SCORES))
    with pytest.raises(InvalidInput, match="scores of the 3 columns"):
        told(X.to_numpy()[:, :3], scores_of(NAMES, SCORES))


def test_nothing_clear_is_told_too(X):
    note = told(X, scores_of(NAMES, SCORES, errors=9.0))
    assert note.endswith(f"{JOINT}of 4 sets of features none clearly matters jointly")


def test_the_strongest_sets_come_first(X):
    note = told(
        X, scores_of(NAMES, {(0, 1): 1.0, (0, 2): 2.0, (1, 2): -1.0, (2, 3): -2})
    )
    assert "a × c (2) and a × b (1) matter" in note
    assert "c × d (-2) and b × c (-1) stand" in note


def test_what_leaks_is_no_interaction(X):
    leak = np.array([1.9, 0.0, -2.0, 0.0])
    note = told(X, scores_of(NAMES, SCORES, leak=leak))
    assert note.endswith(
        ": c × d (0.5) matter jointly, which no additive attribution can show"
    )


def test_many_sets_are_counted(X):
    triples = {(0, 1, 2): 4.0, (0, 1, 3): 3.0, (0, 2, 3): 2.0, (1, 2, 3): -5.0}
    note = told(X, scores_of(NAMES, triples, order=3))
    assert "a × b × c (4), a × b × d (3) and a × c × d (2) matter" in note
    assert "stand in" not in note
    pairs = {(j, k): 1.0 + k for j in range(4) for k in range(j + 1, 4)}
    note = told(X, scores_of(NAMES, pairs))
    assert "c × d (4), " in note
    assert " and 1 more matter jointly" in note


def test_other_notes_are_kept():
    one, two = {"notes": "one", "scale": "std"}, {"notes": "two"}
    assert with_note(one, two) == {"notes": "one; two", "scale": "std"}
    assert with_note({"scale": "std"}, two) == {"scale": "std", "notes": "two"}
    assert with_note(one, {}) == one
    assert with_note({}, {}) == {}


def test_one_hot_columns_are_the_feature_that_the_schema_says(X):
    red = (X["a"] > 0).astype(float)
    table = X.drop(columns=["a"]).assign(a_red=red, a_blue=1.0 - red)
    schema = po.TableSchema.of(table, groups={"a": ["a_red", "a_blue"]})
    model = LinearRegression().fit(table, X["a"])
    scores = scores_of(NAMES, SCORES)
    best = po.explain(model, table, data=schema, robustness=1.0, interactions=scores)
    assert "a × b (2) and c × d (0.5) matter" in best.parameters["notes"]
    with pytest.raises(InvalidInput, match="'a_red', 'a_blue' missing, 'a' not"):
        po.explain(model, table, robustness=1.0, interactions=scores)


def test_a_group_of_columns_has_its_name(X):
    columns = (("d",), ("a", "c"), ("b",))
    result = scores_of(
        ("d", "a and c", "b"), {(0, 1): 2.0, (1, 2): -1.0}, columns=columns
    )
    note = told(X, result)
    assert "d × a and c (2) matter" in note
    assert "a and c × b (-1) stand" in note
    with pytest.raises(InvalidInput, match="known by their names, and they have none"):
        told(X.to_numpy(), result)


def test_contributions_and_cards_have_the_note(X):
    model = LinearRegression().fit(X, X["a"])
    scores = scores_of(NAMES, SCORES)
    without = po.explain(model, X, robustness=1.0)
    assert "notes" not in without.parameters
    best = po.explain(model, X, units="output", robustness=1.0, interactions=scores)
    assert "a × b (2)" in best.parameters["notes"]
    assert "a × b (2)" in best._repr_html_()


def test_an_explainer_tells_of_each_row_and_after_loading(X, tmp_path):
    model = LinearRegression().fit(X, X["a"])
    scores = scores_of(NAMES, SCORES)
    explainer = po.Explainer(model, X, robustness=1.0, interactions=scores).fit()
    note = explainer.explain(X[:1]).parameters["notes"]
    assert note.startswith(f"{JOINT}a × b (2) and c × d (0.5) matter")
    explainer.save(tmp_path / "explainer.npz")
    again = po.Explainer.load(tmp_path / "explainer.npz", model)
    assert again.explain(X[:1]).parameters["notes"] == note
    alone = po.explain(model, X[:1], data=X, robustness=1.0, interactions=scores)
    assert alone.parameters["notes"] == note


def test_what_is_no_result_of_sets_is_refused(X):
    single = scores_of(NAMES, {(0,): 1.0}, order=1)
    with pytest.raises(InvalidInput, match="single features, which attributions show"):
        told(X, single)
    with pytest.raises(InvalidInput, match="expected InteractionScores"):
        told(X, [("a", "b")])
    with pytest.raises(InvalidInput, match="interactions: they are of columns"):
        po.explain(len, ["a text", "another"], interactions=single)
