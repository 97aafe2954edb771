"""``--report`` of every job, and ``propopt report`` of what is saved."""

import json
import re
import sys

import pytest
from command_line import FILE, write

import propopt as po
from propopt.cli import main


JOBS = {
    "sweep": FILE,
    "explain": "data: {sklearn: iris, explain: 20}\n"
    "model: {kind: logistic, target_class: setosa}\nexplain: {robustness: 0.5}\n",
    "lime": "data: {sklearn: iris, explain: 20}\nmodel: {kind: forest, target_class: "
    "setosa, n_estimators: 2}\nlime: {rows: 2, n_samples: 100}\n",
    "interactions": "data: {sklearn: iris}\nmodel: {kind: logistic}\ninteractions:\n"
    "  scheme: {kind: split, cv: 0.4}\n",
}
SAID = {
    "sweep": "All optima",
    "explain": "Two similar rows",
    "lime": "LIME, infinite samples",
    "interactions": "Importance (LOCO)",
}


@pytest.mark.parametrize("job", JOBS)
def test_every_job_writes_a_page_that_is_a_file_of_the_run(job, tmp_path, out):
    text = f"description: what it is of\n{JOBS[job]}"
    file, end = write(tmp_path, "job", text), ["-o", str(out), "-q"]
    assert main([job, file, "--report", *end]) == 0
    page = (out / "job.html").read_text(encoding="utf-8")
    assert SAID[job] in page
    assert "what it is of" in page
    assert re.search('class="tag (proved|checked|estimated)"', page)
    manifest = json.loads((out / "job.json").read_text())
    assert ".html" in manifest["finished"]["files"]
    (out / "job.html").write_text("cut off")
    assert main([job, file, "--report", "--resume", str(out), *end]) == 0
    assert (out / "job.html").read_text(encoding="utf-8") == page  # the same bytes


@pytest.mark.usefixtures("no_work")
def test_a_report_without_jinja_is_refused_before_any_work(
    tmp_path, out, monkeypatch, capsys
):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    file = write(tmp_path, "job", FILE)
    assert main(["sweep", file, "--report", "-o", str(out)]) == 2  # before any work
    assert 'pip install "propopt[report]"' in capsys.readouterr().err


def test_saved_results_of_several_kinds_are_one_page(tmp_path, capsys):
    best = po.solve(po.GradientMatching([[1.0, 2.0]]))
    best.save(tmp_path / "one.npz")
    best.shares().save(tmp_path / "two.npz")
    page = tmp_path / "page.html"
    paths = [str(tmp_path / name) for name in ("one.npz", "two.npz")]
    assert main(["report", *paths, "-o", str(page)]) == 0
    assert "2 results" in page.read_text(encoding="utf-8")
    assert capsys.readouterr().out == f"wrote {page}\n"


def test_what_is_no_saved_result_is_refused_in_one_sentence(tmp_path, capsys):
    (tmp_path / "odd.npz").write_bytes(b"PK\3\4 something")
    for name, printed in (
        ("odd.npz", "expected a saved result"),
        ("no.npz", "no such"),
    ):
        assert main(["report", str(tmp_path / name), "-o", str(tmp_path / "p")]) == 2
        error = capsys.readouterr().err
        assert printed in error
        assert len(error.splitlines()) == 1
    assert not (tmp_path / "p").exists()
