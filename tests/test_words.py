"""The labels of cards on their page, and the glossary."""

import re
import runpy
from pathlib import Path

import pytest

import propopt


PACKAGE = Path(propopt.__file__).parent
PAGE = PACKAGE.parent / "docs" / "background" / "glossary.md"
needs_pages = pytest.mark.skipif(not PAGE.is_file(), reason="needs a checkout")


def glossaries():
    """The three parts of the page: first terms, other terms of the field, ours."""
    blocks = re.findall(r"```{glossary}\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    entry = re.compile(r"^(\S.*)\n((?:  .*\n)+)", re.MULTILINE)
    return [{k: " ".join(v.split()) for k, v in entry.findall(b)} for b in blocks]


@needs_pages
def test_the_page_of_labels_is_the_vocabulary():
    module = runpy.run_path(str(PAGE.parents[1] / "_ext" / "terms.py"))
    assert module["PAGE"].read_text("utf-8") == module["page"]()


@needs_pages
def test_the_field_comes_first_and_terms_of_ours_are_at_most_eight():
    first, _, ours = glossaries()
    assert [*first] == [
        *("attribution", "contribution", "slope", "background", "base"),
        *("main effect", "faithful", "robust", "trade-off curve", "near-optimal"),
        "gap",
    ]
    assert len(ours) <= 8
