"""Errors without a set of features, by refits: every score is a signed sum of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final, Self, final

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone, is_classifier
from sklearn.dummy import DummyClassifier, DummyRegressor

from propopt.base.arrays import Array, Values
from propopt.base.errors import InvalidInput
from propopt.base.resources import BATCH_BUDGET
from propopt.base.text import Quantity
from propopt.interactions.features import (
    WHOLE,
    FeatureGroups,
    Features,
    FeatureSets,
    subsets_of,
)
from propopt.interactions.inference import ErrorRange, moments
from propopt.interactions.learning import (
    Prediction,
    Predictor,
    SomeColumns,
    array_of_numbers,
    check_estimator_kind,
    class_indices,
    free_seeds,
    mentions_columns,
    read_learning_table,
    read_regression_target,
    read_sample_weight,
    read_target,
    refusing,
    restricted,
    sees_numbers_alone,
    taken,
    unfitted_copy,
    weight_name,
)
from propopt.interactions.row_errors import (
    PROBABILITY,
    ErrorChoice,
    RowError,
    read_error,
)
from propopt.interactions.scores import InteractionScores
from propopt.structures.kinds import has_method
from propopt.tables.frames import (
    column_names,
    listed,
    select_rows,
    with_permuted_columns,
)


# ---- Errors of predictions that are made without some features: what all else reads


@final
@dataclass(frozen=True, eq=False)
class SetErrors:
    """Of q sets T of features, the errors of f^(−T), the predictor without them."""

    # (N, q): err(y_i, f^(−T)(x_i)), where row i had no part in that predictor
    rows: Array
    # (G, q): means over the rows with one of G groups of patches left out
    replicates: Array
    # (q,): over how many patches a prediction is averaged, in the row that has fewest
    counts: Array


@dataclass(frozen=True, eq=False, kw_only=True)
class RefitErrors(ABC):
    """Predictors without any set of features, judged on rows that they did not see."""

    features: Features  # the M features that may be left out
    error: RowError  # err
    row_weights: Array  # (N,): of each row in means over the rows; they sum to N
    # (N,): which rows belong together, 0 to C − 1; None where each is its own
    row_groups: NDArray[np.intp] | None = None
    # places of the features that some fitted learner uses, of which its prediction at
    # some row changes when values are exchanged between the rows; None of all
    used: frozenset[int] | None = None
    method: str = ""  # how the predictors were had, in words
    notes: tuple[str, ...] = ()  # what a reader of the scores has to know

    @abstractmethod
    def errors(self, sets: FeatureSets) -> SetErrors:
        """Errors without each of q sets of one size t; sets (q, t)."""

    @abstractmethod
    def evaluate_on(self, table: Any, y: NDArray[Any]) -> RefitErrors:
        """The same predictors, judged on new rows: the target of intervals."""

    @abstractmethod
    def predict(self, table: Any) -> Array:
        """What the explained predictor says of rows (n, D): (n, K)."""

    def check(self, sets: FeatureSets, order: int) -> None:
        """Refuse sets of which predictors fitted for sets of a size say nothing."""
        del sets, order

    def leak(self, effects: Values, sets: FeatureSets) -> Values:
        """What main effects (M,) alone make of the scores of Q sets, (Q,)."""
        del effects
        return np.zeros(len(sets))

    @property
    def n_patches(self) -> int:
        """B; 0 where predictors are no means of patches."""
        return 0

    @property
    def not_used(self) -> tuple[int, ...]:
        """Places of features that no fitted learner uses."""
        everything = set(range(len(self.features)))
        return () if self.used is None else tuple(sorted(everything - self.used))

    def main_effects(self, quantity: Quantity | None = None) -> InteractionScores:
        """LOCO of each feature."""
        return self.scores(self.features.all_sets(1), None, quantity=quantity)

    def scores(
        self,
        sets: FeatureSets,  # (Q, r)
        main: InteractionScores | None,
        *,
        n_candidates: int | None = None,  # by default Q
        notes: tuple[str, ...] = (),
        quantity: Quantity | None = None,  # what the learner predicts
    ) -> InteractionScores:
        """Scores of Q sets, with all that is known of their errors."""
        known, not_used = set_scores(self, sets), self.not_used
        counted = ~np.isin(sets, np.array(not_used, np.intp)).any(axis=1)
        effects = known["estimates"] if main is None else main.estimates
        weighed = self.row_weights > 0.0
        groups = () if self.row_groups is None else self.row_groups[weighed]
        outcome = None if quantity is None else quantity.outcome
        return InteractionScores(
            sets=sets,
            names=self.features.names,
            columns=self.features.column_names,
            estimates=np.where(counted, known["estimates"], 0.0),
            standard_errors=np.where(counted, known["standard_errors"], 0.0),
            monte_carlo=np.where(counted, known["monte_carlo"], 0.0),
            counts=known["counts"],
            effective_rows=np.where(counted, known["effective_rows"], np.nan),
            n_groups=len(self.errors(WHOLE).replicates),
            n_rows=int(np.count_nonzero(weighed)),
            n_candidates=len(sets) if n_candidates is None else n_candidates,
            method=self.method,
            error=self.error.name,
            units=self.error.units.replace("the target", outcome or "the target"),
            quantity=quantity,
            error_range=self._error_range(),
            leak=np.where(counted, self.leak(effects, sets), 0.0),
            notes=notes if main is None else (*notes, *self.notes),  # said once
            main=main,
            n_patches=self.n_patches,
            n_row_groups=len(np.unique(groups)),
            not_used=not_used,
        )

    def _error_range(self) -> ErrorRange:
        """Of probabilities 0 to 1; else of errors seen without one feature, or none."""
        if self.error == PROBABILITY:
            return ErrorRange(0.0, 1.0, proved=True)
        observed = [self.errors(own).rows for own in (WHOLE, self.features.all_sets(1))]
        low = min(float(own.min()) for own in observed)
        high = max(float(own.max()) for own in observed)
        return ErrorRange(min(low, 0.0), max(high, 0.0), proved=False)


# ---- Scores of sets: signed sums of errors, their means, and the errors of these


def inclusion_exclusion(source: RefitErrors, sets: FeatureSets) -> SetErrors:
    """Scores Σ_{T ⊆ S} (−1)^(|T| + 1) Err(f^(−T)) of q sets S of one size, at each row.

    ``counts`` are the fewest of any T.
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
    return SetErrors(rows.T, replicates, counts)


