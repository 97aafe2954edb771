"""Rules of words: where words stand, against scikit-learn and the package lime."""

from __future__ import annotations

import itertools
import random
import warnings

import pytest
from sklearn.feature_extraction.text import CountVectorizer
from word_rules import PACKAGE_FILLER, EachOccurrence

from propopt.base.errors import InvalidInput
from propopt.tables.documents import (
    Document,
    PatternWords,
    VectoriserWords,
)


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
            parts = [part for place in result for part in place.word.split(" ")]
            assert parts == [word for word in analyse(text) if word], repr(text)


@pytest.mark.parametrize("accents", [None, "ascii", "unicode"])
def test_places_are_in_order_and_inside_the_text(accents):
    rule = VectoriserWords(strip_accents=accents, token_pattern=r"\w+")
    for text in some_texts(300, seed=1):
        end = 0
        for place in rule.find(text):
            assert end <= place.start < place.end <= len(text)
            end = place.end


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
    assert [tuple(place) for place in result] == places


def test_words_of_one_character_are_one_word():
    rule = VectoriserWords(strip_accents="unicode", token_pattern=r"\w+")
    assert [tuple(place) for place in rule.find("a ½ b")] == [
        (0, 1, "a"),
        (2, 3, "1 2"),
        (4, 5, "b"),
    ]


def test_each_occurrence_is_a_word_of_its_own():
    document = Document.of("no, No no", EachOccurrence(PatternWords()))
    assert document.words == ("no", "No", "no[2]")
    assert document.counts.tolist() == [1, 1, 1]
    assert document.without([0, 1, 1]) == f"{PACKAGE_FILLER}, No no"


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
        document = Document.of(text, rule)
        assert document.n_words == theirs.num_words()
        spoken = [theirs.word(j) for j in range(theirs.num_words())]
        assert [word.partition("[")[0] for word in document.words] == spoken
        bits = [rng.random() < 0.5 for _ in spoken]
        gone = [j for j, bit in enumerate(bits) if not bit]
        assert document.without(bits) == theirs.inverse_removing(gone)


def test_an_expression_that_is_none_is_refused():
    with pytest.raises(InvalidInput, match="no regular expression"):
        PatternWords("(")
    with pytest.raises(InvalidInput, match="at most one group"):
        VectoriserWords(token_pattern="(a)(b)")


def test_words_of_no_characters_are_none():
    assert PatternWords("x*").find("axa") == [(1, 2, "x")]
