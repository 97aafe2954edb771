"""The estimator: iLOCO of pairs or larger sets of features, and LOCO of each."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, Literal, Self, TypeAlias

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from propopt.checks import read_seed
from propopt.errors import InvalidInput
from propopt.interactions.features import FeatureGroups, Features, Places
from propopt.interactions.inference.scores import set_scores
from propopt.interactions.left_out import LeftOut
from propopt.interactions.minipatches.scheme import Minipatches
from propopt.interactions.refits import Refits
from propopt.interactions.result import InteractionScores
from propopt.interactions.row_errors import ErrorChoice
from propopt.interactions.scheme import Scheme


SetChoice: TypeAlias = Literal["all"] | Sequence[Sequence[Hashable]]


# scikit-learn's classes have no types
class ILOCO(BaseEstimator):  # type: ignore[misc]
    """How much features matter jointly to a learner, with confidence intervals.

    iLOCO_jk = E[Err(f^−j) + Err(f^−k) − Err(f^−jk) − Err(f)], with predictors f^−T that
    are fitted without the features T (Little, Zheng & Allen, arXiv 2502.06661).

    Parameters
    ----------
    estimator : estimator
        A regressor or classifier of scikit-learn's kind; clones of it are fitted.
    scheme : Minipatches or DataSplit, optional
        How predictors without features are had; by default ``Minipatches()``.
    order : int
        Size of the sets: 1 is LOCO, 2 are pairs.
    sets : "all" or sequence of sequences of names
        Which sets.
    error : {"auto", "squared", "absolute", "probability"} or callable
        Err: of regressors squared by default, of classifiers 1 − p of the class.
    groups : mapping of a feature to its columns, or TableSchema, optional
        Columns that are left out together.
    n_jobs : int or None
        Workers.
    random_state : int
        For all that is drawn.
    progress : bool or None
        Show a bar; None shows it on a terminal.

    Attributes
    ----------
    result_ : InteractionScores
        Of the sets.
    main_effects_ : InteractionScores
        LOCO of each feature.
    n_features_in_ : int
        D.
    feature_names_in_ : array (D,)
        Where columns have names.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.tree import DecisionTreeRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 4))
    >>> y = 3 * X[:, 0] * X[:, 1] + X[:, 2]
    >>> scheme = Minipatches(n_patches=400, columns="bernoulli")
    >>> found = ILOCO(DecisionTreeRegressor(), scheme).fit(X, y)
    >>> found.result_.to_frame().nlargest(1, "estimate")[["feature_1", "feature_2"]]
       feature_1  feature_2
    0          0          1
    """

    def __init__(
        self,
        estimator: Any = None,
        scheme: Scheme | None = None,
        *,
        order: int = 2,
        sets: SetChoice = "all",
        error: ErrorChoice = "auto",
        groups: FeatureGroups | None = None,
        n_jobs: int | None = None,
        random_state: int = 0,
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
            For the fits.
        """
        refits = self._refits(X, y, sample_weight)
        scheme = Minipatches() if self.scheme is None else self.scheme
        self.left_out_: LeftOut = scheme.fit(
            refits,
            seed=read_seed(self.random_state),
            sets=_places(self.sets, self.order, refits.features),
            n_jobs=self.n_jobs,
            progress=self.progress,
        )
        self.main_effects_ = self.interactions(order=1)
        self.result_ = self.interactions(self.sets, order=self.order)
        return self

    def interactions(
        self, sets: SetChoice = "all", *, order: int = 2
    ) -> InteractionScores:
        """Scores of sets of any size, from what is fitted.

        Parameters
        ----------
        sets : "all" or sequence of sequences of names
            All of one size.
        order : int
            That size, of ``"all"``.
        """
        check_is_fitted(self, "left_out_")
        source = self.left_out_
        places = _places(sets, order, source.features)
        scores = set_scores(source, places)
        return InteractionScores(
            sets=places,
            names=source.features.names,
            estimates=scores.estimates,
            standard_errors=scores.standard_errors,
            monte_carlo=scores.monte_carlo,
            counts=scores.counts,
            effective_rows=scores.effective_rows,
            n_groups=scores.n_groups,
            n_rows=len(source.row_weights),
            n_candidates=len(places),
            method=repr(self.scheme or Minipatches()),
            error=self.error_.name,
            units=self.error_.units,
        )

    def _refits(self, X: Any, y: Any, sample_weight: Any) -> Refits:
        refits = Refits.of(
            self.estimator,
            X,
            y,
            groups=self.groups,
            error=self.error,
            sample_weight=sample_weight,
        )
        self.error_ = refits.error
        self.n_features_in_ = refits.learner.n_columns
        return refits


def _places(sets: SetChoice, order: int, features: Features) -> Places:
    if isinstance(sets, str):
        return features.all_sets(order)
    place = {name: k for k, name in enumerate(features.names)}
    try:
        return np.array([sorted(place[name] for name in own) for own in sets])
    except KeyError as error:
        raise InvalidInput(f"sets: there is no feature {error}") from None
