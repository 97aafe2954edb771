"""A problem file: checked, with the places of mistakes, and built on demand."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from propopt.errors import ProblemFileError
from propopt.losses import Objective
from propopt.problems.jobs import check_one_job
from propopt.problems.jobs.base import Job
from propopt.problems.jobs.sweep import Sweep
from propopt.problems.problem import Problem
from propopt.problems.schema import ProblemSchema
from propopt.problems.sources.base import Faults, PythonSource, Source
from propopt.problems.sources.reading import read_schema
from propopt.problems.sources.yaml_text import YamlSource
from propopt.problems.subject.documents import check_documents
from propopt.problems.subject.models.code import Code
from propopt.problems.subject.reading import (
    check_subject,
    check_table,
    first_points,
    read_subject,
)
from propopt.problems.subject.subject import Subject


FIRST_ROWS = 1_000
"""Of a table, that a check reads."""


def read_problem(path: str | Path, code: Code = Code.REFUSED) -> ProblemFile:
    """Read and check a problem file; nothing is computed yet.

    Parameters
    ----------
    path : path
        The file.
    code : Code
        Whether Python objects that it names may be imported, which runs their modules.

    Raises
    ------
    ProblemFileError
        ``file:line: path.to.key: what came, what would do``, one line per mistake.
    """
    return _checked(YamlSource.read(path), code)


def read_problem_and_table(path: str | Path, code: Code = Code.REFUSED) -> ProblemFile:
    """As :func:`read_problem`; what is wrong with a file and its table is told in one.

    Of a file that is right the table is not read here.

    Parameters
    ----------
    path, code
        As for :func:`read_problem`.

    Raises
    ------
    ProblemFileError
        With the mistakes in the file and in its table, one line per mistake.
    """
    source = YamlSource.read(path)
    try:
        return _checked(source, code)
    except ProblemFileError as error:
        faults = Faults(error)
    with faults.noted():
        check_table(source, FIRST_ROWS)
    raise faults.joint()


def read_sections(
    sections: Mapping[str, Any],
    name: str = "problem",
    folder: str | Path = ".",
    code: Code = Code.REFUSED,
) -> ProblemFile:
    """Check what a problem file would say, given as a mapping.

    Parameters
    ----------
    sections : mapping
        The sections of a problem file, of plain values.
    name : str
        What the files written are called, unless ``sections`` has a name.
    folder : path
        Where files that it names are looked for.
    code : Code
        Whether Python objects that it names may be imported, which runs their modules.

    Raises
    ------
    ProblemFileError
        ``path.to.key: what came, what would do``, one line per mistake.

    Examples
    --------
    >>> import propopt as po
    >>> file = po.problems.read_sections(
    ...     {
    ...         "data": {"sklearn": "iris"},
    ...         "function": {"name": "sine"},
    ...         "objective": {"gradient_matching": 1, "sparsity": 0.1},
    ...     }
    ... )
    >>> file.build().objective
    1 * gradient_matching + 0.1 * sparsity
    """
    return _checked(PythonSource(dict(sections), Path(folder), name), code)


def _checked(source: Source, code: Code) -> ProblemFile:
    faults = source.faults
    with faults.noted():
        file = ProblemFile(source, read_schema(source), code)
        with faults.noted():
            file.check()
    faults.refuse()
    return file


@dataclass(frozen=True, eq=False)
class ProblemFile:
    """What a problem file says, or a mapping that says the same, once it is valid.

    Parameters
    ----------
    source : Source
        The file, for messages.
    schema : ProblemSchema
        Its content.
    code : Code
        Whether Python objects that it names may be imported.
    """

    source: Source
    schema: ProblemSchema
    code: Code = Code.REFUSED

    @property
    def name(self) -> str:
        """What the files written are called."""
        return self.schema.name or self.source.name

    @property
    def files(self) -> tuple[Path, ...]:
        """What is read: the problem file, and its table if that is a CSV."""
        csv = self.schema.data.csv
        table = () if csv is None else (self.source.path.parent / csv,)
        return (*self.source.files, *table)

    def with_seed(self, seed: int) -> ProblemFile:
        """The same with other draws of whatever is random."""
        return replace(self, schema=self.schema.model_copy(update={"seed": seed}))

    def build(self) -> Problem:
        """The problem to sweep; its parts are made when they are first asked for.

        Raises
        ------
        ProblemFileError
            If the file has another job than ``objective``.
        """
        schema = self.schema
        self.require(Sweep)
        return Problem(
            subject=lambda: self.subject,
            objective=self._objective,
            weights=schema.build_weights(),
            limits=schema.build_limits(),
            baselines=schema.build_baselines(is_text=schema.data.text is not None),
            setting=schema.build_setting(),
            solver=schema.solver,
            tolerance=schema.tolerance,
            seed=schema.seed,
            name=self.name,
            axes=schema.axes,
            scale="linear" if schema.plot is None else schema.plot.scale,
            pick=schema.pick,
            attributions=schema.attributions,
            files=self.files,
        )

    def require(self, job: type[Job]) -> None:
        """Refuse a file with another job.

        Raises
        ------
        ProblemFileError
            With the section that says so, and what would run it.
        """
        own = self.schema.job
        if not isinstance(own, job):
            raise self.source.error((own.key,), f"is run by {own.command}")

    @property
    def artefacts(self) -> list[str]:
        """The names of the files that its job writes."""
        return self.schema.job.artefacts(self.name)

    def check(self) -> None:
        """Refuse what can be seen to fail without reading or computing anything.

        Raises
        ------
        ProblemFileError
            For a name of no loss or solver, settings that a baseline cannot have,
            weights that are all zero at once, and too many of them.
        """
        faults = Faults()
        with faults.noted():
            check_documents(self.schema, self.source)
        with faults.noted():
            check_one_job(self.schema, self.source)
            self.schema.job.check(self.schema, self.source)
        faults.refuse()

    def check_data(self) -> None:
        """Refuse what a run would, as far as the first rows of a table show.

        Its headers are read, the number of its rows, its target, and the values of
        these rows; a formula is evaluated at as many points. Nothing is fitted.

        Raises
        ------
        ProblemFileError
            For tables, columns, targets and outputs that cannot be, sizes that do not
            fit each other, formulas that are not finite, and an objective that does
            not say how many points there are.
        """
        schema, job, faults = self.schema, self.schema.job, Faults()
        with faults.noted():
            job.check_data(schema, self.source)
        with faults.noted():
            rows = check_subject(schema, self.source, FIRST_ROWS, self.code)
            if schema.function is not None:
                points = first_points(schema, rows, FIRST_ROWS)
                with self.source.blaming("function"):
                    job.check_formula(schema, schema.function.build(), points)
        faults.refuse()

    def check_all_data(self) -> None:
        """The same with all rows, and all that needs no fitted model."""
        self.schema.job.check_data(self.schema, self.source)
        with self.source.blaming():
            self.schema.job.check_all(self)
        _ = self.subject

    @cached_property
    def subject(self) -> Subject:
        """What is explained; all jobs share it."""
        return read_subject(self.schema, self.source, self.code)

    def _objective(self) -> Objective:
        assert self.schema.objective is not None
        with self.source.blaming():
            return self.schema.objective.build(self.subject)
