"""Explanations in units of the output: they add up, and are nearest to their target."""

import cvxpy as cp
import numpy as np
import pandas as pd
import pytest
from orders import all_orders
from sklearn.ensemble import GradientBoostingClassifier, RandomForestRegressor
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVR

import propopt as po
from propopt.base.errors import InvalidInput
from propopt.explaining.contributions import ContributionRule
from propopt.explaining.explainers import TreeShap
from propopt.explaining.targets import Targets, nearest_explanation, reference_of
from propopt.losses.faithfulness import Estimate


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


class Blind:
    """A model that sees some columns only."""

    def __init__(self, model):
        self.model = model.fit(X[USED], Y)

    def __call__(self, table):
        return self.model.predict(pd.DataFrame(table, columns=X.columns)[USED])


@pytest.fixture(scope="module")
def forest():
    model = RandomForestRegressor(n_estimators=15, max_depth=5, random_state=0)
    return model.fit(X.assign(unused=0.0), Y)  # so that no tree can split on it


@pytest.fixture(scope="module")
def explained(forest):
    return po.explain(forest, X[:60], data=X, units="output", progress=False)


def rows_of(function, table=X):
    return ContributionRule(function=function, reference=reference_of(function, table))


# --- what every such explanation is --------------------------------------------------


def test_rows_add_up_to_the_prediction_less_the_base(explained, forest):
    np.testing.assert_array_equal(explained.prediction, forest.predict(X[:60]))
    total = explained.prediction - explained.base_value
    np.testing.assert_allclose(
        explained.attributions.sum(axis=1), total, rtol=0, atol=1e-12
    )
    assert np.abs(explained.completeness_gap).max() <= 1e-12
    assert explained.units == "output"
    assert explained.gap <= 1e-9
    assert explained.certificate.violation <= 1e-14


def test_columns_that_contribute_nothing_stay_exactly_zero(explained):
    W = explained.to_frame()
    assert (W[["unused", "constant"]] == 0.0).all(axis=None)
    assert (W[USED] != 0.0).all(axis=None)


def test_it_is_nearest_to_exact_shapley_values(explained, forest):
    phi = explained.contributions
    function = po.wrap(forest, data=X)
    base = explained.base_value[0]
    assert "exact (TreeSHAP, 100 background rows)" in explained.parameters.values()
    assert explained.target_error == 0.0
    np.testing.assert_allclose(
        phi.sum(axis=1), function.value(X[:60]) - base, atol=1e-12
    )
    # nothing is left to do for the rest of the roughness at the knee
    left = float(explained.details["irreducible.pairwise_robustness"])
    roughness = explained.program.losses[1].value_at(phi)
    assert left < explained.losses["pairwise_robustness"] < roughness


def test_the_base_is_the_mean_over_the_background(forest):
    few = X[:80]
    best = po.explain(forest, X[:30], data=few, units="output", robustness=0.1)
    wanted = forest.predict(few).mean()
    np.testing.assert_allclose(best.base_value, wanted)
    shap = TreeShap(background=few).explain(po.wrap(forest, data=few), X[:30])
    np.testing.assert_allclose(best.contributions, shap.attributions, atol=1e-14)


def test_without_robustness_it_is_the_target(forest):
    best = po.explain(forest, X[:30], data=X, units="output", robustness=0.0)
    np.testing.assert_allclose(best.attributions, best.contributions, atol=1e-13)


def test_boosted_classifiers_add_up_to_their_margin():
    model = GradientBoostingClassifier(n_estimators=20, random_state=0)
    model.fit(X, Y.median() < Y)
    best = po.explain(model, X[:40], data=X, units="output", robustness=0.2)
    np.testing.assert_allclose(
        best.attributions.sum(axis=1) + best.base_value,
        model.decision_function(X[:40]),
        atol=1e-9,
    )


# --- other targets -------------------------------------------------------------------


