import numpy as np
import pytest
from lime_golden import GOLDEN, POINT, golden_law, quadrature
from sklearn.tree import DecisionTreeRegressor

import propopt as po
from papers.lime.cells import split_by_cells
from propopt.lime.expectations import ExactLimits
from propopt.lime.fidelity import share_outside, split_by_columns


UNEQUAL = [[0.2, 0.5, 0.3], [0.6, 0.3, 0.1], [0.3, 0.3, 0.4]]


def brute(function, law, width):
    """Parts by sums over all cells, (parts, columns)."""
    samples, bits, _, weights = quadrature(law, POINT, width)
    f = function.value(samples)
    used = function.columns
    cells = np.zeros((len(used) + 1, 3))
    for j in used:
        others = [k for k in used if k != j]
        out = (1 - bits[:, others]).sum(axis=1)
        for bit, sign in ((1, 1.0), (0, -1.0)):
            side = bits[:, j] == bit
            p = weights[side] / weights[side].sum()
            for m in range(len(used)):
                near = out[side] == m
                cells[m + 1 - bit, j] += sign * (p * f[side])[near].sum()
    return cells


@pytest.mark.parametrize("name", sorted(GOLDEN))
@pytest.mark.parametrize("width", [0.6, 2.0])
def test_parts_by_cells_are_sums_over_cells(name, width):
    law = golden_law(width, UNEQUAL)
    f = GOLDEN[name][0]()
    split = split_by_cells(ExactLimits(f, law), POINT[None])
    np.testing.assert_allclose(split[0], brute(f, law, width), atol=1e-9)


def contrast_with_bits(function, law, j, fixed):
    """E[f | z_j = 1] − E[f | z_j = 0] with given bits of the other columns."""
    samples, bits, _, weights = quadrature(law, POINT, 1.0)
    f = function.value(samples)
    kept = np.all([bits[:, k] == bit for k, bit in fixed.items()], axis=0)
    return sum(
        sign * np.average(f[side], weights=weights[side])
        for bit, sign in ((1, 1.0), (0, -1.0))
        for side in [kept & (bits[:, j] == bit)]
    )


@pytest.mark.parametrize("name", ["bump", "box", "product"])
def test_parts_by_columns_are_what_others_add_when_they_leave(name):
    law = golden_law(1.3, UNEQUAL)
    f = GOLDEN[name][0]()
    exact = ExactLimits(f, law)
    split = split_by_columns(exact, POINT[None])
    out = 1.0 - exact.of(POINT[None]).alpha[0]
    used = f.columns.tolist()
    for j in used:
        others = [k for k in used if k != j]
        inside = dict.fromkeys(others, 1)
        local = contrast_with_bits(f, law, j, inside)
        moves = sum(
            out[k] * (contrast_with_bits(f, law, j, {**inside, k: 0}) - local)
            for k in others
        )
        np.testing.assert_allclose(split[0, :2, j], [local, moves], atol=1e-9)


@pytest.mark.parametrize("name", sorted(GOLDEN))
@pytest.mark.parametrize("split", [split_by_cells, split_by_columns])
def test_parts_sum_to_coefficients_at_every_width(name, split):
    exact = ExactLimits(GOLDEN[name][0](), golden_law(shares=UNEQUAL))
    widths = np.array([0.05, 0.7, 1.9, 40.0])
    points = np.repeat(POINT[None], 4, axis=0)
    expected = exact.of(points, widths).coefficients
    result = split(exact, points, widths).sum(axis=1)
    np.testing.assert_allclose(result, expected, atol=1e-14)


def test_all_of_an_additive_function_is_local():
    exact = ExactLimits(GOLDEN["linear"][0](), golden_law())
    np.testing.assert_array_equal(
        share_outside(split_by_columns(exact, POINT[None])), 0.0
    )


def test_the_local_part_is_the_limit_of_narrow_kernels():
    exact = ExactLimits(GOLDEN["bump"][0](), golden_law())
    split = split_by_columns(exact, POINT[None], np.array([2.0]))
    narrow = exact.of(POINT[None], np.array([0.05])).coefficients
    np.testing.assert_allclose(split[:, 0], narrow, rtol=1e-12)


def test_columns_that_are_not_used_have_no_parts():
    exact = ExactLimits(GOLDEN["product"][0](), golden_law())
    for split in (split_by_cells, split_by_columns):
        result = split(exact, POINT[None])
        np.testing.assert_array_equal(result[:, :, 2], 0.0)
        np.testing.assert_array_equal(share_outside(result)[:, 2], 0.0)


def tree_beside_a_bump():
    """The tree of Figure 13, whose coefficients stay where it is flat."""
    rng = np.random.RandomState(3)
    X = rng.uniform(-10, 10, (1000, 2))
    y = np.exp(-((X - [-3, 3]) ** 2).sum(axis=1) / 2)
    tree = DecisionTreeRegressor(max_depth=4, random_state=3).fit(X, y)
    law = po.lime.TabularLaw.from_data(X, weights="uniform", kernel_width=1.0)
    return po.wrap(tree, data=X), law


def test_figure_13_to_all_its_digits():
    function, law = tree_beside_a_bump()
    exact = ExactLimits(function.products, law)
    points = np.array([[-3, 2.3], [-3, -2.3], [-3, -7.5]])
    values = function.value(points)
    np.testing.assert_allclose(values, [0.413, 0.00058, 0.00058], atol=5e-4)
    beta = exact.of(points).coefficients
    expected = [[0.0919, 0.0864], [0.0573, -0.0319], [0.0573, -0.0319]]
    np.testing.assert_allclose(beta, expected, atol=6e-5)
    parts = split_by_cells(exact, points)[1, :, 0]
    np.testing.assert_allclose(parts, [0.0003, 0.0576, -0.0006], atol=6e-5)
    by_columns = share_outside(split_by_columns(exact, points))
    assert by_columns[1, 0] > 0.99
    # in the cell of the bump itself most is local
    assert by_columns[0, 0] < by_columns[1, 0]
