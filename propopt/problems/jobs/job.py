"""What a job is: its section, a file that asks for it, one run, its files."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import cache, partial
from importlib.metadata import PackageNotFoundError, requires, version
from math import isfinite, isnan
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar, Final, NamedTuple

from propopt.base.cards import to_text
from propopt.base.checkpoints import checkpointing
from propopt.base.document import Chapter, Document, Markup
from propopt.base.errors import InvalidInput, PropoptError, SolverFailure, WriteFailure
from propopt.base.extras import require
from propopt.base.files import (
    archive_path,
    atomic_write,
    format_of,
    remove_drafts,
    require_writable,
    writable_folder,
    write_svg,
)
from propopt.base.html import HighlightedText
from propopt.base.terminal import PlainConsole, silent
from propopt.base.text import enumerated, plural, printable, printable_lines
from propopt.functions import Function
from propopt.functions.texts import TextFunction
from propopt.problems.sections import Section, listed_words
from propopt.problems.subject.data import CommonKeys, ProblemFile
from propopt.problems.subject.subject import Subject
from propopt.proofs.optimum import target_in_words
from propopt.results.explanation import Explanation
from propopt.results.report.page import write_page
from propopt.results.result import Result


# ---- What a job is: the section that asks for it, and what it refuses before it runs


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
    weighs_rows: ClassVar[bool] = False
    """Whether background rows may have weights."""

    @classmethod
    def job_keys(cls) -> set[str]:
        """Those of a file that are of this job alone."""
        return {cls.key}

    def mistakes(self, schema: CommonKeys) -> Iterable[PropoptError]:
        """What the file alone shows to fail."""
        del schema
        return ()

    def check_formula(self, function: Function, points: Any) -> None:
        """Refuse a formula that is not finite at points where it is asked."""

    def extra_files(self, file: ProblemFile) -> Sequence[Path]:
        """Files that are read besides those of the subject."""
        del file
        return ()

    def introduce(self, file: ProblemFile, run: JobRun) -> None:
        """Make what is explained, and print its sizes and its score."""
        with run.console.status("the function"):
            _ = file.subject.function
        run.introduce(file.subject)
        told = (file.schema.description, file.model and f"model: {file.model}")
        run.say(*filter(None, (*told, *file.told)))

    def solve(self, file: ProblemFile, progress: bool | None = None) -> Any:
        """What is found of the subject of a file."""

    def outputs(self, found: Any, run: JobRun) -> Iterator[JobOutput]:
        """What writes it, what is known of the run, and what is printed of it."""
        del found, run
        yield JobOutput()

    def is_whole(self, found: Any, file: ProblemFile) -> bool:
        """Whether another run would find no more."""
        del found, file
        return True

    def documents(self, found: Any, file: ProblemFile) -> Sequence[Document]:
        """What a report has of it."""
        document: Document = found.document()
        subject = file.subject
        if not (subject.is_text and isinstance(found, Explanation)):
            return [document]
        shaded = Chapter(
            "Documents",
            [Markup(_shaded(found, subject).html)],
            f"At most {MOST_SHOWN} documents, their words in shades of attributions.",
        )
        return [replace(document, chapters=lambda: [*document.chapters(), shaded])]

    def write_report(self, found: Any, file: ProblemFile, path: str) -> None:
        """Write the page of it."""
        score = None if self.refits else file.subject.score
        about = [
            file.schema.description,
            None if score is None else f"The model: {score.in_words()}.",
            file.schema.data.standardize
            and "Values of columns are in standard deviations from their mean.",
        ]
        try:
            documents = self.documents(found, file)
        except SolverFailure as failure:  # a point on a curve that is not found
            raise WriteFailure(f"cannot write {path}: {failure}") from failure
        write_page(path, documents, about=[x for x in about if x])

    def run(
        self,
        file: ProblemFile,
        folder: str | Path,
        *,
        quiet: bool = False,
        verbose: bool = False,
    ) -> Any:
        """Do it, write files, print; what was found, None if finished before.

        Raises
        ------
        InvalidInput
            If the folder or the names cannot be written, or are those of files that the
            problem reads, before any work.
        WriteFailure
            If a file cannot be written at the end: what was found is printed, and is
            the ``result`` of the error.
        """
        files, suffixes = (*file.files, *self.extra_files(file)), self.suffixes
        if file.report:
            require("jinja2")
            suffixes = (*suffixes, ".html")
        run = JobRun(self.key, file.name, suffixes, files, folder, quiet=quiet)
        run.verbose = verbose
        run.file, run.problem = file, digest_of_problem(file, files)
        run.manifest |= {"seed": file.schema.seed, "problem": file.resolved}
        if file.resume is not None and run.was_finished():
            run.say(
                f"finished before, and whole: {run.target}.json; nothing is done", ""
            )
            return None

        def solve() -> Any:
            self.introduce(file, run)
            return self.solve(file, run.progress)

        def outputs(found: Any) -> Iterator[JobOutput]:
            run.is_whole = self.is_whole(found, file)
            yield from self.outputs(found, run)
            if file.report:
                page = partial(self.write_report, found, file)
                yield JobOutput({".html": page}, is_lazy=True)

        with checkpointing(kept_folder(file, run.problem)) as kept:
            found = run.do(solve, outputs)
        if kept is not None and run.is_finished:
            kept.forget()
        return found


def parts_folder(file: ProblemFile) -> Path | None:
    """Where a job keeps what it has finished, if it is one that can be resumed."""
    return None if file.resume is None else Path(file.resume) / file.name


def kept_folder(file: ProblemFile, problem: str | None) -> Path | None:
    """Where its parts are, of a run that can be resumed."""
    if file.resume is None or problem is None:
        return None
    return Path(file.resume) / f".{file.name}.parts" / problem[:16]


def digest_of_problem(file: ProblemFile, files: Iterable[Path]) -> str | None:
    """SHA-256 of all settings and of the files of tables and models; None of code."""
    read = [path for path in files if path not in file.source.files]
    is_code = dict(file.schema.model or ()).get("kind") == "imported"
    if is_code or not all(path.is_file() for path in read):
        return None
    said = repr((versions(), file.job.key, file.name, file.report, file.schema))
    digest = hashlib.sha256(said.encode("utf-8", "surrogatepass"))
    for path in read:
        digest.update(digest_of_file(path).encode())
    return digest.hexdigest()


_OF_NO_RUN: Final = re.compile(
    r"extra == .(all|browser|dev|docs|mlflow|publish|test)\b"
)


@cache
def versions() -> Mapping[str, str]:
    """Those of Python, of this package, and of what it uses where that is there."""
    asked = [one for one in requires("propopt") or () if not _OF_NO_RUN.search(one)]
    named = {re.split(r"[^\w-]", one, maxsplit=1)[0] for one in asked}
    found = {"python": platform.python_version()}
    for name in ("propopt", *sorted(named - {"propopt"})):
        with suppress(PackageNotFoundError):
            found[name] = version(name)
    return MappingProxyType(found)


def digest_of_file(path: str | Path) -> str:
    """SHA-256 of what a file holds."""
    with open(path, "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


# ---- One run: names tried before any work, whole files after it, and a printout


Writer = Callable[[str], None]


class JobOutput(NamedTuple):
    """What was found, or a part of it, as files and as a printout."""

    writers: Mapping[str, Writer] = MappingProxyType({})
    """By the suffix, but that of the manifest."""
    manifest: Mapping[str, Any] = MappingProxyType({})
    told: Sequence[str] = ()
    """Sentences that stand before the documents."""
    documents: Sequence[Document] = ()
    interrupted: bool = False
    """Whether it is of what had been finished when work was interrupted."""
    is_lazy: bool = False
    """Whether it is computed when it is written, and may be left out meanwhile."""


class JobRun:
    """The files of one run, a suffix for each, and what it prints."""

    file: Any = None
    """The problem file, where it is of one."""
    problem: str | None = None
    """What tells it from others, where something does."""
    is_whole: bool = True
    """Whether another run would find no more."""
    interrupted: bool = False

    def __init__(
        self,
        job: str,
        name: str,
        suffixes: Iterable[str],
        files: Sequence[Path],
        folder: str | Path,
        *,
        quiet: bool,
    ) -> None:
        self.began: float = time.perf_counter()
        self.target: Path = writable_folder(folder) / name
        for suffix in suffixes:
            require_writable(f"{self.target}{suffix}", files)
            remove_drafts(f"{self.target}{suffix}")
        self.quiet: bool = quiet
        self.verbose: bool = False
        self.console: PlainConsole = PlainConsole(quiet=quiet)
        self.progress = False if quiet else None
        self.unwritten: list[str] = []
        self.written: list[str] = []
        self.manifest: dict[str, Any] = {
            "job": job,
            "name": name,
            "inputs": {
                os.path.relpath(path, files[0].parent): digest_of_file(path)
                for path in files
                if path.is_file()
            },
            "versions": dict(versions()),
        }
        self.say(name, end=" ")
        self.say(f"({files[0]})" if files else "")

    def do(
        self, solve: Callable[[], Any], outputs: Callable[[Any], Iterable[JobOutput]]
    ) -> Any:
        """Find, write and print each part of the answer, and the manifest last."""
        with self.working():
            found = solve()
            for answer in outputs(found):
                self.take(answer)
            self.write_manifest()
        if self.unwritten:
            raise WriteFailure("; ".join(self.unwritten), found)
        seconds = time.perf_counter() - self.began
        where = f"{printable(self.target)}{listed_words(self.written)}"
        self.console.print(f"{self.cost}wrote {where} in {seconds:.1f} s\n")
        if self.interrupted:
            raise KeyboardInterrupt
        return found

    @property
    def cost(self) -> str:
        """How often a model was asked, where one was."""
        if self.file is None or self.file.job.refits:
            return ""
        calls = self.file.subject.function.calls
        rows = calls.rows + calls.trials
        return f"{rows:,} model evaluations, " if rows else ""

    def take(self, answer: JobOutput) -> None:
        """Write a part of the answer, and print it."""
        self.interrupted |= answer.interrupted
        self.manifest |= answer.manifest
        try:
            self.write(answer.writers)
        except KeyboardInterrupt:
            if not answer.is_lazy:
                raise
            self.interrupted = True
        self.say(*answer.told)
        for document in answer.documents:
            self.console.print()
            self.console.print(to_text(document, details=self.verbose))
            if self.verbose:
                how = document.settings.items()
                self.say(*(f"{name}: {text}" for name, text in how))

    @contextmanager
    def working(self) -> Iterator[None]:
        """Print each warning once, on standard error, also before an error."""
        with warnings.catch_warnings(record=True) as caught, silent(self.quiet):
            warnings.simplefilter("always")
            # one package's words to another's authors, which Python hides as well
            warnings.simplefilter("ignore", DeprecationWarning)
            try:
                yield
            finally:
                for message in dict.fromkeys(str(w.message) for w in caught):
                    print(f"warning: {printable_lines(message)}", file=sys.stderr)

    def say(self, *lines: object, end: str = "\n") -> None:
        """Print lines."""
        for line in lines:
            self.console.print(printable(line), end=end)

    def introduce(
        self, subject: Subject, *others: str | None, slopes: str | None = None
    ) -> None:
        """Sizes, what else there is to say, what is explained, the model's score."""
        row, column = ("document", "word") if subject.is_text else ("row", "feature")
        rows = plural(len(subject.points), row)
        size = f"{rows} × {plural(subject.n_features, column)}"
        self.say(", ".join(filter(None, (size, *others))))
        self.say(f"explained: {subject.function.quantity}")
        self.say(*filter(None, (slopes,)))
        if subject.score is not None:
            self.say(f"the model: {subject.score.in_words()}")

    def write(self, writers: Mapping[str, Writer]) -> None:
        """Write a file for each suffix; what no file holds is shown at least."""
        for suffix, writer in writers.items():
            try:
                writer(f"{self.target}{suffix}")
            except (WriteFailure, InvalidInput) as error:  # the folder may be gone
                self.unwritten.append(str(error))
                self.verbose = True  # what no file holds is shown
        self.written += [x for x in writers if x not in self.written]
        self.console.quiet = self.quiet and not self.unwritten

    @property
    def is_finished(self) -> bool:
        """Whether all was found, and all of it written."""
        return self.is_whole and not (self.interrupted or self.unwritten)

    def write_manifest(self) -> None:
        """Write what the run was, behind all other files, with the digests of these."""
        finished = None
        if self.is_finished and self.problem is not None:
            files = {x: digest_of_file(f"{self.target}{x}") for x in self.written}
            finished = {"problem": self.problem, "files": files}
        told = {**self.manifest, "finished": finished}
        self.write({".json": partial(write_json, told)})

    def was_finished(self) -> bool:
        """Whether all files are there as a run of the same problem has left them."""
        try:
            with open(f"{self.target}.json", encoding="ascii") as stream:
                finished = json.load(stream)["finished"]
            files = dict(finished["files"])
            same = self.problem is not None and finished["problem"] == self.problem
            return same and files == {
                x: digest_of_file(f"{self.target}{x}") for x in files
            }
        except (OSError, ValueError, LookupError, TypeError):  # it is of something else
            return False


