"""Documents, the rules of their words, and their schema, against packages."""

import itertools
import random
import time
import warnings

import numpy as np
import pandas as pd
import pytest
from odd_texts import MANY_WORDS, ODD_TEXTS
from refusals import refusals
from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer
from word_rules import EachOccurrence

import propopt as po
from propopt.base.errors import InvalidInput, Refused
from propopt.tables.documents import (
    PatternWords,
    TextDocument,
    VectoriserWords,
    document_coordinates,
    read_texts,
)
from propopt.tables.frames import is_documents


# ---- rules of words: where words stand
CHARACTERS = [
    *"abcdeXYZ01_ .,-'\n\t\0ÄÖüßéèñİıΣσςﬁﬀ½㎏ﷺ…Ⅷ한국어日本語שלוםمرحبا👍🏽🇩🇪",
    *"\u200d\u0301\u0308\u0327\u202e\ud800\ufeff",
    *["e\u0301", "o\u0308\u0327", "ΟΔΟΣ", " ", " "],
]
"""Letters that lower case or accents make longer or shorter, and what is no letter."""

SETTINGS = list(
    itertools.product(
        [True, False],
        [None, "ascii", "unicode"],
        [r"(?u)\b\w\w+\b", r"\w+", r"(?u)\b(\w)\w*\b", r"[a-z]+"],
    )
)


def some_texts(n: int, seed: int) -> list[str]:
    rng = random.Random(seed)
    return [
        "".join(rng.choices(CHARACTERS, k=rng.randrange(30)))  # of 0 to 29 of them
        for _ in range(n)
    ]


