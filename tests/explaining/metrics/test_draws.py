"""What metrics draw, by seed, block and point; and what they do not depend on."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from metric_cases import COMPLEXITIES, FAITHFUL, FUNCTION, ROBUST, S, asked, explain, f

import propopt as po
from propopt.base.resources import Budget
from propopt.explaining.metrics import Infidelity, RelativeOutputStability
from propopt.explaining.metrics.metric import metric_rng
from propopt.laws import perturbations


SAMPLED = [*ROBUST, RelativeOutputStability(n_samples=S), *FAITHFUL[:-1]]


@pytest.mark.parametrize("metric", SAMPLED, ids=lambda m: m.name)
def test_seeds_and_rows_decide_what_is_drawn_and_blocks_do_not(metric, X, monkeypatch):
    whole = asked(metric, X)
    np.testing.assert_array_equal(whole, asked(metric, X, rng=0))
    assert (whole != asked(metric, X, rng=1)).any()
    generator = np.random.default_rng(0)
    first, second = (asked(metric, X, rng=generator) for _ in range(2))
    assert (first != second).any()
    np.testing.assert_allclose(asked(metric, X[:2]), whole[:2], rtol=1e-12)
    for n_bytes in (1, 8 * 4 * 4, 8 * 4 * 2 * S):
        monkeypatch.setattr(perturbations, "PERTURBED_POINTS", Budget(n_bytes))
        np.testing.assert_allclose(asked(metric, X), whole, rtol=1e-12, atol=1e-16)


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


ATTRIBUTIONS = arrays(
    float, (3, 5), elements=st.floats(-10, 10).map(lambda w: round(w, 3))
).filter(lambda W: (W != 0).any(axis=1).all())
POINTS = np.random.default_rng(0).normal(size=(3, 5))
SIGNS = st.sampled_from([-1, 1])


@given(
    W=ATTRIBUTIONS,
    order=st.permutations(range(5)),
    exponent=st.integers(-250, 250),
    sign=SIGNS,
)
@pytest.mark.parametrize("metric", COMPLEXITIES, ids=lambda m: m.name)
def test_order_and_scale_of_attributions_do_not_matter(
    metric, W, order, exponent, sign
):
    np.testing.assert_allclose(metric(W[:, order]), metric(W), atol=1e-14)
    if metric in COMPLEXITIES[:2]:
        scaled = sign * 10.0**exponent * W
        np.testing.assert_allclose(metric(scaled), metric(W), atol=1e-13)


@given(W=ATTRIBUTIONS, exponent=st.integers(-150, 150), sign=SIGNS)
def test_scale_free_infidelity_does_not_depend_on_the_scale(W, exponent, sign):
    factor = sign * 10.0**exponent
    metric = Infidelity(n_samples=20)
    once = metric.parts(W, FUNCTION, POINTS)
    parts = metric.parts(factor * W, FUNCTION, POINTS)
    np.testing.assert_allclose(parts.scale_free, once.scale_free, rtol=1e-9)
    np.testing.assert_allclose(parts.factor * factor, once.factor, rtol=1e-9)
    assert (once.scale_free <= once.raw * (1 + 1e-12)).all()
