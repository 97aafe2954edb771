"""What papers on LIME prove, as printed, where it fails, and repaired; its use."""

import numpy as np
import pytest
from lime_functions import Known
from linear_sums import curved, linear
from normal_samples import weighted_fit, weighted_grid
from numpy.testing import assert_allclose, assert_array_equal
from random_trees import boxes_of_trees
from refusals import refusals

import propopt as po
from papers.lime import gaussian_theory
from papers.lime.linear_bounds import linear_theorem_samples
from papers.lime.linear_limits import linear_limits, linear_noise
from papers.lime.local_error import local_error
from papers.lime.tabular_bounds import (
    paper_stability,
    stability_factor,
    tabular_theorem_samples,
)
from papers.lime.text_bounds import (
    hoeffding_samples,
    moment_bounds,
    text_theorem_samples,
)
from papers.lime.text_constants import TextConstants, inverse_norm
from propopt.base.errors import InvalidInput, Refused
from propopt.lime import GaussianLaw, GlimeLaw, TabularLaw
from propopt.lime.exact_limits import ExactLimits
from propopt.lime.laws.binned_columns import BinnedColumn
from propopt.lime.text.word_limits import TextLaw
from propopt.structures.boxes.sets import Tree
from propopt.structures.products.families import Pieces


@pytest.mark.parametrize("nu", [0.05, 0.25, 1.0, 10.0])
@pytest.mark.parametrize("d", [2, 3, 29, 500])
def test_bounds_of_constants_hold(d, nu):
    bounds, own = moment_bounds(d, nu), TextConstants(TextLaw(nu), d)
    alphas = own.alphas()
    assert (bounds.lowest_alphas <= alphas + 1e-15).all()
    assert (alphas <= bounds.highest_alphas + 1e-15).all()
    assert bounds.lowest_apart <= own.apart
    assert bounds.lowest_c <= own.c
    assert inverse_norm(own.law, d) <= bounds.highest_inverse_norm


def test_published_numbers_of_texts_which_do_not_depend_on_units():
    one = text_theorem_samples(0.1, 0.05, 1.0, 29, 0.25)
    other = hoeffding_samples(0.1, 0.05, 1.0, 29, 0.25)
    wide = hoeffding_samples(0.1, 0.05, 1.0, 29, 1.0)
    assert one == pytest.approx(4.6e95, rel=0.01)
    assert other == pytest.approx(1.8e13, rel=0.03)
    assert wide == pytest.approx(7.8e10, rel=0.01)
    units = 10.0, 0.05, 100.0, 29, 0.25
    assert text_theorem_samples(*units) == pytest.approx(one)
    assert hoeffding_samples(*units) == pytest.approx(other)
    assert hoeffding_samples(0.1, 0.05, 1.0, 29, 0.25, gamma_norm=0.1) < other
    assert text_theorem_samples(0.1, 0.05, 1.0, 29, 0.05) == np.inf


def coded_law(n_columns, n_bins, kernel_width):
    """Columns of ``n_bins`` values with equal shares: f is a table of the bins."""
    values, names = np.arange(float(n_bins)), tuple(map(str, range(n_bins)))
    shares = np.full(n_bins, 1 / n_bins)
    column = BinnedColumn(Pieces.of_values(values), shares, values[:-1] + 0.5, names)
    return TabularLaw.of((column,) * n_columns, kernel_width)


def tree(feature, threshold, left, right, value, n_columns):
    parts = {"feature": feature, "threshold": threshold, "left": left, "right": right}
    return boxes_of_trees([Tree.of(value=value, **parts)], n_columns=n_columns)


SPLIT, NONE = [0.5, 0.0, 0.0], [-1, -1]
STUMP = tree([0, *NONE], SPLIT, [1, *NONE], [2, *NONE], [0.0, 1.0, -1.0], 1)
BOTH = tree(
    [0, -1, 1, *NONE], [0.5, 0, *SPLIT], [1, -1, 3, *NONE], [2, -1, 4, *NONE],
    [0, 1, 0, 1, -1], n_columns=2,
)  # fmt: skip
"""Of two columns: −1 where no bit is 1, else 1."""


@pytest.mark.parametrize(
    ("f", "n_bins", "reached", "printed"),
    [(STUMP, 11, np.sqrt(5), 2.2208), (BOTH, 200, 2.987, 2.843)],
)
def test_the_papers_stability_fails_and_ours_holds(f, n_bins, reached, printed):
    law = coded_law(f.n_columns, n_bins, 50.0)
    result = ExactLimits(f, law).of(np.zeros((1, f.n_columns)))
    (size,) = np.sqrt(result.intercept**2 + (result.coefficients**2).sum(axis=1))
    paper = paper_stability(f.n_columns, 50.0, n_bins)
    assert size == pytest.approx(reached, abs=5e-4)
    assert paper == pytest.approx(printed, abs=5e-4)
    assert paper < size <= stability_factor(result)[0]
    # f is 1 in the bin and −1 outside: |β_1| = 2 and β_0 = −1 < 1 + 2 α, α = 1
    result = ExactLimits(STUMP, coded_law(1, 2, 1e-2)).of(np.zeros((1, 1)))
    assert abs(result.coefficients[0, 0]) == pytest.approx(2.0)


