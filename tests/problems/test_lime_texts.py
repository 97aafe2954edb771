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


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """What is written and printed of three documents."""
    own = tmp_path_factory.mktemp("notes")
    (own / "notes.csv").write_text(NOTES, encoding="utf-8")
    return done(own, FILE)


@pytest.fixture
def refused(folder, capsys):
    def said(text, *options):
        path = folder / "file.yaml"
        path.write_text(text, encoding="utf-8")
        assert main(["lime", "-o", str(folder / "out"), str(path), *options]) == 2
        return capsys.readouterr().err.replace(f"{folder}/", "")

    return said


def limits(made, bandwidth, rows=(0, 2, 3)):
    """What the library says of documents."""
    subject, law = made.subject, po.lime.TextLaw(bandwidth)
    texts = subject.points.loc[list(rows)]
    return po.lime.text_limits(subject.function, texts, law, words=PatternWords())


def test_files_hold_what_the_library_finds(made):
    known = limits(made, 0.5)
    table = made.table("_lime", keep_default_na=False, na_values=[""])
    assert table["word"].tolist() == [w for words in known.words for w in words]
    assert table["document"].unique().tolist() == [0, 2, 3]
    result = [x for x in table["coefficient"] if not np.isnan(x)]
    told = np.concatenate(known.coefficients)
    assert result == pytest.approx(told[~np.isnan(told)].tolist(), abs=1e-12)
    saved = made.load(po.lime.TextLimeExplanation)
    assert saved.as_list(0) == known.as_list(0)
    assert made.stored["job"] == "lime"
    facts = made.stored["lime"]
    assert facts["rows"] == [0, 2, 3]
    assert facts["settings"] == {
        "rows": [0, 2, 3],
        "bandwidth": 0.5,
        "words": "lime",
        "n_samples": 5000,
        "path": [0.1, 0.5, 2.0],
        "diagnose": True,
    }
    assert facts["n_words"] == [5, 4, 1]
    assert facts["intercept"][2] is None
    assert facts["prediction"] == pytest.approx(known.values.tolist())


def test_a_path_has_a_line_for_each_document_bandwidth_and_word(made):
    table = made.table("_path")
    assert len(table) == 3 * (5 + 4)  # one word alone has no coefficient
    for width in (0.1, 0.5, 2.0):
        at = table[table["bandwidth"] == width]
        told = np.concatenate(limits(made, width, (0, 2)).coefficients)
        assert at["coefficient"].tolist() == pytest.approx(told.tolist(), abs=1e-10)


def test_pages_and_printouts_have_the_texts_and_no_markup_of_theirs(made):
    page = (made.folder / "file.html").read_text(encoding="utf-8")
    assert "<b>good</b>" not in page
    assert "😀" in page
    assert "<script" not in page
    svg = (made.folder / "file.svg").read_text(encoding="utf-8")
    title = "log-odds of label = yes, document "
    assert svg.count(title) == 4  # two known documents, bars and paths
    known = limits(made, 0.5)
    assert "6 documents × " in made.printed
    for row in (0, 2, 3):
        assert f"\n\n{known.card(row).text()}\n" in made.printed
    word, weight = max(known.as_list(0), key=lambda pair: abs(pair[1]))
    assert re.search(rf"\n  {word} +{re.escape(f'{weight:+.3g}')} ", made.printed)
    assert f"\n\n{known.diagnose().card().text()}\n" in made.printed
    assert "LIME says nothing of document 3: of one word" in made.printed
    assert ".html, .npz and .json in" in made.printed


def test_rows_of_the_command_line_come_instead(folder):
    said = done(folder, FILE, "--rows", "5").printed
    assert "for document 5 (" in said
    assert "document 0" not in said


def test_words_may_be_those_that_the_model_counts(folder):
    made = done(folder, FILE.replace("bandwidth: 0.5", "words: model"), "-q")
    table = made.table("_lime")
    words = table.loc[table["document"] == 0, "word"].tolist()
    assert words == ["good", "food", "price"]
    assert table.loc[table["word"] == "good", "count"].max() == 2


def test_words_of_a_model_that_does_not_tell_them_are_refused(
    folder, refused, monkeypatch
):
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


def test_documents_that_lime_says_nothing_of_and_too_many_are_refused(refused):
    said = refused(FILE.replace("[0, 2, 3]", "9"))
    assert said.endswith("lime: rows: expected at most the 6 rows to explain, got 9\n")
    said = refused(FILE.replace("[0, 2, 3]", "[3]"))
    assert "LIME says nothing of any" in said
    assert said.startswith("file.yaml:3: lime: ")
