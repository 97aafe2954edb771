"""What a job is: its section, a file that asks for it, one run, its files."""

from __future__ import annotations

import json
import sys
import time
import warnings
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property, partial
from math import isfinite, isnan
from pathlib import Path
from typing import Any, ClassVar, Final, NamedTuple, TypeAlias

from propopt.base.cards import Card
from propopt.base.errors import InvalidInput, ProblemFileError, Unwritten
from propopt.base.files import (
    require_free_name,
    writable_folder,
    write_svg,
    written_whole,
)
from propopt.base.terminal import PlainConsole, silent
from propopt.base.text import printable, printable_lines, target_in_words
from propopt.functions import Function
from propopt.functions.texts import TextFunction
from propopt.problems.problem import Problem
from propopt.problems.sections import Location, Section, listed_words
from propopt.problems.sources import Faults, Source
from propopt.problems.subject.data import (
    CommonKeys,
    Extent,
    check_documents,
    check_subject,
    first_points,
    read_subject,
)
from propopt.problems.subject.model_sections import Code
from propopt.problems.subject.subject import Subject
from propopt.results.explanation import Explanation


# ---- What a job is: the section that asks for it, and what it refuses before it runs


Mistake: TypeAlias = tuple[Location, str] | tuple[Location, str, str]
"""Where, what is wrong, and perhaps the key that is missing there."""


class JobSection(Section):
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

    def mistakes(self, schema: CommonKeys) -> Iterable[Mistake]:
        """What the file alone shows to fail."""
        del schema
        return ()

    def check(self, schema: CommonKeys, source: Source) -> None:
        """Refuse what the file alone shows to fail."""
        told = self.mistakes(schema)
        Faults(*(_error(source, *mistake) for mistake in told)).refuse()

    def check_extent(self, schema: CommonKeys, extent: Extent, folder: Path) -> None:
        """Refuse what does not fit the subject's sizes, and files of something else."""

    def check_formula(self, function: Function, points: Any) -> None:
        """Refuse a formula that is not finite at points where it is asked."""

    def check_data(self, source: Source) -> None:
        """Refuse what would fail once the data are read."""

    def check_all(self, subject: Callable[[], Subject]) -> None:
        """Refuse what needs all rows and no fitted model."""

    @abstractmethod
    def run(self, file: ProblemFile, folder: str | Path, *, quiet: bool) -> Any:
        """Do it, write files, print what is read first; what was found."""


