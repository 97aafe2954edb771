"""Explainable boosting machines: sums of tables over bins of one or two columns.

A term of a model of InterpretML has a score for each bin of its columns. Bin 0 is for
missing values and the last one for categories that were not seen in training. A number
x is in bin 1 + #{cuts ≤ x}. Each term is a tree that asks which bin it is, so that
whatever holds for sums of trees holds here.
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
    sum_of_trees,
    written,
)
from propopt.tables.frames import as_frame


_LOGITS: Final = frozenset({"logit"})
"""Links whose score is the log-odds."""


def _boosting_machine(
    model: Any, output: ModelOutput, view: ColumnView
) -> TreeSum | None:
    """The intercept and the terms of each score."""
    intercept = np.ravel(floats(model.intercept_))
    score = TreeScore.of(
        output,
        len(intercept),
        is_value=model.link_ == "identity",
        logit=1.0 if model.link_ in _LOGITS else None,
    )
    resolutions = [_Resolution.of(model, level) for level in range(_finest(model))]
    sources = [s for known in resolutions for s in known.sources(view)]
    if score is None or None in sources:
        return None
    trees = []
    for columns, table in zip(model.term_features_, model.term_scores_, strict=True):
        place = min(len(columns), len(resolutions)) - 1
        axes = [resolutions[place].axes[k] for k in columns]
        first = place * model.n_features_in_
        scores = score.factor * floats(table)
        if len(intercept) > 1:
            scores = scores[..., score.place]
        trees.append(_term(scores, [first + k for k in columns], axes))
    seen = view.through(
        lambda given: np.hstack([known.numbers(given) for known in resolutions]),
        [source for source in sources if source is not None],
    )
    return sum_of_trees(
        trees, score.factor * float(intercept[score.place]), seen, floats
    )


def _finest(model: Any) -> int:
    """How many resolutions the bins have: terms of two columns have coarser ones."""
    return max(map(len, model.bins_), default=1)


class _Axis(NamedTuple):
    """Bins of a column in the order of what is seen of it."""

    bins: Indices  # the numbers of bins that occur
    highest: Array  # the largest that is seen in each bin but the last
    missing: bool  # whether the first bin is for NaN alone


@final
@dataclass(frozen=True, eq=False)
class _Resolution:
    """All columns of a model, with the bins that terms of as many columns have."""

    # gives the number of the bin of each category
    probe: Any
    nominal: list[bool]
    bins: list[Any]  # of numbers their cuts, of categories a mapping to bins

    @classmethod
    def of(cls, model: Any, level: int) -> _Resolution:
        """The bins of one level, or the last that there is."""
        bins = [own[min(level, len(own) - 1)] for own in model.bins_]
        nominal = [isinstance(own, dict) for own in bins]
        chosen = np.flatnonzero(nominal).tolist()
        probe = copy.copy(model)
        probe.bins_ = [[own] for own in bins]
        probe.term_features_ = [(k,) for k in chosen]
        probe.term_scores_ = [np.arange(_n_bins(bins[k]), dtype=float) for k in chosen]
        probe.intercept_ = np.zeros(1)
        return cls(probe, nominal, bins)

    @property
    def axes(self) -> list[_Axis]:
        """How terms split each column."""
        return [_axis(own) for own in self.bins]

    def sources(self, view: ColumnView) -> list[ColumnSource | None]:
        """Where columns of :meth:`numbers` come from; None where it is unknown."""
        return [
            encoded_as(source, list(own)) if categories else source
            for source, own, categories in zip(
                view.sources, self.bins, self.nominal, strict=True
            )
        ]

    def numbers(self, table: Any) -> Array:
        """Numbers as they are, and the bins of categories, (n, M)."""
        frame = as_frame(table, "X")
        array = plain_array(table) if frame is None else None
        seen = np.empty((len(table) if array is None else len(array), len(self.bins)))
        if any(self.nominal):
            seen[:, self.nominal] = self.probe.eval_terms(table)
        for k in np.flatnonzero(~np.array(self.nominal)).tolist():
            if array is not None:
                seen[:, k] = array[:, k].astype(np.float64)
            elif frame is not None:
                column = frame.table.iloc[:, k]
                seen[:, k] = column.to_numpy(dtype=np.float64, na_value=np.nan)
        return seen


def _n_bins(categories: Mapping[Any, int]) -> int:
    """Those of categories, with one for what is missing and one for what is new."""
    return max(categories.values(), default=0) + 2


def _axis(bins: Any) -> _Axis:
    if isinstance(bins, dict):  # bins of categories are seen as numbers
        numbers = np.arange(_n_bins(bins))
        return _Axis(numbers, floats(numbers[:-1] + 0.5), False)
    below = np.nextafter(floats(bins), -np.inf)
    return _Axis(np.arange(len(bins) + 2), floats([np.nan, *below]), True)


def _term(scores: Array, columns: Sequence[int], axes: Sequence[_Axis]) -> Tree | None:
    """The tree that looks a score up, one column after the other."""
    inner = scores[np.ix_(*(axis.bins for axis in axes))]

    def read(place: tuple[int, int, int, Array]) -> Split | float:
        """Bins from low to high of one column; those before it are known."""
        axis, low, high, rest = place
        if high - low == 1:
            rest, axis = rest[low], axis + 1
            if axis == len(axes):
                return float(rest)
            low, high = 0, len(axes[axis].bins)
        middle = (low + high) // 2
        bound = axes[axis].highest
        if low == 0 and axes[axis].missing:  # numbers go left, and NaN right
            numbers, nan = (axis, 1, high, rest), (axis, 0, 1, rest)
            return Split(columns[axis], np.inf, False, numbers, nan)
        left, right = (axis, low, middle, rest), (axis, middle, high, rest)
        return Split(columns[axis], float(bound[middle - 1]), False, left, right)

    return written((0, 0, len(axes[0].bins), inner), read)


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
