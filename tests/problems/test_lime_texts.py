"""``propopt lime`` on documents: what is written, printed and refused."""

from __future__ import annotations

import re

import numpy as np
import pytest
from command_line import done

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
def refused(folder, capsys):
    def said(text, *options):
        path = folder / "file.yaml"
        path.write_text(text, encoding="utf-8")
        assert main(["lime", "-o", str(folder / "out"), str(path), *options]) == 2
        return capsys.readouterr().err.replace(f"{folder}/", "")

    return said


def test_files_and_pages_hold_what_the_library_finds(folder):
    made = done(folder, FILE)
    stored, printed, subject = made.stored, made.printed, made.subject

    def limits(bandwidth, *rows):
        texts, law = subject.points.loc[list(rows)], po.lime.TextLaw(bandwidth)
        return po.lime.text_limits(subject.function, texts, law, words=PatternWords())

    known = limits(0.5, 0, 2, 3)
    table = made.table("_lime", keep_default_na=False, na_values=[""])
    assert table["word"].tolist() == [w for words in known.words for w in words]
    assert table["document"].unique().tolist() == [0, 2, 3]
    told = np.concatenate(known.coefficients)
    np.testing.assert_allclose(table["coefficient"], told, rtol=0, atol=1e-12)
    saved = made.load(po.lime.TextLimeExplanation)
    assert saved.as_list(0) == known.as_list(0)
    assert stored["job"] == "lime"
    assert stored["lime"]["rows"] == [0, 2, 3]
    given = {"rows": [0, 2, 3], "bandwidth": 0.5, "path": [0.1, 0.5, 2.0]}
    others = {"words": "lime", "n_samples": 5000, "diagnose": True}
    assert stored["lime"]["settings"] == given | others
    assert stored["lime"]["n_words"] == [5, 4, 1]
    assert stored["lime"]["intercept"][2] is None
    assert stored["lime"]["prediction"] == pytest.approx(known.values.tolist())
    path = made.table("_path")
    assert len(path) == 3 * (5 + 4)  # one word alone has no coefficient
    for width in (0.1, 0.5, 2.0):
        result = path.loc[path["bandwidth"] == width, "coefficient"]
        told = np.concatenate(limits(width, 0, 2).coefficients)
        np.testing.assert_allclose(result, told, atol=1e-10)
    page = (made.folder / "file.html").read_text(encoding="utf-8")
    assert "<b>good</b>" not in page
    assert "😀" in page
    assert "<script" not in page
    svg = (made.folder / "file.svg").read_text(encoding="utf-8")
    title = "log-odds of label = yes, document "
    assert svg.count(title) == 4  # two known documents, bars and paths
    for told in (
        "6 documents × ",
        *(f"\n\n{known.card(row).text()}\n" for row in (0, 2, 3)),
        f"\n\n{known.diagnose().card().text()}\n",
        "LIME says nothing of document 3: of one word",
        ".html, .npz and .json in",
    ):
        assert told in printed
    word, weight = max(known.as_list(0), key=lambda pair: abs(pair[1]))
    assert re.search(rf"\n  {word} +{re.escape(f'{weight:+.3g}')} ", printed)


def test_rows_of_the_command_line_and_words_of_the_model_come_instead(folder):
    text = FILE.replace("bandwidth: 0.5", "words: model")
    table = done(folder, text, "-q").table("_lime")
    words = table.loc[table["document"] == 0, "word"].tolist()
    assert words == ["good", "food", "price"]
    assert table.loc[table["word"] == "good", "count"].max() == 2
    said = done(folder, FILE, "--rows", "5").printed
    assert "for document 5 (" in said
    assert "document 0" not in said


def test_words_that_are_not_known_and_documents_without_are_refused(
    folder, refused, monkeypatch
):
    for rows, told in [
        ("9", "lime: rows: expected at most the 6 rows to explain, got 9\n"),
        ("[3]", "file.yaml:3: lime: .*LIME says nothing of any"),
    ]:
        assert re.search(told, refused(FILE.replace("[0, 2, 3]", rows)))
    monkeypatch.syspath_prepend(folder)
    (folder / "long_texts.py").write_text(
        "import numpy as np\n"
        "def model(texts):\n"
        "    return np.array([len(text) for text in texts], float)\n"
    )
    text = re.sub("model: .*", "model: {import: 'long_texts:model'}", FILE)
    assert "is 29 for document 0" in done(folder, text, "--allow-code").printed
    said = refused(text.replace("bandwidth: 0.5", "words: model"), "--allow-code")
    assert said == (
        "file.yaml:5: lime.words: those of the model are not known: it begins with "
        "no vectoriser of scikit-learn; take lime\n"
    )
