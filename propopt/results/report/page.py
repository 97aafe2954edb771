"""The page: chapters of results in one file that asks for nothing from elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import propopt
from propopt.base.files import written_whole
from propopt.base.resources import require
from propopt.base.text import printable
from propopt.results.report.chapters import KINDS, Chapter


def write_page(path: str | Path, chapters: Sequence[Chapter], title: str = "") -> None:
    """Write chapters as one self-contained page.

    Raises
    ------
    MissingExtra
        If Jinja2 is not installed.
    InvalidInput
        If the folder is not there.
    """
    text = page_of(chapters, title)
    with written_whole(path) as draft:
        draft.write_text(text, encoding="utf-8")


def page_of(chapters: Sequence[Chapter], title: str = "") -> str:
    """The page as HTML; every text of it is escaped."""
    jinja2 = require("jinja2")
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("propopt", "results/report"),
        autoescape=True,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    page: str = environment.get_template("page.html").render(
        title=title or chapters[0].title,
        version=propopt.__version__,
        chapters=chapters,
        kinds=KINDS,
    )
    return page


def _shown(value: Any) -> Any:
    """Text with visible escapes for what acts; what is HTML already as it is."""
    if isinstance(value, str) and not hasattr(value, "__html__"):
        return printable(value)
    return value
