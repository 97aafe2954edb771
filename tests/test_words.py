"""One glossary: on its page, in reports, and in what the program says."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

import propopt
from propopt.results.report.page import GLOSSARY


PACKAGE = Path(propopt.__file__).parent
PAGE = PACKAGE.parent / "docs" / "background" / "glossary.md"
needs_pages = pytest.mark.skipif(not PAGE.is_file(), reason="needs a checkout")


def glossaries():
    """The three parts of the page: first terms, other terms of the field, ours."""
    blocks = re.findall(r"```{glossary}\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    entry = re.compile(r"^(\S.*)\n((?:  .*\n)+)", re.MULTILINE)
    return [{k: " ".join(v.split()) for k, v in entry.findall(b)} for b in blocks]


@needs_pages
def test_page_and_reports_have_one_glossary():
    words = {word.removesuffix(" that"): text for word, text in GLOSSARY.items()}
    assert {w: text for part in glossaries() for w, text in part.items()} == words


@needs_pages
def test_the_field_comes_first_and_terms_of_ours_are_at_most_eight():
    first, _, ours = glossaries()
    assert [*first] == [
        *("attribution", "contribution", "slope", "background", "base"),
        *("main effect", "faithful", "robust", "trade-off curve", "near-optimal"),
        "gap",
    ]
    assert len(ours) <= 8
    assert [w for w, text in GLOSSARY.items() if len(text.split()) > 20] == []


OTHER_WORDS = {
    "attribution": r"saliency|(relevance|importance) scores?",
    "gap": r"(duality|optimality) gap|suboptimal\w*",
    "target error": r"(sampling|estimation|gradient|monte.carlo) error",
    "trade-off curve": r"pareto\w*|frontier|(?<!trade-off )curve's knee",
    "base": r"(expected|baseline) value",
    "baseline": r"baseline explanations?|competitors?",
    "row": r"data points|points × \{\} features",
    "feature": r"covariates?|explanatory variables?",
    "background": r"(reference|background) (distribution|dataset)",
    "similar rows": r"neighbors",
    "retained": r"faithfulness kept|kept",
    "removable": r"could go|(un)?avoidable",
    "main effect": r"own values?",
    "exact": r"exact \((boxes|products)\)|\(optimization\)",
    "law": r"data law of",
}
"""What the program does not say, by the word that it says."""


@cache
def said():
    """All texts of the package that may be shown, by their place: no docstrings."""
    found = []
    for path in sorted(PACKAGE.rglob("*.py")):
        tree = ast.parse(path.read_text("utf-8"))
        own = {
            id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)
        }  # docstrings, and those of attributes
        texts = (node for node in ast.walk(tree) if isinstance(node, ast.Constant))
        found += [
            (f"{path.relative_to(PACKAGE)}:{node.lineno}", node.value)
            for node in texts
            if isinstance(node.value, str) and " " in node.value and id(node) not in own
        ]
    return found


@pytest.mark.parametrize("word", OTHER_WORDS)
def test_the_program_has_one_word_for_a_thing(word):
    assert len(said()) > 2_000
    other = re.compile(rf"(?<!\w)({OTHER_WORDS[word]})(?!\w)", re.IGNORECASE)
    assert [(place, text) for place, text in said() if other.search(text)] == []
