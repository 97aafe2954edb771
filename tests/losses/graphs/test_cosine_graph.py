"""Points are similar by the cosine of their angle, documents by that of tf-idf."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.metrics.pairwise import cosine_similarity

import propopt as po
from propopt.base.errors import InvalidInput
from propopt.tables.documents import document_coordinates


X = np.random.default_rng(4).normal(size=(14, 5)) * np.geomspace(1e-3, 1e3, 14)[:, None]
COUNTS = np.random.default_rng(2).poisson(0.6, size=(12, 9)).astype(float)
COUNTS[4] = 0.0
KINDS = {
    "points": (po.graphs.cosine_graph, X, cosine_similarity(X)),
    "documents": (
        po.graphs.document_graph,
        COUNTS,
        cosine_similarity(TfidfTransformer().fit_transform(COUNTS)),
    ),
}
each_kind = pytest.mark.parametrize(("build", "table", "cosines"), KINDS.values())


@each_kind
@pytest.mark.parametrize("most", [1, 3, 11])
def test_an_edge_is_where_either_is_among_the_nearest_of_the_other(
    build, table, cosines, most
):
    full = np.maximum(cosines, 0.0)
    np.fill_diagonal(full, 0.0)
    near = np.zeros(full.shape, bool)
    for n, row in enumerate(full):
        near[n, np.argsort(-row, kind="stable")[:most]] = True
    result = build(table, most).similarities.toarray()
    np.testing.assert_allclose(result, np.where(near | near.T, full, 0.0), atol=1e-14)
    assert build is not po.graphs.cosine_graph or (cosines < 0.0).any()


@each_kind
def test_names_and_parameters_are_kept(build, table, cosines):
    graph = build(pd.DataFrame(table, index=[f"row {n}" for n in range(len(table))]), 2)
    assert graph.names == tuple(f"row {n}" for n in range(len(cosines)))
    assert graph.parameters == {"n_neighbors": 2}
    assert graph.again(3).parameters == {"n_neighbors": 3}


@pytest.mark.parametrize("size", [1e-200, 1e200])
def test_lengths_do_not_count(size):
    result = po.graphs.cosine_graph(size * X, 4).similarities.toarray()
    expected = po.graphs.cosine_graph(X, 4).similarities.toarray()
    np.testing.assert_allclose(result, expected, atol=1e-14)


def test_of_where_documents_lie_it_is_the_graph_of_documents():
    result = po.graphs.cosine_graph(document_coordinates(COUNTS), 3)
    expected = po.graphs.document_graph(COUNTS, 3)
    assert np.abs(result.similarities - expected.similarities).max() < 1e-14


def test_documents_with_the_same_words_have_similarity_one_and_none_without_words():
    graph = po.graphs.document_graph([[1.0, 2, 0], [2, 4, 0], [0, 0, 1], [0, 0, 0]])
    assert graph.n_edges == 1
    assert graph.similarities[0, 1] == pytest.approx(1.0, abs=1e-15)


@pytest.mark.parametrize(
    ("build", "row", "words"),
    [
        (po.graphs.cosine_graph, [1.0, np.nan], "X"),
        (po.graphs.document_graph, [1.0, -1.0], "below 0"),
    ],
)
def test_what_has_no_direction_is_refused(build, row, words):
    with pytest.raises(InvalidInput, match=words):
        build([row, [1.0, 2.0]])
