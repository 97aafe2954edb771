"""What all baselines have in common; SmoothGrad and LIME by noise; mixtures; optima."""

import json
from functools import cache

import numpy as np
import pandas as pd
import pytest
from baseline_checks import Recorded, Z, worst_z
from refusals import refusals
from sklearn.linear_model import LinearRegression, Ridge

import propopt as po
from propopt.base.errors import InvalidInput, Refused
from propopt.base.resources import Budget
from propopt.explaining.explainers import (
    Gradient,
    Lime,
    LimePackage,
    Shap,
    SmoothGrad,
    aggregate,
)
from propopt.functions import PAPER_FUNCTIONS, Function, Power, Sine, wrap
from propopt.functions.formulas import PaperFormula
from propopt.laws import perturbations
from propopt.losses import (
    GradientMatching,
    MaxDifferenceRobustness,
    PairwiseRobustness,
    Sparsity,
)
from propopt.losses.graphs import grid
from propopt.losses.graphs.points import complete_graph
from propopt.results.explanation import Explanation


SAMPLED = [SmoothGrad(scale=0.1, n_samples=50), Lime(scale=0.1, n_samples=50)]
FRAME = pd.DataFrame([[1.0, 2.0], [3.0, 4.0]], index=["a", "b"], columns=["u", "v"])


POINTS = np.random.default_rng(7).normal(size=(6, 3))


@pytest.fixture
def X():
    return POINTS


def test_the_result_tells_how_it_was_made_in_plain_values(X):
    settings = {"scale": np.float64(0.5), "n_samples": np.int64(20)}
    result = Lime(**settings, kernel_width=2.0).explain(Sine(), X)
    assert result.method == "lime"
    parameters = json.loads(json.dumps(result.parameters))
    assert parameters.items() >= {"scale": 0.5, "n_samples": 20}.items()
    assert result.seconds > 0


def test_tables_of_text_have_the_digest_of_what_they_say():
    """Not of where their strings stand in memory."""
    one, other, third = (
        pd.DataFrame({"k": ["".join(["a", end]) for end in "xyz" + last]}, dtype=object)
        for last in ("a", "a", "b")
    )
    first, second, changed = (
        po.explainers.ExactShap(data=table).parameters["data"]
        for table in (one, other, third)
    )
    assert first == second != changed


ROWS = np.tile(np.random.default_rng(12).normal(size=(40, 3)), 2)
ORDER = {"algorithm": "permutation", "n_permutations": 1}
DRAWN = [*SAMPLED, LimePackage(n_samples=100, data=ROWS), Shap(data=ROWS, **ORDER)]
PRODUCT = wrap(lambda points: np.asarray(points).prod(axis=1))


@pytest.mark.parametrize("explainer", DRAWN, ids=lambda e: e.method)
def test_the_seed_and_the_rows_before_decide_what_is_drawn(explainer):
    if explainer.method == "lime_package":
        pytest.importorskip("lime")
    points = np.random.default_rng(11).normal(size=(5, 6))

    def explained(points, **settings):
        return explainer.explain(PRODUCT, points, **settings).attributions

    before = np.random.get_state(legacy=False)  # noqa: NPY002  # the one under test
    once = explained(points)
    after = np.random.get_state(legacy=False)  # noqa: NPY002  # the one under test
    np.testing.assert_equal(after, before)
    np.testing.assert_array_equal(explained(points, rng=0), once)
    assert (explained(points, rng=1) != once).any()
    rng = np.random.default_rng(0)
    assert (explained(points, rng=rng) != explained(points, rng=rng)).any()
    for rows in (points[:2], np.vstack([points[:2], points[2:] + 1])):
        np.testing.assert_allclose(explained(rows)[:2], once[:2], rtol=1e-12)


def sine(points, rng=0):
    return Gradient().explain(Sine(), points, rng=rng)


def lime_of_sine(**settings):
    return Lime(**{"scale": 1.0, **settings}).explain(Sine(), POINTS)


@pytest.mark.parametrize(("line", "message"), refusals(__file__, "baselines"))
def test_what_is_none_is_refused(line, message):
    with pytest.raises((InvalidInput, Refused), match=message):
        eval(line)


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


