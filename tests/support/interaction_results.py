"""Scores of interactions as they come out of no fit: made up, of any size."""

from __future__ import annotations

from typing import Any

import numpy as np

from propopt.interactions import InteractionScores
from propopt.interactions.features import Features


def made_up_scores(
    rng: np.random.Generator, n_features: int = 5, order: int = 2, **fields: Any
) -> InteractionScores:
    """Scores of all sets of so many features, some of them far from zero."""
    names = tuple("abcdefghijklmnop"[:n_features])
    sets = Features.of(names).all_sets(order)
    errors = rng.uniform(0.5, 1.5, size=len(sets))
    own: dict[str, Any] = {
        "sets": sets,
        "names": names,
        "estimates": errors * rng.normal(scale=5.0, size=len(sets)),
        "standard_errors": errors,
        "monte_carlo": 0.3 * errors[::-1],
        "counts": rng.integers(30, 60, size=len(sets)).astype(np.float64),
        "n_rows": 50,
        "n_candidates": len(sets),
        "method": "minipatches",
        "error": "squared",
        "units": "squared units of the target",
        "n_groups": 20,
    }
    return InteractionScores(**{**own, **fields})
