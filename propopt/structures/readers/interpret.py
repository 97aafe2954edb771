"""Explainable boosting machines: sums of tables over bins of one or two columns.

A term of a model of InterpretML has a score for each bin of its columns. Bin 0 is for
missing values and the last one for categories that were absent in training. A number x
is in bin 1 + #{cuts ≤ x}. Each term is a tree that looks up the bin, so that all
methods for sums of trees apply.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple, final

import numpy as np

from propopt.base.arrays import Array, Indices
from propopt.structures.boxes.boxes import TreeSum
from propopt.structures.boxes.sets import Tree
from propopt.structures.readers.model_reader import CONSTANT, MarginRule, ModelReader
from propopt.structures.readers.pipelines import (
    ColumnSource,
    ColumnView,
    ModelOutput,
    encoded_as,
    floats,
    plain_array,
)
from propopt.structures.readers.tree_nodes import (
    Split,
    TreeScore,
    build_tree,
    sum_of_trees,
)
from propopt.tables.frames import as_frame


_LOGITS: Final = frozenset({"logit"})
"""Links with the log-odds as score."""


def _boosting_machine(
    model: Any, output: ModelOutput, view: ColumnView
) -> TreeSum | None:
    """The intercept and the terms of a score as a sum of trees."""
    intercept = np.ravel(floats(model.intercept_))
    score = TreeScore.of(
        output,
        len(intercept),
        is_value=model.link_ == "identity",
        logit=1.0 if model.link_ in _LOGITS else None,
    )
    resolutions = [_Resolution.of(model, level) for level in range(_finest(model))]
    sources = [s for resolution in resolutions for s in resolution.sources(view)]
    if score is None or None in sources:
        return None
    trees = []
    for columns, table in zip(model.term_features_, model.term_scores_, strict=True):
        level = min(len(columns), len(resolutions)) - 1
        axes = [resolutions[level].axes[k] for k in columns]
        first = level * model.n_features_in_
        scores = score.factor * floats(table)
        if len(intercept) > 1:
            scores = scores[..., score.column]
        trees.append(_term(scores, [first + k for k in columns], axes))
    model_view = view.through(
        lambda given: np.hstack([level.numbers(given) for level in resolutions]),
        [source for source in sources if source is not None],
    )
    return sum_of_trees(
        trees, score.factor * float(intercept[score.column]), model_view, floats
    )


def _finest(model: Any) -> int:
    """The number of resolutions of the bins: terms of two columns have coarser bins."""
    return max(map(len, model.bins_), default=1)


class _Axis(NamedTuple):
    """The bins of a column in increasing order of its values."""

    bins: Indices  # the bin numbers that occur
    highest: Array  # the largest value of each bin but the last
    missing: bool  # whether the first bin is only for NaN


@final
@dataclass(frozen=True, eq=False)
class _Resolution:
    """The bins of all columns of a model for terms of a given number of columns."""

    # returns the bin number of each category
    probe: Any
    nominal: list[bool]
    bins: list[Any]  # cuts of numbers, or a mapping from categories to bins

    @classmethod
    def of(cls, model: Any, level: int) -> _Resolution:
        """The bins of one level, or the last level that exists."""
        bins = [levels[min(level, len(levels) - 1)] for levels in model.bins_]
        nominal = [isinstance(column_bins, dict) for column_bins in bins]
        chosen = np.flatnonzero(nominal).tolist()
        probe = copy.copy(model)
        probe.bins_ = [[column_bins] for column_bins in bins]
        probe.term_features_ = [(k,) for k in chosen]
        probe.term_scores_ = [np.arange(_n_bins(bins[k]), dtype=float) for k in chosen]
        probe.intercept_ = np.zeros(1)
        return cls(probe, nominal, bins)

    @property
    def axes(self) -> list[_Axis]:
        """The bins by which terms split each column."""
        return [_axis(column_bins) for column_bins in self.bins]

    def sources(self, view: ColumnView) -> list[ColumnSource | None]:
        """The source of each column of :meth:`numbers`; None if it is unknown."""
        return [
            encoded_as(source, list(column_bins)) if categories else source
            for source, column_bins, categories in zip(
                view.sources, self.bins, self.nominal, strict=True
            )
        ]

    def numbers(self, table: Any) -> Array:
        """Numbers unchanged, and the bins of categories, shape (n, M)."""
        frame = as_frame(table, "X")
        array = plain_array(table) if frame is None else None
        numbers = np.empty(
            (len(table) if array is None else len(array), len(self.bins))
        )
        if any(self.nominal):
            numbers[:, self.nominal] = self.probe.eval_terms(table)
        for k in np.flatnonzero(~np.array(self.nominal)).tolist():
            if array is not None:
                numbers[:, k] = array[:, k].astype(np.float64)
            elif frame is not None:
                column = frame.table.iloc[:, k]
                numbers[:, k] = column.to_numpy(dtype=np.float64, na_value=np.nan)
        return numbers


def _n_bins(categories: Mapping[Any, int]) -> int:
    """The number of bins of categories, plus one for missing and one for new values."""
    return max(categories.values(), default=0) + 2


def _axis(bins: Any) -> _Axis:
    if isinstance(bins, dict):  # bins of categories are numbers
        numbers = np.arange(_n_bins(bins))
        return _Axis(numbers, floats(numbers[:-1] + 0.5), False)
    below = np.nextafter(floats(bins), -np.inf)
    return _Axis(np.arange(len(bins) + 2), floats([np.nan, *below]), True)


def _term(scores: Array, columns: Sequence[int], axes: Sequence[_Axis]) -> Tree | None:
    """The tree that looks up a score, one column after the other."""
    inner = scores[np.ix_(*(axis.bins for axis in axes))]

    def node_at(state: tuple[int, int, int, Array]) -> Split | float:
        """A node for bins low to high of one column; earlier columns are decided."""
        axis, low, high, rest = state
        if high - low == 1:
            rest = rest[low]
            axis = axis + 1
            if axis == len(axes):
                return float(rest)
            low = 0
            high = len(axes[axis].bins)
        middle = (low + high) // 2
        bound = axes[axis].highest
        if low == 0 and axes[axis].missing:  # numbers go left, and NaN right
            numbers = (axis, 1, high, rest)
            nan = (axis, 0, 1, rest)
            return Split(columns[axis], np.inf, False, numbers, nan)
        left = (axis, low, middle, rest)
        right = (axis, middle, high, rest)
        return Split(columns[axis], float(bound[middle - 1]), False, left, right)

    return build_tree((0, 0, len(axes[0].bins), inner), node_at)


INTERPRET: Final[Mapping[str, ModelReader]] = {
    "interpret.ExplainableBoostingClassifier": replace(
        CONSTANT,
        trees=_boosting_machine,
        margin=MarginRule(
            "decision_function",
            {},
            lambda model: 1.0 if model.link_ in _LOGITS else None,
        ),
    ),
    "interpret.ExplainableBoostingRegressor": replace(
        CONSTANT, trees=_boosting_machine
    ),
}
