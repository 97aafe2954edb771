"""Normal samples: how a table makes the law, and what is drawn of it."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from linear_sums import linear

import propopt as po
from papers.lime import gaussian_theory
from propopt.base.errors import InvalidInput
from propopt.lime import GaussianLaw
from propopt.lime.expectations import ExactLimits
from propopt.lime.laws.gaussian_law import NormalColumn


def table(rng: np.random.Generator) -> pd.DataFrame:
    height = rng.normal(170.0, 10.0, 400)
    weight = rng.normal(70.0, 15.0, 400)
    weight[::5] = np.nan
    colour = rng.choice(["red", "blue", "green"], 400, p=[0.5, 0.3, 0.2])
    return pd.DataFrame(
        {"height": height, "weight": weight, "colour": colour, "one": 1.0}
    )


def test_means_and_scales_are_those_of_the_table(rng):
    X = rng.normal(size=(300, 2)) * [1.0, 50.0] + 3.0
    law = GaussianLaw.from_data(X)
    for column, values in zip(law.columns, X.T, strict=True):
        assert column.mean == pytest.approx(values.mean(), rel=1e-14)
        assert column.scale == column.unit == pytest.approx(values.std(), rel=1e-14)
    given = GaussianLaw.from_data(X, kernel_width=0.3)
    assert given.kernel_width == 0.3


def test_the_default_width_is_that_of_the_package_in_units_of_the_scale(rng):
    X = rng.normal(size=(300, 4)) * [1.0, 50.0, 0.01, 3.0]
    assert GaussianLaw.from_data(X).kernel_width == pytest.approx(0.75 * 2.0)
    raw = GaussianLaw.of(X.mean(axis=0), X.std(axis=0))
    expected = 0.75 * np.sqrt((X.std(axis=0) ** 2).sum())
    assert raw.kernel_width == pytest.approx(expected)
    assert GaussianLaw.of(np.zeros(9), 2.0).kernel_width == pytest.approx(0.75 * 6.0)


def test_units_of_columns_do_not_matter_where_distances_are_standardised(rng):
    X = rng.normal(size=(300, 3))
    factors = np.array([1.0, 1e4, 1e-3])
    one = gaussian_theory.gains(GaussianLaw.from_data(X), X[:5]).gain
    other = gaussian_theory.gains(
        GaussianLaw.from_data(X * factors), X[:5] * factors
    ).gain
    np.testing.assert_allclose(other, one * factors, rtol=1e-9)


def test_bins_end_where_the_normal_law_does_or_where_it_is_said(rng):
    X = rng.exponential(size=(400, 1))
    normal = GaussianLaw.from_data(X).columns[0]
    z = np.array([-0.6744897501960817, 0.0, 0.6744897501960817])
    np.testing.assert_allclose(normal.edges, X.mean() + X.std() * z, rtol=1e-13)
    given = GaussianLaw.from_data(X, n_bins=[[0.5, 2.0]]).columns[0]
    np.testing.assert_array_equal(given.edges, [0.5, 2.0])
    assert given.bins == ("< 0.5", "≥ 0.5 and < 2", "≥ 2")
    np.testing.assert_array_equal(given.place(np.array([0.5, 1.9, 2.0])), [1, 1, 2])


def test_categories_constants_and_missing_numbers_of_a_table(rng):
    X = table(rng)
    law = GaussianLaw.from_data(X, po.TableSchema.of(X))
    kinds = [isinstance(column, NormalColumn) for column in law.columns]
    assert kinds == [True, True, False, False]
    assert law.columns[1].missing == pytest.approx(0.2)
    assert law.columns[1].bins[-1] == "missing"
    shares = X["colour"].value_counts(normalize=True)
    codes = law.columns[2].bins
    assert codes[:3] == ("= blue", "= green", "= red")
    np.testing.assert_allclose(
        law.columns[2].shares[:3], shares[["blue", "green", "red"]]
    )
    assert law.labels.features == ("height", "weight", "colour", "one")


def test_draws_are_of_the_law_and_have_its_bits_and_weights(rng):
    """Each of 12 frequencies has |z| > 5 with probability 6e-7."""
    X = table(rng)
    schema = po.TableSchema.of(X)
    law = GaussianLaw.from_data(X, schema, kernel_width=0.8)
    points, _ = schema.encode(X.iloc[[1, 5]])
    assert np.isnan(points[1, 1])
    n = 40_000
    draws = law.draw(points, n, rng)
    for row, x in enumerate(points):
        samples, bits = draws.samples[row], draws.bits[row]
        distance = np.zeros(n)
        for j, column in enumerate(law.columns):
            same = column.place(samples[:, j]) == column.place(x[j : j + 1])
            np.testing.assert_array_equal(bits[:, j], same)
            assert abs(z_score(same, column.tilt(x[j : j + 1], INFINITE))) < 5.0
            if j == 2:
                distance += samples[:, j] != x[j]
            elif j < 2:
                gap = ((samples[:, j] - x[j]) / column.scale) ** 2
                one_only = np.isnan(samples[:, j]) != np.isnan(x[j])
                distance += np.where(np.isnan(gap), one_only, gap)
        np.testing.assert_allclose(
            draws.weights[row], np.exp(-distance / (2 * 0.8**2)), rtol=1e-10
        )
    heights = draws.samples[0, :, 0]
    z = (heights.mean() - law.columns[0].mean) / law.columns[0].scale * np.sqrt(n)
    assert abs(z) < 5.0


INFINITE = np.array([np.inf])


def z_score(bits, tilt):
    p = tilt.alpha[0]
    spread = np.sqrt(p * (1 - p) / len(bits))
    return 0.0 if spread == 0.0 else (bits.mean() - p) / spread


def test_alpha_and_its_complement_have_digits_of_their_own():
    column = GaussianLaw.of([0.0], 1.0, 1.0).columns[0]
    x = np.array([0.3, 0.3, 5.0])
    tilt = column.tilt(x, np.array([0.02, 0.001, 1e9]))
    np.testing.assert_allclose(tilt.alpha + tilt.complement, np.ones(3), rtol=1e-15)
    assert 0.0 < tilt.complement[0] < 1e-40
    np.testing.assert_allclose(tilt.outside.sum(axis=0), np.ones(3), rtol=1e-12)
    assert tilt.has_contrast.all()
    assert np.isfinite(tilt.log_weight).all()


def test_an_infinite_width_is_the_law_itself():
    law = GaussianLaw.of([0.4], 2.0, 1.0, n_bins=5)
    tilt = law.columns[0].tilt(np.array([-3.0, 0.5]), np.full(2, np.inf))
    np.testing.assert_allclose(tilt.alpha, 0.2, rtol=1e-14)
    np.testing.assert_allclose(tilt.log_weight, 0.0, atol=1e-15)
    np.testing.assert_array_equal(tilt.pieces.mean, np.full((3, 2), 0.4))
    np.testing.assert_array_equal(tilt.pieces.sd, np.full((3, 2), 2.0))


def test_a_missing_value_is_a_bin_where_samples_may_be_missing(rng):
    X = table(rng)[["height", "weight"]].to_numpy()
    law = GaussianLaw.from_data(X, kernel_width=1.0)
    point = np.array([[170.0, np.nan]])
    limits = ExactLimits(linear([1.0, 0.0]), law).of(point)
    eps = np.exp(-0.5)
    np.testing.assert_allclose(limits.alpha[0, 1], 0.2 / (0.2 + 0.8 * eps), rtol=1e-13)
    complete = GaussianLaw.from_data([[170.0, 70.0], [180.0, 60.0]])
    with pytest.raises(InvalidInput, match="no sample of its column is"):
        ExactLimits(linear([1.0, 0.0]), complete).of(point)


def test_constant_columns_do_not_count(rng):
    X = np.column_stack([rng.normal(size=50), np.full(50, 7.0)])
    one = ExactLimits(linear([1.0]), GaussianLaw.from_data(X[:, :1], kernel_width=1.0))
    both = ExactLimits(linear([1.0, 5.0]), GaussianLaw.from_data(X, kernel_width=1.0))
    a, b = one.of(X[:3, :1]), both.of(X[:3])
    np.testing.assert_allclose(a.coefficients[:, 0], b.coefficients[:, 0], rtol=1e-14)
    np.testing.assert_array_equal(b.coefficients[:, 1], np.zeros(3))
    np.testing.assert_allclose(a.log_weight, b.log_weight, rtol=1e-14)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_bins": 1}, "n_bins"),
        ({"kernel_width": 0.0}, "kernel_width"),
    ],
)
def test_settings_out_of_range_are_refused(settings, message):
    with pytest.raises(InvalidInput, match=message):
        GaussianLaw.from_data([[0.0], [1.0]], **settings)


@pytest.mark.parametrize(
    ("mean", "scale", "message"),
    [
        ([0.0, 0.0], [1.0], "expected a number or 2 of them"),
        ([0.0, 0.0], [1.0, 0.0], "scale: expected a number > 0"),
        ([0.0, 0.0], np.inf, "scale: expected a finite number"),
        ([[0.0]], 1.0, "mean: expected 1 dimensions"),
    ],
)
def test_means_and_scales_are_read(mean, scale, message):
    with pytest.raises(InvalidInput, match=message):
        GaussianLaw.of(mean, scale)


def test_another_width_is_another_law():
    law = GaussianLaw.of([0.0], 1.0, 2.0)
    assert law.with_width(3.0).kernel_width == 3.0
    assert repr(law) == "GaussianLaw(1 column, 4 bins, kernel_width=2)"
    with pytest.raises(InvalidInput, match="kernel_width"):
        law.with_width(-1.0)


def test_rows_far_from_the_samples_are_noted():
    law = GaussianLaw.of([0.0, 1.0], [1.0, 2.0], 1.0)
    points = np.array([[3.1, 1.0], [-3.1, 7.1], [2.9, 6.9]])
    assert law.notes(points) == (
        "x0: 2 of 3 rows are more than 3 standard deviations from the mean of the "
        "samples, where hardly any are drawn",
        "x1: 1 of 3 rows are more than 3 standard deviations from the mean of the "
        "samples, where hardly any are drawn",
    )
    assert law.notes(points[2:]) == ()
    assert po.lime.GlimeLaw(law).notes(points) == law.notes(points)
