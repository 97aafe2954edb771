"""Laws of columns: values, tables within their bound, slopes and promises."""

import math
import pickle
from concurrent.futures import ThreadPoolExecutor

import golden_table as golden
import numpy as np
import pytest
from column_oracle import contrast_at, enumerated, law_at
from family_catalogue import FAMILIES, is_closed, is_of
from mpmath import mp, mpf
from random_trees import boxes_of_trees, random_tree, some_rows
from sklearn.ensemble import (
    ExtraTreesRegressor,
    HistGradientBoostingRegressor,
    RandomForestRegressor,
)

import propopt as po
from propopt.base import resources
from propopt.base.errors import InvalidInput
from propopt.base.kernels import why_no_kernels
from propopt.base.resources import Budget
from propopt.laws import data_law, panels
from propopt.laws.background import Reference
from propopt.laws.column_laws import NoisyColumn, NumericLaw, least_spread_share, temper
from propopt.laws.data_law import DataLaw, Means, NoiseLaw
from propopt.laws.panels import Cuts, Panels, has_table, truncation
from propopt.structures.boxes.sets import Sets
from propopt.structures.products.families import Powers


OUTLIER = np.array([0.0] * 1000 + [1.0])
COLUMNS = {
    "1000 zeros and a one": (OUTLIER, [0.0, 1.0, 0.4]),
    "0 to 9 and a million": (np.array([*range(10), 1e6]), [0.0, 4.2, 9.0, 1e6, 5e5]),
    "a billion and 0, 1, 2": (1e9 + np.arange(3.0), [1e9, 1e9 + 1, 1e9 + 2]),
    "zeros and 1e-300": (np.array([0.0] * 10**5 + [1e-300]), [0.0, 1e-300]),
    "0, 1, 2 from afar": (np.arange(3.0), [1e12, -1e12, 1e300, -1e300]),
    "skewed": (np.exp(np.linspace(0, 30, 200)), [1.0, 1e6, 1e13]),
    "ties": (np.array([0.0, 0.0, 2.0, 2.0, 5.0]), [1.0, 3.5]),
}
CASES = [
    pytest.param(column, x, id=f"{name} at {x:g}")
    for name, (column, places) in COLUMNS.items()
    for x in places
]


def test_a_column_that_is_always_missing_stays_so():
    law = NumericLaw.of(np.full(4, np.nan), "a")
    for x in (np.nan, 2.0):
        assert np.isnan(law_at(law, x).values).all()
        assert contrast_at(law, x).masses.tolist() == [0.0]
    sets = Sets.of_numbers([0, 0], [-np.inf, 0.0], [0.0, np.inf], [True, False])
    P, R = law.mixing(sets)(np.array([np.nan, 2.0]))
    np.testing.assert_array_equal(P, [[1, 1], [0, 0]])
    np.testing.assert_array_equal(R, 0.0)


def test_moments_are_those_of_the_law():
    rng = np.random.default_rng(0)
    law = NumericLaw.of(np.append(rng.exponential(size=50), np.nan), "a")
    x = np.array([0.1, 3.0, np.nan, 40.0])
    means, variances = law.moments(x)
    for n in (0, 1, 3):
        values, masses = law_at(law, x[n])
        np.testing.assert_allclose(means[n], masses @ values, rtol=1e-13)
        centered = values - masses @ values
        np.testing.assert_allclose(variances[n], masses @ centered**2, rtol=1e-12)
    assert np.isnan(means[2])
    assert variances[2] == 0.0


@pytest.mark.parametrize("offset", [0.0, 1e6, 1e9])
def test_a_linear_factor_has_its_slope_far_from_zero_too(offset):
    column = offset + np.random.default_rng(4).normal(size=60)
    law = NumericLaw.of(column, "column")
    _, R = law.mixing(Powers.first(np.zeros(1, np.intp)))(column[:20])
    # differences of values have the digits that the values have
    digits = np.finfo(float).eps * max(offset, 1.0)
    np.testing.assert_allclose(R, 1.0, rtol=0, atol=max(1e-13, 4.0 * digits))


