"""Limits of the golden columns: printed numbers, all cells one by one, and identities.

What is read off the same cells stands beside them: variances, profiles of bins, and the
parts of a coefficient by which other columns are left.
"""

from __future__ import annotations

import itertools

import lime_fixture as fixture
import numpy as np
import pytest
from lime_fixture import BUMP, FUNCTIONS, POINT, ROW, UNEQUAL, by_quadrature, powers
from normal_samples import weighted_fit, with_intercept
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.tree import DecisionTreeRegressor

import propopt as po
from papers.lime.cells import split_by_cells
from propopt.base.errors import InvalidInput
from propopt.lime import GaussianLaw, GlimeLaw, SmoothLaw, TabularLaw
from propopt.lime.expectations import (
    ExactLimits,
    bin_profiles,
    cell_coefficients,
    profile_means,
)
from propopt.lime.fidelity import (
    effective_share,
    exact_variance,
    share_outside,
    split_by_columns,
)
from propopt.lime.laws.binned_columns import BinnedColumn
from propopt.lime.paths import bandwidth_path
from propopt.structures.boxes.sets import Sets
from propopt.structures.products.families import Bumps, Pieces
from propopt.structures.products.normals import Normals
from propopt.structures.products.sums import SumOfProducts


NAMES = pytest.mark.parametrize("name", FUNCTIONS)


def variance(f, law, points=ROW, widths=None):
    return exact_variance(f, law, points, law.widths(points, widths))


def explained(limits):
    """The variance of surrogates: bits are independent."""
    alpha = limits.alpha
    return (alpha * (1.0 - alpha) * limits.coefficients**2).sum(axis=1)


# ---- printed numbers


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
    shares = effective_share(fixture.law(), rows, fixture.WIDTHS)
    expected = [0.832010355857, 0.938836666249, 1.0]
    np.testing.assert_allclose(shares, expected, rtol=0, atol=1e-9)


def weights_of(n_columns, p, nu):
    """c, α and E[π]² / E[π²] of columns of p bins that are drawn alike."""
    column = BinnedColumn(
        Pieces.of_values(np.arange(float(p))), np.full(p, 1 / p), np.zeros(0), ("",) * p
    )
    tilt, squared = (column.tilt(np.zeros(1), np.array([w])) for w in (nu, nu / 2**0.5))
    c, c2 = (np.exp(t.log_weight[0]) for t in (tilt, squared))
    return c, tilt.alpha[0], (c**2 / c2) ** n_columns


@pytest.mark.parametrize(
    ("n_columns", "p", "nu", "expected"),
    [
        (3, 3, 1.0, (0.737687106475, 0.451862761878, 0.832010355857)),
        (1, 4, 1.0, (0.704897995,)),
        (10, 4, 0.75 * 10**0.5, (0.936210422, 0.267033985, 0.98466)),
        (10, 4, 7.5**0.5, (0.951630239,)),
    ],
)
def test_constants_of_the_paper(n_columns, p, nu, expected):
    for ours, theirs in zip(weights_of(n_columns, p, nu), expected, strict=False):
        digits = len(str(theirs).split(".")[-1])
        assert ours == pytest.approx(theirs, abs=0.51 * 10**-digits)


def test_moments_of_bits_have_the_inverse_of_the_paper():
    """Σ = E[π Z Zᵀ] of Proposition 10, and Σ⁻¹ of Proposition 11."""
    limits = ExactLimits(BUMP, fixture.law(1.0)).of(ROW)
    alpha, C = limits.alpha[0], np.exp(limits.log_weight[0])
    full = np.append(1.0, alpha)
    sigma = np.outer(full, full)
    np.fill_diagonal(sigma, full)
    inverse = np.diag(np.append(0.0, 1.0 / (alpha * (1.0 - alpha))))
    inverse[0, 1:] = inverse[1:, 0] = -1.0 / (1.0 - alpha)
    inverse[0, 0] = 1.0 + (alpha / (1.0 - alpha)).sum()
    inverse /= C
    np.testing.assert_allclose(C * sigma @ inverse, np.eye(4), atol=2e-15)
    known = [8.6516401432, -4.5445837833, 10.0574425838]
    own = inverse[[0, 0, 1], [0, 1, 1]]
    np.testing.assert_allclose(own, known, rtol=0, atol=1e-9)


