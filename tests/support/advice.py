"""Code in messages of the package: where it stands, and the pieces of a message."""

import ast
import re
from pathlib import Path
from typing import NamedTuple

import propopt


PACKAGE = Path(propopt.__file__).parent
HOLE = "□"
"""What an f-string fills in."""

_START = re.compile(r"(?<![\w.□])(?:lambda \w*: |\[|(?:[A-Za-z_]\w*|□)(?:\.\w+)*[(\[])")
_SHOWN = {"cards.py", "html.py", "explanation_document.py", "vocabulary.py"}
"""Files whose strings are markup or records."""

_METHODS = {"__repr__", "document", "in_words"}
"""Functions whose strings show values."""


class Message(NamedTuple):
    """A string of the source with code in it."""

    place: str  # file:line
    text: str  # with a hole for each value
    pieces: tuple[str, ...]  # the code


def pieces_of(text: str) -> tuple[str, ...]:
    """The calls, lambdas and list comprehensions in a message."""
    pieces, position = [], 0
    while match := _START.search(text, position):
        position = match.end()
        for end in range(len(text), match.end(), -1):
            if _is_code(text[match.start() : end]):
                pieces.append(text[match.start() : end].strip())
                position = end
                break
    return tuple(pieces)


def _is_code(piece: str) -> bool:
    """Whether a piece is one call, lambda or comprehension, and no text in brackets."""
    if piece[-1] not in ")]_" and not piece[-1].isalnum():
        return False
    try:
        tree = ast.parse(piece.replace(HOLE, "_").replace("...", "_"), mode="eval").body
    except (SyntaxError, ValueError):
        return False
    if isinstance(tree, ast.ListComp | ast.Lambda):
        return True
    calls = any(isinstance(node, ast.Call) for node in ast.walk(tree))
    is_one = isinstance(tree, ast.Call | ast.Attribute | ast.Subscript)
    return is_one and calls


def _text(node: ast.AST) -> str | None:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        parts = (p.value if isinstance(p, ast.Constant) else HOLE for p in node.values)
        return "".join(parts)
    return None


def _strings(node: ast.AST, skipped: set[int]):
    for child in ast.iter_child_nodes(node):
        if id(child) in skipped:
            continue
        text = _text(child)
        if text is not None:
            yield child.lineno, text
        if not isinstance(child, ast.Constant):
            inner = child.values if isinstance(child, ast.JoinedStr) else [child]
            for one in inner:
                if not isinstance(one, ast.Constant):
                    yield from _strings(one, skipped)


def messages() -> list[Message]:
    """All strings of the package with code, except docstrings and records."""
    result = []
    for path in sorted(PACKAGE.rglob("*.py")):
        if path.name in _SHOWN:
            continue
        tree, skipped = ast.parse(path.read_text("utf-8")), set()
        for node in ast.walk(tree):
            body = getattr(node, "body", None)
            for line in body if isinstance(body, list) else []:
                if isinstance(line, ast.Expr) and isinstance(line.value, ast.Constant):
                    skipped.add(id(line))
            if isinstance(node, ast.FunctionDef) and node.name in _METHODS:
                skipped.add(id(node))
        name = path.relative_to(PACKAGE)
        for line, text in _strings(tree, skipped):
            if pieces := pieces_of(text):
                result.append(Message(f"{name}:{line}", text, pieces))
    return result
