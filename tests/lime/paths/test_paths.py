"""Coefficients over widths, and every width at which one of them changes its sign."""

import lime_fixture as fixture
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lime_fixture import POINT, PRODUCT, powers
from sklearn.ensemble import RandomForestRegressor

import propopt as po
from propopt.base.errors import InvalidInput
from propopt.lime import GaussianLaw, GlimeLaw, TabularLaw
from propopt.lime.exact_limits import ExactLimits
from propopt.lime.paths import path_of_row, signs_around
from propopt.structures.products.families import Bumps, Powers
from propopt.structures.products.sums import SumOfProducts


TILDE = fixture.column().pieces.normals.means
ROOT = np.sqrt(-0.5 / np.log(-TILDE[0] / (TILDE[1] + TILDE[2])))
"""ν where (m* + ε s) / (1 + (p − 1) ε) is zero, of the first bin."""


def test_widths_are_sorted_and_by_default_around_that_of_the_law():
    exact = ExactLimits(fixture.FUNCTIONS["box"], fixture.law(2.0))
    path = path_of_row(exact, POINT)
    assert len(path.widths) == 50
    np.testing.assert_allclose(path.widths[[0, -1]], [0.2, 20.0])
    assert (np.diff(path.widths) > 0).all()
    given = path_of_row(exact, POINT, [3.0, 1.0])
    np.testing.assert_array_equal(given.widths, [1.0, 3.0])
    assert repr(given) == "BandwidthPath(2 widths from 1 to 3, 3 columns)"
    for widths in ([0.0, 1.0], [-1.0], [np.nan], [], [[1.0]]):
        with pytest.raises(InvalidInput, match="widths"):
            path_of_row(exact, POINT, widths)


def roots_of(exact, point):
    """For each coefficient the widths at which its sign changes."""
    return path_of_row(exact, point).sign_changes


def test_a_product_of_two_changes_at_the_root_of_the_other_mean():
    exact = ExactLimits(PRODUCT, fixture.law())
    result = roots_of(exact, POINT)
    np.testing.assert_allclose(result[1], [ROOT], rtol=1e-10)
    # the mean of x_2 has no root: its bin and the others have the same sign
    assert len(result[0]) == 0
    assert len(result[2]) == 0  # it is not used
    # a path knows them also outside its widths
    path = path_of_row(exact, POINT, [1.0, 2.0])
    assert len(path.sign_changes[1]) == 1
    assert path.sign_changes is path.sign_changes
    # and a neighbourhood has the roots of its law
    glime = roots_of(ExactLimits(PRODUCT, GlimeLaw(fixture.law())), POINT)
    np.testing.assert_allclose(glime[1], result[1], rtol=1e-7)


def test_what_is_zero_everywhere_has_no_change():
    """A bin at the mean of the others: w_0 m_0 + w_2 m_2 = (w_0 + w_2) m_1."""
    low = (TILDE[2] - TILDE[1]) / (TILDE[2] - TILDE[0])
    shares = [[0.2, 0.5, 0.3], [0.6 * low, 0.4, 0.6 * (1 - low)], [0.3, 0.3, 0.4]]
    constant = SumOfProducts.additive(3.0, np.zeros(1), Powers.first(np.array([0])), 3)
    law = fixture.law(shares=shares)
    assert len(roots_of(ExactLimits(fixture.LINEAR, law), POINT)[1]) == 0
    nothing = roots_of(ExactLimits(constant, fixture.law()), POINT)
    assert [len(widths) for widths in nothing] == [0, 0, 0]


def test_a_triple_root_turns_the_sign_and_a_double_one_does_not():
    # β_4 = (F1 − F0) T_1² T_2 of the columns 1, 1', 2, all of which have roots
    point = np.array([-2.0, -2.0, -2.0, 2.0])
    f = powers([1.0], [[0, 1, 2, 3]], n_columns=4)
    result = roots_of(ExactLimits(f, fixture.law(n_columns=4)), point)
    np.testing.assert_allclose(result[3], [ROOT], rtol=1e-5)
    three = ExactLimits(powers([1.0], [[0, 1, 2]]), fixture.law())
    assert len(roots_of(three, point[[0, 1, 3]])[2]) == 0


