"""The front, the distances to it, and its knee."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sweeps import (
    WEIGHTS,
    explanation_of,
    table_of,
)

import propopt as po
from propopt.errors import (
    InvalidInput,
)


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
    assert curve.distances()["excess"].tolist() == [0.0, np.inf]


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
