"""``propopt explain`` on documents: what is written, printed and refused."""

from __future__ import annotations

import json
import re

import numpy as np
import pandas as pd
import pytest

import propopt as po
from propopt.cli import main


NOTES = """\
text,label
Good food at a good price,yes
Good food at a good price here,yes
bad food at a bad price,no
no good food here,no
a good <i>café</i>,yes
the worst food and price,no
"""
FILE = """\
data: {csv: notes.csv, text: text, target: label}
model: {kind: logistic, regularization: 1, output: log_odds, target_class: 'yes'}
explain: {}
"""


@pytest.fixture
def run(tmp_path, write, capsys):
    """The printout of a run."""

    def done(text=FILE):
        write(NOTES, "notes.csv")
        assert main(["explain", "-o", str(tmp_path / "out"), str(write(text))]) == 0
        return capsys.readouterr().out

    return done


def known(path, **settings):
    """What the library finds."""
    subject = po.problems.read_problem(path).subject
    return subject, po.explain(subject.function, subject.points, **settings)


@pytest.mark.parametrize(
    ("said", "settings"),
    [
        ("{}", {}),
        ("{law: lime, robustness: 2}", {"law": po.lime.TextLaw(), "robustness": 2.0}),
        ("{units: output}", {"units": "output"}),
    ],
)
def test_files_hold_what_the_library_finds(run, tmp_path, said, settings):
    run(FILE.replace("{}", said))
    subject, best = known(tmp_path / "file.yaml", rng=0, **settings)
    out = tmp_path / "out"
    table = pd.read_csv(out / "file_attributions.csv", index_col=0)
    assert table.columns.tolist() == list(subject.words)
    assert table.index.tolist() == subject.points.index.tolist()
    assert table.to_numpy() == pytest.approx(np.asarray(best.attributions), abs=1e-12)
    assert not table.to_numpy()[subject.table == 0.0].any()
    assert json.loads((out / "file.json").read_text())["n_features"] == len(table.T)
    page = (out / "file.html").read_text(encoding="utf-8")
    assert "&lt;" in page
    assert "<i>" not in page


def test_a_printout_is_about_words(run, tmp_path):
    said = run()
    subject, best = known(tmp_path / "file.yaml")
    mean = np.asarray(best.attributions)[:, subject.words.index("good")].mean()
    assert "6 documents × " in said
    assert re.search(rf"\n  good +{re.escape(f'{mean:+.3g}')}", said)
    assert "contribution of each word to the " in said
    assert "over the words that documents share" in said


def test_a_graph_of_the_file_is_of_where_documents_lie(run):
    said = run(FILE.replace("{}", "{graph: {kind: threshold, threshold: 0.5}}"))
    assert "threshold" in said
    assert "cosine" not in said
