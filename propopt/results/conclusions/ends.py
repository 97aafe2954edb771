"""The two ends of every trade-off: what shares of losses are measured against.

At one end stands the target G; at the other W_∞, the most faithful of the attributions
that cost the other losses nothing. With squared distances from G it is G averaged over
what those losses join:

    robustness            the mean of G on each component of points, per feature
    and smoothness        the mean over components of both graphs
    sparsity, K⁻¹ itself  zero
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import final

import numpy as np
import pandas as pd
import scipy.sparse.linalg as sla

from propopt._typing import Attributions
from propopt.losses import Faithfulness, GradientMatching, Program, PropertyLoss
from propopt.losses.restricted import Restriction, has_known_zeros
from propopt.maps import Identity, PerPoint
from propopt.penalties import Absolute, GroupMax, Squared


_NOTHING = 1e-20
"""A loss below this share of that of zero is rounding: ‖δ‖² for δ = 1e-10 ‖G‖."""

_MOST_STEPS = 10_000

_EXACT = 1e-12
"""A loss below this share of ‖G‖² is no loss where there is none to be had."""


@final
@dataclass(frozen=True)
class Ends:
    """Losses at both ends, by name.

    Parameters
    ----------
    least_faithful : mapping
        Of each faithfulness loss its value at W_∞; NaN where W_∞ is not known.
    at_target : mapping
        Of each other loss its value at G; NaN where there is no G, or the loss had no
        weight.
    sizes : mapping
        Of each faithfulness loss its value at zero attributions, ‖G‖².
    roots : sequence of str
        Losses that are squares of one largest difference: shares are of the difference.
    """

    least_faithful: Mapping[str, float]
    at_target: Mapping[str, float]
    sizes: Mapping[str, float]
    roots: Sequence[str] = ()

    @classmethod
    def of(cls, program: Program, weighted: Collection[str]) -> Ends:
        """Those of a program, of whose losses some have weights, or bounds."""
        every = program.all_losses
        faithful = [loss for loss in every if isinstance(loss, Faithfulness)]
        others = [loss for loss in every if not isinstance(loss, Faithfulness)]
        joined = [loss for loss in others if loss.name in weighted]
        G = matched_target(program)
        return cls(
            {loss.name: _least(loss, joined, program.shape) for loss in faithful},
            {loss.name: _at(G if loss in joined else None, loss) for loss in others},
            {loss.name: loss.value_at_zero for loss in faithful},
            [loss.name for loss in others if _is_largest_square(loss)],
        )

    def share(self, name: str, loss: float) -> float:
        """What is kept of a faithfulness loss, or removed of another.

        1 − loss(W)/loss(W_∞), or 1 − loss(W)/loss(G); NaN where that is not defined.
        Where G costs nothing at either end, it is kept, or not at all: 1 or −∞.
        """
        if name in self.least_faithful:
            return self._kept(name, loss)
        end = self.at_target.get(name, math.nan)
        if not end > 0.0:
            return math.nan
        ratio = loss / end
        return 1.0 - (math.sqrt(ratio) if name in self.roots else ratio)

    def shares(self, losses: Mapping[str, float]) -> dict[str, float]:
        """:meth:`share` of each loss that has ends."""
        names = [*self.least_faithful, *self.at_target]
        return {
            name: self.share(name, losses[name]) for name in names if name in losses
        }

    def _kept(self, name: str, loss: float) -> float:
        end, size = self.least_faithful[name], self.sizes[name]
        if math.isnan(end):
            return math.nan
        if end <= _NOTHING * size:
            return 1.0 if loss <= _EXACT * size else -math.inf
        return 1.0 - loss / end


def matched_target(program: Program) -> Attributions | None:
    """G, of the first gradient matching; None where there is none."""
    for loss in program.losses:
        if isinstance(loss, GradientMatching):
            return loss.G
    return None


def _at(G: Attributions | None, loss: PropertyLoss) -> float:
    return math.nan if G is None else loss.value_at(G)


def _is_largest_square(loss: PropertyLoss) -> bool:
    return isinstance(loss.penalty, GroupMax) and loss.penalty.degree == 2


def _least(
    loss: PropertyLoss, others: Sequence[PropertyLoss], shape: tuple[int, int]
) -> float:
    """Min loss(W) over all W that cost the others nothing; NaN where not known."""
    if not all(map(has_known_zeros, others)):
        return math.nan
    free = Restriction.to_zero(others, shape) if others else None
    if free is not None and free.only is not None:
        return loss.value_at(free.only)
    match loss.map, loss.penalty:
        case PerPoint(), Squared():
            return _least_squares(loss, free)
        case Identity(), Squared():
            return 0.0 if free is None else free.loss(loss).constant
        case Identity(), Absolute():
            return 0.0 if free is None else _from_medians(loss, free, shape)
        case _:
            return math.nan


def _least_squares(loss: PropertyLoss, free: Restriction | None) -> float:
    """The least ‖A W − t‖² over what is free."""
    A, t = loss.map, np.asarray(loss.target)
    assert isinstance(A, PerPoint), "see _least"
    matrix = A.blocks if free is None else A.blocks @ free.basis
    nearest = sla.lsmr(matrix, t, atol=_EXACT, btol=_EXACT, maxiter=_MOST_STEPS)[0]
    return float(((matrix @ nearest - t) ** 2).sum())


def _from_medians(
    loss: PropertyLoss, free: Restriction, shape: tuple[int, int]
) -> float:
    """Σ |g − m|, for the median m of G on each pair of parts."""
    pairs = free.points.labels[:, None] * free.features.count + free.features.labels
    G = pd.Series(np.broadcast_to(loss.target, shape).ravel())
    return float((G - G.groupby(pairs.ravel()).transform("median")).abs().sum())
