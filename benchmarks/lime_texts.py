"""Exact limits of LIME on texts, beside runs of the lime package and of shap."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import shap
from lime.lime_text import LimeTextExplainer
from sklearn.ensemble import RandomForestClassifier
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline

import propopt as po
from benchmarks.timing import OURS, Row, with_ratios


N_SAMPLES = 5000
"""Of one run of the package, as by default."""

_WORDS = r"\w+"


def lime_texts(quick: bool) -> list[Row]:
    """Documents of 100 words: TF-IDF, forests, a callable; in seconds of the CPU."""
    texts = corpus(1000, 100)
    (text,) = corpus(1, 400, seed=7, distinct=100)
    labels = np.random.default_rng(1).integers(0, 2, len(texts))
    linear = _linear(texts, labels)
    forest = _forest(texts, labels, 60 if quick else 400)
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


def _linear(texts: list[str], labels: Any) -> Pipeline:
    vectoriser = TfidfVectorizer(lowercase=False, token_pattern=_WORDS)
    return make_pipeline(vectoriser, LogisticRegression()).fit(texts, labels)


def _forest(texts: list[str], labels: Any, n_trees: int) -> Pipeline:
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
    work = f"limits of LIME, {name}, 100 words"
    ours = cpu_seconds(lambda: po.lime.text_limits(model, [text], output=output))
    run = cpu_seconds(lambda: package_run(model, text), 3)
    target = "faster than one run, < 1 s"
    return _beside(work, ours, run, f"lime, one run of {N_SAMPLES:,}", target=target)


def _widths(model: Pipeline, text: str) -> list[Row]:
    limits = po.lime.text_limits(model, [text], output="probability")
    widths = np.geomspace(0.05, 2.0, 50)
    ours = cpu_seconds(lambda: limits.path(0, widths))
    run = cpu_seconds(lambda: package_run(model, text), 3)
    work = f"50 bandwidths, {_named(model)}, 100 words"
    return _beside(work, ours, 50 * run, "lime, one run each", "scaled")


def _many(model: Pipeline, texts: list[str], output: Any, name: str) -> list[Row]:
    work = f"limits of LIME at {len(texts)} documents, {name}"
    ours = cpu_seconds(lambda: po.lime.text_limits(model, texts, output=output), 1)
    run = cpu_seconds(lambda: package_run(model, texts[0]), 3)
    return _beside(work, ours, len(texts) * run, "lime, one run each", "scaled")


def _called(model: Pipeline, text: str) -> list[Row]:
    """Estimates with standard errors, at the evaluations of one run."""
    work = f"estimates of LIME by {N_SAMPLES:,} texts, a callable, 100 words"

    def f(texts: list[str]) -> Any:
        return model.predict_proba(texts)[:, 1]

    ours = cpu_seconds(lambda: po.lime.text_limits(f, [text], progress=False), 3)
    run = cpu_seconds(lambda: package_run(model, text), 3)
    return _beside(work, ours, run, f"lime, one run of {N_SAMPLES:,}")


def _shapley(model: Pipeline, text: str) -> list[Row]:
    """Shapley values by deletion, exact, beside shap's permutations of the words."""
    work = f"Shapley values by deletion, {_named(model)}, 100 words"
    document = po.functions.TextSchema.of([text]).documents[0]

    def exact() -> Any:
        function = po.wrap(model, data=[text])  # the trees are read anew
        return po.explainers.TreeShap().explain(function, [text])

    ours = cpu_seconds(exact)

    def of_bits(bits: Any) -> Any:
        return model.predict_proba(document.texts(bits.astype(bool)))[:, 1]

    nothing, whole = np.zeros((1, document.n_words)), np.ones((1, document.n_words))

    def permuted() -> Any:
        explainer = shap.explainers.Permutation(of_bits, nothing, seed=0)
        return explainer(whole, max_evals=N_SAMPLES, silent=True)

    theirs = cpu_seconds(permuted, 1)
    return _beside(work, ours, theirs, f"shap, permutations, {N_SAMPLES:,} texts")


def _long(quick: bool) -> list[Row]:
    """A norm of many words, whose document frequencies differ as in a corpus."""
    rows, others = [], corpus(400, 300, seed=6)
    for size in (300, 1000) if quick else (300, 1000, 3000, 5000):
        (text,) = corpus(1, 0, seed=5, distinct=size)
        own = _linear([text, *others], np.arange(len(others) + 1) % 2)
        work = f"limits of LIME, linear model of TF-IDF, {size:,} words"
        ours = cpu_seconds(
            lambda own=own, text=text: po.lime.text_limits(
                own, [text], output="log_odds"
            ),
            3,
        )
        run = cpu_seconds(lambda own=own, text=text: package_run(own, text), 1)
        target = {1000: "< .2 s", 3000: "< 1 s", 5000: "< 3 s"}.get(size, "")
        peer = f"lime, one run of {N_SAMPLES:,}"
        rows += _beside(work, ours, run, peer, target=target)
    return rows


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


def cpu_seconds(run: Callable[[], Any], repeats: int = 5) -> float:
    """The least seconds of this process: others on the machine count as little."""
    times = []
    for _ in range(repeats):
        began = time.process_time()
        run()
        times.append(time.process_time() - began)
    return min(times)


def _beside(
    work: str, ours: float, theirs: float, peer: str, solves: str = "", target: str = ""
) -> list[Row]:
    rows = [
        Row(work=work, method=OURS, seconds=ours, target=target),
        Row(work=work, method=peer, seconds=theirs, solves=solves),
    ]
    return with_ratios(rows)
