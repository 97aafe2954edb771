"""Changes of sign around one width are those that are found one row at a time."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.ensemble import RandomForestRegressor

import propopt as po
from propopt.lime.paths import REACH, sign_changes, signs_around


@pytest.fixture(scope="module")
def forest():
    rng = np.random.default_rng(4)
    X = rng.uniform(-1.0, 1.0, (300, 5))
    y = X[:, 0] * X[:, 1] + X[:, 2] * np.sin(3.0 * X[:, 3]) * X[:, 4]
    return RandomForestRegressor(12, max_depth=6, random_state=0).fit(X, y), X


@pytest.mark.sampled(2)
@pytest.mark.parametrize("width", [0.4, 1.0, 4.0])
@pytest.mark.parametrize("law", [po.lime.TabularLaw, po.lime.GaussianLaw])
def test_roots_and_turned_signs_are_those_of_each_row(forest, law, width):
    model, X = forest
    own = law.from_data(X, kernel_width=width)
    lime = po.lime.limits(model, X[:6], own, data=X)
    exact, points = lime.subject.exact, lime.subject.points
    roots, turned, wide = signs_around(exact, points)
    n_roots = 0
    for n, point in enumerate(points):
        for j, result in enumerate(sign_changes(exact, point).columns):
            near = result.nearest(width)
            if near is None or near < width / REACH:
                assert np.isnan(roots[n, j])
                continue
            n_roots += 1
            assert roots[n, j] == pytest.approx(near, rel=1e-6)
            assert turned[n, j] == (result.sign_at(width) != result.signs[-1])
    assert n_roots > 3
    at_once = exact.of(points, np.full(6, np.inf)).coefficients
    np.testing.assert_allclose(wide, at_once, rtol=0, atol=1e-14)
