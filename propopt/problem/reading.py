"""YAML files read strictly: every error says file, line, key and what would do."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import yaml
from pydantic import ValidationError
from pydantic_core import ErrorDetails

from propopt.errors import ProblemFileError
from propopt.problem.schema import ProblemSchema


Location: TypeAlias = tuple[str | int, ...]


class _Loader(yaml.SafeLoader):
    """Plain data only; ``1e-3`` is a number, as in YAML 1.2 and in Python."""


_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
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
        try:
            text = place.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise ProblemFileError(f"{place}: cannot be read: {error}") from None
        try:
            root = yaml.compose(text, Loader=_Loader)
        except yaml.YAMLError as error:
            raise ProblemFileError(_syntax_message(place, error)) from None
        if not isinstance(root, yaml.MappingNode):
            raise ProblemFileError(f"{place}:1: expected a mapping of keys to values")
        source = cls(place, root)
        source._refuse_duplicates(root, ())
        return source

    def data(self) -> Any:
        """The content as plain Python values."""
        loader = _Loader("")
        try:
            return loader.construct_document(self.root)
        except yaml.YAMLError as error:
            raise ProblemFileError(_syntax_message(self.path, error)) from None
        finally:
            loader.dispose()

    def error(self, location: Location, message: str) -> ProblemFileError:
        """The error ``file:line: path.to.key: message``."""
        line, steps = self._find(location)
        key = ".".join(str(step) for step in steps)
        return ProblemFileError(
            f"{self.path}:{line}: {f'{key}: ' if key else ''}{message}"
        )

    def _find(self, location: Location) -> tuple[int, list[str | int]]:
        """The line of the innermost key on the way, and the keys on the way.

        Steps that are not in the file, such as the chosen kind of a union, are left
        out; a last step that is not there is a missing key.
        """
        node, line, steps = self.root, self.root.start_mark.line + 1, []
        for place, step in enumerate(location):
            found = _child(node, step)
            if found is not None:
                line, node = found
                steps.append(step)
            elif place == len(location) - 1:
                steps.append(step)
        return line, steps

    def _refuse_duplicates(self, node: yaml.Node, location: Location) -> None:
        if isinstance(node, yaml.SequenceNode):
            for place, item in enumerate(node.value):
                self._refuse_duplicates(item, (*location, place))
        elif isinstance(node, yaml.MappingNode):
            seen: set[str] = set()
            for key, value in node.value:
                name = str(key.value)
                if name in seen:
                    line = key.start_mark.line + 1
                    path = ".".join(str(s) for s in (*location, name))
                    raise ProblemFileError(f"{self.path}:{line}: {path}: given twice")
                seen.add(name)
                self._refuse_duplicates(value, (*location, name))


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
        lines = [str(_located(source, detail)) for detail in error.errors()]
        raise ProblemFileError("\n".join(dict.fromkeys(lines))) from None


def _located(source: Source, detail: ErrorDetails) -> ProblemFileError:
    location: Location = detail["loc"]
    context = detail.get("ctx", {})
    if detail["type"] == "unknown_key":
        return source.error((*location, context["key"]), detail["msg"])
    if detail["type"] == "missing":
        return source.error(location, "required, and missing")
    message = detail["msg"].removeprefix("Input should be ")
    if message == detail["msg"] or isinstance(detail["input"], dict | list):
        return source.error(location, detail["msg"])
    return source.error(location, f"expected {message}, got {detail['input']!r}")


def _child(node: yaml.Node, step: str | int) -> tuple[int, yaml.Node] | None:
    """The line and the node of a key or an item; None if it is not there."""
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            if str(key.value) == str(step):
                return key.start_mark.line + 1, value
    if isinstance(node, yaml.SequenceNode) and isinstance(step, int):
        item = node.value[step]
        return item.start_mark.line + 1, item
    return None


def _syntax_message(path: Path, error: yaml.YAMLError) -> str:
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark is not None:
        return f"{path}:{error.problem_mark.line + 1}: not valid YAML: {error.problem}"
    return f"{path}: not valid YAML: {error}"
