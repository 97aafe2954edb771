"""What is refused, in files of text: ``Python => what is said``, by sections."""

from __future__ import annotations

from pathlib import Path


def refusals(module: str, section: str) -> list[list[str]]:
    """Those of one section of ``refusals.txt`` beside a module of tests."""
    text = Path(module).with_name("refusals.txt").read_text(encoding="utf-8")
    part = text.partition(f"\n==== {section}\n")[2].partition("\n==== ")[0]
    return [line.split(" => ") for line in part.strip().splitlines()]
