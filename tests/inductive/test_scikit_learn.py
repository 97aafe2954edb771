"""The inductive explainer among the estimators of scikit-learn."""

import pickle

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.base import is_regressor
from sklearn.metrics import r2_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import parametrize_with_checks

import propopt as po
from propopt.functions import Sine
from propopt.inductive import GaussianProcessExplainer, GreedyVariance


ESTIMATORS = [
    GaussianProcessExplainer(),
    GaussianProcessExplainer(0.1, mean="common", inducing=GreedyVariance(20)),
]


@pytest.mark.filterwarnings(
    "default"
)  # the checks give other warnings than they expect
@parametrize_with_checks(ESTIMATORS)
def test_scikit_learns_own_checks(estimator, check):
    check(estimator)


@pytest.fixture
def waves(rng):
    X = rng.uniform(-2, 2, size=(60, 2))
    return X, Sine().gradient(X)


def test_it_is_a_regressor_of_tables_whose_predictions_are_attributions(waves):
    tags = get_tags(GaussianProcessExplainer())
    assert is_regressor(GaussianProcessExplainer())
    assert tags.target_tags.multi_output
    assert not tags.target_tags.single_output
    assert tags.target_tags.required
    X, G = waves
    explainer = GaussianProcessExplainer(1e-3).fit(X[:40], G[:40])
    predicted = explainer.predict(X[40:])
    expected = explainer.explain(X[40:]).attributions
    np.testing.assert_array_equal(predicted, expected, strict=True)
    score = explainer.score(X[40:], G[40:])
    assert score == r2_score(G[40:], expected) > 0.9
    predicted[:] = 0.0  # an array of the user's own
    assert explainer.predict(X[40:]).all()
    # gradients are targets under either name
    explainer.fit(X[:40], gradients=G[:40])
    np.testing.assert_array_equal(explainer.predict(X[40:]), expected)


def test_steps_may_come_before_it(waves):
    X, G = waves
    pipeline = make_pipeline(StandardScaler(), GaussianProcessExplainer(0.1))
    scaled = GaussianProcessExplainer(0.1, scale="std").fit(X, G).predict(X)
    np.testing.assert_allclose(pipeline.fit(X, G).predict(X), scaled, rtol=1e-9)


def test_memory_mapped_or_pickled_it_answers_the_same(waves, tmp_path):
    X, G = (table[:20] for table in waves)  # LAPACK writes where there are up to 32
    explainer = GaussianProcessExplainer(0.1).fit(X, G)
    joblib.dump(explainer, tmp_path / "explainer.joblib")
    mapped = joblib.load(tmp_path / "explainer.joblib", mmap_mode="r")
    np.testing.assert_array_equal(mapped.predict(X), explainer.predict(X))
    np.testing.assert_array_equal(mapped.predict(X[:1]), explainer.predict(X[:1]))
    copy = pickle.loads(pickle.dumps(explainer))
    one, other = (
        own.sample(X[:3], 2, random_state=np.random.RandomState(1))
        for own in (copy, explainer)
    )
    np.testing.assert_array_equal(one, other)


# ---- tables


def test_names_that_are_not_all_text_are_those_of_attributions_alone(waves):
    X, G = waves
    table = pd.DataFrame(X, columns=["a", 1])
    explainer = GaussianProcessExplainer(0.1).fit(table, G)
    assert not hasattr(explainer, "feature_names_in_")
    assert explainer.explain(table).labels.features == ("a", "1")
    plain = GaussianProcessExplainer(0.1).fit(X, G)
    np.testing.assert_array_equal(explainer.predict(table), plain.predict(X))


@pytest.mark.parametrize(
    ("library", "kind"), [("polars", "DataFrame"), ("pyarrow", "table")]
)
def test_tables_of_other_libraries_are_fitted_and_predicted(library, kind, waves):
    X, G = waves
    table = getattr(pytest.importorskip(library), kind)({"a": X[:, 0], "b": X[:, 1]})
    explainer = GaussianProcessExplainer(0.1).fit(table, G)
    assert list(explainer.feature_names_in_) == ["a", "b"]
    plain = GaussianProcessExplainer(0.1).fit(X, G)
    np.testing.assert_array_equal(explainer.predict(table), plain.predict(X))


def fit(*arguments, **settings):
    return GaussianProcessExplainer().fit(*arguments, **settings)


X = np.random.default_rng(3).uniform(-2, 2, size=(60, 2))
FRAME, G = pd.DataFrame(X, columns=["a", "b"]), Sine().gradient(X)


# ---- targets that are not those of the columns


def test_targets_of_other_things_than_columns_are_explained_one_by_one():
    Y = np.column_stack([X.sum(axis=1), np.sin(X[:, 0]), X[:, 1] ** 2])
    settings = {"robustness": 0.1, "lengthscale": 1.0}
    explainer = GaussianProcessExplainer(**settings).fit(X, Y)
    assert explainer.n_features_in_ == 2
    assert explainer.predict(X[:5]).shape == (5, 3)
    for j, y in enumerate(Y.T):
        alone = GaussianProcessExplainer(**settings).fit(X, y[:, None])
        np.testing.assert_allclose(
            explainer.predict(X)[:, j], alone.predict(X)[:, 0], rtol=1e-9, atol=1e-12
        )
    named = pd.DataFrame(Y, columns=["u", "v", "w"])
    assert list(fit(FRAME, named).explain(FRAME).to_frame().columns) == ["u", "v", "w"]
    assert fit(FRAME, pd.DataFrame(Y)).explain(FRAME).labels.features is None


# ---- chance


@pytest.mark.parametrize("kind", [np.random.RandomState, np.random.default_rng])
def test_random_states_of_either_kind_decide(kind, waves):
    X, G = waves
    rule = po.inductive.RandomInputs(5)

    def chosen(random_state: object) -> np.ndarray:
        explainer = GaussianProcessExplainer(inducing=rule, random_state=random_state)
        return explainer.fit(X, G).inducing_inputs_

    np.testing.assert_array_equal(chosen(kind(3)), chosen(kind(3)))
    assert not np.array_equal(chosen(kind(3)), chosen(kind(4)))
    np.testing.assert_array_equal(chosen(None), chosen(0))
