"""What is estimated of sets of features: mean scores and their errors."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Final, final

import numpy as np

from propopt._typing import Array, Values
from propopt.batches import Budget
from propopt.interactions.features import Places
from propopt.interactions.inference.moments import moments
from propopt.interactions.left_out import LeftOut, inclusion_exclusion


SCORES_AT_ONCE: Final = Budget(2**25)
"""Scores of all rows; about eight arrays of that size are held, whatever Q."""


@final
@dataclass(frozen=True, eq=False)
class SetScores:
    """iLOCO of Q sets of one size, with what is known of the error.

    Parameters
    ----------
    estimates : array (Q,)
        z̄_S, the mean over the rows of Σ_T (−1)^(|T| + 1) Err(f^(−T)).
    standard_errors : array (Q,)
        s/√N, s with the divisor N − 1: of other rows, the predictors as they are.
    monte_carlo : array (Q,)
        Of other patches: the jackknife over groups of them; zero without patches.
    counts : array (Q,)
        Over how many patches a prediction is averaged, where they are fewest.
    effective_rows : array (Q,)
        Rows that carry the standard error: see :class:`Moments`.
    n_groups : int
        G, groups of patches; 0 without patches.
    """

    estimates: Values
    standard_errors: Values
    monte_carlo: Values
    counts: Values
    effective_rows: Values
    n_groups: int


def set_scores(source: LeftOut, sets: Places) -> SetScores:
    """SetScores of Q sets of one size; all rows of a few sets are held at once."""
    row_bytes = 8 * len(source.row_weights)
    blocks = list(SCORES_AT_ONCE.blocks(len(sets), row_bytes)) or [slice(0)]
    parts = [_some_scores(source, sets[own]) for own in blocks]
    if len(parts) == 1:
        return parts[0]
    joined = {
        each.name: np.concatenate([getattr(part, each.name) for part in parts])
        for each in fields(SetScores)
        if each.name != "n_groups"
    }
    return SetScores(**joined, n_groups=parts[0].n_groups)


def _some_scores(source: LeftOut, sets: Places) -> SetScores:
    z = inclusion_exclusion(source, sets)
    found = moments(z.rows, source.row_weights, source.row_groups)
    return SetScores(
        estimates=found.means,
        standard_errors=found.standard_errors,
        monte_carlo=_jackknife(z.replicates),
        counts=z.counts,
        effective_rows=found.effective_rows,
        n_groups=len(z.replicates),
    )


def _jackknife(replicates: Array) -> Values:
    """√((G − 1)/G Σ_g (z̄_(−g) − mean)²), of estimates without one group each."""
    n_groups = len(replicates)
    if n_groups == 0:
        return np.zeros(replicates.shape[1])
    apart = replicates - replicates.mean(axis=0)
    return np.asarray(np.sqrt((n_groups - 1) / n_groups * (apart**2).sum(axis=0)))
