"""What a job is: artefacts, manifest, pages, printouts."""

from __future__ import annotations

import json
import math
import sys
import time
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, partial
from math import isfinite, isnan
from pathlib import Path
from typing import Any, ClassVar, Final, Generic, NamedTuple, Self, TypeVar

import pandas as pd

from propopt.base.errors import InvalidInput, Unwritten
from propopt.base.files import require_free_name, writable_folder, written_whole
from propopt.base.terminal import PlainConsole, print_table, silent
from propopt.base.text import (
    in_percent,
    printable,
    printable_lines,
    target_in_words,
    targets_in_words,
)
from propopt.explaining.trade_offs import UNITS_UNKNOWN, TradeOffs
from propopt.functions import Function
from propopt.functions.texts import TextFunction
from propopt.problems.problem import Pick
from propopt.problems.sections import Section
from propopt.problems.sources import Source
from propopt.problems.subject.data import CommonKeys, Extent, read_subject
from propopt.problems.subject.model_sections import Code
from propopt.problems.subject.subject import Subject
from propopt.results.explanation import Explanation, is_lazy


# ---- What a job is: keys of a problem file, and what is refused before it runs


SectionOfJob = TypeVar("SectionOfJob", bound=Section)
"""The section of a problem file that asks for a job."""


class Job(ABC, Generic[SectionOfJob]):
    """What a file asks to be done with its subject: one of ``JOBS``."""

    key: ClassVar[str]
    """The section that says that this is the job."""
    command: ClassVar[str]
    """What runs it."""
    suffixes: ClassVar[tuple[str, ...]]
    """Of the files that it writes, behind the name of the problem."""
    refits: ClassVar[bool] = False
    """Whether the model is fitted again and again, not one output explained."""

    @classmethod
    def own_keys(cls) -> set[str]:
        """Those of a file that are of this job alone."""
        return {cls.key}

    @classmethod
    def section_of(cls, schema: CommonKeys) -> SectionOfJob:
        """What a file says of the job."""
        return getattr(schema, cls.key)

    @classmethod
    @abstractmethod
    def check(cls, section: SectionOfJob, schema: CommonKeys, source: Source) -> None:
        """Refuse what the file alone shows to fail."""

    @classmethod
    @abstractmethod
    def check_extent(
        cls, section: SectionOfJob, schema: CommonKeys, extent: Extent
    ) -> None:
        """Refuse, before any work, what does not fit the sizes of the subject."""

    @classmethod
    def check_formula(
        cls, section: SectionOfJob, function: Function, points: Any
    ) -> None:
        """Refuse a formula that is not finite at points where it is asked."""
        del section, function, points

    @classmethod
    def check_files(cls, section: SectionOfJob, folder: Path, extent: Extent) -> None:
        """Refuse other files that do not go with the subject; by default nothing."""
        del section, folder, extent

    @classmethod
    def check_data(cls, section: SectionOfJob, source: Source) -> None:
        """Refuse what would fail once the data are read; by default nothing."""
        del section, source

    @classmethod
    def check_all(cls, section: SectionOfJob, subject: Callable[[], Subject]) -> None:
        """Refuse what needs all rows and no fitted model; by default nothing."""
        del section, subject


@dataclass(frozen=True, eq=False)
class FileOfJob(ABC):
    """What a problem file says of its subject, and which job it asks for."""

    source: Source
    schema: CommonKeys
    code: Code = Code.REFUSED

    @property
    @abstractmethod
    def job(self) -> type[Job[Any]]:
        """What is to be done."""

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

    @property
    def artefacts(self) -> list[str]:
        """The names of the files that its job writes."""
        return [f"{self.name}{suffix}" for suffix in self.job.suffixes]

    @cached_property
    def subject(self) -> Subject:
        """What is explained; all jobs share it."""
        return read_subject(self.schema, self.source, self.code)

    def require(self, job: type[Job[Any]]) -> Any:
        """The section of a job; a file with another one is refused."""
        if self.job is not job:
            message = f"is run by {self.job.command}"
            raise self.source.error((self.job.key,), message)
        return job.section_of(self.schema)


