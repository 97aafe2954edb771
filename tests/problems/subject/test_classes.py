"""Which class of a table of one's own is explained, and that a reader is told."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

import propopt as po
from propopt.cli import main
from propopt.problems.file import sections_of_table


@pytest.fixture
def table(tmp_path):
    """Complaints raise the chance of churn, which one in four rows has."""

    def of(labels):
        rng = np.random.default_rng(0)
        X = pd.DataFrame(
            {"complains": rng.integers(0, 2, 240), "age": rng.normal(size=240)}
        )
        chance = 0.05 + 0.4 * X["complains"]
        churn = (rng.uniform(size=240) < chance).astype(int)
        path = tmp_path / "table.csv"
        X.assign(churn=[labels[c] for c in churn]).to_csv(path, index=False)
        return path

    return of


@pytest.mark.parametrize("labels", [(0, 1), ("no", "yes"), ("stays", "leaves")])
def test_the_second_of_two_sorted_labels_is_explained_however_rare(table, labels):
    model = sections_of_table(table(labels), "churn")["model"]
    assert model["target_class"] == sorted(labels)[1]


def test_the_command_explains_what_the_line_of_python_explains(table, tmp_path, capsys):
    path, out = table((0, 1)), tmp_path / "out"
    assert (
        main(["explain", "--csv", str(path), "--target", "churn", "-o", str(out)]) == 0
    )
    assert "explained: log-odds of churn = 1, by " in capsys.readouterr().out
    attributions = pd.read_csv(out / "table_attributions.csv", index_col=0)
    assert attributions["complains"].mean() > 0  # complaining raises churn
    manifest = json.loads((out / "table.json").read_text())
    assert manifest["quantity"]["label"] == 1
    assert manifest["quantity"]["in_words"] == "log-odds of churn = 1"
    assert manifest["units"] == (
        "change of the log-odds of churn = 1 per standard deviation of each feature"
    )
    best = po.Explanation.load(out / "table.npz")
    assert best.quantity.in_words() == "log-odds of churn = 1"


def test_of_several_labels_the_commonest_is_explained_and_said_so(tmp_path, capsys):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(90, 2)), columns=["a", "b"])
    path = tmp_path / "kinds.csv"
    X.assign(kind=["x", "y", "z", "z", "y", "z"] * 15).to_csv(path, index=False)
    out = str(tmp_path / "out")
    assert main(["explain", "--csv", str(path), "--target", "kind", "-o", out]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "kind has 3 labels; 'z', the commonest, is explained" in said
    assert "explained: log-odds of kind = z" in said


def test_a_sweep_says_what_it_explains(table, tmp_path, capsys):
    file = tmp_path / "sweep.yaml"
    file.write_text(
        f"data: {{csv: {table((0, 1))}, target: churn, explain: 30}}\n"
        "model: {kind: logistic, output: probability}\n"
        "objective: {gradient_matching: 1, pairwise_robustness: 1}\n"
        "sweep: {pairwise_robustness: [0.1, 1, 10]}\n"
        "baselines: [{method: gradient}]\n"
    )
    assert main(["sweep", str(file), "-o", str(tmp_path / "out")]) == 0
    assert "explained: probability of churn = 1, by " in capsys.readouterr().out
    manifest = json.loads((tmp_path / "out" / "sweep.json").read_text())
    assert manifest["quantity"]["in_words"] == "probability of churn = 1"
    curve = po.TradeOffs.load(tmp_path / "out" / "sweep.npz")
    words = {e.quantity.in_words() for e in curve.explanations}
    assert words == {"probability of churn = 1"}
