"""What is kept where a sweep is interrupted, or a solver fails."""

from __future__ import annotations

import pandas as pd
import pytest
from sweeps import WEIGHTS, Scripted, explanation_of

import propopt as po
from propopt.base.errors import InterruptedWarning, SolverFailure, UnsolvedWarning
from propopt.solvers.curves import Spectral


def test_interruption_keeps_what_is_done(objective):
    solver = Scripted(Spectral(), {3: KeyboardInterrupt()})
    weights = {"pairwise_robustness": WEIGHTS}
    baseline = explanation_of(objective)
    with pytest.warns(InterruptedWarning, match="3 of 5 weights are done"):
        curve = po.sweep(objective, weights, [baseline], solver=solver)
    assert curve.interrupted
    assert [e.weights["pairwise_robustness"] for e in curve.optimized] == WEIGHTS[:3]
    assert [e.method for e in curve.baselines] == ["given"]
    assert "interrupted" in repr(curve)
    assert len(curve.to_frame()) == 4


def test_interruption_among_the_baselines_keeps_those_made(objective, tmp_path):
    def made():
        yield explanation_of(objective)
        raise KeyboardInterrupt

    with pytest.warns(InterruptedWarning, match="0 of 1 weights"):
        curve = po.sweep(objective, {}, made())
    assert curve.interrupted
    assert [e.method for e in curve.explanations] == ["given"]
    curve.to_csv(tmp_path / "curve.csv")
    assert len(pd.read_csv(tmp_path / "curve.csv")) == 1


def test_interruption_before_anything_is_done(objective):
    solver = Scripted(Spectral(), {0: KeyboardInterrupt()})
    with pytest.raises(KeyboardInterrupt):
        po.sweep(objective, {}, solver=solver)


def test_failure_at_one_weight_keeps_the_others(objective):
    solver = Scripted(Spectral(), {1: SolverFailure("the backend gave up")})
    weights = {"pairwise_robustness": WEIGHTS}
    with pytest.warns(UnsolvedWarning, match="1 of 5 weights were not solved"):
        curve = po.sweep(objective, weights, solver=solver)
    result = [e.weights["pairwise_robustness"] for e in curve.optimized]
    assert result == [0.01, 1.0, 10.0, 100.0]
    assert curve.failures == (
        "1 * gradient_matching + 0.1 * pairwise_robustness: the backend gave up",
    )
    assert not curve.interrupted


def test_failure_at_every_weight_raises_the_first(objective):
    failures = {n: SolverFailure(f"failure {n}") for n in range(5)}
    solver = Scripted(Spectral(), failures)
    with pytest.raises(SolverFailure, match="failure 0"):
        po.sweep(objective, {"pairwise_robustness": WEIGHTS}, solver=solver)
    assert len(solver.solved) == 5


def test_progress_goes_to_standard_error(objective, capfd):
    weights = {"pairwise_robustness": WEIGHTS}
    po.sweep(objective, weights)
    assert capfd.readouterr() == ("", "")
    po.sweep(objective, weights, progress=True)
    printed = capfd.readouterr()
    assert printed.out == ""
    assert "5/5" in printed.err
