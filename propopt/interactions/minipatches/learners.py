"""Fitted learners of all patches, kept to predict new rows."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from typing import Any, final

from numpy.typing import NDArray

from propopt._typing import Array
from propopt.errors import InvalidInput
from propopt.interactions.learning.prediction import Predictor
from propopt.interactions.minipatches.store import new_store
from propopt.interactions.row_errors import RowError


@final
@dataclass(frozen=True, eq=False)
class Learners:
    """B fitted learners.

    Parameters
    ----------
    predictors : tuple of callable (B,)
        In the order of the patches.
    error : RowError
        Says what is kept of a prediction.
    """

    predictors: tuple[Predictor, ...]
    error: RowError

    def mean(self, table: Any) -> Array:
        """The mean prediction of all learners: what the scores explain.

        Parameters
        ----------
        table : array or DataFrame (n, D)
            New rows.
        """
        total = self.predictors[0](table)
        for predict in self.predictors[1:]:
            total = total + predict(table)
        return total / len(self.predictors)

    def known(self, table: Any, y: NDArray[Any]) -> Array:
        """What is known of each learner's predictions of new rows, (B, n, R).

        Parameters
        ----------
        table : array or DataFrame (n, D)
            New rows.
        y : array (n,)
            Their target.
        """
        first = self.error.known(self.predictors[0](table), y)
        with closing(new_store((len(self.predictors), *first.shape))) as store:
            store.write(0, first[None])
            for b, predict in enumerate(self.predictors[1:], start=1):
                store.write(b, self.error.known(predict(table), y)[None])
            return store.read(len(self.predictors))


def kept(learners: Learners | None) -> Learners:
    """The learners, where they were kept.

    Raises
    ------
    InvalidInput
        If they were not.
    """
    if learners is None:
        raise InvalidInput(
            "the fitted learners are not there any more; fit with "
            "Minipatches(keep=True)"
        )
    return learners
