"""What scikit-learn expects of a regressor whose targets are attributions."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from propopt._typing import Array
from propopt.errors import InvalidInput
from propopt.functions import Function
from propopt.results.explanation import Explanation


# scikit-learn's classes have no types
class AttributionRegressor(MultiOutputMixin, RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """A regressor of scikit-learn that predicts what it explains."""

    @abstractmethod
    def explain(self, X_new: object) -> Explanation:
        """An explanation of new inputs."""

    def predict(self, X: object) -> Array:
        """Attributions of each row of X by itself: those of :meth:`explain`, plain.

        Parameters
        ----------
        X : array or DataFrame (m, D)
            Inputs.

        Returns
        -------
        array (m, D)
            With as many columns as the targets of the fit.

        Raises
        ------
        InvalidInput
            If X is not a table like that of the fit.
        sklearn.exceptions.NotFittedError
            Before :meth:`fit`.
        """
        check_is_fitted(self)
        self._validate(X, reset=False, skip_check_array=self._has_schema)
        return np.array(self.explain(X).attributions)

    def remember_columns(self, X: object, function: object) -> None:
        """Set ``n_features_in_``, and ``feature_names_in_`` where columns have names.

        Raises
        ------
        InvalidInput
            In scikit-learn's words, if X is no table of finite numbers, and no
            function has a schema for it.
        TypeError
            Where X holds objects that are no numbers, as scikit-learn has it.
        """
        self._has_schema = isinstance(function, Function) and (
            function.schema is not None
        )
        self._validate(X, reset=True, skip_check_array=self._has_schema)

    def _validate(self, X: object, **how: bool) -> None:
        if sp.issparse(X):
            return  # refused where tables are read
        try:
            # NaN is refused by what reads X
            validate_data(self, _alike_named(X), ensure_all_finite="allow-nan", **how)
        except ValueError as error:
            raise InvalidInput(str(error)) from None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.single_output = False  # targets are tables (N, T)
        return tags


def _alike_named(X: Any) -> Any:
    """X without its names where only some are text, which scikit-learn refuses."""
    is_text = {isinstance(name, str) for name in getattr(X, "columns", ())}
    return np.asarray(X) if len(is_text) == 2 else X
