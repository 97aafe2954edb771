"""The package ``lime`` itself, beside what is said of it."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, Literal, TypeAlias

import numpy as np

from papers.engine.figure import PaperFigure
from papers.engine.studies import Study, draw_charts
from papers.lime.charts import BoxPlots
from papers.lime.runs import Runs, RunSettings
from papers.lime.statements import mean_is_expected, theory_is_in_the_boxes
from papers.text_lime.corpus import review_of, vectoriser
from papers.text_lime.linear import (
    linear_words,
    rule_is_in_the_boxes,
    slopes_of_words,
    with_rule,
)
from papers.text_lime.runs import expected_words, limit_of
from papers.text_lime.trees import tree
from propopt.base.arrays import Values
from propopt.explaining.explainers.lime_package import package_run
from propopt.lime.text.word_limits import TextLaw
from propopt.structures.subsets.sets import SetFunction
from propopt.tables.documents import PatternWords


Model: TypeAlias = Literal["small tree", "linear model"]
_LAW: Final = TextLaw(0.25)
_SETTINGS: Final = RunSettings(n_samples=5000, n_runs=20)


def package_figure() -> PaperFigure:
    """What the other figures have of emulated runs."""
    models: tuple[Model, ...] = ("small tree", "linear model")
    claims = (theory_is_in_the_boxes, rule_is_in_the_boxes)
    return PaperFigure(
        title="Runs of the package lime itself",
        about="The small tree of figure 6 and the linear model of figure 7 on our "
        "review of 29 words, as functions of texts; LimeTextExplainer with all words, "
        "n = 5000, kernel width 25, 20 runs. In the other figures runs are drawn by "
        "the same conventions, without texts.",
        panels=tuple(
            Study(
                column=model,
                measure=partial(package_word_runs, model),
                statements=(mean_is_expected, claim),
                charts=partial(_boxes, model=model),
                numbers=Runs.to_frame,
            )
            for model, claim in zip(models, claims, strict=True)
        ),
        draw=partial(draw_charts, columns=1, size=(8.0, 3.2)),
    )


def package_word_runs(model: Model) -> Runs:
    """20 explanations, each with a seed of its own."""
    document = review_of(29)
    f: SetFunction = tree("small", document.words)
    values_of, terms = _tree_of_texts, None
    if model == "linear model":
        f, terms = linear_words(29)
        values_of = _linear_of_texts
    runs = Runs(
        estimates=np.array([_explained(values_of, k) for k in range(_SETTINGS.n_runs)]),
        limit=limit_of(f, _LAW),
        expected=expected_words(f, _LAW, _SETTINGS),
        labels=document.words,
    )
    return runs if terms is None else with_rule(runs, terms)


def _explained(values_of: Callable[[list[str]], Values], seed: int) -> Values:
    """Intercept and coefficients in the order of our words, (d + 1,)."""
    document, width = review_of(29), 100.0 * _LAW.bandwidth
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the package's own source
        coefficients, intercept, _ = package_run(
            values_of, document.text, document.n_words, _SETTINGS.n_samples, width, seed
        )
    return np.array([intercept, *coefficients])


def _tree_of_texts(texts: list[str]) -> Values:
    words = [{o.word for o in PatternWords().find(text)} for text in texts]
    return np.array([float("food" in w or {"about", "Everything"} <= w) for w in words])


def _linear_of_texts(texts: list[str]) -> Values:
    return np.asarray(vectoriser().transform(texts) @ slopes_of_words())


def _boxes(runs: Runs, *, model: Model) -> Sequence[BoxPlots]:
    other = {} if runs.printed is None else {"1.36 λφ": runs.printed[1:]}
    return (BoxPlots(title=f"20 runs of lime, {model}", runs=runs, other=other),)
