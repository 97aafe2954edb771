"""The page on rooms, nouns and walks names what is there."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path

import pytest


ROOT = Path(__file__).parents[1]
PAGE = ROOT / "ARCHITECTURE.md"
read = partial(Path.read_text, encoding="utf-8")
pytestmark = pytest.mark.skipif(not PAGE.is_file(), reason="needs a checkout")


def section(title):
    return read(PAGE).partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def named(text):
    return re.findall("`([^`\n]+)`", text.replace("```", ""))


def modules(path):
    """The files of a path as the page has it: a module, or all that a folder has."""
    name = path.partition("<")[0].rstrip("/")  # papers/<paper>/ stands for any
    for place in (ROOT / "propopt" / name, ROOT / name):
        if place.is_dir():
            return sorted(place.rglob("*.py"))
        if (file := place.with_suffix(place.suffix or ".py")).is_file():
            return [file]
    return []


def test_every_path_exists():
    paths = [path for path in named(read(PAGE)) if "/" in path]
    assert len(paths) > 70
    assert [path for path in paths if not modules(path)] == []


def test_every_noun_is_a_class_of_its_place():
    rows = [row.split("|") for row in section("Nouns").splitlines() if "`" in row]
    assert len(rows) > 10
    for _, nouns, *_, where, _ in rows:
        classes = named(nouns)
        texts = ["".join(map(read, modules(place))) for place in named(where)]
        if len(texts) != len(classes):  # not a place for each
            texts = ["".join(texts)] * len(classes)
        for name, text in zip(classes, texts, strict=True):
            assert re.search(rf"^class {name}\b", text, re.MULTILINE), (name, where)


def test_no_walk_names_a_file_twice():
    walks = [part for part in section("Five walks").split("\n\n") if "**" in part]
    assert len(walks) == 5
    for walk in walks:
        files = [modules(path) for path in named(walk) if "/" in path]
        assert len({*map(str, files)}) == len(files) > 6, walk
