"""Points are similar by the cosine of their angle."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics.pairwise import cosine_similarity

import propopt as po
from propopt.base.errors import InvalidInput
from propopt.tables.documents import document_coordinates


X = np.random.default_rng(4).normal(size=(14, 5)) * np.geomspace(1e-3, 1e3, 14)[:, None]


def test_similarities_are_the_cosines_above_zero():
    expected = np.maximum(cosine_similarity(X), 0.0)
    np.fill_diagonal(expected, 0.0)
    result = po.graphs.cosine_graph(X, 13).similarities.toarray()
    np.testing.assert_allclose(result, expected, atol=1e-14)
    assert (cosine_similarity(X) < 0.0).any()


@pytest.mark.parametrize("most", [1, 3])
def test_an_edge_is_where_either_is_among_the_nearest_of_the_other(most):
    full = po.graphs.cosine_graph(X, 13).similarities.toarray()
    near = np.zeros(full.shape, bool)
    for n, row in enumerate(full):
        near[n, np.argsort(-row, kind="stable")[:most]] = True
    result = po.graphs.cosine_graph(X, most).similarities.toarray()
    np.testing.assert_array_equal(result, np.where(near | near.T, full, 0.0))


@pytest.mark.parametrize("size", [1e-200, 1e200])
def test_lengths_do_not_count(size):
    result = po.graphs.cosine_graph(size * X, 4).similarities.toarray()
    expected = po.graphs.cosine_graph(X, 4).similarities.toarray()
    np.testing.assert_allclose(result, expected, atol=1e-14)


def test_of_where_documents_lie_it_is_the_graph_of_documents():
    counts = np.random.default_rng(2).poisson(0.6, size=(12, 9)).astype(float)
    counts[4] = 0.0
    result = po.graphs.cosine_graph(document_coordinates(counts), 3)
    expected = po.graphs.document_graph(counts, 3)
    difference = result.similarities - expected.similarities
    assert np.abs(difference).max() < 1e-14


def test_names_and_parameters_are_kept():
    table = pd.DataFrame(X, index=[f"point {n}" for n in range(14)])
    graph = po.graphs.cosine_graph(table, 2)
    assert graph.names == tuple(table.index)
    assert graph.parameters == {"n_neighbors": 2}
    assert graph.again(3).parameters == {"n_neighbors": 3}


def test_what_is_missing_has_no_direction():
    with pytest.raises(InvalidInput, match="X"):
        po.graphs.cosine_graph([[1.0, np.nan], [1.0, 2.0]])
