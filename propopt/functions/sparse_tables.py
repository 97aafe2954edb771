"""Sparse tables as dense ones that a model predicts alike."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import scipy.sparse as sp

from propopt.base.arrays import Array, filled
from propopt.base.checks import describe_type
from propopt.base.errors import InvalidInput
from propopt.base.suggestions import suggests_arguments
from propopt.functions.function import Function
from propopt.functions.outputs import METHODS
from propopt.structures.fitted_model import FittedModel


_SHARES: Final = (1.0, 0.5, 0.0)
"""Shares of the stored entries in the tables on which predictions are compared."""


@suggests_arguments
def dense(model: Any, X: Any) -> Array:
    """Convert a sparse table to a dense one for which the model predicts the same.

    Entries that the table does not store are 0 to most models, and missing to XGBoost.
    Predictions for the sparse table, and for it with fewer entries, show which.

    Parameters
    ----------
    model : estimator or callable
        The fitted model.
    X : sparse matrix or array (N, D)
        Rows in a format of SciPy.

    Returns
    -------
    array (N, D)
        Absent entries are 0 or NaN; 0 if the model takes no sparse tables.

    Raises
    ------
    InvalidInput
        If X is not sparse, or predictions agree with neither 0 nor NaN.

    Examples
    --------
    >>> import numpy as np, scipy.sparse as sp, propopt as po
    >>> from sklearn.linear_model import LinearRegression
    >>> X = sp.csr_array([[0.0, 1.0], [2.0, 0.0], [0.0, 3.0]])
    >>> po.functions.dense(LinearRegression().fit(X, [1, 2, 3]), X)
    array([[0., 1.],
           [2., 0.],
           [0., 3.]])
    """
    if not sp.issparse(X):
        raise InvalidInput(f"X: expected a sparse table, got {describe_type(X)}")
    if isinstance(model, Function):
        raise InvalidInput(f"model: expected the model itself, got {model!r}")
    fitted = FittedModel.of(model)
    methods = [name for name in METHODS.values() if name in fitted.methods]
    predict = getattr(fitted.estimator, methods[0]) if methods else model
    order = np.random.default_rng(0).random(X.nnz)
    entries = X.tocoo()
    parts = []
    for share in _SHARES:
        chosen = order < share
        cells = entries.row[chosen], entries.col[chosen]
        parts.append(sp.csr_matrix((entries.data[chosen], cells), shape=X.shape))
    try:
        expected = [np.asarray(predict(part), np.float64) for part in parts]
    except Exception:  # noqa: BLE001  # a library may raise anything for these
        return filled(X, 0.0)
    for absent in (0.0, np.nan):
        try:
            values = [predict(filled(part, absent)) for part in parts]
        except ValueError:  # it takes no missing numbers
            continue
        if np.allclose(values, expected, rtol=1e-6, atol=1e-9):
            return filled(X, absent)
    raise InvalidInput(
        f"X: {fitted.name} predicts other values if absent entries are 0, and if they "
        "are missing; give a dense table with the numbers that it takes them for"
    )
