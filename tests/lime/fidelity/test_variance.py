import numpy as np
import pytest
from lime_golden import GOLDEN, POINT, golden_law, linear, powers, quadrature
from sklearn.ensemble import RandomForestRegressor
from sklearn.tree import DecisionTreeRegressor

import propopt as po
from propopt.lime.expectations import ExactLimits
from propopt.lime.fidelity import effective_share, exact_variance
from propopt.lime.laws.lime_law import GlimeLaw
from propopt.structures.products.families import Bumps
from propopt.structures.products.sums import SumOfProducts


UNEQUAL = [[0.2, 0.5, 0.3], [0.6, 0.3, 0.1], [0.3, 0.3, 0.4]]


def variance(f, law, points, widths=None):
    return exact_variance(f, law, points, law.widths(points, widths))


def explained(limits):
    """The variance of surrogates: bits are independent."""
    alpha = limits.alpha
    return (alpha * (1.0 - alpha) * limits.coefficients**2).sum(axis=1)


@pytest.mark.parametrize("name", sorted(GOLDEN))
@pytest.mark.parametrize("width", [0.5, 2.0])
def test_exact_variances_are_sums_over_all_cells(name, width):
    law = golden_law(width, UNEQUAL)
    f = GOLDEN[name][0]()
    samples, bits, _, weights = quadrature(law, POINT, width)
    values = f.value(samples)
    result = variance(f, law, POINT[None])
    expected = np.cov(values, aweights=weights, ddof=0)
    np.testing.assert_allclose(result, [expected], rtol=1e-9)
    limits = ExactLimits(f, law).of(POINT[None])
    surrogate = limits.intercept + bits @ limits.coefficients[0]
    part = np.cov(surrogate, aweights=weights, ddof=0)
    np.testing.assert_allclose(explained(limits), [part], rtol=1e-9)


def test_families_of_other_columns_have_exact_variances_together():
    law = golden_law(1.0, UNEQUAL)
    samples, _, _, weights = quadrature(law, POINT, 1.0)
    apart = SumOfProducts.sum_of([GOLDEN["box"][0](), powers([2.0], [[2]])])
    result = variance(apart, law, POINT[None])
    expected = np.cov(apart.value(samples), aweights=weights, ddof=0)
    np.testing.assert_allclose(result, [expected], rtol=1e-9)


def test_a_set_times_a_line_in_one_column_has_no_closed_form():
    both = SumOfProducts.sum_of([GOLDEN["box"][0](), linear()])
    assert variance(both, golden_law(1.0, UNEQUAL), POINT[None]) is None


def forest(n_trees):
    rng = np.random.default_rng(0)
    X = rng.uniform(-10, 10, (300, 4))
    y = X.sum(axis=1) + X[:, 0] * X[:, 1]
    model = RandomForestRegressor(n_trees, max_depth=4, random_state=0).fit(X, y)
    return po.wrap(model, data=X), X


def test_variances_of_a_forest_agree_with_draws():
    function, X = forest(5)
    for law in (
        po.lime.TabularLaw.from_data(X),
        po.lime.GaussianLaw.from_data(X),
        GlimeLaw(po.lime.TabularLaw.from_data(X)),
    ):
        exact = variance(function.products, law, X[:2])
        draws = law.draw_weighted(X[:2], 20_000, np.random.default_rng(3))
        values = function.value(draws.samples.reshape(-1, 4)).reshape(2, -1)
        square = values.var(axis=1, ddof=1)
        fourth = ((values.T - values.mean(axis=1)) ** 4).mean(axis=0)
        # six z-scores beyond 4 in 2,600 seeds
        z = (square - exact) / np.sqrt((fourth - square**2) / 20_000)
        assert np.abs(z).max() < 4


def test_two_bumps_that_overlap_vary_together():
    column = np.array([0, 1, 0, 1])
    centers, widths = np.array([0.2, -0.5, 1.0, 0.3]), np.array([0.8, 0.9, 1.4, 0.6])
    bumps = Bumps(column, centers, widths)
    paths = np.array([[0, 1], [2, 3]])
    f = SumOfProducts(0.3, np.array([1.0, -2.0]), paths, (bumps,), 3)
    law = golden_law(1.0, UNEQUAL)
    samples, _, _, weights = quadrature(law, POINT, 1.0)
    expected = np.cov(f.value(samples), aweights=weights, ddof=0)
    result = variance(f, law, POINT[None])
    np.testing.assert_allclose(result, [expected], rtol=1e-9)


def test_each_situation_has_its_width():
    f, law = GOLDEN["bump"][0](), golden_law()
    widths = np.array([0.5, 3.0])
    both = variance(f, law, np.stack([POINT, POINT]), widths)
    for n in range(2):
        alone = variance(f, law.with_width(widths[n]), POINT[None])
        np.testing.assert_allclose(both[n], alone[0], rtol=1e-12)


def test_depth_three_trees_of_ten_columns_are_explained_to_a_sixth():
    # the published 0.1706 is of one draw of the data, which is not given
    shares = []
    for seed in range(10):
        X = np.random.RandomState(seed).uniform(-10, 10, (1000, 10))
        tree = DecisionTreeRegressor(max_depth=3).fit(X, X.sum(axis=1))
        law = po.lime.TabularLaw.from_data(X, weights="uniform")
        function = po.wrap(tree, data=X)
        exact = ExactLimits(function.products, law)
        total = variance(function.products, law, X[:5])
        shares.append(explained(exact.of(X[:5])) / total)
    assert np.min(shares) < 0.1706 < np.max(shares)


def test_a_constant_has_no_variance():
    f = SumOfProducts.additive(3.0, np.zeros(3), linear().factors[0], 3)
    np.testing.assert_array_equal(variance(f, golden_law(), POINT[None]), [0.0])


def test_all_samples_of_a_neighbourhood_count():
    law = GlimeLaw(golden_law())
    result = effective_share(law, POINT[None], np.array([0.3]))
    np.testing.assert_allclose(result, 1.0)


def test_effective_shares_are_those_of_weights_of_samples():
    law = golden_law(0.8, UNEQUAL)
    weights = law.draw(POINT[None], 200_000, np.random.default_rng(0)).weights
    expected = weights.mean() ** 2 / (weights**2).mean()
    result = effective_share(law, POINT[None])
    np.testing.assert_allclose(result, expected, rtol=0.01)
