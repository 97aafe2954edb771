"""Laws of distances, and GLIME's: how a table makes them, and what is drawn."""

import lime_fixture as fixture
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lime_fixture import EDGES, MEANS, SDS
from linear_sums import linear, wavy
from normal_samples import with_intercept
from scipy.special import ndtr

import propopt as po
from papers.lime import gaussian_theory
from papers.lime.gaussian_theory import critical_bandwidths, gains, tails
from papers.lime.linear_limits import linear_limits
from propopt.base.errors import InvalidInput
from propopt.lime import GaussianLaw, GlimeLaw, SmoothLaw, TabularLaw
from propopt.lime.exact_limits import ExactLimits
from propopt.lime.laws.gaussian_law import NormalColumn


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
    own = gaussian_theory.gains(law, X[:5])
    np.testing.assert_allclose(scaled.gain, own.gain * factors, rtol=1e-9)


def test_bins_end_where_the_normal_law_does_or_where_it_is_said(rng):
    X = rng.exponential(size=(400, 1))
    normal = GaussianLaw.from_data(X).columns[0]
    z = np.array([-0.6744897501960817, 0.0, 0.6744897501960817])
    np.testing.assert_allclose(normal.edges, X.mean() + X.std() * z, rtol=1e-13)
    given = GaussianLaw.from_data(X, n_bins=[[0.5, 2.0]]).columns[0]
    np.testing.assert_array_equal(given.edges, [0.5, 2.0])
    assert given.bins == ("< 0.5", "≥ 0.5 and < 2", "≥ 2")
    np.testing.assert_array_equal(given.place(np.array([0.5, 1.9, 2.0])), [1, 1, 2])


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


def test_draws_have_the_bits_and_weights_of_the_law(table, rng):
    """Their shares are in the contract of laws."""
    schema = po.functions.TableSchema.of(table)
    law = GaussianLaw.from_data(table, schema, kernel_width=0.8)
    points, _ = schema.encode(table.iloc[[1, 5]])
    assert np.isnan(points[1, 1])
    draws = law.draw(points, 1000, rng)
    for row, x in enumerate(points):
        samples, distance = draws.samples[row], np.zeros(1000)
        for j, column in enumerate(law.columns):
            same = column.place(samples[:, j]) == column.place(x[j : j + 1])
            np.testing.assert_array_equal(draws.bits[row, :, j], same)
            if j == 2:
                distance += samples[:, j] != x[j]
            elif j < 2:
                gap = ((samples[:, j] - x[j]) / column.scale) ** 2
                one_only = np.isnan(samples[:, j]) != np.isnan(x[j])
                distance += np.where(np.isnan(gap), one_only, gap)
        expected = np.exp(-distance / (2 * 0.8**2))
        np.testing.assert_allclose(draws.weights[row], expected, rtol=1e-10)


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


def test_rows_far_from_the_samples_are_noted():
    law = GaussianLaw.of([0.0, 1.0], [1.0, 2.0], 1.0)
    points = np.array([[3.1, 1.0], [-3.1, 7.1], [2.9, 6.9]])
    assert law.notes(points) == tuple(
        f"{name}: {n} of 3 rows are more than 3 standard deviations from the mean of "
        "the samples, where hardly any are drawn"
        for name, n in (("x0", 2), ("x1", 1))
    )
    assert law.notes(points[2:]) == ()
    assert GlimeLaw(law).notes(points) == law.notes(points)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: GaussianLaw.from_data([[0.0], [1.0]], n_bins=1), "n_bins"),
        (lambda: GaussianLaw.from_data([[0.0], [1.0]], kernel_width=0.0), "kernel_wid"),
        (lambda: LAW.with_width(-1.0), "kernel_width"),
        (lambda: GaussianLaw.of([0.0, 0.0], [1.0]), "expected a number or 2 of them"),
        (
            lambda: GaussianLaw.of([0.0, 0.0], [1.0, 0.0]),
            "scale: expected a number > 0",
        ),
        (lambda: GaussianLaw.of([0.0], np.inf), "scale: expected a finite number"),
        (lambda: GaussianLaw.of([[0.0]], 1.0), "mean: expected 1 dimensions"),
        (lambda: GlimeLaw(GlimeLaw(LAW)), "another law"),
        (lambda: LAW.columns[0].place(np.array([np.nan])), "no sample of its column"),
        (lambda: SmoothLaw.of(BINS, kernel_width=0.0), "kernel_width"),
        (lambda: SmoothLaw.of(SmoothLaw.of(BINS)), "the bins of a TabularLaw"),
    ],
)
def test_settings_out_of_range_are_refused(call, message):
    with pytest.raises(InvalidInput, match=message):
        call()


