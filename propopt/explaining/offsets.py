"""Offsets of rows: what is added to a margin outside the model, such as log exposure.

XGBoost calls it ``base_margin``, LightGBM ``init_score`` and CatBoost ``baseline``. The
margin that a user sees in row n is f(x_n) + o_n. The offset is no function of the
columns, so it is part of the base of its row: base + o_n + Σ_d w_nd = f(x_n) + o_n, and
contributions are those without it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from propopt.base.errors import InvalidInput
from propopt.functions.function import Function
from propopt.results.explanation import Explanation
from propopt.structures.boxes.boxes import Boxes
from propopt.structures.products.sums import SumOfProducts
from propopt.tables.frames import numbers_of_rows


def with_offset(
    best: Explanation,
    offset: Any,
    X: Any,
    function: Function,
    model: Any,
    n_columns: int,
) -> Explanation:
    """The same with the offsets of its rows in base and prediction."""
    if offset is None:
        return best
    if best.base_value is None or best.prediction is None:
        raise InvalidInput(
            "offset: it is part of the base of contributions, and slopes have none; "
            "leave it out"
        )
    refuse_no_margin(function, model, n_columns)
    own = numbers_of_rows(offset, X, best.shape[0], "offset", "X")
    told = f"in base and prediction of each row, {own.min():.4g} to {own.max():.4g}"
    return replace(
        best,
        base_value=best.base_value + own,
        prediction=best.prediction + own,
        parameters={**best.parameters, "offset": told},
    )


def refuse_no_margin(function: Function, model: Any, n_columns: int) -> None:
    """Refuse offsets of what is known to be no margin, or not known to be one."""
    kind = function.quantity.kind
    if kind == "probability":
        raise InvalidInput(
            "offset: it is added to margins, and the output explained is a "
            "probability; give output='log_odds'"
        )
    is_estimator = hasattr(model, "predict") and not isinstance(model, Function)
    if kind != "value" or not is_estimator:
        return
    read = function.products_in(n_columns)
    is_sum = isinstance(read, SumOfProducts) and read.lengths.max(initial=0) <= 1
    if not (isinstance(read, Boxes) or is_sum):  # a product may be exp of a sum
        raise InvalidInput(
            f"offset: it is added to margins, and {type(model).__name__} is explained "
            "in its predictions, which may have a link such as exp; give a function "
            "that returns the margin, such as lambda X: "
            "model.predict(X, output_margin=True)"
        )
