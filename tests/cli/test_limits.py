"""What limits on memory and threads do: a sentence, or nothing where work is small."""

import resource
import subprocess
import sys
import threading

import numpy as np
import pandas as pd
import pytest
from command_line import PROGRAM, environment

import propopt as po
from propopt.base.errors import Refused
from propopt.base.resources import for_each_column
from propopt.cli import main
from propopt.interactions.patch_draws import draw_patches
from propopt.laws.perturbations import prefetch


@pytest.fixture
def no_threads(monkeypatch):
    def start(_):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", start)


@pytest.mark.usefixtures("no_threads")
def test_small_work_needs_no_threads(rng):
    X = rng.normal(size=(60, 3))
    neighbours = po.graphs.knn_graph(X, 4)
    distances = np.linalg.norm(X[:, None] - X, axis=2)
    nearest = np.argsort(distances, axis=1)[:, 1:5]
    pairs = {tuple(sorted((n, int(m)))) for n in range(60) for m in nearest[n]}
    assert {tuple(edge) for edge in neighbours.edges.tolist()} == pairs
    assert for_each_column(lambda j: j * j, 5, size=10**9) == [0, 1, 4, 9, 16]
    assert list(prefetch(iter(range(1, 5)))) == [1, 2, 3, 4]
    model = lambda X: X[:, 0] * X[:, 1]  # noqa: E731
    assert po.explain(model, X[:5], data=X, progress=False).shape == (5, 3)


@pytest.mark.parametrize(
    ("error", "printed"),
    [
        (MemoryError("Unable to allocate 9 GiB"), "not enough memory (Unable to alloc"),
        (RuntimeError("can't start new thread"), "starts no more threads"),
    ],
    ids=["memory", "threads"],
)
def test_a_limit_is_told_in_a_sentence(error, printed, monkeypatch, capsys, tmp_path):
    def fails(*_, **__):
        raise error

    monkeypatch.setattr(po.problems, "read_problem", fails)
    assert main(["check", str(tmp_path / "any.yaml")]) == 2
    message = capsys.readouterr().err
    assert printed in message
    assert len(message.splitlines()) == 1


@pytest.mark.skipif(sys.platform != "linux", reason="address space of Linux")
@pytest.mark.parametrize("n_bytes", [2**22, 2**24, 2**26])
def test_a_table_under_a_limit_of_memory_is_no_wrong_csv(n_bytes, tmp_path):
    """Limits from what the program itself takes upwards: never a raw error."""
    table = pd.DataFrame(np.random.default_rng(0).normal(size=(150_000, 10)))
    table.columns = [*"abcdefghi", "y"]
    table.to_csv(tmp_path / "data.csv", index=False)
    (tmp_path / "it.yaml").write_text(
        "data: {csv: data.csv, target: y}\nmodel: {kind: linear}\nexplain: {}\n"
    )
    tight = (
        "import resource, psutil, pandas, sklearn.linear_model, propopt.problems.file;"
        "import scipy.optimize, propopt.explaining.explainer;"
        "used = psutil.Process().memory_info().vms;"
        "resource.setrlimit(resource.RLIMIT_AS, (used + {n}, resource.RLIM_INFINITY));"
    )
    done = subprocess.run(
        [sys.executable, "-c", tight.format(n=n_bytes) + PROGRAM, "check", "it.yaml"],
        cwd=tmp_path,
        env=environment() | {"OPENBLAS_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "Traceback" not in done.stderr
    assert "is not a CSV table" not in done.stderr
    assert done.returncode == 2, done.stderr
    assert "memory" in done.stderr or "are free" in done.stderr
    assert resource.getrlimit(resource.RLIMIT_AS)[0] == resource.RLIM_INFINITY


def test_draws_of_patches_are_in_the_budget():
    with pytest.raises(Refused, match=r"000 minipatches needs? about .* GiB"):
        draw_patches(10**12, 100, 10, 5, 3.0, 0)


# ---- files that are no tables, and perhaps secret

SHADOW = "root:$6$SECRET$abcdef:19000:0:99999:7:::\ndaemon:SECRET:19000:0:::\n"


@pytest.mark.parametrize(
    "text",
    [
        SHADOW,
        'name,pw\nroot,SECRET\n"daemon,x',
        "SECRET a\nfoo,bar\n",
        "x;b\nSECRET;d\n",
    ],
    ids=["lines", "quotes", "cells", "semicolons"],
)
def test_errors_of_files_that_are_no_tables_show_nothing_of_them(
    text, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data.csv").write_text(text)
    for name, content in (
        ("a", "data: {csv: data.csv, target: y}\nmodel: {kind: logistic}\nexplain: {}"),
        ("b", text),
    ):
        (tmp_path / f"{name}.yaml").write_text(content)
        assert main(["check", f"{name}.yaml"]) == 2
    with pytest.raises(po.errors.InvalidInput) as caught:
        po.audit("data.csv", lambda X: X[:, 0], np.eye(3))
    assert "SECRET" not in capsys.readouterr().err + str(caught.value)