@pytest.mark.parametrize("kind", [GaussianLaw, TabularLaw])
def test_glime_has_the_samples_of_its_law_without_weights(kind, rng):
    law = kind.from_data(rng.normal(size=(200, 3)), kernel_width=0.8)
    glime, rows = GlimeLaw(law), np.array([[0.5, -0.3, 1.2], [-2.0, 0.1, 0.65]])
    for widths in (np.full(2, 0.8), np.array([0.3, 5.0])):
        np.testing.assert_array_equal(glime.log_weights(rows, widths), np.zeros(2))
    a, b, c = (
        draw(rows, 50, np.random.default_rng(3))
        for draw in (glime.draw, law.draw_weighted, glime.draw_weighted)
    )
    np.testing.assert_array_equal(a.samples, b.samples)
    np.testing.assert_array_equal(a.samples, c.samples)
    np.testing.assert_array_equal(a.bits, b.bits)
    assert (a.weights == 1.0).all()
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


def test_means_of_weights_have_the_closed_form_of_appendix_a():
    """e_b = ν/√(ν²+s²) exp(−(ξ−μ)²/(2(ν²+s²))) [Φ((q_b−m̃)/s̃)−Φ(...)]/[Φ(r)−Φ(l)]."""
    total = NU**2 + SDS**2
    for own, x in enumerate(ROW[0]):
        mm, ss = (NU**2 * MEANS + SDS**2 * x) / total, NU * SDS / np.sqrt(total)
        inside = ndtr((EDGES[1:] - mm) / ss) - ndtr((EDGES[:-1] - mm) / ss)
        whole = ndtr((EDGES[1:] - MEANS) / SDS) - ndtr((EDGES[:-1] - MEANS) / SDS)
        near = NU / np.sqrt(total) * np.exp(-0.5 * (x - MEANS) ** 2 / total)
        e = SHARES * near * inside / whole
        tilt = SmoothLaw.of(BINS).columns[0].tilt(np.array([x]), np.array([NU]))
        assert np.exp(tilt.log_weight[0]) == pytest.approx(e.sum(), rel=1e-13)
        assert tilt.alpha[0] == pytest.approx(e[own] / e.sum(), rel=1e-12)
        assert tilt.alpha[0] + tilt.complement[0] == pytest.approx(1.0, rel=1e-14)


def test_weights_of_samples_are_the_kernel():
    draws = SmoothLaw.of(BINS).draw(ROW, 50, np.random.default_rng(2))
    apart = ((ROW[:, None] - draws.samples) ** 2).sum(axis=2)
    np.testing.assert_allclose(
        draws.weights, np.exp(-apart / (2.0 * NU**2)), rtol=1e-12
    )


def test_a_number_that_is_missing_on_one_side_is_as_far_as_one():
    x = np.array([0.0, 1.0, 2.0, 5.0, np.nan])  # one in five is missing
    law = SmoothLaw.of(TabularLaw.from_data(x[:, None], n_bins=2), kernel_width=NU)
    own, far = law.columns[0], np.exp(-0.5 / NU**2)
    around = own.tilt(np.array([np.nan]), np.array([NU]))
    assert np.exp(around.log_weight[0]) == pytest.approx(0.2 + 0.8 * far)
    around = own.tilt(np.array([0.3]), np.array([NU]))
    share = around.outside[own.place(np.array([np.nan]))[0], 0]
    weight = share * around.complement[0] * np.exp(around.log_weight[0])
    assert weight == pytest.approx(0.2 * far, rel=1e-12)


# ---- the linear paper's forms for normal samples: digits, closed forms, widths


ROWS = np.array([[0.5, -0.3, 1.2], [-2.0, 0.1, 0.65], [0.0, 0.6744, -3.5]])
SLOPES = np.array([2.0, -1.5, 0.3])
ONE = GaussianLaw.of([0.0], 1.0, 1.0)
ONE_COLUMN = {
    (1.0, 1.0): (0.40254475, -0.27363538, 0.04199854, 1.13776533),
    (0.432, 1.0): (0.36163359, -0.04062276, 0.15236451, 0.17596675),
    (0.1, 1.0): (0.33961158, -0.09039382, -0.08687978, 0.40304803),
    (-0.3, 0.5): (0.53860990, 0.04319456, -0.14638169, -0.17381469),
    (-1.5, 2.0): (0.33772052, 0.32688008, 0.19356818, -1.46146931),
}
"""x and ν of f(x) = x under N(0, 1) in quartiles, to α, θ, β_0 and β_1."""
NARROW = {0.1: 0.10001, 0.3: 0.30000, 0.35: -0.32449, 0.6: -0.07450}
"""Gains at a width of a thousandth of the scale."""
THREE, AT = GaussianLaw.of([0.5, -1.0, 2.0], 1.7, 1.5), np.array([[1.2, -3.0, 2.3]])
OF_THREE = [4.94929917, 0.26791601, 3.58989395, 0.29308691]
OF_FOUR = [0.5672, -0.4715, 0.3043, -0.2007]
TEN = np.append([0.9607, 0.0892], np.linspace(-1.0, 1.0, 8))