def literal_equation_5(f, nu):
    """Equation 5 as it is printed, from all cells: it loses its digits as ν falls."""
    column, cells = fixture.column(), list(itertools.product(range(3), repeat=3))
    P = np.zeros((f.n_factors, len(cells)))
    for j in f.columns.tolist():
        for numbers, family in f.of_column(j):
            P[numbers] = column.pieces.expect(family)[:, [cell[j] for cell in cells]]
    mean, _ = f.contrasts(P, np.zeros(P.shape))
    eps = np.exp(-0.5 / nu**2)
    pc = 1.0 + 2.0 * eps
    bits = np.array(cells) == fixture.BINS_OF_ROW
    weighted = eps ** (3 - bits.sum(axis=1)) / 27 * mean
    both = -pc / (pc - 1) * weighted.sum() + pc**2 / (pc - 1) * weighted @ bits
    return (pc / 3) ** -3 * both


@NAMES
@pytest.mark.parametrize("nu", [0.2, 0.5, 1.0, 5.0])
def test_equation_5_is_the_contrast(name, nu):
    f = FUNCTIONS[name]
    result = ExactLimits(f, fixture.law(nu)).of(ROW).coefficients[0]
    np.testing.assert_allclose(literal_equation_5(f, nu), result, rtol=2e-9, atol=1e-9)


def test_contrasts_keep_their_digits_where_equation_5_has_none():
    at_zero, result = (
        ExactLimits(BUMP, fixture.law(nu)).of(ROW).coefficients[0]
        for nu in (1e-3, 0.12)
    )
    np.testing.assert_allclose(result, at_zero, rtol=1e-10)
    with np.errstate(all="ignore"):
        literal = literal_equation_5(BUMP, 0.12)
        assert np.abs(literal / result - 1.0).max() > 0.01
        assert np.isnan(literal_equation_5(BUMP, 0.02)).all()


def test_linear_functions_do_not_depend_on_the_width():
    """Corollary 4: Σ_b (m̃_b* − m̃_b) / (p − 1), and the intercept too."""
    means = fixture.column().pieces.normals.means
    known = [-1.8472390633, 0.0631881979, 1.7946562177]
    np.testing.assert_allclose(means, known, atol=6e-11)
    others = (means.sum() - means) / 2
    slopes = np.array([2.0, -1.0, 0.5])
    for nu in (1e-2, 0.3, 1.0, 1e3):
        result = ExactLimits(fixture.LINEAR, fixture.law(nu)).of(ROW)
        expected = slopes * (means - others)
        np.testing.assert_allclose(result.coefficients[0], expected, rtol=1e-13)
        assert result.intercept[0] == pytest.approx(0.7 + slopes @ others, rel=1e-12)


# ---- all cells, one by one


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
                near = out[side] == m
                cells[m + 1 - bit, j] += sign * (p * values[side])[near].sum()
    return cells


