"""Attributions of whatever carries them, their rows and columns put in order by name.

Names decide where both sides have them: another order is put right, other names are
refused. Where one side has none, position decides.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from propopt._typing import Array, Attributions
from propopt.checks import read_array
from propopt.errors import InvalidInput
from propopt.tables.names import Labels, differ, listed, plain_name, read_table


def read_attributions(carrier: Any, what: str) -> tuple[Attributions, Labels]:
    """W (N, D), read-only, and its names.

    Parameters
    ----------
    carrier : Explanation, shap.Explanation, DataFrame or array (N, D)
        What carries W.
    what : str
        What errors call it.

    Raises
    ------
    InvalidInput
        If it is no finite table of numbers.
    """
    if isinstance(carrier, pd.DataFrame | np.ndarray):  # a column may have any name
        return read_table(carrier, what)
    if isinstance(getattr(carrier, "labels", None), Labels):  # an explanation of ours
        return carrier.attributions, carrier.labels
    if is_shap(carrier):
        return _read_shap(carrier, what)
    return read_table(carrier, what)


def is_shap(carrier: Any) -> bool:
    """Whether it is a ``shap.Explanation``, by what it has: shap is not imported."""
    if isinstance(carrier, pd.DataFrame):  # columns are attributes too
        return False
    return hasattr(carrier, "values") and hasattr(carrier, "feature_names")


def aligned(carrier: object, names: Labels, what: str, whose: str) -> Attributions:
    """W (N, D) of what :func:`read_attributions` takes, in the order of ``names``.

    Raises
    ------
    InvalidInput
        If its rows or columns have other names than those of ``whose``.
    """
    W, own = read_attributions(carrier, what)
    columns = order_of(own.features, names.features, f"{what}: its columns", whose)
    rows = order_of(own.points, names.points, f"{what}: its rows", whose, counted=True)
    if columns is None and rows is None:
        return W
    W = W if columns is None else W[:, columns]
    return read_array(W if rows is None else W[rows], what, ndim=2)


def aligned_vector(
    carrier: object, names: Sequence[Hashable] | None, what: str, whose: str
) -> Array:
    """Numbers (n,), those of a Series in the order of ``names``."""
    array = read_array(carrier, what, ndim=1)
    if not isinstance(carrier, pd.Series):
        return array
    order = order_of(tuple(carrier.index), names, f"{what}: its labels", whose)
    return array if order is None else array[order]


def order_of(
    own: Sequence[Hashable] | None,
    wanted: Sequence[Hashable] | None,
    what: str,
    whose: str,
    *,
    counted: bool = False,
) -> NDArray[np.intp] | None:
    """Where each wanted name stands among one's own; None if both are in one order.

    Names are the same where a file would have the same of both: a date is its text.
    With ``counted``, names that only count from zero are put in no other order: they
    may be no more than the index that a DataFrame has when it has no other.

    Raises
    ------
    InvalidInput
        If one side has a name that the other has not, or a name appears twice.
    """
    if own is None or wanted is None or not differ(tuple(own), tuple(wanted)):
        return None
    have, want = _keys(own), _keys(wanted)
    if have == want:
        return None
    places = {key: n for n, key in enumerate(have)}
    _refuse_others(have, want, what, whose)
    if len(places) < len(have) or len(have) != len(want):
        raise InvalidInput(
            f"{what} are not told apart by their names: some appear twice, and in "
            f"another order than those of {whose}"
        )
    if counted and have == list(range(len(have))):
        raise InvalidInput(
            f"{what} are counted, and those of {whose} have the same numbers in "
            f"another order; {_REMEDY}"
        )
    return np.array([places[key] for key in want], dtype=np.intp)


_REMEDY = "give them the same names, or an array, which goes by position"


def _read_shap(carrier: Any, what: str) -> tuple[Attributions, Labels]:
    """Values and names of a ``shap.Explanation``."""
    if np.ndim(carrier.values) == 3:
        raise InvalidInput(
            f"{what}: expected the values of one output, got the shape "
            f"{np.shape(carrier.values)}; choose one, as in explanation[..., 1]"
        )
    W = read_array(carrier.values, what, ndim=2)
    if carrier.feature_names is None:
        return W, Labels()
    features = tuple(map(str, carrier.feature_names))
    if len(features) != W.shape[1]:
        raise InvalidInput(
            f"{what}: expected a name for each of {W.shape[1]} features, got "
            f"{len(features)}"
        )
    return W, Labels(features=features)


def _keys(names: Sequence[Hashable]) -> list[int | float | str]:
    return [plain_name(name) for name in names]


def _refuse_others(
    have: Sequence[object], want: Sequence[object], what: str, whose: str
) -> None:
    own, needed = set(have), set(want)
    lacking = [name for name in want if name not in own]
    unknown = [name for name in have if name not in needed]
    parts = [
        f"{listed(names, 3)} {verb}"
        for names, verb in ((lacking, "missing"), (unknown, "not known"))
        if names
    ]
    if parts:
        raise InvalidInput(
            f"{what} are not those of {whose}: {', '.join(parts)}; {_REMEDY}"
        )