# ---- One run: names tried before any work, whole files after it, and a printout


Writer = Callable[[str], None]


class JobRun:
    """The files of one run, a suffix for each, and what it prints."""

    def __init__(
        self,
        job: type[Job[Any]],
        name: str,
        files: Sequence[Path],
        folder: str | Path,
        *,
        quiet: bool,
    ) -> None:
        self.began = time.perf_counter()
        self.target = writable_folder(folder) / name
        for suffix in job.suffixes:
            require_free_name(f"{self.target}{suffix}", tuple(files))
        self.quiet, self.console = quiet, PlainConsole(quiet=quiet)
        self.unwritten: list[str] = []
        self.console.print(printable(name), style="bold", end=" ")
        self.console.print(f"({printable(files[0])})" if files else "")

    def write(self, writers: Mapping[str, Writer]) -> None:
        """Write a file for each suffix; of those that cannot be written the reasons."""
        unwritten = []
        for suffix, writer in writers.items():
            try:
                writer(f"{self.target}{suffix}")
            except (Unwritten, InvalidInput) as error:  # the folder may be gone
                unwritten.append(str(error))
        self.unwritten += unwritten

    def show_unwritten(self) -> None:
        """From here on what no file holds is shown at least."""
        self.console.quiet = self.quiet and not self.unwritten

    def end(self, result: Any, written: Iterable[str], cost: str = "") -> None:
        """Say what was written, or that not all was, with what was found."""
        if self.unwritten:
            raise Unwritten("; ".join(self.unwritten), result)
        *others, last = written
        names = f"{', '.join(others)} and {last}" if others else last
        seconds = time.perf_counter() - self.began
        where = f"{printable(self.target)}{names}"
        self.console.print(f"{cost}wrote {where} in {seconds:.1f} s\n")


class Answer(NamedTuple):
    """What a look found, as files and as a printout."""

    found: Any
    writers: Mapping[str, Writer]
    """By the suffix."""
    show: Callable[[PlainConsole], None]
    interrupted: bool = False
    """Whether it is of what had been finished when work was interrupted."""


@dataclass(frozen=True, kw_only=True, eq=False)
class SubjectLook(Job[SectionOfJob]):
    """A job that asks something about a subject, once."""

    make: Callable[[], Subject]
    section: SectionOfJob
    seed: int = 0
    name: str
    files: Sequence[Path] = ()
    model: str = ""
    description: str = ""

    @classmethod
    def asked(cls, file: FileOfJob, **others: Any) -> Self:
        """The job of a problem file; one with another job is refused."""
        known = {
            "make": lambda: file.subject,
            "section": file.require(cls),
            "seed": file.schema.seed,
            "name": file.name,
            "files": file.files,
        }
        return cls(**{**known, **others})

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
    def answer(self, progress: bool | None) -> Answer:
        """What was found, what writes it, and what prints it."""

    def run(self, folder: str | Path, *, quiet: bool = False) -> Any:
        """Answer, write files, print what is read first."""
        run = JobRun(type(self), self.name, self.files, folder, quiet=quiet)
        with warnings_printed(), silent(quiet):
            self.introduce(run.console)
            for fact in (self.description, self.model and f"model: {self.model}"):
                if fact:
                    run.console.print(printable(fact))
            answer = self.answer(False if quiet else None)
            run.write(answer.writers)
            run.show_unwritten()
            answer.show(run.console)
        run.end(answer.found, answer.writers)
        if answer.interrupted:
            raise KeyboardInterrupt
        return answer.found


def write_json(content: Mapping[str, Any], path: str) -> None:
    """Write what a run was, readable by people and programs."""
    text = json.dumps(content, indent=2, default=str)
    with written_whole(path) as draft:
        draft.write_text(f"{text}\n", encoding="ascii")


