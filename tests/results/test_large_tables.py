"""Large tables: each number is of all rows, or of a stated sample with an interval."""

import re

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binomtest, hypergeom

import propopt as po
from propopt.base.document import Table, cell_text
from propopt.base.errors import InvalidInput
from propopt.base.resources import Budget
from propopt.base.row_sample import SAMPLED_ABOVE, RowSample
from propopt.proofs import optimum
from propopt.proofs.optimum import Optimum, of_rows
from propopt.results import explanation_document, reasons
from propopt.results.report import neighbours
from propopt.results.report.explorer import Explorer
from propopt.results.report.neighbours import Neighbours


D = 4
LARGE = SAMPLED_ABOVE + 500


def parts(n_rows, seed=0, **fields):
    """Contributions of rows that add up, and the targets that they moved from."""
    rng = np.random.default_rng(seed)
    phi = rng.normal(size=(n_rows, D)) * [2.0, 1.0, 0.5, 0.1]
    W = 0.8 * phi + 0.2 * phi[rng.permutation(n_rows)]
    W += (phi.sum(axis=1) - W.sum(axis=1))[:, None] / D
    return po.results.Explanation(
        attributions=W,
        method="optimized",
        units="output",
        contributions=phi,
        base_value=np.zeros(n_rows),
        prediction=phi.sum(axis=1),
        points=rng.normal(size=(n_rows, D)),
        **fields,
    )


def blocks_of_chapters(result):
    chapters = result.document().chapters()
    return {chapter.title: list(chapter.blocks) for chapter in chapters}


@pytest.fixture(scope="module")
def large():
    return parts(LARGE)


# ---- samples and their intervals


