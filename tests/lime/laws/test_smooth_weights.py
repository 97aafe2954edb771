"""Weights by distance: against quadrature and the paper's forms for general weights."""

from __future__ import annotations

import itertools

import lime_fixture as fixture
import numpy as np
import pytest
from lime_fixture import EDGES, MEANS, SDS, powers
from normal_samples import least_squares, with_intercept
from scipy.special import ndtr, ndtri
from scipy.stats import norm

from propopt.base.errors import InvalidInput
from propopt.lime import SmoothLaw, TabularLaw
from propopt.lime.expectations import ExactLimits
from propopt.lime.laws.binned_columns import BinnedColumn
from propopt.structures.products.families import Pieces, Powers
from propopt.structures.products.normals import Normals
from propopt.structures.products.sums import SumOfProducts


SHARES = np.array([0.2, 0.5, 0.3])
ROW = np.array([[-1.4, 0.3, 2.0]])
NU = 0.9
BINS = fixture.law(NU, [SHARES] * 3)
CENTER = np.array([0.2, -0.5, 1.0])
BUMPS = fixture.BUMP.factors[0]
NODES, WEIGHTS = np.polynomial.legendre.leggauss(60)


def bump(t, j):
    return np.exp(-0.5 * ((t - CENTER[j]) / 0.8) ** 2)


def weighted_means(j, g):
    """E[g(V, j) exp(−(x − V)² / (2 ν²)) | bin b] of a column, by quadrature, (3,)."""
    t = EDGES[:-1, None] + 1.0 + NODES
    density = WEIGHTS * np.exp(-0.5 * ((t - MEANS[:, None]) / SDS[:, None]) ** 2)
    density /= density.sum(axis=1, keepdims=True)
    return (density * np.exp(-0.5 * ((ROW[0, j] - t) / NU) ** 2) * g(t, j)).sum(axis=1)


