"""Scores as a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from propopt._typing import Array, Values
from propopt.interactions.inference.law import ScoreLaw


if TYPE_CHECKING:
    from propopt.interactions.result import InteractionScores


def scores_frame(
    scores: InteractionScores,
    law: ScoreLaw,
    ends: Array,
    adjusted: Values,
    alpha: float,
) -> pd.DataFrame:
    """One row for each set: its features, score, errors, interval and test."""
    features = {
        f"feature_{k + 1}": [scores.names[place] for place in scores.sets[:, k]]
        for k in range(scores.order)
    }
    return pd.DataFrame(
        {
            **features,
            "estimate": scores.estimates,
            "se": scores.standard_errors,
            "se_mc": scores.monte_carlo,
            "se_total": scores.total_errors,
            "ci_low": ends[:, 0],
            "ci_high": ends[:, 1],
            "stat": law.statistics,
            "p_one": law.p_values("greater"),
            "p_two": law.p_values("two-sided"),
            "p_adj": adjusted,
            "reject": adjusted <= alpha,
            "leak": scores.leak,
            "n_patches_min": scores.counts,
            "degenerate": scores.degenerate,
            "effective_rows": scores.effective_rows,
            "used": ~scores.are_not_used,
        }
    )
