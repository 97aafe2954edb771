"""What a solver prepares: losses, bounds, and what all of them agree on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from propopt._typing import Array
from propopt.errors import InvalidInput
from propopt.losses.base import Bound, Objective, PropertyLoss, common_labels
from propopt.tables.names import Labels


@dataclass(frozen=True, eq=False)
class Program:
    """What a solver prepares: losses to weigh, bounds to respect, the shape of W."""

    losses: tuple[PropertyLoss, ...]
    bounds: tuple[Bound, ...] = ()
    sizes: tuple[int, int] | None = None

    def __post_init__(self) -> None:
        names = [loss.name for loss in self.all_losses]
        twice = [name for name in names if names.count(name) > 1]
        if twice:
            raise InvalidInput(
                f"{twice[0]!r} names two losses of this program: give one of them "
                "another name= , or keep it in the objective or the bounds only"
            )

    @cached_property
    def shape(self) -> tuple[int, int]:
        """(N, D): ``sizes``, or that on which all losses must agree."""
        if self.sizes is not None:
            return self.sizes
        return self._size("n_points", "points"), self._size("n_features", "features")

    @cached_property
    def labels(self) -> Labels:
        """Names of points and features, on which all losses must agree."""
        return common_labels(self.all_losses)

    @property
    def all_losses(self) -> tuple[PropertyLoss, ...]:
        """The losses, and those of the bounds."""
        return self.losses + tuple(bound.loss for bound in self.bounds)

    def weighed(self, weights: Array) -> Objective:
        """The objective of these weights (k,), ≥ 0; they are not checked."""
        return Objective.trusted(tuple(zip(weights.tolist(), self.losses, strict=True)))

    def of_losses(self, places: Sequence[int]) -> Program:
        """The program of some of the losses, with all bounds and of the same shape."""
        losses = tuple(self.losses[place] for place in places)
        return Program(losses, self.bounds, self.shape)

    def _size(self, attribute: str, noun: str) -> int:
        sizes = [
            (getattr(loss, attribute), loss.name)
            for loss in self.all_losses
            if getattr(loss, attribute) is not None
        ]
        if not sizes:
            raise InvalidInput(f"no loss of this objective tells the number of {noun}")
        first, name = sizes[0]
        for size, other in sizes:
            if size != first:
                raise InvalidInput(
                    f"{name} has {first} {noun} and {other} has {size}: they cannot "
                    "be part of one program"
                )
        return int(first)
