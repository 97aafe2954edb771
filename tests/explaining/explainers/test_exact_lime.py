"""LIME without noise: closed forms, brute force, the package, and what is refused."""

from __future__ import annotations

import itertools
import json

import numpy as np
import pandas as pd
import pytest
from product_functions import IN_ITS_CELL, OfProducts, linear, monomial, three_bins
from scipy.stats import truncnorm
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.tree import DecisionTreeRegressor

import propopt as po
from propopt.base.errors import EstimatedWarning, InexactBoxesWarning, InvalidInput
from propopt.explaining.explainers import ExactLime, LimePackage
from propopt.functions.formulas import Additive


SLOPES = np.array([2.0, -1.0, 0.5])


# ---- hand-made laws, of which the numbers are known to ten digits


@pytest.mark.parametrize(
    ("kernel_width", "golden"),
    [
        (1.0, [0.0262976271, -0.0392579345, -0.0291275575, 0.0]),
        (0.75 * np.sqrt(3), [0.0157351587, -0.0268887188, -0.0167583417, 0.0]),
        (1e6, [0.0031784087, -0.009814056, 0.000316321, 0.0]),
    ],
)
def test_a_product_has_the_coefficients_that_are_known(kernel_width, golden):
    lime = ExactLime(law=three_bins(0.3), kernel_width=kernel_width)
    result = lime.explain(monomial([0, 1], 3), IN_ITS_CELL)
    np.testing.assert_allclose(result.attributions[0], golden[1:], atol=5e-10, rtol=0)
    np.testing.assert_allclose(result.details["intercept"], golden[0], atol=5e-10)
    assert result.attributions[0, 2] == 0.0  # the product has no such column
    assert result.units == "output"


def test_what_is_known_besides_is_that_of_the_law():
    result = ExactLime(law=three_bins(1.0)).explain(linear(SLOPES), IN_ITS_CELL)
    details = result.details
    np.testing.assert_allclose(details["alpha"], 0.451862761878, atol=1e-12)
    np.testing.assert_allclose(details["mean_weight"], 0.737687106475**3, atol=1e-12)
    np.testing.assert_allclose(
        details["effective_share"], 0.832010355857, atol=1e-12, rtol=0
    )
    surrogate = details["intercept"] + result.attributions.sum(axis=1)
    f = IN_ITS_CELL @ SLOPES
    np.testing.assert_allclose(details["local_gap"], f - surrogate, atol=1e-12)
    assert result.evaluations == 0  # formulas count none
    assert result.standard_errors is None


def test_no_seed_changes_the_last_bit():
    law, rows = three_bins(1.0), np.repeat(IN_ITS_CELL, 3, axis=0)
    one, other = (
        ExactLime(law=law).explain(monomial([0, 1, 2], 3), rows, rng=seed).attributions
        for seed in (0, 1)
    )
    np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(one[0], one[2])


# ---- per unit


@pytest.mark.parametrize("kernel_width", [0.5, 1.0, 1e6])
def test_per_unit_a_linear_function_has_its_slopes(kernel_width):
    lime = ExactLime(law=three_bins(1.0), kernel_width=kernel_width, units="gradient")
    result = lime.explain(linear(SLOPES, 0.7), IN_ITS_CELL)
    np.testing.assert_allclose(result.attributions[0], SLOPES, rtol=1e-12)
    np.testing.assert_array_equal(result.details["undefined"], [0.0])
    means = np.array([-1.8472390633, 0.0631881979, 1.7946562177])
    steps = [means[b] - np.delete(means, b).mean() for b in range(3)]
    np.testing.assert_allclose(result.details["steps"][0], steps, atol=1e-9)
    assert result.units == "gradient"


@pytest.mark.parametrize(("middle", "is_seen"), [(0.0, 0), (0.079, 0), (0.081, 1)])
def test_a_bin_at_the_mean_of_the_others_has_no_slope(middle, is_seen):
    """Bins of one number each, the outermost 4 apart: 2 % are 0.08."""
    X = np.array([[-2.0], [-1.0], [middle], [1.0], [2.0]]) * [1.0, 1.0]
    lime = ExactLime(n_bins=5, units="gradient")
    result = lime.explain(linear(np.array([3.0, 1.0])), X)
    unseen = 2 * (1 - is_seen)
    np.testing.assert_array_equal(result.details["undefined"], [0, 0, unseen, 0, 0])
    expected = is_seen * np.array([3.0, 1.0])
    np.testing.assert_allclose(result.attributions[2], expected, rtol=1e-12)
    np.testing.assert_allclose(result.attributions[0], [3.0, 1.0], rtol=1e-12)


