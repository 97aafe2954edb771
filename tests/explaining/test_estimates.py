"""One contract for all that is drawn: z-scores, 1/√n, evaluations that are said, seeds.

Each case gives values and standard errors of n draws by a seed, and what they estimate
exactly. With 12 seeds and three values that do not go together, the mean of z² is that
of some 36 scores of Student's law of 9 degrees of freedom or more: 0.85 to 1.29, beyond
0.4 or 2.8 once in 2e4. One score is beyond 12 once in 1.3e6; there are 2,500 here. The
seeds are fixed: no run differs from another.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
import pytest
from sklearn.kernel_ridge import KernelRidge

import propopt as po
from propopt.base.arrays import Array
from propopt.functions.function import Function
from propopt.laws.perturbations import shapley_blocks
from propopt.lime.surrogates import estimate_limits
from propopt.lime.text.text_reading import TextLaw, WordRegression
from propopt.lime.text.text_samples import SizePlan, estimate_words
from propopt.losses.faithfulness import error_of_blocks
from propopt.structures.subsets.conjunctions import Enumerated


RNG = np.random.default_rng(4)
X = RNG.normal(size=(60, 3)).round(1)
ROWS = X[:3]
MODEL = KernelRidge(kernel="rbf", gamma=0.3, alpha=0.1)
MODEL.fit(X, np.sin(X[:, 0]) * X[:, 1] + X[:, 2] ** 2)
SCALE, CUBE = 0.7, po.functions.Power(3)
SLOPES = 3.0 * ROWS**2 + 3.0 * SCALE**2  # of the mean of x³ under noise
LAW = po.lime.TabularLaw.from_data(X, kernel_width=1.0)
OTHER_LAWS = {
    "smooth": po.lime.SmoothLaw.of(LAW),
    "gaussian": po.lime.GaussianLaw.from_data(X, kernel_width=1.0),
    "glime": po.lime.GlimeLaw(LAW),
}
BACKGROUND = X[:20]
N_WORDS = 16


@dataclass
class Case:
    """An estimate by a number of draws and a seed, with its errors; what it is of."""

    drawn: Callable[[int, int], tuple[Array, Array, int, int]]
    exact: Callable[[], Array]
    n_draws: int


def lost() -> Function:
    """The model, of which nothing is known."""
    return po.wrap(lambda rows: MODEL.predict(np.asarray(rows)))


def curve(bits: Array) -> Array:
    slopes = np.random.default_rng(1).normal(size=N_WORDS)
    return 1.0 / (1.0 + np.exp(0.3 - bits @ slopes))


def by_the_data_law(n: int, seed: int):
    f = lost()
    found = po.smoothed(f, None, n, seed, law="data", data=X).estimate(ROWS)
    return found.values, found.standard_errors, found.evaluations, f.calls.rows


def by_noise(n: int, seed: int):
    f = po.wrap(lambda rows: (np.asarray(rows) ** 3).sum(axis=1))
    found = po.smoothed(f, SCALE, n, seed).estimate(ROWS)
    return found.values, found.standard_errors, found.evaluations, f.calls.rows


def by_baseline(method: po.explainers.Baseline, f: Function, seed: int):
    found = method.explain(f, ROWS, rng=seed)
    counts = found.evaluations, f.calls.rows
    return found.attributions, found.standard_errors, *counts


def by_smoothgrad(n: int, seed: int):
    found = po.explainers.SmoothGrad(scale=SCALE, n_samples=n)
    found = found.explain(CUBE, ROWS, rng=seed)
    return found.attributions, found.standard_errors, 0, 0


def by_lime(n: int, seed: int):
    f = po.wrap(lambda rows: (np.asarray(rows) ** 3).sum(axis=1))
    return by_baseline(po.explainers.Lime(scale=SCALE, n_samples=n), f, seed)


def by_lime_of_a_law(n: int, seed: int):
    return by_baseline(po.explainers.Lime(law=LAW, n_samples=n), lost(), seed)


def by_surrogates(n: int, seed: int, law: po.lime.LimeLaw = LAW):
    f, rng = lost(), np.random.default_rng(seed)
    found = estimate_limits(f, law, ROWS, n_samples=n, rng=rng, progress=False)
    counts = found.evaluations, f.calls.rows
    return found.coefficients, found.standard_errors, *counts


def by_words(n: int, seed: int):
    plan, asked = SizePlan.of(N_WORDS, TextLaw(), n), []

    def counted(bits: Array) -> Array:
        asked.append(len(bits))
        return curve(bits)

    found = estimate_words(counted, plan, np.random.default_rng(seed))
    found = found.at(np.array([0.25]))
    counts = plan.evaluations, sum(asked)
    return found.coefficients, found.standard_errors, *counts


def by_orders(n: int, seed: int):
    blocks = shapley_blocks(
        MODEL.predict, BACKGROUND, ROWS, np.random.default_rng(seed), n
    )
    return blocks.mean(axis=0), error_of_blocks(blocks), 0, 0


def limits(law: po.lime.LimeLaw = LAW) -> Array:
    return po.lime.limits(MODEL, ROWS, law, data=X).coefficients


def shapley() -> Array:
    exact = po.explainers.ExactShap(background=BACKGROUND)
    return exact.explain(po.wrap(MODEL, data=X), ROWS).attributions


def words() -> Array:
    every = Enumerated.of(curve, N_WORDS)
    return WordRegression(every).at(np.array([0.25])).coefficients


def data_law() -> Array:
    exact = po.smoothed(po.wrap(MODEL, data=X), law="data", data=X)
    assert exact.estimate(ROWS).exact
    return exact.gradient(ROWS)


CASES = {
    "data law": Case(by_the_data_law, data_law, 200),
    "pairs of noise": Case(by_noise, lambda: SLOPES, 200),
    "smoothgrad": Case(by_smoothgrad, lambda: SLOPES, 200),
    "lime of noise": Case(by_lime, lambda: SLOPES, 1000),
    "lime of a law": Case(by_lime_of_a_law, limits, 1000),
    "surrogates": Case(by_surrogates, limits, 1000),
    **{
        f"surrogates, {name}": Case(
            partial(by_surrogates, law=law), partial(limits, law), 1000
        )
        for name, law in OTHER_LAWS.items()
    },
    "words": Case(by_words, words, 600),
    "orders": Case(by_orders, shapley, 20),
}


@pytest.fixture(params=CASES, ids=list(CASES))
def case(request: pytest.FixtureRequest) -> Case:
    return CASES[request.param]


def test_errors_are_those_of_the_estimate_and_fall_as_one_over_the_root(case) -> None:
    exact = case.exact()
    assert np.abs(exact).max() > 0.05
    roots = []
    for n in (case.n_draws, 4 * case.n_draws):
        drawn = [case.drawn(n, seed) for seed in range(12)]
        z = np.array([(values - exact) / errors for values, errors, *_ in drawn])
        assert np.abs(z).max() < 12.0
        assert 0.4 < (z**2).mean() < 2.8
        gaps = np.array([values - exact for values, *_ in drawn])
        roots.append(np.sqrt((gaps**2).mean()))
    # of 36 gaps each: the ratio of 2 is known to a sixth, and is within 1.1 and 3.6 but
    # once in 2e4 seeds; a fit to more samples leaves less over besides
    assert 1.1 < roots[0] / roots[1] < 3.6


def test_as_many_evaluations_are_said_as_were_made(case) -> None:
    _, _, said, made = case.drawn(case.n_draws, 0)
    assert said == made


def test_a_seed_draws_the_same_bits_and_another_seed_others(case) -> None:
    one, again, other = (case.drawn(case.n_draws, seed)[:2] for seed in (3, 3, 5))
    for ours, theirs in zip(one, again, strict=True):
        np.testing.assert_array_equal(ours, theirs)
    assert (one[0] != other[0]).any()
