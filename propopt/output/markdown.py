"""Markdown pages: paragraphs and tables, written whole."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from propopt.output.files import written_whole


def markdown_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    r"""A table; bars within cells are no edges.

    Examples
    --------
    >>> print(markdown_table(("name", "value"), [("|w|", "1")]))
    | name | value |
    | --- | --- |
    | \|w\| | 1 |
    """
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(map(_cell, line))} |" for line in lines)


def markdown_list(items: Iterable[str]) -> str:
    """One line for each item."""
    return "\n".join(f"- {item}" for item in items)


def write_markdown(path: str | Path, paragraphs: Iterable[str]) -> None:
    """Write a page of paragraphs, whole or not at all.

    Raises
    ------
    InvalidInput
        If the folder is not there.
    Unwritten
        If the file cannot be written.
    """
    with written_whole(path) as draft:
        draft.write_text("\n\n".join(paragraphs) + "\n", encoding="utf-8")


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
