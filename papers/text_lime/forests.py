"""Forests on the presence of words: figures 1 and 5."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, partial
from typing import Any, Final

import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.pipeline import Pipeline, make_pipeline

from papers.engine.figure import PaperFigure
from papers.engine.findings import Invariant
from papers.engine.studies import Chart, Study, draw_charts
from papers.lime.charts import Bars
from papers.lime.runs import Runs, RunSettings
from papers.lime.statements import equals, mean_is_expected
from papers.lime.studies import study_of_runs
from papers.text_lime.coloured import ColouredText
from papers.text_lime.corpus import generated_corpus, review_of
from papers.text_lime.runs import run_words
from propopt.base.errors import InvalidInput
from propopt.base.text import Reason
from propopt.functions.texts import TextFunction
from propopt.functions.wrapping import wrap
from propopt.lime.text.word_limits import TextLaw
from propopt.structures.subsets.sets import SetFunction
from propopt.structures.subsets.sums import AddedSets


_SEEDS: Final = {"f": (10,), "g": (15,), "f + g": (10, 15)}
_LAW: Final = TextLaw(0.25)


def highlighted_figure() -> PaperFigure:
    """Figure 1."""
    return PaperFigure(
        title="A forest, its six largest coefficients, and the text",
        about="500 trees on the presence of words, which learned from the generated "
        "corpus whether writers were pleased, on our review of 29 words: one run of "
        "n = 5000 and ν = 0.25, as bars, beside the exact limits. 20 runs are checked.",
        panels=(
            Study(
                column="500 trees",
                measure=partial(forest_word_runs, (10,), 500, 20),
                statements=(
                    mean_is_expected,
                    partial(forest_is_read, seed=10, n_trees=500),
                ),
                charts=_highlighted_charts,
                numbers=Runs.to_frame,
            ),
        ),
        draw=partial(draw_charts, columns=1, size=(8.0, 3.0)),
    )


def forests_figure() -> PaperFigure:
    """Figure 5."""
    more: dict[str, tuple[Any, ...]] = {
        "f": (partial(forest_is_read, seed=10, n_trees=50),),
        "g": (partial(forest_is_read, seed=15, n_trees=50),),
        "f + g": (limits_of_forests_add_up, runs_of_forests_add_up),
    }
    return PaperFigure(
        title="The explanation of a sum is the sum of explanations",
        about="f and g are forests of 50 trees on the presence of words, with other "
        "seeds, on our review of 29 words; n = 5000, ν = 0.25, 100 runs.",
        panels=tuple(
            study_of_runs(
                partial(forest_word_runs, _SEEDS[name], 50, 100),
                name,
                statements,
            )
            for name, statements in more.items()
        ),
        draw=partial(draw_charts, columns=1, size=(8.0, 3.0)),
    )


@cache
def forest_word_runs(seeds: tuple[int, ...], n_trees: int, n_runs: int) -> Runs:
    """Of the sum of forests with these seeds, on our review of 29 words."""
    document = review_of(29)
    f = AddedSets([(1.0, _forest_on_words(seed, n_trees)) for seed in seeds])
    settings = RunSettings(n_samples=5000, n_runs=n_runs)
    return run_words(f, document.words, _LAW, settings)


def forest_is_read(runs: Runs, *, seed: int, n_trees: int) -> Invariant:
    """On 200 texts, by scikit-learn."""
    del runs
    document = review_of(29)
    bits, _ = _LAW.draw(29, 200, np.random.default_rng(1))
    model = _forest(seed, n_trees).predict_proba(document.texts(bits))[:, 1]
    result = _forest_on_words(seed, n_trees).value(bits)
    return equals("the forest as it was read is the forest on 200 texts",
                  result - model, 0.0, 1e-12)  # fmt: skip


def limits_of_forests_add_up(runs: Runs) -> Invariant:
    """β^{f+g} = β^f + β^g."""
    parts = [forest_word_runs(_SEEDS[name], 50, 100).limit for name in ("f", "g")]
    off = (runs.limit - sum(parts)) / np.abs(runs.limit).max()
    return equals("limits of f and g add up to that of f + g", off, 0.0, 1e-12)


def runs_of_forests_add_up(runs: Runs) -> Invariant:
    """So do runs with the same samples."""
    parts = [forest_word_runs(_SEEDS[name], 50, 100).estimates for name in ("f", "g")]
    off = (runs.estimates - sum(parts)) / np.abs(runs.limit).max()
    return equals("so do runs with the same samples, each", off, 0.0, 1e-9)


@cache
def _forest(seed: int, n_trees: int) -> Pipeline:
    corpus = generated_corpus()
    words = CountVectorizer(lowercase=False, binary=True)
    forest = RandomForestClassifier(n_trees, random_state=seed)
    return make_pipeline(words, forest).fit(list(corpus.texts), corpus.pleased)


@cache
def _forest_on_words(seed: int, n_trees: int) -> SetFunction:
    document = review_of(29)
    function = wrap(_forest(seed, n_trees), data=[document.text])
    if isinstance(function, TextFunction):
        result = function.subsets(document)
        if not isinstance(result, Reason):
            return result
    raise InvalidInput(f"{function!r} was not read")


def _highlighted_charts(runs: Runs) -> Sequence[Chart]:
    first = runs.estimates[0, 1:]
    largest = np.abs(first) >= np.sort(np.abs(first))[-6]
    return (
        Bars(title="one run", values=first, runs=runs),
        ColouredText(
            title="six largest coefficients in the text: orange for pleased, "
            "underlined blue against",
            document=review_of(29),
            weights=np.where(largest, first, 0.0),
        ),
    )