def test_coefficients_of_categories_and_missing_numbers_stay_differences():
    X, function = half_known()
    lime = ExactLime(units="gradient", background=X).explain(function, X)
    plain = ExactLime(background=X).explain(function, X)
    missing = X["dose"].isna().to_numpy()
    kept = np.stack([missing, np.ones(len(X), bool)], axis=1)
    np.testing.assert_array_equal(lime.attributions[kept], plain.attributions[kept])
    assert (lime.details["steps"][kept] == 1.0).all()
    assert not np.allclose(lime.attributions[~kept], plain.attributions[~kept])


# ---- bins of a table


def half_known():
    """3 · missing + 2 · a: a quarter of the numbers is missing, a is a category."""
    dose = np.r_[np.full(5, np.nan), np.arange(15.0)]
    kinds = list("abacabacababacbabac" + "a")
    X = pd.DataFrame({"dose": np.tile(dose, 10), "kind": pd.Categorical(10 * kinds)})
    y = 3.0 * X["dose"].isna() + 2.0 * (X["kind"] == "a")
    model = HistGradientBoostingRegressor(
        categorical_features="from_dtype", learning_rate=1.0, max_iter=4
    )
    return X, po.wrap(model.fit(X, y), data=X)


def test_missing_numbers_and_categories_are_bins():
    """f is additive: β_j is its part in the own bin less the mean over the others."""
    X, function = half_known()
    lime = ExactLime(kernel_width=1.3, background=X)
    result = lime.explain(function, X[:20]).to_frame()
    of_kind = X["kind"].value_counts(normalize=True)
    for row, beta in zip(X[:20].itertuples(), result.itertuples(), strict=True):
        is_a = row.kind == "a"
        others = 0.0 if is_a else 2.0 * of_kind["a"] / (1.0 - of_kind[row.kind])
        assert beta.kind == pytest.approx(2.0 * is_a - others, abs=1e-6)
        if np.isnan(row.dose):
            assert beta.dose == pytest.approx(3.0, abs=1e-6)
        else:
            own = (0.2, 0.2, 0.2, 0.15)[np.searchsorted([3.0, 7.0, 11.0], row.dose)]
            assert beta.dose == pytest.approx(-3.0 * 0.25 / (1.0 - own), abs=1e-6)


def brute_force(model, X, row, n_bins, kernel_width):
    """β by all cells: their shares, their means of f, and the normal equations."""
    columns = []
    for x, own in zip(X.T, row, strict=True):
        edges = np.percentile(x, np.linspace(0, 100, n_bins + 1))
        place = np.searchsorted(edges[1:-1], x)
        laws = []
        for b in range(n_bins):
            inside = x[place == b]
            mean, sd = inside.mean(), inside.std()
            low, high = (edges[[b, b + 1]] - mean) / sd
            laws.append((len(inside) / len(x), truncnorm(low, high, mean, sd)))
        columns.append((laws, int(np.searchsorted(edges[1:-1], own))))
    A, g = np.zeros((len(row) + 1, len(row) + 1)), np.zeros(len(row) + 1)
    for cell in itertools.product(range(n_bins), repeat=len(row)):
        bits = np.array([b == own for b, (_, own) in zip(cell, columns, strict=True)])
        share = np.prod(
            [laws[b][0] for b, (laws, _) in zip(cell, columns, strict=True)]
        )
        weight = share * np.exp(-(~bits).sum() / (2 * kernel_width**2))
        laws = [laws[b][1] for b, (laws, _) in zip(cell, columns, strict=True)]
        z = np.append(1.0, bits)
        A += weight * np.outer(z, z)
        g += (
            weight
            * z
            * mean_of_tree(model.tree_, 0, laws, [(-np.inf, np.inf)] * len(row))
        )
    return np.linalg.solve(A, g)


