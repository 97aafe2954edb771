"""Tables of numbers, and learners that see nothing else of them."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Number
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from sklearn.compose import ColumnTransformer
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils import check_array

from propopt.interactions.learning.restricted import mentions_columns
from propopt.tables.frames import as_frame


_PLAIN: Final = str, Number, np.ndarray, np.generic, np.random.RandomState


def sees_numbers_alone(estimator: Any) -> bool:
    """Whether a learner makes the same of a table of numbers and of an array.

    It is all scikit-learn's own, and nothing in it chooses columns by name: functions
    that a user wrote, or estimators, may look at names.

    Parameters
    ----------
    estimator : estimator
        Not fitted.

    Examples
    --------
    >>> from sklearn.linear_model import Ridge
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import FunctionTransformer, StandardScaler
    >>> sees_numbers_alone(make_pipeline(StandardScaler(), Ridge()))
    True
    >>> sees_numbers_alone(make_pipeline(FunctionTransformer(), Ridge()))
    False
    """
    return is_of_scikit_learn(estimator) and not mentions_columns(estimator)


def is_of_scikit_learn(value: Any) -> bool:
    """Whether a learner, and all that its parameters hold, is scikit-learn's own."""
    if value is None or isinstance(value, _PLAIN):
        return True
    if isinstance(value, Mapping):
        return all(map(is_of_scikit_learn, value.values()))
    if isinstance(value, list | tuple):
        return all(map(is_of_scikit_learn, value))
    if isinstance(value, FunctionTransformer):  # those of this package see no names
        return str(getattr(value.func, "__module__", "")).startswith("propopt.")
    if isinstance(value, ColumnTransformer) or not hasattr(value, "get_params"):
        return False
    if isinstance(value, type) or not type(value).__module__.startswith("sklearn."):
        return False
    return is_of_scikit_learn(value.get_params(deep=False))


def array_of_numbers(table: Any) -> NDArray[Any] | None:
    """The array that a DataFrame of numbers is; None of any other.

    Columns of several dtypes are numbers of floating point, if these can say the same.

    Examples
    --------
    >>> import pandas as pd
    >>> array_of_numbers(pd.DataFrame({"age": [31, 47], "size": [1.6, 1.8]})).tolist()
    [[31.0, 1.6], [47.0, 1.8]]
    >>> array_of_numbers(pd.DataFrame({"age": [31, 47], "city": ["A", "B"]})) is None
    True
    """
    frame = as_frame(table, "X")
    if frame is None:
        return None
    dtypes = set(frame.table.dtypes)
    if not all(isinstance(own, np.dtype) and own.kind in "biuf" for own in dtypes):
        return None
    common = np.result_type(*dtypes)
    if not all(np.can_cast(own, common) for own in dtypes):
        return None
    numbers = frame.table.to_numpy(dtype=common)
    whole = frame.table.select_dtypes(["int64", "uint64"])
    exact = common.kind != "f" or (whole.abs() <= 2**53).all(axis=None)
    return numbers if exact else None


def array_of(table: Any) -> NDArray[Any]:
    """New rows, as scikit-learn reads them, for a learner that was fitted to an array.

    Parameters
    ----------
    table : DataFrame (n, D)
        Of any library.
    """
    frame = as_frame(table, "X")
    rows = table if frame is None else frame.table
    return np.asarray(check_array(rows, ensure_all_finite=False))
