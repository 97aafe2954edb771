"""Documents, and the schema of their words: there and back."""

from __future__ import annotations

import time

import numpy as np
import pandas as pd
import pytest
from odd_texts import MANY_WORDS, ODD_TEXTS
from word_rules import EachOccurrence

import propopt as po
from propopt.base import resources
from propopt.base.errors import InvalidInput, Refused
from propopt.tables import documents as schema_module
from propopt.tables.documents import (
    Document,
    PatternWords,
    VectoriserWords,
    is_documents,
    read_texts,
)


RULES = {
    "package": PatternWords(),
    "vectoriser": VectoriserWords(),
    "accents": VectoriserWords(strip_accents="unicode", token_pattern=r"\w+"),
    "occurrences": EachOccurrence(PatternWords()),
}


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("oddity", ODD_TEXTS)
def test_odd_texts_keep_what_is_kept(oddity, rule):
    text = ODD_TEXTS[oddity]
    document = Document.of(text, RULES[rule])
    d = document.n_words
    assert document.without(np.ones(d)) == text
    assert document.counts.sum() == len(document.occurrences)
    nothing = document.without(np.zeros(d))
    spans = sum(place.end - place.start for place in document.occurrences)
    filled = len(document.filler) * len(document.occurrences)
    assert len(nothing) == len(text) - spans + filled


@pytest.mark.parametrize("rule", RULES)
def test_odd_texts_are_given_back_as_they_were_written(rule):
    texts = list(ODD_TEXTS.values())
    schema = po.TextSchema.of(texts, RULES[rule])
    points, labels = schema.encode(texts)
    assert schema.decode(points, labels) == texts
    for point, text in zip(points, texts, strict=True):
        document = schema.document_of(text)
        expected = dict(zip(document.words, document.counts.tolist(), strict=True))
        results = {schema.names[j]: int(point[j]) for j in np.flatnonzero(point)}
        assert results == expected


@pytest.mark.parametrize(
    ("oddity", "words"),
    [
        ("empty", ()),
        ("no word", ()),
        ("emoji alone", ()),
        ("nul", ()),
        ("one letter", ("a",)),
        ("repeated", ("no", "NO")),
        ("emoji", ("good", "food")),
        ("control", ("good", "food", "31m", "red", "end", "new")),
        ("surrogate", ("good", "half", "food")),
        ("combining", ("cafe", "café", "a")),
        ("no blanks", ("我喜欢这里的食物",)),
        ("digits", ("10", "out", "of", "١٠")),
    ],
)
def test_words_of_odd_texts(oddity, words):
    assert Document.of(ODD_TEXTS[oddity], PatternWords()).words == words


def test_all_occurrences_of_a_word_are_deleted():
    document = Document.of("no, so no go", PatternWords())
    assert document.texts(np.array([[0, 1, 1], [1, 0, 0]])) == [", so  go", "no,  no "]


def test_bits_are_one_for_each_word():
    document = Document.of("no go", PatternWords())
    with pytest.raises(InvalidInput, match=r"each of 2 words, got .* shape \(3,\)"):
        document.without([1, 0, 1])


def test_five_thousand_words_are_parted_in_no_time():
    document = Document.of(MANY_WORDS, PatternWords())
    assert document.n_words == 5_000
    bits = np.random.default_rng(0).random((200, 5_000)) < 0.5
    start = time.perf_counter()
    texts = document.texts(bits)
    assert time.perf_counter() - start < 5.0  # measured: 0.06 s
    kept = np.flatnonzero(bits[7])
    assert texts[7].split() == [f"word{n}" for n in kept]


def test_counts_that_no_document_has_become_a_bag_of_words():
    schema = po.TextSchema.of(["Good food!", "no GOOD"], VectoriserWords())
    assert schema.names == ("good", "food", "no")
    assert schema.decode(np.array([[2.0, 0.0, 1.0]])) == ["Good Good no"]
    assert schema.decode(np.zeros((1, 3))) == [""]


def test_rows_that_are_no_counts_are_refused():
    schema = po.TextSchema.of(["good food"])
    for wrong in (0.5, -1.0, np.nan, np.inf):
        with pytest.raises(InvalidInput, match=r"expected counts of words.*'food'"):
            schema.decode(np.array([[1.0, wrong]]))


