"""The two ends of every trade-off: what shares of losses are measured against.

At one end stands the target G; at the other W_∞, the most faithful of the attributions
that cost the other losses nothing. With squared distances from G it is G averaged over
what those losses join:

    robustness            the mean of G on each component of points, per feature
    and smoothness        the mean over components of both graphs
    over shared features  the mean on each component of the entries, those of a feature
                          among points that have it and are joined by others with it
    sparsity, K⁻¹ itself  zero

Where rows have to add up, the ends are complete too: G with what it misses spread over
its features, and t/D in each feature beside constants; what the other losses are there,
no attributions can remove. Of documents, whose words add up, W_∞ is the one nearest to
G of the least rough (:mod:`propopt.curvature.smoothest`).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import final

import numpy as np
import pandas as pd
import scipy.sparse.linalg as sla

from propopt._typing import Attributions
from propopt.curvature.smoothest import smoothest
from propopt.losses import Faithfulness, GradientMatching, Program, PropertyLoss
from propopt.losses.entries import Support, counted
from propopt.losses.restricted import Restriction, has_known_zeros, is_complete
from propopt.losses.restricted_entries import EntryRestriction
from propopt.losses.totals import Totals, along
from propopt.maps import Identity, OverEntries, PerPoint
from propopt.penalties import Absolute, GroupMax, Squared


_NOTHING = 1e-20
"""A loss below this share of that of zero is rounding: ‖δ‖² for δ = 1e-10 ‖G‖."""

_MOST_STEPS = 10_000

_EXACT = 1e-12
"""A loss below this share of ‖G‖² is no loss where there is none to be had."""


@final
@dataclass(frozen=True)
class Ends:
    """Losses at both ends, by name; NaN where they are not known.

    Parameters
    ----------
    faithful : tuple of str
        Which losses are of faithfulness: the others are what is to be removed.
    at_target : mapping
        Of the losses at G, and least ones of faithfulness; NaN for a loss that had no
        weight.
    far : mapping
        Of the losses at W_∞.
    sizes : mapping
        Of the faithfulness losses at zero attributions, ‖G‖².
    roots : tuple of str
        Losses that are squares of one largest difference: shares are of the difference.
    """

    faithful: tuple[str, ...]
    at_target: Mapping[str, float]
    far: Mapping[str, float]
    sizes: Mapping[str, float]
    roots: tuple[str, ...] = ()

    @classmethod
    def of(cls, program: Program, weighted: Collection[str]) -> Ends:
        """Those of a program, of whose losses some have weights, or bounds."""
        totals = [bound.loss for bound in program.bounds if is_complete(bound)]
        losses = [loss for loss in program.all_losses if loss not in totals]
        faithful = [loss for loss in losses if isinstance(loss, Faithfulness)]
        others = [loss for loss in losses if loss not in faithful]
        joined = [loss for loss in others if loss.name in weighted]
        points = _Points.of(program, faithful, joined)
        return cls(
            faithful=tuple(loss.name for loss in faithful),
            at_target={loss.name: points.at_target(loss) for loss in losses},
            far={loss.name: points.far(loss) for loss in losses},
            sizes={loss.name: loss.value_at_zero for loss in faithful},
            roots=tuple(x.name for x in others if _is_largest_square(x)),
        )

    def share(self, name: str, loss: float) -> float:
        """What is kept of a faithfulness loss, or removed of another.

        1 − loss(W)/loss(W_∞), or 1 − loss(W)/loss(G), each less what it is at the other
        end; NaN where that is not defined. Where G costs nothing at either end, it is
        kept, or not at all: 1 or −∞.
        """
        near, far = self.at_target[name], self.far[name]
        if name in self.faithful:
            return _kept(loss - near, far - near, self.sizes[name])
        if name in self.roots:
            loss, near, far = (math.sqrt(x) for x in (loss, near, far))
        return 1.0 - (loss - far) / (near - far) if near > far else math.nan

    def shares(self, losses: Mapping[str, float]) -> dict[str, float]:
        """:meth:`share` of each loss that has ends, those of faithfulness first."""
        names = dict.fromkeys([*self.faithful, *self.at_target])
        known = [name for name in names if name in losses]
        return {name: self.share(name, losses[name]) for name in known}


def _kept(loss: float, far: float, size: float) -> float:
    if math.isnan(far):
        return math.nan
    if far <= _NOTHING * size:
        return 1.0 if loss <= _EXACT * size else -math.inf
    return 1.0 - loss / far


class _Points(ABC):
    """What the two ends are."""

    @classmethod
    def of(
        cls,
        program: Program,
        faithful: Sequence[PropertyLoss],
        joined: Sequence[PropertyLoss],
    ) -> _Points:
        """Those of a program, by the losses that have to be zero at one of them."""
        G, totals = matched_target(program), Totals.of(program.bounds)
        if totals is not None:
            nearest = None if G is None else totals.expanded(G)
            if totals.is_shared:
                return _Complete(nearest, _far_complete(G, joined, totals), joined)
            farthest = None if G is None else _far_own(program, joined, totals, G)
            return _Complete(nearest, farthest, joined)
        support = counted(program)
        if support is None:
            return _Free(G, faithful, joined, program.shape)
        return _FreeEntries.on(support, program.all_losses, faithful, joined, G)

    @abstractmethod
    def at_target(self, loss: PropertyLoss) -> float:
        """The loss at G; of faithfulness nothing is lost there."""

    @abstractmethod
    def far(self, loss: PropertyLoss) -> float:
        """The loss at W_∞, where others cost nothing."""


@final
@dataclass(frozen=True, eq=False)
class _Free(_Points):
    """G itself, and where each faithfulness loss is least among what is free."""

    G: Attributions | None
    faithful: Sequence[PropertyLoss]
    joined: Sequence[PropertyLoss]
    shape: tuple[int, int]

    def at_target(self, loss: PropertyLoss) -> float:
        if loss in self.faithful:
            return 0.0
        return math.nan if loss not in self.joined else _value(loss, self.G)

    def far(self, loss: PropertyLoss) -> float:
        if loss in self.faithful:
            return _least(loss, self.joined, self.shape)
        return 0.0 if loss in self.joined else math.nan


@final
@dataclass(frozen=True, eq=False)
class _FreeEntries(_Points):
    """Those of the program of the entries that count; all others are zero at both."""

    inner: Mapping[str, PropertyLoss]
    points: _Free

    @classmethod
    def on(
        cls,
        support: Support,
        losses: Sequence[PropertyLoss],
        faithful: Sequence[PropertyLoss],
        joined: Sequence[PropertyLoss],
        G: Attributions | None,
    ) -> _FreeEntries:
        """Those of losses of W, where no others than the entries count."""
        inner = {loss.name: support.loss(loss) for loss in losses}
        own, others = ([inner[x.name] for x in some] for some in (faithful, joined))
        target = None if G is None else support.values(G)
        shape = (len(support.places), 1)
        return cls(inner, _Free(target, own, others, shape))

    def at_target(self, loss: PropertyLoss) -> float:
        return self.points.at_target(self.inner[loss.name])

    def far(self, loss: PropertyLoss) -> float:
        return self.points.far(self.inner[loss.name])


@final
@dataclass(frozen=True, eq=False)
class _Complete(_Points):
    """The complete attributions nearest to G, and those at which others are least."""

    nearest: Attributions | None
    farthest: Attributions | None
    joined: Sequence[PropertyLoss]

    def at_target(self, loss: PropertyLoss) -> float:
        if not isinstance(loss, Faithfulness) and loss not in self.joined:
            return math.nan
        return _value(loss, self.nearest)

    def far(self, loss: PropertyLoss) -> float:
        return _value(loss, self.farthest)


def _value(loss: PropertyLoss, W: Attributions | None) -> float:
    return math.nan if W is None else loss.value_at(W)


def _far_complete(
    G: Attributions | None, joined: Sequence[PropertyLoss], totals: Totals
) -> Attributions | None:
    """The complete W nearest to G among those at which the others are least.

    With W = V + z uᵀ the losses of V are zero for constants, if u is one of these.
    """
    inner = [totals.loss(loss) for loss in joined]
    if G is None or not all(map(has_known_zeros, inner)):
        return None
    if not inner:
        return totals.expanded(G)
    free = Restriction.to_zero(inner, (G.shape[0], G.shape[1]))
    V = totals.coordinates(G) if free.only is None else free.only
    far = V if free.only is not None else free.expanded(free.coordinates(V))
    tilt = float(np.abs(along(far, totals.axis)).max())
    return totals.expanded(far) if tilt <= _EXACT * float(np.abs(G).max()) else None


def _far_own(
    program: Program, joined: Sequence[PropertyLoss], totals: Totals, G: Attributions
) -> Attributions | None:
    """The same where rows add up over entries of their own: of losses over these."""
    return smoothest(program, joined, G) if joined else totals.expanded(G)


def matched_target(program: Program) -> Attributions | None:
    """G, of the first gradient matching; None where there is none."""
    for loss in program.losses:
        if isinstance(loss, GradientMatching):
            return loss.G
    return None


def _is_largest_square(loss: PropertyLoss) -> bool:
    return isinstance(loss.penalty, GroupMax) and loss.penalty.degree == 2


def _least(
    loss: PropertyLoss, others: Sequence[PropertyLoss], shape: tuple[int, int]
) -> float:
    """Min loss(W) over all W that cost the others nothing; NaN where not known."""
    free = _free(others, shape) if others else None
    if others and free is None:
        return math.nan
    if free is not None and free.only is not None:
        return loss.value_at(free.only)
    match loss.map, loss.penalty:
        case PerPoint(), Squared():
            return _least_squares(loss, free)
        case Identity(), Squared():
            T = np.broadcast_to(loss.target, shape)
            return 0.0 if free is None else free.least_distance(T)
        case Identity(), Absolute():
            return 0.0 if free is None else _from_medians(loss, free, shape)
        case _:
            return math.nan


def _free(
    others: Sequence[PropertyLoss], shape: tuple[int, int]
) -> Restriction | EntryRestriction | None:
    """The attributions that cost the others nothing; None where they are not known."""
    if any(isinstance(loss.map, OverEntries) for loss in others):
        return EntryRestriction.to_zero(others, shape)
    if not all(map(has_known_zeros, others)):
        return None
    return Restriction.to_zero(others, shape)


def _least_squares(
    loss: PropertyLoss, free: Restriction | EntryRestriction | None
) -> float:
    """The least ‖A W − t‖² over what is free."""
    A, t = loss.map, np.asarray(loss.target)
    assert isinstance(A, PerPoint), "see _least"
    matrix = A.blocks if free is None else A.blocks @ free.basis
    nearest = sla.lsmr(matrix, t, atol=_EXACT, btol=_EXACT, maxiter=_MOST_STEPS)[0]
    return float(((matrix @ nearest - t) ** 2).sum())


def _from_medians(
    loss: PropertyLoss, free: Restriction | EntryRestriction, shape: tuple[int, int]
) -> float:
    """Σ |g − m|, for the median m of G on each part of the entries."""
    G = pd.Series(np.broadcast_to(loss.target, shape).ravel())
    return float((G - G.groupby(free.entries.labels).transform("median")).abs().sum())
