"""Limits of linear models behind tf-idf against runs of the package itself."""

from __future__ import annotations

from time import process_time

import numpy as np
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

import propopt as po
from propopt.lime.single_runs import single_text_run
from propopt.lime.text.text_reading import TextLaw, WordRegression


N_SAMPLES = 5000


@pytest.fixture(scope="module")
def model():
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


def package_run(model, text, seed, bandwidth=0.25):
    """Intercept and coefficients of one run, (1 + d,)."""
    lime_text = pytest.importorskip("lime.lime_text")

    def scores(texts):
        margins = model.decision_function(texts)
        return np.column_stack([-margins, margins])

    explainer = lime_text.LimeTextExplainer(
        kernel_width=100.0 * bandwidth, feature_selection="none", random_state=seed
    )
    result = explainer.explain_instance(
        text, scores, labels=(1,), num_features=10**6, num_samples=N_SAMPLES
    )
    coefficients = dict(result.as_map()[1])
    ordered = [coefficients[j] for j in range(len(coefficients))]
    return np.array([result.intercept[1], *ordered])


@pytest.mark.parametrize("bandwidth", [0.1, 0.25])
def test_the_mean_of_runs_is_what_the_limits_say(model, bandwidth):
    """31 numbers, |z| > 5 by chance once in 50,000 runs; the limit itself is near."""
    text, n_runs = text_of(30, 1), 8
    f = po.wrap(model, output="log_odds", data=[text])
    (document,) = f.text_schema.documents
    function, law = f.subsets(document), TextLaw(bandwidth)
    run = single_text_run(function, law, None, N_SAMPLES)
    mean = np.mean(
        [package_run(model, text, s, bandwidth) for s in range(n_runs)], axis=0
    )
    deviations = np.sqrt(np.diagonal(run.covariance[0]) / n_runs)
    expected = np.array([run.intercept[0], *run.coefficients[0]])
    assert np.abs((mean - expected) / deviations).max() < 5.0
    limits = WordRegression(function).at(np.array([bandwidth]))
    largest = np.abs(limits.coefficients).max()
    assert np.abs(mean[1:] - limits.coefficients[0]).max() < 0.1 * largest


def test_a_hundred_words_take_less_than_one_run_of_the_package(model):
    text = text_of(100, 2)
    package_run(model, text, 0)  # what is imported and kept is not counted
    start = process_time()
    package_run(model, text, 1)
    of_package = process_time() - start
    start = process_time()
    f = po.wrap(model, output="log_odds", data=[text])
    WordRegression(f.subsets(f.text_schema.documents[0])).at(np.array([0.25]))
    assert process_time() - start < of_package


@pytest.mark.slow
def test_five_thousand_words_have_the_means_of_samples(rng):
    """20 s. 2,000 sets of 1,500 words: |z| > 5 by chance once in a million runs."""
    words = [f"word{k}" for k in range(5000)]
    texts = [" ".join(rng.choice(words, 400)) for _ in range(200)]
    labels = np.arange(200) % 2
    model = make_pipeline(TfidfVectorizer(), LogisticRegression()).fit(texts, labels)
    text = " ".join(words)
    f = po.wrap(model, output="log_odds", data=[text])
    (document,) = f.text_schema.documents
    function = f.subsets(document)
    means = function.mean_by_size()
    bits = rng.random((2000, 5000)).argsort(axis=1) < 1500
    values = function.value(bits)
    error = values.std() / np.sqrt(len(values))
    assert abs(values.mean() - means[1500]) < 5.0 * error
    assert means[-1] == pytest.approx(f.value([text])[0], rel=1e-10)
    weights = TextLaw(0.25).shares(5000)
    total = (weights * np.arange(5001.0)) @ means  # Σ_j z_j is the size
    assert function.kept(weights[None]).sum() == pytest.approx(total, rel=1e-10)
