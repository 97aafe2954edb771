"""Laws of distances, and GLIME's: how a table makes them, and what is drawn."""

import lime_fixture as fixture
import numpy as np
import pandas as pd
import pytest
from refusals import refusals

import propopt as po
from papers.lime import gaussian_theory
from propopt.base.errors import InvalidInput
from propopt.lime import GaussianLaw, GlimeLaw, TabularLaw
from propopt.lime.laws.gaussian_law import NormalColumn
from propopt.lime.laws.lime_law import draws_at


LAW = GaussianLaw.of([0.0], 1.0, 2.0)


@pytest.fixture
def table(rng):
    height = rng.normal(170.0, 10.0, 400)
    weight = rng.normal(70.0, 15.0, 400)
    weight[::5] = np.nan
    colour = rng.choice(["red", "blue", "green"], 400, p=[0.5, 0.3, 0.2])
    return pd.DataFrame(
        {"height": height, "weight": weight, "colour": colour, "one": 1.0}
    )


def test_means_scales_and_widths_are_those_of_the_table(rng):
    X = rng.normal(size=(300, 4)) * [1.0, 50.0, 0.01, 3.0] + 3.0
    law = GaussianLaw.from_data(X)
    for column, values in zip(law.columns, X.T, strict=True):
        assert column.mean == pytest.approx(values.mean(), rel=1e-14)
        assert column.scale == column.unit == pytest.approx(values.std(), rel=1e-14)
    # the default width is that of the package in units of the scale
    assert law.kernel_width == pytest.approx(0.75 * 2.0)
    assert GaussianLaw.from_data(X, kernel_width=0.3).kernel_width == 0.3
    raw = GaussianLaw.of(X.mean(axis=0), X.std(axis=0))
    expected = 0.75 * np.sqrt((X.std(axis=0) ** 2).sum())
    assert raw.kernel_width == pytest.approx(expected)
    assert GaussianLaw.of(np.zeros(9), 2.0).kernel_width == pytest.approx(0.75 * 6.0)
    assert LAW.with_width(3.0).kernel_width == 3.0
    assert repr(LAW) == "GaussianLaw(1 column, 4 bins, kernel_width=2)"
    # units of columns do not matter where distances are standardised
    factors = np.array([1.0, 1e4, 1e-3, 1.0])
    scaled = gaussian_theory.gains(GaussianLaw.from_data(X * factors), X[:5] * factors)
    unscaled = gaussian_theory.gains(law, X[:5])
    np.testing.assert_allclose(scaled.gain, unscaled.gain * factors, rtol=1e-9)


def test_bins_end_where_the_normal_law_does_or_where_it_is_said(rng):
    X = rng.exponential(size=(400, 1))
    normal = GaussianLaw.from_data(X).columns[0]
    z = np.array([-0.6744897501960817, 0.0, 0.6744897501960817])
    np.testing.assert_allclose(normal.edges, X.mean() + X.std() * z, rtol=1e-13)
    given = GaussianLaw.from_data(X, n_bins=[[0.5, 2.0]]).columns[0]
    np.testing.assert_array_equal(given.edges, [0.5, 2.0])
    assert given.bins == ("< 0.5", "≥ 0.5 and < 2", "≥ 2")
    np.testing.assert_array_equal(given.bin_index(np.array([0.5, 1.9, 2.0])), [1, 1, 2])


def test_categories_constants_and_missing_numbers_of_a_table(table):
    law = GaussianLaw.from_data(table, po.functions.TableSchema.of(table))
    kinds = [isinstance(column, NormalColumn) for column in law.columns]
    assert kinds == [True, True, False, False]
    assert law.columns[1].missing == pytest.approx(0.2)
    assert law.columns[1].bins[-1] == "missing"
    shares = table["colour"].value_counts(normalize=True)[["blue", "green", "red"]]
    assert law.columns[2].bins[:3] == ("= blue", "= green", "= red")
    np.testing.assert_allclose(law.columns[2].shares[:3], shares)
    assert law.labels.features == ("height", "weight", "colour", "one")


