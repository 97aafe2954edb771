"""Fits in workers: the same numbers by any number of them; what comes of failures."""

import joblib
import numpy as np
import pytest
from dask_workers import workers_of_dask
from minipatch_cases import Once, Quick, fitted, many, small_table
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from threadpoolctl import ThreadpoolController

from propopt.base import terminal
from propopt.base.errors import InvalidInput, SolverFailure
from propopt.base.resources import Budget
from propopt.interactions import Minipatches, fitting
from propopt.interactions.refits import set_scores


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch):
    """Several chunks also of few patches."""
    monkeypatch.setattr(fitting, "CHUNKS", Budget(2**25, n_rows=64))


def are_equal(one, other):
    """Predictions, scores and their errors have the same bits."""
    assert one.predictions.tobytes() == other.predictions.tobytes()
    pairs = one.features.all_sets(2)
    mine, theirs = set_scores(one, pairs), set_scores(other, pairs)
    for name in ("scores", "standard_errors", "monte_carlo", "counts"):
        assert mine[name].tobytes() == theirs[name].tobytes()


X, Y = small_table()
NEW, TARGET = small_table(15, seed=9)
LEARNER = DecisionTreeRegressor(max_features=1)  # it draws, too


@pytest.mark.parametrize(
    "workers", [pytest.param("joblib", marks=pytest.mark.slow), "dask"]
)
def test_any_workers_give_the_same_digits(workers):
    alone = fitted(many(), X, Y, LEARNER)
    if workers == "dask":
        pytest.importorskip("distributed")
        with workers_of_dask(processes=False):
            are_equal(alone, fitted(many(), X, Y, LEARNER))
        return
    are_equal(alone, fitted(many(), X, Y, LEARNER, n_jobs=2))
    with joblib.parallel_config("threading", n_jobs=2):
        are_equal(alone, fitted(many(), X, Y, LEARNER))
    other = fitted(many(), X, Y, LEARNER, seed=1)
    assert (other.predictions != alone.predictions).any()


class Threads(Quick):
    """Predicts how many threads of BLAS there are."""

    def predict(self, X):
        infos = ThreadpoolController().info()
        number = max(x["num_threads"] for x in infos if x["user_api"] == "blas")
        return np.full(len(X), float(number))


def test_learners_have_one_thread_of_blas_and_a_bar_counts_patches(capsys, monkeypatch):
    # on a slow machine a line would say how long it takes
    monkeypatch.setattr(terminal, "_MEASURED_SECONDS", np.inf)
    with ThreadpoolController().limit(limits=2):
        source = fitted(many(150), X, Y, Threads(), order=1, progress=False)
    assert set(np.unique(source.predictions)) == {0.0, 1.0}
    assert capsys.readouterr().err == ""
    fitted(many(150), X, Y, order=1, progress=True)
    message = capsys.readouterr().err
    assert "minipatches" in message
    assert "150/150" in message


def test_learners_that_fail_tell_their_patch(tmp_path):
    with pytest.raises(ValueError, match="max_depth") as caught:
        fitted(many(), X, Y, DecisionTreeRegressor(max_depth=-1))
    assert any("while fitting patch 0" in note for note in caught.value.__notes__)
    with pytest.raises(InvalidInput, match="finite number") as caught:
        fitted(many(), X, Y, Once(str(tmp_path), "nan", after=5))
    assert any("while fitting patch 5, of 20 rows" in n for n in caught.value.__notes__)
    (folder := tmp_path / "other").mkdir()
    with pytest.raises(ArithmeticError, match="no solution") as caught:
        fitted(many(), X, Y, Once(str(folder), "raise"), n_jobs=2)
    assert any("while fitting patch" in note for note in caught.value.__notes__)


class Counted(Quick):
    """Counts how often it is sent."""

    sent = 0

    def __getstate__(self):
        Counted.sent += 1
        return super().__getstate__()


@pytest.mark.slow  # it starts a cluster of processes
def test_dask_gets_the_table_once():
    pytest.importorskip("distributed")
    alone = fitted(many(), X, Y, Counted())
    Counted.sent = 0
    with workers_of_dask():
        are_equal(alone, fitted(many(), X, Y, Counted()))
    assert 1 <= Counted.sent <= 3  # and not with each of the parts


