"""``propopt check`` says what ``propopt sweep`` would; ``--resume`` of all jobs."""

import json

import numpy as np
import pandas as pd
import pytest

from propopt.cli import main
from propopt.problems.subject import subject


FILE = """\
data: {csv: table.csv, target: whole, explain: 10}
model: {kind: logistic, target_class: 1}
objective: {gradient_matching: 1}
"""


def test_a_check_reads_all_rows_and_fits_nothing(said, tmp_path, rng, monkeypatch):
    monkeypatch.setattr(subject, "fit", lambda *_: pytest.fail("fitted"))
    table = pd.DataFrame(rng.normal(size=(2000, 2)), columns=list("ab"))
    table["whole"] = (np.arange(2000) > 1900) * 1
    table.to_csv(tmp_path / "table.csv", index=False)
    for explain in ("10", "1500"):
        assert said(FILE.replace("10", explain), "check") == (0, "")
    table.loc[1500, "a"] = np.inf
    table.to_csv(tmp_path / "table.csv", index=False)
    assert said(FILE, "check") == (
        2,
        "file.yaml:1: data.csv: numbers must be finite, and in these columns some are "
        "infinite: a",
    )


FORMULA = """\
data: {grid: {low: -1, high: 1000, per_dimension: 2000, dimensions: 1}}
function: {name: exponential}
objective: {gradient_matching: 1}
"""


def test_an_overflow_is_told_of_some_of_the_rows(said):
    code, message = said(FORMULA, "check")
    assert code == 2
    assert message.startswith("file.yaml:2: function: ")
    assert "not finite in 1 of 1001 rows" in message


DATA = "data: {csv: table.csv, target: y}\nmodel: {kind: linear}\n"
JOBS = {
    "explain": DATA + "explain: {}\n",
    "lime": DATA + "lime: {rows: 1}\n",
    "interactions": DATA + "interactions: {scheme: {kind: split}}\n",
    "sweep": DATA + "objective: {gradient_matching: 1, sparsity: 0.1}\n",
}


@pytest.fixture(params=JOBS)
def resumed(request, tmp_path, capsys):
    """Runs the job again, which says whether it did anything."""
    rows = [f"{i % 7},{i * i % 11},{i % 7 - i * i % 11 + i % 3}" for i in range(60)]
    (tmp_path / "table.csv").write_text("\n".join(["a,b,y", *rows]), "utf-8")
    (tmp_path / "one.yaml").write_text(JOBS[request.param], "utf-8")

    def run(*arguments):
        file, out = tmp_path / "one.yaml", tmp_path / "out"
        assert main([request.param, str(file), "-o", str(out), *arguments]) == 0
        return "nothing to do" not in capsys.readouterr().out

    assert run("--resume")  # the first
    return run


def test_what_is_finished_and_whole_is_left(resumed, tmp_path, capsys):
    table, file, out = (tmp_path / name for name in ("table.csv", "one.yaml", "out"))
    times = {p: p.stat().st_mtime_ns for p in out.glob("one*.*")}
    file.write_text(f"# a remark\n{file.read_text('utf-8')}", "utf-8")
    assert not resumed("--resume")
    assert {p: p.stat().st_mtime_ns for p in times} == times
    assert resumed()  # not asked to
    table.write_text(f"{table.read_text('utf-8')}\n1,2,3", "utf-8")
    assert resumed("--resume")
    file.write_text(f"{file.read_text('utf-8')}seed: 1\n", "utf-8")
    assert resumed("--resume")
    message = json.loads((out / "one.json").read_text("ascii"))
    assert message["finished"]["files"]
    (out / "one.json").write_text(json.dumps(message | {"finished": None}), "ascii")
    assert resumed("--resume")
    for written in sorted(out.glob("one*.*")):
        written.write_bytes(written.read_bytes()[:-9])
        assert resumed("--resume"), written
    written.unlink()
    assert resumed("--resume")
    assert not resumed("--resume")
    assert main(["explain", str(file), "--resume", str(file)]) == 2
    assert capsys.readouterr().err.startswith(
        f"--resume: expected a folder, got the file {file}"
    )
