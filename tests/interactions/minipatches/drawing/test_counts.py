"""How many patches predictions are averaged over: formulas, counting, messages."""

import math
import warnings
from itertools import combinations

import numpy as np
import pytest
from minipatch_cases import Once, fitted, many, small_table
from scipy.stats import binom

from propopt.base.errors import FewPatchesWarning, InvalidInput
from propopt.interactions import Minipatches
from propopt.interactions.patch_draws import (
    Usable,
    check_counts,
    check_order,
    draw_patches,
    fewest_usable,
)


NAMES = list("abcdefgh")


def usable(columns="fixed", n_kept=3, n_features=8):
    return Usable(
        row_share=10 / 40, n_features=n_features, n_kept=n_kept, columns=columns
    )


def drawn(n_patches, columns="fixed", seed=0):
    return draw_patches(n_patches, 40, 10, 8, 3, columns, seed)


def sets_of(size):
    return (
        np.array(list(combinations(range(8), size)), dtype=np.intp).reshape(-1, size)
        if size
        else np.zeros((1, 0), dtype=np.intp)
    )


def counted(patches, sets):
    """Patches without each set and row, one by one, (q, N)."""
    result = np.zeros((len(sets), patches.n_table), dtype=int)
    for rows, features in zip(patches.rows.tolist(), patches.features, strict=True):
        out = [i for i in range(patches.n_table) if i not in rows]
        for k, own in enumerate(sets.tolist()):
            if not features[own].any():
                result[k, out] += 1
    return result


def test_the_mean_share_of_usable_patches_is_exact():
    # each patch has 10 of 40 rows and 3 of 8 features, so that means over rows and
    # sets are no matter of chance
    patches = draw_patches(50, 40, 10, 8, 3, "fixed", 0)
    for size, share in [(0, 0.75), (1, 0.46875), (2, 15 / 56)]:
        result = counted(patches, sets_of(size)).mean() / 50
        assert result == pytest.approx(share, rel=1e-14)
        assert usable().without(size) == pytest.approx(share, rel=1e-14)


@pytest.mark.parametrize("columns", ["fixed", "bernoulli"])
@pytest.mark.parametrize("size", [1, 2, 3])
def test_probabilities_are_frequencies(columns, size):
    # |z| < 5 of two numbers: wrong for 1 of 10^6 seeds
    patches = drawn(20_000, columns, seed=size)
    own = list(range(size))
    without = (~patches.features[:, own]).all(axis=1) & patches.out[:, 0]
    whole = patches.features[:, own].all(axis=1)
    expected = [usable(columns).without(size), usable(columns).together(size)]
    for result, p in zip([without, whole], expected, strict=True):
        assert abs(result.mean() - p) < 5 * math.sqrt(p * (1 - p) / 20_000)


@pytest.mark.parametrize("size", [0, 1, 2, 3])
@pytest.mark.parametrize("n_patches", [30, 60, 250])
def test_the_fewest_are_counted_where_they_are_few(size, n_patches):
    patches, sets = drawn(n_patches), sets_of(size)
    brute = counted(patches, sets).min(axis=1)
    fewest, place = fewest_usable(patches, sets, usable())
    assert min(fewest, 30) == min(brute.min(), 30)
    if fewest < 30:
        assert brute[place] == fewest


def test_nothing_is_counted_where_patches_are_many(monkeypatch):
    def refused(*_):
        raise AssertionError

    monkeypatch.setattr("propopt.interactions.patch_draws._counts", refused)
    assert fewest_usable(drawn(1000), sets_of(2), usable()) == (30, 0)


def test_the_number_of_patches_that_is_named_is_the_least():
    n_all = 40 * 28
    for at_least in (1, 30):
        needed = usable().patches_needed(2, n_all, at_least)
        p = usable().without(2)
        assert n_all * binom.cdf(at_least - 1, needed, p) <= 0.01
        assert n_all * binom.cdf(at_least - 1, needed - 1, p) > 0.01
    p = usable().without(2)
    assert usable().patches_needed(2, n_all) == math.ceil(
        math.log(0.01 / n_all) / math.log1p(-p)
    )


