"""YAML files read strictly: every error says file, line, key and what would do."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any, TypeAlias

import yaml
from pydantic import ValidationError
from pydantic_core import ErrorDetails

from propopt.errors import ProblemFileError
from propopt.problem.schema import ProblemSchema, kinds, sections_at


Location: TypeAlias = tuple[str | int, ...]

_YAML = "tag:yaml.org,2002:"
_KEYS = {f"{_YAML}{kind}" for kind in ("str", "merge")}
_PLAIN = _KEYS | {
    f"{_YAML}{kind}" for kind in ("map", "seq", "int", "float", "bool", "null")
}


class _Loader(yaml.SafeLoader):
    """Plain data only; ``1e-3`` is a number, as in YAML 1.2, and a date is text."""

    yaml_implicit_resolvers = {  # noqa: RUF012 - PyYAML declares it so
        first: [pair for pair in pairs if pair[0] != f"{_YAML}timestamp"]
        for first, pairs in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }


_Loader.add_implicit_resolver(
    f"{_YAML}float",
    re.compile(r"^[-+]?(\d+\.?\d*|\.\d+)[eE][-+]?\d+$"),
    list("-+.0123456789"),
)


@dataclass(frozen=True, eq=False)
class Source:
    """A YAML text that knows the line of each key."""

    path: Path
    root: yaml.Node

    @classmethod
    def read(cls, path: str | Path) -> Source:
        """Parse a file, without running or building anything that it names."""
        place = Path(path)
        text = _text(place)
        try:
            root = yaml.compose(text, Loader=_Loader)
        except yaml.YAMLError as error:
            raise ProblemFileError(_syntax_message(place, text, error)) from None
        except RecursionError:
            raise ProblemFileError(
                f"{place}: not valid YAML: nested too deep"
            ) from None
        if not isinstance(root, yaml.MappingNode):
            came = "nothing" if root is None else _NODES[type(root)]
            raise ProblemFileError(
                f"{place}:1: expected a mapping of keys to values, got {came}"
            )
        source = cls(place, root)
        source._check(root, (), {})
        return source

    def data(self) -> Any:
        """The content as plain Python values."""
        loader = _Loader("")
        try:
            return loader.construct_document(self.root)
        except yaml.YAMLError as error:
            raise ProblemFileError(_syntax_message(self.path, "", error)) from None
        except ValueError as error:  # from int(), for a number of 5000 digits
            raise ProblemFileError(f"{self.path}: not valid YAML: {error}") from None
        finally:
            loader.dispose()

    def error(
        self, location: Location, message: str, *, missing: str | None = None
    ) -> ProblemFileError:
        """The error ``file:line: path.to.key: message``.

        Parameters
        ----------
        location : tuple
            The keys on the way; steps that are not in the file, such as the chosen kind
            of a union, are left out.
        message : str
            What came, and what would do.
        missing : str, optional
            A key that should be there, and is not.
        """
        line, steps = self._find(location)
        keys = _path(steps if missing is None else (*steps, missing))
        return self._at(line, keys, message)

    def line(self, location: Location) -> int:
        """The line of the innermost key on the way that is there."""
        return self._find(location)[0]

    def _at(self, line: int, keys: str, message: str) -> ProblemFileError:
        return ProblemFileError(
            f"{self.path}:{line}: {f'{keys}: ' if keys else ''}{message}"
        )

    def _find(self, location: Location) -> tuple[int, Location]:
        """The line of the innermost key on the way, and the keys that are there."""
        node, line = self.root, self.root.start_mark.line + 1
        steps: Location = ()
        for step in location:
            found = _child(node, step)
            if found is not None:
                line, node = found
                steps = (*steps, step)
        return line, steps

    def _check(self, node: yaml.Node, steps: Location, done: dict[int, bool]) -> None:
        """Refuse tags, keys that are not text or come twice, and endless aliases.

        ``done`` is False for the nodes that enclose this one: aliases may share nodes.
        """
        line = node.start_mark.line + 1
        if node.tag not in _PLAIN:
            tag = node.tag.replace(_YAML, "!!")
            raise self._at(
                line, _path(steps), f"the tag {tag} is not allowed: plain data only"
            )
        if not done.setdefault(id(node), True):
            raise self._at(line, _path(steps), "an alias stands inside what it repeats")
        done[id(node)] = False
        for step, child in self._children(node, steps):
            if not done.get(id(child), False):
                self._check(child, (*steps, step), done)
        done[id(node)] = True

    def _children(
        self, node: yaml.Node, steps: Location
    ) -> Iterable[tuple[str | int, yaml.Node]]:
        if isinstance(node, yaml.SequenceNode):
            yield from enumerate(node.value)
        if isinstance(node, yaml.MappingNode):
            seen: set[str] = set()
            for key, value in node.value:
                line = key.start_mark.line + 1
                if key.tag not in _KEYS:
                    plain = isinstance(key, yaml.ScalarNode)
                    came = key.value or "nothing" if plain else _NODES[type(key)]
                    message = f"expected a key that is text, got {came}"
                    raise self._at(line, _path(steps), message)
                if key.value in seen:
                    raise self._at(line, _path((*steps, key.value)), "given twice")
                seen.add(key.value)
                yield key.value, value


def read_schema(source: Source) -> ProblemSchema:
    """The checked content of a problem file.

    Raises
    ------
    ProblemFileError
        With one line for each mistake.
    """
    try:
        return ProblemSchema.model_validate(source.data())
    except ValidationError as error:
        found = sorted(error.errors(), key=lambda detail: source.line(detail["loc"]))
        lines = [str(_located(source, detail)) for detail in found]
        raise ProblemFileError("\n".join(dict.fromkeys(lines))) from None


def did_you_mean(word: object, known: Sequence[str]) -> str:
    """A hint such as `` (did you mean 'sparsity'?)``, if one of ``known`` is near."""
    near = get_close_matches(str(word).lower(), known, n=1)
    return f" (did you mean {near[0]!r}?)" if near else ""


def _located(source: Source, detail: ErrorDetails) -> ProblemFileError:
    """What pydantic found, in the words of a user."""
    location, value = detail["loc"], detail["input"]
    context = detail.get("ctx", {})
    match detail["type"]:
        case "extra_forbidden":
            known = list(sections_at(location[:-1])[0].model_fields)
            hint = did_you_mean(location[-1], known)
            message = f"unknown key{hint}; known here: {', '.join(known)}"
            return source.error(location, message)
        case "missing":
            return source.error(
                location[:-1], "required, and missing", missing=str(location[-1])
            )
        case "union_tag_not_found":
            key = context["discriminator"].strip("'")
            message = f"required, and missing; expected {_either(kinds(location))}"
            return source.error(location, message, missing=key)
        case "union_tag_invalid":
            key = context["discriminator"].strip("'")
            return source.error(
                (*location, key), _unknown_name(value[key], kinds(location))
            )
        case "literal_error":
            known = re.findall(r"'([^']*)'", context["expected"])
            return source.error(location, _unknown_name(value, known))
        case kind if kind in _EXPECTED:
            expected = _EXPECTED[kind].format(**context)
            return source.error(location, f"expected {expected}, got {_shown(value)}")
    return source.error(location, detail["msg"])


def _unknown_name(value: object, known: Sequence[str]) -> str:
    hint = did_you_mean(value, known)
    return f"expected {_either(known)}, got {_shown(value)}{hint}"


_MAPPING = "a mapping of keys to values"
_EXPECTED = {
    "bool_type": "true or false",
    "dict_type": _MAPPING,
    "finite_number": "a finite number",
    "float_type": "a number",
    "greater_than": "a number > {gt:g}",
    "greater_than_equal": "a number >= {ge:g}",
    "int_type": "a whole number",
    "label_type": "text or a number",
    "less_than": "a number < {lt:g}",
    "list_type": "a list",
    "loss_type": "a weight, or a mapping with the settings of the loss",
    "model_attributes_type": _MAPPING,
    "model_type": _MAPPING,
    "string_pattern_mismatch": "letters, digits, '_', '-' and '.' only",
    "string_type": "text",
    "too_short": "at least one value",
    "weights_type": "a list of weights, or a range {{low: , high: , points: }}",
}
_NODES: dict[type[yaml.Node], str] = {
    yaml.MappingNode: "a mapping",
    yaml.SequenceNode: "a list",
    yaml.ScalarNode: "a single value",
}


def _shown(value: Any) -> str:
    """A value as the file has it, or what it is."""
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list):
        return "a list" if value else "an empty list"
    if value is None or isinstance(value, bool):
        return "nothing" if value is None else str(value).lower()
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:40]}… ({len(text)} characters)"


def _either(choices: Sequence[str]) -> str:
    """``'a', 'b' or 'c'``."""
    *others, last = map(repr, choices)
    return f"{', '.join(others)} or {last}" if others else last


def _path(steps: Iterable[str | int]) -> str:
    """``path.to.key``, with quotes around a key that has a dot itself."""
    return ".".join(repr(s) if "." in str(s) else str(s) for s in steps)


def _child(node: yaml.Node, step: str | int) -> tuple[int, yaml.Node] | None:
    """The line and the node of a key or an item; None if it is not there."""
    if isinstance(node, yaml.MappingNode):
        for key, value in reversed(node.value):  # merged keys (<<) come first
            if key.value == str(step):
                return key.start_mark.line + 1, value
    if isinstance(node, yaml.SequenceNode) and isinstance(step, int):
        item = node.value[step]
        return item.start_mark.line + 1, item
    return None


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise ProblemFileError(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ProblemFileError(f"{path}: cannot be read: not UTF-8 text") from None


def _syntax_message(path: Path, text: str, error: yaml.YAMLError) -> str:
    line, problem = None, str(error)
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark is not None:
        line = error.problem_mark.line + 1
        problem = ", ".join(filter(None, (error.context, error.problem)))
    if isinstance(error, yaml.reader.ReaderError):
        line = text.count("\n", 0, error.position) + 1
        problem = f"the character {chr(error.character)!r} is not allowed"
    if r"'\t'" in problem:
        problem = "a tab; indent with spaces"
    place = path if line is None else f"{path}:{line}"
    return f"{place}: not valid YAML: {problem}"
