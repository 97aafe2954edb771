"""Coefficients over bandwidths: published values, limits, and all changes of sign."""

from __future__ import annotations

import numpy as np
import pytest
from text_lime_runs import tree

from propopt.base.errors import InvalidInput
from propopt.lime.paths import word_path
from propopt.lime.text.text_reading import WordRegression
from propopt.structures.subsets.conjunctions import Conjunctions, Enumerated


def product_less(a, d=20):
    """z_1 z_2 − a z_1."""
    return Conjunctions.of([1.0, -a], [[0, 1], [0]], [[], []], d)


def test_published_coefficients_of_a_product():
    widths = [0.05, 0.1, 0.15, 0.2, 0.25, 0.35]
    known = [0.924, 0.826, 0.749, 0.690, 0.646, 0.590]
    path = word_path(product_less(0.0), widths)
    np.testing.assert_allclose(path.coefficients[:, 0], known, rtol=0, atol=6e-4)
    unweighted = WordRegression(product_less(0.0)).at(np.array([np.inf]))
    assert unweighted.coefficients[0, 0] == pytest.approx(0.497, abs=6e-4)


def test_a_sign_changes_between_published_bandwidths():
    roots = word_path(product_less(0.7)).sign_changes[0]
    assert roots.widths == pytest.approx([0.1906], abs=5e-4)
    np.testing.assert_array_equal(roots.signs, [1, -1])
    exact = WordRegression(product_less(0.7)).at(roots.widths)
    assert abs(exact.coefficients[0, 0]) < 1e-13


@pytest.mark.parametrize("d", [2, 5, 9])
def test_signs_between_roots_are_those_on_a_fine_grid(d):
    grid, n_roots = np.geomspace(0.01, 50.0, 2000), []
    for seed in range(6):
        f = Enumerated(np.random.default_rng(seed).normal(size=2**d))
        exact = WordRegression(f)
        result = exact.at(grid).coefficients
        for j, roots in enumerate(word_path(f).sign_changes.columns):
            far = np.abs(result[:, j]) > 1e-9
            signs = np.array([roots.sign_at(nu) for nu in grid])
            np.testing.assert_array_equal(signs[far], np.sign(result[far, j]))
            n_roots.append(len(roots.widths))
            if n_roots[-1]:
                at_roots = exact.at(roots.widths).coefficients[:, j]
                assert np.abs(at_roots).max() < 1e-10
    # two words and an intercept fit all three sets: nothing depends on the bandwidth;
    # of five some change their sign, and of nine some do more than once
    assert {2: max(n_roots) == 0, 5: max(n_roots) >= 1, 9: max(n_roots) >= 2}[d]


def test_words_that_are_zero_everywhere():
    f = Conjunctions.of([1.0, -2.0], [[0], [3]], [[], []], 30)
    changes = word_path(f).sign_changes
    zero = [roots.zero for roots in changes.columns[:5]]
    assert zero == [False, True, True, False, True]
    assert [changes[j].sign_at(0.2) for j in (0, 1, 3)] == [1, 0, -1]


def test_the_limit_of_small_bandwidths_is_leaving_one_out():
    f = Enumerated(np.random.default_rng(0).normal(size=2**7))
    means = f.mean_by_size()
    left_out = f.value(~np.eye(7, dtype=bool))
    path = word_path(f, [0.01, 0.3])
    known = 2 * means[6] - means[5] - left_out
    zero = WordRegression(f).at(np.array([1e-100]))
    np.testing.assert_allclose(zero.coefficients[0], known, rtol=0, atol=1e-13)
    assert zero.intercept[0] == pytest.approx(means[6] - 6 * (means[6] - means[5]))
    # random f, d = 7, ν = .01: five digits
    np.testing.assert_allclose(path.coefficients[0], known, rtol=0, atol=1e-5)
    small = WordRegression(tree(4)).at(np.array([1e-100]))
    np.testing.assert_allclose(small.coefficients[0], 1 / 3, rtol=0, atol=1e-14)
    assert abs(small.intercept[0]) < 1e-14
    tiny = word_path(tree(29), [0.005]).coefficients[0]
    np.testing.assert_allclose(tiny, 0.004926, rtol=0, atol=5e-7)


def test_tiny_bandwidths_erase_interactions():
    path = word_path(tree(29), [0.01, 0.05, 0.25])
    known = [0.0062, 0.166, 0.558]
    np.testing.assert_allclose(path.coefficients[:, 0], known, rtol=0, atol=5e-4)
    assert path.coefficients[0, -1] == pytest.approx(0.0048, abs=5e-5)


def test_means_are_computed_once_for_the_path_and_the_signs():
    class Counted:
        n_words = 20
        calls = 0
        value = staticmethod(product_less(0.7).value)
        mean_by_size = staticmethod(product_less(0.7).mean_by_size)

        def kept(self, weights):
            self.calls += 1
            return product_less(0.7).kept(weights)

    counted = Counted()
    path = word_path(counted)
    assert path.sign_changes[0].widths == pytest.approx([0.1906], abs=5e-4)
    assert counted.calls == 2


def test_settings_out_of_range():
    with pytest.raises(InvalidInput, match="widths"):
        word_path(tree(29), [0.1, -1.0])
    with pytest.raises(InvalidInput, match="two distinct words"):
        word_path(Conjunctions.of([1.0], [[0]], [[]], 1))