@pytest.mark.parametrize(("column", "x"), CASES)
def test_contrasts_are_slopes_and_laws_are_no_wider_than_they_have_to_be(column, x):
    law = NumericLaw.of(column, "a")
    values, masses = contrast_at(law, x)
    assert np.isfinite(masses).all()
    assert abs(masses.sum()) < 1e-12 * np.abs(masses).sum()
    origin = values[np.argmin(np.abs(values - x))]
    assert abs(masses @ (values - origin) - 1.0) < 1e-7
    q = law_at(law, x).masses
    assert abs(q.sum() - 1.0) < 1e-14
    cuts = np.arange(len(values) + 1)
    for table, own in zip(
        law.cumulative(np.array([x]), cuts), (q, masses), strict=True
    ):
        sums = np.append(0.0, np.cumsum(own))
        np.testing.assert_allclose(table[0], sums, atol=1e-12 * np.abs(own).sum())
    least = min(0.02, (1 - law.shares.max()) / 2)
    assert 1.0 - q[np.argmin(np.abs(law.values - x))] >= least * (1 - 1e-9)
    local = temper(law.values, law.shares, law.unit, np.array([x]))
    if local.widening[0] > 1.0:
        beside = np.delete(local.masses[0], local.nearest[0]).sum() / local.totals[0]
        assert abs(beside / least - 1.0) < 1e-9


def test_slopes_at_outliers_of_two_values_and_between_two():
    law = NumericLaw.of(np.array([*range(10), 1e6]), "a")
    values, masses = contrast_at(law, 1e6)  # the secant to the nearest values
    np.testing.assert_allclose(masses @ (values > 1e5), 1e-6, rtol=1e-4)
    law = NumericLaw.of(np.array([0.0, 0.0, 2.0, 2.0, 5.0]), "a")
    local = temper(law.values, law.shares, law.unit, np.array([1.0]))
    assert local.nearest.tolist() == [0]  # of two nearest values the smaller counts
    law = NumericLaw.of(OUTLIER * 4.0, "a")
    for x in (0.0, 4.0, 1.0):
        np.testing.assert_array_equal(contrast_at(law, x).masses, [-0.25, 0.25])
    law = NumericLaw.of(np.random.default_rng(2).normal(size=99), "a")
    sets = Sets.of_numbers([0], [-np.inf], [np.inf], [False])
    P, R = law.mixing(sets)(np.array([0.2, -5.0, 60.0]))
    assert (P == 1.0).all()
    assert (R == 0.0).all()


def test_deviations_are_computed_without_cancellation_and_ranges_end():
    spread = NumericLaw.of(1e9 + np.arange(3.0), "a").spread
    assert spread == pytest.approx(np.sqrt(2 / 3), rel=1e-14)
    assert NumericLaw.of(np.full(3, 7.0), "a").spread == 0.0
    assert np.isnan(NumericLaw.of(np.full(3, np.nan), "a").spread)
    for column in ([0.0, 5e-324], [-1e308, 1e308]):
        with pytest.raises(InvalidInput, match="range of column 'age'"):
            NumericLaw.of(np.array(column), "'age'")
    for column in ([3.0], [np.nan]):  # moments of one value or none
        law = NumericLaw.of(np.array(column), "a")
        means, variances = law.moments(np.array([5.0, np.nan]))
        np.testing.assert_array_equal(means, [column[0], np.nan])
        np.testing.assert_array_equal(variances, 0.0)


# ---- the data law: its table without random numbers, and what it promises
REFERENCE = Reference.of_points(golden.TABLE)
LAW = DataLaw(REFERENCE)


def contrasts(boxes, rows, law=LAW):
    return Means(boxes, law).of(rows)


def test_contrasts_are_those_of_all_combinations_of_values():
    small = DataLaw(Reference.of_points(golden.TABLE[::4]))
    means, attributions = contrasts(golden.boxes(), golden.ROWS, small)
    for n, row in enumerate(golden.ROWS):
        mean, expected = enumerated(golden.function, small, row)
        assert abs(means[n] - mean) < 1e-12
        np.testing.assert_allclose(attributions[n], expected, atol=1e-12, rtol=0)


def test_rows_are_explained_one_by_one_alike(monkeypatch):
    rng = np.random.default_rng(5)
    table = some_rows(rng, 200, 5)
    law = DataLaw(Reference.of_points(table))
    boxes = boxes_of_trees([random_tree(rng, 5, 6) for _ in range(30)], n_columns=5)
    whole = contrasts(boxes, table, law)
    order = rng.permutation(200)
    permuted = contrasts(boxes, table[order], law)
    monkeypatch.setattr(data_law, "ROWS_AT_ONCE", Budget(1))
    single = contrasts(boxes, table, law)
    for got, back in ((permuted, order), (single, np.arange(200))):
        np.testing.assert_array_equal(got[0], whole[0][back])
        np.testing.assert_array_equal(got[1], whole[1][back])


