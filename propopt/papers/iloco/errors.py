"""Where the paper errs, and what it leaves to the reader: each with a number."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Final, final

import numpy as np
import pandas as pd
from scipy.special import expit

from propopt._typing import Array, Truths, Values
from propopt.interactions.features import Features
from propopt.interactions.minipatches.drawing.patches import draw_patches
from propopt.interactions.row_errors import ProbabilityError, SquaredError
from propopt.interactions.theory import (
    BernoulliColumns,
    FixedColumns,
    Refitted,
    detectable_ratio,
    ideal_scores,
)
from propopt.papers.iloco.printed import FAITH_SHAP_TOP, ILOCO_TOP
from propopt.papers.lime.lines import DrawnLine, Lines
from propopt.papers.lime.statements import equals
from propopt.reproduce.figure import PaperFigure
from propopt.reproduce.findings import Claim, Invariant
from propopt.reproduce.studies import Study, draw_charts


_PAIRS: Final = Features.of(range(10)).all_sets(2)
_SIGNAL, _MIXED, _NULL = 0, 5, 35
"""Places of the pairs (1, 2), (1, 7) and (6, 7)."""


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class IdealCurves:
    """Scores of ideal learners of simulation (i), by m of ten features.

    Parameters
    ----------
    kept : array (K,)
        m.
    scores : array (K, 45)
        By patches of exactly m, of f = 3 x1 x2 + 2 (x1 + ... + x5).
    """

    kept: Values
    scores: Array

    def to_frame(self) -> pd.DataFrame:
        """Three pairs, by m."""
        places = {"(1, 2)": _SIGNAL, "(1, 7)": _MIXED, "(6, 7)": _NULL}
        shown = {name: self.scores[:, place] for name, place in places.items()}
        return pd.DataFrame({"m": self.kept, **shown})


def misprints_figure() -> PaperFigure:
    """What is printed, and what is true."""
    return PaperFigure(
        title="What is misprinted, and what scores do not mean",
        about="Scores of ideal learners are closed forms. Beside what is checked: "
        "H(X_{I,F}, Y_F) should have Y_I, I(l ∈ F) is l ∈ I, σ̂ lacks its square in the "
        "proof of appendix B, which says MP for the split; third moments need absolute "
        "values; assumption 13 of appendix D is 14; and u = ∅ is to be left out of "
        "E g_u = 0.",
        panels=(
            Study(
                column="ideal learners",
                measure=ideal_curves,
                statements=(
                    refits_are_exact,
                    known_leak,
                    thresholds_are_known,
                    bernoulli_does_not_leak,
                    zero_without_interaction,
                    largest_is_the_interaction,
                    printed_sign,
                ),
                charts=_ideal_charts,
                numbers=IdealCurves.to_frame,
            ),
            Study(
                column="patches",
                measure=patch_shares,
                statements=(
                    shares_are_exact,
                    count_is_a_bound,
                    small_enough,
                    triples_are_together,
                ),
                charts=lambda _: (),
            ),
            Study(
                column="designs",
                measure=printed_eigenvalue,
                statements=(
                    printed_design,
                    eigenvalue_is_known,
                    probability_score_is_known,
                    no_product_no_score,
                    same_sets,
                    same_order,
                ),
                charts=lambda _: (),
            ),
        ),
        draw=partial(draw_charts, size=(6.0, 3.2)),
    )


def ideal_curves() -> IdealCurves:
    """For m from 2 to 8."""
    kept = np.arange(2, 9)
    scores = [_ideal(FixedColumns(10, int(m)), 9.0) for m in kept]
    return IdealCurves(kept=kept.astype(float), scores=np.array(scores))


def _ideal(shares: FixedColumns | BernoulliColumns | Refitted, joint: float) -> Values:
    terms: dict[tuple[int, ...], float] = {(j,): 4.0 for j in range(5)}
    return ideal_scores({**terms, (0, 1): joint}, _PAIRS, shares)


def refits_are_exact(found: IdealCurves) -> Invariant:
    """Propositions 1 and 2, of regression and classes."""
    del found
    terms = {(0,): 2.25, (0, 1): 0.64, (0, 1, 2): 0.25}
    squared = ideal_scores(terms, _PAIRS[[0, 1]], Refitted())
    classes = ideal_scores(terms, _PAIRS[[0, 1]], Refitted(), ProbabilityError())
    return equals(
        "scores of refits are sums of V_u over u ⊇ S, for classes twice",
        np.r_[squared, classes],
        np.array([0.89, 0.25, 1.78, 0.5]),
        1e-12,
    )


def known_leak(found: IdealCurves) -> Invariant:
    """Of two of ten features a patch."""
    return equals(
        "scores of (1, 2), (1, 6) and (6, 7) by patches of 2 of 10 features, snr 3",
        found.scores[0, [_SIGNAL, 4, _NULL]],
        np.array([0.2036, -0.1197, 0.1884]),
        6e-5,
    )


def thresholds_are_known(found: IdealCurves) -> Invariant:
    """V_12 / (V_1 + V_2) above which (1, 2) comes before (6, 7)."""
    del found
    ratios = [
        detectable_ratio(FixedColumns(10, m), error)
        for m in (2, 5)
        for error in (ProbabilityError(), SquaredError())
    ]
    return equals(
        "the least V_12/(V_1 + V_2) that is found, m = 2 and 5 of 10, of classes and "
        "of regressions",
        np.array(ratios),
        np.array([1.4, 1.077, 0.35, 0.154]),
        6e-4,
    )


def bernoulli_does_not_leak(found: IdealCurves) -> Invariant:
    """Each feature enters with m/M."""
    del found
    scores = _ideal(BernoulliColumns(0.2), 9.0)
    known = np.zeros(45)
    known[_SIGNAL] = 9.0 * (1.0 - (1.0 - 0.04) ** 2)
    return equals(
        "by features drawn one by one only (1, 2) has a score", scores, known, 1e-12
    )


def zero_without_interaction(found: IdealCurves) -> Claim:
    """Which is what "the interval excludes zero" is read as."""
    others = np.abs(np.delete(found.scores[0], _SIGNAL))
    return Claim(
        statement="pairs without interaction have scores of zero by patches of a fifth "
        "of the features: largest, over that of (1, 2), snr 3",
        value=float(others.max() / found.scores[0, _SIGNAL]),
        sense="<=",
        limit=0.05,
        note=f"{found.scores[0, _NULL]:.4f} of (6, 7)",
    )


def largest_is_the_interaction(found: IdealCurves) -> Claim:
    """Figure 2 begins at snr 0."""
    del found
    scores = _ideal(FixedColumns(10, 2), 4.0)
    return Claim(
        statement="the pair that interacts has the largest score, snr 2, by patches of "
        "a fifth of the features: that of (1, 2) less that of (6, 7)",
        value=float(scores[_SIGNAL] - scores[_NULL]),
        sense=">=",
        limit=0.0,
        note="it takes snr > 2.93",
    )


def printed_sign(found: IdealCurves) -> Claim:
    """Δ_j − Δ_k − Δ_jk of three terms 2.25, 1 and 0.64."""
    del found
    own, other, joint = 2.25, 1.0, 0.64
    delta_j, delta_k = own + joint, other + joint
    delta_jk = own + other + joint
    return Claim(
        statement="Δ_j − Δ_k − Δ_jk, as appendix D has it, is the score V_jk: "
        "difference for V_j, V_k, V_jk = 2.25, 1, 0.64",
        value=abs(delta_j - delta_k - delta_jk - joint),
        sense="<=",
        limit=1e-9,
        note=f"Δ_j + Δ_k − Δ_jk is {delta_j + delta_k - delta_jk:.2f}",
    )


def patch_shares() -> Values:
    """Mean shares of 500 patches without a row and a set, of 0, 1 and 2 features."""
    patches = draw_patches(500, 120, 30, 8, 3, "fixed", 0)
    absent = ~patches.features
    shares = [1.0, absent.mean(), _mean_of_pairs(absent)]
    return np.array([patches.out.mean() * share for share in shares])


def _mean_of_pairs(absent: Truths) -> float:
    first, second = Features.of(range(8)).all_sets(2).T
    return float((absent[:, first] & absent[:, second]).mean())


def shares_are_exact(found: Values) -> Invariant:
    """Every patch has n rows and m features: nothing is left to chance."""
    return equals(
        "the mean share of patches without a row and 0, 1, 2 features, n/N = 1/4, "
        "m/M = 3/8",
        found,
        np.array([0.75, 0.46875, 0.75 * 20 / 56]),
        1e-12,
    )


def count_is_a_bound(found: Values) -> Claim:
    """(1 − n/N) (1 − m/M) (1 − m/(M − 1))."""
    bound = 0.75 * (1 - 3 / 8) * (1 - 3 / 7)
    return Claim(
        statement="the printed lower bound of the mean share of patches without a row "
        "and two features is a bound and no equality: share less bound",
        value=float(found[2] - bound),
        sense=">=",
        limit=1e-3,
        note="it is equal",
    )


def small_enough(found: Values) -> Claim:
    """Assumption 6 against the simulations."""
    del found
    growth = (0.2 * 1000 / np.sqrt(1000)) / (0.2 * 250 / np.sqrt(250))
    return Claim(
        statement="patches of a fifth of the rows are n = o(√N): n/√N at N = 1000, "
        "over that at N = 250",
        value=float(growth),
        sense="<=",
        limit=0.99,
        note="intervals are proved for the former",
    )


def triples_are_together(found: Values) -> Claim:
    """Figure 1A at M = 10."""
    del found
    kept = 0.2 * 10
    return Claim(
        statement="patches of a fifth of ten features can learn a product of three: "
        "features in a patch",
        value=kept,
        sense=">=",
        limit=3.0,
    )


def printed_eigenvalue() -> float:
    """The least, of the precision with 1 and, beside it, 0.8."""
    precision = np.eye(10) + 0.8 * (np.eye(10, k=1) + np.eye(10, k=-1))
    return float(np.linalg.eigvalsh(precision)[0])


def printed_design(found: float) -> Claim:
    """Of figure A5."""
    return Claim(
        statement="Σ⁻¹ with Σ⁻¹_{j,j+1} = 0.8 is a precision: its least eigenvalue",
        value=found,
        sense=">=",
        limit=0.0,
        note="Σ_jk = 0.8^|j − k| in its place",
    )


def eigenvalue_is_known(found: float) -> Invariant:
    """1 − 1.6 cos(π/11)."""
    known = 1.0 - 1.6 * np.cos(np.pi / 11)
    return equals("least eigenvalue: 1 − 1.6 cos(π/11)", found, known, 1e-12)


def sigmoid_score() -> Values:
    """Δ_j and iLOCO_jk of P(y = 1) = sigmoid(2 (x1 + ... + x5)), by quadrature.

    Δ_T = 2 E Var(f* | X_−T) = 2 (E f*² − E (E[f* | X_−T])²), with normal sums.
    """
    nodes, weights = np.polynomial.hermite_e.hermegauss(80)
    weights = weights / weights.sum()

    def square(n_left_out: int) -> float:
        kept, gone = (2.0 * np.sqrt(n) for n in (5 - n_left_out, n_left_out))
        inner = expit(kept * nodes[:, None] + gone * nodes) @ weights
        return float(weights @ inner**2)

    one, two = (2.0 * (square(0) - square(t)) for t in (1, 2))
    return np.array([one, 2.0 * one - two])


def probability_score_is_known(found: float) -> Invariant:
    """Main effects of features 1 to 5, and every pair of them."""
    del found
    return equals(
        "Δ_j and iLOCO_jk of the sigmoid of a sum", sigmoid_score(),
        np.array([0.0911, 0.0214]), 6e-5,
    )  # fmt: skip


def no_product_no_score(found: float) -> Claim:
    """Of classes, at snr 0."""
    del found
    delta, score = sigmoid_score()
    return Claim(
        statement="without a product there is no interaction, of classes: score of a "
        "pair of the five features at snr 0, over the LOCO of one",
        value=float(score / delta),
        sense="<=",
        limit=0.05,
        note="probabilities of a sum are no sum",
    )


def same_sets(found: float) -> Claim:
    """Table A1: what text and table agree on."""
    del found
    return Claim(
        statement="Faith-Shap and iLOCO-MP have the same ten pairs on Car Evaluation, "
        "as table A1 prints them: pairs that both have",
        value=float(len(set(FAITH_SHAP_TOP) & set(ILOCO_TOP))),
        sense=">=",
        limit=10.0,
    )


def same_order(found: float) -> Claim:
    """The text has medium price and low maintenance, 4 and 5 doors on top."""
    del found
    place = (
        ILOCO_TOP.index(("Hi Maint", "3d")) if ("Hi Maint", "3d") in ILOCO_TOP else 10
    )
    return Claim(
        statement="high maintenance and 3 doors, at the top in the text, is in table "
        "A1: its place, from 1",
        value=float(place + 1),
        sense="<=",
        limit=10.0,
        note="the table has high price and 3 doors",
    )


def _ideal_charts(found: IdealCurves) -> tuple[Lines, ...]:
    looks = {
        "(1, 2)": (_SIGNAL, "#1f4e79", "-"),
        "(1, 7), one matters": (_MIXED, "#dd8452", "--"),
        "(6, 7), none matters": (_NULL, "#c0392b", ":"),
    }
    curves = tuple(
        DrawnLine(
            label=name, x=found.kept, y=found.scores[:, place], colour=colour, line=line
        )
        for name, (place, colour, line) in looks.items()
    )
    return (
        Lines(
            title="ideal learners, snr 3, M = 10",
            x_label="m, features in a patch",
            y_label="score",
            curves=curves,
            y_limits=(-0.5, 2.0),
        ),
    )
