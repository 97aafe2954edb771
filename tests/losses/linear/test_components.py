"""Parts of a graph, and values taken apart into means and the rest."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

import propopt as po
from propopt.losses.linear_algebra import Components


@given(st.integers(0, 10_000), st.integers(1, 30), st.sampled_from([0.0, 1.0, 1e8]))
def test_a_split_adds_up_and_the_rest_has_mean_zero(seed, n_points, offset):
    rng = np.random.default_rng(seed)
    labels = np.unique(rng.integers(0, 4, n_points), return_inverse=True)[1]
    parts = Components(labels)
    W = rng.normal(size=(n_points, 3)) + offset
    means, R = parts.split(W)
    assert parts.spread(means) + R == pytest.approx(W, rel=1e-15, abs=1e-14)
    for part in range(parts.count):
        assert means[part] == pytest.approx(W[labels == part].mean(axis=0), rel=1e-14)
        total = np.abs(R[labels == part].sum(axis=0))
        assert (total <= 1e-14 * n_points * np.ptp(W, axis=0)).all()


def test_constants_leave_exactly_nothing():
    parts = Components(np.array([0, 1, 0, 1, 1]))
    W = np.array([[0.1], [1e17 / 3], [0.1], [1e17 / 3], [1e17 / 3]])
    assert not parts.centred(W).any()


def test_components_are_those_of_the_couplings_whatever_their_signs():
    S = sp.csr_array(np.diag([1.0, 0.0, -1.0], 1) + np.diag([1.0, 0.0, -1.0], -1))
    assert Components.of(S).labels.tolist() == [0, 0, 1, 1]
    assert Components.of(S).sizes.tolist() == [2, 2]


@pytest.mark.parametrize(
    "loss",
    [
        po.PairwiseRobustness(po.threshold_graph([[0.0], [1.0], [5.0], [6.0]], 2.0)),
        po.PairwiseRobustness(po.graphs.LatticeGraph((2, 2))),
        po.PairwiseRobustness(po.grid_gaussian_graph([[0.0], [1.0], [2.0], [4.0]])),
        po.KernelRobustness(np.exp(-np.abs(np.subtract.outer(range(4), range(4))))),
        po.MaxDifferenceRobustness(po.chain_graph(4), aggregate="sum"),
    ],
    ids=lambda loss: f"{loss.name}-{type(loss.map).__name__}",
)
def test_maps_take_what_is_constant_on_their_components_to_zero(loss):
    parts = loss.map.components
    values = parts.spread(np.arange(1.0, parts.count + 1)[:, None])
    W = np.broadcast_to(values, (4, 1))
    assert loss.map(W) == pytest.approx(0.0, abs=1e-12)


def test_smoothness_knows_the_components_of_features():
    graph = po.group_graph(["a", "b", "a"])
    assert po.Smoothness(graph).map.components.labels.tolist() == [0, 1, 0]
