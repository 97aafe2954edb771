"""Completeness: attributions that add up to what they explain."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Any, TypeAlias, final

import numpy as np
import pandas as pd

from propopt._typing import Array
from propopt.checks import read_array, refuse_overflow, sealed
from propopt.errors import InvalidInput
from propopt.losses.base import Bound, PropertyLoss
from propopt.maps import Identity, ImplicitOverPoints, OverPoints, RowSums
from propopt.penalties import Penalty, Squared
from propopt.tables.alignment import aligned
from propopt.tables.names import Labels, differ, read_table


@final
class Completeness:
    """The constraint W v = t: the attributions of each point add up to its total.

    Attributions in units of the output are complete where Σ_d w_nd = f(x_n) − f₀ (the
    axiom of Sundararajan et al. 2017; v = 1). It stands in ``subject_to``, beside
    bounds, and is kept to rounding.

    A column in which the target is zero in all rows, and not all columns are, is not
    used by what is explained: it stays exactly zero, and does not count (v_d = 0). That
    holds beside losses for which zero is then best. Smoothness, which ties columns
    together, and weights of each row's own leave all columns in the sum.

    Parameters
    ----------
    total : array or Series (N,)
        t_n, such as f(x_n) less the mean output. Names are kept.
    weights : array or Series (D,), or array or DataFrame (N, D), optional
        v, one number per feature, not all zero; by default all are one. Where
        attributions are in units of s_d, v = s. Rows that have features of their own,
        such as documents their words, have weights of their own, zero at what they do
        not have: Σ_d v_nd w_nd = t_n.
    name : str
        What results call it.

    Raises
    ------
    InvalidInput
        If totals or weights are not finite numbers, or a row without weights has to
        add up to something.

    Examples
    --------
    >>> import numpy as np, propopt as po
    >>> phi = np.array([[1.0, 0.0], [0.0, 3.0], [2.0, 2.0]])
    >>> objective = po.GradientMatching(phi) + po.PairwiseRobustness(po.chain_graph(3))
    >>> best = po.solve(objective, subject_to=[po.Completeness(phi.sum(axis=1))])
    >>> best.attributions.sum(axis=1)
    array([1., 3., 4.])
    """

    def __init__(
        self, total: object, weights: object = None, *, name: str = "completeness"
    ) -> None:
        self.total, points = _read(total, "total")
        self.weights, names = None, Labels()
        if weights is not None:
            self.weights, names = _read_weights(weights)
            self._check_weights(self.weights, differ(points, names.points))
        self.labels = Labels(points or names.points, names.features)
        self.name = name

    def gaps(self, W: object) -> Array:
        """W v − t, shape (N,): by how much attributions miss their totals.

        Parameters
        ----------
        W : array, DataFrame, Explanation or shap.Explanation (N, D)
            Rows and columns with names are put in the order of totals and weights.

        Examples
        --------
        >>> import propopt as po
        >>> po.Completeness([3.0, 0.0]).gaps([[1.0, 2.0], [1.0, 1.0]])
        array([0., 2.])
        """
        array = aligned(W, self.labels, f"{self.name}: W", "the totals")
        loss = self.bound(array.shape[1]).loss
        loss.check_shape(array.shape)
        return np.asarray(loss.residual(array))[:, 0]

    def bound(self, n_features: int, used: Array | None = None) -> Bound:
        """The same for D features: a limit of zero on ‖W v − t‖².

        Parameters
        ----------
        n_features : int
            D.
        used : array of bool (D,), optional
            Which columns count; all by default.
        """
        v = np.ones(n_features) if self.weights is None else self.weights
        if used is not None and used.shape == v.shape and v[used].any():
            v = np.where(used, v, 0.0)  # where none is, all count
        return Bound(_RowTotals(self.total, v, labels=self.labels, name=self.name), 0.0)

    def _check_weights(self, weights: Array, in_other_order: bool) -> None:
        if not weights.any():
            raise InvalidInput("weights: all are zero, so nothing adds up")
        if weights.ndim == 1:
            return
        if len(weights) != len(self.total) or in_other_order:
            raise InvalidInput(
                f"weights: expected a row for each of the {len(self.total)} totals, "
                f"and in their order, got {len(weights)} rows"
            )
        empty = ~weights.any(axis=1) & (self.total != 0.0)
        if empty.any():
            n = int(empty.argmax())
            raise InvalidInput(
                f"total: row {n} has no weights, and cannot add up to {self.total[n]}"
            )

    def __repr__(self) -> str:
        return f"<{self.name}: {len(self.total)} points>"


@final
class _RowTotals(PropertyLoss):
    """‖W v − t‖²: how far attributions are from adding up; zero as a constraint.

    Parameters
    ----------
    total : array (N,)
        t.
    weights : array (D,) or (N, D)
        v.
    """

    def __init__(
        self, total: Array, weights: Array, *, labels: Labels, name: str
    ) -> None:
        self._target = sealed(total[:, None])
        self._map = RowSums(weights)
        self._labels = labels
        self.name = name

    @property
    def map(self) -> RowSums:
        return self._map

    @property
    def penalty(self) -> Penalty:
        return Squared()

    @property
    def target(self) -> Array:
        return self._target

    @property
    def n_points(self) -> int:
        return len(self._target)

    @property
    def n_features(self) -> int:
        return self._map.weights.shape[-1]

    @property
    def labels(self) -> Labels:
        return self._labels


Constraint: TypeAlias = Bound | Completeness
"""What stands in ``subject_to``."""


def bounds_of(
    constraints: Iterable[Constraint], losses: Sequence[PropertyLoss]
) -> tuple[Bound, ...]:
    """Constraints as bounds; how many features add up, the losses know.

    Raises
    ------
    InvalidInput
        If something is neither, or no loss knows the number of features.
    """
    if isinstance(constraints, Bound | Completeness):
        raise InvalidInput(
            f"subject_to: expected a list of bounds, got one; [{constraints!r}] is one"
        )
    given = list(constraints)
    all_losses = [*losses, *(x.loss for x in given if isinstance(x, Bound))]
    known = [loss.n_features for loss in all_losses]
    n_features = next((size for size in known if size is not None), None)
    used = None if n_features is None else _used(all_losses, n_features)
    return tuple(_bound(constraint, n_features, used) for constraint in given)


def _bound(constraint: Constraint, n_features: int | None, used: Array | None) -> Bound:
    if isinstance(constraint, Bound):
        return constraint
    if not isinstance(constraint, Completeness):
        raise InvalidInput(
            f"subject_to: expected bounds (loss <= limit) or a Completeness, got "
            f"{constraint!r}"
        )
    if constraint.weights is not None:
        n_features = constraint.weights.shape[-1]
    if n_features is None:
        raise InvalidInput(
            f"{constraint.name}: no loss tells how many features add up; give weights"
        )
    return constraint.bound(n_features, used)


def _used(losses: Iterable[PropertyLoss], n_features: int) -> Array | None:
    """Columns that a target gives something in some row; None where all count.

    Zero is best for the others if each loss is one of W itself or of differences
    between rows: without the column it is never larger. A target of nothing at all asks
    for the least W that adds up, in all columns alike.
    """
    used = np.zeros(n_features, dtype=bool)
    for loss in losses:
        if not isinstance(loss.map, Identity | OverPoints | ImplicitOverPoints):
            return None
        target = np.asarray(loss.target)
        if isinstance(loss.map, Identity) and target.ndim == 2:
            if target.shape[1] != n_features:
                return None
            used |= target.any(axis=0)
        elif target.any():
            return None
    return used


def _read_weights(weights: Any) -> tuple[Array, Labels]:
    """V, (D,) or (N, D), and the names that came with it."""
    if np.ndim(weights) == 2:
        table, names = read_table(weights, "weights")
        return sealed(np.array(table)), Labels(names.points, names.features)
    numbers, features = _read(weights, "weights")
    columns = None if features is None else tuple(map(str, features))
    return numbers, Labels(features=columns)


def _read(values: object, what: str) -> tuple[Array, tuple[Hashable, ...] | None]:
    """Numbers (n,), and the index that a Series has."""
    numbers = sealed(np.array(read_array(values, what, ndim=1)))
    refuse_overflow(numbers, what)
    return numbers, tuple(values.index) if isinstance(values, pd.Series) else None
