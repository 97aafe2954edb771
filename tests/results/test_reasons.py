"""Reasons: a rank that is called certain holds in every near-optimal explanation."""

import dataclasses
from functools import cache

import cvxpy as cp
import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier

import propopt as po
from propopt.base.errors import InvalidInput
from propopt.losses.faithfulness import Estimate
from propopt.results.certain import NearOptimal
from propopt.results.reasons import ordinal


RNG = np.random.default_rng(5)
N, D = 4, 5
PHI = np.array([3.0, 1.2, -2.0, 0.6, -0.5]) + 0.4 * RNG.normal(size=(N, D))
PHI[3] = [-2.5, -0.7, -1.2, -0.2, -0.4]  # nothing towards a higher output
ROBUST = 0.15 * po.PairwiseRobustness(po.graphs.chain_graph(N))
GROUPS = {"pair": ["x1", "x3"]}
SUMS = np.array([[1, 0, 0, 0, 0], [0, 1, 0, 1, 0], [0, 0, 1, 0, 0], [0, 0, 0, 0, 1.0]])
TOTAL = PHI.sum(axis=1)
BUDGET = 0.15


def parts(W=PHI, **fields):
    return po.results.Explanation(
        attributions=W, method="mine", units="output", **fields
    )


def objective(kind="free"):
    problem = po.GradientMatching(parts()) + ROBUST
    return problem + 0.1 * po.Sparsity() if kind == "sparse" else problem


@cache
def best(kind="free"):
    sums = [po.losses.Completeness(TOTAL)] if kind == "complete" else []
    return po.solve(objective(kind), subject_to=sums, tolerance=1e-10)


@cache
def least(kind, groups):
    """The least v_d − v_e and v_d of all V that are almost as good, by Clarabel."""
    A = SUMS if groups else np.eye(D)
    V, form = cp.Variable((N, D)), cp.Parameter((N, D))
    level = best(kind).objective * (1 + BUDGET / N)
    limits = [objective(kind).expression(V) <= level]
    if kind == "complete":
        limits.append(cp.sum(V, axis=1) == TOTAL)
    question = cp.Problem(cp.Minimize(cp.sum(cp.multiply(form, V))), limits)

    def of(n, ell):
        if not ell.any():
            return 0.0
        form.value = np.zeros((N, D))
        form.value[n] = ell
        return float(question.solve(solver="CLARABEL"))

    pairs = [[[of(n, d - e) for e in A] for d in A] for n in range(N)]
    ends = [[(of(n, d), -of(n, -d)) for d in A] for n in range(N)]
    return np.array(pairs), np.array(ends)


def asked(kind="free", groups=False, towards="higher", **how):
    how = {"k": D, "budget": BUDGET, "towards": towards, **how}
    return best(kind).reasons(groups=GROUPS if groups else None, **how)


CASES = [
    (kind, groups, towards)
    for kind in ("free", "complete", "sparse")
    for groups in (False, True)
    for towards in ("higher", "lower")
]


@pytest.mark.filterwarnings("ignore:Solution may be inaccurate")
@pytest.mark.parametrize(("kind", "groups", "towards"), CASES)
def test_ranks_are_those_of_all_near_optimal_explanations(kind, groups, towards):
    reasons = asked(kind, groups, towards)
    pairs, ends = least(kind, groups)
    above, sure = pairs > 1e-7, ends[..., 0] > 1e-7  # d above e; d above zero
    if towards == "lower":
        above, sure = above.transpose(0, 2, 1), ends[..., 1] < -1e-7
    K = above.shape[1]
    names = ["x0", "pair", "x2", "x4"] if groups else [f"x{d}" for d in range(D)]
    d = np.array([names.index(name) for name in reasons.features])
    first = 1 + above.sum(axis=1)[reasons.rows, d]
    last = K - above.sum(axis=2)[reasons.rows, d]
    last = np.where(sure[reasons.rows, d], last, K + 1)
    if kind == "sparse":  # the parabola below the objective is wider
        assert (reasons.best_ranks <= first).all()
        assert (reasons.worst_ranks >= last).all()
    else:
        np.testing.assert_array_equal(reasons.best_ranks, first)
        np.testing.assert_array_equal(reasons.worst_ranks, last)
    assert reasons.certain.any()
    assert not reasons.certain.all()


