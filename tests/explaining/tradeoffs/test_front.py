"""The front, distances to it in the same units, its knee, and shares of losses."""

import dataclasses
import math

import golden_chains
import numpy as np
import pandas as pd
import pytest
from crafted_archives import header_of, members_of, with_header, write_signed
from golden_chains import KEPT, ROUGHNESS_REMOVED, SMOOTHNESS_REMOVED, G
from hypothesis import example, given
from hypothesis import strategies as st
from sweeps import WEIGHTS, table_of

import propopt as po
from propopt.base.errors import InvalidInput
from propopt.explaining.explainers import Gradient
from propopt.functions import Power


ROBUST = "pairwise_robustness"
FEW = {ROBUST: [0.1, 1.0]}
NUMBERS = st.floats(0, 1e3).map(lambda value: round(value, 0))
ROWS = st.integers(1, 3).flatmap(
    lambda k: st.lists(st.tuples(*k * [NUMBERS]), min_size=1, max_size=12)
)


def beaten(row, rows):
    return any(
        all(a <= b for a, b in zip(other, row, strict=True))
        and any(a < b for a, b in zip(other, row, strict=True))
        for other in rows
    )


@given(ROWS)
@example([(1, 2), (1, 2), (1, 3)])
def test_front_by_brute_force(rows):
    curve = table_of(rows)
    expected = [not beaten(row, rows) for row in rows]
    assert curve.on_front.tolist() == expected
    assert curve.to_frame()["on_front"].tolist() == expected
    front_losses = [list(e.losses.values()) for e in curve.front().explanations]
    assert front_losses == [list(row) for row in rows if not beaten(row, rows)]
    assert curve.front().on_front.all()


def test_distances_by_brute_force(objective, rng):
    shape = objective.losses[0].G.shape
    baselines = [
        po.results.Explanation(
            attributions=rng.normal(size=shape), method="noise", parameters={"seed": n}
        )
        for n in range(4)
    ]
    curve = po.sweep(objective, {ROBUST: WEIGHTS}, baselines)
    distances = curve.distances()
    for n, baseline in enumerate(baselines):
        excesses = {}
        for weight, best in zip(WEIGHTS, curve.optimized, strict=True):
            value = objective.with_weights({ROBUST: weight}).value(baseline)
            excesses[weight] = value / best.objective - 1.0
        row = distances.iloc[n]
        assert row["excess"] == pytest.approx(min(excesses.values()))
        assert row[f"weight.{ROBUST}"] == min(excesses, key=excesses.get)
        assert row["parameter.seed"] == n
        assert row["excess"] >= 0.0
    assert distances["parameter.seed"].dtype == "Int64"
    assert po.sweep(objective, {}).distances().empty
    # where the optimum costs nothing
    G = objective.losses[0].G
    curve = po.sweep(po.GradientMatching(G), {}, {"same": G, "other": G + 1})
    table = curve.distances()
    assert table["excess"].tolist() == [0.0, np.inf]
    assert table["distance"].tolist() == [0.0, pytest.approx(G.size)]  # of ones


def test_a_baseline_near_the_end_is_held_against_what_rows_that_add_up_cost(rng):
    G, total = rng.normal(size=(6, 3)), rng.normal(size=6)
    loss = po.GradientMatching(G)
    rough = po.PairwiseRobustness(po.graphs.knn_graph(rng.normal(size=(6, 2)), 2))
    end = G + ((total - G.sum(axis=1)) / 3)[:, None]  # the nearest rows that add up
    nearby = end + np.array([0.03, -0.03, 0.0])
    sums = [po.losses.Completeness(total)]
    curve = po.sweep(loss + rough, FEW, {"near": nearby}, subject_to=sums)
    (row,) = curve.distances().to_dict("records")
    expected = loss.value(nearby) / loss.value(end) - 1.0
    assert row["excess"] == pytest.approx(expected, rel=1e-9)
    assert row[f"weight.{ROBUST}"] == 0.0


