"""What a run writes is tried first, and what cannot be written loses no sweep."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
from command_line import PROGRAM, environment, names, python, swept

import propopt as po
from papers.engine import reproduce_paper
from papers.properties.paper import PROPERTIES
from propopt.base.errors import InvalidInput, Unwritten
from propopt.base.files import require_free_name, writable_folder, written_whole
from propopt.cli import main


FILE = """\
data: {grid: {low: -1, high: 1, per_dimension: 9, dimensions: 1}}
function: {name: power, degree: 3}
objective: {gradient_matching: 1, pairwise_robustness: {graph: {kind: chain}}}
sweep: {pairwise_robustness: [0.1, 1, 10]}
"""
posix = pytest.mark.skipif(os.name == "nt", reason="descriptors of POSIX")


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "cubic.yaml"
    path.write_text(FILE)
    return path


@pytest.fixture
def out(tmp_path):
    return tmp_path / "out"


def shell(command, file, out, **settings):
    """The CLI under a shell: ``RUN`` in the command stands for the sweep."""
    script = command.replace("RUN", '"$0" -c "$1" sweep "$2" -o "$3"')
    return subprocess.run(
        ["bash", "-c", script, sys.executable, PROGRAM, file, out],
        env=environment(**settings),
        capture_output=True,
        timeout=60,
        check=False,
    )


WHOLE = swept("cubic")


# ---- streams


@pytest.mark.sampled(2)
@posix
@pytest.mark.parametrize(
    ("command", "code", "told"),
    [
        ("RUN > /dev/full", 5, "propopt: cannot print: No space left on device\n"),
        ("RUN > /dev/full 2>&1", 5, ""),
        ("RUN 2>&-", 0, ""),
        ("RUN <&- >&- 2>&-", 0, ""),
        ("RUN | head -n 1; exit ${PIPESTATUS[0]}", 0, ""),
    ],
)
def test_a_stream_that_takes_nothing_does_not_end_a_run(file, out, command, code, told):
    run = shell(command, str(file), str(out))
    assert (run.returncode, run.stderr.decode()) == (code, told)
    assert names(out) == WHOLE
    assert len(pd.read_csv(out / "cubic.csv")) == 3


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("settings", "times"),
    [
        ({"PYTHONIOENCODING": "ascii"}, rb"\xd7"),
        ({"PYTHONIOENCODING": "latin-1"}, b"\xd7"),
        ({"LC_ALL": "C"}, "×".encode()),
        ({"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}, rb"\xd7"),
    ],
)
def test_a_stream_without_a_character_shows_its_escape(file, out, settings, times):
    settings = {"PYTHONIOENCODING": "", "PYTHONUTF8": ""} | settings
    run = shell("RUN", str(file), str(out), **settings)
    assert (run.returncode, run.stderr) == (0, b"")
    assert b"9 points " + times + b" 1 features" in run.stdout
    assert names(out) == WHOLE


@posix
def test_names_of_files_need_not_be_utf8(file, out):
    try:
        given = file.rename(os.fsdecode(os.fsencode(file.parent) + b"/c\xff.yaml"))
    except OSError:
        pytest.skip("this file system knows UTF-8 alone")
    folder = os.fsencode(out) + b"\xfe"
    run = shell("RUN", os.fsencode(given), folder)
    assert (run.returncode, run.stderr) == (0, b"")
    whole = [os.fsencode(name) for name in swept("c\udcff")]
    assert sorted(os.listdir(folder)) == whole
    assert rb"c\udcff.csv, .svg, .npz, " in run.stdout


# ---- names that cannot be written, before any work


@pytest.fixture
def no_work(monkeypatch):
    def fail(problem):
        pytest.fail(f"{problem.name} was worked on")

    monkeypatch.setattr(po.problems.Problem, "points", property(fail))


@pytest.mark.usefixtures("no_work")
@pytest.mark.parametrize(
    "suffix", [".csv", ".svg", ".npz", "_attributions.csv", ".json"]
)
def test_a_name_that_a_folder_has_costs_no_work(file, out, capsys, suffix):
    (out / f"cubic{suffix}").mkdir(parents=True)
    assert main(["sweep", str(file), "-o", str(out)]) == 2
    assert capsys.readouterr() == (
        "",
        f"{file}:1: output: cannot write {out / 'cubic'}{suffix}: a folder is called "
        "so\n",
    )


@pytest.mark.usefixtures("no_work")
def test_a_table_that_is_read_is_not_written_over(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    table, file = tmp_path / "mine.csv", tmp_path / "mine.yaml"
    table.write_text("a,y\n1,2\n2,3\n3,5\n")
    data = "data: {csv: mine.csv, target: y}\nmodel: {kind: linear}\n"
    file.write_text(data + "objective: {gradient_matching: 1}\n")
    assert main(["sweep", "mine.yaml", "-o", "there/.."]) == 2
    assert "mine.csv: it is read here; choose another" in capsys.readouterr().err
    assert table.read_text().startswith("a,y")


def test_a_link_to_nothing_is_written_over(file, out):
    out.mkdir()
    (out / "cubic.csv").symlink_to(out / "gone")
    assert main(["sweep", str(file), "-o", str(out), "-q"]) == 0
    assert names(out) == WHOLE


def test_a_table_of_reproduce_is_not_written_over(tmp_path):
    table = tmp_path / "claims.csv"
    table.write_text("a,y\n1,2\n")
    kept = pytest.raises(InvalidInput, match=r"claims\.csv: it is read here")
    with kept:
        reproduce_paper(
            PROPERTIES, ["tables"], tmp_path, csv=table, target="y", quiet=True
        )
    assert table.read_text() == "a,y\n1,2\n"


def test_a_name_that_is_too_long_is_refused(tmp_path):
    with pytest.raises(InvalidInput, match="File name too long"):
        require_free_name(tmp_path / f"{'n' * 252}.csv")


def test_the_longest_name_that_the_system_takes_is_written(file, out):
    name = "n" * (255 - len("_attributions.csv"))
    longest = file.rename(file.with_name(f"{name}.yaml"))
    assert main(["sweep", str(longest), "-o", str(out), "-q"]) == 0
    assert names(out) == swept(name)


@pytest.mark.usefixtures("no_work")
def test_a_device_is_no_folder(file, capsys):
    assert main(["sweep", str(file), "-o", os.devnull]) == 2
    assert "cannot make the folder" in capsys.readouterr().err


def test_names_are_tried_before_figures_are_made(tmp_path):
    (tmp_path / "statements.csv").mkdir()
    with pytest.raises(InvalidInput, match=r"statements\.csv: a folder is called so"):
        reproduce_paper(PROPERTIES, ["fig2"], tmp_path, quiet=True)


def test_trying_leaves_nothing_behind(tmp_path):
    writable_folder(tmp_path)
    require_free_name(tmp_path / "free.csv")
    assert names(tmp_path) == []


# ---- writing that fails after all


LIMITED = """\
import resource, sys
from propopt.cli import main
resource.setrlimit(resource.RLIMIT_FSIZE, (200, 200))  # bytes a file may have
sys.exit(main(sys.argv[1:]))
"""


@posix
@pytest.mark.parametrize("options", [[], ["--quiet"]])
def test_a_full_disk_ends_in_one_sentence_after_the_front(file, out, options):
    run = python("-c", LIMITED, "sweep", file, "-o", out, *options)
    assert run.returncode == 5
    suffixes = (".csv", ".svg", ".npz", ".json")
    reasons = [f"cannot write {out / 'cubic'}{s}: File too large" for s in suffixes]
    assert run.stderr == f"propopt: {'; '.join(reasons)}\n"
    assert "3 optimized" in run.stdout
    assert run.stdout.count("optimized  ") == 3
    assert names(out) == ["cubic_attributions.csv"]  # the only one so small


@pytest.fixture
def unwritable(monkeypatch):
    """Tables cannot be written; pictures can."""

    def full(frame, path, **settings):
        del frame, settings
        Path(path).write_text("half of")
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(pd.DataFrame, "to_csv", full)


@pytest.mark.usefixtures("unwritable")
def test_what_can_be_written_is(file, out):
    assert main(["sweep", str(file), "-o", str(out), "-q"]) == 5
    assert names(out) == ["cubic.json", "cubic.npz", "cubic.svg"]


@pytest.mark.usefixtures("unwritable")
def test_the_error_holds_the_trade_offs(file, out):
    with pytest.raises(Unwritten, match=r"cubic\.csv: No space left") as caught:
        po.problems.run_problem(po.problems.read_problem(file).build(), out, quiet=True)
    assert len(caught.value.result.optimized) == 3


def test_a_folder_that_is_gone_loses_no_front(file, out, capsys, monkeypatch):
    sweep = po.problems.Problem.sweep

    def sweeping(problem, *arguments, **settings):
        out.rmdir()
        return sweep(problem, *arguments, **settings)

    monkeypatch.setattr(po.problems.Problem, "sweep", sweeping)
    assert main(["sweep", str(file), "-o", str(out), "-q"]) == 5
    printed = capsys.readouterr()
    assert "3 optimized" in printed.out
    assert f"there is no folder {out}" in printed.err


@pytest.mark.usefixtures("unwritable")
def test_the_next_file_is_solved_though_one_is_not_written(file, out):
    other = file.with_name("other.yaml")
    other.write_text(FILE)
    assert main(["sweep", str(file), str(other), "-o", str(out), "-q"]) == 5
    assert [x for x in names(out) if x.endswith("g")] == ["cubic.svg", "other.svg"]


def test_a_refusal_of_the_system_names_the_file(tmp_path):
    def write():
        with written_whole(tmp_path / "table.csv"):
            raise OSError(errno.EIO, "Input/output error")

    with pytest.raises(Unwritten, match=r"table\.csv: Input/output error"):
        write()
    assert names(tmp_path) == []


DESCRIPTORS = """\
import os, sys
from propopt.base.streams import patient_streams
for descriptor in (0, 1, 2):
    os.close(descriptor)
with patient_streams():
    handle = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT)
    os.write(handle, str(handle).encode())
os._exit(0)
"""


@posix
def test_no_file_takes_the_place_of_a_stream(tmp_path):
    python("-c", DESCRIPTORS, tmp_path / "file")
    assert int((tmp_path / "file").read_text()) > 2
