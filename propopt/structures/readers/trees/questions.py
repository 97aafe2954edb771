"""What a model sees of a column, asked of the steps before it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from propopt._typing import Array, Truths
from propopt.structures.boxes import Tree
from propopt.structures.boxes.maps import ColumnMap, largest_at_most
from propopt.structures.readers.trees.pipelines.views import Rising, Steps, View


Numbers: TypeAlias = Callable[[Any], Array]
"""What a library makes of what it is given: numbers and codes in float64, (n, M)."""

FARTHEST: Final = 1e100
"""Steps are asked for no larger numbers, of which they might make infinite ones."""


def ends_asked(trees: Sequence[Tree]) -> dict[int, Array]:
    """All that each column of the model is compared with, increasing."""
    features = [np.unique(tree.feature) for tree in trees]
    used = np.unique(np.concatenate([[-1], *features])).astype(np.intp)
    return {k: _ends_of(k, trees) for k in used[used >= 0].tolist()}


def _ends_of(k: int, trees: Sequence[Tree]) -> Array:
    thresholds = [tree.threshold[tree.feature == k] for tree in trees]
    listed = [
        code_runs(codes)[0]
        for tree in trees
        for node, codes in tree.left_codes.items()
        if tree.feature[node] == k
    ]
    return np.unique(np.concatenate([*thresholds, *listed]))


def code_runs(listed: Truths) -> tuple[Array, Truths]:
    """Ends of runs of numbers, and whether each run is listed, as is what follows.

    Numbers are truncated, so that of c > 0 all in [c, c + 1) are.
    """
    ends = np.nextafter(np.arange(1.0, len(listed) + 1), 0.0)
    return np.append(-1.0, ends), np.concatenate([[False], listed, [False]])


@final
@dataclass(frozen=True, eq=False)
class Questions:
    """What is asked of a view.

    Parameters
    ----------
    view : View
        What the model is given.
    numbers : callable
        What it makes of it.
    """

    view: View
    numbers: Numbers

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
        rising = [k for k in ends if isinstance(self.view.sources[k], Rising)]
        if not rising:
            return ends
        seen = np.repeat(rising, [len(ends[k]) for k in rising])
        asked = np.concatenate([ends[k] for k in rising])
        column = _AllAtOnce(self, seen)
        found = largest_at_most(column, asked, _near_secants(column, asked))
        return {**ends, **{k: found[seen == k] for k in rising}}

    def codes(self, k: int) -> Array:
        """What is seen of each code of the category behind a column; NaN if refused."""
        n_codes = self.view.table[self.view.sources[k].column].n_codes
        codes = np.arange(n_codes or 0, dtype=np.float64)
        return self._one_by_one(k, codes)

    def steps(self, k: int, source: Steps) -> tuple[Array, Array]:
        """Where runs of numbers end, but for the last, and what is seen of each."""
        values = np.array(source.values)
        if not source.elsewhere:
            return values[:-1], self._ask(k, values)
        asked = np.append(values, _beyond(values))
        seen = self._ask(k, asked)
        ends = np.stack([np.nextafter(values, -np.inf), values], axis=1).ravel()
        runs = np.full(len(ends) + 1, seen[-1])
        runs[1::2] = seen[:-1]
        return ends, runs

    def _one_by_one(self, k: int, values: Array) -> Array:
        """What is seen of values, some of which may be refused: NaN of those."""
        try:
            return self._ask(k, values)
        except (TypeError, ValueError):
            if len(values) == 1:
                return np.array([np.nan])
            return np.concatenate([self._one_by_one(k, v) for v in values[:, None]])

    def _ask(self, k: int, values: Array) -> Array:
        return self.view.ask(self.numbers, np.full(len(values), k), values)


def _beyond(values: Array) -> float:
    """A number that is larger than all."""
    return float(np.floor(values[-1]) + 1.0)


def _near_secants(column: ColumnMap, thresholds: Array) -> tuple[Array, Array]:
    """Numbers on both sides of where an affine map meets each threshold.

    They are a few roundings apart; infinite where the map is another, as then the two
    are not on both sides.
    """
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


@final
@dataclass(frozen=True, eq=False)
class _AllAtOnce:
    """Several columns of the model, as one map of entries that each belong to one."""

    questions: Questions
    seen: NDArray[np.intp]
    source: int = 0
    n_codes: int | None = None

    def __call__(self, values: Array, /) -> Array:
        near = np.clip(values, -FARTHEST, FARTHEST)
        asked = self.questions
        return asked.view.ask(asked.numbers, self.seen, near)
