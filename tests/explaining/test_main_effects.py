"""Main effects and interactions: against scikit-learn, closed forms and Clarabel."""

import cvxpy as cp
import numpy as np
import pandas as pd
import pytest
from oracles import TIGHT
from refusals import refusals
from sklearn.ensemble import GradientBoostingRegressor
from sklearn.inspection import partial_dependence
from sklearn.svm import SVR
from sklearn.tree import DecisionTreeRegressor

import propopt as po
from propopt.base.document import share_text
from propopt.base.errors import InvalidInput


N, D = 40, 4
rng = np.random.default_rng(7)
X, B = rng.normal(size=(N, D)), rng.normal(size=(60, D))
Y = X[:, 0] + X[:, 1] * X[:, 2] + np.sin(2.0 * X[:, 3])
GRAPH = po.graphs.knn_graph(X, 4)


# ---- main effects: what a column's value says by itself

MODELS = {
    "trees": GradientBoostingRegressor(n_estimators=30, random_state=0),
    "kernel": SVR(C=3.0),
}


@pytest.mark.parametrize("name", MODELS)
def test_own_values_are_the_partial_dependence_of_scikit_learn(name):
    model = MODELS[name].fit(X, Y)
    own = po.explainers.main_effects(model, X, data=B)
    assert own.explanation.evaluations <= 2 * N + 2 * len(B)  # to compare what was read
    called = po.explainers.main_effects(lambda x: model.predict(x), X, data=B)
    assert 0 < called.explanation.evaluations <= N * len(B) * D + len(B) + N
    np.testing.assert_allclose(
        own.explanation.attributions, called.explanation.attributions, atol=1e-12
    )
    for j in range(D):
        known = partial_dependence(
            model, B, [j], method="brute", kind="average", grid_resolution=9
        )
        rows = np.tile(B[:1], (9, 1))
        rows[:, j] = known["grid_values"][0]
        result = po.explainers.main_effects(
            model, rows, data=B
        ).explanation.attributions[:, j]
        expected = known["average"][0] - model.predict(B).mean()
        np.testing.assert_allclose(result, expected, atol=1e-12)


def test_categories_and_missing_values_have_values_of_their_own():
    table = pd.DataFrame(X, columns=list("abcd"))
    table["a"] = np.where(X[:, 0] > 0.3, "low", np.where(X[:, 0] < -0.5, "no", "high"))
    table.loc[::5, "b"] = np.nan

    def f(rows):
        size = rows["b"].fillna(3.0).to_numpy()
        return (rows["a"] == "low") * size + size**2

    own = po.explainers.main_effects(f, table, data=table)
    for j, name in enumerate(table):
        for n in (0, 1, 7):
            moved = table.copy()
            moved[name] = table[name].iloc[n]
            expected = f(moved).mean() - f(table).mean()
            assert own.explanation.attributions[n, j] == pytest.approx(
                expected, abs=1e-12
            )
    assert own.explanation.labels.features == tuple("abcd")
    np.testing.assert_array_equal(own.explanation.attributions[:, 2:], 0.0)


def test_of_slopes_they_are_mean_slopes():
    own = po.explainers.main_effects(
        po.wrap(lambda x: x[:, 0] ** 2 * x[:, 1] + x[:, 2], data=X),
        X, data=B, units="gradient",
    )  # fmt: skip
    expected = np.zeros((N, D))
    expected[:, 0] = 2.0 * X[:, 0] * B[:, 1].mean()
    expected[:, 1] = (B[:, 0] ** 2).mean()
    expected[:, 2] = 1.0
    np.testing.assert_allclose(own.explanation.attributions, expected, atol=1e-6)
    assert own.difference_shares(own.explanation.attributions, GRAPH).required == 0.0


def test_a_background_is_drawn_where_there_are_more_rows():
    own = po.explainers.main_effects(lambda x: x[:, 0], X, data=B, n_background=20)
    assert "20 draws of 60 background rows of data" in own.background
    again = po.explainers.main_effects(lambda x: x[:, 0], X, data=B, n_background=20)
    np.testing.assert_array_equal(
        own.explanation.attributions, again.explanation.attributions
    )


# ---- shares: where the truth is known

MIRRORED = np.concatenate([B, B * [-1, 1, 1, 1], B * [1, -1, 1, 1], B * [-1, -1, 1, 1]])


def shares_of(f, background=MIRRORED):
    own = po.explainers.main_effects(
        f, X, data=background, n_background=len(background)
    )
    shap = po.explainers.Shap(data=background)
    phi = shap.explain(po.wrap(f, data=background), X).attributions
    return own.difference_shares(phi, GRAPH), phi


def test_additive_stumps_have_no_context_and_a_product_nothing_else():
    stumps = GradientBoostingRegressor(max_depth=1, random_state=0).fit(X, Y)
    own = po.explainers.main_effects(stumps, X, data=B)
    exact = po.explainers.TreeShap(data=B).explain(po.wrap(stumps, data=B), X)
    share = own.difference_shares(exact, GRAPH)
    assert abs(share.interactions) < 1e-10
    assert share.halving_cost == 0.0
    share, _ = shares_of(lambda x: x[:, 0] * x[:, 1])
    assert share.interactions == pytest.approx(1.0, abs=1e-12)
    assert share.main_effects == pytest.approx(0.0, abs=1e-12)