def test_of_a_linear_model_drawn_orders_are_exact():
    model = Blind(LinearRegression())
    rule = rows_of(po.wrap(model, data=X), X)
    drawn = rule.of(*rule.function.read(X[:10]))
    # φ_j = β_j (x_j − b_j): draws differ by their background rows alone
    assert drawn.estimate.blocks.shape == (10, 10, X.shape[1])
    assert drawn.estimate.n_draws == 200
    np.testing.assert_allclose(drawn.estimate.values.sum(axis=1), drawn.total)


@pytest.fixture(scope="module")
def smooth():
    return Blind(make_pipeline(StandardScaler(), SVR(C=10.0)))


def test_drawn_orders_estimate_exact_shapley_values(smooth):
    function = po.wrap(smooth, data=X)
    rule = rows_of(function, X[:20])
    drawn = rule.of(*rule.function.read(X[40:60])).estimate
    exact = all_orders(function, X[40:60], X[:20])
    scores = (drawn.values - exact)[:, :4]
    scores /= drawn.standard_errors[:, :4]
    # t with nine degrees of freedom: 80 scores beyond 12 once in 16,000 runs
    assert np.abs(scores).max() <= 12.0
    assert 0.7 <= np.sqrt((scores**2).mean()) <= 1.5
    assert (drawn.values[:, 4:] == 0.0).all()


def test_orders_walked_both_ways_are_exact_for_pairs_of_features():
    table = X[["a", "b", "c"]]
    function = po.wrap(lambda P: P[:, 0] * P[:, 1] - P[:, 1] * P[:, 2], data=None)
    rule = rows_of(function, table[:1].to_numpy())
    drawn = rule.of(*rule.function.read(table[5:15].to_numpy())).estimate
    exact = all_orders(function, table[5:15].to_numpy(), table[:1].to_numpy())
    np.testing.assert_allclose(drawn.values, exact, atol=1e-12)
    assert drawn.standard_errors.max() <= 1e-12


def test_every_block_of_drawn_orders_adds_up(smooth):
    rule = rows_of(po.wrap(smooth, data=X))
    drawn = rule.of(*rule.function.read(X[:10]))
    sums = drawn.estimate.blocks.sum(axis=2)
    np.testing.assert_allclose(sums, np.tile(drawn.total, (10, 1)), atol=1e-12)


def test_a_sampled_target_has_an_error_beside_the_gap(smooth):
    best = po.explain(smooth, X[:40], data=X, units="output", robustness=0.1)
    assert 0.0 < best.target_error < 0.5
    np.testing.assert_allclose(
        best.attributions.sum(axis=1),
        best.prediction - best.base_value,
        atol=1e-12,
    )
    assert (best.attributions[:, 4:] == 0.0).all()


def test_slopes_times_steps_are_a_target_that_may_miss_the_total(forest):
    best = po.explain(
        forest, X[:40], data=X, units="output", contributions="slopes", robustness=0.1
    )
    function = po.smoothed(po.wrap(forest, data=X), law="data", data=X)
    steps = X[:40].to_numpy() - X.to_numpy().mean(axis=0)
    np.testing.assert_allclose(
        best.contributions,
        function.gradient(X[:40]).to_numpy() * steps,
        atol=1e-12,
    )
    missed = best.contributions.sum(axis=1) - (best.prediction - best.base_value)
    total = best.prediction - best.base_value
    assert best.parameters["contributions miss"] == pytest.approx(
        np.linalg.norm(missed) / np.linalg.norm(total)
    )
    assert np.abs(best.completeness_gap).max() <= 1e-12


def test_attributions_made_elsewhere_bring_their_base(forest):
    function = po.wrap(forest, data=X)
    shap = TreeShap(background=X[:7]).explain(function, X[:30])
    best = po.explain(forest, X[:30], units="output", contributions=shap, data=X)
    np.testing.assert_array_equal(best.contributions, shap.attributions)
    np.testing.assert_array_equal(best.base_value, shap.base_value)
    package = pytest.importorskip("shap")
    theirs = package.Explanation(
        values=shap.attributions,
        base_values=float(shap.base_value[0]),
        feature_names=list(X.columns),
    )
    again = po.explain(forest, X[:30], units="output", contributions=theirs, data=X)
    np.testing.assert_allclose(again.attributions, best.attributions, atol=1e-12)


# --- the metric ----------------------------------------------------------------------


