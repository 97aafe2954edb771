"""Errors of rows without sets of features by refits; scores are their signed sums."""

from __future__ import annotations

import math
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection
from collections.abc import Set as AbstractSet
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, Final, Literal, Self, TypeAlias, final

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone, is_classifier
from sklearn.dummy import DummyClassifier, DummyRegressor

from propopt.base.arrays import Array, Values
from propopt.base.checks import as_floats, did_you_mean
from propopt.base.errors import AdditiveErrorWarning, InvalidInput
from propopt.base.resources import BATCH_BUDGET
from propopt.base.text import Quantity
from propopt.interactions.features import (
    WHOLE,
    FeatureGroups,
    Features,
    FeatureSets,
    subsets_of,
    with_any,
)
from propopt.interactions.inference import ErrorRange, moments
from propopt.interactions.learning import (
    LEARNER_ERRORS,
    ColumnSubset,
    Prediction,
    array_of_numbers,
    check_estimator_kind,
    class_indices,
    free_seeds,
    learner_error,
    mentions_columns,
    needs_only_numbers,
    read_learning_table,
    read_regression_target,
    read_sample_weight,
    read_target,
    restricted,
    table_part,
    unfitted_copy,
    weight_name,
)
from propopt.interactions.scores import InteractionScores
from propopt.structures.kinds import has_method
from propopt.tables.frames import (
    column_names,
    listed,
    select_rows,
    with_permuted_columns,
)


# ---- Errors Err(y, ŷ) of predictions, one for each row


@final
@dataclass(frozen=True)
class RowError:
    """An error of each row, and the outputs of a prediction that it depends on.

    These outputs, such as the probability of the class of the row, are averaged over
    patches before the error is computed.
    """

    name: str  # in files and tables
    units: str  # in words
    # Err of N rows and q predictors, (N, q), from y (N,) and outputs (N, q, R)
    compute: Callable[[NDArray[Any], Array], Array]
    true_class_only: bool = False  # the only output is that of the class of the row

    def relevant_outputs(self, predicted: Array, y: NDArray[Any]) -> Array:
        """Outputs (n, R) of n predictions that the error depends on; y (n,)."""
        if self.true_class_only:
            predicted = predicted[np.arange(len(y)), y.astype(np.intp)]
        return predicted.reshape(len(y), -1)


def _squared(y: NDArray[Any], outputs: Array) -> Array:
    return (outputs[..., 0] - y[:, None]) ** 2


def _absolute(y: NDArray[Any], outputs: Array) -> Array:
    return np.abs(outputs[..., 0] - y[:, None])


def _missing(y: NDArray[Any], outputs: Array) -> Array:
    del y
    return 1.0 - outputs[..., 0]


SQUARED: Final = RowError("squared", "squared units of the target", _squared)
"""(y − ŷ)² for regressions; scores by it have a proved meaning in the population."""

ABSOLUTE: Final = RowError("absolute", "units of the target", _absolute)
"""|y − ŷ|, which is Lipschitz, as the proof of coverage requires.

It gives important features positive scores without any interaction. Two normal effects
of standard deviation b, in units of that of normal noise, have the score
√(2/π) (2 √(1 + b²) − 1 − √(1 + 2b²)).
"""

PROBABILITY: Final = RowError(
    "probability", "probability", _missing, true_class_only=True
)
"""1 − p with p the probability of the class of the row."""


def _hinge(y: NDArray[Any], outputs: Array) -> Array:
    del y
    return np.maximum(0.0, 1.0 - outputs[..., 0])


HINGE: Final = RowError(
    "hinge", "units of the decision function", _hinge, true_class_only=True
)
"""max(0, 1 − d), d the decision function towards the class of the row, of two classes.

It is Lipschitz in d, as the proof of coverage requires. Shares p of classes have the
decision function 2p − 1.
"""


def _given(
    function: Callable[[Any, Any], Any],
    classes: NDArray[Any] | None,  # (K,): labels of a classifier
    y: NDArray[Any],
    outputs: Array,
) -> Array:
    """Errors by a function of the user, called once for many rows and predictors."""
    n_rows, n_sets, n_outputs = outputs.shape
    targets = y if classes is None else classes[y.astype(np.intp)]
    flat = outputs.reshape(n_rows * n_sets, n_outputs)
    predictions = flat[:, 0] if classes is None else flat
    result = function(np.repeat(targets, n_sets), predictions)
    errors: Values = as_floats(result, "error")
    if errors.shape != (n_rows * n_sets,):
        raise InvalidInput(
            f"error: {_name_of(function)}: expected one error for each of "
            f"{n_rows * n_sets} rows, got shape {errors.shape}; do not "
            "average over rows: lambda y, p: (y - p) ** 2"
        )
    if not np.isfinite(errors).all():
        wrong = int((~np.isfinite(errors)).sum())
        raise InvalidInput(
            f"error: {_name_of(function)}: {wrong} of {len(errors)} errors are not "
            "finite"
        )
    return errors.reshape(n_rows, n_sets)