@pytest.mark.parametrize(("kind", "groups", "towards"), CASES)
def test_no_certain_rank_flips_in_random_explanations(kind, groups, towards):
    reasons, W = asked(kind, groups, towards), best(kind).attributions
    rng, beta = np.random.default_rng(1), best(kind).objective * BUDGET / N
    A = SUMS if groups else np.eye(D)
    names = ["x0", "pair", "x2", "x4"] if groups else [f"x{d}" for d in range(D)]
    value = objective(kind).value
    for _ in range(100):
        E = rng.normal(size=(N, D)) * (rng.random((N, 1)) < 0.4)
        if kind == "complete":
            E -= E.mean(axis=1, keepdims=True)
        step = 1.0 if E.any() else 0.0
        while value(W + step * E) > value(W) + beta:
            step *= 0.9
        V = (W + step * E) @ A.T * (1.0 if towards == "higher" else -1.0)
        order = np.argsort(-V, axis=1)
        for m, rank, name in zip(
            reasons.rows[reasons.certain],
            reasons.ranks[reasons.certain],
            np.array(reasons.features)[reasons.certain],
            strict=True,
        ):
            assert names[order[m, rank - 1]] == name
            assert V[m, order[m, rank - 1]] > 0.0


@pytest.mark.parametrize("kind", ["free", "complete"])
def test_half_widths_of_sums_are_those_of_clarabel(kind):
    certain = best(kind).certain(BUDGET, groups=GROUPS)
    assert certain.features == ("x0", "pair", "x2", "x4")
    _, ends = least(kind, True)
    W = best(kind).attributions @ SUMS.T
    reach = certain.half_widths
    np.testing.assert_allclose(ends, np.stack([W - reach, W + reach], 2), atol=2e-6)
    alone = best(kind).certain(BUDGET)
    np.testing.assert_allclose(reach[:, 0], alone.half_widths[:, 0], rtol=1e-12)
    # of all features together: as wide as constants are, or what rows add up to
    whole = best(kind).certain(BUDGET, groups={"all": [f"x{d}" for d in range(D)]})
    if kind == "complete":
        np.testing.assert_allclose(whole.half_widths, 0.0, atol=1e-6)
    else:
        same = np.sqrt(D) * alone.half_widths[:, :1]  # features are alike to H
        np.testing.assert_allclose(whole.half_widths, same, rtol=1e-9)


def test_what_is_far_from_the_optimum_is_farther_in_sums():
    near = NearOptimal.around(parts(PHI).certified(objective()), best().program)
    sums = near.of_sums(SUMS)
    ones = np.ones((N, len(SUMS)))
    assert sums.distance == pytest.approx(np.sqrt(2.0) * near.distance, rel=1e-12)
    assert sums.reach(0.0, ones, 1.0).max() <= 2.0 * np.sqrt(near.excess) + 1e-12


def test_the_error_of_a_sum_is_that_of_its_blocks():
    noise = 0.3 * np.random.default_rng(7).normal(size=(8, N, D))
    target = Estimate.of_blocks(PHI + noise - noise.mean(0), source="", n_draws=8)
    drawn = po.solve(po.GradientMatching(target) + ROBUST)
    drawn = dataclasses.replace(drawn, units="output")
    wider = drawn.certain(groups=GROUPS).half_widths
    wider = wider - best().certain(groups=GROUPS).half_widths
    moved = [
        po.solve(po.GradientMatching(block) + ROBUST).attributions @ SUMS.T
        for block in target.blocks
    ]
    errors = np.std(moved, axis=0, ddof=1) / np.sqrt(8)
    np.testing.assert_allclose(wider, 2.3646242515927844 * errors, rtol=1e-9)  # t_7
    reasons = drawn.reasons(groups=GROUPS)
    assert reasons.notes == ("errors of the target from 8 blocks are included",)
    assert reasons.certain.sum() < best().reasons(groups=GROUPS).certain.sum()
    assert reasons.chapters()[0].statements[0].kind == "estimated"
    # single standard errors add up at most
    known = dataclasses.replace(best(), standard_errors=np.full((N, D), 0.01))
    wider = known.certain(groups=GROUPS).half_widths
    wider = wider - best().certain(groups=GROUPS).half_widths
    expected = np.array([1.0, 2.0, 1.0, 1.0]) * 1.959963984540054e-2
    np.testing.assert_allclose(wider, np.tile(expected, (N, 1)), rtol=1e-6)


