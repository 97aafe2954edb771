"""What is refused, in files of text: a line of Python, and below it what is said."""

from __future__ import annotations

from pathlib import Path


def refusals(module: str, section: str) -> list[tuple[str, str]]:
    """Those of one section of ``refusals.txt`` beside a module of tests."""
    text = Path(module).with_name("refusals.txt").read_text(encoding="utf-8")
    part = text.partition(f"\n==== {section}\n")[2].partition("\n==== ")[0]
    lines = part.strip().splitlines()
    return [(line, said.strip()) for line, said in zip(*[iter(lines)] * 2, strict=True)]