@NAMES
@pytest.mark.parametrize("width", [0.5, 2.0])
def test_all_is_a_sum_over_cells(name, width):
    """Coefficients, variances, profiles of bins, and parts by cells."""
    law, f = fixture.law(width, UNEQUAL), FUNCTIONS[name]
    samples, bits, bins, weights = fixture.quadrature(law, width)
    values, exact = f.value(samples), ExactLimits(f, law)
    limits, beta = exact.of(ROW), by_quadrature(f, law, width)
    np.testing.assert_allclose(with_intercept(limits), beta, rtol=0, atol=1e-9)
    path = bandwidth_path(ExactLimits(f, fixture.law(None, UNEQUAL)), POINT, [width, 9])
    result = [path.intercept[0], *path.coefficients[0]]
    np.testing.assert_allclose(result, beta, rtol=0, atol=1e-9)
    total = np.cov(values, aweights=weights, ddof=0)
    np.testing.assert_allclose(variance(f, law), [total], rtol=1e-9)
    surrogate = limits.intercept + bits @ limits.coefficients[0]
    part = np.cov(surrogate, aweights=weights, ddof=0)
    np.testing.assert_allclose(explained(limits), [part], rtol=1e-9)
    for j, profile in enumerate(bin_profiles(exact, ROW)):
        own = [bins[:, j] == b for b in range(3)]
        means = [np.average(values[b], weights=weights[b]) for b in own]
        np.testing.assert_allclose(profile[0], means, rtol=0, atol=1e-9)
    parts = brute_parts(f, bits, weights, values)
    np.testing.assert_allclose(split_by_cells(exact, ROW)[0], parts, atol=1e-9)


def test_draws_tend_to_the_limits():
    """|z| < 5 for 4 coefficients of 2 samplers: false alarm below 5e-6."""
    law = fixture.law(0.8)
    truth = with_intercept(ExactLimits(BUMP, law).of(ROW))
    for draw in (law.draw, law.draw_weighted):
        draws = draw(ROW, 200_000, np.random.default_rng(0))
        values = BUMP.value(draws.samples[0])
        beta, errors = weighted_fit(draws.bits[0], draws.weights[0], values)
        z = np.abs(beta - truth) / errors
        assert 0.1 < z.max() < 5.0  # errors are not far too large


# ---- many rows and functions


def test_limits_are_linear_and_columns_that_are_not_used_have_exactly_zero():
    law, box = fixture.law(1.0), FUNCTIONS["box"]
    both = SumOfProducts.sum_of([BUMP.scaled(2.0), box.scaled(-3.0)])
    joint, f, g = (
        with_intercept(ExactLimits(h, law).of(ROW)) for h in (both, BUMP, box)
    )
    np.testing.assert_allclose(joint, 2 * f - 3 * g, rtol=0, atol=1e-15)
    exact = ExactLimits(fixture.PRODUCT, law)
    assert exact.of(ROW).coefficients[0, 2] == 0.0
    for split in (split_by_cells, split_by_columns):
        result = split(exact, ROW)
        np.testing.assert_array_equal(result[:, :, 2], 0.0)
        np.testing.assert_array_equal(share_outside(result)[:, 2], 0.0)


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
    for joint, own in ((exact.of(X), None), (exact.of(X, widths), widths)):
        for n in range(0, 90, 7):
            alone = exact.of(X[[n]], None if own is None else own[[n]])
            for part, tolerance in TOLERANCES.items():
                one, other = getattr(joint, part)[n], getattr(alone, part)[0]
                np.testing.assert_allclose(one, other, **tolerance)


def test_cells_of_columns_that_f_reads_are_computed_once(X, monkeypatch):
    sizes, contrasts = [], SumOfProducts.contrasts

    def counted(self, P, R):
        sizes.append(P.shape[1])
        return contrasts(self, P, R)

    monkeypatch.setattr(SumOfProducts, "contrasts", counted)
    law = TabularLaw.from_data(X, n_bins=3)
    result = ExactLimits(FUNCTIONS["box"], law).of(X)
    assert sum(sizes) == 9  # bins of the first two columns
    assert len(np.unique(result.coefficients, axis=0)) <= 9
    assert len(np.unique(result.alpha.round(12), axis=0)) == 1
    widths = np.array([0.5, 2.0, 0.5, 2.0])
    result = ExactLimits(BUMP, law).of(np.repeat(X[:1], 4, axis=0), widths).coefficients
    np.testing.assert_array_equal(result[:2], result[2:])
    assert not np.array_equal(result[0], result[1])
    normal = GaussianLaw.from_data(X, kernel_width=1.0)
    assert normal.cells(X) is X
    assert GlimeLaw(TabularLaw.from_data(X)).cells(X).max() == 3


