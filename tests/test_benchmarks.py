"""Benchmarks: peers do the work they are timed for; README says what was measured."""

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestRegressor

import propopt as po
from tests.support.studies import study


peers, record, timing = study("peers"), study("record"), study("timing")
texts, guard = study("lime_texts"), study("guard")


def normal(n_points, n_features):
    rng = np.random.default_rng(0)
    return rng.normal(size=(2, n_points, n_features))


# ---- the record
def test_the_table_of_the_readme_is_made_from_the_record():
    text, measured = record.README.read_text("utf-8"), pd.read_csv(record.RECORD)
    assert text == record.page(text, measured), "run: python -m benchmarks.record"
    assert set(measured["role"]) <= {"propopt", "best", "general", "other"}
    assert not measured.duplicated(["work", "method"]).any()
    changed = measured.assign(seconds=1.5 * measured["seconds"])
    assert text != record.page(text, changed)


def test_a_case_that_is_run_again_takes_the_place_of_its_rows(tmp_path):
    row = timing.Row(
        work="w", method="m", role="best", seconds=1.0, ratio=2.0, runs=3, gap=1e-9
    )
    path = tmp_path / "record.csv"
    record.kept(path, {"a": [row], "b": [row]}).to_csv(path, index=False)
    again = record.kept(path, {"a": [row, row]})
    assert list(again["case"]) == ["b", "a", "a"]
    assert again["gap"].tolist() == [1e-9] * 3


# ---- the clock
def test_methods_take_turns_and_only_parts_are_scaled():
    turns = []

    def run(name, seconds):
        turns.append(name)
        return timing.Timed(seconds, np.array([1.0, 2.0 + 0.1 * (name == "b")]))

    a, b = (
        timing.Method(
            name=name,
            role=role,
            run=lambda name=name, s=s: run(name, s),
            runs=runs,
            made=1,
            of=10,
            answer=np.asarray,
        )
        for name, role, s, runs in [("a", "propopt", 2.0, 3), ("b", "best", 5.0, 2)]
    )
    ours, peer = timing.race("work", a, b)
    assert turns == ["a", "b", "a", "b", "a"]
    assert (ours.seconds, ours.ratio, peer.seconds, peer.ratio) == (2.0, 1.0, 5.0, 2.5)
    assert peer.difference == pytest.approx(0.05)
    assert ours.difference is None

    def busy():
        return sum(range(200_000))

    whole = timing.Method(name="a", run=busy, runs=5)
    tenth = timing.Method(name="b", run=busy, made=1, of=100, runs=5)
    ours, peer = timing.race("work", whole, tenth)
    assert 30 < peer.ratio < 300  # 100 times as much is scaled from as much


# ---- peers do the same work
def test_eigenvectors_and_factorisations_give_the_optimum():
    X, G = normal(40, 3)
    graph, chain = po.graphs.knn_graph(X, 4), po.graphs.chain_graph(3)
    L, M, weights = graph.laplacian, chain.laplacian, [0.1, 3.0]
    matching, robust = po.GradientMatching(G), po.PairwiseRobustness(graph)
    smooth = po.Smoothness(chain)
    given = G, L.toarray(), M.toarray(), 0.5, weights
    every = zip(
        peers.eigen_curve(*given),
        peers.eigen_losses(*given),
        peers.factored_curve(G, L, weights),
        weights,
        strict=True,
    )
    for W, losses, alone, b in every:
        objective = matching + b * robust + 0.5 * smooth
        assert po.proofs.certify(objective, W).gap < 1e-12
        values = [loss.value_at(W) for loss in objective.losses]
        np.testing.assert_allclose(losses, values, rtol=1e-12)
        assert po.proofs.certify(matching + b * robust, alone).gap < 1e-12


def test_conjugate_gradients_reach_their_gap():
    X, G = normal(200, 3)
    graph, weights = po.graphs.knn_graph(X, 4), [0.01, 1.0, 100.0]
    curve = peers.conjugate_curve(G, graph.laplacian, weights, 1e-4)
    for (W, gap), b in zip(curve, weights, strict=True):
        objective = po.GradientMatching(G) + b * po.PairwiseRobustness(graph)
        value = ((W - G) ** 2).sum() + b * po.PairwiseRobustness(graph).value(W)
        excess = value / po.solve(objective).objective - 1
        assert excess <= gap <= 1e-4
        assert excess > 1e-9  # no better than was asked for


def test_cosines_give_the_optimum_on_a_lattice():
    shape, weights = (3, 4, 5), [0.1, 3.0]
    G = np.random.default_rng(0).normal(size=(60, 2))
    matching = po.GradientMatching(G)
    robust = po.PairwiseRobustness(po.graphs.LatticeGraph(shape))
    every = zip(
        peers.cosine_curve(G, shape, weights),
        peers.cosine_losses(G, shape, weights),
        weights,
        strict=True,
    )
    for W, losses, b in every:
        assert po.proofs.certify(matching + b * robust, W).gap < 1e-12
        values = [matching.value_at(W), robust.value_at(W)]
        np.testing.assert_allclose(losses, values, rtol=1e-8)  # rounded eigenvalues


