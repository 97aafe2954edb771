"""Factors and normals have the means of quadrature and many digits, in far tails."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import ndtri

from propopt.base.errors import Refused
from propopt.structures.products import families
from propopt.structures.products.normals import (
    Normals,
    Quantiles,
    log_mass,
    mean_of_interval,
    share,
)
from propopt.structures.products.pipeline_columns import AffineColumn, by_table
from propopt.structures.products.sums import SumOfProducts


# ---- intervals of the standard normal law, against many digits
INTERVALS = [
    (-1.0, 0.5, -0.62959563255286351, 0.706631218061533),
    (-0.001, 0.002, -6.7280820235185501, 0.0015000003749998875),
    (-6.5, -6.0, -20.778326599127094, 0.13774043334435359),
    (-10000.0, -9999.9999, -50000009.587954064, 4.1802329115846604e-5),
    (-1000.0, -999.0, -499008.32569431385, 0.001000998994999031),
    (-2.0, -1.9999999999990905, -30.644825755601576, 4.5474735088632626e-13),
]


@pytest.mark.parametrize("mirror", [1.0, -1.0])
@pytest.mark.parametrize(("low", "high", "log", "below"), INTERVALS)
def test_masses_and_means_have_all_digits(low, high, log, below, mirror):
    a, b = (np.array([x]) for x in sorted([mirror * low, mirror * high]))
    assert log_mass(a, b)[0] == pytest.approx(log, rel=4e-15, abs=4e-15)
    reference, rest = mean_of_interval(a, b)
    end = b if mirror > 0 else a
    result = mirror * ((end - reference) - rest)[0]
    assert result == pytest.approx(below, rel=1e-11)


def test_masses_and_means_agree_with_many_digits_everywhere():
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
        nearest = 0.0 if a < 0.0 < b else min(abs(a), abs(b))
        with mp.workdps(100):
            error = float(mp.mpf(reference) + mp.mpf(rest) - mean)
        assert abs(error) < 1e-10 * min(b - a, 1.0 / (1.0 + nearest))


def _mass(mp, a, b):  # type: ignore[no-untyped-def]
    a, b = (mp.mpf(x) for x in ((-b, -a) if a > 0 else (a, b)))
    return mp.ncdf(b) - mp.ncdf(a)


def _mean(mp, a, b):  # type: ignore[no-untyped-def]
    return (mp.npdf(a) - mp.npdf(b)) / _mass(mp, a, b)


# ---- quantiles are the inverse of distribution functions, wherever the law is
LAWS = {
    "middle": (0.3, 1.2, -1.0, 2.0),
    "half": (0.0, 1.0, 0.0, np.inf),
    "left tail": (0.0, 1.0, -9.0, -5.0),
    "right tail": (0.0, 1.0, 6.0, np.inf),
    "far left": (0.0, 1.0, -60.0, -50.0),
    "far right": (0.0, 1e-3, 0.5, 2.0),
    "narrow": (1.0, 2.0, 0.5, 0.5 + 1e-6),
    "narrow and far": (0.0, 1.0, 1e4, 1e4 + 1e-8),
    "almost one value": (1.0, 1e-11, 0.5, 1.0),
    "wide": (0.0, 1.0, -30.0, 30.0),
}
TOLERANCES = {"far right": 1e-9, "narrow": 1e-9, "narrow and far": 1e-2}
"""What the last digit of x is of the interval, where that is much."""


@pytest.mark.parametrize("name", LAWS)
def test_the_share_below_a_quantile_is_its_level(name):
    normals = Normals.of(*LAWS[name])
    u = np.array([1e-6, 0.01, 0.2, 0.5, 0.77, 0.99, 1 - 1e-6])
    x = Quantiles(normals).at(np.zeros(len(u), np.intp), u)
    assert (np.diff(x) >= 0).all()
    assert ((x >= normals.low) & (x <= normals.high)).all()
    if name == "almost one value":  # of which x itself has but five digits
        np.testing.assert_allclose(x, 1.0 - 1e-11 * ndtri(1.0 - u / 2)[::-1], rtol=1e-9)
        return
    shares = normals.shares(normals.low, x)
    np.testing.assert_allclose(shares, u, rtol=1e-9, atol=TOLERANCES.get(name, 1e-12))


def test_an_interval_that_rounding_closes_has_no_share():
    normals = Normals.of(0.2, 0.2, 0.0, 0.6)  # a column of numbers >= 0
    shares = normals.shares(np.array([-np.inf, 1e-35]), np.array([1e-35, np.inf]))
    np.testing.assert_array_equal(shares, [0.0, 1.0])  # LightGBM splits there


def test_quantiles_of_many_laws_are_those_of_each():
    parts = np.array([LAWS[name] for name in LAWS]).T
    joint = Quantiles(Normals(*parts))
    which = np.repeat(np.arange(len(LAWS)), 3)
    u = np.tile([0.1, 0.5, 0.9], len(LAWS))
    result = joint.at(which, u).reshape(-1, 3)
    for row, law in zip(result, LAWS.values(), strict=True):
        alone = Quantiles(Normals.of(*law)).at(np.zeros(3, np.intp), u[:3])
        np.testing.assert_array_equal(row, alone)


# ---- families
def test_curves_that_cannot_be_integrated_are_refused():
    fast = families.Curves(np.zeros(1, np.intp), (lambda x: np.exp(0.6 * x**2),), ([],))
    with pytest.raises(Refused, match=r"column 0 .* between -inf and inf"):
        fast.under(Normals.of(0.0, 1.0, -np.inf, np.inf))
    inside = fast.under(Normals.of(0.0, 1.0, -1.0, 1.0))[0, 0]
    total, _ = quad(lambda x: np.exp(0.1 * x**2), -1.0, 1.0, epsrel=1e-13)
    mass, _ = quad(lambda x: np.exp(-0.5 * x**2), -1.0, 1.0, epsrel=1e-13)
    assert inside == pytest.approx(total / mass, rel=1e-12)
    jump = families.Curves(np.zeros(1, np.intp), (lambda x: 1.0 * (x > 0.1234),), ([],))
    with pytest.raises(Refused, match="half as many give another value"):
        jump.under(Normals.of(0.0, 1.0, -1.0, 1.0))


# ---- functions of what a model sees are the same functions of the table
@pytest.mark.parametrize(
    "family", [families.Bumps, families.Powers, families.Exponentials]
)
def test_factors_of_a_line_are_factors_of_its_column(family):
    """g(s (x − c)), and the value of what is missing."""
    factor = family(np.zeros(1, np.intp), np.array([3]), np.array([0.7]))
    function = SumOfProducts.additive(0.5, np.ones(1), factor, 1)
    pulled = by_table(function, [AffineColumn(0, -2.0, 0.3, missing=0.9)], n_columns=1)
    x = np.array([[-1.0], [0.4], [np.nan]])
    expected = function.value(np.where(np.isnan(x), 0.9, -2.0 * (x - 0.3)))
    np.testing.assert_allclose(pulled.value(x), expected, rtol=1e-12)


def test_joint_factors_have_the_means_of_both():
    """x² under a normal, from a product of two lines x."""
    function = SumOfProducts(
        0.0, np.ones(1), np.array([[0, 1]]), (families.Powers.first(np.arange(2)),), 2
    )
    pulled = by_table(
        function, [AffineColumn(0), AffineColumn(0, 3.0, 1.0)], n_columns=1
    )
    (family,) = pulled.factors
    mean = family.under(Normals.of(0.5, 2.0, -np.inf, np.inf))[0, 0]
    assert mean == pytest.approx(3.0 * (0.25 + 4.0 - 0.5), rel=1e-12)
