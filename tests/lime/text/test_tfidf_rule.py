import numpy as np
import pytest

from propopt.lime.text.text_reading import WordRegression
from propopt.structures.subsets.sets import Blocks
from propopt.structures.subsets.sums import NormalisedSum


def test_equal_weights_have_less_than_published():
    """Mardaoui and Garreau (2021) have 1.36 at all ν."""
    f = NormalisedSum(
        0.0, (Blocks.of_words(np.ones(29), np.ones(29), np.arange(29)),), 0.5
    )
    limits = WordRegression(f).at(np.array([0.25, np.inf]))
    assert limits.coefficients[:, 0] * np.sqrt(29.0) == pytest.approx(
        [0.654, 0.841], abs=5e-4
    )
