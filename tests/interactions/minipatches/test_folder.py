"""Runs that go on from a folder: nothing finished is lost, nothing else is believed."""

import os
from dataclasses import replace
from functools import partial
from pathlib import Path
from threading import Lock

import numpy as np
import pandas as pd
import pytest
from command_line import ROOT, python
from minipatch_cases import Once, fitted, many, small_table
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.tree import DecisionTreeClassifier

from propopt.base.errors import InterruptedWarning, InvalidInput, Refused, WriteFailure
from propopt.base.resources import Budget
from propopt.interactions import fitting
from propopt.interactions.fitting import hash_of


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch):
    """Several chunks also of few patches."""
    monkeypatch.setattr(fitting, "CHUNKS", Budget(2**25, n_rows=64))


@pytest.fixture
def patches_folder(tmp_path):
    return tmp_path / "patches"


@pytest.fixture
def marks(tmp_path):
    """A folder in which each fit leaves a file."""
    made = tmp_path / "marks"
    made.mkdir()
    return made


def n_fits(marks):
    """How many fits were made since the last look."""
    files = list(marks.iterdir())
    for file in files:
        file.unlink()
    return len(files)


def predictions(model):
    return np.array(model.predictions)


X, Y = small_table()


@pytest.mark.filterwarnings("ignore:error. absolute errors give")
def test_a_folder_changes_nothing_and_spares_fits_of_the_same_problem(
    patches_folder, marks
):
    learner = Once(str(marks))
    alone = predictions(fitted(many(700), X, Y, learner))
    assert n_fits(marks) == 700
    in_folder = {"order": 1, "error": "absolute"}
    for n_patches, n_new, how in [
        (500, 500, {}),
        (500, 0, in_folder),
        (700, 200, {}),
        (520, 0, {}),
    ]:
        model = fitted(many(n_patches, folder=patches_folder), X, Y, learner, **how)
        assert n_fits(marks) == n_new
        assert predictions(model).tobytes() == alone[:n_patches].tobytes()
    parts = sorted(file.name for file in patches_folder.glob("*/*"))
    assert parts[:3] == ["00000000.npz", "00000001.npz", "00000003.npz"]


def test_an_interrupted_run_goes_on(patches_folder, marks):
    learner = Once(str(marks), "interrupt", 600)
    with pytest.warns(InterruptedWarning, match=r"of 640 .*the same call continues"):
        half = fitted(many(640, folder=patches_folder), X, Y, learner)
    n_fits(marks)
    # of which no file is left, so that fit number 600 is never reached
    again = fitted(
        many(640, folder=patches_folder), X, Y, Once(str(marks), "interrupt", 600)
    )
    assert n_fits(marks) == 640 - 575  # calls end at 1, 3, 7, ..., 63, 127, ..., 575
    alone = fitted(many(640), X, Y, Once(str(marks)))
    assert predictions(again).tobytes() == predictions(alone).tobytes()
    assert predictions(half).tobytes() == predictions(alone)[:575].tobytes()


def test_a_call_fits_as_many_patches_as_take_two_seconds():
    sizes = [1]
    for seconds in (0.1, 0.1, 0.1, 0.1, 0.1, 0.5, 3.0):  # of a patch
        size = sizes[-1]
        sizes.append(fitting.paced(size, 200, size, seconds * size))
    assert sizes == [1, 2, 4, 8, 16, 20, 4, 1]
    missing = np.array([1, 1, 0, 1, 1, 1, 0, 1], dtype=bool)
    parts = fitting.chunks(missing, lambda: 2)
    assert [(one.start, one.stop) for one in parts] == [(0, 2), (3, 5), (5, 6), (7, 8)]


