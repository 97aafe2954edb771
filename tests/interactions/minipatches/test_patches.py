"""Patches: what is drawn, how many are enough, and their means by loops and by hand."""

import math
import tracemalloc
import warnings
from dataclasses import fields
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from minipatch_cases import Once, fitted, many, small_table
from numpy.testing import assert_allclose, assert_array_equal
from refusals import refusals
from scipy.stats import binom
from sklearn.linear_model import LogisticRegression, Ridge

from propopt.base.errors import ImpreciseWarning, InvalidInput
from propopt.base.resources import Budget
from propopt.interactions import minipatches, patch_draws
from propopt.interactions.features import Features
from propopt.interactions.minipatches import PatchErrors
from propopt.interactions.refits import (
    ABSOLUTE,
    SQUARED,
    RowError,
    inclusion_exclusion,
    read_error,
    set_scores,
)


# Each of the checks of frequencies is wrong in 1 of 10^6 seeds: |z| < 5.6 of at most
# 1000 frequencies, P(|z| > 5.6) = 2e-8; half a part is added for the lattice.
BOUND = 5.6


def drawn(n_patches=4000, *, seed=0):
    return patch_draws.draw_patches(n_patches, 40, 10, 8, 3, seed)


def test_sizes_of_patches():
    assert [patch_draws.rows_in_patch(0.2, n) for n in (10, 60, 500)] == [5, 20, 100]
    assert patch_draws.rows_in_patch("sqrt", 250) == 16
    assert [patch_draws.features_in_patch(None, n) for n in (5, 20, 50)] == [3, 10, 10]
    assert [patch_draws.rounded_up(m) for m in (0.2 * 15, 2.1)] == [3, 3]
    patches = drawn()
    assert patches.rows.shape == (4000, 10)
    assert (np.diff(patches.rows, axis=1) > 0).all()
    assert (patches.rows.min(), patches.rows.max()) == (0, 39)
    assert (patches.out.sum(axis=1) == 30).all()
    new = patches.part(slice(5)).for_new_rows(7).out
    assert new.shape == (5, 7)
    assert new.all()


def far(result, p, n_patches):
    """The largest distance of frequencies to p, in standard errors."""
    difference = np.abs(np.asarray(result) / n_patches - p).max()
    return difference / np.sqrt(p * (1 - p) / n_patches)


def test_rows_features_and_pairs_of_them_come_as_often_as_they_should():
    n_patches = 20_000
    patches = drawn(n_patches)
    inside, retained = (~patches.out).astype(float), patches.features.astype(float)
    of_rows = (inside.T @ inside)[np.triu_indices(40, 1)]
    of_features = (retained.T @ retained)[np.triu_indices(8, 1)]
    for counts, p in [
        (inside.sum(axis=0), 10 / 40),
        (retained.sum(axis=0), 3 / 8),
        (of_rows, 10 * 9 / (40 * 39)),
        (of_features, (3 / 8) ** 2),
        (inside.T @ retained, 10 / 40 * 3 / 8),  # rows say nothing of features
    ]:
        assert far(counts, p, n_patches) < BOUND
    assert len(np.unique(patches.seeds)) > 0.999 * n_patches
    for size in (1, 2, 3):  # and so are sets of features, whole and absent
        absent = (~patches.features[:, :size]).all(axis=1) & patches.out[:, 0]
        whole = patches.features[:, :size].all(axis=1)
        for counts, p in [
            (absent.sum(), usable().probability_without(size)),
            (whole.sum(), usable().probability_together(size)),
        ]:
            assert far(counts, p, n_patches) < BOUND


def test_a_seed_draws_the_same_patches_however_many(monkeypatch):
    monkeypatch.setattr(patch_draws, "BLOCK", 40 * 7)
    more, few, other = drawn(100), drawn(33), drawn(33, seed=1)
    for name in ("rows", "features", "seeds"):
        reference = getattr(few, name)
        assert_array_equal(getattr(more.part(slice(33)), name), reference)
        assert not np.array_equal(getattr(other, name), reference)
    assert len(np.unique(more.rows, axis=0)) == 100  # no block repeats another


NAMES = list("abcdefgh")


def usable():
    return patch_draws.PatchCoverage(row_share=10 / 40, n_features=8, n_in_patch=3)


