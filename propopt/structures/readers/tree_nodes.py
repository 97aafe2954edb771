"""Nodes of fitted trees: thresholds in units of the table, and scores."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, NamedTuple, TypeAlias, final

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from propopt.base.arrays import Array, Indices, Mask
from propopt.base.resources import Budget
from propopt.structures.boxes.boxes import DOUBLE_TOLERANCE, TreeSum
from propopt.structures.boxes.sets import ColumnMap, Tree, largest_at_most
from propopt.structures.readers.pipelines import (
    ColumnSource,
    ColumnView,
    ModelOutput,
    table_numbers,
)
from propopt.tables.frames import as_frame


# ---- Trees built node by node


class Split(NamedTuple):
    """An inner node, with states of its children for :func:`build_tree`."""

    feature: int
    threshold: float
    missing_left: bool
    left: Any
    right: Any
    left_codes: Mask | None = None
    # of the training rows at the node, those that go left and right; see Tree
    shares: tuple[float, float] = (np.nan, np.nan)


def build_tree(
    root: Any, read: Callable[[Any], Split | float | None], most: float = np.inf
) -> Tree | None:
    """The tree of nodes that ``read`` returns; None if one is None, or too many."""
    stack = [(root, -1, 1.0)]
    children = list[int]()
    rows = list[tuple[int, float, bool, float, float]]()
    listed = dict[int, Mask]()
    while stack:
        state, child, share = stack.pop()
        node = len(rows)
        split = read(state)
        if split is None or node > most:
            return None
        children += [-1, -1]
        if child >= 0:
            children[child] = node
        if not isinstance(split, Split):
            rows.append((-1, np.inf, False, split, share))
            continue
        rows.append((split.feature, split.threshold, split.missing_left, 0.0, share))
        if split.left_codes is not None:
            listed[node] = split.left_codes
        of_left, of_right = split.shares
        stack += [
            (split.left, 2 * node, of_left),
            (split.right, 2 * node + 1, of_right),
        ]
    feature, cuts, missing_left, value, shares = zip(*rows, strict=True)
    return Tree.of(
        feature,
        cuts,
        children[::2],
        children[1::2],
        value,
        missing_left,
        listed,
        shares,
    )


# ---- Nodes that send several intervals to each side, as chains of nodes with one cut


MOST_NODES: Final = 50_000
"""The most nodes of one tree; a larger one is not built."""

RunSplit: TypeAlias = tuple[Array, Mask]
"""The side of each run of numbers at a node: the ends of runs, increasing to
infinity, and whether each goes left, which alternates."""


def run_split(ends: Array, left: Mask) -> RunSplit:
    """Alternating runs of any runs: up to each of m − 1 ends, and beyond the last."""
    ends = np.append(ends, np.inf)
    nonempty = np.append(-np.inf, ends[:-1]) < ends
    ends = ends[nonempty]
    left = left[nonempty]
    last = np.append(left[1:] != left[:-1], True)
    return ends[last], left[last]


def expand_runs(tree: Tree, run_splits: Mapping[int, RunSplit]) -> Tree | None:
    """The trees with nodes that split into runs; None if one is too large."""
    if not run_splits:
        return tree
    if all(len(left) <= 2 for _, left in run_splits.values()):
        return _cut_once(tree, run_splits)
    grown = [_grown(tree, run_splits, root) for root in tree.roots]
    whole = [one for one in grown if one is not None]
    return Tree.concatenate_trees(whole) if len(whole) == len(grown) else None


def _cut_once(tree: Tree, run_splits: Mapping[int, RunSplit]) -> Tree:
    """The same nodes, with one cut or none in each of them."""
    threshold = tree.threshold.copy()
    missing_left = tree.missing_left.copy()
    left = tree.left.copy()
    right = tree.right.copy()
    for node, (ends, goes_left) in run_splits.items():
        threshold[node] = ends[0]
        if not goes_left[0]:
            left[node], right[node] = right[node], left[node]
            missing_left[node] = not missing_left[node]
    return replace(
        tree, threshold=threshold, missing_left=missing_left, left=left, right=right
    )


_Range: TypeAlias = tuple[float, float, bool]
"""The interval low < x ≤ high that reaches a node, and whether NaN does."""

_EVERYTHING: Final[_Range] = (-np.inf, np.inf, True)


class _Copy(NamedTuple):
    """A node of a tree, for one of the intervals of each column that reach it."""

    node: int
    ranges: Mapping[int, _Range]  # the interval of each column
    # all intervals of a column that reach the node, also those of other copies
    every: Mapping[int, Sequence[_Range]]


_Run: TypeAlias = tuple[float, bool, _Copy, float]
"""The end of a run of numbers, whether NaN is with it, its child, and its share."""

_NOTHING: Final = _Copy(-1, {}, {})
"""In place of a child that no value reaches."""


def _grown(tree: Tree, run_splits: Mapping[int, RunSplit], root: int) -> Tree | None:
    """The tree of a root with a chain of nodes for each set of runs.

    Copies of a node have equal parts of its share, since they lead to the same leaves.
    """

    def node_at(state: _Copy | tuple[int, list[_Run]]) -> Split | float:
        """A node, or its remaining runs, for the intervals that reach it."""
        if not isinstance(state, _Copy):
            return chain(*state)
        node, ranges, every = state
        if node < 0:
            return 0.0
        column = int(tree.feature[node])
        side = {True: int(tree.left[node]), False: int(tree.right[node])}
        if column < 0:
            return float(tree.value[node])
        share = {is_left: float(tree.share[child]) for is_left, child in side.items()}
        if node in tree.left_codes:
            left = _Copy(side[True], ranges, every)
            right = _Copy(side[False], ranges, every)
            shares = share[True], share[False]
            codes = tree.left_codes[node]
            return Split(column, np.inf, False, left, right, codes, shares)
        all_here = every.get(column, [_EVERYTHING])
        parts: dict[bool, list[_Range]] = {True: [], False: []}
        for interval in all_here:
            for _, is_left, part in _divided(tree, run_splits, node, interval):
                parts[is_left].append(part)
        runs = []
        here = ranges.get(column, _EVERYTHING)
        for end, is_left, part in _divided(tree, run_splits, node, here):
            given = {**ranges, column: part}, {**every, column: parts[is_left]}
            part_share = share[is_left] * len(all_here) / len(parts[is_left])
            runs.append((end, part[2], _Copy(side[is_left], *given), part_share))
        return chain(column, runs)

    def chain(column: int, runs: list[_Run]) -> Split | float:
        """The node that separates the first run from the others, if there are any."""
        (end, missing, child, share), *others = runs
        if not others:  # where no column is known, the other side is possible, too
            if np.isnan(share) or share == 1.0:
                return node_at(child)
            return Split(column, np.inf, True, child, _NOTHING, shares=(share, 0.0))
        if len(others) > 1:
            rest = column, others
            return Split(column, end, missing, child, rest, shares=(share, 1.0))
        _, _, last, last_share = others[0]
        return Split(column, end, missing, child, last, shares=(share, last_share))

    return build_tree(_Copy(root, {}, {}), node_at, MOST_NODES)


def _divided(
    tree: Tree, run_splits: Mapping[int, RunSplit], node: int, interval: _Range
) -> Iterator[tuple[float, bool, _Range]]:
    """The runs of a node in an interval: ends, whether they go left, and its parts."""
    low, high, missing = interval
    missing_left = bool(tree.missing_left[node])
    cut = run_split(tree.threshold[[node]], np.array([True, False]))
    ends, left = run_splits.get(node, cut)
    chosen = slice(np.searchsorted(ends, low, "right"), np.searchsorted(ends, high) + 1)
    runs = list(zip(ends[chosen].tolist(), left[chosen].tolist(), strict=True))
    if low >= high:
        runs = []
    if missing and missing_left not in (is_left for _, is_left in runs):
        runs = [(-np.inf, missing_left), *runs]  # only for NaN
    for end, is_left in runs:
        first = missing and is_left == missing_left
        yield end, is_left, (low, min(high, end), first)
        low = max(low, end)
        missing = missing and not first


# ---- Thresholds in float64 for models that compare in float32


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
    return at_most_in_single(_next(np.asarray(thresholds, dtype=np.float32), -np.inf))


def _next(single: Any, end: float) -> Any:
    """The next float32 after each number, toward an infinite end."""
    with np.errstate(over="ignore"):
        return np.nextafter(single, np.float32(end))


def _widened(single: Any) -> Array:
    """Numbers in float64, with 2^128 for infinity, as rounding to float32 treats it."""
    return np.clip(single.astype(np.float64), -(2.0**128), 2.0**128)


# ---- Input columns of a model, evaluated by the steps before it


Numbers: TypeAlias = Callable[[Any], Array]
"""From a library's input table to numbers and codes in float64, (n, M)."""

