"""Models of texts as functions: values, effects of words, calls, refusals."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
from odd_texts import MANY_WORDS, ODD_TEXTS
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from word_rules import EachOccurrence

import propopt as po
from propopt.base.errors import InvalidInput
from propopt.base.text import Quantity
from propopt.functions.cost import cost_of
from propopt.functions.texts import DocumentFunction, TextFunction
from propopt.structures.subsets.conjunctions import Conjunctions
from propopt.tables.documents import PatternWords, VectoriserWords


NOTES = [
    "Good food, good price.",
    "no food",
    "Everything about it is bad",
    "no good, NO price",
    "",
    "good",
    "?!",
]
LABELS = [1, 0, 0, 0, 1, 1, 0]


def classifier(**settings):
    model = make_pipeline(TfidfVectorizer(**settings), LogisticRegression())
    return model.fit(NOTES, LABELS)


def effects_of(model, schema, texts):
    """f(x) − f(x without each word), text by text."""
    effects = np.zeros((len(texts), len(schema.names)))
    for row, text in zip(effects, texts, strict=True):
        document = schema.document_of(text)
        for j, word in enumerate(document.words):
            bits = np.arange(document.n_words) != j
            less = model([text])[0] - model([document.without(bits)])[0]
            row[schema.places[word]] = less
    return effects


def test_values_and_effects_of_a_pipeline():
    model = classifier()
    f = po.wrap(model, data=NOTES)
    assert isinstance(f, TextFunction)

    def ask(texts):
        return model.predict_proba(texts)[:, 1]

    np.testing.assert_array_equal(f.value(NOTES), ask(NOTES))
    expected = effects_of(ask, f.text_schema, NOTES)
    np.testing.assert_allclose(f.gradient(NOTES), expected, rtol=0, atol=1e-15)
    points, labels = f.read(NOTES)
    assert np.array_equal(f.value_at(points, labels), ask(NOTES))
    assert f.gradient_method == "exact"
    assert f.effects_at(points).all()
    assert not f.gradient(NOTES)[[4, 6]].any()  # no word


def test_outputs_and_targets():
    model = classifier()
    for output, ask in {
        "log_odds": model.decision_function,
        "margin": model.decision_function,
        "probability": lambda texts: model.predict_proba(texts)[:, 1],
    }.items():
        f = po.wrap(model, output=output, data=NOTES)
        np.testing.assert_allclose(f.value(NOTES), ask(NOTES), rtol=1e-12)
    first = po.wrap(model, 0, data=NOTES).value(NOTES)
    np.testing.assert_array_equal(first, model.predict_proba(NOTES)[:, 0])
    with pytest.raises(InvalidInput, match="expected one of the classes 0, 1, got 7"):
        po.wrap(model, 7, data=NOTES)
    ridge = make_pipeline(CountVectorizer(), Ridge()).fit(NOTES, LABELS)
    np.testing.assert_array_equal(
        po.wrap(ridge, data=NOTES).value(NOTES), ridge.predict(NOTES)
    )


def test_values_of_texts_whose_words_are_not_known():
    model = classifier()
    f = po.wrap(model, data=NOTES)
    new = ["unheard of", "bad food unheard"]
    np.testing.assert_array_equal(f.value(new), model.predict_proba(new)[:, 1])
    with pytest.raises(InvalidInput, match="document 0 has words that are not in"):
        f.gradient(new)


def test_words_that_the_vectoriser_does_not_know_have_no_effect():
    f = po.wrap(classifier(), data=[*NOTES, "good unheard food"])
    effects = f.gradient(["good unheard food"])[0]
    indices = f.text_schema.places
    assert effects[indices["unheard"]] == 0.0
    assert effects[indices["good"]] > 0.0


def test_the_frame_of_a_series():
    f = po.wrap(classifier(), data=NOTES)
    X = pd.Series(NOTES[:2], index=["a", "b"])
    frame = f.gradient(X)
    assert list(frame.index) == ["a", "b"]
    assert list(frame.columns) == list(f.text_schema.names)
    np.testing.assert_array_equal(frame.to_numpy(), f.gradient(NOTES[:2]))
    assert f.estimate(X).labels.points == ("a", "b")


def test_calls_are_counted_and_bounded():
    asked = []

    def model(texts):
        asked.append(len(texts))
        assert isinstance(texts, list)
        return [float(len(text)) for text in texts]

    f = po.wrap(model, data=NOTES, batch_rows=4)
    f.gradient(NOTES)
    words = sum(f.text_schema.document_of(text).n_words for text in NOTES)
    assert f.calls.rows == len(NOTES) + words
    assert f.calls.trials == 6
    assert sum(asked) == f.calls.rows + f.calls.trials
    assert max(asked) == 4
    before = f.calls.rows
    f.of_document("no good").gradient_at(np.ones((1, 2)))
    assert f.calls.rows == before + 3
    assert f.calls.trials == 6  # the model was tried already


def test_long_texts_are_given_in_parts_of_bounded_size():
    sizes = []

    def model(texts):
        sizes.append(sum(map(len, texts)))
        return np.zeros(len(texts))

    f = po.wrap(model, data=["a"])
    f.texts_value("x" * 1_000_000 for _ in range(10))
    assert max(sizes[:-2]) <= 2**22
    assert sum(sizes) >= 10_000_000


def test_a_model_that_answers_otherwise_is_refused():
    rng = np.random.default_rng(0)
    f = po.wrap(lambda texts: rng.random(len(texts)), data=NOTES)
    with pytest.raises(InvalidInput, match="asked twice for the same row"):
        f.value(NOTES)


def test_a_model_that_fails_is_told_the_text():
    def model(texts):
        raise RuntimeError(f"no tokens in {len(texts)}")

    text = "a\x1b[31m " * 50
    with pytest.raises(RuntimeError, match="no tokens in 1") as caught:
        po.wrap(model, data=[text]).value([text])
    (note,) = caught.value.__notes__
    assert r"was given 1 texts, of which the first is 'a\x1b[31m" in note


def test_values_that_are_not_finite_name_the_text():
    f = po.wrap(lambda texts: [1 / len(t) if t else np.nan for t in texts], data=["a"])
    assert f.value(["a"]) == 1.0
    with pytest.raises(InvalidInput, match="the value is nan for the text ''"):
        f.gradient(["a"])


class TestRowsThatAreNoDocument:
    def test_are_refused(self):
        f = po.wrap(classifier(), data=NOTES)
        points, _ = f.read(NOTES)
        f.value_at(points[:4])
        with pytest.raises(InvalidInput, match="no document of `data`"):
            f.value_at(2 * points)

    def test_are_told_apart_by_the_texts_themselves(self):
        texts = ["a b", "b  a"]
        f = po.wrap(lambda given: [len(t) for t in given], data=texts)
        points, labels = f.read(texts)
        assert f.value_at(points, labels).tolist() == [3.0, 4.0]
        assert f.gradient(texts[1:]).tolist() == [[1.0, 1.0]]
        with pytest.raises(InvalidInput, match=r"documents 0, 1 of `data` have the sa"):
            f.value_at(points)

    def test_may_be_new_texts(self):
        f = po.wrap(lambda given: [len(t) for t in given], data=["a b", "c"])
        assert f.gradient(["c a a"]).tolist() == [[2.0, 0.0, 1.0]]


@pytest.mark.parametrize("oddity", ODD_TEXTS)
@pytest.mark.parametrize("ngrams", [1, 2])
def test_odd_texts(oddity, ngrams):
    text = ODD_TEXTS[oddity]
    model = classifier(ngram_range=(1, ngrams))
    f = po.wrap(model, data=[text, *NOTES])

    def ask(texts):
        return model.predict_proba(texts)[:, 1]

    expected = effects_of(ask, f.text_schema, [text])
    np.testing.assert_allclose(f.gradient([text]), expected, rtol=0, atol=1e-15)


def test_five_thousand_words():
    f = po.wrap(lambda texts: ["good" in t for t in texts], data=[MANY_WORDS + " good"])
    effects = f.gradient([MANY_WORDS + " good"])
    assert effects.shape == (1, 5_001)
    assert np.flatnonzero(effects).tolist() == [5_000]


class TestOfDocument:
    def test_columns_are_words_that_are_absent_or_present(self):
        f = po.wrap(classifier(), data=NOTES)
        at = f.of_document(NOTES[0])
        assert isinstance(at, DocumentFunction)
        assert at.schema.names == ("good", "food", "price") == at.features
        assert at.schema.categorical.all()
        for column in at.schema.columns:
            assert column.categories[:2] == ("absent", "present")
            assert column.frequencies.tolist() == [1.0, 0.0, 0.0]
        bits = np.array([[1.0, 0.0, 1.0], [0.0, 0.0, 0.0]])
        texts = f.text_schema.document_of(NOTES[0]).texts(bits == 1)
        np.testing.assert_array_equal(at.value_at(bits), f.value(texts))
        table = at.schema.decode(bits)
        np.testing.assert_array_equal(at.value(table), f.value(texts))

    def test_its_gradient_is_the_effect_of_words(self):
        f = po.wrap(classifier(), data=NOTES)
        at = f.of_document(NOTES[0])
        row = f.gradient(NOTES[:1])[0, f.text_schema.columns_of(at.document)]
        np.testing.assert_array_equal(at.gradient_at(np.ones((1, 3)))[0], row)
        bits = np.array([[1.0, 0.0, 1.0], [0.0, 0.0, 0.0], [0.0, 1.0, 1.0]])
        result = at.gradient_at(bits)
        for row, kept in zip(result, bits, strict=True):
            for j in range(3):
                less = kept * (np.arange(3) != j)
                both = at.value_at(np.array([kept, less]))
                assert row[j] == both[0] - both[1]
        assert at.effects_at(bits).all()

    def test_what_is_no_code_is_refused(self):
        at = po.wrap(classifier(), data=NOTES).of_document(NOTES[0])
        for wrong in (np.full((1, 3), 2.0), np.full((1, 3), np.nan), np.ones((1, 4))):
            with pytest.raises(InvalidInput, match=r"expected codes \(n, 3\) of words"):
                at.value_at(wrong)

    def test_a_document_without_words_has_one_value(self):
        f = po.wrap(classifier(), data=NOTES)
        at = f.of_document("?!")
        assert at.n_words == 0
        assert at.value_at(np.zeros((1, 0))).tolist() == f.value(["?!"]).tolist()
        assert at.gradient_at(np.zeros((1, 0))).shape == (1, 0)

    def test_it_knows_the_function_of_sets(self):
        class Read:
            def at(self, document):
                return Conjunctions.of([1.0], [[0]], [[]], document.n_words)

        schema = po.TextSchema.of(["good food"])
        f = TextFunction(
            Quantity(model="own"), lambda texts: [len(t) for t in texts], schema, Read()
        )
        assert f.is_read
        assert f.of_document("good food").subsets.n_words == 2


class TestRules:
    def test_by_default_words_are_those_of_the_model(self):
        f = po.wrap(classifier(stop_words=["is"]), data=NOTES)
        assert f.text_schema.rule == VectoriserWords(stop_words=frozenset(["is"]))
        assert "is" not in f.text_schema.names
        assert "everything" in f.text_schema.names

    def test_of_a_callable_they_are_those_of_the_package(self):
        f = po.wrap(lambda texts: [len(t) for t in texts], data=NOTES)
        assert f.text_schema.rule == PatternWords()
        assert {"Good", "good", "NO", "no"} <= set(f.text_schema.names)

    def test_a_schema_says_what_they_are(self):
        schema = po.TextSchema.of(NOTES, PatternWords())
        f = po.wrap(classifier(), data=schema)
        assert f.text_schema is schema
        # "Good" and "good" feed one feature, and each is deleted alone
        model = classifier()

        def ask(texts):
            return model.predict_proba(texts)[:, 1]

        expected = effects_of(ask, schema, NOTES[:1])
        np.testing.assert_allclose(f.gradient(NOTES[:1]), expected, atol=1e-15)

    def test_each_occurrence_may_be_one(self):
        schema = po.TextSchema.of(["no, no"], EachOccurrence(PatternWords(), "_"))
        f = po.wrap(lambda texts: [t.count("_") * 1.0 for t in texts], data=schema)
        assert schema.names == ("no", "no[2]")
        assert f.gradient(["no, no"]).tolist() == [[-1.0, -1.0]]


class TestWhatIsRefused:
    def test_a_model_of_texts_without_texts(self):
        model = classifier()
        for data in (None, po.TableSchema.of(pd.DataFrame({"a": [1.0]}))):
            with pytest.raises(InvalidInput, match="TfidfVectorizer, which takes tex"):
                po.wrap(model, data=data)
        with pytest.raises(InvalidInput, match=r"give its column, data\['text'\]"):
            po.wrap(model, data=pd.DataFrame({"text": NOTES}))
        with pytest.raises(InvalidInput, match="data: there is no document"):
            po.wrap(model, data=[])
        with pytest.raises(InvalidInput, match=r"one str; for a single text"):
            po.wrap(model, data="good")

    def test_a_model_of_tables_with_texts(self):
        model = LogisticRegression().fit([[0.0], [1.0]], [0, 1])
        with pytest.raises(InvalidInput, match="fitted on a table of 1 columns, and d"):
            po.wrap(model, data=NOTES)

    def test_a_vectoriser_of_files(self):
        model = classifier()
        model[0].set_params(input="filename")
        with pytest.raises(InvalidInput, match=r"reads files \(input='filename'\)"):
            po.wrap(model, data=NOTES)

    def test_what_texts_have_not(self):
        for extra in (
            {"step": 1e-3},
            {"gradient": len},
            {"input_shape": (1,)},
        ):
            with pytest.raises(InvalidInput, match="leave step, gradient and input_sh"):
                po.wrap(classifier(), data=NOTES, **extra)

    def test_smoothing(self):
        f = po.wrap(classifier(), data=NOTES)
        with pytest.raises(InvalidInput, match="needs no smoothing"):
            po.smoothed(f, 0.1)


def test_a_function_can_be_pickled():
    f = po.wrap(classifier(), data=NOTES)
    f.gradient(NOTES)
    again = pickle.loads(pickle.dumps(f))
    np.testing.assert_array_equal(again.gradient(NOTES), f.gradient(NOTES))
    at = pickle.loads(pickle.dumps(f.of_document(NOTES[0])))
    assert at.gradient_at(np.ones((1, 3))).any()


def test_cost_is_measured():
    f = po.wrap(classifier(), data=NOTES)
    cost = cost_of(f, *f.read(NOTES), 100)
    assert cost.evaluations == 100
    assert f.calls.rows == 0
