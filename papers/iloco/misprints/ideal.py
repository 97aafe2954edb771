"""What scores of ideal learners are: closed forms, against what is read into them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, final

import numpy as np
import pandas as pd

from papers.engine.findings import Claim, Invariant, Misprint, Refuted
from papers.engine.studies import Study
from papers.iloco.theory import (
    BernoulliColumns,
    FixedColumns,
    Refitted,
    detectable_ratio,
    ideal_scores,
)
from papers.lime.lines import DrawnLine, Lines
from papers.lime.statements import equals
from propopt.base.arrays import Array, Values
from propopt.interactions.features import Features
from propopt.interactions.refits import PROBABILITY, SQUARED


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
        m = [f"{kept:g}" for kept in self.kept]
        return pd.DataFrame({"m": m, **shown})


def ideal_study() -> Study[IdealCurves]:
    """The panel of closed forms."""
    return Study(
        column="ideal learners",
        measure=ideal_curves,
        statements=(
            refits_are_exact,
            known_leak,
            thresholds_are_known,
            bernoulli_does_not_leak,
            zero_without_interaction,
            printed_sign,
            right_sign,
        ),
        charts=_ideal_charts,
        numbers=IdealCurves.to_frame,
    )


def ideal_curves() -> IdealCurves:
    """For m from 2 to 8."""
    kept = np.arange(2, 9)
    scores = [_ideal(FixedColumns(10, int(m)), 9.0) for m in kept]
    return IdealCurves(kept=kept.astype(float), scores=np.array(scores))


def _ideal(shares: FixedColumns | BernoulliColumns | Refitted, joint: float) -> Values:
    terms: dict[tuple[int, ...], float] = {(j,): 4.0 for j in range(5)}
    return ideal_scores({**terms, (0, 1): joint}, _PAIRS, shares)


def refits_are_exact(result: IdealCurves) -> Invariant:
    """Propositions 1 and 2, of regression and classes."""
    del result
    terms = {(0,): 2.25, (0, 1): 0.64, (0, 1, 2): 0.25}
    squared = ideal_scores(terms, _PAIRS[[0, 1]], Refitted())
    classes = ideal_scores(terms, _PAIRS[[0, 1]], Refitted(), PROBABILITY)
    return equals(
        "scores of refits are sums of V_u over u ⊇ S, for classes twice",
        np.r_[squared, classes],
        np.array([0.89, 0.25, 1.78, 0.5]),
        1e-12,
    )


def known_leak(result: IdealCurves) -> Invariant:
    """Of two of ten features a patch."""
    return equals(
        "scores of (1, 2), (1, 6) and (6, 7) by patches of 2 of 10 features, snr 3",
        result.scores[0, [_SIGNAL, 4, _NULL]],
        np.array([0.2036, -0.1197, 0.1884]),
        6e-5,
    )


def thresholds_are_known(result: IdealCurves) -> Invariant:
    """V_12 / (V_1 + V_2) above which (1, 2) comes before (6, 7)."""
    del result
    ratios = [
        detectable_ratio(FixedColumns(10, m), error)
        for m in (2, 5)
        for error in (PROBABILITY, SQUARED)
    ]
    return equals(
        "the least V_12/(V_1 + V_2) that is found, m = 2 and 5 of 10, of classes and "
        "of regressions",
        np.array(ratios),
        np.array([1.4, 1.077, 0.35, 0.154]),
        6e-4,
    )


def bernoulli_does_not_leak(result: IdealCurves) -> Invariant:
    """Each feature enters with m/M."""
    del result
    scores = _ideal(BernoulliColumns(0.2), 9.0)
    known = np.zeros(45)
    known[_SIGNAL] = 9.0 * (1.0 - (1.0 - 0.04) ** 2)
    return equals(
        "by features drawn one by one only (1, 2) has a score", scores, known, 1e-12
    )


def zero_without_interaction(result: IdealCurves) -> Claim:
    """Which is what "the interval excludes zero" is read as."""
    others = np.abs(np.delete(result.scores[0], _SIGNAL))
    return Claim(
        statement="only pairs that interact have scores other than 0 by patches of a "
        "fifth of the features, as they have by refits (proposition 1): largest of the "
        "others, over that of (1, 2)",
        value=float(others.max() / result.scores[0, _SIGNAL]),
        sense="<=",
        limit=0.05,
        note=f"snr 3, {result.scores[0, _NULL]:.4f} of (6, 7)",
        if_false=Refuted(
            "f* = 3 x1 x2 + 2 (x1 + … + x5), independent features, M = 10, m = 2: "
            "ideal learners have the target 0.188 of (6, 7), −0.120 of (1, 6) and "
            "0.204 of (1, 2)"
        ),
    )


_TERMS: Final = {(0,): 2.25, (1,): 1.0, (0, 1): 0.64}


def _deltas() -> tuple[float, float, float]:
    """Δ_j, Δ_k and Δ_jk of V_j, V_k, V_jk = 2.25, 1, 0.64."""
    first, second = ideal_scores(_TERMS, np.array([[0], [1]]), Refitted())
    return float(first), float(second), sum(_TERMS.values())


def printed_sign(result: IdealCurves) -> Claim:
    """As in appendix D."""
    del result
    first, second, both = _deltas()
    return Claim(
        statement="Δ_j − Δ_k − Δ_jk, as appendix D has it, is the score V_jk: "
        "difference for V_j, V_k, V_jk = 2.25, 1, 0.64",
        value=abs(first - second - both - _TERMS[0, 1]),
        sense="<=",
        limit=1e-9,
        if_false=Misprint("Δ_j + Δ_k − Δ_jk = V_jk"),
    )


def right_sign(result: IdealCurves) -> Invariant:
    """As everywhere else in the paper."""
    del result
    first, second, both = _deltas()
    return equals(
        "Δ_j + Δ_k − Δ_jk is V_jk", first + second - both, _TERMS[0, 1], 1e-12
    )


def _ideal_charts(result: IdealCurves) -> tuple[Lines, ...]:
    looks = {
        "(1, 2)": (_SIGNAL, "#1f4e79", "-"),
        "(1, 7), one matters": (_MIXED, "#dd8452", "--"),
        "(6, 7), none matters": (_NULL, "#c0392b", ":"),
    }
    curves = tuple(
        DrawnLine(
            label=name,
            x=result.kept,
            y=result.scores[:, place],
            colour=colour,
            line=line,
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
