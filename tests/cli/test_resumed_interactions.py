"""``propopt interactions --resume``: what was finished is not fitted again."""

from __future__ import annotations

import json

import numpy as np
import pytest
from command_line import PROGRAM, ROOT, names, python, write

import propopt as po
from propopt.base.resources import Budget
from propopt.cli import main
from propopt.interactions import fitting


PATCHES = """\
data: {sklearn: diabetes}
model: {kind: linear}
interactions:
  scheme: {kind: minipatches, n_patches: 420, n_features: 6}
  sets: [[bmi, s5]]
"""
N_CHUNKS = 12


@pytest.fixture
def stop_after(monkeypatch):
    """Ctrl-C after so many calls of 1, 2, 4, ..., 32, 60, 60, ... patches."""
    monkeypatch.setattr(fitting, "CHUNKS", Budget(2**25, n_rows=60))
    run = fitting.fit_part
    fitted: list[int] = []

    def stop(most=N_CHUNKS + 1):
        fitted.clear()

        def counted(patches, *settings):
            if len(fitted) == most:
                raise KeyboardInterrupt
            fitted.append(patches.first)
            return run(patches, *settings)

        monkeypatch.setattr(fitting, "fit_part", counted)
        return fitted

    return stop


@pytest.fixture
def file(tmp_path):
    return write(tmp_path, "patches", PATCHES)


def interactions(*arguments):
    return main(["interactions", *map(str, arguments)])


def test_a_run_that_was_interrupted_goes_on_from_there(
    tmp_path, file, out, stop_after, capsys
):
    kept = tmp_path / "kept"
    assert stop_after() == []
    assert interactions(file, "-o", tmp_path / "whole", "-q") == 0
    whole = po.interactions.InteractionScores.load(tmp_path / "whole" / "patches.npz")
    stop_after(9)
    assert interactions(file, "-o", out, "--resume", kept) == 130
    said = capsys.readouterr()
    told = "interrupted: 243 of 420 patches are fitted; the same call goes on from"
    assert told in said.err
    assert "propopt: interrupted; files that were written are whole" in said.err
    assert "patches_interactions.csv" in said.out.replace("/patches_", " patches_")
    assert json.loads((out / "patches.json").read_text())["interrupted"]
    assert names(kept) == ["patches"]
    fitted = stop_after()
    assert interactions(file, "-o", out, "--resume", kept, "-q") == 0
    assert fitted == [243, 244, 246, 250, 258, 274, 306, 366]
    assert not json.loads((out / "patches.json").read_text())["interrupted"]
    again = po.interactions.InteractionScores.load(out / "patches.npz")
    np.testing.assert_array_equal(again.estimates, whole.estimates)
    np.testing.assert_array_equal(again.standard_errors, whole.standard_errors)


def test_too_little_to_say_anything_is_told_and_kept(
    tmp_path, file, out, stop_after, capsys
):
    stop_after(0)
    assert interactions(file, "-o", out, "--resume", tmp_path / "kept") == 130
    assert "propopt: interrupted" in capsys.readouterr().err
    assert names(out) == []


def test_files_after_the_one_that_was_interrupted_are_not_begun(
    tmp_path, file, out, stop_after
):
    stop_after(9)
    second = write(tmp_path, "second", PATCHES)
    assert (
        interactions(file, second, "-o", out, "-q", "--resume", tmp_path / "k") == 130
    )
    assert names(tmp_path / "k") == ["patches"]


def test_another_problem_is_refused_with_its_line(tmp_path, file, out, capsys):
    kept = tmp_path / "kept"
    assert interactions(file, "-o", out, "-q", "--resume", kept) == 0
    write(tmp_path, "patches", PATCHES.replace("linear", "tree"))
    assert interactions(file, "-o", out, "-q", "--resume", kept) == 2
    complaint = capsys.readouterr().err
    assert f"{file}:3: interactions: folder: {kept}/patches holds" in complaint
    assert "the learner is Pipeline(" in complaint


def test_another_process_goes_on_with_the_file_that_is_shipped(tmp_path):
    shipped = ROOT / "problems" / "interactions.yaml"
    text = shipped.read_text("utf-8")
    assert "kind: tree" in text  # behind a function, which has another address now
    path, kept = tmp_path / "pairs.yaml", tmp_path / "kept"
    path.write_text(text.replace("n_patches: 2000", "n_patches: 100"), "utf-8")
    command = ["-c", PROGRAM, "interactions", path, "-q", "--resume", kept, "-o"]
    written = []
    for out in (tmp_path / "first", tmp_path / "second"):
        assert python(*command, out).returncode == 0
        parts = (kept / "diabetes_pairs").iterdir()
        times = {part.name: part.stat().st_mtime_ns for part in parts}
        table = (out / "diabetes_pairs_interactions.csv").read_bytes()
        written.append((times, table))
    assert written[0] == written[1]  # nothing was fitted again
