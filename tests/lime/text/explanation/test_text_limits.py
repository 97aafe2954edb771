"""From models and documents to limits: exact, by all sets, estimated, or refused."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.tree import DecisionTreeClassifier

import propopt as po
from propopt.base.errors import InvalidInput, Refused
from propopt.base.text import Reason
from propopt.lime import TextLaw, text_limits
from propopt.lime.text.text_reading import checked_subsets, compared_sets
from propopt.structures.subsets.conjunctions import Conjunctions
from propopt.tables.documents import Document, PatternWords


TEXTS = [
    "the food was good and the price was good",
    "the food was cold and not good",
    "a long wait and a cold meal",
    "not bad, good food and a fair price",
    "bad food, bad price",
    "a fair meal, good",
]
LABELS = [1, 0, 0, 1, 0, 1]


def by_brute_force(f, text: str, bandwidth: float) -> np.ndarray:
    """Weighted least squares over all sets of words but that of all words."""
    document = Document.of(text, PatternWords())
    d = document.n_words
    bits = np.array(np.meshgrid(*[[0, 1]] * d)).reshape(d, -1).T.astype(bool)[:-1]
    bits = bits[bits.sum(axis=1) < d]
    kept = bits.sum(axis=1)
    counts = np.bincount(kept, minlength=d)
    weights = (
        np.exp(-((1 - np.sqrt(kept / d)) ** 2) / (2 * bandwidth**2)) / counts[kept]
    )
    root = np.sqrt(weights)
    Z = np.column_stack([np.ones(len(bits)), bits]) * root[:, None]
    y = np.asarray(f([document.without(row) for row in bits]), float)
    return np.linalg.lstsq(Z, y * root, rcond=None)[0]


@pytest.fixture(scope="module")
def tree():
    vectoriser = CountVectorizer(binary=True, token_pattern=r"\w+")
    return make_pipeline(vectoriser, DecisionTreeClassifier(random_state=0)).fit(
        TEXTS, LABELS
    )


@pytest.fixture(scope="module")
def linear():
    return make_pipeline(
        TfidfVectorizer(token_pattern=r"\w+"), LogisticRegression()
    ).fit(TEXTS, LABELS)


@pytest.mark.parametrize("bandwidth", [0.25, 1.0])
@pytest.mark.parametrize("output", ["probability", "log_odds"])
def test_limits_are_those_over_all_sets(tree, linear, output, bandwidth):
    model = tree if output == "probability" else linear
    result = text_limits(model, TEXTS[:4], TextLaw(bandwidth), output=output)
    assert result.sources == ("exact",) * 4

    def f(texts):
        p = model.predict_proba(texts)[:, 1]
        return p if output == "probability" else np.log(p / (1.0 - p))

    for row, text in zip(result.rows, TEXTS, strict=False):
        beta = by_brute_force(f, text, bandwidth)
        np.testing.assert_allclose(row.coefficients, beta[1:], atol=1e-9)
        assert row.intercept == pytest.approx(beta[0], abs=1e-9)
        assert row.value == pytest.approx(f([text])[0], abs=1e-12)
        assert row.standard_errors is None


def test_what_is_not_read_is_asked_for_all_sets_of_few_words(linear):
    result = text_limits(linear, TEXTS[:2])
    assert result.sources[0] == "exact (all 64 sets of words)"
    assert all("log_odds" in reason for reason in result.reasons)
    beta = by_brute_force(lambda t: linear.predict_proba(t)[:, 1], TEXTS[0], 0.25)
    np.testing.assert_allclose(result.coefficients[0], beta[1:], atol=1e-10)


def test_estimates_are_near_and_say_how_near(linear):
    texts = [first + ", " + second for first in TEXTS[:2] for second in TEXTS[2:5]]
    exact = text_limits(linear, texts)
    result = text_limits(linear, texts, max_enumerated=0, n_samples=200)
    z = np.concatenate(result.coefficients) - np.concatenate(exact.coefficients)
    errors = np.concatenate(result.standard_errors)
    assert (errors > 0.0).any()
    # of 70 with 19 degrees of freedom: beyond 7 but once in 1e4 seeds
    assert np.abs(z / np.maximum(errors, 1e-12)).max() < 7.0
    assert result.sources[0].startswith("estimate (")
    again = text_limits(linear, texts[2:3], max_enumerated=0, n_samples=200)
    np.testing.assert_array_equal(again.coefficients[0], result.coefficients[2])


def test_one_documents_problem_does_not_lose_the_others(linear):
    series = pd.Series(["", "good", "?!", "not good food"], index=list("abcd"))
    result = text_limits(linear, series)
    assert result.sources[:3] == ("none",) * 3
    assert result.rows[3].is_known
    assert [len(words) for words in result.words] == [0, 1, 0, 3]
    assert "LIME says nothing of document 'a': there is no word in it" in result.notes
    assert any("'b'" in note and "always deletes it" in note for note in result.notes)
    assert np.isnan(result.coefficients[1]).all()
    frame = result.to_frame()
    assert frame["document"].tolist() == ["b", "d", "d", "d"]
    assert frame["coefficient"].isna().tolist() == [True, False, False, False]
    assert result.of_rows(["d"]).shape == (1, 3)
    with pytest.raises(Refused, match="no word in it"):
        result.path("a")


def test_a_model_without_a_value_for_the_empty_text_loses_that_document_alone():
    def f(texts):
        return [1.0 / len(t) if t.strip() else np.nan for t in texts]

    def g(texts):
        return [
            np.inf if "evil" in t else v for t, v in zip(texts, f(texts), strict=True)
        ]

    result = text_limits(g, ["a b!", "evil deeds!", "c d!"])
    assert [row.is_known for row in result.rows] == [True, False, True]
    assert "the value is inf for the text" in result.reasons[1]
    with pytest.raises(InvalidInput, match="LIME says nothing of any; of document 0"):
        text_limits(f, ["a b", "c d"])


def test_what_was_read_wrong_is_not_believed(tree):
    f = po.wrap(tree, data=TEXTS)
    document = f.text_schema.documents[0]
    assert not isinstance(checked_subsets(f, document), Reason)

    class Wrong:
        def at(self, document):
            return Conjunctions.of([0.1], [[0]], [[]], document.n_words)

    object.__setattr__(f, "structure", Wrong())
    read = checked_subsets(f, document)
    assert isinstance(read, Reason)
    assert "differs from its answer by" in read.reason
    found = text_limits(f, TEXTS[:1])
    assert found.sources == ("exact (all 64 sets of words)",)
    assert found.reasons[0] == read.reason


@pytest.mark.parametrize(("unit", "offset"), [(1e-10, 0.0), (1e-6, 1.0), (1e9, 0.0)])
@pytest.mark.parametrize("by", [1.0, -1.0, 1.001, 0.0])
def test_what_was_read_wrong_is_not_believed_in_any_unit(unit, offset, by):
    def model(texts):
        return [offset + unit * (text.count("good") + 1.0) for text in texts]

    f = po.wrap(model, data=["good food, not bad"])
    document = f.text_schema.documents[0]
    place = document.words.index("good")

    class Claimed:
        def at(self, document):
            return Conjunctions.of(
                [offset + unit, by * unit], [[], [place]], [[], []], document.n_words
            )

    object.__setattr__(f, "structure", Claimed())
    assert isinstance(checked_subsets(f, document), Reason) == (by != 1.0)


def test_compared_are_the_whole_nothing_and_words_left_out():
    bits = compared_sets(40)
    assert bits[0].all()
    assert not bits[1].any()
    assert (bits.sum(axis=1) == 39).sum() >= 16
    assert len(bits) == 34


def test_words_are_those_asked_for(linear):
    texts = ["Good FOOD, good price"]
    assert text_limits(linear, texts).words[0] == ("Good", "FOOD", "good", "price")
    of_model = text_limits(linear, texts, words="model").words[0]
    assert of_model == ("good", "food", "price")
    by_rule = text_limits(linear, texts, words=PatternWords("[A-Z]+")).words[0]
    assert by_rule == ("G", "FOOD")
    with pytest.raises(InvalidInput, match="words: expected 'lime', 'model' or a rule"):
        text_limits(linear, texts, words="letters")
    with pytest.raises(InvalidInput, match="words: expected 'lime', 'model' or a rule"):
        text_limits(linear, texts, words=PatternWords)
    with pytest.raises(InvalidInput, match="words: those of the model are not known"):
        text_limits(lambda t: [1.0] * len(t), texts, words="model")


@pytest.mark.parametrize(
    ("settings", "match"),
    [
        ({"law": 0.25}, "law: expected a TextLaw"),
        ({"n_samples": 0}, "n_samples: expected an integer >= 1"),
        (
            {"n_samples": 20, "max_enumerated": 3, "output": "probability"},
            "20 samples are too few",
        ),
        ({"max_enumerated": 17}, "max_enumerated: expected 16 words at most"),
        ({"rng": -1}, "rng: expected"),
    ],
)
def test_settings_are_checked(linear, settings, match):
    with pytest.raises(InvalidInput, match=match):
        text_limits(linear, TEXTS[:1], **settings)


def test_a_function_of_tables_is_refused():
    f = po.wrap(lambda X: X[:, 0])
    with pytest.raises(InvalidInput, match="limits explains rows of tables"):
        text_limits(f, TEXTS)


def test_long_work_is_announced_with_its_cost(capsys, monkeypatch):
    monkeypatch.setattr("propopt.functions.cost.WORTH_SAYING", 0.0)
    text_limits(lambda t: [len(x) for x in t], ["a b c d e f g h i j"], progress=True)
    assert "1,024 evaluations, about" in capsys.readouterr().err


def test_limits_of_tables_name_those_of_texts():
    notes = ["good food", "no food"]
    function = po.wrap(lambda texts: [1.0 * len(text) for text in texts], data=notes)
    for X in (notes, np.ones((2, 3))):
        with pytest.raises(InvalidInput, match=r"po\.lime\.text_limits"):
            po.lime.limits(function, X)


def test_one_string_is_no_list_of_texts():
    with pytest.raises(InvalidInput, match=r"\[text\] is one text"):
        po.explain(len, "good food")
