"""Fits of a split in workers of dask, and by Ctrl-C and kills: the same numbers."""

from __future__ import annotations

import numpy as np
import pytest
from dask_workers import workers_of_dask
from minipatch_cases import fitted, small_table
from sklearn.tree import DecisionTreeRegressor

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
