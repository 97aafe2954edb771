"""Write the table of labels of `docs/background/terms.md`, from the vocabulary.

``python docs/_ext/terms.py`` after a change of the vocabulary; a test compares them.
"""

from pathlib import Path

from propopt.base.vocabulary import BASES, TERMS


PAGE = Path(__file__).parents[2] / "docs" / "background" / "terms.md"


def page() -> str:
    """The page: all bases, then a row for each label."""
    bases = [
        f"- *{basis}*: {text[:1].lower()}{text[1:]}" for basis, text in BASES.items()
    ]
    rows = [
        f"| {label} | {term.definition} | {formula(term.formula)} | {term.basis} |"
        for label, term in TERMS.items()
    ]
    head = ["| label | definition | formula | basis |", "|---|---|---|---|"]
    return "\n".join(["# Labels of cards", "", *bases, "", *head, *rows, ""])


def formula(text: str) -> str:
    """A formula as code, with the bars of its norms escaped for the table."""
    escaped = text.replace("|", "\\|")
    return f"`{escaped}`" if text else ""


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
