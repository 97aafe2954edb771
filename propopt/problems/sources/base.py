"""Where a problem was described, for messages: in Python, or in a file."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, final

from propopt.errors import ProblemFileError
from propopt.problems.parts import OF_INPUT, Location


MOST_MISTAKES = 20
"""That one complaint lists."""


@final
class Faults:
    """Mistakes that are found apart from each other, told together."""

    def __init__(self, *found: ProblemFileError) -> None:
        self.found = [*found]

    @contextmanager
    def noted(self) -> Iterator[None]:
        """A mistake that is raised inside is kept, and what follows goes on."""
        try:
            yield
        except ProblemFileError as error:
            self.found.append(error)

    def refuse(self) -> None:
        """Raise one error of all mistakes, if there is any.

        Raises
        ------
        ProblemFileError
            With the mistakes in the order of their lines.
        """
        if self.found:
            raise self.joint()

    def joint(self) -> ProblemFileError:
        """One error of all mistakes, in the order of their lines."""
        if len(self.found) == 1:
            return self.found[0]
        several = [error.lines or ((0, str(error)),) for error in self.found]
        told = list(dict.fromkeys(sorted(chain.from_iterable(several), key=_number)))
        if len(told) > MOST_MISTAKES + 1:
            n, text = told[MOST_MISTAKES]
            place = text.partition(f":{n}: ")[0] + f":{n}: " if n else ""
            told[MOST_MISTAKES:] = [(n, f"{place}and more mistakes, from here on")]
        joint = ProblemFileError("\n".join(text for _, text in told))
        joint.lines = tuple(told)
        return joint


def _number(line: tuple[int, str]) -> int:
    return line[0]


class Source(ABC):
    """A description of a problem, as plain data, that can say where a mistake is."""

    @property
    @abstractmethod
    def path(self) -> Path:
        """The file; its folder is where other files are looked for."""

    @property
    def name(self) -> str:
        """What files written are called, unless the content says so."""
        return self.path.stem

    @property
    @abstractmethod
    def files(self) -> tuple[Path, ...]:
        """What was read."""

    @property
    def faults(self) -> Faults:
        """What was found wrong while it was read, and leaves its content readable."""
        return Faults()

    @abstractmethod
    def data(self) -> Any:
        """The content as plain Python values."""

    @abstractmethod
    def error(
        self, location: Location, message: str, *, missing: str | None = None
    ) -> ProblemFileError:
        """The error ``path.to.key: message``, with file and line if there are any.

        Parameters
        ----------
        location : tuple
            The keys on the way; steps that are not there, such as the chosen kind of a
            union, are left out.
        message : str
            What came, and what would do.
        missing : str, optional
            A key that should be there, and is not.
        """

    @abstractmethod
    def remark(self, location: Location, message: str) -> ProblemFileError:
        """The error without the keys."""

    @abstractmethod
    def line(self, location: Location) -> int:
        """The line of the innermost key on the way that is there; 0 without lines."""

    @contextmanager
    def blaming(self, *location: str | int) -> Iterator[None]:
        """Errors of input raised inside name this place, or the part they are of."""
        try:
            yield
        except OF_INPUT as error:
            raise self.error((*location, *error.part), str(error)) from error


@final
@dataclass(frozen=True, eq=False)
class PythonSource(Source):
    """A mapping made in Python: keys say where a mistake is.

    Parameters
    ----------
    content : mapping
        Sections of a problem file.
    folder : path
        Where files that it names are looked for.
    title : str
        What files written are called.
    """

    content: Any
    folder: Path
    title: str = "problem"

    @property
    def name(self) -> str:
        return self.title

    @property
    def path(self) -> Path:
        return self.folder / self.title

    @property
    def files(self) -> tuple[Path, ...]:
        return ()

    def data(self) -> Any:
        return self.content

    def error(
        self, location: Location, message: str, *, missing: str | None = None
    ) -> ProblemFileError:
        steps = self._steps(location)
        keys = key_path(steps if missing is None else (*steps, missing))
        return ProblemFileError(f"{keys}: {message}" if keys else message)

    def remark(self, location: Location, message: str) -> ProblemFileError:
        del location
        return ProblemFileError(message)

    def line(self, location: Location) -> int:
        del location
        return 0

    def _steps(self, location: Location) -> Location:
        """The keys on the way that are there."""
        content, steps = self.content, _NOWHERE
        for step in location:
            try:
                content = content[step]
            except (LookupError, TypeError):  # the chosen kind of a union
                continue
            steps = (*steps, step)
        return steps


_NOWHERE: Location = ()
SHORT = 60
"""Characters that are shown."""


def key_path(steps: Iterable[str | int]) -> str:
    """``path.to.key``, with quotes around a key that is not one plain word."""
    return ".".join(map(shown_key, steps))


def shown_key(step: str | int) -> str:
    """A key, or how it begins."""
    text = str(step)
    if len(text) > SHORT:
        return f"{text[:40]!r}… ({len(text):,} characters)"
    return repr(text) if "." in text or not text.isprintable() else text
