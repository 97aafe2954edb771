"""Failures and interruptions: exit codes, and what is written all the same."""

from __future__ import annotations

import dataclasses
import os
import signal
import subprocess
import sys
import warnings

import pandas as pd
import pytest
from command_line import FILE, PROGRAM, names, python, sweep, swept, write

import propopt as po
from propopt.base.errors import InvalidInput, SolverFailure
from propopt.solvers import Task


def test_solver_failure_at_one_weight(file, out, capsys, stop_at):
    stop_at({1: SolverFailure("gave up")})
    assert sweep(file, "-o", out) == 3
    assert len(pd.read_csv(out / "cubic.csv")) == 5
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("warning: 1 of 3 weights were not solved; the first: ")


def test_solver_failure_at_all_weights(file, out, capsys, stop_at):
    stop_at({n: SolverFailure("gave up") for n in range(3)})
    assert sweep(file, "-o", out, "-q") == 3
    assert capsys.readouterr().err.startswith("propopt: ")
    assert names(out) == []


def test_missed_tolerance(file, out, capsys, monkeypatch):
    solve = Task.solve

    def careless(task, *arguments):
        result = solve(task, *arguments)
        return dataclasses.replace(result, W=1.1 * result.W)

    monkeypatch.setattr(Task, "solve", careless)
    monkeypatch.setattr(Task, "knows_curve", lambda *_: False)
    assert sweep(file, "-o", out, "-q") == 3
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == len(set(lines)) == 3
    assert all(": spectral reached a certified gap of" in line for line in lines)
    assert len(pd.read_csv(out / "cubic.csv")) == 6


def test_interruption_writes_what_is_done_and_ends_the_run(
    file, tmp_path, out, capsys, stop_at
):
    stop_at({2: KeyboardInterrupt()})
    other = write(tmp_path, "other", FILE)
    assert sweep(file, other, "-o", out, "-q") == 130
    assert names(out) == swept("cubic")
    assert len(pd.read_csv(out / "cubic.csv")) == 5
    assert capsys.readouterr().err == "warning: interrupted: 2 of 3 weights are done\n"


def test_interruption_before_anything_is_done(file, out, capsys, monkeypatch):
    def interrupted(problem):
        del problem
        raise KeyboardInterrupt

    monkeypatch.setattr(po.problems.Problem, "objective", property(interrupted))
    assert sweep(file, "-o", out, "-q") == 130
    assert names(out) == []
    assert capsys.readouterr().err == (
        "propopt: interrupted; files that were written are whole\n"
    )


def test_gravest_code_of_several_files(file, tmp_path, out, stop_at):
    stop_at({0: SolverFailure("gave up")})
    assert sweep(file, write(tmp_path, "other", FILE), "-o", out, "-q") == 3
    assert names(out) == swept("cubic", "other")


def test_each_warning_of_users_is_printed_once(file, out, capsys, monkeypatch):
    run = po.problems.Problem.sweep

    def warning(problem, *arguments, **settings):
        for _ in range(3):
            warnings.warn("mind the gap", stacklevel=1)
            warnings.warn("not for users", DeprecationWarning, stacklevel=1)
        return run(problem, *arguments, **settings)

    monkeypatch.setattr(po.problems.Problem, "sweep", warning)
    assert sweep(file, "-o", out, "-q") == 0
    assert capsys.readouterr().err == "warning: mind the gap\n"


def test_warnings_are_printed_before_an_error(file, out, capsys, monkeypatch):
    def failing(problem, *arguments, **settings):
        del problem, arguments, settings
        warnings.warn("mind the gap", stacklevel=1)
        raise InvalidInput("the gap")

    monkeypatch.setattr(po.problems.Problem, "sweep", failing)
    assert sweep(file, "-o", out, "-q") == 2
    assert capsys.readouterr().err == f"warning: mind the gap\n{file}:1: the gap\n"


KILLED = """\
import os, signal, sys
import pandas as pd
from propopt.cli import main

def killed(frame, path, **settings):
    path.write_text("method,weight")
    os.kill(os.getpid(), signal.SIGKILL)

pd.DataFrame.to_csv = killed
main(sys.argv[1:])
"""


@pytest.mark.skipif(os.name == "nt", reason="SIGKILL is of POSIX")
def test_a_run_that_is_killed_leaves_no_half_written_file(file, out):
    sweep(file, "-o", out, "-q")
    before = (out / "cubic.csv").read_text()
    run = python("-c", KILLED, "sweep", file, "-o", str(out), "-q")
    assert run.returncode == -signal.SIGKILL
    assert (out / "cubic.csv").read_text() == before


def test_files_are_written_though_nobody_reads_what_is_printed(tmp_path):
    file = tmp_path / "tiny.yaml"
    file.write_text(
        "data: {grid: {low: -1, high: 1, per_dimension: 9, dimensions: 1}}\n"
        "function: {name: sine}\nobjective: {gradient_matching: 1}\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, "sweep", str(file), "-o", str(tmp_path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as run:
        run.stdout.close()  # as ``| head -0`` does
        assert run.stderr.read() == b""
    assert run.returncode == 0
    assert (tmp_path / "tiny.csv").exists()