def test_what_was_damaged_is_fitted_again(patches_folder, marks):
    learner = Once(str(marks))
    whole = predictions(fitted(many(folder=patches_folder), X, Y, learner))
    n_fits(marks)
    (folder,) = patches_folder.iterdir()
    part = folder / "00000063.npz"
    data = bytearray(part.read_bytes())
    data[len(data) // 2] ^= 1
    part.write_bytes(data)
    assert (
        predictions(fitted(many(folder=patches_folder), X, Y, learner)) == whole
    ).all()
    assert n_fits(marks) == 64
    os.truncate(folder / "00000191.npz", 2000)
    (folder / "00000255.npz").write_bytes(b"")
    np.savez(folder / "00000319.npz", results=np.zeros((64, 90, 2)), used=[0])
    assert (
        predictions(fitted(many(folder=patches_folder), X, Y, learner)) == whole
    ).all()
    assert n_fits(marks) == 3 * 64


def with_scheme(**changes):
    return lambda s: fitted(replace(s, **changes), X, Y, Ridge())


def brier(labels, probabilities):
    return (probabilities[:, 1] - (labels == "yes")) ** 2


def numbers(table):
    return table.apply(lambda one: one.cat.codes if one.name == "kind" else one)


def with_kinds(*kinds):
    """A learner of a table with a category."""
    frame = pd.DataFrame(X, columns=list("abcdef"))
    frame["kind"] = pd.Categorical(np.where(X[:, 0] > 0, *kinds))
    learner = make_pipeline(FunctionTransformer(numbers), Ridge())
    return lambda s: fitted(s, frame, Y, learner, order=1)


LABELS = np.where(Y > 0, "yes", "no")
PROBLEMS = [
    lambda s: fitted(s, X, Y, Ridge()),
    lambda s: fitted(s, X + 1e-12, Y, Ridge()),
    lambda s: fitted(s, X, 1.001 * Y, Ridge()),
    lambda s: fitted(s, X, Y, Ridge(2)),
    lambda s: fitted(s, X, Y, Ridge(), seed=1),
    lambda s: fitted(s, pd.DataFrame(X), Y, Ridge()),
    lambda s: fitted(s, X, Y, Ridge(), sample_weight=np.ones(90)),
    lambda s: fitted(s, X, Y, Ridge(), groups={"ab": [0, 1]}, order=1),
    with_scheme(rows=21),
    with_scheme(n_features=2),
    lambda s: fitted(s, X, LABELS, DecisionTreeClassifier()),
    lambda s: fitted(s, X, LABELS, DecisionTreeClassifier(), error=brier),
    with_kinds("x", "z"),
    with_kinds("x", "y"),
]


@pytest.mark.filterwarnings("ignore::propopt.base.errors.ImpreciseWarning")
def test_each_problem_has_its_own_folder(patches_folder):
    for count, problem in enumerate(PROBLEMS, start=1):
        for _ in range(2):  # the second call finds the folder of the first
            problem(many(100, folder=patches_folder))
        assert len(list(patches_folder.iterdir())) == count


def cycle():
    reference: dict = {}
    reference["own"] = reference
    return reference


@pytest.mark.parametrize("part", [Lock(), cycle()])
def test_learners_that_cannot_be_told_apart_are_refused(patches_folder, part):
    learner = make_pipeline(FunctionTransformer(kw_args={"a": part}), Ridge())
    with pytest.raises(
        InvalidInput, match="a part of the learner or the table cannot be pickled"
    ):
        fitted(many(folder=patches_folder), X, Y, learner)


def scaled(factor):
    return lambda table: factor * table


SAME = [
    lambda: make_pipeline(FunctionTransformer(scaled(2.0)), Ridge()),
    lambda: make_pipeline(FunctionTransformer(partial(np.clip, a_min=0)), Ridge()),
    lambda: GridSearchCV(Ridge(), {"alpha": [1, 2]}, cv=KFold(3)),
    lambda: GaussianProcessRegressor(RBF(2.0) + RBF(np.array([1.0, 2.0]))),
    lambda: Ridge(random_state=np.random.RandomState(3)),
    lambda: {"a": {"x", "yy", "zzz"}, "b": np.array([1, "a"], dtype=object)},
]
OTHER = [
    lambda: make_pipeline(FunctionTransformer(scaled(2.002)), Ridge()),
    lambda: make_pipeline(FunctionTransformer(partial(np.clip, a_min=1)), Ridge()),
    lambda: make_pipeline(FunctionTransformer(lambda table: 2 * table), Ridge()),
    lambda: make_pipeline(FunctionTransformer(lambda table: 3 * table), Ridge()),
    lambda: make_pipeline(FunctionTransformer(np.log1p), Ridge()),
    lambda: make_pipeline(FunctionTransformer(np.expm1), Ridge()),
    lambda: GridSearchCV(Ridge(), {"alpha": [1, 2]}, cv=KFold(4)),
    lambda: GridSearchCV(Ridge(), {"alpha": [1, 2]}, cv=KFold(3, shuffle=True)),
    lambda: GaussianProcessRegressor(RBF(2.0) + RBF(np.array([1.0, 2.002]))),
    lambda: Ridge(random_state=np.random.RandomState(4)),
    lambda: {"a": {"x", "yy"}, "b": np.array([1, "a"], dtype=object)},
    lambda: {"a": {"x", "yy", "zzz"}, "b": np.array(["a", 1], dtype=object)},
]
DIGESTS = """
import sys
sys.path[:0] = sys.argv[1:]
from test_folder import SAME, hash_of
print([hash_of(make()) for make in SAME])
"""


def test_learners_are_told_apart_by_what_they_are_made_of():
    first, again = ([hash_of(make()) for make in SAME] for _ in range(2))
    assert first == again
    everything = [*first, *(hash_of(make()) for make in OTHER)]
    assert len(set(everything)) == len(SAME) + len(OTHER)


@pytest.mark.slow
def test_learners_are_the_same_in_every_process(monkeypatch):
    printed = []
    for seed in ("1", "2"):
        monkeypatch.setenv("PYTHONHASHSEED", seed)
        run = python("-c", DIGESTS, Path(__file__).parent, ROOT / "tests" / "support")
        assert run.returncode == 0, run.stderr
        printed.append(run.stdout)
    assert printed[0] == printed[1]


def test_a_full_disk_is_told_and_keeps_what_was_finished(
    patches_folder, marks, monkeypatch
):
    write = np.savez

    def full(file, **arrays):
        if len(list(patches_folder.glob("*/[0-9]*.npz"))) > 7:
            raise OSError(28, "No space left on device")
        write(file, **arrays)

    learner = Once(str(marks))
    with monkeypatch.context() as patch:
        patch.setattr(np, "savez", full)
        with pytest.raises(WriteFailure, match="No space left on device"):
            fitted(many(folder=patches_folder), X, Y, learner)
    n_fits(marks)
    fitted(many(folder=patches_folder), X, Y, learner)
    assert n_fits(marks) == 500 - 191


def test_above_the_stated_size_predictions_are_mapped(patches_folder, monkeypatch):
    alone = fitted(many(keep=True), X, Y)
    monkeypatch.setattr(fitting, "IN_MEMORY", 8 * 90 * 499)
    for scheme in (many(keep=True), many(folder=patches_folder)):
        model = fitted(scheme, X, Y)
        assert isinstance(model.predictions, np.memmap)
        assert predictions(model).tobytes() == predictions(alone).tobytes()
        pairs = model.features.all_sets(2)
        errors = [one.errors(pairs).rows for one in (model, alone)]
        np.testing.assert_allclose(*errors, rtol=1e-12, atol=1e-14)
    retained = fitted(many(keep=True), X, Y)
    judged = retained.evaluate_on(np.tile(X, (2, 1)), np.tile(Y, 2))
    assert isinstance(judged.predictions, np.memmap)
    small = alone.evaluate_on(X, Y)
    np.testing.assert_array_equal(judged.predictions[:, :90], small.predictions)


def test_predictions_for_which_there_is_no_room_are_refused(
    patches_folder, monkeypatch
):
    monkeypatch.setattr("propopt.base.resources.free_memory", lambda: 3e5)
    with pytest.raises(Refused, match="500 patches predict 90 rows, which needs about"):
        fitted(many(), X, Y)
    monkeypatch.setattr(fitting, "IN_MEMORY", 1000)
    usage = type("Usage", (), {"free": 1000})
    monkeypatch.setattr(fitting.shutil, "disk_usage", lambda _: usage)
    for scheme in (many(), many(folder=patches_folder)):
        with pytest.raises(Refused, match="free; give Minipatches a folder on ano"):
            fitted(scheme, X, Y)