def _name_of(function: Callable[[Any, Any], Any]) -> str:
    return str(getattr(function, "__name__", type(function).__name__))


ErrorChoice: TypeAlias = (
    Literal["auto", "squared", "absolute", "probability", "hinge"]
    | Callable[[Any, Any], Any]
)


def read_error(
    choice: ErrorChoice, classes: NDArray[Any] | None, estimator: Any
) -> RowError:
    """The error of that name; by default squared, for classes (K,) 1 − p.

    Two classes of an estimator without probabilities have the hinge of its decision
    function.
    """
    has_probabilities = has_method(estimator, "predict_proba")
    has_hinge = (
        classes is not None
        and len(classes) == 2
        and has_method(estimator, "decision_function")
    )
    if has_hinge and (
        choice == "hinge" or (choice == "auto" and not has_probabilities)
    ):
        return HINGE
    if classes is not None and not has_probabilities:
        name = type(estimator).__name__
        raise InvalidInput(
            f"estimator: {name} has no predict_proba, and errors of "
            f"{len(classes)} classes, other than the hinge of two, need probabilities; "
            "take CalibratedClassifierCV(estimator, ensemble=False)"
        )
    if callable(choice):
        formula = partial(_given, choice, classes)
        return RowError(_name_of(choice), "units of the error function", formula)
    if classes is None and choice in ("auto", "squared"):
        return SQUARED
    if classes is None and choice == "absolute":
        warnings.warn(
            "error: absolute errors give important features positive scores without "
            "any interaction (0.077 for two effects as large as the noise, 0.38 for "
            "two effects twice as large, in standard deviations of the noise); squared "
            "errors give 0",
            AdditiveErrorWarning,
            stacklevel=4,
        )
        return ABSOLUTE
    if classes is not None and choice in ("auto", "probability"):
        return PROBABILITY
    choices = ["squared", "absolute"] if classes is None else ["probability"]
    choices += ["hinge"] * has_hinge
    estimator = "a regressor" if classes is None else "a classifier"
    hint = did_you_mean(choice, ["auto", *choices])
    raise InvalidInput(
        f"error: for {estimator} expected 'auto', {listed(choices)} or a callable, got "
        f"{choice!r}{hint}"
    )


# ---- Errors of predictions without some features


@final
@dataclass(frozen=True, eq=False)
class SetErrors:
    """Errors of f^(−T), the predictor without the features T, for q sets T."""

    # (N, q): err(y_i, f^(−T)(x_i)) of a predictor that was fitted without row i
    rows: Array
    # (G, q): means over rows without one of G groups of patches
    replicates: Array
    # (q,): number of patches that a prediction is averaged over, in the worst row
    counts: Array


