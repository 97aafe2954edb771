"""The script that measures how easily texts are read."""

import importlib.util
from pathlib import Path

import pytest


SCRIPT = Path(__file__).parent.parent / "tools" / "readability.py"
if not SCRIPT.is_file():
    pytest.skip("needs a checkout", allow_module_level=True)
SPEC = importlib.util.spec_from_file_location("readability", SCRIPT)
readability = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(readability)

LONG = "The gap " + "of one explanation and " * 8 + "another."
COUNTED = {
    "inverted": ("Of a black box the call draws samples.", "The call draws samples."),
    "banned": ("The model is told what came.", "The model gets the input."),
    "passive": ("Similarity is measured in metres.", "We measure similarity."),
    "long": (LONG, "The gap is short."),
}


@pytest.mark.parametrize("kind", COUNTED)
def test_a_figure_counts_what_it_is_for_and_nothing_else(kind):
    counted, plain = COUNTED[kind]
    for sentence, seen in ((counted, True), (plain, False)):
        figures = readability.Text("one", [("here", sentence)]).figures()
        assert bool(figures[kind]) == seen
    assert readability.Text("none").figures()["mean"] == 0


def test_a_page_has_sentences_without_code_and_tables(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(
        "# A heading\n\nThe first sentence is here. `code` is a *word* in it.\n\n"
        "```python\nnot = a_sentence_here\n```\n\n| not | a sentence |\n|---|---|\n"
    )
    sentences, undefined = readability.page_text(page)
    assert sentences == ["The first sentence is here.", "X is a word in it."]
    assert undefined == []


@pytest.mark.parametrize(
    ("text", "undefined"),
    [
        ("The knee is far away.", []),
        ("We show the {term}`knee` here, and the knee again.", []),
        ("We show a knee here.", ["knee"]),
        ("We write `knee` here.", []),
    ],
)
def test_a_term_of_ours_is_explained_where_a_page_uses_it(text, undefined, tmp_path):
    (tmp_path / "page.md").write_text(text)
    assert readability.page_text(tmp_path / "page.md")[1] == undefined


def test_code_has_docstrings_and_messages(tmp_path):
    code = tmp_path / "code.py"
    code.write_text(
        '"""The purpose of a module."""\n\n\ndef f(x):\n'
        '    raise ValueError(f"expected a positive number, got {x}")\n'
    )
    docstrings, messages = readability.code_text(code)
    assert docstrings == ["The purpose of a module."]
    assert messages == ["expected a positive number, got X"]
