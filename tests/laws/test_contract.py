"""One contract for laws and families: each family under each law, and their draws.

A family or a law that is in its catalogue (``tests/support``) is under all tests here.
"""

import tracemalloc
from dataclasses import replace
from functools import cache
from importlib import import_module
from itertools import product
from pkgutil import iter_modules

import numpy as np
import pytest
from family_catalogue import FAMILIES, WORD_FUNCTIONS, is_closed, is_of
from law_catalogue import COLUMNS, LAWS, law_of, masses_at, nodes_of
from subset_oracle import assert_means, masks

from propopt.base.resources import Budget
from propopt.laws.data_law import DataLaw, Means
from propopt.lime import laws as laws_of_lime
from propopt.lime.exact_limits import ExactLimits
from propopt.lime.laws.lime_law import GlimeLaw, LimeLaw
from propopt.lime.text.word_limits import TextLaw, WordRegression
from propopt.structures.boxes.sets import Sets
from propopt.structures.products import families
from propopt.structures.products.families import Bumps
from propopt.structures.products.normals import Normals
from propopt.structures.products.sums import SumOfProducts


WIDTHS = (0.8, 0.02, np.inf)
"""Of kernels; at 0.02 the weight of all bins but one is e^−1250 of that one."""

TOLERANCE = 1e-9
"""Of E |g|: quadratures of curves agree to 1e-10, and ends that are 2,000 narrow
deviations from a mean leave 1e-10 of their squares."""

ROUNDING = 1e-15
"""Of probabilities, which are differences of numbers up to 1, in their own units."""

PAIRS = [
    (law, family)
    for law, family in product(LAWS, FAMILIES)
    if law != "noise" or is_closed(FAMILIES[family])
]


def measured(structure, law, rows, width):
    """Means (n,) and contrasts (n, D)."""
    if not isinstance(law, LimeLaw):
        return Means(structure, law).of(rows)
    limits = ExactLimits(structure, law).of(rows, np.full(len(rows), width))
    return limits.mean, limits.coefficients


def rows_of(column):
    """The first values and the last, each once; some column has missing ones there."""
    values = COLUMNS[column]
    return np.unique([*values[:5], values[-1]])[:, None]


@cache
def masses(law, column, x, width):
    own = law_of(law, column)
    if isinstance(own, LimeLaw) and law.startswith("glime"):
        width = own.kernel_width if np.isinf(width) else width
    return masses_at(own, x, width)


def total(g, mass):
    """What has no mass does not count, though a factor may be NaN there."""
    return g[:, mass != 0.0] @ mass[mass != 0.0]


def expected(family, law, column, x, width):
    """Mean, contrast, and the sizes that rounding is of, (4, U)."""
    own = masses(law, column, x, width)
    g = family.at(own.values)
    one, zero = own.contrast
    return np.array(
        [
            total(g, own.law),
            total(g, one) - total(g, zero),
            total(np.abs(g), own.law),
            total(np.abs(g), one + zero),
        ]
    )


@pytest.mark.parametrize(("law", "name"), PAIRS)
@pytest.mark.filterwarnings("ignore:invalid value")
def test_means_and_contrasts_are_sums_over_values(law, name):
    family = FAMILIES[name]
    for column in COLUMNS:
        if not is_of(family, column == "codes"):
            continue
        own, rows = law_of(law, column), rows_of(column)
        widths = WIDTHS if isinstance(own, LimeLaw) else (np.nan,)
        for u, width in product(range(len(family)), widths):
            factor = family.take(np.array([u]))
            alone = SumOfProducts.additive(0.0, np.ones(1), factor, 1)
            mean, contrast = measured(alone, own, rows, width)
            for n, x in enumerate(rows[:, 0]):
                wanted = expected(factor, law, column, float(x), width)[:, 0]
                for got, value, size in (
                    (mean[n], wanted[0], wanted[2]),
                    (contrast[n, 0], wanted[1], wanted[3]),
                ):
                    position = f"{column} at {x}, ν = {width}, factor {u}"
                    assert np.isnan(got) == np.isnan(value), position
                    assert not abs(got - value) > TOLERANCE * size + ROUNDING, position


def test_what_is_in_no_catalogue_is_under_no_contract():
    """A class of factors has ``at`` and ``under``; laws are those of the package."""
    own = [each for each in vars(families).values() if isinstance(each, type)]
    own = [each for each in own if hasattr(each, "under")]
    protocols = {families.Factors, families.ClosedFactors}
    assert {*own} - protocols == {type(each) for each in FAMILIES.values()} - {Sets}
    X = COLUMNS["numbers"][:, None]
    catalogued = {type(make(X, ())) for make in LAWS.values()}
    laws = {law for law in LimeLaw.__subclasses__() if law.__module__ in IN_PACKAGE}
    assert laws <= catalogued


