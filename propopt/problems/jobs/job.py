"""Jobs of problem files: their sections, runs and output files."""

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
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import replace
from functools import cache, partial
from importlib.metadata import PackageNotFoundError, requires, version
from math import isfinite, isnan
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar, Final, NamedTuple

from rich.text import Text

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
from propopt.problems.sections import Section
from propopt.problems.subject.data import CommonKeys, ProblemFile
from propopt.problems.subject.subject import Subject
from propopt.results.explanation import Explanation
from propopt.results.report.page import write_page
from propopt.results.result import Result


# ---- The section of a job


class JobSection(Section):
    """The section of a job, which runs on the subject of a file; one of ``JOBS``."""

    key: ClassVar[str]
    """The key of its section in a problem file."""
    command: ClassVar[str]
    """The command of ``propopt`` that runs it."""
    suffixes: ClassVar[tuple[str, ...]]
    """Suffixes of its output files, after the name of the problem."""
    refits: ClassVar[bool] = False
    """Whether the model is refitted, instead of one output explained."""
    weighs_rows: ClassVar[bool] = False
    """Whether background rows may have weights."""
    exit_code: ClassVar[int] = 3
    """The exit code if the result is not whole; 4 for a refuted claim."""

    @classmethod
    def job_keys(cls) -> set[str]:
        """Keys of a problem file that only this job uses."""
        return {cls.key}

    def mistakes(self, schema: CommonKeys) -> Iterable[PropoptError]:
        """Errors that the file alone shows, without its data."""
        del schema
        return ()

    def output_of(self, model: Any, target: Any, output: Any) -> Any:
        """The explained output of a model, given that of the file."""
        del model, target
        return output

    def check_size(self, n_observed: int) -> None:
        """Refuse settings that need more rows than the model or process learns from."""

    def check_formula(self, function: Function, points: Any) -> None:
        """Refuse a formula that is not finite at the given points."""

    def extra_files(self, file: ProblemFile) -> Sequence[Path]:
        """Files that the job reads in addition to those of the subject."""
        del file
        return ()

    def introduce(self, file: ProblemFile, run: JobRun) -> None:
        """Make the explained function, and print sizes and the score of the model."""
        with run.console.status("the function"):
            _ = file.subject.function
        run.introduce(file.subject)
        run.say_labelled(model=file.model, about=file.schema.description)
        run.say(*filter(None, file.notes))

    def solve(self, file: ProblemFile, progress: bool | None = None) -> Any:
        """Compute the result of the job for the subject of a file."""

    def outputs(self, result: Any, run: JobRun) -> Iterator[JobOutput]:
        """Writers of output files, entries of the manifest, and printed documents."""
        del result, run
        yield JobOutput()

    def is_whole(self, result: Any, file: ProblemFile) -> bool:
        """Whether the result is complete, so that another run adds nothing."""
        del result, file
        return True

    def documents(self, result: Any, file: ProblemFile) -> Sequence[Document]:
        """Documents of the result for the report."""
        document: Document = result.document()
        subject = file.subject
        if not (subject.is_text and isinstance(result, Explanation)):
            return [document]
        shaded = Chapter(
            "Documents",
            [Markup(_shaded(result, subject).html)],
            f"Words of at most {MOST_SHOWN} documents, coloured by attribution.",
        )
        return [replace(document, chapters=lambda: [*document.chapters(), shaded])]

    def write_report(self, result: Any, file: ProblemFile, path: str) -> None:
        """Write the report of the result as a page."""
        score = None if self.refits else file.subject.score
        about = [
            file.schema.description,
            None if score is None else f"The model: {score.in_words()}.",
            file.schema.data.standardize
            and "Values of columns are in standard deviations from their mean.",
        ]
        write_page(path, self.documents(result, file), about=[x for x in about if x])

    def run(
        self,
        file: ProblemFile,
        folder: str | Path,
        *,
        quiet: bool = False,
        verbose: bool = False,
    ) -> Any:
        """Run the job, write its files and print; None if it was already finished.

        Raises
        ------
        InvalidInput
            If output files cannot be written, or would replace files that the problem
            reads; before any work.
        WriteFailure
            If a file cannot be written at the end: what was result is printed, and is
            the ``result`` of the error.
        """
        files = (*file.files, *self.extra_files(file))
        suffixes = self.suffixes
        if file.report:
            require("jinja2")
            suffixes = (*suffixes, ".html")
        run = JobRun.of_file(file, suffixes, files, folder, quiet=quiet)
        run.verbose = verbose
        run.problem = digest_of_problem(file, files)
        if file.resume is not None and run.was_finished():
            run.say(f"already finished: {run.target}.json; nothing to do", "")
            return None

        def solve() -> Any:
            self.introduce(file, run)
            return self.solve(file, run.progress)

        def outputs(result: Any) -> Iterator[JobOutput]:
            run.is_whole = self.is_whole(result, file)
            yield from self.outputs(result, run)
            if file.report:
                page = partial(self.write_report, result, file)
                yield JobOutput({".html": page}, is_lazy=True)

        resumed: Any = nullcontext()
        if file.resume is not None and run.problem is not None:
            parts = Path(file.resume) / f".{file.name}.parts"
            resumed = checkpointing(parts / run.problem[:16])
        with resumed as checkpoint:
            result = run.do(solve, outputs)
        if checkpoint is not None and run.is_finished:
            checkpoint.forget()
        return result


