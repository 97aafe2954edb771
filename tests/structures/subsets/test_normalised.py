import numpy as np
import pytest
from subset_oracle import assert_means, masks

from propopt.lime.text.text_reading import WordRegression
from propopt.structures.subsets import sets, sums
from propopt.structures.subsets.sets import Blocks
from propopt.structures.subsets.sums import NormalisedSum


ATOL = 1e-12
NU = np.array([0.25, 0.05, np.inf])


def words(coefficients, tfidf, power=0.5):
    """λ · φ of words with these TF-IDF, L2-normalised, or L1."""
    c, d = np.asarray(tfidf, float), len(tfidf)
    sizes = c**2 if power == 0.5 else c
    blocks = Blocks.of_words(np.asarray(coefficients) * c, sizes, np.arange(d))
    return NormalisedSum(0.0, (blocks,), power)


def random_sum(rng, d, power, b=1, n_blocks=2):
    """Blocks of b words and single words, one of them unknown, in any order."""
    order = rng.permutation(d)
    shared, single = np.split(order, [n_blocks * b])
    values = rng.normal(size=(n_blocks, 2**b))
    sizes = rng.random((n_blocks, 2**b))
    values[:, 0] = sizes[:, 0] = 0.0
    own, size = rng.normal(size=len(single)), rng.random(len(single))
    own[0] = size[0] = 0.0
    blocks = (
        Blocks(shared.reshape(n_blocks, b), values, sizes),
        Blocks.of_words(own, size, single),
    )
    return NormalisedSum(0.7, blocks, power)


@pytest.mark.parametrize(
    ("nu", "intercept", "coefficients"),
    [
        (
            0.25,
            0.27792751,
            [0.18777421, -0.42327140, 0.16393258, -0.21627130, 1.48478848],
        ),
        (
            0.05,
            0.36485768,
            [0.15168170, -0.30593364, 0.11750019, -0.23687729, 1.35324362],
        ),
        (
            np.inf,
            0.10382642,
            [0.33770291, -0.54884944, 0.24419204, -0.16498153, 1.61679857],
        ),
    ],
)
def test_five_words_have_the_known_coefficients(nu, intercept, coefficients):
    limits = WordRegression(words([1, -1, 0.5, 0, 2], [1, 2, 3, 4, 5])).at([nu])
    assert limits.intercept == pytest.approx([intercept], abs=5e-9)
    assert limits.coefficients[0] == pytest.approx(coefficients, abs=5e-9)


@pytest.mark.parametrize(
    ("nu", "ratios"),
    [(np.inf, (0.2655, 1.5984, -0.0015)), (0.25, (0.3714, 1.3057, -0.0012))],
)
def test_one_word_of_537_alike_has_the_known_ratios(nu, ratios):
    limits = WordRegression(words(np.eye(537)[0], np.ones(537))).at([nu])
    result = np.array([limits.intercept[0], *limits.coefficients[0, :2]]) * np.sqrt(
        537.0
    )
    assert result == pytest.approx(ratios, abs=5e-5)


@pytest.mark.parametrize("power", [0.5, 1.0])
@pytest.mark.parametrize("b", [1, 2, 4])
def test_means_are_those_over_all_sets(rng, power, b):
    f = random_sum(rng, 9, power, b)
    bits = masks(f.n_words)
    assert_means(f, f.value(bits), bits, atol=ATOL)


@pytest.mark.parametrize("spread", [1.0, 1e3, 1e7])
def test_words_of_any_weight_are_exact(rng, spread):
    c = np.exp(rng.random(10) * np.log(spread))
    f = words(rng.normal(size=10), c)
    bits = masks(f.n_words)
    assert_means(f, f.value(bits), bits, atol=ATOL)


def test_work_in_parts_is_the_same(rng, monkeypatch):
    f, weights = random_sum(rng, 30, 0.5, 2), rng.random((2, 31))
    means, kept = f.mean_by_size(), f.kept(weights)
    monkeypatch.setattr(sets, "_STORED", 3000)
    monkeypatch.setattr(sums, "_AT_ONCE", 200)
    assert f.mean_by_size() == pytest.approx(means, rel=1e-13, abs=1e-15)
    assert f.kept(weights) == pytest.approx(kept, rel=1e-12, abs=1e-15)


def test_many_weights_are_as_one_by_one(rng):
    f = words(rng.normal(size=12), rng.random(12) + 0.1)
    weights = (
        rng.random((40, 2)) @ rng.random((2, 13)) * 10.0 ** rng.integers(-9, 9, (40, 1))
    )
    one_by_one = np.concatenate([f.kept(row[None]) for row in weights])
    assert f.kept(weights) == pytest.approx(one_by_one, rel=1e-11)


def test_nothing_that_is_known_has_the_base():
    f = NormalisedSum(
        0.3, (Blocks.of_words(np.zeros(4), np.zeros(4), np.arange(4)),), 0.5
    )
    assert (f.value(np.eye(4)) == 0.3).all()
    assert f.mean_by_size() == pytest.approx(np.full(5, 0.3))
    assert f.kept(np.eye(5)) == pytest.approx(
        0.3 * np.outer(np.arange(5) / 4, np.ones(4))
    )


def test_equal_words_have_equal_coefficients_and_constants_move_the_intercept():
    c, own = np.array([1.0, 2.0, 2.0, 5.0, 1.0]), np.array([1.0, -1.0, -1.0, 0.5, 1.0])
    f = words(own, c)
    moved = NormalisedSum(3.0, f.blocks, 0.5)
    limits, more = WordRegression(f).at(NU), WordRegression(moved).at(NU)
    assert limits.coefficients[:, 0] == pytest.approx(
        limits.coefficients[:, 4], abs=1e-13
    )
    assert limits.coefficients[:, 1] == pytest.approx(
        limits.coefficients[:, 2], abs=1e-13
    )
    assert more.coefficients == pytest.approx(limits.coefficients, abs=1e-12)
    assert more.intercept == pytest.approx(limits.intercept + 3.0, abs=1e-12)


def test_a_thousand_words_have_the_means_of_samples(rng):
    """4,000 sets of 300 words: |z| > 5 by chance once in a million runs."""
    f = words(rng.normal(size=1000), rng.integers(1, 5, 1000))
    bits = rng.random((4000, 1000)).argsort(axis=1) < 300
    values = f.value(bits)
    error = values.std() / np.sqrt(len(values))
    means = f.mean_by_size()
    assert abs(values.mean() - means[300]) < 5.0 * error
    assert means[-1] == pytest.approx(f.value(np.ones((1, 1000)))[0], rel=1e-11)
