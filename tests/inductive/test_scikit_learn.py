"""The inductive explainer as an estimator: what it takes, keeps and refuses."""

import pickle

import joblib
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from refusals import refused
from sklearn.base import is_regressor
from sklearn.exceptions import NotFittedError
from sklearn.gaussian_process import kernels
from sklearn.metrics import r2_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import parametrize_with_checks

import propopt as po
from propopt import inductive
from propopt.base.errors import InvalidInput, MissingPatternsWarning
from propopt.functions import Sine
from propopt.inductive import GaussianProcessExplainer, GreedyVariance, bases


ESTIMATORS = [
    GaussianProcessExplainer(),
    GaussianProcessExplainer(0.1, mean="common", inducing=GreedyVariance(20)),
]


def fit(*arguments, gradients=None, function=None, **settings):
    explainer = GaussianProcessExplainer(**settings)
    return explainer.fit(*arguments, gradients=gradients, function=function)


@pytest.mark.filterwarnings(
    "default"
)  # the checks give other warnings than they expect
@parametrize_with_checks(ESTIMATORS)
def test_scikit_learns_own_checks(estimator, check):
    check(estimator)


X = np.random.default_rng(3).uniform(-2, 2, size=(60, 2))
FRAME, G = pd.DataFrame(X, columns=["a", "b"]), Sine().gradient(X)


def test_it_is_a_regressor_of_tables_whose_predictions_are_attributions():
    tags = get_tags(GaussianProcessExplainer())
    assert is_regressor(GaussianProcessExplainer())
    assert tags.target_tags.multi_output
    assert not tags.target_tags.single_output
    assert tags.target_tags.required
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


def test_steps_may_come_before_it():
    pipeline = make_pipeline(StandardScaler(), GaussianProcessExplainer(0.1))
    scaled = GaussianProcessExplainer(0.1, scale="std").fit(X, G).predict(X)
    np.testing.assert_allclose(pipeline.fit(X, G).predict(X), scaled, rtol=1e-9)


def test_memory_mapped_or_pickled_it_answers_the_same(tmp_path):
    # LAPACK writes where there are up to 32
    explainer = GaussianProcessExplainer(0.1).fit(X[:20], G[:20])
    joblib.dump(explainer, tmp_path / "explainer.joblib")
    mapped = joblib.load(tmp_path / "explainer.joblib", mmap_mode="r")
    np.testing.assert_array_equal(mapped.predict(X), explainer.predict(X))
    np.testing.assert_array_equal(mapped.predict(X[:1]), explainer.predict(X[:1]))
    copy = pickle.loads(pickle.dumps(explainer))
    one, other = (
        item.sample(X[:3], 2, random_state=np.random.RandomState(1))
        for item in (copy, explainer)
    )
    np.testing.assert_array_equal(one, other)


# ---- tables
def test_names_that_are_not_all_text_are_those_of_attributions_alone():
    table = pd.DataFrame(X, columns=["a", 1])
    explainer = GaussianProcessExplainer(0.1).fit(table, G)
    assert not hasattr(explainer, "feature_names_in_")
    assert explainer.explain(table).labels.features == ("a", "1")
    plain = GaussianProcessExplainer(0.1).fit(X, G)
    np.testing.assert_array_equal(explainer.predict(table), plain.predict(X))


@pytest.mark.parametrize(
    ("library", "kind"), [("polars", "DataFrame"), ("pyarrow", "table")]
)
def test_tables_of_other_libraries_are_fitted_and_predicted(library, kind):
    table = getattr(pytest.importorskip(library), kind)({"a": X[:, 0], "b": X[:, 1]})
    explainer = GaussianProcessExplainer(0.1).fit(table, G)
    assert list(explainer.feature_names_in_) == ["a", "b"]
    plain = GaussianProcessExplainer(0.1).fit(X, G)
    np.testing.assert_array_equal(explainer.predict(table), plain.predict(X))


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
def test_random_states_of_either_kind_decide(kind):
    rule = po.inductive.RandomInputs(5)

    def chosen(random_state: object) -> np.ndarray:
        explainer = GaussianProcessExplainer(inducing=rule, random_state=random_state)
        return explainer.fit(X, G).inducing_inputs_

    np.testing.assert_array_equal(chosen(kind(3)), chosen(kind(3)))
    assert not np.array_equal(chosen(kind(3)), chosen(kind(4)))
    np.testing.assert_array_equal(chosen(None), chosen(0))


# ---- arguments: names, tables, categories
def test_names_are_kept_and_files_read_back(rng, tmp_path):
    names = ["age", "height"]
    X = pd.DataFrame(rng.normal(size=(6, 2)), columns=names)
    new = pd.DataFrame(rng.normal(size=(2, 2)), columns=names, index=["a", "b"])
    explainer = GaussianProcessExplainer().fit(X, function=Sine())
    best = explainer.explain(new, return_std=True, gradients=Sine())
    frame = best.to_frame()
    assert list(frame.columns) == names
    assert list(frame.index) == ["a", "b"]
    best.save(tmp_path / "best")
    assert po.results.Explanation.load(tmp_path / "best").parameters == best.parameters
    assert list(explainer.explain(new.to_numpy()).to_frame().columns) == names
    # function and gradients are the same
    by_gradients = GaussianProcessExplainer().fit(X, Sine().gradient(X))
    other = by_gradients.explain(new, gradients=Sine().gradient(new))
    np.testing.assert_array_equal(best.attributions, other.attributions)
    # a graph without edges smooths nothing
    one, new = rng.normal(size=(6, 1)), rng.normal(size=(2, 1))
    alone, without = (
        explainer.fit(one, one).explain(new).attributions
        for explainer in (
            GaussianProcessExplainer(0.1, 5.0, features=po.graphs.chain_graph(1)),
            GaussianProcessExplainer(0.1),
        )
    )
    np.testing.assert_array_equal(alone, without)


