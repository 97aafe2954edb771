"""What is proved: it holds, and is of no use."""

from __future__ import annotations

import numpy as np
import pytest

from papers.lime.text_bounds import (
    hoeffding_samples,
    moment_bounds,
    text_theorem_samples,
)
from papers.lime.text_constants import TextConstants
from propopt.base.errors import InvalidInput
from propopt.lime.text.text_reading import TextLaw


@pytest.mark.parametrize("nu", [0.05, 0.25, 1.0, 10.0])
@pytest.mark.parametrize("d", [2, 3, 29, 500])
def test_bounds_of_constants_hold(d, nu):
    bounds, own = moment_bounds(d, nu), TextConstants(TextLaw(nu), d)
    alphas = own.alphas()
    assert (bounds.lowest_alphas <= alphas + 1e-15).all()
    assert (alphas <= bounds.highest_alphas + 1e-15).all()
    assert bounds.lowest_apart <= own.apart
    assert bounds.lowest_c <= own.c
    assert own.law.inverse_norm(d) <= bounds.highest_inverse_norm


def test_published_numbers():
    result = text_theorem_samples(0.1, 0.05, 1.0, 29, 0.25)
    assert result == pytest.approx(4.6e95, rel=0.01)
    assert hoeffding_samples(0.1, 0.05, 1.0, 29, 0.25) == pytest.approx(
        1.8e13, rel=0.03
    )
    assert hoeffding_samples(0.1, 0.05, 1.0, 29, 1.0) == pytest.approx(7.8e10, rel=0.01)


def test_units_of_f_do_not_matter():
    one = text_theorem_samples(0.1, 0.05, 1.0, 29, 0.25)
    assert text_theorem_samples(10.0, 0.05, 100.0, 29, 0.25) == pytest.approx(one)
    other = hoeffding_samples(0.1, 0.05, 1.0, 29, 0.25)
    assert hoeffding_samples(10.0, 0.05, 100.0, 29, 0.25) == pytest.approx(other)
    small = hoeffding_samples(0.1, 0.05, 1.0, 29, 0.25, gamma_norm=0.1)
    assert small < other
    assert text_theorem_samples(0.1, 0.05, 1.0, 29, 0.05) == np.inf


def test_settings_out_of_range():
    with pytest.raises(InvalidInput, match="error"):
        text_theorem_samples(2.0, 0.05, 1.0, 29, 0.25)
    with pytest.raises(InvalidInput, match="failure"):
        hoeffding_samples(0.1, 1.0, 1.0, 29, 0.25)
    with pytest.raises(InvalidInput, match="bandwidth"):
        moment_bounds(29, -1.0)