def test_an_optimum_of_nothing_but_rounding_is_beaten_by_none(rng):
    """Under a weight of zero the optimum is G to rounding, not to the last digit."""
    G = rng.normal(size=(20, 3))
    objective = po.GradientMatching(G) + po.PairwiseRobustness(
        po.graphs.chain_graph(20)
    )
    nearby = G * (1.0 + 1e-12)  # as exact as solvers are
    best = po.results.Explanation(attributions=nearby, method="optimized")
    best = best.certified(objective.with_weights({ROBUST: 0.0}))
    curve = po.sweep(objective, {ROBUST: [1.0]}, {"gradient": G})
    alone = dataclasses.replace(curve, optimized=(best,))
    assert best.objective > 0.0
    assert alone.distances()["excess"].tolist() == [0.0]
    assert alone.distances()["distance"].tolist() == [0.0]


def test_the_target_itself_is_at_the_end_of_the_front(objective, rng):
    """In the limit of weight zero F(G)/F* is one, whatever the grid."""
    G = objective.losses[0].G
    single = G.astype(np.float32).astype(float)
    other = G + 1e-3 * rng.normal(size=G.shape)
    others = {"target": G, "single": single, "other": other}
    table = po.sweep(objective, FEW, others).distances().set_index("method")
    columns = ["excess", "distance", f"weight.{ROBUST}", "weight.gradient_matching"]
    assert table.loc["target", columns].tolist() == [0.0, 0.0, 0.0, 1.0]
    assert 0.0 <= table["excess"]["single"] < 1e-6
    assert table["excess"]["other"] > 0.01  # of the smallest weight of the grid
    # as finer and finer grids have it
    fine = po.sweep(objective, {ROBUST: [1e-5]}, others)
    assert 0.0 < fine.distances()["excess"][0] < 1e-4
    # a weight that never varies has no limit: no optimum tends to the target
    row = po.sweep(objective + 0.5 * po.Sparsity(), FEW, [G]).distances().iloc[0]
    assert row["excess"] > 0.01
    assert row[f"weight.{ROBUST}"] == 0.1


def test_a_baseline_beyond_a_bound_is_not_compared(objective, rng):
    """It may lie below optima, which keep the bound."""
    G = objective.losses[0].G
    limit = po.Sparsity() <= 0.3 * float(np.abs(G).sum())
    others = {"target": G, "short": 0.3 * G, "none": 0.0 * G}
    curve = po.sweep(objective, FEW, others, subject_to=[limit])
    table = curve.distances().set_index("method")
    assert table["excess"].isna().tolist() == [True, False, False]
    assert "all optima at most" in table["not_compared"]["target"]
    assert (table["excess"][["short", "none"]] >= 0.0).all()
    assert curve.compared.tolist() == [False, True, True]
    assert not curve.on_front[-3]
    # nor is what does not add up, whatever of the curve was read before
    others = {"whole": G, "half": G / 2, "noise": rng.normal(size=G.shape)}
    total = po.losses.Completeness(G.sum(axis=1))
    curve = po.sweep(objective, FEW, others, subject_to=[total])
    before, front = curve.distances(), curve.on_front
    assert before["excess"].isna().tolist() == [False, True, True]
    assert not front[-2:].any()
    for best in curve.optimized:
        _ = best.attributions
    after = curve.distances()
    assert after["not_compared"].equals(before["not_compared"])
    np.testing.assert_allclose(after["excess"], before["excess"], atol=1e-9)
    assert (curve.on_front == front).all()


def test_the_knee_lies_farthest_below_the_chord(rng):
    X, G = rng.normal(size=(2, 20, 2))
    objective = po.GradientMatching(G) + po.PairwiseRobustness(
        po.graphs.gaussian_graph(X)
    )
    curve = po.sweep(objective, {ROBUST: np.geomspace(1e-4, 1e3, 41)})
    chosen = curve.optimized.index(curve.knee())
    assert 0 < chosen < 40
    low = curve.values.min(axis=0)
    span = curve.values.max(axis=0) - low
    sums = ((curve.values - low) / span).sum(axis=1)
    assert sums[chosen] == sums.min()


POINTS = np.random.default_rng(0).normal(size=(12, 3))
CUBE = Power(3)
GRAPH = po.PairwiseRobustness(po.graphs.knn_graph(POINTS, 3))
SLOPES = Gradient().explain(CUBE, POINTS)


