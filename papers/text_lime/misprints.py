"""Formulas that do not hold as they are printed, each with a number."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Final, final

import numpy as np

from papers.engine.figure import PaperFigure
from papers.engine.findings import Claim, Invariant, Misprint, Refuted
from papers.engine.studies import Study, draw_charts
from papers.lime.charts import OTHER, RUNS
from papers.lime.lines import DrawnLine, Lines
from papers.lime.runs import RunSettings
from papers.lime.statements import equals
from papers.text_lime import formulas
from papers.text_lime.runs import expected_words, limit_of
from papers.text_lime.set_functions import conjunctions
from propopt.base.arrays import Array, Values
from propopt.lime.text.word_limits import TextLaw
from propopt.structures.subsets.conjunctions import Conjunctions


_WORDS: Final = 29
_SIZES: Final = (10, 20, 50, 100, 200, 500, 1000)


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class ProductLimits:
    """Limits of products of indicators.

    Parameters
    ----------
    limits : array (5, 30)
        Of 0, 1, 2, 3 and all of 29 words, ν = 0.25.
    sizes : array (K,)
        Numbers of words.
    outside : array (2, K)
        The coefficient of words that are not in a product of two, times d, at ν = 0.25
        and for ν → ∞.
    """

    limits: Array
    sizes: Values
    outside: Array


def wrong_formulas_figure() -> PaperFigure:
    """What is printed."""
    return PaperFigure(
        title="Formulas that do not hold as printed",
        about="Products of indicators of 29 words, ν = 0.25; coefficients of words "
        "outside a product of two, times d; and how many words are kept.",
        panels=(products_study(), empty_study()),
        draw=partial(draw_charts, size=(4.6, 3.0)),
    )


def products_study() -> Study[ProductLimits]:
    """Proposition 3, and what is said behind it."""
    return Study(
        column="products",
        measure=products_of_words,
        statements=(
            products_of_words_are_known,
            nothing_is_one_word,
            one_word_is_itself,
            gap_as_printed,
            gap_is_known,
            others_fall_with_words,
            others_of_wide_kernels_are_known,
            whole_text_is_blind,
            whole_text_is_one_row,
        ),
        charts=_product_charts,
    )


def empty_study() -> Study[Values]:
    """‖φ(x)‖, and the constant function."""
    return Study(
        column="empty texts",
        measure=words_kept,
        statements=(norm_is_one, empty_share_is_known, constant_as_printed),
        charts=_kept_charts,
    )


def products_of_words() -> ProductLimits:
    """Of the first words."""
    law = TextLaw(0.25)
    sizes = (0, 1, 2, 3, _WORDS)
    outside = [[_outside(d, nu) for d in _SIZES] for nu in (0.25, np.inf)]
    return ProductLimits(
        limits=np.array([limit_of(_product(p, _WORDS), law) for p in sizes]),
        sizes=np.array(_SIZES, float),
        outside=np.array(outside) * _SIZES,
    )


def products_of_words_are_known(result: ProductLimits) -> Invariant:
    """β_0, inside and outside for two and three words."""
    known = np.array(
        [[-0.369461, 0.642806, -0.000401], [-0.500034, 0.442019, -0.001104]]
    )
    return equals(
        "products of 2 and 3 words have the known limits (β_0, in J, outside)",
        result.limits[2:4][:, [0, 1, -1]],
        known,
        5.1e-7,
    )


def nothing_is_one_word(result: ProductLimits) -> Claim:
    """It has to be p = 1."""
    return Claim(
        statement="p = 0 gives β_k = 1 for k = j, else 0 (as printed behind "
        "Proposition 3): β_j",
        value=float(result.limits[0, 1]),
        sense=">=",
        limit=1.0 - 1e-9,
        note=f"β_0 = {result.limits[0, 0]:.3g}: p = 0 is the constant",
        if_false=Misprint("p = 1"),
    )


def one_word_is_itself(result: ProductLimits) -> Invariant:
    """At every bandwidth."""
    known = np.r_[0.0, 1.0, np.zeros(_WORDS - 1)]
    return Invariant(
        statement="p = 1 gives β_k = 1 for k = j, else 0: largest difference",
        value=float(np.abs(result.limits[1] - known).max()),
        sense="<=",
        limit=1e-9,
    )


def gap_as_printed(result: ProductLimits) -> Claim:
    """The sign of σ_3."""
    gap = float(result.limits[2, 1] - result.limits[2, -1])
    printed = formulas.printed_gap(2, _WORDS, 0.25)
    return Claim(
        statement="β_j − β_k = (σ_2 + σ_3) (α_p − α_(p+1)) / c_d as printed, for "
        "p = 2: relative difference from the limit",
        value=abs(float(np.divide(printed, gap)) - 1.0),
        sense="<=",
        limit=1e-9,
        note=f"{printed:.6f} where the limits have {gap:.6f}",
        if_false=Misprint("σ_2 − σ_3"),
    )


def gap_is_known(result: ProductLimits) -> Invariant:
    """(σ_2 − σ_3) / c_d = 1 / (α_1 − α_2)."""
    alpha = formulas.alphas(_WORDS, 0.25, 4)
    known = (alpha[2:4] - alpha[3:5]) / (alpha[1] - alpha[2])
    return equals(
        "β_j − β_k is (α_p − α_(p+1)) / (α_1 − α_2) for p = 2, 3",
        result.limits[2:4, 1] - result.limits[2:4, -1],
        known,
        1e-12,
    )


def others_fall_with_words(result: ProductLimits) -> Claim:
    """A bound that holds: at ν = 0.25 they are of that order, for ν → ∞ smaller."""
    growth = np.abs(result.outside[:, -1] / result.outside[:, -2])
    return Claim(
        statement="β_k = O(1/d) of words outside a product: d β_k of 1000 words over "
        "that of 500, at most",
        value=float(growth.max()),
        sense="<=",
        limit=1.2,
        note=f"{growth[0]:.3f} at ν = 0.25, {growth[1]:.3f} for ν → ∞",
    )


def others_of_wide_kernels_are_known(result: ProductLimits) -> Invariant:
    """−6 p (p − 1) / (d (d − 1) (p + 1) (p + 2)): of the order 1 / d²."""
    known = -1.0 / (result.sizes - 1.0)
    return equals(
        "d β_k is −1 / (d − 1) for ν → ∞ and p = 2", result.outside[1], known, 1e-10
    )


def whole_text_is_blind(result: ProductLimits) -> Invariant:
    """It is 1 at the text itself, which is never drawn."""
    return equals(
        "a product of all words has limits of zero", result.limits[-1], 0.0, 0.0
    )


def whole_text_is_one_row(result: ProductLimits) -> Invariant:
    """One of the package's n is the text itself."""
    del result
    settings = RunSettings(n_samples=5000)
    at_n = expected_words(_product(_WORDS, _WORDS), TextLaw(0.25), settings)
    return equals(
        "of 5000 samples it has what its one row makes, 0.0018",
        np.abs(at_n).max(),
        0.0018,
        5.1e-5,
    )


