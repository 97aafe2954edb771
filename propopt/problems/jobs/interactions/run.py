"""Interactions that are run: what is fitted, what is written."""

from __future__ import annotations

from pathlib import Path

from propopt.interactions import InteractionScores
from propopt.problems.jobs.interactions.look import InteractionsLook
from propopt.problems.jobs.interactions.report import InteractionsReport
from propopt.problems.jobs.interactions.section import InteractionsJob
from propopt.problems.jobs.look import run_look


def run_interactions(
    look: InteractionsLook, folder: str | Path, *, quiet: bool = False
) -> InteractionScores:
    """Score sets of features, write tables, print the strongest sets.

    ============================ ======================================================
    ``<name>_interactions.csv``  a line for each set: score, errors, interval, p-values
    ``<name>_main_effects.csv``  the same of each feature by itself, which is LOCO
    ``<name>.svg``               pairs as cells, the strongest sets, and features by
                                 themselves, with their intervals
    ``<name>.npz``               the scores, by their ``save``
    ``<name>.json``              what was fitted and how, and how well it predicts
    ============================ ======================================================

    Parameters
    ----------
    look : InteractionsLook
        What is asked.
    folder : path
        Where to write; made if it is not there.
    quiet : bool
        Print nothing but warnings, which go to standard error.

    Raises
    ------
    InvalidInput
        If the folder or the names cannot be written, before any work, or the model
        cannot be fitted without features.
    Unwritten
        If a file cannot be written at the end; the error has the scores as ``result``.
    KeyboardInterrupt
        After Ctrl-C; where enough patches had been fitted, once files are written.
    """

    def report(progress: bool | None) -> InteractionsReport:
        return InteractionsReport(look, look.solve(progress))

    facts = [f"model: {look.model}"] if look.model else []
    found: InteractionScores = run_look(
        look, InteractionsJob, folder, report, facts=facts, quiet=quiet
    )
    return found
