import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lime_golden import MEANS, POINT, golden_law, linear, powers, product
from sklearn.datasets import load_wine
from sklearn.model_selection import train_test_split

import propopt as po
from propopt.lime.expectations import ExactLimits
from propopt.lime.laws.lime_law import GlimeLaw
from propopt.lime.laws.tabular_law import TabularLaw
from propopt.lime.paths import adaptive, bandwidth_path, sign_changes
from propopt.structures.products.families import Bumps, Powers
from propopt.structures.products.normals import Normals
from propopt.structures.products.sums import SumOfProducts


UNEQUAL = [[0.2, 0.5, 0.3], [0.6, 0.3, 0.1], [0.3, 0.3, 0.4]]
TILDE = Normals(MEANS, *np.array([[0.5, 0.6, 0.55], [-3, -1, 1], [-1, 1, 3]])).means


def root_of_mean(own, others):
    """ν where (m* + ε s) / (1 + (p − 1) ε) is zero."""
    return np.sqrt(-0.5 / np.log(-own / others))


def test_a_product_of_two_changes_at_the_root_of_the_other_mean():
    result = sign_changes(ExactLimits(product(), golden_law()), POINT)
    expected = root_of_mean(TILDE[0], TILDE[1] + TILDE[2])
    np.testing.assert_allclose(result[1].widths, [expected], rtol=1e-10)
    np.testing.assert_array_equal(result[1].signs, [-1, 1])
    # the mean of x_2 has no root: its bin and the others have the same sign
    assert len(result[0].widths) == 0
    assert result.complete


def test_a_column_of_which_f_does_not_depend_is_zero_everywhere():
    result = sign_changes(ExactLimits(product(), golden_law()), POINT)
    assert result[2].zero
    assert result[2].sign_at(1.0) == 0
    assert result[2].nearest(1.0) is None
    assert not result[0].zero


def test_a_bin_at_the_mean_of_the_others_is_zero_everywhere():
    # shares w of the outer bins with w_0 m_0 + w_2 m_2 = (w_0 + w_2) m_1
    low = (TILDE[2] - TILDE[1]) / (TILDE[2] - TILDE[0])
    shares = [[0.2, 0.5, 0.3], [0.6 * low, 0.4, 0.6 * (1 - low)], [0.3, 0.3, 0.4]]
    result = sign_changes(ExactLimits(linear(), golden_law(shares=shares)), POINT)
    assert [column.zero for column in result.columns] == [False, True, False]


def test_several_roots_of_one_product_and_what_only_touches():
    # β_4 = (F1 − F0) T_1² T_2 of the columns 1, 1', 2, all of which have roots
    law = golden_law(n_columns=4)
    point = np.array([-2.0, -2.0, -2.0, 2.0])
    f = powers([1.0], [[0, 1, 2, 3]], n_columns=4)
    result = sign_changes(ExactLimits(f, law), point)
    root = root_of_mean(TILDE[0], TILDE[1] + TILDE[2])
    # a triple root crosses, a double one touches
    np.testing.assert_allclose(result[3].widths, [root], rtol=1e-9)
    assert result[3].crosses.tolist() == [True]
    three = powers([1.0], [[0, 1, 2]], n_columns=3)
    touching = sign_changes(ExactLimits(three, golden_law()), point[[0, 1, 3]])
    np.testing.assert_allclose(touching[2].widths, [root], rtol=1e-4)
    assert touching[2].crosses.tolist() == [False]
    assert len(touching[2].signs) == 1


def test_a_coefficient_that_dips_below_zero_has_two_roots_and_above_none():
    # β_3 ∝ T² + offset, with T zero inside
    law = golden_law()
    for offset, count in [(-1e-6, 2), (1e-6, 0)]:
        f = powers([1.0, offset], [[0, 1, 2], [2, -1, -1]])
        result = sign_changes(ExactLimits(f, law), np.array([-2.0, -2.0, 2.0]))
        assert len(result[2].crossings) == count
        if count == 0:
            continue
        values = ExactLimits(f, law).of(
            np.repeat([[-2.0, -2.0, 2.0]], len(result[2].widths), axis=0),
            result[2].widths,
        )
        np.testing.assert_allclose(values.coefficients[:, 2], 0.0, atol=1e-15)


