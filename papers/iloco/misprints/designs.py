"""What is printed of designs and tables."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.special import expit

from papers.engine.findings import Claim, Invariant, Refuted
from papers.engine.studies import Study
from papers.iloco.printed import ILOCO_TOP
from papers.iloco.simulations import covariance, printed_precision
from papers.lime.statements import equals
from propopt.base.arrays import Array, Values


def designs_study() -> Study[Array]:
    """The panel of designs and tables."""
    return Study(
        column="designs",
        measure=lambda: printed_precision(10),
        statements=(
            precision_is_autoregressive,
            probability_score_is_known,
            doors_as_in_the_text,
            doors_as_in_the_table,
        ),
        charts=lambda _: (),
    )


def precision_is_autoregressive(result: Array) -> Invariant:
    """Its covariance is (−0.8)^|j − k| / (1 − 0.8²), that of figure A5 up to signs."""
    signs = (-1.0) ** np.arange(10)
    known = np.outer(signs, signs) * covariance("falling", 10) / (1.0 - 0.8**2)
    least = float(np.linalg.eigvalsh(result)[0])
    found = equals(
        "Σ⁻¹ with 0.8 beside 1 + 0.8² (1 at both ends) is the precision of an "
        "autoregression", result @ known, np.eye(10), 1e-12,
    )  # fmt: skip
    return replace(found, note=f"least eigenvalue {least:.4f}")


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


def probability_score_is_known(result: Array) -> Invariant:
    """Main effects of features 1 to 5, and every pair of them, without a product."""
    del result
    return equals(
        "Δ_j and iLOCO_jk of the sigmoid of a sum", sigmoid_score(),
        np.array([0.0911, 0.0214]), 6e-5,
    )  # fmt: skip


def doors_as_in_the_text(result: Array) -> Claim:
    """The text has this pair at the top of Car Evaluation."""
    del result
    return Claim(
        statement="high maintenance and 3 doors, at the top in the text, is in table "
        "A1: its place, from 1",
        value=_place(("Hi Maint", "3d")),
        sense="<=",
        limit=10.0,
        if_false=Refuted(
            "table A1 has no such pair; high price and 3 doors, in the tenth place, "
            "may be meant"
        ),
    )


def doors_as_in_the_table(result: Array) -> Invariant:
    """What table A1 prints instead."""
    del result
    place = _place(("Hi Price", "3d"))
    return equals("table A1 has high price and 3 doors: place", place, 10.0, 0.0)


def _place(pair: tuple[str, str]) -> float:
    """In iLOCO's column of table A1, from 1; 11 if it is not there."""
    return float(ILOCO_TOP.index(pair) + 1 if pair in ILOCO_TOP else 11)