# ---- What is written: the manifest, a page of documents, a figure with one legend


def write_json(content: Mapping[str, Any], path: str) -> None:
    """Write what a run was, readable by people and programs."""
    text = json.dumps(content, indent=2, default=str)
    with atomic_write(path) as draft:
        draft.write_text(f"{text}\n", encoding="ascii")


def manifest(
    subject: Subject, explanation: Explanation | None, gradient: str | None
) -> dict[str, Any]:
    """What is known of a run on a function: its subject, its score, what was picked."""
    quantity, score = subject.function.quantity, subject.score
    fields = {k: x for k, x in vars(quantity).items() if k != "words" or x is not None}
    told = None if score is None else {**vars(score), "in_words": score.in_words()}
    return {
        "function": repr(subject.function),
        "quantity": {**fields, "in_words": quantity.in_words()},
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
    return {".html": lambda path: _shaded(best, subject).to_html(path)}


def _shaded(best: Explanation, subject: Subject) -> HighlightedText:
    from propopt.plots import highlight

    function = subject.function
    assert isinstance(function, TextFunction)
    return highlight(best, subject.points, words=function, max_rows=MOST_SHOWN)


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


# ---- Saved results of any kind, by what their files say that they are


def load_result(path: str | Path) -> Result:
    """The result that a file holds, whatever kind it is of.

    Raises
    ------
    InvalidInput
        If the file is not there, or holds none.

    Examples
    --------
    >>> import tempfile, numpy as np, propopt as po
    >>> best = po.solve(1.0 * po.GradientMatching(np.eye(3)))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     best.save(f"{folder}/best.npz")
    ...     same = load_result(f"{folder}/best.npz")
    >>> type(same).__name__, same.losses
    ('Explanation', {'gradient_matching': 0.0})
    """
    file = archive_path(path)
    if not file.is_file():
        raise InvalidInput(f"{path}: there is no such file; results save() to .npz")
    kinds = {kind.form.name: kind for kind in _kinds(Result)}
    name = format_of(file)
    if name not in kinds:
        known = enumerated(sorted(kinds), "or")
        raise InvalidInput(f"{path}: expected a saved result ({known})")
    return kinds[name].load(file)


def _kinds(base: Any) -> Iterator[type[Result]]:
    """All kinds of results that are saved; rooms that have some are loaded for it."""
    import propopt.explaining.trade_offs
    import propopt.interactions
    import propopt.lime
    import propopt.results.comparison  # noqa: F401

    for kind in base.__subclasses__():
        if hasattr(kind, "form"):
            yield kind
        yield from _kinds(kind)
