"""Losses as shares kept and removed, between the ends of the front.

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
G of the least rough (:mod:`propopt.proofs.hessian`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias, final

import numpy as np
import pandas as pd
import scipy.sparse.linalg as sla

from propopt.base.arrays import Attributions
from propopt.base.declared import field
from propopt.base.errors import InvalidInput, NoTradeOff, Refused
from propopt.losses import (
    GradientMatching,
    MaxDifferenceRobustness,
    Objective,
    PairwiseRobustness,
    Program,
    PropertyLoss,
    SharedRobustness,
)
from propopt.losses.algebra import Faithfulness
from propopt.losses.completeness import Totals, along
from propopt.losses.graphs.points import Graph
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
    Shift,
    entry_support,
    has_exact_zeros,
    is_completeness,
)
from propopt.proofs.hessian import smoothest
from propopt.proofs.optimum import Optimum


# ---- The two ends of every trade-off: what shares of losses are measured against


_NOTHING = 1e-20
"""A loss below this share of that of zero is rounding: ‖δ‖² for δ = 1e-10 ‖G‖."""

_MOST_STEPS = 10_000

_EXACT = 1e-12
"""A loss below this share of ‖G‖² is no loss where there is none to be had."""


@final
@dataclass(frozen=True)
class IdealNadir:
    """Losses at both ends, by name; NaN where they are not known."""

    # which losses are of faithfulness: the others are what is to be removed
    faithful: tuple[str, ...]
    # of the losses at G, and least ones of faithfulness
    at_target: Mapping[str, float] = field(missing=True, infinite=True)
    # of the losses at W_∞
    far: Mapping[str, float] = field(missing=True, infinite=True)
    # of the faithfulness losses at zero attributions, ‖G‖²
    sizes: Mapping[str, float] = field(missing=True, infinite=True)
    # losses that are squares of one largest difference: shares are of the difference
    roots: tuple[str, ...] = ()
    # losses that are of what is left without main effects
    offset: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        known = self.at_target.keys() & self.far.keys()
        faithful = set(self.faithful)
        named = {*self.at_target, *self.far, *faithful, *self.roots, *self.offset}
        if not named <= known:
            raise InvalidInput("losses of one end are not those of the other")
        if not faithful <= self.sizes.keys():
            raise InvalidInput("sizes: not of all losses of faithfulness")

    @classmethod
    def of(cls, program: Program, weighted: Collection[str]) -> IdealNadir:
        """Those of a program, of whose losses some have weights, or bounds."""
        every = program.all_losses
        offset = tuple(loss.name for loss in every if loss.offset is not None)
        sizes = {
            loss.name: loss.value_at_zero
            for loss in every
            if isinstance(loss, Faithfulness)
        }
        shift = Shift.of(every)
        if isinstance(shift, Shift):  # the ends are those of what is left
            program = shift.program(program)
        totals = [bound.loss for bound in program.bounds if is_completeness(bound)]
        losses = [loss for loss in program.all_losses if loss not in totals]
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
                loss.name
                for loss in others
                if isinstance(loss.penalty, GroupMax) and loss.penalty.degree == 2
            ),
            offset=offset,
        )

    def share(self, name: str, loss: float) -> float:
        """What is kept of a faithfulness loss, or removed of another.

        1 − loss(W)/loss(W_∞), or 1 − loss(W)/loss(G), each less what it is at the other
        end; NaN where that is not defined. Where G costs nothing at either end, it is
        kept, or not at all: 1 or −∞.
        """
        near, far = self.at_target[name], self.far[name]
        if name in self.faithful:
            size, cost, most = self.sizes[name], loss - near, far - near
            if most <= _NOTHING * size:  # not so of NaN
                return 1.0 if cost <= _EXACT * size else -math.inf
            return 1.0 - cost / most
        if name in self.roots:
            loss, near, far = (math.sqrt(x) for x in (loss, near, far))
        return 1.0 - (loss - far) / (near - far) if near > far else math.nan

    def range_of(self, name: str) -> tuple[float, float]:
        """The loss at the end where it is best, and where it is worst.

        Raises
        ------
        Refused
            If one of both is not known, or they are the same.
        """
        best, worst = self.at_target[name], self.far[name]
        if name not in self.faithful:
            best, worst = worst, best
        if not math.isfinite(worst - best):
            raise Refused(
                f"{name}: its values at the ends of the front are not known, so that "
                "shares of it mean nothing; give limits instead"
            )
        if worst - best <= _EXACT * self.sizes.get(name, worst):
            raise NoTradeOff(
                f"{name} is {best:.4g} at both ends of the front: nothing of it is "
                "traded"
            )
        return best, worst

    def limit(self, name: str, share: float) -> float:
        """The loss of which :meth:`share` is that: its inverse."""
        best, worst = self.range_of(name)
        if name in self.roots:
            near, far = math.sqrt(worst), math.sqrt(best)
            return (near - share * (near - far)) ** 2
        return worst - share * (worst - best)

    def shares(self, losses: Mapping[str, float]) -> dict[str, float]:
        """:meth:`share` of each loss that has ends, those of faithfulness first."""
        names = dict.fromkeys([*self.faithful, *self.at_target])
        known = [name for name in names if name in losses]
        return {name: self.share(name, losses[name]) for name in known}


_Measure: TypeAlias = Callable[[PropertyLoss], float]


def _both(
    program: Program, faithful: Sequence[PropertyLoss], joined: Sequence[PropertyLoss]
) -> tuple[_Measure, _Measure]:
    """At G, and at the most faithful that costs the others least."""
    G, totals = matched_target(program), Totals.of(program.bounds)
    if totals is not None:
        nearest = farthest = None if G is None else totals.expanded(G)
        if totals.is_shared:
            farthest = _far_complete(G, joined, totals)
        elif G is not None and joined:  # over entries of their own
            farthest = smoothest(program, joined, G)

        def complete_at_target(loss: PropertyLoss) -> float:
            counts = isinstance(loss, Faithfulness) or loss in joined
            return _value(loss, nearest) if counts else math.nan

        return complete_at_target, lambda loss: _value(loss, farthest)
    # where no others than some entries count, by losses of these
    support, target, shape = entry_support(program), G, program.shape
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

    def far(loss: PropertyLoss) -> float:
        if loss in faithful:
            return _least(inner(loss), others, shape)
        free = not any(other.offset is not None for other in joined)
        return 0.0 if free and loss in joined else math.nan

    return at_target, far


def _value(loss: PropertyLoss, W: Attributions | None) -> float:
    return math.nan if W is None else loss.value_at(W)


def _far_complete(
    G: Attributions | None, joined: Sequence[PropertyLoss], totals: Totals
) -> Attributions | None:
    """The complete W nearest to G among those at which the others are least.

    With W = V + z uᵀ the losses of V are zero for constants, if u is one of these.
    """
    inner = [totals.loss(loss) for loss in joined]
    if G is None or not all(map(has_exact_zeros, inner)):
        return None
    if not inner:
        return totals.expanded(G)
    free = Restriction.to_zero(inner, (G.shape[0], G.shape[1]))
    V = totals.coordinates(G) if free.only is None else free.only
    far = V if free.only is not None else free.expanded(free.coordinates(V))
    tilt = float(np.abs(along(far, totals.axis)).max())
    return totals.expanded(far) if tilt <= _EXACT * float(np.abs(G).max()) else None


def matched_target(program: Program) -> Attributions | None:
    """G, of the first gradient matching; None where there is none."""
    for loss in program.losses:
        if isinstance(loss, GradientMatching):
            return loss.G
    return None


def _least(
    loss: PropertyLoss, others: Sequence[PropertyLoss], shape: tuple[int, int]
) -> float:
    """Min loss(W) over all W that cost the others nothing; NaN where not known."""
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
            matrix, t = A if free is None else A @ free.basis, np.asarray(loss.target)
            how = {"atol": _EXACT, "btol": _EXACT, "maxiter": _MOST_STEPS}
            nearest = sla.lsmr(matrix, t, **how)[0]
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
    """Losses that had a weight above zero, or a bound."""
    weights = explanation.weights if objective is None else objective.weights
    bounded = {bound.loss.name for bound in program.bounds}
    return {name for name, weight in weights.items() if weight > 0.0} | bounded


def neighbour_differences(
    program: Program, W: Attributions
) -> Iterator[tuple[str, float]]:
    """√(Σ S‖w_n − w_n'‖²/(D ΣS)) by the name of a loss; of shared words by these alone.

    NaN where there are no neighbours. Graphs that several losses have count once.
    """
    seen: list[Graph] = []
    for loss in program.all_losses:
        match loss:
            case PairwiseRobustness(graph=graph) | MaxDifferenceRobustness(graph=graph):
                if not any(graph is other for other in seen):
                    seen.append(graph)
                    squares, total = graph.differences.energy(W), graph.total
                    mean = squares / (W.shape[1] * total) if total > 0.0 else math.nan
                    yield loss.name, math.sqrt(mean)
    for loss in program.all_losses:
        if isinstance(loss, SharedRobustness):
            total = loss.entry_graph.total
            yield loss.name, math.sqrt(loss.value_at(W) / total) if total else math.nan
