"""Scores of interactions that come out of no fit: made by hand, or drawn."""

import numpy as np

from propopt.interactions import InteractionScores
from propopt.interactions.features import Features


_SQUARED = {"error": "squared", "units": "squared units of the target"}


def scores_of(names, estimates, errors=0.1, order=2, **fields):
    """Scores of sets by places, with one standard error for all."""
    values = np.array(list(estimates.values()), dtype=np.float64)
    given = {
        "sets": np.array(list(estimates), dtype=np.intp).reshape(-1, order),
        "names": tuple(names),
        "scores": values,
        "standard_errors": np.full(len(values), errors),
        "monte_carlo": np.zeros(len(values)),
        "counts": np.full(len(values), 100.0),
        "n_rows": 500,
        "n_candidates": len(values),
        "method": "by hand",
    }
    return InteractionScores(**{**_SQUARED, **given, **fields})


def made_up_scores(rng, n_features=5, order=2, **fields):
    """Of all sets of so many features, some far from zero, by groups of patches."""
    names = tuple("abcdefghijklmnop"[:n_features])
    sets = Features.of(names).all_sets(order)
    errors = rng.uniform(0.5, 1.5, size=len(sets))
    given = {
        "sets": sets,
        "names": names,
        "scores": errors * rng.normal(scale=5.0, size=len(sets)),
        "standard_errors": errors,
        "monte_carlo": 0.3 * errors[::-1],
        "counts": rng.integers(30, 60, size=len(sets)).astype(np.float64),
        "n_rows": 50,
        "n_candidates": len(sets),
        "method": "minipatches",
        "n_groups": 20,
    }
    return InteractionScores(**{**_SQUARED, **given, **fields})