def test_ties_are_certain_of_nobody_and_zeros_are_no_reasons():
    W = np.array([[2.0, 2.0, 1.0, 0.0], [3.0, 3.0, -1.0, 0.0], [-1.0, -2.0, 0.0, 0.0]])
    found = po.solve(po.GradientMatching(parts(W)) + 1e-4 * po.Sparsity())
    reasons = found.reasons(k=3, budget=0.01)
    table = reasons.to_frame()
    assert table["row"].tolist() == [0, 0, 0, 1, 1]
    assert table["rank"].tolist() == [1, 2, 3, 1, 2]
    assert table["certain"].tolist() == [False, False, True, False, False]
    assert "x0: +2 output, direction certain, place 1st to 2nd" in reasons.words
    assert reasons.shares == (0.0, 0.0, 1.0)
    text = "Row 2: reasons for a higher output\n  No contribution makes the output "
    assert reasons.sheet(2) == text + "higher."
    assert reasons.sheet(1).endswith("No other contribution goes that way.")
    assert "No other" not in reasons.sheet(0)
    lower = found.reasons(k=3, towards="lower", budget=0.01)
    assert lower.features == ("x2", "x1", "x0")
    assert lower.certain.all()
    none = found.reasons(rows=[2])
    assert "no row has a reason" in str(none)
    assert none.to_frame().empty


def test_orders_of_rows_and_columns_do_not_matter():
    rng = np.random.default_rng(2)
    table = pd.DataFrame(PHI, index=list("abcd")).add_prefix("c")
    S = po.graphs.chain_graph(N).similarities.toarray()

    def told(rows, columns):
        robust = po.PairwiseRobustness(
            po.graphs.graph_from_matrix(S[np.ix_(rows, rows)])
        )
        found = po.solve(po.GradientMatching(table.iloc[rows, columns]) + 0.15 * robust)
        found = dataclasses.replace(found, units="output")
        frame = found.reasons(groups={"pair": ["c1", "c3"]}, budget=BUDGET).to_frame()
        frame = frame.sort_values(["row", "rank"], ignore_index=True)
        return frame.round({"contribution": 9})

    one = told(np.arange(N), np.arange(D))
    assert set(one["row"]) == set("abc")
    for _ in range(3):
        pd.testing.assert_frame_equal(one, told(rng.permutation(N), rng.permutation(D)))


def test_sums_of_words_are_over_those_that_are_there():
    present = np.array([[1, 1, 0, 1], [1, 0, 1, 1], [0, 1, 1, 0], [1, 1, 1, 1]]) > 0
    phi = RNG.normal(size=(4, 4)) * present
    robust = 0.3 * po.losses.SharedRobustness(po.graphs.chain_graph(4), present)
    problem = po.GradientMatching(phi) + robust
    found = dataclasses.replace(po.solve(problem), units="output")
    certain, groups = found.certain(0.5, groups={"g": ["x1", "x2"]}), {"one": ["x3"]}
    V, level = cp.Variable((4, 4)), found.objective * (1 + 0.5 / 4)
    limits = [problem.expression(V) <= level, cp.multiply(V, ~present) == 0]
    for n in range(4):
        most = cp.Problem(cp.Maximize(V[n, 1] + V[n, 2]), limits)
        reach = most.solve(solver="CLARABEL") - found.attributions[n, 1:3].sum()
        assert certain.half_widths[n, 1] == pytest.approx(reach, rel=1e-4)
    alone, single = found.certain(), found.certain(groups=groups)
    np.testing.assert_allclose(single.half_widths, alone.half_widths, rtol=1e-9)
    assert (single.count, certain.count) == (present.sum(), present.sum() - 2)
    reasons = found.reasons(groups=groups)
    assert not {(0, "x2"), (1, "x1"), (2, "x0"), (2, "one")} & set(
        zip(reasons.rows.tolist(), reasons.features, strict=True)
    )


