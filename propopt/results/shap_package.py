"""Explanations to and from the ``shap`` package, whose plots many readers know."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn, final

import numpy as np
import pandas as pd

from propopt._typing import Array
from propopt.checks import as_floats
from propopt.errors import InvalidInput
from propopt.extras import require
from propopt.tables.alignment import is_shap, order_of, read_attributions
from propopt.tables.cells import is_coded
from propopt.tables.frames import as_frame
from propopt.tables.names import table_labels


if TYPE_CHECKING:
    from propopt.results.explanation import Explanation


BASE_VALUE = "base_value"
"""The detail (N,) to which contributions of a row are added to give its output."""


def shap_of_explanation(explanation: Explanation, X: object = None) -> Any:
    """A ``shap.Explanation`` of these attributions, for the plots of ``shap``.

    Needs ``pip install "propopt[baselines]"``. Contributions (units ``"output"``) have
    their base values where ``details["base_value"]`` knows them. Slopes are parts of no
    sum and have none: of the package's plots, those that add up to an output
    (waterfall, decision, force) are refused, and parts are asked for.

    Parameters
    ----------
    X : array or DataFrame (N, D), optional
        The inputs, by which plots colour points; rows and columns that have names are
        put in the order of the explanation, and categories are coded.

    Returns
    -------
    shap.Explanation
        With ``values``, ``feature_names``, and ``base_values`` and ``data`` where they
        are known.

    Raises
    ------
    InvalidInput
        If X is not a table of N rows and D columns.
    MissingExtra
        If ``shap`` is not installed.

    Examples
    --------
    >>> import numpy as np, propopt as po
    >>> X = np.array([[1.0, 2.0], [3.0, 5.0]])
    >>> best = po.solve(1.0 * po.GradientMatching(X))
    >>> best.to_shap(X).values  # doctest: +SKIP
    array([[1., 2.],
           [3., 5.]])
    """
    data, shown = _inputs(X, explanation)
    package = require("shap")
    D = explanation.shape[1]
    base = _base_values(explanation)
    return package.Explanation(
        values=np.array(explanation.attributions),
        base_values=NoBaseValue() if base is None else base,
        data=data,
        display_data=shown,
        feature_names=list(explanation.labels.feature_names(D)),
        compute_time=explanation.seconds,
    )


def explanation_of_shap(cls: type[Explanation], explanation: Any) -> Explanation:
    """The attributions, names and base values of a ``shap.Explanation`` (N, D).

    Parameters
    ----------
    explanation : shap.Explanation (N, D)
        Of one output.

    Returns
    -------
    Explanation
        In units ``"output"``; ``details["base_value"]`` (N,) is what the attributions
        of a row are added to, where that is told.

    Raises
    ------
    InvalidInput
        If it is something else, is of several outputs, or holds a value that is not
        finite.
    """
    if not is_shap(explanation):
        raise InvalidInput(
            "explanation: expected a shap.Explanation, got "
            f"{type(explanation).__name__}; other attributions are "
            "po.Explanation(attributions=W, method=...)"
        )
    W, labels = read_attributions(explanation, "shap")
    base = _base_detail(getattr(explanation, "base_values", None), len(W))
    return cls(
        attributions=W,
        method="shap",
        labels=labels,
        units="output",
        details={} if base is None else {BASE_VALUE: base},
    )


@final
class NoBaseValue:
    """What slopes have in place of a base value: whoever adds to it is refused."""

    def __repr__(self) -> str:
        return "None: slopes add up to no output"

    def _refused(self, *_: object) -> NoReturn:
        raise InvalidInput(
            "base_values: these are slopes, which add up to no output, so that there "
            "is no waterfall of them; parts that do are po.explain(model, X, data=X, "
            "units='output').to_shap(X)"
        )

    __float__ = __array__ = __getitem__ = __format__ = _refused
    __add__ = __radd__ = _refused
    shape = ()


def _base_values(explanation: Explanation) -> Array | None:
    """One number per row, or None: slopes are added to nothing."""
    base = explanation.details.get(BASE_VALUE)
    if explanation.units != "output" or base is None:
        return None
    return np.array(base, dtype=np.float64)


def _base_detail(base: object, n_points: int) -> Array | None:
    """One number per row from what the package has: a number, a row or a column."""
    if base is None or isinstance(base, NoBaseValue):
        return None
    values = as_floats(base, "base_values")
    flat = values.reshape(-1) if values.size in (1, n_points) else None
    if flat is None or not np.isfinite(flat).all():
        raise InvalidInput(
            f"base_values: expected one finite number, or one for each of {n_points} "
            f"rows, got an array of shape {values.shape}"
        )
    return np.array(np.broadcast_to(flat, (n_points,)))


def _inputs(X: Any, explanation: Explanation) -> tuple[Array | None, Any]:
    """Numbers by which plots colour and place points, and what they write beside."""
    if X is None:
        return None, None
    frame = as_frame(X, "X")
    if frame is None:
        data = as_floats(X, "X")
        _check_shape(data.shape, explanation.shape)
        return data, None
    _check_shape(frame.table.shape, explanation.shape)
    table = _in_order(frame.table, X, explanation)
    columns = [_numbers(table.iloc[:, j]) for j in range(table.shape[1])]
    return np.stack(columns, axis=1), table.to_numpy(dtype=object)


def _in_order(table: pd.DataFrame, X: Any, explanation: Explanation) -> pd.DataFrame:
    own, names = table_labels(X), explanation.labels
    rows = order_of(own.points, names.points, "X: its rows", "the explanation")
    columns = order_of(
        own.features, names.features, "X: its columns", "the explanation"
    )
    table = table if columns is None else table.iloc[:, columns]
    return table if rows is None else table.iloc[rows]


def _check_shape(shape: tuple[int, ...], expected: tuple[int, int]) -> None:
    if shape != expected:
        raise InvalidInput(
            f"X: expected the shape of the attributions, {expected}, got {shape}; one "
            "column for each feature, as the explanation names them"
        )


def _numbers(column: pd.Series[Any]) -> Array:
    """A column as numbers, or the codes of its categories; NaN where missing."""
    if not is_coded(column, "X"):
        return column.to_numpy(dtype=np.float64, na_value=np.nan)
    codes = column.astype("category").cat.codes.to_numpy()
    return np.where(codes < 0, np.nan, codes)