def parts_folder(file: ProblemFile) -> Path | None:
    """The folder for finished parts of a job that can be resumed."""
    return None if file.resume is None else Path(file.resume) / file.name


def digest_of_problem(file: ProblemFile, files: Iterable[Path]) -> str | None:
    """SHA-256 of all settings, tables and model files; None with imported code."""
    files_read = [path for path in files if path not in file.source.files]
    is_code = dict(file.schema.model or ()).get("kind") == "imported"
    if is_code or not all(path.is_file() for path in files_read):
        return None
    settings = repr((versions(), file.job.key, file.name, file.report, file.schema))
    digest = hashlib.sha256(settings.encode("utf-8", "surrogatepass"))
    for path in files_read:
        digest.update(digest_of_file(path).encode())
    return digest.hexdigest()


_UNUSED_IN_RUNS: Final = re.compile(
    r"extra == .(all|browser|dev|docs|mlflow|publish|test)\b"
)


@cache
def versions() -> Mapping[str, str]:
    """Versions of Python, propopt and the installed packages that it uses."""
    requirements = [
        requirement
        for requirement in requires("propopt") or ()
        if not _UNUSED_IN_RUNS.search(requirement)
    ]
    named = {
        re.split(r"[^\w-]", requirement, maxsplit=1)[0] for requirement in requirements
    }
    versions_of = {"python": platform.python_version()}
    for name in ("propopt", *sorted(named - {"propopt"})):
        with suppress(PackageNotFoundError):
            versions_of[name] = version(name)
    return MappingProxyType(versions_of)


