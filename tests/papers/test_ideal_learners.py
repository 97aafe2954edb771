"""Scores of ideal learners: against enumeration of all patches and rows."""

import itertools
import math

import numpy as np
import pytest
from oracle_learners import Terms, corners, sum_of_terms, variances

from papers.iloco.theory import (
    BernoulliColumns,
    FixedColumns,
    KeptShares,
    Refitted,
    ideal_scores,
)
from propopt.base.errors import InvalidInput
from propopt.interactions.errors_of_rows import (
    ABSOLUTE,
    PROBABILITY,
    SQUARED,
    RowError,
)
from propopt.interactions.features import Features
from propopt.interactions.left_out import set_scores
from propopt.interactions.minipatches import PatchErrors
from propopt.interactions.patch_draws import Patches


TERMS: Terms = {
    (): 0.5,
    (0,): 0.11,
    (1,): -0.07,
    (2,): 0.03,
    (0, 1): 0.06,
    (1, 4): 0.05,
    (0, 1, 2): 0.04,
    (2, 3, 4): -0.02,
}
"""Of six columns of ±1, f* is between 0.12 and 0.88; the last column has no effect."""

M = 6
FEATURES = Features.of([f"x{j}" for j in range(M)])


def every_patch(shares: KeptShares) -> np.ndarray:
    """All sets of features, as often as they are drawn."""
    sizes = {
        Refitted(): [],
        FixedColumns(M, 2): [2],
        FixedColumns(M, 3): [3],
        BernoulliColumns(0.5): range(M + 1),
    }[shares]
    sets = [own for m in sizes for own in itertools.combinations(range(M), m)]
    return np.array([np.isin(np.arange(M), own) for own in sets])


def enumerated(shares: KeptShares, error: RowError):
    """Every patch judged at every row; of classes rows count with p(y | x)."""
    X, features = corners(M), every_patch(shares)
    features = np.tile(features, (2, 1))  # both groups have every patch
    at_rows = np.array(
        [sum_of_terms(TERMS, X, set(np.flatnonzero(own))) for own in features]
    )
    truth = sum_of_terms(TERMS, X)
    if error == SQUARED:
        y, predictions, weights = truth, at_rows, np.ones(len(X))
    else:
        y = np.repeat([0, 1], len(X))
        predictions = np.concatenate([1.0 - at_rows, at_rows], axis=1)
        weights = 2.0 * np.concatenate([1.0 - truth, truth])
    n_patches, n_rows = predictions.shape
    nothing = np.zeros((n_patches, 0), dtype=np.intp)
    return PatchErrors(
        patches=Patches(nothing, features, np.arange(n_patches), n_rows),
        predictions=predictions[..., None],
        y=y,
        error=error,
        features=FEATURES,
        row_weights=weights,
        n_groups=2,
    )


@pytest.mark.parametrize("order", [1, 2, 3])
@pytest.mark.parametrize("error", [SQUARED, PROBABILITY])
@pytest.mark.parametrize(
    "shares", [FixedColumns(M, 2), FixedColumns(M, 3), BernoulliColumns(0.5)]
)
def test_scores_of_all_patches_at_all_rows(
    shares: KeptShares, error: RowError, order: int
) -> None:
    sets = FEATURES.all_sets(order)
    result = set_scores(enumerated(shares, error), sets)["estimates"]
    expected = ideal_scores(variances(TERMS), sets, shares, error)
    np.testing.assert_allclose(result, expected, atol=1e-15)


@pytest.mark.parametrize("order", [1, 2, 3, 4])
@pytest.mark.parametrize(("error", "factor"), [(SQUARED, 1), (None, 1)])
def test_refits_count_the_terms_that_contain_a_set(
    error: RowError | None, factor: float, order: int
) -> None:
    sets = FEATURES.all_sets(order)
    terms = variances(TERMS)
    expected = [
        factor * sum(v for own, v in terms.items() if set(own) >= set(members))
        for members in sets.tolist()
    ]
    np.testing.assert_allclose(
        ideal_scores(terms, sets, Refitted(), error), expected, atol=1e-17
    )
    twice = ideal_scores(terms, sets, Refitted(), PROBABILITY)
    np.testing.assert_allclose(twice, 2 * np.array(expected), atol=1e-17)