# ---- tables, explained where their schema puts them
def test_tables_with_categories_are_explained_where_their_schema_puts_them(rng):
    table = pd.DataFrame(
        {
            "age": rng.normal(40, 10, 50),
            "bill": rng.gamma(2, 20, 50),
            "plan": rng.choice(["a", "b", "c"], 50),
        },
        index=[f"c{n}" for n in range(50)],
    )
    function = po.wrap(
        lambda t: t["age"] ** 2 / 40 + 3 * (t["plan"] == "b"), data=table
    )
    given, new = table.iloc[:40], table.iloc[40:]
    explainer = GaussianProcessExplainer(0.1, scale="std", lengthscale=1.0)
    result = explainer.fit(given, function=function).explain(new, return_std=True)
    assert list(explainer.feature_names_in_) == ["age", "bill", "plan"]
    assert list(result.to_frame().columns) == ["age", "bill", "plan"]
    np.testing.assert_array_equal(explainer.predict(new), result.attributions)
    assert list(result.to_frame().index) == list(new.index)
    schema = function.schema
    coordinates, others = (schema.coordinates(t, "std") for t in (given, new))
    plain = GaussianProcessExplainer(0.1, lengthscale=1.0)
    G = function.gradient(given).to_numpy()
    columns = [
        # one feature at a time: without smoothness they do not meet
        plain.fit(coordinates, np.tile(G[:, [j]], coordinates.shape[1])).explain(others)
        for j in range(3)
    ]
    expected = np.column_stack([c.attributions[:, 0] for c in columns])
    np.testing.assert_allclose(result.attributions, expected, rtol=1e-10)
    # with hardly any robustness the variance before is so large that E(x) is G
    explainer.set_params(robustness=1e-6).fit(given, function=function)
    result, G = explainer.explain(new, gradients=function), function.gradient(new)
    error = np.abs(result.to_frame() - G).to_numpy()
    assert (error <= 1e-4 * np.abs(G).to_numpy().max()).all()


def test_columns_are_divided_by_their_scale_and_read_by_name(rng):
    X, new, G = rng.normal(size=(3, 30, 2)) * [1.0, 50.0]
    sizes = X.std(axis=0)
    scaled = fit(X, G, robustness=0.1, scale="std").explain(new)
    by_hand = fit(X / sizes, G, robustness=0.1).explain(new / sizes)
    np.testing.assert_allclose(scaled.attributions, by_hand.attributions, rtol=1e-12)
    X, G = (pd.DataFrame(a, columns=list("abc")) for a in rng.normal(size=(2, 9, 3)))
    expected, result = (
        fit(X, g, lengthscale=1.0).explain(X, gradients=g).attributions
        for g in (G, G.iloc[::-1][["c", "a", "b"]])
    )
    np.testing.assert_array_equal(result, expected)


# ---- missing numbers are refused with the cure
COMPLETE = pd.DataFrame({"a": [0.0, 1.0, 2.0], "b": [1.0, 0.0, 3.0]})
HOLED = COMPLETE.mask(COMPLETE == 0.0)
CURE = r"in 2 of 3 rows, .*SimpleImputer\(add_indicator=True\), or use po\.Explainer"


def test_missing_numbers_are_refused_with_the_cure():
    explainer = GaussianProcessExplainer(lengthscale=1.0)
    explainer.fit(COMPLETE, np.ones((3, 2)))
    with pytest.raises(
        InvalidInput, match=r"^X_new: numbers are missing .NaN. " + CURE
    ):
        explainer.explain(HOLED)
    function = po.wrap(lambda t: t["a"].fillna(0) + t["b"].fillna(0) ** 2, data=HOLED)
    with pytest.raises(InvalidInput, match=CURE):
        explainer.fit(HOLED, function=function)
    # which works
    cured = po.Explainer(function, data=HOLED, robustness=0.5, kind="slopes")
    with pytest.warns(MissingPatternsWarning):  # each row misses other columns
        cured.fit(HOLED)
    assert np.isfinite(cured.explain(HOLED.iloc[:2]).attributions).all()


# ---- refusals, and in which words
NAMES = {**vars(inductive), **vars(bases), **vars(kernels), "Sine": Sine, "fit": fit}
NAMES |= {"np": np, "pd": pd, "po": po, "sp": sp}


@pytest.mark.parametrize(("call", "words"), refused(__file__, NAMES))
def test_what_cannot_be_used_is_refused(call, words):
    with pytest.raises((InvalidInput, NotFittedError), match=words):
        call()
