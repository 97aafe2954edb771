"""What metrics draw: from a seed, in blocks, and point by point."""

from __future__ import annotations

import numpy as np
import pytest
from metric_cases import FAITHFUL, ROBUST, S, asked, explain, f

import propopt as po
from propopt.base.resources import Budget
from propopt.explaining.metrics import RelativeOutputStability
from propopt.explaining.metrics.metric import metric_rng
from propopt.laws import perturbations


SAMPLED = [*ROBUST, RelativeOutputStability(n_samples=S), *FAITHFUL[:-1]]


@pytest.mark.parametrize("metric", SAMPLED, ids=lambda m: m.name)
def test_blocks_do_not_change_a_result(metric, X, monkeypatch):
    whole = asked(metric, X)
    for n_bytes in (1, 8 * 4 * 4, 8 * 4 * 2 * S):
        monkeypatch.setattr(perturbations, "PERTURBED_POINTS", Budget(n_bytes))
        np.testing.assert_allclose(asked(metric, X), whole, rtol=1e-12, atol=1e-16)


@pytest.mark.parametrize("metric", SAMPLED, ids=lambda m: m.name)
def test_a_point_does_not_depend_on_later_ones(metric, X):
    np.testing.assert_allclose(asked(metric, X[:2]), asked(metric, X)[:2], rtol=1e-12)


@pytest.mark.parametrize("metric", SAMPLED, ids=lambda m: m.name)
def test_seeds_decide_and_none_is_zero(metric, X):
    np.testing.assert_array_equal(asked(metric, X), asked(metric, X, rng=0))
    assert (asked(metric, X) != asked(metric, X, rng=1)).any()
    generator = np.random.default_rng(0)
    first, second = (asked(metric, X, rng=generator) for _ in range(2))
    assert (first != second).any()


def test_metrics_do_not_draw_what_explainers_draw():
    ours, theirs = metric_rng(3).normal(size=8), np.random.default_rng(3).normal(size=8)
    assert not np.isin(ours, theirs).any()


@pytest.mark.parametrize("metric", FAITHFUL[:-1], ids=lambda m: m.name)
def test_the_model_is_asked_in_blocks(metric, monkeypatch):
    sizes: list[int] = []

    def spy(points: np.ndarray) -> np.ndarray:
        sizes.append(len(points))
        return f(points)

    X = np.random.default_rng(0).normal(size=(40, 4))
    monkeypatch.setattr(perturbations, "PERTURBED_POINTS", Budget(8 * 4 * 10 * S))
    function = po.wrap(spy)
    function.value(X[:1])
    sizes.clear()  # of the trial
    metric(explain(X), function, X)
    assert sorted(sizes) == [40] + [10 * S] * 4 or sizes == [40] + [10 * S] * 4