def _error(
    source: Source, location: Location, message: str, missing: str | None = None
) -> ProblemFileError:
    return source.error(location, message, missing=missing)


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
    n_jobs : int, optional
        Workers of a run; numbers do not depend on them.
    solver : str, optional
        That of a sweep, instead of the one in the file.
    resume : path, optional
        A folder in which fits are kept, so that a run that ended early goes on.
    """

    source: Source
    schema: CommonKeys
    code: Code = Code.REFUSED
    n_jobs: int | None = None
    solver: str | None = None
    resume: str | Path | None = None

    @property
    def job(self) -> JobSection:
        """What is to be done: the section that says so."""
        job: JobSection = self.schema.job
        return job

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

    @property
    def model(self) -> str:
        """All settings of the model, in words."""
        unused = {"output"} if self.job.refits else set()
        return settings_in_words(self.schema.model, unused)

    @cached_property
    def subject(self) -> Subject:
        """What is explained; all jobs share it."""
        return read_subject(self.schema, self.source, self.code)

    def asked(self, rows: Sequence[int] | None = None, **how: Any) -> ProblemFile:
        """The same, perhaps of other rows than it says, run by other settings."""
        schema = self.schema
        if rows is not None:
            other = self.job.model_copy(update={"rows": [*rows]})
            schema = schema.model_copy(update={self.job.key: other})
        return replace(self, schema=schema, **how)

    def with_seed(self, seed: int) -> ProblemFile:
        """The same with other draws of whatever is random."""
        return replace(self, schema=self.schema.model_copy(update={"seed": seed}))

    def require(self, command: str) -> Any:
        """The section of a job; a file with another one is refused."""
        if self.job.command != command:
            message = f"is run by propopt {self.job.command}"
            raise self.source.error((self.job.key,), message)
        return self.job

    def build(self) -> Problem:
        """The problem to sweep; its parts are made when they are first asked for.

        Raises
        ------
        ProblemFileError
            If the file has another job than ``objective``.
        """
        problem: Problem = self.require("sweep").problem(self)
        return problem

    def run(self, folder: str | Path, *, quiet: bool = False) -> Any:
        """Do its job: find, write files, print what is read first.

        Parameters
        ----------
        folder : path
            Where to write; made if it is not there.
        quiet : bool
            Print nothing but warnings, which go to standard error.

        Returns
        -------
        object
            What was found: trade-offs, an explanation, limits of LIME, scores.
        """
        return self.job.run(self, folder, quiet=quiet)

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
            self._check_one_job()
            self.job.check(self.schema, self.source)
        faults.refuse()

    def _check_one_job(self) -> None:
        """Refuse a file without a job, with two, or with keys of another."""
        schema, source, faults = self.schema, self.source, Faults()
        known = schema.keys_of_jobs()
        keys = [key for key in known if getattr(schema, key) is not None]
        if len(keys) != 1:
            raise source.error(
                tuple(keys[-1:]),
                f"expected exactly one of {listed_words(known)}, got "
                f"{listed_words(keys) if keys else 'none of them'}",
            )
        of_others = set().union(*known.values()) - self.job.own_keys()
        for name in sorted(of_others & schema.model_fields_set):
            faults.add(source, (name,), f"has no effect with {self.job.key}")
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
        schema, faults = self.schema, Faults()
        with faults.noted():
            self.job.check_data(self.source)
        with faults.noted():
            rows = check_subject(schema, self.source, FIRST_ROWS, self.code)
            if schema.function is not None:
                points = first_points(schema, rows, FIRST_ROWS)
                with self.source.blaming("function"):
                    self.job.check_formula(schema.function.build(), points)
        faults.refuse()

    def check_all_data(self) -> None:
        """The same with all rows, and all that needs no fitted model."""
        self.job.check_data(self.source)
        with self.source.blaming():
            self.job.check_all(lambda: self.subject)
        _ = self.subject


FIRST_ROWS: Final = 1_000
"""Of a table, that a check reads."""


def settings_in_words(section: Section | None, unused: Iterable[str] = ()) -> str:
    """All settings of a model or a scheme, defaults too, but some."""
    if section is None:
        return ""
    return _settings(section.model_dump(exclude_none=True, exclude={*unused}))


def _settings(values: dict[str, Any]) -> str:
    """The kind, and each setting; a section in it stands in brackets."""
    told = [
        f"{name} ({_settings(value)})" if isinstance(value, dict) else f"{name} {value}"
        for name, value in values.items()
        if name != "kind"
    ]
    return ", ".join([str(values["kind"]), *told] if "kind" in values else told)


# ---- One run: names tried before any work, whole files after it, and a printout


Writer = Callable[[str], None]


class JobRun:
    """The files of one run, a suffix for each, and what it prints."""

    def __init__(
        self,
        suffixes: Iterable[str],
        name: str,
        files: Sequence[Path],
        folder: str | Path,
        *,
        quiet: bool,
    ) -> None:
        self.began = time.perf_counter()
        self.target = writable_folder(folder) / name
        for suffix in suffixes:
            require_free_name(f"{self.target}{suffix}", tuple(files))
        self.quiet, self.console = quiet, PlainConsole(quiet=quiet)
        self.progress = False if quiet else None
        self.unwritten: list[str] = []
        self.written: list[str] = []
        self.say(name, end=" ")
        self.say(f"({files[0]})" if files else "")

    @contextmanager
    def working(self) -> Iterator[None]:
        """Print each warning once, on standard error, also before an error."""
        with warnings.catch_warnings(record=True) as caught, silent(self.quiet):
            warnings.simplefilter("always")
            try:
                yield
            finally:
                for message in dict.fromkeys(str(w.message) for w in caught):
                    print(f"warning: {printable_lines(message)}", file=sys.stderr)

    def say(self, *lines: object, end: str = "\n") -> None:
        """Print lines."""
        for line in lines:
            self.console.print(printable(line), end=end)

    def show(self, *cards: Card, settings: bool = True) -> None:
        """Print cards as text, below the last of them how it was made."""
        for card in cards:
            self.console.print()
            self.console.print(card.text())
        if settings:
            self.say(*(f"{name}: {text}" for name, text in cards[-1].settings.items()))

    def introduce(self, subject: Subject, *others: str | None) -> None:
        """Sizes, what else there is to say, what is explained, the model's score."""
        rows, columns = "points", "features"
        if subject.is_text:
            rows, columns = "documents", "words"
        size = f"{len(subject.points)} {rows} × {subject.n_features} {columns}"
        self.say(", ".join(filter(None, (size, *others))))
        self.say(f"explained: {subject.function.quantity}")
        if subject.score is not None:
            self.say(f"the model: {subject.score.in_words()}")

    def write(self, writers: Mapping[str, Writer]) -> None:
        """Write a file for each suffix; what no file holds is shown at least."""
        for suffix, writer in writers.items():
            try:
                writer(f"{self.target}{suffix}")
            except (Unwritten, InvalidInput) as error:  # the folder may be gone
                self.unwritten.append(str(error))
        self.written += writers
        self.console.quiet = self.quiet and not self.unwritten

    def end(self, found: Any, cost: str = "") -> None:
        """Say what was written, or that not all was, with what was found."""
        if self.unwritten:
            raise Unwritten("; ".join(self.unwritten), found)
        seconds = time.perf_counter() - self.began
        where = f"{printable(self.target)}{listed_words(self.written)}"
        self.console.print(f"{cost}wrote {where} in {seconds:.1f} s\n")


