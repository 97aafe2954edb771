"""Documents of results as one self-contained HTML page.

The page contains its only script, and the SHA-256 of that script in its security
policy: a browser runs no other script and loads nothing. Without scripts the page is
complete.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any, Final, TypeAlias

import propopt
from propopt.base.document import (
    Block,
    Chapter,
    Document,
    Markup,
    Table,
    minus,
)
from propopt.base.extras import require
from propopt.base.files import atomic_write
from propopt.base.text import printable
from propopt.base.vocabulary import BASES, TERMS


def write_page(
    path: str | Path,
    documents: Sequence[Document],
    about: Sequence[str] = (),
) -> None:
    """Write some documents as one self-contained page.

    Parameters
    ----------
    path : path
        The file to write; an existing file is replaced.
    documents : sequence of Document
        The documents of one or more results.
    about : sequence of str
        Sentences below the title.

    Raises
    ------
    MissingExtra
        If Jinja2 is not installed.
    InvalidInput
        If the folder does not exist.
    """
    text = page_of(documents, about)
    with atomic_write(path) as draft:
        draft.write_text(text, encoding="utf-8")


def page_of(documents: Sequence[Document], about: Sequence[str] = ()) -> str:
    """The page as HTML, with all texts escaped."""
    jinja2 = require("jinja2")
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("propopt", "results/report"),
        autoescape=True,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters["minus"] = minus
    environment.globals["terms"] = TERMS
    results = [*map(_PageDocument.of, documents)]
    script = (files("propopt.results.report") / "page.js").read_text("utf-8").strip()
    digest = hashlib.sha256(script.encode()).digest()
    several = f"{len(documents)} results of propopt"
    return environment.get_template("page.html").render(
        title=documents[0].title if len(documents) == 1 else several,
        about=about,
        version=propopt.__version__,
        results=results,
        signed=[x for one in results for x in one.signed],
        is_alone=len(documents) == 1,
        marks=_marks(results),
        glossary=list(_glossary(results)),
        script=script,
        digest=base64.b64encode(digest).decode(),
    )


def _shown(value: Any) -> Any:
    """Text with escaped control characters and no line break before a per cent sign."""
    if isinstance(value, str) and not hasattr(value, "__html__"):
        return printable(value).replace(" %", "\N{NO-BREAK SPACE}%")
    return value


_Part: TypeAlias = tuple[str, Any]
"""The kind of a block in the template, and the block."""


@dataclass(frozen=True)
class _PageDocument:
    """A document as parts for the template."""

    document: Document
    blocks: list[_Part]
    chapters: list[tuple[Chapter, list[_Part]]]
    signed: list[Chapter]

    @classmethod
    def of(cls, document: Document) -> _PageDocument:
        every = document.chapters()
        parts = [(x, _parts(x.blocks)) for x in every if not x.signatures]
        chapters = [(x, blocks) for x, blocks in parts if blocks or x.lead]
        signed = [x for x in every if x.signatures]
        return cls(document, _parts(document.blocks), chapters, signed)

    @property
    def parts(self) -> list[_Part]:
        """All parts of the document, in order."""
        return [*self.blocks, *(part for _, parts in self.chapters for part in parts)]

    def labels(self) -> Iterator[str]:
        """Labels of facts and checks, and heads of tables."""
        for kind, block in self.parts:
            if kind == "facts":
                yield from (fact.label for fact in block)
            elif kind == "table":
                for head, cells, _ in block.columns():
                    heads = () if block.names_features else (head,)
                    yield from (*heads, *(cells if head == "check" else ()))


def _parts(blocks: Iterable[Block]) -> list[_Part]:
    """Blocks with their kind."""
    return [(_KINDS.get(type(block), "explorer"), block) for block in blocks]


_KINDS: Final[Mapping[type, str]] = {tuple: "facts", Table: "table", Markup: "markup"}
"""The names of blocks in the template."""


def _marks(results: Sequence[_PageDocument]) -> list[tuple[str, str]]:
    """The bases of facts on the page, with their meanings."""
    lists = (block for one in results for kind, block in one.parts if kind == "facts")
    used = {fact.shown_basis for facts in lists for fact in facts}
    return [(basis, meaning) for basis, meaning in BASES.items() if basis in used]


# ---- The glossary: labels that occur on the page


def _glossary(results: Sequence[_PageDocument]) -> Iterator[tuple[str, str]]:
    labels = {label for one in results for label in one.labels()}
    return ((label, term.text) for label, term in TERMS.items() if label in labels)
