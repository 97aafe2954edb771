"""Documents of results as one self-contained HTML page.

The page contains its only script, and the SHA-256 of that script in its security
policy: a browser runs no other script and loads nothing. Without scripts the page is
complete.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib.resources import files
from itertools import groupby
from pathlib import Path
from typing import Any, TypeAlias

import propopt
from propopt.base.document import (
    Bars,
    Block,
    Chapter,
    Document,
    Facts,
    Finding,
    Markup,
    Table,
    minus,
    sentence,
)
from propopt.base.extras import require
from propopt.base.files import atomic_write
from propopt.base.text import printable
from propopt.base.vocabulary import BASES, TERMS


def write_page(
    path: str | Path,
    documents: Sequence[Document],
    title: str = "",
    about: Sequence[str] = (),
) -> None:
    """Write some documents as one self-contained page.

    Parameters
    ----------
    path : path
        The file to write; an existing file is replaced.
    documents : sequence of Document
        The documents of one or more results.
    title : str
        The title; by default that of a single document.
    about : sequence of str
        Sentences below the title.

    Raises
    ------
    MissingExtra
        If Jinja2 is not installed.
    InvalidInput
        If the folder does not exist.
    """
    text = page_of(documents, title, about)
    with atomic_write(path) as draft:
        draft.write_text(text, encoding="utf-8")


def page_of(
    documents: Sequence[Document], title: str = "", about: Sequence[str] = ()
) -> str:
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
    environment.filters |= {"minus": minus, "sentence": sentence}
    environment.globals["terms"] = TERMS
    seen = set[str]()
    results = [_PageDocument.of(document, seen) for document in documents]
    script = (files("propopt.results.report") / "page.js").read_text("utf-8").strip()
    digest = hashlib.sha256(script.encode()).digest()
    several = f"{len(documents)} results of propopt"
    return environment.get_template("page.html").render(
        title=title or (documents[0].title if len(documents) == 1 else several),
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
"""The kind and contents of a part in the template; adjacent findings are one part."""


@dataclass(frozen=True)
class _PageDocument:
    """A document as parts for the template, without repeated sentences."""

    document: Document
    blocks: list[_Part]
    trust: list[_Part]
    chapters: list[tuple[Chapter, list[_Part]]]
    signed: list[Chapter]

    @classmethod
    def of(cls, document: Document, seen: set[str]) -> _PageDocument:
        blocks = list(_parts(document.blocks, seen))
        trust = list(_parts(document.trust, seen))
        every = document.chapters()
        parts = [(x, list(_parts(x.blocks, seen))) for x in every if not x.signatures]
        chapters = [(x, blocks) for x, blocks in parts if blocks or x.lead]
        return cls(
            document, blocks, trust, chapters, [x for x in every if x.signatures]
        )

    @property
    def subtitle(self) -> str:
        """The subtitle of the document, unless it is the caption of bars."""
        captions = [block.caption for kind, block in self.blocks if kind == "bars"]
        words = self.document.subtitle
        return "" if words in captions else words

    @property
    def parts(self) -> list[_Part]:
        """All parts of the document, in order."""
        others = [part for _, parts in self.chapters for part in parts]
        return [*self.blocks, *self.trust, *others]

    def labels(self) -> Iterator[str]:
        """Labels of facts and checks, and heads of tables."""
        for kind, block in self.parts:
            if kind == "facts":
                yield from (fact.label for fact in block.rows)
            elif kind == "table":
                for head, cells, _ in block.columns():
                    yield from (head, *(cells if head == "check" else ()))


def _parts(blocks: Iterable[Block], seen: set[str]) -> Iterator[_Part]:
    """Blocks with their kind, without sentences of earlier blocks."""
    for kind, some in groupby(blocks, _kind):
        if kind not in ("findings", "answers"):
            yield from ((kind, block) for block in some)
            continue
        findings: list[Finding] = []
        for finding in some:
            assert isinstance(finding, Finding), "the kind is that of findings"
            text = sentence(finding.sentence or finding.text)
            if text not in seen:
                findings.append(finding)
            seen.add(text)
        if findings:
            yield kind, findings


def _kind(block: Block) -> str:
    """The name of a block in the template."""
    match block:
        case Finding():
            return "answers" if block.question else "findings"
        case Facts():
            return "facts"
        case Bars():
            return "bars"
        case Table():
            return "table"
        case Markup():
            return "markup"
        case _:
            return "explorer"


def _marks(results: Sequence[_PageDocument]) -> list[tuple[str, str]]:
    """The bases of findings on the page, with their meanings."""
    kinds = ("findings", "answers")
    parts = [part for x in results for part in x.parts]
    used = {x.basis for kind, some in parts if kind in kinds for x in some}
    used |= {
        x.shown_basis for kind, some in parts if kind == "facts" for x in some.rows
    }
    return [(basis, meaning) for basis, meaning in BASES.items() if basis in used]


# ---- The glossary: labels that occur on the page


def _glossary(results: Sequence[_PageDocument]) -> Iterator[tuple[str, str]]:
    labels = {label for one in results for label in one.labels()}
    return ((label, term.text) for label, term in TERMS.items() if label in labels)