FARTHEST: Final = 1e100
"""The largest number at which steps are evaluated; they might overflow beyond."""


def thresholds_by_column(trees: Tree) -> dict[int, Array]:
    """All thresholds with which each column of the model is compared, increasing."""
    listed: dict[int, list[Array]] = {}
    for node, codes in trees.left_codes.items():
        listed.setdefault(int(trees.feature[node]), []).append(code_runs(codes)[0])
    ends = {}
    for k in np.unique(trees.feature[trees.feature >= 0]).tolist():
        thresholds = trees.threshold[trees.feature == k]
        ends[k] = np.unique(np.concatenate([thresholds, *listed.get(k, ())]))
    return ends


def code_runs(listed: Mask) -> tuple[Array, Mask]:
    """The ends of runs of numbers with one code each, and whether each is listed."""
    ends = np.nextafter(np.arange(1.0, len(listed) + 1), 0.0)
    return np.append(-1.0, ends), np.concatenate([[False], listed, [False]])


@final
@dataclass(frozen=True, eq=False)
class InputProbe:
    """The input columns of a view, evaluated at given values of the table's columns."""

    view: ColumnView  # the input of the model
    numbers: Numbers  # its conversion to numbers

    def missing(self, inputs: Sequence[int]) -> Mapping[int, float]:
        """The input value of a missing number in some columns; NaN if refused."""
        if self.view.plain or self.view.counts:
            return dict.fromkeys(inputs, np.nan)
        try:
            columns = np.array(inputs, dtype=np.intp)
            gaps = np.full(len(inputs), np.nan)
            values = self.view.probe(self.numbers, columns, gaps)
        except (TypeError, ValueError):
            gap = np.array([np.nan])
            separate = [self._with_refusals(np.array([k]), gap)[0] for k in inputs]
            values = np.concatenate([np.zeros(0), *separate])
        return dict(zip(inputs, values.tolist(), strict=True))

    def cuts(self, ends: Mapping[int, Array]) -> Mapping[int, Array]:
        """The largest number of the table with an input of at most each end."""
        sources = self.view.sources
        rising = [k for k in ends if sources[k].kind in ("straight", "rising")]
        if not rising:
            return ends
        inputs = np.repeat(rising, [len(ends[k]) for k in rising])
        thresholds = np.concatenate([ends[k] for k in rising])

        def column(values: Array) -> Array:
            clipped = np.clip(values, -FARTHEST, FARTHEST)
            return self.view.probe(self.numbers, inputs, clipped)

        result = largest_at_most(
            column, thresholds, _secant_brackets(column, thresholds)
        )
        return {**ends, **{k: result[inputs == k] for k in rising}}

    def codes(self, inputs: Sequence[int]) -> dict[int, Array]:
        """Input values of each code of the categories behind columns; NaN if refused.

        The columns of one category are evaluated together.
        """
        sources = np.array([self.view.sources[k].column for k in inputs], np.intp)
        seen: dict[int, Array] = {}
        for column in np.unique(sources).tolist():
            behind = np.array(inputs, np.intp)[sources == column]
            codes = np.arange(self.view.n_codes[column] or 0, dtype=np.float64)
            values = self._with_refusals(behind, codes)
            seen.update(zip(behind.tolist(), values.T, strict=True))
        return seen

    def steps(self, k: int, source: ColumnSource) -> tuple[Array, Array]:
        """The ends of runs of numbers but the last, and the input value of each run."""
        values, images, other = self.listed(k, source)
        if not source.elsewhere:
            return values[:-1], images
        ends = np.stack([np.nextafter(values, -np.inf), values], axis=1).ravel()
        runs = np.full(len(ends) + 1, other)
        runs[1::2] = images
        return ends, runs

    def listed(self, k: int, source: ColumnSource) -> tuple[Array, Array, float]:
        """Values of an encoded column, their input values, and that of all others."""
        values = np.array(source.numbers)
        if not source.elsewhere:  # other values are refused
            return values, self.probe(k, values), np.nan
        *images, other = self.probe(k, np.append(values, np.floor(values[-1]) + 1.0))
        return values, np.array(images), float(other)

    def _with_refusals(self, inputs: Indices, values: Array) -> Array:
        """Columns of one source at values (V,), (V, K); NaN for refused ones."""
        try:
            tiled = np.tile(values, len(inputs))
            probed = self.probe(np.repeat(inputs, len(values)), tiled)
            return probed.reshape(len(inputs), len(values)).T
        except (TypeError, ValueError):
            if len(values) == 1:
                return np.full((1, len(inputs)), np.nan)
            return np.concatenate(
                [self._with_refusals(inputs, v) for v in values[:, None]]
            )

    def probe(self, k: int | Indices, values: Array) -> Array:
        """The input column k, or columns k (n,), at values (n,) of their sources."""
        with np.errstate(all="ignore"):  # such as logarithms of other columns at 0
            inputs = np.broadcast_to(k, values.shape)
            return self.view.probe(self.numbers, inputs, values)


