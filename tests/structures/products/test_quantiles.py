"""Quantiles are the inverse of distribution functions, wherever the law is."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import ndtri
from scipy.stats import truncnorm

from propopt.structures.products.normals import Normals, Quantiles


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
def test_the_share_below_a_quantile_is_its_level(name: str) -> None:
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


def test_quantiles_of_many_laws_are_those_of_each() -> None:
    parts = np.array([LAWS[name] for name in LAWS]).T
    joint = Quantiles(Normals(*parts))
    which = np.repeat(np.arange(len(LAWS)), 3)
    u = np.tile([0.1, 0.5, 0.9], len(LAWS))
    result = joint.at(which, u).reshape(-1, 3)
    for row, law in zip(result, LAWS.values(), strict=True):
        alone = Quantiles(Normals.of(*law)).at(np.zeros(3, np.intp), u[:3])
        np.testing.assert_array_equal(row, alone)


def test_quantiles_agree_with_scipy() -> None:
    mean, sd, low, high = LAWS["middle"]
    u = np.linspace(0.001, 0.999, 50)
    law = truncnorm((low - mean) / sd, (high - mean) / sd, loc=mean, scale=sd)
    result = Quantiles(Normals.of(mean, sd, low, high)).at(np.zeros(50, np.intp), u)
    np.testing.assert_allclose(result, law.ppf(u), rtol=1e-12)
