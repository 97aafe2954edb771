"""Moments of bits against dense matrices and against sums over all sets."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from propopt.lime.expectations import ExchangeableBits, IndependentBits


D = 5
RNG = np.random.default_rng(0)


def every_set():
    return np.array(list(product([0.0, 1.0], repeat=D)))


def exchangeable():
    """Three laws of sizes, and the probability of each set."""
    logs = RNG.normal(0.0, 2.0, (3, D + 1))
    logs[1, 3] += 30.0  # nearly all sets have one size
    sets = every_set()
    sizes = sets.sum(axis=1).astype(int)
    of_size = np.bincount(sizes)[sizes]
    masses = np.exp(logs)[:, sizes] / of_size
    return ExchangeableBits(logs), masses


def independent():
    alpha = RNG.uniform(0.1, 0.9, (3, D))
    sets = every_set()
    masses = np.where(sets == 1.0, alpha[:, None], 1.0 - alpha[:, None]).prod(axis=2)
    return IndependentBits(alpha, np.array([-1.0, 0.0, 2.0])), masses


def dense(masses):
    """Means and covariances, (n, D) and (n, D, D)."""
    sets = every_set()
    shares = masses / masses.sum(axis=1, keepdims=True)
    means = shares @ sets
    centred = sets - means[:, None]
    return means, np.einsum("ns,nsi,nsj->nij", shares, centred, centred)


@pytest.mark.parametrize("kind", [exchangeable, independent])
def test_moments_are_those_of_all_sets(kind):
    bits, masses = kind()
    means, covariance = dense(masses)
    np.testing.assert_allclose(bits.alpha, means, rtol=0, atol=1e-13)
    b = RNG.normal(size=(3, D))
    expected = np.einsum("nij,nj->ni", covariance, b)
    np.testing.assert_allclose(bits.covariances(b), expected, rtol=0, atol=1e-12)


def test_the_weight_is_that_of_all_sizes():
    bits, masses = exchangeable()
    np.testing.assert_allclose(bits.log_weight, np.log(masses.sum(axis=1)), atol=1e-12)


@pytest.mark.parametrize("kind", [exchangeable, independent])
@pytest.mark.parametrize("some", [False, True])
def test_penalised_systems_of_all_or_some_bits(kind, some):
    bits, masses = kind()
    _, covariance = dense(masses)
    penalty = np.array([1e-3, 0.5, 40.0])
    kept = np.array([[1, 0, 1, 1, 0], [0, 1, 0, 0, 0], [1, 1, 1, 1, 1]], bool)
    x = RNG.normal(size=(3, 2, D))
    own = kept if some else None
    solved, left = bits.solved(x, penalty, own), bits.share_left(penalty, own)
    for n in range(3):
        used = kept[n] if some else np.ones(D, bool)
        inverse = np.zeros((D, D))
        block = covariance[n] + penalty[n] * np.eye(D)
        inverse[np.ix_(used, used)] = np.linalg.inv(block[np.ix_(used, used)])
        np.testing.assert_allclose(solved[n], x[n] @ inverse, rtol=1e-9, atol=1e-12)
        diagonal = np.diag(inverse @ covariance[n])
        np.testing.assert_allclose(left[n], diagonal, rtol=0, atol=1e-11)


@pytest.mark.parametrize("kind", [exchangeable, independent])
def test_some_situations_are_as_among_all(kind):
    bits, _ = kind()
    x, rows = RNG.normal(size=(3, 1, D)), np.array([2, 0])
    penalty = np.full(3, 0.1)
    result = bits.at(rows).solved(x[rows], penalty[rows])
    np.testing.assert_array_equal(result, bits.solved(x, penalty)[rows])
    np.testing.assert_array_equal(bits.at(rows).alpha, bits.alpha[rows])
    np.testing.assert_array_equal(bits.at(rows).log_weight, bits.log_weight[rows])