BANDWIDTHS = [
    (1, 0.0, 2.927129591),
    (1, 1.0, 1.732893289),
    (3, 50.0, 2.224276093),
    (2, 4.0, 1.008688203),
    (0, 0.8, 1.0),
    (0, -3.0, 1.0),
    (5, 5.0, 1.0),
]


def test_the_golden_table():
    values = golden.boxes().value(golden.TABLE)
    np.testing.assert_allclose(values, golden.function(golden.TABLE), atol=1e-15)
    means, attributions = contrasts(golden.boxes(), golden.ROWS)
    np.testing.assert_allclose(attributions, golden.CONTRASTS, atol=1e-11, rtol=0)
    np.testing.assert_allclose(means, golden.MEANS, atol=1e-11, rtol=0)
    spreads = [getattr(column, "spread", 1.0) for column in LAW.columns]
    np.testing.assert_allclose(spreads, golden.SPREADS, atol=1e-11, rtol=0)
    for column, x, expected in BANDWIDTHS:
        law = LAW.columns[column]
        widening = temper(law.values, law.shares, law.unit, np.array([x])).widening[0]
        assert abs(widening - expected) < 1e-9


# ---- the gaussian law: probabilities of intervals and their slopes
def measures(law, sets, rows):
    """Law and contrast of each set, (U, n)."""
    return law.columns[0].mixing(sets)(rows[:, 0])


@pytest.mark.parametrize(
    "name",
    [
        name
        for name, each in FAMILIES.items()
        if is_of(each, coded=False) and is_closed(each)
    ],
)
def test_a_number_without_noise_stays_what_it_is(name):
    x = np.array([0.5, -1.0])
    P, R = NoisyColumn(0.0, 0, None).mixing(FAMILIES[name])(x)
    np.testing.assert_array_equal(P, FAMILIES[name].at(x))
    np.testing.assert_array_equal(R, 0.0)


def test_missing_numbers_get_no_noise_and_have_no_slope():
    law = NoiseLaw(np.array([0.4]), (None,))
    sets = Sets.of_numbers([0] * 2, [-np.inf, 0.0], [0.0, np.inf], [True, False])
    P, R = measures(law, sets, np.array([[np.nan]]))
    np.testing.assert_array_equal(P[:, 0], [1.0, 0.0])
    np.testing.assert_array_equal(R, 0.0)
    sets = Sets.of_numbers([0], [0.5], [0.1], [True])  # which only they reach
    P, R = measures(law, sets, np.array([[0.3], [np.nan]]))
    np.testing.assert_array_equal(P, [[0.0, 1.0]])
    np.testing.assert_array_equal(R, 0.0)


# ---- Slopes by tables: within their bound, in any company, and otherwise by values


def draws(name, n):
    """A column of n reference rows."""
    rng = np.random.default_rng(7)
    z, u = rng.normal(size=n), rng.random(n)
    return {
        "normal": z,
        "skewed": np.exp(1.5 * z),
        "counts": rng.poisson(3, n).astype(float),
        "heavy": rng.standard_cauchy(n),
        "zeros": np.where(u < 0.6, 0.0, np.abs(z)),
        "two groups": z + np.where(u < 0.5, -5.0, 5.0),
        "far groups": z + np.where(u < 0.5, -50.0, 50.0),
        "large": 1e9 + z,
        "tiny": 1e-200 * z,
        "three values": rng.integers(0, 3, n).astype(float),
    }[name]


NAMES = ("normal", "skewed", "counts", "heavy", "zeros", "two groups", "far groups")
NAMES += ("large", "tiny", "three values")


def each_cut(law, most=60):
    """A column of which the factors are all values up to each of so many cuts."""
    m = len(law.values)
    cuts = np.unique(np.linspace(0, m, min(most, m + 1)).astype(np.intp))
    every = np.arange(len(cuts))
    return Cuts(0, 0, law, cuts, every, np.zeros(len(cuts), np.intp), every)


def measured(own, x):
    """Law and contrast up to each cut (c, n), and where there are tables (n,)."""
    P, R = np.full((2, len(own.cuts), len(x)), np.nan)
    done = Panels((own,)).measures(x[:, None], P, R)[0]
    return P, R, done


