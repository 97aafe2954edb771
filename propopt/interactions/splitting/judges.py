"""Learners of some rows, each judged on rows that had no part in it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from propopt._typing import Array
from propopt.interactions.learning.prediction import Predictor
from propopt.interactions.refits import Refits
from propopt.threads import one_thread


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class Judge:
    """Rows that are fitted, and others on which what was fitted is judged.

    Parameters
    ----------
    training : array of int
        Rows that are fitted.
    table : array or DataFrame (n, D)
        Rows that are judged.
    y : array (n,)
        Their target.
    places : array of int (n,)
        Where their errors stand among those of all judges.
    n_judged : int
        Rows that it judged in the fit, by which it counts in what is predicted.
    share : float
        Of these errors there: 1, or less where several judge one row.
    """

    training: NDArray[np.intp]
    table: Any
    y: NDArray[Any]
    places: NDArray[np.intp]
    n_judged: int
    share: float = 1.0

    def predictor(
        self, refits: Refits, left_out: tuple[int, ...], seed: int
    ) -> Predictor:
        """f^(−T), fitted to the training rows.

        Parameters
        ----------
        refits : Refits
            Learner, table, target.
        left_out : tuple of int
            T.
        seed : int
            The same for each T.
        """
        kept = np.ones(len(refits.features), dtype=bool)
        kept[list(left_out)] = False
        return refits.fitted(self.training, kept, seed)

    def errors(self, refits: Refits, predict: Predictor) -> Array:
        """Err(y, f^(−T)(x)) of the rows that are judged, (n,).

        Parameters
        ----------
        refits : Refits
            Learner, table, target.
        predict : callable
            f^(−T).
        """
        known = refits.error.known(predict(self.table), self.y)
        return refits.error.of(self.y, known[:, None, :])[:, 0]


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class Verdicts:
    """Errors of some predictors: a call that is sent to a worker.

    One thread of BLAS and OpenMP fits, whatever the number of workers, so that numbers
    do not depend on it.

    Parameters
    ----------
    refits : Refits
        Learner, table, target.
    judges : tuple of Judge
        Each fits each predictor.
    left_out : tuple of tuple of int
        The sets T without which predictors are fitted.
    seed : int
        The same for each fit.
    n_rows : int
        That are judged, by all judges together.
    suspects : frozenset of int
        Places of features that no predictor before was seen to use.
    """

    refits: Refits
    judges: tuple[Judge, ...]
    left_out: tuple[tuple[int, ...], ...]
    seed: int
    n_rows: int
    suspects: frozenset[int]

    def __call__(self) -> tuple[Array, frozenset[int]]:
        """Errors of all rows, (sets, rows), and which suspects are used."""
        suspects = set(self.suspects)
        found = np.zeros((len(self.left_out), self.n_rows))
        with one_thread():
            for row, left_out in zip(found, self.left_out, strict=True):
                for judge in self.judges:
                    predict = judge.predictor(self.refits, left_out, self.seed)
                    own = judge.errors(self.refits, predict)
                    row[judge.places] += judge.share * own
                    suspects -= self.refits.used(predict, suspects - set(left_out))
        return found, self.suspects - suspects
