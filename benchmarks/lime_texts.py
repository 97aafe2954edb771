"""Exact limits of LIME on texts, beside samples: one batched pass, lime, and shap."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from lime.lime_text import LimeTextExplainer
from sklearn.ensemble import RandomForestClassifier
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline

import propopt as po
from benchmarks.peers import batched_texts
from benchmarks.timing import OURS, Method, Row, race


N_SAMPLES = 5000
"""For one run of the package, as by default."""

_WORDS = r"\w+"


def lime_texts(quick: bool) -> list[Row]:
    """Documents of 100 words: TF-IDF, forests, a callable; longer ones."""
    texts = corpus(1000, 100)
    (text,) = corpus(1, 400, seed=7, distinct=100)
    labels = np.random.default_rng(1).integers(0, 2, len(texts))
    linear = linear_model(texts, labels)
    forest = word_forest(texts, labels, 60 if quick else 400)
    n_many = 50 if quick else 500
    return [
        *_one(linear, text, "log_odds", "linear model of TF-IDF"),
        *_one(forest, text, "probability", _named(forest)),
        *_widths(forest, text),
        *_many(linear, texts[:n_many], "log_odds", "linear model of TF-IDF"),
        *_many(forest, texts[:n_many], "probability", _named(forest)),
        *_called(linear, text),
        *_shapley(forest, text),
        *_long(quick),
    ]


def corpus(
    n_documents: int, length: int, *, seed: int = 0, distinct: int | None = None
) -> list[str]:
    """Texts of words that come by Zipf's law, of 2,000 words and more."""
    rng = np.random.default_rng(seed)
    n_words = max(2000, 2 * (distinct or 0))
    words = np.array([f"w{k}" for k in range(n_words)])
    shares = 1.0 / np.arange(1.0, n_words + 1.0) ** 0.9
    shares /= shares.sum()
    size = distinct or length
    chosen = (
        rng.choice(n_words, size, replace=distinct is None, p=shares)
        for _ in range(n_documents)
    )
    return [" ".join(words[own]) for own in chosen]


def linear_model(texts: list[str], labels: Any) -> Pipeline:
    vectoriser = TfidfVectorizer(lowercase=False, token_pattern=_WORDS)
    return make_pipeline(vectoriser, LogisticRegression()).fit(texts, labels)


def word_forest(texts: list[str], labels: Any, n_trees: int) -> Pipeline:
    vectoriser = CountVectorizer(
        binary=True, lowercase=False, token_pattern=_WORDS, dtype=np.float64
    )
    trees = RandomForestClassifier(n_trees, random_state=0, n_jobs=1)
    return make_pipeline(vectoriser, trees).fit(texts, labels)


def _named(forest: Pipeline) -> str:
    leaves = sum(tree.get_n_leaves() for tree in forest[-1].estimators_)
    return f"presence forest of {leaves:,} leaves"


def _one(model: Pipeline, text: str, output: Any, name: str) -> list[Row]:
    """From the model to the limits: read, compared with its answers, exact."""
    return _limits(
        f"limits of LIME for one text of 100 words: {name}",
        partial(po.lime.text_limits, model, [text], output=output),
        model,
        text,
        output,
    )


def _many(model: Pipeline, texts: list[str], output: Any, name: str) -> list[Row]:
    return _limits(
        f"limits of LIME for {len(texts)} texts of 100 words: {name}",
        partial(po.lime.text_limits, model, texts, output=output),
        model,
        texts[0],
        output,
        len(texts),
    )


def _widths(model: Pipeline, text: str) -> list[Row]:
    limits = po.lime.text_limits(model, [text], output="probability")
    return race(
        f"limits of LIME for 50 bandwidths of one text: {_named(model)}",
        _ours(partial(limits.path, 0, np.geomspace(0.05, 2.0, 50))),
        _package(model, text, 50),
    )


def _long(quick: bool) -> list[Row]:
    """Texts of many words, whose document frequencies differ as in a corpus."""
    rows, others = [], corpus(400, 300, seed=6)
    for size in (300, 1000) if quick else (300, 1000, 3000, 5000):
        (text,) = corpus(1, 0, seed=5, distinct=size)
        model = linear_model([text, *others], np.arange(len(others) + 1) % 2)
        rows += _limits(
            f"limits of LIME for one text of {size:,} words: linear model of TF-IDF",
            partial(po.lime.text_limits, model, [text], output="log_odds"),
            model,
            text,
            "log_odds",
            runs=1,
        )
    return rows


