"""Names of the package say what a thing is: none has a banned word."""

import ast
import re
from collections import defaultdict
from pathlib import Path

import pytest

import propopt


PACKAGE = Path(propopt.__file__).parent

BANNED = {
    *("own", "told", "whose", "kept", "asked", "said", "came"),
    *("beside", "found", "known", "place", "near"),
}
"""Words that stand for something else in a name of any kind."""

RENAMED = set(
    """
    Candidate Audited carriers carried Between Trail Ends NearestFront posed
    written_program Posed Shifted InTurn otherwise Kept keeping kept_array
    first_look one_by_one JointRows JointDocuments ConditionalRow own_values
    could_go Certain Scatter ReadyTargets OfEntries OfSums Iterated Diagonalized
    Tangential Gauged Tempered InBins explaining_rows single_runs lots SameLength
    told_apart seen View boosters KnownTable wrapped_and_told told Atoms Coded
    Calls halvings bootstraps reseedings LeftOut judged_on RowGames Mistakes
    Extent Answer answers stored contradictions settle whose audited surrogates
    expectations
    """.split()  # noqa: SIM905  # a list of words
)
"""Earlier names of classes, functions and modules; each has a term of the field."""

EXCEPTIONS = {
    "near_optimal": "the field's term for explanations within a tolerance",
    "NearOptimal": "the same in names of classes",
}
"""Parts of names that may stand, each with a reason."""


def words_of(name: str) -> set[str]:
    """The words of a name in snake_case or CamelCase, in lower case."""
    for part in EXCEPTIONS:
        name = name.replace(part, "")
    return {x.lower() for x in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", name)}


def names_in(source: str):
    """Each name that a module defines, and whether it is of a class or a function."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.ClassDef(name=name) | ast.FunctionDef(name=name):
                yield name, True
            case ast.arg(arg=name) | ast.Name(id=name, ctx=ast.Store()):
                yield name, False
            case ast.Attribute(attr=name, ctx=ast.Store()):
                yield name, False
            case ast.alias(asname=str(name)) | ast.MatchAs(name=str(name)):
                yield name, False
            case ast.ExceptHandler(name=str(name)):
                yield name, False


def is_banned(name: str, is_definition: bool) -> bool:
    """Whether a name has a banned word, or is an earlier one of a class or function."""
    return bool(BANNED & words_of(name)) or (is_definition and name in RENAMED)


def banned_names() -> dict[str, set[str]]:
    """The banned names by room, files among them."""
    rooms = defaultdict(set)
    for path in sorted(PACKAGE.rglob("*.py")):
        room = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
        if is_banned(path.stem, True):
            rooms[room].add(f"{path.stem}.py")
        names = names_in(path.read_text("utf-8"))
        rooms[room] |= {name for name, kind in names if is_banned(name, kind)}
    return {room: names for room, names in rooms.items() if names}


@pytest.mark.parametrize(
    ("name", "is_definition", "banned"),
    [
        ("own_rule", False, True),
        ("KnownTable", True, True),
        ("_SAID", False, True),
        ("near_edges", False, True),
        ("near_optimal", False, False),
        ("NearOptimalConclusions", True, False),
        ("nearest", False, False),
        ("unknown", False, False),
        ("placement", False, False),
        ("Atoms", True, True),
        ("answers", False, False),
    ],
)
def test_words_of_names_are_found_in_both_cases(name, is_definition, banned):
    assert is_banned(name, is_definition) == banned


def test_no_name_has_a_banned_word():
    assert banned_names() == {}
