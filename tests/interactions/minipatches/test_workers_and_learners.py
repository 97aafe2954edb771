"""Fits in workers: the same numbers by any number of them; what comes of failures."""

import joblib
import numpy as np
import pytest
from dask_workers import workers_of_dask
from minipatch_cases import Once, Quick, fitted, many, small_table
from sklearn.ensemble import RandomForestClassifier
from sklearn.neural_network import MLPRegressor
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from threadpoolctl import ThreadpoolController

from propopt.base.errors import InterruptedWarning, InvalidInput, SolverFailure
from propopt.base.resources import Budget
from propopt.interactions import Minipatches, fitting
from propopt.interactions.left_out import set_scores


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch):
    """Several chunks also of few patches."""
    monkeypatch.setattr(fitting, "CHUNKS", Budget(2**25, n_rows=64))


def alike(one, other):
    """Predictions, scores and their errors have the same bits."""
    assert one.predictions.tobytes() == other.predictions.tobytes()
    pairs = one.features.all_sets(2)
    mine, theirs = set_scores(one, pairs), set_scores(other, pairs)
    for name in ("estimates", "standard_errors", "monte_carlo", "counts"):
        assert mine[name].tobytes() == theirs[name].tobytes()


LEARNER = DecisionTreeRegressor(max_features=1)  # it draws, too


@pytest.mark.slow
def test_any_number_of_workers_gives_the_same_digits():
    X, y = small_table()
    alone = fitted(many(), X, y, LEARNER)
    alike(alone, fitted(many(), X, y, LEARNER, n_jobs=2))
    with joblib.parallel_config("threading", n_jobs=2):
        alike(alone, fitted(many(), X, y, LEARNER))
    other = fitted(many(), X, y, LEARNER, seed=1)
    assert (other.predictions != alone.predictions).any()


def test_workers_of_dask_give_the_same_digits():
    pytest.importorskip("distributed")
    X, y = small_table()
    alone = fitted(many(), X, y, LEARNER)
    with workers_of_dask(processes=False):
        alike(alone, fitted(many(), X, y, LEARNER))


@pytest.mark.slow
def test_a_worker_of_dask_that_is_killed_loses_nothing(tmp_path):
    pytest.importorskip("distributed")
    X, y = small_table()
    for name in ("killed", "alone"):
        (tmp_path / name).mkdir()
    alone = fitted(many(), X, y, Once(str(tmp_path / "alone")))
    learner = Once(str(tmp_path / "killed"), "kill", after=250)
    with workers_of_dask():
        alike(alone, fitted(many(), X, y, learner))
    names = [path.name for path in (tmp_path / "killed").iterdir()]
    assert sum(name.endswith("-250") for name in names) >= 1  # it was killed there
    assert len(names) > 500  # and patches of its chunk were fitted again


def test_predictions_are_those_of_the_learners_at_rows_that_they_did_not_see():
    X, y = small_table()
    source = fitted(many(), X, y, LEARNER)
    patches = source.patches
    for b in (0, 63, 64, 499):
        rows, columns = patches.rows[b], np.flatnonzero(patches.features[b])
        learner = DecisionTreeRegressor(
            max_features=1, random_state=int(patches.seeds[b])
        ).fit(X[np.ix_(rows, columns)], y[rows])
        expected = learner.predict(X[:, columns])
        expected[rows] = 0.0
        np.testing.assert_array_equal(source.predictions[b, :, 0], expected)


class Threads(Quick):
    """Predicts how many threads of BLAS there are."""

    def predict(self, X):
        infos = ThreadpoolController().info()
        number = max(x["num_threads"] for x in infos if x["user_api"] == "blas")
        return np.full(len(X), float(number))


def test_learners_have_one_thread_of_blas_wherever_they_are_fitted():
    X, y = small_table()
    with ThreadpoolController().limit(limits=2):
        source = fitted(many(150), X, y, Threads(), order=1)
    assert set(np.unique(source.predictions)) == {0.0, 1.0}


def test_a_bar_counts_patches(capsys):
    X, y = small_table()
    fitted(many(150), X, y, order=1, progress=True)
    told = capsys.readouterr().err
    assert "minipatches" in told
    assert "150/150" in told
    fitted(many(150), X, y, order=1)
    assert capsys.readouterr().err == ""


