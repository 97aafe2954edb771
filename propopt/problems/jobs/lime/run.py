"""Limits of LIME that are run: what is computed, what is written."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from propopt.errors import InvalidInput, Unwritten
from propopt.lime import LimeExplanation, limits
from propopt.lime.diagnosis import LimeDiagnosis
from propopt.output.csv import write_csv
from propopt.output.progress import PlainConsole
from propopt.problems.file import ProblemFile
from propopt.problems.jobs.artefacts import Artefacts, Writer, write_json
from propopt.problems.jobs.lime.figure import write_lime_figure
from propopt.problems.jobs.lime.printout import print_diagnosis, print_lime
from propopt.problems.jobs.lime.section import LimeJob, LimeSection
from propopt.problems.jobs.manifest import manifest
from propopt.problems.jobs.printout import print_subject, print_title, warnings_printed
from propopt.problems.parts import part
from propopt.problems.subject.subject import Subject
from propopt.tables.names import listed


@dataclass(frozen=True, kw_only=True, eq=False)
class LimeLook:
    """The rows of a subject that LIME is asked about.

    Parameters
    ----------
    make : callable
        Gives the subject when it is first asked for.
    section : LimeSection
        The settings.
    seed : int
        Of what has to be estimated.
    name : str
        What the files written are called.
    files : sequence of paths
        What it was read from: not to be written over.
    """

    make: Callable[[], Subject]
    section: LimeSection
    seed: int = 0
    name: str = "lime"
    files: Sequence[Path] = ()

    @classmethod
    def of(cls, file: ProblemFile, rows: Sequence[int] | None = None) -> LimeLook:
        """The job of a problem file, for its rows or for others.

        Parameters
        ----------
        file : ProblemFile
            With ``lime``.
        rows : sequence of int, optional
            Numbers of rows of the table, instead of those of the file.

        Raises
        ------
        ProblemFileError
            If the file has another job.
        """
        file.require(LimeJob)
        section = file.schema.lime
        assert section is not None
        if rows is not None:
            section = section.model_copy(update={"rows": list(rows)})
        return cls(
            make=lambda: file.subject,
            section=section,
            seed=file.schema.seed,
            name=file.name,
            files=file.files,
        )

    @cached_property
    def subject(self) -> Subject:
        """What is explained."""
        return self.make()

    def solve(self, progress: bool | None = None) -> LimeExplanation:
        """What the coefficients tend to, by :func:`propopt.lime.limits`."""
        with part("lime"):
            X, names = _rows(self.subject, self.section.rows)
            found = limits(
                self.subject.function,
                X,
                self.section.build(self.subject),
                data=self.subject.others,
                n_samples=self.section.n_samples,
                rng=self.seed,
                progress=progress,
            )
        if found.labels.points is None and names is not None:
            return replace(found, labels=replace(found.labels, points=names))
        return found


def _rows(
    subject: Subject, rows: int | Sequence[int]
) -> tuple[Any, tuple[int, ...] | None]:
    """The rows of a table, and their numbers where they have no names."""
    points, others = subject.points, subject.others
    if isinstance(rows, int):
        return points[:rows], None
    names = tuple(rows)
    if isinstance(points, pd.DataFrame):
        whole = points if others is points else pd.concat([points, others])
        unknown = [row for row in names if row not in whole.index]
        if unknown:
            raise InvalidInput(f"rows: the table has no row {listed(unknown)}")
        return whole.loc[list(names)], names
    table = points if others is points else np.concatenate([points, others])
    if max(names) >= len(table):
        raise InvalidInput(
            f"rows: expected numbers below {len(table)}, got {max(names)}"
        )
    return table[list(names)], names


def run_limits(
    look: LimeLook, folder: str | Path, *, quiet: bool = False
) -> LimeExplanation:
    """Explain rows by what LIME tends to, write tables, print coefficients.

    ==================== ==============================================================
    ``<name>_lime.csv``  a line for each row and feature: bin, coefficient, the scatter
                         of one run, the mean of runs
    ``<name>_diagnosis.csv``
                         what they hide: :meth:`LimeDiagnosis.to_frame`
    ``<name>_path.csv``  coefficients at each kernel width of ``path``, if there is one
    ``<name>.svg``       the first rows: coefficients with the noise of one run, and
                         over kernel widths, with changes of sign, where there are some
    ``<name>.npz``       the explanation: :meth:`LimeExplanation.save`
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
    began = time.perf_counter()
    artefacts = Artefacts.tried(folder, look.name, LimeJob.suffixes, look.files)
    console = PlainConsole(quiet=quiet)
    print_title(look.name, look.files, console)
    with warnings_printed():
        with console.status("the function"):
            _ = look.subject.function
        print_subject(look.subject, console)
        progress = False if quiet else None
        found = look.solve(progress)
        asked = look.section.diagnose
        diagnosis = found.diagnose(progress=progress) if asked else None
        writers = _writers(look, found, diagnosis)
        unwritten = artefacts.write(writers)
        console.quiet = quiet and not unwritten
        print_lime(found, console)
        if diagnosis is not None:
            print_diagnosis(diagnosis, console)
    if unwritten:
        raise Unwritten("; ".join(unwritten), found)
    seconds = time.perf_counter() - began
    console.print(f"wrote {artefacts.in_words(writers)} in {seconds:.1f} s\n")
    return found


