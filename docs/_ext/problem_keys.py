"""Write `docs/guide/problem_keys.md`: every key, from the schema of problem files.

``python docs/_ext/problem_keys.py`` after a change of keys; a test compares them.
"""

import re
from pathlib import Path
from typing import Any

from propopt.problems.file import ProblemSchema


PAGE = Path(__file__).parents[1] / "guide" / "problem_keys.md"
HEAD = """\
# Every key of a problem file

These tables come from the schema that `propopt check` uses.
[Run it from a file](problem_files.md) shows files that use them. Python and files have
the same names: `data` for background rows, `output` for the unit of the numbers.
`model.task` may be left out: it is inferred from the target, and each run states it.
"""
CHAPTERS = {
    "Jobs": (
        *("ExplainSection", "ReasonsSection", "LimeSection", "AuditSection"),
        *("DecisionSection", "InteractionsSection", "MinipatchesSection"),
        *("SplitSection", "CompareSection", "InductiveSection"),
    ),
    "Losses, graphs and what to reach": (
        *("Losses", "Loss", "Graph", "AimSection", "WeightRange", "WeightBox", "Plot"),
    ),
    "Data and models": (
        *("Data", "Grid", "Uniform", "Formula", "Smooth", "Model"),
        "VectorizerSection",
    ),
    "Baselines, and inputs of the inductive setting": (
        *("Baseline", "Rule", "Inputs", "WidthRange"),
    ),
}
"""Sections under each heading, by their names or suffixes."""


def words(text: str) -> str:
    """One line for a cell of a table."""
    plain = " ".join(re.sub(r":\w+:", "", text).split()).replace("`", "")
    return re.sub(r"([|*_<$\[])", r"\\\1", plain)


def code(value: object) -> str:
    """A value in a cell."""
    return f"`{value}`".replace("|", r"\|")


def takes(key: dict[str, Any]) -> list[str]:
    """The types or values that a key takes."""
    if "const" in key:
        return [code(key["const"])]
    if "enum" in key:
        return [code(one) for one in key["enum"]]
    if "$ref" in key or "discriminator" in key or key.get("type") == "object":
        return ["keys"]
    some = key.get("anyOf", key.get("oneOf"))
    if some is None:
        return [{"array": "list"}.get(key["type"], key["type"])]
    every = [one for each in some for one in takes(each) if one != "null"]
    return list(dict.fromkeys(every))


def row(name: str, key: dict[str, Any]) -> str:
    """The table row of a key."""
    default = key.get("default")
    plain = not isinstance(default, dict) and default not in (None, [])
    shown = code(default) if plain else ""
    meaning = words(key.get("description", ""))
    return f"| `{name}` | {', '.join(takes(key))} | {shown} | {meaning} |"


def table(section: dict[str, Any]) -> str:
    """A table of the keys of a section."""
    head = ["| key | takes | default | meaning |", "|---|---|---|---|"]
    return "\n".join(head + [row(*one) for one in section["properties"].items()])


def called(name: str) -> str:
    """The name of a section in files."""
    stem = re.sub("(Section|Loss|Model)$", "", name)
    renamed = {"Losses": "objective", "Formula": "function"}
    return renamed.get(name, re.sub("(?<=[a-z])(?=[A-Z])", "_", stem).lower())


def part(name: str, section: dict[str, Any]) -> str:
    """A section with its name in files and its table; empty without keys."""
    keys = section.get("properties")
    if keys is None:
        return ""
    kinds = [
        f"{key}: {keys[key]['const']}"
        for key in ("kind", "method", "rule")
        if "const" in keys.get(key, {})
    ]
    summary = words(section.get("description", "").split("\n\n")[0])
    return f"`{(kinds or [called(name)])[0]}` {summary}\n\n{table(section)}\n"


def page() -> str:
    """The whole page; sections must be in one chapter each."""
    schema = ProblemSchema.model_json_schema()
    left = dict(schema["$defs"])
    parts = [HEAD, f"{table(schema)}\n"]
    for title, names in CHAPTERS.items():
        parts.append(f"## {title}\n")
        ends = [one for one in left if one not in names and one.endswith(names)]
        chosen = [*(one for one in names if one in left), *ends]
        parts += filter(None, [part(one, left.pop(one)) for one in chosen])
    if left:
        raise ValueError(f"sections of no chapter: {', '.join(left)}")
    return "\n".join(parts)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
