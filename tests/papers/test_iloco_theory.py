"""Closed forms of the paper on iLOCO: ideal learners, thresholds, linear functions."""

import itertools
import math
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose
from oracle_learners import corners, sum_of_terms, variances
from refusals import refusals
from sklearn.linear_model import LinearRegression

from papers.iloco.theory import (
    BernoulliColumns,
    FixedColumns,
    Refitted,
    detectable_ratio,
    ideal_scores,
    linear_refit_scores,
)
from propopt.base.errors import InvalidInput, PropoptWarning
from propopt.interactions import ILOCO, DataSplit
from propopt.interactions.features import Features
from propopt.interactions.minipatches import PatchErrors
from propopt.interactions.patch_draws import Patches
from propopt.interactions.refits import ABSOLUTE, PROBABILITY, SQUARED, set_scores


each_error = pytest.mark.parametrize("error", [SQUARED, PROBABILITY])
TERMS = {
    (): 0.5, (0,): 0.11, (1,): -0.07, (2,): 0.03, (0, 1): 0.06, (1, 4): 0.05,
    (0, 1, 2): 0.04, (2, 3, 4): -0.02,
}  # fmt: skip
"""Of six columns of ±1, f* is between 0.12 and 0.88; the last column has no effect."""
VARIANCES = variances(TERMS)
M = 6
FEATURES = Features.of([f"x{j}" for j in range(M)])
SIZES = {FixedColumns(M, m): [m] for m in (2, 3)}
SIZES |= {BernoulliColumns(0.5): range(M + 1)}


def enumerated(shares, error):
    """Every patch judged at every row; of classes rows count with p(y | x)."""
    X, places = corners(M), range(M)
    sets = [own for m in SIZES[shares] for own in itertools.combinations(places, m)]
    features = np.array([np.isin(places, own) for own in sets])
    features = np.tile(features, (2, 1))  # both groups have every patch
    used = [set(np.flatnonzero(own)) for own in features]
    at_rows = np.array([sum_of_terms(TERMS, X, own) for own in used])
    truth = sum_of_terms(TERMS, X)
    if error == SQUARED:
        y, predictions, weights = truth, at_rows, np.ones(len(X))
    else:
        y = np.repeat([0, 1], len(X))
        predictions = np.concatenate([1.0 - at_rows, at_rows], axis=1)
        weights = 2.0 * np.concatenate([1.0 - truth, truth])
    n_patches, n_rows = predictions.shape
    nothing = np.zeros((n_patches, 0), dtype=np.intp)
    patches = Patches(nothing, features, np.arange(n_patches), n_rows)
    fields = {"y": y, "error": error, "features": FEATURES, "row_weights": weights}
    predictions = predictions[..., None]
    return PatchErrors(patches=patches, predictions=predictions, n_groups=2, **fields)


@each_error
@pytest.mark.parametrize("shares", SIZES)
def test_scores_of_all_patches_at_all_rows(shares, error):
    source = enumerated(shares, error)
    for order in (1, 2, 3):
        sets = FEATURES.all_sets(order)
        result = set_scores(source, sets)["scores"]
        expected = ideal_scores(VARIANCES, sets, shares, error)
        assert_allclose(result, expected, atol=1e-15)


@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_scores_count_the_terms_that_contain_a_set(order):
    # independent draws: Σ_{u ⊇ S} V_u (φ(0) − φ(ρ^|u|)), of a pair [1 − (1 − ρ²)²] V,
    # or 2 ρ² V; of refits V, or 2 V
    sets, rho = FEATURES.all_sets(order), 0.2
    terms = [(set(own), len(own), v) for own, v in VARIANCES.items()]
    above = [[own[1:] for own in terms if own[0] >= {*s}] for s in sets.tolist()]
    for shares, error, part in [
        (Refitted(), SQUARED, lambda _: 1.0),
        (Refitted(), None, lambda _: 1.0),
        (Refitted(), PROBABILITY, lambda _: 2.0),
        (BernoulliColumns(rho), SQUARED, lambda s: 1 - (1 - rho**s) ** 2),
        (BernoulliColumns(rho), PROBABILITY, lambda s: 2 * rho**s),
    ]:
        result = ideal_scores(VARIANCES, sets, shares, error)
        expected = [sum(v * part(s) for s, v in own) for own in above]
        assert_allclose(result, expected, atol=1e-16, rtol=1e-13)
        assert not result[[not own for own in above]].any()


@pytest.mark.parametrize(("n_features", "m"), [(7, 3), (9, 1), (5, 5)])
def test_shares_are_ratios_of_binomials(n_features, m):
    shares = FixedColumns(n_features, m)
    for left_out, size in itertools.product(range(n_features - m + 1), range(5)):
        rest, expected = n_features - left_out, 0.0
        if size <= min(m, rest):
            expected = math.comb(rest - size, m - size) / math.comb(rest, m)
        assert shares.share(size, left_out) == pytest.approx(expected, abs=1e-15)


