"""``propopt lime`` on documents: what is written, printed and refused."""

from __future__ import annotations

import json
import re

import numpy as np
import pandas as pd
import pytest

import propopt as po
from propopt.cli import main
from propopt.tables.documents import PatternWords


NOTES = """\
text,label
Good food <b>good</b> price 😀,yes
bad food bad price,no
no good food here,no
yes,yes
good café,yes
the worst [food] and price,no
"""
FILE = """\
data: {csv: notes.csv, text: text, target: label}
model: {kind: logistic, regularization: 1, output: log_odds, target_class: 'yes'}
lime:
  rows: [0, 2, 3]
  bandwidth: 0.5
  path: [0.1, 0.5, 2]
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "notes.csv").write_text(NOTES, encoding="utf-8")
    return tmp_path


@pytest.fixture
def run(folder, capsys):
    """The printout of a run, and its folder."""

    def done(text=FILE, *options):
        path = folder / "notes.yaml"
        path.write_text(text, encoding="utf-8")
        code = main(["lime", "-o", str(folder / "out"), str(path), *options])
        printed = capsys.readouterr()
        lines = printed.err.splitlines(keepends=True)
        # old packages warn of newer ones
        said = "".join(line for line in lines if "scipy.optimize" not in line)
        assert code == (2 if said else 0), said
        return said.replace(f"{folder}/", "") or printed.out

    return done


def asked(folder):
    """The file, and what the library says of it."""
    look = po.problems.read_problem(folder / "notes.yaml")
    texts = pd.read_csv(folder / "notes.csv")["text"].loc[[0, 2, 3]]
    law = po.lime.TextLaw(0.5)
    known = po.lime.text_limits(look.subject.function, texts, law, words=PatternWords())
    return look, known


def test_files_hold_what_the_library_finds(run, folder):
    run()
    _, known = asked(folder)
    out = folder / "out"
    table = pd.read_csv(out / "notes_lime.csv", keep_default_na=False, na_values=[""])
    assert table["word"].tolist() == [w for words in known.words for w in words]
    assert table["document"].unique().tolist() == [0, 2, 3]
    result = [x for x in table["coefficient"] if not np.isnan(x)]
    told = np.concatenate(known.coefficients)
    assert result == pytest.approx(told[~np.isnan(told)].tolist(), abs=1e-12)
    saved = po.lime.TextLimeExplanation.load(out / "notes.npz")
    assert saved.as_list(0) == known.as_list(0)
    content = json.loads((out / "notes.json").read_text())
    assert content["job"] == "lime"
    assert content["lime"]["rows"] == [0, 2, 3]
    assert content["lime"]["settings"] == {
        "rows": [0, 2, 3],
        "bandwidth": 0.5,
        "words": "lime",
        "n_samples": 5000,
        "path": [0.1, 0.5, 2.0],
        "diagnose": True,
    }
    assert content["lime"]["n_words"] == [5, 4, 1]
    assert content["lime"]["intercept"][2] is None
    assert content["lime"]["prediction"] == pytest.approx(known.values.tolist())


def test_a_path_has_a_line_for_each_document_bandwidth_and_word(run, folder):
    run()
    table = pd.read_csv(folder / "out" / "notes_path.csv")
    assert len(table) == 3 * (5 + 4)  # one word alone has no coefficient
    look, known = asked(folder)
    for width in (0.1, 0.5, 2.0):
        texts = look.subject.points.loc[[0, 2]]
        law = po.lime.TextLaw(width)
        there = po.lime.text_limits(
            look.subject.function, texts, law, words=PatternWords()
        )
        at = table[table["bandwidth"] == width]
        told = np.concatenate(there.coefficients)
        assert at["coefficient"].tolist() == pytest.approx(told.tolist(), abs=1e-10)
    assert known.law.bandwidth == 0.5


def test_the_page_has_the_texts_and_no_markup_of_theirs(run, folder):
    run()
    page = (folder / "out" / "notes.html").read_text(encoding="utf-8")
    assert "<b>good</b>" not in page
    assert "😀" in page
    assert "<script" not in page
    svg = (folder / "out" / "notes.svg").read_text(encoding="utf-8")
    title = "log-odds of label = yes, document "
    assert svg.count(title) == 4  # two known documents, bars and paths


def test_a_printout_says_what_is_exact_and_shows_each_text(run, folder):
    said = run()
    _, known = asked(folder)
    assert "6 documents × " in said
    for row in (0, 2, 3):
        assert f"\n\n{known.card(row).text()}\n" in said
    word, weight = max(known.as_list(0), key=lambda pair: abs(pair[1]))
    assert re.search(rf"\n  {word} +{re.escape(f'{weight:+.3g}')} ", said)
    assert f"\n\n{known.diagnose().card().text()}\n" in said
    assert "LIME says nothing of document 3: of one word" in said
    assert ".html, .npz and .json in" in said


def test_rows_of_the_command_line_come_instead(run):
    said = run(FILE, "--rows", "5")
    assert "for document 5 (" in said
    assert "document 0" not in said


def test_words_may_be_those_that_the_model_counts(run, folder):
    run(FILE.replace("bandwidth: 0.5", "words: model"))
    table = pd.read_csv(folder / "out" / "notes_lime.csv")
    words = table.loc[table["document"] == 0, "word"].tolist()
    assert words == ["good", "food", "price"]
    assert table.loc[table["word"] == "good", "count"].max() == 2


def test_words_of_a_model_that_does_not_tell_them_are_refused(run, folder, monkeypatch):
    monkeypatch.syspath_prepend(folder)
    (folder / "long_texts.py").write_text(
        "import numpy as np\n"
        "def model(texts):\n"
        "    return np.array([len(text) for text in texts], float)\n"
    )
    text = re.sub("model: .*", "model: {import: 'long_texts:model'}", FILE)
    assert "is 29 for document 0" in run(text, "--allow-code")
    assert run(text.replace("bandwidth: 0.5", "words: model"), "--allow-code") == (
        "notes.yaml:5: lime.words: those of the model are not known: it begins with "
        "no vectoriser of scikit-learn; take lime\n"
    )


def test_more_rows_than_there_are_documents_are_refused(run):
    said = run(FILE.replace("[0, 2, 3]", "9"))
    assert said.endswith("lime: rows: expected at most the 6 rows to explain, got 9\n")


def test_documents_that_lime_says_nothing_of_are_refused_together(run):
    said = run(FILE.replace("[0, 2, 3]", "[3]"))
    assert "LIME says nothing of any" in said
    assert said.startswith("notes.yaml:3: lime: ")
