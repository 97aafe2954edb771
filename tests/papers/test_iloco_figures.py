"""Figures of the paper on iLOCO: what it states holds or not as on record."""

from dataclasses import replace
from io import BytesIO

import numpy as np
import pytest
from scipy.stats import binom
from sklearn.base import clone

from papers import PAPERS
from papers.engine.tally import FigureReport
from papers.iloco import (
    learners,
    shares,
    simulations,
    success,
    tables,
)
from papers.iloco.methods import (
    FAITH,
    FAITH_OF_MEANS,
    PATCHES,
    SIZES,
    SPLIT,
    H,
)
from papers.iloco.scale import FULL, REDUCED
from propopt.base.errors import InvalidInput


PAPER = PAPERS["iloco"]
QUICK = ("errors",)
EVERY = [
    pytest.param(name, place, marks=[] if name in QUICK else pytest.mark.slow)
    for name, make in PAPER.figures.items()
    for place in range(len(make().panels))
]


@pytest.mark.parametrize(("name", "place"), EVERY)
def test_a_panel_has_the_values_on_record(name, place):
    """The least squares of figures 1 and A1, |z| ≤ 5, alarm falsely once in 4000."""
    made = PAPER.figures[name]()
    panel = made.panels[place]
    report = FigureReport(
        name=name, figure=replace(made, panels=(panel,)), results=(panel.run(),),
        seconds=0.0, record=PAPER.record, values=PAPER.values_on_record,
    )  # fmt: skip
    assert [f for _, f in report.findings if str(f.verdict) == "FAIL"] == []
    assert report.drifted == []
    on_record = {key[:2] for key in PAPER.values_on_record}
    has_values = name in WITH_VALUES and (name, panel.title) != CHECK_ALONE
    assert ((name, panel.title) in on_record) == has_values
    if len(made.panels) == 1:
        assert report.changed == []
    if report.results[0].charts:
        picture = BytesIO()
        drawing = made.draw(report.results)
        drawing.set_layout_engine("none")
        drawing.savefig(picture, format="svg")
        assert picture.tell() > 10_000


WITH_VALUES = set(PAPER.figures) - {"table1"}  # seconds differ from run to run
CHECK_ALONE = "errors", "patches"


def test_the_full_scale_has_the_same_figures_and_no_verdicts_on_record():
    assert min(REDUCED.n_replicates.values()) >= 20  # behind every share
    assert min(REDUCED.n_orders, REDUCED.n_coverage, tables.FRIEDMAN_DRAWS) >= 20
    full = PAPER.at_full_scale
    assert list(full.figures) == list(PAPER.figures)
    assert full.record == {}
    assert len(full.figures["figA2"]().panels) == 6
    assert FULL.n_patches["MLP"] == 10_000
    made = full.figures["errors"]()
    results = tuple(one.run() for one in made.panels)
    report = FigureReport(name="errors", figure=made, seconds=0.0, results=results)
    assert report.complete
    assert report.changed == []
    with pytest.raises(InvalidInput, match="--full: the paper linear-lime is at its"):
        PAPERS["linear-lime"].at_full_scale  # noqa: B018  # the access is what raises


@pytest.mark.parametrize("tanh", [False, True])
@pytest.mark.parametrize("number", ["i", "ii", "iii"])
def test_a_regression_is_slopes_products_and_noise(number, tanh, rng):
    simulation = simulations.Simulation(number=number, task="regression", tanh=tanh)
    X, y = simulation.draw(3.0, 20_000, rng)
    chain = [(0, 1), (1, 2), (2, 3), (3, 4)]
    products = {"i": chain[:1], "ii": chain, "iii": [(0, 1, 2)]}[number]
    terms = np.stack([X[:, list(own)].prod(axis=1) for own in products], axis=1)
    design = np.column_stack([X, np.tanh(terms) if tanh else terms])
    result, *_ = np.linalg.lstsq(design, y, rcond=None)
    spread = 1.0 / np.sqrt(len(X) * design.var(axis=0).min())
    weights = [3.0] + [1.0] * (len(products) - 1)
    # |z| <= 5 of at most 9 coefficients: a false alarm once in 190,000
    np.testing.assert_allclose(result[5:], [0.0] * 5 + weights, atol=5 * spread)
    assert np.std(y - design @ result) == pytest.approx(1.0, abs=0.03)
    assert (np.abs(result[:5] - 2.0) < 2.5 + 5 * spread).all()  # five of N(2, 0.5²)


def test_classes_have_their_probability_and_correlations_fall_off(rng):
    simulation = simulations.Simulation(number="i", task="classification", tanh=True)
    X, y = simulation.draw(0.0, 50_000, rng)
    assert set(y) == {0.0, 1.0}
    # slopes of about 2 on each of five: the first column tells classes, the last not
    assert X[y == 1, 0].mean() > 0.2
    assert abs(X[y == 1, 9].mean()) < 5 / np.sqrt(25_000)
    assert y.mean() == pytest.approx(0.5, abs=5 * 0.5 / np.sqrt(50_000))


