"""The command line: arguments, exit codes and error messages."""

from __future__ import annotations

import argparse
import gc
import json
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final, NoReturn

import propopt as po
from propopt.base.errors import (
    InvalidInput,
    PropoptError,
    SolverFailure,
    WriteFailure,
)
from propopt.base.streams import PatientStream, patient_streams
from propopt.base.text import printable, printable_lines


DONE = 0
BAD_INPUT = 2
SOLVER_FAILURE = 3
NOT_EXACT = 4
UNWRITTEN = 5
INTERRUPTED = 130
_RISING = (DONE, NOT_EXACT, SOLVER_FAILURE, UNWRITTEN, BAD_INPUT, INTERRUPTED)
"""Exit codes by severity; of several files the most severe one is returned."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run ``propopt`` and return its exit code.

    0: done; 2: bad input; 3: a solver failed or missed the tolerance; 4: audited
    numbers are not exact; 5: results could not be written; 130: interrupted.
    """
    return run_command(_parser, arguments)


def run_command(
    parser: Callable[[], argparse.ArgumentParser], arguments: Sequence[str] | None
) -> int:
    """Run the command of the arguments; return its exit code, and print errors."""
    with patient_streams() as (out, _), _termination_interrupts():
        options = parser().parse_args(arguments)
        command: Callable[[argparse.Namespace], int] = options.command
        try:
            code = _guarded(partial(command, options))
        finally:
            gc.unfreeze()  # for a program that continues after main()
        return gravest([code, _flushed(out)])


def _reader() -> Callable[[str, po.problems.Code], po.problems.ProblemFile]:
    """``read_problem``, imported without garbage collection, which would be slow."""
    collects = gc.isenabled()
    gc.disable()  # it would take a tenth of the time of a check
    try:
        return po.problems.read_problem
    finally:
        gc.freeze()
        if collects:
            gc.enable()


def check(options: argparse.Namespace) -> int:
    """``propopt check FILE...``: validate problem files."""
    return gravest([_guarded(partial(_check, one, options)) for one in options.files])


def schema(options: argparse.Namespace) -> int:
    """``propopt schema``: print the JSON Schema of problem files."""
    from propopt.problems.file import ProblemSchema

    del options
    print(json.dumps(ProblemSchema.model_json_schema(), indent=2))
    return DONE


def report(options: argparse.Namespace) -> int:
    """``propopt report RESULT...``: write saved results as one page."""
    from propopt.problems.jobs.job import load_result
    from propopt.results.report.page import write_page

    results = [load_result(path) for path in options.files]
    write_page(options.output, [one.document() for one in results])
    print(f"wrote {printable(options.output)}")
    return DONE


def _run_files(options: argparse.Namespace) -> int:
    """``propopt sweep|explain|... FILE...``: run the job of each file."""
    if options.resume == _OUTPUT_FOLDER:
        options.resume = options.output
    if options.resume is not None and Path(options.resume).is_file():
        raise InvalidInput(
            f"--resume: expected a folder, got the file {options.resume}; give problem "
            "files before --resume"
        )
    if options.job == "compare":
        archives = [Path(file).suffix == ".npz" for file in options.files]
        if any(archives):
            return _compare_archives(options, archives)
    read = _reader()
    files = [read(file, _code(options)) for file in options.files]
    if options.job == "compare" and len(files) == 2:
        from propopt.problems.jobs.compare import comparison_problem

        files = [comparison_problem(*files)]
    writers: dict[str, Path] = {}
    for file in files:
        suffixes = file.require(options.job).suffixes
        stem = file.name
        for suffix in suffixes:
            name = f"{stem}{suffix}"
            if name in writers:
                raise file.source.error(
                    ("name",),
                    f"would write the same files as {writers[name]}; give one of them "
                    "another name:",
                )
            writers[name] = file.source.path
    codes = []
    for file in files:
        codes.append(_guarded(partial(_run, file, options)))
        if codes[-1] == INTERRUPTED:
            break
    return gravest(codes)


def _compare_archives(options: argparse.Namespace, archives: Sequence[bool]) -> int:
    """``propopt compare OLD.npz NEW.npz``: compare two saved explanations."""
    if len(archives) != 2 or not all(archives):
        raise InvalidInput(
            "compare: expected two problem files, two .npz files, or one problem file "
            "with a section compare"
        )
    from propopt.problems.jobs.compare import compare_archives

    old, new = map(Path, options.files)
    how = {name: getattr(options, name) for name in ("quiet", "verbose", "report")}
    compare_archives(old, new, options.output, **how)
    return DONE