@pytest.mark.parametrize(
    ("n_features", "m", "probability", "squared"),
    [
        (10, 2, 1.40, 1.077),
        (10, 5, 0.35, 0.154),
        (100, 20, 0.054, 0.044),
        (500, 100, 0.010, 0.008),
    ],
)
def test_thresholds_of_patches(n_features, m, probability, squared):
    shares = FixedColumns(n_features, m)
    result = detectable_ratio(shares, PROBABILITY)
    assert result == pytest.approx(probability, abs=6e-4)
    assert result == pytest.approx((n_features - 3) / ((m - 1) * (n_features - 5)))
    one, two, three = (n_features - k for k in (1, 2, 3))
    leak = (1 - m / one) ** 2 - (1 - m / two) ** 2
    first, second = m * (m - 1) / (one * two), m * (m - 1) / (two * three)
    expected = leak / (1 - 2 * (1 - first) ** 2 + (1 - second) ** 2)
    result = detectable_ratio(shares, SQUARED)
    assert result == pytest.approx(squared, abs=6e-4)
    assert result == pytest.approx(expected, rel=1e-9)


@each_error
def test_at_the_threshold_both_pairs_have_one_score(error):
    shares, pairs = FixedColumns(12, 5), np.array([(0, 1), (2, 3)])
    joint = 5.0 * detectable_ratio(shares, error)
    for factor in (1.0, 1.01):
        terms = {(0,): 2.0, (1,): 3.0, (0, 1): factor * joint}
        first, other = ideal_scores(terms, pairs, shares, error)
        assert first > other if factor > 1.0 else abs(first - other) < 1e-13
    # without leaks any interaction stands out, and patches of one feature show none
    assert detectable_ratio(BernoulliColumns(0.2)) == 0.0
    assert detectable_ratio(Refitted()) == 0.0
    assert detectable_ratio(FixedColumns(10, 1)) == np.inf


PAIR = np.array([(0, 1)])


@pytest.mark.parametrize(
    ("rho", "b1", "b2", "score"),
    [(0.9, 2, 2, -13.68), (0.5, 2, 2, -6), (-0.5, 2, 2, 2), (0.5, 2, -2, 2)],
)
def test_pair_of_correlated_features(rho, b1, b2, score):
    result = linear_refit_scores([b1, b2], np.array([[1, rho], [rho, 1.0]]), PAIR)
    assert result[0] == pytest.approx(score, abs=1e-12)
    assert score == pytest.approx(-2 * rho * b1 * b2 - rho**2 * (b1**2 + b2**2))


@pytest.mark.parametrize(("b", "score"), [(1.0, 0.0769), (2.0, 0.3767)])
def test_scores_of_additive_functions_that_are_not_zero(b, score):
    result = linear_refit_scores([b, b, 5.0], np.eye(3), PAIR, ABSOLUTE)
    assert result[0] == pytest.approx(score, abs=5e-5)
    roots = 2 * np.sqrt(1 + b**2) - 1 - np.sqrt(1 + 2 * b**2)
    assert result[0] == pytest.approx(np.sqrt(2 / np.pi) * roots, abs=1e-14)
    assert linear_refit_scores([b, b, 5.0], np.eye(3), PAIR, SQUARED)[0] == 0.0
    # indicators of four equally frequent levels, the last one dropped
    dummies = np.eye(3) / 4 - 1 / 16
    result = linear_refit_scores([b, b, 0.0], dummies, PAIR)
    assert result[0] == pytest.approx(b**2 / 12, abs=1e-14)
    # of all four each is one less the others, and not missed
    singles, dummies = np.arange(4)[:, None], np.eye(4) / 4 - 1 / 16
    result = linear_refit_scores([1.0, 2.0, 3.0, 4.0], dummies, singles)
    assert_allclose(result, 0.0, atol=1e-14)


def test_of_three_features_by_determinants():
    # Var(bᵀX | X_R) by b_Tᵀ [(Σ⁻¹)_TT]⁻¹ b_T
    rng = np.random.default_rng(0)
    factor = rng.normal(size=(5, 5))
    sigma, b = factor @ factor.T, rng.normal(size=5)
    precision = np.linalg.inv(sigma)

    def missed(*members):
        own = list(members)
        return b[own] @ np.linalg.solve(precision[np.ix_(own, own)], b[own])

    one = missed(0) + missed(2) + missed(3)
    two = missed(0, 2) + missed(0, 3) + missed(2, 3)
    result = linear_refit_scores(b, sigma, np.array([(0, 2, 3)]))
    assert result[0] == pytest.approx(one - two + missed(0, 2, 3), rel=1e-10)


@pytest.mark.parametrize("kind", [SQUARED, ABSOLUTE], ids=["squared", "absolute"])
def test_least_squares_on_many_rows(kind):
    """|z| < 5 for 3 pairs: a false alarm in 6e5 tests; the fits add O(M/N) = 1e-4."""
    rng = np.random.default_rng(3)
    sigma, b = np.array([[1, 0.6, 0], [0.6, 1, 0], [0, 0, 1.0]]), [1.5, -1.0, 2.0]
    X = rng.multivariate_normal(np.zeros(3), sigma, size=60_000)
    y = X @ b + rng.normal(size=len(X))
    model = ILOCO(LinearRegression(), DataSplit(), error=kind.name, progress=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PropoptWarning)  # of absolute errors
        result = model.fit(X, y).result_
    expected = linear_refit_scores(b, sigma, result.sets, kind)
    scores = (result.scores - expected) / result.standard_errors
    assert np.abs(scores).max() < 5.0
    assert np.abs(expected / result.standard_errors).max() > 50.0  # zero is told


ONE, JOINT = {(0,): 1.0}, [(0, 1)]


@pytest.mark.parametrize(("line", "message"), refusals(__file__, "ideal learners"))
def test_what_is_refused(line, message):
    with pytest.raises(InvalidInput, match=message):
        eval(line)
