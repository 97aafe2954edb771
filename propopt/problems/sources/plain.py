"""YAML as plain data: how much a file may hold, and what its values may be."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final

import yaml
from yaml.composer import ComposerError
from yaml.constructor import SafeConstructor

from propopt.errors import ProblemFileError


MOST_BYTES: Final = 2**20
MOST_VALUES: Final = 50_000
"""Keys, lists, mappings and single values; what an alias repeats counts each time."""
MOST_LEVELS: Final = 20
MOST_CHARACTERS: Final = 1_000
"""Of a number."""
MOST_OF_A_MESSAGE: Final = 1_000
"""Characters."""

_YAML: Final = "tag:yaml.org,2002:"
TEXT: Final = f"{_YAML}str"
_NUMBERS: Final = {f"{_YAML}int": "a whole number", f"{_YAML}float": "a number"}
_SCALARS: Final = {
    TEXT: "text",
    f"{_YAML}bool": "true or false",
    f"{_YAML}null": "nothing",
    **_NUMBERS,
}
_PLAIN: Final[dict[type[yaml.Node], set[str]]] = {
    yaml.ScalarNode: set(_SCALARS),
    yaml.SequenceNode: {f"{_YAML}seq"},
    yaml.MappingNode: {f"{_YAML}map"},
}
_HALF: Final = re.compile("[\ud800-\udfff]")
_NOT_READ: Final = {f"{_YAML}{kind}" for kind in ("timestamp", "merge", "value")}


class _Loader(yaml.SafeLoader):
    """Plain data within limits; ``1e-3`` is a number, and a date, << and = are text."""

    yaml_implicit_resolvers = {  # noqa: RUF012 - PyYAML declares it so
        first: [pair for pair in pairs if pair[0] not in _NOT_READ]
        for first, pairs in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._level = 0
        self._n_values = 0

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        """As the base does, within the limits on values and levels."""
        self._level += 1
        self._n_values += 1
        mark = self.peek_event().start_mark  # type: ignore[no-untyped-call]
        if self._level > MOST_LEVELS:
            raise ComposerError(
                None, None, f"nested more than {MOST_LEVELS} levels deep", mark
            )
        if self._n_values > MOST_VALUES:
            raise ComposerError(None, None, f"more than {MOST_VALUES:,} values", mark)
        node = super().compose_node(parent, index)
        self._level -= 1
        return node


_Loader.add_implicit_resolver(
    f"{_YAML}float",
    re.compile(r"^[-+]?(\d+\.?\d*|\.\d+)[eE][-+]?\d+$"),
    list("-+.0123456789"),
)


def compose(path: Path) -> yaml.Node | None:
    """The nodes of a file, without building anything that it names.

    Raises
    ------
    ProblemFileError
        If it cannot be read, is not YAML in UTF-8, or exceeds a limit.
    """
    text = _text(path)
    try:
        return yaml.compose(text, Loader=_Loader)
    except yaml.YAMLError as error:
        raise complaint(path, *_line_and_problem(text, error)) from None


def plain(root: yaml.Node) -> Any:
    """The Python values of nodes that :func:`refusal` found no fault with."""
    return SafeConstructor().construct_document(root)


def refusal(node: yaml.Node) -> str | None:
    """Why a node by itself is no plain data; None if it is."""
    if node.tag not in _PLAIN[type(node)]:
        tag = node.tag.replace(_YAML, "!!")
        return f"the tag {tag} is not allowed: plain data only"
    if not isinstance(node, yaml.ScalarNode):
        return None
    if _HALF.search(node.value):
        return "half a character is not allowed (\\ud800 to \\udfff)"
    if node.tag in _NUMBERS and len(node.value) > MOST_CHARACTERS:
        return (
            f"expected a number of at most {MOST_CHARACTERS:,} characters, got "
            f"{len(node.value):,}"
        )
    try:
        plain(node)
    except (ValueError, LookupError, OverflowError):  # such as !!int x
        return f"expected {_SCALARS[node.tag]}, got {node.value[:60]!r}"
    return None


def complaint(path: Path, line: int, message: str) -> ProblemFileError:
    """The error ``file:line: message``, on one line that is not too long."""
    words = " ".join(message.split())
    if len(words) > MOST_OF_A_MESSAGE:
        words = f"{words[:MOST_OF_A_MESSAGE]}… ({len(words):,} characters)"
    error = ProblemFileError(f"{path}:{line}: {words}")
    error.lines = ((line, str(error)),)
    return error


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            content = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise ProblemFileError(f"{path}: cannot be read: {error.strerror}") from None
    except ValueError as error:  # a name that no file can have
        raise ProblemFileError(f"{str(path)!r}: cannot be read: {error}") from None
    if len(content) > MOST_BYTES:
        message = f"a problem file has at most {MOST_BYTES:,} bytes; this one has more"
        raise complaint(path, content.count(b"\n") + 1, message)
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise complaint(path, line, "cannot be read: not UTF-8 text") from None


def _line_and_problem(text: str, error: yaml.YAMLError) -> tuple[int, str]:
    line, problem = 1, str(error)
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark is not None:
        line = error.problem_mark.line + 1
        problem = ", ".join(filter(None, (error.context, error.problem)))
    if isinstance(error, yaml.reader.ReaderError):
        line = text.count("\n", 0, error.position) + 1
        problem = f"the character {chr(error.character)!r} is not allowed"
    if r"'\t'" in problem:
        problem = "a tab; indent with spaces"
    elif "<block" in problem:
        problem = "other indentation than the lines above; keys of one section align"
    elif problem == "mapping values are not allowed here":
        problem = "a second ': ' in one line; quote the value, or start a new line"
    return line, f"not valid YAML: {problem}"
