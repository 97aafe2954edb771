"""Methods of an explanation about single runs of LIME, with n samples each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from propopt._typing import Array
from propopt.checks import read_count, read_positive
from propopt.lime.explanation.scatter import run_of
from propopt.lime.finite import expected
from propopt.lime.finite.run import SingleRun, required_samples


if TYPE_CHECKING:
    from propopt.lime.explanation.places import RowLimits
    from propopt.lime.explanation.result import LimeExplanation


def run_of_samples(
    explanation: LimeExplanation, n_samples: int | None = None
) -> SingleRun:
    """The mean and the covariance of the coefficients of one run of LIME.

    Parameters
    ----------
    n_samples : int, optional
        Of the run; those of the explanation by default.

    Raises
    ------
    Refused
        If the explanation was loaded.
    """
    n = read_samples(explanation, n_samples)
    return explanation.own_run if n == explanation.n_samples else run_of(explanation, n)


def noise_of_runs(explanation: LimeExplanation, n_samples: int | None = None) -> Array:
    """Standard deviations of the coefficients of a single run, (N, D).

    Parameters
    ----------
    n_samples : int, optional
        Of the run; those of the explanation by default.

    Raises
    ------
    Refused
        If the explanation was loaded, and they are not known.
    """
    n = read_samples(explanation, n_samples)
    if n == explanation.n_samples:
        return explanation.runs.deviations
    return run_of_samples(explanation, n).standard_deviations


def samples_required(explanation: LimeExplanation, se: float) -> Array:
    """Samples of one run for standard errors of ``se``, (N, D).

    Parameters
    ----------
    se : float
        In units of the output.

    Raises
    ------
    InvalidInput
        If it is not positive.
    """
    size = read_positive(se, "se")
    return required_samples(explanation.n_samples, explanation.runs.deviations, size)


def mean_of_runs(explanation: LimeExplanation, n_samples: int | None = None) -> Array:
    """Mean coefficients of runs with their ridge and their first row, (N, D).

    Parameters
    ----------
    n_samples : int, optional
        Of each run; those of the explanation by default.
    """
    return expected(
        explanation.limits,
        explanation.values,
        read_samples(explanation, n_samples),
        explanation.ridge,
        explanation.first_row,
    ).coefficients


def read_samples(explanation: RowLimits, n_samples: int | None) -> int:
    """The samples of a run; those of the explanation where none are given."""
    if n_samples is None:
        return explanation.n_samples
    return read_count(n_samples, "n_samples")
