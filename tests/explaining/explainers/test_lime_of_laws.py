"""LIME over laws: its limit without noise, single runs, and families of widths."""

import lime_fixture as fixture
import linear_sums
import numpy as np
import pandas as pd
import pytest
from lime_functions import Answering, Known
from normal_samples import plain_lime
from refusals import refusals
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import Ridge
from sklearn.tree import DecisionTreeRegressor

import propopt as po
from propopt.base.errors import EstimatedWarning, InexactBoxesWarning, InvalidInput
from propopt.explaining.explainers import ExactLime, Lime
from propopt.functions import Power
from propopt.laws import perturbations
from propopt.lime import GaussianLaw, TabularLaw
from propopt.lime.laws.binned_columns import BinnedColumn
from propopt.structures.products.families import Pieces


def linear(slopes, base=0.0):
    """Base + slopesᵀ x."""
    return Known(linear_sums.linear(slopes, base))


SLOPES = np.array([2.0, -1.0, 0.5])
BUMP = fixture.FUNCTIONS["bump"]
CALLED = Answering(BUMP)


def test_a_product_has_the_coefficients_that_are_known():
    lime = ExactLime(law=fixture.law(0.3), kernel_width=1.0)
    function, rows = Known(fixture.PRODUCT), np.repeat(fixture.ROW, 3, axis=0)
    result, other = (lime.explain(function, rows, rng=seed) for seed in (0, 1))
    np.testing.assert_array_equal(result.attributions, other.attributions)
    np.testing.assert_array_equal(result.attributions[0], result.attributions[2])
    golden = [0.0262976271, -0.0392579345, -0.0291275575, 0.0]
    np.testing.assert_allclose(result.attributions[0], golden[1:], atol=5e-10, rtol=0)
    np.testing.assert_allclose(result.details["intercept"], golden[0], atol=5e-10)
    assert result.attributions[0, 2] == 0.0  # the product has no such column
    assert result.units == "output"
    assert result.evaluations == 0  # formulas count none
    assert result.standard_errors is None
    # what is known besides is that of the law
    details = ExactLime(law=fixture.law(1.0)).explain(function, fixture.ROW).details
    known = {
        "alpha": [[0.451862761878] * 3],
        "mean_weight": [0.737687106475**3],
        "effective_share": [0.832010355857],
    }
    for name, expected in known.items():
        np.testing.assert_allclose(details[name], expected, rtol=0, atol=1e-12)
    surrogate = result.details["intercept"] + result.attributions.sum(axis=1)
    gap = function.value(rows) - surrogate
    np.testing.assert_allclose(result.details["local_gap"], gap, atol=1e-12)


def test_per_unit_a_linear_function_has_its_slopes():
    means = np.array([-1.8472390633, 0.0631881979, 1.7946562177])
    steps = [means[b] - np.delete(means, b).mean() for b in range(3)]
    for width in (0.5, 1e6):
        lime = ExactLime(law=fixture.law(1.0), kernel_width=width, units="gradient")
        result = lime.explain(linear(SLOPES, 0.7), fixture.ROW)
        np.testing.assert_allclose(result.attributions[0], SLOPES, rtol=1e-12)
        np.testing.assert_array_equal(result.details["undefined"], [0.0])
        np.testing.assert_allclose(result.details["steps"][0], steps, atol=1e-9)
        assert result.units == "gradient"


def test_a_bin_at_the_mean_of_the_others_has_no_slope():
    """Bins of one number each, the outermost 4 apart: 2 % are 0.08."""
    for middle, is_seen in ((0.0, 0), (0.079, 0), (0.081, 1)):
        X = np.array([[-2.0], [-1.0], [middle], [1.0], [2.0]]) * [1.0, 1.0]
        lime = ExactLime(n_bins=5, units="gradient")
        result = lime.explain(linear(np.array([3.0, 1.0])), X)
        unseen = [0, 0, 2 * (1 - is_seen), 0, 0]
        np.testing.assert_array_equal(result.details["undefined"], unseen)
        expected = np.array([[3.0, 1.0], [3.0 * is_seen, is_seen]])
        np.testing.assert_allclose(result.attributions[[0, 2]], expected, rtol=1e-12)