def random_sum(seed, n_columns, n_products, length):
    rng = np.random.default_rng(seed)
    paths = np.sort(
        np.argsort(rng.random((n_products, n_columns)), axis=1)[:, :length], axis=1
    )
    u = np.arange(n_products * length).reshape(n_products, length)
    terms = Bumps(
        paths.ravel(),
        rng.uniform(-3, 3, paths.size),
        rng.uniform(0.3, 2.0, paths.size),
    )
    values = rng.normal(size=n_products)
    return SumOfProducts(0.1, values, u, (terms,), n_columns)


def grid_signs(exact, point, n=500):
    widths = np.geomspace(0.05, 60.0, n)
    values = exact.of(np.repeat(point[None], n, axis=0), widths).coefficients
    return widths, np.sign(values)


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10**6), st.booleans(), st.integers(1, 4))
def test_signs_on_a_fine_grid_change_where_an_odd_number_of_roots_is(
    seed, equal, length
):
    shares = None if equal else np.random.default_rng(seed).dirichlet([5, 5, 5], size=4)
    law = golden_law(shares=shares, n_columns=4)
    exact = ExactLimits(random_sum(seed, 4, 12, length), law)
    point = np.random.default_rng(seed + 1).uniform(-3, 3, 4)
    result = sign_changes(exact, point)
    assert result.complete
    widths, signs = grid_signs(exact, point)
    for j, column in enumerate(result.columns):
        if column.zero:
            continue
        inside = column.crossings[(column.crossings > 0.05) & (column.crossings < 60.0)]
        # two roots within one step of the grid are not on it
        changes = signs[1:, j] != signs[:-1, j]
        counts = np.histogram(inside, bins=widths)[0]
        np.testing.assert_array_equal(counts % 2 == 1, changes)
        assert len(column.signs) == len(column.crossings) + 1
        assert (column.signs[1:] == -column.signs[:-1]).all()


def test_signs_are_those_of_exact_values():
    exact = ExactLimits(random_sum(4, 4, 12, 3), golden_law(n_columns=4))
    point = np.array([0.3, -2.0, 2.0, 0.1])
    result = sign_changes(exact, point)
    widths = np.geomspace(0.1, 50.0, 40)
    path = bandwidth_path(exact, point, widths)
    for j, column in enumerate(result.columns):
        signs = [column.sign_at(width) for width in widths]
        np.testing.assert_array_equal(signs, np.sign(path.coefficients[:, j]))


def test_the_degree_is_that_of_the_longest_product_or_of_all_columns():
    f = random_sum(0, 3, 6, 2)
    same = sign_changes(ExactLimits(f, golden_law()), POINT)
    other = sign_changes(ExactLimits(f, golden_law(shares=UNEQUAL)), POINT)
    assert "degree 1 at most" in same.statement
    assert "degree 2 at most" in other.statement
    assert same.complete
    assert other.complete


def test_the_path_knows_them_also_outside_its_widths():
    path = bandwidth_path(ExactLimits(product(), golden_law()), POINT, [1.0, 2.0])
    assert len(path.sign_changes[1].widths) == 1
    assert path.sign_changes[1].nearest(1.0) == path.sign_changes[1].widths[0]
    assert path.sign_changes is path.sign_changes


