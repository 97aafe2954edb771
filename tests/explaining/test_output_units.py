"""Explanations in units of the output: they add up, and are nearest to their target."""

import cvxpy as cp
import numpy as np
import pandas as pd
import pytest
from refusals import refusals
from sklearn.ensemble import GradientBoostingClassifier, RandomForestRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVR

import propopt as po
from propopt.base.errors import InvalidInput
from propopt.base.resources import DrawPlan
from propopt.explaining.contributions import ContributionRule
from propopt.explaining.explainers import TreeShap
from propopt.explaining.targets import reference_of


RNG = np.random.default_rng(7)
N = 120
X = pd.DataFrame(
    {
        "a": RNG.normal(size=N),
        "b": RNG.exponential(size=N),
        "c": RNG.integers(0, 5, N).astype(float),
        "flag": (RNG.random(N) < 0.2).astype(float),
        "unused": RNG.normal(size=N),
        "constant": np.full(N, 2.0),
    }
)
Y = X.a * X.b + np.sin(2 * X.c) + 2 * X.flag + 0.1 * RNG.normal(size=N)
USED = ["a", "b", "c", "flag"]


@pytest.fixture(scope="module")
def forest():
    model = RandomForestRegressor(n_estimators=15, max_depth=5, random_state=0)
    return model.fit(X.assign(unused=0.0), Y)  # so that no tree can split on it


@pytest.fixture(scope="module")
def function(forest):
    return po.wrap(forest, data=X)


@pytest.fixture(scope="module")
def smooth():
    """A model that sees some columns only."""
    model = make_pipeline(StandardScaler(), SVR(C=10.0)).fit(X[USED], Y)
    return lambda rows: model.predict(pd.DataFrame(rows, columns=X.columns)[USED])


@pytest.fixture(scope="module")
def sampled(smooth):
    return of(smooth, 40)


def of(model, n_rows=30, data=X, **settings):
    """Explained together, and compared with nothing but each other."""
    columns = po.functions.TableSchema.of(X).coordinates(X[:n_rows])
    settings = {
        "graph": po.graphs.knn_graph(columns, 8),
        "offset": None,
        "robustness": 0.1,
        "progress": False,
        **settings,
    }
    return po.explain(model, X[:n_rows], data=data, **settings)


def test_rows_add_up_and_are_nearest_to_exact_shapley_values(forest):
    best = of(forest, 60, robustness="knee")
    np.testing.assert_array_equal(best.prediction, forest.predict(X[:60]))
    total = best.prediction - best.base_value
    for parts in (best.attributions, best.contributions):
        np.testing.assert_allclose(parts.sum(axis=1), total, rtol=0, atol=1e-12)
    assert np.abs(best.additivity_error).max() <= 1e-12
    assert best.units == "output"
    assert best.gap <= 1e-9
    assert best.certificate.violation <= 1e-14
    W = best.to_frame()
    assert (W[["unused", "constant"]] == 0.0).all(axis=None)
    assert (W[USED] != 0.0).all(axis=None)
    assert "exact (TreeSHAP, 120 background rows)" in best.parameters.values()
    assert best.sampling_excess == 0.0
    # nothing is left to do for the rest of the roughness at the knee
    left = float(best.details["irreducible.pairwise_robustness"])
    roughness = best.program.losses[1].value_at(best.contributions)
    assert left < best.losses["pairwise_robustness"] < roughness


def test_the_base_is_the_mean_over_the_background(forest, function):
    few = X[:80]
    best = of(forest, data=few, robustness=0.0)
    np.testing.assert_allclose(best.base_value, forest.predict(few).mean())
    shap = TreeShap(data=few).explain(function, X[:30])
    np.testing.assert_allclose(best.contributions, shap.attributions, atol=1e-14)
    np.testing.assert_allclose(best.attributions, best.contributions, atol=1e-13)
    model = GradientBoostingClassifier(n_estimators=20, random_state=0)
    model.fit(X, Y.median() < Y)  # adds up to its margin
    best = of(model)
    sums, margin = best.attributions.sum(axis=1), model.decision_function(X[:30])
    np.testing.assert_allclose(sums + best.base_value, margin, atol=1e-9)
    best = of(lambda table: np.ones(len(table)), 9, robustness=None)
    np.testing.assert_array_equal(best.attributions, np.zeros((9, 6)))


