"""Coefficients as functions of the bandwidth: figure 4."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Final, final

import numpy as np
import pandas as pd

from papers.engine.figure import PaperFigure
from papers.engine.findings import Claim, Invariant
from papers.engine.studies import Study, draw_charts
from papers.lime import functions
from papers.lime.charts import EXPECTED, OTHER, RUNS, THEORY
from papers.lime.lines import DrawnLine, Lines
from papers.lime.runs import RunSettings, fit_bits
from papers.lime.statements import BAND, equals
from papers.text_lime.corpus import review_of
from papers.text_lime.runs import drawn_runs, expected_words
from papers.text_lime.set_functions import conjunctions
from papers.text_lime.trees import tree
from propopt.base.arrays import Array, Values
from propopt.lime.text.word_limits import TextLaw, WordRegression
from propopt.structures.subsets.conjunctions import Conjunctions


_MODEL: Final = "a word less its product with another instead of a model of reviews"
_SHARE: Final = 0.7
_WIDTHS = np.linspace(0.02, 0.5, 33)
_CHECKED = np.array([0.1, 0.2, 0.35, 0.5])
_TREE_WIDTHS = np.geomspace(0.005, 2.0, 100)
_KNOWN: Final = {
    0.05: 0.924, 0.1: 0.826, 0.15: 0.749, 0.2: 0.690, 0.25: 0.646, 0.35: 0.590,
    np.inf: 0.497,
}  # fmt: skip
"""The coefficient of a word in a product of two, of 20 words."""


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class CameCurves:
    """The coefficient of "came" by the bandwidth.

    Parameters
    ----------
    limits : array (K,)
        Of infinitely many samples.
    few : array (K, R)
        Of runs of 100 samples, as in the authors' code.
    scores : array (K', d + 1)
        Z of the mean of 100 runs of 2000 samples, at some bandwidths.
    root : float
        Where the limit is zero.
    """

    limits: Values
    few: Array
    scores: Array
    root: float

    def to_frame(self) -> pd.DataFrame:
        """A row for each bandwidth."""
        return pd.DataFrame(
            {
                "ν": _WIDTHS,
                "limit": self.limits,
                "mean of runs of 100": self.few.mean(axis=1),
                "sd of a run": self.few.std(axis=1, ddof=1),
            }
        )


def widths_figure() -> PaperFigure:
    """A sign that changes, and what is left of a tree."""
    return PaperFigure(
        title="The bandwidth changes signs, and a narrow one erases interactions",
        about="f = 0.7 · 1{came} − 1{came} 1{late} on our review of 20 words; 100 runs "
        "of n = 100, as in the authors' code, where the caption of figure 4 has 5000. "
        "And the limits of the small tree of figure 6 on 29 words.",
        panels=(
            Study(
                column="sign",
                measure=came_curves,
                statements=(
                    products_are_known,
                    means_are_expected_at_widths,
                    root_is_known,
                    came_changes_sign,
                    few_runs_show_it,
                ),
                charts=_came_charts,
                numbers=CameCurves.to_frame,
            ),
            Study(
                column="tree",
                measure=tree_by_width,
                statements=(tree_is_known, tends_to_leaving_one_out),
                charts=_tree_charts,
            ),
        ),
        draw=partial(draw_charts, size=(5.2, 3.2)),
    )


def came_curves() -> CameCurves:
    """The same samples are weighted for all bandwidths."""
    f, place = _came()
    few = RunSettings(n_samples=100)
    many = RunSettings(n_samples=2000)
    scores = []
    for nu, result in zip(_CHECKED, _runs_at(f, _CHECKED, many), strict=True):
        errors = result.std(axis=0, ddof=1) / np.sqrt(len(result))
        expected = expected_words(f, TextLaw(nu), many)
        scores.append((result.mean(axis=0) - expected) / errors)
    return CameCurves(
        limits=WordRegression(f).at(_WIDTHS).coefficients[:, place],
        few=_runs_at(f, _WIDTHS, few)[:, :, 1 + place],
        scores=np.array(scores),
        root=functions.zero_between(_limit_of_came, 0.05, 0.5),
    )


def products_are_known(curves: CameCurves) -> Invariant:
    """Seven numbers."""
    del curves
    pair = conjunctions([1.0], [[0, 1]], [[]], 20)
    result = WordRegression(pair).at(np.array([*_KNOWN])).coefficients[:, 0]
    known = np.array([*_KNOWN.values()])
    return equals("1{a} 1{b} gives a the known coefficients", result, known, 5.1e-4)


def means_are_expected_at_widths(curves: CameCurves) -> Invariant:
    """Of 100 runs of 2000 samples."""
    return Invariant(
        statement="means over runs are the expected output at n for ν = 0.1, ..., 0.5: "
        "largest |z| of all coefficients",
        value=float(np.abs(curves.scores).max()),
        sense="<=",
        limit=BAND,
        note=f"{curves.scores.size} of them, rms "
        f"{np.sqrt(np.mean(curves.scores**2)):.2f}",
    )


def root_is_known(curves: CameCurves) -> Invariant:
    """Between 0.15, where b is 0.749, and 0.2, where it is 0.690."""
    return equals("zero of came at ν = 0.1906", curves.root, 0.1906, 5.1e-5)


def came_changes_sign(curves: CameCurves) -> Claim:
    """As in the figure."""
    low, high = (float(np.interp(nu, _WIDTHS, curves.limits)) for nu in (0.1, 0.25))
    return Claim(
        statement="the coefficient of came is negative near ν = 0.1 and positive above "
        "0.2: its value at 0.1 over that at 0.25",
        value=float(np.divide(low, high)),
        sense="<=",
        limit=-0.1,
        note=f"{low:.4f} and {high:.4f}",
        difference=_MODEL,
    )


def few_runs_show_it(curves: CameCurves) -> Claim:
    """Ridge and few samples move the zero, and leave both signs."""
    mean = curves.few.mean(axis=1)
    low, high = (float(np.interp(nu, _WIDTHS, mean)) for nu in (0.1, 0.4))
    return Claim(
        statement="means of 100 runs of 100 samples show it: that at 0.1 over that at "
        "0.4",
        value=float(np.divide(low, high)),
        sense="<=",
        limit=-0.1,
        note=f"{low:.4f} and {high:.4f}",
        difference=_MODEL,
    )


def tree_by_width() -> Array:
    """Intercept, food, about and the other words, by ν, (4, K)."""
    words = review_of(29).words
    f = tree("small", words)
    limits = WordRegression(f).at(_TREE_WIDTHS)
    indices = [words.index(word) for word in ("food", "about", "soup")]
    return np.stack([limits.intercept, *limits.coefficients[:, indices].T])


def tree_is_known(result: Array) -> Invariant:
    """Of food, and of words that the tree does not use."""
    del result
    words = review_of(29).words
    limits = WordRegression(tree("small", words)).at(np.array([0.01, 0.05, 0.25]))
    indices = [words.index("food"), words.index("soup")]
    known = np.array([[0.0062, 0.0048], [0.1656, 0.0019], [0.5576, 0.0007]])
    return equals(
        "food and other words at ν = 0.01, 0.05, 0.25 are known",
        limits.coefficients[:, indices],
        known,
        5.1e-5,
    )


def tends_to_leaving_one_out(result: Array) -> Invariant:
    """β_j → 2 E_(d−1) f − E_(d−2) f − f(ξ without j)."""
    words = review_of(29).words
    f = tree("small", words)
    means = f.mean_by_size()
    left_out = f.value(~np.eye(29, dtype=bool))
    known = 2.0 * means[28] - means[27] - left_out
    indices = [words.index(word) for word in ("food", "about", "soup")]
    return equals(
        f"limits at ν = {_TREE_WIDTHS[0]} are leave-one-out effects and one constant "
        f"for all words, {known[-1]:.6f}",
        result[1:, 0],
        known[indices],
        1e-8,
    )


def _came() -> tuple[Conjunctions, int]:
    words = review_of(20).words
    came, late = words.index("came"), words.index("late")
    f = conjunctions([_SHARE, -1.0], [[came], [came, late]], [[], []], len(words))
    return f, came


def _limit_of_came(nu: float) -> float:
    f, place = _came()
    return float(WordRegression(f).at(np.array([nu])).coefficients[0, place])


def _runs_at(f: Conjunctions, widths: Values, settings: RunSettings) -> Array:
    """Intercepts and coefficients of runs, (K, R, d + 1)."""
    d, rng = f.n_words, np.random.default_rng(settings.seed)
    bits, _ = drawn_runs(TextLaw(1.0), d, settings, settings.n_runs, rng)
    values = f.value(bits.reshape(-1, d)).reshape(bits.shape[:2])
    distance = 1.0 - np.sqrt(bits.mean(axis=2))
    design = bits.astype(float)
    weights = (kernel_weights(distance, nu) for nu in widths)
    return np.array([fit_bits(design, w, values, settings.ridge) for w in weights])


def kernel_weights(distance: Array, nu: float) -> Array:
    """Exp(−distance² / (2 ν²))."""
    return np.asarray(np.exp(-(distance**2) / (2.0 * nu**2)))


def _came_charts(curves: CameCurves) -> tuple[Lines, ...]:
    mean, spread = curves.few.mean(axis=1), curves.few.std(axis=1, ddof=1)
    return (
        Lines(
            title="coefficient of came",
            x_label="ν",
            y_label="coefficient",
            curves=(
                DrawnLine(
                    label="100 runs of 100: mean, ± sd",
                    x=_WIDTHS,
                    y=mean,
                    band=(mean - spread, mean + spread),
                ),
                DrawnLine(label="theory", x=_WIDTHS, y=curves.limits, colour=THEORY),
            ),
            marks={
                f"zero, ν = {curves.root:.3f}": (curves.root,),
                "default of the package": (0.25,),
            },
        ),
    )


def _tree_charts(result: Array) -> tuple[Lines, ...]:
    names = ("intercept", "food", "about, Everything", "other words")
    colours = (EXPECTED, THEORY, RUNS, OTHER)
    return (
        Lines(
            title="limits of the small tree",
            x_label="ν",
            y_label="coefficient",
            curves=[
                DrawnLine(label=name, x=_TREE_WIDTHS, y=curve, colour=colour)
                for name, curve, colour in zip(names, result, colours, strict=True)
            ],
            marks={"the package's ν": (0.25,)},
            log=True,
        ),
    )
