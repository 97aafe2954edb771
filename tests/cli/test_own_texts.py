"""``propopt explain --csv`` on a table of one's own that holds documents."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from command_line import names

import propopt as po
from papers.__main__ import main as reproduce
from propopt.base.text import Reason
from propopt.cli import main
from propopt.problems.file import sections_of_table


GOOD = ["a good meal with good wine", "we liked the warm bread", "a lovely warm place"]
BAD = [
    "the soup was cold and bad",
    "a rude waiter and bad wine",
    "never again, so cold",
]


@pytest.fixture
def notes(tmp_path):
    """Twelve texts, none of them twice."""
    texts = [f"{text} on day {k}" for k in range(2) for text in (*GOOD, *BAD)]
    table = pd.DataFrame({"note": texts, "mood": (["good"] * 3 + ["bad"] * 3) * 2})
    path = tmp_path / "notes.csv"
    table.to_csv(path, index=False)
    return path


def with_column(path, name, values):
    pd.read_csv(path).assign(**{name: values}).to_csv(path, index=False)


def explain(*arguments):
    return main(["explain", *map(str, arguments)])


def sections(path, target, **settings):
    return sections_of_table(path, target, **settings)


def test_documents_alone_are_explained_word_by_word(notes, out, capsys):
    assert explain("--csv", notes, "--target", "mood", "-o", out) == 0
    said = capsys.readouterr().out
    assert "4 documents × " in said
    assert "vectorizer (tfidf, " in said
    assert {"notes.html", "notes_attributions.csv"} < set(names(out))
    table = pd.read_csv(out / "notes_attributions.csv", index_col=0)
    assert {"wine", "cold"} < set(table)
    assert json.loads((out / "notes.json").read_text())["n_features"] == len(table.T)


def test_beside_other_columns_they_have_to_be_asked_for(notes, out, capsys):
    with_column(notes, "stars", range(12))
    assert explain("--csv", notes, "--target", "mood", "-o", out) == 2
    assert capsys.readouterr().err == (
        "--csv: column 'note' holds documents, which are no categories; explain their "
        "words by --text note, or leave the column out\n"
    )
    asked = ("--target", "mood", "--text", "note")
    assert explain("--csv", notes, *asked, "-o", out, "-q") == 0
    table = pd.read_csv(out / "notes_attributions.csv", index_col=0)
    assert "stars" not in table


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--text", "notes"], "--text: notes.csv has no column 'notes' (did you mean "),
        (["--text", "mood"], "--text: notes.csv has no column 'mood'; it has note"),
    ],
)
def test_a_column_that_is_not_there_is_named(notes, capsys, arguments, said):
    assert explain("--csv", notes, "--target", "mood", *arguments) == 2
    assert capsys.readouterr().err.startswith(said)


def test_texts_without_a_table_are_refused(capsys):
    assert explain("--text", "note") == 2
    assert "--csv and --target belong together" in capsys.readouterr().err


def test_what_is_said_of_words_is_exact(notes):
    with_column(notes, "stars", np.arange(12.0))
    for target in ("mood", "stars"):
        own = sections(notes, target, text="note")
        subject = po.problems.read_sections(own | {"explain": {}}).subject
        for document in subject.function.documents_of(subject.points):
            read = subject.function.subsets(document)
            assert not isinstance(read, Reason), read.reason


def test_short_texts_and_repeated_ones_are_categories(notes):
    with_column(notes, "plan", ["the long and dear plan", "the short one"] * 6)
    with_column(notes, "name", [f"Ann {k}" for k in range(12)])
    table = pd.read_csv(notes).drop(columns="note")
    table.to_csv(notes, index=False)
    data = sections(notes, "mood")["data"]
    assert data["categorical"] == ["plan", "name"]
    assert not data["standardize"]  # there is no number
    subject = po.problems.read_sections(sections(notes, "mood") | {"explain": {}})
    assert np.isfinite(subject.subject.function.value(subject.subject.points)).all()


def test_a_paper_about_tables_refuses_documents(notes, tmp_path, capsys):
    asked = ["tables", "--csv", str(notes), "--target", "mood", "-o", str(tmp_path)]
    assert reproduce(asked) == 2
    assert "the paper is about tables of numbers" in capsys.readouterr().err
