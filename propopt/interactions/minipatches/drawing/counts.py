"""How many patches a prediction without some features is averaged over, beforehand."""

from __future__ import annotations

import math
import warnings
from collections.abc import Hashable, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom

from propopt._typing import Positions
from propopt.batches import Budget
from propopt.errors import FewPatchesWarning, InvalidInput
from propopt.interactions.features import Places
from propopt.interactions.minipatches.drawing.patches import Patches
from propopt.interactions.minipatches.drawing.usable import SURE, Usable
from propopt.tables.names import listed


ENOUGH: Final = 30
"""Patches that a mean is taken over; with fewer it says little."""

SEEN_TOGETHER: Final = 100
"""Patches that see all features of a set, on average; fewer learn little of it."""

_NEGLIGIBLE = 1e-9
"""Probability of too few patches below which nothing is counted row by row."""

_BLOCK = Budget(2**26)


def check_order(usable: Usable, order: int) -> None:
    """Refuse sets that no patch could leave out, or that none could see whole.

    Raises
    ------
    InvalidInput
        If m < r, or M − m < r, of r features and a fixed m.
    """
    if usable.columns == "bernoulli":
        return
    n_all, m = usable.n_features, round(usable.n_kept)
    instead = (
        f"with {n_all} features take {order} <= n_features <= {n_all - order}"
        if n_all >= 2 * order
        else f"{n_all} features are too few for that: take DataSplit()"
    )
    if m < order:
        raise InvalidInput(
            f"n_features: {order} features never co-occur in a patch of {m}, so no "
            f"interaction of them can be learnt; {instead}, or columns='bernoulli'"
        )
    if n_all - m < order:
        raise InvalidInput(
            f"n_features: a patch of {m} of {n_all} features never leaves out {order} "
            f"of them; {instead}, or columns='bernoulli'"
        )


def check_counts(
    patches: Patches, sets: Places, usable: Usable, names: Sequence[Hashable]
) -> None:
    """Refuse patches that never leave some set out; warn where there are few.

    Parameters
    ----------
    patches : Patches
        As drawn, before any is fitted.
    sets : array of int (Q, r)
        The largest that will be asked for.
    usable : Usable
        Of the same patches, for the number that would do.
    names : sequence (M,)
        Of the features.

    Raises
    ------
    InvalidInput
        If at some row no patch is without some set, with the number of patches needed.
    """
    n_sets, size = sets.shape
    if not n_sets:
        return
    fewest, place = fewest_usable(patches, sets, usable)
    n_all = n_sets * patches.n_table
    if fewest == 0:
        needed = usable.patches_needed(size, n_all)
        raise never_left_out(patches, sets[place], needed, names)
    reasons = []
    if fewest < ENOUGH:
        needed = usable.patches_needed(size, n_all, ENOUGH)
        reasons.append(
            f"some predictions are means of only {fewest} patches (of {ENOUGH} with "
            f"n_patches={needed})"
        )
    together = usable.together(size)
    if size > 1 and together * len(patches) < SEEN_TOGETHER:
        reasons.append(
            f"a set of {size} features is seen whole by about "
            f"{together * len(patches):.0f} patches (by {SEEN_TOGETHER} with n_patches="
            f"{math.ceil(SEEN_TOGETHER / together)})"
        )
    if reasons:
        warnings.warn(
            f"{len(patches)} patches are few: {'; '.join(reasons)}",
            FewPatchesWarning,
            stacklevel=2,
        )


def never_left_out(
    patches: Patches, left_out: Positions, needed: int, names: Sequence[Hashable]
) -> InvalidInput:
    """The error of patches of which, at some row, none is without a set.

    Parameters
    ----------
    patches : Patches
        B patches.
    left_out : array of int (t,)
        The set.
    needed : int
        Patches that would do.
    names : sequence (M,)
        Of the features.
    """
    return InvalidInput(
        f"n_patches: of {len(patches)} patches none is without "
        f"{listed([names[k] for k in left_out])} and without some row; with {needed} "
        f"each set is left out at each row in {SURE:.0%} of draws"
    )


def fewest_usable(patches: Patches, sets: Places, usable: Usable) -> tuple[int, int]:
    """The least number of patches of a mean, and the place of the set that has it.

    Rows are counted one by one only for sets that so few patches are without that some
    row may have less than 30 of them; else 30 stands for all that is more.

    Parameters
    ----------
    patches : Patches
        B patches.
    sets : array of int (Q, r)
        Sets of one size.
    usable : Usable
        Of the same patches.
    """
    absent = _absent(patches, sets)
    short = binom.cdf(ENOUGH - 1, absent, 1.0 - usable.row_share)  # at one row
    doubtful = np.flatnonzero(short * len(sets) * patches.n_table > _NEGLIGIBLE)
    if not len(doubtful):
        return ENOUGH, 0
    counts = _counts(patches, sets[doubtful])
    place = int(counts.argmin())
    return int(counts[place]), int(doubtful[place])


def _absent(patches: Patches, sets: Places) -> NDArray[np.int64]:
    """In how many patches no feature of each set is, (Q,)."""
    marks = ~patches.features
    if sets.shape[1] == 2:  # one product for all pairs; exact below 2^24 patches
        alone = marks.astype(np.float32)
        return (alone.T @ alone)[sets[:, 0], sets[:, 1]].astype(np.int64)
    columns = np.ascontiguousarray(marks.T)
    blocks = _BLOCK.blocks(len(sets), len(marks) * (1 + sets.shape[1]))
    return np.concatenate([columns[sets[q]].all(axis=1).sum(axis=1) for q in blocks])


def _counts(patches: Patches, sets: Places) -> NDArray[np.int64]:
    """Patches without each set, at the row that has fewest, (Q,)."""
    out = patches.out.T.astype(np.float32)
    columns = np.ascontiguousarray(~patches.features.T)
    row_bytes = (5 + sets.shape[1]) * len(patches) + 4 * patches.n_table
    parts = [
        (out @ columns[sets[q]].all(axis=1).T.astype(np.float32)).min(axis=0)
        for q in _BLOCK.blocks(len(sets), row_bytes)
    ]
    return np.concatenate(parts).astype(np.int64)
