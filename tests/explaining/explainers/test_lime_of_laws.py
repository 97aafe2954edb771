"""LIME over laws: bits are regressed on, with the law's weights."""

from __future__ import annotations

import lime_fixture as fixture
import numpy as np
import pytest
from lime_functions import Answering
from normal_samples import plain_lime
from sklearn.linear_model import Ridge

import propopt as po
from propopt.base.errors import InvalidInput
from propopt.explaining.explainers import Lime
from propopt.functions import Power
from propopt.laws import perturbations
from propopt.lime import GaussianLaw, GlimeLaw, TabularLaw
from propopt.lime.expectations import ExactLimits
from propopt.lime.laws.binned_columns import BinnedColumn
from propopt.lime.single_runs import expected
from propopt.structures.products.families import Pieces


BUMP = fixture.FUNCTIONS["bump"]


def with_intercept(result):
    intercept = result.details["intercept"][:, None]
    return np.concatenate([intercept, result.attributions], axis=1)


@pytest.mark.parametrize("first_row", [True, False])
@pytest.mark.parametrize("ridge", [0.0, 2.5])
def test_a_run_is_a_weighted_regression_on_bits(first_row, ridge):
    law = fixture.law(0.7)
    lime = Lime(law=law, n_samples=300, ridge=ridge, first_row=first_row)
    result = lime.explain(Answering(BUMP), fixture.ROW, rng=3)
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
    np.testing.assert_allclose(
        with_intercept(result)[0],
        plain_lime(
            law,
            BUMP.value,
            fixture.ROW,
            300,
            np.random.default_rng(3),
            ridge=ridge,
            first_row=first_row,
        ),
        rtol=1e-9,
    )


def test_runs_tend_to_the_limit_and_say_how_far_they_are():
    """|z| < 5 for 9 coefficients of 3 laws: false alarm below 6e-6."""
    for law in (fixture.law(0.7), GlimeLaw(fixture.law(0.7))):
        lime = Lime(law=law, n_samples=40_000)
        result = lime.explain(Answering(BUMP), fixture.ROW)
        exact = ExactLimits(BUMP, law).of(fixture.ROW)
        z = (result.attributions - exact.coefficients) / result.standard_errors
        assert np.abs(z).max() < 5
        assert np.abs(z).max() > 0.05
    gaussian = GaussianLaw.of(np.zeros(3), 1.0, kernel_width=1.5)
    result = Lime(law=gaussian, n_samples=40_000).explain(Answering(BUMP), fixture.ROW)
    exact = ExactLimits(BUMP, gaussian).of(fixture.ROW)
    z = (result.attributions - exact.coefficients) / result.standard_errors
    assert np.abs(z).max() < 5


def test_many_rows_have_their_own_draws_whatever_is_explained_with_them(monkeypatch):
    lime = Lime(law=fixture.law(0.7), n_samples=50)
    points = np.concatenate([fixture.ROW, fixture.ROW[:, ::-1], fixture.ROW])
    joint = lime.explain(Answering(BUMP), points)
    monkeypatch.setattr(perturbations.PERTURBED_POINTS.__class__, "rows", lambda *_: 1)
    apart = lime.explain(Answering(BUMP), points)
    alone = lime.explain(Answering(BUMP), points[:2])
    np.testing.assert_allclose(apart.attributions, joint.attributions, rtol=1e-12)
    np.testing.assert_allclose(alone.attributions, joint.attributions[:2], rtol=1e-12)
    assert (joint.attributions[0] != joint.attributions[2]).all()


def test_a_kernel_width_replaces_that_of_the_law():
    narrow = Lime(law=fixture.law(5.0), kernel_width=0.7, n_samples=100)
    result = narrow.explain(Answering(BUMP), fixture.ROW)
    own = Lime(law=fixture.law(0.7), n_samples=100)
    expected = own.explain(Answering(BUMP), fixture.ROW)
    np.testing.assert_array_equal(result.attributions, expected.attributions)


def test_attributions_of_bits_are_differences_of_outputs():
    lime = Lime(law=fixture.law(1.0), n_samples=100, ridge=1.0, first_row=True)
    result = lime.explain(Answering(BUMP), fixture.ROW)
    assert result.units == "output"
    assert Lime(scale=1.0).units == "gradient"
    assert result.parameters == {
        "n_samples": 100,
        "ridge": 1.0,
        "fit_intercept": True,
        "law": repr(fixture.law(1.0)),
        "first_row": True,
    }


