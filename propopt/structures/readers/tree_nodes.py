"""Nodes of fitted trees: cuts, what they see of columns, and scores."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, NamedTuple, TypeAlias, final

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from propopt.base.arrays import Array, Indices, Mask
from propopt.structures.boxes.boxes import DOUBLE_TOLERANCE, TreeSum
from propopt.structures.boxes.sets import ColumnMap, Tree, largest_at_most
from propopt.structures.readers.pipelines import (
    ColumnSource,
    ColumnView,
    ModelOutput,
    table_numbers,
)
from propopt.tables.frames import as_frame


# ---- Trees that are written node by node


class Split(NamedTuple):
    """A node that asks; what goes left and right is yet to be read."""

    feature: int
    threshold: float
    missing_left: bool
    left: Any
    right: Any
    left_codes: Mask | None = None


def written(
    root: Any, read: Callable[[Any], Split | float | None], most: float = np.inf
) -> Tree | None:
    """The tree of what is read; None where a node is not, or there are too many."""
    places, children = [(root, -1)], list[int]()
    rows, listed = list[tuple[int, float, bool, float]](), dict[int, Mask]()
    while places:
        subject, child = places.pop()
        node, found = len(rows), read(subject)
        if found is None or node > most:
            return None
        children += [-1, -1]
        if child >= 0:
            children[child] = node
        if not isinstance(found, Split):
            rows.append((-1, np.inf, False, found))
            continue
        rows.append((found.feature, found.threshold, found.missing_left, 0.0))
        if found.left_codes is not None:
            listed[node] = found.left_codes
        places += [(found.left, 2 * node), (found.right, 2 * node + 1)]
    feature, cuts, missing_left, value = zip(*rows, strict=True)
    sides = children[::2], children[1::2]
    return Tree.of(feature, cuts, *sides, value, missing_left, listed)


# ---- Nodes that send several intervals of a column to each side, as nodes with one cut


MOST_NODES: Final = 50_000
"""Of one tree: one that would have more is not made."""

Fan: TypeAlias = tuple[Array, Mask]
"""What a node does with runs of numbers: where they end, increasing to infinity, and
whether each goes left, which alternates."""


def fan(ends: Array, left: Mask) -> Fan:
    """The fan of any runs: up to each of m − 1 ends, and beyond the last."""
    ends = np.append(ends, np.inf)
    some = np.append(-np.inf, ends[:-1]) < ends
    ends, left = ends[some], left[some]
    last = np.append(left[1:] != left[:-1], True)
    return ends[last], left[last]


def fanned(tree: Tree, fans: Mapping[int, Fan]) -> Tree | None:
    """The tree whose nodes with fans do what they say; None if it is too large."""
    if not fans:
        return tree
    if all(len(left) <= 2 for _, left in fans.values()):
        return _cut_once(tree, fans)
    return _grown(tree, fans)


def _cut_once(tree: Tree, fans: Mapping[int, Fan]) -> Tree:
    """The same nodes, with one cut or none in each fan."""
    threshold, missing_left = tree.threshold.copy(), tree.missing_left.copy()
    left, right = tree.left.copy(), tree.right.copy()
    for node, (ends, goes_left) in fans.items():
        threshold[node] = ends[0]
        if not goes_left[0]:
            left[node], right[node] = right[node], left[node]
            missing_left[node] = not missing_left[node]
    return replace(
        tree, threshold=threshold, missing_left=missing_left, left=left, right=right
    )


_Runs: TypeAlias = list[tuple[float, bool]]
"""Where runs of numbers end, and whether they go left."""

_Came: TypeAlias = tuple[float, float, bool]
"""Numbers low < x ≤ high, and whether NaN is with them."""


def _grown(tree: Tree, fans: Mapping[int, Fan]) -> Tree | None:
    """A chain of nodes for each fan, which send their first run left."""

    def read(place: tuple[int, Mapping[int, _Came], _Runs | None]) -> Split | float:
        """A node, or what is left of its runs, by what comes to it of columns."""
        node, came, runs = place
        column, missing_left = int(tree.feature[node]), bool(tree.missing_left[node])
        side = {True: int(tree.left[node]), False: int(tree.right[node])}
        if column < 0:
            return float(tree.value[node])
        if node in tree.left_codes:
            left, right = (side[True], came, None), (side[False], came, None)
            return Split(column, np.inf, False, left, right, tree.left_codes[node])
        low, high, missing = here = came.get(column, (-np.inf, np.inf, True))
        if runs is None:
            cut = fan(tree.threshold[[node]], np.array([True, False]))
            runs = _runs(fans.get(node, cut), here)
            if missing and missing_left not in (goes for _, goes in runs):
                runs = [(-np.inf, missing_left), *runs]  # for NaN alone
        (end, goes), *others = runs
        if not others:
            return read((side[goes], {**came, column: here}, None))
        first = missing and goes == missing_left
        part = {**came, column: (low, min(high, end), first)}
        rest = {**came, column: (max(low, end), high, missing and not first)}
        last = (node, rest, others)
        return Split(column, end, first, (side[goes], part, None), last)

    return written((0, {}, None), read, MOST_NODES)


def _runs(runs: Fan, came: _Came) -> _Runs:
    """Ends and sides of the runs that numbers of an interval are in."""
    (ends, left), (low, high, _) = runs, came
    if low >= high:
        return []
    some = slice(np.searchsorted(ends, low, "right"), np.searchsorted(ends, high) + 1)
    return list(zip(ends[some].tolist(), left[some].tolist(), strict=True))


# ---- Thresholds for numbers in float64 of models that compare them in float32


def at_most_in_single(thresholds: ArrayLike) -> Array:
    """The largest float64 x with float32(x) ≤ t, for each threshold t.

    With s the largest float32 ≤ t, x is the middle of s and the next float32, or the
    number before it where the middle is rounded up (to an even one).
    """
    exact = np.asarray(thresholds, dtype=np.float64)
    with np.errstate(over="ignore"):
        single = exact.astype(np.float32)
    single = np.where(single > exact, _next(single, -np.inf), single)
    middle = 0.5 * _widened(single) + 0.5 * _widened(_next(single, np.inf))
    with np.errstate(over="ignore"):
        rounded_up = middle.astype(np.float32) > single
    cut = np.where(rounded_up, np.nextafter(middle, -np.inf), middle)
    return np.where(np.isinf(exact), exact, cut)


def below_in_single(thresholds: ArrayLike) -> Array:
    """The largest float64 x with float32(x) < float32(t), for each threshold t."""
    single = np.asarray(thresholds, dtype=np.float32)
    return at_most_in_single(_next(single, -np.inf))


def _next(single: Any, end: float) -> Any:
    """The float32 after each on the way to an infinite end."""
    with np.errstate(over="ignore"):
        return np.nextafter(single, np.float32(end))


def _widened(single: Any) -> Array:
    """In float64, with 2^128 for infinity, as rounding to float32 takes it."""
    return np.clip(single.astype(np.float64), -(2.0**128), 2.0**128)


# ---- What a model sees of a column, asked of the steps before it


Numbers: TypeAlias = Callable[[Any], Array]
"""What a library makes of what it is given: numbers and codes in float64, (n, M)."""

FARTHEST: Final = 1e100
"""Steps are asked for no larger numbers, of which they might make infinite ones."""


def ends_asked(trees: Sequence[Tree]) -> dict[int, Array]:
    """All that each column of the model is compared with, increasing."""
    features = [np.unique(tree.feature) for tree in trees]
    used = np.unique(np.concatenate([[-1], *features])).astype(np.intp)
    ends = {}
    for k in used[used >= 0].tolist():
        thresholds = [tree.threshold[tree.feature == k] for tree in trees]
        listed = [
            code_runs(codes)[0]
            for tree in trees
            for node, codes in tree.left_codes.items()
            if tree.feature[node] == k
        ]
        ends[k] = np.unique(np.concatenate([*thresholds, *listed]))
    return ends


def code_runs(listed: Mask) -> tuple[Array, Mask]:
    """Ends of runs of numbers, which are truncated, and whether each run is listed."""
    ends = np.nextafter(np.arange(1.0, len(listed) + 1), 0.0)
    return np.append(-1.0, ends), np.concatenate([[False], listed, [False]])


@final
@dataclass(frozen=True, eq=False)
class Questions:
    """What is asked of a view."""

    view: ColumnView  # what the model is given
    numbers: Numbers  # what it makes of it

    def missing(self, seen: Sequence[int]) -> Mapping[int, float]:
        """What is seen of a missing number in some columns; NaN if it is refused."""
        if self.view.plain:
            return dict.fromkeys(seen, np.nan)
        try:
            columns = np.array(seen, dtype=np.intp)
            answer = self.view.ask(self.numbers, columns, np.full(len(seen), np.nan))
        except (TypeError, ValueError):
            alone = [self._one_by_one(k, np.array([np.nan])) for k in seen]
            answer = np.concatenate([np.zeros(0), *alone])
        return dict(zip(seen, answer.tolist(), strict=True))

    def cuts(self, ends: Mapping[int, Array]) -> Mapping[int, Array]:
        """The largest numbers of which at most each end is seen."""
        sources = self.view.sources
        rising = [k for k in ends if sources[k].kind in ("straight", "rising")]
        if not rising:
            return ends
        seen = np.repeat(rising, [len(ends[k]) for k in rising])
        asked = np.concatenate([ends[k] for k in rising])

        def column(values: Array) -> Array:
            near = np.clip(values, -FARTHEST, FARTHEST)
            return self.view.ask(self.numbers, seen, near)

        result = largest_at_most(column, asked, _near_secants(column, asked))
        return {**ends, **{k: result[seen == k] for k in rising}}

    def codes(self, k: int) -> Array:
        """What is seen of each code of the category behind a column; NaN if refused."""
        n_codes = self.view.n_codes[self.view.sources[k].column]
        codes = np.arange(n_codes or 0, dtype=np.float64)
        return self._one_by_one(k, codes)

    def steps(self, k: int, source: ColumnSource) -> tuple[Array, Array]:
        """Where runs of numbers end, but for the last, and what is seen of each."""
        values, seen, other = self.listed(k, source)
        if not source.elsewhere:
            return values[:-1], seen
        ends = np.stack([np.nextafter(values, -np.inf), values], axis=1).ravel()
        runs = np.full(len(ends) + 1, other)
        runs[1::2] = seen
        return ends, runs

    def listed(self, k: int, source: ColumnSource) -> tuple[Array, Array, float]:
        """The values of an encoded column, what is seen of each, and of all others."""
        values = np.array(source.numbers)
        if not source.elsewhere:  # other values are refused
            return values, self.ask(k, values), np.nan
        *seen, other = self.ask(k, np.append(values, np.floor(values[-1]) + 1.0))
        return values, np.array(seen), float(other)

    def _one_by_one(self, k: int, values: Array) -> Array:
        """What is seen of values, some of which may be refused: NaN of those."""
        try:
            return self.ask(k, values)
        except (TypeError, ValueError):
            if len(values) == 1:
                return np.array([np.nan])
            return np.concatenate([self._one_by_one(k, v) for v in values[:, None]])

    def ask(self, k: int, values: Array) -> Array:
        """What is seen in one column of values (n,) of its source."""
        with np.errstate(all="ignore"):  # such as logarithms of other columns at 0
            return self.view.ask(self.numbers, np.full(len(values), k), values)


def _near_secants(column: ColumnMap, thresholds: Array) -> tuple[Array, Array]:
    """Numbers a few roundings beside where an affine map meets each threshold."""
    zeros, ones = np.zeros(len(thresholds)), np.ones(len(thresholds))
    with np.errstate(all="ignore"):
        at_zero = column(zeros)
        slope = column(ones) - at_zero
        root, meeting = -at_zero / slope, (thresholds - at_zero) / slope
        size = np.maximum(np.abs(root), np.abs(meeting))
        ends = [meeting - _ROUNDINGS * size, meeting + _ROUNDINGS * size]
        low, high = (np.where(np.isfinite(end), end, 0.0) for end in ends)
        holds = (column(low) <= thresholds) & (column(high) > thresholds)
    return np.where(holds, low, -np.inf), np.where(holds, high, np.inf)


_ROUNDINGS: Final = 64 * float(np.finfo(np.float64).eps)


# ---- Trees of the columns that a model sees, as trees of the columns of the table


def resolved(
    trees: Sequence[Tree],
    view: ColumnView,
    numbers: Numbers,
    absent: float | None = None,
) -> list[Tree] | None:
    """The same trees, asking for columns of the table in float64.

    A number that is ``absent`` stands for a missing one, compared in float32.
    """
    in_place = all(source == ColumnSource(k) for k, source in enumerate(view.sources))
    plain = view.plain and in_place and absent is None
    if plain and not any(tree.left_codes for tree in trees):
        return list(trees)
    ends = ends_asked(trees)
    if any(view.sources[k].kind == "curved" for k in ends):
        return None
    columns = _columns(ends, view, numbers, absent)
    whole = []
    for tree in trees:
        asking = _Asking(tree)
        for k in np.unique(tree.feature[tree.feature >= 0]).tolist():
            columns[k](asking, np.flatnonzero(tree.feature == k))
        result = fanned(asking.tree(), asking.fans)
        if result is None:
            return None
        whole.append(result)
    return whole


_Put: TypeAlias = Callable[["_Asking", Indices], None]
"""What makes nodes that ask for a column of the model ask for one of the table."""


def _columns(
    ends: Mapping[int, Array], view: ColumnView, numbers: Numbers, absent: float | None
) -> Mapping[int, _Put]:
    """For each column of the model that is asked for."""
    gap = np.zeros(0)
    if absent is not None:  # numbers between these are it, in float32
        gap = np.append(below_in_single([absent]), at_most_in_single([absent]))
        ends = {k: np.union1d(own, gap) for k, own in ends.items()}
    # a number that is absent is no end of what rises, and NaN to whoever is given it
    cuts = Questions(view, numbers).cuts(ends)
    asked = Questions(view, numbers if absent is None else _without(numbers, absent))
    numeric = [k for k in ends if view.sources[k].kind != "codes"]
    missing = asked.missing(numeric)
    columns: dict[int, _Put] = {}
    for k in ends:
        source = view.sources[k]
        match source.kind:
            case "codes":
                put = partial(_Asking.put_codes, seen=asked.codes(k))
            case "steps":
                changes, seen = asked.steps(k, source)
                put = partial(
                    _Asking.put_runs, missing=missing[k], ends=changes, seen=seen
                )
            case _:
                put = partial(
                    _Asking.put_numbers,
                    missing=missing[k],
                    ends=ends[k],
                    cuts=cuts[k],
                    gap=gap,
                )
        columns[k] = partial(put, column=source.column)
    return columns


def _without(numbers: Numbers, absent: float) -> Numbers:
    """The same numbers, NaN where one is what stands for a missing one."""

    def known(table: Any) -> Array:
        given = numbers(table)
        return np.where(given.astype(np.float32) == np.float32(absent), np.nan, given)

    return known


class _Asking:
    """The nodes of a tree, while they are made to ask for columns of the table."""

    def __init__(self, tree: Tree) -> None:
        self.model = tree
        self.feature, self.threshold = tree.feature.copy(), tree.threshold.copy()
        self.missing_left = tree.missing_left.copy()
        self.left_codes: dict[int, Mask] = {}
        self.fans: dict[int, Fan] = {}

    def tree(self) -> Tree:
        """The tree, but for its nodes with fans."""
        return replace(
            self.model,
            feature=self.feature,
            threshold=self.threshold,
            missing_left=self.missing_left,
            left_codes=self.left_codes,
        )

    def goes_left(self, node: int, values: Array) -> Mask:
        """Whether the model sends what it sees to the left."""
        tree, missing = self.model, np.isnan(values)
        listed = tree.left_codes.get(node)
        if listed is None:
            left = values <= tree.threshold[node]
        else:
            ends, runs = code_runs(listed)
            left = runs[np.searchsorted(ends, values)]
        return np.where(missing, tree.missing_left[node], left)

    def put_numbers(
        self,
        nodes: Indices,
        column: int,
        missing: float,
        ends: Array,  # (T,): all that is compared with what is seen, increasing
        cuts: Array,  # (T,): the largest numbers of which at most that is seen
        gap: Array,  # (2,): numbers more than the first, up to the last, are missing
    ) -> None:
        """Ask for numbers that are seen through a nondecreasing map."""
        if len(gap):
            self._put_around_gap(nodes, column, missing, ends, cuts, gap)
            return
        thresholds = self.model.threshold[nodes]
        self.feature[nodes] = column
        self.threshold[nodes] = cuts[np.searchsorted(ends, thresholds)]
        if not np.isnan(missing):
            self.missing_left[nodes] = missing <= thresholds
        for node in set(nodes.tolist()) & set(self.model.left_codes):
            own, runs = code_runs(self.model.left_codes[node])
            self.missing_left[node] = self.goes_left(node, np.array([missing]))[0]
            self.fans[node] = fan(cuts[np.searchsorted(ends, own)], runs)

    def _put_around_gap(
        self,
        nodes: Indices,
        column: int,
        missing: float,
        ends: Array,
        cuts: Array,
        gap: Array,
    ) -> None:
        """The same, where one of the numbers stands for a missing one."""
        self.feature[nodes] = column
        for node in nodes.tolist():
            listed = self.model.left_codes.get(node)
            own = (
                self.model.threshold[[node]] if listed is None else code_runs(listed)[0]
            )
            own = np.union1d(own, gap)
            # what is seen in each run, of which the end stands for all
            seen = np.append(own, np.inf)
            seen[(seen > gap[0]) & (seen <= gap[1])] = np.nan
            left = self.goes_left(node, np.append(seen, missing))
            self.missing_left[node] = left[-1]
            self.fans[node] = fan(cuts[np.searchsorted(ends, own)], left[:-1])

    def put_runs(
        self,
        nodes: Indices,
        column: int,
        missing: float,
        ends: Array,  # (m − 1,): where what is seen changes, increasing
        seen: Array,  # (m,): what is seen up to each end, and beyond the last
    ) -> None:
        """Ask for numbers of which something is seen that is constant between ends."""
        self.feature[nodes] = column
        for node in nodes.tolist():
            left = self.goes_left(node, np.append(seen, missing))
            self.missing_left[node] = left[-1]
            self.fans[node] = fan(ends, left[:-1])

    def put_codes(self, nodes: Indices, column: int, seen: Array) -> None:
        """Ask for a category, of whose codes (K,) this is seen."""
        self.feature[nodes] = column
        for node in nodes.tolist():
            self.left_codes[node] = self.goes_left(node, seen)


# ---- Which score of a model an output is, up to a factor: where that is exact


class TreeScore(NamedTuple):
    """One score of a model, and the factor that the output has of it."""

    place: int
    factor: float = 1.0

    @classmethod
    def of(
        cls,
        output: ModelOutput,
        count: int,
        *,
        is_value: bool = False,
        logit: float | None = None,
    ) -> TreeScore | None:
        """The one of K scores that an output is; log-odds are ``logit`` times it."""
        if output.name == "value":
            return cls(output.column) if is_value else None
        factor = 1.0 if output.name == "margin" else logit
        if factor is None or output.name == "probability":
            return None
        if count > 1:
            return cls(output.column) if output.name == "margin" else None
        return cls(0, -factor if output.index == 0 else factor)


def sum_of_trees(
    trees: Sequence[Tree | None],
    base: float,
    view: ColumnView,
    numbers: Numbers = table_numbers,
    tolerance: float = DOUBLE_TOLERANCE,
    absent: float | None = None,
) -> TreeSum | None:
    """A sum of trees by the columns of the table behind a view; None if one is not."""
    read = [tree for tree in trees if tree is not None]
    whole = resolved(read, view, numbers, absent) if len(read) == len(trees) else None
    if whole is None:
        return None
    return TreeSum(tuple(whole), base, view.n_codes, tolerance)


# ---- Tables with categories as libraries of boosting number them


def coded_numbers(table: Any, categories: Sequence[Sequence[Any] | None]) -> Array:
    """Numbers (n, M), and codes of categories; NaN for missing and unknown ones."""
    frame = as_frame(table, "X")
    if frame is None:
        return table_numbers(table)
    known = iter(categories)
    columns = [
        _codes(column, next(known, None))
        if isinstance(column.dtype, pd.CategoricalDtype)
        else column.to_numpy(dtype=np.float64, na_value=np.nan)
        for _, column in frame.table.items()
    ]
    return np.stack(columns, axis=1)


def _codes(column: pd.Series[Any], categories: Sequence[Any] | None) -> Array:
    if categories is not None:
        column = column.cat.set_categories(categories)
    codes = column.cat.codes.to_numpy(dtype=np.float64)
    return np.where(codes < 0, np.nan, codes)