def half_known():
    """3 · missing + 2 · a: a quarter of the numbers is missing, a is a category."""
    dose = np.r_[np.full(5, np.nan), np.arange(15.0)]
    kinds = list("abacabacababacbabac" + "a")
    X = pd.DataFrame({"dose": np.tile(dose, 10), "kind": pd.Categorical(10 * kinds)})
    y = 3.0 * X["dose"].isna() + 2.0 * (X["kind"] == "a")
    settings = {"learning_rate": 1.0, "max_iter": 4}
    model = HistGradientBoostingRegressor(categorical_features="from_dtype", **settings)
    return X, po.wrap(model.fit(X, y), data=X)


def test_missing_numbers_and_categories_are_bins():
    """f is additive: β_j is its part in the own bin less the mean over the others."""
    X, function = half_known()
    plain = ExactLime(kernel_width=1.3, data=X).explain(function, X)
    result = plain.to_frame()
    of_kind = X["kind"].value_counts(normalize=True)
    for row, beta in zip(X[:20].itertuples(), result[:20].itertuples(), strict=True):
        is_a = row.kind == "a"
        others = 0.0 if is_a else 2.0 * of_kind["a"] / (1.0 - of_kind[row.kind])
        assert beta.kind == pytest.approx(2.0 * is_a - others, abs=1e-6)
        if np.isnan(row.dose):
            assert beta.dose == pytest.approx(3.0, abs=1e-6)
        else:
            own = (0.2, 0.2, 0.2, 0.15)[np.searchsorted([3.0, 7.0, 11.0], row.dose)]
            assert beta.dose == pytest.approx(-3.0 * 0.25 / (1.0 - own), abs=1e-6)
    # per unit, coefficients of both stay differences
    lime = ExactLime(units="gradient", kernel_width=1.3, data=X)
    lime = lime.explain(function, X)
    kept = np.stack([X["dose"].isna(), np.ones(len(X), bool)], axis=1)
    np.testing.assert_array_equal(lime.attributions[kept], plain.attributions[kept])
    assert (lime.details["steps"][kept] == 1.0).all()
    assert not np.allclose(lime.attributions[~kept], plain.attributions[~kept])


def test_weights_say_how_often_bins_are_drawn():
    """Bins of 6, 1 and 3 rows, for two of the three quartiles are 0."""
    X = np.r_[np.zeros(6), 1.0, 2.0, 3.0, 4.0][:, None]
    step = po.wrap(DecisionTreeRegressor(max_depth=1).fit(X, X[:, 0] > 0))
    for weights, expected in (("frequency", 6 / 7), ("uniform", 1 / 2)):
        result = ExactLime(weights=weights, data=X).explain(step, X[-1:])
        assert result.attributions[0, 0] == pytest.approx(expected)


def test_the_gaussian_law_is_that_of_the_background():
    X = np.random.default_rng(2).normal(size=(50, 2)) * [1.0, 10.0]
    law = GaussianLaw.from_data(X, kernel_width=0.8, n_bins=3)
    named = ExactLime(law="gaussian", kernel_width=0.8, n_bins=3, data=X)
    product = Known(fixture.powers([1.0], [[0, 1]], n_columns=2))
    one, other = (m.explain(product, X[:5]) for m in (named, ExactLime(law=law)))
    np.testing.assert_array_equal(one.attributions, other.attributions)


def test_a_function_that_is_not_what_it_was_read_as_is_estimated():
    wrong = Known(linear(SLOPES).function, off_by=1e-6)
    lime = ExactLime(law=fixture.law(1.0), n_samples=100)
    with (
        pytest.warns(InexactBoxesWarning, match="differs from its values by"),
        pytest.warns(EstimatedWarning, match="differs from its values by"),
    ):
        result = lime.explain(wrong, fixture.ROW)
    assert result.standard_errors is not None


def test_other_functions_are_estimated_with_their_errors():
    """|z| < 5 in 24 coefficients: by chance once in 7e4 seeds; this one is fixed."""
    X = np.random.default_rng(5).normal(size=(40, 3))
    called = po.wrap(lambda Z: Z @ SLOPES + 0.3 * np.tanh(Z[:, 0]))
    results = []
    for units in ("output", "gradient"):
        lime = ExactLime(n_samples=2000, units=units, data=X)
        with pytest.warns(EstimatedWarning, match="from 2,000 draws around each row, "):
            result = lime.explain(called, X[:8], rng=1)
        with pytest.warns(EstimatedWarning):
            same = lime.explain(called, X[:3], rng=1)
        np.testing.assert_array_equal(result.attributions[:3], same.attributions)
        exact = lime.explain(linear(SLOPES), X[:8])
        z = (result.attributions - exact.attributions) / result.standard_errors
        assert 0.5 < np.abs(z[:, 1:]).max() < 5.0
        assert result.evaluations == 8 * 2000 + 8
        results.append(result)
    plain, slopes = results
    steps = slopes.details["steps"]
    for name, scale in (("standard_errors", np.abs(steps)), ("attributions", steps)):
        one, other = getattr(slopes, name) * scale, getattr(plain, name)
        np.testing.assert_allclose(one, other, rtol=1e-12)