def test_scores_of_the_paper_model_by_patches_of_two_of_ten() -> None:
    # f = 3 x0 x1 + 2 (x0 + ... + x4): a pair, one with half of it, one without any
    terms: Terms = {(0, 1): 9.0, **{(j,): 4.0 for j in range(5)}}
    pairs = np.array([(0, 1), (0, 5), (5, 6)])
    result = ideal_scores(terms, pairs, FixedColumns(10, 2))
    np.testing.assert_allclose(result, [0.2036, -0.1197, 0.1884], atol=5e-5)


@pytest.mark.parametrize("order", [1, 2, 3])
@pytest.mark.parametrize("error", [SQUARED, PROBABILITY])
def test_independent_draws_shrink_and_leak_nothing(error: RowError, order: int) -> None:
    # Σ_{u ⊇ S} V_u (φ(0) − φ(ρ^|u|)): of a pair [1 − (1 − ρ²)²] V, or 2 ρ² V
    rho, terms = 0.2, variances(TERMS)
    sets = FEATURES.all_sets(order)
    result = ideal_scores(terms, sets, BernoulliColumns(rho), error)
    for members, score in zip(sets.tolist(), result, strict=True):
        above = [(len(own), v) for own, v in terms.items() if set(own) >= set(members)]
        squared = sum(v * (1 - (1 - rho**s) ** 2) for s, v in above)
        linear = sum(2 * v * rho**s for s, v in above)
        expected = squared if error == SQUARED else linear
        assert score == pytest.approx(expected, abs=1e-16)
        assert above or score == 0.0


@pytest.mark.parametrize(("n_features", "m"), [(7, 3), (9, 1), (5, 5)])
def test_shares_are_ratios_of_binomials(n_features: int, m: int) -> None:
    shares = FixedColumns(n_features, m)
    for left_out, size in itertools.product(range(n_features - m + 1), range(5)):
        rest = n_features - left_out
        expected = (
            math.comb(rest - size, m - size) / math.comb(rest, m)
            if size <= min(m, rest)
            else 0.0
        )
        assert shares.share(size, left_out) == pytest.approx(expected, abs=1e-15)


def test_other_errors_have_no_closed_form() -> None:
    with pytest.raises(InvalidInput, match="closed form for squared"):
        ideal_scores({(0,): 1.0}, np.array([(0, 1)]), Refitted(), ABSOLUTE)


@pytest.mark.parametrize(
    ("variances", "sets", "message"),
    [
        ({(0,): 1.0}, [0, 1], r"expected whole numbers of shape \(Q, r\)"),
        ({(0,): 1.0}, [(0.0, 1.0)], "expected whole numbers"),
        ({(0,): 1.0}, [(0, 1), (2, 2)], r"\[2, 2\] is no set of different places"),
        ({(0,): 1.0}, [(-1, 1)], r"\[-1, 1\] is no set"),
        ({(): 1.0}, [(0, 1)], r"different features of each term, got \(\)"),
        ({(0, 0): 1.0}, [(0, 1)], r"different features of each term, got \(0, 0\)"),
        ({(0,): -1.0}, [(0, 1)], r"\(0,\) has -1.0"),
        ({(0,): np.nan}, [(0, 1)], r"\(0,\) has nan"),
    ],
)
def test_what_is_no_set_or_variance(variances: Terms, sets: list, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        ideal_scores(variances, sets, Refitted())


def test_features_that_fixed_patches_do_not_have_are_refused() -> None:
    shares = FixedColumns(3, 1)
    with pytest.raises(InvalidInput, match=r"\[0, 3\] is no .* places less than 3"):
        ideal_scores({(0,): 1.0}, [(0, 3)], shares)
    with pytest.raises(InvalidInput, match=r"\(7,\): expected places from 0 to 2"):
        ideal_scores({(7,): 1.0}, [(0, 1)], shares)


def test_shares_that_are_none() -> None:
    for n_features, n_kept in ((4, 2.5), ("four", 1), (4, True)):
        with pytest.raises(InvalidInput, match="expected an integer >= 1"):
            FixedColumns(n_features, n_kept)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="probability: expected a number, got 'a'"):
        BernoulliColumns("a")  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="expected 1 to n_features=3, got 4"):
        FixedColumns(3, 4)
    with pytest.raises(InvalidInput, match=r"at most 1, got 1\.5"):
        BernoulliColumns(1.5)
    with pytest.raises(InvalidInput, match="never leave out 2; at most 2 would do"):
        ideal_scores({(0,): 1.0}, [(0, 1)], FixedColumns(4, 3))
