"""Small models of texts and documents that share words."""

import numpy as np
import pandas as pd
from sklearn.ensemble import RandomForestClassifier
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline


DOCUMENTS = [
    "good food and a good price",
    "good food, a fair price",
    "the food was bad",
    "the food was not bad at all",
    "slow service",
    "service was slow and bad",
    "",
    "good",
    "wonderful place",
]
LABELS = [1, 1, 0, 1, 0, 0, 1, 1, 1]
SCORED = pd.Series(
    ["good $x$ food but cold", "not good", ""], index=["first", "second", "none"]
)


def score(texts: list[str]) -> list[float]:
    """Can only be called: two words count more or less together."""
    return [
        1.0 * ("good" in t) * (1.0 - 1.5 * ("not" in t)) - 0.4 * ("cold" in t)
        for t in texts
    ]


def forest():
    """Of trees on the presence of words."""
    model = RandomForestClassifier(5, random_state=0)
    return make_pipeline(CountVectorizer(binary=True), model).fit(DOCUMENTS, LABELS)


def linear():
    """Linear in its log-odds, on normalised tf-idf."""
    return make_pipeline(TfidfVectorizer(), LogisticRegression()).fit(DOCUMENTS, LABELS)


def called(texts: list[str]) -> np.ndarray:
    """Can only be called: three words count more together than alone."""
    words = [set(text.split()) for text in texts]
    return np.array([len(w) + 3.0 * ({"bad", "not", "at"} <= w) for w in words])