# ---- What a run was, for ``<name>.json``: its subject, its score, what was picked


def manifest(
    job: str,
    name: str,
    subject: Subject,
    explanation: Explanation | None,
    *,
    gradient: str | None,
    **others: Any,
) -> dict[str, Any]:
    """What is known of a run, in plain values."""
    quantity = subject.function.quantity
    return {
        "job": job,
        "name": name,
        "function": repr(subject.function),
        "quantity": {**quantity.as_fields(), "in_words": quantity.in_words()},
        "gradient": gradient,
        "n_points": len(subject.points),
        "n_features": subject.n_features,
        "score": _score(subject),
        "picked": None if explanation is None else _explanation(explanation),
        **others,
    }


def _score(subject: Subject) -> dict[str, Any] | None:
    score = subject.score
    return None if score is None else {**vars(score), "in_words": score.in_words()}


def _explanation(explanation: Explanation) -> dict[str, Any]:
    return {
        "weights": _finite(explanation.rates),
        "losses": _finite(explanation.losses),
        "shares": {
            name: share if math.isfinite(share) else None
            for name, share in explanation.loss_shares.items()
        },
        "objective": explanation.objective,
        "gap": explanation.gap,
        "target_error": _target_error(explanation),
        "solver": explanation.solver,
        "units": explanation.units,
        "attributions": explanation.units_in_words,
        "parameters": dict(explanation.parameters),
    }


def _target_error(explanation: Explanation) -> dict[str, Any]:
    """JSON has no NaN: what is not known is null."""
    target, known = explanation.target, explanation.target_error
    is_known = target is not None and not isnan(known)
    return {
        "relative": known if is_known else None,
        "interval": target.interval if target is not None and is_known else None,
        "in_words": target_in_words(explanation),
    }


def _finite(numbers: Mapping[str, float]) -> dict[str, float | str]:
    """JSON has no infinity, which the multiplier of a limit of zero can be."""
    return {
        name: float(value) if isfinite(value) else str(value)
        for name, value in numbers.items()
    }


# ---- The page of a run on documents: their words in shades of their attributions


MOST_SHOWN: Final = 100
"""Documents on a page, the first."""


def page_writers(best: Explanation, subject: Subject) -> dict[str, Writer]:
    """What writes the page, by its suffix; nothing where rows are no documents."""
    if not subject.is_text:
        return {}
    return {".html": partial(_write_page, best, subject)}


def _write_page(best: Explanation, subject: Subject, path: str) -> None:
    from propopt.plots import highlight

    function = subject.function
    assert isinstance(function, TextFunction)
    shown = highlight(best, subject.points, words=function, max_rows=MOST_SHOWN)
    shown.to_html(path)


# ---- What runs print: their subject, their front, and warnings once


_SHARES = ("kept", "removed.")


