"""Tables of refusals: expressions, and the words by which each is refused."""

from functools import partial
from pathlib import Path
from typing import Any

import pytest


def refused(test_file: str, names: dict[str, Any]) -> list[Any]:
    """A call and a pattern for each ``expression => pattern`` of ``refusals.txt``.

    It stands beside the test, and may define names before they are used.
    """
    cases = []
    text = Path(test_file).with_name("refusals.txt").read_text(encoding="utf-8")
    for line in text.splitlines():
        expression, arrow, words = line.partition(" => ")
        if arrow:
            call = partial(eval, expression, names)
            cases.append(pytest.param(call, words, id=expression))
        elif line and not line.startswith("#"):
            exec(line, names)
    return cases


def refusals(module: str, section: str) -> list[list[str]]:
    """Those of one section of ``refusals.txt`` beside a module of tests."""
    text = Path(module).with_name("refusals.txt").read_text(encoding="utf-8")
    part = text.partition(f"\n==== {section}\n")[2].partition("\n==== ")[0]
    return [line.split(" => ") for line in part.strip().splitlines()]