@pytest.mark.parametrize("count", [3, 40, 2_000])
def test_intervals_of_an_endless_table_are_those_of_wilson(count):
    sample = RowSample(np.arange(count), 10**14)
    for hits in {0, 1, count // 3, count}:
        test = binomtest(hits, count).proportion_ci(0.95, "wilson")
        interval = sample.interval(hits / count, count)
        assert interval == pytest.approx((test.low, test.high), abs=1e-9)


@pytest.mark.parametrize(("n_rows", "count"), [(600, 300), (5_000, 500)])
def test_intervals_cover_the_share_of_the_table(n_rows, count):
    sample, k = RowSample(np.arange(count), n_rows), np.arange(count + 1)
    ends = np.array([sample.interval(hits / count, count) for hits in k])
    covered = []
    for hits in np.linspace(0.02, 0.98, 33) * n_rows:
        share = round(hits) / n_rows
        inside = (ends[:, 0] <= share) & (share <= ends[:, 1])
        covered.append(hypergeom(n_rows, round(hits), count).pmf(k)[inside].sum())
    assert min(covered) > 0.92
    assert 0.94 < np.mean(covered) < 0.97


def test_a_sample_depends_on_the_number_of_rows_alone():
    sample = RowSample.of(LARGE)
    assert np.array_equal(sample.rows, RowSample.of(LARGE).rows)
    assert len(np.unique(sample.rows)) == SAMPLED_ABOVE
    assert (np.diff(sample.rows) > 0).all()
    assert sample.in_words() == f"a sample of 2,000 of {LARGE:,} rows"
    whole = RowSample.of(SAMPLED_ABOVE)
    assert whole.is_whole
    assert np.array_equal(whole.rows, np.arange(SAMPLED_ABOVE))
    assert whole.interval(0.3, 7) == (0.3, 0.3)


# ---- all rows, in blocks


def test_blocks_of_rows_change_no_number(monkeypatch):
    best, groups = parts(50), {"pair": ["x0", "x2"]}
    cases = [{}, {"order": "value"}, {"groups": groups}, {"small_change": 0.3}]

    def views():
        return best.to_text(), [best.clear(**case) for case in cases]

    text, whole = views()
    budget = Budget(7 * 8 * D)
    monkeypatch.setattr(optimum, "BATCH_BUDGET", budget)
    monkeypatch.setattr(explanation_document, "BATCH_BUDGET", budget)
    again, blocks = views()
    assert again == text
    for one, other in zip(whole, blocks, strict=True):
        for name in ("attributions", "signs", "best_ranks", "worst_ranks"):
            assert getattr(one, name).tobytes() == getattr(other, name).tobytes()
        assert (one.small_change, one.labels) == (other.small_change, other.labels)


def test_some_rows_have_the_clear_signs_and_reasons_that_they_have_among_all():
    best = parts(60, standard_errors=np.full((60, D), 0.01))
    chosen = [41, 3, 17]
    some, every = of_rows(best, np.array(chosen)), best.clear()
    clear = some.clear()
    assert clear.small_change == every.small_change
    for name in ("signs", "best_ranks", "worst_ranks"):
        assert np.array_equal(getattr(clear, name), getattr(every, name)[chosen])
    assert some.to_frame().index.tolist() == chosen
    listed, table = best.reasons(rows=chosen), best.reasons().to_frame()
    expected = pd.concat([table[table["row"] == n] for n in chosen])
    pd.testing.assert_frame_equal(listed.to_frame(), expected.reset_index(drop=True))


# ---- reasons of a sample


def test_reasons_of_a_sample_say_so_and_their_intervals_hold(
    large, monkeypatch, tmp_path
):
    every = large.reasons()
    assert every.drawn_from is None
    assert len(every.names) == LARGE
    monkeypatch.setattr(reasons, "MOST_LISTED", LARGE - 1)
    some = large.reasons()
    sample = RowSample.of(LARGE)
    assert some.names == tuple(sample.rows.tolist())
    assert some.drawn_from == LARGE
    document = some.document()
    assert sample.in_words() in document.subtitle
    assert document.facts["interval"].value == 0.95
    counts = np.bincount(some.ranks)[1:]
    for share, exact, count in zip(
        some.clear_rows, every.clear_rows, counts, strict=True
    ):
        low, high = sample.interval(share, int(count))
        assert low <= exact <= high
        assert high - low < 2.0 / count**0.5
    shown = document.blocks[0].frame["clear rows"]
    assert all(re.fullmatch(r"[\d.]+% \(\d+ to \d+%\)", x) for x in shown)
    some.save(tmp_path / "reasons.npz")
    again = po.results.Reasons.load(tmp_path / "reasons.npz")
    assert again.to_text() == some.to_text()
    assert large.reasons(rows=[5]).drawn_from is None
    with pytest.raises(InvalidInput, match="drawn_from: expected more rows"):
        type(some)(**{**vars(some), "drawn_from": 3}).validate()


# ---- pages


def test_the_values_on_a_page_are_those_of_their_rows(large):
    blocks = blocks_of_chapters(large)["Rows"]
    (table,) = [x for x in blocks if isinstance(x, Table)]
    rows = [int(name) for name in table.frame.index]
    W, phi = large.attributions[rows], large.contributions[rows]
    assert table.frame["prediction"].tolist() == large.prediction[rows].tolist()
    assert "base" not in table.frame  # one for all rows
    assert f"base {cell_text(large.base_value[0])}" in table.caption
    most = table.frame["largest difference from exact"]
    assert most.tolist() == np.abs(W - phi).max(axis=1).tolist()


def test_slopes_of_a_large_table_are_shown_for_a_sample():
    rng = np.random.default_rng(1)
    best = po.results.Explanation(
        attributions=rng.normal(size=(LARGE, D)), method="mine"
    )
    (table,) = blocks_of_chapters(best)["Attributions"]
    rows = table.frame.index.to_numpy()
    words = f"a sample of {len(rows):,} of {LARGE:,} rows"
    assert words in table.caption
    assert np.array_equal(table.frame.to_numpy(), best.attributions[rows])


def test_the_work_of_a_page_does_not_grow_with_its_rows(monkeypatch):
    calls, value_of, knn_graph = [], Optimum.value_of, neighbours.knn_graph
    compared = []

    def counted(self, n, j):
        calls.append(n)
        return value_of(self, n, j)

    def counted_graph(X, k):
        compared.append(len(X))
        return knn_graph(X, k)

    monkeypatch.setattr(Optimum, "value_of", counted)
    monkeypatch.setattr(neighbours, "knn_graph", counted_graph)
    counts = []
    for n_rows in (LARGE, 3 * LARGE):
        calls.clear()
        chapters = blocks_of_chapters(parts(n_rows))
        for block in chapters["Two similar rows"]:
            if isinstance(block, Explorer):
                assert len(block.data) < 1_500_000
        counts.append(len(calls))
    assert compared == [SAMPLED_ABOVE, SAMPLED_ABOVE]
    assert 1_000 < counts[1] < 1.1 * counts[0]


def test_similar_rows_of_a_graph_are_looked_up_among_their_own_pairs():
    graph = po.graphs.knn_graph(np.random.default_rng(2).normal(size=(80, 2)), 3)
    every = Neighbours(
        graph.edges, graph.strengths, np.zeros(graph.n_edges), "of a graph"
    )
    rows = [3, 70, 12]
    some = every.at(rows)
    assert len(some.edges) < len(every.edges)
    assert [some.nearest(n) for n in rows] == [every.nearest(n) for n in rows]
    among = [3, 5, 12, 40, 70]
    assert [some.nearest(n, among) for n in rows] == [
        every.nearest(n, among) for n in rows
    ]
    assert every.at([]).nearest(3) is None


def test_a_sampled_row_of_a_graph_stands_beside_its_most_similar_row():
    X = np.linspace(-1.0, 1.0, LARGE)[:, None]
    objective = po.GradientMatching(3.0 * X**2) + po.PairwiseRobustness(
        po.graphs.chain_graph(LARGE)
    )
    chapters = blocks_of_chapters(po.solve(objective))
    blocks = chapters["Two similar rows"]
    (explorer,) = [x for x in blocks if isinstance(x, Explorer)]
    facts = {x.label: x for one in blocks if isinstance(one, tuple) for x in one}
    assert facts["rows shown"].number == f"{len(explorer.rows):,} of {LARGE:,}"
    n = RowSample.of(LARGE).rows[7]
    assert n in explorer.rows
    similar = explorer.rows[explorer.similar(explorer.rows.index(n))]
    assert abs(similar - n) == 1