# imported, so that a law is known before its name is in `propopt.lime`
IN_PACKAGE = {
    import_module(f"{laws_of_lime.__name__}.{each.name}").__name__
    for each in iter_modules(laws_of_lime.__path__)
}


# ---- Families by themselves, and together in sums of products
INF = np.inf
NORMALS = [
    (0.0, 1.0, -INF, INF),
    (0.3, 2.0, -1.0, 4.0),
    (1.5, 0.5, -INF, 0.5),
    (-8.0, 1.0, 0.25, 1.25),
    (-25.0, 1.0, 0.25, INF),
    (40.0, 1.0, 0.1, 0.2),
    (100.0, 3.0, 99.0, 102.0),
    (2.0, 0.7, 2.0, 2.0 + 1e-6),
]
"""Mean, sd and ends of normals, some of whose ends are far from their means."""

OF_NUMBERS = [name for name, family in FAMILIES.items() if is_of(family, coded=False)]


@pytest.mark.parametrize("name", OF_NUMBERS)
def test_means_under_truncated_normals_are_those_of_quadrature(name):
    family = FAMILIES[name]
    means = family.under(Normals.of(*np.transpose(NORMALS)))
    for k, normal in enumerate(NORMALS):
        values, log_masses = nodes_of(*normal, normal[0])
        g, mass = family.at(values), np.exp(log_masses)
        size = np.abs(g) @ mass
        assert (np.abs(means[:, k] - g @ mass) <= TOLERANCE * size + ROUNDING).all()
        alone = family.under(Normals.of(*normal))[:, 0]
        assert (np.abs(alone - means[:, k]) <= TOLERANCE * size).all()


@pytest.mark.parametrize("name", FAMILIES)
def test_families_are_taken_apart_and_looked_up_in_any_shape(name):
    family, some = FAMILIES[name], np.array([1, 0])
    values = np.array([[0.0, 1.0, 2.0], [3.0, 1.0, 0.0]])
    g = family.at(values)
    assert g.shape == (len(family), 2, 3)
    assert len(np.unique(g, axis=0)) > 1
    np.testing.assert_array_equal(family.at(values[0]), g[:, 0])
    taken = family.take(some)
    np.testing.assert_array_equal(taken.column, family.column[some])
    np.testing.assert_array_equal(taken.at(values), g[some])
    if is_of(family, coded=False):
        normals = Normals.of(values, 0.4, -1.0, 9.0)
        means = family.under(normals)
        assert means.shape == g.shape
        np.testing.assert_array_equal(taken.under(normals), means[some])
        chosen = np.arange(len(family)) == 1
        np.testing.assert_array_equal(family.take(chosen).at(values), g[[1]])


# ---- Draws of each law, and memory
N_DRAWS = 40_000


def are_near(means, shares):
    """Whether means of draws in [0, 1] are as far as Bernstein's inequality lets them.

    As Var ≤ mean, one is farther once in e^18 / 2 = 3e7 comparisons; there are some
    5,000 here, so that one run in 6,000 seeds would be a false alarm.
    """
    most = 6.0 * np.sqrt(shares / N_DRAWS) + 12.0 / N_DRAWS
    return bool((np.abs(means - shares) <= most).all())


def ways_to_draw(law, rows, rng):
    """Values, bits and weights (n, S) of draws, and the mean of the weights (n,)."""
    if isinstance(law, DataLaw):
        values = law.draws(rows, rng.random((N_DRAWS, 1)))[..., 0]
        yield values, np.ones(values.shape), np.ones(values.shape), np.ones(len(rows))
    else:
        assert isinstance(law, LimeLaw)
        C = np.exp(law.log_weights(rows, law.widths(rows)))
        weighted = law if isinstance(law, GlimeLaw) else GlimeLaw(law)
        for drawing, mass in ((law, C), (weighted, np.ones(len(rows)))):
            drawn = drawing.draw(rows, N_DRAWS, rng)
            yield drawn.samples[..., 0], drawn.bits[..., 0], drawn.weights, mass


def shares_by_bits(law, ends, rows):
    """Probabilities of v ≤ end and of NaN, with the bit 1 and with the bit 0."""
    low, high = np.append(np.full(len(ends), -INF), 0.0), np.append(ends, 0.0)
    sets = Sets.of_numbers(np.zeros(len(low), int), low, high, high == 0.0)
    sets = replace(sets, missing=np.arange(len(low)) == len(ends))
    if isinstance(law, LimeLaw):
        alone = SumOfProducts.additive(0.0, np.ones(len(sets)), sets, 1)
        result = ExactLimits(alone, law).factor_means(rows, law.widths(rows))
        return result.alpha * result.one, result.complement * result.zero
    mean, _ = law.columns[0].mixing(sets)(rows[:, 0])
    return mean, np.zeros(mean.shape)