def test_orders_walked_both_ways_are_exact_for_pairs_of_features():
    rows = np.random.default_rng(0).normal(size=(13, 7))
    rows, background = rows[:10], rows[10:]

    def pairs(P):
        return P[:, 0] * P[:, 1] - P[:, 1] * P[:, 2]

    function = po.wrap(pairs)
    reference = reference_of(function, background)
    plan = DrawPlan(6)  # two orders of each row: too few to pay for all sets
    rule = ContributionRule(function=function, reference=reference, draws=plan)
    drawn = rule.of(*function.read(rows))
    exact = po.explainers.Shap(data=background, algorithm="exact")
    exact = exact.explain(function, rows).attributions
    np.testing.assert_allclose(drawn.estimate.values, exact, atol=1e-12)
    assert not drawn.estimate.exact
    assert drawn.estimate.standard_errors.max() <= 1e-12
    sums = drawn.estimate.blocks.mean(axis=0).sum(axis=1)
    np.testing.assert_allclose(sums, drawn.total, atol=1e-12)


def test_a_sampled_target_has_the_errors_of_its_blocks(sampled):
    best = sampled
    assert 0.0 < best.sampling_excess < 0.5
    total = best.prediction - best.base_value
    np.testing.assert_allclose(best.attributions.sum(axis=1), total, atol=1e-12)
    assert (best.attributions[:, 4:] == 0.0).all()
    [matching, robust], [bound] = best.program.losses, best.program.bounds
    # the same bound, as it was given
    kept = po.losses.Completeness(bound.loss.target.ravel(), bound.loss.map.weights)
    optima = [
        po.solve(po.GradientMatching(block) + 0.1 * robust, subject_to=[kept])
        for block in matching.estimate.blocks
    ]
    optima = np.array([optimum.attributions for optimum in optima])
    errors = np.std(optima, axis=0, ddof=1) / np.sqrt(len(optima))
    np.testing.assert_allclose(best.standard_errors, errors, atol=1e-12)
    assert best.target.relation == "about"
    # the squared error of contributions, as a share of their squared size
    blocks = matching.estimate.blocks
    squares = ((blocks - blocks.mean(axis=0)) ** 2).sum() / (10 * 9)
    assert best.target.value == pytest.approx(squares, rel=1e-9)
    size = (best.contributions**2).sum()
    assert best.sampling_excess == pytest.approx(squares / size, rel=1e-9)


def test_slopes_times_steps_are_a_target_that_may_miss_the_total(forest, function):
    best = of(forest, contributions="slopes")
    slopes = (
        po.functions.smoothed(function, law="data", data=X).gradient(X[:30]).to_numpy()
    )
    steps = X[:30].to_numpy() - X.to_numpy().mean(axis=0)
    np.testing.assert_allclose(best.contributions, slopes * steps, atol=1e-12)
    total = best.prediction - best.base_value
    missed = np.linalg.norm(best.contributions.sum(axis=1) - total)
    share = missed / np.linalg.norm(total)
    assert best.parameters["contributions miss"] == pytest.approx(share)
    assert np.abs(best.additivity_error).max() <= 1e-12


def test_attributions_made_elsewhere_bring_their_base(forest, function):
    shap = TreeShap(data=X[:7]).explain(function, X[:30])
    best = of(forest, contributions=shap)
    np.testing.assert_array_equal(best.contributions, shap.attributions)
    np.testing.assert_array_equal(best.base_value, shap.base_value)
    pytest.importorskip("shap")
    again = of(forest, contributions=shap.to_shap())
    np.testing.assert_allclose(again.attributions, best.attributions, atol=1e-12)


@pytest.mark.parametrize(("line", "message"), refusals(__file__, "output units"))
def test_what_cannot_be_is_refused(line, message, forest):
    with pytest.raises(InvalidInput, match=message):
        eval(line, globals() | locals())


def test_the_metric_of_effects_is_the_weighted_program(forest):
    best = of(forest, 20, metric="effects", robustness=0.5)
    phi = best.contributions[:, :4]
    total = best.prediction - best.base_value
    omega = (phi**2).mean(axis=0)
    omega = np.maximum(omega, 1e-6 * omega.max())
    columns = po.functions.TableSchema.of(X).coordinates(X[:20])
    W = cp.Variable(phi.shape)
    scaled = W @ np.diag(omega**-0.5)
    graph = po.graphs.knn_graph(columns, 8)
    objective = cp.sum_squares(scaled - phi @ np.diag(omega**-0.5))
    objective += 0.5 * po.PairwiseRobustness(graph).expression(scaled)
    problem = cp.Problem(cp.Minimize(objective), [cp.sum(W, axis=1) == total])
    names = ("tol_gap_abs", "tol_gap_rel", "tol_feas")
    problem.solve(solver="CLARABEL", **dict.fromkeys(names, 1e-13))
    np.testing.assert_allclose(best.attributions[:, :4], W.value, atol=1e-8)
    assert best.objective == pytest.approx(problem.value, rel=1e-8)
    assert (best.attributions[:, 4:] == 0.0).all()