@contextmanager
def warnings_printed() -> Iterator[None]:
    """Print each warning once, on standard error, also before an error."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            yield
        finally:
            for message in dict.fromkeys(str(w.message) for w in caught):
                print(f"warning: {printable_lines(message)}", file=sys.stderr)


def print_subject(subject: Subject, console: PlainConsole, *others: str | None) -> None:
    """Sizes, what else there is to say, what is explained, the score of a model."""
    rows, columns = "points", "features"
    if subject.is_text:
        rows, columns = "documents", "words"
    size = f"{len(subject.points)} {rows} × {subject.n_features} {columns}"
    parts = (size, *others)
    console.print(", ".join(filter(None, parts)))
    console.print(f"explained: {printable(subject.function.quantity)}")
    score = subject.score
    if score is not None:
        console.print(f"the model: {score.in_words()}")


def settings_in_words(
    section: Section | None, exclude: frozenset[str] = frozenset()
) -> str:
    """All settings of a model or a scheme, defaults too, but some."""
    if section is None:
        return ""
    return _settings(section.model_dump(exclude_none=True, exclude=set(exclude)))


def _settings(values: dict[str, Any]) -> str:
    """The kind, and each setting; a section in it stands in brackets."""
    told = [
        f"{name} ({_settings(value)})" if isinstance(value, dict) else f"{name} {value}"
        for name, value in values.items()
        if name != "kind"
    ]
    return ", ".join([str(values["kind"]), *told] if "kind" in values else told)


def print_trade_offs(
    trade_offs: TradeOffs, swept: Sequence[str], console: PlainConsole
) -> None:
    """The front, and how far the baselines lie above it."""
    losses = [f"loss.{name}" for name in trade_offs.losses]
    weights = [f"weight.{name}" for name in swept]
    table = _with_settings(trade_offs.to_frame())
    shares = list(trade_offs.share_columns.values())
    columns = ["method", *weights, *losses, *shares, "gap", "target_error"]
    front = table.loc[trade_offs.on_front, columns]
    _show("The front", front, console)
    for words in targets_in_words(trade_offs.optimized):
        console.print(words)
    if trade_offs.baselines and trade_offs.optimized:
        distances = _with_settings(trade_offs.distances())
        title = "Baselines: above the best possible objective by at least the excess"
        _show(title, distances[["method", *losses, "excess"]], console)
        for words in _not_compared(distances):
            console.print(words)


def print_finding(
    trade_offs: TradeOffs, picked: Explanation | None, pick: Pick, console: PlainConsole
) -> None:
    """What was found at the knee, or at the pick, if attributions of it are known."""
    if picked is None:
        return
    where = "At the knee" if pick == "knee" else "At the pick"
    console.print()
    if not is_lazy(picked):
        console.print(picked.card().text())
        console.print()
    words = trade_offs.in_words(picked)
    if words:
        console.print(f"{where}: {words}")


def _not_compared(distances: pd.DataFrame) -> Iterator[str]:
    """Why baselines have no excess, a sentence each; what is assumed of the others."""
    if (distances["units"] == UNITS_UNKNOWN).any():
        yield "Units of the target are unknown; baselines are taken to be in the same."
    if "not_compared" not in distances:
        return
    told = distances[["method", "not_compared"]].dropna()
    for method, reason in told.itertuples(index=False):
        yield f"{method} is not compared: {reason}"


def _with_settings(frame: pd.DataFrame) -> pd.DataFrame:
    """The method of each row together with those settings that vary within it."""
    columns = [c for c in map(str, frame) if c.startswith("parameter.")]
    parts = []
    for _, rows in frame.groupby("method", sort=False):
        names = rows["method"]
        for column in columns:
            if rows[column].nunique(dropna=False) > 1:
                setting = column.removeprefix("parameter.")
                names = names + f" {setting}=" + rows[column].map(_plain)
        parts.append(names)
    return frame.assign(method=pd.concat(parts)) if parts else frame


def _show(title: str, frame: pd.DataFrame, console: PlainConsole) -> None:
    columns = list(map(str, frame))
    names = [_head(column) for column in columns]
    rows = (list(map(_cell, columns, row)) for row in frame.itertuples(index=False))
    print_table(console, title, names, rows)


def _head(column: str) -> str:
    name = column.removeprefix("loss.").replace("weight.", "weight of_")
    return name.replace("kept.", "kept of_").replace("removed.", "removed of_")


def _plain(value: object) -> str:
    if pd.isna(value):  # type: ignore[call-overload]  # a scalar of any kind
        return "none"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _cell(column: str, value: object) -> str:
    if pd.isna(value):  # type: ignore[call-overload]  # a scalar of any kind
        return "–"
    if column == "excess":
        return f"{value:.1%}"
    if column.startswith(_SHARES):
        return in_percent(float(value))  # type: ignore[arg-type]  # a number
    if column == "gap":
        return f"{value:.0e}" if value else "0"
    return f"{value:.4g}" if isinstance(value, float) else str(value)
