"""One sampler: draws are added until an estimate is precise, or would cost too much."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final, Self, TypeAlias, final

import numpy as np

from propopt.base.arrays import Array
from propopt.base.checks import read_count, read_positive
from propopt.base.errors import InvalidInput
from propopt.base.resources import DrawPlan
from propopt.losses.faithfulness import relative_error


@final
@dataclass(frozen=True)
class DrawCost:
    """Evaluations of f that draws take: ``once`` + ``per_draw`` · n of n draws."""

    per_draw: int  # in one draw, all rows together
    once: int = 0  # however many are drawn
    fewest: int = 1  # draws that an estimate can be made of
    step: int = 1  # draws are multiples of it

    def of(self, n_draws: int) -> int:
        """Evaluations of so many draws."""
        return self.once + self.per_draw * n_draws

    def first(self, plan: DrawPlan) -> int:
        """Draws to begin with: fewer than planned where they would cost too much."""
        wanted = self.step * -(-plan.n_samples // self.step)
        if plan.max_evaluations is None:
            return wanted
        return min(wanted, self.affordable(plan.max_evaluations))

    def affordable(self, max_evaluations: int) -> int:
        """The most draws that take no more evaluations; refused if too few."""
        left = read_count(max_evaluations, "max_evaluations") - self.once
        draws = max(left // self.per_draw, 0) // self.step * self.step
        if draws < self.fewest:
            raise InvalidInput(
                f"max_evaluations: {self.fewest} draws take "
                f"{self.of(self.fewest):,} evaluations, and {max_evaluations:,} are "
                "allowed; give more, or explain fewer rows"
            )
        return draws


_MARGIN: Final = 1.2
"""Errors are estimates: so much more is drawn than they ask for."""

_LEAST_GROWTH, _MOST_GROWTH = 1.5, 4.0
"""Factors on the number of draws, from one look at the error to the next."""


_MOST_TIMES: Final = 1000
"""So many times the first draws are enough where no budget is given."""


class Sampler(ABC):
    """Draws that an estimate is made of; more can be drawn."""

    n_draws: int  # so far

    @property
    @abstractmethod
    def cost(self) -> DrawCost:
        """What its draws cost."""

    @property
    @abstractmethod
    def error(self) -> float:
        """Of the estimate: ‖standard errors‖ / ‖values‖."""

    @abstractmethod
    def extended(self, n_draws: int) -> Self:
        """The same with more draws, so that there are ``n_draws`` in all."""

    @property
    def fewest_more(self) -> int:
        """The fewest draws that can be added."""
        return self.cost.step

    @property
    def evaluations(self) -> int:
        """Evaluations of f, from the first draw on."""
        return self.cost.of(self.n_draws)

    def enough(
        self, plan: DrawPlan, error: Callable[[Self], float] | None = None
    ) -> Self:
        """As many draws as are planned: drawn on where a precision is wanted."""
        if plan.precision is None:
            return self
        most = plan.max_evaluations
        if most is None:
            most = self.cost.of(_MOST_TIMES * self.n_draws)
        return self.until(plan.precision, most, error)

    def until(
        self,
        precision: float,
        max_evaluations: int | None = None,
        error: Callable[[Self], float] | None = None,
    ) -> Self:
        """Draw on until the error is small enough, or evaluations would be too many.

        A standard error falls as 1/√draws, and an error that is given is taken to fall
        as 1/draws, as that of an objective does. It is looked at again whenever the
        draws have grown by a factor of 1.5 to 4.
        """
        goal = read_positive(precision, "precision")
        power = 2.0 if error is None else 1.0
        growing, affordable, step = self, float("inf"), self.cost.step
        if max_evaluations is not None:
            affordable = self.cost.affordable(max_evaluations)
        while (size := growing.error if error is None else error(growing)) > goal:
            room = affordable - growing.n_draws
            if room < growing.fewest_more:
                break
            wanted = _MARGIN * (size / goal) ** power
            factor = min(max(wanted, _LEAST_GROWTH), _MOST_GROWTH)
            more = max(growing.n_draws * (factor - 1.0), growing.fewest_more)
            more = step * -int(-more // step)
            growing = growing.extended(growing.n_draws + int(min(more, room)))
        return growing


_ROUNDING: Final = 1e-13
"""Of the largest number: sums of thousands of terms are not more exact."""


BlockEstimates: TypeAlias = tuple[Array, ...]
"""Of each of some numbers the estimates (B, ...) from B blocks of draws."""


@final
@dataclass(frozen=True, eq=False)
class Pooled(Sampler):
    """Estimates of B blocks, from batches that know nothing of each other.

    The blocks of n_1, n_2, ... draws are Σ_k n_k blocks_k / Σ_k n_k: each without bias,
    independent, and of the scatter of one batch of all draws. What was drawn first is
    what it was.
    """

    # n draws of the k-th batch give blocks; a batch has a stream of its own
    draw: Callable[[int, int], BlockEstimates]
    of_draws: DrawCost  # what they cost
    blocks: BlockEstimates  # the error is that of the first
    n_draws: int
    largest: int  # draws of one batch: what is held at once stays bounded
    n_batches: int = 1

    @classmethod
    def of(
        cls, draw: Callable[[int, int], BlockEstimates], cost: DrawCost, n_draws: int
    ) -> Pooled:
        """The first batch; none that comes is more than four times as large."""
        return cls(draw, cost, draw(n_draws, 0), n_draws, 4 * n_draws)

    @property
    def cost(self) -> DrawCost:
        return self.of_draws

    @property
    def fewest_more(self) -> int:
        return self.cost.fewest

    @property
    def error(self) -> float:
        # of what is only rounding of the largest of the numbers there is none
        largest = max(float(np.abs(own).max(initial=0.0)) for own in self.blocks)
        if float(np.abs(self.blocks[0]).max(initial=0.0)) <= _ROUNDING * largest:
            return 0.0
        return relative_error(self.blocks[0])

    def extended(self, n_draws: int) -> Pooled:
        grown, step = self, self.cost.step
        while (left := n_draws - grown.n_draws) > 0:
            more = step * -(-left // (step * -(-left // self.largest)))
            grown = grown._with_batch(more)
        return grown

    def _with_batch(self, more: int) -> Pooled:
        n_draws = self.n_draws + more
        both = zip(self.blocks, self.draw(more, self.n_batches), strict=True)
        return replace(
            self,
            blocks=tuple(old + more / n_draws * (new - old) for old, new in both),
            n_draws=n_draws,
            n_batches=self.n_batches + 1,
        )


def stream_of(seed: int, batch: int) -> np.random.Generator:
    """The stream of a batch: the first has that of the seed alone."""
    return np.random.default_rng(seed if batch == 0 else [seed, batch])
