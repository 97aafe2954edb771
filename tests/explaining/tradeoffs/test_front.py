"""The front, the distances to it, and its knee."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sweeps import WEIGHTS, explanation_of, table_of

import propopt as po
from propopt.base.errors import InvalidInput


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
def test_front_by_brute_force(rows):
    curve = table_of(rows)
    expected = [not beaten(row, rows) for row in rows]
    assert curve.on_front.tolist() == expected
    assert curve.to_frame()["on_front"].tolist() == expected
    kept = [list(e.losses.values()) for e in curve.front().explanations]
    assert kept == [list(row) for row in rows if not beaten(row, rows)]
    assert curve.front().on_front.all()


def test_equal_rows_are_both_on_the_front():
    assert table_of([(1, 2), (1, 2), (1, 3)]).on_front.tolist() == [True, True, False]


def test_every_optimum_is_on_the_front(objective, rng):
    rough = explanation_of(objective, 9 * rng.normal(size=(12, 3)))
    curve = po.sweep(objective, {"pairwise_robustness": WEIGHTS}, [rough])
    assert curve.on_front.tolist() == [True] * 5 + [False]
    front = curve.front()
    assert front.optimized == curve.optimized
    assert front.baselines == ()


def test_baselines_are_measured_on_the_same_losses(objective):
    baseline = explanation_of(objective)
    curve = po.sweep(objective, {}, (b for b in [baseline]))
    (measured,) = curve.baselines
    assert measured.losses == objective.breakdown(baseline.attributions)
    assert measured.objective is None
    assert measured.gap is None


def test_distances_by_brute_force(objective, rng):
    shape = objective.losses[0].G.shape
    baselines = [
        po.Explanation(
            attributions=rng.normal(size=shape), method="noise", parameters={"seed": n}
        )
        for n in range(4)
    ]
    curve = po.sweep(objective, {"pairwise_robustness": WEIGHTS}, baselines)
    distances = curve.distances()
    for n, baseline in enumerate(baselines):
        excesses = {
            weight: objective.with_weights({"pairwise_robustness": weight}).value(
                baseline.attributions
            )
            / best.objective
            - 1.0
            for weight, best in zip(WEIGHTS, curve.optimized, strict=True)
        }
        row = distances.iloc[n]
        nearest = min(excesses, key=excesses.get)
        assert row["excess"] == pytest.approx(excesses[nearest])
        assert row["weight.pairwise_robustness"] == nearest
        assert row["parameter.seed"] == n
        assert row["excess"] >= 0.0
    assert distances["parameter.seed"].dtype == "Int64"


def test_distances_where_the_optimum_costs_nothing(X):
    objective = po.GradientMatching(X)
    same = po.Explanation(attributions=X, method="same")
    other = po.Explanation(attributions=X + 1, method="other")
    curve = po.sweep(objective, {}, [same, other])
    table = curve.distances()
    assert table["excess"].tolist() == [0.0, np.inf]
    assert table["distance"].tolist() == [0.0, X.size]  # absolute: of ones


def test_an_optimum_of_nothing_but_rounding_is_beaten_by_none(rng):
    """Under a weight of zero the optimum is G to rounding, not to the last digit."""
    G = rng.normal(size=(20, 3))
    objective = po.GradientMatching(G) + po.PairwiseRobustness(po.chain_graph(20))
    near = G * (1.0 + 1e-12)  # as exact as solvers are
    best = po.Explanation(
        attributions=near,
        method="optimized",
        weights={"gradient_matching": 1.0, "pairwise_robustness": 0.0},
    ).certified(objective.with_weights({"pairwise_robustness": 0.0}))
    curve = po.sweep(objective, {"pairwise_robustness": [1.0]}, {"gradient": G})
    alone = dataclasses.replace(curve, optimized=(best,))
    assert best.objective > 0.0
    assert alone.distances()["excess"].tolist() == [0.0]
    assert alone.distances()["distance"].tolist() == [0.0]


def test_the_target_itself_is_at_the_end_of_the_front(objective, rng):
    """In the limit of weight zero F(G)/F* is one, whatever the grid."""
    G = objective.losses[0].G
    single = G.astype(np.float32).astype(float)
    others = {
        "target": G,
        "single": single,
        "other": G + 1e-3 * rng.normal(size=G.shape),
    }
    coarse = po.sweep(objective, {"pairwise_robustness": [0.1, 1.0]}, others)
    table = coarse.distances().set_index("method")
    assert table["excess"]["target"] == 0.0
    assert table["distance"]["target"] == 0.0
    assert table["weight.pairwise_robustness"]["target"] == 0.0
    assert table["weight.gradient_matching"]["target"] == 1.0
    assert 0.0 <= table["excess"]["single"] < 1e-6
    assert table["excess"]["other"] > 0.01  # of the smallest weight of the grid
    # as finer and finer grids have it
    fine = po.sweep(objective, {"pairwise_robustness": [1e-5]}, others)
    assert 0.0 < fine.distances()["excess"][0] < 1e-4


def test_a_weight_that_never_varies_has_no_limit(objective):
    """Then no optimum of the sweep tends to the target."""
    G = objective.losses[0].G
    curve = po.sweep(
        objective + 0.5 * po.Sparsity(), {"pairwise_robustness": [0.1, 1.0]}, [G]
    )
    row = curve.distances().iloc[0]
    assert row["excess"] > 0.01
    assert row["weight.pairwise_robustness"] == 0.1


def test_a_baseline_beyond_a_bound_is_not_compared(objective):
    """It may lie below optima, which keep the bound."""
    G = objective.losses[0].G
    limit = 0.3 * float(np.abs(G).sum())
    curve = po.sweep(
        objective,
        {"pairwise_robustness": [0.1, 1.0]},
        {"target": G, "short": 0.3 * G, "none": 0.0 * G},
        subject_to=[po.Sparsity() <= limit],
    )
    table = curve.distances().set_index("method")
    assert table["excess"].isna().tolist() == [True, False, False]
    assert "all optima at most" in table["not_compared"]["target"]
    assert (table["excess"][["short", "none"]] >= 0.0).all()
    assert curve.compared.tolist() == [False, True, True]
    assert not curve.on_front[-3]


def test_reasons_do_not_depend_on_what_was_read(objective, rng):
    G = objective.losses[0].G
    total = po.Completeness(G.sum(axis=1))
    others = {"whole": G, "half": G / 2, "noise": rng.normal(size=G.shape)}
    weights = {"pairwise_robustness": [0.1, 1.0]}
    curve = po.sweep(objective, weights, others, subject_to=[total])
    before, front = curve.distances(), curve.on_front
    assert before["excess"].isna().tolist() == [False, True, True]
    assert not front[-2:].any()
    for best in curve.optimized:
        _ = best.attributions
    after = curve.distances()
    assert after["not_compared"].equals(before["not_compared"])
    np.testing.assert_allclose(after["excess"], before["excess"], atol=1e-9)
    assert (curve.on_front == front).all()


def test_no_baselines_no_distances(objective):
    assert po.sweep(objective, {}).distances().empty


def test_the_knee_lies_farthest_below_the_chord(rng):
    X, G = rng.normal(size=(2, 20, 2))
    objective = po.GradientMatching(G) + po.PairwiseRobustness(po.gaussian_graph(X))
    curve = po.sweep(objective, {"pairwise_robustness": np.geomspace(1e-4, 1e3, 41)})
    chosen = curve.optimized.index(curve.knee())
    assert 0 < chosen < 40
    low = curve.values.min(axis=0)
    span = curve.values.max(axis=0) - low
    sums = ((curve.values - low) / span).sum(axis=1)
    assert sums[chosen] == sums.min()


def test_the_knee_of_a_loss_that_does_not_exist_is_refused(rng):
    curve = po.sweep(1.0 * po.GradientMatching(rng.normal(size=(3, 2))))
    with pytest.raises(InvalidInput, match="no loss is called 'sparsity'"):
        curve.knee("sparsity")
