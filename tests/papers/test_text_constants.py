"""Constants and means of LIME on texts, by tables, matrices, equations, the package."""

import numpy as np
import pytest
from normal_samples import least_squares, with_intercept

from papers.lime.text_constants import TextConstants, inverse_norm
from papers.text_lime.leverage import effective_log_weights, mean_of_runs
from papers.text_lime.set_functions import conjunctions
from propopt.lime.text.word_limits import TextLaw
from propopt.structures.subsets.conjunctions import Enumerated
from propopt.structures.subsets.sets import all_sets


def test_reference_values():
    quarter, small, wide = (
        TextConstants(TextLaw(nu), 29) for nu in (0.25, 0.05, np.inf)
    )
    alphas = [0.48441163, 0.33638798, 0.24985253, 0.19419235, 0.15584646, 0.12803622]
    np.testing.assert_allclose(quarter.alphas(5), alphas, rtol=0, atol=5e-9)
    assert quarter.alphas()[-1] == 0.0
    alphas = [0.10308973, 0.09410440, 0.08590101]
    np.testing.assert_allclose(small.alphas(2), alphas, rtol=0, atol=5e-9)
    for constants, c, atol in (
        (quarter, 0.27028198, 5e-9),
        (small, 8.4202297e-4, 5e-12),
        (wide, 2.4137931, 5e-8),
    ):
        assert constants.c == pytest.approx(c, abs=atol)
    for constants, known in (
        (quarter, [27.12818171, -1.24458160, 11.21927719, -0.33667971]),
        (wide, [3.8, -0.2, 5.61428571, -0.18571429]),
    ):
        np.testing.assert_allclose(constants.sigmas, known, rtol=0, atol=5e-9)
    # many words tend to integrals
    many = TextConstants(TextLaw(0.25), 5000)
    known = [0.50166, 0.35353, 0.26988, 0.21686, 0.18059]
    np.testing.assert_allclose(many.alphas(4), known, atol=2e-4)
    assert many.c / 5000 == pytest.approx(0.0104, abs=5e-5)
    # norms are bounded in the number of words
    assert inverse_norm(TextLaw(0.25), 500) == pytest.approx(26.1, abs=0.05)
    assert inverse_norm(TextLaw(10.0), 500) == pytest.approx(6.0, abs=0.05)
    assert inverse_norm(TextLaw(0.25), 20000) < 26.5
    for nu, share in ((0.05, 0.154), (0.1, 0.304), (0.25, 0.646), (0.35, 0.788)):
        assert TextLaw(nu).effective_share(29) == pytest.approx(share, abs=5e-4)


@pytest.mark.parametrize("nu", [0.05, 0.1, 0.25, 0.35, 1.0, 10.0, np.inf])
def test_the_inverse_is_one_and_norms_are_those_of_the_matrix(nu):
    for d in (5, 29, 500):
        constants = TextConstants(TextLaw(nu), d)
        unit = constants.matrix @ constants.inverse
        rounding = np.finfo(float).eps * np.linalg.cond(constants.matrix)
        np.testing.assert_allclose(unit, np.eye(d + 1), rtol=0, atol=rounding)
        if d < 500:
            least = np.linalg.eigvalsh(constants.matrix)[0]
            assert inverse_norm(TextLaw(nu), d) == pytest.approx(1 / least, rel=1e-4)


# ---- the mean of runs of few samples
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
