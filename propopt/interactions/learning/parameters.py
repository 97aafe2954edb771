"""Parameters of learners that speak of columns, when some of these are left out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

import numpy as np

from propopt.errors import InvalidInput
from propopt.interactions.learning.columns import SomeColumns
from propopt.tables.names import listed


Shorten: TypeAlias = Callable[[Any, SomeColumns], Any]
"""From the value of a parameter to what it is without some columns."""


def _columns(value: Any, columns: SomeColumns) -> Any:
    """A list, mask or name of columns."""
    if _is_mask(value):
        return _entries(value, columns)
    return [
        columns.renamed(own) for own in columns.listed(value) if columns.is_kept(own)
    ]


def _entries(value: Any, columns: SomeColumns) -> Any:
    """An entry for each column, or a mapping from some of them."""
    if isinstance(value, Mapping):
        return {
            columns.renamed(key): entry
            for key, entry in value.items()
            if columns.is_kept(key)
        }
    if len(value) != len(columns.kept) or not columns.counted:
        raise InvalidInput(
            f"estimator: expected an entry for each of {len(columns.kept)} columns, "
            f"got {len(value)}, so that it is not known which to leave out"
        )
    if isinstance(value, np.ndarray):
        return value[columns.kept]
    left = [entry for entry, keep in zip(value, columns.kept, strict=True) if keep]
    return tuple(left) if isinstance(value, tuple) else left


def _sets(value: Any, columns: SomeColumns) -> Any:
    """Sets of columns that may interact; those of one column alone are of no use."""
    left = [_columns(list(own), columns) for own in value]
    return [
        type(own)(rest) for own, rest in zip(value, left, strict=True) if rest
    ] or None


SHORTEN: Final[Mapping[str, Shorten]] = {
    "cat_features": _columns,
    "categorical_feature": _columns,
    "categorical_features": _columns,
    "cols": _columns,
    "embedding_features": _columns,
    "ignored_features": _columns,
    "text_features": _columns,
    "variables": _columns,
    "categories": _entries,
    "drop": _entries,
    "feature_types": _entries,
    "feature_weights": _entries,
    "length_scale": _entries,
    "monotone_constraints": _entries,
    "monotonic_cst": _entries,
    "interaction_constraints": _sets,
    "interaction_cst": _sets,
}
"""By parameter: of scikit-learn, LightGBM, XGBoost, CatBoost, of encoders."""

OWN_WORDS: Final = frozenset(
    ["auto", "from_dtype", "first", "if_binary", "pairwise", "no_interactions"]
)
"""Values of these that speak of no column."""


def speaks_of_columns(name: str, value: Any) -> bool:
    """Whether a parameter names or counts columns."""
    if name not in SHORTEN or value is None or np.isscalar(value):
        return isinstance(value, str) and name in SHORTEN and value not in OWN_WORDS
    return len(value) > 0


def parameter_without(name: str, value: Any, columns: SomeColumns) -> Any:
    """What a parameter is without the columns that are left out.

    Raises
    ------
    InvalidInput
        If it is text, whose grammar is the learner's own, or counts columns behind a
        step that makes others.
    """
    if isinstance(value, str):
        raise InvalidInput(
            f"estimator: {name}={value!r} speaks of columns in the learner's own "
            "words, and columns are left out; give a list or a mapping"
        )
    try:
        return SHORTEN[name](value, columns)
    except InvalidInput as error:
        raise InvalidInput(f"{error} ({name})") from None


def refuse_unknown(name: str, value: Any, columns: SomeColumns) -> None:
    """Refuse a list of columns in a parameter that we do not know.

    Raises
    ------
    InvalidInput
        If all entries are names of columns, and one of these is left out.
    """
    if not isinstance(value, list | tuple | set | frozenset | dict) or not value:
        return
    if columns.names is None or not all(isinstance(own, str) for own in value):
        return
    if set(value) <= set(columns.names) and not columns.dropped.isdisjoint(value):
        raise InvalidInput(
            f"estimator: {name} names the columns {listed(list(value))}, and how it is "
            "written without one of them is not known; choose columns by dtype, or by "
            "a ColumnTransformer"
        )


def _is_mask(value: Any) -> bool:
    return not isinstance(value, str) and all(
        isinstance(entry, bool | np.bool_) for entry in value
    )