def sets_of(size):
    sets = list(combinations(range(8), size))
    return np.array(sets, dtype=np.intp).reshape(len(sets), size)


def counted(patches, sets):
    """Patches without each set and row, one by one, (q, N)."""
    result = np.zeros((len(sets), patches.n_table), dtype=int)
    for rows, features in zip(patches.rows.tolist(), patches.features, strict=True):
        out = [i for i in range(patches.n_table) if i not in rows]
        for k, item in enumerate(sets.tolist()):
            if not features[item].any():
                result[k, out] += 1
    return result


@pytest.mark.parametrize("n_patches", [30, 60, 250])
def test_the_fewest_are_counted_where_they_are_few(n_patches, monkeypatch):
    patches = drawn(n_patches)
    for size in range(4):
        sets = sets_of(size)
        counts = counted(patches, sets)
        brute = counts.min(axis=1)
        fewest, position = patch_draws.fewest_patches(patches, sets, usable())
        assert min(fewest, 30) == min(brute.min(), 30)
        assert fewest >= 30 or brute[position] == fewest
        assert usable().probability_without(size) == 0.75 * 0.625**size
    # where they are many nothing is counted
    monkeypatch.setattr(patch_draws, "_counts", None)
    assert patch_draws.fewest_patches(drawn(1000), sets_of(2), usable()) == (30, 0)


def test_the_number_of_patches_that_is_named_is_the_least():
    n_all, p = 40 * 28, usable().probability_without(2)
    for at_least in (1, 30):
        needed = usable().patches_needed(2, n_all, at_least)
        assert n_all * binom.cdf(at_least - 1, needed, p) <= 0.01
        assert n_all * binom.cdf(at_least - 1, needed - 1, p) > 0.01
    exact = math.ceil(math.log(0.01 / n_all) / math.log1p(-p))
    assert usable().patches_needed(2, n_all) == exact


def test_few_patches_are_refused_or_warned_of_with_what_would_do():
    with pytest.raises(InvalidInput) as caught:
        patch_draws.check_counts(drawn(10), sets_of(2), usable(), NAMES)
    messages = str(caught.value)
    needed = usable().patches_needed(2, 28 * 40)
    assert f"with {needed} each set is left out at each row in 99% of draws" in messages
    with pytest.warns(ImpreciseWarning) as warned:
        patch_draws.check_counts(drawn(100), sets_of(2), usable(), NAMES)
    (messages,) = [str(warning.message) for warning in warned]
    brute = counted(drawn(100), sets_of(2)).min()
    assert f"means of only {brute} patches" in messages
    assert f"n_patches={usable().patches_needed(2, 28 * 40, 30)}" in messages
    assert "only about 14 patches contain all 2 features of a set" in messages
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        patch_draws.check_counts(drawn(1000), sets_of(2), usable(), NAMES)
        patch_draws.check_counts(drawn(300), sets_of(1), usable(), NAMES)


@pytest.mark.parametrize(("settings", "words"), refusals(__file__, "schemes"))
def test_what_is_no_scheme_or_fits_no_table_is_refused_before_a_fit(
    settings, words, tmp_path
):
    with pytest.raises(InvalidInput, match=words):
        fitted(many(**eval(settings)), *small_table(), Once(str(tmp_path)))
    assert not list(tmp_path.iterdir())


# ---- means over patches are those of Algorithm 2 as it is written, loop by loop


def random_source(
    n_patches: int = 60,
    n_table: int = 14,
    n_features: int = 7,
    *,
    n_rows: int = 4,
    n_in_patch: float = 2,
    n_known: int = 1,
    error: RowError | None = None,
    n_groups: int = 5,
    seed: int = 0,
) -> PatchErrors:
    """Patches with random predictions; what must not be read is not a number."""
    rng = np.random.default_rng(seed)
    patches = patch_draws.draw_patches(
        n_patches, n_table, n_rows, n_features, n_in_patch, seed
    )
    predictions = 100.0 + rng.normal(size=(n_patches, n_table, n_known))
    predictions[~patches.out] = np.nan
    weights = rng.uniform(0.5, 2.0, n_table)
    return PatchErrors(
        patches=patches,
        predictions=predictions,
        y=rng.integers(0, max(n_known, 2), n_table).astype(np.float64),
        error=SQUARED if error is None else error,
        features=Features.of(list(range(n_features))),
        row_weights=weights * n_table / weights.sum(),
        n_groups=n_groups,
    )


