"""Functions of sets of words against sums over all sets, and what is made of them."""

from itertools import product

import numpy as np
import pytest
from coalitions import shapley_by_definition
from subset_oracle import assert_means, masks

from papers.text_lime.set_functions import conjunctions, single_words
from propopt.lime.text.word_limits import WordRegression
from propopt.structures.subsets import sizes
from propopt.structures.subsets.conjunctions import Conjunctions, Enumerated
from propopt.structures.subsets.sets import (
    Blocks,
    random_sets,
    sets_of_size,
    word_shapley,
)
from propopt.structures.subsets.sums import (
    AddedSets,
    NormalisedSum,
    exponential_sum,
)


@pytest.mark.parametrize("power", [0.5, 1.0])
@pytest.mark.parametrize("smallest", [1.0, 0.3, 1e-2, 1e-4, 1e-8, 1e-14])
def test_powers_are_within_the_stated_error(power, smallest):
    rates, weights = exponential_sum(power, smallest)
    R = np.geomspace(smallest, 1.0, 4001)
    result = np.exp(-np.outer(R, rates)) @ weights
    assert np.abs(result * R**power - 1.0).max() < 5e-15


@pytest.mark.parametrize(("smallest", "n_nodes"), [(1e-2, 48), (1e-4, 66), (1e-8, 101)])
def test_nodes_are_as_few_as_stated(smallest, n_nodes):
    assert len(exponential_sum(0.5, smallest)[0]) == n_nodes
    assert len(exponential_sum(1.0, smallest)[0]) < n_nodes


# ---- normalised sums, and plain ones
ATOL = 1e-12


def words(coefficients, tfidf, power=0.5):
    """λ · φ of words with these TF-IDF, L2-normalised, or L1."""
    c, d = np.asarray(tfidf, float), len(tfidf)
    sizes = c**2 if power == 0.5 else c
    blocks = single_words(np.asarray(coefficients) * c, sizes, np.arange(d))
    return NormalisedSum(0.0, (blocks,), power)


def random_sum(rng, d, power, b=1, n_blocks=2):
    """Blocks of b words and single words, one of them unknown, in any order."""
    order = rng.permutation(d)
    shared, single = np.split(order, [n_blocks * b])
    values = rng.normal(size=(n_blocks, 2**b))
    sizes = rng.random((n_blocks, 2**b))
    values[:, 0] = sizes[:, 0] = 0.0
    single_values, size = rng.normal(size=len(single)), rng.random(len(single))
    single_values[0] = size[0] = 0.0
    blocks = (
        Blocks(shared.reshape(n_blocks, b), values, sizes),
        single_words(single_values, size, single),
    )
    return NormalisedSum(0.7, blocks, power)


LIMITS = {  # intercept and coefficients of five words
    0.25: [0.27792751, 0.18777421, -0.42327140, 0.16393258, -0.21627130, 1.48478848],
    0.05: [0.36485768, 0.15168170, -0.30593364, 0.11750019, -0.23687729, 1.35324362],
    np.inf: [0.10382642, 0.33770291, -0.54884944, 0.24419204, -0.16498153, 1.61679857],
}
ALIKE = {np.inf: (0.2655, 1.5984, -0.0015), 0.25: (0.3714, 1.3057, -0.0012)}


def test_known_coefficients_of_five_words_and_of_537_alike():
    five = WordRegression(words([1, -1, 0.5, 0, 2], [1, 2, 3, 4, 5]))
    for nu, expected in LIMITS.items():
        limits = five.at([nu])
        result = [limits.intercept[0], *limits.coefficients[0]]
        assert result == pytest.approx(expected, abs=5e-9)
    alike = WordRegression(words(np.eye(537)[0], np.ones(537)))
    for nu, ratios in ALIKE.items():
        limits = alike.at([nu])
        result = np.array([limits.intercept[0], *limits.coefficients[0, :2]])
        assert result * np.sqrt(537.0) == pytest.approx(ratios, abs=5e-5)


def all_sets(rng):
    """Functions whose means are held against sums over all sets, and their digits."""
    for power, b in product((0.5, 1.0), (1, 2, 4)):
        yield random_sum(rng, 9, power, b), ATOL
    for spread in (1.0, 1e3, 1e7):
        yield words(rng.normal(size=10), np.exp(rng.random(10) * np.log(spread))), ATOL
    values, order = rng.normal(size=(2, 8)), rng.permutation(9)
    values[:, 0] = 0.0
    blocks = (
        Blocks(order[:6].reshape(2, 3), values, np.zeros((2, 8))),
        single_words(np.array([1.0, 0.0]), np.zeros(2), order[6:8]),
    )
    yield Conjunctions.of_blocks(0.2, blocks, 9), 1e-13
    whole = Blocks(np.array([[2, 0, 1]]), values[:1], np.zeros((1, 8)))
    yield Conjunctions.of_blocks(0.0, (whole,), 3), 1e-13


