"""The estimator of interactions."""

from __future__ import annotations

import warnings
from typing import Any, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, is_classifier
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted, validate_data

from propopt.base.checks import read_seed
from propopt.base.errors import DegenerateVarianceWarning, InvalidInput
from propopt.base.suggestions import NextSteps, suggests_arguments
from propopt.base.text import Quantity, QuantityKind
from propopt.interactions.features import (
    FeatureGroups,
    FeatureSets,
    SetChoice,
    read_sets,
)
from propopt.interactions.minipatches import Minipatches
from propopt.interactions.refits import (
    ErrorChoice,
    RefitErrors,
    Refits,
    RowError,
)
from propopt.interactions.scores import InteractionScores, counted_sets
from propopt.interactions.splitting import DataSplit
from propopt.tables.frames import column_names


Scheme: TypeAlias = Minipatches | DataSplit
"""Ways to fit predictors without some features."""


# scikit-learn's classes have no types
@suggests_arguments
class ILOCO(NextSteps, BaseEstimator):  # type: ignore[misc]
    """Interaction scores of features for a learner, with confidence intervals.

    Large scores mean that a part of the accuracy needs all features of the set; very
    negative scores of pairs mean that each feature can replace the other. The score of
    a pair is

    .. math::

        iLOCO_jk = E[Err(f^{−j}) + Err(f^{−k}) − Err(f^{−jk}) − Err(f)],

    where f^{−T} is a predictor fitted without the features T (Little, Zheng & Allen,
    arXiv 2502.06661).

    Parameters
    ----------
    estimator : estimator
        A regressor or classifier with the interface of scikit-learn; clones are fitted.
    scheme : Minipatches or DataSplit, optional
        How predictors without features are fitted; by default ``Minipatches()``.
    order : int
        The size of the sets: 1 for LOCO scores of features, 2 for pairs.
    sets : "all", sequence of sequences of names
        The sets to score; given sets determine ``order``.
    error : {"auto", "squared", "absolute", "probability", "hinge"} or callable
        The error Err: by default squared for regressors, 1 − p of the true class for
        classifiers. Two classes of a learner without probabilities, such as ``SVC()``,
        have max(0, 1 − d) of its decision function d towards the true class.
    groups : mapping of a feature to its columns, or TableSchema, optional
        Columns that are removed together.
    n_jobs : int or None
        The number of parallel workers; scores do not depend on it.
    random_state : int, Generator or None
        The seed; None is 0, and a generator is advanced.
    progress : bool or None
        Whether to show a progress bar; None shows it on a terminal.

    Attributes
    ----------
    result_ : InteractionScores
        The scores of the sets.
    main_effects_ : InteractionScores
        The LOCO score of each feature.
    refit_errors_ : RefitErrors
        The fitted predictors, for scores of further sets.
    error_ : RowError
        The error Err.
    n_features_in_ : int
        The number of columns D.
    feature_names_in_ : array (D,)
        The column names, if all are strings.
    classes_ : array (K,)
        The classes of a classifier.

    See Also
    --------
    InteractionScores : Intervals, tests, and their interpretation.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.tree import DecisionTreeRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 4))
    >>> y = 3 * X[:, 0] * X[:, 1] + X[:, 2]
    >>> scheme = Minipatches(n_patches=1000)
    >>> model = ILOCO(DecisionTreeRegressor(), scheme).fit(X, y)
    >>> model.result_.to_frame().nlargest(1, "score")[["feature_1", "feature_2"]]
       feature_1  feature_2
    0          0          1
    >>> model.interactions([(0, 1, 2)]).order
    3
    """

    error_: RowError
    classes_: NDArray[Any]
    refit_errors_: RefitErrors
    main_effects_: InteractionScores
    result_: InteractionScores

    def __init__(
        self,
        estimator: Any,
        scheme: Scheme | None = None,
        *,
        order: int = 2,
        sets: SetChoice = "all",
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

    def __str__(self) -> str:
        """The scores, once it is fitted."""
        return str(self.result_) if "result_" in vars(self) else super().__str__()

    @suggests_arguments
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the learners, and score each feature and each requested set of features.

        Parameters
        ----------
        X : array or DataFrame (N, D)
            The table.
        y : array (N,)
            The target.
        sample_weight : array (N,), optional
            Weights of rows, for the fits and for means over rows.

        Returns
        -------
        ILOCO
            The fitted estimator, with scores in ``result_``.

        Raises
        ------
        InvalidInput
            If a table, target, set or setting is invalid.
        """
        scheme = Minipatches() if self.scheme is None else self.scheme
        if not isinstance(scheme, Scheme):
            raise InvalidInput(
                f"scheme: expected Minipatches() or DataSplit(), got {scheme!r}"
            )
        refits = Refits.of(
            self.estimator,
            X,
            y,
            groups=self.groups,
            error=self.error,
            sample_weight=sample_weight,
        )
        _refuse_one_row(refits.n_rows)
        indices = read_sets(self.sets, self.order, refits.features)
        self._check_columns(X)
        self.error_ = refits.error
        if refits.classes is not None:
            self.classes_ = refits.classes
        self._one_row = refits.subset(np.arange(1))  # validates new rows
        self.refit_errors_ = scheme.fit(
            refits,
            seed=read_seed(self.random_state, "random_state"),
            sets=indices,
            n_jobs=self.n_jobs,
            progress=self.progress,
        )
        self._quantity = _predicted_quantity(self.estimator, y)
        self.main_effects_ = self.refit_errors_.main_effects(self._quantity)
        self.result_ = self._scored(indices)
        return self

    def interactions(
        self, sets: SetChoice = "all", *, order: int = 2
    ) -> InteractionScores:
        """Scores of other sets, of any size, from the fitted predictors.

        Minipatches need no further fit; a split fits the predictors that are missing.

        Parameters
        ----------
        sets : "all", sequence of sequences of names
            Sets of one size; p-values and intervals are corrected for their number.
        order : int
            The size of ``"all"`` sets.

        Returns
        -------
        InteractionScores
            One score for each set, in units of the error of one learner.

        Raises
        ------
        InvalidInput
            If a name is unknown, or no patch contains a set, or all do.
        """
        return self._scored(self._read_sets(sets, order))

    def target(
        self, X: Any, y: Any, sets: SetChoice = "all", *, order: int = 2
    ) -> InteractionScores:
        """Compute the scores on new rows, which the intervals are meant to cover.

        For minipatches the predictor is the mean of all patches. Standard errors are
        those due to the new rows.

        Parameters
        ----------
        X : array or DataFrame (n, D)
            New rows.
        y : array (n,)
            Their target.
        sets : "all" or sequence of sequences of names
            Sets of one size.
        order : int
            The size of ``"all"`` sets.

        Returns
        -------
        InteractionScores
            One score for each set, in units of the error of one learner.

        Raises
        ------
        InvalidInput
            If the learners were not retained by ``Minipatches(keep=True)``, or a table,
            target or set is invalid.
        """
        indices = self._read_sets(sets, order)
        table, target = self._one_row.read_rows(X, y)
        _refuse_one_row(len(target))
        errors = self.refit_errors_.evaluate_on(table, target)
        main = errors.main_effects(self._quantity)
        return errors.scores(indices, main, quantity=self._quantity)

    def _read_sets(self, sets: SetChoice, order: int) -> FeatureSets:
        """Indices of sets that the fitted predictors can score."""
        check_is_fitted(self, "refit_errors_")
        indices = read_sets(sets, order, self.refit_errors_.features)
        self.refit_errors_.check(indices, self.result_.order)
        return indices

    def _check_columns(self, X: Any) -> None:
        """Record the number and names of columns by scikit-learn."""
        names = column_names(X)
        seen = X
        if names is None:
            seen = np.asarray(X)
        elif not all(isinstance(name, str) for name in names):
            seen = np.empty(X.shape)  # scikit-learn refuses such names
        try:
            validate_data(self, seen, skip_check_array=True)
        except ValueError as error:
            raise InvalidInput(str(error)) from None

    def _scored(self, sets: FeatureSets) -> InteractionScores:
        """Scores of sets, with one warning for sets with equal rows."""
        scores = self.refit_errors_.scores(
            sets, self.main_effects_, quantity=self._quantity
        )
        count = int(scores.degenerate.sum())
        if count > 0:
            warnings.warn(
                f"{count} of {counted_sets(scores, len(scores))} have the same score "
                "in all rows; their intervals assume a range of errors, see cautions",
                DegenerateVarianceWarning,
                stacklevel=3,
            )
        return scores

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = get_tags(self.estimator)
        tags.target_tags.required = True
        tags.input_tags.allow_nan = inner.input_tags.allow_nan
        tags.input_tags.string = inner.input_tags.string
        return tags


def _predicted_quantity(estimator: Any, y: Any) -> Quantity:
    """The predicted quantity, with the name of y and of the last step of a pipeline."""
    if isinstance(estimator, Pipeline):
        estimator = estimator.steps[-1][1]
    kind: QuantityKind = "probability" if is_classifier(estimator) else "value"
    name = getattr(y, "name", None)
    quantity = Quantity(model=type(estimator).__name__, kind=kind)
    return quantity.of_outcome(name if isinstance(name, str) else None)


def _refuse_one_row(n_rows: int) -> None:
    if n_rows < 2:
        raise InvalidInput("X: expected at least 2 rows, got 1 sample")
