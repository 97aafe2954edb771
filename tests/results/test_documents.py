"""What is concluded of documents: of the words that they have, and of no others."""

from __future__ import annotations

import math

import cvxpy as cp
import numpy as np
import pandas as pd
import pytest

import propopt as po
from propopt.results.stability import Agreement, families


N, D = 6, 5
RNG = np.random.default_rng(3)
WORDS_OF = [[0, 1, 4], [0, 1, 2], [1, 2, 4], [0, 2, 4], [], [1]]
PRESENT = np.array([np.isin(np.arange(D), words) for words in WORDS_OF])
G = RNG.standard_normal((N, D)) * PRESENT
TOTAL = np.where(PRESENT.any(axis=1), G.sum(axis=1) + 0.3, 0.0)
GRAPH = po.gaussian_graph(RNG.standard_normal((N, 2)), lengthscale=2.0)
OBJECTIVE = po.GradientMatching(G) + 0.2 * po.SharedRobustness(GRAPH, PRESENT)
SUMS = [po.Completeness(TOTAL, PRESENT.astype(float))]
each_way = pytest.mark.parametrize("sums", [[], SUMS], ids=["free", "complete"])


def solved(sums=()):
    return po.solve(OBJECTIVE, subject_to=sums, tolerance=1e-12)


def solve(goal, *limits):
    return float(cp.Problem(goal, list(limits)).solve(solver="CLARABEL"))


def largest(level, place, sums):
    """The largest entry of V of these words with an objective up to a level."""
    V = cp.Variable((N, D))
    limits = [OBJECTIVE.expression(V) <= level, cp.multiply(V, ~PRESENT) == 0]
    if sums:
        limits.append(cp.sum(cp.multiply(V, PRESENT), axis=1) == TOTAL)
    return solve(cp.Maximize(V[place]), *limits)


@each_way
def test_half_widths_are_those_of_a_conic_solver_over_words_that_are_there(sums):
    best = solved(sums)
    certain = best.certain(budget=0.5)
    level = best.objective + 0.5 * best.objective / N
    for place in ((0, 1), (1, 2), (3, 4), (5, 1)):
        reach = largest(level, place, sums) - best.attributions[place]
        assert certain.half_widths[place] == pytest.approx(reach, rel=1e-4, abs=1e-6)
    # nothing is said of absent words
    assert certain.count == PRESENT.sum()
    for values in (certain.signs, certain.half_widths, certain.prices):
        assert not values[~PRESENT].any()
    share = np.count_nonzero(certain.signs) / PRESENT.sum()
    assert certain.share == pytest.approx(share)
    assert f"of {PRESENT.sum()} signs" in repr(certain)
    order = np.argsort(-np.abs(certain.attributions[2]))[:3]
    assert list(certain.of_row(2).index) == [f"x{d}" for d in order]
    assert certain.of_row(4).empty
    assert "x3" not in certain._repr_html_()
    # shares of a word are of documents that have it
    table, has = certain.to_frame(), PRESENT[:, 1]
    known = (certain.signs[has, 1] != 0).mean()
    assert table["certain"]["x1"] == pytest.approx(known)
    median = np.median(certain.half_widths[has, 1])
    assert table["median_half_width"]["x1"] == pytest.approx(median)
    assert table.loc["x3"].isna().all()  # in no document


@each_way
def test_ranks_are_among_the_words_of_a_document(sums):
    certain, by_value = (solved(sums).certain(1e-9, order=o) for o in ("size", "value"))
    W = certain.attributions
    for n in range(N):
        here = np.flatnonzero(PRESENT[n])
        order = here[np.argsort(-np.abs(W[n, here]))]
        assert list(certain.best_ranks[n, order]) == list(range(1, len(here) + 1))
        assert list(certain.worst_ranks[n, order]) == list(range(1, len(here) + 1))
        assert (certain.best_ranks[n, ~PRESENT[n]] == len(here) + 1).all()
        order = here[np.argsort(-W[n, here])]
        assert list(by_value.of_row(n).index) == [f"x{d}" for d in order]
    assert (certain.top(D).iloc[0] != "").sum() == 3
    assert not certain.top(D).isin(["x3"]).any(axis=None)