def test_alpha_and_its_complement_have_digits_of_their_own():
    column = GaussianLaw.of([0.0], 1.0, 1.0).columns[0]
    tilt = column.tilt(np.array([0.3, 0.3, 5.0]), np.array([0.02, 0.001, 1e9]))
    np.testing.assert_allclose(tilt.alpha + tilt.complement, np.ones(3), rtol=1e-15)
    assert 0.0 < tilt.complement[0] < 1e-40
    np.testing.assert_allclose(tilt.outside.sum(axis=0), np.ones(3), rtol=1e-12)
    assert tilt.has_contrast.all()
    assert np.isfinite(tilt.log_weight).all()
    # an infinite width is the law itself
    column = GaussianLaw.of([0.4], 2.0, 1.0, n_bins=5).columns[0]
    tilt = column.tilt(np.array([-3.0, 0.5]), np.full(2, np.inf))
    np.testing.assert_allclose(tilt.alpha, 0.2, rtol=1e-14)
    np.testing.assert_allclose(tilt.log_weight, 0.0, atol=1e-15)
    np.testing.assert_array_equal(tilt.pieces.mean, np.full((3, 2), 0.4))
    np.testing.assert_array_equal(tilt.pieces.sd, np.full((3, 2), 2.0))


def test_values_far_from_the_samples():
    law = GaussianLaw.of([0.0, 1.0], [1.0, 2.0], 1.0)
    points = np.array([[3.1, 1.0], [-3.1, 7.1], [2.9, 6.9]])
    expected = [[True, False], [True, True], [False, False]]
    assert law.beyond(points).tolist() == expected
    assert GlimeLaw(law).beyond(points).tolist() == expected


@pytest.mark.parametrize(("line", "message"), refusals(__file__, "distances"))
def test_settings_out_of_range_are_refused(line, message):
    with pytest.raises(InvalidInput, match=message):
        eval(line)


@pytest.mark.parametrize("kind", [GaussianLaw, TabularLaw])
def test_glime_has_the_samples_of_its_law_without_weights(kind, rng):
    law = kind.from_data(rng.normal(size=(200, 3)), kernel_width=0.8)
    glime, rows = GlimeLaw(law), np.array([[0.5, -0.3, 1.2], [-2.0, 0.1, 0.65]])
    for widths in (np.full(2, 0.8), np.array([0.3, 5.0])):
        np.testing.assert_array_equal(glime.log_weights(rows, widths), np.zeros(2))
    uniforms = np.random.default_rng(3).random((2, 50, 3))
    drawn = glime.draw(rows, 50, np.random.default_rng(3))
    around = draws_at(law.columns, rows, law.widths(rows), uniforms)
    np.testing.assert_array_equal(drawn.samples, around.samples)
    np.testing.assert_array_equal(drawn.bits, around.bits)
    assert (drawn.weights == 1.0).all()
    # widths and names are those of the law, and weights their own squares
    assert glime.kernel_width == 0.8
    assert glime.with_width(2.0).kernel_width == glime.with_width(2.0).law.kernel_width
    assert glime.with_width(2.0).kernel_width == 2.0
    assert glime.columns[0].bins == law.columns[0].bins
    assert repr(glime) == f"GlimeLaw({law!r})"
    widths = np.array([0.5, 2.0])
    np.testing.assert_array_equal(glime.squared_widths(widths), widths)
    np.testing.assert_allclose(law.squared_widths(widths) ** 2, widths**2 / 2.0)


SHARES = np.array([0.2, 0.5, 0.3])
ROW = np.array([[-1.4, 0.3, 2.0]])
NU = 0.9
BINS = fixture.law(NU, [SHARES] * 3)


def test_a_number_that_is_missing_on_one_side_is_as_far_as_one():
    x = np.array([0.0, 1.0, 2.0, 5.0, np.nan])  # one in five is missing
    law = GaussianLaw.from_data(x[:, None], n_bins=2, kernel_width=NU)
    column, far = law.columns[0], np.exp(-0.5 / NU**2)
    around = column.tilt(np.array([np.nan]), np.array([NU]))
    assert np.exp(around.log_weight[0]) == pytest.approx(0.2 + 0.8 * far)
    around = column.tilt(np.array([0.3]), np.array([NU]))
    share = around.outside[3, 0]
    weight = share * around.complement[0] * np.exp(around.log_weight[0])
    assert weight == pytest.approx(0.2 * far, rel=1e-12)