class Answer(NamedTuple):
    """What was found, as files and as a printout."""

    writers: Mapping[str, Writer]
    """By the suffix, but that of the manifest."""
    manifest: Mapping[str, Any]
    cards: Sequence[Card]
    told: Sequence[str] = ()
    """Sentences that stand before the cards."""
    more: Sequence[Card] = ()
    """Cards of something else, behind the settings of the first."""
    interrupted: bool = False
    """Whether it is of what had been finished when work was interrupted."""


class LookSection(JobSection):
    """A job that asks something about a subject, once."""

    @abstractmethod
    def solve(self, file: ProblemFile, progress: bool | None = None) -> Any:
        """What is found of the subject of a file."""

    @abstractmethod
    def answer(self, found: Any, file: ProblemFile) -> Answer:
        """What writes it, what is known of the run, and what is printed of it."""

    def introduce(self, file: ProblemFile, run: JobRun) -> None:
        """Make what is explained, and print its sizes and its score."""
        with run.console.status("the function"):
            _ = file.subject.function
        run.introduce(file.subject)
        run.say(*filter(None, (file.schema.description,)))
        run.say(*[f"model: {words}" for words in [file.model] if words])

    def others_read(self, file: ProblemFile) -> Sequence[Path]:
        """Files that are read besides those of the subject."""
        del file
        return ()

    def run(self, file: ProblemFile, folder: str | Path, *, quiet: bool = False) -> Any:
        files = (*file.files, *self.others_read(file))
        run = JobRun(self.suffixes, file.name, files, folder, quiet=quiet)
        with run.working():
            self.introduce(file, run)
            found = self.solve(file, run.progress)
            answer = self.answer(found, file)
            content = {"job": self.key, "name": file.name, **answer.manifest}
            run.write({**answer.writers, ".json": partial(write_json, content)})
            run.say(*answer.told)
            run.show(*answer.cards)
            if answer.more:
                run.show(*answer.more, settings=False)
        run.end(found)
        if answer.interrupted:
            raise KeyboardInterrupt
        return found


# ---- What is written: the manifest, a page of documents, a figure with one legend


def write_json(content: Mapping[str, Any], path: str) -> None:
    """Write what a run was, readable by people and programs."""
    text = json.dumps(content, indent=2, default=str)
    with written_whole(path) as draft:
        draft.write_text(f"{text}\n", encoding="ascii")


def manifest(
    subject: Subject, explanation: Explanation | None, gradient: str | None
) -> dict[str, Any]:
    """What is known of a run on a function: its subject, its score, what was picked."""
    quantity, score = subject.function.quantity, subject.score
    told = None if score is None else {**vars(score), "in_words": score.in_words()}
    return {
        "function": repr(subject.function),
        "quantity": {**quantity.as_fields(), "in_words": quantity.in_words()},
        "gradient": gradient,
        "n_points": len(subject.points),
        "n_features": subject.n_features,
        "score": told,
        "picked": None if explanation is None else _explanation(explanation),
    }


def _explanation(explanation: Explanation) -> dict[str, Any]:
    """JSON has neither NaN, which is null here, nor the infinity of multipliers."""
    target, known = explanation.target, explanation.target_error
    is_known = target is not None and not isnan(known)
    return {
        "weights": _finite(explanation.rates),
        "losses": _finite(explanation.losses),
        "shares": {
            name: share if isfinite(share) else None
            for name, share in explanation.loss_shares.items()
        },
        "objective": explanation.objective,
        "gap": explanation.gap,
        "target_error": {
            "relative": known if is_known else None,
            "interval": target.interval if target is not None and is_known else None,
            "in_words": target_in_words(explanation),
        },
        "solver": explanation.solver,
        "units": explanation.units,
        "attributions": explanation.units_in_words,
        "parameters": dict(explanation.parameters),
    }


def _finite(numbers: Mapping[str, float]) -> dict[str, float | str]:
    return {
        name: float(value) if isfinite(value) else str(value)
        for name, value in numbers.items()
    }


MOST_SHOWN: Final = 100
"""Documents on a page, the first."""


def page_writers(best: Explanation, subject: Subject) -> dict[str, Writer]:
    """What writes words in shades of attributions; nothing where rows are no texts."""
    if not subject.is_text:
        return {}

    def write(path: str) -> None:
        from propopt.plots import highlight

        function = subject.function
        assert isinstance(function, TextFunction)
        shown = highlight(best, subject.points, words=function, max_rows=MOST_SHOWN)
        shown.to_html(path)

    return {".html": write}


def write_figure(figure: Any, panels: Iterable[Any], name: str, path: str) -> None:
    """Write a figure whose panels share one legend below them, each look once."""
    looks: dict[str, Any] = {}
    for axes in panels:
        if (legend := axes.get_legend()) is not None:
            handles, labels = axes.get_legend_handles_labels()
            looks = dict(zip(labels, handles, strict=True)) | looks
            legend.remove()
    figure.legend(
        [*looks.values()], [*looks], loc="outside lower left", ncols=3, frameon=False
    )
    write_svg(figure, path, salt=printable(name))
