"""What a sweep tries: all combinations of weights and limits, by loss."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np

from propopt._typing import Array
from propopt.checks import did_you_mean, read_each_nonnegative
from propopt.errors import InvalidInput
from propopt.losses import Bound, Objective, PropertyLoss


Swept: TypeAlias = float | Sequence[float] | Array
ByLoss: TypeAlias = (
    Mapping[str, Swept]
    | Mapping[PropertyLoss, Swept]
    | Mapping[str | PropertyLoss, Swept]
)
"""Values to try; a key is the name of a loss of the objective, or a loss itself."""
_Read: TypeAlias = dict[PropertyLoss, Array]


@dataclass(frozen=True, eq=False)
class SweepPoint:
    """One combination of weights and limits.

    Parameters
    ----------
    weights : array (k,)
        In the order of the losses of the plan.
    bounds : tuple of Bound
        One for each loss with limits.
    """

    weights: Array
    bounds: tuple[Bound, ...]

    @property
    def has_zero(self) -> bool:
        """True if one of its limits is zero."""
        return any(bound.limit == 0.0 for bound in self.bounds)


@dataclass(frozen=True, eq=False)
class SweepPlan:
    """All combinations, each checked before any is solved.

    Parameters
    ----------
    losses : tuple of PropertyLoss
        Those with a weight.
    points : tuple of SweepPoint
        The last weight varies fastest, and limits faster than weights.
    """

    losses: tuple[PropertyLoss, ...]
    points: tuple[SweepPoint, ...]

    @classmethod
    def of(
        cls,
        objective: Objective,
        weights: ByLoss,
        limits: ByLoss,
    ) -> SweepPlan:
        """The plan of what a user asks for.

        Raises
        ------
        InvalidInput
            For a name of no loss, a loss that is named twice, values that are no
            numbers >= 0, and weights that are all zero at once.
        """
        weighed = _read(objective, weights, "weights", "{}")
        limited = _read(objective, limits, "limits", "bound on {}")
        for loss in limited:
            if loss in weighed:
                raise InvalidInput(
                    f"limits: {loss.name} has weights too; give one or the other"
                )
        whole = _summed(objective, weighed, limited)
        rows = _combined(whole, weighed)
        bounds = [[Bound(loss, c) for c in limited[loss].tolist()] for loss in limited]
        points = itertools.product(rows, itertools.product(*bounds))
        return cls(whole.losses, tuple(itertools.starmap(SweepPoint, points)))

    @cached_property
    def measured(self) -> Objective:
        """All losses: those with limits have no weight."""
        point = self.points[0]
        terms = [*zip(point.weights.tolist(), self.losses, strict=True)]
        return Objective((*terms, *((0.0, bound.loss) for bound in point.bounds)))


def _read(objective: Objective, swept: ByLoss, what: str, label: str) -> _Read:
    """The values to try of each loss."""
    read: _Read = {}
    given: object = swept
    if not isinstance(given, Mapping):
        name = objective.losses[-1].name
        raise InvalidInput(
            f"{what}: expected values by loss, such as {{{name!r}: [0.1, 1.0]}}, got "
            f"{type(given).__name__}"
        )
    for key, values in swept.items():
        loss = _named(objective, key, what)
        if loss in read:
            raise InvalidInput(f"{what}: {loss.name} is named twice")
        read[loss] = read_each_nonnegative(values, label.format(loss.name))
        if not read[loss].size:
            raise InvalidInput(f"{what}: {loss.name} has no values to sweep over")
    return read


def _named(objective: Objective, key: str | PropertyLoss, what: str) -> PropertyLoss:
    """The loss that a key stands for."""
    if isinstance(key, PropertyLoss):
        return key
    for loss in objective.losses:
        if loss.name == key:
            return loss
    hint = did_you_mean(key, list(objective.weights))
    raise InvalidInput(
        f"{what}: no loss is called {key!r}{hint}; this objective has "
        f"{', '.join(objective.weights)}; to add another, give the loss as the key"
    )


def _summed(objective: Objective, weighed: _Read, limited: _Read) -> Objective:
    """The objective without losses that have limits, and with those that are new."""
    kept = tuple(term for term in objective.terms if term[1] not in limited)
    new = tuple((1.0, loss) for loss in weighed if loss not in objective.losses)
    if not (kept or new):
        raise InvalidInput(
            "limits: all losses of the objective have limits, so nothing is left to "
            "minimise"
        )
    return Objective(kept + new)


def _combined(objective: Objective, weighed: _Read) -> Array:
    """All combinations of weights (P, k), in the order of the losses."""
    places = [objective.losses.index(loss) for loss in weighed]
    tried = np.array([*itertools.product(*weighed.values())], dtype=np.float64)
    rows = np.tile(objective.coefficients, (len(tried), 1))
    rows[:, places] = tried.reshape(len(tried), len(places))
    zero = ~rows.any(axis=1)
    if zero.any():
        row = tried[np.argmax(zero)].tolist()
        named = zip(weighed, row, strict=True)
        listed = ", ".join(f"{loss.name!r}: {weight:g}" for loss, weight in named)
        raise InvalidInput(f"weights: all are zero at {{{listed}}}")
    return rows