def words_kept() -> Values:
    """How many of 29 words 20,000 samples keep, (20000,)."""
    bits, _ = TextLaw(0.25).draw(_WORDS, 20_000, np.random.default_rng(0))
    return np.asarray(bits.sum(axis=1), float)


def norm_is_one(kept: Values) -> Claim:
    """It is 0 of a text without words."""
    return Claim(
        statement="‖φ(x)‖ = 1 almost surely: share of 20,000 samples that are empty",
        value=float(np.mean(kept == 0.0)),
        sense="<=",
        limit=0.0,
        if_false=Refuted("one of d samples has no word left, and then φ(x) = 0"),
    )


def empty_share_is_known(kept: Values) -> Invariant:
    """1 / d, within five standard errors of 20,000 samples."""
    share = 1.0 / _WORDS
    error = np.sqrt(share * (1.0 - share) / len(kept))
    score = float((np.mean(kept == 0) - share) / error)
    return equals("one of d samples is empty: standard errors", score, 0.0, 5.0)


def constant_as_printed(kept: Values) -> Claim:
    """2 E f − (3 / d) Σ_k E[f | k kept] of f = 1; 4 E f gives 1."""
    del kept
    return Claim(
        statement="Eq. 39: β_0 = 2 E f − (3/d) Σ_k E[f | k kept] as printed, of f = 1: "
        "difference from β_0 = 1",
        value=abs(2.0 - 3.0 - float(limit_of(_product(0, _WORDS), TextLaw(np.inf))[0])),
        sense="<=",
        limit=1e-9,
        if_false=Misprint("4 E f in the place of 2 E f"),
    )


def _product(p: int, d: int) -> Conjunctions:
    return conjunctions([1.0], [list(range(p))], [[]], d)


def _outside(d: int, nu: float) -> float:
    return float(limit_of(_product(2, d), TextLaw(nu))[-1])


def _product_charts(result: ProductLimits) -> tuple[Lines, ...]:
    narrow, wide = result.outside
    return (
        Lines(
            title="words outside a product of two",
            x_label="d",
            y_label="d β_k",
            curves=(
                DrawnLine(label="ν = 0.25", x=result.sizes, y=narrow, colour=RUNS),
                DrawnLine(label="ν → ∞", x=result.sizes, y=wide, colour=OTHER),
            ),
            log=True,
        ),
    )


def _kept_charts(kept: Values) -> tuple[Lines, ...]:
    shares = np.bincount(kept.astype(int), minlength=_WORDS + 1) / len(kept)
    return (
        Lines(
            title="20,000 samples of a text of 29 words",
            x_label="words kept",
            y_label="share",
            curves=(
                DrawnLine(label="samples", x=np.arange(_WORDS + 1.0), y=shares),
                DrawnLine(
                    label="1 / d",
                    x=np.arange(float(_WORDS)),
                    y=np.full(_WORDS, 1.0 / _WORDS),
                    colour=OTHER,
                    line=":",
                ),
            ),
        ),
    )
