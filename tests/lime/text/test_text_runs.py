"""Runs of LIME on texts, by equations, by runs, and by those of the package."""

from dataclasses import replace

import numpy as np
import pytest
from normal_samples import least_squares, with_intercept
from package_runs import runs_of_text
from sklearn.ensemble import RandomForestClassifier
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

import propopt as po
from papers.text_lime.set_functions import conjunctions
from propopt.lime.finite_samples import (
    expected_run,
    required_samples,
    single_text_run,
)
from propopt.lime.text.word_limits import TextLaw, WordRegression
from propopt.structures.subsets.conjunctions import Enumerated
from propopt.structures.subsets.sets import all_sets


LAW = TextLaw(0.25)
SETTINGS = [(0.0, False), (0.0, True), (1.0, True), (5.0, False)]
ANY = Enumerated(np.random.default_rng(0).normal(size=2**7))


def tree(d):
    """z_1 + (1 − z_1) z_2 z_3."""
    return conjunctions([1.0, 1.0], [[0], [1, 2]], [[], [0]], d)


def fit_of(function, law=LAW, n=5000, ridge=1.0, first_row=True):
    value = function.mean_by_size()[-1]
    fit = expected_run(function, law, value, n)
    return replace(fit, ridge=ridge, values=np.array([value]) if first_row else None)


def run_of(function, law=LAW, n=5000, ridge=1.0, first_row=True, **how):
    """One run, its mean and its covariance."""
    fit = fit_of(function, law, n, ridge, first_row)
    return single_text_run(function, law, fit, **how)


def deviations(run):
    return np.sqrt(np.diagonal(run.covariance[0]))


def runs(function, law, n, n_runs, ridge=1.0, first_row=True):
    """Intercepts and coefficients of runs, (R, 1 + d)."""
    rng, result = np.random.default_rng(0), []
    for _ in range(n_runs):
        bits, weights = law.draw(function.n_words, n - first_row, rng)
        if first_row:
            bits = np.concatenate([np.ones((1, function.n_words), bool), bits])
            weights = np.concatenate([[1.0], weights])
        values = function.value(bits)
        result.append(least_squares(bits, weights, values, ridge))
    return np.array(result)


@pytest.mark.parametrize(("ridge", "first_row"), SETTINGS)
def test_means_and_covariances_are_those_of_all_sets(ridge, first_row):
    """The normal equations and the sandwich, with sums over all 128 sets."""
    Z = np.column_stack([np.ones(128), all_sets(7)])
    sizes = all_sets(7).sum(axis=1)
    shares = (sizes < 7) / (7.0 * np.bincount(sizes)[sizes])
    pi = np.exp(LAW.log_weights(7))[sizes]
    values = ANY.value(all_sets(7))
    A = 19 * (Z.T * (shares * pi)) @ Z + ridge * np.diag([0.0] + [1.0] * 7)
    right = 19 * (Z.T * (shares * pi)) @ values
    if first_row:
        A += 1.0
        right += values[-1]
    truth = np.linalg.solve(A, right)
    n = 19 + first_row
    full = with_intercept(fit_of(ANY, LAW, n, ridge, first_row))
    np.testing.assert_allclose(full, truth, rtol=0, atol=1e-9)
    scores = (pi * (values - Z @ truth))[:, None] * Z
    centred = scores - shares @ scores
    sandwich = np.linalg.solve(A, 19 * (centred.T * shares) @ centred)
    covariance = np.linalg.solve(A, sandwich.T)
    run = run_of(ANY, LAW, n, ridge, first_row, draws=(all_sets(7), values))
    np.testing.assert_allclose(run.covariance[0], covariance, rtol=0, atol=1e-9)


def test_many_samples_give_the_limit():
    limit = WordRegression(tree(29)).at(np.array([0.25]))
    many = with_intercept(fit_of(tree(29), LAW, 10**9))
    np.testing.assert_allclose(many, with_intercept(limit), rtol=0, atol=1e-6)