def contributions(units="output"):
    """Parts of a cube: its Shapley values against zero."""
    power = 3 if units == "output" else 2
    return po.results.Explanation(
        attributions=POINTS**power, method="shap", units=units
    )


def swept(target, *baselines):
    return po.sweep(po.GradientMatching(target) + GRAPH, FEW, baselines)


@pytest.mark.parametrize("target", [SLOPES, CUBE.estimate(POINTS)])
def test_contributions_are_not_compared_with_slopes(target, tmp_path):
    curve = swept(target, contributions(), contributions("gradient"))
    table = curve.distances()
    assert np.isnan(table["excess"][0])
    words = "it is parts of the output, and the target is slopes"
    assert table["not_compared"][0] == words
    assert table["excess"][1] > 0
    assert pd.isna(table["not_compared"][1])
    assert not curve.on_front[-2]
    curve.save(tmp_path / "curve.npz")
    same = po.TradeOffs.load(tmp_path / "curve.npz")
    pd.testing.assert_frame_equal(same.distances(), table)


def test_what_is_of_the_same_units_or_says_none_is_compared():
    scaled = SLOPES.scaled([1.0, 2.0, 3.0])
    table = swept(scaled, scaled, SLOPES).distances()
    assert np.isfinite(table["excess"][0])
    assert "the target is slopes times a scale" in table["not_compared"][1]
    table = swept(contributions(), contributions()).distances()
    assert np.isfinite(table["excess"][0])
    assert "not_compared" not in table
    curve = swept(SLOPES.attributions, contributions())
    assert curve.units is None
    assert np.isfinite(curve.distances()["excess"][0])
    assert curve.distances()["units"].tolist() == ["units unknown"]
    target = po.GradientMatching(contributions().attributions, units="output")
    others = {"shap": contributions(), "slopes": SLOPES, "plain": SLOPES.attributions}
    table = po.sweep(target + GRAPH, FEW, others).distances().set_index("method")
    assert table["excess"].isna().tolist() == [False, True, False]
    # what says nothing is taken to be in units of the target
    assert table["units"].tolist() == ["output", "gradient", "output"]
    words = "it is slopes, and the target is parts of the output"
    assert table["not_compared"]["slopes"] == words
    # targets say theirs
    assert po.GradientMatching(scaled).units == "scaled"
    with pytest.raises(InvalidInput, match="in units 'gradient', and not 'output'"):
        po.GradientMatching(SLOPES, units="output")
    with pytest.raises(InvalidInput, match="expected 'gradient', 'output' or 'scaled'"):
        po.GradientMatching(SLOPES.attributions, units="effects")


@pytest.fixture(scope="module")
def chains():
    return po.sweep(golden_chains.objective(), {ROBUST: [0.0, 0.5, 5.0]}, [0.5 * G])


def test_a_table_ends_with_shares_of_baselines_too(chains):
    table = chains.to_frame()
    names = ["faithfulness_kept", f"removed.{ROBUST}", "removed.smoothness"]
    assert list(table.columns)[-3:] == names
    golden = [KEPT, ROUGHNESS_REMOVED, SMOOTHNESS_REMOVED]
    np.testing.assert_allclose(table.loc[1, names].astype(float), golden, atol=1e-9)
    shares = chains.baselines[0].shares(golden_chains.objective())
    assert table["faithfulness_kept"].iloc[-1] == pytest.approx(
        shares.faithfulness_kept["gradient_matching"]
    )
    assert table[f"removed.{ROBUST}"].iloc[-1] == pytest.approx(0.75, rel=1e-12)
    # of the first point robustness has no weight, and is removed as far as it is
    assert (table["faithfulness_kept"].iloc[:3].diff().dropna() < 0.0).all()
    assert 0.0 < table[f"removed.{ROBUST}"].iloc[0] < 0.9
    both = po.GradientMatching(G) + po.losses.FunctionMatching(
        G, np.linspace(0.0, 1.0, 4)
    )
    table = po.sweep(both + po.Sparsity(), {"sparsity": [0.1]}).to_frame()
    assert {
        "faithfulness_kept.gradient_matching",
        "faithfulness_kept.function_matching",
    } <= set(table.columns)


ENDS = {"faithful": [], "roots": [], "at_target": {}, "far": {}, "sizes": {}}


