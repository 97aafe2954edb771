"""Contrasts of a few values, from the same draw with another value in one column.

Where the contrast r of a column is no slope, the attribution is an effect or a
difference, and since Σ_v r_v = 0 it is

Σ_v r_v E f(v, V_−j) = E Σ_v −r_v (f(V) − f(v, V_−j)):

what changes when V_j becomes v and all else stays. Of a function that does not depend
on column j this is 0 in every draw. So it is for slopes, with V_j' another draw of V_j:

Cov(V_j, f(V)) / Var V_j = E ½ (V_j − V_j') (f(V) − f(V_j', V_−j)) / Var V_j.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from propopt._typing import Array
from propopt.sampling.laws.coded import CodedLaw
from propopt.sampling.laws.data_law import ColumnLaw
from propopt.sampling.laws.numeric import NumericLaw


MOST_EACH: Final = 16
"""Of so many other values each is tried in every draw; of more, one that is drawn."""


class OtherValues(NamedTuple):
    """Other values of one column, with what the change of f counts."""

    rows: NDArray[np.intp]
    """The rows at which they are tried, (T,)."""

    values: Array
    """What the column becomes, in each draw, (T, S)."""

    weights: Array
    """The attribution is the mean of weight · (f(V) − f with the value), (T, S)."""


def other_values(
    law: ColumnLaw, x: Array, drawn: Array, uniforms: Array, paired: bool
) -> Iterator[OtherValues]:
    """Those of one column.

    Parameters
    ----------
    law : NumericLaw or CodedLaw
        Of the column.
    x : array (n,)
        The rows' own values.
    drawn : array (n, S)
        V_j.
    uniforms : array (S,)
        For values that are drawn; not those that V_j was drawn by.
    paired : bool
        Whether slopes are taken by pairs too.
    """
    match law:
        case CodedLaw():
            yield from _others(law, x, uniforms)
        case NumericLaw() if len(law.values) > 0:
            yield from _of_missing(law, x, uniforms)
            present = np.flatnonzero(~np.isnan(x))
            if len(law.values) == 2:
                yield _other_of_two(law, present, drawn)
            elif len(law.values) > 2 and paired:
                yield _redrawn(law, present, x, drawn, uniforms)


def n_other_values(law: ColumnLaw, x: Array, paired: bool) -> NDArray[np.intp]:
    """How many each row has in one draw, (n,)."""
    counts = np.zeros(len(x), dtype=np.intp)
    match law:
        case CodedLaw():
            own = law.shares[x.astype(np.intp)] > 0.0
            n_codes = int((law.shares > 0.0).sum())
            each = n_codes <= MOST_EACH
            counts[:] = n_codes - own if each else 1
        case NumericLaw() if len(law.values) > 0:
            m, absent = len(law.values), np.isnan(x)
            counts[absent] = m if m <= MOST_EACH else 1
            counts[~absent] = m == 2 or (m > 2 and paired)
    return counts


def _of_missing(law: NumericLaw, x: Array, uniforms: Array) -> Iterator[OtherValues]:
    """Observed values in place of none: the effect δ_missing − p."""
    rows, n_draws = np.flatnonzero(np.isnan(x)), len(uniforms)
    if len(law.values) > MOST_EACH:
        values = np.tile(_inverse(law.values, law.shares, uniforms), (len(rows), 1))
        yield OtherValues(rows, values, np.ones(values.shape))
        return
    for value, share in zip(law.values, law.shares, strict=True):
        shape = (len(rows), n_draws)
        yield OtherValues(rows, np.full(shape, value), np.full(shape, share))


def _others(law: CodedLaw, x: Array, uniforms: Array) -> Iterator[OtherValues]:
    """Other categories than that of the row: the effect δ_x − p."""
    codes = np.flatnonzero(law.shares > 0.0)
    if len(codes) > MOST_EACH:
        drawn = _inverse(codes, law.shares[codes], uniforms)
        values = np.tile(drawn, (len(x), 1))
        yield OtherValues(np.arange(len(x)), values, np.ones(values.shape))
        return
    for code in codes:
        rows = np.flatnonzero(x != code)
        shape = (len(rows), len(uniforms))
        yield OtherValues(
            rows, np.full(shape, float(code)), np.full(shape, law.shares[code])
        )


def _other_of_two(law: NumericLaw, rows: NDArray[np.intp], drawn: Array) -> OtherValues:
    """f(v_2, ·) − f(v_1, ·), over v_2 − v_1, whichever of them V_j is."""
    low, high = law.values
    is_low = drawn[rows] == low
    slope = 1.0 / law.extent
    return OtherValues(
        rows, np.where(is_low, high, low), np.where(is_low, -slope, slope)
    )


def _redrawn(
    law: NumericLaw, rows: NDArray[np.intp], x: Array, drawn: Array, uniforms: Array
) -> OtherValues:
    """½ (V_j − V_j') / Var V_j, with V_j' another draw of V_j."""
    again = law.quantiles(x[rows], uniforms)
    _, variances = law.moments(x[rows])
    return OtherValues(rows, again, 0.5 * (drawn[rows] - again) / variances[:, None])


def _inverse(values: NDArray[np.generic], shares: Array, uniforms: Array) -> Array:
    """The inverse cdf of shares on values, at uniforms (S,)."""
    cumulative = np.cumsum(shares)
    at = np.searchsorted(cumulative / cumulative[-1], uniforms, side="right")
    return np.asarray(values[np.minimum(at, len(values) - 1)], dtype=np.float64)
