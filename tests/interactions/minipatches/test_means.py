"""Means over patches are those of Algorithm 2 as it is written, loop by loop."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

from propopt.base.errors import InvalidInput
from propopt.base.resources import Budget
from propopt.interactions import minipatches
from propopt.interactions.errors_of_rows import ABSOLUTE, read_error
from propopt.interactions.left_out import inclusion_exclusion, set_scores
from propopt.interactions.minipatches import PatchErrors
from propopt.interactions.patch_draws import Usable
from tests.support.patches_by_loops import (
    literal_errors,
    literal_groups,
    literal_scores,
    random_source,
)


EMPTY = np.zeros((1, 0), dtype=np.intp)


def log_loss(labels: Any, probabilities: Any) -> Any:
    """Of probabilities that need not sum to one."""
    return -np.log(probabilities[np.arange(len(labels)), labels.astype(int)])


SOURCES = {
    "fixed": random_source(),
    "bernoulli": random_source(columns="bernoulli", seed=1),
    "many features": random_source(300, 9, 30, n_kept=3, seed=2),
    "half of the features": random_source(400, n_kept=3, seed=3),
    "absolute": random_source(error=ABSOLUTE, seed=4),
    "three outputs": random_source(
        n_known=3, error=read_error(log_loss, np.arange(3)), seed=5
    ),
    "blocks of rows": random_source(80, 150, 5, n_kept=2, n_rows=30, seed=6),
}
each_source = pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES)
each_form = pytest.mark.parametrize("cost", [0.0, 1e300], ids=["sparse", "dense"])


def some_sets(source: PatchErrors, order: int, most: int = 500) -> Any:
    every = EMPTY if order == 0 else source.features.all_sets(order)
    rng = np.random.default_rng(order)
    return every[np.sort(rng.permutation(len(every))[:most])]


@each_source
@pytest.mark.parametrize("order", [0, 1, 2])
@each_form
def test_errors_are_those_of_the_literal_loops(
    source: PatchErrors, order: int, cost: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(minipatches, "SPARSE_COST", cost)
    again, sets = PatchErrors(**fields_of(source)), some_sets(source, order)
    assert_allclose(again.errors(sets).rows, literal_errors(source, sets), rtol=1e-12)


@each_form
@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_scores_of_any_order_are_those_of_brute_force(
    order: int, cost: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(minipatches, "SPARSE_COST", cost)
    source = random_source(900, 6, 9, n_rows=2, seed=7)
    sets = some_sets(source, order, 5)
    result = inclusion_exclusion(source, sets).rows
    assert_allclose(result, literal_scores(source, sets), atol=1e-9)  # errors are 10^4


def fields_of(source: PatchErrors) -> dict[str, Any]:
    return {own.name: getattr(source, own.name) for own in fields(source) if own.init}


@each_source
@pytest.mark.parametrize("order", [0, 1, 2])
def test_replicates_are_means_without_one_group(
    source: PatchErrors, order: int
) -> None:
    sets = some_sets(source, order)
    result = source.errors(sets).replicates
    assert result.shape == (source.n_groups, len(sets))
    for replicate, kept in zip(result, literal_groups(source), strict=True):
        errors = literal_errors(source, sets, kept)
        weighted = source.row_weights @ errors / len(source.y)
        assert_allclose(replicate, weighted, rtol=1e-12)


def test_a_group_without_which_nothing_is_left_has_no_replicate() -> None:
    source = random_source(40, 10, 5, n_groups=2, seed=9)
    sets = source.features.all_sets(2)
    few = None
    for q, own in enumerate(sets):
        for kept in literal_groups(source):
            if np.isnan(literal_errors(source, [own], kept)).any():
                few = q
    assert few is not None
    scores = set_scores(source, sets)
    whole = [
        not any(
            np.isnan(literal_errors(source, [own], kept)).any()
            for kept in literal_groups(source)
        )
        for own in sets
    ]
    assert np.isfinite(scores["estimates"]).all()
    assert np.array_equal(np.isfinite(scores["monte_carlo"]), whole)
    assert 0 < sum(whole) < len(whole)


@each_form
def test_counts_are_the_fewest_patches_of_any_row(
    cost: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(minipatches, "SPARSE_COST", cost)
    source = random_source(50)
    sets = source.features.all_sets(2)
    absent = ~source.patches.features[:, sets].any(axis=2)
    fewest = (source.patches.out[:, :, None] & absent[:, None]).sum(axis=0).min(axis=0)
    assert np.array_equal(source.errors(sets).counts, fewest)


@pytest.mark.parametrize("order", [1, 2])
def test_blocks_never_change_a_result(
    order: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes = []

    def squared(y: Any, predicted: Any) -> Any:
        sizes.append(len(y))
        return (y - predicted) ** 2

    source, again = (
        random_source(80, 150, 5, n_rows=30, error=read_error(squared, None), seed=6)
        for _ in range(2)
    )
    sets = source.features.all_sets(order)
    whole = source.errors(sets)
    sizes.clear()
    monkeypatch.setattr(minipatches, "AT_ONCE", Budget(1))
    monkeypatch.setattr(minipatches, "KNOWN_AT_ONCE", Budget(1))
    parts = again.errors(sets)
    assert max(sizes) == 8  # rows, of one set
    assert_allclose(parts.rows, whole.rows, rtol=1e-12)
    assert_allclose(parts.replicates, whole.replicates, rtol=1e-12)
    assert np.array_equal(parts.counts, whole.counts)


def test_scores_of_blocks_of_sets_are_those_of_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    source = SOURCES["half of the features"]
    sets = source.features.all_sets(2)
    whole = set_scores(source, sets)
    monkeypatch.setattr("propopt.interactions.left_out.AT_ONCE", Budget(1))
    parts = set_scores(source, sets)
    for name in whole:
        assert_allclose(parts[name], whole[name], rtol=1e-9)


def test_rows_that_no_patch_saw_are_judged_by_all_of_them() -> None:
    source = random_source(50)
    new = np.random.default_rng(0).normal(size=(50, 3, 1))
    fresh = PatchErrors(
        **{
            **fields_of(source),
            "patches": source.patches.seen_by_none(3),
            "predictions": new,
            "y": np.zeros(3),
            "row_weights": np.ones(3),
        }
    )
    result = fresh.errors(np.array([[2]]))
    used = ~source.patches.features[:, 2]
    assert_allclose(result.rows, new[used].mean(axis=0) ** 2, rtol=1e-13)
    assert result.counts == used.sum()


def test_a_set_that_no_patch_leaves_out_is_named_with_what_would_do() -> None:
    source = random_source(12, 14, 7, n_kept=4)
    needed = Usable.of(source.patches).patches_needed(3, 35 * 14)
    told = rf"of 12 patches none is without .*; with {needed} each set is left out"
    with pytest.raises(InvalidInput, match=told):
        source.errors(source.features.all_sets(3))


def test_errors_without_one_feature_are_made_once() -> None:
    calls = []

    def squared(y: Any, predicted: Any) -> Any:
        calls.append(len(y))
        return (y - predicted) ** 2

    source = random_source(error=read_error(squared, None))
    for order in (1, 2):
        set_scores(source, source.features.all_sets(order))
    n_calls = len(calls)
    set_scores(source, source.features.all_sets(1))
    assert len(calls) == n_calls
