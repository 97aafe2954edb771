"""What all baselines have in common, of rows with missing numbers too, and mixtures."""

import json

import numpy as np
import pandas as pd
import pytest

import propopt as po
from propopt.base.errors import InvalidInput
from propopt.base.resources import Budget
from propopt.explaining import explainers
from propopt.explaining.explainers import (
    BASELINES,
    Gradient,
    Lime,
    LimePackage,
    Shap,
    SmoothGrad,
    aggregate,
)
from propopt.functions import Power, Sine
from propopt.laws import perturbations
from propopt.losses import (
    GradientMatching,
    MaxDifferenceRobustness,
    PairwiseRobustness,
    Sparsity,
)
from propopt.losses.graphs.points import complete_graph
from propopt.results.explanation import Explanation


SAMPLED = [SmoothGrad(scale=0.1, n_samples=50), Lime(scale=0.1, n_samples=50)]
each_sampled = pytest.mark.parametrize("explainer", SAMPLED, ids=lambda e: e.method)
FRAME = pd.DataFrame([[1.0, 2.0], [3.0, 4.0]], index=["a", "b"], columns=["u", "v"])


def test_every_explainer_is_registered_under_its_method():
    assert all(name == cls.method for name, cls in BASELINES.items())
    names = explainers.__all__
    assert names == sorted(names)
    assert all(name in vars(explainers) for name in names)


def test_the_result_tells_how_it_was_made_in_plain_values(X):
    settings = {"scale": np.float64(0.5), "n_samples": np.int64(20)}
    result = Lime(**settings, kernel_width=2.0).explain(Sine(), X)
    assert result.method == "lime"
    assert json.dumps(result.parameters) == (
        '{"scale": 0.5, "n_samples": 20, "distribution": "gaussian", '
        '"kernel_width": 2.0, "ridge": 0.0, "fit_intercept": true, "relative": false}'
    )
    assert result.seconds > 0


@each_sampled
def test_the_seed_and_the_rows_before_decide_what_is_drawn(explainer, X):
    def explained(points, **settings):
        return explainer.explain(Sine(), points, **settings).attributions

    once = explained(X)
    np.testing.assert_array_equal(explained(X), once)
    np.testing.assert_array_equal(explained(X, rng=0), once)
    assert (explained(X, rng=1) != once).all()
    rng = np.random.default_rng(0)
    assert (explained(X, rng=rng) != explained(X, rng=rng)).all()
    np.testing.assert_allclose(explained(X[:2]), once[:2], rtol=1e-12)


def test_what_is_none_is_refused(X):
    for cls, settings, complaint in BAD_SETTINGS:
        with pytest.raises(InvalidInput, match=complaint):
            cls(**settings)
    for function, table, rng, complaint in (
        *((Sine(), FRAME, rng, "rng: expected an integer >= 0") for rng in BAD_SEEDS),
        (np.sin, FRAME, 0, r"propopt\.wrap"),
        (Sine(), [1.0, 2.0], 0, "^X: "),
        (Sine(), np.zeros((0, 2)), 0, "^X: "),
        (Sine(), [[np.inf]], 0, "^X: "),
    ):
        with pytest.raises(InvalidInput, match=complaint):
            Gradient().explain(function, table, rng=rng)
    # explanations of different shape are not mixed
    parts = [Gradient().explain(Sine(), points) for points in (X, X[:2])]
    with pytest.raises(InvalidInput, match=r"got \(2, 3\), \(6, 3\)"):
        aggregate(Sparsity(), parts)
    with pytest.raises(InvalidInput, match=r"at least one, .* got none"):
        aggregate(Sparsity(), [])


BAD_SEEDS = (-1, 1.5, "0", True, np.random.RandomState(0))
BAD_SETTINGS = [
    (SmoothGrad, {"scale": 0.0}, "scale: expected a number > 0"),
    (SmoothGrad, {"scale": np.nan}, "scale: expected a finite"),
    (SmoothGrad, {"scale": 1.0, "n_samples": 1}, "n_samples: expected at least 2"),
    (SmoothGrad, {"scale": 1.0, "n_samples": 2.5}, "n_samples: expected an int"),
    (SmoothGrad, {"scale": 1.0, "distribution": "cauchy"}, "ball, gaussian, unif"),
    (Lime, {"scale": -1.0}, "scale: expected a finite number >= 0"),
    (Lime, {"scale": 1.0, "n_samples": 0}, "n_samples: expected an integer >= 1"),
    (Lime, {"scale": 1.0, "kernel_width": 0.0}, "kernel_width: expected a number"),
    (Lime, {"scale": 1.0, "ridge": -1.0}, "ridge: expected a finite number >= 0"),
    (LimePackage, {"n_samples": 1}, "n_samples: expected at least 2"),
    (LimePackage, {"kernel_width": -1}, "kernel_width"),
    (LimePackage, {"units": "grad"}, "units: expected 'gradient' or 'output'"),
    (LimePackage, {"units": "gradient"}, "needs discretize=False"),
    (LimePackage, {"background": [1.0]}, "background: expected 2 dimensions"),
    (Shap, {"units": "grad"}, "units: expected one of gradient, output"),
    (Shap, {"algorithm": "kernel"}, "algorithm: expected one of auto, exact"),
    (Shap, {"n_permutations": 0}, "n_permutations"),
    (Shap, {"background": [[np.inf]]}, "background: 1 of 1 values"),
]