def _limits(
    work: str,
    run: Callable[[], Any],
    model: Pipeline,
    text: str,
    output: Any,
    of: int = 1,
    runs: int = 3,
) -> list[Row]:
    document = po.functions.TextSchema.of([text]).documents[0]
    score = score_of_words(model, document, output)
    return race(
        work,
        _ours(run, runs),
        Method(
            name=f"one batched pass of {N_SAMPLES:,} samples, NumPy",
            run=partial(batched_texts, score, document.n_words, N_SAMPLES),
            of=of,
            runs=runs,
            note="sampled",
        ),
        _package(model, text, of, runs),
    )


def _ours(run: Callable[[], Any], runs: int = 3) -> Method:
    return Method(name=OURS, role="propopt", run=run, runs=runs, note="exact")


def _package(model: Pipeline, text: str, of: int = 1, runs: int = 3) -> Method:
    return Method(
        name=f"lime, {N_SAMPLES:,} samples a run",
        role="general",
        run=partial(package_run, model, text),
        of=of,
        runs=runs,
        note="sampled",
    )


def score_of_words(model: Pipeline, document: Any, output: Any) -> Callable[[Any], Any]:
    """Which words are kept, (S, d), to the answers; texts are never put together."""
    vectoriser, last = model[0], model[-1]
    rows = vectoriser.transform(document.words).toarray()  # a text of each word
    if output != "log_odds":
        features = (rows > 0).astype(float)
        return lambda Z: last.predict_proba((Z @ features > 0) * 1.0)[:, 1]
    counts = np.array([document.text.split().count(word) for word in document.words])
    weighted = (rows > 0) * counts[:, None] * vectoriser.idf_
    slopes, squares = weighted @ last.coef_[0], (weighted**2).sum(axis=1)
    intercept = last.intercept_[0]

    def linear(Z: Any) -> Any:
        norms = np.sqrt(Z @ squares)
        return Z @ slopes / np.where(norms > 0, norms, 1) + intercept

    return linear


def _called(model: Pipeline, text: str) -> list[Row]:
    """Estimates with standard errors, at the evaluations of one run."""

    def f(texts: list[str]) -> Any:
        return model.predict_proba(texts)[:, 1]

    return race(
        f"LIME by {N_SAMPLES:,} samples for one text of 100 words: a callable",
        Method(
            name=OURS,
            role="propopt",
            run=lambda: po.lime.text_limits(f, [text], progress=False),
            runs=3,
            note="with standard errors",
        ),
        _package(model, text),
    )


def _shapley(model: Pipeline, text: str) -> list[Row]:
    """Shapley values by deletion, exact, beside shap's permutations of the words."""
    import shap

    document = po.functions.TextSchema.of([text]).documents[0]

    def exact() -> Any:
        function = po.wrap(model, data=[text])  # the trees are read anew
        return po.explainers.TreeShap().explain(function, [text])

    def of_bits(bits: Any) -> Any:
        return model.predict_proba(document.texts(bits.astype(bool)))[:, 1]

    nothing, whole = np.zeros((1, document.n_words)), np.ones((1, document.n_words))

    def permuted() -> Any:
        explainer = shap.explainers.Permutation(of_bits, nothing, seed=0)
        return explainer(whole, max_evals=N_SAMPLES, silent=True)

    return race(
        f"Shapley values of one text of 100 words: {_named(model)}",
        _ours(exact),
        Method(
            name=f"shap, permutations, {N_SAMPLES:,} texts",
            role="general",
            run=permuted,
            runs=1,
            note="sampled",
        ),
    )


def package_run(model: Pipeline, text: str, seed: int = 0) -> Any:
    """One run of the package on all words, its explainer made anew."""
    explainer = LimeTextExplainer(
        kernel_width=25, feature_selection="none", random_state=seed
    )
    return explainer.explain_instance(
        text,
        model.predict_proba,
        labels=(1,),
        num_features=len(text),
        num_samples=N_SAMPLES,
    )
