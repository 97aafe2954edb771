"""Errors without a set of features, by refits; what a scheme is."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol, Self, final

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier
from sklearn.dummy import DummyClassifier, DummyRegressor

from propopt.base.arrays import Array, Values
from propopt.base.errors import InvalidInput
from propopt.interactions.errors_of_rows import ErrorChoice, RowError, read_error
from propopt.interactions.features import FeatureGroups, Features, Places, subsets_of
from propopt.interactions.learners import (
    class_indices,
    read_regression_target,
    read_sample_weight,
    read_target,
)
from propopt.interactions.learning import (
    Learner,
    Prediction,
    Predictor,
    array_of_numbers,
    check_estimator_kind,
    read_learning_table,
    sees_numbers_alone,
    taken,
)
from propopt.tables.frames import listed, names_of, rows_of, with_exchanged


# ---- Errors of predictions that are made without some features: what all else reads


@final
@dataclass(frozen=True, eq=False)
class LeftOutErrors:
    """Of q sets T of features, the errors of f^(−T), the predictor without them."""

    # (N, q): err(y_i, f^(−T)(x_i)), where row i had no part in that predictor
    rows: Array
    # (G, q): means over the rows with one of G groups of patches left out
    replicates: Array
    # (q,): over how many patches a prediction is averaged, in the row that has fewest
    counts: Array


class LeftOut(Protocol):
    """Predictors without any set of features, judged on rows that they did not see."""

    @property
    def features(self) -> Features:
        """The M features that may be left out."""

    @property
    def row_weights(self) -> Array:
        """Of each row in means over the rows, shape (N,); they sum to N."""

    @property
    def row_groups(self) -> NDArray[np.intp] | None:
        """Which rows belong together, (N,), 0 to C − 1; None where each is its own."""

    @property
    def used(self) -> frozenset[int] | None:
        """Places of the features that some fitted learner uses; None of all.

        It uses a feature if, at some row of the table, its prediction changes when the
        values of that feature are exchanged between the rows.
        """

    def errors(self, sets: Places) -> LeftOutErrors:
        """Errors without each of q sets of one size t; sets (q, t)."""

    def judged_on(self, table: Any, y: NDArray[Any]) -> LeftOut:
        """The same predictors, judged on new rows, of which none had a part in them.

        Their scores are, up to the number of rows, the target of the intervals.

        table (n, D), y (n,).
        """

    def predict(self, table: Any) -> Array:
        """What the whole predictor says, (n,) or probabilities (n, K); table (n, D)."""


def inclusion_exclusion(source: LeftOut, sets: Places) -> LeftOutErrors:
    """Scores Σ_{T ⊆ S} (−1)^(|T| + 1) Err(f^(−T)) of q sets S of one size, at each row.

    Errors without a T are asked for once for all S that it is in; ``counts`` are the
    fewest of any T.
    """
    n_sets, order = sets.shape
    rows = np.zeros((n_sets, len(source.row_weights)))
    replicates, counts = np.zeros((1, n_sets)), np.full(n_sets, np.inf)
    for size in range(order + 1):
        subsets, indices = subsets_of(sets, size)
        part = source.errors(subsets)
        sign = (-1.0) ** (size + 1)
        for own in indices:
            rows += sign * part.rows.T[own]
            replicates = replicates + sign * part.replicates[:, own]
            counts = np.minimum(counts, part.counts[own])
    return LeftOutErrors(rows.T, replicates, counts)


# ---- A learner that is fitted again and again, on some rows and some columns


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class Refits:
    """A learner, its table and target: what is fitted without some rows or columns."""

    estimator: Any  # of scikit-learn's kind; clones of it are fitted
    table: Any  # (N, D): X, as it came: missing values and dtypes are kept
    y: NDArray[Any]  # (N,): the target; of a classifier the places of classes
    classes: NDArray[Any] | None  # (K,): those of a classifier, sorted
    features: Features
    error: RowError  # err
    # (N,): of rows, for the fits and for means of errors
    sample_weight: Values | None = None

    @classmethod
    def of(
        cls,
        estimator: Any,
        X: Any,  # shape (N, D)
        y: Any,  # shape (N,)
        *,
        groups: FeatureGroups | None = None,
        error: ErrorChoice = "auto",
        sample_weight: Any = None,  # shape (N,)
    ) -> Self:
        """Read what a user gave, and refuse what cannot be fitted again and again."""
        check_estimator_kind(estimator)
        table, names = read_learning_table(X)
        n_rows = table.shape[0]
        target, classes = read_target(y, n_rows, is_classifier(estimator))
        refits = cls(
            estimator=estimator,
            table=table,
            y=target,
            classes=classes,
            features=Features.of(names, groups),
            error=read_error(error, classes),
            sample_weight=read_sample_weight(sample_weight, n_rows),
        )
        refits.learner.check(weighted=sample_weight is not None)
        return refits

    @property
    def n_rows(self) -> int:
        """How many rows there are."""
        return len(self.y)

    @cached_property
    def learner(self) -> Learner:
        """What is cloned for each fit."""
        n_columns = sum(map(len, self.features.columns))
        return Learner(self.estimator, n_columns, names_of(self.table))

    @cached_property
    def seen(self) -> Any:
        """The table as fits see it: an array where names and dtypes say nothing."""
        numbers = (
            array_of_numbers(self.table) if sees_numbers_alone(self.estimator) else None
        )
        return self.table if numbers is None else numbers

    @property
    def row_weights(self) -> Values:
        """Of the rows in means of errors, (N,): the sample weights, with the sum N."""
        if self.sample_weight is None:
            return np.ones(self.n_rows)
        return self.sample_weight * (self.n_rows / self.sample_weight.sum())

    def on(self, rows: NDArray[np.intp]) -> Refits:
        """The same learner, on some of the rows alone."""
        weights = self.sample_weight
        return replace(
            self,
            table=rows_of(self.table, rows.tolist()),
            y=self.y[rows],
            sample_weight=None if weights is None else weights[rows],
        )

    def read_rows(self, X: Any, y: Any) -> tuple[Any, NDArray[Any]]:
        """Other rows of the same columns, and their target as :attr:`y` is."""
        table, names = read_learning_table(X)
        known = read_learning_table(self.table)[1]
        if names != known:
            raise InvalidInput(
                f"X: expected the columns of fit, {listed(known)}, got {listed(names)}"
            )
        n_rows = table.shape[0]
        if self.classes is None:
            return table, read_regression_target(y, n_rows)
        return table, class_indices(y, self.classes, n_rows)

    def fitted(
        self, rows: NDArray[np.intp], kept: NDArray[np.bool_], seed: int
    ) -> Predictor:
        """The predictor that is fitted to some rows and features.

        rows (n,), kept (M,).
        """
        columns = self.features.columns_of(kept)
        target = self.y[rows]
        labels, observed = target, None
        if self.classes is not None:
            labels, observed = self._labels(target, self.classes)
        table = taken(self.seen, rows, columns)
        model = self._model(columns, table, observed, seed)
        own: dict[str, Any] = {}
        if self.sample_weight is not None:
            own = self.learner.weighted(model, self.sample_weight[rows])
        try:
            model.fit(table, labels, **own)
        except Exception as error:
            error.add_note(self._where(len(rows), kept))
            raise
        indices = None
        if observed is not None:  # of columns of ``predict_proba`` among all classes
            own_labels = np.unique(labels)  # in the order of their places
            indices = observed[np.searchsorted(own_labels, model.classes_)]
        n_classes = 0 if self.classes is None else len(self.classes)
        return Prediction(
            model, columns, indices, n_classes, isinstance(self.seen, np.ndarray)
        )

    def used(self, predict: Predictor, suspects: Collection[int]) -> set[int]:
        """Which of some features a fitted learner uses.

        It uses one if some prediction of the table changes, however little, when the
        values of the feature are exchanged between the rows, those that were fitted
        included.
        """
        if not suspects:
            return set()
        before = predict(self.seen)

        def changes(indices: Collection[int]) -> bool:
            table = self.seen
            for place in indices:
                order = np.random.default_rng(place).permutation(self.n_rows)
                table = with_exchanged(table, self.features.columns[place], order)
            return not np.array_equal(predict(table), before)

        if not changes(suspects):
            return set()
        return {place for place in suspects if changes([place])} or set(suspects)

    def _labels(
        self, target: NDArray[Any], classes: NDArray[Any]
    ) -> tuple[NDArray[Any], NDArray[np.intp]]:
        """Labels for a fit, and the places of the classes among them, ascending.

        Learners that want 0, ..., K − 1 get them anew where a class is missing.
        """
        observed = np.unique(target)
        numbered = classes.dtype.kind in "iu" and classes[-1] == len(classes) - 1
        missing = len(observed) < len(classes)
        if missing and numbered and not self.learner.speaks_of_classes:
            return np.searchsorted(observed, target), observed
        return classes[target], observed

    def _model(
        self,
        columns: NDArray[np.intp],
        table: Any,
        observed: NDArray[np.intp] | None,
        seed: int,
    ) -> Any:
        if observed is not None and (len(columns) == 0 or len(observed) == 1):
            return DummyClassifier(strategy="prior")
        if len(columns) == 0:
            return DummyRegressor()
        kept = np.zeros(self.learner.n_columns, dtype=bool)
        kept[columns] = True
        return self.learner.fresh(kept, table, seed)

    def _where(self, n_rows: int, kept: NDArray[np.bool_]) -> str:
        pairs = zip(self.features.names, kept, strict=True)
        absent = listed([name for name, keep in pairs if not keep])
        name = type(self.estimator).__name__
        return f"while {name} was fitted to {n_rows} rows, without features: {absent}"


# ---- How predictors without some features are had: what a scheme is


class Scheme(Protocol):
    """:class:`DataSplit` or :class:`Minipatches`."""

    def fit(
        self,
        refits: Refits,
        *,
        seed: int,
        sets: Places | None = None,  # shape (Q, r)
        n_jobs: int | None = None,
        progress: bool | None = None,
    ) -> LeftOut:
        """Predictors without sets of features, and their errors."""
