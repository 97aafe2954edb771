"""Methods of an explanation of texts about single runs of LIME, with n samples each."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast, final

import numpy as np

from propopt._typing import Array, Positions
from propopt.checks import read_positive
from propopt.errors import Refused
from propopt.lime.explanation.runs import read_samples
from propopt.lime.finite.run import SingleRun, required_samples
from propopt.lime.text.diagnosis.case import MANY_WORDS
from propopt.lime.text.explanation.subject import TextSubject
from propopt.lime.text.finite import expected_run, single_text_run
from propopt.lime.text.sampled import SampledWords


if TYPE_CHECKING:
    from propopt.lime.text.explanation.result import TextLimeExplanation
    from propopt.structures.subsets import SetFunction


@final
@dataclass(frozen=True, eq=False)
class WordRuns:
    """How runs of n samples come out for each document, (d,) each.

    Parameters
    ----------
    n_samples : int
        Of a run.
    means, deviations : tuples of arrays
        Of its coefficients; NaN where they are not known.
    """

    n_samples: int
    means: tuple[Array, ...]
    deviations: tuple[Array, ...]

    def of_rows(self, rows: Positions) -> WordRuns:
        """The same of some documents."""
        return WordRuns(
            self.n_samples,
            tuple(self.means[n] for n in rows),
            tuple(self.deviations[n] for n in rows),
        )


def runs_of(explanation: TextLimeExplanation, n_samples: int) -> WordRuns:
    """Runs of n samples, of documents that are not too long."""
    subject = explanation.subject
    means, deviations = [], []
    for place, row in enumerate(explanation.rows):
        nothing = np.full(row.document.n_words, np.nan)
        short = row.document.n_words <= MANY_WORDS
        if subject is None or not row.is_known or not short:
            means.append(nothing)
            deviations.append(nothing)
            continue
        run = _run(subject, row.value, place, n_samples)
        means.append(run.coefficients[0])
        deviations.append(run.standard_deviations[0])
    return WordRuns(n_samples, tuple(means), tuple(deviations))


def run_at_document(
    explanation: TextLimeExplanation,
    row: Hashable | None = None,
    n_samples: int | None = None,
) -> SingleRun:
    """The mean and the covariance of the coefficients of one run of the package.

    Parameters
    ----------
    row : label or int, optional
        Name or position of the document; by default the first.
    n_samples : int, optional
        Of the run; those of the explanation by default.

    Raises
    ------
    InvalidInput
        If there is no such document.
    Refused
        If the explanation was loaded, or LIME says nothing of the document.
    """
    place = explanation.position(row)
    own = explanation.rows[place]
    subject = explanation.asked("single_run")
    if not own.is_known:
        raise Refused(f"single_run: {own.reason}")
    return _run(subject, own.value, place, read_samples(explanation, n_samples))


def noise_of_words(
    explanation: TextLimeExplanation, n_samples: int | None = None
) -> list[Array]:
    """Standard deviations of coefficients of a single run, (d,) for each document.

    They are NaN for documents that LIME says nothing of, and for those of more than
    500 words; :meth:`single_run` has these.

    Parameters
    ----------
    n_samples : int, optional
        Of the run; those of the explanation by default.

    Raises
    ------
    Refused
        If the explanation was loaded, and they are not known.
    """
    return list(_of_size(explanation, n_samples, "noise").deviations)


def mean_of_words(
    explanation: TextLimeExplanation, n_samples: int | None = None
) -> list[Array]:
    """Mean coefficients of runs of the package ``lime``, (d,) for each document.

    With its ridge of 1, and the document itself as the first sample.

    Parameters
    ----------
    n_samples : int, optional
        Of each run; those of the explanation by default.

    Raises
    ------
    Refused
        If the explanation was loaded, and they are not known.
    """
    if n_samples is None or n_samples == explanation.n_samples:
        return list(explanation.runs.means)
    subject, n = (
        explanation.asked("expected"),
        read_samples(explanation, n_samples),
    )
    found = []
    for means, row in zip(subject.means, explanation.rows, strict=True):
        if means is None:
            found.append(row.coefficients)
        else:
            run = expected_run(means, subject.law, row.value, n)
            found.append(run.coefficients)
    return found


def samples_for_words(explanation: TextLimeExplanation, se: float) -> list[Array]:
    """Samples of one run for standard errors of ``se``, (d,) for each document.

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
    n = explanation.n_samples
    return [required_samples(n, own, size) for own in explanation.runs.deviations]


def _of_size(
    explanation: TextLimeExplanation, n_samples: int | None, what: str
) -> WordRuns:
    n = read_samples(explanation, n_samples)
    if n == explanation.n_samples:
        return explanation.runs
    explanation.asked(what)
    return runs_of(explanation, n)


def _run(subject: TextSubject, value: float, place: int, n_samples: int) -> SingleRun:
    means = subject.means[place]
    assert means is not None, "LIME says something of it"
    if isinstance(means, SampledWords):
        # values are those of the draws, and are asked of them alone
        function = cast("SetFunction", means)
        draws = means.draws
        return single_text_run(function, subject.law, value, n_samples, draws=draws)
    return single_text_run(means, subject.law, value, n_samples)