def gain_of(law, row):
    return gains(law, [row]).gain[0]


def test_one_column():
    for (x, width), expected in ONE_COLUMN.items():
        law = ONE.with_width(width)
        limits = ExactLimits(linear([1.0]), law).of(np.array([[x]]))
        theta = gains(law, [[x]]).theta[0, 0]
        result = limits.alpha[0, 0], theta, *with_intercept(limits)
        np.testing.assert_allclose(result, expected, rtol=0, atol=5.1e-9)
    law = ONE.with_width(1e-3)
    for x, expected in NARROW.items():
        limits = ExactLimits(linear([1.0]), law).of(np.array([[x]])).coefficients[0, 0]
        np.testing.assert_allclose(limits, expected, rtol=0, atol=5.1e-6)
        np.testing.assert_allclose(gain_of(law, [x])[0], limits, rtol=1e-13)


def test_several_columns():
    f = linear([1.0, -2.0, 0.5], 0.7)
    for law in (THREE, GlimeLaw(THREE)):
        limits = with_intercept(ExactLimits(f, law).of(AT))
        np.testing.assert_allclose(limits, OF_THREE, rtol=0, atol=5.1e-9)
    # a column below its critical width has the other sign
    law = THREE.with_width(0.7)
    limits = ExactLimits(f, law).of(AT).coefficients
    np.testing.assert_allclose(limits[0, 0], -0.0512, rtol=0, atol=5.1e-5)
    critical = critical_bandwidths(law, AT)[0, 0]
    np.testing.assert_allclose(critical, 0.799, rtol=0, atol=5.1e-4)
    # with an interaction, and the ten columns of the fourth figure
    exact = ExactLimits(wavy(), GaussianLaw.of(np.zeros(4), 1.0, 0.8))
    limits = exact.of(np.array([[0.5, -0.3, 1.2, 0.1]])).coefficients
    np.testing.assert_allclose(limits[0], OF_FOUR, rtol=0, atol=5.1e-5)
    at = gains(GaussianLaw.of(np.zeros(10), 1.0, 1.0), TEN[None])
    result = linear_limits(at, [10.0, -10.0, *[0.0] * 8]).coefficients[0]
    np.testing.assert_allclose(result[:2], [11.400, -4.1002], rtol=0, atol=5.1e-4)
    np.testing.assert_array_equal(result[2:], np.zeros(8))


def test_critical_widths():
    x = np.array([0.1, 0.3, 0.34, 0.432, 0.6, -0.432, 1.0, -2.0])
    result = critical_bandwidths(ONE, x[:, None])[:, 0]
    expected = [np.nan, np.nan, 0.0904, 0.5301, 0.8827, 0.5301, np.nan, np.nan]
    np.testing.assert_allclose(result, expected, rtol=0, atol=5.1e-5)


@pytest.mark.parametrize("width", [1e-6, 1e-3, 0.03, 0.3, 1.0, 7.0, 1e4])
def test_limits_of_linear_functions_are_the_closed_form(width):
    law = GaussianLaw.of([0.2, -1.0, 0.0], [1.0, 2.5, 0.4], width, n_bins=[4, 5, 2])
    at = gains(law, ROWS)
    by_pieces, closed = (
        ExactLimits(linear(SLOPES, 0.7), law).of(ROWS),
        linear_limits(at, SLOPES, 0.7),
    )
    for name in ("coefficients", "intercept", "alpha", "mean", "log_weight"):
        atol = 1e-15 if name == "log_weight" else 1e-12
        own, other = getattr(by_pieces, name), getattr(closed, name)
        np.testing.assert_allclose(own, other, rtol=1e-12, atol=atol)
    # at the row an additive surrogate is the mean of its box
    inside = at.mean - at.theta / at.alpha
    np.testing.assert_allclose(closed.at_row, inside @ SLOPES + 0.7, atol=1e-13)
    np.testing.assert_array_equal(gains(GlimeLaw(law), ROWS).gain, at.gain)


