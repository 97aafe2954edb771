"""Scores of pairs that are made by hand, not by fits."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from propopt.interactions import InteractionScores


def scores_of(names, estimates, errors=0.1, order=2, **fields):
    """Scores of sets by places, a mapping, with one standard error for all."""
    sets = np.array(list(estimates), dtype=np.intp).reshape(-1, order)
    values = np.array(list(estimates.values()), dtype=np.float64)
    given = {
        "sets": sets,
        "names": tuple(names),
        "estimates": values,
        "standard_errors": np.full(len(values), errors),
        "monte_carlo": np.zeros(len(values)),
        "counts": np.full(len(values), 100.0),
        "n_rows": 500,
        "n_candidates": len(values),
        "method": "by hand",
        "error": "squared",
        "units": "squared units of the target",
    }
    return InteractionScores(**{**given, **fields})


def random_scores(names, seed=0, errors=0.3):
    """Of all pairs, normal."""
    rng = np.random.default_rng(seed)
    pairs = list(combinations(range(len(names)), 2))
    values = rng.normal(size=len(pairs)) * (rng.random(len(pairs)) < 0.3) + 0.1
    return scores_of(names, dict(zip(pairs, values.tolist(), strict=True)), errors)
