"""One look at a subject, and its run: files, a printout, and how long it took."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Generic, TypeVar

from propopt.errors import Unwritten
from propopt.output.progress import PlainConsole, silent
from propopt.output.text import printable
from propopt.problems.jobs.artefacts import Artefacts, Writer
from propopt.problems.jobs.base import Job
from propopt.problems.jobs.printout import print_subject, print_title, warnings_printed
from propopt.problems.section import Section
from propopt.problems.subject.subject import Subject


SectionOfJob = TypeVar("SectionOfJob", bound=Section)
"""The section of a job."""


@dataclass(frozen=True, kw_only=True, eq=False)
class SubjectLook(ABC, Generic[SectionOfJob]):
    """What is asked about a subject, once.

    Parameters
    ----------
    make : callable
        Gives the subject when it is first asked for.
    section : Section
        The settings.
    seed : int
        Of what is sampled.
    name : str
        What the files written are called.
    files : sequence of paths
        What it was read from: not to be written over.
    """

    make: Callable[[], Subject]
    section: SectionOfJob
    seed: int = 0
    name: str
    files: Sequence[Path] = ()

    @cached_property
    def subject(self) -> Subject:
        """What is explained."""
        return self.make()

    def introduce(self, console: PlainConsole) -> None:
        """Make what is explained, and print its sizes and its score."""
        with console.status("the function"):
            _ = self.subject.function
        print_subject(self.subject, console)

    @abstractmethod
    def solve(self, progress: bool | None = None) -> Any:
        """The answer.

        Parameters
        ----------
        progress : bool, optional
            Show a bar; by default only on a terminal.
        """


class LookReport(ABC):
    """What a look found, as files and as a printout."""

    found: Any
    interrupted: bool = False
    """Whether it is of what had been finished when work was interrupted."""

    @abstractmethod
    def writers(self) -> dict[str, Writer]:
        """What writes each file, by its suffix."""

    @abstractmethod
    def print(self, console: PlainConsole) -> None:
        """What is read first of what was found."""


def run_look(
    look: SubjectLook[Any],
    job: type[Job],
    folder: str | Path,
    report: Callable[[bool | None], LookReport],
    *,
    facts: Sequence[str] = (),
    quiet: bool,
) -> Any:
    """Answer, write files, print what is read first.

    Parameters
    ----------
    look : SubjectLook
        What is asked.
    job : type of Job
        Whose files are written.
    folder : path
        Where to write; made if it is not there.
    report : callable
        Told whether to show bars, gives the answer as files and as a printout.
    facts : sequence of str
        What is printed before work begins, a line each.
    quiet : bool
        Print nothing but warnings, which go to standard error.

    Raises
    ------
    InvalidInput
        If the folder or the names cannot be written, before any work.
    Unwritten
        If a file cannot be written at the end; the error has the answer as ``result``.
    KeyboardInterrupt
        After all that, if the answer is of work that was interrupted.
    """
    began = time.perf_counter()
    artefacts = Artefacts.tried(folder, look.name, job.suffixes, look.files)
    console = PlainConsole(quiet=quiet)
    print_title(look.name, look.files, console)
    with warnings_printed(), silent(quiet):
        look.introduce(console)
        for fact in facts:
            console.print(printable(fact), markup=False)
        answer = report(False if quiet else None)
        writers = answer.writers()
        unwritten = artefacts.write(writers)
        # what no file holds is shown at least
        console.quiet = quiet and not unwritten
        answer.print(console)
    if unwritten:
        raise Unwritten("; ".join(unwritten), answer.found)
    seconds = time.perf_counter() - began
    console.print(f"wrote {artefacts.in_words(writers)} in {seconds:.1f} s\n")
    if answer.interrupted:
        raise KeyboardInterrupt
    return answer.found