def in_digits(law, cuts, x):
    """Law and contrast up to each cut by their definition, in 50 digits."""
    with mp.workdps(50):
        values, h = [mpf(v) for v in law.values], mpf(law.spread) / 2
        weights = [
            mpf(share) * mp.exp(-(((v - mpf(x)) / h) ** 2) / 2)
            for v, share in zip(values, law.shares, strict=True)
        ]
        total = mp.fsum(weights)
        q = [w / total for w in weights]
        mean = mp.fdot(q, values)
        pulls = [p * (v - mean) for p, v in zip(q, values, strict=True)]
        variance = mp.fsum(a * (v - mean) for a, v in zip(pulls, values, strict=True))
        r = [a / variance for a in pulls]
        result = [(float(mp.fsum(q[:k])), float(mp.fsum(r[:k]))) for k in cuts]
        return np.array(result).T, float(mp.fsum(map(abs, r)))


@pytest.mark.usefixtures("kernels")
@pytest.mark.parametrize("name", NAMES)
def test_law_and_contrast_are_their_definition(name):
    law = NumericLaw.of(draws(name, 400), "x")
    own = each_cut(law, 20)
    x = np.random.default_rng(3).choice(law.values, 12)
    P, R, done = measured(own, x + 0.1 * law.spread)
    assert done.sum() >= (2 if name in ("three values", "far groups") else 8)
    for r in np.flatnonzero(done):
        (masses, contrasts), size = in_digits(law, own.cuts, x[r] + 0.1 * law.spread)
        # rounding: γ ≤ 7.1, and sums of some 400 terms, well below n ε
        np.testing.assert_allclose(P[:, r], masses, rtol=0.0, atol=1e-14)
        np.testing.assert_allclose(R[:-1, r], contrasts[:-1], rtol=0, atol=2e-14 * size)


@pytest.mark.usefixtures("kernels")
@pytest.mark.parametrize("name", NAMES)
def test_tables_agree_with_value_by_value(name):
    law = NumericLaw.of(draws(name, 10_000), "x")
    own = each_cut(law)
    x = np.linspace(law.values[0] - law.spread, law.values[-1] + law.spread, 301)
    x = np.concatenate([x, law.values[::97]])
    P, R, done = measured(own, x)
    assert done.any()
    masses, contrasts = law.cumulative(x[done], own.cuts)
    _, slopes = law.cumulative(x[done], np.arange(len(law.values) + 1))
    size = np.abs(np.diff(slopes, axis=1)).sum(axis=1)
    assert np.abs(P[:, done].T - masses).max() <= 1e-12
    assert (np.abs(R[:, done].T - contrasts).max(axis=1) <= 1e-12 * size).all()
    assert np.isnan(P[:, ~done]).all()  # nothing is written
    assert np.isnan(R[:, ~done]).all()


@pytest.mark.parametrize("name", NAMES)
def test_the_law_is_widened_nowhere_in_a_panel_with_a_table(name):
    law = NumericLaw.of(draws(name, 2000), "x")
    x = np.linspace(law.values[0] - law.spread, law.values[-1] + law.spread, 1001)
    _, _, done = measured(each_cut(law, 2), x)
    widening = temper(law.values, law.shares, law.unit, x).widening
    assert (widening[done] == 1.0).all()
    if name in ("skewed", "heavy", "three values"):
        assert (widening[~done] > 1.0).any()


# ---- the bound of the truncation


def random_panel(rng):
    """Weights that add up to 1, and y with mean 0."""
    m = rng.integers(2, 30)
    weights = rng.dirichlet(np.full(m, rng.choice([0.1, 1.0])))
    y = rng.normal(size=m) * rng.choice([0.1, 1.0, 3.0])
    return weights, y - weights @ y


