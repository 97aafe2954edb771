"""Constants and identities of the tabular law, and the paper's own formulas."""

from __future__ import annotations

import itertools

import lime_fixture as fixture
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.tree import DecisionTreeRegressor

import propopt as po
from propopt.base.arrays import Array, Points
from propopt.lime.expectations import ExactLimits
from propopt.lime.laws.binned_columns import BinnedColumn
from propopt.lime.laws.tabular_law import TabularLaw
from propopt.structures.products.families import Pieces
from propopt.structures.products.normals import Normals
from propopt.structures.products.sums import SumOfProducts


def weights_of(n_columns: int, p: int, nu: float) -> tuple[float, float, float]:
    """c, α and E[π]² / E[π²] of columns of p bins that are drawn alike."""
    column = BinnedColumn(
        Pieces.of_values(np.arange(float(p))), np.full(p, 1 / p), np.zeros(0), ("",) * p
    )
    tilt, squared = (column.tilt(np.zeros(1), np.array([w])) for w in (nu, nu / 2**0.5))
    c, c2 = (np.exp(t.log_weight[0]) for t in (tilt, squared))
    return float(c), float(tilt.alpha[0]), float((c**2 / c2) ** n_columns)


@pytest.mark.parametrize(
    ("n_columns", "p", "nu", "c", "alpha", "effective"),
    [
        (3, 3, 1.0, 0.737687106475, 0.451862761878, 0.832010355857),
        (3, 3, 0.75 * 3**0.5, 0.829044719471, 0.402069183368, 0.938836666249),
        (3, 3, 1e6, 1.0, 1 / 3, 1.0),
        (1, 4, 1.0, 0.704897995, None, None),
        (10, 4, 0.75 * 10**0.5, 0.936210422, 0.267033985, 0.98466),
        (10, 4, 7.5**0.5, 0.951630239, None, None),
    ],
)
def test_constants_of_the_paper(
    n_columns: int,
    p: int,
    nu: float,
    c: float,
    alpha: float | None,
    effective: float | None,
) -> None:
    result = weights_of(n_columns, p, nu)
    for ours, theirs in zip(result, (c, alpha, effective), strict=True):
        if theirs is not None:
            digits = len(str(theirs).split(".")[-1])
            assert ours == pytest.approx(theirs, abs=0.51 * 10 ** -min(digits, 12))


def test_mean_weight_of_ten_columns() -> None:
    c, _, _ = weights_of(10, 4, 0.75 * 10**0.5)
    assert c**10 == pytest.approx(0.517291, abs=5e-7)


def moments(alpha: Array, C: float) -> Array:
    """Σ = E[π Z Zᵀ]: Proposition 10."""
    outer = np.outer(np.append(1.0, alpha), np.append(1.0, alpha))
    np.fill_diagonal(outer, np.append(1.0, alpha))
    return C * outer


def inverse_moments(alpha: Array, C: float) -> Array:
    """Σ⁻¹: Proposition 11."""
    result = np.diag(np.append(0.0, 1.0 / (alpha * (1.0 - alpha))))
    result[0, 1:] = result[1:, 0] = -1.0 / (1.0 - alpha)
    result[0, 0] = 1.0 + (alpha / (1.0 - alpha)).sum()
    return result / C


def test_moments_of_bits_have_their_inverse() -> None:
    limits = ExactLimits(fixture.FUNCTIONS["bump"], fixture.law(1.0)).of(fixture.ROW)
    alpha, C = limits.alpha[0], np.exp(limits.log_weight[0])
    inverse = inverse_moments(alpha, C)
    np.testing.assert_allclose(moments(alpha, C) @ inverse, np.eye(4), atol=2e-15)
    assert inverse[0, 0] == pytest.approx(8.6516401432, abs=1e-9)
    assert inverse[0, 1] == pytest.approx(-4.5445837833, abs=1e-9)
    assert inverse[1, 1] == pytest.approx(10.0574425838, abs=1e-9)


def cell_means(f: SumOfProducts) -> tuple[list[tuple[int, ...]], Array]:
    """E f in each of the 27 cells of the fixture."""
    column = fixture.column()
    cells = list(itertools.product(range(3), repeat=3))
    factors = {j: list(f.of_column(j)) for j in f.columns.tolist()}
    P = np.zeros((f.n_factors, len(cells)))
    for j, families in factors.items():
        own = [cell[j] for cell in cells]
        for numbers, family in families:
            P[numbers] = column.pieces.expect(family)[:, own]
    mean, _ = f.contrasts(P, np.zeros(P.shape))
    return cells, mean