def _secant_brackets(column: ColumnMap, thresholds: Array) -> tuple[Array, Array]:
    """Brackets a few roundings around the solutions for an affine map."""
    zeros = np.zeros(len(thresholds))
    ones = np.ones(len(thresholds))
    with np.errstate(all="ignore"):
        at_zero = column(zeros)
        slope = column(ones) - at_zero
        root = -at_zero / slope
        meeting = (thresholds - at_zero) / slope
        size = np.maximum(np.abs(root), np.abs(meeting))
        brackets = [meeting - _ROUNDINGS * size, meeting + _ROUNDINGS * size]
        low, high = (np.where(np.isfinite(end), end, 0.0) for end in brackets)
        holds = (column(low) <= thresholds) & (column(high) > thresholds)
    return np.where(holds, low, -np.inf), np.where(holds, high, np.inf)


_ROUNDINGS: Final = 64 * float(np.finfo(np.float64).eps)


# ---- Trees of the input columns of a model, as trees of the columns of the table


def resolved(
    trees: Sequence[Tree],
    view: ColumnView,
    numbers: Numbers,
    absent: float | None = None,
) -> list[Tree] | None:
    """The same trees with tests of the table's columns in float64.

    None if that is impossible.

    The number ``absent`` stands for a missing one, compared in float32.
    """
    is_coded = any(tree.left_codes for tree in trees)
    if not trees or (absent is None and not is_coded and view.is_table):
        return list(trees)
    joined = Tree.concatenate_trees(trees)
    ends = thresholds_by_column(joined)
    if any(view.sources[k].kind == "curved" for k in ends):
        return None
    rewriter = _TreeRewriter(joined)
    for k, put in _columns(ends, view, numbers, absent).items():
        nodes = np.flatnonzero(joined.feature == k)
        for block in _REWRITTEN.blocks(len(nodes), 1):
            put(rewriter, nodes[block])
    expanded = expand_runs(rewriter.tree(), rewriter.run_splits)
    return None if expanded is None else [expanded]