def test_a_wide_table_has_weights_at_every_width():
    """Nothing underflows: 200 columns and ν = 0.01, where ε is 1e−2171."""
    pieces = Pieces.of_normals(Normals.of([-1.0, 1.0], 0.5, [-2.0, 0.0], [0.0, 2.0]))
    column = BinnedColumn(pieces, np.array([0.5, 0.5]), np.zeros(1), ("", ""))
    law, row, width = TabularLaw.of((column,) * 200, 0.01), np.zeros((1, 200)), [0.01]
    tilt = law.tilts(row, np.array(width))[0]
    log_weight = law.log_weights(row, np.array(width))[0]
    assert log_weight == pytest.approx(200 * np.log(0.5))
    assert tilt.alpha[0] == tilt.has_contrast[0] == 1.0


# ---- profiles


@NAMES
def test_coefficients_along_a_column_are_contrasts_of_its_profile(name):
    exact = ExactLimits(FUNCTIONS[name], fixture.law(1.2, UNEQUAL))
    even = ExactLimits(FUNCTIONS[name], fixture.law(0.8))
    bins = fixture.law(1e7, UNEQUAL)
    wide = SmoothLaw.of(bins, kernel_width=1e7)
    for j, (profile,) in enumerate(bin_profiles(exact, ROW)):
        moved, w = np.repeat(ROW, 3, axis=0), np.array(UNEQUAL[j])
        moved[:, j] = [-2.0, 0.0, 2.0]
        contrasts = profile - (profile @ w - profile * w) / (1.0 - w)
        expected = exact.of(moved).coefficients[:, j]
        np.testing.assert_allclose(contrasts, expected, rtol=0, atol=1e-13)
        # with bins drawn alike, β_j of all bins of one column
        assert even.of(moved).coefficients[:, j].sum() == pytest.approx(0.0, abs=1e-14)
        # wide weights by distance leave the profiles of bins
        one, other = (
            profile_means(ExactLimits(FUNCTIONS[name], law).of, law, ROW, j)
            for law in (wide, bins)
        )
        np.testing.assert_allclose(one, other, rtol=1e-9)


def test_rows_widths_and_neighbourhoods_have_their_own_profiles_and_variances():
    law = fixture.law()
    exact, points = ExactLimits(BUMP, law), np.array([POINT, [0.1, 2.0, -2.0]])
    widths = np.array([0.7, 3.0])
    profiles, variances = (
        bin_profiles(exact, points, widths),
        variance(BUMP, law, points, widths),
    )
    for n in range(2):
        alone = bin_profiles(exact, points[[n]], widths[[n]])
        for j in range(3):
            np.testing.assert_allclose(profiles[j][n], alone[j][0], rtol=1e-13)
        own = variance(BUMP, law.with_width(widths[n]), points[[n]])
        np.testing.assert_allclose(variances[n], own[0], rtol=1e-12)
    law = fixture.law(0.8)
    own, glime = (bin_profiles(ExactLimits(BUMP, k), ROW) for k in (law, GlimeLaw(law)))
    np.testing.assert_allclose(glime[0], own[0], rtol=1e-13)
    normal = ExactLimits(BUMP, GaussianLaw.of(np.zeros(3), 1.0))
    with pytest.raises(InvalidInput, match="TabularLaw"):
        bin_profiles(normal, ROW)


def test_a_monotone_model_has_monotone_profiles_and_coefficients():
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (600, 3))
    y = X[:, 0] + 0.5 * np.sin(3 * X[:, 0]) * X[:, 1] + X[:, 2] ** 2
    model = HistGradientBoostingRegressor(monotonic_cst=[1, 0, 0], max_iter=20)
    law = TabularLaw.from_data(X, weights="uniform", n_bins=6)
    exact = ExactLimits(po.wrap(model.fit(X, y), data=X).products, law)
    profiles = bin_profiles(exact, X[:20])
    assert (np.diff(profiles[0], axis=1) >= -1e-12).all()
    assert not (np.diff(profiles[2], axis=1) >= -1e-12).all()
    rows, pieces = np.repeat(X[:1], 6, axis=0), law.columns[0].pieces
    rows[:, 0] = 0.5 * (pieces.low + pieces.high)
    result = exact.of(rows).coefficients[:, 0]
    assert (np.diff(result) >= -1e-12).all()
    assert result[0] < 0.0 < result[-1]


