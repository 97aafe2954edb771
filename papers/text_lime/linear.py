"""Linear models on normalised TF-IDF: figures 7, 15, 16 and 17."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import Final

import numpy as np

from papers.engine.figure import PaperFigure
from papers.engine.findings import Claim, Finding, Invariant
from papers.engine.studies import Study, draw_charts
from papers.lime.charts import BoxPlots
from papers.lime.runs import Runs, RunSettings
from papers.lime.statements import equals, mean_is_expected
from papers.text_lime.corpus import STAND_IN, review_of, vectoriser
from papers.text_lime.runs import run_words
from papers.text_lime.set_functions import single_words
from propopt.base.arrays import Values
from propopt.lime.text.word_limits import TextLaw
from propopt.structures.subsets.sums import NormalisedSum


RULE: Final = 1.36
"""By the paper, of λ_j φ(ξ)_j."""


def linear_words_figure() -> PaperFigure:
    """Figure 7."""
    return PaperFigure(
        title="A linear model on TF-IDF",
        about="f = Σ λ_j φ(x)_j with λ_j of N(0, 1), on our review of 29 words, of "
        "which the corpus does not know two; n = 5000, ν = 0.25, 100 runs. Red is the "
        "exact limit, orange the paper's 1.36 λ_j φ(ξ)_j.",
        panels=(_study(29, 0.25, 5000),),
        draw=partial(draw_charts, columns=1, size=(8.0, 3.2)),
    )


def linear_bandwidths_figure() -> PaperFigure:
    """Figure 15."""
    return PaperFigure(
        title="A linear model with a narrow and a wide kernel",
        about="The same function and review; n = 5000, 100 runs.",
        panels=(_study(29, 0.05, 5000), _study(29, 0.35, 5000)),
        draw=partial(draw_charts, columns=1, size=(8.0, 3.2)),
    )


def linear_samples_figure() -> PaperFigure:
    """Figure 16."""
    few = (mean_is_expected, rule_is_in_the_boxes, few_samples_shrink_slopes)
    return PaperFigure(
        title="A linear model with few and many samples",
        about="The same function and review; ν = 0.25, 100 runs. With n = 50 ridge "
        "shrinks coefficients.",
        panels=(
            replace(_study(29, 0.25, 50), statements=few),
            _study(29, 0.25, 8000),
        ),
        draw=partial(draw_charts, columns=1, size=(8.0, 3.2)),
    )


def larger_text_figure() -> PaperFigure:
    """Figure 17."""
    return PaperFigure(
        title="A linear model on a longer text",
        about="The same function on our review of 52 words, of which the corpus does "
        "not know one; n = 5000, ν = 0.25, 100 runs. The caption says d = 537, the "
        "authors' code has a text of 52 words.",
        panels=(_study(52, 0.25, 5000),),
        draw=partial(draw_charts, columns=1, size=(11.0, 3.4)),
    )


def _study(d: int, nu: float, n: int) -> Study[Runs]:
    statements: tuple[Callable[[Runs], Finding], ...] = (
        mean_is_expected,
        partial(function_is_the_model, d=d),
        rule_is_in_the_boxes,
        slope_is_rule,
        proportional_to_terms,
        unknown_words_are_small,
    )
    title = f"d = {d}, ν = {nu}, n = {n}"
    return Study(
        column=f"d = {d}, ν = {nu}",
        row=f"n = {n}",
        measure=partial(linear_word_runs, d, nu, n),
        statements=statements,
        charts=partial(_boxes, title=title, expected=nu < 0.1 or n < 100),
        numbers=Runs.to_frame,
    )


@cache
def linear_word_runs(d: int, nu: float, n: int) -> Runs:
    """With 1.36 λ_j φ(ξ)_j as the printed formula."""
    f, terms = linear_words(d)
    words = review_of(d).words
    runs = run_words(f, words, TextLaw(nu), RunSettings(n_samples=n))
    return with_rule(runs, terms)


def with_rule(runs: Runs, terms: Values) -> Runs:
    """The runs with 1.36 of λ_j φ(ξ)_j (d,) as what is printed; it has no intercept."""
    return replace(runs, printed=np.r_[0.0, RULE * terms])


@cache
def linear_words(d: int) -> tuple[NormalisedSum, Values]:
    """F of our review of d words, and λ_j φ(ξ)_j of its words (d,)."""
    document, model = review_of(d), vectoriser()
    slopes = slopes_of_words()
    indices = [model.vocabulary_.get(word, -1) for word in document.words]
    known = np.array(indices) >= 0
    tfidf = np.where(known, document.counts * model.idf_[indices], 0.0)
    values = slopes[indices] * tfidf
    words = single_words(values, tfidf**2, np.arange(d))
    return NormalisedSum(0.0, (words,), 0.5), values / np.linalg.norm(tfidf)


def function_is_the_model(runs: Runs, *, d: int) -> Invariant:
    """On 200 texts, by scikit-learn."""
    del runs
    f, _ = linear_words(d)
    bits, _ = TextLaw(0.25).draw(d, 200, np.random.default_rng(1))
    texts = review_of(d).texts(bits)
    model = vectoriser().transform(texts) @ slopes_of_words()
    return equals(
        "f of words is the model on 200 texts", f.value(bits) - model, 0.0, 1e-12
    )


def rule_is_in_the_boxes(runs: Runs) -> Claim:
    """As the limits are, see the invariants."""
    result = _off_in_boxes(runs, _printed(runs))
    exact = _off_in_boxes(runs, runs.limit[1:])
    worst = int(np.argmax(result))
    return Claim(
        statement="1.36 λ_j φ(ξ)_j lies in the boxes of the runs: its largest distance "
        "from the median, over the distance of the quartiles",
        value=float(result[worst]),
        sense="<=",
        limit=0.5 if len(runs.estimates) >= 100 else 1.0,
        note=f"{runs.labels[worst]}; the exact limit {exact.max():.2f}",
        difference=STAND_IN,
    )


def slope_is_rule(runs: Runs) -> Claim:
    """Least squares."""
    slope = _slope(runs.mean[1:], _printed(runs) / RULE)
    exact = _slope(runs.limit[1:], _printed(runs) / RULE)
    return Claim(
        statement="coefficients are 1.36 λ_j φ(ξ)_j: least-squares slope of the mean "
        "over runs, off from 1.36",
        value=abs(slope - RULE),
        sense="<=",
        limit=0.02,
        note=f"{slope:.3f}, of the exact limit {exact:.3f}",
        difference=STAND_IN,
    )


def proportional_to_terms(runs: Runs) -> Claim:
    """What is right about the rule."""
    return Claim(
        statement="coefficients are nearly proportional to λ_j φ(ξ)_j: correlation of "
        "the limits",
        value=float(np.corrcoef(runs.limit[1:], _printed(runs))[0, 1]),
        sense=">=",
        limit=0.99,
        difference=STAND_IN,
    )


def unknown_words_are_small(runs: Runs) -> Claim:
    """They have no TF-IDF; leaks of others are left."""
    unknown = _printed(runs) == 0.0
    ratio = np.abs(runs.limit[1:][unknown]).max() / np.abs(runs.limit[1:]).max()
    return Claim(
        statement="words that the model does not know have coefficients near zero: "
        "largest limit, over the largest of all",
        value=float(ratio),
        sense="<=",
        limit=0.05,
        note=", ".join(np.array(runs.labels)[unknown]),
        difference=STAND_IN,
    )


def few_samples_shrink_slopes(runs: Runs) -> Claim:
    """The figure shows it."""
    ratio = _slope(runs.mean[1:], runs.limit[1:])
    return Claim(
        statement="few samples shrink coefficients: least-squares slope of the mean "
        "over runs on the limit",
        value=ratio,
        sense="<=",
        limit=0.8,
        difference=STAND_IN,
    )


def _off_in_boxes(runs: Runs, theory: Values) -> Values:
    low, middle, high = np.quantile(runs.estimates[:, 1:], [0.25, 0.5, 0.75], axis=0)
    return np.asarray(np.abs(theory - middle) / (high - low))


def _printed(runs: Runs) -> Values:
    printed = runs.printed
    return np.full(len(runs.labels), np.nan) if printed is None else printed[1:]


def _slope(result: Values, terms: Values) -> float:
    return float(result @ terms / (terms @ terms))


@cache
def slopes_of_words() -> Values:
    """λ, of each word of the corpus."""
    return np.random.RandomState(30).normal(size=len(vectoriser().vocabulary_))


def _boxes(runs: Runs, *, title: str, expected: bool) -> Sequence[BoxPlots]:
    rule = {"1.36 λφ": _printed(runs)}
    return (BoxPlots(title=title, runs=runs, other=rule, expected=expected),)