def literal_errors(source: PatchErrors, sets: Any, retained: Any = None) -> Any:
    """Err(y_i, f_(−i)^(−T)(x_i)) of each row and set; of some patches only, if told."""
    out = source.patches.out
    if retained is not None:
        out &= np.isin(np.arange(len(out)), retained)[:, None]
    errors = np.full((len(source.y), len(sets)), np.nan)
    for q, one in enumerate(sets):
        disjoint = ~source.patches.features[:, list(one)].any(axis=1)
        for i in range(len(source.y)):
            used = source.predictions[out[:, i] & disjoint, i]
            if len(used):
                result = source.error.compute(
                    source.y[[i]], used.mean(axis=0)[None, None]
                )
                errors[i, q] = result[0, 0]
    return errors


def literal_scores(source: PatchErrors, sets: Any) -> Any:
    """Σ_{T ⊆ S} (−1)^(|T| + 1) Err(f^(−T)) at each row."""
    scores = np.zeros((len(source.y), len(sets)))
    for q, one in enumerate(sets):
        for size in range(len(one) + 1):
            for left_out in combinations(one, size):
                part = literal_errors(source, [left_out])[:, 0]
                scores[:, q] += (-1) ** (size + 1) * part
    return scores


def literal_groups(source: PatchErrors) -> list[list[int]]:
    """The patches that remain without each of G groups that follow each other."""
    n_patches = len(source.patches)
    ends = np.linspace(0, n_patches, source.n_groups + 1).astype(int)
    everything = range(n_patches)
    return [
        [b for b in everything if not ends[g] <= b < ends[g + 1]]
        for g in range(source.n_groups)
    ]


def log_loss(labels, probabilities):
    """Of probabilities that need not sum to one."""
    return -np.log(probabilities[np.arange(len(labels)), labels.astype(int)])


OF_THREE = read_error(log_loss, np.arange(3), LogisticRegression())
SOURCES = {
    "few features": random_source(seed=1),
    "many features": random_source(300, 9, 30, n_in_patch=3, seed=2),
    "half of the features": random_source(400, n_in_patch=3, seed=3),
    "absolute": random_source(error=ABSOLUTE, seed=4),
    "three outputs": random_source(n_known=3, error=OF_THREE, seed=5),
    "blocks of rows": random_source(80, 150, 5, n_in_patch=2, n_rows=30, seed=6),
}
each_source = pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES)
each_order = pytest.mark.parametrize("order", [0, 1, 2])


@pytest.fixture(params=[0.0, 1e300], ids=["sparse", "dense"])
def form(request, monkeypatch):
    """Either way to sum over patches without sets of features."""
    monkeypatch.setattr(minipatches, "SPARSE_COST", request.param)


def again(source, **changes):
    """The same, of which nothing is known yet."""
    reference = {
        one.name: getattr(source, one.name) for one in fields(source) if one.init
    }
    return PatchErrors(**{**reference, **changes})


def some_sets(source, order, most=500):
    empty = np.zeros((1, 0), dtype=np.intp)
    every = empty if order == 0 else source.features.all_sets(order)
    rng = np.random.default_rng(order)
    return every[np.sort(rng.permutation(len(every))[:most])]


@each_source
@each_order
@pytest.mark.usefixtures("form")
def test_errors_are_those_of_the_literal_loops(source, order):
    sets = some_sets(source, order)
    result = again(source).errors(sets)
    assert_allclose(result.rows, literal_errors(source, sets), rtol=1e-12)
    absent = ~source.patches.features[:, sets].any(axis=2)  # counts are the fewest
    usable = (source.patches.out[:, :, None] & absent[:, None]).sum(axis=0)
    assert_array_equal(result.counts, usable.min(axis=0))