def test_a_baseline_of_missing_numbers_and_categories():
    def model(table):
        redness = 3.0 * (table["colour"] == "red").to_numpy()
        return additive(table[HOLED.columns]) + redness

    function = po.wrap(model, data=COLOURED)
    effects = 3.0 * (COLOURED["colour"].notna() - COLOURED["colour"].notna().mean())
    expected = np.column_stack([slopes_and_effects(), effects])
    result = Gradient().explain(function, COLOURED).attributions
    np.testing.assert_allclose(result, expected, rtol=1e-8)
    with pytest.raises(InvalidInput, match=r"added to numbers, .* 'age'"):
        Lime(scale=0.5).explain(function, COLOURED)


def test_shap_values_per_unit_stay_effects_where_a_number_is_missing():
    function = po.wrap(additive)
    plain = Shap(data="mean").explain(function, HOLED)
    result = Shap(data="mean", units="gradient").explain(function, HOLED)
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
    MaxDifferenceRobustness(complete_graph(6), "sum"),
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
    result = []
    for unit in (1.0, 1e-6, 1e6):
        objective = GradientMatching(unit * gradients) + PairwiseRobustness(graph)
        scaled = [unit * part.attributions for part in candidates]
        result.append(aggregate(objective, scaled).details["shares"])
    np.testing.assert_allclose(result[1:], [result[0]] * 2, atol=1e-6)
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
    with pytest.raises(InvalidInput, match=r"in 'gradient', .* in 'output'"):
        aggregate(objective, [made("gradient", 1), made("output", 2)])
    expected = GradientMatching(np.full((2, 2), 1.5), units="output")
    assert aggregate(expected, [made("output", 1), np.ones((2, 2))]).units == "output"


CURVED = PaperFormula("exponential")


def test_smoothgrad_and_its_error_are_the_mean_and_its_error(X):
    result = SmoothGrad(scale=0.5, n_samples=50).explain(Sine(), X, rng=3)
    draws = 0.5 * np.random.default_rng(3).standard_normal((6, 50, 3))
    gradients = np.cos(X[:, None] + draws)
    errors = gradients.std(axis=1, ddof=1) / np.sqrt(50)
    np.testing.assert_allclose(result.attributions, gradients.mean(axis=1))
    np.testing.assert_allclose(result.standard_errors, errors)
    line = SmoothGrad(scale=3.0, n_samples=5).explain(Power(1), X)
    np.testing.assert_allclose(line.attributions, 1.0)
    np.testing.assert_allclose(line.standard_errors, 0.0, atol=1e-15)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("kernel_width", [None, 0.8])
@pytest.mark.parametrize("ridge", [0.0, 2.5])
def test_lime_equals_scikit_learn_at_every_point(fit_intercept, kernel_width, ridge, X):
    settings = {"kernel_width": kernel_width, "ridge": ridge}
    lime = Lime(scale=0.5, n_samples=60, fit_intercept=fit_intercept, **settings)
    result = lime.explain(CURVED, X)
    draws = np.random.default_rng(0).standard_normal((len(X), 60, X.shape[1]))
    model = Ridge(ridge, fit_intercept=fit_intercept)
    model = model if ridge else LinearRegression(fit_intercept=fit_intercept)
    for n, copies in enumerate(X[:, None] + 0.5 * draws):
        squares = ((copies - X[n]) ** 2).sum(axis=1)
        weights = np.exp(-squares / (2 * (kernel_width or np.inf) ** 2))
        values = CURVED.value(copies)
        model.fit(copies, values, sample_weight=weights)
        np.testing.assert_allclose(result.attributions[n], model.coef_, rtol=1e-8)
        expected = {
            "intercept": model.intercept_,
            "r2": model.score(copies, values, weights),
            "effective_samples": weights.sum() ** 2 / (weights @ weights),
        }
        explanation = {name: array[n] for name, array in result.details.items()}
        assert explanation == pytest.approx(expected, rel=1e-8)


def test_lime_has_closed_forms_of_lines_and_cubes(X):
    for scale in (1e-5, 1e-2, 1.0):
        lime = Lime(scale=scale, n_samples=50)
        result = lime.explain(Power(1), 100 + X).attributions
        # f is known to 300 ε, which a step of δ turns into an error of 300 ε / δ.
        rounding = 3000 * np.finfo(float).eps / scale
        np.testing.assert_allclose(result, 1.0, rtol=1e-12, atol=rounding)
    x = np.array([[-2.0], [0.0], [0.5], [3.0]])
    lime = Lime(scale=0.3, n_samples=20_000, fit_intercept=False)
    truth = (x**4 + 6 * x**2 * 0.3**2 + 3 * 0.3**4) / (x**2 + 0.3**2)
    result = lime.explain(Power(3), x)
    assert worst_z(result, truth) < Z
    np.testing.assert_array_equal(result.details["intercept"], 0.0)


