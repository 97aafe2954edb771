"""Noise: what one run says of signs and of ranks."""

from __future__ import annotations

from typing import Final

import numpy as np

from propopt._typing import Array, Attributions
from propopt.lime.diagnosis.case import Case
from propopt.lime.diagnosis.rule import Checked, Rule
from propopt.lime.finite import SingleRun
from propopt.lime.finite.ranking import ranking_chances


MOST_NAMED: Final = 3
"""The largest coefficients, which a run is to name."""


def _check(case: Case) -> Checked:
    noise = case.noise
    ratio = np.full(noise.shape, np.nan)
    np.divide(np.abs(case.beta), noise, out=ratio, where=(noise > 0.0) & case.depends)

    def sentence(n: int, j: int) -> str:
        return (
            f"the coefficient {case.beta[n, j]:.3g} is {ratio[n, j]:.2g} standard "
            f"deviations of a run of {case.n_samples:,} samples (sd {noise[n, j]:.2g}):"
            " its sign depends on the seed"
        )

    def remedy(n: int, j: int) -> str:
        needed = (
            case.n_samples * (2.0 / ratio[n, j]) ** 2 if ratio[n, j] > 0 else np.inf
        )
        if not case.explanation.is_exact:
            return f"{needed:.2g} samples put it at two standard deviations"
        return (
            "the exact coefficient has no noise; a run needs "
            f"{needed:.2g} samples for two standard deviations"
        )

    return Checked(
        numbers=ratio,
        stakes=wrong_signs(case.sizes, noise / case.largest),
        sentence=sentence,
        remedy=remedy,
    )


NOISE: Final = Rule(name="noise", threshold=2.0, below=True, weight=0.85, check=_check)


def wrong_signs(sizes: Array, noise: Array) -> Array:
    """How large a coefficient of the wrong sign two deviations make: 2 σ − |β|.

    Over the largest of the row: a small one misleads hardly anybody.
    """
    return np.asarray(np.maximum(2.0 * noise - sizes, 0.0))


def _check_ranking(case: Case) -> Checked | str:
    if case.beta.shape[1] <= MOST_NAMED:
        return f"there are no more than {MOST_NAMED} columns"
    return naming_largest(case.run, case.beta)


def naming_largest(run: SingleRun, beta: Attributions) -> Checked:
    """The probability that a run names the largest coefficients, (N, 1).

    Parameters
    ----------
    run : SingleRun
        Of n samples, in N situations.
    beta : array (N, D)
        What it tends to; D is more than three.
    """
    chances = ranking_chances(run, beta, MOST_NAMED).columns
    # rivals that are swapped differ by two deviations of their difference at most
    sizes = np.sort(np.abs(beta), axis=1)
    third = np.argsort(np.abs(beta), axis=1)[:, -MOST_NAMED]
    noise = run.standard_deviations[np.arange(len(beta)), third]
    largest = np.where(sizes[:, -1] > 0.0, sizes[:, -1], 1.0)
    stakes = 2.0 * np.sqrt(2.0) * noise / largest

    def sentence(n: int, j: int) -> str:
        del j
        return (
            f"a run of {run.n_samples:,} samples names the {MOST_NAMED} largest "
            f"coefficients with probability {chances[n]:.2f}"
        )

    return Checked(
        numbers=chances[:, None],
        stakes=stakes[:, None],
        sentence=sentence,
        remedy="rank exact coefficients, or name fewer of them",
    )


RANKING: Final = Rule(
    name="unstable ranking",
    threshold=0.9,
    below=True,
    weight=0.42,
    per_column=False,
    check=_check_ranking,
)
