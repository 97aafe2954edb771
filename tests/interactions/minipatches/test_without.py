"""Both forms of the patches without sets of features have the same sums."""

from __future__ import annotations

import tracemalloc
from functools import partial
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

from propopt.interactions import minipatches
from propopt.interactions.errors_of_rows import SQUARED
from propopt.interactions.features import Features
from propopt.interactions.minipatches import (
    PatchErrors,
    SumsWithout,
    dense_sums,
    patches_without,
    sparse_sums,
)
from propopt.interactions.patch_draws import draw_patches


def in_form(
    form: Any, sets: Any, present: Any, monkeypatch: pytest.MonkeyPatch
) -> SumsWithout[Any]:
    """All patches without each set, in a form that is made the cheaper one."""
    cost = 0.0 if form is sparse_sums else 1e300
    with monkeypatch.context() as patch:
        patch.setattr(minipatches, "SPARSE_COST", cost)
        (own,) = patches_without(sets, present, [slice(present.shape[1])])
    assert form_of(own) is form
    return own


def form_of(own: SumsWithout[Any]) -> Any:
    assert isinstance(own, partial)
    return own.func


def draws(order: int, share: float) -> tuple[Any, Any, Any]:
    """Sets of 9 features, which of them 200 patches have, and what is summed."""
    rng = np.random.default_rng(order)
    present = rng.random((9, 200)) < share
    sets = Features.of(list(range(9))).all_sets(order)
    return sets, present, rng.normal(size=(200, 11))


@pytest.mark.parametrize("order", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 1.0])
def test_dense_and_sparse_sums_are_equal(
    order: int, share: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    sets, present, summed = draws(order, share)
    dense = in_form(dense_sums, sets, present, monkeypatch)
    sparse = in_form(sparse_sums, sets, present, monkeypatch)
    assert_allclose(sparse(summed), dense(summed), rtol=0, atol=1e-12)
    literal = [summed[~present[list(own)].any(axis=0)].sum(axis=0) for own in sets]
    assert_allclose(dense(summed), literal, rtol=0, atol=1e-12)


@pytest.mark.parametrize("order", [1, 2, 3])
def test_counts_are_exact_in_single_precision(
    order: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    sets, present, _ = draws(order, 0.3)
    ones = (np.random.default_rng(1).random((200, 30)) < 0.8).astype(np.float32)
    dense = in_form(dense_sums, sets, present, monkeypatch)(ones)
    sparse = in_form(sparse_sums, sets, present, monkeypatch)(ones)
    assert dense.dtype == sparse.dtype == np.float32
    assert np.array_equal(dense, sparse)
    absent = ~present[sets].any(axis=1)
    assert np.array_equal(dense, absent.astype(int) @ ones.astype(int))


def test_the_whole_is_a_sum_over_all_patches() -> None:
    _, present, summed = draws(1, 0.3)
    (whole,) = patches_without(np.zeros((1, 0), dtype=np.intp), present, [slice(200)])
    assert_allclose(whole(summed), summed.sum(axis=0)[None], rtol=1e-13)


@pytest.mark.parametrize(
    ("n_features", "n_kept", "form"),
    [(10, 5, dense_sums), (20, 10, dense_sums), (50, 10, sparse_sums)],
)
def test_few_features_in_many_make_masks_sparse(
    n_features: int, n_kept: int, form: Any
) -> None:
    patches = draw_patches(100, 20, 5, n_features, n_kept, "fixed", 0)
    pairs = Features.of(list(range(n_features))).all_sets(2)
    groups = [slice(0, 50), slice(50, 100)]
    without = patches_without(pairs, patches.features.T, groups)
    assert [form_of(own) for own in without] == [form, form]


@pytest.mark.parametrize(
    ("n_patches", "n_table", "n_features", "n_kept", "n_known"),
    [(800, 1300, 40, 8, 1), (800, 1300, 40, 20, 1), (300, 400, 30, 6, 6)],
)
def test_memory_is_as_stated(
    n_patches: int, n_table: int, n_features: int, n_kept: int, n_known: int
) -> None:
    patches = draw_patches(
        n_patches, n_table, n_table // 5, n_features, n_kept, "fixed", 0
    )
    predictions = np.zeros((n_patches, n_table, n_known))
    features = Features.of(list(range(n_features)))
    source = PatchErrors(
        patches=patches,
        predictions=predictions,
        y=np.zeros(n_table),
        error=SQUARED,
        features=features,
        row_weights=np.ones(n_table),
    )
    pairs = features.all_sets(2)
    tracemalloc.start()
    source.errors(pairs)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    results = 8 * len(pairs) * (n_table + 20 + 1)
    masks = n_patches * (n_table / 8 + n_features)
    held_at_once = 8 * 20 * len(pairs) * n_table * n_known
    assert peak < results + masks + 2**27
    assert held_at_once > 2**27  # or this would say nothing
