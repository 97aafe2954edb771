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
G of the least rough (:mod:`propopt.results.hessian`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import compress
from typing import TypeAlias, final

import numpy as np
import pandas as pd
import scipy.sparse.linalg as sla

from propopt.base.arrays import Attributions
from propopt.base.cards import Card, CardTable
from propopt.base.declared import stored
from propopt.base.errors import InvalidInput, NothingTraded, Refused
from propopt.base.text import Quantity, in_percent, printable
from propopt.losses import (
    GradientMatching,
    MaxDifferenceRobustness,
    Objective,
    PairwiseRobustness,
    Program,
    PropertyLoss,
    SharedRobustness,
)
from propopt.losses.algebra import Faithfulness, read_for
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
    counted,
    has_known_zeros,
    is_complete,
)
from propopt.results.certain import (
    Optimum,
    explained,
    plural,
    root_mean_square,
    without_dust,
)
from propopt.results.hessian import smoothest
from propopt.results.result import Result


# ---- The two ends of every trade-off: what shares of losses are measured against


_NOTHING = 1e-20
"""A loss below this share of that of zero is rounding: ‖δ‖² for δ = 1e-10 ‖G‖."""

_MOST_STEPS = 10_000

_EXACT = 1e-12
"""A loss below this share of ‖G‖² is no loss where there is none to be had."""