def test_labels_tell_documents_of_the_same_words_apart():
    texts = ["good, no food", "no good food", "food"]
    schema = po.TextSchema.of(texts)
    points, labels = schema.encode(texts)
    assert np.array_equal(points[0], points[1])
    assert schema.decode(points, labels) == texts
    assert schema.decode(points)[1] == texts[0]  # of all alike the first
    assert schema.decode(points[1:], labels.of_positions(slice(1, 3))) == texts[1:]
    order = np.array([2, 1])
    assert schema.decode(points[order], labels.of_positions(order)) == [
        "food",
        "no good food",
    ]
    # of rows that were changed they say nothing
    assert schema.decode(2 * points, labels)[1] == "good good no no food food"
    assert schema.decode(points, labels.of_columns())[1] == texts[0]


def test_names_of_rows_and_words():
    texts = pd.Series(["b a", "a"], index=["x", "y"])
    _, labels = po.TextSchema.of(texts).encode(texts)
    assert (labels.points, labels.features) == (("x", "y"), ("b", "a"))


def test_words_that_are_not_known_are_refused():
    schema = po.TextSchema.of(["good food"])
    with pytest.raises(InvalidInput, match=r"document 1 has words .*: 'bad'; give"):
        schema.encode(["food", "bad food"])


def test_tables_that_do_not_fit_are_refused_with_the_figure(monkeypatch):
    schema = po.TextSchema.of(["good food"])
    monkeypatch.setattr("propopt.base.resources.free_memory", lambda: 31.0)
    with pytest.raises(Refused, match="2 documents and 2 words needs about"):
        schema.encode(["good", "food"])
    schema.encode(["good"])  # 16 bytes
    assert schema_module.require_memory is resources.require_memory


TEXTS = ["good", "food"]


@pytest.mark.parametrize(
    "X",
    [
        TEXTS,
        tuple(TEXTS),
        np.array(TEXTS),
        np.array(TEXTS, dtype=object),
        pd.Series(TEXTS),
        pd.Series(TEXTS, dtype="category"),
        pd.Series(TEXTS, dtype="string"),
        pd.Index(TEXTS),
    ],
)
def test_containers_of_texts(X):
    assert is_documents(X)
    texts, _ = read_texts(X, "X")
    assert texts == TEXTS
    assert {type(text) for text in texts} == {str}


@pytest.mark.parametrize("library", ["polars", "pyarrow"])
def test_columns_of_other_libraries(library):
    module = pytest.importorskip(library)
    column = module.Series(TEXTS) if library == "polars" else pa_column(module)
    assert is_documents(column)
    assert read_texts(column, "X") == (TEXTS, None)


def pa_column(module):
    return module.chunked_array([TEXTS])


@pytest.mark.parametrize(
    "X",
    [
        "good",
        b"good",
        None,
        3.0,
        [],
        [[1.0, 2.0]],
        {"good": 1},
        {"good"},
        np.ones((2, 2)),
        np.ones(2),
        pd.Series([1.0, 2.0]),
        pd.DataFrame({"text": TEXTS}),
        np.array([TEXTS]),
    ],
)
def test_what_is_no_documents(X):
    assert not is_documents(X)


@pytest.mark.parametrize(
    ("X", "said"),
    [
        ("good", r"got one str; for a single text give \[text\]"),
        (b"good", "got bytes"),
        (None, "got NoneType"),
        ([], "there is no document"),
        ({"good"}, r"got set; list\(\.\.\.\)"),
        ((text for text in TEXTS), r"got generator; list\(\.\.\.\)"),
        ({"good": 1}, "got dict"),
        (np.array([TEXTS]), r"shape \(1, 2\); its ravel\(\) would do"),
        (np.array([TEXTS, TEXTS]), r"shape \(2, 2\)$"),
        (pd.DataFrame({"text": TEXTS}), r"a table; give its column, X\['text'\]"),
        (pd.DataFrame({"a": TEXTS, "b": TEXTS}), "a table of 2 columns; give the one"),
        (["good", None], r"number 1 is missing \(None\); leave it out, or give ''"),
        (pd.Series(["a", np.nan], index=["x", "y"]), r"row 'y' is missing \(nan\)"),
        (pd.Series(["a", None], dtype="string"), r"row 1 is missing \(<NA>\)"),
        ([b"good"], r"number 0 is bytes; decode them, text.decode\('utf-8'\)"),
        (["good", 3], r"number 1 is int \(3\)"),
    ],
)
def test_what_is_no_texts_is_refused_with_what_would_do(X, said):
    with pytest.raises(InvalidInput, match=f"X: .*{said}"):
        read_texts(X, "X")