@dataclass(frozen=True, eq=False, kw_only=True)
class RefitErrors(ABC):
    """Predictors without sets of features, and their errors at unseen rows."""

    features: Features  # the M features that may be left out
    error: RowError  # err
    row_weights: Array  # (N,): weights in means over rows; their sum is N
    # (N,): groups of rows, 0 to C − 1; None if rows are independent
    row_groups: NDArray[np.intp] | None = None
    # indices of features that some learner uses: permuting their values between rows
    # changes a prediction; None if all are used
    used: AbstractSet[int] | None = None
    method: str = ""  # how the predictors were fitted, in words
    # root mean square error due to patches, relative to the error of a constant
    relative_patch_error: float = math.nan

    @abstractmethod
    def errors(self, sets: FeatureSets) -> SetErrors:
        """Errors of the predictors without each of q sets of size t; sets (q, t)."""

    @abstractmethod
    def evaluate_on(self, table: Any, y: NDArray[Any]) -> RefitErrors:
        """The errors of the same predictors on new rows, which intervals estimate."""

    def check(self, sets: FeatureSets, order: int) -> None:
        """Refuse sets that predictors for sets of size ``order`` cannot score."""
        del sets, order

    @property
    def n_patches(self) -> int:
        """The number of patches; 0 if predictors are not means of patches."""
        return 0

    @property
    def not_used(self) -> tuple[int, ...]:
        """Indices of features that no fitted learner uses."""
        everything = set(range(len(self.features)))
        return () if self.used is None else tuple(sorted(everything - self.used))

    @property
    def mean_error(self) -> float:
        """The mean error at unseen rows of the predictor with all features."""
        weights = self.row_weights
        return float(weights @ self.errors(WHOLE).rows[:, 0] / weights.sum())

    def main_effects(self, quantity: Quantity | None = None) -> InteractionScores:
        """The LOCO score of each feature."""
        return self.scores(self.features.all_sets(1), None, quantity=quantity)

    def scores(
        self,
        sets: FeatureSets,  # (Q, r)
        main: InteractionScores | None,
        *,
        quantity: Quantity | None = None,  # of the predictions
    ) -> InteractionScores:
        """Scores of Q sets with their standard errors."""
        moments_of_sets = set_scores(self, sets)
        not_used = self.not_used
        unused = with_any(sets, not_used)
        for name in ("scores", "standard_errors", "monte_carlo"):
            moments_of_sets[name][unused] = 0.0
        moments_of_sets["effective_rows"][unused] = np.nan
        weighed = self.row_weights > 0.0
        groups = () if self.row_groups is None else self.row_groups[weighed]
        outcome = None if quantity is None else quantity.outcome
        return InteractionScores(
            sets=sets,
            names=self.features.names,
            columns=self.features.column_names,
            **moments_of_sets,
            n_groups=len(self.errors(WHOLE).replicates),
            n_rows=int(np.count_nonzero(weighed)),
            n_candidates=len(sets),
            method=self.method,
            error=self.error.name,
            units=self.error.units.replace("the target", outcome or "the target"),
            quantity=quantity,
            error_range=self._error_range(),
            patch_error=math.nan if main is None else self.relative_patch_error,
            main=main,
            n_patches=self.n_patches,
            n_row_groups=len(np.unique(groups)),
            not_used=not_used,
        )

    def _error_range(self) -> ErrorRange:
        """0 to 1 for probabilities; else the observed range of errors."""
        if self.error == PROBABILITY:
            return ErrorRange(0.0, 1.0, proved=True)
        seen = [self.errors(sets).rows for sets in (WHOLE, self.features.all_sets(1))]
        ends = [(float(errors.min()), float(errors.max())) for errors in seen]
        low, high = zip((0.0, 0.0), *ends, strict=True)
        return ErrorRange(min(low), max(high), proved=False)


# ---- Scores of sets: signed sums of errors, their means and standard errors


def inclusion_exclusion(source: RefitErrors, sets: FeatureSets) -> SetErrors:
    """Scores Σ_{T ⊆ S} (−1)^(|T| + 1) Err(f^(−T)) of q sets S of one size, at each row.

    ``counts`` are minima over T.
    """
    n_sets, order = sets.shape
    rows = np.zeros((n_sets, len(source.row_weights)))
    replicates = np.zeros((1, n_sets))
    counts = np.full(n_sets, np.inf)
    for size in range(order + 1):
        subsets, indices = subsets_of(sets, size)
        part = source.errors(subsets)
        sign = (-1.0) ** (size + 1)
        for index in indices:
            rows += sign * part.rows.T[index]
            replicates = replicates + sign * part.replicates[:, index]
            counts = np.minimum(counts, part.counts[index])
    return SetErrors(rows.T, replicates, counts)


def set_scores(source: RefitErrors, sets: FeatureSets) -> dict[str, Values]:
    """Fields of :class:`InteractionScores` for Q sets of one size.

    Scores are z̄_S, means over rows of Σ_T (−1)^(|T| + 1) Err(f^(−T)).
    """
    row_bytes = 8 * len(source.row_weights)
    parts = []
    for block in BATCH_BUDGET.blocks(len(sets), row_bytes) or [slice(0)]:
        z = inclusion_exclusion(source, sets[block])
        means, errors, carried = moments(z.rows, source.row_weights, source.row_groups)
        parts.append((means, errors, _jackknife(z.replicates), z.counts, carried))
    names = "scores", "standard_errors", "monte_carlo", "counts", "effective_rows"
    joined = map(np.concatenate, zip(*parts, strict=True))
    return dict(zip(names, joined, strict=True))


def _jackknife(replicates: Array) -> Values:
    """√((G − 1)/G Σ_g (z̄_(−g) − mean)²) of estimates without group g."""
    if len(replicates) == 0:
        return np.zeros(replicates.shape[1])
    return np.sqrt((len(replicates) - 1) * replicates.var(axis=0))


