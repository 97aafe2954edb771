"""What is drawn: sizes, probabilities, streams; classes by their share."""

import numpy as np
import pytest

from propopt.base.errors import InvalidInput
from propopt.interactions import patch_draws as patches_module
from propopt.interactions.patch_draws import Patches, Strata, draw_patches


def drawn(n_patches=4000, *, sampling="fixed", seed=0, labels=None, n_rows=10):
    return draw_patches(n_patches, 40, n_rows, 8, 3, sampling, seed, labels)


def same(one: Patches, other: Patches) -> bool:
    pairs = [(one.rows, other.rows), (one.features, other.features)]
    pairs.append((one.seeds, other.seeds))
    return all(np.array_equal(a, b) for a, b in pairs)


def test_patches_have_their_numbers_of_rows_and_features():
    patches = drawn()
    assert patches.rows.shape == (4000, 10)
    assert (np.diff(patches.rows, axis=1) > 0).all()
    assert patches.rows.min() == 0
    assert patches.rows.max() == 39
    assert (patches.features.sum(axis=1) == 3).all()
    assert (patches.out.sum(axis=1) == 30).all()


# Each of the checks of frequencies is wrong in 1 of 10^6 seeds: |z| < 5.6 of at most
# 1000 frequencies, P(|z| > 5.6) = 2e-8; half a part is added for the lattice.
BOUND = 5.6


def far(result, p, n_patches):
    """The largest distance of frequencies to p, in standard errors."""
    return np.abs(np.asarray(result) / n_patches - p).max() / np.sqrt(
        p * (1 - p) / n_patches
    )


@pytest.mark.parametrize("sampling", ["fixed", "bernoulli"])
def test_rows_features_and_pairs_of_them_come_as_often_as_they_should(sampling):
    n_patches = 20_000
    patches = drawn(n_patches, sampling=sampling)
    inside, kept = (~patches.out).astype(float), patches.features.astype(float)
    assert far(inside.sum(axis=0), 10 / 40, n_patches) < BOUND
    assert far(kept.sum(axis=0), 3 / 8, n_patches) < BOUND
    of_rows = (inside.T @ inside)[np.triu_indices(40, 1)]
    assert far(of_rows, 10 * 9 / (40 * 39), n_patches) < BOUND
    both = 3 * 2 / (8 * 7) if sampling == "fixed" else (3 / 8) ** 2
    of_features = (kept.T @ kept)[np.triu_indices(8, 1)]
    assert far(of_features, both, n_patches) < BOUND
    # rows say nothing of features
    assert far(inside.T @ kept, 10 / 40 * 3 / 8, n_patches) < BOUND
    assert len(np.unique(patches.seeds)) > 0.999 * n_patches


def test_a_seed_draws_the_same_patches_however_many(monkeypatch):
    monkeypatch.setattr(patches_module, "BLOCK", 40 * 7)
    many, few = drawn(100), drawn(33)
    assert same(many.part(slice(33)), few)
    assert not same(drawn(33, seed=1), few)
    assert len(np.unique(many.rows, axis=0)) == 100  # no block repeats another


def test_stratified_rows_have_each_class_by_its_share():
    labels = np.array([0] * 28 + [1] * 12)
    patches = drawn(labels=labels)
    assert (np.sum(patches.rows < 28, axis=1) == 7).all()
    inside = (~patches.out).sum(axis=0)
    assert far(inside, 10 / 40, 4000) < BOUND


@pytest.mark.parametrize(
    ("counts", "n_rows", "sizes"),
    [
        ([28, 12], 10, (7, 3)),
        ([38, 2], 4, (3, 1)),  # one of each at least
        ([38, 2], 39, None),  # and one of each left out
        ([38, 2], 38, (37, 1)),
        ([10, 10, 10], 10, (4, 3, 3)),
        ([39, 1], 10, None),
        ([20, 20], 1, None),
    ],
)
def test_shares_of_classes(counts, n_rows, sizes):
    labels = np.repeat(np.arange(len(counts)), counts)
    if sizes is None:
        with pytest.raises(InvalidInput, match="'stratified' needs rows of each"):
            Strata.of(len(labels), n_rows, labels)
        return
    assert Strata.of(len(labels), n_rows, labels).sizes == sizes


def test_new_rows_are_out_of_each_patch():
    assert drawn(5).seen_by_none(7).out.shape == (5, 7)
    assert drawn(5).seen_by_none(7).out.all()
