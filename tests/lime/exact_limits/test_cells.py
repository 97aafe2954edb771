"""Limits of the golden columns, their variances, profiles and parts, cell by cell."""

import lime_fixture as fixture
import numpy as np
import pytest
from lime_fixture import BUMP, FUNCTIONS, POINT, ROW, UNEQUAL, by_quadrature
from normal_samples import pieces_of, with_intercept
from sklearn.ensemble import RandomForestRegressor

import propopt as po
from papers.lime.cells import split_by_cells
from propopt.lime import GaussianLaw, GlimeLaw, TabularLaw
from propopt.lime.exact_limits import (
    ExactLimits,
    bin_profiles,
    effective_share,
    split_by_columns,
)
from propopt.lime.laws.binned_columns import BinnedColumn
from propopt.lime.paths import path_of_row
from propopt.structures.products.normals import Normals


NAMES = pytest.mark.parametrize("name", FUNCTIONS)


@NAMES
def test_golden_numbers(name):
    for width, golden in zip(fixture.WIDTHS, fixture.GOLDEN[name], strict=True):
        limits = ExactLimits(FUNCTIONS[name], fixture.law(width)).of(ROW)
        np.testing.assert_allclose(with_intercept(limits), golden, rtol=0, atol=1e-9)


def test_constants_of_the_weighted_law():
    rows = np.repeat(ROW, 3, axis=0)
    result = ExactLimits(BUMP, fixture.law(1.0)).of(rows, fixture.WIDTHS)
    expected = [[0.451862761878] * 3, [0.402069183368] * 3, [1 / 3] * 3]
    np.testing.assert_allclose(result.alpha, expected, rtol=0, atol=1e-12)
    c = np.exp(result.log_weight / 3)
    np.testing.assert_allclose(c, [0.737687106475, 0.829044719471, 1.0], atol=1e-12)
    for n, share in enumerate([0.832010355857, 0.938836666249, 1.0]):
        law = fixture.law(fixture.WIDTHS[n])
        found = effective_share(law, ROW, result.log_weight[[n]])
        np.testing.assert_allclose(found, share, rtol=0, atol=1e-9)


def brute_parts(f, bits, weights, values):
    """Parts by sums over all cells, (parts, columns)."""
    used = f.columns
    cells = np.zeros((len(used) + 1, 3))
    for j in used:
        out = (1 - bits[:, [k for k in used if k != j]]).sum(axis=1)
        for bit, sign in ((1, 1.0), (0, -1.0)):
            side = bits[:, j] == bit
            p = weights[side] / weights[side].sum()
            for m in range(len(used)):
                in_cell = out[side] == m
                cells[m + 1 - bit, j] += sign * (p * values[side])[in_cell].sum()
    return cells


@pytest.mark.sampled(4)
@NAMES
@pytest.mark.parametrize("width", [0.5, 2.0])
def test_all_is_a_sum_over_cells(name, width):
    """Coefficients, variances, profiles of bins, and parts by cells."""
    law, f = fixture.law(width, UNEQUAL), FUNCTIONS[name]
    samples, bits, bins, weights = fixture.quadrature(law, width)
    values, exact = f.value(samples), ExactLimits(f, law)
    limits, beta = exact.of(ROW), by_quadrature(f, law, width)
    np.testing.assert_allclose(with_intercept(limits), beta, rtol=0, atol=1e-9)
    other = ExactLimits(f, fixture.law(None, UNEQUAL))  # of another width
    path = path_of_row(other, POINT, [width, 9])
    result = [path.intercept[0], *path.coefficients[0]]
    np.testing.assert_allclose(result, beta, rtol=0, atol=1e-9)
    surrogate = limits.intercept + bits @ limits.coefficients[0]
    part = np.cov(surrogate, aweights=weights, ddof=0)
    alpha = limits.alpha  # of independent bits
    explained = (alpha * (1.0 - alpha) * limits.coefficients**2).sum(axis=1)
    np.testing.assert_allclose(explained, [part], rtol=1e-9)
    for j, profile in enumerate(bin_profiles(exact, ROW)):
        in_bins = [bins[:, j] == b for b in range(3)]
        means = [np.average(values[b], weights=weights[b]) for b in in_bins]
        np.testing.assert_allclose(profile[0], means, rtol=0, atol=1e-9)
    parts = brute_parts(f, bits, weights, values)
    np.testing.assert_allclose(split_by_cells(exact, ROW)[0], parts, atol=1e-9)


@pytest.fixture
def X(rng):
    return rng.normal(size=(90, 3))


TOLERANCES = {
    "coefficients": {"rtol": 1e-12, "atol": 1e-15},
    "alpha": {"rtol": 1e-14},
    "mean": {"rtol": 1e-13},
    "log_weight": {"rtol": 1e-7},
}


@NAMES
def test_limits_of_many_rows_are_those_of_each(name, X):
    exact = ExactLimits(FUNCTIONS[name], TabularLaw.from_data(X, n_bins=3))
    widths = np.where(np.arange(90) % 2 == 0, 0.5, 1.5)
    for joint, row_widths in ((exact.of(X), None), (exact.of(X, widths), widths)):
        for n in range(0, 90, 7):
            alone = exact.of(X[[n]], None if row_widths is None else row_widths[[n]])
            for part, tolerance in TOLERANCES.items():
                one, other = getattr(joint, part)[n], getattr(alone, part)[0]
                np.testing.assert_allclose(one, other, **tolerance)


