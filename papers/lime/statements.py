"""What is said of runs of LIME and of its theory."""

from __future__ import annotations

import numpy as np

from papers.engine.findings import Claim, Invariant
from papers.lime.runs import Runs
from propopt.base.arrays import Array


BAND = 5.0
"""Standard errors: a true coefficient of 100 runs is outside once in 400,000."""
FORMULA = 1e-9


def mean_is_expected(runs: Runs) -> Invariant:
    """The mean over runs is the expected output at n: two-sided, |z| ≤ 5."""
    worst = int(np.argmax(np.abs(runs.scores)))
    return Invariant(
        statement="mean over runs is the expected output at n samples: largest |z| of "
        "all coefficients",
        value=float(np.abs(runs.scores[worst])),
        sense="<=",
        limit=BAND,
        note=f"{('intercept', *runs.labels)[worst]}, {len(runs.estimates)} runs, rms "
        f"{np.sqrt(np.mean(runs.scores**2)):.2f}",
    )


def theory_is_in_the_boxes(runs: Runs, *, difference: str = "") -> Claim:
    """The limit lies near the median of the runs: two-sided.

    The median of 100 runs scatters by 0.09 distances of the quartiles, and half of one
    is allowed; that of 20 runs by 0.21, and a whole one is allowed.
    """
    slopes = runs.estimates[:, 1:]
    low, middle, high = np.quantile(slopes, [0.25, 0.5, 0.75], axis=0)
    off = np.abs(runs.limit[1:] - middle) / (high - low)
    worst = int(np.argmax(off))
    return Claim(
        statement="theory lies in the boxes of the runs: its largest distance from the "
        "median, over the distance of the quartiles",
        value=float(off[worst]),
        sense="<=",
        limit=0.5 if len(slopes) >= 100 else 1.0,
        note=runs.labels[worst],
        difference=difference,
    )


def formula_as_printed(
    runs: Runs, *, name: str, tolerance: float = FORMULA, form: str = "as printed"
) -> Claim:
    """What a formula of the paper gives is the limit that is computed here."""
    printed = np.nan if runs.printed is None else runs.printed
    off = np.abs(printed - runs.limit).max() / np.abs(runs.limit).max()
    return Claim(
        statement=f"{name} {form} gives the limit: largest difference, of the "
        "largest coefficient",
        value=float(off),
        sense="<=",
        limit=tolerance,
    )


def equals(
    statement: str, result: float | Array, known: float | Array, tolerance: float
) -> Invariant:
    """A number, or several, are those that they have to be: two-sided."""
    return Invariant(
        statement=f"{statement}: largest difference",
        value=float(np.abs(np.asarray(result) - np.asarray(known)).max()),
        sense="<=",
        limit=tolerance,
        note=", ".join(f"{x:.6g}" for x in np.atleast_1d(result).ravel()[:8]),
    )


def unused_are_zero(runs: Runs, *, used: int) -> Invariant:
    """Columns behind those that f uses have limits of exactly zero."""
    unused = runs.limit[1 + used :]
    return Invariant(
        statement="columns that f does not use have limits of exactly zero: largest",
        value=float(np.abs(unused).max()),
        sense="<=",
        limit=0.0,
        note=f"{len(unused)} columns",
    )