"""−1 where no bit is 1, else 1."""


def test_the_theorem_on_tables():
    wide = {"n_columns": 10, "kernel_width": 0.75 * np.sqrt(10)}
    assert f"{tabular_theorem_samples(0.1, 0.05, 1.0, **wide):.0e}" == "3e+20"
    settings = {"n_columns": 4, "kernel_width": 1.0}
    one = tabular_theorem_samples(0.1, 0.05, 1.0, **settings)
    thousand = tabular_theorem_samples(100.0, 0.05, 1000.0, **settings)
    assert one == pytest.approx(thousand, rel=1e-12)
    assert tabular_theorem_samples(0.2, 0.05, 1.0, **settings) == pytest.approx(one / 4)
    narrow = {"n_columns": 900, "kernel_width": 0.1}  # infinite, and no overflow
    assert tabular_theorem_samples(0.1, 0.05, 1.0, **narrow) == np.inf


ROW = np.append([0.9607, 0.0892], np.linspace(-0.9, 0.9, 8))[None]
SLOPES = [10.0, -10.0, *[0.0] * 8]
STANDARD = GaussianLaw.of(np.zeros(10), 1.0, 1.0)


def linear_bound(law=STANDARD, slopes=SLOPES, row=ROW, *, intercept=0.0):
    return linear_theorem_samples(law, slopes, row, 0.5, 0.05, intercept)


def moments(result):
    """Σ / C and its inverse for one row."""
    full = np.append(1.0, result.alpha[0])
    Sigma = np.outer(full, full)
    np.fill_diagonal(Sigma, full)
    return Sigma, np.linalg.inv(Sigma)


def test_terms_are_those_of_the_paper_and_what_a_proof_asks_for():
    result = gaussian_theory.gains(STANDARD, ROW)
    shifted, bound = linear_bound(intercept=0.3), linear_bound()
    C = np.exp(result.log_weight[0])
    A = (1.0 / (result.alpha * (1.0 - result.alpha))).max()
    f_mean = 10.0 * result.mean[0, 0] - 10.0 * result.mean[0, 1] + 0.3
    F2 = 3.0 * f_mean**2 + 0.5 * 200.0
    expected = [
        288.0 * 200.0 * 100.0 * A**2 / (0.25 * C**2) * np.log(120.0 / 0.05),
        18.0 * 100.0 * A**2 / C**2 * np.log(2400.0 / 0.05),
        648.0 * 1e5 * A**4 * F2 / (C**2 * 0.25) * np.log(2400.0 / 0.05),
    ]
    assert_allclose(shifted.paper[0], expected, rtol=1e-12)
    assert 1e17 < shifted.paper.max() < 1e20
    Sigma, inverse = moments(result)
    K = np.linalg.norm(inverse, 2) / C
    assert_allclose(bound.inverse_norm, K, rtol=1e-10)
    limits = linear_limits(result, SLOPES)
    beta = np.append(limits.intercept, limits.coefficients)
    Gamma = C * np.linalg.norm(Sigma @ beta)
    N, a = 1 + 10 + 45, np.sqrt(200.0)
    R = abs(ROW[0] @ SLOPES) + 2.0 * a * np.exp(-0.5)
    matrix = 121 / 2 * max(4 * K**2, 16 * K**4 * Gamma**2 / 0.25) * np.log(4 * N / 0.05)
    vector = 8 * 11 * R**2 * K**2 / 0.25 * np.log(44 / 0.05)
    assert_allclose(bound.repaired, max(matrix, vector), rtol=1e-10)
    assert 1e13 < bound.repaired[0] < 1e16
    for width in (0.3, 1.0, 50.0):  # the paper's bound of the inverse holds
        law = GaussianLaw.of(np.zeros(10), 1.0, width)
        result = gaussian_theory.gains(law, ROW)
        A = (1.0 / (result.alpha * result.complement)).max()
        largest = 30.0 * A / np.exp(result.log_weight[0])
        assert linear_bound(law).inverse_norm[0] <= largest
    # units do not matter, and a weight that underflows needs infinitely many samples
    other = GaussianLaw.of(np.zeros(10), 5.0, 1.0, unit=5.0)
    other = linear_bound(other, np.array(SLOPES) / 5.0, 5.0 * ROW)
    assert_allclose(bound.paper, other.paper, rtol=1e-10)
    assert_allclose(bound.repaired, other.repaired, rtol=1e-10)
    far = linear_bound(GaussianLaw.of(np.zeros(10), 1.0, 1e-3), row=10.0 * ROW)
    assert np.isinf([*far.paper.ravel(), *far.repaired.ravel()]).all()