def test_names_of_rows_and_what_has_no_gains():
    X = pd.DataFrame({"a": [0.1], "b": [1.0]}, index=["row"])
    law = GaussianLaw.from_data(pd.DataFrame({"a": [0.0, 1.0], "b": [2.0, 5.0]}))
    result = gains(law, X)
    table = result.labels.frame(result.gain)
    assert list(table.columns) == ["a", "b"]
    assert list(table.index) == ["row"]
    other = gains(law, X[["b", "a"]])
    np.testing.assert_array_equal(other.gain[:, ::-1], result.gain)
    assert other.labels.features == ("b", "a")
    for refused, rows, message in (
        (law, X.rename(columns={"a": "c"}), "its columns"),
        (law, [[1.0]], "it has 2 columns, and X has 1"),
        (TabularLaw.from_data(ROWS), ROWS, "expected a GaussianLaw"),
    ):
        with pytest.raises(InvalidInput, match=message):
            gains(refused, rows)
    # and a slope of a column without numbers
    X = np.array([[1.0, 0.0], [2.0, 1.0], [4.0, 1.0]])
    result = gains(GaussianLaw.from_data(X, categorical=[1]), X)
    assert np.isnan(result.gain[:, 1]).all()
    assert np.isfinite(linear_limits(result, [1.0, 0.0]).intercept).all()
    for slopes, message in (([1.0, 1.0], "'x1' has a slope"), ([1.0], "2 numbers")):
        with pytest.raises(InvalidInput, match=message):
            linear_limits(result, slopes)


WIDE = np.array([-1.69480839, -0.43288377, 0.43288377, 1.69480839])
"""Gains of the quartiles of N(0, 1) without weights, to eight digits."""


@given(x=st.lists(st.floats(-1.9, 1.9), min_size=3, max_size=3), p=st.integers(2, 7))
def test_gains_change_their_sign_at_the_critical_width_and_nowhere_else(x, p):
    law = GaussianLaw.of([0.0, 0.1, 1.0], [1.0, 0.7, 2.0], 1.0, p)
    widths = np.geomspace(1e-2, 1e2, 60)
    values = np.array([gain_of(law.with_width(w), x) for w in widths])
    signs = np.where(np.abs(values) < 1e-13, 0.0, np.sign(values))
    for j, root in enumerate(critical_bandwidths(law, [x])[0]):
        if np.isnan(root) or not widths[0] < root < widths[-1]:
            assert len(set(signs[:, j]) - {0.0}) <= 1
        else:
            np.testing.assert_array_equal(signs[:, j] == signs[-1, j], widths > root)
            assert abs(gain_of(law.with_width(root), x)[j]) < 1e-9


def test_narrow_and_wide_kernels_and_units():
    x = np.array([-1.5, -0.3, 0.3, 0.35, 1.5])[:, None]
    wide, narrow = (gains(ONE.with_width(w), x).gain[:, 0] for w in (1e7, 1e-7))
    np.testing.assert_allclose(wide, WIDE[[0, 1, 2, 2, 3]], atol=5.1e-9)
    edge = ONE.columns[0].edges[2]
    expected = [edge - 1.5, -0.3, 0.3, 0.35 - edge, 1.5 - edge]
    np.testing.assert_allclose(narrow, expected, rtol=1e-7)
    # units of distance are units of the critical width
    other = GaussianLaw.of([0.0], 10.0, 1.0, unit=10.0)
    a, b = critical_bandwidths(ONE, [[0.432]]), critical_bandwidths(other, [[4.32]])
    np.testing.assert_allclose(a, b, rtol=1e-14)
    here, there = gain_of(ONE, [0.432]), gain_of(other, [4.32])
    np.testing.assert_allclose(10.0 * here, there, rtol=1e-12)


def test_columns_with_and_without_a_critical_width():
    law = GaussianLaw.of([0.0], 1.0, 1.0, n_bins=3)  # the middle bin has none
    assert np.isnan(critical_bandwidths(law, [[0.0], [0.1], [-0.1]])).all()
    law = GlimeLaw(GaussianLaw.of([0.0, 0.0], 1.0, 0.55))
    result = critical_bandwidths(law, [[0.43198, 0.1]])
    np.testing.assert_allclose(0.55 / result[0, 0], 0.55 / 0.53, atol=5e-4)
    assert np.isnan(result[0, 1])
    for column in ([1.0, 2.0, np.nan, 4.0], np.ones(4)):  # no numbers
        X = np.column_stack([np.arange(4.0), column])
        law = GaussianLaw.from_data(X)
        assert np.isnan(critical_bandwidths(law, X)[:, 1]).all()
        for one in (law, law.with_width(1e-7)):
            assert np.isnan(gains(one, X).gain[:, 1]).all()


def test_tails_of_nothing_outside_and_around_zero():
    # what is outside by an underflow still has a mean
    result = tails(np.array([-40.0]), np.array([41.0]))
    np.testing.assert_allclose(result.contrast, 40.0 + 1 / 40.0, rtol=1e-4)
    result = tails(np.array([-np.inf]), np.array([np.inf]))
    assert np.array(result)[:, 0].tolist() == [1.0, 0.0, 0.0, 0.0]
    result = tails(np.array([-0.3, -0.001]), np.array([0.3, 0.001]))
    assert result.contrast.tolist() == result.theta.tolist() == [0.0, 0.0]
