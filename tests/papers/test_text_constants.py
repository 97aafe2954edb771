"""Constants of Mardaoui and Garreau (2021), by their tables and by matrices."""

import numpy as np
import pytest

from papers.lime.text_constants import TextConstants, inverse_norm
from propopt.lime.text.word_limits import TextLaw


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
        np.testing.assert_allclose(unit, np.eye(d + 1), rtol=0, atol=8e-12)
        if d < 500:
            least = np.linalg.eigvalsh(constants.matrix)[0]
            assert inverse_norm(TextLaw(nu), d) == pytest.approx(1 / least, rel=1e-4)
