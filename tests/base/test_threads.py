"""Small work keeps to one thread, large work keeps those that it was given."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import numpy as np
import pytest
from sklearn.base import BaseEstimator, RegressorMixin
from threadpoolctl import ThreadpoolController

import propopt as po
from propopt.base import resources
from propopt.base.resources import ONE_THREAD, SERIAL_BELOW, for_each_column
from propopt.cli import main
from propopt.problems import problem as problem_module


def n_threads():
    """The most that a library would take now."""
    return max(info["num_threads"] for info in ThreadpoolController().info())


@pytest.fixture(autouse=True)
def two_threads(monkeypatch):
    """Libraries that would take two threads, and a user who did not say so."""
    for name in resources.CHOSEN_BY:
        monkeypatch.delenv(name, raising=False)
    with ThreadpoolController().limit(limits=2):
        yield


class Counting(RegressorMixin, BaseEstimator):
    """A model that notes how many threads there are when it is asked."""

    def fit(self, X, _):
        self.n_features_in_, self.seen_ = X.shape[1], []
        return self

    def predict(self, X):
        self.seen_.append(n_threads())
        return X[:, 0] * X[:, 1]


@pytest.mark.parametrize(("n_rows", "expected"), [(10, 1), (ONE_THREAD + 1, 2)])
def test_a_model_is_asked_for_few_rows_with_one_thread(n_rows, expected):
    X = np.random.default_rng(0).normal(size=(n_rows, 2))
    model = Counting().fit(X, X[:, 0])
    po.wrap(model).value(X)
    assert model.seen_[0] == expected
    assert n_threads() == 2


def test_one_thread_holds_until_the_last_thread_has_left():
    second_is_in, first_is_out = Event(), Event()
    observed = []

    def second():
        with resources.one_thread():
            second_is_in.set()
            first_is_out.wait(10)
            observed.append(blas_threads())

    with ThreadPoolExecutor(1) as pool:
        with resources.one_thread():
            observed.append(n_threads())
            work = pool.submit(second)
            second_is_in.wait(10)
        first_is_out.set()
        work.result(10)
    assert observed == [1, 1]
    assert n_threads() == 2


def blas_threads():
    result = ThreadpoolController().info()
    return max(x["num_threads"] for x in result if x["user_api"] == "blas")


PROBLEM = """
data: {uniform: {low: -1, high: 1, points: %d, dimensions: 2}}
function: {name: power, degree: 3}
objective: {gradient_matching: 1, pairwise_robustness: {graph: {kind: chain}}}
"""


@pytest.fixture
def seen(monkeypatch):
    """Threads that there are while a problem file is solved."""
    result = []
    original = problem_module.sweep

    def watched(*arguments, **settings):
        result.append(n_threads())
        return original(*arguments, **settings)

    monkeypatch.setattr(problem_module, "sweep", watched)
    return result


def run(tmp_path, n_points):
    file = tmp_path / "small.yaml"
    file.write_text(PROBLEM % n_points)
    assert main(["sweep", str(file), "-q", "-o", str(tmp_path)]) == 0


def test_a_small_problem_file_is_run_with_one_thread(tmp_path, seen):
    run(tmp_path, 20)
    assert seen == [1]
    assert n_threads() == 2


def test_a_large_problem_file_keeps_its_threads(tmp_path, seen):
    run(tmp_path, ONE_THREAD + 1)
    assert seen == [2]


@pytest.mark.parametrize("name", resources.CHOSEN_BY)
def test_a_user_who_sets_the_threads_of_a_run_is_obeyed(
    tmp_path, seen, monkeypatch, name
):
    monkeypatch.setenv(name, "2")
    run(tmp_path, 20)
    assert seen == [2]


def test_libraries_that_are_loaded_later_are_limited_too(monkeypatch):
    looked = []

    def looking():
        looked.append(len(sys.modules))
        return ThreadpoolController()

    monkeypatch.setattr(resources, "ThreadpoolController", looking)
    for name in ("a_module_that_came", "another_that_came_later"):
        monkeypatch.setitem(sys.modules, name, object())
        for _ in range(3):
            with resources.few_threads(1):
                assert n_threads() == 1
    assert len(looked) == 2


@pytest.mark.parametrize("n_columns", [0, 1, 3])
def test_columns_are_worked_on_in_order_also_where_there_are_none(n_columns):
    result = for_each_column(lambda j: 10 * j, n_columns, SERIAL_BELOW)
    assert result == [10 * j for j in range(n_columns)]
