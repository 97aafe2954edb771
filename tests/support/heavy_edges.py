"""Graphs with one edge far above all others."""

import propopt as po


def heavy(rng, weight, n_points):
    """A graph with one edge far above all others, and gradients alike at its ends."""
    S = po.graphs.knn_graph(rng.normal(size=(n_points, 3)), 6).similarities.tolil()
    S[0, 1] = S[1, 0] = weight
    G = rng.normal(size=(n_points, 2))
    G[1] = G[0]
    return S.tocsr(), G
