"""The jump test: right about 24 models, asked once, and honest where it cannot know."""

import warnings
from importlib.util import find_spec

import numpy as np
import pandas as pd
import pytest
from differentiated import jump_test
from estimators import sk
from quiet_boosters import booster
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process.kernels import RBF
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.tree import DecisionTreeRegressor

import propopt as po
from propopt.base.errors import FlatFunctionWarning, InvalidInput, JumpsWarning
from propopt.functions.jumps import FEWEST, MOST, Jumps, Segments, jumps_along


def tables():
    """Three tables of scikit-learn and one generated: standardized, two classes."""
    rng = np.random.default_rng(3)
    generated = rng.normal(size=(300, 6))
    score = generated[:, 0] + generated[:, 1] * generated[:, 2] + rng.normal(size=300)
    diabetes, cancer, wine = (
        load(return_X_y=True) for load in (load_diabetes, load_breast_cancer, load_wine)
    )
    raw = {
        "diabetes": (diabetes[0], diabetes[1] > 140),
        "cancer": cancer,
        "wine": (wine[0], wine[1] == 0),
        "generated": (generated, score > 0),
    }
    scaled = sk.StandardScaler().fit_transform
    return {
        name: (scaled(X)[:300], np.asarray(y)[:300]) for name, (X, y) in raw.items()
    }


def probability(model):
    return lambda X: model.predict_proba(X)[:, 1]


