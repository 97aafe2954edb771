"""What a run writes is tried first, appears whole, and loses no sweep if it fails."""

import errno
import io
import os
import stat
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
from command_line import FILE as WITH_BASELINES
from command_line import PROGRAM, environment, names, python, swept, write

import propopt as po
from propopt.base.errors import InvalidInput, WriteFailure
from propopt.base.files import atomic_write, require_writable, writable_folder
from propopt.base.streams import PatientStream
from propopt.cli import main


FILE = WITH_BASELINES.partition("baselines")[0]
posix = pytest.mark.skipif(os.name == "nt", reason="descriptors of POSIX")


@pytest.fixture
def file(tmp_path):
    return Path(write(tmp_path, "cubic", FILE))


def shell(command, file, out, **settings):
    """The CLI under a shell: ``RUN`` in the command stands for the sweep."""
    script = command.replace("RUN", '"$0" -c "$1" sweep "$2" -o "$3"')
    return subprocess.run(
        ["bash", "-c", script, sys.executable, PROGRAM, file, out],
        env=environment(**settings),
        capture_output=True,
        timeout=300,  # it hangs, whatever the load
        check=False,
    )


WHOLE = swept("cubic")


# ---- streams
UTF8 = {"PYTHONIOENCODING": "", "PYTHONUTF8": ""}
NO_UTF8 = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
FULL = "propopt: cannot print: No space left on device\n"
STREAMS = [
    ("RUN > /dev/full", {}, 5, FULL, None),
    ("RUN > /dev/full 2>&1", {}, 5, "", None),
    ("RUN 2>&-", {}, 0, "", None),
    ("RUN <&- >&- 2>&-", {}, 0, "", None),
    ("RUN | head -n 1; exit ${PIPESTATUS[0]}", {}, 0, "", None),
    ("RUN", {"PYTHONIOENCODING": "ascii"}, 0, "", rb"\xd7"),
    ("RUN", {"PYTHONIOENCODING": "latin-1"}, 0, "", b"\xd7"),
    ("RUN", {"LC_ALL": "C"}, 0, "", "×".encode()),
    ("RUN", NO_UTF8, 0, "", rb"\xd7"),
]


@pytest.mark.sampled(1)
@posix
@pytest.mark.parametrize(("command", "settings", "code", "told", "times"), STREAMS)
def test_a_stream_that_takes_nothing_or_not_all_does_not_end_a_run(
    file, out, command, settings, code, told, times
):
    run = shell(command, str(file), str(out), **(UTF8 | settings))
    assert (run.returncode, run.stderr.decode()) == (code, told)
    assert times is None or b"9 points " + times + b" 1 features" in run.stdout
    assert names(out) == WHOLE
    assert len(pd.read_csv(out / "cubic.csv")) == 3


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


def test_a_stream_that_was_closed_before_is_silent():
    inner = io.StringIO()
    stream = PatientStream(inner)
    inner.close()
    assert stream.write("late") == 4
    stream.flush()
    stream.close()  # as Python does with a stream that it forgets
    assert stream.failure is None


# ---- names that cannot be written, before any work
@pytest.mark.usefixtures("no_work")
def test_a_name_that_a_folder_has_costs_no_work(file, out, capsys):
    for suffix in (".csv", ".svg", ".npz", "_attributions.csv", ".json"):
        (out / f"cubic{suffix}").mkdir(parents=True)
        assert main(["sweep", str(file), "-o", str(out)]) == 2
        (out / f"cubic{suffix}").rmdir()
        name = f"{out / 'cubic'}{suffix}"
        told = f"{file}:1: output: cannot write {name}: it is a folder\n"
        assert capsys.readouterr() == ("", told)
    assert main(["sweep", str(file), "-o", os.devnull]) == 2
    assert "cannot make the folder" in capsys.readouterr().err


