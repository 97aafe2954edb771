"""Background tables: the points that stand for "feature unknown"."""

from __future__ import annotations

import pandas as pd

from propopt._typing import Array
from propopt.errors import InvalidInput
from propopt.labels import Labels, read_table


def own_copy(background: object) -> Array | pd.DataFrame:
    """A checked copy of a table, which later changes of the original do not reach."""
    array, labels = read_table(background, "background")
    return labels.table(array)


def same_columns(
    background: Array | pd.DataFrame, n_features: int, labels: Labels
) -> Array:
    """The background as an array (B, D), refused if its columns are not those of X."""
    array, own = read_table(background, "background")
    if array.shape[1] != n_features:
        raise InvalidInput(
            f"background: expected {n_features} features as in X, got {array.shape[1]}"
        )
    if None not in (own.features, labels.features) and own.features != labels.features:
        raise InvalidInput(
            f"background: expected the columns of X, {labels.features}, in that order; "
            f"got {own.features}"
        )
    return array
