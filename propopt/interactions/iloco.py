"""The estimator, how it scores, and which sets it screens."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from functools import partial
from math import comb
from typing import Any, Self, final

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, is_classifier
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, validate_data

from propopt.base.arrays import Array, Values
from propopt.base.checks import read_count, read_seed
from propopt.base.errors import DegenerateVarianceWarning, InvalidInput
from propopt.base.text import Quantity, QuantityKind
from propopt.interactions.errors_of_rows import PROBABILITY, ErrorChoice, RowError
from propopt.interactions.features import (
    WHOLE,
    FeatureGroups,
    Features,
    Places,
    SetChoice,
    read_order,
    read_sets,
)
from propopt.interactions.inference import ErrorRange, set_scores
from propopt.interactions.learning import read_learning_table
from propopt.interactions.left_out import LeftOut, Refits, Scheme
from propopt.interactions.minipatches import Minipatches, PatchErrors
from propopt.interactions.patch_draws import additive_leak
from propopt.interactions.scores import InteractionScores, counted_sets
from propopt.interactions.splitting import DataSplit, SplitErrors
from propopt.results.certain import plural
from propopt.tables.frames import names_of


# ---- The estimator: iLOCO of pairs or larger sets of features, and LOCO of each


@final
@dataclass(frozen=True, eq=False)
class Scoring:
    """Fitted predictors, and how they were had."""

    source: LeftOut  # the predictors
    scheme: Scheme  # how they were had
    error: RowError  # err
    # how predictors were had, where the source is of other rows than the fit was
    method: str = ""
    quantity: Quantity | None = None  # what the learner predicts

    @property
    def features(self) -> Features:
        """The M features."""
        return self.source.features

    def main_effects(self) -> InteractionScores:
        """LOCO of each feature."""
        return self.of(self.features.all_sets(1), None, n_candidates=len(self.features))

    def of(
        self,
        sets: Places,  # shape (Q, r)
        main: InteractionScores | None,
        *,
        n_candidates: int,
        notes: tuple[str, ...] = (),
    ) -> InteractionScores:
        """Scores of Q sets."""
        source = self.source
        groups, weights = source.row_groups, source.row_weights
        result, not_used = set_scores(source, sets), self._not_used()
        counted = ~np.isin(sets, np.array(not_used, np.intp)).any(axis=1)
        effects = result.estimates if main is None else main.estimates
        return InteractionScores(
            sets=sets,
            names=self.features.names,
            columns=self.features.column_names,
            estimates=np.where(counted, result.estimates, 0.0),
            standard_errors=np.where(counted, result.standard_errors, 0.0),
            monte_carlo=np.where(counted, result.monte_carlo, 0.0),
            counts=result.counts,
            effective_rows=np.where(counted, result.effective_rows, np.nan),
            n_groups=result.n_groups,
            n_rows=int(np.count_nonzero(source.row_weights)),
            n_candidates=n_candidates,
            method=self.method or self._method(),
            error=self.error.name,
            units=self._units(),
            quantity=self.quantity,
            error_range=self._error_range(),
            leak=np.where(counted, self._leak(effects, sets), 0.0),
            notes=notes,
            main=main,
            n_patches=len(source.patches) if isinstance(source, PatchErrors) else 0,
            n_row_groups=0 if groups is None else len(np.unique(groups[weights > 0.0])),
            not_used=not_used,
        )

    def _units(self) -> str:
        """With the name of the target, where it has one."""
        outcome = None if self.quantity is None else self.quantity.outcome
        units = self.error.units
        return units if outcome is None else units.replace("the target", outcome)

    def _not_used(self) -> tuple[int, ...]:
        """Not by patches of one size: a feature without use takes the place of others.

        Their target of such a feature is a leak, and not zero.
        """
        used = None if self._of_one_size else self.source.used
        n_features = len(self.features)
        return () if used is None else tuple(sorted(set(range(n_features)) - used))

    @property
    def _of_one_size(self) -> bool:
        return isinstance(self.scheme, Minipatches) and self.scheme.columns == "fixed"

    def _method(self) -> str:
        if not isinstance(self.source, PatchErrors):
            return repr(self.scheme)
        patches = self.source.patches
        share = patches.features.sum(axis=1).mean()
        return (
            f"{len(patches):,} minipatches of {plural(patches.rows.shape[1], 'row')} "
            f"and {share:.3g} of {plural(len(self.features), 'feature')}"
        )

    def _error_range(self) -> ErrorRange:
        """Of probabilities 0 to 1; else of errors seen without one feature, or none."""
        if self.error == PROBABILITY:
            return ErrorRange(0.0, 1.0, proved=True)
        observed = [
            self.source.errors(own).rows for own in (WHOLE, self.features.all_sets(1))
        ]
        low = min(float(own.min()) for own in observed)
        high = max(float(own.max()) for own in observed)
        return ErrorRange(min(low, 0.0), max(high, 0.0), proved=False)

    def _leak(self, effects: Values, sets: Places) -> Values:
        """By patches that all have one number of features; else there is none."""
        source = self.source
        if not (self._of_one_size and isinstance(source, PatchErrors)):
            return np.zeros(len(sets))
        n_kept = int(source.patches.features[0].sum())
        return additive_leak(effects, n_kept, sets, self.error)


def warn_of_equal_rows(scores: InteractionScores) -> None:
    """Say it once, of scores that a user asked for."""
    count = int(scores.degenerate.sum())
    if count > 0:
        warnings.warn(
            f"{count} of {counted_sets(scores, len(scores))} have one score in all "
            "rows; their intervals are what so many equal rows allow, see cautions",
            DegenerateVarianceWarning,
            stacklevel=4,
        )


# ---- Which sets are scored where there are too many to score all


@final
@dataclass(frozen=True, eq=False)
class ChosenSets:
    """Sets that are scored, and how many there were to choose from."""

    places: Places  # (Q, r): the sets
    n_candidates: int  # for how many sets p-values and intervals are corrected
    notes: tuple[str, ...] = ()  # how they were chosen, a sentence each


@final
@dataclass(frozen=True, kw_only=True)
class Screen:
    """The sets of largest scores, of either sign, in minipatches.

    Of a split they are chosen by minipatches of its training rows alone, which say
    nothing of the rows that are judged: intervals are corrected for the chosen sets
    only. Of minipatches they are chosen by those that are fitted, and of K folds by
    minipatches of all rows: the rows that choose are judged, too, so that intervals are
    corrected for all sets there were.

    Pairs are all looked at. Larger sets are made of the chosen sets of one feature
    less and any other feature, size by size. With independent features a set has no
    larger score, in the population, than the sets within it (Little, Zheng & Allen,
    Proposition 2), so that one is missed only where ``n_sets`` others score more than
    each set within it.

    Parameters
    ----------
    n_sets : int
        How many are chosen.
    scheme : Minipatches
        By which sets are chosen where predictors are fitted for each set.

    Raises
    ------
    InvalidInput
        If ``n_sets`` is no number of sets, or ``scheme`` no minipatches.

    Examples
    --------
    >>> Screen(n_sets=20).n_sets
    20
    """

    n_sets: int = 100
    scheme: Minipatches = field(
        default=Minipatches(n_patches=1000, n_features=0.5, columns="bernoulli")
    )

    def __post_init__(self) -> None:
        read_count(self.n_sets, "n_sets")
        if not isinstance(self.scheme, Minipatches):
            raise InvalidInput(f"scheme: expected Minipatches, got {self.scheme!r}")

    def one_set(self, order: int, features: Features) -> Places:
        """A set of a size, as those that will be chosen, (1, order).

        Parameters
        ----------
        order : int
            The size.
        features : Features
            M features.

        Raises
        ------
        InvalidInput
            If there are no sets of that size.
        """
        return np.arange(read_order(order, len(features)), dtype=np.intp)[None]

    def choose(self, source: LeftOut, order: int) -> ChosenSets:
        """The sets that are scored.

        Parameters
        ----------
        source : LeftOut
            The fitted predictors that are going to judge them.
        order : int
            Size of the sets.

        Raises
        ------
        InvalidInput
            If there are no sets of that size.
        """
        n_all = comb(len(source.features), self.one_set(order, source.features).size)
        judge, label, apart = self._judge(source)
        indices = _largest(judge, order, self.n_sets)
        counted = len(indices) if apart else n_all
        note = (
            f"{len(indices):,} of {n_all:,} sets were chosen for their scores in "
            f"{label}; corrections count {counted:,}"
        )
        return ChosenSets(indices, counted, (note,))

    def _judge(self, source: LeftOut) -> tuple[LeftOut, str, bool]:
        """Who chooses, and whether the rows that choose are not judged."""
        if not isinstance(source, SplitErrors):
            return source, "the minipatches that judge them", False
        apart = len(source.judges) == 1
        rows = source.judges[0].training
        refits = source.refits.on(rows) if apart else source.refits
        chosen = self.scheme.fit(
            refits, seed=source.seed, n_jobs=source.n_jobs, progress=source.progress
        )
        return (
            chosen,
            f"minipatches of {'the training' if apart else 'all'} rows",
            apart,
        )


def _largest(judge: LeftOut, order: int, n_sets: int) -> Places:
    """The sets of largest scores, made of those of one feature less; in their order."""
    features = judge.features
    chosen = features.all_sets(min(order, 2))
    for size in range(min(order, 2), order + 1):
        if size > 2:
            chosen = _extended(chosen, features)
        scores = np.abs(set_scores(judge, chosen).estimates)
        # the first of equal ones
        best = np.argsort(-scores, kind="stable")[:n_sets]
        chosen = chosen[np.sort(best)]
    return chosen


def _extended(sets: Places, features: Features) -> Places:
    """Each set with each feature that it does not have, once."""
    n_sets, n_all = len(sets), len(features)
    every = np.concatenate(
        [np.repeat(sets, n_all, axis=0), np.tile(np.arange(n_all), n_sets)[:, None]], 1
    )
    new = ~(every[:, :-1] == every[:, -1:]).any(axis=1)
    return np.unique(np.sort(every[new], axis=1), axis=0)


def _predicts_by(scheme: Scheme | None) -> bool:
    """Whether fitted learners are there after the fit."""
    if isinstance(scheme, Minipatches):
        return scheme.keep
    return scheme is not None


def _predicts(model: ILOCO) -> bool:
    if not _predicts_by(model.scheme):
        raise AttributeError(
            "ILOCO predicts by the learners of all patches, which were not kept; fit "
            "with Minipatches(keep=True)"
        )
    return True


def _predicts_probabilities(model: ILOCO) -> bool:
    if not is_classifier(model.estimator):
        raise AttributeError(
            f"{type(model.estimator).__name__} is no classifier: it has no "
            "probabilities"
        )
    return _predicts(model)


# scikit-learn's classes have no types
class ILOCO(BaseEstimator):  # type: ignore[misc]
    """How much features matter jointly to a learner, with confidence intervals.

    iLOCO_jk = E[Err(f^−j) + Err(f^−k) − Err(f^−jk) − Err(f)], with predictors f^−T that
    are fitted without the features T (Little, Zheng & Allen, arXiv 2502.06661). Large
    scores are of features that matter jointly, beyond what each does alone; very
    negative ones of features that stand in for each other.

    Parameters
    ----------
    estimator : estimator
        A regressor or classifier of scikit-learn's kind; clones of it are fitted.
    scheme : Minipatches or DataSplit, optional
        How predictors without features are had; by default ``Minipatches()``.
    order : int
        Size of the sets: 1 is LOCO, 2 are pairs.
    sets : "all", sequence of sequences of names, or Screen
        Which sets; if they are given, they say their size themselves.
    error : {"auto", "squared", "absolute", "probability"} or callable
        Err: of regressors squared by default, of classifiers 1 − p of the class.
    groups : mapping of a feature to its columns, or TableSchema, optional
        Columns that are left out together.
    n_jobs : int or None
        Workers; scores do not depend on it.
    random_state : int, Generator or None
        For all that is drawn; None is 0, and a generator is advanced.
    progress : bool or None
        Show a bar; None shows it on a terminal.

    Attributes
    ----------
    result_ : InteractionScores
        Of the sets.
    main_effects_ : InteractionScores
        LOCO of each feature.
    left_out_ : LeftOut
        The fitted predictors, from which further sets are scored.
    error_ : RowError
        Err.
    n_features_in_ : int
        D.
    feature_names_in_ : array (D,)
        Where all columns have names that are text.
    classes_ : array (K,)
        Of a classifier.

    See Also
    --------
    InteractionScores : Intervals, tests, and what they mean.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.tree import DecisionTreeRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 4))
    >>> y = 3 * X[:, 0] * X[:, 1] + X[:, 2]
    >>> scheme = Minipatches(n_patches=1000, columns="bernoulli")
    >>> found = ILOCO(DecisionTreeRegressor(), scheme).fit(X, y)
    >>> found.result_.to_frame().nlargest(1, "estimate")[["feature_1", "feature_2"]]
       feature_1  feature_2
    0          0          1
    >>> found.interactions([(0, 1, 2)]).order
    3
    """

    def __init__(
        self,
        estimator: Any,
        scheme: Scheme | None = None,
        *,
        order: int = 2,
        sets: SetChoice | Screen = "all",
        error: ErrorChoice = "auto",
        groups: FeatureGroups | None = None,
        n_jobs: int | None = None,
        random_state: int | np.random.Generator | None = 0,
        progress: bool | None = None,
    ) -> None:
        self.estimator = estimator
        self.scheme = scheme
        self.order = order
        self.sets = sets
        self.error = error
        self.groups = groups
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.progress = progress

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the predictors, and score the sets and each feature.

        Parameters
        ----------
        X : array or DataFrame (N, D)
            The table.
        y : array (N,)
            The target.
        sample_weight : array (N,), optional
            Of rows, for the fits and for means over rows.

        Raises
        ------
        InvalidInput
            If a table, target, set or setting cannot be used; the message says what
            would do.
        """
        scheme, sets = self._scheme, self.sets
        refits = Refits.of(
            self.estimator,
            X,
            y,
            groups=self.groups,
            error=self.error,
            sample_weight=sample_weight,
        )
        _refuse_one_row(refits.n_rows)
        # the sets that are going to be scored, or one of their size
        which = sets.one_set if isinstance(sets, Screen) else partial(read_sets, sets)
        indices = which(self.order, refits.features)
        self._check_columns(X, reset=True)
        self.error_ = refits.error
        if refits.classes is not None:
            self.classes_ = refits.classes
        self._one_row = refits.on(np.arange(1))  # knows how others are read
        self.left_out_: LeftOut = scheme.fit(
            refits,
            seed=read_seed(self.random_state, "random_state"),
            sets=indices,
            n_jobs=self.n_jobs,
            progress=self.progress,
        )
        self._quantity = _predicted_of(self.estimator, y)
        self.main_effects_ = self._scoring.main_effects()
        self.result_ = self._scored(self._chosen(self.sets, self.order))
        return self

    def interactions(
        self, sets: SetChoice | Screen = "all", *, order: int = 2
    ) -> InteractionScores:
        """Scores of sets of any size, from what is fitted.

        By minipatches nothing is fitted again; by a split what these sets need and no
        set before them did.

        Parameters
        ----------
        sets : "all", sequence of sequences of names, or Screen
            All of one size; p-values and intervals are corrected for so many, and for
            as many as a screen says.
        order : int
            That size, of ``"all"``.

        Raises
        ------
        InvalidInput
            If a name is unknown, or no patch sees a set whole or leaves it out.
        """
        check_is_fitted(self, "left_out_")
        chosen = self._chosen(sets, order)
        self._check(chosen.places)
        return self._scored(chosen)

    def target(
        self, X: Any, y: Any, sets: SetChoice = "all", *, order: int = 2
    ) -> InteractionScores:
        """What intervals are for, from new rows: the same predictors, judged on them.

        Of minipatches it is the mean of all patches, and no row is left out of any. It
        has standard errors of its own, of the new rows.

        Parameters
        ----------
        X : array or DataFrame (n, D)
            New rows.
        y : array (n,)
            Their target.
        sets : "all" or sequence of sequences of names
            All of one size.
        order : int
            That size, of ``"all"``.

        Raises
        ------
        InvalidInput
            If the learners were not kept, which ``Minipatches(keep=True)`` does, or a
            table, target or set cannot be used.
        """
        check_is_fitted(self, "left_out_")
        indices = read_sets(sets, order, self.left_out_.features)
        self._check(indices)
        table, target = self._one_row.read_rows(X, y)
        _refuse_one_row(len(target))
        judged = self.left_out_.judged_on(table, target)
        method = f"{self.result_.method}, judged on new rows"
        scoring = Scoring(judged, self._scheme, self.error_, method, self._quantity)
        return scoring.of(indices, scoring.main_effects(), n_candidates=len(indices))

    @available_if(_predicts)  # type: ignore[untyped-decorator]
    def predict(self, X: Any) -> NDArray[Any]:
        """What the explained predictor says: of minipatches the mean over all patches.

        Parameters
        ----------
        X : array or DataFrame (n, D)
            New rows.

        Returns
        -------
        array (n,)
            Numbers, or the class of largest probability.
        """
        result = self._predicted(X)
        if not is_classifier(self.estimator):
            return result
        return np.asarray(self.classes_[result.argmax(axis=1)])

    @available_if(_predicts_probabilities)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Array:
        """Probabilities (n, K) of the classes, in the order of ``classes_``.

        Parameters
        ----------
        X : array or DataFrame (n, D)
            New rows.
        """
        return self._predicted(X)

    @available_if(_predicts)  # type: ignore[untyped-decorator]
    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """R² of predictions, or of a classifier the share that is right.

        Parameters
        ----------
        X : array or DataFrame (n, D)
            New rows.
        y : array (n,)
            Their target.
        sample_weight : array (n,), optional
            Of rows.
        """
        of_classes = is_classifier(self.estimator)
        measure = accuracy_score if of_classes else r2_score
        return float(measure(y, self.predict(X), sample_weight=sample_weight))

    @property
    def _scheme(self) -> Scheme:
        if self.scheme is None:
            return Minipatches()
        if isinstance(self.scheme, Minipatches | DataSplit):
            return self.scheme
        raise InvalidInput(
            f"scheme: expected Minipatches() or DataSplit(), got {self.scheme!r}"
        )

    @property
    def _scoring(self) -> Scoring:
        return Scoring(
            self.left_out_, self._scheme, self.error_, quantity=self._quantity
        )

    def _check(self, indices: Places) -> None:
        """Of patches that are fitted, whether they say something of these sets."""
        scheme, source = self._scheme, self.left_out_
        if isinstance(scheme, Minipatches) and isinstance(source, PatchErrors):
            scheme.check_more(source, indices, self.result_.order)

    def _chosen(self, sets: SetChoice | Screen, order: int) -> ChosenSets:
        if isinstance(sets, Screen):
            return sets.choose(self.left_out_, order)
        indices = read_sets(sets, order, self.left_out_.features)
        return ChosenSets(indices, len(indices))

    def _scored(self, chosen: ChosenSets) -> InteractionScores:
        scores = self._scoring.of(
            chosen.places,
            self.main_effects_,
            n_candidates=chosen.n_candidates,
            notes=chosen.notes,
        )
        warn_of_equal_rows(scores)
        return scores

    def _predicted(self, X: Any) -> Array:
        check_is_fitted(self, "left_out_")
        table, _ = read_learning_table(X)
        self._check_columns(X, reset=False)
        return self.left_out_.predict(table)

    def _check_columns(self, X: Any, *, reset: bool) -> None:
        """Number and names of columns, as scikit-learn has them."""
        table = _table_or_array(X)
        try:
            validate_data(self, table, reset=reset, skip_check_array=True)
        except ValueError as error:
            raise InvalidInput(str(error)) from None

    def __sklearn_tags__(self) -> Any:
        tags, own = super().__sklearn_tags__(), get_tags(self.estimator)
        tags.target_tags.required = True
        tags.input_tags.allow_nan = own.input_tags.allow_nan
        tags.input_tags.string = own.input_tags.string
        if _predicts_by(self.scheme):
            tags.estimator_type = own.estimator_type
            tags.classifier_tags = own.classifier_tags
            tags.regressor_tags = own.regressor_tags
        return tags


def _predicted_of(estimator: Any, y: Any) -> Quantity:
    """What is predicted, by the name of a column y; of a pipeline by its last step."""
    while hasattr(estimator, "steps"):
        estimator = estimator.steps[-1][1]
    kind: QuantityKind = "probability" if is_classifier(estimator) else "value"
    name = getattr(y, "name", None)
    quantity = Quantity(model=type(estimator).__name__, kind=kind)
    return quantity.of_outcome(name if isinstance(name, str) else None)


def _refuse_one_row(n_rows: int) -> None:
    if n_rows < 2:
        raise InvalidInput("X: expected at least 2 rows, got 1 sample")


def _table_or_array(X: Any) -> Any:
    """X as it is, or without its names where only some are text."""
    names = names_of(X)
    if names is None:
        return np.asarray(X)
    return X if all(isinstance(name, str) for name in names) else np.empty(X.shape)