def test_the_bound_holds_for_the_series_and_the_variance(rng):
    worst, nearest = 0.0, np.inf
    for _ in range(60):
        weights, y = random_panel(rng)
        error, least = truncation(weights, y)
        with mp.workdps(60):
            e, places = list(map(mpf, weights)), list(map(mpf, y))
            for d in map(mpf, (-0.5, -0.3, 0.2, 0.5)):
                sums = [
                    mp.fsum(
                        w * v**j * mp.exp(d * v) for w, v in zip(e, places, strict=True)
                    )
                    for j in range(3)
                ]
                cut = mp.fsum(
                    w * v**2 * (d * v) ** q / mp.factorial(q)
                    for w, v in zip(e, places, strict=True)
                    for q in range(panels.DEGREE - 1)
                )
                off = float(abs(sums[2] - cut))
                variance = float(sums[2] / sums[0] - (sums[1] / sums[0]) ** 2)
                worst = max(worst, off / error)
                nearest = min(nearest, variance / least)
    assert 0.05 < worst <= 1.0  # a bound, and not a loose one
    assert 1.0 <= nearest < 3.0


def test_terms_of_a_table_are_at_most_seven_times_their_sum(rng):
    """γ² (ln γ)²² / 22! ≤ E_2 / V: the terms need no bound of their own."""
    for _ in range(400):
        weights, y = random_panel(rng)
        error, least = truncation(weights, y)
        grown = weights @ np.exp(0.5 * np.abs(y))
        bound = grown**2 * np.log(grown) ** 22 / math.factorial(22)
        assert bound * least <= error * (1 + 1e-9)
    assert 7.1**2 * np.log(7.1) ** 22 / math.factorial(22) > panels.TRUNCATION


def test_panels_without_a_table():
    even = np.full(2000, 1 / 2000)
    y = np.linspace(-3, 3, 2000)
    assert has_table(even, y, 0.02)
    apart = y + np.where(y < 0, -8.0, 8.0)
    assert not has_table(even, apart, 0.02)  # two groups, far apart
    one = np.array([0.985, *np.full(15, 0.001)])
    position = np.array([0.0, *np.linspace(-1, 1, 15)])
    assert not has_table(one, position, 0.02)  # the law may be widened
    assert has_table(one, position, 0.005)
    assert not has_table(np.array([0.5, 0.5]), np.zeros(2), 0.02)  # no spread


# ---- as part of slopes


def model(rng, n=1500):
    """Boosted trees on columns of each kind, their table, and new rows."""
    lightgbm = pytest.importorskip("lightgbm")
    names = ("normal", "skewed", "counts", "heavy", "zeros", "far groups")
    X = np.stack([rng.permutation(draws(name, n)) for name in names], axis=1)
    X[:, 5] = X[:, 5] > 0  # two values
    X[rng.random(n) < 0.1, 0] = np.nan
    y = np.nan_to_num(X[:, 0]) * X[:, 2] + np.sin(X[:, 1]) + X[:, 4] * X[:, 5]
    fitted = lightgbm.LGBMRegressor(n_estimators=30, verbose=-1, n_jobs=1)
    fitted.fit(X, y)
    return fitted, X, X[rng.permutation(n)[:90]] + np.array([0.01, 0, 0, 0, 0.1, 0])


def means(fitted, X):
    """Means and contrasts under the law of the table, with nothing made yet."""
    read = po.wrap(fitted, data=X).boxes
    return Means(read, DataLaw(Reference.of_points(X)))


def test_rows_are_the_same_in_any_company_and_order(kernels, rng):
    del kernels
    fitted, X, rows = model(rng)
    values, slopes = means(fitted, X).of(rows)
    fresh = means(fitted, X)
    for r in rng.permutation(len(rows)):
        value, slope = fresh.of(rows[[r]])
        assert value[0] == values[r]
        np.testing.assert_array_equal(slope[0], slopes[r])
    order = rng.permutation(len(rows))
    np.testing.assert_array_equal(fresh.of(rows[order])[1], slopes[order])


def random_model(seed):
    """A forest or boosted trees, some of them deep, on random columns, and rows."""
    rng = np.random.default_rng(seed)
    n, D = int(rng.integers(20, 2000)), int(rng.integers(1, 12))
    X = np.stack(
        [rng.permutation(draws(rng.choice(NAMES[:8]), n)) for _ in range(D)], 1
    )
    X[:, rng.random(D) < 0.2] = 1.0  # constant
    y = np.tanh(X) @ rng.normal(size=D) + np.tanh(X[:, 0] * X[:, -1])
    kinds = (RandomForestRegressor(8), ExtraTreesRegressor(8, max_depth=6))
    fitted = [*kinds, HistGradientBoostingRegressor(max_iter=20)][seed % 3]
    if seed % 3 < 2:
        fitted.set_params(random_state=seed)
    fitted.fit(X, y)
    return fitted, X, X[:40] + rng.normal(size=D) * rng.choice([0.0, 0.1, 10.0])


