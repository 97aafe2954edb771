"""Sweeps: many weights at once, in any number of processes."""

from __future__ import annotations

import os
import warnings
from functools import partial

import joblib
import numpy as np
import pandas as pd
import pytest
from sweeps import WEIGHTS, Scripted, Seen, explanation_of, never_made, without_seconds

import propopt as po
from propopt.base.errors import InvalidInput, Refused, TrivialObjectiveWarning
from propopt.losses.faithfulness import Estimate
from propopt.solvers.curves import Spectral


def test_combinations_in_order_the_last_name_fastest(X):
    objective = (
        po.GradientMatching(X)
        + po.PairwiseRobustness(po.chain_graph(12))
        + po.Smoothness(po.chain_graph(3))
    )
    curve = po.sweep(objective, {"smoothness": [3, 1], "pairwise_robustness": [0, 2]})
    result = [
        (e.weights["smoothness"], e.weights["pairwise_robustness"])
        for e in curve.optimized
    ]
    assert result == [(3, 0), (3, 2), (1, 0), (1, 2)]
    assert all(e.weights["gradient_matching"] == 1.0 for e in curve.optimized)


def test_a_single_weight_may_be_a_number(objective):
    curve = po.sweep(
        objective, {"gradient_matching": 2, "pairwise_robustness": np.array([1.0, 2.0])}
    )
    assert [e.weights for e in curve.optimized] == [
        {"gradient_matching": 2.0, "pairwise_robustness": 1.0},
        {"gradient_matching": 2.0, "pairwise_robustness": 2.0},
    ]


def test_no_weights_is_one_solve(objective):
    (best,) = po.sweep(objective, {}).optimized
    np.testing.assert_array_equal(best.attributions, po.solve(objective).attributions)


def test_a_single_loss_is_an_objective(X):
    (best,) = po.sweep(po.GradientMatching(X), {"gradient_matching": 3}).optimized
    assert best.weights == {"gradient_matching": 3.0}


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ({"robustness": [1]}, "no loss is called 'robustness'"),
        ({"pairwise_robustness": []}, "pairwise_robustness has no values"),
        ({"pairwise_robustness": [1, -1]}, "expected a finite number >= 0, got -1"),
        (
            {"pairwise_robustness": [1, np.nan]},
            "expected a finite number >= 0, got nan",
        ),
        (
            {"pairwise_robustness": [1, np.inf]},
            "expected a finite number >= 0, got inf",
        ),
        ({"pairwise_robustness": "strong"}, "expected a number, got 'strong'"),
        ({"pairwise_robustness": [[1, 2]]}, "expected a number, got"),
        (
            {"gradient_matching": [1, 0], "pairwise_robustness": [1, 0]},
            "all are zero at {'gradient_matching': 0, 'pairwise_robustness': 0}",
        ),
    ],
)
def test_bad_weights_are_refused_before_any_work(objective, weights, message):
    solver = Scripted(Spectral(), {})
    with pytest.raises(InvalidInput, match=message):
        po.sweep(objective, weights, never_made(), solver=solver)
    assert solver.solved == []


@pytest.mark.parametrize(
    ("settings", "error"),
    [
        ({"solver": "simplex"}, InvalidInput),
        ({"tolerance": 0}, InvalidInput),
        ({"n_jobs": 0}, InvalidInput),
        ({"solver": "spectral"}, Refused),
    ],
)
def test_bad_settings_are_refused_before_any_work(rough, settings, error):
    with pytest.raises(error):
        po.sweep(rough, {}, never_made(), **settings)


def test_sweep_finds_what_solve_finds(objective):
    curve = po.sweep(objective, {"pairwise_robustness": WEIGHTS})
    for best in curve.optimized:
        alone = po.solve(objective.with_weights(best.weights))
        np.testing.assert_allclose(best.attributions, alone.attributions, atol=1e-12)


