"""Reasons: the largest contributions of the model, and which are clear."""

import dataclasses

import numpy as np
import pandas as pd
import pytest
from refusals import refusals
from scipy.special import expit
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LinearRegression

import propopt as po
from propopt.base.document import Table, share_text
from propopt.base.errors import InvalidInput
from propopt.losses.faithfulness import Estimate


RNG = np.random.default_rng(5)
N, D = 9, 6
PHI = np.array([3.0, 1.2, -2.0, 0.6, -0.5, 0.01]) + 0.4 * RNG.normal(size=(N, D))
PHI[3] = [-2.5, -0.7, -1.2, -0.2, -0.4, -0.1]  # nothing towards a higher output
W = 0.6 * PHI + 0.4 * PHI[RNG.permutation(N)]
W += (PHI.sum(axis=1) - W.sum(axis=1))[:, None] / D
GROUPS = {"pair": ["x1", "x3"]}
SUMS = np.eye(D)[[0, 1, 2, 4, 5]] + np.eye(D)[[3] * 5] * [[0], [1], [0], [0], [0]]


def parts(W=W, contributions=PHI, **fields):
    return po.results.Explanation(
        attributions=W,
        method="mine",
        units="output",
        contributions=contributions,
        **fields,
    )


CASES = [(groups, towards) for groups in (0, 1) for towards in ("higher", "lower")]


@pytest.mark.parametrize(("groups", "towards"), CASES)
@pytest.mark.parametrize("least", [0.0, 0.02, 0.3])
def test_the_largest_contributions_of_the_model_are_there(groups, towards, least):
    reasons = parts().reasons(
        towards=towards, groups=GROUPS if groups else None, least_share=least
    )
    A = SUMS if groups else np.eye(D)
    names = ["x0", "pair", "x2", "x4", "x5"] if groups else [f"x{d}" for d in range(D)]
    side = 1.0 if towards == "higher" else -1.0
    phi, w, expected = side * PHI @ A.T, W @ A.T, []
    for n in range(N):
        total = sum(x for x in phi[n] if x > 0.0)
        large = [d for d in range(len(A)) if phi[n, d] > max(0.0, least * total)]
        order = sorted(large, key=lambda d, n=n: -phi[n, d])
        expected += [
            (n, names[d], side * phi[n, d], w[n, d]) for d in order[: reasons.k]
        ]
        assert reasons.more[n] == max(len(large) - 4, 0)
    table = reasons.to_frame()
    result = table[["row", "feature", "contribution", "optimized"]]
    pd.testing.assert_frame_equal(
        result,
        pd.DataFrame(expected, columns=result.columns).astype({"row": object}),
        check_dtype=False,
    )


@pytest.mark.parametrize(("groups", "towards"), CASES)
def test_a_reason_is_clear_if_its_direction_and_rank_are(groups, towards):
    best, delta = parts(), 0.2
    reasons = best.reasons(
        k=D, towards=towards, groups=GROUPS if groups else None, small_change=delta
    )
    clear = best.clear(delta, order="value", groups=GROUPS if groups else None)
    names = ["x0", "pair", "x2", "x4", "x5"] if groups else [f"x{d}" for d in range(D)]
    K = len(names)
    d = [names.index(name) for name in reasons.features]
    first, last = clear.best_ranks[reasons.rows, d], clear.worst_ranks[reasons.rows, d]
    if towards == "lower":
        first, last = K + 1 - last, K + 1 - first
    sign = clear.signs[reasons.rows, d] == (1 if towards == "higher" else -1)
    np.testing.assert_array_equal(reasons.clear, sign & (first == last))
    assert reasons.clear.any()
    assert not reasons.clear.all()


def test_a_column_that_speaks_against_the_decision_is_no_reason_for_it():
    # neighbours give a column that lowers the output +.29, as smoothing may
    phi = np.array([[1.0, -0.4, 0.0], [1.2, 0.9, 0.0], [0.9, 1.0, 0.0]])
    w = np.array([[0.3, 0.29, 0.01], [1.1, 0.9, 0.1], [0.9, 0.9, 0.1]])
    reasons = parts(w, phi).reasons(least_share=0.0)
    assert reasons.features == ("x0", "x0", "x1", "x1", "x0")
    lower = parts(w, phi).reasons(towards="lower")
    assert (lower.features, lower.clear.tolist()) == (("x1",), [False])
    # without contributions of the model, the attributions have to do
    given = parts(w, None).reasons(least_share=0.0)
    assert given.features[:3] == ("x0", "x1", "x2")


def test_ties_are_clear_of_nobody_and_zeros_are_no_reasons():
    w = np.array([[2.0, 2.0, 1.0, 0.0], [3.0, 3.0, -1.0, 0.0], [-1.0, -2.0, 0.0, 0.0]])
    result = parts(w, None)
    reasons = result.reasons(k=3, small_change=0.1)
    table = reasons.to_frame()
    assert table["row"].tolist() == [0, 0, 0, 1, 1]
    assert table["rank"].tolist() == [1, 2, 3, 1, 2]
    assert table["clear"].tolist() == [False, False, True, False, False]
    assert reasons.clear_rows == (0.0, 0.0, 1.0)
    lower = result.reasons(k=3, towards="lower", small_change=0.1)
    assert lower.features == ("x2", "x1", "x0")
    assert lower.clear.all()
    assert result.reasons(rows=[2]).to_frame().empty