def test_the_metric_of_effects_is_the_weighted_program(forest):
    best = po.explain(
        forest, X[:20], data=X, units="output", metric="effects", robustness=0.5
    )
    phi = best.contributions[:, :4]
    total = best.prediction - best.base_value
    omega = (phi**2).mean(axis=0)
    omega = np.maximum(omega, 1e-6 * omega.max())
    columns = po.TableSchema.of(X).coordinates(X[:20])
    W = cp.Variable(phi.shape)
    scaled = W @ np.diag(omega**-0.5)
    graph = po.knn_graph(columns, 8)
    objective = cp.sum_squares(scaled - phi @ np.diag(omega**-0.5))
    objective += 0.5 * po.PairwiseRobustness(graph).expression(scaled)
    problem = cp.Problem(cp.Minimize(objective), [cp.sum(W, axis=1) == total])
    names = ("tol_gap_abs", "tol_gap_rel", "tol_feas")
    problem.solve(solver="CLARABEL", **dict.fromkeys(names, 1e-13))
    np.testing.assert_allclose(best.attributions[:, :4], W.value, atol=1e-8)
    assert best.objective == pytest.approx(problem.value, rel=1e-8)
    assert (best.attributions[:, 4:] == 0.0).all()


def test_strong_pooling_shares_in_proportion_to_the_metric():
    phi = np.array([[1.0, 0.1, 0.0], [3.0, -0.2, 0.0], [-2.0, 0.3, 0.0]])
    known = Targets(
        estimate=Estimate(values=phi.copy(), source="given"),
        base=np.zeros(3),
        prediction=phi.sum(axis=1),
    )
    robust = po.PairwiseRobustness(po.complete_graph(3))
    for metric, omega in [
        ("uniform", np.array([1.0, 1.0])),
        ("effects", (phi**2).mean(axis=0)[:2]),
    ]:
        best = nearest_explanation(known, robust, robustness=1e9, metric=metric)
        W = best.attributions[:, :2]
        wanted = np.diff(known.total)[:, None] * omega / omega.sum()
        np.testing.assert_allclose(np.diff(W, axis=0), wanted, atol=1e-6)
        assert (best.attributions[:, 2] == 0.0).all()


# --- refusals ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"contributions": "lime"}, "contributions: expected 'shapley'"),
        ({"contributions": np.ones((3, 2))}, "contributions: expected the shape"),
        ({"contributions": np.zeros((30, 6))}, "nothing can add up"),
        ({"metric": "l2"}, "metric: expected 'uniform'"),
        ({"units": "gradient"}, "units: expected 'scaled' or 'output'"),
    ],
)
def test_what_cannot_be_is_refused(forest, settings, message):
    with pytest.raises(InvalidInput, match=message):
        po.explain(forest, X[:30], data=X, **{"units": "output", **settings})


def test_a_constant_function_has_nothing_to_share():
    best = po.explain(lambda table: np.ones(len(table)), X[:9], units="output")
    np.testing.assert_array_equal(best.attributions, np.zeros((9, 6)))


def test_errors_of_complete_attributions_are_those_of_the_blocks(smooth):
    best = po.explain(smooth, X[:40], data=X, units="output", robustness=0.1)
    [matching, robust] = best.program.losses
    [bound] = best.program.bounds
    constraint = po.Completeness(
        bound.loss.target.ravel(), bound.loss.map.weights
    )  # the same, as it was given
    optima = [
        po.solve(
            po.GradientMatching(block) + 0.1 * robust, subject_to=[constraint]
        ).attributions
        for block in matching.estimate.blocks
    ]
    errors = np.std(optima, axis=0, ddof=1) / np.sqrt(len(optima))
    np.testing.assert_allclose(best.standard_errors, errors, atol=1e-12)
    assert best.target.relation == "about"
    # F of the mean's optimum, less the optimum, for the target of one block
    apart = np.array(optima) - best.attributions
    excess = sum(np.vdot(d, d) + 0.1 * robust.map.energy(d) for d in apart) / (10 * 9)
    assert best.target.value == pytest.approx(excess, rel=1e-9)
