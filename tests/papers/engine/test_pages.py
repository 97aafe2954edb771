"""Markdown pages: their tables, paragraphs and what is no markup in them."""

import pytest

from papers.engine.pages import (
    in_markdown,
    markdown_list,
    markdown_table,
    write_markdown,
)
from propopt.base.errors import InvalidInput


def test_bars_in_cells_are_no_edges():
    table = markdown_table(("|w|", "value"), [("a|b", "1"), ("c", "2")])
    assert table.splitlines() == [
        r"| \|w\| | value |",
        "| --- | --- |",
        r"| a\|b | 1 |",
        "| c | 2 |",
    ]


def test_paragraphs_of_a_page_stand_apart(tmp_path):
    write_markdown(tmp_path / "page.md", ["# δ", markdown_list(["a", "b"])])
    page = (tmp_path / "page.md").read_text("utf-8")
    assert page == "# δ\n\n- a\n- b\n"


def test_a_page_without_a_folder_is_refused(tmp_path):
    with pytest.raises(InvalidInput, match="there is no folder"):
        write_markdown(tmp_path / "a" / "page.md", [])


@pytest.mark.parametrize(
    "name", ["plain", "größe × μ", "価格", "a b", "👩\u200d🔬", ""]
)
def test_ordinary_names_stay_as_they_are(name):
    assert in_markdown(name) == name


def test_markup_of_pages_is_text():
    assert in_markdown("*a* [b](c) <d> &e; `f` $g$") == (
        r"\*a\* \[b\](c) \<d> \&e; \`f\` \$g\$"
    )
