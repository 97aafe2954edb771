"""One spelling: tables have the column value ``optimized``, and so has the prose."""

from __future__ import annotations

from pathlib import Path

import pytest


ROOT = Path(__file__).parents[1]
OTHER = "optimi" + "s"
FOLDERS = ("propopt", "tests", "docs", "examples", "benchmarks", "problems")
FILES = [*ROOT.glob("*.toml"), *ROOT.glob("*.cff"), *ROOT.glob("*.md")]
HISTORY = ROOT / "CHANGELOG.md"


def texts():
    yield from (file for file in FILES if file != HISTORY)
    for folder in FOLDERS:
        for suffix in ("py", "pyi", "md", "yaml", "csv"):
            yield from (ROOT / folder).rglob(f"*.{suffix}")


@pytest.mark.skipif(not (ROOT / "docs").is_dir(), reason="needs a checkout")
def test_what_is_optimized_has_one_spelling():
    files = list(texts())
    assert len(files) > 300
    wrong = [file for file in files if OTHER in file.read_text("utf-8").lower()]
    assert wrong == []
