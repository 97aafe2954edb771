"""YAML files read strictly: the line of each key is known."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, final

import yaml

from propopt.errors import ProblemFileError
from propopt.problems.parts import Location
from propopt.problems.sources.base import Faults, Source, key_path, shown_key
from propopt.problems.sources.plain import (
    MOST_VALUES,
    TEXT,
    complaint,
    compose,
    plain,
    refusal,
)


@final
@dataclass(frozen=True, eq=False)
class YamlSource(Source):
    """A YAML text that knows the line of each key."""

    file: Path
    root: yaml.Node
    _items: dict[int, dict[str | int, tuple[int, yaml.Node]]] = field(
        default_factory=dict
    )
    twice: Faults = field(default_factory=Faults)
    unread: Faults = field(default_factory=Faults)

    @classmethod
    def read(cls, path: str | Path) -> YamlSource:
        """Parse a file, without running or building anything that it names.

        Raises
        ------
        ProblemFileError
            If it is not YAML within the limits of ``problems.sources.plain``, or more
            than plain data.
        """
        place = Path(path)
        root = compose(place)
        if not isinstance(root, yaml.MappingNode):
            came = "nothing" if root is None else _NODES[type(root)]
            message = f"expected a mapping of keys to values, got {came}"
            if place.suffix.lower() in (".csv", ".tsv"):
                message += (
                    "; a table goes by propopt explain --csv FILE --target COLUMN"
                )
            raise complaint(place, 1, message)
        source = cls(place, root)
        source._check(root, (), {})
        if source.unread.found:
            source.unread.found += source.twice.found
            source.unread.refuse()
        return source

    @property
    def faults(self) -> Faults:
        """Keys that come twice, of which the last is read."""
        return self.twice

    @property
    def path(self) -> Path:
        return self.file

    @property
    def files(self) -> tuple[Path, ...]:
        return (self.file,)

    def data(self) -> Any:
        return plain(self.root)

    def error(
        self, location: Location, message: str, *, missing: str | None = None
    ) -> ProblemFileError:
        line, steps = self._find(location)
        keys = steps if missing is None else (*steps, missing)
        return self._at(line, keys, message)

    def remark(self, location: Location, message: str) -> ProblemFileError:
        return self._at(self.line(location), (), message)

    def line(self, location: Location) -> int:
        return self._find(location)[0]

    def _at(self, line: int, steps: Location, message: str) -> ProblemFileError:
        keys = key_path(steps)
        return complaint(self.path, line, f"{keys}: {message}" if keys else message)

    def _find(self, location: Location) -> tuple[int, Location]:
        """The line of the innermost key on the way, and the keys that are there."""
        node, line = self.root, self.root.start_mark.line + 1
        steps: Location = ()
        for step in location:
            item = self._items.get(id(node), {}).get(step)
            if item is not None:
                line, node = item
                steps = (*steps, step)
        return line, steps

    def _check(
        self, node: yaml.Node, steps: Location, sizes: dict[int, int | None]
    ) -> int:
        """Note what is no plain data, keys that come twice, and endless aliases.

        Returns how many values the node stands for, aliases written out. ``sizes`` has
        them by node; None for the nodes that enclose this one.
        """
        line = node.start_mark.line + 1
        size = sizes.get(id(node), 0)
        if size:
            return size
        message = refusal(node) if size == 0 else _ENDLESS
        if message is not None:
            self.unread.found.append(self._at(line, steps, message))
            return 1
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
            keys: set[str] = set()
            for key, value in node.value:
                line = key.start_mark.line + 1
                message = _refused_key(key)
                if message is not None:
                    self.unread.found.append(self._at(line, steps, message))
                    continue
                if key.value in keys:
                    again = self._at(line, (*steps, key.value), "given twice")
                    self.twice.found.append(again)
                keys.add(key.value)
                yield key.value, (line, value)


def _refused_key(key: yaml.Node) -> str | None:
    """Why a node is no key; None if it is."""
    if key.tag != TEXT or refusal(key) is not None:
        plain_one = isinstance(key, yaml.ScalarNode)
        came = shown_key(key.value) or "nothing" if plain_one else _NODES[type(key)]
        return f"expected a key that is text, got {came}"
    if key.value == "<<":
        return "merge keys (<<) are not read; write out what they stand for"
    return None


_ENDLESS = "an alias stands inside what it repeats"
_NODES: dict[type[yaml.Node], str] = {
    yaml.MappingNode: "a mapping",
    yaml.SequenceNode: "a list",
    yaml.ScalarNode: "a single value",
}
