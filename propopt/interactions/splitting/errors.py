"""Errors at held-out rows, of predictors that are fitted when they are needed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from math import ceil
from typing import Any, Final, final

import numpy as np
from numpy.typing import NDArray

from propopt._typing import Array, Values
from propopt.interactions.features import Features, Places
from propopt.interactions.left_out import LeftOutErrors
from propopt.interactions.refits import Refits
from propopt.interactions.splitting.judges import Judge, Verdicts
from propopt.interactions.subsets import subsets_of
from propopt.memory import require_memory
from propopt.output.progress import progress_bar
from propopt.workers import in_workers, read_workers


MOST_AT_ONCE: Final = 16
"""Sets whose predictors are fitted by one call of a worker; fewer if few are wanted."""


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class SplitErrors:
    """Errors at held-out rows; a set is fitted when it is first asked for.

    Errors of a set are kept: 8 bytes for each set and row that is judged.

    Parameters
    ----------
    refits : Refits
        Learner, table, target.
    judges : tuple of Judge
        Rows that are fitted and rows that are judged: one, or one for each fold.
    row_weights : array (N,)
        Of the rows that are judged, in means over them.
    seed : int
        The same for each fit.
    row_groups : array of int (N,) or None
        Which rows that are judged belong together, where not each is its own.
    n_jobs : int or None
        Workers.
    progress : bool or None
        Show a bar.
    """

    refits: Refits
    judges: tuple[Judge, ...]
    row_weights: Values
    seed: int
    row_groups: NDArray[np.intp] | None = None
    n_jobs: int | None = None
    progress: bool | None = None
    _known: dict[tuple[int, ...], Values] = field(default_factory=dict, repr=False)
    _used: set[int] = field(default_factory=set, repr=False)

    @property
    def features(self) -> Features:
        return self.refits.features

    @property
    def used(self) -> frozenset[int]:
        """By the predictors that were fitted until now."""
        return frozenset(self._used)

    def errors(self, sets: Places) -> LeftOutErrors:
        wanted = _tuples(sets)
        self._fit(wanted)
        rows = np.stack([self._known[own] for own in wanted], axis=1)
        return LeftOutErrors(rows, np.zeros((0, len(sets))), np.ones(len(sets)))

    def fit_subsets_of(self, sets: Places) -> None:
        """Fit all that scores of the sets, and of each feature, will need.

        Parameters
        ----------
        sets : array of int (Q, r)
            Of one size.
        """
        single = self.features.all_sets(1)
        needed = [(), *_tuples(single)]
        for size in range(2, sets.shape[1] + 1):
            needed += _tuples(subsets_of(sets, size)[0])
        self._fit(needed)

    def judged_on(self, table: Any, y: NDArray[Any]) -> SplitErrors:
        """The same predictors on new rows; they are fitted again, with the same seed.

        Of K folds all judge each row, and count as much as they have rows.

        Parameters
        ----------
        table : array or DataFrame (n, D)
            New rows.
        y : array (n,)
            Their target; of a classifier the places of classes.
        """
        places = np.arange(len(y))
        judges = tuple(
            replace(judge, table=table, y=y, places=places, share=share)
            for judge, share in zip(self.judges, self._shares, strict=True)
        )
        return replace(
            self,
            judges=judges,
            row_weights=np.ones(len(y)),
            row_groups=None,
            _known={},
        )

    def predict(self, table: Any) -> Array:
        """What the whole predictor says; of K folds the mean of theirs.

        It is fitted again, with the same seed.

        Parameters
        ----------
        table : array or DataFrame (n, D)
            New rows.
        """
        shares = zip(self.judges, self._shares, strict=True)
        parts = [
            share * judge.predictor(self.refits, (), self.seed)(table)
            for judge, share in shares
        ]
        return np.sum(parts, axis=0)

    @property
    def _shares(self) -> Values:
        """Of each fold in the target, as it has rows."""
        judged = np.array([judge.n_judged for judge in self.judges], dtype=np.float64)
        return judged / judged.sum()

    def _fit(self, wanted: Sequence[tuple[int, ...]]) -> None:
        """Errors of those sets that are not known; what is finished is kept."""
        new = [own for own in dict.fromkeys(wanted) if own not in self._known]
        if not new:
            return
        n_rows = len(self.row_weights)
        require_memory(
            8 * n_rows * len(new),
            f"errors of {len(new)} sets at {n_rows} rows",
            "score fewer sets, chosen by a Screen",
        )
        n_workers = min(read_workers(self.n_jobs), len(new))
        parts = list(_parts(new, n_workers))
        calls = (
            Verdicts(
                refits=self.refits,
                judges=self.judges,
                left_out=part,
                seed=self.seed,
                n_rows=n_rows,
                suspects=frozenset(range(len(self.features))) - self._used,
            )
            for part in parts
        )
        with progress_bar("fits without features", len(new), self.progress) as bar:
            for part, found in zip(parts, in_workers(calls, n_workers), strict=True):
                errors, used = found
                self._known.update(zip(part, errors, strict=True))
                self._used.update(used)
                bar.advance(bar.task_ids[0], len(part))


def _parts(
    sets: Sequence[tuple[int, ...]], n_workers: int
) -> Iterator[tuple[tuple[int, ...], ...]]:
    """Sets that are fitted by one call: several calls for each worker."""
    size = min(MOST_AT_ONCE, ceil(len(sets) / (8 * n_workers)))
    for start in range(0, len(sets), size):
        yield tuple(sets[start : start + size])


def _tuples(sets: Places) -> list[tuple[int, ...]]:
    """Sets by which errors are remembered."""
    return [tuple(own) for own in sets.tolist()]