@pytest.mark.parametrize("order", [1, 2, 3, 4])
@pytest.mark.usefixtures("form")
def test_scores_of_any_order_are_those_of_brute_force(order):
    source = random_source(900, 6, 9, n_rows=2, seed=7)
    sets = some_sets(source, order, 5)
    result = inclusion_exclusion(source, sets)
    rows = literal_scores(source, sets)
    assert_allclose(result.rows, rows, atol=1e-9)  # errors are 10^4
    scores = set_scores(source, sets)
    assert_allclose(scores["scores"], source.row_weights @ rows / 6, atol=1e-9)
    # √((G − 1)/G Σ_g (z̄_(−g) − mean)²), the jackknife over groups of patches
    distance = result.replicates - result.replicates.mean(axis=0)
    jackknife = np.sqrt(4 / 5 * (distance**2).sum(axis=0))
    assert_allclose(scores["monte_carlo"], jackknife, rtol=1e-12)


@each_source
@each_order
def test_replicates_are_means_without_one_group(source, order):
    sets = some_sets(source, order)
    result = source.errors(sets).replicates
    assert result.shape == (source.n_groups, len(sets))
    for replicate, retained in zip(result, literal_groups(source), strict=True):
        errors = literal_errors(source, sets, retained)
        weighted = source.row_weights @ errors / len(source.y)
        assert_allclose(replicate, weighted, rtol=1e-12)


def test_a_group_without_which_nothing_is_left_has_no_replicate():
    source = random_source(40, 10, 5, n_groups=2, seed=9)
    sets = source.features.all_sets(2)
    groups = [
        literal_errors(source, sets, retained) for retained in literal_groups(source)
    ]
    whole = np.isfinite(groups).all(axis=(0, 1))
    assert 0 < sum(whole) < len(whole)
    scores = set_scores(source, sets)
    assert np.isfinite(scores["scores"]).all()
    assert_array_equal(np.isfinite(scores["monte_carlo"]), whole)


@pytest.mark.parametrize("order", [1, 2])
def test_blocks_never_change_a_result(order, monkeypatch):
    sizes = []  # of how many rows errors were asked each time

    def squared(y, predicted):
        sizes.append(len(y))
        return (y - predicted) ** 2

    error = read_error(squared, None, Ridge())
    source = random_source(80, 150, 5, n_rows=30, error=error, seed=6)
    sets = source.features.all_sets(order)
    whole, scores = source.errors(sets), set_scores(source, sets)
    sizes.clear()
    set_scores(source, source.features.all_sets(1))
    assert not sizes  # these are known
    monkeypatch.setattr(minipatches, "BATCH_BUDGET", Budget(1))
    monkeypatch.setattr(minipatches, "PREDICTION_BUDGET", Budget(1))
    monkeypatch.setattr("propopt.interactions.refits.BATCH_BUDGET", Budget(1))
    other = again(source)
    parts = other.errors(sets)
    assert max(sizes) == 8  # rows, of one set
    assert_allclose(parts.rows, whole.rows, rtol=1e-12)
    assert_allclose(parts.replicates, whole.replicates, rtol=1e-12)
    assert_array_equal(parts.counts, whole.counts)
    for name, values in set_scores(other, sets).items():
        assert_allclose(values, scores[name], rtol=1e-9)


@pytest.mark.parametrize(
    ("n_patches", "n_table", "n_features", "n_in_patch", "n_known"),
    [(800, 1300, 40, 8, 1), (800, 1300, 40, 20, 1), (300, 400, 30, 6, 6)],
)
def test_memory_is_as_stated(n_patches, n_table, n_features, n_in_patch, n_known):
    sizes = n_patches, n_table, n_table // 5, n_features, n_in_patch
    source = PatchErrors(
        patches=patch_draws.draw_patches(*sizes, 0),
        predictions=np.zeros((n_patches, n_table, n_known)),
        y=np.zeros(n_table),
        error=SQUARED,
        features=Features.of(list(range(n_features))),
        row_weights=np.ones(n_table),
    )
    pairs = source.features.all_sets(2)
    tracemalloc.start()
    source.errors(pairs)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    results = 8 * len(pairs) * (n_table + 20 + 1)
    masks = n_patches * (n_table / 8 + n_features)
    assert peak < results + masks + 2**27
    held_at_once = 8 * 20 * len(pairs) * n_table * n_known
    assert held_at_once > 2**27  # or this would say nothing