_REWRITTEN: Final = Budget(2**25, 2**14)
"""Nodes that are rewritten at once, each with a place for all values of a column."""

_Put: TypeAlias = Callable[["_TreeRewriter", Indices], None]
"""Rewrites nodes that test an input column as tests of a column of the table."""


def _columns(
    ends: Mapping[int, Array], view: ColumnView, numbers: Numbers, absent: float | None
) -> Mapping[int, _Put]:
    """The rewriting rule for each input column that nodes test."""
    gap = np.zeros(0)
    if absent is not None:  # numbers in this gap round to it in float32
        gap = np.append(below_in_single([absent]), at_most_in_single([absent]))
        ends = {k: np.union1d(thresholds, gap) for k, thresholds in ends.items()}
    # cuts are computed with the number itself, and input values with NaN instead
    cuts = InputProbe(view, numbers).cuts(ends)
    questions = InputProbe(
        view, numbers if absent is None else _without(numbers, absent)
    )
    numeric = [k for k in ends if view.sources[k].kind != "codes"]
    missing = questions.missing(numeric)
    codes = questions.codes([k for k in ends if k not in missing])
    columns: dict[int, _Put] = {}
    for k in ends:
        source = view.sources[k]
        match source.kind:
            case "codes":
                put = partial(_TreeRewriter.put_codes, seen=codes[k])
            case "steps":
                changes, images = questions.steps(k, source)
                put = partial(
                    _TreeRewriter.put_runs,
                    missing=missing[k],
                    ends=changes,
                    seen=images,
                )
            case _ if absent is not None:  # each run has the input value of its end
                images = np.append(ends[k], np.inf)
                images[(images > gap[0]) & (images <= gap[1])] = np.nan
                put = partial(
                    _TreeRewriter.put_runs,
                    missing=missing[k],
                    ends=cuts[k],
                    seen=images,
                )
            case _:
                put = partial(
                    _TreeRewriter.put_numbers,
                    missing=missing[k],
                    ends=ends[k],
                    cuts=cuts[k],
                )
        columns[k] = partial(put, column=source.column)
    return columns


def _without(numbers: Numbers, absent: float) -> Numbers:
    """Same numbers, with NaN instead of the number that stands for a missing one."""

    def masked(table: Any) -> Array:
        given = numbers(table)
        return np.where(given.astype(np.float32) == np.float32(absent), np.nan, given)

    return masked


