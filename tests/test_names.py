"""Names of the package say what a thing is: none has a banned word."""

import ast
import re
from collections import defaultdict
from pathlib import Path

import propopt


PACKAGE = Path(propopt.__file__).parent

BANNED = {
    *("own", "told", "whose", "kept", "asked", "said", "came"),
    *("beside", "found", "known", "place", "near"),
}
"""Words that stand for something else in a name of any kind."""

EXCEPTIONS = {
    "near_optimal": "the field's term for explanations within a tolerance",
    "NearOptimal": "the same in names of classes",
    "faithfulness_kept": "the label of cards",
}
"""Parts of names that may stand, each with a reason."""


def words_of(name: str) -> set[str]:
    """The words of a name in snake_case or CamelCase, in lower case."""
    for part in EXCEPTIONS:
        name = name.replace(part, "")
    return {x.lower() for x in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", name)}


def names_in(source: str):
    """Each name that a module defines."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.ClassDef(name=name) | ast.FunctionDef(name=name):
                yield name
            case ast.arg(arg=name) | ast.Name(id=name, ctx=ast.Store()):
                yield name
            case ast.Attribute(attr=name, ctx=ast.Store()):
                yield name
            case ast.alias(asname=str(name)) | ast.MatchAs(name=str(name)):
                yield name
            case ast.ExceptHandler(name=str(name)):
                yield name


def is_banned(name: str) -> bool:
    """Whether a name has a banned word."""
    return bool(BANNED & words_of(name))


def banned_names() -> dict[str, set[str]]:
    """The banned names by room, files among them."""
    rooms = defaultdict(set)
    for path in sorted(PACKAGE.rglob("*.py")):
        room = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
        if is_banned(path.stem):
            rooms[room].add(f"{path.stem}.py")
        names = names_in(path.read_text("utf-8"))
        rooms[room] |= {name for name in names if is_banned(name)}
    return {room: names for room, names in rooms.items() if names}


def test_no_name_has_a_banned_word():
    assert banned_names() == {}


def packed_assignments(source: str) -> list[str]:
    """Lines ``a, b = x, y`` that could be two: no value reads a target, as in swaps."""
    found = []
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Assign(targets=[ast.Tuple(elts=targets)], value=ast.Tuple() as x):
                written = {ast.unparse(target) for target in targets}
                if not written & {ast.unparse(part) for part in ast.walk(x)}:
                    found.append(ast.unparse(node))
    return found


def test_an_assignment_has_a_line_of_its_own():
    lines = {
        str(path.relative_to(PACKAGE)): packed
        for path in sorted(PACKAGE.rglob("*.py"))
        if (packed := packed_assignments(path.read_text("utf-8")))
    }
    assert lines == {}