@each_way
def test_stability_is_that_of_a_solver(sums):
    best = solved(sums)
    slow = best.stability(2, solve=lambda *a, **k: po.solve(*a, tolerance=1e-12, **k))
    closed = best.stability(2).to_frame()
    pd.testing.assert_frame_equal(closed, slow.to_frame(), rtol=0, atol=1e-9)


def test_stability_is_not_diluted_by_words_that_are_absent():
    signs = np.array([[1.0, -0.01, 0.5], [1.0, 0.01, 0.5]])
    wide = np.hstack([signs, np.zeros((2, 40))])
    one, other = (
        po.solve(
            po.GradientMatching(values)
            + 0.5 * po.SharedRobustness(po.chain_graph(2), values != 0.0)
        ).stability(2)
        for values in (signs, wide)
    )
    assert one.to_frame().round(9).equals(other.to_frame().round(9))
    assert one.ranks <= 1.0
    W = np.array([[3.0, 2.0, 1.0, 0.0], [4.0, 3.0, 2.0, 1.0]])
    V = np.array([[2.0, 3.0, 1.0, 0.0], [4.0, 3.0, 2.0, 1.0]])
    result = Agreement.of("anything", W, {"other": V}, 1, W != 0.0)
    assert result.ranks == pytest.approx(2 / 3)  # of 1/3 and 1
    assert result.top == 0.5


def test_stability_varies_the_neighbours_of_documents():
    counts = PRESENT[PRESENT.any(axis=1)] * 1.0
    graph = po.graphs.document_graph(counts, n_neighbors=2)
    matching = po.GradientMatching(RNG.standard_normal(counts.shape) * counts)
    robust = po.SharedRobustness(graph, counts)
    best = po.solve(matching + 0.4 * robust)
    key = "neighbours in shared_robustness"
    varied = [x.varied for x in best.stability(2).agreements]
    assert varied == ["weight of shared_robustness", key]
    found = dict(families(best, best.program, None))[key]
    for k, name in ((4, "4 neighbours"), (1, "1 neighbour")):
        near = po.SharedRobustness(graph.again(k), counts)
        scale = robust.entry_graph.total / near.entry_graph.total
        again = po.solve(matching + 0.4 * scale * near).attributions
        np.testing.assert_allclose(found[name], again, atol=1e-6)


def test_shares_are_measured_between_the_target_and_means_over_shared_words():
    best = solved()
    shares = best.shares()
    V = cp.Variable((N, D))
    robust = OBJECTIVE.losses[1]
    same = robust.map.flat((N, D)) @ V.flatten(order="C") == 0
    far = solve(cp.Minimize(cp.sum_squares(V - G)), same)
    kept = 1.0 - best.losses["gradient_matching"] / far
    assert shares.kept["gradient_matching"] == pytest.approx(kept, rel=1e-5)
    removed = 1.0 - best.losses["shared_robustness"] / robust.value_at(G)
    assert shares.removed["shared_robustness"] == pytest.approx(removed)
    difference = math.sqrt(robust.value_at(G) / robust.entry_graph.total)
    assert shares.target_differences["shared_robustness"] == pytest.approx(difference)
    assert (shares.n_zero, shares.size) == (0, PRESENT.sum())
    rms = math.sqrt((best.attributions**2).sum() / PRESENT.sum())
    assert shares.rms == pytest.approx(rms)


def test_shares_of_complete_documents_end_where_nothing_more_can_be_removed():
    for weight, least in ((1e7, 1.0), (1e-9, 0.0)):
        robust = weight * po.SharedRobustness(GRAPH, PRESENT)
        shares = po.solve(po.GradientMatching(G) + robust, subject_to=SUMS).shares()
        assert shares.removed["shared_robustness"] == pytest.approx(least, abs=1e-5)
        assert shares.kept["gradient_matching"] == pytest.approx(1 - least, abs=1e-4)
    assert 0.0 < solved(SUMS).shares().kept["gradient_matching"] < 1.0
    baseline = po.Explanation(attributions=G + 0.1 * PRESENT, method="mine")
    shares = baseline.shares(OBJECTIVE)  # is measured over its words
    assert shares.size == PRESENT.sum()
    assert 0.0 < shares.kept["gradient_matching"] < 1.0
