"""Which columns LIME keeps where it is to keep a few."""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

import numpy as np

from propopt._typing import Array, Truths
from propopt.checks import read_count
from propopt.errors import InvalidInput
from propopt.lime.expectations.limits import Limits


Selection: TypeAlias = Literal["auto", "forward_selection", "highest_weights"]
"""The package's names."""

_FEW = 6
"""Up to so many, ``auto`` adds columns one after the other."""


def kept_columns(limits: Limits, n_kept: int, how: Selection = "auto") -> Truths:
    """The columns that many samples keep, (n, D).

    Bits are independent under the weighted law. So the coefficients of columns that are
    kept stay what they are, and the intercept becomes E_Q f − Σ_kept α_j β_j. The best
    columns one after the other are those with the largest |β_j| √(α_j (1 − α_j)), and
    the highest weights are those with the largest |β_j|; these are the same wherever
    all columns have bins of equal shares. Of close rivals, n samples may choose others.

    Parameters
    ----------
    limits : Limits
        What infinitely many samples give.
    n_kept : int
        K; where there are fewer columns, all are kept.
    how : {"auto", "forward_selection", "highest_weights"}
        As in the package, where auto adds one after the other up to K = 6.

    Raises
    ------
    InvalidInput
        If ``how`` is none of these.

    Examples
    --------
    >>> import numpy as np
    >>> from propopt.lime.expectations import Limits
    >>> beta, alpha = np.array([[3.0, -1.0, 2.0]]), np.full((1, 3), 0.25)
    >>> kept_columns(Limits(beta, np.zeros(1), alpha, np.zeros(1)), 2)
    array([[ True, False,  True]])
    """
    read_count(n_kept, "n_kept")
    sizes = _sizes(limits, named_selection(how, n_kept))
    order = np.argsort(-sizes, axis=1, kind="stable")
    kept = np.zeros(sizes.shape, dtype=bool)
    np.put_along_axis(kept, order[:, :n_kept], True, axis=1)
    return kept


def _sizes(limits: Limits, how: Selection) -> Array:
    size = np.abs(limits.coefficients)
    if how == "highest_weights":
        return size
    return np.asarray(size * np.sqrt(limits.alpha * (1.0 - limits.alpha)))


def named_selection(how: Selection, n_kept: int) -> Selection:
    """The way that a name means; auto depends on how many are kept."""
    if how not in get_args(Selection):
        names = ", ".join(get_args(Selection))
        raise InvalidInput(f"how: expected one of {names}, got {how!r}")
    if how != "auto":
        return how
    return "forward_selection" if n_kept <= _FEW else "highest_weights"