def test_two_roots_are_found_unless_they_are_between_neighbouring_widths():
    # β_3 ∝ T² + offset, with T zero inside
    point = np.array([-2.0, -2.0, 2.0])
    for offset, count in [(-1e-6, 2), (-1e-9, 0), (1e-6, 0)]:
        f = powers([1.0, offset], [[0, 1, 2], [2, -1, -1]])
        exact = ExactLimits(f, fixture.law())
        roots = roots_of(exact, point)[2]
        assert len(roots) == count
        if count:
            rows = np.repeat(point[None], len(roots), axis=0)
            values = exact.of(rows, roots).coefficients
            np.testing.assert_allclose(values[:, 2], 0.0, atol=1e-14)


def random_sum(seed, n_columns, n_products, length):
    rng = np.random.default_rng(seed)
    paths = np.sort(
        np.argsort(rng.random((n_products, n_columns)), axis=1)[:, :length], axis=1
    )
    u = np.arange(n_products * length).reshape(n_products, length)
    terms = Bumps(
        paths.ravel(), rng.uniform(-3, 3, paths.size), rng.uniform(0.3, 2.0, paths.size)
    )
    values = rng.normal(size=n_products)
    return SumOfProducts(0.1, values, u, (terms,), n_columns)


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10**6), st.booleans(), st.integers(1, 4))
def test_signs_on_a_fine_grid_change_where_an_odd_number_of_roots_is(
    seed, equal, length
):
    shares = None if equal else np.random.default_rng(seed).dirichlet([5, 5, 5], size=4)
    law = fixture.law(shares=shares, n_columns=4)
    exact = ExactLimits(random_sum(seed, 4, 12, length), law)
    point = np.random.default_rng(seed + 1).uniform(-3, 3, 4)
    result, widths = roots_of(exact, point), np.geomspace(0.05, 60.0, 500)
    values = exact.of(np.repeat(point[None], 500, axis=0), widths).coefficients
    for roots, curve in zip(result, values.T, strict=True):
        clear = np.abs(curve) > 1e-13 * np.abs(values).max()
        turns = np.searchsorted(roots, widths[clear])
        signs = np.sign(curve[clear])
        if len(signs):
            assert (signs == signs[0] * (-1.0) ** (turns - turns[0])).all()


def test_other_kernels_by_pieces_find_the_critical_bandwidths():
    # B5 of the linear paper: bins of a standard normal, f linear
    point = np.array([0.1, 0.3, 0.34, 0.432, 0.6, -0.432, 1.0, -2.0])
    f = SumOfProducts.additive(0.0, np.ones(8), Powers.first(np.arange(8)), 8)
    result = roots_of(ExactLimits(f, GaussianLaw.of(np.zeros(8), 1.0, 1.0)), point)
    edges = np.array([-np.inf, -0.6744897501960817, 0.0, 0.6744897501960817, np.inf])
    for x, roots in zip(point, result, strict=True):
        k = np.searchsorted(edges, x, side="right")
        total = edges[k - 1] + edges[k]
        with np.errstate(divide="ignore", invalid="ignore"):
            square = (2 * x - total) / total
        expected = [np.sqrt(square)] if 0.0 < square < np.inf else []
        np.testing.assert_allclose(roots, expected, rtol=1e-9)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("width", [0.4, 1.0, 4.0])
@pytest.mark.parametrize("law", [TabularLaw, GaussianLaw])
def test_roots_and_turned_signs_around_a_width_are_those_of_each_row(law, width):
    rng = np.random.default_rng(4)
    X = rng.uniform(-1.0, 1.0, (300, 5))
    y = X[:, 0] * X[:, 1] + X[:, 2] * np.sin(3.0 * X[:, 3]) * X[:, 4]
    model = RandomForestRegressor(12, max_depth=6, random_state=0).fit(X, y)
    law_of_rows = law.from_data(X, kernel_width=width)
    some = X[: 4 if law is TabularLaw else 2]
    subject = po.lime.limits(model, some, law_of_rows, data=X).subject
    exact, points = subject.exact, subject.points
    around = signs_around(exact, points)
    roots, turned, wide = around
    n_roots = 0
    for n, point in enumerate(points):
        for j, crossings in enumerate(path_of_row(exact, point).sign_changes):
            nearest = crossings[np.argsort(np.abs(np.log(crossings / width)))][:1]
            if len(nearest) == 0 or nearest[0] < width / 8.0:
                assert np.isnan(roots[n, j])
                continue
            n_roots += 1
            assert roots[n, j] == pytest.approx(nearest[0], rel=1e-6)
            assert turned[n, j] == ((crossings > width).sum() % 2 == 1)
    assert n_roots > 3
    at_once = exact.of(points, np.full(len(some), np.inf)).coefficients
    np.testing.assert_allclose(wide, at_once, rtol=0, atol=1e-14)
