"""The attributions at which losses are zero, and losses over single entries.

A loss is zero for a single W (the target, or zero), or for all W that are constant on
parts of the points and of the features,

    W = J U Ĵᵀ,   J (N, p) and Ĵ (D, q) with orthonormal columns,

where column k of J is 1/√n_k on the n_k points of part k, and Ĵ likewise. The ends of
fronts need them.

A loss over single entries is zero if W is constant on each part of its entries. Parts
of points and of features, left by other losses, are parts of entries too; both are
joined.

Losses of A(W − G) are losses of V = W − G, and losses with a target T get the target
T − A(G).

If the entries of W in use are the points of another program with one feature, a loss
over entries is one over points, and sums of squares or of absolute values do not
change. All other entries are zero at the optimum, as nothing couples them and they have
no target.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import final

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from propopt.base.arrays import Array, Attributions, Mask, Sparse
from propopt.base.text import Reason
from propopt.losses.algebra import Bound, Program, PropertyLoss, _RecastLoss
from propopt.losses.faithfulness import GradientMatching
from propopt.losses.linear_algebra import Components
from propopt.losses.maps import (
    Absolute,
    Identity,
    ImplicitOverPoints,
    OverEntries,
    OverFeatures,
    OverPoints,
    RowSums,
    Squared,
)


# ---- The attributions with zero loss


@final
@dataclass(frozen=True, eq=False)
class Restriction:
    """The attributions with zero loss, which are constant on parts, or a single W."""

    points: Components  # W is constant on each of their parts
    features: Components
    only: Attributions | None = None  # (N, D): the only W, if it is unique

    @classmethod
    def to_zero(
        cls, losses: Sequence[PropertyLoss], shape: tuple[int, int]
    ) -> Restriction:
        """The attributions with zero loss, for losses with exact zeros."""
        parts = [cls._by(loss, shape) for loss in losses]
        if len(parts) == 1:
            return parts[0]
        return cls(
            Components.joined([part.points for part in parts]),
            Components.joined([part.features for part in parts]),
            # a single W is zero, or the target of one loss
            next((part.only for part in parts if part.only is not None), None),
        )

    @classmethod
    def _by(cls, loss: PropertyLoss, shape: tuple[int, int]) -> Restriction:
        points, features = (Components(np.arange(size)) for size in shape)
        match loss.map:
            case Identity():
                only = np.array(np.broadcast_to(loss.target, shape), dtype=np.float64)
                return cls(points, features, only)
            case OverPoints(components=None) | OverFeatures(components=None):
                return cls(points, features, np.zeros(shape))
            case OverPoints(components=parts) | ImplicitOverPoints(components=parts):
                return cls(parts or points, features)
            case OverFeatures(components=parts):
                return cls(points, parts or features)
            case other:
                raise TypeError(f"{type(other).__name__} has no exact zeros")

    def nearest(self, T: Attributions) -> Attributions:
        """The only W, or the nearest one to T (N, D): its means over the parts."""
        if self.only is not None:
            return self.only
        means = self.points.split(T)[0].T
        W = self.points.spread(self.features.spread(self.features.split(means)[0]).T)
        return np.array(np.broadcast_to(W, T.shape))

    def least_distance(self, T: Attributions) -> float:
        """The minimum of ‖W − T‖²."""
        return float(np.square(T - self.nearest(T)).sum())

    @property
    def basis(self) -> Sparse:
        """Orthonormal columns (N·D, p·q) that span row-major W."""
        return sp.csr_array(sp.kron(basis_of(self.points), basis_of(self.features)))

    @property
    def entries(self) -> Components:
        """The parts of all N·D entries, row by row."""
        labels = self.points.labels[:, None] * np.intp(self.features.count)
        return Components((labels + self.features.labels).ravel())


def has_exact_zeros(loss: PropertyLoss) -> bool:
    """Whether the loss is zero exactly for a single W or for constants."""
    match loss.map:
        case Identity():
            return True
        case OverPoints() | OverFeatures() as coupled:
            return not loss.has_target and coupled.sees_all_but_constants
        case ImplicitOverPoints(components=parts):
            return not loss.has_target and parts is not None
        case _:
            return False


def basis_of(parts: Components) -> Sparse:
    """An orthonormal basis of constants on parts: columns 1/√n_k on n_k nodes."""
    n_nodes = len(parts.labels)
    entries = 1.0 / parts.lengths[parts.labels, 0]
    rows = np.arange(n_nodes + 1)
    labels = np.asarray(parts.labels, dtype=np.int64)
    return sp.csr_array((entries, labels, rows), shape=(n_nodes, parts.count))


# ---- The attributions with zero loss over single entries


@final
@dataclass(frozen=True, eq=False)
class EntryRestriction:
    """The attributions W that are constant on parts of their entries, or a single W."""

    entries: Components  # parts of all N·D entries, row by row
    only: Attributions | None = None  # (N, D): the only W, if it is unique

    @classmethod
    def to_zero(
        cls, losses: Sequence[PropertyLoss], shape: tuple[int, int]
    ) -> EntryRestriction | None:
        """The attributions with zero loss; None if they have no such form."""
        coupled = [loss for loss in losses if isinstance(loss.map, OverEntries)]
        others = [loss for loss in losses if loss not in coupled]
        if not all(map(has_exact_zeros, others)):
            return None
        restriction = Restriction.to_zero(others, shape) if others else None
        if restriction is not None and restriction.only is not None:
            return cls(restriction.entries, restriction.only)
        parts = [] if restriction is None else [restriction.entries]
        return cls(Components.joined([*parts, *map(_parts, coupled)]))

    @property
    def basis(self) -> Sparse:
        """Orthonormal columns (N·D, p) that span row-major W."""
        return basis_of(self.entries)

    def least_distance(self, T: Attributions) -> float:
        """The minimum of ‖W − T‖², attained by means of T over the parts."""
        return float((self.entries.centred(T.reshape(-1, 1)) ** 2).sum())


def _parts(loss: PropertyLoss) -> Components:
    """The parts of all entries; an uncoupled entry is a part."""
    coupled = loss.map
    assert isinstance(coupled, OverEntries), "see to_zero"
    labels = coupled.components.count + np.arange(prod(coupled.shape))
    labels[coupled.entries] = coupled.components.labels
    return Components(np.unique(labels, return_inverse=True)[1])


# ---- Losses with an offset G: the program of W − G


def offset_of(losses: Sequence[PropertyLoss]) -> Attributions | Reason:
    """The G of losses of A(W − G), if all are, or the reason for none.

    A loss without a target would get one.
    """
    offset = [loss for loss in losses if loss.offset is not None]
    if not offset:
        return Reason("no loss has an offset")
    G = np.asarray(offset[0].offset)
    for loss in losses:
        if loss.offset is None and not loss.has_target:
            return Reason(f"{loss.name} is of W, and {offset[0].name} of W - G")
        if loss.offset is not None and not np.array_equal(G, loss.offset):
            return Reason(f"{loss.name} and {offset[0].name} have different offsets")
    return G


def without_offset(program: Program, G: Attributions) -> Program:
    """The program of V = W − G, for losses with the offset G, or with a target.

    A loss of W without a target is taken to ignore G, as constants of its components.
    """
    losses = tuple([_moved(loss, G) for loss in program.losses])
    bounds = tuple([Bound(_moved(b.loss, G), b.limit) for b in program.bounds])
    return Program.trusted(losses, bounds, program.shape)


def _moved(loss: PropertyLoss, G: Attributions) -> PropertyLoss:
    """A loss of W as a loss of V; gradient matching keeps its class."""
    if not loss.has_target:
        return loss
    if isinstance(loss, GradientMatching):
        return GradientMatching(loss.G - G, loss.norm, name=loss.name)
    if loss.offset is not None and np.array_equal(loss.offset, G):
        return _RecastLoss(loss, loss.map, 0.0)
    return _RecastLoss(loss, loss.map, loss.target - loss.map(G))


# ---- Losses of single entries and their differences: entries become points


def entries_refusal(losses: Sequence[PropertyLoss]) -> str | None:
    """The reason why these are not losses of entries; None if they are."""
    if not any(isinstance(loss.map, OverEntries) for loss in losses):
        return "no loss couples single entries"
    for loss in losses:
        kinds = Squared | Absolute if loss.is_direct else Squared
        if not isinstance(loss.map, Identity | OverEntries):
            return f"{loss.name} is not a sum over entries and their differences"
        if not isinstance(loss.penalty, kinds):
            return f"{loss.name} is neither squared nor sparsity"
    return None


def entry_support(program: Program) -> Support | None:
    """The entries in use, such as words in documents; None if all are."""
    losses = [*program.losses, *(bound.loss for bound in program.limits)]
    if entries_refusal(losses) is not None:
        return None
    counts = Support.of(losses, program.shape).mask
    for bound in program.row_sums:
        assert isinstance(bound.loss.map, RowSums), "see Bound"
        counts |= np.broadcast_to(bound.loss.map.weights, program.shape) != 0.0
    return Support(np.flatnonzero(counts), program.shape)


@final
@dataclass(frozen=True, eq=False)
class Support:
    """The entries of W in use: coupled ones, and those with a target."""

    # (P,): indices in row-major W, increasing
    positions: NDArray[np.intp]
    shape: tuple[int, int]  # of W

    @classmethod
    def of(cls, losses: Sequence[PropertyLoss], shape: tuple[int, int]) -> Support:
        """The entries of losses that :func:`entries_refusal` accepts."""
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
    def mask(self) -> Mask:
        """A mask of the entries in use, (N, D)."""
        return self.expanded(np.ones((len(self.positions), 1))) > 0.0

    def program(self, program: Program) -> Program:
        """The program of the entries (P, 1)."""
        losses = tuple(map(self.loss, program.losses))
        bounds = tuple([Bound(self.loss(b.loss), b.limit) for b in program.bounds])
        return Program.trusted(losses, bounds, (len(self.positions), 1))

    def loss(self, loss: PropertyLoss) -> _RecastLoss:
        """A loss of W as a loss of its entries."""
        over = loss.map
        target = loss.target
        if isinstance(over, OverEntries):
            over = _over_points(over, self)
            target = target[:, None] if isinstance(target, np.ndarray) else target
        elif isinstance(target, np.ndarray):
            target = self.values(target)
        return _RecastLoss(loss, over, target)

    def duals(
        self,
        losses: Sequence[PropertyLoss],
        duals: Mapping[str, Array],
        *,
        back: bool = False,
    ) -> dict[str, Array]:
        """Duals of losses of W as duals of losses of its entries, or ``back``."""
        # residuals of losses of W itself have its shape
        of_W = {loss.name for loss in losses if loss.is_direct}
        turn = self.expanded if back else self.values
        return {
            name: turn(Y) if name in of_W else Y[:, 0] if back else Y[:, None]
            for name, Y in duals.items()
        }

    def values(self, W: Attributions) -> Array:
        """The entries in use (P, 1) of W."""
        return W.ravel()[self.positions, None]

    def expanded(self, w: Array) -> Attributions:
        """W (N, D) with these entries (P, 1) and zeros elsewhere."""
        W = np.zeros(self.shape)
        W.ravel()[self.positions] = w[:, 0]
        return W


def _over_points(coupled: OverEntries, support: Support) -> OverPoints:
    """The same map on a column of all entries in use."""
    size = len(support.positions)
    indices = np.searchsorted(support.positions, coupled.entries)
    B = coupled.matrix
    rows = (B.data, indices[B.indices], B.indptr)
    matrix = sp.csr_array(rows, (B.shape[0], size), copy=True)
    uncoupled = np.ones(size, bool)
    uncoupled[indices] = False
    labels = np.empty(size, np.intp)
    labels[indices] = coupled.components.labels
    labels[uncoupled] = coupled.components.count + np.arange(
        np.count_nonzero(uncoupled)
    )
    return OverPoints(matrix, Components(labels))