def test_a_column_of_one_bin_has_no_coefficient():
    one = BinnedColumn(
        Pieces.of_values(np.array([4.0])), np.ones(1), np.array([]), ("4",)
    )
    law = TabularLaw.of((fixture.column(), one), 1.0)
    for first_row in (False, True):
        lime = Lime(law=law, n_samples=100, first_row=first_row)
        result = lime.explain(Power(1), np.array([[0.0, 4.0]]))
        assert result.attributions[0, 1] == 0.0
        assert result.standard_errors[0, 1] == 0.0


def test_a_bit_that_only_the_row_has_is_told_by_the_row():
    never = BinnedColumn(
        Pieces.of_values(np.array([1.0, 2.0])),
        np.array([0.0, 1.0]),
        np.array([1.5]),
        ("1", "2"),
    )
    law, row = TabularLaw.of((fixture.column(), never), 1.0), np.array([[0.0, 1.0]])
    assert Lime(law=law).explain(Power(1), row).attributions[0, 1] == 0.0
    result = Lime(law=law, first_row=True, n_samples=4000).explain(Power(1), row)
    # all of the row's gap to the others' fit: with bit 0 it is 0 + 2 + noise
    limit = ExactLimits(
        fixture.SumOfProducts.additive(
            0.0, np.ones(2), fixture.Powers.first(np.arange(2)), 2
        ),
        law,
    ).of(row)
    truth = expected(limit, np.array([1.0]), 4000, ridge=0.0).coefficients
    np.testing.assert_allclose(result.attributions, truth, atol=0.15)


def test_missing_values_and_categories_have_bits():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2))
    X[::5, 0] = np.nan
    law = TabularLaw.from_data(X)
    f = po.wrap(lambda x: np.where(np.isnan(x[:, 0]), 3.0, 0.0) + x[:, 1])
    row = np.array([[np.nan, 0.5]])
    result = Lime(law=law, n_samples=4000).explain(f, row)
    assert result.attributions[0, 0] == pytest.approx(3.0, abs=0.1)


def test_what_cannot_be_is_refused():
    law = fixture.law(1.0)
    for settings, label in [
        ({}, "either scale or law"),
        ({"scale": 1.0, "law": law}, "either scale or law"),
        ({"law": "tabular"}, "law: expected a law of propopt.lime"),
        ({"law": law, "relative": True}, "only with a scale"),
        ({"law": law, "distribution": "ball"}, "only with a scale"),
        ({"law": law, "n_samples": 0}, "n_samples"),
        ({"law": law, "n_samples": 1, "first_row": True}, "n_samples: expected at"),
        ({"scale": 1.0, "first_row": True}, "first_row: only with a law"),
    ]:
        with pytest.raises(InvalidInput, match=label):
            Lime(**settings)
    with pytest.raises(InvalidInput, match="law: it has 3 columns, and X has 2"):
        Lime(law=law).explain(Power(1), [[0.0, 1.0]])
    few = Lime(law=fixture.law(0.01), n_samples=4, ridge=1.0)
    with pytest.raises(InvalidInput, match="all weights of a row vanish"):
        few.explain(Answering(BUMP), fixture.ROW)
    with pytest.raises(InvalidInput, match="do not determine the fit"):
        Lime(law=law, n_samples=4).explain(Answering(BUMP), fixture.ROW, rng=3)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n_samples", "least"), [(200, 0.88), (1000, 0.92), (5000, 0.92)]
)
def test_intervals_of_sandwich_errors_cover_the_limit(n_samples, least):
    """95 % intervals over 300 runs: 5 binomial errors are 0.06, and few samples less.

    Covering is per coefficient; the mean over three is known better than each.
    """
    law = fixture.law(0.75 * np.sqrt(3.0))
    truth = ExactLimits(BUMP, law).of(fixture.ROW).coefficients
    lime = Lime(law=law, n_samples=n_samples)
    runs = lime.explain(Answering(BUMP), np.repeat(fixture.ROW, 300, axis=0))
    inside = np.abs(runs.attributions - truth) < 1.96 * runs.standard_errors
    assert inside.mean(axis=0).min() > least
    assert inside.mean() < 0.985
