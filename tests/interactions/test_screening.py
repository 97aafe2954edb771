"""Sets that are chosen where there are too many: by which rows, and what is counted."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from refit_cases import product_table, read
from sklearn.linear_model import LinearRegression
from sklearn.neighbors import KNeighborsRegressor

from propopt.base.errors import InvalidInput
from propopt.interactions import ILOCO, DataSplit, Minipatches, Screen
from propopt.interactions.left_out import set_scores


X, Y = product_table(200, 6)
NEAR = KNeighborsRegressor(4)
FEW = Minipatches(n_patches=400, n_features=0.5, columns="bernoulli")
SCREEN = Screen(n_sets=3, scheme=FEW)


def test_by_minipatches_the_largest_of_all_sets_are_chosen_and_all_are_counted() -> (
    None
):
    source = FEW.fit(read(NEAR, X, Y), seed=0)
    pairs = source.features.all_sets(2)
    size = np.abs(set_scores(source, pairs)["estimates"])
    chosen = SCREEN.choose(source, 2)
    np.testing.assert_array_equal(chosen[0], pairs[np.sort(np.argsort(-size)[:3])])
    assert chosen[1] == 15
    assert [0, 1] in chosen[0].tolist()


@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_with_room_for_all_smaller_sets_none_is_missed(order: int) -> None:
    source = FEW.fit(read(NEAR, X, Y), seed=0)
    screen = Screen(n_sets=20, scheme=FEW)
    every = source.features.all_sets(order)
    size = np.abs(set_scores(source, every)["estimates"])
    expected = every[np.sort(np.argsort(-size, kind="stable")[:20])]
    np.testing.assert_array_equal(screen.choose(source, order)[0], expected)


def test_larger_sets_are_made_of_the_chosen_smaller_ones() -> None:
    source = FEW.fit(read(NEAR, X, Y), seed=0)
    screen = Screen(n_sets=2, scheme=FEW)
    pairs = {frozenset(own) for own in screen.choose(source, 2)[0].tolist()}
    triples = screen.choose(source, 3)
    assert triples[0].shape == (2, 3)
    assert triples[1] == 20
    for own in triples[0].tolist():
        assert any(frozenset(pair) in pairs for pair in combinations(own, 2))


def test_of_a_split_only_the_training_rows_choose() -> None:
    refits = read(LinearRegression(), X, Y)
    source = DataSplit().fit(refits, seed=4)
    chosen = SCREEN.choose(source, 2)
    assert chosen[1] == 3
    assert "3 of 15 sets were chosen for their scores in minipatches" in chosen[2][0]
    assert chosen[2][0].endswith("corrections count 3")
    (fold,) = DataSplit().drawn_folds(200, 4)

    def chosen_after(changed: Any) -> list[list[int]]:
        y = Y.copy()
        y[changed] = np.random.default_rng(9).normal(size=len(changed), scale=20)
        other = DataSplit().fit(replace(refits, y=y), seed=4)
        return SCREEN.choose(other, 2)[0].tolist()

    assert chosen_after(fold.test) == chosen[0].tolist()
    assert chosen_after(fold.training) != chosen[0].tolist()


def test_of_folds_all_rows_choose_and_all_sets_are_counted() -> None:
    source = DataSplit(n_folds=4).fit(read(LinearRegression(), X, Y), seed=4)
    chosen = SCREEN.choose(source, 2)
    assert len(chosen[0]) == 3
    assert chosen[1] == 15
    assert "minipatches of all rows" in chosen[2][0]


@pytest.mark.sampled(1)
@pytest.mark.filterwarnings("ignore::propopt.base.errors.FewPatchesWarning")  # triples
@pytest.mark.parametrize(
    ("scheme", "counted"), [(DataSplit(), 3), (DataSplit(n_folds=3), 15), (FEW, 15)]
)
def test_results_are_corrected_for_the_sets_that_count(
    scheme: Any, counted: int
) -> None:
    result = ILOCO(NEAR, scheme, sets=SCREEN).fit(X, Y)
    assert len(result.result_.sets) == 3
    assert result.result_.n_candidates == counted
    assert any("were chosen for their scores" in own for own in result.result_.notes)
    assert (0, 1) in [tuple(own) for own in result.result_.sets.tolist()]
    again = result.interactions(SCREEN, order=2)
    np.testing.assert_array_equal(again.estimates, result.result_.estimates)
    assert result.interactions(SCREEN, order=3).order == 3


def test_what_cannot_be_chosen() -> None:
    with pytest.raises(InvalidInput, match="n_sets: expected an integer >= 1, got 0"):
        Screen(n_sets=0)
    with pytest.raises(InvalidInput, match="scheme: expected Minipatches, got DataSpl"):
        Screen(scheme=DataSplit())  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="order: expected at most 6, of 6 feat"):
        ILOCO(NEAR, FEW, sets=SCREEN, order=7).fit(X, Y)


@pytest.mark.slow
def test_choosing_by_training_rows_leaves_coverage_as_it_is() -> None:
    # The pair of largest score of 15, 90% intervals of the target on 4,000 new rows.
    # Of 120 tables a coverage of 0.9 gives fewer than 94 with probability 5e-5, and
    # normal intervals of 60 rows cover about 0.88.
    screen = Screen(n_sets=1, scheme=replace(FEW, n_patches=150))
    new, target = product_table(4000, 6, seed=10**6)
    covered = 0
    for seed in range(120):
        table, y = product_table(120, 6, seed=seed)
        source = DataSplit().fit(read(LinearRegression(), table, y), seed=seed)
        indices = screen.choose(source, 2)[0]
        result = set_scores(source, indices)
        truth = set_scores(source.judged_on(new, target), indices)["estimates"]
        covered += int(
            abs(result["estimates"][0] - truth[0])
            < 1.645 * result["standard_errors"][0]
        )
    assert covered >= 94
