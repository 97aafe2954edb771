"""What explanations without any work cost: zero, and one and the same for all points.

A relative gap needs a size to be relative to. An optimum may be zero, as where all
gradients are equal: then rounding is all there is of it, and its size says nothing. The
cost of an explanation that anybody could give is a size, and does not grow with an
offset of the gradients, for then their mean costs less than zero does.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from propopt._typing import Attributions
from propopt.checks import refuse_underflow
from propopt.losses.base import PropertyLoss
from propopt.maps import Identity, ImplicitOverPoints, OverPoints


_SHARE = 1e-9
"""Of the cost of explaining without work: less is not told apart from an optimum."""
_NO_DIGITS = 1e-20
"""Of the cost of zero: a square of digits that double precision does not have."""


def objective_scale(value: float, zero: float, mean: float = math.inf) -> float:
    """What a gap is relative to: the value, or the size of nothing if that is larger.

    Parameters
    ----------
    value : float
        The objective of an explanation.
    zero, mean : float
        The objective of zero attributions, and of the mean gradient for all points,
        where that is known.
    """
    return max(value, _SHARE * min(zero, mean), _NO_DIGITS * zero)


@final
@dataclass(frozen=True)
class Effortless:
    """What two explanations without work cost, by the name of each loss.

    Parameters
    ----------
    zero : mapping
        The loss of zero attributions, φ(−T).
    mean : mapping
        The loss where the mean gradient explains each point; that of zero where there
        are no gradients.
    sizes : mapping
        max |T| of the losses that have a target.
    """

    zero: Mapping[str, float]
    mean: Mapping[str, float]
    sizes: Mapping[str, float]

    @classmethod
    def of(cls, losses: Sequence[PropertyLoss]) -> Effortless:
        """The costs by these losses."""
        zero = {loss.name: loss.value_at_zero for loss in losses}
        sizes = {
            loss.name: float(np.abs(loss.target).max(initial=0.0))
            for loss in losses
            if loss.has_target
        }
        G = _gradients(losses)
        if G is None:
            return cls(zero, zero, sizes)
        first = G[:1]
        M = np.broadcast_to(first + (G - first).mean(axis=0), G.shape)
        mean = {loss.name: _of_constant(loss, M) for loss in losses}
        return cls(zero, mean, sizes)

    def refuse_underflow(self, weights: Mapping[str, float]) -> None:
        """Refuse targets so small that what zero costs by them has no digits.

        Parameters
        ----------
        weights : mapping
            Of the losses of an objective; those of bounds count as they are.

        Raises
        ------
        InvalidInput
            If there is a target, and all are too small for float64.
        """
        told = {
            name: weights.get(name, 1.0) * self.zero[name]
            for name, size in self.sizes.items()
            if size > 0.0 and weights.get(name, 1.0) > 0.0
        }
        if told:
            name = max(told, key=lambda name: (told[name], self.sizes[name]))
            refuse_underflow(self.sizes[name], name, told[name])

    def scale(self, value: float, weights: Mapping[str, float]) -> float:
        """:func:`objective_scale` of a value under these weights."""
        zero, mean = (
            math.fsum(weights[name] * cost[name] for name in weights)
            for cost in (self.zero, self.mean)
        )
        return objective_scale(value, zero, mean)


def _gradients(losses: Sequence[PropertyLoss]) -> Attributions | None:
    """The target of a loss of W itself."""
    for loss in losses:
        if isinstance(loss.map, Identity) and isinstance(loss.target, np.ndarray):
            return loss.target
    return None


def _of_constant(loss: PropertyLoss, M: Attributions) -> float:
    """The loss where all rows are the same."""
    match loss.map:
        case OverPoints(components=parts) | ImplicitOverPoints(components=parts):
            if parts is not None and not loss.has_target:
                return 0.0
    return loss.value_at(M)
