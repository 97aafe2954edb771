"""The two ends of a front, and losses as shares between them.

One end is the target G, the other W_∞, the most faithful attributions at which the
other losses are zero. For squared distances from G it is an average of G:

    robustness            the mean of G on each component of points, per feature
    and smoothness        the mean over components of both graphs
    over shared features  the mean on each component of the entries: a feature of
                          connected points that have it
    sparsity, K⁻¹ itself  zero

With given row sums, the ends are complete too: G with its missing sum spread over the
features, and t/D in each feature plus constants; the other losses there are
irreducible. For documents with given sums over words, W_∞ is the attributions nearest
to G among the smoothest (:mod:`propopt.proofs.hessian`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import final

import numpy as np
import pandas as pd
import scipy.sparse.linalg as sla

from propopt.base.arrays import Attributions
from propopt.base.checks import largest_entry
from propopt.base.declared import field
from propopt.base.errors import InvalidInput, NoTradeOff, Refused
from propopt.base.text import Reason
from propopt.losses import (
    GradientMatching,
    Objective,
    Program,
    PropertyLoss,
)
from propopt.losses.algebra import Faithfulness
from propopt.losses.completeness import Totals, along
from propopt.losses.maps import (
    Absolute,
    GroupMax,
    Identity,
    OverEntries,
    PerPoint,
    Squared,
)
from propopt.losses.restricted import (
    EntryRestriction,
    Restriction,
    entry_support,
    has_exact_zeros,
    offset_of,
    without_offset,
)
from propopt.proofs.hessian import smoothest
from propopt.proofs.optimum import Optimum


# ---- The two ends of every trade-off, the references for shares of losses


_NOTHING = 1e-20
"""A loss below this share of the loss at zero is rounding: δ = 1e-10 ‖G‖."""

_MOST_STEPS = 10_000

_EXACT = 1e-12
"""A loss below this share of ‖G‖² counts as zero."""


@final
@dataclass(frozen=True)
class IdealNadir:
    """Losses at both ends of a front by name; NaN if not available."""

    # names of the faithfulness losses; the others are to be reduced
    faithful: tuple[str, ...]
    # losses at G, minima for faithfulness
    at_target: Mapping[str, float] = field(missing=True, infinite=True)
    # losses at W_∞
    far: Mapping[str, float] = field(missing=True, infinite=True)
    # faithfulness losses at zero attributions, ‖G‖²
    sizes: Mapping[str, float] = field(missing=True, infinite=True)
    # losses that are a squared largest difference: shares refer to the difference
    roots: tuple[str, ...] = ()
    # losses of W minus an offset
    offset: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        complete = self.at_target.keys() & self.far.keys()
        faithful = set(self.faithful)
        names = {*self.at_target, *self.far, *faithful, *self.roots, *self.offset}
        if not names <= complete:
            raise InvalidInput("the two ends have different losses")
        if not faithful <= self.sizes.keys():
            raise InvalidInput("sizes: expected one for each faithfulness loss")

    @classmethod
    def of(cls, program: Program, weighted: Collection[str]) -> IdealNadir:
        """Compute the ends of a program; ``weighted`` losses have weights or bounds."""
        every = program.all_losses
        offset = tuple(loss.name for loss in every if loss.offset is not None)
        sizes = {
            loss.name: loss.value_at_zero
            for loss in every
            if isinstance(loss, Faithfulness)
        }
        G = offset_of(every)
        if not isinstance(G, Reason):  # the ends of the program of W − G
            program = without_offset(program, G)
        losses = [*program.losses, *(bound.loss for bound in program.limits)]
        faithful = [loss for loss in losses if isinstance(loss, Faithfulness)]
        others = [loss for loss in losses if loss not in faithful]
        joined = [loss for loss in others if loss.name in weighted]
        at_target, far = _both(program, faithful, joined)
        return cls(
            faithful=tuple(loss.name for loss in faithful),
            at_target={loss.name: at_target(loss) for loss in losses},
            far={loss.name: far(loss) for loss in losses},
            sizes=sizes,
            roots=tuple(
                loss.name for loss in others if isinstance(loss.penalty, GroupMax)
            ),
            offset=offset,
        )

    def share(self, name: str, loss: float) -> float:
        """The retained share of a faithfulness loss, or the removed share of another.

        It is 1 − loss(W)/loss(W_∞), or 1 − loss(W)/loss(G), minus the values at the
        other end; NaN if undefined. If G costs nothing at either end, it is 1 or −∞.
        """
        at_target = self.at_target[name]
        at_end = self.far[name]
        if name in self.faithful:
            size = self.sizes[name]
            cost = loss - at_target
            most = at_end - at_target
            if most <= _NOTHING * size:  # false for NaN
                return 1.0 if cost <= _EXACT * size else -math.inf
            return 1.0 - cost / most
        if name in self.roots:
            loss, at_target, at_end = (math.sqrt(x) for x in (loss, at_target, at_end))
        return (
            1.0 - (loss - at_end) / (at_target - at_end)
            if at_target > at_end
            else math.nan
        )

    def range_of(self, name: str) -> tuple[float, float]:
        """The values of a loss at its best and at its worst end.

        Raises
        ------
        Refused
            If one of them is not available, or they are equal.
        """
        best = self.at_target[name]
        worst = self.far[name]
        if name not in self.faithful:
            best, worst = worst, best
        if not math.isfinite(worst - best):
            raise Refused(
                f"{name}: the values of this loss at the ends of the trade-off curve "
                "are not available, so no share of its range can be reached; give "
                "limits instead"
            )
        if worst - best <= _EXACT * self.sizes.get(name, worst):
            raise NoTradeOff(
                f"{name} is {best:.4g} at both ends of the front: there is no trade-off"
            )
        return best, worst

    def limit(self, name: str, share: float) -> float:
        """The loss at a given share, the inverse of :meth:`share`."""
        best, worst = self.range_of(name)
        if name in self.roots:
            at_target = math.sqrt(worst)
            return (at_target - share * (at_target - math.sqrt(best))) ** 2
        return worst - share * (worst - best)

    def shares(self, losses: Mapping[str, float]) -> dict[str, float]:
        """The :meth:`share` of each loss with ends, faithfulness losses first."""
        names = dict.fromkeys([*self.faithful, *self.at_target])
        present = [name for name in names if name in losses]
        return {name: self.share(name, losses[name]) for name in present}


def label_of_rest(label: str) -> str:
    """The label of the rest of a share: faithfulness lost, another loss left."""
    return label.replace("kept", "lost").replace("removed", "left")


def _both(
    program: Program, faithful: Sequence[PropertyLoss], joined: Sequence[PropertyLoss]
) -> tuple[Callable[[PropertyLoss], float], Callable[[PropertyLoss], float]]:
    """Functions to losses at G and at the other end."""
    G = matched_target(program)
    totals = Totals.of(program)
    if totals is not None:
        nearest = farthest = None if G is None else totals.expanded(G)
        if totals.is_shared:
            farthest = _far_complete(G, joined, totals)
        elif G is not None and joined:  # over the entries of each row
            farthest = smoothest(program, joined, G)

        def complete_at_target(loss: PropertyLoss) -> float:
            counts = isinstance(loss, Faithfulness) or loss in joined
            return _value(loss, nearest) if counts else math.nan

        return complete_at_target, lambda loss: _value(loss, farthest)
    # by losses over entries, if only some entries are used
    support = entry_support(program)
    target = G
    shape = program.shape
    if support is not None:
        target = None if G is None else support.values(G)
        shape = len(support.positions), 1

    def inner(loss: PropertyLoss) -> PropertyLoss:
        return loss if support is None else support.loss(loss)

    others = [inner(loss) for loss in joined]

    def at_target(loss: PropertyLoss) -> float:
        if loss in faithful:
            return 0.0
        return _value(inner(loss), target) if loss in joined else math.nan

    def at_far_end(loss: PropertyLoss) -> float:
        if loss in faithful:
            return _least(inner(loss), others, shape)
        free = not any(other.offset is not None for other in joined)
        return 0.0 if free and loss in joined else math.nan

    return at_target, at_far_end


def _value(loss: PropertyLoss, W: Attributions | None) -> float:
    return math.nan if W is None else loss.value_at(W)


def _far_complete(
    G: Attributions | None, joined: Sequence[PropertyLoss], totals: Totals
) -> Attributions | None:
    """The complete W nearest to G among the minimisers of the other losses.

    With W = V + z uᵀ the losses of V are zero for constants, if u is constant.
    """
    inner = [totals.loss(loss) for loss in joined]
    if G is None or not all(map(has_exact_zeros, inner)):
        return None
    if not inner:
        return totals.expanded(G)
    free = Restriction.to_zero(inner, (G.shape[0], G.shape[1]))
    far = free.nearest(totals.coordinates(G))
    tilt = largest_entry(along(far, totals.axis))
    return totals.expanded(far) if tilt <= _EXACT * largest_entry(G) else None


def matched_target(program: Program) -> Attributions | None:
    """The target G of the first gradient-matching loss, or None."""
    for loss in program.losses:
        if isinstance(loss, GradientMatching):
            return loss.G
    return None


def _least(
    loss: PropertyLoss, others: Sequence[PropertyLoss], shape: tuple[int, int]
) -> float:
    """Minimum of loss(W) over W with zero other losses; NaN if not available."""
    free: Restriction | EntryRestriction | None = None
    if any(isinstance(other.map, OverEntries) for other in others):
        free = EntryRestriction.to_zero(others, shape)
    elif others and all(map(has_exact_zeros, others)):
        free = Restriction.to_zero(others, shape)
    if others and free is None:
        return math.nan
    if free is not None and free.only is not None:
        return loss.value_at(free.only)
    match loss.map, loss.penalty:
        case PerPoint(blocks=A), Squared():
            matrix = A if free is None else A @ free.basis
            t = np.asarray(loss.target)
            nearest = sla.lsmr(
                matrix, t, atol=_EXACT, btol=_EXACT, maxiter=_MOST_STEPS
            )[0]
            return float(((matrix @ nearest - t) ** 2).sum())
        case Identity(), Squared() | Absolute() if free is None:
            return 0.0
        case Identity(), Squared():
            assert free is not None
            return free.least_distance(np.broadcast_to(loss.target, shape))
        case Identity(), Absolute():
            assert free is not None
            # Σ |g − m|, for the median m of G on each part of the entries
            G = pd.Series(np.broadcast_to(loss.target, shape).ravel())
            medians = G.groupby(free.entries.labels).transform("median")
            return float((G - medians).abs().sum())
        case _:
            return math.nan


def weighted(
    explanation: Optimum, objective: Objective | None, program: Program
) -> set[str]:
    """Names of losses with a positive weight or a bound."""
    weights = explanation.weights if objective is None else objective.weights
    bounded = {bound.loss.name for bound in program.bounds}
    return {name for name, weight in weights.items() if weight > 0.0} | bounded
