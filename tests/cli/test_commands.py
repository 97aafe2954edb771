"""Commands beside the jobs: checks, refusals, failures, silence, and exit codes."""

import dataclasses
import errno
import gc
import json
import re
import tempfile
import warnings

import pandas as pd
import pytest
from command_line import FILE, names, sweep, swept, write

import propopt as po
from propopt.base.errors import InvalidInput, SolverFailure
from propopt.base.terminal import is_silent, silent
from propopt.cli import main
from propopt.functions.cost import Cost
from propopt.solvers import Task


# ---- ``check``, ``schema``, ``--version`` and ``--help``
def test_check(file, tmp_path, capsys):
    assert main(["check", file]) == 0
    assert capsys.readouterr() == (f"{file}: valid\n", "")
    assert gc.isenabled()  # for a program that calls main
    assert gc.get_freeze_count() == 0
    bad = write(tmp_path, "bad", FILE + "seed: -1\ntolerance: 0\n")
    assert main(["check", bad, str(tmp_path / "none.yaml"), file]) == 2
    printed = capsys.readouterr()
    assert printed.out == f"{file}: valid\n"
    assert printed.err.splitlines() == [
        f"{bad}:12: seed: expected a number >= 0, got -1",
        f"{bad}:13: tolerance: expected a number > 0, got 0",
        f"{tmp_path / 'none.yaml'}: cannot be read: No such file or directory",
    ]


def test_schema(capsys):
    assert main(["schema"]) == 0
    schema = json.loads(capsys.readouterr().out)
    assert schema["required"] == ["data"]
    jobs = ("objective", "explain", "lime", "interactions", "audit", "compare")
    assert schema["oneOf"] == [{"required": [job]} for job in jobs]


@pytest.mark.parametrize(
    ("chosen", "code", "printed", "complaint"),
    [
        ("numpy", 0, r" \(kernels: NumPy; PROPOPT_KERNELS=numpy\)", ""),
        ("", 0, r" \(kernels: (C|NumPy; .+)\)", ""),
        ("fortran", 2, None, "PROPOPT_KERNELS: expected 'c' or 'numpy'.* 'fortran'"),
    ],
)
def test_version(chosen, code, printed, complaint, capsys, monkeypatch):
    monkeypatch.setenv("PROPOPT_KERNELS", chosen)
    with pytest.raises(SystemExit) as caught:
        main(["--version"])
    assert caught.value.code == code
    out, err = capsys.readouterr()
    version = re.escape(po.__version__)
    assert re.fullmatch(
        "" if printed is None else rf"propopt {version}{printed}\n", out
    )
    assert re.match(complaint, err)


# ---- what is refused before any work
@pytest.mark.usefixtures("no_work")
def test_what_is_wrong_stops_all_files_before_any_work(file, tmp_path, out, capsys):
    bad = write(tmp_path, "bad", FILE + "seed: -1\n")
    other = write(tmp_path, "other", FILE + "name: cubic\n")
    table = write(tmp_path, "cubic_attributions", FILE)
    same = f"would write the same files as {file}; give one of them another name:\n"
    for arguments, message in [
        (["--solver", "simplex"], f"{file}:1: solver: 'simplex' is unknown"),
        ([bad], f"{bad}:12: seed: expected a number >= 0, got -1\n"),
        ([other], f"{other}:12: name: {same}"),
        ([table], f"{table}:1: {same}"),
    ]:
        assert sweep(file, *arguments, "-o", out) == 2
        printed = capsys.readouterr()
        assert printed.out == ""
        assert printed.err.startswith(message)
        assert printed.err.count("\n") == 1


@pytest.mark.usefixtures("no_work")
def test_output_without_permission(file, out, capsys, monkeypatch):
    def refused(**position):
        del position
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(tempfile, "mkstemp", refused)
    assert sweep(file, "-o", out) == 2
    assert "output: cannot write to the folder" in capsys.readouterr().err