def test_means_are_those_over_all_sets(rng):
    for f, atol in all_sets(rng):
        bits = masks(f.n_words)
        assert_means(f, f.value(bits), bits, atol=atol)


def test_work_in_parts_is_the_same(rng, monkeypatch):
    f, weights = random_sum(rng, 30, 0.5, 2), rng.random((2, 31))
    means, moments = f.mean_by_size(), f.first_moments(weights)
    monkeypatch.setattr(sizes, "_AT_ONCE", 200)
    again = NormalisedSum(f.base, f.blocks, f.power)
    assert again.mean_by_size() == pytest.approx(means, rel=1e-13, abs=1e-15)
    assert again.first_moments(weights) == pytest.approx(moments, rel=1e-12, abs=1e-15)
    assert (again.mean_by_size() == f.mean_by_size()).all()  # before or after kept


def recursed(values, sizes, power, forced=None):
    """E_m of Σ v / (Σ r)^s, one word after the other.

    With e_m the mean of Π a over sets of m of t words, one word more makes of it
    (1 − m/t) e_m + (m/t) a e_(m − 1), and so for the mean of Π a Σ v. A forced word is
    in all sets.
    """
    v, r = (np.asarray(x, np.longdouble) for x in (values, sizes))
    r, v = r / r.sum(), v / r.sum() ** power
    rates, weights = exponential_sum(power, float(r[r > 0].min()))
    rates = rates[:, None]
    plain = np.ones((len(rates), 1), np.longdouble)
    tilted = 0 * plain
    if forced is not None:
        plain = np.exp(-rates * r[forced])
        tilted = v[forced] * plain
        r, v = np.delete(r, forced), np.delete(v, forced)
    for t, (size, value) in enumerate(zip(r, v, strict=True), start=1):
        share, a = np.arange(t + 1) / np.longdouble(t), np.exp(-rates * size)
        more = [np.pad(x, ((0, 0), (1, 0))) for x in (plain, tilted)]
        less = [np.pad(x, ((0, 0), (0, 1))) for x in (plain, tilted)]
        plain = (1 - share) * less[0] + share * a * more[0]
        tilted = (1 - share) * less[1] + share * a * (more[1] + value * more[0])
    return weights @ tilted


MANY = {  # TF-IDF: spread, alike, one that is most of the text, a few unknown
    "spread": lambda rng: 10.0 ** rng.uniform(-2, 0, 150),
    "alike": lambda rng: rng.choice([1.0, 1.7, 2.0, 30.0], 250),
    "one": lambda rng: np.append(1.0, 1e-4 * rng.random(80)),
    "unknown": lambda rng: np.append(np.zeros(3), rng.random(90)),
}


