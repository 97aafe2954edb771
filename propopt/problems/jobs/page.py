"""The page of a run on documents: their words in shades of their attributions."""

from __future__ import annotations

from functools import partial
from typing import Final

from propopt.functions.text import TextFunction
from propopt.problems.jobs.artefacts import Writer
from propopt.problems.subject.subject import Subject
from propopt.results.explanation import Explanation


MOST_SHOWN: Final = 100
"""Documents on a page, the first."""


def page_writers(best: Explanation, subject: Subject) -> dict[str, Writer]:
    """What writes the page, by its suffix; nothing where rows are no documents."""
    if not subject.is_text:
        return {}
    return {".html": partial(_write_page, best, subject)}


def _write_page(best: Explanation, subject: Subject, path: str) -> None:
    from propopt.plots import highlight

    function = subject.function
    assert isinstance(function, TextFunction)
    shown = highlight(best, subject.points, words=function, max_rows=MOST_SHOWN)
    shown.to_html(path)
