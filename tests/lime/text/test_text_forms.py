"""Limits of LIME on texts: closed forms of Mardaoui and Garreau (2021), and paths."""

from itertools import product

import numpy as np
import pytest

from papers.text_lime.set_functions import conjunctions, single_words
from propopt.base.errors import InvalidInput
from propopt.lime.exact_limits import Limits
from propopt.lime.paths import path_of_words
from propopt.lime.text.word_limits import ExchangeableBits, TextLaw, WordRegression
from propopt.structures.subsets.conjunctions import Enumerated
from propopt.structures.subsets.sums import NormalisedSum


def tree(d):
    """z_1 + (1 − z_1) z_2 z_3."""
    return conjunctions([1.0, 1.0], [[0], [1, 2]], [[], [0]], d)


def at(function, *widths):
    """Intercepts and coefficients, (n, 1 + d)."""
    result = WordRegression(function).at(np.array(widths))
    return np.column_stack([result.intercept, result.coefficients])


@pytest.mark.parametrize(
    ("d", "nu"), [(2, 0.06), (2, 0.1), (3, 0.05), (4, 0.02), (29, 0.01)]
)
def test_moments_of_bits_have_the_digits_that_many_have(d, nu):
    mpmath = pytest.importorskip("mpmath")
    with mpmath.workdps(400):
        shares = [mpmath.sqrt(mpmath.mpf(m) / d) for m in range(d)]
        w = [mpmath.exp(-((1 - r) ** 2) / (2 * mpmath.mpf(nu) ** 2)) for r in shares]

        def mean(g):
            return mpmath.fsum(w[m] * g(m) for m in range(d)) / mpmath.fsum(w)

        level = mean(lambda m: m)
        along = float(mean(lambda m: (m - level) ** 2) / d)
        apart = float(mean(lambda m: m * (d - m)) / (d * (d - 1)))
    bits = TextLaw(nu).bits(d)
    assert bits.along[0] == pytest.approx(along, rel=1e-11, abs=0.0)
    assert bits.apart[0] == pytest.approx(apart, rel=1e-11, abs=0.0)


def test_odd_bandwidths_and_too_few_words():
    for bandwidth in (0, -0.25, np.nan, 1e-200, 1e200, "wide", None):
        with pytest.raises(InvalidInput, match="bandwidth: expected a"):
            TextLaw(bandwidth)
    with pytest.raises(InvalidInput, match="at least 2"):
        TextLaw().bits(1)
    assert TextLaw(np.float32(np.inf)) == TextLaw(np.inf)
    # what is left of weights at the largest and at the smallest
    for bandwidth in (1e60, 1e100, np.inf):
        np.testing.assert_array_equal(TextLaw(bandwidth).shares(4), [1, 1, 1, 1, 0])
        logs = TextLaw(bandwidth).log_weights(3)[:3]
        np.testing.assert_allclose(logs, 0.0, atol=1e-99)
    for bandwidth in (1e-100, 1e-5):
        np.testing.assert_array_equal(TextLaw(bandwidth).shares(5), [0, 0, 0, 0, 1, 0])


# ---- closed forms of limits

TREE = {  # d, ν: intercept, z_1, z_2 and z_3, others
    (5, 0.25): (0.00835643, 0.57402143, 0.27152279, 0.07121156),
    (5, np.inf): (-0.02, 0.74, 0.24, 0.04),
    (29, 0.25): (0.13057, 0.55758, 0.20079, 0.00070),
    (35, 0.25): (0.13282, 0.55890, 0.20046, 0.00038),
    (29, 0.05): (0.64447, 0.16560, 0.07957, 0.00188),
    (29, 0.35): (0.07775, 0.61613, 0.20519, 0.00088),
}
PRODUCTS = {  # ν, p: intercept, words of the product, others; d = 29
    (0.25, 2): (-0.369461, 0.642806, -0.000401),
    (0.25, 3): (-0.500034, 0.442019, -0.001104),
    (np.inf, 2): (-0.155172, 0.498768, -0.001232),
}
MORE = conjunctions([1.0] * 4, [[0], [1, 2], [3], [3, 4]], [[], [0], [], []], 29)
"""Tree + 1bad + 1bad 1character."""


