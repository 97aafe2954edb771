"""``python -m papers``: figures of papers made anew, and their statements checked."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import papers
from papers.durations import durations_in_words
from papers.engine import Paper, reproduce_paper
from papers.engine.gate import try_gate
from papers.engine.paper import require_name
from propopt.base.errors import InvalidInput
from propopt.base.terminal import PlainConsole
from propopt.cli import (
    DONE,
    INTERRUPTED,
    Parser,
    gravest,
    run_command,
)


_GATE = "gate"
_FAILED = 4
"""The exit code where a check of ours fails, or the gate misses an error."""
_FOLDERS = {"properties": "paper"}
"""Folders of results that are not called as their papers are."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run ``python -m papers`` and return its exit code.

    0: done; 2: bad input; 4: a check of ours fails, or the gate misses an error; 5:
    what was found could not be written; 130: interrupted.

    Parameters
    ----------
    arguments : sequence of str, optional
        Those of the command line by default.
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    if given[:1] == [_GATE]:
        return run_command(_gate_parser, given[1:])
    return run_command(_parser, given)


def _reproduce(options: argparse.Namespace) -> int:
    """Papers one after another; without a figure, a list of all."""
    if not options.figures and options.paper is None:
        print("\n".join(papers.catalogue()))
        return DONE
    chosen = papers.read_choices(options.figures, options.paper)
    if len(chosen) > 1 and options.csv is not None:
        raise InvalidInput("--csv is a table for one paper; name one")
    console = PlainConsole(quiet=options.quiet)
    for line in durations_in_words(chosen, full=options.full):
        console.print(line, style="dim", markup=False)
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
    return _FAILED if report.n_failed else DONE


def _try_gate(options: argparse.Namespace) -> int:
    """Each mistake in each figure of this turn."""
    from papers.gates import GATES, figures_in_turn  # for it alone

    names = list(GATES) if options.paper is None else [options.paper]
    for name in names:
        require_name(name, list(GATES), "paper")
    console = PlainConsole(quiet=options.quiet)
    trials = []
    for name, figures in figures_in_turn(names, *options.turn):
        values = papers.find_paper(name).values_on_record
        for trial in try_gate(name, GATES[name], figures, values, console):
            trials.append(trial)
            if options.verbose or not trial.passes:
                style = None if trial.passes else "bold red"
                console.print(
                    trial.in_words(), style=style, markup=False, soft_wrap=True
                )
    missed = [trial for trial in trials if not trial.passes]
    seen = sum(bool(trial.seen) for trial in trials)
    console.print(
        f"{seen} errors seen, {len(missed)} not.",
        style="bold red" if missed else "bold green",
        markup=False,
    )
    return _FAILED if missed else DONE


def _read_turn(text: str) -> tuple[int, int]:
    """K/N: the figures whose number leaves K when divided by N."""
    turn, slash, turns = text.partition("/")
    if not (slash and turn.isdecimal() and turns.isdecimal() and int(turns)):
        raise argparse.ArgumentTypeError(f"expected K/N, such as 0/4, got {text!r}")
    return int(turn) % int(turns), int(turns)


def _gate_parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog=f"python -m papers {_GATE}",
        description="Deliberate errors in cheap copies of the figures: each has to be "
        "seen in every figure that it touches, by a check that fails, a statement that "
        "changes or a value that is off its record.",
        epilog="Exit codes: 0 all are seen, 2 bad input, 4 one is not.",
    )
    parser.add_argument("paper", nargs="?", metavar="PAPER", help="default: all")
    parser.add_argument(
        "--turn",
        type=_read_turn,
        default=(0, 1),
        metavar="K/N",
        help="every Nth figure, from the Kth on; by default all",
    )
    parser.add_argument("-q", "--quiet", action="store_true", help="print nothing")
    parser.add_argument(
        "-v", "--verbose", action="store_true", help="tell where each error is seen"
    )
    parser.set_defaults(command=_try_gate)
    return parser


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="python -m papers",
        description="Figures of papers made anew, and their statements checked.",
        epilog="Exit codes: 0 done, 2 bad input, 3 solver failure, 4 a check of "
        "ours fails, 5 not written, 130 interrupted. python -m papers gate makes "
        "deliberate errors; see its --help.",
    )
    parser.add_argument(
        "figures",
        nargs="*",
        metavar="FIGURE",
        help="fig1, fig2, fig3, fig4, fig5, fig6, appendix, tables, trends or errors "
        "of the paper on properties; a figure of another paper after its name "
        "(tabular-lime, linear-lime, text-lime, iloco), which alone means all of its "
        "figures; one paper after another; all means every figure of every paper; "
        "nothing lists papers and figures",
    )
    parser.add_argument(
        "-o",
        "--output",
        metavar="DIR",
        help="default: results/paper, of another paper results/NAME; of several "
        "papers each has its folder in it",
    )
    parser.add_argument("--paper", metavar="NAME", help="default: properties")
    parser.add_argument("-j", "--jobs", type=int, metavar="N", help="panels at once")
    parser.add_argument("-q", "--quiet", action="store_true", help="print nothing")
    parser.add_argument(
        "--full",
        action="store_true",
        help="at the scale of the paper, of one that takes minutes by default (iloco)",
    )
    table = parser.add_argument_group("a table of your own, beside those of tables")
    table.add_argument("--csv", metavar="FILE", help="a table of numbers and text")
    table.add_argument(
        "--target", metavar="COLUMN", help="the column that the model learns"
    )
    table.add_argument(
        "--task",
        choices=("classification", "regression"),
        help="default: classification if the target is text or has two values",
    )
    parser.set_defaults(command=_reproduce)
    return parser


if __name__ == "__main__":
    sys.exit(main())
