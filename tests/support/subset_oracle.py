"""Means of functions of sets of words, summed over all sets."""

from itertools import combinations

import numpy as np


def masks(d: int) -> np.ndarray:
    """All sets of d words, by their size, as bits."""
    chosen = [c for m in range(d + 1) for c in combinations(range(d), m)]
    bits = np.zeros((len(chosen), d), bool)
    for row, indices in zip(bits, chosen, strict=True):
        row[list(indices)] = True
    return bits


def means(values: np.ndarray, bits: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """E_m f (d + 1,) and E_m[z_j f] (d + 1, d), one size after the other."""
    d, sizes = bits.shape[1], bits.sum(axis=1)
    level, moments = np.zeros(d + 1), np.zeros((d + 1, d))
    for m in range(d + 1):
        of_size = sizes == m
        level[m] = values[of_size].mean()
        moments[m] = (values[of_size, None] * bits[of_size]).mean(axis=0)
    return level, moments


def assert_means(result, values: np.ndarray, bits: np.ndarray, atol: float = 1e-10):
    """That a set function has these values, and their means."""
    d = bits.shape[1]
    assert result.n_words == d
    level, moments = means(values, bits)
    np.testing.assert_allclose(result.value(bits), values, rtol=0, atol=atol)
    np.testing.assert_allclose(result.mean_by_size(), level, rtol=0, atol=atol)
    np.testing.assert_allclose(
        result.first_moments(np.eye(d + 1)), moments, rtol=0, atol=atol
    )
    weights = np.random.default_rng(3).random((2, d + 1))
    np.testing.assert_allclose(
        result.first_moments(weights), weights @ moments, rtol=0, atol=10 * atol
    )