def test_a_bad_problem_does_not_stop_the_next(tmp_path, out, capsys):
    text = "data: {csv: none.csv}\nfunction: {name: sine}\n"
    text += "objective: {gradient_matching: 1}\n"
    bad, good = write(tmp_path, "bad", text), write(tmp_path, "good", FILE)
    assert sweep(bad, good, "-o", out, "-q") == 2
    assert names(out) == swept("good")
    assert capsys.readouterr().err.startswith(f"{bad}:1: data.csv: there is no file")


@pytest.mark.parametrize(
    "arguments",
    ["", "explode", "sweep", "sweep a --jobs many", "lime a --rows x", "check"],
)
def test_bad_arguments(arguments, capsys):
    with pytest.raises(SystemExit) as caught:
        main(arguments.split())
    assert caught.value.code == 2
    assert capsys.readouterr().err.startswith("usage: propopt")


# ---- failures and interruptions: exit codes, and what is written all the same
GAVE_UP = SolverFailure("gave up")
OF_ONE = "warning: 1 of 3 weights were not solved; the first: "
INTERRUPTED = "warning: interrupted: 2 of 3 weights are done\n"


@pytest.mark.parametrize(
    ("errors", "n_files", "code", "rows", "message"),
    [
        ({1: GAVE_UP}, 1, 3, {"cubic": 5}, OF_ONE),
        ({0: GAVE_UP}, 2, 3, {"cubic": 5, "other": 6}, OF_ONE),
        (dict.fromkeys(range(3), GAVE_UP), 1, 3, {}, "propopt: "),
        ({2: KeyboardInterrupt()}, 2, 130, {"cubic": 5}, INTERRUPTED),
    ],
)
def test_what_is_done_is_written_and_the_gravest_code_returned(
    file, tmp_path, out, capsys, stop_at, errors, n_files, code, rows, message
):
    stop_at(errors)
    files = [file, write(tmp_path, "other", FILE)][:n_files]
    assert sweep(*files, "-o", out, "-q") == code
    assert capsys.readouterr().err.startswith(message)
    assert names(out) == swept(*rows)
    assert {name: len(pd.read_csv(out / f"{name}.csv")) for name in rows} == rows


def test_missed_tolerance(file, out, capsys, monkeypatch):
    solve = Task.solve

    def careless(task, *arguments):
        result = solve(task, *arguments)
        return dataclasses.replace(result, W=1.1 * result.W)

    monkeypatch.setattr(Task, "solve", careless)
    monkeypatch.setattr(Task, "has_curve", lambda *_: False)
    assert sweep(file, "-o", out, "-q") == 3
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == len(set(lines)) == 3
    assert all(": spectral reached a certified gap of" in line for line in lines)
    assert len(pd.read_csv(out / "cubic.csv")) == 6


@pytest.mark.parametrize("fails", [False, True])
def test_each_warning_of_users_is_printed_once_and_before_an_error(
    file, out, capsys, monkeypatch, fails
):
    run = po.problems.Problem.sweep

    def warning(problem, *arguments, **settings):
        for _ in range(3):
            warnings.warn("mind the gap", stacklevel=1)
            warnings.warn("not for users", DeprecationWarning, stacklevel=1)
        if fails:
            raise InvalidInput("the gap")
        return run(problem, *arguments, **settings)

    monkeypatch.setattr(po.problems.Problem, "sweep", warning)
    assert sweep(file, "-o", out, "-q") == 2 * fails
    printed = "warning: mind the gap\n" + fails * f"{file}:4: objective: the gap\n"
    assert capsys.readouterr().err == printed


# ---- with ``-q`` nothing is printed but warnings, however long work takes


def test_silence_ends_and_is_no_answer_to_what_is_asked_for(capsys):
    long = Cost(10**9, 1.0)
    with silent(False):
        assert not is_silent()
    with silent():
        long.announce("work")
        with silent(False):
            long.announce("work")
        assert capsys.readouterr().err == ""
        long.announce("work", wanted=True)
    assert "work: " in capsys.readouterr().err
    long.announce("work")
    assert "work: " in capsys.readouterr().err
