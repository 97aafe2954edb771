"""What is refused before any work."""

from __future__ import annotations

import errno
import tempfile

import pytest
from command_line import FILE, names, sweep, swept, write

import propopt as po
from propopt.cli import main


@pytest.mark.usefixtures("no_work")
def test_unknown_solver(file, out, capsys):
    assert sweep(file, "-o", out, "--solver", "simplex") == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith(f"{file}:1: solver: 'simplex' is not known")
    assert printed.err.count("\n") == 1


@pytest.mark.usefixtures("no_work")
def test_bad_file_stops_all(file, tmp_path, out, capsys):
    bad = write(tmp_path, "bad", FILE + "seed: -1\n")
    assert sweep(file, bad, "-o", out) == 2
    assert capsys.readouterr() == (
        "",
        f"{bad}:12: seed: expected a number >= 0, got -1\n",
    )


@pytest.mark.usefixtures("no_work")
def test_output_without_permission(file, out, capsys, monkeypatch):
    def refused(**place):
        del place
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(tempfile, "mkstemp", refused)
    assert sweep(file, "-o", out) == 2
    assert "output: cannot write to the folder" in capsys.readouterr().err


@pytest.mark.usefixtures("no_work")
def test_two_files_that_would_write_the_same(file, tmp_path, out, capsys):
    other = write(tmp_path, "other", FILE + "name: cubic\n")
    assert sweep(file, other, "-o", out) == 2
    assert capsys.readouterr().err == (
        f"{other}:12: name: would write the same files as {file}; give one of them "
        "another name:\n"
    )


def test_refusal_of_a_solver_comes_before_the_baselines(
    tmp_path, out, capsys, monkeypatch
):
    monkeypatch.setattr(
        po.problems.Problem, "baselines", lambda _: iter([pytest.fail("made")])
    )
    path = write(tmp_path, "cubic", FILE.replace("sweep:", "  sparsity: 1\nsweep:"))
    assert sweep(path, "-o", out, "--solver", "spectral") == 2
    assert "spectral cannot solve this" in capsys.readouterr().err


def test_a_bad_problem_does_not_stop_the_next(tmp_path, out, capsys):
    text = "data: {csv: none.csv}\nfunction: {name: sine}\n"
    text += "objective: {gradient_matching: 1}\n"
    bad, good = write(tmp_path, "bad", text), write(tmp_path, "good", FILE)
    assert sweep(bad, good, "-o", out, "-q") == 2
    assert names(out) == swept("good")
    assert capsys.readouterr().err.startswith(f"{bad}:1: data.csv: there is no file")


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["explode"],
        ["sweep"],
        ["sweep", "a.yaml", "--jobs", "many"],
        ["sweep", "a.yaml", "--jobs", "0"],
        ["sweep", "a.yaml", "--colour"],
        ["check"],
    ],
)
def test_bad_arguments(arguments, capsys):
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2
    assert capsys.readouterr().err.startswith("usage: propopt")
