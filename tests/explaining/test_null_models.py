"""Refits: other samples of as many rows, other seeds, the same learner."""

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import propopt as po
from propopt.explaining.null_models import bootstrap_refits


N = 60


@pytest.fixture
def table(rng):
    X = pd.DataFrame(rng.normal(size=(N, 3)), columns=list("abc"))
    return X, X["a"] + 0.1 * pd.Series(rng.normal(size=N))


def seeds_of(model):
    """The seeds of an estimator and its parts, by name."""
    return {k: v for k, v in model.get_params().items() if "seed" in k or "state" in k}


class Recorder(LinearRegression):
    """A linear model with seeds, and the rows that it was fitted to."""

    def __init__(self, random_state=None, bagging_seed=None, seeded="no"):
        super().__init__()
        self.random_state = random_state
        self.bagging_seed = bagging_seed
        self.seeded = seeded

    def fit(self, X, y):
        self.rows = X.index.tolist()
        return super().fit(X, y)


def test_refits_have_as_many_rows_drawn_again_and_seeds_of_their_own(table):
    X, y = table
    learner = Recorder(random_state=3).fit(X, y)
    models = bootstrap_refits(learner, X, y)
    assert len(models) == 10
    for model in models:
        assert len(model.rows) == N
        assert 0.5 * N < len({*model.rows}) < 0.78 * N
        kept = LinearRegression().fit(X.loc[model.rows], y[model.rows])
        np.testing.assert_allclose(model.coef_, kept.coef_)
    for name in ("random_state", "bagging_seed"):
        assert len({getattr(model, name) for model in models}) == 10
    assert {model.seeded for model in models} == {"no"}
    assert learner.random_state == 3
    assert len({*learner.rows}) == N
    again = bootstrap_refits(learner, X, y, rng=0)
    assert [m.get_params() for m in again] == [m.get_params() for m in models]


def test_seeds_of_steps_and_of_other_libraries_are_drawn(table):
    X, y = table
    lightgbm = pytest.importorskip("lightgbm").LGBMRegressor
    xgboost = pytest.importorskip("xgboost").XGBRegressor
    catboost = pytest.importorskip("catboost").CatBoostRegressor
    quiet = {"iterations": 2, "verbose": 0}
    forest = make_pipeline(StandardScaler(), RandomForestRegressor(2, random_state=1))
    seeded = [
        (forest, "randomforestregressor__random_state"),
        (lightgbm(n_estimators=2, verbose=-1, seed=1), "random_state seed"),
        (xgboost(n_estimators=2), "random_state"),
        (catboost(**quiet), "random_seed"),
        (catboost(random_state=1, **quiet), "random_state"),
        (
            make_pipeline(StandardScaler(), catboost(**quiet)),
            "catboostregressor__random_seed",
        ),
    ]
    for learner, names in seeded:
        one, other = map(seeds_of, bootstrap_refits(learner, X, y, times=2))
        assert sorted(one) == names.split()
        assert all(one[name] != other[name] for name in one)


def test_every_class_is_in_every_sample_of_a_classifier(rng):
    X = rng.normal(size=(N, 2))
    y = np.array(["rare", *["often"] * (N - 1)])
    models = bootstrap_refits(RandomForestClassifier(2), X, y)
    assert {len(model.classes_) for model in models} == {2}


def test_functions_that_fit_are_learners(table):
    X, y = table
    models = bootstrap_refits(lambda X, y: (len(X), y.name), X, y.rename("y"), times=3)
    assert models == [(N, "y")] * 3


def test_a_model_that_cannot_be_fitted_is_refused(table):
    X, y = table
    with pytest.raises(po.errors.InvalidInput, match=r"learner: .* got str"):
        bootstrap_refits("forest", X, y)
    with pytest.raises(po.errors.InvalidInput, match=r"got 60 and 59"):
        bootstrap_refits(LinearRegression(), X, y[:-1])