def test_of_a_sum_and_a_product_the_share_is_that_of_the_closed_form():
    share, phi = shares_of(lambda x: x[:, 0] * (1.0 + x[:, 1]))
    pairs = X[:, 0] * X[:, 1] / 2.0
    own = np.column_stack([X[:, 0], np.zeros((N, 3))])
    full = own + np.column_stack([pairs, pairs, np.zeros((N, 2))])
    np.testing.assert_allclose(phi, full, atol=1e-12)
    left, whole = (GRAPH.differences.energy(V) for V in (full - own, full))
    assert share.interactions == pytest.approx(left / whole, rel=1e-12)
    # both halves of a product are alike, and the other two columns are not used: what
    # sums need, spread over two, is all that there is
    assert share.required == pytest.approx(share.interactions, rel=1e-12)
    assert share.document().facts["required"].value == share.required
    assert share.main_effects + share.required + share.removable == pytest.approx(1.0)


def test_shares_are_not_clipped_and_rows_that_do_not_differ_have_none():
    own = po.explainers.main_effects(lambda x: 3.0 * x[:, 0], X, data=B)
    share = own.difference_shares(-own.explanation.attributions, GRAPH)
    assert share.main_effects == pytest.approx(-3.0)
    alike = own.difference_shares(np.ones((N, D)), GRAPH)
    assert np.isnan([alike.main_effects, alike.required, alike.removable]).all()


def test_half_of_what_could_go_costs_what_clarabel_says():
    model = MODELS["trees"].fit(X, Y)
    own = po.explainers.main_effects(model, X, data=B)
    shap = po.explainers.TreeShap(data=B)
    phi = shap.explain(po.wrap(model, data=B), X).attributions
    share, G, S = (
        own.difference_shares(phi, GRAPH),
        own.explanation.attributions,
        GRAPH.incidence.toarray(),
    )
    weights = np.sqrt(2.0 * GRAPH.similarities.toarray()[*GRAPH.edges.T])
    W = cp.Variable((N, D))
    rough = cp.sum_squares(cp.multiply(weights[:, None], S @ (W - G)))
    whole = float(((weights[:, None] * (S @ phi)) ** 2).sum())
    sums = cp.sum(W, axis=1) == phi.sum(axis=1)
    least = cp.Problem(cp.Minimize(rough), [sums]).solve(solver="CLARABEL", **TIGHT)
    assert share.required == pytest.approx(least / whole, rel=1e-6)
    W.value = phi
    here = float(rough.value)
    assert share.removable == pytest.approx((here - least) / whole, rel=1e-6)
    limits = [sums, rough <= (here + least) / 2.0]
    cost = cp.Problem(cp.Minimize(cp.sum_squares(W - phi)), limits)
    cost = cost.solve(solver="CLARABEL", **TIGHT)
    assert share.halving_cost == pytest.approx(cost / (phi**2).sum(), rel=1e-4)


def test_shares_are_given_by_the_number_of_neighbours():
    model = MODELS["trees"].fit(X, Y)
    own = po.explainers.main_effects(model, X, data=B)
    shap = po.explainers.TreeShap(data=B).explain(po.wrap(model, data=B), X)
    share = own.difference_shares(shap, GRAPH)
    near = {
        k: own.difference_shares(shap, po.graphs.knn_graph(X, k)).main_effects
        for k in (2, 8)
    }
    assert share.by_neighbors == pytest.approx(near)
    ends = [share_text(x) for x in sorted(near.values())]
    facts = share.document().facts
    assert facts["main effects"].note == f"{ends[0]} to {ends[1]} for 2 to 8 neighbours"
    assert facts["change to halve them"].value == share.halving_cost**0.5


@pytest.mark.parametrize(("line", "message"), refusals(__file__, "main effects"))
def test_what_has_no_main_effects_is_refused(line, message):
    with pytest.raises(InvalidInput, match=message):
        eval(line)


# ---- the loss without main effects: sweeps, bounds, sums

