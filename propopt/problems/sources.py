"""YAML files as plain data, with the line of each key for messages."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import chain
from operator import itemgetter
from pathlib import Path
from typing import Any, Final, TypeAlias, final

import yaml
from yaml.composer import ComposerError
from yaml.constructor import SafeConstructor

from propopt.base.errors import InvalidInput, ProblemFileError, PropoptError
from propopt.problems.sections import OF_INPUT, ErrorGroup, Location, Missing


# ---- The source of a problem, for messages: a mapping or a file


MOST_MISTAKES = 20
"""Largest number of errors in one message."""


Lines: TypeAlias = dict[tuple[int, str | int], int]
"""Lines of keys and positions, by the identity of their mapping or list."""


@dataclass(frozen=True, eq=False)
class Source:
    """A problem as plain data, with locations of its keys for error messages."""

    content: Any  # as plain Python values
    path: Path  # the file; other files are relative to its folder
    name: str  # stem of output files, unless the content has a name
    files: tuple[Path, ...] = ()  # files that were read
    duplicates: tuple[ProblemFileError, ...] = ()  # keys, of which the last counts
    line: int = 0  # of the first key in a file
    lines: Lines = field(default_factory=dict)

    def find(self, location: Location) -> tuple[int, Location]:
        """The line of the innermost existing key, or 0, and the existing keys."""
        content = self.content
        line = self.line
        steps = _NOWHERE
        for step in location:
            if isinstance(step, Missing):
                return line, (*steps, step)
            if line:
                if (id(content), step) not in self.lines:
                    continue
                line = self.lines[id(content), step]
            try:
                content = content[step]
            except (LookupError, TypeError):  # the chosen kind of a union
                continue
            steps = (*steps, step)
        return line, steps

    def with_settings(self, key: str | None, settings: Mapping[str, Any]) -> Source:
        """A copy with other settings of one section, or of the file itself for None.

        Errors of new settings have the line of their section.
        """
        section = self.content if key is None else self.content[key] or {}
        content = changed = {**section, **settings}
        line = self.find(() if key is None else (key,))[0]
        lines = {
            (id(changed), name): self.lines.get((id(section), name), line)
            for name in changed
        }
        if key is not None:
            content = {**self.content, key: changed}
            lines |= {
                (id(content), name): self.lines.get((id(self.content), name), line)
                for name in content
            }
        return replace(self, content=content, lines=self.lines | lines)

    def error(self, location: Location, message: str) -> ProblemFileError:
        """The error ``path.to.key: message``, with file and line for a file."""
        line, steps = self.find(location)
        if steps:  # some messages begin with the last key
            message = message.removeprefix(f"{steps[-1]}: ")
        return error_at(self.path, line, steps, message)

    def located(self, error: PropoptError, *outer: str | int) -> ProblemFileError:
        """An error, or a group, with file, line and key."""
        if isinstance(error, ProblemFileError):
            return error
        location = (*outer, *error.part)
        if isinstance(error, ErrorGroup):
            return joint_error(self.located(one, *location) for one in error.errors)
        return self.error(location, str(error))

    @contextmanager
    def locating_errors(self, *location: str | int) -> Iterator[None]:
        """Add file, line and key to input errors that are raised inside."""
        try:
            yield
        except OF_INPUT as error:
            raise self.located(error, *location) from error


def joint_error(errors: Iterable[ProblemFileError]) -> ProblemFileError:
    """One error with all messages, sorted by line."""
    all_errors = [*errors]
    if len(all_errors) == 1:
        return all_errors[0]
    lines_of_errors = [error.lines or ((0, str(error)),) for error in all_errors]
    lines = list(
        dict.fromkeys(sorted(chain.from_iterable(lines_of_errors), key=itemgetter(0)))
    )
    if len(lines) > MOST_MISTAKES + 1:
        n, text = lines[MOST_MISTAKES]
        prefix = text.partition(f":{n}: ")[0] + f":{n}: " if n else ""
        lines[MOST_MISTAKES:] = [(n, f"{prefix}and more errors, from here on")]
    error = ProblemFileError("\n".join(text for _, text in lines))
    error.lines = tuple(lines)
    return error


_NOWHERE: Location = ()
SHORT = 60
"""Largest number of characters of a value in messages."""


def shown_key(step: str | int) -> str:
    """A key, shortened if it is long."""
    text = str(step)
    if len(text) > SHORT:
        return f"{text[:40]!r}… ({len(text):,} characters)"
    return repr(text) if "." in text or not text.isprintable() else text


# ---- YAML as plain data, within limits of size


MOST_BYTES: Final = 2**20
MOST_VALUES: Final = 50_000
"""Keys, lists, mappings and scalars; repetitions by aliases count each time."""
MOST_LEVELS: Final = 20
MOST_CHARACTERS: Final = 1_000
"""Largest number of characters of a number."""
MOST_OF_A_MESSAGE: Final = 1_000
"""Largest number of characters of a message."""

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
    """A loader of plain data within limits; ``1e-3`` is a number, dates are text."""

    yaml_implicit_resolvers = {  # noqa: RUF012 - PyYAML declares it so
        first: [pair for pair in pairs if pair[0] not in _NOT_READ]
        for first, pairs in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._level = 0
        self._n_values = 0

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        """Compose a node, within the limits on values and levels."""
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
    """The YAML nodes of a file, without constructing objects."""
    text = _text(path)
    try:
        return yaml.compose(text, Loader=_Loader)
    except yaml.YAMLError as error:
        raise complaint(path, *_line_and_problem(text, error)) from None


def _require_plain(node: yaml.Node) -> Any:
    """The value of a scalar node; tags other than plain data are refused."""
    if node.tag not in _PLAIN[type(node)]:
        tag = node.tag.replace(_YAML, "!!")
        raise InvalidInput(f"the tag {tag} is not allowed: plain data only")
    if not isinstance(node, yaml.ScalarNode):
        return None
    if _HALF.search(node.value):
        raise InvalidInput("surrogates (\\ud800 to \\udfff) are not allowed in texts")
    if node.tag in _NUMBERS and len(node.value) > MOST_CHARACTERS:
        raise InvalidInput(
            f"expected a number of at most {MOST_CHARACTERS:,} characters, got "
            f"{len(node.value):,}"
        )
    try:
        return SafeConstructor().construct_document(node)
    except (ValueError, LookupError, OverflowError):  # such as !!int x
        got = f"{node.value[:60]!r}"
        raise InvalidInput(f"expected {_SCALARS[node.tag]}, got {got}") from None


def complaint(path: Path, line: int, message: str) -> ProblemFileError:
    """The error ``file:line: message``, on one line of limited length."""
    words = " ".join(message.split())
    if len(words) > MOST_OF_A_MESSAGE:
        words = f"{words[:MOST_OF_A_MESSAGE]}… ({len(words):,} characters)"
    error = ProblemFileError(f"{path}:{line}: {words}")
    error.lines = ((line, str(error)),)
    return error


def error_at(path: Path, line: int, steps: Location, message: str) -> ProblemFileError:
    """The error at a location, with file and line if there is a file."""
    keys = ".".join(map(shown_key, steps))
    text = f"{keys}: {message}" if keys else message
    return complaint(path, line, text) if line else ProblemFileError(text)


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            content = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise ProblemFileError(f"{path}: cannot be read: {error.strerror}") from None
    except ValueError as error:  # an impossible file name
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
    line = 1
    problem = str(error)
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark is not None:
        line = error.problem_mark.line + 1
        problem = ", ".join(filter(None, (error.context, error.problem)))
    if isinstance(error, yaml.reader.ReaderError):
        line = text.count("\n", 0, error.position) + 1
        problem = f"the character {chr(error.character)!r} is not allowed"
    if r"'\t'" in problem:
        problem = "a tab; indent with spaces"
    elif "<block" in problem:
        problem = (
            "indentation differs from the lines above; align the keys of a section"
        )
    elif problem == "mapping values are not allowed here":
        problem = "a second ': ' in one line; quote the value, or start a new line"
    return line, f"not valid YAML: {problem}"


# ---- YAML files as sources, with the line of each key


def yaml_source(path: str | Path) -> Source:
    """The content of a YAML file, without running or importing what it names."""
    file = Path(path)
    root = compose(file)
    if not isinstance(root, yaml.MappingNode):
        got = "nothing" if root is None else _NODES[type(root)]
        message = f"expected a mapping of keys to values, got {got}"
        if file.suffix.lower() in (".csv", ".tsv"):
            message += "; a problem file names a table as data: {csv: FILE}"
        raise complaint(file, 1, message)
    reading = _Reading(file)
    content, _ = reading.value(root, ())
    if reading.unread:
        raise joint_error([*reading.unread, *reading.duplicates])
    line = root.start_mark.line + 1
    duplicates = tuple(reading.duplicates)
    return Source(content, file, file.stem, (file,), duplicates, line, reading.lines)


@final
class _Reading:
    """Converts nodes to plain values, and collects lines of keys and errors."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.lines: Lines = {}
        self.unread: list[ProblemFileError] = []  # no plain data, recursive aliases
        self.duplicates: list[ProblemFileError] = []  # keys, of which the last counts
        self._cache: dict[int, tuple[Any, int]] = {}  # by node
        self._ancestors: set[int] = set()  # nodes around the current one

    def value(self, node: yaml.Node, steps: Location) -> tuple[Any, int]:
        """The value of a node, and its number of values with aliases expanded."""
        if id(node) in self._cache:
            return self._cache[id(node)]
        line = node.start_mark.line + 1
        try:
            if id(node) in self._ancestors:
                raise InvalidInput("an alias refers to a value that contains it")
            single = _require_plain(node)
        except InvalidInput as error:
            self.unread.append(error_at(self.path, line, steps, str(error)))
            return None, 1
        if isinstance(node, yaml.ScalarNode):
            return single, 1
        content: Any = [] if isinstance(node, yaml.SequenceNode) else {}
        size = 1
        self._ancestors.add(id(node))
        for step, at, child in self._children(node, steps):
            value, count = self.value(child, (*steps, step))
            if isinstance(content, list):
                content.append(value)
            else:
                content[step] = value
            self.lines[id(content), step] = at
            size += count
        if size > MOST_VALUES:
            message = f"more than {MOST_VALUES:,} values, with aliases expanded"
            raise error_at(self.path, line, steps, message)
        self._ancestors.remove(id(node))
        self._cache[id(node)] = content, size
        return content, size

    def _children(
        self, node: yaml.Node, steps: Location
    ) -> Iterator[tuple[str | int, int, yaml.Node]]:
        """Keys or positions, each with its line and its node."""
        if isinstance(node, yaml.SequenceNode):
            for number, item in enumerate(node.value):
                yield number, item.start_mark.line + 1, item
            return
        keys: set[str | int] = set()
        for key, value in node.value:
            line = key.start_mark.line + 1
            try:
                name = _label(key) if steps == CLASS_NAMES else _text_key(key)
            except InvalidInput as error:
                self.unread.append(error_at(self.path, line, steps, str(error)))
                continue
            if name in keys:
                again = error_at(self.path, line, (*steps, name), "given twice")
                self.duplicates.append(again)
            keys.add(name)
            yield name, line, value


CLASS_NAMES: Final = ("data", "outcome")
"""The only mapping whose keys may be numbers: names of classes by their labels."""


def _label(key: yaml.Node) -> str | int:
    """The label of a class, which may be a number."""
    is_number = key.tag in (f"{_YAML}bool", *_NUMBERS)
    label: str | int = _require_plain(key) if is_number else _text_key(key)
    return label


def _text_key(key: yaml.Node) -> str:
    """A key that is text."""
    if key.tag != TEXT or _HALF.search(key.value):
        plain_one = isinstance(key, yaml.ScalarNode)
        got = shown_key(key.value) or "nothing" if plain_one else _NODES[type(key)]
        raise InvalidInput(f"expected a key that is text, got {got}")
    if key.value == "<<":
        raise InvalidInput("merge keys (<<) are not supported; repeat the keys instead")
    return str(key.value)


_NODES: dict[type[yaml.Node], str] = {
    yaml.MappingNode: "a mapping",
    yaml.SequenceNode: "a list",
    yaml.ScalarNode: "a single value",
}
