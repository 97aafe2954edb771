"""A learner that is cloned for each fit: seeds, weights, columns."""

from __future__ import annotations

from collections.abc import Hashable
from copy import deepcopy
from dataclasses import dataclass
from functools import cached_property
from inspect import signature
from typing import Any, Final, final

import numpy as np
from numpy.typing import NDArray
from sklearn import get_config
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import has_fit_parameter

from propopt._typing import Values
from propopt.errors import InvalidInput
from propopt.interactions.learning.columns import SomeColumns
from propopt.interactions.learning.numbers import sees_numbers_alone
from propopt.interactions.learning.restricted import mentions_columns, restricted


@final
@dataclass(frozen=True, eq=False)
class Learner:
    """An estimator of which clones are fitted, on tables without some columns.

    Parameters
    ----------
    estimator : estimator
        Not changed.
    n_columns : int
        D, of its table.
    names : tuple (D,) or None
        Of the columns; None of an array.
    """

    estimator: Any
    n_columns: int
    names: tuple[Hashable, ...] | None

    def fresh(self, kept: NDArray[np.bool_], table: Any, seed: int) -> Any:
        """A clone for a table without some columns.

        Parameters
        ----------
        kept : array of bool (D,)
            Which columns are left.
        table : table
            Those that are left.
        seed : int
            For each ``random_state`` that is None.
        """
        if self._alone:
            return self._seeded_copy(seed)
        model = unfitted_copy(self.estimator)
        if self._free:
            model.set_params(**dict.fromkeys(self._free, seed))
        if not self._mentions_columns or kept.all():
            return model
        return restricted(model, SomeColumns(self.names, kept, table))

    def weighted(self, model: Any, weights: Values) -> dict[str, Values]:
        """What ``fit`` of a fresh model is given for its weights."""
        same = type(model) is type(self.estimator)
        return {self._weight if same else "sample_weight": weights}

    def check(self, weighted: bool) -> None:
        """Refuse what cannot be fitted again and again, before anything is.

        Raises
        ------
        InvalidInput
            If it speaks of columns in a way that is not known, or takes no weights.
        """
        if weighted:
            _ = self._weight
        if self._mentions_columns and self.n_columns > 1:
            kept = np.arange(self.n_columns) > 0
            restricted(unfitted_copy(self.estimator), SomeColumns(self.names, kept))

    @cached_property
    def speaks_of_classes(self) -> bool:
        """Whether a parameter has an entry for each class, or for some."""
        return any(
            name.split("__")[-1] in _OF_CLASSES
            and not (value is None or isinstance(value, str))
            for name, value in self.estimator.get_params().items()
        )

    def _seeded_copy(self, seed: int) -> Any:
        """The same as a clone with its seed, in a tenth of the time."""
        model = deepcopy(self._clone)
        if self._free:
            model.random_state = seed
        return model

    @cached_property
    def _clone(self) -> Any:
        return clone(self.estimator)

    @cached_property
    def _alone(self) -> bool:
        """Whether it is one of scikit-learn's, with no other in it."""
        settings = self.estimator.get_params(deep=False).values()
        return (
            sees_numbers_alone(self.estimator)
            and not any(hasattr(own, "get_params") for own in settings)
            and self._free in ((), ("random_state",))
        )

    @cached_property
    def _mentions_columns(self) -> bool:
        return mentions_columns(self.estimator)

    @cached_property
    def _free(self) -> tuple[str, ...]:
        return tuple(
            name
            for name, value in self.estimator.get_params().items()
            if value is None and name.split("__")[-1] == "random_state"
        )

    @cached_property
    def _weight(self) -> str:
        return weight_name(self.estimator)


_OF_CLASSES: Final = frozenset(
    ["class_prior", "class_weight", "class_weights", "priors"]
)


def unfitted_copy(estimator: Any) -> Any:
    """A clone, or a copy where scikit-learn makes none."""
    try:
        return clone(estimator)
    except RuntimeError:  # CatBoost copies the lists that it is given, as none should
        return deepcopy(estimator)


def weight_name(estimator: Any) -> str:
    """By what name ``fit`` takes weights of rows: of pipelines those of the last step.

    Examples
    --------
    >>> from sklearn.linear_model import Ridge
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> weight_name(make_pipeline(StandardScaler(), Ridge()))
    'ridge__sample_weight'

    Raises
    ------
    InvalidInput
        If it takes none.
    """
    if get_config()["enable_metadata_routing"]:
        return "sample_weight"  # the user says by requests who gets it
    if isinstance(estimator, Pipeline):
        name, last = estimator.steps[-1]
        return f"{name}__{weight_name(last)}"
    if has_fit_parameter(estimator, "sample_weight"):
        return "sample_weight"
    if _hands_on(estimator):
        parts = (getattr(estimator, own, None) for own in ("estimator", "regressor"))
        within = next((part for part in parts if part is not None), None)
        return "sample_weight" if within is None else weight_name(within)
    raise InvalidInput(
        f"sample_weight: {type(estimator).__name__}.fit takes no weights of rows; "
        "leave them out, or take a learner that does"
    )


def _hands_on(estimator: Any) -> bool:
    """Whether ``fit`` takes settings by any name, for estimators within."""
    settings = signature(estimator.fit).parameters.values()
    return any(own.kind is own.VAR_KEYWORD for own in settings)


def check_estimator_kind(estimator: Any) -> None:
    """Refuse what is neither a regressor nor a classifier with probabilities.

    Raises
    ------
    InvalidInput
        With what would do.
    """
    if isinstance(estimator, type):
        raise InvalidInput(
            f"estimator: expected an estimator, got a class; {estimator.__name__}() "
            "is one"
        )
    wanted = "a regressor or classifier of scikit-learn's kind"
    if not (hasattr(estimator, "fit") and hasattr(estimator, "get_params")):
        raise InvalidInput(f"estimator: expected {wanted}, got {estimator!r}")
    if is_regressor(estimator):
        return
    name = type(estimator).__name__
    if not is_classifier(estimator):
        raise InvalidInput(
            f"estimator: expected {wanted}, got {name}, which says of itself that it "
            "is neither (its tags, estimator_type)"
        )
    if not hasattr(estimator, "predict_proba"):
        raise InvalidInput(
            f"estimator: {name} has no predict_proba, and errors of classes are taken "
            f"from probabilities; CalibratedClassifierCV({name}(), ensemble=False) has"
        )
