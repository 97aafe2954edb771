"""``po.explain`` on documents."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from text_models import DOCUMENTS, called, forest, linear

import propopt as po
from propopt.base.errors import InvalidInput
from propopt.functions.texts import without_each


WAYS = {
    "effects": {},
    "limits": {"law": po.lime.TextLaw()},
    "shapley": {"units": "output"},
    "effects that add up": {"units": "output", "contributions": "slopes"},
}
each_way = pytest.mark.parametrize("settings", WAYS.values(), ids=WAYS)


@pytest.fixture(scope="module")
def model():
    return forest()


def counts(model) -> np.ndarray:
    return po.wrap(model, data=DOCUMENTS).read(DOCUMENTS)[0]


def value_of(model, texts) -> np.ndarray:
    return model.predict_proba(list(texts))[:, 1]


@each_way
def test_words_that_are_not_in_a_document_have_exactly_zero(model, settings):
    best = po.explain(model, DOCUMENTS, **settings, progress=False)
    assert best.attributions.any()
    assert not best.attributions[counts(model) == 0].any()


@each_way
def test_the_optimum_is_certified_and_names_its_words(model, settings):
    named = pd.Series(DOCUMENTS, index=[f"review {n}" for n in range(len(DOCUMENTS))])
    best = po.explain(model, named, **settings, progress=False)
    assert best.certificate.holds(1e-6)
    assert best.labels.points == tuple(named.index)
    assert best.labels.features == po.wrap(model, data=named).text_schema.vocabulary
    assert best.units == "output"
    assert "n_neighbors=8" in best.parameters["graph"]
    assert best.parameters["weight rule"] == "knee of the curve"


def test_the_target_is_the_effect_of_deleting_each_word(model):
    best = po.explain(model, DOCUMENTS, progress=False)
    function = po.wrap(model, data=DOCUMENTS)
    for row, document in zip(
        best.gradient, function.documents_of(DOCUMENTS), strict=True
    ):
        if document.n_words == 0:
            assert not row.any()
            continue
        without = value_of(model, without_each(document))
        effects = value_of(model, [document.text])[0] - without
        columns = function.text_schema.columns_of(document)
        np.testing.assert_allclose(row[columns], effects, atol=1e-12)


@pytest.mark.parametrize("contributions", ["shapley", "slopes"])
def test_words_of_each_document_add_up(model, contributions):
    best = po.explain(
        model, DOCUMENTS, units="output", contributions=contributions, progress=False
    )
    blank = [po.wrap(model, data=[x]).of_document(x).document for x in DOCUMENTS]
    empty = [x.without(np.zeros(x.n_words, bool)) for x in blank]
    total = value_of(model, DOCUMENTS) - value_of(model, empty)
    np.testing.assert_allclose(best.attributions.sum(axis=1), total, atol=1e-12)
    assert np.abs(best.completeness_gap).max() < 1e-12


@pytest.mark.parametrize("make", [forest, linear])
def test_the_target_of_complete_attributions_is_shapley_values(make):
    shap = pytest.importorskip("shap")
    model = make()
    best = po.explain(model, DOCUMENTS, units="output", progress=False)
    function = po.wrap(model, data=DOCUMENTS)
    for n in (0, 3, 5):
        at = function.of_document(DOCUMENTS[n])
        masker = shap.maskers.Independent(np.zeros((1, at.n_words)))
        explainer = shap.explainers.ExactExplainer(
            lambda bits, at=at: at.value_at(np.asarray(bits, float)), masker
        )
        phi = explainer(np.ones((1, at.n_words)), silent=True).values[0]
        columns = function.text_schema.columns_of(at.document)
        result = best.contributions[n, columns]
        np.testing.assert_allclose(result, phi, atol=1e-9)


def test_a_model_that_can_only_be_called_is_explained_too():
    best = po.explain(called, DOCUMENTS, units="output", progress=False)
    assert best.certificate.holds(1e-6)
    # of three words each has a third of what they do together
    row = best.contributions[3]
    names = best.labels.features
    assert row[names.index("not")] == pytest.approx(2.0, abs=1e-9)
    assert row[names.index("all")] == pytest.approx(1.0, abs=1e-9)


def test_long_documents_of_such_a_model_are_drawn_with_errors():
    texts = [" ".join(f"w{k}" for k in range(n, n + 18)) for n in (0, 2)]
    pair = [text + " bad not at" for text in texts]
    best = po.explain(called, pair, units="output", progress=False)
    assert "orders of the words" in best.parameters["contributions"]
    assert "no pipeline of scikit-learn" in best.parameters["notes"]
    row = dict(zip(best.labels.features, best.contributions[0], strict=True))
    # a third of 200 orders give all of 3 to one word: 6 errors, one false alarm in 1e9
    assert row["bad"] == pytest.approx(2.0, abs=6 * 3 * np.sqrt(2 / 9 / 200))
    assert best.standard_errors[0].max() > 0.0
    assert row["w3"] == pytest.approx(1.0, abs=1e-9)


def test_near_duplicates_agree_more_where_robustness_counts_more(model):
    pair = [*DOCUMENTS, "the food was not bad at all, and a good price"]
    shared, apart = counts(model)[3] > 0, []
    for weight in (0.0, 1.0, 100.0):
        best = po.explain(linear(), pair, robustness=weight, progress=False)
        W = best.attributions[:, : len(shared)]
        apart.append(np.abs(W[3] - W[9])[shared].max())
        assert best.parameters["weight rule"] == "given"
    assert apart[0] > apart[1] > apart[2]
    assert apart[2] < 0.1 * apart[0]


def test_documents_without_neighbours_keep_their_target(model):
    best = po.explain(model, DOCUMENTS, progress=False)
    alone = len(DOCUMENTS) - 1
    np.testing.assert_allclose(
        best.attributions[alone], best.gradient[alone], atol=1e-12
    )


@each_way
def test_one_document_has_its_target(model, settings):
    best = po.explain(model, [DOCUMENTS[3]], **settings, progress=False)
    kind = "contributions" if "units" in settings else "gradient"
    if settings.get("contributions") != "slopes":
        np.testing.assert_allclose(
            best.attributions, getattr(best, kind), rtol=0, atol=1e-9
        )
    assert best.parameters["weight rule"] == "none: no similar documents share a word"


def test_given_contributions_are_taken_and_have_to_be_of_words_that_are_there(model):
    first = po.explain(model, DOCUMENTS, units="output", progress=False)
    given = first.contributions
    again = po.explain(
        model, DOCUMENTS, units="output", contributions=given, progress=False
    )
    np.testing.assert_allclose(again.attributions, first.attributions, atol=1e-6)
    wrong = np.array(given)
    wrong[0, first.labels.features.index("slow")] = 1.0
    with pytest.raises(InvalidInput, match="document 0 has one of 'slow'"):
        po.explain(model, DOCUMENTS, units="output", contributions=wrong)


@pytest.mark.parametrize(
    "settings",
    [
        {"scale": None},
        {"metric": "effects"},
        {"same_pattern": True},
        {"precision": 0.1},
        {"max_evaluations": 100},
        {"law": "data"},
        {"units": "gradient"},
        {"units": "output", "contributions": "owen"},
    ],
    ids=lambda settings: next(reversed(settings)),
)
def test_what_has_no_meaning_for_documents_is_refused(model, settings):
    name = next(reversed(settings))
    with pytest.raises(InvalidInput, match=f"^{name}: "):
        po.explain(model, DOCUMENTS, **settings)


def test_a_law_of_words_is_refused_for_tables():
    X = np.arange(6.0).reshape(3, 2)
    with pytest.raises(InvalidInput, match="TextLaw deletes words"):
        po.explain(np.sum, X, law=po.lime.TextLaw())


def test_the_same_seed_gives_the_same_answer():
    texts = [
        " ".join(f"w{k}" for k in range(n, n + 14)) + " not bad at" for n in (0, 3)
    ]
    first, again, other = (
        po.explain(called, texts, units="output", rng=seed, progress=False)
        for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(first.attributions, again.attributions)
    assert (first.attributions != other.attributions).any()
