"""How single runs of LIME scatter, and how f varies, as samples tell."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, final

import numpy as np

from propopt._typing import Array, Points, Positions, Values
from propopt.batches import Budget
from propopt.lime.explanation.subject import LimeSubject
from propopt.lime.fidelity.exact_variance import (
    PAIRS_AT_MOST,
    exact_variance,
    n_pairs,
)
from propopt.lime.finite.noise import single_run
from propopt.lime.finite.run import SingleRun
from propopt.lime.laws.draws import draws_at
from propopt.lime.surrogates.evaluated import evaluated
from propopt.lime.surrogates.stratified import stratified_uniforms
from propopt.structures.products import SumOfProducts


if TYPE_CHECKING:
    from propopt.lime.explanation.result import LimeExplanation


_N_DRAWS: Final = 4096
"""Of each row, for deviations that are known to 2 %."""

_TABLES: Final = Budget(2**26)


@final
@dataclass(frozen=True, eq=False)
class RunScatter:
    """What samples tell of runs, for each of N rows.

    Parameters
    ----------
    deviations : array (N, D)
        The standard deviations of the coefficients of one run.
    variance : array (N,)
        Var_Q f; exact for sums of products that are not too many.
    n_samples : int
        Of the run.
    n_draws : int
        Samples of each row that deviations, and other variances, were estimated from.
    """

    deviations: Array
    variance: Values
    n_samples: int
    n_draws: int = _N_DRAWS

    def of_rows(self, rows: Positions) -> RunScatter:
        """The same of some rows."""
        return replace(
            self, deviations=self.deviations[rows], variance=self.variance[rows]
        )


def run_of(explanation: LimeExplanation, n_samples: int) -> SingleRun:
    """The mean and the covariance of one run."""
    subject = explanation.asked("a run of another number of samples")
    return single_run(
        subject.evaluate,
        subject.law,
        subject.points,
        explanation.limits,
        explanation.values if explanation.first_row else None,
        n_samples,
        explanation.ridge,
        explanation.first_row,
        n_draws=_N_DRAWS,
        rng=np.random.default_rng(subject.seed),
        common=subject.common,
    )


def weighted_variance(explanation: LimeExplanation) -> Values:
    """Var_Q f at the rows, (N,): by pairs of products, or from draws if too many."""
    subject = explanation.asked("the variance of the function")
    read = subject.products
    if isinstance(read, SumOfProducts):
        points = subject.points
        if n_pairs(read, len(points)) <= PAIRS_AT_MOST:
            found = exact_variance(
                read, subject.law, points, subject.law.widths(points)
            )
            if found is not None:
                return found
    return _drawn_variance(subject)


def _drawn_variance(subject: LimeSubject) -> Values:
    """The same from common draws; where too few count, from even ones around rows."""
    law, points, common = subject.law, subject.points, subject.common
    widths, shared = law.widths(points), np.zeros(len(points), bool)
    if common is not None:
        shared = common.enough(points, widths)
    found = np.empty(len(points))
    if common is not None and shared.any():
        found[shared] = common.variances(points[shared], widths[shared])
    if not shared.all():
        found[~shared] = _variance_around(subject, points[~shared], widths[~shared])
    return found


def _variance_around(subject: LimeSubject, points: Points, widths: Values) -> Values:
    """From even draws of the weighted law of each row."""
    rng, law, parts = np.random.default_rng(subject.seed), subject.law, []
    uniforms = stratified_uniforms(1, _N_DRAWS, points.shape[1], rng)
    for rows in _TABLES.blocks(len(points), 3 * uniforms.nbytes):
        around = points[rows]
        copies = np.broadcast_to(uniforms[0], (len(around), *uniforms.shape[1:]))
        drawn = draws_at(law.columns, around, widths[rows], copies)
        parts.append(evaluated(subject.evaluate, drawn.samples).var(axis=1))
    return np.concatenate(parts)
