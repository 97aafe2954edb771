"""Both forms of the patches without sets of features have the same sums."""

from __future__ import annotations

import tracemalloc
from functools import partial
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

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


def form_of(own: SumsWithout[Any]) -> Any:
    assert isinstance(own, partial)
    return own.func


def test_the_whole_is_a_sum_over_all_patches() -> None:
    rng = np.random.default_rng(1)
    present, summed = rng.random((9, 200)) < 0.3, rng.normal(size=(200, 11))
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