def literal_equation_5(f: SumOfProducts, nu: float) -> Array:
    """Equation 5 as it is printed, from all cells: it loses its digits as ν falls."""
    cells, mean = cell_means(f)
    eps, p, d = np.exp(-0.5 / nu**2), 3, 3
    c = 1 / p + (1 - 1 / p) * eps
    bits = np.array(cells) == fixture.BINS_OF_ROW
    weights = eps ** (d - bits.sum(axis=1)) / 27
    pc = p * c
    total = weights @ mean
    with_bit = (weights * mean) @ bits
    return c**-d * (-pc / (pc - 1) * total + pc**2 / (pc - 1) * with_bit)


@pytest.mark.parametrize("name", fixture.FUNCTIONS)
@pytest.mark.parametrize("nu", [0.2, 0.5, 1.0, 5.0])
def test_equation_5_is_the_contrast(name: str, nu: float) -> None:
    f = fixture.FUNCTIONS[name]
    result = ExactLimits(f, fixture.law(nu)).of(fixture.ROW).coefficients[0]
    np.testing.assert_allclose(literal_equation_5(f, nu), result, rtol=2e-9, atol=1e-9)


def test_contrasts_keep_their_digits_where_equation_5_has_none() -> None:
    f = fixture.FUNCTIONS["bump"]
    at_zero = ExactLimits(f, fixture.law(1e-3)).of(fixture.ROW).coefficients[0]
    result = ExactLimits(f, fixture.law(0.12)).of(fixture.ROW).coefficients[0]
    np.testing.assert_allclose(result, at_zero, rtol=1e-10)
    with np.errstate(all="ignore"):
        literal = literal_equation_5(f, 0.12)
        assert np.abs(literal / result - 1.0).max() > 0.01
        assert np.isnan(literal_equation_5(f, 0.02)).all()


def test_linear_functions_do_not_depend_on_the_width() -> None:
    """Corollary 4: Σ_b (m̃_b* − m̃_b) / (p − 1), and the intercept too."""
    f = fixture.FUNCTIONS["linear"]
    means = fixture.column().pieces.normals.means
    np.testing.assert_allclose(
        means, [-1.8472390633, 0.0631881979, 1.7946562177], atol=6e-11
    )
    v = (3 * means - means.sum()) / 2
    others = (means.sum() - means) / 2
    slopes = np.array([2.0, -1.0, 0.5])
    for nu in (1e-2, 0.3, 1.0, 1e3):
        result = ExactLimits(f, fixture.law(nu)).of(fixture.ROW)
        np.testing.assert_allclose(result.coefficients[0], slopes * v, rtol=1e-13)
        assert result.intercept[0] == pytest.approx(0.7 + slopes @ others, rel=1e-12)


def test_values_of_a_column_over_its_bins_sum_to_zero() -> None:
    """The profile: with bins drawn alike, β_j of all p bins of one column."""
    for name in fixture.FUNCTIONS:
        rows = np.repeat(fixture.ROW, 3, axis=0)
        rows[:, 1] = [-2.0, 0.0, 2.0]
        exact = ExactLimits(fixture.FUNCTIONS[name], fixture.law(0.8))
        result = exact.of(rows).coefficients[:, 1]
        assert result.sum() == pytest.approx(0.0, abs=1e-14)


def forest_law(seed: int, p: int) -> tuple[po.functions.Function, TabularLaw, Points]:
    rng = np.random.default_rng(seed)
    X = np.column_stack(
        [rng.normal(size=150), rng.lognormal(size=150), rng.choice(4, size=150)]
    )
    y = X[:, 0] * X[:, 1] + rng.normal(size=150)
    model = DecisionTreeRegressor(max_depth=4, random_state=seed).fit(X, y)
    return po.wrap(model), TabularLaw.from_data(X, n_bins=p), X


def exact_of(f: po.functions.Function, law: TabularLaw) -> ExactLimits:
    assert isinstance(f.products, SumOfProducts)
    return ExactLimits(f.products, law)


