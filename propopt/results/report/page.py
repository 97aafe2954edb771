"""The page: chapters of results in one file that asks for nothing from elsewhere.

Its one script stands in the page, and its SHA-256 in the page's policy: a browser runs
that script, no other, and loads nothing. Without it the page is the same at rest.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

import propopt
from propopt.base.extras import require
from propopt.base.files import written_whole
from propopt.base.text import printable
from propopt.results.report.chapters import KINDS, Chapter, Statement, minus


def write_page(
    path: str | Path,
    results: Sequence[Sequence[Chapter]],
    title: str = "",
    about: Sequence[str] = (),
) -> None:
    """Write the chapters of some results as one self-contained page.

    Parameters
    ----------
    path : path
        The file, which is replaced.
    results : sequence of sequences of Chapter
        The chapters of each; the first one of a result is what it found in short.
    title : str
        By default that of the first chapter.
    about : sequence of str
        Sentences below the title.

    Raises
    ------
    MissingExtra
        If Jinja2 is not installed.
    InvalidInput
        If the folder is not there.
    """
    text = page_of(results, title, about)
    with written_whole(path) as draft:
        draft.write_text(text, encoding="utf-8")


def page_of(
    results: Sequence[Sequence[Chapter]], title: str = "", about: Sequence[str] = ()
) -> str:
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
    environment.filters["minus"] = minus
    chapters = [chapter for one in results for chapter in one]
    told = list(_in_place(results))
    script = (files("propopt.results.report") / "page.js").read_text("utf-8").strip()
    digest = hashlib.sha256(script.encode()).digest()
    several = f"{len(results)} results of propopt"
    page: str = environment.get_template("page.html").render(
        title=title or (results[0][0].title if len(results) == 1 else several),
        about=about,
        version=propopt.__version__,
        results=told,
        signed=[x for x in chapters if x.signatures],
        is_alone=len(results) == 1,
        marks=_marks(chapters),
        said=list(_said(chapters)),
        glossary=list(_glossary(chapters)),
        script=script,
        digest=base64.b64encode(digest).decode(),
    )
    return page


def _shown(value: Any) -> Any:
    """Text with visible escapes for what acts, numbers beside their per cent sign."""
    if isinstance(value, str) and not hasattr(value, "__html__"):
        return printable(value).replace(" %", "\N{NO-BREAK SPACE}%")
    return value


def _in_place(
    results: Sequence[Sequence[Chapter]],
) -> Iterator[list[tuple[Chapter, list[Statement]]]]:
    """Chapters with the sentences that stand in them: none that stood before.

    Chapters that have nothing else to show are left out.
    """
    known = _of_headlines(chapter for one in results for chapter in one)
    for chapters in results:
        told = []
        for place, chapter in enumerate(chapters):
            own = [x for x in chapter.in_place if x.text.rstrip(".") not in known]
            own = list({x.text: x for x in own}.values())
            known += "".join(f"\n{x.text}" for x in own)
            if (place == 0 or own or chapter.shows_more) and not chapter.signatures:
                told.append((chapter, own))
        yield told


def _of_headlines(chapters: Iterable[Chapter]) -> str:
    return "\n".join(line.text for one in chapters for line in one.headlines)


def _marks(chapters: Sequence[Chapter]) -> list[tuple[str, str]]:
    """The kinds of sentences on the page, each with its meaning."""
    lines = [line.kind for chapter in chapters for line in chapter.headlines]
    used = {*lines, *(said.kind for x in chapters for said in x.statements)}
    return [(kind, meaning) for kind, meaning in KINDS.items() if kind in used]


def _said(chapters: Sequence[Chapter]) -> Iterator[tuple[str, list[str]]]:
    """By kind the sentences that stand nowhere else, each once."""
    known = _of_headlines(chapters)
    known += "".join(f"\n{x.text}" for one in chapters for x in one.in_place)
    every = [said for chapter in chapters for said in chapter.statements]
    for kind in KINDS:
        texts = dict.fromkeys(said.text for said in every if said.kind == kind)
        if rest := [text for text in texts if text.rstrip(".") not in known]:
            yield kind, rest


# ---- Words, each explained in a sentence where it occurs


GLOSSARY: Final[Mapping[str, str]] = {
    # the five words
    "attribution": "One number for one row and one column: how much the column "
    "matters there.",
    "faithful": "Near to what the model itself does at the row: its slopes, or "
    "its Shapley values.",
    "robust": "Similar rows get similar attributions.",
    "gap": "The proved share of the objective by which any explanation could "
    "still be better; 0 is optimal.",
    "target error": "The estimated share by which the objective is worse "
    "because the model was sampled; 0 where it was read.",
    # met on the way
    "target that": "What an explanation is to be faithful to, such as the "
    "slopes of the model.",
    "front": "All explanations in which no loss can be made smaller without "
    "making another larger.",
    "knee": "Where the front bends most: beyond it either property costs more "
    "than the other gains.",
    "kept": "The share of the target's faithfulness that an explanation still "
    "has; the target itself has 100 %.",
    "removed": "The share of another loss of the target, such as differences "
    "between similar rows, that is gone.",
    "excess": "How far above the best possible objective an explanation lies, "
    "as a share of that.",
    "certain": "The same in every explanation whose objective is almost as good.",
    "mean row": "What one row adds to the objective on average.",
    "own value": "What a column contributes by its value alone, whatever the "
    "other columns are.",
    "roughness": "Squared differences between similar rows; in audits those "
    "beyond own values.",
    "could go": "Differences between similar rows that neither own values nor "
    "predictions need.",
    "level": "The distance that no column reached between models that differ by "
    "chance alone.",
    "law": "Where values near a row are drawn from, each column by itself.",
    "limit of LIME": "What LIME's coefficients tend to with ever more samples.",
    # words of others, as they are meant here
    "background": "The rows that stand for what is not known of a row.",
    "base": "The mean prediction over the background, from which contributions "
    "are counted.",
    "baseline": "An explanation by another method, measured on the same losses.",
    "exact values": "Shapley values for the background, computed without draws.",
    "feature": "A column of the table, or what stands in its place, such as a "
    "word or a pixel.",
    "gradient matching": "The loss of faithfulness: squared distances from what "
    "the model does itself.",
    "graph": "Who is similar to whom, and how much.",
    "interaction": "What columns do together beyond what each does alone.",
    "interventional": "With columns that are not known taken from background rows.",
    "log-odds": "log p/(1 − p) of a probability p: 0 is even, 2.2 is 90 %.",
    "loss": "A number that is zero where a property holds wholly, and larger "
    "the less it holds.",
    "minipatch": "A few rows and columns, drawn at random, to which one model "
    "is fitted.",
    "objective": "The weighted sum of the losses, which is minimised.",
    "optimum": "The explanation with the least objective.",
    "pairwise robustness": "The loss of robustness: squared differences between "
    "similar rows.",
    "path-dependent": "With branches of trees weighed by the rows that they "
    "were fitted on.",
    "price": "The least that a change costs: a rise of the objective, or a share "
    "of the squared sum.",
    "profile": "The mean output for each bin of one column.",
    "reference": "The table that values near a row are drawn from; scales are "
    "those of its columns.",
    "slope": "The change of the output per unit of a column.",
    "smooth": "Similar columns get similar attributions.",
    "squared sum": "The sum of the squares of all attributions.",
    "standard error": "How far, typically, a sampled number is off.",
    "weight": "How much a loss counts beside the others.",
}
"""What words of a page mean; those that occur are explained on it."""

_SEARCHED: Final = {
    word: re.compile(rf"\b{word.lower()}(ness|e?s)?\b") for word in GLOSSARY
}
_IN_MEANINGS: Final = {
    word: re.compile(rf"\b{word.removesuffix(' that').lower()}(ness|e?s)?\b")
    for word in GLOSSARY
}


def _glossary(chapters: Sequence[Chapter]) -> Iterator[tuple[str, str]]:
    text = " ".join(word for chapter in chapters for word in chapter.words())
    names = {str(name) for chapter in chapters for name in chapter.no_words} - {""}
    if names:
        longest_first = map(re.escape, sorted(names, key=len, reverse=True))
        text = re.sub(
            rf"(?<!\w)({'|'.join(longest_first)})(?!\w)", "–", text, flags=re.I
        )
    text = text.lower().replace("_", " ")
    known = {word for word, one in _SEARCHED.items() if one.search(text)}
    while more := _explaining(known) - known:  # words that explain words
        known |= more
    for word, meaning in GLOSSARY.items():
        if word in known:
            yield word.removesuffix(" that"), meaning


def _explaining(words: Collection[str]) -> set[str]:
    """Words of the glossary in the meanings of others."""
    text = " ".join(GLOSSARY[word] for word in words).lower()
    return {word for word, one in _IN_MEANINGS.items() if one.search(text)}