@pytest.mark.skipif(why_no_kernels() is not None, reason=str(why_no_kernels()))
@pytest.mark.sampled(4)
@pytest.mark.parametrize("seed", range(60))
def test_both_kernels_and_no_tables_give_the_same_slopes(seed, monkeypatch):
    fitted, X, rows = random_model(seed)
    result = []
    for choice in ("c", "numpy"):
        monkeypatch.setenv("PROPOPT_KERNELS", choice)
        result.append(means(fitted, X).of(rows))
    monkeypatch.setattr(Cuts, "pays", False)
    result.append(means(fitted, X).of(rows))
    # of a slope over the whole range, or of the steepest: parts may cancel
    spread = [law.spread or 1.0 for law in DataLaw(Reference.of_points(X)).columns]
    sizes = np.maximum(np.abs(result[2][1]).max(axis=0), np.ptp(result[2][0]) / spread)
    for mine, theirs in ((result[0], result[1]), (result[0], result[2])):
        np.testing.assert_allclose(mine[0], theirs[0], rtol=1e-12, atol=1e-12)
        assert (np.abs(mine[1] - theirs[1]) <= 1e-12 * sizes).all()


@pytest.mark.usefixtures("kernels")
def test_threads_share_tables(rng):
    fitted, X, rows = model(rng)
    _, slopes = means(fitted, X).of(rows)
    shared = means(fitted, X)
    _ = shared.panels
    with ThreadPoolExecutor(8) as pool:
        result = list(pool.map(lambda _: shared.of(rows)[1], range(8)))
    for each in result:
        np.testing.assert_array_equal(each, slopes)


def test_slopes_of_large_tables_are_the_same_by_threads(rng, monkeypatch):
    X = rng.normal(size=(300, 4))
    model = RandomForestRegressor(n_estimators=5, random_state=0)
    wrapped = po.wrap(model.fit(X, X[:, 0] * X[:, 1]), data=X)

    def slopes():
        return po.functions.smoothed(wrapped, law="data", data=X).estimate(X).values

    alone = slopes()
    # blocks of 7 rows, 3 of them by threads at once
    monkeypatch.setattr(data_law, "ROWS_AT_ONCE", Budget(2**30, n_rows=7))
    monkeypatch.setattr(data_law, "_BLOCKS_BY_THREADS", 3)
    for module in (data_law, resources):
        monkeypatch.setattr(module, "SERIAL_BELOW", 0)
    np.testing.assert_array_equal(slopes(), alone)


def test_tables_are_made_anew_after_a_copy_between_processes(rng):
    fitted, X, rows = model(rng)
    made = means(fitted, X)
    values, slopes = made.of(rows)
    sent = pickle.dumps(made)
    assert len(sent) < made.panels.moments.nbytes / 2
    again = pickle.loads(sent)
    np.testing.assert_array_equal(again.of(rows)[0], values)
    np.testing.assert_array_equal(again.of(rows)[1], slopes)


def test_tables_keep_to_their_budget_small_ones_first(rng):
    fitted, X, rows = model(rng)
    whole = means(fitted, X)
    parts = sorted(whole.panels.columns, key=lambda own: own.n_bytes)
    assert sum(own.n_bytes for own in parts) == whole.panels.moments.nbytes
    most = parts[0].n_bytes + parts[1].n_bytes
    assert Panels.of(parts, Budget(most)).columns == tuple(parts[:2])
    assert Panels.of(parts, Budget(most - 1)).columns == tuple(parts[:1])
    few = means(fitted, X)
    few.__dict__["panels"] = Panels.of(parts, Budget(most))
    np.testing.assert_allclose(
        few.of(rows)[1], whole.of(rows)[1], rtol=1e-9, atol=1e-12
    )


def test_columns_of_few_values_and_few_rows():
    for values in ([1.0], [1.0, 2.0], []):
        law = NumericLaw.of(np.array(values), "x")
        assert not Cuts(0, 0, law, np.arange(2), *[np.arange(1)] * 3).pays
    law = NumericLaw.of(np.arange(600.0), "x")
    assert Cuts(0, 0, law, np.arange(256), *[np.arange(1)] * 3).pays
    assert not Cuts(0, 0, law, np.arange(300), *[np.arange(1)] * 3).pays  # too many
    assert least_spread_share(law.shares) == 0.02
