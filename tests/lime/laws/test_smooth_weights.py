"""Weights by distance: against quadrature and the paper's forms for general weights."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
import pytest
from lime_golden import EDGES, MEANS, SDS, golden_law
from scipy.integrate import quad
from scipy.special import ndtr, ndtri
from scipy.stats import norm, truncnorm

import propopt as po
from propopt.base.arrays import Array
from propopt.base.errors import InvalidInput
from propopt.lime import SmoothLaw, TabularLaw
from propopt.lime.expectations import ExactLimits
from propopt.lime.laws.binned_columns import BinnedColumn
from propopt.structures.products.families import Bumps, Pieces, Powers
from propopt.structures.products.normals import Normals
from propopt.structures.products.sums import SumOfProducts


SHARES = np.array([0.2, 0.5, 0.3])
ROW = np.array([[-1.4, 0.3, 2.0]])
NU = 0.9


def bins() -> TabularLaw:
    return golden_law(NU, [SHARES] * 3)


def density(b: int) -> Callable[[float], float]:
    start, stop = ((EDGES[b + k] - MEANS[b]) / SDS[b] for k in (0, 1))
    law = truncnorm(start, stop, loc=MEANS[b], scale=SDS[b])
    return lambda t: float(law.pdf(t))


def one(t: float) -> float:
    return 1.0 + 0.0 * t


def weighted_means(x: float, g: Callable[[float], float] = one) -> Array:
    """e_b^g = E[g(V) exp(−(x − V)² / (2 ν²)) | bin b], by quadrature."""

    def integrand(t: float, b: int) -> float:
        return g(t) * np.exp(-0.5 * ((x - t) / NU) ** 2) * density(b)(t)

    return np.array(
        [
            quad(integrand, *EDGES[b : b + 2], args=(b,), points=[-0.5, 0.2])[0]
            for b in range(3)
        ]
    )


def test_the_weighted_law_of_a_column_is_that_of_quadrature() -> None:
    law = SmoothLaw.of(bins())
    for x, own in zip(ROW[0], range(3), strict=True):
        tilt = law.columns[0].tilt(np.array([x]), np.array([NU]))
        e = weighted_means(x)
        c = SHARES @ e
        assert tilt.log_weight[0] == pytest.approx(np.log(c), abs=1e-9)
        assert tilt.alpha[0] == pytest.approx(SHARES[own] * e[own] / c, rel=1e-8)
        assert tilt.alpha[0] + tilt.complement[0] == pytest.approx(1.0, rel=1e-14)
        ex = weighted_means(x, lambda t: t)
        factors = Powers.first(np.array([0]))
        one, zero = tilt.given(tilt.pieces.expect(factors))
        others = np.arange(3) != own
        assert one[0, 0] == pytest.approx(ex[own] / e[own], rel=1e-8)
        expected = (SHARES * ex)[others].sum() / (SHARES * e)[others].sum()
        assert zero[0, 0] == pytest.approx(expected, rel=1e-8)


def test_means_of_weights_have_the_closed_form_of_appendix_a() -> None:
    """e_b = ν/√(ν²+s²) exp(−(ξ−μ)²/(2(ν²+s²))) [Φ((q_b−m̃)/s̃)−Φ(...)]/[Φ(r)−Φ(l)]."""
    for x in ROW[0]:
        s, total = SDS, NU**2 + SDS**2
        mm, ss = (NU**2 * MEANS + s**2 * x) / total, NU * s / np.sqrt(total)
        inside = ndtr((EDGES[1:] - mm) / ss) - ndtr((EDGES[:-1] - mm) / ss)
        whole = ndtr((EDGES[1:] - MEANS) / s) - ndtr((EDGES[:-1] - MEANS) / s)
        near = NU / np.sqrt(total) * np.exp(-0.5 * (x - MEANS) ** 2 / total)
        e = near * inside / whole
        tilt = SmoothLaw.of(bins()).columns[0].tilt(np.array([x]), np.array([NU]))
        assert np.exp(tilt.log_weight[0]) == pytest.approx(SHARES @ e, rel=1e-13)
        np.testing.assert_allclose(e, weighted_means(x), rtol=1e-8)


def limits_of(f: SumOfProducts, law: po.lime.SmoothLaw) -> Array:
    result = ExactLimits(f, law).of(ROW)
    return np.append(result.intercept, result.coefficients[0])


def uniform() -> tuple[TabularLaw, Array]:
    """The law with the same share for each bin, as the paper has it, and e of x."""
    law = TabularLaw.of(
        [
            BinnedColumn(c.pieces, np.full(3, 1 / 3), c.edges, c.bins)
            for c in bins().columns
        ],
        NU,
    )
    return law, np.stack([weighted_means(x) for x in ROW[0]])


OWN = np.array([0, 1, 2])


def test_linear_functions_have_the_papers_form() -> None:
    """Corollary 18, with weights that depend on x: β_j of e^x and c^x."""
    law, e = uniform()
    slopes = np.array([2.0, -1.0, 0.5])
    f = SumOfProducts.additive(0.7, slopes, Powers.first(np.arange(3)), 3)
    ex = np.stack([weighted_means(x, lambda t: t) for x in ROW[0]])
    c, cx = e.mean(axis=1), ex.mean(axis=1)
    own, own_x = e[OWN, OWN], ex[OWN, OWN]
    # β_j = (p c / (p c − e*)) (e*^f c / ... ): contrast of weighted means
    beta = slopes * (own_x / own - (3 * cx - own_x) / (3 * c - own))
    paper = slopes * 3 * c / (3 * c - own) * (own_x / own - cx / c)
    np.testing.assert_allclose(beta, paper, rtol=1e-12)
    result = limits_of(f, SmoothLaw.of(law))
    np.testing.assert_allclose(result[1:], paper, rtol=1e-8)
    alpha = own / (3 * c)
    intercept = 0.7 + slopes @ (cx / c) - alpha @ paper
    assert result[0] == pytest.approx(intercept, rel=1e-8)


def test_additive_functions_are_contrasts_of_their_weighted_means() -> None:
    """Proposition 17."""
    law, e = uniform()
    center, width = np.array([0.2, -0.5, 1.0]), np.full(3, 0.8)
    bumps = Bumps(np.arange(3), center, width)
    f = SumOfProducts.additive(0.3, np.array([1.0, -2.0, 0.5]), bumps, 3)
    g = [
        weighted_means(x, lambda t, c=c: np.exp(-0.5 * ((t - c) / 0.8) ** 2))
        for x, c in zip(ROW[0], center, strict=True)
    ]
    eg = np.array([1.0, -2.0, 0.5])[:, None] * np.stack(g)
    c, cg, own = e.mean(axis=1), eg.mean(axis=1), e[OWN, OWN]
    paper = 3 * c / (3 * c - own) * (eg[OWN, OWN] / own - cg / c)
    np.testing.assert_allclose(limits_of(f, SmoothLaw.of(law))[1:], paper, rtol=1e-7)


def test_products_have_the_papers_form() -> None:
    """Lemma 19: Π_k c_k^f / C times the contrast of each factor."""
    law, e = uniform()
    center = np.array([0.2, -0.5, 1.0])
    path = np.arange(3)[None, :]
    bumps = Bumps(np.arange(3), center, np.full(3, 0.8))
    f = SumOfProducts(0.0, np.ones(1), path, (bumps,), 3)
    eg = np.stack(
        [
            weighted_means(x, lambda t, c=c: np.exp(-0.5 * ((t - c) / 0.8) ** 2))
            for x, c in zip(ROW[0], center, strict=True)
        ]
    )
    c, cg = e.mean(axis=1), eg.mean(axis=1)
    own, own_g = e[OWN, OWN], eg[OWN, OWN]
    ratio = np.prod(cg / c)
    paper = ratio * 3 * c / (3 * c - own) * (own_g * c / (own * cg) - 1.0)
    result = limits_of(f, SmoothLaw.of(law))
    np.testing.assert_allclose(result[1:], paper, rtol=1e-7)


def test_any_function_has_the_normal_equations_of_general_weights() -> None:
    """Proposition 15, by all 27 cells: Σ⁻¹Γ with weights inside of bins too."""
    law, e = uniform()
    f = SumOfProducts(
        0.0, np.ones(1), np.array([[0, 1]]), (Powers.first(np.arange(2)),), 3
    )
    ex = np.stack([weighted_means(x, lambda t: t) for x in ROW[0]])
    gram, moments = np.zeros((4, 4)), np.zeros(4)
    for cell in itertools.product(range(3), repeat=3):
        z = np.array([1.0, *(np.array(cell) == OWN)])
        weight = np.prod([e[j, b] for j, b in enumerate(cell)]) / 27
        gram += weight * np.outer(z, z)
        a, b, c = cell
        moments += ex[0, a] * ex[1, b] * e[2, c] / 27 * z
    expected = np.linalg.solve(gram, moments)
    result = limits_of(f, SmoothLaw.of(law))
    np.testing.assert_allclose(result, expected, rtol=1e-7, atol=1e-12)
    assert result[3] == 0.0


def test_quantile_bins_of_one_normal_law_have_equation_24_and_example_11() -> None:
    mu, s, nu, p = 0.4, 1.3, 0.8, 4
    edges = mu + s * ndtri(np.arange(1, p) / p)
    ends = np.concatenate([[-np.inf], edges, [np.inf]])
    normals = Normals.of(mu, s, ends[:-1], ends[1:])
    column = BinnedColumn(
        Pieces.of_normals(normals), np.full(p, 1 / p), edges, ("",) * p
    )
    law = SmoothLaw.of(TabularLaw.of((column,) * 3, nu))
    slopes = np.array([1.0, -2.0, 0.5])
    f = SumOfProducts.additive(0.0, slopes, Powers.first(np.arange(3)), 3)
    row = np.array([[-1.0, 0.6, 2.4]])
    result = ExactLimits(f, law).of(row)
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


def test_an_infinite_width_is_the_law_without_weights() -> None:
    tilt = SmoothLaw.of(bins()).columns[0].tilt(ROW[0], np.full(3, np.inf))
    np.testing.assert_allclose(tilt.log_weight, 0.0, atol=1e-14)
    np.testing.assert_allclose(tilt.alpha, SHARES, rtol=1e-13)


def test_a_narrow_kernel_leaves_the_bin_of_the_row_and_keeps_its_contrast() -> None:
    f = SumOfProducts.additive(0.0, np.ones(3), Powers.first(np.arange(3)), 3)
    result = ExactLimits(f, SmoothLaw.of(bins(), kernel_width=1e-4)).of(ROW)
    np.testing.assert_allclose(result.alpha, 1.0)
    # the mean in the bin is the row, and outside it the edge that is nearest to it
    nearest = np.array([-1.0, 1.0, 1.0])
    np.testing.assert_allclose(result.coefficients[0], ROW[0] - nearest, rtol=1e-6)


def test_weights_of_samples_are_the_kernel() -> None:
    law = SmoothLaw.of(bins())
    draws = law.draw(ROW, 50, np.random.default_rng(2))
    apart = ROW[:, None] - draws.samples
    expected = np.exp(-(apart**2).sum(axis=2) / (2.0 * NU**2))
    np.testing.assert_allclose(draws.weights, expected, rtol=1e-12)


def test_a_number_that_is_missing_on_one_side_is_as_far_as_one() -> None:
    x = np.array([0.0, 1.0, 2.0, 5.0, np.nan])  # one in five is missing
    law = SmoothLaw.of(TabularLaw.from_data(x[:, None], n_bins=2), kernel_width=NU)
    far = np.exp(-0.5 / NU**2)
    around_missing = law.columns[0].tilt(np.array([np.nan]), np.array([NU]))
    assert np.exp(around_missing.log_weight[0]) == pytest.approx(0.2 + 0.8 * far)
    around = law.columns[0].tilt(np.array([0.3]), np.array([NU]))
    share = around.outside[law.columns[0].place(np.array([np.nan]))[0], 0]
    weight = share * around.complement[0] * np.exp(around.log_weight[0])
    assert weight == pytest.approx(0.2 * far, rel=1e-12)


def test_what_is_no_width_or_no_bins_is_refused() -> None:
    law = TabularLaw.from_data(np.linspace(-1.0, 1.0, 50)[:, None])
    with pytest.raises(InvalidInput, match="kernel_width"):
        SmoothLaw.of(law, kernel_width=0.0)
    with pytest.raises(InvalidInput, match="the bins of a TabularLaw"):
        SmoothLaw.of(SmoothLaw.of(law))  # type: ignore[arg-type]
