"""``--resume`` of all four jobs: what is finished and whole is not done again."""

from __future__ import annotations

import json

import pytest

from propopt.cli import main


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
        return "nothing is done" not in capsys.readouterr().out

    assert run("--resume")  # the first
    return run


def test_what_is_finished_and_whole_is_left_and_all_else_is_run(
    resumed, tmp_path, capsys
):
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
    told = json.loads((out / "one.json").read_text("ascii"))
    assert told["finished"]["files"]
    (out / "one.json").write_text(json.dumps(told | {"finished": None}), "ascii")
    assert resumed("--resume")
    for written in sorted(out.glob("one*.*")):
        written.write_bytes(written.read_bytes()[:-9])
        assert resumed("--resume"), written
    written.unlink()
    assert resumed("--resume")
    assert not resumed("--resume")
    assert main(["explain", "--resume", str(file)]) == 2
    assert capsys.readouterr().err.startswith(f"--resume: {file} is a file")
