"""iLOCO-Split: learners without sets of features, on rows that are held out."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from propopt._typing import Array, Values
from propopt.interactions.features import Features, Places
from propopt.interactions.left_out import LeftOutErrors
from propopt.interactions.refits import Refits
from propopt.tables.frames import rows_of


@final
@dataclass(frozen=True, kw_only=True)
class DataSplit:
    """One learner for each set of features, fitted on some rows, judged on the others.

    Parameters
    ----------
    test_size : float
        Share of the rows that are held out.
    """

    test_size: float = 0.5

    def fit(
        self,
        refits: Refits,
        *,
        seed: int,
        sets: Places | None = None,
        n_jobs: int | None = None,
        progress: bool | None = None,
    ) -> SplitErrors:
        """The fitted predictors: see :meth:`Scheme.fit`."""
        del sets, n_jobs, progress
        order = np.random.default_rng(seed).permutation(refits.n_rows)
        n_test = round(self.test_size * refits.n_rows)
        test = order[:n_test]
        held_out = rows_of(refits.table, test)
        return SplitErrors(refits, order[n_test:], held_out, refits.y[test], seed)


@final
@dataclass(frozen=True, eq=False)
class SplitErrors:
    """Errors at held-out rows; a set is fitted when it is first asked for.

    Parameters
    ----------
    refits : Refits
        Learner, table, target.
    training : array of int
        Rows that are fitted.
    table : array or DataFrame (n, D)
        Rows that are judged.
    y : array (n,)
        Their target.
    seed : int
        The same for each fit.
    """

    refits: Refits
    training: NDArray[np.intp]
    table: Any
    y: NDArray[Any]
    seed: int
    _known: dict[tuple[int, ...], Values] = field(default_factory=dict)

    @property
    def features(self) -> Features:
        return self.refits.features

    @property
    def row_weights(self) -> Array:
        return np.ones(len(self.y))

    def errors(self, sets: Places) -> LeftOutErrors:
        rows = np.stack([self._errors_without(tuple(own)) for own in sets.tolist()], 1)
        return LeftOutErrors(rows, np.zeros((0, len(sets))), np.ones(len(sets)))

    def _errors_without(self, left_out: tuple[int, ...]) -> Values:
        if left_out not in self._known:
            kept = np.ones(len(self.features), dtype=bool)
            kept[list(left_out)] = False
            predict = self.refits.fitted(self.training, kept, self.seed)
            error = self.refits.error
            known = error.known(predict(self.table), self.y)
            self._known[left_out] = error.of(self.y, known[:, None, :])[:, 0]
        return self._known[left_out]

    def judged_on(self, table: Any, y: NDArray[Any]) -> SplitErrors:
        return replace(self, table=table, y=y, _known={})

    def predict(self, table: Any) -> Array:
        kept = np.ones(len(self.features), dtype=bool)
        return self.refits.fitted(self.training, kept, self.seed)(table)
