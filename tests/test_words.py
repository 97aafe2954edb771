"""One glossary: on its page and in reports."""

import re
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