@pytest.mark.parametrize("tfidf", MANY)
@pytest.mark.parametrize("power", [0.5, 1.0])
def test_many_words_are_as_one_word_after_the_other(rng, tfidf, power):
    """To 1e-12 of the largest mean over sizes of Σ |v| / (Σ r)^s."""
    c = rng.permutation(MANY[tfidf](rng))
    d, coefficients = len(c), rng.normal(size=len(c))
    f, v = words(coefficients, c, power), coefficients * c
    r = c**2 if power == 0.5 else c
    size = float(recursed(np.abs(v), r, power).max())
    expected = recursed(v, r, power).astype(float)
    np.testing.assert_allclose(f.mean_by_size(), expected, rtol=0, atol=1e-12 * size)
    weights = rng.random((2, d + 1))
    moments, total = f.first_moments(weights), weights.sum(axis=1)
    for j in (0, d // 2, int(np.argmax(c))):
        alone = recursed(v, r, power, j) * np.arange(1, d + 1) / d
        wrong = np.abs(moments[:, j] - weights[:, 1:] @ alone.astype(float))
        assert (wrong <= 1e-12 * size * total).all()


@pytest.mark.parametrize("power", [0.5, 1.0])
def test_blocks_whose_words_do_not_interact_are_single_words(rng, power):
    d = 120
    c, coefficients = rng.random(d) + 0.05, rng.normal(size=d)
    alone = words(coefficients, c, power)
    pairs = rng.permutation(d).reshape(-1, 2)
    v, r = (coefficients * c)[pairs], (c**2 if power == 0.5 else c)[pairs]
    table = [
        np.stack([0.0 * x[:, 0], x[:, 0], x[:, 1], x.sum(axis=1)], axis=1)
        for x in (v, r)
    ]
    paired = NormalisedSum(0.0, (Blocks(pairs, *table),), power)
    weights = rng.random((3, d + 1))
    atol = 1e-12 * np.abs(coefficients).sum()
    for x, y in (
        (paired.mean_by_size(), alone.mean_by_size()),
        (paired.first_moments(weights), alone.first_moments(weights)),
    ):
        np.testing.assert_allclose(x, y, rtol=0, atol=atol)


def test_documents_without_a_feature_have_the_base():
    f = NormalisedSum(0.3, (single_words(np.zeros(4), np.zeros(4), np.arange(4)),), 0.5)
    assert (f.value(np.eye(4)) == 0.3).all()
    assert f.mean_by_size() == pytest.approx(np.full(5, 0.3))
    assert f.first_moments(np.eye(5)) == pytest.approx(
        0.3 * np.outer(np.arange(5) / 4, np.ones(4))
    )


# ---- conjunctions, and what is enumerated
def drawn(d: int, n: int = 12, seed: int = 0) -> Conjunctions:
    """Random leaves, of none up to nine of d words."""
    rng = np.random.default_rng(seed)
    orders = [rng.permutation(d).tolist() for _ in range(n)]
    cuts = np.sort(rng.integers(0, min(d, 9) + 1, (n, 2)), axis=1).tolist()
    present = [order[:p] for order, (p, _) in zip(orders, cuts, strict=True)]
    absent = [order[p:q] for order, (p, q) in zip(orders, cuts, strict=True)]
    return conjunctions(rng.normal(size=n).tolist(), present, absent, d, base=0.7)


def plainly(f: Conjunctions, bits: np.ndarray) -> np.ndarray:
    """The formula, a leaf after the other."""
    total = np.full(len(bits), f.base)
    for value, path in zip(f.values, f.paths, strict=True):
        word, is_retained = np.divmod(path[path >= 0], 2)
        total += value * (bits[:, word] == is_retained).all(axis=1)
    return total


@pytest.mark.parametrize("d", [1, 2, 3, 6, 9])
def test_conjunctions(d):
    f, bits = drawn(d), masks(d)
    assert_means(f, plainly(f, bits), bits, atol=1e-13)


def test_enumerated_added_and_none():
    for d in (1, 2, 7):
        bits, slopes = masks(d), np.arange(1.0, d + 1)
        f = Enumerated.of(lambda z, slopes=slopes: np.sin(z @ slopes), d)
        assert_means(f, np.sin(bits @ slopes), bits, atol=1e-13)
    bits, first, second = masks(5), drawn(5), drawn(5, seed=1)
    both = AddedSets([(2.0, first), (-0.5, second)], base=np.arange(6.0) ** 2)
    values = 2.0 * plainly(first, bits) - 0.5 * plainly(second, bits)
    assert_means(both, values + bits.sum(axis=1) ** 2, bits, atol=1e-13)
    none = conjunctions([], [], [], 3, base=2.0)
    assert_means(none, np.full(8, 2.0), masks(3))


# ---- Shapley values from means over sizes, against all orders
@pytest.mark.parametrize("d", [1, 2, 3, 6, 9])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_values_are_those_of_all_sets(d, seed):
    f = drawn(d, seed=seed)
    expected = shapley_by_definition(f.value, np.ones((1, d)), np.zeros((1, d)))[0]
    np.testing.assert_allclose(word_shapley(f), expected, atol=1e-12)


@pytest.mark.parametrize("d", [2, 29, 300, 2000])
def test_values_add_up_to_the_text_less_the_empty_text(d):
    f = drawn(d, 40, seed=d)
    ends = f.value(np.array([np.ones(d), np.zeros(d)]))
    total = word_shapley(f).sum()
    assert total == pytest.approx(ends[0] - ends[1], abs=1e-10)


# ---- sets of one size
@pytest.mark.parametrize("size", [0, 1, 2, 3, 4, 5])
def test_all_sets_of_a_size_are_there_once(size):
    bits = sets_of_size(5, size)
    assert (bits.sum(axis=1) == size).all()
    assert len(np.unique(bits, axis=0)) == len(bits)
    assert len(bits) == [1, 5, 10, 10, 5, 1][size]


def test_random_sets_have_their_sizes_and_all_words_alike():
    """Counts of words within 5 deviations: once in 3e5 seeds; this one is fixed."""
    sizes = np.repeat([0, 2, 5], 4000)
    bits = random_sets(5, sizes, np.random.default_rng(0))
    assert (bits.sum(axis=1) == sizes).all()
    shares = bits[sizes == 2].mean(axis=0)
    assert np.abs(shares - 0.4).max() < 5 * np.sqrt(0.24 / 4000)