# functions, and each product of theirs: its weight, and what it is of its columns
CASES = {
    "linear": (
        fixture.LINEAR,
        [(w, {j: lambda t, _: t}) for j, w in enumerate([2.0, -1.0, 0.5])]
        + [(0.7, {})],
    ),
    "additive": (
        SumOfProducts.additive(0.3, np.array([1.0, -2.0, 0.5]), BUMPS, 3),
        [(w, {j: bump}) for j, w in enumerate([1.0, -2.0, 0.5])] + [(0.3, {})],
    ),
    "product": (fixture.BUMP, [(1.0, dict.fromkeys(range(3), bump))]),
    "two columns": (
        powers([1.0], [[0, 1]]),
        [(1.0, dict.fromkeys((0, 1), lambda t, _: t))],
    ),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("shares", [SHARES, np.full(3, 1 / 3)], ids=["own", "alike"])
def test_functions_have_the_normal_equations_of_general_weights(name, shares):
    """Proposition 15, by all 27 cells: Σ⁻¹Γ with weights inside of bins too.

    For additive functions and products these are Propositions 17 to 19.
    """
    f, products = CASES[name]
    cells = np.array(list(itertools.product(range(3), repeat=3)))
    e = [shares * weighted_means(j, lambda t, _: 1.0 + 0.0 * t) for j in range(3)]

    def over_cells(functions):
        parts = [
            shares * weighted_means(j, functions[j]) if j in functions else e[j]
            for j in range(3)
        ]
        return np.prod([parts[j][cells[:, j]] for j in range(3)], axis=0)

    weights = over_cells({})
    values = sum(w * over_cells(functions) for w, functions in products) / weights
    expected = least_squares(cells == [0, 1, 2], weights, values)
    law = SmoothLaw.of(fixture.law(NU, [shares] * 3))
    result = ExactLimits(f, law).of(ROW)
    np.testing.assert_allclose(with_intercept(result), expected, rtol=0, atol=1e-11)
    assert result.log_weight[0] == pytest.approx(np.log(weights.sum()), abs=1e-12)
    if name == "two columns":
        assert result.coefficients[0, 2] == 0.0


def test_means_of_weights_have_the_closed_form_of_appendix_a():
    """e_b = ν/√(ν²+s²) exp(−(ξ−μ)²/(2(ν²+s²))) [Φ((q_b−m̃)/s̃)−Φ(...)]/[Φ(r)−Φ(l)]."""
    total = NU**2 + SDS**2
    for own, x in enumerate(ROW[0]):
        mm, ss = (NU**2 * MEANS + SDS**2 * x) / total, NU * SDS / np.sqrt(total)
        inside = ndtr((EDGES[1:] - mm) / ss) - ndtr((EDGES[:-1] - mm) / ss)
        whole = ndtr((EDGES[1:] - MEANS) / SDS) - ndtr((EDGES[:-1] - MEANS) / SDS)
        near = NU / np.sqrt(total) * np.exp(-0.5 * (x - MEANS) ** 2 / total)
        e = SHARES * near * inside / whole
        tilt = SmoothLaw.of(BINS).columns[0].tilt(np.array([x]), np.array([NU]))
        assert np.exp(tilt.log_weight[0]) == pytest.approx(e.sum(), rel=1e-13)
        assert tilt.alpha[0] == pytest.approx(e[own] / e.sum(), rel=1e-12)
        assert tilt.alpha[0] + tilt.complement[0] == pytest.approx(1.0, rel=1e-14)


def test_quantile_bins_of_one_normal_law_have_equation_24_and_example_11():
    mu, s, nu, p = 0.4, 1.3, 0.8, 4
    edges = mu + s * ndtri(np.arange(1, p) / p)
    ends = np.concatenate([[-np.inf], edges, [np.inf]])
    pieces = Pieces.of_normals(Normals.of(mu, s, ends[:-1], ends[1:]))
    column = BinnedColumn(pieces, np.full(p, 1 / p), edges, ("",) * p)
    slopes, row = np.array([1.0, -2.0, 0.5]), np.array([[-1.0, 0.6, 2.4]])
    f = SumOfProducts.additive(0.0, slopes, Powers.first(np.arange(3)), 3)
    result = ExactLimits(f, SmoothLaw.of(TabularLaw.of((column,) * 3, nu))).of(row)
    total = nu**2 + s**2
    log_C = 1.5 * np.log(nu**2 / total) - 0.5 * ((row - mu) ** 2).sum() / total
    assert result.log_weight[0] == pytest.approx(log_C, rel=1e-13)
    mm, ss = (nu**2 * mu + s**2 * row[0]) / total, nu * s / np.sqrt(total)
    place = np.searchsorted(edges, row[0])
    low, high = ((ends[place + k] - mm) / ss for k in (0, 1))
    alpha = ndtr(high) - ndtr(low)
    theta = ss * (norm.pdf(high) - norm.pdf(low))  # the factor is s̃, not 1/s̃
    np.testing.assert_allclose(result.alpha[0], alpha, rtol=1e-12)
    expected = -slopes * theta / (alpha * (1.0 - alpha))
    np.testing.assert_allclose(result.coefficients[0], expected, rtol=1e-11)


def test_wide_and_narrow_kernels():
    tilt = SmoothLaw.of(BINS).columns[0].tilt(ROW[0], np.full(3, np.inf))
    np.testing.assert_allclose(tilt.log_weight, 0.0, atol=1e-14)
    np.testing.assert_allclose(tilt.alpha, SHARES, rtol=1e-13)
    f = SumOfProducts.additive(0.0, np.ones(3), Powers.first(np.arange(3)), 3)
    result = ExactLimits(f, SmoothLaw.of(BINS, kernel_width=1e-4)).of(ROW)
    np.testing.assert_allclose(result.alpha, 1.0)
    # the mean in the bin is the row, and outside it the edge that is nearest to it
    nearest = np.array([-1.0, 1.0, 1.0])
    np.testing.assert_allclose(result.coefficients[0], ROW[0] - nearest, rtol=1e-6)


def test_weights_of_samples_are_the_kernel():
    draws = SmoothLaw.of(BINS).draw(ROW, 50, np.random.default_rng(2))
    apart = ((ROW[:, None] - draws.samples) ** 2).sum(axis=2)
    np.testing.assert_allclose(
        draws.weights, np.exp(-apart / (2.0 * NU**2)), rtol=1e-12
    )


def test_a_number_that_is_missing_on_one_side_is_as_far_as_one():
    x = np.array([0.0, 1.0, 2.0, 5.0, np.nan])  # one in five is missing
    law = SmoothLaw.of(TabularLaw.from_data(x[:, None], n_bins=2), kernel_width=NU)
    own, far = law.columns[0], np.exp(-0.5 / NU**2)
    around = own.tilt(np.array([np.nan]), np.array([NU]))
    assert np.exp(around.log_weight[0]) == pytest.approx(0.2 + 0.8 * far)
    around = own.tilt(np.array([0.3]), np.array([NU]))
    share = around.outside[own.place(np.array([np.nan]))[0], 0]
    weight = share * around.complement[0] * np.exp(around.log_weight[0])
    assert weight == pytest.approx(0.2 * far, rel=1e-12)


def test_what_is_no_width_or_no_bins_is_refused():
    with pytest.raises(InvalidInput, match="kernel_width"):
        SmoothLaw.of(BINS, kernel_width=0.0)
    with pytest.raises(InvalidInput, match="the bins of a TabularLaw"):
        SmoothLaw.of(SmoothLaw.of(BINS))
