"""Limits of LIME that are run: what is computed, what is written."""

from __future__ import annotations

from pathlib import Path

from propopt.lime import LimeExplanation, TextLimeExplanation
from propopt.problems.jobs.lime.look import LimeLook
from propopt.problems.jobs.lime.of_tables import TableReport
from propopt.problems.jobs.lime.of_texts import TextReport
from propopt.problems.jobs.lime.report import LimeReport
from propopt.problems.jobs.lime.section import LimeJob
from propopt.problems.jobs.look import run_look


def run_limits(
    look: LimeLook, folder: str | Path, *, quiet: bool = False
) -> LimeExplanation | TextLimeExplanation:
    """Explain rows by what LIME tends to, write tables, print coefficients.

    ==================== ==============================================================
    ``<name>_lime.csv``  a line for each row and feature: bin, coefficient, the scatter
                         of one run, the mean of runs; of documents for each word
    ``<name>_diagnosis.csv``
                         what they hide: :meth:`LimeDiagnosis.to_frame`
    ``<name>_path.csv``  coefficients at each kernel width of ``path``, if there is one;
                         of documents at each bandwidth
    ``<name>.svg``       the first rows: coefficients with the noise of one run, and
                         over kernel widths, with changes of sign, where there are some
    ``<name>.html``      of documents: their texts with words highlighted
    ``<name>.npz``       the explanation, by its ``save``
    ``<name>.json``      what was explained and how, and the score of the model
    ==================== ==============================================================

    Parameters
    ----------
    look : LimeLook
        What is explained.
    folder : path
        Where to write; made if it is not there.
    quiet : bool
        Print nothing but warnings, which go to standard error.

    Raises
    ------
    InvalidInput
        If the folder or the names cannot be written, before any work, or the model
        cannot be explained.
    Unwritten
        If a file cannot be written at the end; the error has the explanation as
        ``result``.
    """

    def report(progress: bool | None) -> LimeReport:
        found = look.solve(progress)
        asked = look.section.diagnose
        diagnosis = found.diagnose(progress=progress) if asked else None
        is_text = isinstance(found, TextLimeExplanation)
        return (TextReport if is_text else TableReport)(look, found, diagnosis)

    found: LimeExplanation | TextLimeExplanation = run_look(
        look, LimeJob, folder, report, quiet=quiet
    )
    return found