def test_rows_of_large_tables_are_proved_by_name(monkeypatch):
    known = asked(groups=True)
    monkeypatch.setattr("propopt.results.hessian.MOST_DIAGONALIZED", 2)
    found = po.solve(objective())
    none = found.reasons(groups=GROUPS, budget=BUDGET)
    assert not none.certain.any()
    assert none.notes[-1].endswith("name some, reasons(rows=...)")
    named = found.reasons(k=D, groups=GROUPS, budget=BUDGET, rows=[2, 0])
    for m, n in enumerate([2, 0]):
        one, other = known.rows == n, named.rows == m
        for name in ("ranks", "best_ranks", "worst_ranks"):
            own = getattr(known, name)[one]
            np.testing.assert_array_equal(own, getattr(named, name)[other])
    ball = found.certain(BUDGET, groups=GROUPS).half_widths  # of a sum of two
    beta = BUDGET * found.objective / N
    np.testing.assert_allclose(ball, np.sqrt(2.0 * beta), rtol=1e-9)


def test_nothing_is_certain_without_a_proof(tmp_path):
    baseline = parts().reasons()
    assert not baseline.certain.any()
    assert baseline.notes[0].startswith("no rank is certain: objective: ")
    assert set(baseline.worst_ranks) == {D + 1}
    best().save(tmp_path / "best")
    loaded = po.results.Explanation.load(tmp_path / "best.npz")
    assert not loaded.reasons().certain.any()
    again = loaded.reasons(objective=objective())
    np.testing.assert_array_equal(again.certain, best().reasons().certain)
    # what is far from an optimum has reasons, none of them certain
    assert not parts(3.0 * PHI).reasons(objective=objective()).certain.any()
    # the shares of both sides stand on the card, also of what was loaded
    shares = {x: best().reasons(towards=x).shares for x in ("higher", "lower")}
    assert loaded.certain_reasons == shares
    assert loaded.card().settings == best().card().settings
    settings = best("complete").card().settings
    for side in ("higher", "lower"):
        first = best("complete").reasons(towards=side).shares[0]
        told = settings[f"certain reasons for a {side} output"]
        assert told.startswith(f"1st in {100 * first:.0f} %, 2nd in ")
        assert (first == 1.0) == (side == "higher")


SLOPES = po.results.Explanation(attributions=PHI, method="mine")
REFUSED = {
    "reasons: these are slopes.*kind='contributions'": lambda: SLOPES.reasons(),
    "reasons: these are slopes.* scales": lambda: SLOPES.scaled([1.0] * D).reasons(),
    "groups: 'a': no feature 'z'": lambda: best().reasons(groups={"a": ["z"]}),
    "row: there is no row 7": lambda: best().reasons(rows=[7]),
    "row: there is no row 'p' am": lambda: best().reasons().sheet("p"),
    "k: expected": lambda: best().reasons(0),
    "towards: expected": lambda: best().reasons(towards="up"),
    "budget: expected": lambda: best().reasons(budget=-1.0),
    "W with 2 features": lambda: best().reasons(
        objective=1.0 * po.GradientMatching(PHI[:, :2])
    ),
}


@pytest.mark.parametrize("message", REFUSED)
def test_what_is_no_reason_is_refused(message):
    with pytest.raises(InvalidInput, match=message.removesuffix(".* scales")):
        REFUSED[message]()


