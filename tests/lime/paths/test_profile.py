import numpy as np
import pytest
from lime_golden import GOLDEN, POINT, golden_law, quadrature
from sklearn.ensemble import HistGradientBoostingRegressor

import propopt as po
from propopt.base.errors import InvalidInput
from propopt.lime import SmoothLaw
from propopt.lime.expectations import (
    ExactLimits,
    bin_profiles,
    cell_coefficients,
    profile_means,
)
from propopt.lime.laws.lime_law import GlimeLaw
from propopt.structures.boxes.sets import Sets
from propopt.structures.products.families import Bumps
from propopt.structures.products.sums import SumOfProducts


UNEQUAL = [[0.2, 0.5, 0.3], [0.6, 0.3, 0.1], [0.3, 0.3, 0.4]]


@pytest.mark.parametrize("name", sorted(GOLDEN))
@pytest.mark.parametrize("width", [0.5, 2.0])
def test_profiles_are_means_over_the_cells_of_a_bin(name, width):
    law = golden_law(width, UNEQUAL)
    f = GOLDEN[name][0]()
    samples, _, bins, weights = quadrature(law, POINT, width)
    values = f.value(samples)
    profiles = bin_profiles(ExactLimits(f, law), POINT[None])
    for j, profile in enumerate(profiles):
        expected = [
            np.average(values[bins[:, j] == b], weights=weights[bins[:, j] == b])
            for b in range(3)
        ]
        np.testing.assert_allclose(profile[0], expected, atol=1e-9)


@pytest.mark.parametrize("name", sorted(GOLDEN))
def test_coefficients_along_a_column_are_contrasts_of_its_profile(name):
    law = golden_law(1.2, UNEQUAL)
    exact = ExactLimits(GOLDEN[name][0](), law)
    for j, (profile, w) in enumerate(
        zip(bin_profiles(exact, POINT[None]), UNEQUAL, strict=True)
    ):
        moved = np.repeat(POINT[None], 3, axis=0)
        moved[:, j] = [-2.0, 0.0, 2.0]
        expected = exact.of(moved).coefficients[:, j]
        own, w = profile[0], np.array(w)
        np.testing.assert_allclose(
            own - (own @ w - own * w) / (1.0 - w), expected, atol=1e-13
        )


def test_rows_and_widths_are_each_their_own():
    exact = ExactLimits(GOLDEN["bump"][0](), golden_law())
    points = np.array([POINT, [0.1, 2.0, -2.0]])
    widths = np.array([0.7, 3.0])
    both = bin_profiles(exact, points, widths)
    for n in range(2):
        alone = bin_profiles(exact, points[[n]], widths[[n]])
        for j in range(3):
            np.testing.assert_allclose(both[j][n], alone[j][0], rtol=1e-13)


def test_a_monotone_tree_has_monotone_profiles():
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (600, 3))
    y = X[:, 0] + 0.5 * np.sin(3 * X[:, 0]) * X[:, 1] + X[:, 2] ** 2
    model = HistGradientBoostingRegressor(monotonic_cst=[1, 0, 0], max_iter=20)
    function = po.wrap(model.fit(X, y), data=X)
    law = po.lime.TabularLaw.from_data(X, weights="uniform", n_bins=6)
    exact = ExactLimits(function.products, law)
    profiles = bin_profiles(exact, X[:20])
    assert (np.diff(profiles[0], axis=1) >= -1e-12).all()
    assert not (np.diff(profiles[2], axis=1) >= -1e-12).all()


def test_laws_with_weights_by_distance_are_refused():
    law = po.lime.GaussianLaw.of(np.zeros(3), 1.0)
    exact = ExactLimits(GOLDEN["bump"][0](), law)
    with pytest.raises(InvalidInput, match="TabularLaw"):
        bin_profiles(exact, POINT[None])


def test_a_neighbourhood_has_the_profiles_of_its_law():
    law, f = golden_law(0.8), GOLDEN["bump"][0]()
    own = bin_profiles(ExactLimits(f, law), POINT[None])
    result = bin_profiles(ExactLimits(f, GlimeLaw(law)), POINT[None])
    np.testing.assert_allclose(result[0], own[0], rtol=1e-13)


def uniform_square(p):
    return np.random.RandomState(3).uniform(-10, 10, (1000, 2)), p


def test_arrows_of_figure_11():
    X, p = uniform_square(4)
    law = po.lime.TabularLaw.from_data(
        X, n_bins=p, weights="uniform", kernel_width=10.0
    )
    sets = Sets.of_numbers([0, 1], [-4.0, -9.0], [0.0, -6.0], [False, False])
    f = SumOfProducts(0.0, np.ones(1), np.array([[0, 1]]), (sets,), 2)
    point = np.array([[-2.0, -7.0]])
    cells = cell_coefficients(ExactLimits(f, law).of, law, point, (0, 1))
    same, aligned, neither = (cells[c] for c in [(1, 0), (1, 2), (3, 3)])
    np.testing.assert_allclose(same, [0.170, 0.170], atol=6e-4)
    np.testing.assert_allclose(aligned, [0.169, -0.057], atol=6e-4)
    np.testing.assert_allclose(neither, [-0.056, -0.056], atol=6e-4)


def test_arrows_of_figure_15():
    X, p = uniform_square(10)
    law = po.lime.TabularLaw.from_data(X, n_bins=p, weights="uniform", kernel_width=1.0)
    bumps = Bumps(np.arange(2), np.full(2, -2.5), np.ones(2))
    f = SumOfProducts(0.0, np.ones(1), np.array([[0, 1]]), (bumps,), 2)
    point = np.full((1, 2), -2.5)
    cells = cell_coefficients(ExactLimits(f, law).of, law, point, (0, 1))
    a, b = (int(law.columns[j].place(point[:, j])[0]) for j in range(2))
    first = cells[:, :, 0]
    np.testing.assert_allclose(first[a, b], 0.155, atol=6e-4)
    np.testing.assert_allclose(first[a, 9], 0.113, atol=6e-4)
    np.testing.assert_allclose(first[0, 9], -0.018, atol=6e-4)


@pytest.mark.parametrize("name", sorted(GOLDEN))
def test_wide_weights_by_distance_leave_the_profiles_of_bins(name):
    bins = golden_law(1e7, UNEQUAL)
    smooth = SmoothLaw.of(bins, kernel_width=1e7)
    f = GOLDEN[name][0]()
    for j in range(3):
        result, expected = (
            profile_means(ExactLimits(f, law).of, law, POINT[None], j)
            for law in (smooth, bins)
        )
        np.testing.assert_allclose(result, expected, rtol=1e-9)
