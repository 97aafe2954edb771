"""Trees on the presence of words: figures 6, 12, 13 and 14."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import Final, Literal, TypeAlias

import numpy as np

from papers.engine.figure import PaperFigure
from papers.engine.findings import Claim, Invariant
from papers.engine.studies import Study, draw_charts
from papers.lime.runs import Runs, RunSettings
from papers.lime.statements import (
    equals,
    formula_as_printed,
    mean_is_expected,
    theory_is_in_the_boxes,
)
from papers.lime.studies import study_of_runs
from papers.text_lime import formulas
from papers.text_lime.corpus import review_of
from papers.text_lime.runs import run_words
from papers.text_lime.set_functions import conjunctions
from propopt.base.arrays import Indices
from propopt.lime.text.word_limits import TextLaw
from propopt.structures.subsets.conjunctions import Conjunctions


Name: TypeAlias = Literal["small", "large"]
_SMALL: Final = ("food", "about", "Everything")
_LARGE: Final = (*_SMALL, "bad", "character")
_TREE: Final = "1{food} + (1 − 1{food}) 1{about} 1{Everything}"
_PRODUCTS = partial(formula_as_printed, name="Proposition 3, term by term,")


def tree_figure() -> PaperFigure:
    """Figure 6: one document in the code, another in the caption."""
    known = {
        29: (0.13057, 0.55758, 0.20079, 0.20079, 0.00070),
        35: (0.13282, 0.55890, 0.20046, 0.20046, 0.00038),
    }
    return PaperFigure(
        title="A small tree on three words",
        about=f"{_TREE} on two of our reviews; n = 5000, ν = 0.25, 100 runs. The "
        "caption says d = 35, the authors' code has a text of 29 words.",
        panels=tuple(
            _study(d, 0.25, 5000, partial(values_are_known, known=numbers))
            for d, numbers in known.items()
        ),
        draw=partial(draw_charts, columns=1, size=(8.0, 3.2)),
    )


def bandwidths_figure() -> PaperFigure:
    """Figure 12."""
    known = {
        0.05: (0.64447, 0.16560, 0.07957, 0.07957, 0.00188),
        0.35: (0.07775, 0.61613, 0.20519, 0.20519, 0.00088),
    }
    return PaperFigure(
        title="The small tree with a narrow and a wide kernel",
        about=f"{_TREE} on our review of 29 words; n = 5000, 100 runs. The narrow "
        "kernel takes most of the weight of interactions into the intercept.",
        panels=tuple(
            _study(29, nu, 5000, partial(values_are_known, known=numbers))
            for nu, numbers in known.items()
        ),
        draw=partial(draw_charts, columns=1, size=(8.0, 3.2)),
    )


def samples_figure() -> PaperFigure:
    """Figure 13."""
    many = _study(29, 0.25, 8000)
    few = replace(
        _study(29, 0.25, 50, expected=True),
        statements=(mean_is_expected, few_samples_shrink, few_are_further),
    )
    return PaperFigure(
        title="The small tree with few and many samples",
        about=f"{_TREE} on our review of 29 words; ν = 0.25, 100 runs. With n = 50 "
        "there are hardly more samples than coefficients, and ridge shrinks them.",
        panels=(few, many),
        draw=partial(draw_charts, columns=1, size=(8.0, 3.2)),
    )


def large_tree_figure() -> PaperFigure:
    """Figure 14."""
    measure = partial(word_tree_runs, 29, 0.25, 5000, name="large")
    known = (-0.23889, 0.55718, 0.20039, 0.20039, 1.64351, 0.64351, 0.00030)
    return PaperFigure(
        title="A larger tree, all coefficients",
        about=f"{_TREE} + 1{{bad}} + 1{{bad}} 1{{character}} on our review of 29 "
        "words; n = 5000, ν = 0.25, 100 runs.",
        panels=(
            study_of_runs(
                measure,
                "larger tree",
                (
                    _PRODUCTS,
                    partial(values_are_known, known=known, name="large"),
                    partial(ignored_are_small, name="large"),
                    word_of_two_nodes_adds_up,
                ),
            ),
        ),
        draw=partial(draw_charts, columns=1, size=(8.0, 3.2)),
    )


def _study(
    d: int, nu: float, n: int, *statements: Callable[[Runs], Invariant],
    expected: bool = False,
) -> Study[Runs]:  # fmt: skip
    return study_of_runs(
        partial(word_tree_runs, d, nu, n),
        f"d = {d}, ν = {nu}",
        (_PRODUCTS, ignored_are_small, root_weighs_most, *statements),
        row=f"n = {n}",
        expected=expected,
    )


@cache
def word_tree_runs(d: int, nu: float, n: int, name: Name = "small") -> Runs:
    """Of the first review of d words."""
    words, law = review_of(d).words, TextLaw(nu)
    runs = run_words(tree(name, words), words, law, RunSettings(n_samples=n))
    terms = _terms(name, words)
    return replace(runs, printed=formulas.sum_limit(terms, d, nu))


def tree(name: Name, words: Sequence[str]) -> Conjunctions:
    """A leaf for each way through the small tree, and for what the larger one adds."""
    food, about, everything, bad, character = _places(_LARGE, words)
    present = [[food], [about, everything], [bad], [bad, character]]
    absent: list[list[int]] = [[], [food], [], []]
    n = 2 if name == "small" else 4
    return conjunctions([1.0] * n, present[:n], absent[:n], len(words))


def ignored_are_small(runs: Runs, *, name: Name = "small") -> Claim:
    """Remark 4."""
    used = _used(name, runs)
    ignored = np.setdiff1d(np.arange(1, len(runs.limit)), used)
    return Claim(
        statement="words that the tree does not use have coefficients near zero: "
        "largest limit, over the smallest of those used",
        value=float(np.abs(runs.limit[ignored]).max() / np.abs(runs.limit[used]).min()),
        sense="<=",
        limit=0.05,
        note=f"{np.abs(runs.limit[ignored]).max():.5f}",
    )


def root_weighs_most(runs: Runs) -> Claim:
    """Food alone decides where it is."""
    food, *others = runs.limit[_used("small", runs)]
    return Claim(
        statement="the word at the root has the largest coefficient: over the next",
        value=float(food / max(others)),
        sense=">=",
        limit=1.5,
        note=f"{food:.4f} and {max(others):.4f}",
    )


def word_of_two_nodes_adds_up(runs: Runs) -> Claim:
    """1{bad} gives 1, and 1{bad} 1{character} the same to both."""
    bad, character = runs.limit[_used("large", runs)[-2:]]
    return Claim(
        statement="a word in two terms has the sum of both coefficients: bad less "
        "character, off from 1",
        value=float(abs(bad - character - 1.0)),
        sense="<=",
        limit=1e-9,
    )


def few_samples_shrink(runs: Runs) -> Claim:
    """The figure shows it."""
    food = _used("small", runs)[0]
    return Claim(
        statement="few samples shrink coefficients: mean of food over theory",
        value=float(runs.mean[food] / runs.limit[food]),
        sense="<=",
        limit=0.8,
        note=f"{runs.mean[food]:.3f} and {runs.limit[food]:.3f}",
    )


def few_are_further(runs: Runs) -> Claim:
    """By more than is allowed to many samples."""
    off = theory_is_in_the_boxes(runs)
    return Claim(
        statement="with few samples runs are further from theory: its largest distance "
        "from the median, over the distance of the quartiles",
        value=off.value,
        sense=">=",
        limit=off.limit,
        note=off.note,
    )


def values_are_known(
    runs: Runs, *, known: Sequence[float], name: Name = "small"
) -> Invariant:
    """The intercept, the words of the tree, and the least of the others."""
    used = _used(name, runs)
    others = np.delete(runs.limit, np.r_[0, used])
    result = np.r_[runs.limit[0], runs.limit[used], others.max()]
    return equals(
        "limits (β_0, words of the tree, others) are known",
        result,
        np.asarray(known),
        5.1e-6,
    )


def _used(name: Name, runs: Runs) -> Indices:
    """Places of the words of the tree behind the intercept."""
    words = _SMALL if name == "small" else _LARGE
    return 1 + np.array(_places(words, runs.labels))


def _terms(
    name: Name, words: Sequence[str]
) -> tuple[tuple[float, tuple[int, ...]], ...]:
    """The tree as a signed sum of products of indicators."""
    food, about, everything, bad, character = _places(_LARGE, words)
    small = (
        (1.0, (food,)),
        (1.0, (about, everything)),
        (-1.0, (food, about, everything)),
    )
    more = ((1.0, (bad,)), (1.0, (bad, character)))
    return small if name == "small" else (*small, *more)


def _places(some: Sequence[str], words: Sequence[str]) -> list[int]:
    return [list(words).index(word) for word in some]
