import numpy as np
import pytest
from subset_oracle import assert_means, masks

from propopt.lime.text.text_reading import WordRegression
from propopt.structures.subsets.sets import Blocks
from propopt.structures.subsets.sums import PlainSum


@pytest.mark.parametrize("nu", [0.05, 0.25, np.inf])
def test_words_alone_have_their_own_effects(rng, nu):
    own = rng.normal(size=40)
    f = PlainSum(-0.4, (Blocks.of_words(own, np.zeros(40), np.arange(40)),), 40)
    limits = WordRegression(f).at([nu])
    assert limits.coefficients[0] == pytest.approx(own, abs=2e-13)
    assert limits.intercept == pytest.approx([-0.4], abs=2e-13)


def test_means_are_those_over_all_sets(rng):
    values, order = rng.normal(size=(2, 8)), rng.permutation(9)
    values[:, 0] = 0.0
    blocks = (
        Blocks(order[:6].reshape(2, 3), values, np.zeros((2, 8))),
        Blocks.of_words(np.array([1.0, 0.0]), np.zeros(2), order[6:8]),
    )
    f = PlainSum(0.2, blocks, 9)
    bits = masks(f.n_words)
    assert_means(f, f.value(bits), bits, atol=1e-13)


def test_a_block_of_all_words_is_exact(rng):
    values = rng.normal(size=(1, 8))
    values[:, 0] = 0.0
    f = PlainSum(0.0, (Blocks(np.array([[2, 0, 1]]), values, np.zeros((1, 8))),), 3)
    bits = masks(f.n_words)
    assert_means(f, f.value(bits), bits, atol=1e-13)