def network(activation, X, y):
    model = sk.MLPClassifier((20, 10), activation, max_iter=100, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(X, y)


def in_single(model):
    """The scores of a perceptron, computed in single precision."""
    weights = [W.astype(np.float32) for W in model.coefs_]
    offsets = [b.astype(np.float32) for b in model.intercepts_]

    def evaluate(X):
        Z = X.astype(np.float32)
        for W, b in zip(weights[:-1], offsets[:-1], strict=True):
            Z = np.tanh(Z @ W + b)
        return (Z @ weights[-1] + offsets[-1])[:, 0]

    return evaluate


def smooth_models(X, y):
    logistic = sk.LogisticRegression().fit(X, y)
    process = sk.GaussianProcessClassifier(2.0 * RBF(3.0), optimizer=None)
    tanh = network("tanh", X, y)
    quadratic = make_pipeline(sk.PolynomialFeatures(2), sk.Ridge()).fit(X, 1.0 * y)
    return {
        "logistic": probability(logistic),
        "margin": logistic.decision_function,
        "tanh": probability(tanh),
        "relu": probability(network("relu", X, y)),
        "float32": in_single(tanh),
        "svc": sk.SVC(gamma="scale").fit(X, y).decision_function,
        "narrow svc": sk.SVC(gamma=5.0 / X.shape[1]).fit(X, y).decision_function,
        "process": probability(process.fit(X[::4], y[::4])),
        "kernel ridge": sk.KernelRidge(kernel="rbf", gamma=0.1).fit(X, 1.0 * y).predict,
        "quadratic": quadratic.predict,
    }


def noisy(X, y):
    """A logistic regression, with noise of 1e-3 that is the same for the same row."""
    clean = probability(sk.LogisticRegression().fit(X, y))

    def evaluate(Z):
        hashed = np.sin(1e6 * Z).sum(axis=1) * 43758.5453
        return clean(Z) + 1e-3 * (hashed - np.floor(hashed) - 0.5)

    return evaluate


def jumping_models(X, y, boosters):
    forest = sk.RandomForestClassifier(50, min_samples_leaf=3, random_state=0).fit(X, y)
    logistic = sk.LogisticRegression().fit(X, y)
    members = [("forest", forest), ("logistic", sk.LogisticRegression())]

    def vote(weights):
        return sk.VotingClassifier(members, voting="soft", weights=weights).fit(X, y)

    bins = sk.KBinsDiscretizer(8, strategy="uniform")
    binned = make_pipeline(bins, sk.LogisticRegression())
    fitted = {
        "forest": forest,
        "extra trees": sk.ExtraTreesClassifier(50, random_state=0).fit(X, y),
        "gradient boosting": sk.GradientBoostingClassifier(random_state=0).fit(X, y),
        "neighbors": sk.KNeighborsClassifier(9).fit(X, y),
        "vote": vote([0.5, 0.5]),
        "vote of a tenth": vote([0.1, 0.9]),
        "stack": sk.StackingClassifier(members, sk.LogisticRegression(), cv=2).fit(
            X, y
        ),
        "bins": binned.fit(X, y),
        **{name: kind.fit(X, y) for name, kind in boosters.items()},
    }
    return {name: probability(model) for name, model in fitted.items()} | {
        "lambda": lambda Z: np.log1p(forest.predict_proba(Z)[:, 1]) + 0.1 * Z[:, 0],
        "rounded": lambda Z: np.round(logistic.predict_proba(Z)[:, 1], 2),
        "noise": noisy(X, y),
    }


def boosters():
    """Those of packages, where they are installed, and scikit-learn's."""
    results = {
        "histogram": sk.HistGradientBoostingClassifier(max_iter=60, random_state=0)
    }
    for name in filter(find_spec, ("lightgbm", "xgboost")):
        results[name] = booster(name, "Classifier", n_estimators=60)
    return results


X = np.random.default_rng(2).normal(size=(40, 3))


def jumping(P):
    return np.round(P).sum(axis=1) + P[:, 0]


def smooth(P):
    return np.sin(P).sum(axis=1)


def assert_all_known(X, y, seeds):
    """Smooth models have J ≤ 0.03, those that jump J ≥ 0.06, and 0.05 is between."""
    for seed in seeds:
        for name, model in smooth_models(X, y).items():
            result = jump_test(po.wrap(model), X, rng=seed)
            assert result.kind == "smooth", (name, result)
            assert result.J <= 0.03, (name, result)
        for name, model in jumping_models(X, y, boosters()).items():
            result = jump_test(po.wrap(model), X, rng=seed)
            assert result.kind == "jumps", (name, result)
            assert result.J >= 0.06, (name, result)


def test_smooth_models_are_told_from_those_that_jump():
    assert_all_known(*tables()["generated"], seeds=[0])


@pytest.mark.slow
@pytest.mark.parametrize("table", tables().values(), ids=tables())
def test_models_of_real_tables_are_told_apart_whatever_the_seed(table):
    assert_all_known(*table, seeds=range(5))


def test_the_evaluations_are_those_that_are_counted():
    for model, expected in ((smooth, FEWEST), (jumping, MOST + 128)):
        function = po.wrap(model)
        result = jump_test(function, X)
        assert result.evaluations == expected
        assert function.calls.rows == 0
        assert function.calls.trials == expected + 6  # that it answers twice alike


def test_waves_constants_and_offsets():
    result = jump_test(po.wrap(lambda P: np.sin(25.0 * P).sum(axis=1)), X)
    assert result.kind == "strongly curved"  # a wave is smooth between more nodes
    assert result.J <= 0.05
    assert result.evaluations == MOST
    for constant in (lambda P: np.ones(len(P)), lambda P: 1.0 + 1e-16 * P[:, 0]):
        result = jump_test(po.wrap(constant), X)
        assert (result.kind, result.evaluations) == ("constant", FEWEST)
        assert np.isnan(result.J)
        assert "no verdict" in result.in_words()
    single = po.wrap(lambda P: (100.0 + smooth(P)).astype(np.float32))
    assert jump_test(single, X).kind == "smooth"
    drowned = po.wrap(lambda P: (1e5 + smooth(P)).astype(np.float32))
    assert jump_test(drowned, X).kind == "constant"  # its change is lost in rounding
    assert "100 %" in Jumps("jumps", 2.43, 5376).in_words()


def test_a_model_is_tested_once_before_its_first_gradient():
    function = po.wrap(smooth)
    assert function.jumps is None
    function.value(X)
    assert function.jumps is None
    gradient = function.gradient(X)  # without a word, as warnings are errors
    np.testing.assert_allclose(gradient, np.cos(X), atol=1e-8)
    first = function.jumps
    assert first.kind == "smooth"
    trials = function.calls.trials
    function.gradient(X[:5])
    assert function.jumps is first
    assert function.calls.trials == trials
    assert function.jumps_at(X) is first


@pytest.mark.parametrize("data", [None, pd.DataFrame(X)])
def test_a_model_that_jumps_is_warned_of_once(data):
    function = po.wrap(lambda table: jumping(np.asarray(table)), data=data)
    rows = X if data is None else data
    with pytest.warns(JumpsWarning, match=r"jumps: its slopes miss .* %") as caught:
        function.gradient(rows)
    assert len(caught) == 1
    assert function.jumps.kind == "jumps"
    function.gradient(rows)  # warnings are errors


def test_verdicts_are_told_before_flatness():
    function = po.wrap(lambda P: np.round(P).sum(axis=1))  # flat besides
    with pytest.warns(FlatFunctionWarning) as caught:
        function.gradient(X)
    assert [type(warning.message) for warning in caught] == [JumpsWarning]


def test_what_is_known_by_hand_or_has_no_rows_to_move_between_is_not_tested():
    for settings in ({"step": 1e-3}, {"gradient": np.ones_like}):
        function = po.wrap(lambda P: P.sum(axis=1), **settings)
        function.gradient(X)
        assert function.jumps_at(X) is None
        assert function.calls.trials <= 12
    for model in (LinearRegression(), DecisionTreeRegressor(max_depth=2)):
        assert po.wrap(model.fit(X, X[:, 0])).jumps_at(X) is None
    assert po.functions.Sine().jumps_at(X) is None

    function = po.wrap(smooth)  # and there is no verdict without rows to move between
    for rows in (X[:1], X[:2], np.repeat(X[:2], 9, axis=0)):
        assert function.jumps_at(rows) is None
    assert function.calls.trials == 0
    assert function.jumps_at(X).kind == "smooth"


def test_only_numbers_of_three_values_move():
    table = pd.DataFrame(
        {
            "x": X[:, 0],
            "two": (X[:, 1] > 0) * 1.0,
            "job": np.where(X[:, 2] > 0, "a", "b"),
        }
    )
    observed = []

    def model(frame):
        observed.append(frame)
        return np.sin(frame["x"]) + (frame["two"] > 0.5) + (frame["job"] == "a")

    assert jump_test(po.wrap(model, data=table), table).kind == "smooth"
    for frame in observed:
        assert set(frame["two"]) <= {0.0, 1.0}
        assert set(frame["job"]) <= {"a", "b"}
    assert not set(pd.concat(observed)["x"]) <= set(table["x"])


def test_a_model_that_draws_anew_is_refused_with_the_difference():
    rng = np.random.default_rng(0)

    def model(P):  # alike where it is asked for few rows, as some that batch are
        return P[:, 0] + (len(P) > 3) * rng.normal(size=len(P))

    with pytest.raises(InvalidInput, match=r"called twice .* returned .* and then"):
        jump_test(po.wrap(model), X)


def test_values_and_rows_that_are_not_finite():
    few = po.wrap(lambda P: np.where(P[:, 0] > 2.0, np.inf, smooth(P)))
    assert few.jumps_at(X).kind == "smooth"  # other segments tell
    holes = X.copy()
    holes[::3, 0] = np.nan

    def model(P):
        return np.where(np.isnan(P[:, 0]), 3.0, np.sin(P[:, 0])) + P[:, 1]

    rng = np.random.default_rng(0)
    segments = Segments.between(holes, np.ones(3, bool), rng)
    assert np.isnan(segments.starts[:, 0]).any()
    assert not np.isnan(segments.ways).any()
    assert jumps_along(model, segments, "model").kind == "smooth"
    assert po.wrap(model).jumps_at(holes).kind == "smooth"