@pytest.mark.parametrize("law", [law for law in LAWS if law != "noise"])
def test_draws_have_the_shares_that_means_have(law):
    """E π 1[V ≤ v, bit] at quantiles, of samples with weights and of those of Q."""
    for k, (column, values) in enumerate(COLUMNS.items()):
        own, rows = law_of(law, column), rows_of(column)[[0, -1]]
        known = values[~np.isnan(values)]
        ends = np.unique(np.quantile(known, np.arange(9) / 8)) if len(known) else known
        one, zero = shares_by_bits(own, ends, rows)
        for values, bits, weights, mass in ways_to_draw(
            own, rows, np.random.default_rng(k)
        ):
            inside = [values <= end for end in ends] + [np.isnan(values)]
            for bit, wanted in ((1.0, one), (0.0, zero)):
                drawn = [(weights * (bits == bit) * own).mean(axis=1) for own in inside]
                assert are_near(np.array(drawn), mass * wanted), column


@pytest.mark.sampled(3)
@pytest.mark.parametrize("law", LAWS)
def test_a_thousand_columns_take_no_more_memory_than_blocks_of_rows_may(law):
    """32 rows at a time, each with 8 numbers of a factor and the products' own.

    What is made once besides is a few tables of the size of the rows.
    """
    D, U, N = 1000, 4_000, 64
    rng = np.random.default_rng(0)
    X, column = rng.normal(size=(N, D)), np.tile(np.arange(D), U // D)
    bumps = Bumps(column, rng.normal(size=U), np.full(U, 2.0))
    f = SumOfProducts.additive(0.5, np.ones(U), bumps, D)
    most = 32 * (8 * 8 * U + f.row_bytes) + 4 * X.nbytes
    own = LAWS[law](X, ())
    tracemalloc.start()
    mean, contrasts = measured(f, own, X, 0.8)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < most, law
    assert np.isfinite(mean).all()
    assert np.abs(contrasts).min() > 0.0


def test_factors_in_parts_have_the_means_that_they_have_together(monkeypatch):
    own, rows = law_of("data", "numbers"), rows_of("numbers")
    whole = own.columns[0].mixing(FAMILIES["bumps"])(rows[:, 0])
    monkeypatch.setattr("propopt.laws.column_laws.BATCH_BUDGET", Budget(1))
    parts = own.columns[0].mixing(FAMILIES["bumps"])(rows[:, 0])
    for one, other in zip(parts, whole, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-13, atol=1e-15)


# ---- Texts: functions of sets of words under the law of deleted words
@pytest.mark.parametrize("name", WORD_FUNCTIONS)
def test_functions_of_words_have_the_means_of_all_sets(name):
    f = WORD_FUNCTIONS[name]
    bits = masks(f.n_words)
    assert_means(f, f.value(bits), bits, atol=1e-12)


@pytest.mark.parametrize("nu", [0.02, 0.25, INF])
@pytest.mark.parametrize("name", WORD_FUNCTIONS)
def test_limits_of_words_are_weighted_least_squares_on_all_sets(name, nu):
    """At 0.02 weights are e^−32 from size to size: roots of them leave 9 digits."""
    f = WORD_FUNCTIONS[name]
    bits = masks(f.n_words)[:-1]  # the text itself is no sample
    sizes = bits.sum(axis=1)
    logs = TextLaw(nu).log_weights(f.n_words)[sizes] - np.log(np.bincount(sizes)[sizes])
    root = np.exp(0.5 * (logs - logs.max()))
    Z = np.column_stack([np.ones(len(bits)), bits])
    expected = np.linalg.lstsq(root[:, None] * Z, root * f.value(bits), rcond=1e-15)[0]
    result = WordRegression(f).at(np.array([nu]))
    got = np.append(result.intercept, result.coefficients[0])
    size = np.abs(f.value(bits)).max()
    np.testing.assert_allclose(
        got, expected, rtol=0, atol=size * (1e-6 if nu < 0.1 else 1e-11)
    )


@pytest.mark.parametrize("nu", [0.1, 0.25, INF])
def test_deleted_words_have_the_moments_that_limits_have(nu):
    law, d = TextLaw(nu), 6
    bits, weights = law.draw(d, N_DRAWS, np.random.default_rng(0))
    known = law.bits(d)
    C, alpha = np.exp(known.log_weight[0]), known.share[0]
    assert are_near(weights.mean(), C)
    for retained in bits.T:
        assert are_near((weights * retained).mean(), C * alpha)
