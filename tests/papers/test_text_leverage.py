"""The mean of LIME on texts with few samples, by equations and by the package."""

import numpy as np
import pytest
from normal_samples import least_squares, with_intercept

from papers.text_lime.leverage import effective_log_weights, mean_of_runs
from papers.text_lime.set_functions import conjunctions
from propopt.lime.text.word_limits import TextLaw
from propopt.structures.subsets.conjunctions import Enumerated
from propopt.structures.subsets.sets import all_sets


LAW = TextLaw(0.25)
SETTINGS = [(0.0, False), (0.0, True), (1.0, True), (5.0, False)]
ANY = Enumerated(np.random.default_rng(0).normal(size=2**7))


@pytest.mark.parametrize(("ridge", "first_row"), SETTINGS)
def test_means_solve_the_mean_normal_equations(ridge, first_row):
    # effective weights are a fixed point: π̃ = π / (1 + π q), q the mean over sets of
    # one size of Zᵀ A⁻¹ Z
    logs = effective_log_weights(LAW, 7, 20, ridge, first_row)
    masks = all_sets(7)
    sizes = masks.sum(axis=1)
    weights = np.exp(logs)[sizes] / (7 * np.bincount(sizes)[sizes]) * (20 - first_row)
    weights[sizes == 7] = float(first_row)
    X = np.column_stack([np.ones(128), masks])
    penalty = ridge * np.eye(8)
    penalty[0, 0] = 0.0
    inverse = np.linalg.inv((X.T * weights) @ X + penalty)
    q = np.einsum("si,ij,sj->s", X, inverse, X)
    mean_q = (np.bincount(sizes, q) / np.bincount(sizes))[:7]
    pi = np.exp(LAW.log_weights(7)[:7])
    np.testing.assert_allclose(np.exp(logs[:7]), pi / (1 + pi * mean_q), rtol=1e-10)
    truth = least_squares(masks, weights, ANY.value(masks), ridge)
    full = with_intercept(mean_of_runs(ANY, LAW, 20, ridge, first_row))
    np.testing.assert_allclose(full, truth, rtol=0, atol=1e-9)


def test_published_numbers_of_the_package():
    # .6550 ± .0015 for the intercept, and .5452 ± .0009 and .382 for a coefficient
    tree = conjunctions([1.0, 1.0], [[0], [1, 2]], [[], [0]], 29)
    for nu, n, index, known, atol in (
        (0.05, 5000, 0, 0.655, 0.0045),
        (0.25, 500, 1, 0.5452, 0.002),
        (0.25, 50, 1, 0.382, 0.002),
    ):
        full = with_intercept(mean_of_runs(tree, TextLaw(nu), n))
        assert full[index] == pytest.approx(known, abs=atol)