class _TreeRewriter:
    """The nodes of a tree while they are rewritten as tests of the table's columns."""

    def __init__(self, tree: Tree) -> None:
        self.model = tree
        self.feature = tree.feature.copy()
        self.threshold = tree.threshold.copy()
        self.missing_left = tree.missing_left.copy()
        self.left_codes: dict[int, Mask] = {}
        self.run_splits: dict[int, RunSplit] = {}

    def tree(self) -> Tree:
        """The rewritten tree, without the chains of nodes with several runs."""
        return replace(
            self.model,
            feature=self.feature,
            threshold=self.threshold,
            missing_left=self.missing_left,
            left_codes=self.left_codes,
        )

    def goes_left(self, nodes: Indices, values: Array) -> Mask:
        """Whether nodes (n,) send input values (V,) to the left, (n, V)."""
        tree = self.model
        left = values <= tree.threshold[nodes][:, None]
        for i in np.flatnonzero(np.isin(nodes, list(tree.left_codes))).tolist():
            ends, runs = code_runs(tree.left_codes[int(nodes[i])])
            left[i] = runs[np.searchsorted(ends, values)]
        return np.where(np.isnan(values), tree.missing_left[nodes][:, None], left)

    def put_numbers(
        self,
        nodes: Indices,
        column: int,
        missing: float,
        ends: Array,  # (T,): all thresholds of the input column, increasing
        cuts: Array,  # (T,): the largest numbers with inputs up to these
    ) -> None:
        """Test numbers after a nondecreasing map."""
        coded = np.isin(nodes, list(self.model.left_codes))
        if coded.any():
            images = np.append(ends, np.inf)
            self.put_runs(nodes[coded], column, missing, cuts, images)
            nodes = nodes[~coded]
        thresholds = self.model.threshold[nodes]
        self.feature[nodes] = column
        self.threshold[nodes] = cuts[np.searchsorted(ends, thresholds)]
        if not np.isnan(missing):
            self.missing_left[nodes] = missing <= thresholds

    def put_runs(
        self,
        nodes: Indices,
        column: int,
        missing: float,
        ends: Array,  # (m − 1,): the jumps of the map, increasing
        seen: Array,  # (m,): the input value up to each end, and beyond the last
    ) -> None:
        """Test numbers after a map that is constant between ends."""
        self.feature[nodes] = column
        left = self.goes_left(nodes, np.append(seen, missing))
        self.missing_left[nodes] = left[:, -1]
        for node, runs in zip(nodes.tolist(), left[:, :-1], strict=True):
            self.run_splits[node] = run_split(ends, runs)

    def put_codes(self, nodes: Indices, column: int, seen: Array) -> None:
        """Test a category with these input values of its codes (K,)."""
        self.feature[nodes] = column
        left = self.goes_left(nodes, seen)
        self.left_codes.update(zip(nodes.tolist(), left, strict=True))


# ---- The score behind an output, up to a factor


TreeScore: TypeAlias = tuple[int, float]
"""The index of the score behind an output of a model, and its factor."""


def tree_score(
    output: ModelOutput,
    count: int,
    *,
    is_value: bool = False,
    logit: float | None = None,
) -> TreeScore | None:
    """The score of an output, among K; log-odds are ``logit`` times it; or None."""
    if output.name == "value":
        return (output.column, 1.0) if is_value else None
    factor = 1.0 if output.name == "margin" else logit
    if factor is None or output.name == "probability":
        return None
    if count > 1:
        return (output.column, 1.0) if output.name == "margin" else None
    return 0, -factor if output.index == 0 else factor


def sum_of_trees(
    trees: Sequence[Tree | None],
    base: float,
    view: ColumnView,
    numbers: Numbers = table_numbers,
    tolerance: float = DOUBLE_TOLERANCE,
    absent: float | None = None,
) -> TreeSum | None:
    """The sum of trees by the table's columns; None if one cannot be rewritten."""
    complete = [tree for tree in trees if tree is not None]
    whole = (
        resolved(complete, view, numbers, absent)
        if len(complete) == len(trees)
        else None
    )
    if whole is None:
        return None
    return TreeSum(tuple(whole), base, view.n_codes, tolerance)


# ---- Tables with categories, coded as libraries of boosting do


def coded_numbers(table: Any, categories: Sequence[Sequence[Any] | None]) -> Array:
    """Numbers (n, M), and codes of categories, NaN for missing and unknown ones."""
    frame = as_frame(table, "X")
    if frame is None:
        return table_numbers(table)
    remaining = iter(categories)
    columns = [
        _codes(column, next(remaining, None))
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