def test_other_kernels_by_pieces_find_the_critical_bandwidths():
    # B5 of the linear paper: bins of a standard normal, f linear
    point = np.array([0.1, 0.3, 0.34, 0.432, 0.6, -0.432, 1.0, -2.0])
    f = SumOfProducts.additive(0.0, np.ones(8), Powers.first(np.arange(8)), 8)
    law = po.lime.GaussianLaw.of(np.zeros(8), 1.0, 1.0)
    result = sign_changes(ExactLimits(f, law), point)
    assert not result.complete
    assert "rounding" in result.statement
    edges = np.array([-np.inf, -0.6744897501960817, 0.0, 0.6744897501960817, np.inf])
    for x, column in zip(point, result.columns, strict=True):
        k = np.searchsorted(edges, x, side="right")
        total = edges[k - 1] + edges[k]
        with np.errstate(divide="ignore", invalid="ignore"):
            square = (2 * x - total) / total
        expected = [np.sqrt(square)] if 0.0 < square < np.inf else []
        np.testing.assert_allclose(column.crossings, expected, rtol=1e-9)


def test_a_neighbourhood_has_the_roots_of_its_law():
    exact = ExactLimits(product(), GlimeLaw(golden_law()))
    own = sign_changes(ExactLimits(product(), golden_law()), POINT)
    result = sign_changes(exact, POINT)
    np.testing.assert_allclose(result[1].widths, own[1].widths, rtol=1e-7)
    assert result.complete


def test_a_constant_has_no_roots_and_no_signs():
    f = SumOfProducts.additive(3.0, np.zeros(1), Powers.first(np.array([0])), 3)
    result = sign_changes(ExactLimits(f, golden_law()), POINT)
    assert [column.zero for column in result.columns] == [True] * 3


@pytest.mark.parametrize("width", [1.0, 30.0])
def test_the_nearest_root_is_by_ratio(width):
    exact = ExactLimits(random_sum(4, 4, 12, 4), golden_law(n_columns=4))
    for column in sign_changes(exact, np.array([0.3, -2.0, 2.0, 0.1])).columns:
        if len(column.crossings) > 0:
            ratios = np.abs(np.log(column.crossings / width))
            assert column.nearest(width) == column.crossings[np.argmin(ratios)]


def kernel_ridge(X, y, scale):
    """Kernel ridge with a gaussian kernel, as a sum of products."""
    n, d = X.shape
    square = ((X[:, None] - X[None]) ** 2).sum(axis=2)
    kernel = np.exp(-0.5 * square / scale**2)
    weights = np.linalg.solve(kernel + np.eye(n), y)
    column = np.tile(np.arange(d), n)
    terms = Bumps(column, X.ravel(), np.full(n * d, float(scale)))
    paths = np.arange(n * d).reshape(n, d)
    return SumOfProducts(0.0, weights, paths, (terms,), d)


def test_ash_and_proanthocyanins_of_the_wine_change_where_figure_7_says():
    # The paper does not say which row; this one, among all, has both published roots.
    X, y = load_wine(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    rows, _, targets, _ = train_test_split(X, y, test_size=0.2, random_state=5)
    f = kernel_ridge(rows, targets.astype(float), 5)
    law = TabularLaw.from_data(X, weights="uniform")
    result = sign_changes(ExactLimits(f, law), rows[113])
    assert result.complete
    assert "degree 12 at most" in result.statement
    np.testing.assert_allclose(result[2].crossings, [0.654], atol=5e-4)
    np.testing.assert_allclose(result[8].crossings, [0.568], atol=5e-4)


def test_pieces_around_a_jump_have_a_width():
    def step(u, rest):
        del rest
        values = np.where(u < 0.3, -1.0, 1.0)[:, None]
        return values, np.full(values.shape, 1e-16)

    pieces = sorted(adaptive(step, 2.0**-12), key=lambda piece: piece.low)
    assert all(piece.low < piece.high for piece in pieces)
    (jump,) = [piece for piece in pieces if not piece.resolved]
    assert jump.low <= 0.3 <= jump.high < np.nextafter(jump.low, 1.0) + 1e-15