@pytest.mark.parametrize("kind", ["knn", "gaussian"])
def test_fista_gives_the_optimum_and_its_own_bound_is_true(kind):
    X, G = normal(40, 3)
    graphs = {"knn": po.graphs.knn_graph(X, 4), "gaussian": po.graphs.gaussian_graph(X)}
    graph, weights = graphs[kind], [0.05, 0.5]
    path = peers.fista_path(G, graph.laplacian, 1.0, weights)
    for s, W in zip(weights, path, strict=True):
        objective = (
            po.GradientMatching(G) + po.PairwiseRobustness(graph) + s * po.Sparsity()
        )
        best = po.solve(objective, tolerance=1e-10)
        value = sum(
            weight * loss.value_at(W)
            for weight, loss in zip(
                objective.coefficients, objective.losses, strict=True
            )
        )
        assert best.objective * (1 - 1e-9) <= value <= best.objective * (1 + 1.01e-6)
        assert (W == 0).any() == (best.attributions == 0).any()


@pytest.mark.parametrize("weight", [0.1, 30.0])
@pytest.mark.parametrize("aggregate", ["max", "sum"])
def test_the_dual_gives_the_optimum_of_largest_differences(aggregate, weight):
    """Off by √(both gaps of F) at most: F is strongly convex with modulus 2."""
    X, G = normal(30, 2)
    graph, pairs, groups = po.graphs.knn_graph(X, 4), None, 1
    if aggregate == "sum":
        graph, groups = po.graphs.complete_graph(30), 30
        pairs = np.argwhere(~np.eye(30, dtype=bool))
    else:
        pairs = study("cases").edges(graph)
    loss = po.losses.MaxDifferenceRobustness(graph, aggregate)
    objective = po.GradientMatching(G) + weight * loss
    best = po.solve(objective, tolerance=1e-8)
    W, gap = peers.dual_fista(G, pairs, weight, groups)
    value = ((W - G) ** 2).sum() + weight * loss.value(W)
    assert gap <= 1e-6
    assert best.objective * (1 - 1e-8) <= value <= best.objective / (1 - gap)
    off = np.linalg.norm(W - best.attributions)
    assert off <= np.sqrt(gap * value) + np.sqrt(best.gap * value) + 1e-9


def test_shap_is_asked_with_a_background_or_without():
    model = RandomForestRegressor(3, max_depth=3, random_state=0)
    X, y = normal(60, 4)
    model.fit(X, y[:, 0])
    trees = pytest.importorskip("shap").TreeExplainer(model, X[:10])
    against = peers.shap_values(model, X[:10], X[-5:])()
    np.testing.assert_array_equal(against, trees.shap_values(X[-5:]))
    totals = against.sum(axis=1) + model.predict(X[:10]).mean()
    np.testing.assert_allclose(totals, model.predict(X[-5:]), atol=1e-6)
    other = peers.path_dependent(model, X[-5:]).run()
    assert np.abs(other - against).max() > 1e-3


def test_batched_passes_estimate_the_limits_of_lime():
    """Each coefficient within 5 standard errors of 20 batches: .1 % false alarms."""
    X = load_breast_cancer().data[:, :4]
    law = po.lime.TabularLaw.from_data(X)

    def steps(rows):  # of the bins alone, so that values within a bin do not count
        edges = np.percentile(X, [25, 50, 75], axis=0)
        bins = (rows[:, None] > edges).sum(axis=1)
        return bins[:, 0] * bins[:, 1] - bins[:, 2] + 2.0 * bins.prod(axis=1)

    width = 0.75 * np.sqrt(4)
    batches = np.array(
        [peers.batched_bins(steps, X, X[[k] * 20], 2000, (width,))[0] for k in (0, 300)]
    )  # (2, 20, 4)
    lime = po.explainers.Lime(law=law, n_samples=40_000, ridge=20.0, first_row=True)
    ours = lime.explain(po.wrap(steps), X[[0, 300]])
    errors = np.sqrt(batches.var(axis=1, ddof=1) / 20 + ours.standard_errors**2)
    assert (np.abs(batches.mean(axis=1) - ours.attributions) < 5 * errors).all()
    assert (errors < 0.05 * np.abs(ours.attributions).max()).all()


def test_a_batched_pass_over_texts_asks_the_model_for_the_same_texts():
    corpus = texts.corpus(40, 30)
    labels = np.arange(40) % 2
    (document,) = po.functions.TextSchema.of(corpus[:1]).documents
    Z = np.random.default_rng(0).random((50, document.n_words)) < 0.7
    Z[0] = False
    linear = texts.linear_model(corpus, labels)
    score = texts.score_of_words(linear, document, "log_odds")
    kept = document.texts(Z)
    np.testing.assert_allclose(
        score(Z * 1.0), linear.decision_function(kept), atol=1e-12
    )
    forest = texts.word_forest(corpus, labels, 5)
    score = texts.score_of_words(forest, document, "probability")
    expected = forest.predict_proba(kept)[:, 1]
    np.testing.assert_allclose(score(Z * 1.0), expected, atol=1e-12)


# ---- the guard
def test_the_guard_fails_where_a_ratio_is_above_its_limit(monkeypatch, capsys):
    def busy(size):
        return lambda: sum(range(size))

    def found(limit):
        return [guard.Guarded("work", busy(300_000), busy(100_000), limit)]

    monkeypatch.setattr(guard, "guarded", lambda: found(30.0))
    guard.main()
    assert "at most 30: work" in capsys.readouterr().out
    monkeypatch.setattr(guard, "guarded", lambda: found(0.3))
    with pytest.raises(SystemExit, match="slower than the limit: work"):
        guard.main()
