"""The estimator: iLOCO of pairs or larger sets of features, and LOCO of each."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, is_classifier
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, validate_data

from propopt._typing import Array
from propopt.checks import read_seed
from propopt.errors import InvalidInput
from propopt.interactions.features import FeatureGroups, Features, Places
from propopt.interactions.learning.tables import read_learning_table
from propopt.interactions.left_out import LeftOut
from propopt.interactions.minipatches.means import PatchErrors
from propopt.interactions.minipatches.scheme import Minipatches
from propopt.interactions.refits import Refits
from propopt.interactions.result import InteractionScores
from propopt.interactions.row_errors import ErrorChoice
from propopt.interactions.scheme import Scheme
from propopt.interactions.scoring import Scoring, warn_of_equal_rows
from propopt.interactions.screening import ChosenSets, Screen
from propopt.interactions.sets import SetChoice, read_sets
from propopt.interactions.splitting.split import DataSplit
from propopt.quantity import Quantity, QuantityKind
from propopt.tables.frames import names_of


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
        scheme, refits = self._scheme, self._refits(X, y, sample_weight)
        places = _largest_needed(self.sets, self.order, refits.features)
        self._remember(X, refits)
        self.left_out_: LeftOut = scheme.fit(
            refits,
            seed=read_seed(self.random_state, "random_state"),
            sets=places,
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
        places = read_sets(sets, order, self.left_out_.features)
        self._check(places)
        table, target = self._one_row.read_rows(X, y)
        _refuse_one_row(len(target))
        judged = self.left_out_.judged_on(table, target)
        method = f"{self.result_.method}, judged on new rows"
        scoring = Scoring(judged, self._scheme, self.error_, method, self._quantity)
        return scoring.of(places, scoring.main_effects(), n_candidates=len(places))

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
        found = self._predicted(X)
        if not is_classifier(self.estimator):
            return found
        return np.asarray(self.classes_[found.argmax(axis=1)])

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

    def _check(self, places: Places) -> None:
        """Of patches that are fitted, whether they say something of these sets."""
        scheme, source = self._scheme, self.left_out_
        if isinstance(scheme, Minipatches) and isinstance(source, PatchErrors):
            scheme.check_more(source, places, self.result_.order)

    def _chosen(self, sets: SetChoice | Screen, order: int) -> ChosenSets:
        if isinstance(sets, Screen):
            return sets.choose(self.left_out_, order)
        places = read_sets(sets, order, self.left_out_.features)
        return ChosenSets(places, len(places))

    def _scored(self, chosen: ChosenSets) -> InteractionScores:
        scores = self._scoring.of(
            chosen.places,
            self.main_effects_,
            n_candidates=chosen.n_candidates,
            notes=chosen.notes,
        )
        warn_of_equal_rows(scores)
        return scores

    def _refits(self, X: Any, y: Any, sample_weight: Any) -> Refits:
        refits = Refits.of(
            self.estimator,
            X,
            y,
            groups=self.groups,
            error=self.error,
            sample_weight=sample_weight,
        )
        _refuse_one_row(refits.n_rows)
        return refits

    def _remember(self, X: Any, refits: Refits) -> None:
        self._check_columns(X, reset=True)
        self.error_ = refits.error
        if refits.classes is not None:
            self.classes_ = refits.classes
        self._one_row = refits.on(np.arange(1))  # knows how others are read

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


def _largest_needed(sets: SetChoice | Screen, order: int, features: Features) -> Places:
    """The sets that are going to be scored; one of their size where none is chosen."""
    if isinstance(sets, Screen):
        return sets.one_set(order, features)
    return read_sets(sets, order, features)


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
