"""A problem file: checked, with the places of mistakes, and built on demand."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from propopt.losses import Objective
from propopt.problems.checking import check_formula, check_schema, check_tied
from propopt.problems.parts import part
from propopt.problems.problem import Problem
from propopt.problems.reading import read_schema
from propopt.problems.schema import ProblemSchema
from propopt.problems.source import PythonSource, Source
from propopt.problems.subject.models.code import Code
from propopt.problems.subject.reading import (
    check_subject,
    first_points,
    read_subject,
)
from propopt.problems.subject.subject import Subject
from propopt.problems.yaml_source import YamlSource


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


def read_sections(
    sections: Mapping[str, Any],
    folder: str | Path = ".",
    code: Code = Code.REFUSED,
) -> ProblemFile:
    """Check what a problem file would say, given as a mapping.

    Parameters
    ----------
    sections : mapping
        The sections of a problem file, of plain values.
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
    return _checked(PythonSource(dict(sections), Path(folder)), code)


def _checked(source: Source, code: Code) -> ProblemFile:
    file = ProblemFile(source, read_schema(source), code)
    file.check()
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
        return self.schema.name or self.source.path.stem

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
        """The problem; its parts are made when they are first asked for."""
        schema = self.schema
        return Problem(
            subject=lambda: self._subject,
            objective=self._objective,
            weights=schema.build_weights(),
            limits=schema.build_limits(),
            baselines=schema.build_baselines(),
            setting=schema.build_setting(),
            solver=schema.solver,
            tolerance=schema.tolerance,
            seed=schema.seed,
            name=self.name,
            axes=schema.axes,
            scale="linear" if schema.plot is None else schema.plot.scale,
            files=self.files,
        )

    def check(self) -> None:
        """Refuse what can be seen to fail without reading or computing anything.

        Raises
        ------
        ProblemFileError
            For a name of no loss or solver, settings that a baseline cannot have,
            weights that are all zero at once, and too many of them.
        """
        check_schema(self.schema, self.source)
        with self.source.blaming():
            self.schema.build_baselines()

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
        rows = check_subject(self.schema, self.source, FIRST_ROWS, self.code)
        check_tied(self.schema, self.source)
        if self.schema.function is not None:
            points = first_points(self.schema, rows, FIRST_ROWS)
            check_formula(self.schema, self.schema.function, points, self.source)

    def check_all_data(self) -> None:
        """The same with all rows, and all losses that need no fitted model."""
        check_tied(self.schema, self.source)
        with self.source.blaming():
            for name, loss in self.schema.objective.losses.items():
                if self.schema.function is not None or not loss.of_function:
                    with part("objective", name):
                        loss.build(self._subject)
        _ = self._subject

    @cached_property
    def _subject(self) -> Subject:
        return read_subject(self.schema, self.source, self.code)

    def _objective(self) -> Objective:
        with self.source.blaming():
            return self.schema.objective.build(self._subject)
