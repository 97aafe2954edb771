"""The rule of 1.36, and the formulas behind it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, partial
from typing import Final, final

import numpy as np
from scipy.integrate import quad

from papers.engine.figure import PaperFigure
from papers.engine.findings import Claim, Invariant, Misprint, Refuted
from papers.engine.studies import Study, draw_charts
from papers.lime.charts import OTHER, RUNS, THEORY
from papers.lime.lines import DrawnLine, Lines
from papers.lime.statements import equals
from papers.text_lime import formulas
from papers.text_lime.linear import RULE
from papers.text_lime.set_functions import conjunctions, single_words
from propopt.base.arrays import Array, Values
from propopt.lime.text.word_limits import WordRegression
from propopt.structures.subsets.sums import NormalisedSum


_WORDS: Final = 537
_WIDTHS = np.array([0.05, 0.1, 0.2, 0.25, 0.3, 0.35, 0.5, 1.0, np.inf])
_FACTORS = np.array([1.064, 1.128, 1.252, 1.307, 1.354, 1.394, 1.475, 1.563, 1.6])


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class OneOfMany:
    """Limits of the TF-IDF of one of 537 words that are all alike, over its value.

    Parameters
    ----------
    limits : array (K, 3)
        β_0, of the word itself, and of any other, by the bandwidth.
    factors : array (K,)
        What the own coefficient tends to with many words.
    shares : array (2,)
        E_j and E_jk.
    """

    limits: Array
    factors: Values
    shares: Values


def rule_figure() -> PaperFigure:
    """What the rule leaves out."""
    return PaperFigure(
        title="The rule of 1.36 is that of no bandwidth",
        about="f = φ(x)_j of one of 537 words that all have the same TF-IDF, with its "
        "exact coefficients over φ(ξ)_j; f = Σ_j φ(x)_j of 29 such words; products of "
        "one, two and three words, by eq. 40 and exactly.",
        panels=(
            Study(
                column="one word",
                measure=one_of_many,
                statements=(
                    limits_of_one_are_known,
                    factors_are_known,
                    own_tends_to_factor,
                    own_is_rule,
                    own_is_rule_at_default,
                    shares_by_the_rule,
                    shares_are_known,
                    second_order_as_printed,
                    own_by_shares,
                    intercept_as_printed,
                    intercept_is_known,
                ),
                charts=_factor_charts,
            ),
            Study(
                column="all words",
                measure=all_alike,
                statements=(
                    all_alike_are_known,
                    all_are_rule_at_default,
                    leaks_can_be_dropped,
                ),
                charts=_alike_charts,
            ),
            Study(
                column="products",
                measure=wide_products,
                statements=(wide_as_printed,),
                charts=_wide_charts,
            ),
        ),
        draw=partial(draw_charts, size=(5.0, 3.2)),
    )


@cache
def one_of_many() -> OneOfMany:
    """At nine bandwidths."""
    f = _equal_words(np.r_[1.0, np.zeros(_WORDS - 1)])
    limits = WordRegression(f).at(_WIDTHS)
    result = np.column_stack([limits.intercept, limits.coefficients[:, :2]])
    return OneOfMany(
        limits=result * np.sqrt(_WORDS),
        factors=np.array([_factor(nu) for nu in _WIDTHS]),
        shares=_shares(_WORDS),
    )


def limits_of_one_are_known(result: OneOfMany) -> Invariant:
    """At ν = 0.25, and for ν → ∞."""
    known = np.array([[0.3714, 1.3057, -0.0012], [0.2655, 1.5984, -0.0015]])
    return equals(
        "(β_0, own, other) / φ are known at ν = 0.25 and for ν → ∞",
        result.limits[[3, -1]],
        known,
        5.1e-5,
    )


def factors_are_known(result: OneOfMany) -> Invariant:
    """∫ t √(1 − t) ψ / ∫ t (1 − t) ψ."""
    return equals("ρ(ν) is known", result.factors, _FACTORS, 5.1e-4)


def own_tends_to_factor(result: OneOfMany) -> Invariant:
    """Up to 1 / d."""
    off = np.abs(result.limits[:, 1] - result.factors).max() * _WORDS
    return Invariant(
        statement="β_j / φ_j is ρ(ν) up to O(1/d): largest difference, times d",
        value=float(off),
        sense="<=",
        limit=2.0,
    )


def own_is_rule(result: OneOfMany) -> Claim:
    """The rule is derived for ν → ∞."""
    own = float(result.limits[-1, 1])
    return Claim(
        statement="β_j = 1.36 φ_j for ν → ∞, many words and small shares: off from "
        "1.36",
        value=abs(own - RULE),
        sense="<=",
        limit=0.02,
        note=f"{own:.4f}",
        if_false=Refuted(
            "one of 537 words of equal TF-IDF: 1.598; for d → ∞ it is 8/5 = 3 · 4/3 − "
            "2 · 6/5"
        ),
    )


def own_is_rule_at_default(result: OneOfMany) -> Claim:
    """Where it is drawn in figure 7: 1.307 for many words."""
    return _about_rule(float(result.limits[3, 1]))


def all_are_rule_at_default(result: Values) -> Claim:
    """Where every word has the same slope, terms of the others count."""
    return _about_rule(float(result[3]))


def _about_rule(own: float) -> Claim:
    return Claim(
        statement="β_j is about 1.36 φ_j at ν = 0.25: relative difference from 1.36",
        value=abs(own / RULE - 1.0),
        sense="<=",
        limit=0.05,
        note=f"{own:.4f}",
    )


def shares_by_the_rule(result: OneOfMany) -> Claim:
    """(1 − E H_S)^(−1/2) is no mean of (1 − H_S)^(−1/2)."""
    equal = np.full(_WORDS, 1.0 / _WORDS)
    one, two = formulas.mean_share(equal)
    printed = np.array([one[0], two[0, 1]])
    return Claim(
        statement="E_j = 1.22 and E_jk = 1.15 for many words: largest difference from "
        "the means",
        value=float(np.abs(printed - result.shares).max()),
        sense="<=",
        limit=0.01,
        note="{:.4f} and {:.4f}; the means are {:.4f} and {:.4f}".format(
            *printed, *result.shares
        ),
        if_false=Refuted(
            "many words of equal TF-IDF, of which a share t, uniform, is deleted: "
            "E_j = ∫ 2 (1 − t) / √(1 − t) = 4/3, E_jk = ∫ 3 (1 − t)² / √(1 − t) = 6/5"
        ),
    )


def shares_are_known(result: OneOfMany) -> Invariant:
    """4/3 and 6/5, up to 1 / d."""
    off = (result.shares - [4.0 / 3.0, 1.2]) * _WORDS
    return equals("E_j is 4/3 and E_jk 6/5: difference times d", off, 0.0, 1.0)


def second_order_as_printed(result: OneOfMany) -> Claim:
    """It needs the power −5/2 behind the variance."""
    right, printed = second_order(-2.5), second_order(-0.5)
    return Claim(
        statement="Remark 3: E_j up to second order as printed: difference from the "
        "expansion",
        value=abs(printed - right),
        sense="<=",
        limit=1e-4,
        note=f"{printed:.4f} where the expansion has {right:.4f} and the mean is "
        f"{result.shares[0]:.4f}",
        if_false=Misprint("(3/8) Var H (1 − E H)^(−5/2)"),
    )


def second_order(power: float) -> float:
    """(1 − E X)^(−1/2) + (3/8) Var X (1 − E X)^power of a share X of mean 1/3."""
    mean, variance = 1.0 / 3.0, 1.0 / 18.0
    return float((1.0 - mean) ** -0.5 + 0.375 * variance * (1.0 - mean) ** power)


def own_by_shares(result: OneOfMany) -> Claim:
    """With the means themselves the formula is right."""
    one, two = result.shares
    return Claim(
        statement="Proposition 4: β_j = (3 E_j − (2/d) Σ E_jk) φ_j + O(1/d) for ν → ∞, "
        "with exact means: difference times d",
        value=abs(3.0 * one - 2.0 * two - float(result.limits[-1, 1])) * _WORDS,
        sense="<=",
        limit=10.0,
    )


def intercept_as_printed(result: OneOfMany) -> Claim:
    """5 E_j has to be 2 E_j."""
    one, two = result.shares
    printed = 5.0 * one - 2.0 * two
    return Claim(
        statement="β_0 = (5 E_j − (2/d) Σ E_jk) φ_j + O(1/d) for ν → ∞ as printed: "
        "difference",
        value=abs(float(printed - result.limits[-1, 0])),
        sense="<=",
        limit=0.02,
        note=f"{printed:.3f} where the limit is {result.limits[-1, 0]:.4f}",
        if_false=Misprint("β_0 = (2 E_j − (2/d) Σ E_jk) φ_j + O(1/d)"),
    )


def intercept_is_known(result: OneOfMany) -> Invariant:
    """2 E_j − 2 E_jk, up to 1 / d."""
    one, two = result.shares
    off = (2.0 * one - 2.0 * two - result.limits[-1, 0]) * _WORDS
    return equals("2 E_j in its place: difference times d", off, 0.0, 2.0)


def all_alike() -> Values:
    """β_j / φ_j of Σ φ of 29 words that are alike, by the bandwidth, (K,)."""
    d = 29
    limits = WordRegression(_equal_words(np.ones(d))).at(_WIDTHS)
    return np.asarray(limits.coefficients[:, 0] * np.sqrt(d))


def all_alike_are_known(result: Values) -> Invariant:
    """At ν = 0.25, and for ν → ∞."""
    known = np.array([0.654, 0.841])
    return equals(
        "β_j / φ_j of λ = 1 is 0.654 at ν = 0.25, 0.841 for ν → ∞",
        result[[3, -1]],
        known,
        5.1e-4,
    )


def leaks_can_be_dropped(result: Values) -> Claim:
    """There are d of them, of the order 1 / d."""
    return Claim(
        statement="terms of other words may be dropped, as each is O(1/d): β_j / φ_j "
        "of λ = 1 over ρ(ν) at ν = 0.25, off from 1",
        value=float(abs(result[3] / _factor(0.25) - 1.0)),
        sense="<=",
        limit=0.1,
        note=f"{result[3]:.3f} and {_factor(0.25):.3f}",
        if_false=Refuted(
            "there are d of them: of 29 words of equal TF-IDF and λ = 1 the "
            "coefficient is 0.654 φ_j, half of 1.307"
        ),
    )


def wide_products() -> Array:
    """d, p, and β_j of a word of a product of p words, exact and by eq. 40, (4, K)."""
    rows = [(d, p) for p in (1, 2, 3) for d in (10, 30, 100, 300, 1000)]
    return np.array([(d, p, *_wide_product(d, p)) for d, p in rows], dtype=float).T


def _wide_product(d: int, p: int) -> tuple[float, float]:
    """Exact for ν → ∞, and 3 E[f | w_j] − (3/d) Σ_k E[f | w_k]."""
    f = conjunctions([1.0], [list(range(p))], [[]], d)
    exact = WordRegression(f).at(np.array([np.inf])).coefficients[0, 0]

    def kept(n: int) -> float:
        return (d - n) / ((n + 1.0) * d)  # lemma 5

    inside, outside = kept(p) / kept(1), kept(p + 1) / kept(1)
    total = p * inside + (d - p) * outside
    return float(exact), 3.0 * inside - 3.0 / d * total


def wide_as_printed(result: Array) -> Claim:
    """The difference is of the order 1/d."""
    d, _, exact, printed = result
    return Claim(
        statement="Eq. 40: β_j = 3 E[f | w_j] − (3/d) Σ_k E[f | w_k] + O(1/d) for "
        "ν → ∞: largest difference times d",
        value=float((np.abs(exact - printed) * d).max()),
        sense="<=",
        limit=10.0,
        note=f"{exact[4]:.4f} and {printed[4]:.4f} of one of 1000 words",
    )


def _equal_words(slopes: Values) -> NormalisedSum:
    d = len(slopes)
    return NormalisedSum(0.0, (single_words(slopes, np.ones(d), np.arange(d)),), 0.5)


def _shares(d: int) -> Values:
    """E[√(d / m) | j kept], and the same of two words kept, (2,)."""
    m = np.arange(1.0, d)
    one = 2.0 * m / (d * (d - 1.0))
    two = 3.0 * m * (m - 1.0) / (d * (d - 1.0) * (d - 2.0))
    return np.array([one @ np.sqrt(d / m), two @ np.sqrt(d / m)])


def _factor(nu: float) -> float:
    """ρ(ν) = ∫ t √(1 − t) ψ / ∫ t (1 − t) ψ."""

    def integral(power: float) -> float:
        def part(t: float) -> float:
            weight = formulas.psi(np.array(t), nu)
            return float(t * (1.0 - t) ** power * weight)

        return float(quad(part, 0.0, 1.0, points=[min(0.5, nu)], epsabs=1e-12)[0])

    return integral(0.5) / integral(1.0)


def _factor_charts(result: OneOfMany) -> tuple[Lines, ...]:
    some = np.isfinite(_WIDTHS)
    fine = np.geomspace(0.05, 1.0, 60)
    factors = np.array([_factor(nu) for nu in fine])
    ends = np.array([0.05, 1.0])
    return (
        Lines(
            title="own coefficient of one of 537 words",
            x_label="ν",
            y_label="β_j / φ_j",
            curves=(
                DrawnLine(
                    label="limit", x=_WIDTHS[some], y=result.limits[some, 1], line="o",
                    colour=RUNS,
                ),
                DrawnLine(label="ρ(ν)", x=fine, y=factors, colour=THEORY),
                DrawnLine(
                    label="1.36", x=ends, y=np.full(2, RULE), colour=OTHER, line="--"
                ),
            ),
            marks={"the package's ν": (0.25,)},
            log=True,
            y_limits=(1.0, 1.65),
        ),
    )  # fmt: skip


def _wide_charts(result: Array) -> tuple[Lines, ...]:
    return (
        Lines(
            title="a word of a product, ν → ∞: eq. 40 less the limit",
            x_label="d",
            y_label="difference",
            curves=tuple(
                DrawnLine(
                    label=f"{p} word{'s' * (p > 1)}",
                    x=result[0, result[1] == p],
                    y=(result[3] - result[2])[result[1] == p],
                    colour=colour,
                )
                for p, colour in zip((1, 2, 3), (RUNS, THEORY, OTHER), strict=True)
            ),
            log=True,
        ),
    )


def _alike_charts(result: Values) -> tuple[Lines, ...]:
    some = np.isfinite(_WIDTHS)
    factors = np.array([_factor(nu) for nu in _WIDTHS])
    return (
        Lines(
            title="29 words that are alike, λ = 1",
            x_label="ν",
            y_label="β_j / φ_j",
            curves=(
                DrawnLine(label="limit", x=_WIDTHS[some], y=result[some], line="o-"),
                DrawnLine(
                    label="ρ(ν), without the terms of others", x=_WIDTHS[some],
                    y=factors[some], colour=THEORY,
                ),
            ),
            marks={"the package's ν": (0.25,)},
            log=True,
        ),
    )  # fmt: skip