def _check(file: str, options: argparse.Namespace) -> int:
    checked = _reader()(file, _code(options))
    checked.check_data()
    print(f"{printable(file)}: valid")
    return DONE


def _code(options: argparse.Namespace) -> po.problems.Code:
    """Whether Python objects that files name may be imported, which runs code."""
    code = po.problems.Code
    return code.ALLOWED if options.allow_code else code.REFUSED


def _run(file: po.problems.ProblemFile, options: argparse.Namespace) -> int:
    """Run one job with the options of its command; errors name the file."""
    others = vars(options).keys() - OF_COMMANDS
    run_options = {name: getattr(options, name) for name in others}
    try:
        changed = file.with_options(**run_options)
        result = changed.run(
            Path(options.output), quiet=options.quiet, verbose=options.verbose
        )
    except SolverFailure as error:
        raise SolverFailure(str(file.source.error((), str(error)))) from error
    is_whole = result is None or file.job.is_whole(result, file)
    return DONE if is_whole else file.job.exit_code


OF_COMMANDS: Final = frozenset(
    ("command", "job", "files", "allow_code", "output", "quiet", "verbose")
)
"""Arguments of the command; all others are options of its job or of the file."""
_OUTPUT_FOLDER: Final = ""
"""The value of ``--resume`` for the folder of the output."""


def _guarded(work: Callable[[], int]) -> int:
    """The exit code of some work; expected errors are printed."""
    try:
        return work()
    except WriteFailure as error:
        return _complain(error, UNWRITTEN)
    except BaseException as error:
        # an interrupted start of a worker or module may raise another error
        if _SIGNALS or isinstance(error, KeyboardInterrupt):
            message = str(error) if isinstance(error, KeyboardInterrupt) else ""
            return _complain(message or _INTERRUPTED_MESSAGE, INTERRUPTED)
        if isinstance(error, SolverFailure):
            return _complain(error, SOLVER_FAILURE)
        if isinstance(error, PropoptError):
            return _complain(error, BAD_INPUT)
        if not isinstance(error, MemoryError | RuntimeError):
            raise
        from propopt.base.resources import describe_resource_limit, is_thread_limit

        if not (isinstance(error, MemoryError) or is_thread_limit(error)):
            raise
        return _complain(describe_resource_limit(error), BAD_INPUT)


def _complain(error: object, code: int) -> int:
    message = printable_lines(error)
    print(f"propopt: {message}" if code != BAD_INPUT else message, file=sys.stderr)
    return code


def _flushed(out: PatientStream) -> int:
    """Flush standard output; the exit code if that fails."""
    out.flush()
    if out.failure is None or isinstance(out.failure, BrokenPipeError):
        return DONE  # the reader closed the pipe
    return _complain(f"cannot print: {out.failure.strerror}", UNWRITTEN)


@contextmanager
def _termination_interrupts() -> Iterator[None]:
    """Treat SIGTERM like Ctrl-C: finished results are written, workers end."""
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread may set signals
        return
    _SIGNALS.clear()
    before = signal.signal(signal.SIGTERM, _interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before or signal.SIG_DFL)
        _SIGNALS.clear()


_INTERRUPTED_MESSAGE: Final = "interrupted; written files are complete"

_SIGNALS: Final[list[int]] = []
"""Signals that were received during a command."""


def _interrupt(number: int, frame: Any) -> NoReturn:
    """Record the signal, and raise KeyboardInterrupt."""
    _SIGNALS.append(number)
    signal.default_int_handler(number, frame)
    raise KeyboardInterrupt  # the handler does


def gravest(codes: Sequence[int]) -> int:
    """The most severe of several exit codes."""
    return max(codes, key=_RISING.index)


class Parser(argparse.ArgumentParser):
    """An argument parser that escapes control characters in errors."""

    def error(self, message: str) -> NoReturn:
        super().error(printable_lines(message))