@each_sampled
def test_progress_is_shown_where_asked_and_reaches_the_end(explainer, capsys):
    X = np.zeros((7, 2))
    silent = explainer.explain(Power(3), X)
    assert capsys.readouterr().err == ""
    shown = explainer.explain(Power(3), X, progress=True)
    assert "7/7" in capsys.readouterr().err
    np.testing.assert_array_equal(shown.attributions, silent.attributions)


def test_what_many_evaluations_cost_is_announced_before(capsys):
    function = po.wrap(lambda Z: Z.sum(axis=1))
    table = np.random.default_rng(0).normal(size=(100, 2))
    for baseline, rows in (
        (Lime(scale=0.5, n_samples=30_000), table[:10]),
        (Shap(algorithm="permutation", n_permutations=10), table),
    ):
        result = baseline.explain(function, rows, progress=True)
        _, said = capsys.readouterr().err.split(f"{baseline.method}: ")
        number = int(said.split(" evaluations")[0].replace(",", ""))
        assert number >= 200_000
        assert result.evaluations <= 1.1 * number


RNG = np.random.default_rng(11)
HOLED = pd.DataFrame(RNG.normal(size=(30, 3)), columns=["age", "dose", "weight"])
HOLED = HOLED.mask(RNG.random(HOLED.shape) < 0.2)
COLOURED = HOLED.assign(colour=pd.Series(RNG.choice(["red", None], 30), dtype=object))
ABSENT = HOLED.isna().to_numpy()
SLOPES = np.array([2.0, -1.0, 1.0])


def additive(table):
    """2·age (5 if missing) − dose (1 if missing) + weight (0 if missing)."""
    values = np.asarray(table, float)
    filled = np.where(np.isnan(values), [2.5, -1.0, 0.0], values)
    return filled @ SLOPES


def slopes_and_effects():
    """2, −1 and 1; where one is missing, its value less that of the mean."""
    means = HOLED.mean().to_numpy()
    effects = SLOPES * ([2.5, -1.0, 0.0] - means)
    return np.where(ABSENT, effects, SLOPES)


@pytest.mark.parametrize("table", [HOLED, HOLED.to_numpy()])
def test_slopes_and_noise_leave_what_is_missing(table):
    observed = []

    def model(rows):
        observed.append(np.isnan(np.asarray(rows, float)).sum(axis=1))
        return additive(rows)

    function = po.wrap(model, data=table)
    smooth = SmoothGrad(scale=0.3, n_samples=5).explain(function, table)
    np.testing.assert_allclose(smooth.attributions, slopes_and_effects(), rtol=1e-7)
    assert max(map(max, observed)) == ABSENT.sum(axis=1).max()
    result = Gradient().explain(function, table)
    np.testing.assert_allclose(result.attributions, slopes_and_effects(), rtol=1e-8)
    np.testing.assert_array_equal(result.effects, ABSENT)
    scaled = result.scaled([10.0, 100.0, 1000.0])  # effects are not
    sizes = np.where(ABSENT, 1.0, [10.0, 100.0, 1000.0])
    np.testing.assert_array_equal(scaled.attributions, result.attributions * sizes)
    mixed = aggregate(po.GradientMatching(result), [result, result.to_frame() * 2])
    np.testing.assert_allclose(mixed.attributions, result.attributions, rtol=1e-6)


def test_lime_of_missing_numbers_does_not_depend_on_other_rows(monkeypatch):
    function, lime = po.wrap(additive, data=HOLED), Lime(scale=0.5, n_samples=40)
    joint = lime.explain(function, HOLED, rng=3).attributions
    few = lime.explain(function, HOLED.iloc[:9], rng=3).attributions
    np.testing.assert_allclose(few, joint[:9], rtol=1e-12)
    monkeypatch.setattr(perturbations, "PERTURBED_POINTS", Budget(1))
    apart = lime.explain(function, HOLED, rng=3).attributions
    np.testing.assert_allclose(apart, joint, rtol=1e-12)
    empty = HOLED.assign(weight=np.nan)
    result = lime.explain(po.wrap(additive, data=empty), empty)
    np.testing.assert_array_equal(result.attributions[:, 2], 0.0)