@given(seed=st.integers(0, 50), p=st.integers(2, 6), nu=st.floats(0.05, 50.0))
def test_coefficients_are_within_the_bounds_of_stability(
    seed: int, p: int, nu: float
) -> None:
    """|β_j| ≤ 2‖f‖ and |β_0| ≤ (1 + 2 Σ α_j) ‖f‖: also of differences f − g."""
    f, law, X = forest_law(seed, p)
    products = f.products
    assert isinstance(products, SumOfProducts)
    largest = np.abs(f.value(X)).max()
    result = ExactLimits(products, law.with_width(nu)).of(X[:7])
    assert (np.abs(result.coefficients) <= 2.0 * largest * (1 + 1e-12)).all()
    bounds = (1.0 + 2.0 * result.alpha.sum(axis=1)) * largest
    assert (np.abs(result.intercept) <= bounds * (1 + 1e-12)).all()


@given(order=st.permutations([0, 1, 2]), seed=st.integers(0, 50))
def test_columns_in_another_order_have_the_same_coefficients(
    order: list[int], seed: int
) -> None:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(60, 3))
    y = X @ [1.0, -2.0, 0.5] + X[:, 0] * X[:, 1]
    law = TabularLaw.from_data(X, n_bins=3, kernel_width=0.7)
    model = DecisionTreeRegressor(max_depth=3, random_state=0).fit(X, y)
    result = exact_of(po.wrap(model), law).of(X[:5])
    turned = X[:, order]
    tree = po.wrap(_turned(model, order, turned, y))
    other = exact_of(tree, law.reordered(np.array(order))).of(turned[:5])
    np.testing.assert_allclose(
        other.coefficients, result.coefficients[:, order], rtol=1e-12, atol=1e-13
    )
    np.testing.assert_allclose(other.mean, result.mean, rtol=1e-12)


def _turned(
    model: DecisionTreeRegressor, order: list[int], X: Points, y: Array
) -> DecisionTreeRegressor:
    """The same tree, of columns in another order."""
    import copy

    turned = copy.deepcopy(model)
    state = turned.tree_.__getstate__()
    place = np.argsort(order)
    feature = state["nodes"]["feature"]
    state["nodes"]["feature"] = np.where(feature >= 0, place[feature], feature)
    turned.tree_.__setstate__(state)
    np.testing.assert_array_equal(turned.predict(X), model.predict(X[:, place]))
    del y
    return turned


@given(level=st.floats(-1e3, 1e3), p=st.integers(2, 5))
def test_a_constant_has_no_coefficients(level: float, p: int) -> None:
    X = np.arange(40.0).reshape(20, 2)
    model = DecisionTreeRegressor().fit(X, np.full(20, level))
    result = exact_of(po.wrap(model), TabularLaw.from_data(X, n_bins=p)).of(X)
    rounding = 1e-15 * abs(level)  # of means in leaves
    np.testing.assert_allclose(result.coefficients, 0.0, atol=rounding)
    np.testing.assert_allclose(result.intercept, level, rtol=1e-14)


@given(seed=st.integers(0, 20), p=st.integers(2, 6))
def test_coefficients_of_a_monotone_function_rise_with_the_bin(
    seed: int, p: int
) -> None:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(200, 2))
    y = 2.0 * X[:, 0] + np.sin(3.0 * X[:, 1]) * (X[:, 0] > 0)
    model = HistGradientBoostingRegressor(max_iter=10, monotonic_cst=[1, 0]).fit(X, y)
    law = TabularLaw.from_data(X, n_bins=p)
    exact = exact_of(po.wrap(model), law)
    rows = np.repeat(X[:1], p, axis=0)
    pieces = law.columns[0].pieces
    rows[:, 0] = 0.5 * (pieces.low + pieces.high)
    result = exact.of(rows).coefficients[:, 0]
    assert (np.diff(result) >= -1e-12).all()
    assert result[0] < 0.0 < result[-1]


def test_a_wide_table_has_weights_at_every_width() -> None:
    """Nothing underflows: 200 columns and ν = 0.01, where ε is 1e−2171."""
    pieces = Pieces.of_normals(Normals.of([-1.0, 1.0], 0.5, [-2.0, 0.0], [0.0, 2.0]))
    column = BinnedColumn(pieces, np.array([0.5, 0.5]), np.zeros(1), ("", ""))
    law = TabularLaw.of((column,) * 200, 0.01)
    tilts = law.tilts(np.zeros((1, 200)), np.array([0.01]))
    assert law.log_weights(np.zeros((1, 200)), np.array([0.01]))[0] == pytest.approx(
        200 * np.log(0.5)
    )
    assert tilts[0].alpha[0] == 1.0
    assert tilts[0].has_contrast[0] == 1.0