def mean_of_tree(tree, node, laws, box):
    if tree.children_left[node] < 0:
        sides = zip(laws, box, strict=True)
        share = np.prod([law.cdf(high) - law.cdf(low) for law, (low, high) in sides])
        return share * tree.value[node].item()
    j, at = tree.feature[node], tree.threshold[node]
    left, right = list(box), list(box)
    left[j], right[j] = (box[j][0], min(at, box[j][1])), (max(at, box[j][0]), box[j][1])
    below, above = tree.children_left[node], tree.children_right[node]
    return mean_of_tree(tree, below, laws, left) + mean_of_tree(
        tree, above, laws, right
    )


@pytest.mark.parametrize("kernel_width", [0.6, 2.0])
def test_a_tree_is_explained_as_by_all_cells(kernel_width):
    """To 1e-5: trees compare in float32, which moves their thresholds by 6e-8."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(60, 3)) ** 3
    tree = DecisionTreeRegressor(max_depth=4, random_state=0).fit(X, X.prod(axis=1))
    lime = ExactLime(kernel_width=kernel_width, n_bins=3, background=X)
    result = lime.explain(po.wrap(tree), X[:4])
    for n in range(4):
        beta = brute_force(tree, X, X[n], 3, kernel_width)
        own = np.append(result.details["intercept"][n], result.attributions[n])
        np.testing.assert_allclose(own, beta, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("weights", "expected"), [("frequency", 6 / 7), ("uniform", 1 / 2)]
)
def test_weights_say_how_often_bins_are_drawn(weights, expected):
    """Bins of 6, 1 and 3 rows, for two of the three quartiles are 0."""
    X = np.r_[np.zeros(6), 1.0, 2.0, 3.0, 4.0][:, None]
    step = DecisionTreeRegressor(max_depth=1).fit(X, X[:, 0] > 0)
    result = ExactLime(weights=weights, background=X).explain(po.wrap(step), X[-1:])
    assert result.attributions[0, 0] == pytest.approx(expected)


def test_the_package_scatters_around_it():
    """60 runs of 5,000 samples each: |z| < 5 in 6 coefficients, by chance 1 in 2e5.

    Ridge and first row, which only the package has, move a coefficient by less than 1 %
    of the scatter of the mean here.
    """
    pytest.importorskip("lime")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    model = RandomForestRegressor(10, max_depth=4, random_state=0)
    function = po.wrap(model.fit(X, X[:, 0] * X[:, 1] + X[:, 2]))
    for row in X[:2]:
        runs = LimePackage(background=X).explain(function, np.tile(row, (60, 1)))
        exact = ExactLime(background=X).explain(function, row[None]).attributions[0]
        mean, sd = runs.attributions.mean(axis=0), runs.attributions.std(axis=0, ddof=1)
        assert np.abs((mean - exact) / sd * np.sqrt(60)).max() < 5


# ---- settings


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"kernel_width": 0.0}, r"kernel_width: expected a number > 0"),
        ({"n_bins": 1}, r"n_bins: expected at least 2"),
        ({"weights": "equal"}, r"weights: expected 'frequency' or 'uniform'"),
        ({"units": "slopes"}, r"units: expected 'gradient' or 'output'"),
        ({"law": "normal"}, r"law: expected 'tabular', 'gaussian' or a law of po"),
        ({"law": "gaussian", "weights": "uniform"}, r"weights: the gaussian law has"),
        ({"n_samples": 0}, r"n_samples: expected an integer >= 1"),
        ({"law": three_bins(1.0), "n_bins": 5}, r"law: a law has bins of its own"),
        ({"law": three_bins(1.0), "weights": "uniform"}, r"leave n_bins, weights"),
        ({"law": three_bins(1.0), "background": [[1.0]]}, r"background out"),
    ],
)
def test_a_bad_setting_is_refused_at_birth(settings, complaint):
    with pytest.raises(InvalidInput, match=complaint):
        ExactLime(**settings)


def test_settings_are_plain_values():
    of_law = ExactLime(law=three_bins(0.5), kernel_width=2.0).parameters
    assert of_law["law"] == "TabularLaw"
    assert of_law["kernel_width"] == 2.0
    for one in (of_law, ExactLime(background=[[1.0]]).parameters):
        json.dumps(one)
    assert ExactLime().parameters["kernel_width"] is None


def test_a_background_of_other_columns_is_refused():
    with pytest.raises(InvalidInput, match="background: expected 3 features"):
        ExactLime(background=np.zeros((4, 2))).explain(linear(SLOPES), IN_ITS_CELL)


def test_a_function_that_is_not_what_it_was_read_as_is_estimated():
    wrong = OfProducts(linear(SLOPES).sum_of_products, off_by=1e-6)
    lime = ExactLime(law=three_bins(1.0), n_samples=100)
    with (
        pytest.warns(InexactBoxesWarning, match="differs from its answer by"),
        pytest.warns(EstimatedWarning, match="differs from its answer by"),
    ):
        result = lime.explain(wrong, IN_ITS_CELL)
    assert result.standard_errors is not None


# ---- functions that can only be called


@pytest.mark.parametrize("units", ["output", "gradient"])
def test_other_functions_are_estimated_with_their_errors(units):
    """|z| < 5 in 24 coefficients: by chance once in 7e4 seeds; this one is fixed."""
    X = np.random.default_rng(5).normal(size=(40, 3))
    called = po.wrap(lambda Z: Z @ SLOPES + 0.3 * np.tanh(Z[:, 0]))
    known = linear(SLOPES)
    lime = ExactLime(n_samples=2000, units=units, background=X)
    with pytest.warns(EstimatedWarning, match="from 2,000 draws around each row, as"):
        result = lime.explain(called, X[:8], rng=1)
    with pytest.warns(EstimatedWarning):
        same = lime.explain(called, X[:3], rng=1)
    np.testing.assert_array_equal(result.attributions[:3], same.attributions)
    exact = lime.explain(known, X[:8])
    z = (result.attributions - exact.attributions)[:, 1:] / result.standard_errors[
        :, 1:
    ]
    assert np.abs(z).max() < 5.0
    assert np.abs(z).max() > 0.5
    assert result.evaluations == 8 * 2000 + 8
    assert exact.standard_errors is None


def test_errors_per_unit_are_those_of_the_coefficients_over_the_steps():
    X = np.random.default_rng(6).normal(size=(30, 2))
    called = po.wrap(lambda Z: np.sin(Z).sum(axis=1))
    with pytest.warns(EstimatedWarning):
        plain, slopes = (
            ExactLime(n_samples=300, units=units, background=X).explain(called, X[:5])
            for units in ("output", "gradient")
        )
    steps = slopes.details["steps"]
    np.testing.assert_allclose(
        slopes.standard_errors * np.abs(steps), plain.standard_errors, rtol=1e-12
    )
    np.testing.assert_allclose(
        slopes.attributions * steps, plain.attributions, rtol=1e-12
    )


def test_the_gaussian_law_is_that_of_the_background():
    X = np.random.default_rng(2).normal(size=(50, 2)) * [1.0, 10.0]
    law = po.lime.GaussianLaw.from_data(X, kernel_width=0.8, n_bins=3)
    named = ExactLime(law="gaussian", kernel_width=0.8, n_bins=3, background=X)
    product = monomial([0, 1], 2)
    one, other = (m.explain(product, X[:5]) for m in (named, ExactLime(law=law)))
    np.testing.assert_array_equal(one.attributions, other.attributions)
    slopes = ExactLime(law="gaussian", background=X, units="gradient")
    result = slopes.explain(linear(SLOPES[:2]), X[:5]).attributions
    np.testing.assert_allclose(result, np.tile(SLOPES[:2], (5, 1)), rtol=1e-9)


def test_what_quadrature_does_not_find_is_estimated_with_the_reason():
    X = np.random.default_rng(0).normal(size=(100, 2))
    rules = [lambda x: np.sin(1e6 * x), np.abs]
    f = Additive(rules, knots={1: [0.0]})
    lime = po.explainers.ExactLime(background=X, n_samples=200)
    with pytest.warns(EstimatedWarning, match="quadrature"):
        result = lime.explain(f, X[:2])
    assert result.standard_errors is not None
