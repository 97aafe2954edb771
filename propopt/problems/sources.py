"""YAML files as plain data, with the line of each key for messages."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import chain
from operator import itemgetter
from pathlib import Path
from typing import Any, Final

import yaml
from yaml.composer import ComposerError
from yaml.constructor import SafeConstructor

from propopt.base.errors import ProblemFileError, PropoptError
from propopt.problems.sections import OF_INPUT, ErrorGroup, Location


# ---- The source of a problem, for messages: a mapping or a file


MOST_MISTAKES = 20
"""Largest number of errors in one message."""
SHORT = 60
"""Largest number of characters of a value in messages."""
MOST_OF_A_MESSAGE: Final = 1_000
"""Largest number of characters of a message."""

_KEYS: Final = {"weights": "sweep"}
"""Keys of arguments that have another name in files."""


@dataclass(frozen=True, eq=False)
class Source:
    """The content of a problem, and where each key was read."""

    content: Any  # plain Python values
    path: Path  # the file; other files are relative to its folder
    name: str  # stem of output files, unless the content has a name
    files: tuple[Path, ...] = ()  # files that were read
    duplicates: tuple[ProblemFileError, ...] = ()  # keys, of which the last counts
    lines: dict[Location, int] = field(default_factory=dict)  # empty without a file

    def find(self, location: Location) -> tuple[int, Location]:
        """The line of the innermost existing key, or 0, and the existing keys."""
        content = self.content
        steps: Location = ()
        line = self.lines.get(steps, 0)
        for step in location:
            try:
                content = content[step]
            except (LookupError, TypeError):  # the chosen kind of a union
                continue
            steps = (*steps, step)
            line = self.lines.get(steps, line)  # options of the command line have none
        return line, steps

    def with_settings(self, key: str | None, settings: Mapping[str, Any]) -> Source:
        """A copy with other settings of one section, or of the file itself for None."""
        content = {**self.content, **settings}
        if key is not None:
            changed = {**(self.content[key] or {}), **settings}
            content = {**self.content, key: changed}
        return replace(self, content=content)

    def error(self, location: Location, message: str) -> ProblemFileError:
        """The error ``path.to.key: message``, with file and line for a file.

        If a message begins with an argument, and the innermost section that has a key
        of its name is around the location, the error is located at this key.
        """
        argument, _, rest = message.partition(": ")
        key = _KEYS.get(argument, argument)
        line, steps = self.find(location)
        for depth in range(len(location), -1, -1):
            of_argument = self.find((*location[:depth], key))
            if of_argument[1][-1:] == (key,):
                line, steps = of_argument
                break
        words = rest if steps[-1:] == (key,) else message
        return error_at(self.path, line, steps, words)

    def lacks(self, *location: str | int) -> ProblemFileError:
        """The error of a required key, the last of a location, that is not there."""
        line, steps = self.find(location[:-1])
        steps = (*steps, location[-1])
        return error_at(self.path, line, steps, "required, and missing")

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


def error_at(path: Path, line: int, steps: Location, message: str) -> ProblemFileError:
    """The error ``file:line: key: message`` on one line; no file if the line is 0."""
    keys = ".".join(map(_shown_key, steps))
    words = " ".join((f"{keys}: {message}" if keys else message).split())
    if len(words) > MOST_OF_A_MESSAGE:
        words = f"{words[:MOST_OF_A_MESSAGE]}… ({len(words):,} characters)"
    error = ProblemFileError(f"{path}:{line}: {words}" if line else words)
    error.lines = ((line, str(error)),)
    return error


def joint_error(errors: Iterable[ProblemFileError]) -> ProblemFileError:
    """One error with all messages, sorted by line."""
    lines = chain.from_iterable(e.lines or ((0, str(e)),) for e in errors)
    first = sorted(dict.fromkeys(lines), key=itemgetter(0))
    if len(first) > MOST_MISTAKES:
        line, text = first[MOST_MISTAKES]
        where = text.partition(f":{line}: ")[0] + f":{line}: " if line else ""
        first[MOST_MISTAKES:] = [(line, f"{where}and more errors, from here on")]
    error = ProblemFileError("\n".join(text for _, text in first))
    error.lines = tuple(first)
    return error


def _shown_key(step: str | int) -> str:
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

_YAML: Final = "tag:yaml.org,2002:"
_NUMBERS: Final = {
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
}
_PLAIN: Final[dict[type[yaml.Node], set[str]]] = {
    yaml.ScalarNode: {*_NUMBERS, "str", "null"},
    yaml.SequenceNode: {"seq"},
    yaml.MappingNode: {"map"},
}
_NOT_READ: Final = {f"{_YAML}{kind}" for kind in ("timestamp", "merge", "value")}
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_NODES: Final[dict[Any, str]] = {
    yaml.MappingNode: "a mapping",
    yaml.SequenceNode: "a list",
    yaml.ScalarNode: "a single value",
    type(None): "nothing",
}
_REMEDIES: Final = {
    r"'\t'": "a tab; indent with spaces",
    "<block": "indentation differs from the lines above; align the keys of a section",
    "mapping values are": "a second ': ' in one line; quote the value, or start a line",
}
"""Messages instead of those of PyYAML that have these words."""


class _Loader(yaml.SafeLoader):
    """A loader of plain data within limits; ``1e-3`` is a number, dates are text."""

    yaml_implicit_resolvers = {  # noqa: RUF012 - PyYAML declares it so
        first: [pair for pair in pairs if pair[0] not in _NOT_READ]
        for first, pairs in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }
    level = 0
    n_values = 0

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        """Compose a node, within the limits on values and levels."""
        self.level += 1
        self.n_values += 1
        if self.level > MOST_LEVELS or self.n_values > MOST_VALUES:
            mark = self.peek_event().start_mark  # type: ignore[no-untyped-call]
            raise ComposerError(None, None, _TOO_MANY, mark)
        node = super().compose_node(parent, index)
        self.level -= 1
        return node


_TOO_MANY: Final = f"more than {MOST_LEVELS} levels or {MOST_VALUES:,} values"

_Loader.add_implicit_resolver(
    f"{_YAML}float",
    re.compile(r"^[-+]?(\d+\.?\d*|\.\d+)[eE][-+]?\d+$"),
    list("-+.0123456789"),
)


def yaml_source(path: str | Path) -> Source:
    """The content of a YAML file, without running or importing what it names."""
    file = Path(path)
    root = _composed(file)
    if not isinstance(root, yaml.MappingNode):
        message = f"expected a mapping of keys to values, got {_NODES[type(root)]}"
        if file.suffix.lower() in (".csv", ".tsv"):
            message += "; a problem file names a table as data: {csv: FILE}"
        raise error_at(file, 1, (), message)
    reader = _Reader(file)
    content = reader.value(root, (), root.start_mark.line + 1)
    if reader.unread:
        raise joint_error([*reader.unread, *reader.duplicates])
    duplicates = tuple(reader.duplicates)
    return Source(content, file, file.stem, (file,), duplicates, reader.lines)


def _composed(path: Path) -> yaml.Node | None:
    """The YAML nodes of a file, without constructing objects."""
    try:
        with path.open("rb") as file:
            content = file.read(MOST_BYTES + 1)
    except (OSError, ValueError) as error:  # such as an impossible name
        reason = getattr(error, "strerror", None) or error
        raise ProblemFileError(f"{path}: cannot be read: {reason}") from None
    if len(content) > MOST_BYTES:
        message = f"a problem file has at most {MOST_BYTES:,} bytes; this one has more"
        raise error_at(path, content.count(b"\n") + 1, (), message)
    try:
        return yaml.compose(content.decode(), Loader=_Loader)
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise error_at(path, line, (), "cannot be read: not UTF-8 text") from None
    except yaml.reader.ReaderError as error:
        line = content.decode().count("\n", 0, error.position) + 1
        problem = f"the character {chr(error.character)!r} is not allowed"
    except yaml.MarkedYAMLError as error:
        line = 1 if error.problem_mark is None else error.problem_mark.line + 1
        problem = ", ".join(filter(None, (error.context, error.problem)))
        remedies = (text for words, text in _REMEDIES.items() if words in problem)
        problem = next(remedies, problem)
    raise error_at(path, line, (), f"not valid YAML: {problem}")


class _Reader:
    """Converts nodes to plain values, and collects lines of keys and errors."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.lines: dict[Location, int] = {}
        self.unread: list[ProblemFileError] = []  # no plain data
        self.duplicates: list[ProblemFileError] = []  # keys, of which the last counts

    def value(self, node: yaml.Node, steps: Location, line: int) -> Any:
        """The value of a node on a line; an alias is read again."""
        self.lines[steps] = line
        if len(self.lines) > MOST_VALUES or len(steps) > MOST_LEVELS:
            message = f"{_TOO_MANY}, with aliases expanded"
            raise error_at(self.path, line, (), message)
        kind = node.tag.removeprefix(_YAML)
        if kind not in _PLAIN[type(node)]:
            tag = node.tag.replace(_YAML, "!!")
            message = f"the tag {tag} is not allowed: plain data only"
            return self._refuse(line, steps, message)
        if isinstance(node, yaml.ScalarNode):
            return self._scalar(node, steps, line)
        if isinstance(node, yaml.SequenceNode):
            items = enumerate(node.value)
            return [self.value(x, (*steps, i), x.start_mark.line + 1) for i, x in items]
        content: dict[Any, Any] = {}
        for key, child in node.value:
            line_of_key = key.start_mark.line + 1
            name = self._key(key, steps, line_of_key)
            if name is None:
                continue
            if name in content:
                twice = error_at(self.path, line_of_key, (*steps, name), "given twice")
                self.duplicates.append(twice)
            content[name] = self.value(child, (*steps, name), line_of_key)
        return content

    def _key(self, key: yaml.Node, steps: Location, line: int) -> str | int | None:
        """A key, which is text or the label of a class; None if it is refused."""
        kind = key.tag.removeprefix(_YAML)
        is_label = steps == CLASS_NAMES and kind in _NUMBERS
        if isinstance(key, yaml.ScalarNode) and (kind == "str" or is_label):
            name: str | int | None = self._scalar(key, steps, line)
            return name
        got = _NODES[type(key)]
        if isinstance(key, yaml.ScalarNode):
            got = _shown_key(key.value) or "nothing"
        self._refuse(line, steps, f"expected a key that is text, got {got}")
        return None

    def _scalar(self, node: yaml.ScalarNode, steps: Location, line: int) -> Any:
        kind = node.tag.removeprefix(_YAML)
        if _SURROGATE.search(node.value):
            message = "surrogates (\\ud800 to \\udfff) are not allowed in texts"
            return self._refuse(line, steps, message)
        if kind != "str" and len(node.value) > MOST_CHARACTERS:
            most = f"expected a number of at most {MOST_CHARACTERS:,} characters"
            return self._refuse(line, steps, f"{most}, got {len(node.value):,}")
        try:
            return SafeConstructor().construct_document(node)
        except (ValueError, LookupError, OverflowError):  # such as !!int x
            message = f"expected {_NUMBERS[kind]}, got {node.value[:SHORT]!r}"
            return self._refuse(line, steps, message)

    def _refuse(self, line: int, steps: Location, message: str) -> None:
        self.unread.append(error_at(self.path, line, steps, message))


CLASS_NAMES: Final = ("data", "outcome")
"""The only mapping whose keys may be numbers: names of classes by their labels."""