T, G = rng.normal(size=(2, N, D)) + 1.0
TOTALS = rng.normal(size=N)
matching, offset = po.GradientMatching(T), po.PairwiseRobustness(GRAPH, offset=G)
smooth, complete = (
    po.Smoothness(po.graphs.chain_graph(D)),
    po.losses.Completeness(TOTALS),
)
PROGRAMS = {
    "sums": (matching + 0.7 * offset, [complete], "spectral, complete, shifted"),
    "limit": (1.0 * matching, [offset <= 9.0], "one_bound, shifted"),
    "faithful": (1.0 * offset, [matching <= 3.0], "one_bound, shifted"),
    "smooth sums": (
        matching + 0.7 * offset + 0.2 * smooth,
        [complete],
        "normal_equations, complete",
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_optima_beside_own_values_are_those_of_clarabel(name):
    objective, limits, solver = PROGRAMS[name]
    best = po.solve(objective, subject_to=limits)
    assert best.solver == solver
    assert best.gap < 1e-6
    W, rules = cp.Variable((N, D)), []
    for limit in limits:
        if limit is complete:
            rules.append(cp.sum(W, axis=1) == TOTALS)
        else:
            rules.append(limit.loss.expression(W) <= limit.limit)
    problem = cp.Problem(cp.Minimize(objective.expression(W)), rules)
    problem.solve(solver="CLARABEL", **TIGHT)
    assert best.objective == pytest.approx(problem.value, rel=3e-6)
    np.testing.assert_allclose(best.attributions, W.value, atol=2e-3)


def test_a_sweep_beside_own_values_is_that_of_what_is_left():
    objective = matching + offset
    plain = po.GradientMatching(T - G) + po.PairwiseRobustness(GRAPH)
    weights = {"pairwise_robustness": np.geomspace(1e-2, 1e2, 7)}
    curve, left = po.sweep(objective, weights), po.sweep(plain, weights)
    for best, other in zip(curve.optimized, left.optimized, strict=True):
        assert best.losses == pytest.approx(other.losses)
        assert best.gap < 1e-6
        np.testing.assert_allclose(best.attributions, other.attributions + G, atol=1e-9)
        assert best.shares().faithfulness_kept == pytest.approx(
            other.shares().faithfulness_kept
        )
        assert best.shares().removed == pytest.approx(other.shares().removed)
    best = curve.optimized[3]
    assert po.proofs.certify(objective, best).gap < 1e-6
    assert best.certain().to_frame().shape[0] > 0


def test_names_of_own_values_are_aligned_or_refused():
    rows, columns = [f"r{n}" for n in range(N)], list("abcd")
    frame = pd.DataFrame(G, index=rows, columns=columns)
    graph = po.graphs.knn_graph(pd.DataFrame(X, index=rows), 4)
    loss = po.PairwiseRobustness(graph, offset=frame.iloc[::-1])
    np.testing.assert_array_equal(loss.offset, G)
    wanted = po.GradientMatching(pd.DataFrame(T, index=rows, columns=columns)) + loss
    assert po.solve(wanted).labels.features == tuple(columns)
    for given in (frame.rename(columns={"a": "z"}), frame.rename(index={"r0": "q"})):
        with pytest.raises(InvalidInput):
            po.solve(
                po.GradientMatching(pd.DataFrame(T, index=rows, columns=columns))
                + po.PairwiseRobustness(graph, offset=given)
            )


# ---- po.explain without main effects


@pytest.mark.parametrize("metric", ["uniform", "effects"])
def test_explain_beside_own_values_is_the_program_by_hand(metric):
    model = MODELS["trees"].fit(X, Y)
    graph = po.graphs.knn_graph(X / B.std(axis=0), 8)
    settings = {"data": B, "graph": graph, "metric": metric, "robustness": 2.0}
    best = po.explain(model, X, offset="main_effects", **settings)
    own = po.explainers.main_effects(po.wrap(model, data=B), X, data=B)
    same = po.explain(model, X, offset=own, **settings)
    np.testing.assert_allclose(best.attributions, same.attributions, atol=1e-12)
    phi = best.contributions
    roots = np.ones(D)
    if metric == "effects":
        squares = (phi**2).mean(axis=0)
        roots = np.sqrt(np.maximum(squares, 1e-6 * squares.max()))
    totals = best.prediction - best.base_value
    by_hand = po.solve(
        po.GradientMatching(phi / roots)
        + 2.0
        * po.PairwiseRobustness(graph, offset=own.explanation.attributions / roots),
        subject_to=[po.losses.Completeness(totals, roots)],
    )
    expected = by_hand.attributions * roots
    np.testing.assert_allclose(best.attributions, expected, atol=1e-9)
    assert best.gap < 1e-6


def test_a_column_that_is_not_used_stays_zero_beside_own_values_too():
    model = DecisionTreeRegressor(max_depth=4, random_state=0).fit(
        X * [1, 1, 1, 0], X[:, 0] * X[:, 1] + X[:, 2]
    )
    message = {"data": B, "kind": "contributions", "graph": GRAPH}
    best = po.explain(model, X, offset="main_effects", **message)
    assert not best.contributions[:, 3].any()
    assert not best.attributions[:, 3].any()
    assert best.attributions[:, :3].any()
    # what sums need is what is left of the flattest that is zero there
    own = po.explainers.main_effects(model, X, data=B)
    share = own.difference_shares(best.contributions, GRAPH)
    assert best.parameters["main effects"] == pytest.approx(share.main_effects)
    assert best.parameters["removable differences"] == pytest.approx(share.removable)
    G = own.explanation.attributions
    lacking = (best.contributions - G).sum(axis=1, keepdims=True)
    smoothest = np.hstack([G[:, :3] + lacking / 3.0, G[:, 3:]])
    energy = GRAPH.differences.energy
    least = energy(smoothest - G) / energy(np.asarray(best.contributions))
    assert share.required == pytest.approx(least, rel=1e-9)
    audit = po.audit(best.contributions, model, X, data=B, graph=GRAPH)
    assert audit["required"].number == pytest.approx(share.required, abs=1e-9)