def cells_of(p, width, f, point):
    X = np.random.RandomState(3).uniform(-10, 10, (1000, 2))
    law = TabularLaw.from_data(X, n_bins=p, weights="uniform", kernel_width=width)
    return law, cell_coefficients(ExactLimits(f, law).of, law, point, (0, 1))


def test_arrows_of_figures_11_and_15():
    path = np.array([[0, 1]])
    sets = Sets.of_numbers([0, 1], [-4.0, -9.0], [0.0, -6.0], [False, False])
    f = SumOfProducts(0.0, np.ones(1), path, (sets,), 2)
    _, cells = cells_of(4, 10.0, f, np.array([[-2.0, -7.0]]))
    arrows = [cells[c] for c in [(1, 0), (1, 2), (3, 3)]]  # same, aligned, neither
    known = [[0.170, 0.170], [0.169, -0.057], [-0.056, -0.056]]
    np.testing.assert_allclose(arrows, known, rtol=0, atol=6e-4)
    bumps = Bumps(np.arange(2), np.full(2, -2.5), np.ones(2))
    f, point = SumOfProducts(0.0, np.ones(1), path, (bumps,), 2), np.full((1, 2), -2.5)
    law, cells = cells_of(10, 1.0, f, point)
    a, b = (int(law.columns[j].place(point[:, j])[0]) for j in range(2))
    first = [cells[a, b, 0], cells[a, 9, 0], cells[0, 9, 0]]
    np.testing.assert_allclose(first, [0.155, 0.113, -0.018], rtol=0, atol=6e-4)


# ---- variances, and samples that count


def test_variances_of_families_of_bumps_and_of_what_has_no_closed_form():
    law = fixture.law(1.0, UNEQUAL)
    samples, _, _, weights = fixture.quadrature(law, 1.0)
    column, paths = np.array([0, 1, 0, 1]), np.array([[0, 1], [2, 3]])
    centers, widths = np.array([0.2, -0.5, 1.0, 0.3]), np.array([0.8, 0.9, 1.4, 0.6])
    bumps = Bumps(column, centers, widths)
    for f in (
        SumOfProducts.sum_of([FUNCTIONS["box"], powers([2.0], [[2]])]),
        SumOfProducts(0.3, np.array([1.0, -2.0]), paths, (bumps,), 3),
    ):
        expected = np.cov(f.value(samples), aweights=weights, ddof=0)
        np.testing.assert_allclose(variance(f, law), [expected], rtol=1e-9)
    both = SumOfProducts.sum_of([FUNCTIONS["box"], fixture.LINEAR])
    assert variance(both, law) is None
    constant = SumOfProducts.additive(3.0, np.zeros(3), fixture.LINEAR.factors[0], 3)
    np.testing.assert_array_equal(variance(constant, law), [0.0])


def test_variances_of_a_forest_agree_with_draws():
    X = np.random.default_rng(0).uniform(-10, 10, (300, 4))
    y = X.sum(axis=1) + X[:, 0] * X[:, 1]
    model = RandomForestRegressor(5, max_depth=4, random_state=0).fit(X, y)
    function, tabular = po.wrap(model, data=X), TabularLaw.from_data(X)
    for law in (tabular, GaussianLaw.from_data(X), GlimeLaw(tabular)):
        exact = variance(function.products, law, X[:2])
        draws = law.draw_weighted(X[:2], 20_000, np.random.default_rng(3))
        values = function.value(draws.samples.reshape(-1, 4)).reshape(2, -1)
        square = values.var(axis=1, ddof=1)
        fourth = ((values.T - values.mean(axis=1)) ** 4).mean(axis=0)
        # six z-scores beyond 4 in 2,600 seeds
        z = (square - exact) / np.sqrt((fourth - square**2) / 20_000)
        assert np.abs(z).max() < 4


