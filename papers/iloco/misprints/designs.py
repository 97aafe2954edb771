"""What is printed of designs and tables."""

from __future__ import annotations

import numpy as np
from scipy.special import expit

from papers.engine.findings import Claim, Invariant
from papers.engine.studies import Study
from papers.iloco.printed import FAITH_SHAP_TOP, ILOCO_TOP
from papers.lime.statements import equals
from propopt.base.arrays import Values


def designs_study() -> Study[float]:
    """The panel of designs and tables."""
    return Study(
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
    )


def printed_eigenvalue() -> float:
    """The least, of the precision with 1 and, beside it, 0.8."""
    precision = np.eye(10) + 0.8 * (np.eye(10, k=1) + np.eye(10, k=-1))
    return float(np.linalg.eigvalsh(precision)[0])


def printed_design(result: float) -> Claim:
    """Of figure A5."""
    return Claim(
        statement="Σ⁻¹ with Σ⁻¹_{j,j+1} = 0.8 is a precision: its least eigenvalue",
        value=result,
        sense=">=",
        limit=0.0,
        note="Σ_jk = 0.8^|j − k| in its place",
    )


def eigenvalue_is_known(result: float) -> Invariant:
    """1 − 1.6 cos(π/11)."""
    known = 1.0 - 1.6 * np.cos(np.pi / 11)
    return equals("least eigenvalue: 1 − 1.6 cos(π/11)", result, known, 1e-12)


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


def probability_score_is_known(result: float) -> Invariant:
    """Main effects of features 1 to 5, and every pair of them."""
    del result
    return equals(
        "Δ_j and iLOCO_jk of the sigmoid of a sum", sigmoid_score(),
        np.array([0.0911, 0.0214]), 6e-5,
    )  # fmt: skip


def no_product_no_score(result: float) -> Claim:
    """Of classes, at snr 0."""
    del result
    delta, score = sigmoid_score()
    return Claim(
        statement="without a product there is no interaction, of classes: score of a "
        "pair of the five features at snr 0, over the LOCO of one",
        value=float(score / delta),
        sense="<=",
        limit=0.05,
        note="probabilities of a sum are no sum",
    )


def same_sets(result: float) -> Claim:
    """Table A1: what text and table agree on."""
    del result
    return Claim(
        statement="Faith-Shap and iLOCO-MP have the same ten pairs on Car Evaluation, "
        "as table A1 prints them: pairs that both have",
        value=float(len(set(FAITH_SHAP_TOP) & set(ILOCO_TOP))),
        sense=">=",
        limit=10.0,
    )


def same_order(result: float) -> Claim:
    """The text has medium price and low maintenance, 4 and 5 doors on top."""
    del result
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
