"""Intervals of the standard normal law against many digits."""

from __future__ import annotations

import numpy as np
import pytest

from propopt.structures.products.normals import (
    Normals,
    log_mass,
    mean_of_interval,
    share,
)


# log(Φ(b) − Φ(a)) and b − E[Z | a < Z ≤ b], from mpmath with 100 digits
KNOWN = [
    (-1.0, 0.5, -0.62959563255286351, 0.706631218061533),
    (-0.001, 0.002, -6.7280820235185501, 0.0015000003749998875),
    (-3.0, -2.5, -5.3267647240790622, 0.19487226217728633),
    (-6.5, -6.0, -20.778326599127094, 0.13774043334435359),
    (-25.0, -22.0, -246.01203653738092, 0.045268628037701707),
    (-300.0, -299.999, -45007.672946799976, 0.00047503746212221316),
    (-10000.0, -9999.9999, -50000009.587954064, 4.1802329115846604e-5),
    (-7.000001, -7.0, -39.234452591027294, 4.9999941673651382e-7),
    (-1000.0, -999.0, -499008.32569431385, 0.001000998994999031),
    (-40.0, 3.0, -0.0013508099647481938, 3.0044378390421257),
    (-2.0, -1.9999999999990905, -30.644825755601576, 4.5474735088632626e-13),
]


@pytest.mark.parametrize("mirror", [1.0, -1.0])
@pytest.mark.parametrize(("low", "high", "log", "below"), KNOWN)
def test_masses_and_means_have_all_digits(
    low: float, high: float, log: float, below: float, mirror: float
) -> None:
    a, b = (np.array([x]) for x in sorted([mirror * low, mirror * high]))
    assert log_mass(a, b)[0] == pytest.approx(log, rel=4e-15, abs=4e-15)
    reference, rest = mean_of_interval(a, b)
    end = b if mirror > 0 else a
    result = mirror * ((end - reference) - rest)[0]
    assert result == pytest.approx(below, rel=1e-11)


def test_masses_and_means_agree_with_many_digits_everywhere() -> None:
    mp = pytest.importorskip("mpmath")
    rng = np.random.default_rng(0)
    for _ in range(300):
        a = rng.choice([-1, 1]) * 10 ** rng.uniform(-3, 2.5)
        b = a + 10 ** rng.uniform(-9, 2.5)
        s, e = np.sort(rng.uniform(a, b, 2))
        with mp.workdps(100):
            mass, mean = _mass(mp, a, b), _mean(mp, a, b)
            part, log = float(_mass(mp, s, e) / mass), float(mp.log(mass))
        ends = np.array([a]), np.array([b])
        assert log_mass(*ends)[0] == pytest.approx(log, rel=4e-15, abs=4e-15)
        result = share(*ends, np.array([s]), np.array([e]))[0]
        assert result == pytest.approx(part, rel=1e-11, abs=1e-300)
        reference, rest = (x[0] for x in mean_of_interval(*ends))
        near = 0.0 if a < 0.0 < b else min(abs(a), abs(b))
        with mp.workdps(100):
            error = float(mp.mpf(reference) + mp.mpf(rest) - mean)
        assert abs(error) < 1e-10 * min(b - a, 1.0 / (1.0 + near))


def _mass(mp, a, b):  # type: ignore[no-untyped-def]
    a, b = (mp.mpf(x) for x in ((-b, -a) if a > 0 else (a, b)))
    return mp.ncdf(b) - mp.ncdf(a)


def _mean(mp, a, b):  # type: ignore[no-untyped-def]
    return (mp.npdf(a) - mp.npdf(b)) / _mass(mp, a, b)


def test_a_bin_of_almost_one_value_has_its_mean_and_its_shares() -> None:
    normals = Normals.of(1.0, 1e-11, 0.5, 1.0)
    half_normal = 1.0 - 1e-11 * np.sqrt(2 / np.pi)
    assert normals.means[0] == pytest.approx(half_normal, abs=2e-16)
    assert normals.shares(np.array([0.5]), np.array([0.9]))[0] == 0.0
    assert normals.shares(np.array([0.9]), np.array([1.0]))[0] == 1.0


def test_shares_of_a_narrow_bin_are_those_of_a_uniform_law() -> None:
    normals = Normals.of(0.3, 2.0, 1.0, 1.0 + 1e-9)
    cut = np.array([1.0 + 2.5e-10])
    width = (cut - normals.low) / (normals.high - normals.low)
    result = normals.shares(normals.low, cut)
    np.testing.assert_allclose(result, width, rtol=1e-8)
    result = result + normals.shares(cut, normals.high)
    np.testing.assert_allclose(result, 1.0, rtol=1e-14)


def test_shares_far_from_the_mean_are_those_of_an_exponential_law() -> None:
    normals = Normals.of(0.0, 1e-4, 1.0, 2.0)  # ten thousand deviations away
    cuts = 1.0 + 1e-8 * np.array([0.5, 1.0, 3.0])
    expected = -np.expm1(-(cuts - 1.0) * (cuts + 1.0) / (2 * 1e-8))
    result = normals.shares(np.full(3, 1.0), cuts)
    np.testing.assert_allclose(result, expected, rtol=3e-8)
    assert (normals.means[0] - 1.0) == pytest.approx(1e-8, rel=3e-8)


def test_a_whole_line_and_half_lines_are_intervals_too() -> None:
    normals = Normals.of([2.0, 2.0, 2.0], 3.0, [-np.inf, -np.inf, 2.0], np.inf)
    np.testing.assert_allclose(normals.means[:2], 2.0)
    assert normals.means[2] == pytest.approx(2.0 + 3.0 * np.sqrt(2 / np.pi))
    shares = normals.shares(np.full(3, 2.0), np.full(3, np.inf))
    np.testing.assert_allclose(shares, [0.5, 0.5, 1.0])