def test_published_coefficients():
    for (d, nu), (intercept, one, two, other) in TREE.items():
        expected = [intercept, one, two, two, *[other] * (d - 3)]
        atol = 1e-8 if d == 5 else 6e-6
        np.testing.assert_allclose(at(tree(d), nu)[0], expected, rtol=0, atol=atol)
    for (nu, p), (intercept, inside, outside) in PRODUCTS.items():
        expected = [intercept, *[inside] * p, *[outside] * (29 - p)]
        result = at(conjunctions([1.0], [list(range(p))], [[]], 29), nu)[0]
        np.testing.assert_allclose(result, expected, rtol=0, atol=6e-7)
    expected = [-0.23889, 0.55718, 0.20039, 0.20039, 1.64351, 0.64351]
    expected = [*expected, *[0.00030] * 24]
    np.testing.assert_allclose(at(MORE, 0.25)[0], expected, rtol=0, atol=6e-6)
    # equal weights of normalised words have less than published, 1.36 at all ν
    blocks = single_words(np.ones(29), np.ones(29), np.arange(29))
    equal = at(NormalisedSum(0.0, (blocks,), 0.5), 0.25, np.inf)[:, 1]
    assert equal * np.sqrt(29.0) == pytest.approx([0.654, 0.841], abs=5e-4)


# ---- moments of bits, against dense matrices and sums over all sets

D = 5
RNG = np.random.default_rng(0)
SETS = np.array(list(product([0.0, 1.0], repeat=D)))


def exchangeable():
    """Three laws of sizes, and the probability of each set."""
    logs = RNG.normal(0.0, 2.0, (3, D + 1))
    logs[1, 3] += 30.0  # nearly all sets have one size
    sizes = SETS.sum(axis=1).astype(int)
    masses = np.exp(logs)[:, sizes] / np.bincount(sizes)[sizes]
    return ExchangeableBits(logs), masses


def independent():
    alpha = RNG.uniform(0.1, 0.9, (3, D))
    masses = np.where(SETS == 1.0, alpha[:, None], 1.0 - alpha[:, None]).prod(axis=2)
    return Limits(alpha, alpha[:, 0], alpha, np.array([-1.0, 0.0, 2.0])), masses


@pytest.mark.parametrize("kind", [exchangeable, independent])
def test_moments_and_penalised_systems_are_those_of_all_sets(kind):
    bits, masses = kind()
    shares = masses / masses.sum(axis=1, keepdims=True)
    means = shares @ SETS
    centred = SETS - means[:, None]
    covariance = np.einsum("ns,nsi,nsj->nij", shares, centred, centred)
    np.testing.assert_allclose(bits.alpha, means, rtol=0, atol=1e-13)
    b = RNG.normal(size=(3, D))
    expected = np.einsum("nij,nj->ni", covariance, b)
    np.testing.assert_allclose(bits.covariances(b), expected, rtol=0, atol=1e-12)
    if kind is exchangeable:
        log_weight = np.log(masses.sum(axis=1))
        np.testing.assert_allclose(bits.log_weight, log_weight, atol=1e-12)
    penalty, x = np.array([1e-3, 0.5, 40.0]), RNG.normal(size=(3, 2, D))
    solved, left = bits.solved(x, penalty), bits.shrinkage(penalty)
    for n in range(3):
        inverse = np.linalg.inv(covariance[n] + penalty[n] * np.eye(D))
        np.testing.assert_allclose(solved[n], x[n] @ inverse, rtol=1e-9, atol=1e-12)
        diagonal = np.diag(inverse @ covariance[n])
        np.testing.assert_allclose(left[n], diagonal, rtol=0, atol=1e-11)
    # some situations are as among all
    rows = np.array([2, 0])
    result = bits.at(rows).solved(x[rows], penalty[rows])
    np.testing.assert_array_equal(result, solved[rows])
    np.testing.assert_array_equal(bits.at(rows).alpha, bits.alpha[rows])
    np.testing.assert_array_equal(bits.at(rows).log_weight, bits.log_weight[rows])


