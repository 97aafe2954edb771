"""Laws and contrasts of columns at a value, value by value, and of rows of them."""

import math
from itertools import product
from typing import NamedTuple

import numpy as np

from propopt.laws.column_laws import CodedLaw, NumericLaw, temper


class Measure(NamedTuple):
    """Masses (m,) on values (m,): numbers or codes, NaN where a number is missing."""

    values: np.ndarray
    masses: np.ndarray


def law_at(law: NumericLaw | CodedLaw, x: float) -> Measure:
    if isinstance(law, CodedLaw):
        return Measure(np.array([x]), np.ones(1))
    if np.isnan(x) or len(law.values) == 0:
        return Measure(np.array([np.nan]), np.ones(1))
    if len(law.values) == 1:
        return Measure(law.values, np.ones(1))
    local = temper(law.values, law.shares, law.unit, np.array([x]))
    return Measure(law.values, local.masses[0] / local.totals[0])


def contrast_at(law: NumericLaw | CodedLaw, x: float) -> Measure:
    if isinstance(law, CodedLaw):
        masses = -law.shares
        masses[int(x)] += 1.0
        return Measure(np.arange(len(masses), dtype=float), masses)
    if len(law.values) == 0:
        return Measure(np.array([np.nan]), np.zeros(1))
    if np.isnan(x):
        return Measure(np.append(law.values, np.nan), np.append(-law.shares, 1.0))
    if len(law.values) == 1:
        return Measure(law.values, np.zeros(1))
    if len(law.values) == 2:
        return Measure(law.values, np.array([-1.0, 1.0]) / law.extent)
    local = temper(law.values, law.shares, law.unit, np.array([x]))
    q, z = local.masses[0], local.offsets[0]
    z = z - q @ z / q.sum()
    return Measure(law.values, q * z / ((q * z) @ z * law.unit))


def enumerated(function, law, row) -> tuple[float, np.ndarray]:
    """Mean and contrasts at a row, by all combinations of values of all columns."""
    local = [law_at(column, x) for column, x in zip(law.columns, row, strict=True)]

    def total(measures):
        points = np.array(list(product(*(each.values for each in measures))))
        masses = product(*(each.masses for each in measures))
        return float(np.array(list(map(math.prod, masses))) @ function(points))

    contrasts = [contrast_at(law.columns[j], row[j]) for j in range(len(row))]
    slopes = [total([*local[:j], g, *local[j + 1 :]]) for j, g in enumerate(contrasts)]
    return total(local), np.array(slopes)