@pytest.mark.slow
def test_the_papers_lemma_on_the_matrix_of_bits_is_false(rng):
    """Measured .89 in 300 runs, where the lemma says 1.8e-4.

    If it were true, more than 15 of 60 runs would have probability below 1e-40.
    """
    law, x = GaussianLaw.of(np.zeros(20), 1.0, 50.0), np.full((1, 20), 0.3)
    result = gaussian_theory.gains(law, x)
    Sigma = moments(result)[0] * np.exp(result.log_weight[0])
    large = 0
    for _ in range(60):
        draws = law.draw(x, 200, rng)
        Z = np.column_stack([np.ones(200), draws.bits[0]])
        estimate = (Z.T * draws.weights[0]) @ Z / 200
        large += np.linalg.norm(estimate - Sigma, 2) >= 0.2
    assert 4 * 20**2 * np.exp(-2 * 200 * 0.2**2) < 1.9e-4
    assert large > 15


LINE, POINT = np.array([1.0, -2.0, 0.5]), np.array([0.5, -0.3, 1.2])
LAW = GaussianLaw.of([0.2, -1.0, 0.0], [1.0, 2.5, 0.4], 0.8)


@pytest.mark.parametrize("width", [0.6, 1.0, 5.0])
def test_it_is_the_sandwich_on_a_grid(width):
    """√n SD_j = √E π² r² (z_j − α_j)² / (C α_j (1 − α_j)); the grid has P π."""
    law = GaussianLaw.of([0.2, -1.0, 0.0], [1.0, 2.5, 0.4], width, n_bins=[2, 3, 2])
    samples, bits, weights = weighted_grid(law, POINT, nodes=40)
    values = linear(LINE).value(samples)
    beta, _ = weighted_fit(bits, weights, values)
    rest = values - beta[0] - bits @ beta[1:]
    pi = np.exp(-((samples - POINT) ** 2).sum(axis=1) / (2.0 * width**2))
    total, alpha = weights.sum(), weights @ bits / weights.sum()
    squares = (weights * pi * rest**2) @ (bits - alpha) ** 2
    expected = np.sqrt(squares) / (total * alpha * (1.0 - alpha))
    result = linear_noise(law, LINE, POINT[None], 400)
    assert_allclose(20.0 * result[0], expected, rtol=1e-8)
    squares = (weights * rest**2) @ (bits - alpha) ** 2 / total
    expected = np.sqrt(squares) / (alpha * (1.0 - alpha))
    glime = linear_noise(GlimeLaw(law), LINE, POINT[None], 1)
    assert_allclose(glime[0], expected, rtol=1e-8)


ROWS = np.array([[0.5, -0.3, 1.2], [-2.0, 0.1, 0.65], [0.0, 0.67, -0.7]])
TABULAR = TabularLaw.from_data(np.random.default_rng(0).normal(size=(100, 3)))


@pytest.mark.parametrize("law", [LAW, TABULAR], ids=["gaussian", "tabular"])
def test_what_interactions_cost(law):
    result = local_error(law, Known(linear([1.0, -2.0, 0.5], 3.0)), ROWS)
    assert_allclose(result.interactions, np.zeros(3), atol=1e-13)
    assert_allclose(result.error, result.binning, atol=1e-13)
    assert np.abs(result.error).min() > 1e-3
    # the surrogate is not the mean of the box of a product
    f, step = curved(), np.ones(3)
    result = local_error(law, Known(f), ROWS)
    for j in (0, 2):
        tilt = law.columns[j].tilt(ROWS[:, j], law.widths(ROWS))
        one, zero = tilt.given(tilt.pieces.expect(linear([1.0]).factors[0]))
        step *= ((one - zero) * tilt.complement)[0]
    assert_allclose(result.interactions, -step, rtol=1e-10)
    assert np.abs(result.interactions).max() > 1e-2
    assert_allclose(result.values, f.value(ROWS))
    assert_array_equal(result.at_row, ExactLimits(f, law).of(ROWS).at_row)
    if law is LAW:  # the mean of the box is that of a grid
        samples, bits, weights = weighted_grid(law, ROWS[0], nodes=24)
        box = bits.all(axis=1)
        mean = weights[box] @ f.value(samples[box]) / weights[box].sum()
        assert_allclose(result.box_mean[0], mean, rtol=1e-9)


UNEQUAL = GaussianLaw.of(np.zeros(10), [1.0] * 9 + [2.0], 1.0)
CALLABLE = po.wrap(lambda X: X[:, 0])


@pytest.mark.parametrize(("line", "message"), refusals(__file__, "bounds of LIME"))
def test_what_is_refused(line, message):
    with pytest.raises((InvalidInput, Refused), match=message):
        eval(line)
