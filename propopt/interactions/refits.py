"""A learner that is fitted again and again, on some rows and some columns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, final

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.dummy import DummyClassifier, DummyRegressor

from propopt._typing import Array, Values
from propopt.interactions.features import Features
from propopt.interactions.row_errors import RowError


Predictor = Callable[[Any], Array]
"""From a table of all columns to predictions (n,), or probabilities (n, K)."""


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class Refits:
    """A learner, its table and target: what is fitted without some rows or columns.

    Parameters
    ----------
    estimator : estimator
        Of scikit-learn's kind; clones of it are fitted.
    table : array or DataFrame (N, D)
        X, as it came: missing values and dtypes are kept.
    y : array (N,)
        The target; of a classifier the places of classes.
    classes : array (K,) or None
        Those of a classifier, sorted.
    features : Features
        Of the columns.
    error : RowError
        Err.
    sample_weight : array (N,) or None
        For the fits.
    """

    estimator: Any
    table: Any
    y: NDArray[Any]
    classes: NDArray[Any] | None
    features: Features
    error: RowError
    sample_weight: Values | None = None

    @property
    def n_rows(self) -> int:
        """How many rows there are."""
        return len(self.y)

    def fitted(
        self, rows: NDArray[np.intp], kept: NDArray[np.bool_], seed: int
    ) -> Predictor:
        """The predictor that is fitted to some rows and features.

        Parameters
        ----------
        rows : array of int (n,)
            Fitted on these.
        kept : array of bool (M,)
            Which features it sees; with none of them it is the mean, or how often
            classes come.
        seed : int
            For each ``random_state`` of the learner that is None.
        """
        columns = self.features.columns_of(kept)
        target = self.y[rows]
        labels = target if self.classes is None else self.classes[target]
        model = self._model(len(columns), labels, seed)
        own = (
            {}
            if self.sample_weight is None
            else {"sample_weight": self.sample_weight[rows]}
        )
        model.fit(_taken(self.table, rows, columns), labels, **own)
        return _Prediction(model, columns, self.classes)

    def _model(self, n_columns: int, labels: NDArray[Any], seed: int) -> Any:
        if self.classes is not None and (n_columns == 0 or len(set(labels)) == 1):
            return DummyClassifier(strategy="prior")
        if n_columns == 0:
            return DummyRegressor()
        model = clone(self.estimator)
        free = [
            name
            for name, value in model.get_params().items()
            if value is None and name.split("__")[-1] == "random_state"
        ]
        return model.set_params(**dict.fromkeys(free, seed))


@final
@dataclass(frozen=True, eq=False)
class _Prediction:
    model: Any
    columns: NDArray[np.intp]
    classes: NDArray[Any] | None

    def __call__(self, table: Any) -> Array:
        own = _taken(table, None, self.columns)
        if self.classes is None:
            return np.asarray(self.model.predict(own), dtype=np.float64)
        found = np.asarray(self.model.predict_proba(own), dtype=np.float64)
        probabilities = np.zeros((len(found), len(self.classes)))
        probabilities[:, np.searchsorted(self.classes, self.model.classes_)] = found
        return probabilities


def _taken(table: Any, rows: Any, columns: NDArray[np.intp]) -> Any:
    """Some rows, or all, and some columns, in the form that a table has."""
    if isinstance(table, pd.DataFrame):
        return table.iloc[slice(None) if rows is None else rows, columns]
    return table[:, columns] if rows is None else table[np.ix_(rows, columns)]
