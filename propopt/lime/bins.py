"""How values of columns become bins, and what bins are called.

- :func:`~propopt.lime.bins.by_column`: what is given for some columns.
- :class:`~propopt.lime.bins.BinRule`: how many bins, or where they end;
  :func:`~propopt.lime.bins.read_rules` reads one for each column.
- :func:`~propopt.lime.bins.interval_words`: what bins are called.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final, TypeAlias, final

import numpy as np
import pandas as pd

from propopt.base.arrays import Array
from propopt.base.checks import did_you_mean, read_array
from propopt.base.errors import InvalidInput
from propopt.tables.frames import as_frame, listed


# ---- What is given for some columns, by name or position


def by_column(given: Any, label: str, names: Sequence[str]) -> list[Any]:
    """What is given for each of D columns, None where nothing is; names (D,).

    A mapping or a Series has it by names or positions, a DataFrame in columns, which
    end where nothing but missing values follows; a sequence has one for each column.
    """
    pairs = [] if given is None else by_name(given)
    result: list[Any] = [None] * len(names)
    if pairs is None:
        if isinstance(given, str) or not hasattr(given, "__len__"):
            raise InvalidInput(f"{label}: expected one for each column, got {given!r}")
        if len(given) != len(names):
            raise InvalidInput(
                f"{label}: expected one for each of {len(names)} columns, got "
                f"{len(given)}; what is of some columns is given by name"
            )
        return list(given)
    places = [_place(key, label, names) for key, _ in pairs]
    for j, (key, one) in zip(places, pairs, strict=True):
        if places.count(j) > 1:
            raise InvalidInput(f"{label}: column {key!r} is given more than once")
        result[j] = one
    return result


def by_name(given: Any) -> list[tuple[Hashable, Any]] | None:
    """What is given with names or positions of columns; None if it has none."""
    if isinstance(given, Mapping | pd.Series):
        return list(given.items())
    frame = as_frame(given, "X")
    if frame is None:
        return None
    columns = (frame.table.iloc[:, k] for k in range(frame.table.shape[1]))
    return [(column.name, _ended(column)) for column in columns]


def _ended(column: pd.Series[Any]) -> Any:
    """A column without the missing values at its end; None if it has no others."""
    last = np.flatnonzero(column.notna()).max(initial=-1)
    return None if last < 0 else column.iloc[: last + 1].to_numpy()


def columns_given(*parts: Any) -> tuple[int, tuple[str, ...] | None]:
    """How many columns are spoken of, and their names; None if they go by position."""
    pairs = [by_name(part) for part in parts if part is not None]
    keys = list(dict.fromkeys(key for own in pairs for key, _ in own or ()))
    lists = [part for part in parts if part is not None and by_name(part) is None]
    counts = [len(part) if hasattr(part, "__len__") else 1 for part in lists]
    if not counts and not all(map(_is_place, keys)):
        return len(keys), tuple(map(str, keys))
    places = [1 + int(key) for key in keys if _is_place(key)]  # type: ignore[call-overload]
    return max([*counts, *places], default=0), None


def _is_place(key: Hashable) -> bool:
    return isinstance(key, int | np.integer)


def _place(key: Hashable, label: str, names: Sequence[str]) -> int:
    """The position of a column, by its name or itself."""
    if str(key) in names:
        return names.index(str(key))
    if isinstance(key, int | np.integer) and 0 <= key < len(names):
        return int(key)
    raise InvalidInput(
        f"{label}: no column {key!r}{did_you_mean(key, names)}; there are "
        f"{listed(names)}"
    )


# ---- How the bins of each column are chosen


BinChoice: TypeAlias = int | str | Sequence[float] | Array
BinsOfColumns: TypeAlias = int | str | Sequence[BinChoice] | Mapping[str, BinChoice]

NAMED_BINS: Final = {"quartile": 4, "decile": 10}
"""The package's names of numbers of bins."""


@final
@dataclass(frozen=True, eq=False)
class BinRule:
    """Bins between quantiles of the data, or between edges that are given."""

    n_bins: int  # p, at least 2
    # (p − 1,): where bins end, increasing; None for the quantiles at b/p
    edges: Array | None = None

    def inner_edges(self, values: Array) -> Array:
        """Where bins of these numbers end, fewer where quantiles are equal."""
        if self.edges is not None:
            return self.edges
        if len(values) == 0:
            return np.zeros(0)
        at = 100.0 * np.arange(1, self.n_bins) / self.n_bins
        return np.unique(np.percentile(values, at))


def read_rules(n_bins: object, names: Sequence[str]) -> tuple[BinRule, ...]:
    """A rule for each of D columns; names (D,)."""
    if isinstance(n_bins, str) or not isinstance(
        n_bins, Mapping | Sequence | np.ndarray
    ):
        return (_rule(n_bins, "n_bins"),) * len(names)
    return tuple(
        _rule(4 if one is None else one, f"n_bins[{name!r}]")
        for name, one in zip(names, by_column(n_bins, "n_bins", names), strict=True)
    )


def _rule(user_bins: Any, label: str) -> BinRule:
    if isinstance(user_bins, str):
        if user_bins not in NAMED_BINS:
            raise InvalidInput(
                f"{label}: expected an integer >= 2, edges, or one of "
                f"{listed(tuple(NAMED_BINS))}, got {user_bins!r}"
                f"{did_you_mean(user_bins, tuple(NAMED_BINS))}"
            )
        return BinRule(NAMED_BINS[user_bins])
    if isinstance(user_bins, Sequence | np.ndarray) and np.ndim(user_bins) > 0:
        edges = increasing(user_bins, label)
        return BinRule(len(edges) + 1, edges)
    if (
        isinstance(user_bins, bool)
        or not isinstance(user_bins, int | np.integer)
        or user_bins < 2
    ):
        raise InvalidInput(
            f"{label}: expected an integer >= 2, 'quartile', 'decile' or edges, got "
            f"{user_bins!r}; a single bin leaves nothing to explain"
        )
    return BinRule(int(user_bins))


def increasing(user_edges: Any, label: str) -> Array:
    """Edges that are finite and increase."""
    edges = read_array(user_edges, label, ndim=1)
    if (np.diff(edges) <= 0.0).any():
        raise InvalidInput(f"{label}: edges have to increase, got {edges.tolist()}")
    return edges


# ---- What bins are called, so that no two edges look the same


def interval_words(edges: Array, *, below: bool = True) -> tuple[str, ...]:
    """The words of bins between inner edges, to stand behind the name of a column.

    Edges have the fewest digits, at least four, that tell them apart. They belong to
    the bin below them, or to the one above.
    """
    if len(edges) == 0:
        return ("any",)
    ends = _told_apart(edges)
    over, under = (">", "≤") if below else ("≥", "<")
    between = (f"{over} {low} and {under} {high}" for low, high in pairwise(ends))
    return (f"{under} {ends[0]}", *between, f"{over} {ends[-1]}")


def _told_apart(edges: Array) -> list[str]:
    """Each is written nearer to itself than a tenth of any bin."""
    narrowest = np.diff(edges).min(initial=np.inf)
    for digits in range(4, 17):
        ends = [f"{edge:.{digits}g}" for edge in edges]
        close = np.abs(np.array(ends, np.float64) - edges) <= 0.1 * narrowest
        if len(set(ends)) == len(ends) and close.all():
            return ends
    return [f"{edge:.17g}" for edge in edges]
