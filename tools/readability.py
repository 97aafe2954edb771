"""How easily the texts of the project are read: `python tools/readability.py`.

Counts, over pages, gallery, docstrings and messages: words in a sentence, long
sentences, passive and inverted openings, words that the project does not use, and
terms of ours that a page uses before it explains them. With `--check` it fails where
a figure is above its limit. It needs the standard library alone.
"""

import argparse
import ast
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path


ROOT = Path(__file__).resolve().parent.parent
LONG = 25
"""Words of a sentence that is long."""

BANNED = re.compile(
    r"\b(whose|whom|besides?|told|tells?|anew|so much|as near as|shall|whoever|"
    r"could go|in none of|lots of|asked|kept|near to|whereof|thereby|hence|"
    r"what is (asked|known|told|said)|be had|is had)\b",
    re.IGNORECASE,
)
"""Words and phrases that a plainer one replaces."""

INVERTED = re.compile(
    r"^(Of|In none|In no|None of|Whether|Nor|What|That which|Whoever|From it|With it|"
    r"By it|To it)\b(?!.*\?$)|"
    r"^So (is|are|does|do|was|were|much|it is)\b|"
    r"^(Not|Exact|Written|Named|Left|Given|Proved|Measured|Removed|Computed|Needed|"
    r"Shown|Known|Chosen|Drawn|Said)"
    r"\s+(is|are|was|were)\b"
)
"""Openings that do not begin with the subject; a question is none."""

PASSIVE = re.compile(
    r"^(?:\S+\s+){0,4}(?:is|are|was|were|been|be)\s+(?:not\s+|never\s+|also\s+|only\s+)?"
    r"(?:\w{2,}ed|known|drawn|taken|given|shown|made|told|said|read|written|found|held|kept|chosen|left|done|seen)\b"
)
"""A passive verb among the first words."""

TERMS = (
    "sampling error",
    "near-optimal",
    "removable",
    "knee",
    "main effect",
    "limit of LIME",
)
"""Terms of ours: a page links them, sets them in bold or italics, or says what they
are."""

LIMITS = {
    "mean": 13.0,
    "long": 5.0,
    "passive": 6.0,
    "inverted": 2.0,
    "banned": 0.5,
    "undefined": 0,
}
"""The highest figure of each kind that is let pass, over all texts together."""


@dataclass
class Text:
    """Sentences of one group of texts, and what was counted in them."""

    name: str
    sentences: list[tuple[str, str]] = field(default_factory=list)  # (where, sentence)
    undefined: list[tuple[str, str]] = field(default_factory=list)

    def figures(self) -> dict[str, float]:
        """Words of a sentence; shares in per cent; banned words per 1,000."""
        texts = [s for _, s in self.sentences]
        lengths = [len(s.split()) for s in texts]
        n, words = max(len(texts), 1), sum(lengths)
        return {
            "sentences": len(texts),
            "mean": words / n,
            "long": 100 * sum(length > LONG for length in lengths) / n,
            "passive": 100 * sum(bool(PASSIVE.search(s)) for s in texts) / n,
            "inverted": 100 * sum(bool(INVERTED.search(s)) for s in texts) / n,
            "banned": 1000 * sum(len(BANNED.findall(s)) for s in texts) / max(words, 1),
            "undefined": len(self.undefined),
        }


def sentences(text: str) -> Iterator[str]:
    """Each sentence of three words or more of running text."""
    plain = re.sub(r"`[^`]*`", "X", text)
    plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", plain)
    plain = re.sub(r"[*_]{1,2}([^*_]+)[*_]{1,2}", r"\1", plain)
    for sentence in re.split(
        r"(?<=[.!?:])\s+(?=[A-Z0-9X\"'(])", " ".join(plain.split())
    ):
        if len(sentence.split()) >= 3 and re.search(r"[a-z]{2}", sentence):
            yield sentence.strip()


def page_text(path: Path) -> tuple[list[str], list[str]]:
    """Sentences of a page, without code and tables, and terms not explained."""
    text = re.sub(r"^---\n.*?\n---\n", "", path.read_text("utf-8"), flags=re.DOTALL)
    text = re.sub(
        r"^(`{3,})\{(glossary|note|tip|warning|admonition)\}(.*?)^\1",
        r"\3",
        text,
        flags=re.DOTALL | re.M,
    )
    text = re.sub(r"^(`{3,}|~{3,}).*?^\1", "", text, flags=re.DOTALL | re.M)
    text = re.sub(r"^:{3,}.*$|^:[\w-]+:.*$", "\n", text, flags=re.M)
    text = re.sub(r"<!--.*?-->|<[^>]+>|\$\$.*?\$\$", "", text, flags=re.DOTALL)
    spoken, parts = (
        [],
        re.split(r"\n\s*\n|^#+ .*$|^\s*[-*] |^\s*\d+\. ", text, flags=re.M),
    )
    for part in parts:
        if not part.lstrip().startswith("|"):
            spoken += sentences(part)
    undefined, plain = [], re.sub(r"(?<!\})`[^`]*`", "", text)
    for term in TERMS:
        first = re.search(rf"\b{re.escape(term)}s?\b", plain)
        word = rf"\b{re.escape(term)}"
        explained = rf"(\*|\[|\{{term\}}`)[^\]*`\n]*{word}|{word}s?\** (is|are|means)\b"
        if first and not re.search(explained, text):
            undefined.append(term)
    return spoken, undefined


