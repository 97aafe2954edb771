"""What models of texts begin with, and the words that they see."""

from __future__ import annotations

import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import RandomForestClassifier, VotingClassifier
from sklearn.feature_extraction.text import (
    CountVectorizer,
    HashingVectorizer,
    TfidfTransformer,
    TfidfVectorizer,
)
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import FunctionTransformer

import propopt as po
from propopt.base.text import Reason
from propopt.functions.wrapping import word_rule_of
from propopt.structures.tfidf.vectorisers import text_entries, text_vectorisers
from propopt.tables.documents import VectoriserWords


TEXTS = ["good food", "bad food", "no good", "bad", "good", "so bad"]
LABELS = [1, 0, 0, 0, 1, 0]


def pipeline(vectoriser=None, *steps):
    first = CountVectorizer() if vectoriser is None else vectoriser
    return make_pipeline(first, *steps, LogisticRegression())


def lengths(texts):
    return [[len(text)] for text in texts]


class Own(CountVectorizer):
    """Counts by a rule that nobody knows."""


MODELS = {
    "pipeline": pipeline(),
    "hashed": pipeline(HashingVectorizer(n_features=64)),
    "two steps": pipeline(None, TfidfTransformer()),
    "nested": make_pipeline(
        make_pipeline("passthrough", TfidfVectorizer()), pipeline()[1]
    ),
    "search": GridSearchCV(pipeline(), {"logisticregression__C": [1.0, 2.0]}, cv=2),
    "calibrated": CalibratedClassifierCV(pipeline(), cv=2),
    "other units": TransformedTargetRegressor(
        make_pipeline(TfidfVectorizer(), Ridge())
    ),
    "vote": VotingClassifier([("a", pipeline()), ("b", pipeline())], voting="soft"),
    "union": make_pipeline(
        FeatureUnion([("a", CountVectorizer()), ("b", TfidfVectorizer())]),
        LogisticRegression(),
    ),
}


@pytest.mark.parametrize("name", MODELS)
def test_models_that_see_words_alone(name):
    model = MODELS[name].fit(TEXTS, LABELS)
    assert text_vectorisers(model)
    assert word_rule_of(model) == VectoriserWords()
    f = po.wrap(model, data=TEXTS)
    assert f.vectorisers
    with pytest.raises(po.errors.InvalidInput, match="which takes texts"):
        po.wrap(model)


SETTINGS = VectoriserWords(
    lowercase=False,
    strip_accents="ascii",
    token_pattern=r"\w+",
    stop_words=frozenset(["good"]),
)


def test_settings_of_the_vectoriser():
    model = pipeline(
        CountVectorizer(
            lowercase=False,
            strip_accents="ascii",
            token_pattern=r"\w+",
            stop_words=["good"],
        )
    )
    assert word_rule_of(model.fit(TEXTS, LABELS)) == SETTINGS
    english = word_rule_of(CountVectorizer(stop_words="english"))
    assert "the" in english.stop_words


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        (len, "begins with no vectoriser"),
        (pipeline(CountVectorizer(analyzer="char")), "counts characters, or in a way"),
        (pipeline(CountVectorizer(analyzer=str.split)), "counts characters, or in a w"),
        (
            pipeline(CountVectorizer(tokenizer=str.split, token_pattern=None)),
            "a tokenizer of its own",
        ),
        (pipeline(CountVectorizer(preprocessor=str.upper)), "a preprocessor of its ow"),
        (pipeline(CountVectorizer(strip_accents=str.upper)), "strips accents in a way"),
        (pipeline(Own()), "Own may find words by another rule"),
        (
            VotingClassifier(
                [("a", pipeline()), ("b", pipeline(CountVectorizer(lowercase=False)))]
            ),
            "vectorisers that see other words",
        ),
    ],
)
def test_models_whose_words_are_not_known(model, reason):
    fitted = model if model is len else model.fit(TEXTS, LABELS)
    rule = word_rule_of(fitted)
    assert isinstance(rule, Reason)
    assert reason in rule.reason


def test_a_model_that_sees_more_than_words():
    union = FeatureUnion(
        [("a", CountVectorizer()), ("b", FunctionTransformer(lengths, validate=False))]
    )
    model = make_pipeline(union, LogisticRegression()).fit(TEXTS, LABELS)
    assert text_vectorisers(model) == []
    f = po.wrap(model, data=TEXTS)
    assert f.gradient(TEXTS).shape == (6, len(f.text_schema.names))


def test_models_of_tables_begin_with_no_vectoriser():
    forest = RandomForestClassifier(3, random_state=0).fit([[0.0], [1.0]], [0, 1])
    assert text_vectorisers(forest) == []
    assert text_vectorisers(lambda X: X) == []
    assert text_entries(None) == [None]
