"""Documents of results as one self-contained HTML page.

The page contains its only script, and the SHA-256 of that script in its security
policy: a browser runs no other script and loads nothing. Without scripts the page is
complete.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from itertools import groupby
from pathlib import Path
from typing import Any, Final, TypeAlias

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
        glossary=list(_glossary(results, [title, *about])),
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
        """Labels of facts and heads of tables."""
        for kind, block in self.parts:
            if kind == "facts":
                yield from (fact.label for fact in block.rows)
            elif kind == "table":
                yield from (head for head, *_ in block.columns())

    def texts(self) -> Iterator[str]:
        """All texts of the document, in which the glossary looks for its terms."""
        yield from (self.document.title, self.document.subtitle)
        for name, text in self.document.settings.items():
            yield from (name, text)
        for chapter in (*(x for x, _ in self.chapters), *self.signed):
            yield from (chapter.title, chapter.lead)
        for kind, block in self.parts:
            if kind in ("findings", "answers"):
                yield from (finding.text for finding in block)
            elif kind == "explorer":
                yield from block.texts()
            elif kind not in ("markup", "facts"):
                yield block.caption
                if kind == "table":
                    yield from (head for head, *_ in block.columns())


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


# ---- The glossary: terms that occur on the page


GLOSSARY: Final[Mapping[str, str]] = {
    # terms of the field, those that come first
    "attribution": "One number for one row and one column: how much the "
    "column matters there.",
    "contribution": "An attribution in units of the output; those of a row "
    "add up to its prediction minus the base.",
    "slope": "The change of the output per unit of a column.",
    "background": "The rows that supply values for columns that count as unknown.",
    "base": "The mean prediction over the background, from which "
    "contributions are counted.",
    "main effect": "The centred partial dependence of a column: its mean "
    "effect over the background.",
    "faithful": "Close to the model's slopes or Shapley values at the row.",
    "robust": "Similar rows get similar attributions.",
    "trade-off curve": "All explanations in which no loss can be made smaller "
    "without making another larger.",
    "near-optimal": "With an objective that is above the optimum by at most a "
    "stated amount.",
    "gap": "The certificate gap: the proved share of the objective "
    "by which any explanation could still be better.",
    # the other terms of the field
    "baseline": "An explanation by another method, measured on the same losses.",
    "exact values": "Shapley values for the background, computed without sampling.",
    "feature": "A column of the table, or a word, a pixel, an embedding.",
    "gradient matching": "The loss of faithfulness: squared distances from the "
    "slopes or Shapley values.",
    "graph": "Pairs of similar rows or columns, with weights.",
    "interaction": "The joint effect of columns beyond the sum of their "
    "separate effects.",
    "interventional": "With the values of unknown columns taken from background rows.",
    "knee": "The point of the trade-off curve beyond which either "
    "property costs more than the other gains.",
    "log-odds": "log p/(1 − p) of a probability p: 0 is even, 2.2 is 90 %.",
    "loss": "A number that is zero where a property holds fully, and "
    "larger the less it holds.",
    "minipatch": "A few rows and columns, drawn at random, to which one "
    "model is fitted.",
    "objective": "The weighted sum of the losses, which is minimised.",
    "optimum": "The explanation with the least objective.",
    "pairwise robustness": "The loss of robustness: squared differences between "
    "similar rows.",
    "path-dependent": "With branches of trees weighted by the training rows "
    "that passed them.",
    "price": "The least cost of a change: a rise of the objective, or "
    "a share of the squared sum.",
    "profile": "The mean output for each bin of one column.",
    "reference": "The table that supplies values near a row, and the "
    "scales of the columns.",
    "roughness": "Squared differences between similar rows; in audits, "
    "those beyond main effects.",
    "smooth": "Similar columns get similar attributions.",
    "squared sum": "The sum of the squares of all attributions.",
    "standard error": "The typical distance of a sampled number from its exact value.",
    "target that": "The values that the explanation approximates, such as "
    "Shapley values or slopes.",
    "weight": "The factor of a loss in the objective.",
    # terms of this project
    "sampling error": "The estimated root mean square error of a sampled target, and "
    "its share of the target's size; 0 without sampling.",
    "clear": "Not turned by any change of the row's attributions up to a stated size.",
    "certain": "The same in every near-optimal explanation.",
    "retained": "The share of faithfulness that an explanation still has; "
    "the target itself has 100 %.",
    "removable": "Differences between similar rows that neither main effects nor "
    "predictions require.",
    "level": "The largest change of any column between models that "
    "differ by chance alone.",
    "law": "The sampling distribution of values around a row, each column by itself.",
    "limit of LIME": "The value that LIME's coefficients approach with more "
    "and more samples.",
}
"""The terms of pages and their meanings; a page explains those that occur on it."""

_SEARCHED: Final = {
    word: re.compile(rf"\b{word.lower()}(ness|e?s)?\b") for word in GLOSSARY
}
_IN_MEANINGS: Final = {
    word: re.compile(rf"\b{word.removesuffix(' that').lower()}(ness|e?s)?\b")
    for word in GLOSSARY
}


def _glossary(
    results: Sequence[_PageDocument], others: Sequence[str]
) -> Iterator[tuple[str, str]]:
    text = " ".join([*others, *(word for one in results for word in one.texts())])
    names = {str(name) for one in results for name in one.document.names} - {""}
    if names:
        longest_first = map(re.escape, sorted(names, key=len, reverse=True))
        text = re.sub(
            rf"(?<!\w)({'|'.join(longest_first)})(?!\w)", "–", text, flags=re.I
        )
    text = text.lower().replace("_", " ")
    used = {word for word, pattern in _SEARCHED.items() if pattern.search(text)}
    while more := _explaining(used) - used:  # terms in the meanings of terms
        used |= more
    labels = {label for one in results for label in one.labels()}
    yield from ((label, term.text) for label, term in TERMS.items() if label in labels)
    for word, meaning in GLOSSARY.items():
        if word in used:
            yield word.removesuffix(" that"), meaning


def _explaining(words: Collection[str]) -> set[str]:
    """Terms of the glossary that occur in the meanings of others."""
    text = " ".join(GLOSSARY[word] for word in words).lower()
    return {word for word, one in _IN_MEANINGS.items() if one.search(text)}