def _writers(
    look: LimeLook, found: LimeExplanation, diagnosis: LimeDiagnosis | None
) -> dict[str, Writer]:
    """What writes each file."""
    content = manifest(
        LimeJob.key,
        look.name,
        look.subject,
        None,
        gradient=None,
        lime=_facts(look, found),
        findings=_findings(diagnosis),
    )
    widths = look.section.widths
    path = partial(_write_path, found, widths) if widths else None
    figure = partial(write_lime_figure, found, widths, look.name)
    writers: dict[str, Writer | None] = {
        "_lime.csv": found.to_csv,
        "_diagnosis.csv": None if diagnosis is None else diagnosis.to_csv,
        "_path.csv": path,
        ".svg": figure,
        ".npz": found.save,
        ".json": partial(write_json, content),
    }
    return {suffix: writer for suffix, writer in writers.items() if writer}


def _facts(look: LimeLook, found: LimeExplanation) -> dict[str, Any]:
    return {
        "settings": look.section.model_dump(exclude_none=True),
        "law": found.law_in_words,
        "source": found.source,
        "reason": found.reason or None,
        "rows": list(found.labels.points or range(len(found.values))),
        "prediction": found.values.tolist(),
        "intercept": found.intercept.tolist(),
        "surrogate_at_row": found.at_row.tolist(),
        "mean_weight": found.mean_weight.tolist(),
        "effective_share": found.effective_share.tolist(),
        "n_samples": found.n_samples,
        "units": found.units,
        "notes": list(found.notes),
        "evaluations": found.evaluations,
    }


def _findings(diagnosis: LimeDiagnosis | None) -> dict[str, int] | None:
    """How many things each rule found; None where nothing was looked for."""
    if diagnosis is None:
        return None
    return {rule: len(diagnosis.of(rule)) for rule in diagnosis.rules}


def _write_path(found: LimeExplanation, widths: Sequence[float], path: str) -> None:
    write_csv(path, path_frame(found, widths), names_of_rows=False)


def path_frame(found: LimeExplanation, widths: Sequence[float]) -> pd.DataFrame:
    """A line for each row, kernel width and feature."""
    subject = found.subject
    assert subject is not None
    N, D = found.shape
    M = len(widths)
    points = np.repeat(subject.points, M, axis=0)
    at = subject.limits(points, np.tile(np.asarray(widths, float), N))
    rows = found.labels.points or tuple(range(N))
    errors = getattr(at, "standard_errors", None)
    columns: dict[str, Any] = {
        "row": [row for row in rows for _ in range(M * D)],
        "kernel_width": np.tile(np.repeat(widths, D), N),
        "feature": list(found.labels.feature_names(D)) * (N * M),
        "coefficient": at.coefficients.ravel(),
        "standard_error": 0.0 if errors is None else errors.ravel(),
    }
    return pd.DataFrame(columns)