def test_patches_without_features_are_fitted_too():
    X, y = small_table()
    scheme = many(n_features=1, columns="bernoulli", n_patches=800)
    with pytest.warns(match="patches are few"):
        source = fitted(scheme, X, y)
    (b, *_) = np.flatnonzero(~source.patches.features.any(axis=1))
    out = source.patches.out[b]
    mean = y[source.patches.rows[b]].mean()
    np.testing.assert_allclose(source.predictions[b, out, 0], mean, rtol=1e-13)


def test_parameters_that_the_learner_refuses_are_refused():
    X, y = small_table()
    with pytest.raises(ValueError, match="max_depth") as caught:
        fitted(many(), X, y, DecisionTreeRegressor(max_depth=-1))
    assert any("while fitting patch 0" in note for note in caught.value.__notes__)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_the_patch_in_which_a_learner_fails_is_told(tmp_path, n_jobs):
    X, y = small_table()
    learner = Once(str(tmp_path), "raise")
    with pytest.raises(ArithmeticError, match="no solution") as caught:
        fitted(many(), X, y, learner, n_jobs=n_jobs)
    assert any("while fitting patch" in note for note in caught.value.__notes__)


def test_predictions_that_are_no_numbers_are_refused(tmp_path):
    X, y = small_table()
    with pytest.raises(InvalidInput, match="numbers that are not finite") as caught:
        fitted(many(), X, y, Once(str(tmp_path), "nan", after=3))
    assert any("while fitting patch 3, of 20 rows" in n for n in caught.value.__notes__)


@pytest.mark.slow
def test_a_worker_that_is_killed_is_told_and_what_is_finished_is_kept(tmp_path):
    X, y = small_table()
    marks, kept = tmp_path / "marks", tmp_path / "kept"
    marks.mkdir()
    learner = Once(str(marks), "kill")
    told = (
        r"a worker was killed .* need less; Minipatches\(folder=\.\.\.\) keeps what is"
    )
    with pytest.raises(SolverFailure, match=told):
        fitted(many(), X, y, learner, n_jobs=2)
    for path in marks.iterdir():
        path.unlink()
    learner = Once(str(marks), "kill", after=450, seconds=0.002)
    with pytest.raises(
        SolverFailure, match=f"need less; what is finished is in {kept}"
    ):
        fitted(many(folder=kept), X, y, learner, n_jobs=2)
    before = len(list(marks.iterdir()))
    again = fitted(many(folder=kept), X, y, learner, n_jobs=2)
    assert len(list(marks.iterdir())) - before < 500  # some were there
    alike(again, fitted(many(), X, y, learner))


@pytest.mark.parametrize("folder", [None, "kept"])
def test_a_worker_that_is_killed_says_what_keeps_what_is_finished(
    tmp_path, monkeypatch, folder
):
    def killed(*_):
        raise SolverFailure("a worker was killed")
        yield

    monkeypatch.setattr(fitting, "in_workers", killed)
    place = folder and tmp_path / folder
    kept = (
        r"Minipatches\(folder=" if place is None else f"what is finished is in {place}"
    )
    X, y = small_table()
    with pytest.raises(SolverFailure, match=f"a worker was killed; {kept}"):
        fitted(many(folder=place), X, y)


def test_what_was_finished_before_an_interruption_is_the_result(tmp_path):
    X, y = small_table()
    folders = [tmp_path / name for name in ("whole", "half")]
    for folder in folders:
        folder.mkdir()
    whole = fitted(many(575), X, y, Once(str(folders[0])))
    with pytest.warns(InterruptedWarning, match="575 of 640 patches are fitted"):
        half = fitted(many(640), X, y, Once(str(folders[1]), "interrupt", after=600))
    alike(whole, half)


