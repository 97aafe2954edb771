"""Losses of single entries and of differences between entries: entries become points.

With the entries of W that count as the points of another program, each with one
feature, a loss over entries is one over points, and sums of squares or of absolute
values are what they were. All other entries are zero at the optimum, which costs
nothing: no loss ties them to another, and no target is there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from propopt._typing import Array, Attributions, Truths
from propopt.linear.components import Components
from propopt.losses.base import Bound, PropertyLoss
from propopt.losses.program import Program
from propopt.losses.restricted import is_complete
from propopt.maps import Identity, LinearMap, OverEntries, OverPoints, RowSums
from propopt.penalties import Absolute, Penalty, Squared


def entries_refusal(losses: Sequence[PropertyLoss]) -> str | None:
    """Why these are no losses of entries; None if they are."""
    if not any(isinstance(loss.map, OverEntries) for loss in losses):
        return "no loss couples single entries"
    for loss in losses:
        kinds = Squared | Absolute if isinstance(loss.map, Identity) else Squared
        if not isinstance(loss.map, Identity | OverEntries):
            return f"{loss.name} is no sum over entries and differences of entries"
        if not isinstance(loss.penalty, kinds):
            return f"{loss.name} is neither squared nor sparsity"
    return None


def counted(program: Program) -> Support | None:
    """The entries that a program is about; None where all are.

    Of documents the words that they have: no explanation says anything of others. Rows
    may add up over entries of their own, which count too.

    Examples
    --------
    >>> import numpy as np, propopt as po
    >>> G, has = np.array([[1.0, 0.0], [2.0, 3.0]]), np.array([[1, 0], [1, 1]])
    >>> shared = po.SharedRobustness(po.chain_graph(2), has)
    >>> support = counted(po.losses.Program((po.GradientMatching(G), shared)))
    >>> support.mask
    array([[ True, False],
           [ True,  True]])
    """
    sums = [bound.loss for bound in program.bounds if is_complete(bound)]
    losses = [loss for loss in program.all_losses if loss not in sums]
    if entries_refusal(losses) is not None:
        return None
    counts = Support.of(losses, program.shape).mask
    for loss in sums:
        assert isinstance(loss.map, RowSums), "see is_complete"
        counts |= np.broadcast_to(loss.map.weights, program.shape) != 0.0
    return Support(np.flatnonzero(counts), program.shape)


@final
@dataclass(frozen=True, eq=False)
class Support:
    """The entries of W that count: coupled ones, and those with a target.

    Parameters
    ----------
    places : array of int (P,)
        Where they stand in W, row by row, in increasing order.
    shape : (int, int)
        That of W.
    """

    places: NDArray[np.intp]
    shape: tuple[int, int]

    @classmethod
    def of(cls, losses: Sequence[PropertyLoss], shape: tuple[int, int]) -> Support:
        """Those of losses and bounds without :func:`entries_refusal`."""
        counts = np.zeros(shape, bool)
        for loss in losses:
            match loss.map:
                case OverEntries(entries=entries):
                    counts.ravel()[entries] = True
                case _:
                    counts |= np.broadcast_to(loss.target, shape) != 0.0
        if not counts.any():
            counts.ravel()[0] = True  # a program has at least one point
        return cls(np.flatnonzero(counts), shape)

    @property
    def mask(self) -> Truths:
        """Which entries of W they are, (N, D)."""
        counts = np.zeros(self.shape, bool)
        counts.ravel()[self.places] = True
        return counts

    def program(self, program: Program) -> Program:
        """The program of the entries (P, 1)."""
        bounds = map(self.bound, program.bounds)
        losses = tuple(map(self.loss, program.losses))
        return Program(losses, tuple(bounds), (len(self.places), 1))

    def loss(self, loss: PropertyLoss) -> PropertyLoss:
        """A loss of W as one of its entries."""
        return _EntryLoss(loss, self)

    def bound(self, bound: Bound) -> Bound:
        """A bound on W as one on its entries."""
        return Bound(self.loss(bound.loss), bound.limit)

    def duals(
        self, losses: Sequence[PropertyLoss], duals: Mapping[str, Array]
    ) -> dict[str, Array]:
        """Those of losses of W as those of losses of its entries."""
        return {
            name: self.values(dual) if name in _of_W(losses) else dual[:, None]
            for name, dual in duals.items()
        }

    def expanded_duals(
        self, losses: Sequence[PropertyLoss], duals: Mapping[str, Array]
    ) -> dict[str, Array]:
        """And the other way round."""
        return {
            name: self.expanded(dual) if name in _of_W(losses) else dual[:, 0]
            for name, dual in duals.items()
        }

    def values(self, W: Attributions) -> Array:
        """The entries (P, 1) of W."""
        return W.ravel()[self.places, None]

    def without(self, W: Attributions) -> float:
        """The size of all other entries of W."""
        others = W.ravel().copy()
        others[self.places] = 0.0
        return float(np.linalg.norm(others))

    def expanded(self, w: Array) -> Attributions:
        """W (N, D), zero but for its entries (P, 1)."""
        W = np.zeros(self.shape)
        W.ravel()[self.places] = w[:, 0]
        return W


def _of_W(losses: Sequence[PropertyLoss]) -> set[str]:
    """The names of losses of W itself, whose residuals have its shape."""
    return {loss.name for loss in losses if isinstance(loss.map, Identity)}


@final
class _EntryLoss(PropertyLoss):
    """φ(A(W) − T) as a loss of the entries w (P, 1)."""

    def __init__(self, loss: PropertyLoss, support: Support) -> None:
        self.name = loss.name
        self._loss = loss
        self._support = support

    @cached_property
    def map(self) -> LinearMap:
        match self._loss.map:
            case OverEntries() as coupled:
                return _over_points(coupled, self._support)
            case other:
                return other

    @property
    def penalty(self) -> Penalty:
        return self._loss.penalty

    @cached_property
    def target(self) -> Array | float:
        target = self._loss.target
        if not isinstance(target, np.ndarray):
            return target
        if isinstance(self._loss.map, OverEntries):
            return target[:, None]
        return self._support.values(target)

    @property
    def n_points(self) -> int:
        return len(self._support.places)

    @property
    def n_features(self) -> int:
        return 1


def _over_points(coupled: OverEntries, support: Support) -> OverPoints:
    """The same map, of a column of more entries."""
    size = len(support.places)
    own = np.searchsorted(support.places, coupled.entries)
    B = coupled.matrix
    rows = (B.data, own[B.indices], B.indptr)
    matrix = sp.csr_array(rows, (B.shape[0], size), copy=True)
    alone = np.ones(size, bool)
    alone[own] = False
    labels = np.empty(size, np.intp)
    labels[own] = coupled.components.labels
    labels[alone] = coupled.components.count + np.arange(np.count_nonzero(alone))
    return OverPoints(matrix, Components(labels))