def digest_of_file(path: str | Path) -> str:
    """The SHA-256 digest of a file."""
    with open(path, "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


# ---- One run: files and printed lines


Writer = Callable[[str], None]


class JobOutput(NamedTuple):
    """The result of a job, or a part of it, as files and printed documents."""

    writers: Mapping[str, Writer] = MappingProxyType({})
    """Writers of files, by suffix; the manifest has none."""
    manifest: Mapping[str, Any] = MappingProxyType({})
    lines: Sequence[str] = ()
    """Lines that are printed before the documents."""
    documents: Sequence[Document] = ()
    interrupted: bool = False
    """Whether work was interrupted, so that the result is partial."""
    is_lazy: bool = False
    """Whether it is computed while it is written, and may be interrupted."""


class JobRun:
    """One run: its output files, its manifest and its printed lines."""

    file: Any = None
    """The problem file, if the run has one."""
    problem: str | None = None
    """The digest of the problem, if there is one."""
    is_whole: bool = True
    """Whether the result is complete, so that another run adds nothing."""
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
        self.say(f"{name} ({files[0]})" if files else name)

    @classmethod
    def of_file(
        cls,
        file: ProblemFile,
        suffixes: Iterable[str],
        files: Sequence[Path],
        folder: str | Path,
        *,
        quiet: bool,
    ) -> JobRun:
        """A run of a problem file; errors are those of the folder, not of a key."""
        with file.source.locating_errors():
            run = cls(file.job.key, file.name, suffixes, files, folder, quiet=quiet)
        run.file = file
        run.manifest |= {"seed": file.schema.seed, "problem": file.resolved}
        return run

    def do(
        self, solve: Callable[[], Any], outputs: Callable[[Any], Iterable[JobOutput]]
    ) -> Any:
        """Solve, write and print each part of the result, and write the manifest."""
        with self.working():
            result = solve()
            for output in outputs(result):
                self.take(output)
            self.write_manifest()
        if self.unwritten:
            raise WriteFailure("; ".join(self.unwritten), result)
        seconds = time.perf_counter() - self.began
        where = f"{printable(self.target)}{enumerated(self.written, 'and')}"
        self.console.print(f"{self.cost}wrote {where} in {seconds:.1f} s\n")
        if self.interrupted:
            raise KeyboardInterrupt
        return result

    @property
    def cost(self) -> str:
        """The number of model evaluations, in words."""
        if self.file is None or self.file.job.refits:
            return ""
        calls = self.file.subject.function.calls
        rows = calls.rows + calls.trials
        return f"{rows:,} model evaluations, " if rows else ""

    def take(self, output: JobOutput) -> None:
        """Write a part of the result, and print it."""
        self.interrupted |= output.interrupted
        self.manifest |= output.manifest
        try:
            self.write(output.writers)
        except KeyboardInterrupt:
            if not output.is_lazy:
                raise
            self.interrupted = True
        self.say(*output.lines)
        for document in output.documents:
            text = to_text(document, details=self.verbose)  # its cells are escaped
            self.console.print(Text(f"\n{text}"))
            if self.verbose:
                how = document.settings.items()
                self.say(*(f"{name}: {text}" for name, text in how))

    @contextmanager
    def working(self) -> Iterator[None]:
        """Print each warning once on standard error, even if an error follows."""
        with warnings.catch_warnings(record=True) as caught, silent(self.quiet):
            warnings.simplefilter("always")
            # meant for authors of packages; Python hides them too
            warnings.simplefilter("ignore", DeprecationWarning)
            try:
                yield
            finally:
                for message in dict.fromkeys(str(w.message) for w in caught):
                    print(f"warning: {printable_lines(message)}", file=sys.stderr)

    def say(self, *lines: object) -> None:
        """Print lines, with control characters escaped."""
        if lines:
            self.console.print(Text("\n".join(map(printable, lines))))

    def introduce(
        self, subject: Subject, *others: str | None, slopes: str | None = None
    ) -> None:
        """Print sizes, the explained quantity and the score of the model."""
        row, column = ("document", "word") if subject.is_text else ("row", "feature")
        rows = plural(len(subject.points), row)
        size = f"{rows} × {plural(subject.n_features, column)}"
        score = None if subject.score is None else subject.score.in_words()
        self.say_labelled(
            data=", ".join(filter(None, (size, *others))),
            output=str(subject.function.quantity),
            slopes=slopes,
            score=score,
        )

    def say_labelled(self, **texts: str | None) -> None:
        """Print each text after its label, those of one column."""
        self.say(*(f"  {x:<12}{text}" for x, text in texts.items() if text))

    def write(self, writers: Mapping[str, Writer]) -> None:
        """Write a file for each suffix; results that cannot be written are printed."""
        for suffix, writer in writers.items():
            try:
                writer(f"{self.target}{suffix}")
            except (WriteFailure, InvalidInput, SolverFailure) as error:
                # the folder was deleted, or a point of a curve was not solved
                reason = f"cannot write {self.target}{suffix}: {error}"
                is_solver = isinstance(error, SolverFailure)
                self.unwritten.append(reason if is_solver else str(error))
                self.verbose = True
        self.written += [x for x in writers if x not in self.written]
        self.console.quiet = self.quiet and not self.unwritten

    @property
    def is_finished(self) -> bool:
        """Whether the result is complete and all files are written."""
        return self.is_whole and not (self.interrupted or self.unwritten)

    def write_manifest(self) -> None:
        """Write the manifest, with digests of all other files."""
        finished = None
        if self.is_finished and self.problem is not None:
            files = {x: digest_of_file(f"{self.target}{x}") for x in self.written}
            finished = {"problem": self.problem, "files": files}
        content = {**self.manifest, "finished": finished}
        self.write({".json": partial(write_json, content)})

    def was_finished(self) -> bool:
        """Whether all files exist unchanged from a run of the same problem."""
        try:
            with open(f"{self.target}.json", encoding="ascii") as stream:
                finished = json.load(stream)["finished"]
            files = dict(finished["files"])
            same = self.problem is not None and finished["problem"] == self.problem
            return same and files == {
                x: digest_of_file(f"{self.target}{x}") for x in files
            }
        except (OSError, ValueError, LookupError, TypeError):  # not a manifest
            return False


# ---- Output files: the manifest, a page of documents, a figure with one legend


def write_json(content: Mapping[str, Any], path: str) -> None:
    """Write a manifest as JSON."""
    text = json.dumps(content, indent=2, default=str)
    with atomic_write(path) as draft:
        draft.write_text(f"{text}\n", encoding="ascii")


@contextmanager
def figure_file(path: str, name: str, size: tuple[float, float]) -> Iterator[Any]:
    """A figure of matplotlib of this size in inches, which is then written as SVG."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=size, layout="constrained")
    yield figure
    write_svg(figure, path, salt=printable(name))


def model_manifest(
    file: ProblemFile,
    explanation: Explanation | None = None,
    gradient: str | None = None,
) -> dict[str, Any]:
    """The :func:`manifest` of a run, with the settings of the model."""
    return {**manifest(file.subject, explanation, gradient), "model": file.model}


def manifest(
    subject: Subject,
    explanation: Explanation | None = None,
    gradient: str | None = None,
) -> dict[str, Any]:
    """The manifest of a run: its function, the score, and the selected explanation."""
    quantity = subject.function.quantity
    score = subject.score
    fields = {k: x for k, x in vars(quantity).items() if k != "words" or x is not None}
    return {
        "function": repr(subject.function),
        "quantity": {**fields, "in_words": quantity.in_words()},
        "gradient": gradient,
        "n_points": len(subject.points),
        "n_features": subject.n_features,
        "score": None if score is None else vars(score),
        "picked": None if explanation is None else _explanation(explanation),
    }


def _explanation(explanation: Explanation) -> dict[str, Any]:
    """Values of an explanation for JSON, with null for NaN and text for infinity."""
    target = explanation.target
    sampling: dict[str, Any] = {"interval": None, "source": ""}
    if target is not None:
        numbers = {"share": target.share, "rms": target.rms, "excess": target.relative}
        sampling = {
            **{name: None if isnan(x) else x for name, x in numbers.items()},
            "interval": None if isnan(target.relative) else target.interval,
            "source": target.source,
        }
    return {
        "weights": _finite(explanation.rates),
        "losses": _finite(explanation.losses),
        "shares": {
            name: share if isfinite(share) else None
            for name, share in explanation.loss_shares.items()
        },
        "objective": explanation.objective,
        "gap": explanation.gap,
        "sampling_error": sampling,
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
"""Largest number of documents on a page."""


def row_table_writer(result: Result, file: ProblemFile) -> tuple[str, Writer]:
    """Suffix and writer of a table with a line for each row, in the format of data."""
    if file.schema.data.parquet is not None:
        return ".parquet", result.to_parquet
    return ".csv", result.to_csv


def page_writers(best: Explanation, subject: Subject) -> dict[str, Writer]:
    """The writer of documents with coloured words; none for tables."""
    if not subject.is_text:
        return {}
    return {".html": lambda path: _shaded(best, subject).to_html(path)}


def _shaded(best: Explanation, subject: Subject) -> HighlightedText:
    function = subject.function
    assert isinstance(function, TextFunction)
    shown = [*map(best.labels.row, range(min(best.shape[0], MOST_SHOWN)))]
    return best.plot.text(subject.points, shown, words=function.text_schema.rule)


# ---- Saved results of any type


def load_result(path: str | Path) -> Result:
    """Load a saved result of any type: a file, or a folder of explained rows.

    Raises
    ------
    InvalidInput
        If the file does not exist, or is not a saved result.

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
    if Path(path).is_dir():
        from propopt.results.explained_table import ExplainedTable

        return ExplainedTable.load(path)
    file = archive_path(path)
    if not file.is_file():
        raise InvalidInput(
            f"{path}: there is no such file; result.save(path) writes one, to .npz"
        )
    kinds = {kind.form.name: kind for kind in _kinds(Result)}
    name = format_of(file)
    if name not in kinds:
        formats = enumerated(sorted(kinds), "or")
        raise InvalidInput(f"{path}: expected a saved result ({formats})")
    return kinds[name].load(file)


def _kinds(base: Any) -> Iterator[type[Result]]:
    """All result classes that can be saved; their modules are imported."""
    import propopt.explaining.trade_offs
    import propopt.interactions
    import propopt.lime
    import propopt.results.comparison
    import propopt.results.explained_table  # noqa: F401

    for kind in base.__subclasses__():
        if hasattr(kind, "form"):
            yield kind
        yield from _kinds(kind)
