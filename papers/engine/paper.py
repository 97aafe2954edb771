"""A paper: its figures by name, its problem files, and the verdicts on record."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

from papers.engine.figure import PaperFigure
from papers.engine.files import ProblemFiles
from papers.engine.panels import Panel
from papers.engine.sentences import Sentences, read_sentences
from papers.engine.tally import Record, RecordedValues, read_record, read_values
from propopt.base.checks import did_you_mean
from propopt.base.errors import InvalidInput


ALL = "all"
PanelOfTable: TypeAlias = Callable[[Path, str, str | None], Panel]
"""From a CSV file, the column to learn and the task."""


@dataclass(frozen=True, kw_only=True)
class TableOption:
    """What becomes of a table of the user's own.

    Parameters
    ----------
    figure : str
        The figure that it is shown in, beside the panels that are there.
    panel : callable
        Makes its panel; refuses a table that cannot be used before any work.
    """

    figure: str
    panel: PanelOfTable


@dataclass(frozen=True, kw_only=True)
class Paper:
    """A paper whose figures are made anew, and whose statements are checked.

    Parameters
    ----------
    name : str
        What ``--paper`` calls it.
    title : str
        Authors, title and where it appeared.
    figures : mapping
        By their names, callables that make them.
    problems : ProblemFiles, optional
        Where the panels' files are; by default there are none.
    recorded : path, optional
        A CSV table of its statements with their verdicts, as in ``claims.csv``.
    values : path, optional
        A CSV table of values, as in ``values.csv``, of all panels or of some.
    said : path, optional
        A CSV table of what the paper says in each statement, and where.
    own_table : TableOption, optional
        What becomes of a table of the user's own; by default none is taken.
    full : Paper, optional
        The same at the scale of the paper, where that takes too long by default; it has
        no verdicts on record.
    """

    name: str
    title: str
    figures: Mapping[str, Callable[[], PaperFigure]]
    problems: ProblemFiles | None = None
    recorded: Path | None = None
    values: Path | None = None
    said: Path | None = None
    own_table: TableOption | None = None
    full: Paper | None = None

    @property
    def at_full_scale(self) -> Paper:
        """The paper at its own scale.

        Raises
        ------
        InvalidInput
            If that is the only one.
        """
        if self.full is None:
            raise InvalidInput(
                f"--full: the paper {self.name} is at its own scale already"
            )
        return self.full

    @property
    def record(self) -> Record:
        """Statements on record, by figure, statement and difference."""
        return {} if self.recorded is None else read_record(self.recorded)

    @property
    def values_on_record(self) -> RecordedValues:
        """What was measured, by figure, panel, what has it, and the quantity."""
        return {} if self.values is None else read_values(self.values)

    @property
    def sentences(self) -> Sentences:
        """What the paper says, and where, by figure and statement."""
        return {} if self.said is None else read_sentences(self.said)

    def chosen(self, names: Iterable[str]) -> dict[str, PaperFigure]:
        """The figures of these names, or all.

        Raises
        ------
        InvalidInput
            For a name that is not known, or none.
        """
        return {name: self.figures[name]() for name in self.named(names)}

    def named(self, names: Iterable[str]) -> list[str]:
        """The names of these figures, or of all.

        Raises
        ------
        InvalidInput
            For a name that is not known, or none.
        """
        choice = list(dict.fromkeys(names))
        for name in choice:
            require_name(name, [*self.figures, ALL], "figure")
        if not choice:
            raise InvalidInput("figures: expected at least one, got none")
        return list(self.figures) if ALL in choice else choice

    def with_table(
        self,
        figures: Mapping[str, PaperFigure],
        csv: Path,
        target: str,
        task: str | None,
    ) -> dict[str, PaperFigure]:
        """The figures, one of which shows a table of the user's, too.

        Raises
        ------
        InvalidInput
            If the paper takes none, its figure is not among these, or the table
            cannot be used.
        """
        own = self.own_table
        if own is None:
            raise InvalidInput(f"--csv: the paper {self.name} takes no table")
        if own.figure not in figures:
            raise InvalidInput(f"--csv is a table for the figure {own.figure}; add it")
        figure = figures[own.figure]
        panels = (*figure.panels, own.panel(csv, target, task))
        return {**figures, own.figure: replace(figure, panels=panels)}


def require_name(name: str, known: list[str], label: str) -> None:
    """Refuse a name that is none of those known, with the nearest of them."""
    if name not in known:
        hint = did_you_mean(name, known)
        raise InvalidInput(
            f"{label}: there is no {name!r}{hint}; there are {_listed(known)}"
        )


def _listed(names: list[str]) -> str:
    *others, last = names
    return f"{', '.join(others)}, and {last}" if others else last