@pytest.mark.parametrize("after", [10, 70])  # in the first chunk; too few patches
@pytest.mark.filterwarnings("ignore::propopt.base.errors.InterruptedWarning")
@pytest.mark.filterwarnings("ignore::propopt.base.errors.FewPatchesWarning")
def test_an_interruption_is_one_where_too_little_was_finished(tmp_path, after):
    X, y = small_table()
    learner = Once(str(tmp_path), "interrupt", after)
    with pytest.raises(KeyboardInterrupt):
        fitted(many(n_features=4), X, y, learner)


# ---- learners that are kept


def test_the_whole_predictor_is_the_mean_of_all_patches():
    X, y = small_table()
    source = fitted(many(keep=True), X, y, LEARNER)
    new = small_table(15, seed=9)[0]
    predictions = [predict(new) for predict in source.predictors]
    assert len(predictions) == 500
    np.testing.assert_allclose(
        source.predict(new), np.mean(predictions, axis=0), rtol=1e-13
    )


def test_kept_learners_predicted_what_the_scores_are_made_of():
    X, y = small_table()
    source = fitted(many(keep=True), X, y, LEARNER)
    for b in (0, 300):
        out = source.patches.out[b]
        again = source.predictors[b](X)[out]
        np.testing.assert_array_equal(source.predictions[b, out, 0], again)


@pytest.mark.parametrize("sets", [np.zeros((1, 0), int), [[2]], [[0, 1], [2, 5]]])
def test_judged_on_new_rows_each_mean_is_over_all_patches_without_the_set(sets):
    X, y = small_table()
    source = fitted(many(keep=True), X, y, LEARNER)
    new, target = small_table(15, seed=9)
    judged = source.judged_on(new, target)
    result = judged.errors(np.asarray(sets))
    for k, own in enumerate(np.asarray(sets)):
        absent = ~source.patches.features[:, own].any(axis=1)
        mean = np.mean(
            [source.predictors[b](new) for b in np.flatnonzero(absent)], axis=0
        )
        np.testing.assert_allclose(result.rows[:, k], (target - mean) ** 2, rtol=1e-11)
        assert result.counts[k] == absent.sum()
    assert judged.row_weights.tolist() == [1.0] * 15


def test_learners_that_are_not_kept_are_asked_for():
    X, y = small_table()
    source = fitted(many(), X, y)
    for ask in (lambda: source.predict(X), lambda: source.judged_on(X, y)):
        with pytest.raises(InvalidInput, match=r"fit with Minipatches\(keep=True\)"):
            ask()


def test_classes_that_a_patch_has_not_seen_have_probability_zero():
    X, y = small_table()
    labels = (y > 0).astype(int)
    labels[:2] = 2  # two rows, which most patches do not see
    names = np.array(["a", "b", "c"])[labels]
    source = fitted(many(keep=True), X, names, DecisionTreeClassifier())
    probabilities = source.predict(X)
    assert probabilities.shape == (90, 3)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0, rtol=1e-12)
    observed = np.isin([0, 1], source.patches.rows.T[:, 0]).any()
    blind = [b for b in range(500) if not np.isin([0, 1], source.patches.rows[b]).any()]
    assert not observed or blind
    assert (source.predictors[blind[0]](X)[:, 2] == 0.0).all()
    assert (source.predictions[blind, 0, 0] == 0.0).all()


def test_stratified_patches_see_each_class():
    X, y = small_table()
    labels = (y > 0).astype(int)
    labels[:4] = 2
    scheme = many(row_sampling="stratified", rows=30)
    source = fitted(scheme, X, labels, DecisionTreeClassifier())
    in_patches = labels[source.patches.rows]
    assert all((in_patches == k).any(axis=1).all() for k in range(3))


@pytest.mark.slow
@pytest.mark.parametrize(
    "learner",
    [MLPRegressor(hidden_layer_sizes=(8,), max_iter=20), "forest"],
    ids=["network", "forest"],
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_learners_that_draw_and_use_threads_give_the_same_digits(learner):
    X, y = small_table()
    scheme = Minipatches(n_patches=120, rows=30, n_groups=4)
    if learner == "forest":
        learner, y = RandomForestClassifier(5, n_jobs=2), (y > 0).astype(int)
    with pytest.warns(match="patches are few"):
        runs = [fitted(scheme, X, y, learner, n_jobs=n) for n in (1, 2)]
    alike(*runs)