def product_less(a, d=20):
    """z_1 z_2 − a z_1."""
    return conjunctions([1.0, -a], [[0, 1], [0]], [[], []], d)


def test_published_coefficients_of_a_product_and_a_sign_between_them():
    widths = [0.05, 0.1, 0.15, 0.2, 0.25, 0.35]
    published = [0.924, 0.826, 0.749, 0.690, 0.646, 0.590]
    path = path_of_words(product_less(0.0), widths=widths).coefficients[:, 0]
    np.testing.assert_allclose(path, published, rtol=0, atol=6e-4)
    assert at(product_less(0.0), np.inf)[0, 1] == pytest.approx(0.497, abs=6e-4)
    roots = path_of_words(product_less(0.7)).sign_changes[0]
    assert roots == pytest.approx([0.1906], abs=5e-4)
    assert abs(at(product_less(0.7), *roots)[0, 1]) < 1e-13
    # words that are zero everywhere
    f = conjunctions([1.0, -2.0], [[0], [3]], [[], []], 30)
    changes = path_of_words(f).sign_changes
    assert [len(widths) for widths in changes] == [0] * 30


@pytest.mark.parametrize("d", [2, 5, 9])
def test_signs_turn_on_a_fine_grid_where_the_roots_are(d):
    grid, n_roots = np.geomspace(0.01, 50.0, 1000), []
    for seed in range(6):
        f = Enumerated(np.random.default_rng(seed).normal(size=2**d))
        result = at(f, *grid)[:, 1:]
        for j, roots in enumerate(path_of_words(f).sign_changes):
            far = np.abs(result[:, j]) > 1e-9
            turns = np.searchsorted(roots, grid[far])
            signs = np.sign(result[far, j])
            assert (signs == signs[0] * (-1.0) ** (turns - turns[0])).all()
            n_roots.append(len(roots))
            if n_roots[-1]:
                assert np.abs(at(f, *roots)[:, 1 + j]).max() < 1e-10
    # two words and an intercept fit all three sets: nothing depends on the bandwidth;
    # of five some change their sign, and of nine some do more than once
    assert {2: max(n_roots) == 0, 5: max(n_roots) >= 1, 9: max(n_roots) >= 2}[d]


def test_the_limit_of_small_bandwidths_is_leaving_one_out():
    f = Enumerated(np.random.default_rng(0).normal(size=2**7))
    means = f.mean_by_size()
    expected = 2 * means[6] - means[5] - f.value(~np.eye(7, dtype=bool))
    zero = at(f, 1e-100)[0]
    np.testing.assert_allclose(zero[1:], expected, rtol=0, atol=1e-13)
    assert zero[0] == pytest.approx(means[6] - 6 * (means[6] - means[5]))
    # random f, d = 7, ν = .01: five digits
    path = path_of_words(f, widths=[0.01, 0.3]).coefficients[0]
    np.testing.assert_allclose(path, expected, rtol=0, atol=1e-5)
    small = at(tree(4), 1e-100)[0]
    np.testing.assert_allclose(small, [0.0, *[1 / 3] * 4], rtol=0, atol=1e-14)
    # tiny bandwidths erase interactions
    path = path_of_words(tree(29), widths=[0.005, 0.01, 0.05, 0.25]).coefficients
    np.testing.assert_allclose(path[0], 0.004926, rtol=0, atol=5e-7)
    np.testing.assert_allclose(path[1:, 0], [0.0062, 0.166, 0.558], rtol=0, atol=5e-4)
    assert path[1, -1] == pytest.approx(0.0048, abs=5e-5)
