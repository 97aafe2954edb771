"""Noise: what one run says of signs and of ranks."""

from __future__ import annotations

from typing import Final

import numpy as np

from propopt._typing import Array
from propopt.lime.diagnosis.case import Case
from propopt.lime.diagnosis.rule import Checked, Rule


TOP: Final = 3
_DRAWS: Final = 4000


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
        stakes=np.maximum(case.sizes, noise / case.largest),
        sentence=sentence,
        remedy=remedy,
    )


NOISE: Final = Rule(name="noise", threshold=2.0, below=True, weight=0.7, check=_check)


def _check_ranking(case: Case) -> Checked | str:
    n_columns = case.beta.shape[1]
    if n_columns <= TOP:
        return f"there are no more than {TOP} columns"
    chances = top_probabilities(case.beta, case.noise, TOP)

    def sentence(n: int, j: int) -> str:
        del j
        return (
            f"a run of {case.n_samples:,} samples names the {TOP} largest coefficients "
            f"with probability {chances[n]:.2f}"
        )

    def remedy(n: int, j: int) -> str:
        del n, j
        return "rank exact coefficients, or name fewer of them"

    return Checked(
        numbers=chances[:, None],
        stakes=np.ones((1, 1)),
        sentence=sentence,
        remedy=remedy,
    )


def top_probabilities(beta: Array, noise: Array, top: int) -> Array:
    """P(a run has the same ``top`` largest |β|), coefficients normal, (N,).

    Bits are independent under Q, so that estimates of coefficients are taken to be so.
    From 4,000 draws of the seed 0: within 0.02.
    """
    rng = np.random.default_rng(0)
    scatter = rng.standard_normal((_DRAWS, beta.shape[1]))
    return np.array(
        [
            (_top(own + sd * scatter, top) == _top(own[None], top)).all(axis=1).mean()
            for own, sd in zip(beta, noise, strict=True)
        ]
    )


def _top(beta: Array, top: int) -> Array:
    """Which columns are among the largest, (m, D)."""
    order = np.argsort(-np.abs(beta), axis=1, kind="stable")[:, :top]
    chosen = np.zeros(beta.shape, dtype=bool)
    np.put_along_axis(chosen, order, True, axis=1)
    return chosen


RANKING: Final = Rule(
    name="unstable ranking",
    threshold=0.9,
    below=True,
    weight=0.6,
    per_column=False,
    check=_check_ranking,
)
