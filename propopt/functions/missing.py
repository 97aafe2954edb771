"""What is missing from points: the effect of that on a function, where it has one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from propopt._typing import Array, Attributions, Points, Values
from propopt.batches import row_blocks
from propopt.errors import InvalidInput
from propopt.tables.atoms import DATA_LAW, MOST_ATOMS, Atoms, atoms_of
from propopt.tables.names import listed


MISSING_EFFECT = "of a missing number f(x) − Σ_v p_v f(x with v)"


def missing_effects(
    evaluate: Callable[[Points], Values],
    points: Points,
    values: Values,
    observed: Sequence[Atoms | None],
) -> Attributions:
    """f(x) − Σ_v p_v f(x with v) where a number is missing, zero elsewhere, (N, D).

    The mean is over all values v that were observed in the column, each as often as it
    was; where none was, the effect is zero.

    Parameters
    ----------
    evaluate : callable
        f of points (m, D).
    points : array (N, D)
        x, NaN where a number is missing.
    values : array (N,)
        f(x).
    observed : sequence of Atoms (D,)
        The values of each column; None where it has none, or too many.
    """
    effects = np.zeros(points.shape)
    for j, rows in missing_rows(points):
        known = atoms_of(observed, j)
        for which, v in _pairs(len(rows), len(known.values), points.shape[1]):
            changed = points[rows[which]]
            changed[:, j] = known.values[v]
            less = known.shares[v] * (values[rows[which]] - evaluate(changed))
            np.add.at(effects[:, j], rows[which], less)
    return effects


def missing_rows(points: Points) -> Iterator[tuple[int, NDArray[np.intp]]]:
    """Each column in which numbers are missing, and the rows where they are."""
    absent = np.isnan(points)
    for j in np.flatnonzero(absent.any(axis=0)):
        yield int(j), np.flatnonzero(absent[:, j])


def refuse_missing(points: Points, names: Sequence[str], name: str) -> None:
    """Refuse missing numbers where no table tells what was observed instead."""
    if np.isnan(points).any():
        raise InvalidInput(
            f"{name}: X has missing values in {listed(names)}, which have no slope; "
            "their effect is f(x) less its mean over the observed values of a table: "
            f"give it, by wrap(model, data=X_train) or {DATA_LAW}"
        )


def _pairs(
    n_rows: int, n_values: int, n_columns: int
) -> Iterator[tuple[NDArray[np.intp], NDArray[np.intp]]]:
    """Positions of rows and of values, all pairs, in batches."""
    for block in row_blocks(n_rows * n_values, n_columns):
        which, v = np.divmod(np.arange(block.start, block.stop), n_values)
        yield which, v


def observed_in(table: Array) -> tuple[Atoms | None, ...]:
    """The values of each column of a table of numbers."""
    atoms = (Atoms.of(column) for column in table.T)
    return tuple(a if len(a.values) <= MOST_ATOMS else None for a in atoms)
