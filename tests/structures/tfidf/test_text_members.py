"""Sums of models of texts against the values of the fitted models, for all sets."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import (
    RandomForestClassifier,
    RandomForestRegressor,
    StackingRegressor,
    VotingClassifier,
    VotingRegressor,
)
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.linear_model import Lasso, LinearRegression, LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import MultiOutputRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from subset_oracle import assert_means, masks

import propopt as po
from propopt.base.text import Reason
from propopt.structures.subsets.sums import AddedSets, NormalisedSum
from propopt.tables.documents import Document, PatternWords


DOCUMENT = Document.of("Good food food no price and unseen", PatternWords())
BITS = masks(DOCUMENT.n_words)
RNG = np.random.default_rng(0)
WORDS = ["good", "food", "no", "price", "and", "place"]
DOCUMENTS = [" ".join(RNG.choice(WORDS, 6)) for _ in range(40)]
NUMBERS = np.array([text.count("good") - text.count("no") for text in DOCUMENTS]) + 0.1
TWO, THREE = (NUMBERS > 0).astype(int), np.digitize(NUMBERS, [0.0, 1.0])


def tfidf(model):
    return make_pipeline(TfidfVectorizer(), model)


def counts(model):
    return make_pipeline(CountVectorizer(), model)


def read(model, y, output, target=None):
    model.fit(DOCUMENTS, y)
    f = po.wrap(model, target, output, data=[DOCUMENT.text])
    return f.subsets(DOCUMENT), f.texts_value(DOCUMENT.texts(BITS))


FOREST = RandomForestRegressor(4, random_state=0)
LASSO = counts(Lasso(0.01))


@pytest.mark.parametrize(
    "model",
    [
        VotingRegressor([("a", tfidf(Ridge())), ("b", LASSO)], weights=[1, 3]),
        StackingRegressor([("a", tfidf(Ridge())), ("b", counts(FOREST))], Ridge()),
        counts(VotingRegressor([("a", Ridge()), ("b", FOREST)])),
        TransformedTargetRegressor(tfidf(Ridge()), transformer=StandardScaler()),
    ],
    ids=["vote", "stack", "one vectoriser", "scaled target"],
)
def test_sums_of_regressions_are_exact(model):
    result, values = read(model, NUMBERS, "value")
    assert isinstance(result, AddedSets)
    assert_means(result, values, BITS, atol=1e-12)


def test_mean_probabilities_of_forests_are_exact():
    forests = [
        (str(k), make_pipeline(CountVectorizer(binary=k > 0), forest))
        for k, forest in enumerate(
            RandomForestClassifier(4, random_state=k) for k in (0, 1)
        )
    ]
    result, values = read(VotingClassifier(forests, voting="soft"), TWO, "probability")
    assert_means(result, values, BITS, atol=1e-12)


@pytest.mark.parametrize(("y", "target"), [(TWO, 0), (THREE, 2)])
def test_one_class_against_the_rest_is_the_model_of_it(y, target):
    result, values = read(OneVsRestClassifier(tfidf(LinearSVC())), y, "margin", target)
    assert isinstance(result, NormalisedSum)
    assert_means(result, values, BITS, atol=1e-12)


def test_a_search_is_the_best_that_it_found():
    model = GridSearchCV(tfidf(LogisticRegression()), {"logisticregression__C": [1, 9]})
    result, values = read(model, TWO, "log_odds")
    assert isinstance(result, NormalisedSum)
    assert_means(result, values, BITS, atol=1e-12)


def test_one_of_several_outputs_is_exact():
    model = tfidf(MultiOutputRegressor(LinearRegression()))
    result, values = read(model, np.column_stack([NUMBERS, NUMBERS**2]), "value", 1)
    assert_means(result, values, BITS, atol=1e-12)


@pytest.mark.parametrize(
    ("model", "y", "output", "what"),
    [
        (
            VotingClassifier([("a", tfidf(LogisticRegression()))], voting="soft"),
            TWO,
            "probability",
            "curve of a weighted sum",
        ),
        (
            counts(VotingClassifier([("a", LogisticRegression())], voting="soft")),
            TWO,
            "probability",
            "probabilities averaged",
        ),
        (
            OneVsRestClassifier(tfidf(LogisticRegression())),
            THREE,
            "probability",
            "'margin' is not",
        ),
    ],
)
def test_what_is_no_sum_is_refused(model, y, output, what):
    result, _ = read(model, y, output, 1)
    assert isinstance(result, Reason)
    assert what in result.reason
