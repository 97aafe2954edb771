"""``python -m papers``: figures of papers made anew, and their statements checked."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import papers
from papers.engine import Paper, reproduce_paper
from propopt.base.errors import InvalidInput
from propopt.cli import (
    DONE,
    INTERRUPTED,
    REFUTED,
    Parser,
    add_table_arguments,
    gravest,
    run_command,
    worker_count,
)


_FOLDERS = {"properties": "paper"}
"""Folders of results that are not called as their papers are."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run ``python -m papers`` and return its exit code.

    0: done; 2: bad input; 4: an invariant of ours fails; 5: what was found could not be
    written; 130: interrupted.

    Parameters
    ----------
    arguments : sequence of str, optional
        Those of the command line by default.
    """
    return run_command(_parser, arguments)


def _reproduce(options: argparse.Namespace) -> int:
    """Papers one after another; without a figure, a list of all."""
    if not options.figures and options.paper is None:
        print("\n".join(papers.catalogue()))
        return DONE
    chosen = papers.read_choices(options.figures, options.paper)
    if len(chosen) > 1 and options.csv is not None:
        raise InvalidInput("--csv is a table for one paper; name one")
    codes = []
    for paper, figures in chosen:
        folder = Path(options.output or "results")
        if len(chosen) > 1 or not options.output:
            folder = folder / _FOLDERS.get(paper.name, paper.name)
        codes.append(_code_of(paper, figures, folder, options))
        if codes[-1] == INTERRUPTED:
            break
    return gravest(codes)


def _code_of(
    paper: Paper, figures: Sequence[str], folder: Path, options: argparse.Namespace
) -> int:
    report = reproduce_paper(
        paper.at_full_scale if options.full else paper,
        figures,
        folder,
        csv=options.csv,
        target=options.target,
        task=options.task,
        n_jobs=options.jobs,
        quiet=options.quiet,
    )
    if report.interrupted:
        return INTERRUPTED
    return REFUTED if report.n_failed else DONE


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="python -m papers",
        description="Figures of papers made anew, and their statements checked.",
        epilog="Exit codes: 0 done, 2 bad input, 3 solver failure, 4 an invariant "
        "fails, 5 not written, 130 interrupted.",
    )
    parser.add_argument(
        "figures",
        nargs="*",
        metavar="FIGURE",
        help="fig1, fig2, fig3, fig4, fig5, fig6, appendix, tables, or all; of another "
        "paper after its name (tabular-lime, linear-lime, text-lime, iloco), which "
        "alone means all; one paper after another; nothing lists papers and figures",
    )
    parser.add_argument(
        "-o",
        "--output",
        metavar="DIR",
        help="default: results/paper, of another paper results/NAME; of several "
        "papers each has its folder in it",
    )
    parser.add_argument("--paper", metavar="NAME", help="default: properties")
    parser.add_argument(
        "-j", "--jobs", type=worker_count, metavar="N", help="panels at once"
    )
    parser.add_argument("-q", "--quiet", action="store_true", help="print nothing")
    parser.add_argument(
        "--full",
        action="store_true",
        help="at the scale of the paper, of one that takes minutes by default (iloco)",
    )
    add_table_arguments(parser, "a table of your own, beside those of tables")
    parser.set_defaults(command=_reproduce)
    return parser


if __name__ == "__main__":
    sys.exit(main())
