"""Fits of a split in workers of dask, and by Ctrl-C and kills: the same numbers."""

from __future__ import annotations

import numpy as np
import pytest
from dask_workers import workers_of_dask
from minipatch_cases import Once, fitted, small_table
from sklearn.tree import DecisionTreeRegressor

from propopt.base.errors import SolverFailure
from propopt.interactions import DataSplit, fitting


LEARNER = DecisionTreeRegressor(max_features=1)  # it draws, too
FOLDS = DataSplit(n_folds=3)


def alike(one, other):
    """Errors of all sets of up to two features have the same bits."""
    for order in range(3):
        sets = one.features.all_sets(order) if order else np.zeros((1, 0), dtype=int)
        mine, theirs = (source.errors(sets).rows for source in (one, other))
        assert mine.tobytes() == theirs.tobytes()


@pytest.mark.parametrize("scheme", [DataSplit(), FOLDS], ids=["halves", "folds"])
def test_workers_of_dask_give_the_same_digits(scheme):
    pytest.importorskip("distributed")
    X, y = small_table()
    alone = fitted(scheme, X, y, LEARNER)
    with workers_of_dask(processes=False):
        alike(alone, fitted(scheme, X, y, LEARNER))


@pytest.mark.slow
def test_a_worker_of_dask_that_is_killed_loses_nothing(tmp_path):
    pytest.importorskip("distributed")
    X, y = small_table()
    for name in ("killed", "alone"):
        (tmp_path / name).mkdir()
    alone = fitted(FOLDS, X, y, Once(str(tmp_path / "alone")))
    n_fits = len(list((tmp_path / "alone").iterdir()))
    assert n_fits == 3 * (1 + 6 + 15)
    learner = Once(str(tmp_path / "killed"), "kill", after=30)
    with workers_of_dask():
        alike(alone, fitted(FOLDS, X, y, learner))
    names = [path.name for path in (tmp_path / "killed").iterdir()]
    assert any(name.endswith("-30") for name in names)  # it was killed there
    assert len(names) > n_fits  # and fits of its call were made again


@pytest.mark.slow
def test_a_worker_that_is_killed_is_told(tmp_path):
    X, y = small_table()
    with pytest.raises(SolverFailure, match="a worker was killed"):
        fitted(FOLDS, X, y, Once(str(tmp_path), "kill"), n_jobs=2)


def test_what_was_finished_before_an_interruption_is_not_fitted_again(
    monkeypatch: pytest.MonkeyPatch,
):
    X, y = small_table()
    source = fitted(
        DataSplit(), X, y, LEARNER, order=1
    )  # of which larger sets are asked
    run = fitting.fit_part
    begun: list[tuple[tuple[int, ...], ...]] = []

    def stop(most: int):
        begun.clear()

        def counted(plan, *settings):
            if len(begun) == most:
                raise KeyboardInterrupt
            begun.append(tuple(plan.left_out))
            return run(plan, *settings)

        monkeypatch.setattr(fitting, "fit_part", counted)

    pairs = source.features.all_sets(2)
    stop(3)
    with pytest.raises(KeyboardInterrupt):
        source.errors(pairs)
    before = {left_out for part in begun for left_out in part}
    stop(1000)
    rows = source.errors(pairs).rows
    after = {left_out for part in begun for left_out in part}
    assert before
    assert before | after == set(map(tuple, pairs.tolist()))
    assert not before & after
    whole = fitted(DataSplit(), X, y, LEARNER).errors(pairs).rows
    assert rows.tobytes() == whole.tobytes()
