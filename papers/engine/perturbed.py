"""What was measured, changed in each of its numbers, to see whether statements turn.

A statement that no change of any number turns says nothing about what was measured. The
changes follow from what was measured by construction: no list of errors is needed.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import fields, is_dataclass, replace
from types import MappingProxyType
from typing import Any, Final, TypeAlias

import numpy as np
import pandas as pd

from papers.engine.panels import Solved
from propopt.base.arrays import Array
from propopt.results.explanation import Explanation


_Path: TypeAlias = tuple[Any, ...]
_Change: TypeAlias = Callable[[Array], Array]


def _shuffled(values: Array) -> Array:
    """In another order along each axis, the same at each call."""
    order = random.Random(len(values.ravel()))
    for axis, n in enumerate(values.shape):
        places = order.sample(range(n), n)
        values = np.take(values, places, axis=axis)
    return values


def _at_end(values: Array, place: int, factor: float) -> Array:
    """The first or the last number, row or table times a factor."""
    changed = np.array(values, dtype=float)
    if changed.ndim and len(changed):
        changed[place] *= factor
    return changed


CHANGES: Final[Mapping[str, _Change]] = MappingProxyType(
    {
        "zero": np.zeros_like,
        "with the other sign": lambda x: np.logical_not(x) if x.dtype == bool else -x,
        "× 1.01": lambda x: 1.01 * x,
        "× 0.99": lambda x: 0.99 * x,
        "× 1.5": lambda x: 1.5 * x,
        "× 1e3": lambda x: 1e3 * x,
        "× 1e-3": lambda x: 1e-3 * x,
        "+ 1": lambda x: x + 1.0,
        "− 1": lambda x: x - 1.0,
        "one": np.ones_like,
        "first × 1e3": lambda x: _at_end(x, 0, 1e3),
        "last × 1e3": lambda x: _at_end(x, -1, 1e3),
        "first with the other sign": lambda x: _at_end(x, 0, -1.0),
        "last with the other sign": lambda x: _at_end(x, -1, -1.0),
        "reversed": np.flip,
        "shuffled": _shuffled,
    }
)
"""What is done to numbers; those of whole arrays at once."""


def perturbed(measured: Any) -> Iterator[tuple[str, Any]]:
    """What was measured with one array, number or column of it changed, or with all.

    Parameters
    ----------
    measured : object
        Arrays, numbers and tables, in data classes, tuples, lists and mappings; or a
        sweep, of which losses and attributions are changed.

    Yields
    ------
    str, object
        What is changed and how, and the changed copy.

    Examples
    --------
    >>> next(perturbed({"a": 2.0, "b": [1.0]}))
    ('all: zero', {'a': 0.0, 'b': [0.0]})
    """
    if isinstance(measured, Solved):  # in every draw, whose median decides
        for own in zip(*map(_of_sweep, measured.draws), strict=True):
            (change, first), *others = own
            yield change, replace(first, redrawn=tuple(one for _, one in others))
        return
    places = list(_numbers(measured, ()))
    choices: list[tuple[str, frozenset[_Path]]] = [("all", frozenset(places))]
    choices += [
        ("/".join(map(str, own)) or "value", frozenset([own])) for own in places
    ]
    for where, chosen in choices[: 1 if len(places) == 1 else None]:
        for name, change in CHANGES.items():
            yield f"{where}: {name}", _changed(measured, (), chosen, change)


_FACTORS: Final = (1e-3, 0.5, 2.0, 1e3)


def _of_sweep(solved: Solved) -> Iterator[tuple[str, Solved]]:
    """A sweep with other losses, or other attributions, of its optima or baselines."""
    for name in ("baselines", "optimized"):
        every: tuple[Explanation, ...] = getattr(solved.trade_offs, name)
        mirrored = [one.losses for one in reversed(every)]
        yield (
            f"losses of {name}: reversed",
            _with(solved, name, every, [{"losses": own} for own in mirrored]),
        )
        rising = [
            {"losses": {k: 2.0**place * x for k, x in one.losses.items()}}
            for place, one in enumerate(every)
        ]
        yield f"losses of {name}: rising", _with(solved, name, every, rising)
        for factor in _FACTORS:
            losses = [{k: factor * x for k, x in one.losses.items()} for one in every]
            yield (
                f"losses of {name}: × {factor:g}",
                _with(solved, name, every, [{"losses": own} for own in losses]),
            )
        for told, change in CHANGES.items():
            moved = [{"attributions": change(one.attributions)} for one in every]
            yield f"attributions of {name}: {told}", _with(solved, name, every, moved)


def _with(
    solved: Solved,
    name: str,
    every: Sequence[Explanation],
    fields_of_each: Sequence[Mapping[str, Any]],
) -> Solved:
    """The same with other fields of its optima or baselines."""
    pairs = zip(every, fields_of_each, strict=True)
    changed = tuple(replace(one, **own) for one, own in pairs)
    parts: dict[str, Any] = {name: changed}
    return replace(solved, trade_offs=replace(solved.trade_offs, **parts))


def _numbers(value: Any, path: _Path) -> Iterator[_Path]:
    """Where numbers are."""
    if _is_numeric(value):
        yield path
        return
    for key, part in _parts(value):
        yield from _numbers(part, (*path, key))


def _changed(value: Any, path: _Path, chosen: frozenset[_Path], change: _Change) -> Any:
    if _is_numeric(value):
        return _applied(value, change) if path in chosen else value
    parts = {
        key: _changed(part, (*path, key), chosen, change) for key, part in _parts(value)
    }
    return _with_parts(value, parts)


def _is_numeric(value: Any) -> bool:
    """Whether it is a number, or an array or column of numbers."""
    if isinstance(value, np.ndarray | pd.Series):
        return value.dtype.kind in "bif"
    return isinstance(value, float | np.floating)


def _applied(value: Any, change: _Change) -> Any:
    """The changed number or array, of the type that it had."""
    changed = change(np.asarray(value))
    if isinstance(value, pd.Series):
        return pd.Series(changed, index=value.index, name=value.name)
    return changed if isinstance(value, np.ndarray) else float(changed)


def _parts(value: Any) -> Iterator[tuple[Any, Any]]:
    """Parts by their names or places: fields come before what is kept of them."""
    if isinstance(value, pd.DataFrame | Mapping):
        yield from value.items()
    elif isinstance(value, tuple | list):
        yield from enumerate(value)
    elif is_dataclass(value) and not isinstance(value, type):
        yield from vars(value).items()


def _with_parts(value: Any, parts: dict[Any, Any]) -> Any:
    """The same with other parts; what is kept of changed fields is dropped."""
    if all(parts[key] is part for key, part in _parts(value)):
        return value
    if isinstance(value, pd.DataFrame):
        return pd.DataFrame(parts, index=value.index)
    if isinstance(value, Mapping):
        return parts
    if isinstance(value, list):
        return [*parts.values()]
    if isinstance(value, tuple):
        made: Any = getattr(type(value), "_make", tuple)
        return made(parts.values())
    return _with_fields(value, parts)


def _with_fields(value: Any, parts: dict[str, Any]) -> Any:
    names = {own.name for own in fields(value)}
    moved = any(parts[name] is not vars(value)[name] for name in names)
    changed = copy(value)
    for name, part in parts.items():
        if name in names or not moved:
            vars(changed)[name] = part
        else:
            del vars(changed)[name]
    return changed