def test_rows_are_the_requested_ones():
    every = parts(row_size=3.0).reasons(k=D)
    named = parts(row_size=3.0).reasons(k=D, rows=[4, 3, 0])
    alone = parts(W[[4]], PHI[[4]], row_size=3.0).reasons(k=D)
    assert named.names == (4, 3, 0)
    for n, one in ((4, named), (0, named), (4, alone)):
        m = 0 if one is alone else named.names.index(n)
        for name in ("features", "contributions", "best_ranks", "worst_ranks"):
            ours = np.array(getattr(every, name))[every.rows == n]
            np.testing.assert_array_equal(
                ours, np.array(getattr(one, name))[one.rows == m]
            )


def test_sampled_values_are_noted_and_fewer_reasons_are_clear():
    noise = 0.5 * np.random.default_rng(7).normal(size=(8, N, D))
    target = Estimate.of_blocks(PHI + noise - noise.mean(0), source="", n_draws=8)
    drawn = dataclasses.replace(
        po.solve(1.0 * po.GradientMatching(target)), units="output", contributions=PHI
    )
    reasons = drawn.reasons()
    assert reasons.sampling_error == drawn.target.share > 0.0
    assert reasons.clear.sum() < parts(PHI).reasons().clear.sum()
    fact = reasons.document().facts["sampling error"]
    assert (fact.value, fact.shown_basis) == (drawn.target.share, "estimated")
    assert "sampling error" in reasons.sheet(0)  # also in a letter
    assert np.isnan(parts().reasons().sampling_error)


@pytest.mark.parametrize("towards", ["higher", "lower"])
def test_clear_is_yes_no_or_the_direction_alone(towards):
    reasons = parts().reasons(k=D, towards=towards, small_change=0.2)
    table = reasons.to_frame()
    expected = {n: [] for n in range(N)}
    for x in table.itertuples():
        clear = "yes" if x.clear else "no" if x.worst_rank > D else "direction"
        expected[x.row].append(clear)
    assert {x for clear in expected.values() for x in clear} == {
        "yes",
        "no",
        "direction",
    }
    for n, clear in expected.items():
        one = parts().reasons(k=D, towards=towards, small_change=0.2, rows=[n])
        (shown,) = [x for x in one.document().blocks if isinstance(x, Table)]
        assert shown.frame["clear"].tolist() == clear
        assert shown.rest == ("" if clear else "none")


def test_ranks_have_their_rows_and_most_frequent_features():
    reasons = parts().reasons(k=3)
    document = reasons.document()
    table = reasons.to_frame()
    (shown,) = [x for x in document.blocks if isinstance(x, Table)]
    for line in shown.frame.itertuples(index=False):
        here = table[table["rank"] == int(line.rank)]
        assert int(line.rows) == len(here)
        counts = here["feature"].value_counts()
        name, share = line[3].split(", ")[0].split(" ")
        assert counts[name] == counts.max()
        assert share == share_text(counts.max() / len(here))
    assert document.facts["small change"].value == reasons.small_change
    row = parts().reasons(k=1, rows=[0]).document().blocks[0]
    assert row.rest == f"{(PHI[0] >= 0.01 * PHI[0].clip(0).sum()).sum() - 1} more"


SLOPES = po.results.Explanation(attributions=PHI, method="mine")


@pytest.mark.parametrize(("line", "message"), refusals(__file__, "reasons"))
def test_what_is_no_reason_is_refused(line, message):
    with pytest.raises(InvalidInput, match=message):
        eval(line)


@pytest.mark.parametrize("groups", [None, GROUPS])
def test_sums_of_features_that_belong_together_stand_beside_reasons(groups, tmp_path):
    best = parts(together=(("x0", "x3"), ("x2", "x4")))
    reasons = best.reasons(groups=groups)
    first = "x0 and x3" if groups is None else "x0 and pair"
    members = {first: [0, 3] if groups is None else [0, 1, 3], "x2 and x4": [2, 4]}
    for line in reasons.to_frame().itertuples():
        named = [x for x in members if line.feature in x.split(" and ")]
        assert [line.partners] == (named or [""])
        total = PHI[line.row, members[named[0]]].sum() if named else np.nan
        assert line.together == pytest.approx(total, nan_ok=True)
    n = int(reasons.rows[0])
    total = PHI[n, members[first]].sum()
    text = " ".join(reasons.sheet(n).split())
    assert f"together {total:.3g} ({first})" in text
    reasons.save(tmp_path / "reasons.npz")
    again = po.results.Reasons.load(tmp_path / "reasons.npz")
    pd.testing.assert_frame_equal(again.to_frame(), reasons.to_frame())
    assert not parts().reasons().to_frame()["together"].notna().any()


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
    settings = {
        "data": X,
        "kind": "contributions",
        "offset": None,
        "outcome": "churn",
        "graph": po.graphs.Nearest(same_pattern=True),
    }
    result = po.explain(model, rows, robustness=0.02, **settings)
    return result, rows, model