def code_text(path: Path) -> tuple[list[str], list[str]]:
    """Prose of docstrings; messages: other strings of five words and more."""
    tree = ast.parse(path.read_text("utf-8"))
    documented, docstrings, messages = set(), [], []
    for node in ast.walk(tree):
        if isinstance(
            node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
        ):
            text = ast.get_docstring(node)
            if text:
                documented.add(id(node.body[0].value))
                prose = re.split(r"\n\w[\w ]*\n-{3,}\n", text)[0]
                docstrings += sentences(
                    re.sub(r"^ *(>>>|\.\.\.).*$|:math:`[^`]*`", "", prose, flags=re.M)
                )
    for node in ast.walk(tree):
        text = ""
        if isinstance(node, ast.JoinedStr):
            text = "".join(
                v.value if isinstance(v, ast.Constant) else "X" for v in node.values
            )
            documented |= {id(v) for v in node.values}
        elif (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and id(node) not in documented
        ):
            text = node.value
        if len(text.split()) >= 5 and not re.search(r"[{}<>\\^]|\n *\n", text):
            messages += sentences(text)
    return docstrings, messages


def groups() -> list[Text]:
    """All texts: pages, gallery, docstrings, messages."""
    pages, gallery, docstrings, messages = (
        Text("pages"),
        Text("gallery"),
        Text("docstrings"),
        Text("messages"),
    )
    made = {
        "benchmarks.md",
        "problem_keys.md",
        "changelog.md",
        "version_changes.md",
        "terms.md",
    }
    for path in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]:
        if path.name not in made and "reference" not in path.parts:
            where = str(path.relative_to(ROOT))
            spoken, undefined = page_text(path)
            pages.sentences += [(where, s) for s in spoken]
            if "docs/" in where and path.name not in {"glossary.md", "index.md"}:
                pages.undefined += [(where, term) for term in undefined]
    for path in sorted((ROOT / "examples").rglob("*.py")):
        text = path.read_text("utf-8")
        prose = [ast.get_docstring(ast.parse(text)) or ""]
        prose += re.findall(r"(?:^# .*\n)+", text, re.M)
        for part in prose:
            plain = re.sub(r"^# ?|^[=\-]{3,}$|^%%.*$", "", part, flags=re.M)
            gallery.sentences += [(path.name, s) for s in sentences(plain)]
    for path in sorted((ROOT / "propopt").rglob("*.py")):
        where = str(path.relative_to(ROOT))
        documented, messages_here = code_text(path)
        docstrings.sentences += [(where, s) for s in documented]
        messages.sentences += [(where, s) for s in messages_here]
    return [pages, gallery, docstrings, messages]


def main(argv: list[str]) -> int:
    """Print the table, or the sentences of a kind."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--check", action="store_true", help="fail where a figure is above its limit"
    )
    parser.add_argument(
        "--worst",
        metavar="KIND",
        help="print the sentences counted: long, passive, inverted, banned",
    )
    parser.add_argument(
        "--in", dest="where", default="", help="only files with this in their path"
    )
    options = parser.parse_args(argv)
    texts = groups()
    for text in texts:
        text.sentences = [(w, s) for w, s in text.sentences if options.where in w]
        text.undefined = [(w, t) for w, t in text.undefined if options.where in w]
    if options.worst:
        tests = {
            "long": lambda s: len(s.split()) > LONG,
            "passive": PASSIVE.search,
            "inverted": INVERTED.search,
            "banned": BANNED.search,
        }
        if options.worst == "undefined":
            print(*(f"{w}: {t}" for text in texts for w, t in text.undefined), sep="\n")
        else:
            print(
                *(
                    f"{w}: {s}"
                    for text in texts
                    for w, s in text.sentences
                    if tests[options.worst](s)
                ),
                sep="\n",
            )
        return 0
    everything = Text(
        "all",
        [s for t in texts for s in t.sentences],
        [u for t in texts for u in t.undefined],
    )
    rows = [(text.name, text.figures()) for text in [*texts, everything]]
    print(f"{'':12}" + "".join(f"{head:>11}" for head in rows[0][1]))
    for name, figures in rows:
        print(f"{name:12}" + "".join(f"{value:11.1f}" for value in figures.values()))
    print(f"{'limit':12}{'':11}" + "".join(f"{LIMITS[head]:11.1f}" for head in LIMITS))
    above = [head for head, limit in LIMITS.items() if rows[-1][1][head] > limit]
    if options.check and above:
        print("above the limit:", ", ".join(above))
    return int(options.check and bool(above))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
