"""The target and weights of rows, read once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import column_or_1d

from propopt._typing import Values
from propopt.checks import read_array, refuse_overflow, refuse_underflow
from propopt.errors import InvalidInput
from propopt.tables.names import listed


@final
@dataclass(frozen=True, eq=False)
class LearningTarget:
    """What a learner learns.

    Parameters
    ----------
    values : array (N,)
        Numbers; of a classifier the places of classes.
    classes : array (K,) or None
        Sorted; None of a regressor.
    """

    values: NDArray[Any]
    classes: NDArray[Any] | None = None


def read_target(y: object, n_rows: int, of_classes: bool) -> LearningTarget:
    """The target of a regressor or a classifier.

    Raises
    ------
    InvalidInput
        If it is not one finite number, or one class, for each row; a label is missing,
        or there is but one class, or one number.
    """
    if not of_classes:
        values = read_regression_target(y, n_rows)
        if n_rows > 1 and (values == values[0]).all():
            raise InvalidInput(
                f"y: all {n_rows} values are {values[0]:g}, so that there is nothing "
                "that features could explain"
            )
        return LearningTarget(values)
    labels = _one_column(y, n_rows)
    kinds = sorted({type(label).__name__ for label in labels.tolist()})
    if len(kinds) > 1 and "str" in kinds:
        raise InvalidInput(
            f"y: expected labels of one type, got {listed(kinds)}; make all of them "
            "text by astype(str)"
        )
    if "bytes" in kinds:
        raise InvalidInput("y: expected numbers or text, got bytes; decode them")
    kind = type_of_target(labels, input_name="y")
    if kind not in ("binary", "multiclass"):
        raise InvalidInput(
            f"y: Unknown label type: {kind}; a classifier needs classes, such as "
            "integers or text, and for numbers there are regressors"
        )
    classes, places = np.unique(labels, return_inverse=True)
    if len(classes) < 2:
        raise InvalidInput(
            f"y: expected two classes or more, got 1 class, {listed(classes.tolist())}"
        )
    return LearningTarget(places, classes)


def read_regression_target(y: object, n_rows: int) -> Values:
    """The target of a regressor, (N,).

    Raises
    ------
    InvalidInput
        If it is not one finite number for each row, or squares of them overflow or
        vanish.
    """
    column = _one_column(y, n_rows)
    if column.dtype.kind in "OUST":
        _refuse_text(column)
    values = read_array(column, "y", ndim=1)
    refuse_overflow(values, "y")
    refuse_underflow(float(np.abs(values).max(initial=0.0)), "y")
    return values


def _refuse_text(column: NDArray[Any]) -> None:
    """Of a regressor, text that is no number."""
    for own in column.tolist():
        try:
            float(own)
        except ValueError:
            raise InvalidInput(
                f"y: expected numbers for a regressor, got {own!r}; of classes take a "
                "classifier"
            ) from None
        except TypeError:
            return  # of other things the next check tells


def class_places(y: object, classes: NDArray[Any], n_rows: int) -> NDArray[np.intp]:
    """The places of labels of other rows among known classes, (n,).

    Raises
    ------
    InvalidInput
        If a label is none of them.
    """
    labels = _one_column(y, n_rows)
    known = np.isin(labels, classes)
    if not known.all():
        new = np.unique(labels[~known]).tolist()
        raise InvalidInput(
            f"y: {listed(new)}: not among the classes of fit, "
            f"{listed(classes.tolist())}"
        )
    return np.searchsorted(classes, labels)


def read_sample_weight(weights: object, n_rows: int) -> Values | None:
    """Weights of rows, (N,), two or more above zero; None where there are none.

    Raises
    ------
    InvalidInput
        If they are not one finite number >= 0 for each row, two or more above zero.
    """
    if weights is None:
        return None
    read = read_array(weights, "sample_weight", ndim=1)
    if len(read) != n_rows:
        raise InvalidInput(
            f"sample_weight: expected one for each of {n_rows} rows, got {len(read)}"
        )
    if (read < 0).any():
        raise InvalidInput(
            f"sample_weight: expected numbers >= 0, got {read[read < 0][0]:g}"
        )
    n_counted = np.count_nonzero(read)
    if n_counted < 2:
        some = "all but one" if n_counted else "all"
        raise InvalidInput(
            f"sample_weight: {some} are zero; two rows at least have to count"
        )
    return read


def _one_column(y: object, n_rows: int) -> NDArray[Any]:
    if y is None:
        raise InvalidInput(
            "y: this estimator requires y to be passed, but the target y is None"
        )
    values = np.asarray(y)
    if values.ndim == 2 and values.shape[1] != 1:
        raise InvalidInput(
            f"y: expected one target, got {values.shape[1]} columns; fit once for each"
        )
    if values.ndim not in (1, 2):
        raise InvalidInput(f"y: expected one dimension, got shape {values.shape}")
    column: NDArray[Any] = column_or_1d(values, warn=True)
    if len(column) != n_rows:
        raise InvalidInput(
            f"y: expected one value for each of the {n_rows} rows of X, got "
            f"{len(column)}"
        )
    missing = np.asarray(pd.isna(column))
    if missing.any():
        raise InvalidInput(
            f"y: Input y contains NaN: {int(missing.sum())} of {n_rows} values are "
            f"missing, the first in row {int(missing.argmax())}; leave these rows out"
        )
    return column