def test_reasons_have_value_number_and_unit(customers, tmp_path):
    result, rows, model = customers
    reasons = result.reasons(k=5, least_share=0.0)
    table = reasons.to_frame()
    PHI = pd.DataFrame(result.contributions, rows.index, list(rows))
    W = result.to_frame()
    assert len(table) == (PHI > 1e-12).to_numpy().sum()
    for x in table.itertuples(index=False):
        cell = rows.loc[x.row, x.feature]
        if isinstance(cell, str) or pd.isna(cell):
            assert x.value == (cell if isinstance(cell, str) else "missing")
        else:
            assert float(x.value) == pytest.approx(cell, rel=1e-3)
        phi = PHI.loc[x.row, x.feature]
        assert (x.contribution, x.optimized) == (phi, W.loc[x.row, x.feature])
        assert (PHI.loc[x.row] > phi).sum() == x.rank - 1
        assert x.unit == "log-odds"
    assert {"missing", "long", "short"} < set(table["value"])
    assert table["clear"].any()
    assert (
        table.loc[table["feature"] == "=balance", "value"].str.fullmatch("\\d+").all()
    )
    assert (table["sampling_error"] == 0.0).all()
    by_rank = table.groupby("rank")["clear"].mean()
    np.testing.assert_allclose(reasons.clear_rows, by_rank)
    reasons.to_csv(tmp_path / "reasons.csv")
    text = (tmp_path / "reasons.csv").read_text(encoding="utf-8")
    assert ",'=balance," in text
    assert ",=balance" not in text
    assert "sampling error" not in reasons.sheet(rows.index[0])
    facts = result[[0]].reasons().document().facts
    chance = model.predict_proba(rows[:1])[0, 1]
    assert expit(facts["prediction"].value) == pytest.approx(chance)
    assert facts["prediction"].note == f"probability {share_text(chance)}"
    assert facts["base"].value == result.base_value[0]
    assert facts["stable"].text == "not tested by refits"


def test_contributions_to_a_probability_are_shown_in_percentage_points(customers):
    result = customers[0][[0]]
    shown = {}
    for kind in ("probability", "margin"):
        quantity = dataclasses.replace(result.quantity, kind=kind)
        one = dataclasses.replace(result, quantity=quantity).reasons()
        document = one.document()
        shown[kind] = document.blocks[0].frame["contribution"]
        np.testing.assert_array_equal(one.contributions, result.reasons().contributions)
        assert ("percentage points" in document.subtitle) == (kind == "probability")
        assert "for churn" in document.subtitle
        unit = document.facts["prediction"].unit
        assert unit == ("%" if kind == "probability" else "")
    np.testing.assert_allclose(shown["probability"], 100.0 * shown["margin"])


def test_a_group_lists_the_features_that_contribute_most(customers):
    result, rows, _ = customers
    names = list(rows)
    reasons = result.reasons(groups={"rest": names[1:], "money": names[:1]}, k=2)
    PHI = pd.DataFrame(result.contributions, rows.index, names)
    sums = result.grouped({"rest": names[1:]}).to_frame()["rest"]
    table = reasons.to_frame()
    assert set(table["feature"]) == {"rest", "money"}
    for row, _, name, value, phi, w, *_ in table.itertuples(index=False):
        if name == "money":
            assert value == f"=balance = {rows.loc[row, '=balance']}"
            continue
        assert phi == pytest.approx(PHI.loc[row, names[1:]].sum(), rel=1e-12)
        assert w == pytest.approx(sums[row], rel=1e-12)
        least = PHI.loc[row, names[1:]].abs().idxmin()
        left = [x for x in names[1:] if x != least]
        assert [x.split(" = ")[0] for x in value.split(", ")] == [*left, "1 more"]


def test_reasons_of_a_linear_model_have_the_direction_of_its_coefficients():
    rng = np.random.default_rng(1)
    X = pd.DataFrame(rng.normal(size=(300, 4)), columns=["income", "debt", "age", "no"])
    X["late"] = (rng.random(300) < 0.3).astype(float)
    y = X["debt"] - X["income"] + 2.0 * X["late"] + rng.normal(size=300) > 0.5
    model = LinearRegression().fit(X, y)
    model.coef_[3] = 0.0
    result = po.explain(
        model,
        X[:60],
        data=X[:100],
        kind="contributions",
        outcome="bad",
        offset=None,
        robustness=2.0,
    )
    effects = (X[:60] - X[:100].mean()) * model.coef_
    turned = (np.sign(result.to_frame()) != np.sign(effects))["late"].sum()
    assert turned > 0  # this much robustness turns signs, and reasons none
    for towards, side in (("higher", 1.0), ("lower", -1.0)):
        table = result.reasons(towards=towards).to_frame()
        assert "no" not in set(table["feature"])
        for row, name in table[["row", "feature"]].to_numpy():
            assert side * effects.loc[row, name] > 0.0
