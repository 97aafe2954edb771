"""``--resume`` after a kill: what is written is what one run writes, to the byte.

Clocks stand still, as seconds are written too.
"""

import hashlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from propopt.base import checkpoints, files, resources
from propopt.cli import main
from propopt.interactions import fitting
from propopt.laws import data_law


TABLE = "data: {csv: table.csv, target: y, explain: 16}\n"
TREES = TABLE + "model: {kind: hist_gradient_boosting, task: regression}\n"
NETWORK = TABLE + "model: {kind: mlp, hidden: [4], task: regression}\n"
GRAPH = "pairwise_robustness: {weight: 1, graph: {kind: knn, n_neighbors: 3}}"
JOBS = {
    "sweep": NETWORK
    + f"objective: {{gradient_matching: 1, {GRAPH}, sparsity: 0.1}}\n"
    + "sweep: {sparsity: {low: 0.01, high: 1, points: 50}}\n"
    + "baselines:\n- {method: smoothgrad, scale: [0.2, 0.5], n_samples: 30}\n"
    + "- {method: lime, scale: [0.2, 0.5], n_samples: 60}\n",
    "explain": NETWORK + "explain: {kind: slopes, law: gaussian, precision: 0.01}\n",
    "exact": TREES + "explain: {kind: contributions}\n",
    "lime": NETWORK + "lime: {rows: 3, n_samples: 200, path: [0.5, 1]}\n",
    "words": "data: {csv: texts.csv, target: y, text: words, explain: 6}\n"
    "model: {kind: mlp, hidden: [4], task: regression, "
    "vectorizer: {kind: counts}}\n"
    "explain: {}\n",
    "audit": TREES.replace(", explain: 16", "")
    + "audit: {attributions: shap.csv, base: 0}\n",
    "interactions": TABLE.replace(", explain: 16", "")
    + "model: {kind: forest, n_estimators: 1, task: regression}\n"
    "interactions: {scheme: {kind: split, cv: 3}}\n",
    "patches": TABLE.replace(", explain: 16", "")
    + "model: {kind: forest, n_estimators: 1, task: regression}\n"
    "interactions: {scheme: {kind: minipatches, n_patches: 150}}\n",
}
COMMANDS = {"sweep": "sweep", "lime": "lime", "audit": "audit"}
COMMANDS |= dict.fromkeys(("interactions", "patches"), "interactions")
KILLS = 10


class Killed(BaseException):
    """As a kill is, nobody handles it."""


@pytest.fixture
def problem(tmp_path):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(60, 4)).round(3)
    y = (X[:, 0] * X[:, 1] + X[:, 2]).round(4)
    rows = [",".join(map(str, [*x, t])) for x, t in zip(X, y, strict=True)]
    (tmp_path / "table.csv").write_text("\n".join(["a,b,c,d,y", *rows]), "utf-8")
    parts = [",".join(map(str, row)) for row in 0.3 * X]
    (tmp_path / "shap.csv").write_text("\n".join(["a,b,c,d", *parts]), "utf-8")
    words = np.array(["good", "bad", "old", "new", "red", "blue", "fast", "slow"])
    lines = [f"{' '.join(rng.choice(words, 5))} number{i},{i % 7}" for i in range(40)]
    (tmp_path / "texts.csv").write_text("\n".join(["words,y", *lines]), "utf-8")

    def path(job):
        (tmp_path / f"{job}.yaml").write_text(JOBS[job], "utf-8")
        return tmp_path / f"{job}.yaml"

    return path


@pytest.fixture
def still(monkeypatch):
    monkeypatch.setattr(time, "perf_counter", lambda: 0.0)
    monkeypatch.setattr(checkpoints, "MIN_CHECKPOINT_SECONDS", 0.0)
    monkeypatch.setattr(fitting, "CALL_SECONDS", 0.0)  # one fit each
    few = resources.Budget(2**25, n_rows=400)  # so that there are many parts
    monkeypatch.setattr(resources, "MODEL_CALLS", few)
    monkeypatch.setattr(data_law, "ROWS_AT_ONCE", resources.Budget(1))


def arguments(job, path, out):
    command = COMMANDS.get(job, "explain")
    return [command, str(path), "-o", str(out), "-q", "--resume"]


def contents(folder):
    return {p.name: p.read_bytes() for p in folder.glob("*.*") if p.is_file()}