def test_published_deviations_of_the_package():
    # 100,000 draws know deviations to 0.5 %
    published = [0.0112, 0.0134, 0.0089, 0.0089, 0.0091]
    result = deviations(run_of(tree(29), n_draws=100_000))[:5]
    np.testing.assert_allclose(result, published, rtol=0.02)


CASES = {  # n, ridge, the document itself among the samples, ν
    "the package": (400, 1.0, True, 0.25),
    "without ridge": (400, 0.0, False, 0.25),
    "a wide bandwidth": (400, 1.0, True, np.inf),
    "a small bandwidth": (2000, 1.0, True, 0.1),
}


@pytest.mark.parametrize("case", CASES)
def test_means_and_deviations_of_runs(case):
    n, ridge, first_row, nu = CASES[case]
    settings = TextLaw(nu), n, ridge, first_row
    result = runs(tree(8), TextLaw(nu), n, 700, ridge, first_row)
    # 8 coefficients and an intercept: |z| > 4.5 of any is a false alarm in 1 of 16,000
    # tests; leverage shifts the mean by less than 2 % of the largest coefficient
    scatter = result.std(axis=0, ddof=1)
    full = with_intercept(fit_of(tree(8), *settings))
    allowed = 4.5 * scatter / np.sqrt(700) + 0.02 * np.abs(full[1:]).max()
    assert (np.abs(result.mean(axis=0) - full) < allowed).all()
    # a deviation is known to 1 / √(2 R) or somewhat more, and by draws to 2 %
    predicted = deviations(run_of(tree(8), *settings))
    assert np.abs(predicted / scatter - 1.0).max() < 4.5 / np.sqrt(2 * 700) + 0.06


def test_draws_have_the_deviations_of_all_sets():
    blind = Enumerated(tree(9).value(all_sets(9)))
    every = all_sets(9), blind.value(all_sets(9))
    exact = deviations(run_of(tree(9), n=500, draws=every))
    bits, _ = LAW.draw(9, 20_000, np.random.default_rng(1))
    for how in ({"n_draws": 20_000}, {"draws": (bits, tree(9).value(bits))}):
        drawn = run_of(tree(9), n=500, **how)
        # 20,000 draws know deviations to 1 %
        np.testing.assert_allclose(deviations(drawn), exact, rtol=0.06)


def test_samples_for_a_precision_and_what_does_not_scatter():
    run = run_of(tree(29))
    n = int(required_samples(5000, run.standard_deviations, 0.005).max())
    precise = run_of(tree(29), n=n).standard_deviations
    assert precise.max() == pytest.approx(0.005, rel=0.02)
    f = conjunctions([1.0, -2.0], [[0], [3]], [[], []], 20)
    assert deviations(run_of(f, n=100, ridge=0.0)).max() < 1e-7


@pytest.mark.parametrize("bandwidth", [1e-4, 1e-3, 5e-3])
@pytest.mark.parametrize("d", [2, 8])
def test_where_no_sample_counts_the_ridge_leaves_the_row_itself(bandwidth, d):
    """Weights of exp(−1000) are zero in a run of the package, and so is its scatter."""
    f = conjunctions([2.0, 1.0], [[0], [1]], [[], [0]], d)
    run = run_of(f, TextLaw(bandwidth))
    np.testing.assert_allclose(run.coefficients, 0.0, atol=1e-15)
    np.testing.assert_allclose(run.intercept, 2.0, rtol=1e-12)
    np.testing.assert_allclose(run.standard_deviations, 0.0, atol=1e-15)
    # of many words too nothing is left but the document
    assert with_intercept(fit_of(tree(29), TextLaw(bandwidth))).sum() == pytest.approx(
        1.0, abs=1e-3
    )