@pytest.mark.slow
def test_a_worker_of_dask_that_is_killed_loses_nothing(tmp_path):
    pytest.importorskip("distributed")
    for name in ("killed", "alone"):
        (tmp_path / name).mkdir()
    alone = fitted(many(), X, Y, Once(str(tmp_path / "alone")))
    learner = Once(str(tmp_path / "killed"), "kill", after=250)
    with workers_of_dask():
        are_equal(alone, fitted(many(), X, Y, learner))
    names = [path.name for path in (tmp_path / "killed").iterdir()]
    assert sum(name.endswith("-250") for name in names) >= 1  # it was killed there
    assert len(names) > 500  # and patches of its chunk were fitted again


@pytest.mark.parametrize("folder", [None, "kept"])
def test_a_worker_that_is_killed_says_what_keeps_what_is_finished(
    tmp_path, monkeypatch, folder
):
    def killed(*_):
        raise SolverFailure("a worker was killed")
        yield

    monkeypatch.setattr(fitting.resources, "in_workers", killed)
    saved_in = folder and tmp_path / folder
    retained = (
        f"finished patches are in {saved_in}" if saved_in else r"Minipatches\(folder="
    )
    with pytest.raises(SolverFailure, match=f"a worker was killed; {retained}"):
        fitted(many(folder=saved_in), X, Y)


@pytest.mark.parametrize("after", [10, 70])  # in the first chunk; too few patches
@pytest.mark.filterwarnings("ignore::propopt.base.errors.InterruptedWarning")
@pytest.mark.filterwarnings("ignore::propopt.base.errors.ImpreciseWarning")
def test_an_interruption_is_one_where_too_little_was_finished(tmp_path, after):
    with pytest.raises(KeyboardInterrupt):
        fitted(many(n_features=4), X, Y, Once(str(tmp_path), "interrupt", after))


@pytest.fixture(scope="module")
def retained():
    return fitted(many(keep=True), X, Y, LEARNER)


def test_predictions_are_those_of_the_learners_at_rows_that_they_did_not_see(retained):
    patches = retained.patches
    for b in (0, 63, 64, 499):
        rows, columns = patches.rows[b], np.flatnonzero(patches.features[b])
        reference = DecisionTreeRegressor(
            max_features=1, random_state=int(patches.seeds[b])
        )
        reference.fit(X[np.ix_(rows, columns)], Y[rows])
        expected = reference.predict(X[:, columns])
        assert_array_equal(retained.predictors[b](X), expected)
        expected[rows] = 0.0
        assert_array_equal(retained.predictions[b, :, 0], expected)


@pytest.mark.parametrize("sets", [np.zeros((1, 0), int), [[2]], [[0, 1], [2, 5]]])
def test_judged_on_new_rows_each_mean_is_over_all_patches_without_the_set(
    retained, sets
):
    predictions = np.array([predict(NEW) for predict in retained.predictors])
    assert len(predictions) == 500
    judged = retained.evaluate_on(NEW, TARGET)
    result = judged.errors(np.asarray(sets))
    for k, one in enumerate(np.asarray(sets)):
        absent = ~retained.patches.features[:, one].any(axis=1)
        errors = (TARGET - predictions[absent].mean(axis=0)) ** 2
        assert_allclose(result.rows[:, k], errors, rtol=1e-11)
        assert result.counts[k] == absent.sum()
    assert judged.row_weights.tolist() == [1.0] * 15


def test_patches_without_features_are_fitted_too():
    scheme = Minipatches(rows=20, n_features=1, n_patches=800)
    with pytest.warns(match="patches are few"):
        source = fitted(scheme, X, Y)
    (b, *_) = np.flatnonzero(~source.patches.features.any(axis=1))
    mean = Y[source.patches.rows[b]].mean()
    out = source.patches.out[b]
    assert_allclose(source.predictions[b, out, 0], mean, rtol=1e-13)
    with pytest.raises(InvalidInput, match=r"fit with Minipatches\(keep=True\)"):
        source.evaluate_on(X, Y)


def test_classes_that_a_patch_has_not_seen_have_probability_zero():
    labels = (Y > 0).astype(int)
    labels[:2] = 2  # two rows, which most patches do not see
    names = np.array(["a", "b", "c"])[labels]
    source = fitted(many(keep=True), X, names, DecisionTreeClassifier())
    probabilities = np.mean([p(X) for p in source.predictors], axis=0)
    assert probabilities.shape == (90, 3)
    assert_allclose(probabilities.sum(axis=1), 1.0, rtol=1e-12)
    blind = [b for b in range(500) if not np.isin([0, 1], source.patches.rows[b]).any()]
    assert 0 < len(blind) < 500
    assert (source.predictors[blind[0]](X)[:, 2] == 0.0).all()
    assert (source.predictions[blind, 0, 0] == 0.0).all()
