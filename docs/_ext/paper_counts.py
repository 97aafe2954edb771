"""Write the table of verdicts of `docs/background/papers.md`, and all statements.

``python docs/_ext/paper_counts.py`` after a change of a record; a test compares them.
"""

import csv
from collections import Counter
from pathlib import Path


ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "background" / "papers.md"
STATEMENTS = PAGE.with_name("paper_statements.md")
WORDS = (
    "confirmed",
    "in part",
    "depends on a choice",
    "refuted",
    "misprint",
    "not tested",
)
PAPERS = {
    "properties": "`properties`",
    "tabular_lime": "`tabular-lime`",
    "linear_lime": "`linear-lime`",
    "text_lime": "`text-lime`",
    "iloco": "`iloco`",
}
"""Folders of papers, and what starts a row."""


def table() -> str:
    """One row for each paper, and one for all."""
    counts = {paper: counted(paper) for paper in PAPERS}
    rows = [
        f"| paper | {' | '.join(WORDS)} |",
        "|---|" + "--:|" * len(WORDS),
        *(row(PAPERS[paper], own) for paper, own in counts.items()),
        row("all five", sum(counts.values(), Counter())),
    ]
    return "\n".join(rows)


def counted(paper: str) -> Counter[str]:
    """How many claims have each verdict; statements of one claim count once."""
    places = places_of(paper)
    alike: dict[str, set[str]] = {}
    for line in rows_of(paper, "recorded"):
        claim = places[line["figure"], line["statement"]]["claim"]
        alike.setdefault(claim, set()).add(line["verdict"])
    return Counter(map(joint, alike.values()))


def places_of(paper: str) -> dict[tuple[str, str], dict[str, str]]:
    """Section and claim of each statement, by figure and statement."""
    rows = rows_of(paper, "sentences")
    return {(line["figure"], line["statement"]): line for line in rows}


def rows_of(paper: str, name: str) -> list[dict[str, str]]:
    """A table of a paper."""
    path = ROOT / "papers" / paper / f"{name}.csv"
    with path.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def joint(verdicts: set[str]) -> str:
    """That of one claim; what is not tested decides nothing."""
    tested = verdicts - {"not tested"}
    return "in part" if len(tested) > 1 else next(iter(tested or verdicts))


def row(head: str, counts: Counter[str]) -> str:
    """A paper and its counts."""
    return f"| {head} | {' | '.join(str(counts[word]) for word in WORDS)} |"


def page(text: str) -> str:
    """The page with the table in the place of the one that is there."""
    start = text.index("| paper |")
    end = text.index("\n\n", start)
    return text[:start] + table() + text[end:]


def statements() -> str:
    """The page of all statements, beside what the papers say."""
    parts = [
        "# Statements of the five papers\n\nWhat each paper says and where, what is "
        "tested of it here, and the verdict; {doc}`papers` explains the verdicts."
    ]
    for paper, head in PAPERS.items():
        places = places_of(paper)
        rows = [
            "| the paper says | where | tested here | verdict |",
            "|---|---|---|---|",
        ]
        for line in rows_of(paper, "recorded"):
            place = places[line["figure"], line["statement"]]
            cells = [place["claim"], place["section"], line["statement"]]
            texts = [escaped(cell) for cell in cells]
            rows.append(f"| {' | '.join(texts)} | {line['verdict']} |")
        parts.append(f"## {head}\n\n" + "\n".join(rows))
    return "\n\n".join(parts) + "\n"


def escaped(text: str) -> str:
    """A cell of a table in Markdown, whose signs are no markup."""
    return "".join("\\" + sign if sign in "|_*<>$" else sign for sign in text)


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    STATEMENTS.write_text(statements(), encoding="utf-8")