@pytest.mark.parametrize(("lowercase", "accents", "pattern"), SETTINGS)
def test_words_are_those_of_the_vectoriser(lowercase, accents, pattern):
    vectoriser = CountVectorizer(
        lowercase=lowercase,
        strip_accents=accents,
        token_pattern=pattern,
        stop_words=["ab", "cd"],
    )
    rule = VectoriserWords(lowercase, accents, pattern, frozenset(["ab", "cd"]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # stop words that the pattern does not find
        analyse = vectoriser.build_analyzer()
        for text in some_texts(100, seed=len(pattern)):
            result = rule.find(text)
            # two words that stand in one character are one
            parts = [part for position in result for part in position.word.split(" ")]
            assert parts == [word for word in analyse(text) if word], repr(text)
            ends = [end for position in result for end in position[:2]]
            assert ends == sorted(ends)  # none overlap
            assert max(ends, default=0) <= len(text)
            assert all(position.start < position.end for position in result)


@pytest.mark.parametrize(
    ("text", "accents", "places"),
    [
        ("İstanbul var", None, [(1, 8, "stanbul"), (9, 12, "var")]),
        ("İstanbul var", "unicode", [(0, 8, "istanbul"), (9, 12, "var")]),
        ("cafe\u0301s ici", "unicode", [(0, 6, "cafes"), (7, 10, "ici")]),
        ("cafe\u0301 ici", "unicode", [(0, 5, "cafe"), (6, 9, "ici")]),
        ("cafe\u0301 ici", None, [(0, 4, "cafe"), (6, 9, "ici")]),
        ("ΟΔΟΣ ΟΔΟΣΑ", None, [(0, 4, "οδος"), (5, 10, "οδοσα")]),
        ("5㎏ of it", "unicode", [(0, 2, "5kg"), (3, 5, "of"), (6, 8, "it")]),
        ("naïve🙂ness", "ascii", [(0, 10, "naiveness")]),
    ],
)
def test_places_are_those_in_the_text_as_it_is_written(text, accents, places):
    result = VectoriserWords(strip_accents=accents).find(text)
    assert [tuple(position) for position in result] == places
    # words of one character are one word
    rule = VectoriserWords(strip_accents="unicode", token_pattern=r"\w+")
    known = [(0, 1, "a"), (2, 3, "1 2"), (4, 5, "b")]
    assert [tuple(position) for position in rule.find("a ½ b")] == known
    # words that touch are two
    rule = VectoriserWords(token_pattern="[a-z]")
    assert rule.find("ab") == [(0, 1, "a"), (1, 2, "b")]


@pytest.mark.parametrize("bow", [True, False])
def test_deleted_texts_are_those_of_the_package(bow):
    lime_text = pytest.importorskip("lime.lime_text")
    rng = random.Random(2)
    rule = PatternWords() if bow else EachOccurrence(PatternWords())
    for text in some_texts(200, seed=3):
        if not PatternWords().find(text):
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            theirs = lime_text.IndexedString(text, bow=bow)
        document = TextDocument.of(text, rule)
        assert document.n_words == theirs.num_words()
        spoken = [theirs.word(j) for j in range(theirs.num_words())]
        assert [word.partition("[")[0] for word in document.words] == spoken
        bits = [rng.random() < 0.5 for _ in spoken]
        gone = [j for j, bit in enumerate(bits) if not bit]
        assert document.without(bits) == theirs.inverse_removing(gone)


def test_words_of_no_characters_are_none():
    assert PatternWords("x*").find("axa") == [(1, 2, "x")]


# ---- documents and their schema
RULES = {
    "package": PatternWords(),
    "vectoriser": VectoriserWords(),
    "accents": VectoriserWords(strip_accents="unicode", token_pattern=r"\w+"),
    "occurrences": EachOccurrence(PatternWords()),
}


@pytest.mark.parametrize("rule", RULES)
def test_odd_texts_keep_what_is_kept_and_are_given_back(rule):
    texts = list(ODD_TEXTS.values())
    schema = po.functions.TextSchema.of(texts, RULES[rule])
    points, labels = schema.encode(texts)
    assert labels.texts == tuple(texts)
    for point, text in zip(points, texts, strict=True):
        document = schema.document_of(text)
        assert schema.has_counts(document, point)
        assert document.without(np.ones(document.n_words)) == text
        assert document.counts.sum() == len(document.spans)
        nothing = document.without(np.zeros(document.n_words))
        spans = sum(end - start for start, end, _ in document.spans)
        filled = len(document.filler) * len(document.spans)
        assert len(nothing) == len(text) - spans + filled
        expected = dict(zip(document.words, document.counts.tolist(), strict=True))
        results = {schema.names[j]: int(point[j]) for j in np.flatnonzero(point)}
        assert results == expected


def test_all_occurrences_of_a_word_are_deleted():
    result = NO_GO.texts(np.array([[0, 1, 1], [1, 0, 0]]))
    assert result == [", so  go", "no,  no "]


def test_five_thousand_words_are_parted_in_no_time():
    document = TextDocument.of(MANY_WORDS, PatternWords())
    assert document.n_words == 5_000
    bits = np.random.default_rng(0).random((200, 5_000)) < 0.5
    start = time.perf_counter()
    texts = document.texts(bits)
    assert time.perf_counter() - start < 5.0  # measured: 0.06 s
    retained = np.flatnonzero(bits[7])
    assert texts[7].split() == [f"word{n}" for n in retained]


def test_a_document_has_the_counts_of_its_words_and_no_others():
    texts = pd.Series(["b a", "a b", "a a", "a"], index=["x", "y", "z", "u"])
    schema = po.functions.TextSchema.of(texts)
    points, labels = schema.encode(texts)
    assert (labels.points, labels.features) == (tuple("xyzu"), ("b", "a"))
    outcome = [[schema.has_counts(x, p) for p in points] for x in schema.documents]
    expected = np.eye(4, dtype=bool)
    expected[0, 1] = expected[1, 0] = True
    assert outcome == expected.tolist()
    assert not schema.has_counts(TextDocument.of("a c", PatternWords()), points[0])


def test_tables_that_do_not_fit_are_refused_with_the_figure(monkeypatch):
    schema = po.functions.TextSchema.of(["good food"])
    monkeypatch.setattr("propopt.base.resources.free_memory", lambda: 31.0)
    with pytest.raises(Refused, match="2 documents and 2 words needs about"):
        schema.encode(["good", "food"])
    schema.encode(["good"])  # 16 bytes


TEXTS = ["good", "food"]


@pytest.mark.parametrize(
    "X",
    [
        TEXTS,
        np.array(TEXTS),
        pd.Series(TEXTS),
        pd.Series(TEXTS, dtype="category"),
        pd.Series(TEXTS, dtype="string"),
    ],
)
def test_containers_of_texts(X):
    assert is_documents(X)
    texts, _ = read_texts(X, "X")
    assert texts == TEXTS
    assert {type(text) for text in texts} == {str}
    polars, arrow = pytest.importorskip("polars"), pytest.importorskip("pyarrow")
    for column in (polars.Series(TEXTS), arrow.chunked_array([TEXTS])):
        assert is_documents(column)
        assert read_texts(column, "X") == (TEXTS, None)


NO_GO = TextDocument.of("no, so no go", PatternWords())
FOOD = po.functions.TextSchema.of(["good food"])


@pytest.mark.parametrize(("line", "message"), refusals(__file__, "documents"))
def test_what_is_refused(line, message):
    with pytest.raises(InvalidInput, match=message):
        eval(line)


NUMBERS = pd.Series([1.0, 2.0])


@pytest.mark.parametrize(
    "X",
    ["good", b"good", None, 3.0, [], [[1.0, 2.0]], {"good": 1}, {"good"},
     np.ones((2, 2)), np.ones(2), NUMBERS, pd.DataFrame({"text": TEXTS}),
     np.array([TEXTS])],
)  # fmt: skip
def test_what_is_no_documents(X):
    assert not is_documents(X)


def test_rare_words_count_for_more_as_in_scikit_learn():
    texts = ["good food, good price", "bad food", "good place", "", "bad bad service"]
    counts = CountVectorizer().fit_transform(texts)
    expected = TfidfTransformer().fit_transform(counts).toarray()
    outcome = document_coordinates(counts.toarray())
    np.testing.assert_allclose(outcome, expected, rtol=1e-14, atol=1e-15)
    assert (outcome[3] == 0.0).all()