class _Version(argparse.Action):
    """Print the version and the kernels in use, and exit."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from propopt.base.kernels import describe_kernels

        try:
            print(f"propopt {po.__version__} ({describe_kernels()})")
        except PropoptError as error:
            parser.exit(_complain(error, BAD_INPUT))
        parser.exit(DONE)


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="propopt",
        description="Explanations optimized for the properties you choose, with "
        "certificates.",
        epilog="Exit codes: 0 done, 2 bad input, 3 solver failure, 5 not written, "
        "130 interrupted.",
    )
    parser.add_argument(
        "--version",
        action=_Version,
        nargs=0,
        default=argparse.SUPPRESS,
        help="show the version and the kernels in use",
    )
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")

    subs = {name: commands.add_parser(name, help=text) for name, text in _HELP.items()}
    for name, sub in subs.items():
        if name in ("schema", "report"):
            continue
        count: Any = 1 if name == "audit" else "+"
        text = "YAML problem file"
        if name == "compare":
            text = "the old and the new version: problem files, or saved .npz files"
        sub.add_argument("files", nargs=count, metavar="FILE", help=text)
        sub.add_argument(
            "--allow-code",
            action="store_true",
            help="allow problem files to import and run Python code",
        )
        if name == "check":
            continue
        sub.set_defaults(command=_run_files, job=name)
        sub.add_argument(
            "-o",
            "--output",
            default="results",
            metavar="DIR",
            help="folder of the output files (default: results)",
        )
        sub.add_argument(
            "--report", action="store_true", help="write a page of the result"
        )
        sub.add_argument(
            "-q", "--quiet", action="store_true", help="print only warnings"
        )
        sub.add_argument(
            "-v", "--verbose", action="store_true", help="print tables and settings too"
        )
        sub.add_argument(
            "--resume",
            nargs="?",
            const=_OUTPUT_FOLDER,
            metavar="DIR",
            help="continue an interrupted run, and save finished fits in DIR (default: "
            "the folder of the output); write this option after the files",
        )
    for name in ("sweep", "interactions"):
        subs[name].add_argument(
            "-j",
            "--jobs",
            dest="n_jobs",
            type=int,
            metavar="N",
            help="number of workers, or -1 for all processors",
        )
    subs["sweep"].add_argument(
        "--solver", metavar="NAME", help="use this solver instead of that of the file"
    )
    subs["explain"].add_argument(
        "--reasons",
        action="store_true",
        help="also report the largest contributions of each row towards a decision",
    )
    subs["explain"].add_argument(
        "--rows",
        type=os.path.abspath,
        metavar="PATH",
        help="a file or folder of Parquet or Arrow, whose rows are explained into a "
        "folder of Parquet; replaces that of the file",
    )
    subs["explain"].add_argument(
        "--scheduler",
        metavar="ADDRESS",
        help="with --rows: a scheduler of Dask, whose workers read and write these "
        "paths",
    )
    subs["lime"].add_argument(
        "--rows",
        nargs="+",
        type=int,
        metavar="N",
        help="row numbers of the table, from 0, instead of those of the file",
    )
    subs["audit"].formatter_class = argparse.RawDescriptionHelpFormatter
    subs["audit"].epilog = _AUDIT_FILE
    subs["audit"].add_argument(
        "attributions",
        nargs="?",
        type=os.path.abspath,
        metavar="ATTRIBUTIONS",
        help="a .csv, .npz or .parquet with attributions; replaces that of the file",
    )
    subs["check"].set_defaults(command=check)
    subs["schema"].set_defaults(command=schema)
    subs["report"].add_argument(
        "files", nargs="+", metavar="RESULT", help="a saved result (.npz)"
    )
    subs["report"].add_argument(
        "-o",
        "--output",
        default="report.html",
        metavar="PAGE",
        help="the page (default: report.html)",
    )
    subs["report"].set_defaults(command=report)
    return parser


_AUDIT_FILE = """\
FILE needs three lines; paths are relative to its folder:

  data: {csv: customers.csv, target: Churn}
  model: {booster: model.txt}       # by LightGBM's save_model
  audit: {attributions: shap.csv, output: log_odds, data: rows.csv}

Omit output for regressions. In audit, data names the background rows of SHAP; omit it
for path-dependent values.
"""

_HELP = {
    "sweep": "explanations for many weights of the losses",
    "explain": "one explanation, with defaults",
    "lime": "exact limits of LIME, and a diagnosis",
    "interactions": "interactions of features, with intervals",
    "audit": "check attributions from other packages",
    "compare": "changes between two versions of a model",
    "check": "validate problem files without running them",
    "report": "write saved results as a page",
    "schema": "print the JSON Schema of problem files",
}