@pytest.mark.parametrize("first_row", [True, False])
@pytest.mark.parametrize("ridge", [0.0, 2.5])
def test_a_run_is_a_weighted_regression_on_bits(first_row, ridge):
    law, settings = fixture.law(0.7), {"ridge": ridge, "first_row": first_row}
    lime = Lime(law=law, n_samples=300, **settings)
    result = lime.explain(CALLED, fixture.ROW, rng=3)
    rng = np.random.default_rng(3)
    draws = law.draw(fixture.ROW, 300, rng, first_row=first_row)
    samples, bits, weights = draws.samples[0], draws.bits[0], draws.weights[0]
    assert (bits[0] == 1.0).all() == first_row
    values = BUMP.value(samples)
    model = Ridge(alpha=ridge, solver="cholesky").fit(bits, values, weights)
    np.testing.assert_allclose(result.attributions[0], model.coef_, rtol=1e-10)
    details = {name: float(array[0]) for name, array in result.details.items()}
    assert details["intercept"] == pytest.approx(model.intercept_, rel=1e-10)
    assert details["r2"] == pytest.approx(model.score(bits, values, weights), rel=1e-10)
    kish = weights.sum() ** 2 / (weights**2).sum()
    assert details["effective_samples"] == pytest.approx(kish, rel=1e-12)
    assert result.evaluations == 0  # formulas count none
    assert result.units == "output"
    expected = {"n_samples": 300, "fit_intercept": True, "law": repr(law)}
    assert result.parameters == expected | settings
    rng = np.random.default_rng(3)
    by_hand = plain_lime(law, BUMP.value, fixture.ROW, 300, rng, **settings)
    run = [details["intercept"], *result.attributions[0]]
    np.testing.assert_allclose(run, by_hand, rtol=1e-9)
    wide = Lime(law=fixture.law(5.0), kernel_width=0.7, n_samples=300, **settings)
    narrowed = wide.explain(CALLED, fixture.ROW, rng=3)
    np.testing.assert_array_equal(narrowed.attributions, result.attributions)


def test_many_rows_have_their_own_draws_whatever_is_explained_with_them(monkeypatch):
    lime = Lime(law=fixture.law(0.7), n_samples=50)
    points = np.concatenate([fixture.ROW, fixture.ROW[:, ::-1], fixture.ROW])
    joint = lime.explain(CALLED, points)
    monkeypatch.setattr(perturbations.PERTURBED_POINTS.__class__, "rows", lambda *_: 1)
    apart = lime.explain(CALLED, points)
    alone = lime.explain(CALLED, points[:2])
    np.testing.assert_allclose(apart.attributions, joint.attributions, rtol=1e-12)
    np.testing.assert_allclose(alone.attributions, joint.attributions[:2], rtol=1e-12)
    assert (joint.attributions[0] != joint.attributions[2]).all()


@pytest.mark.parametrize("values", [[4.0], [1.0, 4.0]])
def test_a_bit_that_no_sample_changes_has_no_coefficient(values):
    """The column has one bin; or its own is never drawn, and only the row has it."""
    shares = np.eye(len(values))[0]
    pieces, names = Pieces.of_values(np.array(values)), tuple(map(str, values))
    column = BinnedColumn(pieces, shares, np.full(len(values) - 1, 2.5), names)
    law, row = TabularLaw.of((fixture.column(), column), 1.0), [[0.0, 4.0]]
    for first_row in (False, True):
        lime = Lime(law=law, n_samples=100, first_row=first_row)
        result = lime.explain(Power(1), np.array(row))
        message = first_row and len(values) > 1
        assert (result.attributions[0, 1] != 0.0) == message
        assert (result.standard_errors[0, 1] != 0.0) <= message


ONE = fixture.law(1.0)


def run(points, **settings):
    return Lime(**settings).explain(CALLED, points, rng=3)


@pytest.mark.parametrize(("line", "message"), refusals(__file__, "laws"))
def test_what_cannot_be_is_refused(line, message):
    with pytest.raises(InvalidInput, match=message):
        eval(line)
