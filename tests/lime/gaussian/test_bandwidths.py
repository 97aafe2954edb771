"""Where gains change their sign, and what they tend to on both sides."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from papers.lime import gaussian_theory
from propopt.lime import GaussianLaw, GlimeLaw


WIDE = np.array([-1.69480839, -0.43288377, 0.43288377, 1.69480839])
"""Gains of the quartiles of N(0, 1) without weights, to eight digits."""


def gains_at(law, x, widths):
    return np.array(
        [gaussian_theory.gains(law.with_width(w), [x]).gain[0] for w in widths]
    )


@given(
    x=st.lists(st.floats(-1.9, 1.9), min_size=3, max_size=3),
    n_bins=st.integers(2, 7),
)
def test_gains_change_their_sign_where_the_critical_width_is_and_nowhere_else(
    x, n_bins
):
    law = GaussianLaw.of([0.0, 0.1, 1.0], [1.0, 0.7, 2.0], 1.0, n_bins)
    result = gaussian_theory.critical_bandwidths(law, [x])
    widths = np.geomspace(1e-2, 1e2, 60)
    gains = gains_at(law, x, widths)
    signs = np.where(np.abs(gains) < 1e-13, 0.0, np.sign(gains))
    for j, root in enumerate(result[0]):
        if np.isnan(root) or not widths[0] < root < widths[-1]:
            assert len(set(signs[:, j]) - {0.0}) <= 1
        else:
            np.testing.assert_array_equal(signs[:, j] == signs[-1, j], widths > root)
            at_root = gains_at(law, x, [root])[0, j]
            assert abs(at_root) < 1e-9


def test_limits_of_narrow_and_wide_kernels():
    law = GaussianLaw.of([0.0], 1.0, 1.0)
    x = np.array([-1.5, -0.3, 0.3, 0.35, 1.5])[:, None]
    wide = gaussian_theory.gains(law.with_width(1e7), x).gain
    np.testing.assert_allclose(wide[:, 0], WIDE[[0, 1, 2, 2, 3]], atol=5.1e-9)
    narrow = gaussian_theory.gains(law.with_width(1e-7), x).gain
    edge = law.columns[0].edges[2]
    expected = [edge - 1.5, 0.3, 0.3, 0.35 - edge, 1.5 - edge]
    np.testing.assert_allclose(
        narrow[:, 0], [1.0, -1.0, 1.0, 1.0, 1.0] * np.array(expected)
    )


def test_units_of_distance_are_units_of_the_critical_width():
    one = GaussianLaw.of([0.0], 1.0, 1.0)
    other = GaussianLaw.of([0.0], 10.0, 1.0, unit=10.0)
    a = gaussian_theory.critical_bandwidths(one, [[0.432]])
    b = gaussian_theory.critical_bandwidths(other, [[4.32]])
    np.testing.assert_allclose(a, b, rtol=1e-14)
    here, there = (
        gaussian_theory.gains(one, [[0.432]]),
        gaussian_theory.gains(other, [[4.32]]),
    )
    np.testing.assert_allclose(10.0 * here.gain, there.gain, rtol=1e-12)


def test_the_middle_bin_of_three_has_no_critical_width():
    law = GaussianLaw.of([0.0], 1.0, 1.0, n_bins=3)
    rows = [[0.0], [0.1], [-0.1]]
    assert np.isnan(gaussian_theory.critical_bandwidths(law, rows)).all()
    narrow, own, wide = (
        gaussian_theory.gains(law.with_width(width), rows).gain
        for width in (1e-7, 1.0, 1e9)
    )
    np.testing.assert_allclose(own[0, 0], 0.0, atol=1e-16)
    np.testing.assert_allclose(wide[0, 0], 0.0, atol=1e-15)
    assert own[1, 0] * narrow[1, 0] != 0.0


def test_a_column_with_a_critical_width_and_one_without():
    law = GaussianLaw.of([0.0, 0.0], 1.0, 0.55)
    result = gaussian_theory.critical_bandwidths(GlimeLaw(law), [[0.43198, 0.1]])
    np.testing.assert_allclose(0.55 / result[0, 0], 0.55 / 0.53, atol=5e-4)
    assert np.isnan(result[0, 1])


@pytest.mark.parametrize("missing", [False, True])
def test_columns_that_are_no_numbers_have_no_width(missing):
    column = np.array([1.0, 2.0, np.nan, 4.0]) if missing else np.ones(4)
    X = np.column_stack([np.arange(4.0), column])
    law = GaussianLaw.from_data(X)
    assert np.isnan(gaussian_theory.critical_bandwidths(law, X)[:, 1]).all()
    assert np.isnan(gaussian_theory.gains(law, X).gain[:, 1]).all()
    assert np.isnan(gaussian_theory.gains(law.with_width(1e-7), X).gain[:, 1]).all()