# ---- A learner that is refitted to some rows and some columns


_OF_CLASSES: Final = frozenset(
    ["class_prior", "class_weight", "class_weights", "priors"]
)


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class Refits:
    """A learner with its table and target, to be refitted to some rows and columns."""

    estimator: Any  # a scikit-learn estimator, which is cloned
    table: Any  # (N, D): X with its missing values and dtypes
    y: NDArray[Any]  # (N,): the target; indices of classes for a classifier
    classes: NDArray[Any] | None  # (K,): sorted labels of a classifier
    features: Features
    error: RowError  # err
    # (N,): weights of rows in fits and in means of errors
    sample_weight: Values | None = None

    def __sizeof__(self) -> int:
        """The bytes of the table, by which dask sends it to a worker only once."""
        n_rows, n_columns = self.table.shape
        return object.__sizeof__(self) + 8 * n_rows * n_columns

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
        """Validate the arguments, and refuse what cannot be refitted."""
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
            error=read_error(error, classes, estimator),
            sample_weight=read_sample_weight(sample_weight, n_rows),
        )
        if sample_weight is not None:
            _ = refits._weight  # refused before anything is fitted
        if refits._mentions_columns and len(names) > 1:
            included = np.arange(len(names)) > 0
            restricted(
                unfitted_copy(estimator), ColumnSubset(column_names(table), included)
            )
        return refits

    @property
    def n_rows(self) -> int:
        """The number N of rows."""
        return len(self.y)

    @cached_property
    def n_outputs(self) -> int:
        """The number R of outputs of a prediction that the error uses."""
        shape = (1,) if self.classes is None else (1, len(self.classes))
        return int(self.error.relevant_outputs(np.zeros(shape), self.y[:1]).shape[1])

    @cached_property
    def learner_table(self) -> Any:
        """The table for the learner: an array if it needs no names and dtypes."""
        numbers = (
            array_of_numbers(self.table) if needs_only_numbers(self.estimator) else None
        )
        return self.table if numbers is None else numbers

    @property
    def row_weights(self) -> Values:
        """Weights of rows in means of errors, (N,): sample weights with the sum N."""
        if self.sample_weight is None:
            return np.ones(self.n_rows)
        return self.sample_weight * (self.n_rows / self.sample_weight.sum())

    @property
    def constant_error(self) -> float:
        """Mean error of a constant prediction: the mean target, or the class shares."""
        weights = self.row_weights / self.n_rows
        if self.classes is None:
            constant = np.full(self.n_rows, weights @ self.y)
        else:
            shares = np.bincount(self.y, weights, len(self.classes))
            constant = np.tile(shares, (self.n_rows, 1))
            if self.error == HINGE:
                constant = 2.0 * constant - 1.0
        outputs = self.error.relevant_outputs(constant, self.y)
        return float(weights @ self.error.compute(self.y, outputs[:, None])[:, 0])

    def subset(self, rows: NDArray[np.intp]) -> Refits:
        """The same learner with some of the rows."""
        weights = self.sample_weight
        return replace(
            self,
            table=select_rows(self.table, rows.tolist()),
            y=self.y[rows],
            sample_weight=None if weights is None else weights[rows],
        )

    def read_rows(self, X: Any, y: Any) -> tuple[Any, NDArray[Any]]:
        """New rows with the same columns, and their target in the coding of ``y``."""
        table, names = read_learning_table(X)
        fitted_names = read_learning_table(self.table)[1]
        if names != fitted_names:
            raise InvalidInput(
                f"X: expected the columns of fit, {listed(fitted_names)}, got "
                f"{listed(names)}"
            )
        n_rows = table.shape[0]
        if self.classes is None:
            return table, read_regression_target(y, n_rows)
        return table, class_indices(y, self.classes, n_rows)

    def fit_predictor(
        self, rows: NDArray[np.intp], included: NDArray[np.bool_], seed: int
    ) -> Prediction:
        """Fit the learner to some rows (n,) and features, included (M,)."""
        columns = np.flatnonzero(included[self.features.of_columns])
        target = self.y[rows]
        labels = target
        observed = None
        if self.classes is not None:
            labels, observed = self._labels(target, self.classes)
        model = self._model(columns, observed, seed)
        table = table_part(self.learner_table, rows, columns)
        is_partial = 0 < len(columns) < len(self.features.of_columns)
        same = type(model) is type(self.estimator)
        if is_partial and same and self._mentions_columns:
            remaining = included[self.features.of_columns]
            model = restricted(
                model, ColumnSubset(column_names(self.table), remaining, table)
            )
        fit_options: dict[str, Any] = {}
        if self.sample_weight is not None:
            fit_options[self._weight if same else "sample_weight"] = self.sample_weight[
                rows
            ]
        try:
            model.fit(table, labels, **fit_options)
        except LEARNER_ERRORS as error:
            refusal = learner_error(self.estimator, "fit", error)
            refusal.add_note(self._note(rows, included))
            raise refusal from error
        except Exception as error:
            error.add_note(self._note(rows, included))
            raise
        indices = None
        if observed is not None:  # columns of ``predict_proba`` among all classes
            present = np.unique(labels)  # sorted
            indices = observed[np.searchsorted(present, model.classes_)]
        n_classes = 0 if self.classes is None else len(self.classes)
        return Prediction(
            model,
            columns,
            indices,
            n_classes,
            isinstance(self.learner_table, np.ndarray),
            self.error == HINGE,
        )

    def _note(self, rows: NDArray[np.intp], included: NDArray[np.bool_]) -> str:
        """What was fitted, for an error."""
        pairs = zip(self.features.names, included, strict=True)
        absent = [name for name, is_included in pairs if not is_included]
        return (
            f"while {type(self.estimator).__name__} was fitted to {len(rows)} rows, "
            f"without features: {listed(absent)}"
        )

    def used_features(self, predict: Prediction, unused: Collection[int]) -> set[int]:
        """Features that a fitted learner uses, among those that no other one uses.

        Permuting the values of such a feature between rows changes a prediction.
        """
        included = set(self.features.of_columns[predict.columns].tolist())
        suspects = included.intersection(unused)
        if not suspects:
            return set()
        before = predict(self.learner_table)

        def changes(indices: Collection[int]) -> bool:
            table = self.learner_table
            for index in indices:
                order = np.random.default_rng(index).permutation(self.n_rows)
                table = with_permuted_columns(
                    table, self.features.columns[index], order
                )
            return not np.array_equal(predict(table), before)

        if not changes(suspects):
            return set()
        return {index for index in suspects if changes([index])} or suspects

    def _labels(
        self, target: NDArray[Any], classes: NDArray[Any]
    ) -> tuple[NDArray[Any], NDArray[np.intp]]:
        """Labels for a fit, and the sorted indices of the classes among them.

        If a class is missing, labels 0, ..., K − 1 are renumbered without gaps.
        """
        observed = np.unique(target)
        numbered = classes.dtype.kind in "iu" and classes[-1] == len(classes) - 1
        missing = len(observed) < len(classes)
        if missing and numbered and not self._has_class_parameters:
            return np.searchsorted(observed, target), observed
        return classes[target], observed

    def _model(
        self,
        columns: NDArray[np.intp],
        observed: NDArray[np.intp] | None,
        seed: int,
    ) -> Any:
        """An unfitted learner; without columns, of the mean or the shares."""
        if observed is not None and (len(columns) == 0 or len(observed) == 1):
            return DummyClassifier(strategy="prior")
        if len(columns) == 0:
            return DummyRegressor()
        if self._plain_clone is not None:  # ten times as fast as a clone
            model = deepcopy(self._plain_clone)
            if self._free_seeds:
                model.random_state = seed
            return model
        model = unfitted_copy(self.estimator)
        if self._free_seeds:
            model.set_params(**dict.fromkeys(self._free_seeds, seed))
        return model

    @cached_property
    def _plain_clone(self) -> Any:
        """A clone of a scikit-learn learner that contains no other; else None."""
        settings = self.estimator.get_params(deep=False).values()
        is_plain = (
            needs_only_numbers(self.estimator)
            and not any(has_method(value, "get_params") for value in settings)
            and self._free_seeds in ((), ("random_state",))
        )
        return clone(self.estimator) if is_plain else None

    @cached_property
    def _mentions_columns(self) -> bool:
        return mentions_columns(self.estimator, column_names(self.table) or ())

    @cached_property
    def _free_seeds(self) -> tuple[str, ...]:
        """Parameters for seeds that are not set."""
        return free_seeds(self.estimator)

    @cached_property
    def _weight(self) -> str:
        return weight_name(self.estimator)

    @cached_property
    def _has_class_parameters(self) -> bool:
        """Whether a parameter has entries for classes."""
        return any(
            name.split("__")[-1] in _OF_CLASSES
            and not (value is None or isinstance(value, str))
            for name, value in self.estimator.get_params().items()
        )