def test_the_r2_of_a_constant_function_is_one(X):
    for height in (0.0, 0.1, -1e9, 1e-300):
        function = wrap(lambda points, h=height: np.full(len(points), h))
        result = Lime(scale=0.1, kernel_width=0.2).explain(function, X)
        np.testing.assert_allclose(result.attributions, 0, atol=1e-13 * abs(height))
        np.testing.assert_array_equal(result.details["r2"], 1.0)


def test_blocks_stay_within_their_budget_and_change_nothing(X, monkeypatch):
    noise, function = {"scale": 0.5, "n_samples": 40}, Recorded()
    monkeypatch.setattr(perturbations, "PERTURBED_POINTS", Budget(8 * 3 * 13))
    explainers = SmoothGrad(**noise), Lime(**noise, kernel_width=0.7)
    blocked = [explainer.explain(Sine(), X) for explainer in explainers]
    explainers[0].explain(function, X)
    assert max(rows for rows, _ in function.shapes) == 13
    assert sum(rows for rows, _ in function.shapes) == 6 * 40
    monkeypatch.undo()
    for explainer, parts in zip(explainers, blocked, strict=True):
        whole = explainer.explain(Sine(), X)
        for name in ("attributions", "standard_errors"):
            one, other = getattr(parts, name), getattr(whole, name)
            np.testing.assert_allclose(one, other, rtol=1e-10)
        for name, detail in whole.details.items():
            np.testing.assert_allclose(parts.details[name], detail, rtol=1e-8)


def test_a_fit_that_is_just_determined_is_made(X):
    Lime(scale=0.1, n_samples=4).explain(Sine(), X)
    Lime(scale=0.1, n_samples=3, fit_intercept=False).explain(Sine(), X)
    Lime(scale=0.1, n_samples=1, ridge=1.0).explain(Sine(), X)


def paper_function(name: str) -> Function:
    return PAPER_FUNCTIONS[name](3) if name == "power" else PAPER_FUNCTIONS[name]()


@cache
def baselines(name: str) -> tuple[np.ndarray, np.ndarray, list[po.results.Explanation]]:
    function = paper_function(name)
    X = grid(-2, 2, 4, 2)
    made = [Gradient().explain(function, X)]
    for scale in (1e-3, 0.1, 0.5, 1.0, 3.0):
        own = {"scale": scale, "n_samples": 200}
        rivals = [SmoothGrad(**own), Lime(**own), Lime(**own, fit_intercept=False)]
        made += [rival.explain(function, X) for rival in rivals]
    return X, function.gradient(X), made


def objectives(X: np.ndarray, G: np.ndarray, values: np.ndarray):
    gradient = po.GradientMatching(G)
    graph = po.graphs.gaussian_graph(X)
    near = po.graphs.knn_graph(X, 3)
    return {
        "pairwise": gradient + po.PairwiseRobustness(graph),
        "sparsity": gradient + po.Sparsity(),
        "max": gradient + po.losses.MaxDifferenceRobustness(near),
        "function": po.losses.FunctionMatching(X, values)
        + po.PairwiseRobustness(graph),
    }


@pytest.mark.sampled(8)
@pytest.mark.parametrize("kind", ["pairwise", "sparsity", "max", "function"])
@pytest.mark.parametrize("name", PAPER_FUNCTIONS)
def test_no_baseline_beats_the_optimum(name, kind):
    X, G, made = baselines(name)
    objective = objectives(X, G, paper_function(name).value(X))[kind]
    last = list(objective.weights)[-1]
    for weight in (1e-2, 1.0, 1e2):
        weighed = objective.with_weights({last: weight})
        best = po.solve(weighed)
        assert best.certificate.holds(1e-6)
        optimum = best.certificate.value - best.gap * best.certificate.scale
        for rival in [*made, aggregate(weighed, made[:6])]:
            assert weighed.value(rival.attributions) >= optimum * (1 - 1e-12)