@pytest.mark.parametrize("design", ["falling", "as printed"])
def test_both_autoregressive_designs_are_autoregressions(design, rng):
    """|z| < 5 of 55 covariances and 10 variances: a false alarm in 25,000 runs."""
    settings = {"number": "i", "task": "regression", "tanh": False}
    X, _ = simulations.Simulation(**settings, design=design).draw(0.0, 50_000, rng)
    step, spread = (0.8, 1.0) if design == "falling" else (-0.8, 1.0 / (1.0 - 0.8**2))
    indices = np.arange(10)
    known = spread * step ** np.abs(indices[:, None] - indices)
    np.testing.assert_allclose(
        np.cov(X.T), known, atol=5 * spread * np.sqrt(2 / 50_000)
    )
    printed = np.linalg.inv(simulations.covariance("as printed", 10))
    np.testing.assert_allclose(np.diagonal(printed, 1), 0.8)


def test_kernel_machines_are_kernel_ridge_of_scikit_learn(rng):
    from sklearn.kernel_ridge import KernelRidge

    X, new = rng.normal(size=(40, 3)), rng.normal(size=(15, 3))
    y = X[:, 0] * X[:, 1] + 0.3
    peer = KernelRidge(alpha=0.1, kernel="rbf", gamma=1 / 6).fit(X, y - y.mean())
    own = clone(learners.paper_learner("KRBF", "regression")).fit(X, y)
    np.testing.assert_allclose(own.predict(new), peer.predict(new) + y.mean())
    labels = np.where(y > 0.3, "yes", "no")
    classes = learners.paper_learner("KRBF", "classification").fit(X, labels)
    probabilities = classes.predict_proba(X)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)
    assert ((probabilities >= 0) & (probabilities <= 1)).all()
    assert (classes.predict(X) == labels).mean() > 0.9


@pytest.mark.parametrize(("n", "k"), [(20, 20), (24, 0), (24, 7), (300, 270)])
def test_intervals_of_shares_are_wrong_as_often_as_they_say(n, k):
    """The ends are shares of which k or more, or fewer, come in 1 of 200 cases."""
    low, high = shares.share_between(np.arange(n) < k)
    if k > 0:
        assert binom.sf(k - 1, n, low) == pytest.approx(shares.ERROR)
    if k < n:
        assert binom.cdf(k, n, high) == pytest.approx(shares.ERROR)
    assert (low == 0.0) == (k == 0)
    assert (high == 1.0) == (k == n)


@pytest.mark.parametrize(
    ("counts", "ends"),
    [((56, 70, 48, 80), (0.0524, 0.3339)), ((9, 10, 3, 10), (0.1705, 0.8090))],
)
def test_a_difference_has_the_interval_that_newcombe_prints(counts, ends):
    """Interval estimation for the difference (1998), table II, method 10, 95 %."""
    k, n, j, m = counts
    got = shares.difference_between(np.arange(n) < k, np.arange(m) < j, error=0.025)
    assert got == pytest.approx(ends, abs=6e-5)


@pytest.mark.parametrize(
    ("counts", "ends"),
    [
        ((36, 12, 2, 0), (0.0569, 0.3404)),
        ((18, 12, 2, 18), (0.0562, 0.3290)),
        ((53, 0, 0, 1), (-0.0729, 0.0729)),
    ],
)
def test_a_paired_difference_has_the_interval_that_newcombe_prints(counts, ends):
    """Improved confidence intervals for paired data (1998), method 10, 95 %."""
    one = np.repeat([True, True, False, False], counts)
    other = np.repeat([True, False, True, False], counts)
    got = shares.excess_between(one, other, error=0.025)
    assert got == pytest.approx(ends, abs=6e-5)


@pytest.mark.parametrize(
    ("limit", "above", "below"), [(0.5, 0.001, 0.019), (0.0, 0.007, 0.007)]
)
def test_a_difference_is_rarely_on_the_wrong_side(limit, above, below):
    """By enumeration of 24 replicates each: how often at most, as the record has it."""
    counts = np.arange(25)
    masks = [counts[:-1] < k for k in counts]
    ends = np.array([[shares.difference_between(a, b) for b in masks] for a in masks])
    wrong = []
    for q in np.linspace(0.0, 1.0 - limit, 101):
        law = np.outer(binom.pmf(counts, 24, q + limit), binom.pmf(counts, 24, q))
        wrong.append([law[ends[..., 0] > limit].sum(), law[ends[..., 1] < limit].sum()])
    worst = np.max(wrong, axis=0)
    assert worst[0] <= above
    assert worst[1] <= below


def test_a_small_curve_is_measured_from_end_to_end():
    pytest.importorskip("shapiq")
    sizes = {"n_patches": {"KRBF": 300}, "n_replicates": {"KRBF": 1}}
    scale = replace(REDUCED, ratios=(8.0,), **sizes)
    simulation = simulations.Simulation(number="i", task="regression", tanh=False)
    curve = success.SuccessCurve(simulation=simulation, learner="KRBF", scale=scale)
    result = curve.measure()
    assert result.shares[SPLIT].tolist() == [1.0]
    rivals = {H, FAITH, FAITH_OF_MEANS}
    assert set(result.shares) == {SPLIT, PATCHES, *SIZES.values(), *rivals}
    assert result.to_frame()["at"].tolist() == ["8"]