def test_depth_three_trees_of_ten_columns_are_explained_to_a_sixth():
    # the published 0.1706 is of one draw of the data, which is not given
    shares = []
    for seed in range(10):
        X = np.random.RandomState(seed).uniform(-10, 10, (1000, 10))
        tree = DecisionTreeRegressor(max_depth=3).fit(X, X.sum(axis=1))
        f = po.wrap(tree, data=X).products
        law = TabularLaw.from_data(X, weights="uniform")
        shares.append(
            explained(ExactLimits(f, law).of(X[:5])) / variance(f, law, X[:5])
        )
    assert np.min(shares) < 0.1706 < np.max(shares)


def test_effective_shares_are_those_of_weights_of_samples():
    law = fixture.law(0.8, UNEQUAL)
    weights = law.draw(ROW, 200_000, np.random.default_rng(0)).weights
    expected = weights.mean() ** 2 / (weights**2).mean()
    np.testing.assert_allclose(effective_share(law, ROW), expected, rtol=0.01)
    glime = effective_share(GlimeLaw(fixture.law()), ROW, np.array([0.3]))
    np.testing.assert_allclose(glime, 1.0)


# ---- parts of a coefficient


def contrast_with_bits(values, bits, weights, j, fixed):
    """E[f | z_j = 1] − E[f | z_j = 0] with given bits of the other columns."""
    kept = np.all([bits[:, k] == bit for k, bit in fixed.items()], axis=0)
    sides = (kept & (bits[:, j] == bit) for bit in (1, 0))
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
    exact = ExactLimits(FUNCTIONS[name], fixture.law(shares=UNEQUAL))
    widths, points = np.array([0.05, 0.7, 1.9, 40.0]), np.repeat(ROW, 4, axis=0)
    expected = exact.of(points, widths).coefficients
    result = split(exact, points, widths).sum(axis=1)
    np.testing.assert_allclose(result, expected, atol=1e-14)


def test_the_local_part_is_that_of_narrow_kernels_and_all_of_an_additive_function():
    exact = ExactLimits(BUMP, fixture.law())
    split = split_by_columns(exact, ROW, np.array([2.0]))
    narrow = exact.of(ROW, np.array([0.05])).coefficients
    np.testing.assert_allclose(split[:, 0], narrow, rtol=1e-12)
    additive = ExactLimits(fixture.LINEAR, fixture.law())
    np.testing.assert_array_equal(share_outside(split_by_columns(additive, ROW)), 0.0)


def test_figure_13_to_all_its_digits():
    """The tree beside a bump, whose coefficients stay where it is flat."""
    X = np.random.RandomState(3).uniform(-10, 10, (1000, 2))
    y = np.exp(-((X - [-3, 3]) ** 2).sum(axis=1) / 2)
    tree = DecisionTreeRegressor(max_depth=4, random_state=3).fit(X, y)
    law = TabularLaw.from_data(X, weights="uniform", kernel_width=1.0)
    function = po.wrap(tree, data=X)
    exact = ExactLimits(function.products, law)
    points = np.array([[-3, 2.3], [-3, -2.3], [-3, -7.5]])
    values = function.value(points)
    np.testing.assert_allclose(values, [0.413, 0.00058, 0.00058], atol=5e-4)
    expected = [[0.0919, 0.0864], [0.0573, -0.0319], [0.0573, -0.0319]]
    np.testing.assert_allclose(exact.of(points).coefficients, expected, atol=6e-5)
    parts = split_by_cells(exact, points)[1, :, 0]
    np.testing.assert_allclose(parts, [0.0003, 0.0576, -0.0006], atol=6e-5)
    # in the cell of the bump itself most is local
    by_columns = share_outside(split_by_columns(exact, points))[:, 0]
    assert by_columns[1] > max(0.99, by_columns[0])