@pytest.mark.usefixtures("no_work")
def test_a_table_that_is_read_is_not_written_over(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    table, file = tmp_path / "mine.csv", tmp_path / "mine.yaml"
    table.write_text("a,y\n1,2\n2,3\n3,5\n")
    data = "data: {csv: mine.csv, target: y}\nmodel: {kind: linear}\n"
    file.write_text(data + "objective: {gradient_matching: 1}\n")
    assert main(["sweep", "mine.yaml", "-o", "there/.."]) == 2
    assert "mine.csv: it is an input; choose another" in capsys.readouterr().err
    assert table.read_text().startswith("a,y")


def test_trying_a_name_leaves_nothing_behind(tmp_path):
    writable_folder(tmp_path)
    require_writable(tmp_path / "free.csv")
    with pytest.raises(InvalidInput, match="File name too long"):
        require_writable(tmp_path / f"{'n' * 252}.csv")
    assert names(tmp_path) == []


def test_the_longest_name_is_written_over_a_link_to_nothing(file, out):
    name = "n" * (255 - len("_attributions.parquet"))
    longest = file.rename(file.with_name(f"{name}.yaml"))
    out.mkdir()
    (out / f"{name}.csv").symlink_to(out / "gone")
    assert main(["sweep", str(longest), "-o", str(out), "-q"]) == 0
    assert names(out) == swept(name)


# ---- writing that fails after all
LIMITED = """\
import resource, sys
from propopt.cli import main
resource.setrlimit(resource.RLIMIT_FSIZE, (200, 200))  # bytes a file may have
sys.exit(main(sys.argv[1:]))
"""


@posix
def test_a_full_disk_ends_in_one_sentence_after_the_front(file, out):
    run = python("-c", LIMITED, "sweep", file, "-o", out)
    assert run.returncode == 5
    suffixes = (".csv", ".svg", ".npz", ".json")
    reasons = [f"cannot write {out / 'cubic'}{s}: File too large" for s in suffixes]
    assert run.stderr == f"propopt: {'; '.join(reasons)}\n"
    assert "3 optima" in run.stdout
    front = run.stdout.partition("differences removed\n")[2].splitlines()
    assert [line.split()[0] for line in front[:3]] == ["0.1", "1.0", "10.0"]
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
def test_what_can_be_written_is_and_the_next_file_is_solved(file, out):
    other = file.with_name("other.yaml")
    other.write_text(FILE)
    assert main(["sweep", str(file), str(other), "-o", str(out), "-q"]) == 5
    retained = [f"{n}.{s}" for n in ("cubic", "other") for s in ("json", "npz", "svg")]
    assert names(out) == retained
    with pytest.raises(WriteFailure, match=r"cubic\.csv: No space left") as caught:
        po.problems.read_problem(file).run(out, quiet=True)
    assert len(caught.value.result.optimized) == 3


def test_a_folder_that_is_gone_loses_no_front(file, out, capsys, monkeypatch):
    sweep = po.problems.Problem.sweep

    def sweeping(problem, *arguments, **settings):
        out.rmdir()
        return sweep(problem, *arguments, **settings)

    monkeypatch.setattr(po.problems.Problem, "sweep", sweeping)
    assert main(["sweep", str(file), "-o", str(out), "-q"]) == 5
    printed = capsys.readouterr()
    assert "3 optima" in printed.out
    assert f"there is no folder {out}" in printed.err


# ---- whole files
def test_what_was_written_takes_the_name_where_there_is_a_folder(tmp_path):
    target = tmp_path / "table.svg"
    with atomic_write(target) as draft:
        draft.write_text("new")
        assert not target.exists()
        assert (draft.suffix, draft.parent) == (".svg", tmp_path)
    assert target.read_text() == "new"
    missing = pytest.raises(InvalidInput, match="there is no folder")
    with missing, atomic_write(tmp_path / "a" / "table.csv") as draft:
        draft.write_text("new")
    assert list(tmp_path.iterdir()) == [target]


def write_half(target, error):
    with atomic_write(target) as draft:
        draft.write_text("half of the n")
        raise error


ERRORS = [
    (OSError("disk full"), OSError, "disk full"),
    (KeyboardInterrupt(), KeyboardInterrupt, None),
    (
        OSError(errno.EIO, "Input/output error"),
        WriteFailure,
        r"table\.csv: Input/output",
    ),
]


@pytest.mark.parametrize(("error", "kind", "message"), ERRORS)
def test_old_file_stays_when_writing_fails(tmp_path, error, kind, message):
    target = tmp_path / "table.csv"
    target.write_text("old")
    with pytest.raises(kind, match=message):
        write_half(target, error)
    assert target.read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]


@pytest.mark.skipif(os.name == "nt", reason="permissions of POSIX")
@pytest.mark.parametrize("mask", [0o022, 0o077])
def test_permissions_are_those_of_any_new_file(tmp_path, mask):
    before = os.umask(mask)
    try:
        with atomic_write(tmp_path / "table.csv") as draft:
            draft.write_text("new")
        assert os.umask(mask) == mask
    finally:
        os.umask(before)
    mode = stat.S_IMODE((tmp_path / "table.csv").stat().st_mode)
    assert mode == 0o666 & ~mask
