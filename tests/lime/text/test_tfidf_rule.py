import numpy as np
import pytest

from propopt.base.errors import InvalidInput
from propopt.lime.text.text_reading import WordRegression, tfidf_factor
from propopt.structures.subsets.sets import Blocks
from propopt.structures.subsets.sums import NormalisedSum


def test_factors_are_those_of_the_table():
    nu = [0.05, 0.1, 0.2, 0.25, 0.3, 0.35, 0.5, 1.0, np.inf]
    known = [1.064, 1.128, 1.252, 1.307, 1.354, 1.394, 1.475, 1.563, 1.600]
    assert tfidf_factor(nu) == pytest.approx(known, abs=5e-4)


def test_extreme_bandwidths_have_their_limits():
    assert tfidf_factor([1e-7, np.inf]) == pytest.approx([1.0, 1.6], rel=1e-6)


@pytest.mark.parametrize("nu", [0.1, 0.25, np.inf])
def test_one_of_many_words_tends_to_the_factor(nu):
    """Alone with its weight, and of 1,600 words alike: the rest is of order 1/d."""
    off = [_own(d, nu) - tfidf_factor(nu)[0] for d in (400, 1600)]
    assert abs(off[1]) < 2e-3
    assert off[0] / off[1] == pytest.approx(4.0, rel=0.05)


def test_equal_weights_have_what_the_docstring_says():
    f = NormalisedSum(
        0.0, (Blocks.of_words(np.ones(29), np.ones(29), np.arange(29)),), 0.5
    )
    limits = WordRegression(f).at(np.array([0.25, np.inf]))
    assert limits.coefficients[:, 0] * np.sqrt(29.0) == pytest.approx(
        [0.654, 0.841], abs=5e-4
    )


def test_a_bandwidth_of_zero_is_refused():
    with pytest.raises(InvalidInput, match="positive"):
        tfidf_factor([0.25, 0.0])


def _own(d, nu):
    words = Blocks.of_words(np.eye(d)[0], np.ones(d), np.arange(d))
    limits = WordRegression(NormalisedSum(0.0, (words,), 0.5)).at(np.array([nu]))
    return limits.coefficients[0, 0] * np.sqrt(d)
