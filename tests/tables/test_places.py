"""Where documents lie is what tf-idf of scikit-learn makes of the same counts."""

from __future__ import annotations

import numpy as np
from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer

from propopt.tables.documents import document_coordinates


TEXTS = ["good food, good price", "bad food", "good place", "", "bad bad service"]


def test_rare_words_count_for_more_as_in_scikit_learn():
    counts = CountVectorizer().fit_transform(TEXTS)
    expected = TfidfTransformer().fit_transform(counts).toarray()
    found = document_coordinates(counts.toarray())
    np.testing.assert_allclose(found, expected, rtol=1e-14, atol=1e-15)
    assert (found[3] == 0.0).all()
