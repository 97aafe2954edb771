"""YAML files read strictly: every error says file, line, key and what would do."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import yaml
from pydantic import ValidationError
from pydantic_core import ErrorDetails

from propopt.checks import did_you_mean
from propopt.errors import (
    Infeasible,
    InvalidInput,
    MissingExtra,
    ProblemFileError,
    Refused,
)
from propopt.problems.plain import MOST_VALUES, TEXT, complaint, compose, plain, refusal
from propopt.problems.schema import ProblemSchema, kinds, sections_at


Location: TypeAlias = tuple[str | int, ...]

MOST_MISTAKES = 20
"""That one complaint lists."""


@dataclass(frozen=True, eq=False)
class Source:
    """A YAML text that knows the line of each key."""

    path: Path
    root: yaml.Node
    _items: dict[int, dict[str | int, tuple[int, yaml.Node]]] = field(
        default_factory=dict
    )

    @classmethod
    def read(cls, path: str | Path) -> Source:
        """Parse a file, without running or building anything that it names.

        Raises
        ------
        ProblemFileError
            If it is not YAML within the limits of ``problems.plain``, or more
            than plain data.
        """
        place = Path(path)
        root = compose(place)
        if not isinstance(root, yaml.MappingNode):
            came = "nothing" if root is None else _NODES[type(root)]
            message = f"expected a mapping of keys to values, got {came}"
            raise complaint(place, 1, message)
        source = cls(place, root)
        source._check(root, (), {})
        return source

    def data(self) -> Any:
        """The content as plain Python values."""
        return plain(self.root)

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
        keys = steps if missing is None else (*steps, missing)
        return self._at(line, keys, message)

    def line(self, location: Location) -> int:
        """The line of the innermost key on the way that is there."""
        return self._find(location)[0]

    @contextmanager
    def blaming(self, *location: str | int) -> Iterator[None]:
        """Errors of input raised inside name this place of the file."""
        try:
            yield
        except (InvalidInput, Refused, Infeasible, MissingExtra) as error:
            raise self.error(location, str(error)) from error

    def _at(self, line: int, steps: Location, message: str) -> ProblemFileError:
        keys = _path(steps)
        return complaint(self.path, line, f"{keys}: {message}" if keys else message)

    def _find(self, location: Location) -> tuple[int, Location]:
        """The line of the innermost key on the way, and the keys that are there."""
        node, line = self.root, self.root.start_mark.line + 1
        steps: Location = ()
        for step in location:
            found = self._items.get(id(node), {}).get(step)
            if found is not None:
                line, node = found
                steps = (*steps, step)
        return line, steps

    def _check(
        self, node: yaml.Node, steps: Location, sizes: dict[int, int | None]
    ) -> int:
        """Refuse what is no plain data, keys that come twice, and endless aliases.

        Returns how many values the node stands for, aliases written out. ``sizes`` has
        them by node; None for the nodes that enclose this one.
        """
        line = node.start_mark.line + 1
        known = sizes.get(id(node), 0)
        if known:
            return known
        message = refusal(node) if known == 0 else _ENDLESS
        if message is not None:
            raise self._at(line, steps, message)
        sizes[id(node)] = None
        items = self._items[id(node)] = dict(self._children(node, steps))
        size = 1 + sum(
            self._check(child, (*steps, step), sizes)
            for step, (_, child) in items.items()
        )
        if size > MOST_VALUES:
            message = f"more than {MOST_VALUES:,} values, aliases written out"
            raise self._at(line, steps, message)
        sizes[id(node)] = size
        return size

    def _children(
        self, node: yaml.Node, steps: Location
    ) -> Iterator[tuple[str | int, tuple[int, yaml.Node]]]:
        """Keys or positions, each with its line and its node."""
        if isinstance(node, yaml.SequenceNode):
            for number, item in enumerate(node.value):
                yield number, (item.start_mark.line + 1, item)
        if isinstance(node, yaml.MappingNode):
            seen: set[str] = set()
            for key, value in node.value:
                line = key.start_mark.line + 1
                message = _refused_key(key)
                if message is not None:
                    raise self._at(line, steps, message)
                if key.value in seen:
                    raise self._at(line, (*steps, key.value), "given twice")
                seen.add(key.value)
                yield key.value, (line, value)


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
        lines = [str(_located(source, detail)) for detail in found[:MOST_MISTAKES]]
        if len(found) > MOST_MISTAKES:
            rest = f"and {len(found) - MOST_MISTAKES:,} more mistakes, from here on"
            place = source.line(found[MOST_MISTAKES]["loc"])
            lines.append(str(complaint(source.path, place, rest)))
        raise ProblemFileError("\n".join(dict.fromkeys(lines))) from None


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
    "less_than_equal": "a number <= {le:,}",
    "list_type": "a list",
    "loss_type": "a weight, or a mapping with the settings of the loss",
    "model_attributes_type": _MAPPING,
    "model_type": _MAPPING,
    "string_pattern_mismatch": "letters, digits, '_', '-' and '.' only",
    "string_too_long": "at most {max_length} characters",
    "string_type": "text",
    "too_long": "at most {max_length} values",
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
    return text if len(text) <= _SHORT else f"{text[:40]}… ({len(text)} characters)"


def _either(choices: Sequence[str]) -> str:
    """``'a', 'b' or 'c'``."""
    *others, last = map(repr, choices)
    return f"{', '.join(others)} or {last}" if others else last


def _path(steps: Iterable[str | int]) -> str:
    """``path.to.key``, with quotes around a key that is not one plain word."""
    return ".".join(map(_step, steps))


def _step(step: str | int) -> str:
    text = str(step)
    if len(text) > _SHORT:
        return f"{text[:40]!r}… ({len(text):,} characters)"
    return repr(text) if "." in text or not text.isprintable() else text


def _refused_key(key: yaml.Node) -> str | None:
    """Why a node is no key; None if it is."""
    if key.tag != TEXT or refusal(key) is not None:
        plain_one = isinstance(key, yaml.ScalarNode)
        came = _step(key.value) or "nothing" if plain_one else _NODES[type(key)]
        return f"expected a key that is text, got {came}"
    if key.value == "<<":
        return "merge keys (<<) are not read; write out what they stand for"
    return None


_ENDLESS = "an alias stands inside what it repeats"
_SHORT = 60
"""Characters that are shown."""