@final
@dataclass(frozen=True)
class Ends:
    """Losses at both ends, by name; NaN where they are not known."""

    # which losses are of faithfulness: the others are what is to be removed
    faithful: tuple[str, ...]
    # of the losses at G, and least ones of faithfulness
    at_target: Mapping[str, float] = stored(missing=True, infinite=True)
    # of the losses at W_∞
    far: Mapping[str, float] = stored(missing=True, infinite=True)
    # of the faithfulness losses at zero attributions, ‖G‖²
    sizes: Mapping[str, float] = stored(missing=True, infinite=True)
    # losses that are squares of one largest difference: shares are of the difference
    roots: tuple[str, ...] = ()
    # losses that are of what is left beside own values
    beside: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        known = self.at_target.keys() & self.far.keys()
        faithful = set(self.faithful)
        named = {*self.at_target, *self.far, *faithful, *self.roots, *self.beside}
        if not named <= known:
            raise InvalidInput("losses of one end are not those of the other")
        if not faithful <= self.sizes.keys():
            raise InvalidInput("sizes: not of all losses of faithfulness")

    @classmethod
    def of(cls, program: Program, weighted: Collection[str]) -> Ends:
        """Those of a program, of whose losses some have weights, or bounds."""
        every = program.all_losses
        beside = tuple(loss.name for loss in every if loss.beside is not None)
        sizes = {
            loss.name: loss.value_at_zero
            for loss in every
            if isinstance(loss, Faithfulness)
        }
        shift = Shift.of(every)
        if isinstance(shift, Shift):  # the ends are those of what is left
            program = shift.program(program)
        totals = [bound.loss for bound in program.bounds if is_complete(bound)]
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
            beside=beside,
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
            raise NothingTraded(
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
    support, target, shape = counted(program), G, program.shape
    if support is not None:
        target = None if G is None else support.values(G)
        shape = len(support.places), 1

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
        free = not any(other.beside is not None for other in joined)
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
    if G is None or not all(map(has_known_zeros, inner)):
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
    elif others and all(map(has_known_zeros, others)):
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


# ---- Losses as numbers that can be read: shares kept and removed, and units of output


@final
class Shares(Result, kind="propopt shares", noun="saved shares", version=2, eq=True):
    r"""What an explanation keeps of faithfulness, and removes of every other loss.

    Faithfulness kept is 1 − loss(W)/loss(W_∞), where W_∞ is the most faithful of the
    attributions that cost the other losses nothing: the mean of G over what is
    connected, or zero. It is 1 at G, 0 at W_∞, and may be negative for explanations
    that are not optimal. Of any other loss 1 − loss(W)/loss(G) is removed; of a largest
    squared difference the share is that of the difference.

    Parameters
    ----------
    kept : mapping
        By faithfulness loss; −∞ where G costs nothing at either end and W does.
    removed : mapping
        By other loss; NaN where the loss had no weight, or nothing was there at G.
    losses : mapping
        The losses themselves.
    differences, target_differences : mapping
        By loss with a graph of points the root mean square difference between
        neighbours, √(Σ S‖w_n − w_n'‖²/(D ΣS)), of W and of G, in units of attributions.
    rms, target_rms : float
        Root mean squares of W and of G; NaN where there is no G.
    n_zero, size : int
        How many attributions are zero, to 1e-12 of the largest, and how many there are;
        of documents those of words that they have.
    quantity : Quantity, optional
        What is explained.

    Examples
    --------
    >>> import numpy as np, propopt as po
    >>> G = np.array([[0.0, 1.0], [2.0, 1.0]])
    >>> best = po.solve(
    ...     po.GradientMatching(G)
    ...     + 0.25 * po.PairwiseRobustness(po.graphs.chain_graph(2))
    ... )
    >>> shares = best.shares()
    >>> print(*shares.in_words(), sep="\n")
    75.0 % of faithfulness kept (gradient_matching)
    75.0 % of pairwise_robustness removed
    neighbours differ by 0.707 (target: 1.41), pairwise_robustness
    rms attribution 1.06 (target: 1.22)
    """

    kept: Mapping[str, float] = stored(missing=True, infinite=True)
    removed: Mapping[str, float] = stored(missing=True, infinite=True)
    losses: Mapping[str, float] = stored(missing=True, infinite=True)
    differences: Mapping[str, float] = stored(factory=dict, low=0.0, missing=True)
    target_differences: Mapping[str, float] = stored(
        factory=dict, low=0.0, missing=True
    )
    rms: float = stored(low=0.0, missing=True)
    target_rms: float = stored(low=0.0, missing=True)
    n_zero: int = stored(low=0)
    size: int = stored(low=1)
    quantity: Quantity | None = None

    def contradictions(self) -> None:
        """Refuse shares of unknown losses, and more zeros than attributions."""
        if self.kept.keys() & self.removed.keys():
            raise InvalidInput("removed: also of losses of which shares are kept")
        if not self.kept.keys() | self.removed.keys() <= self.losses.keys():
            raise InvalidInput("losses: not of all shares")
        if not self.target_differences.keys() <= self.differences.keys():
            raise InvalidInput("target_differences: also of losses without differences")
        if self.n_zero > self.size:
            raise InvalidInput("n_zero: more than there are attributions")

    def to_frame(self) -> pd.DataFrame:
        """One row per number: ``measure``, ``of``, ``value`` and that of the target."""
        at_target = self.target_differences
        rows = [
            *(("faithfulness kept", k, v, 1.0) for k, v in self.kept.items()),
            *(("removed", k, v, 0.0) for k, v in self.removed.items()),
            *(
                ("difference between neighbours", k, v, at_target.get(k, math.nan))
                for k, v in self.differences.items()
            ),
            ("rms", "attributions", self.rms, self.target_rms),
            ("share not zero", "attributions", 1.0 - self.n_zero / self.size, math.nan),
        ]
        return pd.DataFrame(rows, columns=["measure", "of", "value", "at_target"])

    def in_words(self) -> list[str]:
        """A line for each number."""
        kept = [
            f"{in_percent(share)} of faithfulness kept ({name})"
            for name, share in self.kept.items()
        ]
        removed = [
            f"{in_percent(share)} of {name} removed"
            for name, share in self.removed.items()
        ]
        return [*kept, *removed, *self._sizes_in_words()]

    def _sizes_in_words(self) -> Iterator[str]:
        for name, difference in self.differences.items():
            yield (
                f"neighbours differ by {difference:.3g}"
                f"{_beside(self.target_differences.get(name, math.nan))}, {name}"
            )
        yield f"rms attribution {self.rms:.3g}{_beside(self.target_rms)}"
        if self.n_zero:
            yield f"{self.n_zero:,} of {plural(self.size, 'attribution')} are zero"

    def __repr__(self) -> str:
        return f"Shares({'; '.join(map(printable, self.in_words()))})"

    def card(self) -> Card:
        """What is kept and removed, and how large attributions are."""
        kept = [f"{in_percent(x)} of faithfulness kept" for x in self.kept.values()]
        gone = [f"{in_percent(x)} of {k} removed" for k, x in self.removed.items()]
        shares = (*self.kept.values(), *self.removed.values())
        known = list(compress((*kept, *gone), map(math.isfinite, shares)))
        rows = [
            *([k, in_percent(x), ""] for k, x in self.kept.items()),
            *([k, "", in_percent(x)] for k, x in self.removed.items()),
        ]
        rows = [[*row, f"{self.losses[row[0]]:.6g}"] for row in rows]
        return Card(
            title=(", ".join(known) or "No share is defined")
            + explained(self.quantity),
            subtitle="kept: 100 % at the target itself; removed: 100 % where that loss "
            "is as small as can be",
            table=CardTable(("loss", "kept", "removed", "value"), rows),
            lines=tuple(self._sizes_in_words()),
            proof="computed from the losses here and at both ends of the front; a dash "
            "is what is not defined",
            settings={"attributions": f"{self.size:,}"},
        )


def shares_of(
    explanation: Optimum, objective: Objective | None, program: Program
) -> Shares:
    """See :meth:`propopt.results.Explanation.shares`."""
    own = read_for(
        program.all_losses, explanation, f"{explanation.method}: attributions"
    )
    losses = {loss.name: loss.value_at(own) for loss in program.all_losses}
    ends = Ends.of(program, weighted(explanation, objective, program))
    shares = ends.shares(losses)
    G = matched_target(program)
    support = counted(program)
    here = np.ones(own.shape, bool) if support is None else support.mask
    return Shares(
        quantity=explanation.quantity,
        kept={name: share for name, share in shares.items() if name in ends.faithful},
        removed={
            name: share for name, share in shares.items() if name not in ends.faithful
        },
        losses=losses,
        differences=dict(_differences(program, own)),
        target_differences={} if G is None else dict(_differences(program, G)),
        rms=root_mean_square(own[here]),
        target_rms=math.nan if G is None else root_mean_square(G[here]),
        n_zero=int(np.count_nonzero(without_dust(own)[here] == 0.0)),
        size=int(np.count_nonzero(here)),
    )


def weighted(
    explanation: Optimum, objective: Objective | None, program: Program
) -> set[str]:
    """Losses that had a weight above zero, or a bound."""
    weights = explanation.weights if objective is None else objective.weights
    bounded = {bound.loss.name for bound in program.bounds}
    return {name for name, weight in weights.items() if weight > 0.0} | bounded


def _beside(target: float) -> str:
    """What stands behind a number of W, where that of G is known."""
    return "" if math.isnan(target) else f" (target: {target:.3g})"


def _differences(program: Program, W: Attributions) -> Iterator[tuple[str, float]]:
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