def test_a_baseline_of_missing_numbers_and_categories():
    def model(table):
        redness = 3.0 * (table["colour"] == "red").to_numpy()
        return additive(table[HOLED.columns]) + redness

    function = po.wrap(model, data=COLOURED)
    effects = 3.0 * (COLOURED["colour"].notna() - COLOURED["colour"].notna().mean())
    expected = np.column_stack([slopes_and_effects(), effects])
    result = Gradient().explain(function, COLOURED).attributions
    np.testing.assert_allclose(result, expected, rtol=1e-8)
    lime = Lime(scale=0.5, n_samples=4000).explain(function, COLOURED)
    scores = (lime.attributions - expected) / np.maximum(lime.standard_errors, 1e-9)
    assert np.abs(scores).max() <= 5.0  # false alarm 7e-5 over 120 scores
    # without a table effects are refused with the cure
    for method in (Gradient(), Lime(scale=0.5)):
        with pytest.raises(InvalidInput, match=r"wrap\(model, data=X_train\)"):
            method.explain(po.wrap(additive), HOLED)
    complete = HOLED.fillna(0.0)
    for rows, table, name in ((HOLED, complete, "X"), (complete, HOLED, "background")):
        message = rf"^lime_package: {name} has missing numbers in 'age', .*Lime does"
        with pytest.raises(InvalidInput, match=message):
            LimePackage(n_samples=20, background=table).explain(po.wrap(additive), rows)


def test_shap_values_per_unit_stay_effects_where_a_number_is_missing():
    function = po.wrap(additive)
    plain = Shap(background="mean").explain(function, HOLED)
    result = Shap(background="mean", units="gradient").explain(function, HOLED)
    expected = np.where(ABSENT, plain.attributions, SLOPES)
    np.testing.assert_allclose(result.attributions, expected, rtol=1e-9)
    np.testing.assert_array_equal(result.details["undefined"], 0.0)
    base = additive(HOLED.mean().to_numpy()[None])[0]
    np.testing.assert_allclose(plain.base_value, base)


@pytest.fixture
def candidates(X):
    methods = Gradient(), SmoothGrad(scale=0.5), SmoothGrad(scale=1.5), Lime(scale=2.0)
    return [explainer.explain(Power(3), X) for explainer in methods]


MIXED = [
    PairwiseRobustness(complete_graph(6)),
    Sparsity(),
    MaxDifferenceRobustness(complete_graph(6)),
    MaxDifferenceRobustness(complete_graph(6), norm="linf"),
]


@pytest.mark.parametrize("other", MIXED)
def test_no_mixture_beats_the_aggregate_which_is_what_it_says(other, X, candidates):
    objective = GradientMatching(Power(3).gradient(X)) + 0.5 * other
    best = aggregate(objective, candidates)
    stack = np.array([part.attributions for part in candidates])
    rivals = np.random.default_rng(0).dirichlet(np.ones(4), size=500)
    rivals = [*np.tensordot(rivals, stack, axes=1), *stack]
    assert best.objective <= min(map(objective.value, rivals)) * (1 + 1e-8)
    shares = best.details["shares"]
    assert (shares >= 0).all()
    assert shares.sum() == pytest.approx(1)
    np.testing.assert_allclose(best.attributions, np.tensordot(shares, stack, axes=1))
    assert best.losses == objective.breakdown(best.attributions)


def test_the_aggregate_does_not_depend_on_units(X, candidates):
    gradients, graph = Power(3).gradient(X), complete_graph(len(X))
    found = []
    for unit in (1.0, 1e-6, 1e6):
        objective = GradientMatching(unit * gradients) + PairwiseRobustness(graph)
        scaled = [unit * part.attributions for part in candidates]
        found.append(aggregate(objective, scaled).details["shares"])
    np.testing.assert_allclose(found[1:], [found[0]] * 2, atol=1e-6)
    # what is best already is kept
    best = aggregate(GradientMatching(gradients), candidates)
    np.testing.assert_array_equal(best.details["shares"], [1, 0, 0, 0])


def test_a_mixture_has_the_units_that_all_have_and_the_calls_of_all():
    def made(units: str, evaluations: int) -> Explanation:
        W, fields = np.ones((2, 2)), {"units": units, "evaluations": evaluations}
        return Explanation(attributions=evaluations * W, method="some", **fields)

    objective = GradientMatching(np.full((2, 2), 1.5))
    alike = aggregate(objective, [made("gradient", 1), made("gradient", 2)])
    assert (alike.units, alike.evaluations) == ("gradient", 3)
    with pytest.raises(InvalidInput, match=r"'gradient' \(some\) and 'output'"):
        aggregate(objective, [made("gradient", 1), made("output", 2)])
    known = GradientMatching(np.full((2, 2), 1.5), units="output")
    assert aggregate(known, [made("output", 1), np.ones((2, 2))]).units == "output"
