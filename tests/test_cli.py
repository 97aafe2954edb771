"""The command line: exit codes, what is written, and what is printed where."""

from __future__ import annotations

import dataclasses
import errno
import json
import os
import signal
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

import joblib
import pandas as pd
import pytest

import propopt as po
from propopt.cli import main
from propopt.errors import InvalidInput, SolverFailure
from propopt.solvers import Task


ROOT = Path(__file__).parent.parent
FILE = """\
data:
  grid: {low: -1, high: 1, per_dimension: 9, dimensions: 1}
function: {name: power, degree: 3}
objective:
  gradient_matching: 1
  pairwise_robustness: {graph: {kind: chain}}
sweep:
  pairwise_robustness: [0.1, 1, 10]
baselines:
  - {method: gradient}
  - {method: smoothgrad, scale: [0.25, 0.5], n_samples: 10}
"""


@pytest.fixture
def file(tmp_path):
    return write(tmp_path, "cubic", FILE)


@pytest.fixture
def out(tmp_path):
    return tmp_path / "out"


def write(folder, name, text):
    path = folder / f"{name}.yaml"
    path.write_text(text)
    return str(path)


def sweep(*arguments):
    return main(["sweep", *map(str, arguments)])


def names(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture
def stop_at(monkeypatch):
    """Make the solves with these numbers, counted from zero, raise an error."""

    def stop(errors):
        solved = []
        solve = Task.solve

        def stopping(task, *arguments):
            solved.append(arguments)
            if len(solved) - 1 in errors:
                raise errors[len(solved) - 1]
            return solve(task, *arguments)

        monkeypatch.setattr(Task, "solve", stopping)
        monkeypatch.setattr(Task, "knows_curve", lambda *_: False)

    return stop


# ---- sweep


def test_sweep_writes_a_table_and_a_plot(file, out, capsys):
    assert sweep(file, "--output", out) == 0
    assert names(out) == ["cubic.csv", "cubic.svg"]
    table = pd.read_csv(out / "cubic.csv")
    assert table["method"].tolist() == [
        *3 * ["optimized"],
        "gradient",
        *2 * ["smoothgrad"],
    ]
    assert "<svg" in (out / "cubic.svg").read_text()
    assert capsys.readouterr().err == ""


def test_sweep_prints_the_front_and_the_excess_of_baselines(file, out, capsys):
    sweep(file, "--output", out)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"cubic ({file})"
    assert lines[1] == "9 points × 1 features, exact gradients, 3 baseline explanations"
    assert lines[3] == "The front"
    front = [line.split()[0] for line in lines[7:11]]
    assert front == 3 * ["optimized"] + ["gradient"]
    assert lines[12].startswith("Baselines: ")
    rows = [line.split() for line in lines[15:18]]
    assert [row[0] for row in rows] == ["gradient", "smoothgrad", "smoothgrad"]
    assert [row[1] for row in rows[1:]] == ["scale=0.25", "scale=0.5"]
    assert all(row[-1].endswith("%") for row in rows)
    assert lines[-2].startswith(f"wrote {out / 'cubic'}.csv and .svg in ")


@pytest.mark.parametrize("columns", ["40", "80"])
def test_nothing_is_cut_off_in_a_narrow_terminal(
    tmp_path, out, capsys, monkeypatch, columns
):
    monkeypatch.setenv("COLUMNS", columns)
    losses = "max_difference_robustness: {graph: {kind: chain}}\n  sparsity: 1\n"
    text = FILE.replace("sweep:", f"  {losses}sweep:\n  sparsity: [1, 2]")
    sweep(write(tmp_path, "cubic", text), "--output", out)
    printed = capsys.readouterr().out
    assert "…" not in printed
    table = pd.read_csv(out / "cubic.csv")
    for name in ("sparsity", "max_difference_robustness"):
        for value in table[table["on_front"]][f"loss.{name}"]:
            assert f" {value:.4g} " in printed
    assert "smoothgrad scale=0.25 " in printed


def test_markup_in_names_is_printed_as_it_is(tmp_path, out, capsys):
    folder = tmp_path / "[red]"
    folder.mkdir()
    assert sweep(write(folder, "cubic", FILE), "--output", out / "[b]") == 0
    printed = capsys.readouterr().out
    assert "[red]/cubic.yaml" in printed
    assert "[b]/cubic.csv" in printed


def test_quiet_prints_nothing(file, out, capsys):
    assert sweep(file, "--output", out, "--quiet") == 0
    assert capsys.readouterr() == ("", "")
    assert names(out) == ["cubic.csv", "cubic.svg"]


def test_the_same_run_writes_the_same_files(file, tmp_path):
    for folder in ("one", "two"):
        sweep(file, "--output", tmp_path / folder, "--quiet")
    one, two = ((tmp_path / f / "cubic.svg").read_text() for f in ("one", "two"))
    assert one == two
    tables = [pd.read_csv(tmp_path / f / "cubic.csv") for f in ("one", "two")]
    pd.testing.assert_frame_equal(*(t.drop(columns="seconds") for t in tables))


def test_two_jobs(file, tmp_path):
    assert sweep(file, "-o", tmp_path / "one", "-q") == 0
    with joblib.parallel_config(backend="threading"):  # starts at once
        assert sweep(file, "-o", tmp_path / "two", "-q", "--jobs", 2) == 0
    tables = [pd.read_csv(tmp_path / f / "cubic.csv") for f in ("one", "two")]
    pd.testing.assert_frame_equal(*(t.drop(columns="seconds") for t in tables))


def test_solver_of_the_command_line_wins(file, out, monkeypatch):
    used = []
    explain = Task.explain

    def noting(task, *arguments):
        used.append(task.chosen.name)
        return explain(task, *arguments)

    monkeypatch.setattr(Task, "explain", noting)
    assert sweep(file, "-o", out, "-q", "--solver", "clarabel") == 0
    assert set(used) == {"CLARABEL"}


def test_several_files(tmp_path, out):
    files = [write(tmp_path, name, FILE) for name in ("a", "b")]
    assert sweep(*files, "-o", out, "-q") == 0
    assert names(out) == ["a.csv", "a.svg", "b.csv", "b.svg"]


def test_run_problem_returns_the_trade_offs(file, out):
    curve = po.problems.run_problem(
        po.problems.read_problem(file).build(), out, quiet=True
    )
    assert len(curve.optimized) == 3
    assert len(curve.baselines) == 3


# ---- refused before any work


@pytest.fixture
def no_work(monkeypatch):
    """Fail if a model is fitted, a function evaluated or a baseline made."""

    def fail(problem):
        pytest.fail(f"{problem.name} was worked on")

    monkeypatch.setattr(po.problems.Problem, "points", property(fail))
    monkeypatch.setattr(po.problems.Problem, "baselines", fail)


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
def test_output_that_is_no_folder(file, tmp_path, capsys):
    (tmp_path / "taken").write_text("")
    assert sweep(file, "-o", tmp_path / "taken") == 2
    assert "output: cannot make the folder" in capsys.readouterr().err


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
    text = "data: {csv: none.csv}\nfunction: {name: sine}\nobjective: {sparsity: 1}\n"
    bad, good = write(tmp_path, "bad", text), write(tmp_path, "good", FILE)
    assert sweep(bad, good, "-o", out, "-q") == 2
    assert names(out) == ["good.csv", "good.svg"]
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


# ---- failures and interruptions


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
        found = solve(task, *arguments)
        return dataclasses.replace(found, W=1.1 * found.W)

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
    assert names(out) == ["cubic.csv", "cubic.svg"]
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
    assert len(names(out)) == 4


def test_each_warning_is_printed_once(file, out, capsys, monkeypatch):
    run = po.problems.Problem.sweep

    def warning(problem, *arguments, **settings):
        for _ in range(3):
            warnings.warn("mind the gap", stacklevel=1)
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


# ---- check, schema, help


def test_check(file, tmp_path, capsys):
    assert main(["check", file]) == 0
    assert capsys.readouterr() == (f"{file}: valid\n", "")
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
    assert schema["additionalProperties"] is False
    assert schema["required"] == ["data", "objective"]
    loss = schema["$defs"]["Losses"]["properties"]["sparsity"]["anyOf"]
    assert {"$ref": "#/$defs/SparsityLoss"} in loss


def test_version(capsys):
    with pytest.raises(SystemExit) as caught:
        main(["--version"])
    assert caught.value.code == 0
    assert capsys.readouterr().out == f"propopt {po.__version__}\n"


HEAVY = ("numpy", "scipy", "cvxpy", "sklearn", "pandas", "matplotlib", "pydantic")


def test_help_imports_nothing_heavy():
    code = (
        "import sys\nfrom propopt.cli import main\n"
        "try: main(['sweep', '--help'])\nexcept SystemExit: pass\n"
        "print(*sys.modules, sep='\\n')"
    )
    run = python("-c", code)
    assert run.returncode == 0
    assert "--solver NAME" in run.stdout
    assert not set(HEAVY) & set(run.stdout.split())


def python(*arguments):
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    return subprocess.run(
        [sys.executable, *arguments],
        env=os.environ | {"PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_files_are_written_though_nobody_reads_what_is_printed(tmp_path):
    file = tmp_path / "tiny.yaml"
    file.write_text(
        "data: {grid: {low: -1, high: 1, per_dimension: 9, dimensions: 1}}\n"
        "function: {name: sine}\nobjective: {gradient_matching: 1}\n"
    )
    program = "import sys; from propopt.cli import main; sys.exit(main(sys.argv[1:]))"
    with subprocess.Popen(
        [sys.executable, "-c", program, "sweep", str(file), "-o", str(tmp_path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as run:
        run.stdout.close()  # as ``| head -0`` does
        assert run.stderr.read() == b""
    assert run.returncode == 0
    assert (tmp_path / "tiny.csv").exists()
