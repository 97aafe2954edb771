"""What is estimated of sets of features: mean scores and their errors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from propopt._typing import Array, Values
from propopt.interactions.features import Places
from propopt.interactions.left_out import LeftOut, inclusion_exclusion


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
    """

    estimates: Values
    standard_errors: Values
    monte_carlo: Values
    counts: Values


def set_scores(source: LeftOut, sets: Places) -> SetScores:
    """SetScores of Q sets of one size."""
    z = inclusion_exclusion(source, sets)
    weights = source.row_weights
    n_rows = len(z.rows)
    means = weights @ z.rows / n_rows
    spread = ((weights[:, None] * (z.rows - means)) ** 2).sum(axis=0)
    return SetScores(
        means,
        np.sqrt(spread / (n_rows - 1) / n_rows),
        _jackknife(z.replicates),
        z.counts,
    )


def _jackknife(replicates: Array) -> Values:
    """√((G − 1)/G Σ_g (z̄_(−g) − mean)²), of estimates without one group each."""
    n_groups = len(replicates)
    if n_groups == 0:
        return np.zeros(replicates.shape[1])
    apart = replicates - replicates.mean(axis=0)
    return np.asarray(np.sqrt((n_groups - 1) / n_groups * (apart**2).sum(axis=0)))
