"""Documents that share words are similar by the cosine of tf-idf."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.feature_extraction.text import TfidfTransformer

import propopt as po
from propopt.base.errors import InvalidInput
from propopt.losses.graphs import document_graph


COUNTS = np.random.default_rng(2).poisson(0.6, size=(12, 9)).astype(float)
COUNTS[4] = 0.0


def test_similarities_are_those_of_scikit_learn():
    rows = TfidfTransformer().fit_transform(COUNTS).toarray()
    expected = rows @ rows.T
    np.fill_diagonal(expected, 0.0)
    result = document_graph(COUNTS, n_neighbors=11).similarities.toarray()
    np.testing.assert_allclose(result, expected, atol=1e-14)


def test_an_edge_is_where_either_is_among_the_nearest_of_the_other():
    full = document_graph(COUNTS, n_neighbors=11).similarities.toarray()
    result = document_graph(COUNTS, n_neighbors=3).similarities.toarray()
    near = np.zeros(full.shape, bool)
    for n, row in enumerate(full):
        near[n, np.argsort(-row, kind="stable")[:3]] = True
    expected = np.where((near | near.T) & (full > 0), full, 0.0)
    np.testing.assert_allclose(result, expected, atol=1e-14)


def test_a_document_without_words_has_no_neighbours():
    assert document_graph(COUNTS).similarities.toarray()[4].sum() == 0.0


def test_documents_with_the_same_words_have_similarity_one():
    graph = document_graph([[1.0, 2.0, 0.0], [2.0, 4.0, 0.0], [0.0, 0.0, 1.0]])
    assert graph.n_edges == 1
    assert graph.similarities[0, 1] == pytest.approx(1.0, abs=1e-15)


def test_names_and_parameters_are_kept():
    table = pd.DataFrame(COUNTS, index=[f"note {n}" for n in range(12)])
    graph = document_graph(table, 2)
    assert graph.names == tuple(table.index)
    assert graph.parameters == {"n_neighbors": 2}
    assert graph.again(3).parameters == {"n_neighbors": 3}


def test_counts_below_zero_are_refused():
    with pytest.raises(InvalidInput, match="below 0"):
        po.graphs.document_graph([[1.0, -1.0]])
