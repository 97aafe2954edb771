"""Shapley values by definition: every coalition, by the model's own predictions."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray


Array = NDArray[np.float64]


class Reference(NamedTuple):
    """Exact values of some rows, and the largest prediction that they are made of."""

    values: Array  # (N, D)
    base: float  # the mean prediction over the background
    size: float  # the largest absolute prediction over all mixed rows


def by_definition(
    answer: Callable[[pd.DataFrame], Any], rows: pd.DataFrame, background: pd.DataFrame
) -> Reference:
    """Interventional Shapley values, by 2^D coalitions for each row.

    .. math::

        v(S) = 1/B Σ_b f(x on S, b elsewhere)

        φ_j = Σ_{S ∌ j} |S|! (D − |S| − 1)! / D! (v(S ∪ j) − v(S))

    Parameters
    ----------
    answer : callable
        The model's own prediction of a table, (n,), in the units to explain.
    rows, background : DataFrame (N, D) and (B, D)
        Of the same columns and dtypes, which mixed rows keep.
    """
    D, N, B = rows.shape[1], len(rows), len(background)
    known = (np.arange(2**D)[:, None] >> np.arange(D)) & 1 == 1  # (2^D, D)
    place = np.arange(2**D * N * B).reshape(2**D, N, B)
    of_row = np.broadcast_to(np.arange(N)[:, None], (N, B)).ravel()
    of_background = np.broadcast_to(np.arange(B), (N, B)).ravel()
    columns = {}
    for j, name in enumerate(rows.columns):
        both = pd.concat([rows[name], background[name]], ignore_index=True)
        source = [of_row if is_known else N + of_background for is_known in known[:, j]]
        columns[name] = both.iloc[np.concatenate(source)].reset_index(drop=True)
    given = np.asarray(answer(pd.DataFrame(columns)), np.float64)
    v = given[place].mean(axis=2)  # (2^D, N)
    sizes = known.sum(axis=1)
    values = np.zeros((N, D))
    for j in range(D):
        without = np.flatnonzero(~known[:, j])
        n_known = sizes[without]
        ways = [math.factorial(k) * math.factorial(D - k - 1) for k in n_known]
        weight = np.array(ways) / math.factorial(D)
        values[:, j] = weight @ (v[without + 2**j] - v[without])
    return Reference(values, float(v[0].mean()), float(np.abs(given).max()))
