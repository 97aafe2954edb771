"""What vectorisers make of words, against scikit-learn's own transform."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.feature_extraction.text import (
    CountVectorizer,
    HashingVectorizer,
    TfidfTransformer,
    TfidfVectorizer,
)
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, Normalizer

from propopt.base.text import Reason
from propopt.structures.tfidf.vectorisers import (
    DocumentFeatures,
    Vectoriser,
    document_features,
)
from propopt.tables.documents import Document, PatternWords


TEXTS = [
    "The food was good, the Food was not bad at all!",
    "Bad food; bad service. It's a pity?",
    "good service (really good) and no pity",
]
VECTORISERS = {
    "counts": CountVectorizer(),
    "presence": CountVectorizer(binary=True, lowercase=False),
    "stop words": CountVectorizer(stop_words=["the", "was"]),
    "single floats": TfidfVectorizer(dtype=np.float32, norm=None),
    "tf-idf": TfidfVectorizer(norm=None),
    "sublinear": TfidfVectorizer(norm=None, sublinear_tf=True),
    "no idf": TfidfVectorizer(norm=None, use_idf=False, binary=True),
    "steps": make_pipeline(CountVectorizer(), TfidfTransformer(norm=None)),
    "hashed": HashingVectorizer(n_features=16, norm=None),
    "hashed presence": HashingVectorizer(n_features=4, norm=None, binary=True),
    "letters": CountVectorizer(analyzer="char_wb", ngram_range=(2, 3)),
}
SPACED = "good food is good for bad food"


def fitted(vectoriser):
    return make_pipeline(vectoriser, "passthrough").fit(TEXTS)


@pytest.mark.parametrize("name", VECTORISERS)
@pytest.mark.parametrize("text", [TEXTS[0], SPACED, "unheard of", ""])
def test_values_are_those_of_scikit(name, text):
    model = fitted(VECTORISERS[name])
    vectoriser = Vectoriser.of(model)
    assert vectoriser.rest is None
    document = Document.of(text, PatternWords())
    result = document_features(vectoriser, document)
    if name == "letters" and "," in text:  # a comma stands in its word
        assert "not made of single words" in result.reason
        return
    bits = np.random.default_rng(1).random((32, document.n_words)) < 0.5
    values = vectoriser.values(result.counts(bits)).toarray()
    expected = model[0].transform(document.texts(bits)).toarray()
    np.testing.assert_array_equal(values, expected)  # to the last bit


@pytest.mark.parametrize("norm", ["l1", "l2"])
@pytest.mark.parametrize("kind", ["inside", "step", "transformer"])
def test_norms(norm, kind):
    model = {
        "inside": TfidfVectorizer(norm=norm),
        "step": make_pipeline(CountVectorizer(), Normalizer(norm=norm)),
        "transformer": make_pipeline(CountVectorizer(), TfidfTransformer(norm=norm)),
    }[kind]
    whole = make_pipeline(model, MaxAbsScaler(), Ridge()).fit(TEXTS, [1, 2, 3])
    vectoriser = Vectoriser.of(whole)
    assert vectoriser.norm == norm
    assert vectoriser.sublinear is False
    values = vectoriser.values(vectoriser.counts(TEXTS)).toarray()
    size = abs(values).sum(axis=1) if norm == "l1" else (values**2).sum(axis=1) ** 0.5
    rest = vectoriser.rest.predict(values / size[:, None])
    np.testing.assert_allclose(rest, whole.predict(TEXTS), rtol=1e-12)


def test_words_that_share_a_feature():
    vectoriser = Vectoriser.of(fitted(CountVectorizer()))
    document = Document.of("Food, food: a good food!", PatternWords())
    result = document_features(vectoriser, document)
    food = vectoriser.counter.vocabulary_["food"]
    whose, words, counts = result.feeding(np.array([food, 0, food]))
    assert vectoriser.name_of(0) not in document.text
    assert [document.words[j] for j in words] == 2 * ["Food", "food"]
    np.testing.assert_array_equal(whose, [0, 0, 2, 2])
    np.testing.assert_array_equal(counts, [1, 2, 1, 2])
    np.testing.assert_array_equal(result.shared, [food])
    assert {*document.words} - {document.words[j] for j in result.word} == {"a"}
    assert vectoriser.name_of(food) == "food"


def test_ngrams_that_the_document_cannot_form_do_no_harm():
    vectoriser = Vectoriser.of(fitted(CountVectorizer(ngram_range=(1, 2))))
    fine = document_features(vectoriser, Document.of("pity food", PatternWords()))
    assert isinstance(fine, DocumentFeatures)
    for text in ("was good", "was not good", "bad was not food"):
        result = document_features(vectoriser, Document.of(text, PatternWords()))
        assert isinstance(result, Reason)
        assert "n-grams" in result.reason


def test_words_that_cross_tokens_are_named():
    apart = CountVectorizer(token_pattern=r"[\w']+")
    vectoriser = Vectoriser.of(fitted(apart))
    result = document_features(vectoriser, Document.of(TEXTS[1], PatternWords()))
    assert "it's" in result.reason
    own = document_features(vectoriser, Document.of(TEXTS[1], PatternWords(r"[\w']+")))
    assert len(own.shared) > 0  # "Bad" and "bad"


@pytest.mark.parametrize(
    ("vectoriser", "text", "rule"),
    [
        (CountVectorizer(token_pattern=r"a\s+b"), "a c d b e f g h i j", r"\w+"),
        (
            CountVectorizer(tokenizer=str.split, token_pattern=None),
            "a-c-d-b e f g h i",
            r"\w+",
        ),
        (CountVectorizer(token_pattern=r"\w+"), "acdb e f g h i j k", r"\w"),
        (CountVectorizer(strip_accents="ascii"), "a—c—d—b e f g h i", r"\w+"),
    ],
)
def test_tokens_that_deleting_words_makes_are_seen(vectoriser, text, rule):
    """Only where a and b are kept and c and d are not, in 1 of 16 sets."""
    document = Document.of(text, PatternWords(rule))
    bits = [word in "ab" for word in document.words]
    vectoriser.fit([document.without(bits)])
    result = document_features(Vectoriser.of(vectoriser), document)
    assert isinstance(result, Reason)
    assert "not made of single words" in result.reason


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        (len, "builtin_function_or_method is no pipeline"),
        (make_pipeline(MaxAbsScaler(), Ridge()), "begins with MaxAbsScaler"),
        (make_pipeline(CountVectorizer(input="filename"), Ridge()), "reads files"),
    ],
)
def test_reasons(model, reason):
    result = Vectoriser.of(model)
    assert isinstance(result, Reason)
    assert reason in result.reason