def set_scores(source: RefitErrors, sets: FeatureSets) -> dict[str, Values]:
    """What :class:`InteractionScores` has of Q sets of one size, by its names there.

    Estimates are z̄_S, means over the rows of Σ_T (−1)^(|T| + 1) Err(f^(−T)).
    """
    row_bytes = 8 * len(source.row_weights)
    parts = []
    for own in list(BATCH_BUDGET.blocks(len(sets), row_bytes)) or [slice(0)]:
        z = inclusion_exclusion(source, sets[own])
        means, errors, carried = moments(z.rows, source.row_weights, source.row_groups)
        parts.append((means, errors, _jackknife(z.replicates), z.counts, carried))
    names = "estimates", "standard_errors", "monte_carlo", "counts", "effective_rows"
    joined = map(np.concatenate, zip(*parts, strict=True))
    return dict(zip(names, joined, strict=True))


def _jackknife(replicates: Array) -> Values:
    """√((G − 1)/G Σ_g (z̄_(−g) − mean)²), of estimates without one group each."""
    n_groups = len(replicates)
    if n_groups == 0:
        return np.zeros(replicates.shape[1])
    apart = replicates - replicates.mean(axis=0)
    return np.asarray(np.sqrt((n_groups - 1) / n_groups * (apart**2).sum(axis=0)))


# ---- A learner that is fitted again and again, on some rows and some columns