def test_warm_starts_change_nothing_beyond_the_gap(rough):
    solver = Scripted(po.solvers.Conic(), {})
    curve = po.sweep(rough, {"sparsity": WEIGHTS[:4]}, solver=solver)
    assert solver.starts[0] is None
    assert all(start is not None for start in solver.starts[1:])
    for best in curve.optimized:
        cold = po.solve(rough.with_weights(best.weights), "conic")
        gap = best.gap + cold.gap + 1e-12
        assert abs(best.objective / cold.objective - 1.0) <= gap
    assert curve.certified(1e-6)
    assert not curve.certified(1e-300)


@pytest.mark.parametrize("kind", ["objective", "rough"])
def test_two_processes_give_the_same_table(request, kind):
    objective = request.getfixturevalue(kind)
    weights = {"pairwise_robustness": WEIGHTS}
    baselines = [explanation_of(objective)]
    solver = "conic" if kind == "rough" else "auto"
    one, two = (
        without_seconds(
            po.sweep(objective, weights, baselines, solver=solver, n_jobs=n_jobs)
        )
        for n_jobs in (1, 2)
    )
    # a block starts cold where a single worker starts warm: the same within the gap
    pd.testing.assert_frame_equal(
        one.drop(columns="gap"), two.drop(columns="gap"), rtol=1e-5, atol=1e-6
    )
    if kind == "objective":
        pd.testing.assert_frame_equal(one, two)


def test_warnings_of_other_processes_are_given_here(objective):
    weights = {"gradient_matching": [0], "pairwise_robustness": [1, 2]}
    with pytest.warns(TrivialObjectiveWarning) as caught:
        po.sweep(objective, weights, n_jobs=2)
    assert len(caught) == 2


def test_backend_of_joblib_is_respected(rough):
    weights = {"pairwise_robustness": WEIGHTS}
    threads = []
    one = po.sweep(rough, weights, solver="conic")
    with joblib.parallel_config(backend="threading", n_jobs=2):
        observed = Seen(po.solvers.Conic(), threads)
        two = po.sweep(rough, weights, solver=observed)
    assert set(threads) == {os.getpid()}
    assert len(threads) == 2  # a program for each of two blocks
    pd.testing.assert_frame_equal(
        without_seconds(one).drop(columns="gap"),
        without_seconds(two).drop(columns="gap"),
        rtol=1e-5,
        atol=1e-6,
    )


def test_names_of_a_frame_reach_the_result(X):
    frame = pd.DataFrame(X, columns=list("abc"), index=[f"row {n}" for n in range(12)])
    function = po.wrap(lambda table: np.asarray(table["a"] * table["b"]))
    objective = po.GradientMatching(function.gradient(frame)) + po.Sparsity()
    curve = po.sweep(objective, {"sparsity": [0.1]}, n_jobs=1)
    table = curve.optimized[0].to_frame()
    assert list(table.columns) == ["a", "b", "c"]
    assert list(table.index) == list(frame.index)


def test_zero_explanation_is_warned_about(objective):
    with pytest.warns(TrivialObjectiveWarning):
        curve = po.sweep(
            objective, {"gradient_matching": [0, 1], "pairwise_robustness": [1]}
        )
    assert curve.optimized[0].losses["pairwise_robustness"] == 0.0
    assert curve.optimized[1].losses["pairwise_robustness"] > 0.0


def test_no_warning_where_all_is_well(rough):
    weights = {"sparsity": [0.1, 1], "pairwise_robustness": [0.1, 1]}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(po.sweep(rough, weights).optimized) == 4


def test_what_workers_find_has_its_program_and_its_errors():
    blocks = np.random.default_rng(3).normal(1.0, 0.1, (5, 9, 2))
    target = Estimate.of_blocks(blocks, source="noise", n_draws=50)
    objective = po.GradientMatching(target) + po.PairwiseRobustness(po.chain_graph(9))
    sweep = partial(
        po.sweep, objective, {"pairwise_robustness": [0.1, 1.0]}, solver="CLARABEL"
    )
    for one, two in zip(sweep().optimized, sweep(n_jobs=2).optimized, strict=True):
        assert two.program.losses == objective.losses
        assert two.target == one.target
        np.testing.assert_array_equal(two.standard_errors, one.standard_errors)
        assert two.target.n_blocks == 5
