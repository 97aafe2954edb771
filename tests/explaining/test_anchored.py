"""The conditional program as losses: what is proved and said of single rows."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import propopt as po
from propopt.base.errors import Refused
from propopt.explaining.conditional import AnchoredRobustness
from propopt.functions import Function
from propopt.losses.faithfulness import Estimate


N, D, B = 40, 3, 10
X = pd.DataFrame(np.random.default_rng(0).normal(size=(N, D)), columns=list("abc"))
X_NEW = pd.DataFrame(np.random.default_rng(1).normal(size=(6, D)), columns=list("abc"))


def black_box(table):
    return np.asarray(table) ** 2 @ np.arange(1.0, D + 1.0)


class Noisy(Function):
    """f with slopes that are estimated from B blocks of draws."""

    gradient_method = "sampled"

    def _value(self, points, _):
        return black_box(points)

    def _gradient(self, points, labels):
        return self.estimate_at(points, labels).values

    def estimate_at(self, points, labels):
        noise = np.random.default_rng(3).normal(size=(B, 1, D))
        blocks = 2.0 * points * np.arange(1.0, D + 1.0) + noise
        return Estimate.of_blocks(blocks, source="noise", n_draws=500, labels=labels)


@pytest.fixture(scope="module")
def fitted():
    return po.Explainer(black_box, data=X, robustness=0.3, scale=None).fit()


def objective_of(result):
    weights = np.array([result.weights[loss.name] for loss in result.program.losses])
    return result.program.weighed(weights)


@pytest.mark.parametrize("solver", ["auto", "CLARABEL"])
def test_solvers_find_the_same_rows(fitted, solver):
    result = fitted.explain(X_NEW)
    best = po.solve(objective_of(result), solver)
    assert best.objective == pytest.approx(result.objective, rel=1e-6)
    np.testing.assert_allclose(best.attributions, result.attributions, atol=1e-3)
    certified = result.certified(objective_of(result))
    assert certified.gap < 1e-12
    for name, value in result.losses.items():
        assert certified.losses[name] == pytest.approx(value, rel=1e-12)


@pytest.mark.parametrize("solver", ["spectral", po.solvers.Krylov()])
def test_curves_which_know_no_such_target_refuse_it(fitted, solver):
    result = fitted.explain(X_NEW)
    with pytest.raises(Refused, match="couples attributions, and has a target"):
        po.solve(objective_of(result), solver)


def test_signs_of_single_rows_have_their_price():
    explainer = po.Explainer(black_box, data=X, robustness=0.3, scale=None).fit()
    result = explainer.explain(X_NEW)
    stiffness = 1.0 + 2.0 * 0.3 * result.details["similarity"][:, None]
    prices = result.attributions**2 * stiffness
    np.testing.assert_allclose(result.certain().prices, prices, rtol=1e-9)


def test_errors_of_the_target_are_carried_to_the_rows():
    explainer = po.Explainer(Noisy(), data=X, robustness=0.3, scale=None).fit()
    result = explainer.explain(X_NEW)
    joint = Noisy().estimate(X_NEW)
    keep = 1.0 / (1.0 + 2.0 * 0.3 * result.details["similarity"][:, None])
    np.testing.assert_allclose(
        result.standard_errors, keep * joint.standard_errors, rtol=1e-9
    )
    deviations = joint.blocks - joint.values
    energy = (deviations**2 * keep).sum() / (B * (B - 1))
    assert result.target.value == pytest.approx(energy, rel=1e-9)
    assert result.target_error == pytest.approx(energy / result.objective, rel=1e-9)


def test_an_exact_target_has_no_error():
    exact = po.functions.Power(3)
    result = po.Explainer(exact, data=X, scale=None).fit().explain(X_NEW)
    assert (result.target_error, result.target.source) == (0.0, "exact")


def test_similarities_of_zero_draw_nowhere():
    fixed = np.array([[1.0, 2.0], [5.0, 5.0]])
    drawn = AnchoredRobustness(
        fixed, np.array([[0, 1], [1, 0]]), np.array([[2.0, 0.0], [0.0, 0.5]])
    )
    W = np.array([[0.0, 0.0], [1.0, 1.0]])
    assert drawn.value(W) == pytest.approx(2 * 2.0 * 5.0 + 2 * 0.5 * 1.0)
    assert (drawn.n_points, drawn.n_features) == (2, 2)
    step = 1e-6 * np.eye(4).reshape(4, 2, 2)
    slopes = [(drawn.value(W + h) - drawn.value(W - h)) / 2e-6 for h in step]
    np.testing.assert_allclose(drawn.gradient(W).ravel(), slopes, rtol=1e-6)
