"""Gradients by central differences, and effects of categories and missing values."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from propopt.base.arrays import Array, Attributions, Points, Values
from propopt.base.checks import read_positive
from propopt.base.errors import FlatFunctionWarning, InvalidInput, JumpsWarning
from propopt.base.resources import row_blocks
from propopt.functions.jumps import Jumps
from propopt.functions.outputs import DOUBLE, SINGLE, as_numbers
from propopt.tables.columns import (
    DATA_LAW,
    CategoricalColumn,
    ObservedValues,
    observed_values_of,
)
from propopt.tables.frames import listed
from propopt.tables.schema import TableSchema


DEFAULT_STEP = math.cbrt(DOUBLE)
"""Balances the truncation error, ~ step², and the rounding error, ~ ε / step."""

FLAT = (
    "every central difference is exactly zero: the function is piecewise constant here "
    "(as trees and forests are), computes in single precision, or ignores its inputs; "
    "such gradients carry no information. Give a larger `step`, smooth it with "
    "po.functions.smoothed(function, scale=...), or explain its values instead of "
    "its gradients"
)


def differences(
    evaluate: Callable[[Points], Values],
    points: Points,
    step: float,
    moved: bool | NDArray[np.bool_] = True,
) -> Attributions:
    """Central differences in the columns that are ``moved``.

    Zero where a number is missing.

    (f(x + h e_d) − f(x − h e_d)) / 2h with h = ``step`` · max(1, |x_d|), and 2h the
    distance between the shifted points as they are represented.
    """
    gradients = np.zeros(points.size)
    present = np.flatnonzero(moved & ~np.isnan(points))
    for block in row_blocks(len(present), points.shape[1], copies=2):
        rows, columns = np.divmod(present[block], points.shape[1])
        h = step * np.maximum(1.0, np.abs(points[rows, columns]))
        shifted = points[np.tile(rows, 2)]
        at = np.arange(len(shifted)), np.tile(columns, 2)
        shifted[at] += np.concatenate([h, -h])
        ahead, behind = np.split(shifted[at], 2)
        values = as_numbers(evaluate(shifted))
        if values.shape != (len(shifted),):
            raise InvalidInput(
                f"the function returned shape {values.shape} for {len(shifted)} "
                "points; expected one value for each"
            )
        above, below = np.split(values, 2)
        with np.errstate(invalid="ignore"):  # ∞ − ∞ is a NaN, reported by its row
            gradients[present[block]] = (above - below) / (ahead - behind)
    return gradients.reshape(points.shape)


def warn_flat(name: str) -> None:
    """Warn that differences of a piecewise constant model are meaningless."""
    warnings.warn(
        f"{name}: the model is piecewise constant, so its gradient is 0 almost "
        "everywhere and differences catch at most a few jumps; "
        "po.functions.smoothed(function, scale=...) has slopes that see them",
        FlatFunctionWarning,
        stacklevel=2,
    )


def warn_jumps(name: str, jumps: Jumps) -> None:
    """Warn that a model jumps, and name the alternative."""
    warnings.warn(
        f"{name}: the model {jumps.in_words()}, and central differences miss them; "
        'po.functions.smoothed(function, law="data", data=X) has slopes that see jumps',
        JumpsWarning,
        stacklevel=2,
    )


def read_step(step: float | None) -> float:
    """The checked relative step; the default for None."""
    if step is None:
        return DEFAULT_STEP
    relative = read_positive(step, "step")
    if relative < DOUBLE:
        raise InvalidInput(
            f"step: expected at least {DOUBLE:.2g}, the rounding error, got "
            f"{relative:.2g}"
        )
    return relative


def step_for(epsilon: float, name: str) -> float:
    """The best relative step for values with relative rounding ε, ε^(1/3)."""
    if epsilon > SINGLE:
        digits = math.floor(-math.log10(epsilon))
        raise InvalidInput(
            f"{name}: the model computes in half precision, {digits} digits, and "
            "differences retain at most one; let it compute in single precision, or "
            f"give a `step` of about {math.cbrt(epsilon):.1g}"
        )
    return math.cbrt(max(epsilon, DOUBLE))


MISSING_EFFECT = "of a missing number f(x) − Σ_v p_v f(x with v)"


Alternatives: TypeAlias = tuple[int, NDArray[np.intp], Array, Array]
"""A column, some of the rows, alternative values, and their shares."""


def alternatives_at(
    points: Points,
    schema: TableSchema | None,
    observed: Sequence[ObservedValues | None] | None,  # shape (D,)
) -> Iterator[Alternatives]:
    """All categories of a column; for missing numbers the observed values."""
    every = np.arange(len(points))
    for j, column in enumerate(() if schema is None else schema.columns):
        if isinstance(column, CategoricalColumn):
            codes = np.flatnonzero(column.frequencies > 0.0)
            yield j, every, codes.astype(np.float64), column.frequencies[codes]
    if observed is not None:
        for j, rows in missing_rows(points):
            column_values = observed_values_of(observed, j)
            yield j, rows, column_values.values, column_values.shares


def replacement_effects(
    evaluate: Callable[[Points], Values],
    points: Points,  # shape (N, D)
    values: Values,  # shape (N,)
    alternatives: Iterable[Alternatives],
) -> Attributions:
    """f(x) − Σ_v p_v f(x with v) for each column with alternatives v, shape (N, D)."""
    effects = np.zeros(points.shape)
    for j, rows, instead, shares in alternatives:
        for block in row_blocks(len(rows) * len(instead), points.shape[1]):
            which, v = np.divmod(np.arange(block.start, block.stop), len(instead))
            # Σ_v p_v = 1, and the present value contributes nothing
            differs = points[rows[which], j] != instead[v]
            row = rows[which[differs]]
            v = v[differs]
            if len(row) > 0:
                changed = points[row]
                changed[:, j] = instead[v]
                less = shares[v] * (values[row] - evaluate(changed))
                np.add.at(effects[:, j], row, less)
    return effects


def missing_rows(points: Points) -> Iterator[tuple[int, NDArray[np.intp]]]:
    """Each column with missing numbers, and the rows where they are missing."""
    absent = np.isnan(points)
    for j in np.flatnonzero(absent.any(axis=0)):
        yield int(j), np.flatnonzero(absent[:, j])


def refuse_missing(points: Points, names: Sequence[str], name: str) -> None:
    """Refuse missing numbers if no table of observed values was given."""
    if np.isnan(points).any():
        raise InvalidInput(
            f"{name}: X has missing values in {listed(names)}, where f has no slope "
            "but an effect, f(x) minus its mean over observed values; for these give "
            f"a table: wrap(model, data=X_train) or {DATA_LAW}"
        )