def test_models_that_are_read_and_models_by_all_their_texts():
    pytest.importorskip("lime")
    parts = [
        "good food and good price",
        "bad food",
        "no price is good",
        "bad bad price",
    ]
    texts = [f"{a}, {b}" for a in parts for b in parts]
    target = np.array(["good" in text for text in texts]).astype(int)
    forest = RandomForestClassifier(20, max_depth=4, random_state=0)
    model = make_pipeline(CountVectorizer(binary=True), forest).fit(texts, target)
    f = po.wrap(model, output="probability", data=texts)
    result = runs_of_text(f, texts[1], 15, 600)
    # t of 14 degrees of freedom, six numbers: beyond 6 in 1 of 5000 tests
    assert np.abs(result.z).max() < 6.0
    f = po.wrap(lambda texts: [float("b" in t) * len(t) for t in texts], data=["a b c"])
    assert np.abs(runs_of_text(f, "a b c", 10, 300).z).max() < 9.0


# ---- linear models behind tf-idf, against the package


@pytest.fixture(scope="module")
def tfidf():
    """Words of a Zipf law, in documents of all lengths, and a class of two of them."""
    rng = np.random.default_rng(0)
    shares = 1.0 / np.arange(1, 1001)
    words = [f"word{k}" for k in range(1000)]
    texts = [
        " ".join(rng.choice(words, n, p=shares / shares.sum()))
        for n in rng.integers(20, 120, 300)
    ]
    score = np.array([text.split().count("word2") for text in texts])
    labels = (score + rng.normal(size=300) > 1.5).astype(int)
    return make_pipeline(TfidfVectorizer(), LogisticRegression()).fit(texts, labels)


def text_of(n_words, seed):
    """Distinct words, a third of them twice, and one that the model does not know."""
    rng = np.random.default_rng(seed)
    words = [f"word{k}" for k in rng.choice(300, n_words - 1, replace=False)]
    return " ".join([*words, *rng.choice(words, n_words // 3), "unseen"])


@pytest.mark.sampled(1)
@pytest.mark.parametrize("bandwidth", [0.1, 0.25])
def test_the_mean_of_runs_is_what_the_limits_say(tfidf, bandwidth):
    """31 numbers, |z| > 5 by chance once in 50,000 runs; the limit itself is near."""
    pytest.importorskip("lime")
    text = text_of(30, 1)
    f = po.wrap(tfidf, output="log_odds", data=[text])
    function = f.subsets(f.text_schema.documents[0])
    run = run_of(function, TextLaw(bandwidth))
    average = runs_of_text(f, text, 8, 5000, bandwidth).mean
    z = (average - with_intercept(run)) / (deviations(run) / np.sqrt(8))
    assert np.abs(z).max() < 5.0
    limits = WordRegression(function).at(np.array([bandwidth])).coefficients[0]
    assert np.abs(average[1:] - limits).max() < 0.1 * np.abs(limits).max()


@pytest.mark.slow
def test_five_thousand_words_have_the_means_of_samples(rng):
    """20 s. 2,000 sets of 1,500 words: |z| > 5 by chance once in a million runs."""
    words = [f"word{k}" for k in range(5000)]
    texts = [" ".join(rng.choice(words, 400)) for _ in range(200)]
    model = make_pipeline(TfidfVectorizer(), LogisticRegression())
    text = " ".join(words)
    f = po.wrap(model.fit(texts, np.arange(200) % 2), output="log_odds", data=[text])
    function = f.subsets(f.text_schema.documents[0])
    means = function.mean_by_size()
    values = function.value(rng.random((2000, 5000)).argsort(axis=1) < 1500)
    error = values.std() / np.sqrt(len(values))
    assert abs(values.mean() - means[1500]) < 5.0 * error
    assert means[-1] == pytest.approx(f.value([text])[0], rel=1e-10)
    weights = LAW.shares(5000)
    total = (weights * np.arange(5001.0)) @ means  # Σ_j z_j is the size
    assert function.first_moments(weights[None]).sum() == pytest.approx(
        total, rel=1e-10
    )