_OF_CLASSES: Final = frozenset(
    ["class_prior", "class_weight", "class_weights", "priors"]
)


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
        if sample_weight is not None:
            _ = refits._weight  # refused before anything is fitted
        if mentions_columns(estimator) and len(names) > 1:
            kept = np.arange(len(names)) > 0
            restricted(unfitted_copy(estimator), SomeColumns(column_names(table), kept))
        return refits

    @property
    def n_rows(self) -> int:
        """How many rows there are."""
        return len(self.y)

    @property
    def n_outputs(self) -> int:
        """R, how many numbers are known of each prediction."""
        shape = (1,) if self.classes is None else (1, len(self.classes))
        return int(self.error.known(np.zeros(shape), self.y[:1]).shape[1])

    @cached_property
    def seen(self) -> Any:
        """The table as fits see it: an array where names and dtypes say nothing."""
        numbers = (
            array_of_numbers(self.table) if sees_numbers_alone(self.estimator) else None
        )
        return self.table if numbers is None else numbers

    def classes_of_rows(self, asked: str) -> NDArray[Any]:
        """By which rows are drawn, (N,), as some setting asks."""
        if self.classes is None:
            raise InvalidInput(
                f"{asked}: rows are drawn by class, and a regressor has none; leave it "
                "out"
            )
        return self.y

    @property
    def row_weights(self) -> Values:
        """Of the rows in means of errors, (N,): the sample weights, with the sum N."""
        if self.sample_weight is None:
            return np.ones(self.n_rows)
        return self.sample_weight * (self.n_rows / self.sample_weight.sum())

    @property
    def constant_error(self) -> float:
        """Mean error of a constant: the mean target, or the shares of classes."""
        weights = self.row_weights / self.n_rows
        if self.classes is None:
            constant = np.full(self.n_rows, weights @ self.y)
        else:
            shares = np.bincount(self.y, weights, len(self.classes))
            constant = np.tile(shares, (self.n_rows, 1))
        known = self.error.known(constant, self.y)
        return float(weights @ self.error.of(self.y, known[:, None])[:, 0])

    def on(self, rows: NDArray[np.intp]) -> Refits:
        """The same learner, on some of the rows alone."""
        weights = self.sample_weight
        return replace(
            self,
            table=select_rows(self.table, rows.tolist()),
            y=self.y[rows],
            sample_weight=None if weights is None else weights[rows],
        )

    def read_rows(self, X: Any, y: Any) -> tuple[Any, NDArray[Any]]:
        """Other rows of the same columns, and their target as ``y`` is."""
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
        """The predictor that is fitted to some rows (n,) and features, kept (M,)."""
        columns = self.features.columns_of(kept)
        target = self.y[rows]
        labels, observed = target, None
        if self.classes is not None:
            labels, observed = self._labels(target, self.classes)
        table = taken(self.seen, rows, columns)
        model = self._model(columns, table, observed, seed)
        own: dict[str, Any] = {}
        if self.sample_weight is not None:
            same = type(model) is type(self.estimator)
            own[self._weight if same else "sample_weight"] = self.sample_weight[rows]
        try:
            with refusing(self.estimator, "fit"):
                model.fit(table, labels, **own)
        except Exception as error:
            pairs = zip(self.features.names, kept, strict=True)
            absent = [name for name, keep in pairs if not keep]
            error.add_note(
                f"while {type(self.estimator).__name__} was fitted to {len(rows)} "
                f"rows, without features: {listed(absent)}"
            )
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

        Its prediction at some row changes when their values are exchanged between rows.
        """
        if not suspects:
            return set()
        before = predict(self.seen)

        def changes(indices: Collection[int]) -> bool:
            table = self.seen
            for place in indices:
                order = np.random.default_rng(place).permutation(self.n_rows)
                table = with_permuted_columns(
                    table, self.features.columns[place], order
                )
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
        if missing and numbered and not self._speaks_of_classes:
            return np.searchsorted(observed, target), observed
        return classes[target], observed

    def _model(
        self,
        columns: NDArray[np.intp],
        table: Any,
        observed: NDArray[np.intp] | None,
        seed: int,
    ) -> Any:
        """A fresh learner for a table of some columns."""
        if observed is not None and (len(columns) == 0 or len(observed) == 1):
            return DummyClassifier(strategy="prior")
        if len(columns) == 0:
            return DummyRegressor()
        if self._alone is not None:  # as a clone with its seed, in a tenth of the time
            model = deepcopy(self._alone)
            if self._free:
                model.random_state = seed
            return model
        model = unfitted_copy(self.estimator)
        if self._free:
            model.set_params(**dict.fromkeys(self._free, seed))
        kept = np.isin(np.arange(sum(map(len, self.features.columns))), columns)
        if not self._mentions_columns or kept.all():
            return model
        return restricted(model, SomeColumns(column_names(self.table), kept, table))

    @cached_property
    def _alone(self) -> Any:
        """A clone of one of scikit-learn's learners, with no other in it; else None."""
        settings = self.estimator.get_params(deep=False).values()
        alone = (
            sees_numbers_alone(self.estimator)
            and not any(has_method(own, "get_params") for own in settings)
            and self._free in ((), ("random_state",))
        )
        return clone(self.estimator) if alone else None

    @cached_property
    def _mentions_columns(self) -> bool:
        return mentions_columns(self.estimator)

    @cached_property
    def _free(self) -> tuple[str, ...]:
        """Seeds that are not set."""
        return free_seeds(self.estimator)

    @cached_property
    def _weight(self) -> str:
        return weight_name(self.estimator)

    @cached_property
    def _speaks_of_classes(self) -> bool:
        """Whether a parameter has an entry for each class, or for some."""
        return any(
            name.split("__")[-1] in _OF_CLASSES
            and not (value is None or isinstance(value, str))
            for name, value in self.estimator.get_params().items()
        )