def test_a_wide_table_has_weights_at_every_width():
    """Nothing underflows: 200 columns and ν = 0.01, where ε is 1e−2171."""
    pieces = pieces_of(Normals.of([-1.0, 1.0], 0.5, [-2.0, 0.0], [0.0, 2.0]))
    column = BinnedColumn(pieces, np.array([0.5, 0.5]), np.zeros(1), ("", ""))
    law, row, width = TabularLaw.of((column,) * 200, 0.01), np.zeros((1, 200)), [0.01]
    tilt = law.tilts(row, np.array(width))[0]
    log_weight = law.log_weights(row, np.array(width))[0]
    assert log_weight == pytest.approx(200 * np.log(0.5))
    assert tilt.alpha[0] == tilt.has_contrast[0] == 1.0


@NAMES
def test_coefficients_along_a_column_are_contrasts_of_its_profile(name):
    exact = ExactLimits(FUNCTIONS[name], fixture.law(1.2, UNEQUAL))
    even = ExactLimits(FUNCTIONS[name], fixture.law(0.8))
    for j, (profile,) in enumerate(bin_profiles(exact, ROW)):
        moved, w = np.repeat(ROW, 3, axis=0), np.array(UNEQUAL[j])
        moved[:, j] = [-2.0, 0.0, 2.0]
        contrasts = profile - (profile @ w - profile * w) / (1.0 - w)
        expected = exact.of(moved).coefficients[:, j]
        np.testing.assert_allclose(contrasts, expected, rtol=0, atol=1e-13)
        # with bins drawn alike, β_j of all bins of one column
        assert even.of(moved).coefficients[:, j].sum() == pytest.approx(0.0, abs=1e-14)


def test_rows_and_neighbourhoods_have_their_own_profiles():
    law = fixture.law(0.8)
    exact, points = ExactLimits(BUMP, law), np.array([POINT, [0.1, 2.0, -2.0]])
    profiles = bin_profiles(exact, points)
    for n in range(2):
        alone = bin_profiles(exact, points[[n]])
        for j in range(3):
            np.testing.assert_allclose(profiles[j][n], alone[j][0], rtol=1e-13)
    alone, glime = (
        bin_profiles(ExactLimits(BUMP, k), ROW) for k in (law, GlimeLaw(law))
    )
    np.testing.assert_allclose(glime[0], alone[0], rtol=1e-13)


def test_variances_of_a_forest_agree_with_draws():
    X = np.random.default_rng(0).uniform(-10, 10, (300, 4))
    y = X.sum(axis=1) + X[:, 0] * X[:, 1]
    model = RandomForestRegressor(5, max_depth=4, random_state=0).fit(X, y)
    function, tabular = po.wrap(model, data=X), TabularLaw.from_data(X)
    for law in (tabular, GaussianLaw.from_data(X), GlimeLaw(tabular)):
        known = po.lime.limits(function, X[:2], law, data=X).runs.variance
        weighted = law if isinstance(law, GlimeLaw) else GlimeLaw(law)
        draws = weighted.draw(X[:2], 20_000, np.random.default_rng(3))
        values = function.value(draws.samples.reshape(-1, 4)).reshape(2, -1)
        square = values.var(axis=1, ddof=1)
        fourth = ((values.T - values.mean(axis=1)) ** 4).mean(axis=0)
        # the variance of both, that of 4,096 draws being the larger part
        z = (square - known) / np.sqrt((fourth - square**2) * (1 / 20_000 + 1 / 4_096))
        assert np.abs(z).max() < 4


def contrast_with_bits(values, bits, weights, j, fixed):
    """E[f | z_j = 1] − E[f | z_j = 0] with given bits of the other columns."""
    fixed_bits = np.all([bits[:, k] == bit for k, bit in fixed.items()], axis=0)
    sides = (fixed_bits & (bits[:, j] == bit) for bit in (1, 0))
    one, zero = (np.average(values[side], weights=weights[side]) for side in sides)
    return one - zero


@pytest.mark.parametrize("name", ["bump", "box", "product"])
def test_parts_by_columns_are_what_others_add_when_they_leave(name):
    law, f = fixture.law(1.3, UNEQUAL), FUNCTIONS[name]
    exact = ExactLimits(f, law)
    split, out = split_by_columns(exact, ROW), 1.0 - exact.of(ROW).alpha[0]
    samples, bits, _, weights = fixture.quadrature(law, 1.0)
    cells = f.value(samples), bits, weights
    for j in f.columns.tolist():
        others = [k for k in f.columns.tolist() if k != j]
        inside = dict.fromkeys(others, 1)
        local = contrast_with_bits(*cells, j, inside)
        moves = sum(
            out[k] * (contrast_with_bits(*cells, j, {**inside, k: 0}) - local)
            for k in others
        )
        np.testing.assert_allclose(split[0, :2, j], [local, moves], atol=1e-9)


@NAMES
@pytest.mark.parametrize("split", [split_by_cells, split_by_columns])
def test_parts_sum_to_coefficients_at_every_width(name, split):
    for width in (0.05, 0.7, 1.9, 40.0):
        exact = ExactLimits(FUNCTIONS[name], fixture.law(width, UNEQUAL))
        expected = exact.of(ROW).coefficients
        np.testing.assert_allclose(split(exact, ROW).sum(axis=1), expected, atol=1e-14)