def test_shares_are_saved_and_ends_that_mean_nothing_refused(chains, tmp_path):
    path = tmp_path / "curve.npz"
    chains.save(path)
    again = po.TradeOffs.load(path)
    assert again.ends == again.front().ends == chains.ends
    members, one = members_of(path), {"a": 1.0}
    alone = ({"faithful": ["x"]}, {"roots": ["x"]}, {"at_target": one}, {"far": one})
    both = {"faithful": ["a"], "at_target": one, "far": one}
    for extra in (*alone, both, {"faithful": "x"}, {"at_target": {"a": "1"}}):
        header = {**header_of(members), "ends": ENDS | extra}
        write_signed(path, with_header(members, header))
        with pytest.raises(InvalidInput, match="ends"):
            po.TradeOffs.load(path)


def test_without_ends_or_variation_there_are_no_shares(tmp_path):
    best = po.solve(golden_chains.objective())
    assert best.loss_shares["gradient_matching"] == pytest.approx(KEPT, abs=1e-9)
    assert po.results.Explanation(attributions=G, method="mine").loss_shares == {}
    alone = po.TradeOffs(optimized=(best,), baselines=(), losses=("smoothness",))
    assert not any(
        c.startswith(("faithfulness_kept", "removed")) for c in alone.to_frame()
    )
    # of a constant target cells are empty
    flat = po.GradientMatching(np.ones((4, 3)))
    problem = flat + po.PairwiseRobustness(po.graphs.chain_graph(4))
    trade_offs = po.sweep(problem, {ROBUST: [1.0]}, [G])
    table = trade_offs.to_frame()
    assert table["faithfulness_kept"].tolist() == [1.0, -math.inf]
    assert table[f"removed.{ROBUST}"].isna().all()
    trade_offs.save(tmp_path / "flat")
    assert str(po.TradeOffs.load(tmp_path / "flat.npz"))


def test_baselines_between_sampled_weights_are_compared_with_the_curve(rng):
    """Beside 5 weights no optimum beats them; many more weights show what is true."""
    G = rng.normal(size=(40, 4))
    robust = po.PairwiseRobustness(po.graphs.chain_graph(40))
    objective = po.GradientMatching(G) + robust
    few, many = np.logspace(-2, 2, 5), np.logspace(-3, 3, 3001)
    optimum = po.solve(po.GradientMatching(G) + 0.33 * robust).attributions
    noise = rng.normal(size=G.shape)
    others = {f"noise {s}": optimum + s * noise for s in (1e-4, 0.1, 0.2, 0.3, 0.5)}
    others = {"optimum": optimum, "target": G, "scaled": 0.98 * optimum, **others}
    curve = po.sweep(objective, {robust.name: few}, others)
    is_on_front = {  # each alone, as the optimum among them beats the others
        name: po.sweep(objective, {robust.name: few}, {name: W}).on_front[-1]
        for name, W in others.items()
    }
    assert po.sweep(objective, {robust.name: many[::50]}, {"mine": optimum}).on_front[
        -1
    ]
    dense = po.sweep(objective, {robust.name: many}, others)
    rows = [list(best.losses.values()) for best in dense.optimized]
    truth = {
        one.method: not beaten([x * (1 - 1e-9) for x in one.losses.values()], rows)
        for one in curve.baselines
    }
    excess = dict(zip(others, curve.distances()["excess"], strict=True))
    sampled = [list(best.losses.values()) for best in curve.optimized]
    gap = curve.gap_between  # F* is at least 1 − gap of what optima have
    for one in curve.baselines:
        if truth[one.method]:
            assert is_on_front[one.method]
        if excess[one.method] > gap / (1.0 - gap):  # above the optimum at every weight
            assert not is_on_front[one.method]
    assert is_on_front["optimum"]
    assert is_on_front["target"]
    unseen = [
        one.method
        for one in curve.baselines
        if not is_on_front[one.method]
        and not beaten(list(one.losses.values()), sampled)
    ]
    assert unseen  # points alone would call these the best possible
    assert max(excess[name] for name in unseen) > 0.5
    front_losses = [one.method for one in curve.front().baselines]
    assert front_losses[:2] == ["optimum", "target"]