@pytest.mark.usefixtures("still")
@pytest.mark.parametrize(
    ("job", "kills"),
    [
        *((job, 2) for job in ("sweep", "explain", "lime", "patches")),
        *(pytest.param(job, KILLS, marks=pytest.mark.slow) for job in JOBS),
    ],
)
def test_a_killed_run_goes_on_to_the_same_bytes(
    job, kills, problem, tmp_path, monkeypatch
):
    path, left, parts = problem(job), kills, 0
    assert main(arguments(job, path, tmp_path / "whole")) == 0
    rng, write = np.random.default_rng([kills, len(job)]), files.Format.write
    until = 1

    def killed(form, target, *what):
        nonlocal until, left, parts
        write(form, target, *what)
        if ".parts" in str(target):
            parts, until = parts + 1, until - 1
            if until == 0 and left:
                raise Killed

    def patch(folder, first, part, keep=fitting.save_part):
        nonlocal until, left, parts
        keep(folder, first, part)
        parts, until = parts + 1, until - 1
        if until == 0 and left:
            raise Killed

    monkeypatch.setattr(files.Format, "write", killed)
    monkeypatch.setattr("propopt.interactions.minipatches.save_part", patch)
    while True:
        try:
            assert main(arguments(job, path, tmp_path / "out")) == 0
            break
        except Killed:
            left, until = left - 1, int(rng.integers(1, 3)) if kills < KILLS else 1
    assert parts >= kills - left
    assert left == 0 or job in ("exact", "words", "audit")  # which have fewer parts
    assert left < kills
    assert contents(tmp_path / "out") == contents(tmp_path / "whole")
    assert not list((tmp_path / "out").glob(".*.parts"))  # nothing stays


def test_parts_that_are_damaged_or_of_something_else_are_made_again(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(checkpoints, "MIN_CHECKPOINT_SECONDS", 0.0)
    made = []

    def make():
        made.append(1)
        return np.arange(3.0)

    for of, n_made in ((0.0, 1), (0.0, 1), (1.0, 2), (0.0, 2)):
        with checkpoints.checkpointing(tmp_path / "parts" / "one"):
            result = checkpoints.checkpointed_array("a", make, np.array(of))
            assert result.tolist() == [0.0, 1.0, 2.0]
            result[0] = 5.0  # whoever takes it may write to it
        assert len(made) == n_made
    for path in (tmp_path / "parts" / "one").iterdir():
        data = bytearray(path.read_bytes())
        data[len(data) // 2] ^= 1
        path.write_bytes(data)
    with checkpoints.checkpointing(tmp_path / "parts" / "one") as now:
        checkpoints.checkpointed_array("a", make, np.array(0.0))
        checkpoints.checkpointed_array(
            "b", lambda: checkpoints.checkpointed_array("a", make)
        )
        checkpoints.checkpointed_array("a", make)  # another number, another scope
    assert len(made) == 5
    now.forget()
    assert not (tmp_path / "parts").exists()


HALF = """
import os, signal, sys, time
import numpy as np, pandas as pd
from propopt.base import checkpoints
from propopt.cli import main
time.perf_counter, checkpoints.MIN_CHECKPOINT_SECONDS = lambda: 0.0, 0.0
def killed(*_, **__):
    os.kill(os.getpid(), signal.SIGKILL)
owner, name = {"table": (pd.DataFrame, "to_csv"), "part": (np, "savez")}[sys.argv[1]]
setattr(owner, name, killed)
sys.exit(main(sys.argv[2:]))
"""


@pytest.mark.usefixtures("still")
@pytest.mark.parametrize("what", ["table", "part"])
def test_what_a_kill_left_half_written_does_not_stay(what, problem, tmp_path):
    path, out = problem("exact"), tmp_path / "out"
    request = arguments("exact", path, out)
    run = [sys.executable, "-c", HALF, what, *request]
    code = subprocess.run(run, check=False, env=dict(os.environ)).returncode
    assert code == -signal.SIGKILL
    assert len(list(out.rglob(".draft-*"))) == 1
    assert main(request) == 0
    assert main(arguments("exact", path, tmp_path / "whole")) == 0
    assert sorted(x.name for x in out.iterdir()) == sorted(
        x.name for x in (tmp_path / "whole").iterdir()
    )


def test_the_manifest_says_what_it_was_made_of(problem, tmp_path):
    path = problem("exact")
    assert main(arguments("exact", path, tmp_path / "out")) == 0
    message = json.loads((tmp_path / "out" / "exact.json").read_text("ascii"))
    assert message["inputs"] == {
        name: hashlib.sha256((tmp_path / name).read_bytes()).hexdigest()
        for name in ("exact.yaml", "table.csv")
    }
    assert (
        message["versions"].items()
        >= {
            "numpy": np.__version__,
            "python": re.match(r"[\d.]+", sys.version)[0],
        }.items()
    )
    assert "pytest" not in message["versions"]
    assert message["seed"] == 0
    assert message["problem"]["explain"]["kind"] == "contributions"
    assert Path(message["problem"]["data"]["csv"]).name == "table.csv"
