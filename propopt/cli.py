"""The command line: arguments and what is printed; the work is done elsewhere."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import propopt as po
from propopt.errors import PropoptError, SolverFailure


DONE, BAD_INPUT, SOLVER_FAILURE, INTERRUPTED = 0, 2, 3, 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run ``propopt`` and return its exit code.

    0: done; 2: bad input; 3: a solver failed, or missed the tolerance; 130: interrupted.
    """
    options = _parser().parse_args(arguments)
    command: Callable[[argparse.Namespace], int] = options.command
    try:
        return command(options)
    except SolverFailure as error:
        return _complain(error, SOLVER_FAILURE)
    except PropoptError as error:
        return _complain(error, BAD_INPUT)
    except KeyboardInterrupt:
        return _complain("interrupted before anything was finished", INTERRUPTED)


def check(options: argparse.Namespace) -> int:
    """``propopt check FILE...``: say whether problem files are valid."""
    code = DONE
    for file in options.files:
        try:
            po.read_problem(file)
        except PropoptError as error:
            code = _complain(error, BAD_INPUT)
        else:
            print(f"{file}: valid")
    return code


def schema(options: argparse.Namespace) -> int:
    """``propopt schema``: print the JSON Schema of problem files."""
    del options
    print(json.dumps(po.ProblemSchema.model_json_schema(), indent=2))
    return DONE


def sweep(options: argparse.Namespace) -> int:
    """``propopt sweep FILE...``: solve, write CSV and SVG, print the front."""
    problems = [po.read_problem(file) for file in options.files]
    codes = [
        po.run_problem(
            problem,
            Path(options.output),
            n_jobs=options.jobs,
            solver=options.solver,
            quiet=options.quiet,
        )
        for problem in problems
    ]
    return max(codes, key=[DONE, SOLVER_FAILURE, INTERRUPTED].index)


def _complain(error: object, code: int) -> int:
    print(f"propopt: {error}" if code != BAD_INPUT else error, file=sys.stderr)
    return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="propopt",
        description="Explanations optimised for the properties you choose, with proof.",
        epilog="Exit codes: 0 done, 2 bad input, 3 solver failure, 130 interrupted.",
    )
    parser.add_argument(
        "--version", action="version", version=f"propopt {po.__version__}"
    )
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")

    sub = commands.add_parser("sweep", help="solve problem files; write CSV and SVG")
    sub.add_argument("files", nargs="+", metavar="FILE", help="YAML problem file")
    sub.add_argument(
        "-o", "--output", default="results", metavar="DIR", help="default: results"
    )
    sub.add_argument("-j", "--jobs", type=int, metavar="N", help="parallel workers")
    sub.add_argument("--solver", metavar="NAME", help="instead of the one in the file")
    sub.add_argument("-q", "--quiet", action="store_true", help="print nothing")
    sub.set_defaults(command=sweep)

    sub = commands.add_parser("check", help="check problem files without running them")
    sub.add_argument("files", nargs="+", metavar="FILE", help="YAML problem file")
    sub.set_defaults(command=check)

    sub = commands.add_parser("schema", help="print the JSON Schema of problem files")
    sub.set_defaults(command=schema)
    return parser
