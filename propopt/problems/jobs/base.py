"""What a job is: keys of a problem file, and what is refused before it runs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from propopt.functions import Function
from propopt.problems.section import Section
from propopt.problems.sources.base import Source


if TYPE_CHECKING:
    from propopt.problems.extent import Extent
    from propopt.problems.file import ProblemFile
    from propopt.problems.schema import ProblemSchema


class Job(ABC):
    """What a file asks to be done with its subject: one of ``JOBS``.

    A job is one file in ``jobs/``: its keys as a section, this class, and a function
    that runs it and writes its artefacts.
    """

    key: ClassVar[str]
    """The section that says that this is the job."""
    command: ClassVar[str]
    """What runs it."""
    keys: ClassVar[type[Section]]
    """All that only this job knows: fields of the schema of problem files."""
    suffixes: ClassVar[tuple[str, ...]]
    """Of the files that it writes, behind the name of the problem."""
    is_of_one_output: ClassVar[bool] = True
    """Whether one output is explained; else the model is fitted again and again."""

    @abstractmethod
    def check(self, schema: ProblemSchema, source: Source) -> None:
        """Refuse what the file alone shows to fail.

        Raises
        ------
        ProblemFileError
            With the line of each mistake.
        """

    @abstractmethod
    def check_extent(self, schema: ProblemSchema, extent: Extent) -> None:
        """Refuse, before any work, what does not fit the sizes of the subject.

        Raises
        ------
        InvalidInput, Refused
            With the part of the problem.
        """

    @abstractmethod
    def check_formula(
        self, schema: ProblemSchema, function: Function, points: Any
    ) -> None:
        """Refuse a formula that is not finite at some points, where it is asked there.

        Raises
        ------
        InvalidInput
            With how many of the points.
        """

    def check_files(self, schema: ProblemSchema, folder: Path, extent: Extent) -> None:
        """Refuse other files that do not go with the subject; by default nothing.

        Parameters
        ----------
        schema : ProblemSchema
            What the problem file says.
        folder : Path
            Where files that it names are.
        extent : Extent
            Sizes and names of the subject.

        Raises
        ------
        InvalidInput
            With the part of the problem.
        """
        del schema, folder, extent

    def check_data(self, schema: ProblemSchema, source: Source) -> None:
        """Refuse what would fail once the data are read; by default nothing."""
        del schema, source

    def check_all(self, file: ProblemFile) -> None:
        """Refuse what needs all rows and no fitted model; by default nothing."""
        del file

    def artefacts(self, name: str) -> list[str]:
        """The names of the files that it writes."""
        return [f"{name}{suffix}" for suffix in self.suffixes]