def test_sets_that_are_never_left_out_are_named_with_what_would_do():
    with pytest.raises(InvalidInput) as caught:
        check_counts(drawn(10), sets_of(2), usable(), NAMES)
    needed = usable().patches_needed(2, 28 * 40)
    told = str(caught.value)
    assert told.startswith("n_patches: of 10 patches none is without '")
    assert f"with {needed} each set is left out at each row in 99% of draws" in told


def test_few_patches_are_warned_of_with_what_would_do():
    with pytest.warns(FewPatchesWarning) as caught:
        check_counts(drawn(100), sets_of(2), usable(), NAMES)
    (told,) = [str(warning.message) for warning in caught]
    brute = counted(drawn(100), sets_of(2)).min()
    assert f"means of only {brute} patches" in told
    assert f"n_patches={usable().patches_needed(2, 28 * 40, 30)}" in told
    assert "seen whole by about 11 patches (by 100 with n_patches=934)" in told
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_counts(drawn(1000), sets_of(2), usable(), NAMES)
        check_counts(drawn(300), sets_of(1), usable(), NAMES)


@pytest.mark.parametrize(("m", "order"), [(1, 2), (2, 3), (7, 2), (6, 3)])
def test_sizes_that_learn_nothing_of_a_set_are_refused(m, order):
    words = "never co-occur" if m < order else f"never leaves out {order}"
    with pytest.raises(InvalidInput, match=words):
        check_order(usable(n_kept=m), order)
    check_order(usable("bernoulli", n_kept=m), order)


def test_too_few_features_for_any_size_are_told_so():
    with pytest.raises(InvalidInput, match="3 features are too few for that: take Da"):
        check_order(usable(n_kept=2, n_features=3), 2)


def test_sets_are_checked_before_anything_is_fitted(tmp_path):
    X, y = small_table()
    with pytest.raises(InvalidInput, match="n_patches: of 20 patches none is without"):
        fitted(many(20), X, y, Once(str(tmp_path)))
    with pytest.raises(InvalidInput, match="3 features never co-occur"):
        fitted(many(n_features=2), X, y, Once(str(tmp_path)), order=3)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"n_patches": 0}, "n_patches: expected an integer >= 1, got 0"),
        ({"rows": 1.5}, "rows: expected a share between 0 and 1, a number >= 1 or"),
        ({"rows": "cbrt"}, "or 'sqrt', got 'cbrt'"),
        ({"rows": True}, "rows: expected an integer >= 1, got True"),
        ({"n_features": 0}, "n_features: expected an integer >= 1, got 0"),
        ({"n_features": 1.0}, "n_features: expected a share between 0 and 1"),
        ({"columns": "fix"}, "columns: expected 'fixed' or 'bernoulli', got 'fix'"),
        ({"row_sampling": None}, "row_sampling: expected 'uniform' or 'stratified'"),
        ({"n_groups": 1}, "n_groups: expected 2 to n_patches=10000, got 1"),
        ({"n_patches": 10, "n_groups": 20}, "expected 2 to n_patches=10, got 20"),
        ({"n_patches": 1}, "n_patches: expected an integer >= 2, got 1"),
        ({"keep": True, "folder": "x"}, "keep: a folder holds predictions and no"),
        ({"keep": "no"}, "keep: expected True or False, got 'no'"),
        ({"folder": 5}, "folder: expected a path or None, got 5"),
    ],
)
def test_what_is_no_scheme_is_refused(settings, words):
    with pytest.raises(InvalidInput) as caught:
        Minipatches(**settings)
    assert words in str(caught.value)


def test_too_few_patches_are_blamed_by_the_number_that_was_given():
    X, y = small_table()
    with pytest.raises(InvalidInput, match=r"^n_patches: of 3 patches none is without"):
        fitted(Minipatches(n_patches=3), X, y)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"rows": 90}, "a patch of 90 of 90 rows leaves none out"),
        ({"n_features": 6}, "a patch of 6 of 6 leaves no feature out"),
        (
            {"n_features": 7},
            "a patch of 7 of 6 leaves no feature out",
        ),
        ({"row_sampling": "stratified"}, "'stratified' draws from each class"),
    ],
)
def test_what_fits_no_table_is_refused(settings, words):
    X, y = small_table()
    with pytest.raises(InvalidInput) as caught:
        fitted(many(**settings), X, y)
    assert words in str(caught.value)