@pytest.fixture(scope="module")
def customers():
    """Numbers, one missing, a category, and trees on them; names that act."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        {"=balance": rng.integers(9000, 90000, 200), "\u05d2\u05d9\u05dc": 1.0}
    )
    X["\u05d2\u05d9\u05dc"] = rng.normal(size=200)
    X["plan"] = pd.Categorical(rng.choice(["long", "short"], 200))
    X["c"], X["d"] = rng.normal(size=200), rng.normal(size=200)
    y = (X["=balance"] > 5e4) ^ (X["plan"] == "short") ^ (X["c"] + X["d"] > 0.0)
    X.loc[X.index[::7], "c"] = np.nan
    model = HistGradientBoostingClassifier(
        max_iter=15, categorical_features="from_dtype"
    )
    model.fit(X, y.to_numpy(int))
    rows = X.iloc[:21].set_axis([f"r{n}" for n in range(21)])
    settings = {"data": X, "units": "output", "outcome": "churn", "same_pattern": True}
    return po.explain(model, rows, robustness=0.02, **settings), rows


def test_words_have_name_value_number_and_unit(customers, tmp_path):
    found, rows = customers
    reasons = found.reasons(k=5)
    table = reasons.to_frame()
    W = found.to_frame()
    assert len(table) == (W > 0.0).to_numpy().sum()
    for row, rank, name, value, w, unit, certain, said in table.itertuples(index=False):
        cell = rows.loc[row, name]
        if isinstance(cell, str) or pd.isna(cell):
            assert value == (cell if isinstance(cell, str) else "missing")
        else:
            assert float(value) == pytest.approx(cell, rel=1e-3)
        assert W.loc[row, name] == w
        assert (W.loc[row] > w).sum() == rank - 1
        assert said.startswith(f"{name} = {value}: {w:+.3g} log-odds, ")
        assert unit == "log-odds"
        assert said.endswith(", certain") == certain
        assert f"  {rank}. {said}" in reasons.sheet(row)
    assert {"missing", "long", "short"} < set(table["value"])
    assert table["certain"].any()
    assert (
        table.loc[table["feature"] == "=balance", "value"].str.fullmatch("\\d+").all()
    )
    assert reasons.notes == ("the target is exact",)
    by_rank = table.groupby("rank")["certain"].mean()
    np.testing.assert_allclose(reasons.shares, by_rank)
    reasons.to_csv(tmp_path / "reasons.csv")
    text = (tmp_path / "reasons.csv").read_text(encoding="utf-8")
    assert ",'=balance," in text
    assert ",=balance" not in text
    assert "\u05d2\u05d9\u05dc = " in text
    assert "log-odds of churn = 1" in reasons.sheet("r0").splitlines()[0]
    assert "log-odds of churn = 1" in str(reasons)


def test_a_group_is_told_by_the_features_that_contribute_most(customers):
    found, rows = customers
    names = list(rows)
    reasons = found.reasons(groups={"rest": names[1:], "money": names[:1]}, k=2)
    W, sums = found.to_frame(), found.grouped({"rest": names[1:]}).to_frame()["rest"]
    table = reasons.to_frame()
    assert set(table["feature"]) == {"rest", "money"}
    for row, _, name, value, w, *_, said in table.itertuples(index=False):
        if name == "money":
            assert value == f"=balance = {rows.loc[row, '=balance']}"
            continue
        assert w == pytest.approx(sums[row], rel=1e-12)
        least = W.loc[row, names[1:]].abs().idxmin()
        left = [x for x in names[1:] if x != least]
        assert [x.split(" = ")[0] for x in value.split(", ")] == [*left, "1 more"]
        assert said.startswith(f"rest ({value}): {w:+.3g} log-odds, ")


def test_ordinals():
    numbers = [1, 2, 3, 4, 11, 12, 13, 21, 22, 103, 111]
    told = "1st 2nd 3rd 4th 11th 12th 13th 21st 22nd 103rd 111th"
    assert " ".join(map(ordinal, numbers)) == told
