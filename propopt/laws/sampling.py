"""Samplers: draws are added until an estimate is precise or the budget is spent."""

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
    """Evaluations of f for n draws: ``once`` + ``per_draw`` · n."""

    per_draw: int  # in one draw, all rows together
    once: int = 0  # for any number of draws
    fewest: int = 1  # draws that an estimate needs
    step: int = 1  # draws are multiples of it

    def of(self, n_draws: int) -> int:
        """Evaluations for ``n_draws`` draws."""
        return self.once + self.per_draw * n_draws

    def first(self, plan: DrawPlan) -> int:
        """The first number of draws, reduced to the budget."""
        wanted = self.step * -(-plan.n_samples // self.step)
        if plan.max_evaluations is None:
            return wanted
        return min(wanted, self.affordable(plan.max_evaluations))

    def affordable(self, max_evaluations: int) -> int:
        """The largest number of draws within a budget; refused if too small."""
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
"""Safety factor of the number of draws, as errors are estimates."""

_LEAST_GROWTH = 1.5
_MOST_GROWTH = 4.0
"""Factors of the number of draws from one check of the error to the next."""


_MOST_TIMES: Final = 1000
"""The default budget, in multiples of the first draws."""


class Sampler(ABC):
    """An estimate from draws that can be extended."""

    n_draws: int  # so far

    @property
    @abstractmethod
    def cost(self) -> DrawCost:
        """The cost of the draws."""

    @property
    @abstractmethod
    def error(self) -> float:
        """The relative error of the estimate, ‖standard errors‖ / ‖values‖."""

    @abstractmethod
    def extended(self, n_draws: int) -> Self:
        """The sampler extended to ``n_draws`` draws in total."""

    @property
    def fewest_more(self) -> int:
        """The smallest number of draws that can be added."""
        return self.cost.step

    @property
    def evaluations(self) -> int:
        """Evaluations of f so far."""
        return self.cost.of(self.n_draws)

    def enough(
        self, plan: DrawPlan, error: Callable[[Self], float] | None = None
    ) -> Self:
        """Draw as planned, extending if a precision is requested."""
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
        """Extend until the error is small enough or the budget is spent.

        A standard error falls as 1/√draws; a given error is assumed to fall as 1/draws,
        as for an objective. It is checked whenever the draws have grown by a factor of
        1.5 to 4.
        """
        goal = read_positive(precision, "precision")
        power = 2.0 if error is None else 1.0
        growing = self
        affordable = float("inf")
        step = self.cost.step
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
"""Rounding of sums of thousands of terms, relative to the largest number."""


BlockEstimates: TypeAlias = tuple[Array, ...]
"""Estimates (B, ...) from B blocks of draws, for each of several numbers."""


@final
@dataclass(frozen=True, eq=False)
class Pooled(Sampler):
    """Estimates of B blocks, pooled over independent batches of draws.

    The blocks of n_1, n_2, ... draws are Σ_k n_k blocks_k / Σ_k n_k: unbiased,
    independent, with the variance of one batch of all draws. Earlier draws do not
    change.
    """

    # draws n of the k-th batch; each batch has a separate stream
    draw: Callable[[int, int], BlockEstimates]
    of_draws: DrawCost
    blocks: BlockEstimates  # the first one gives the error
    n_draws: int
    largest: int  # draws of one batch, which bounds memory
    n_batches: int = 1

    @classmethod
    def of(
        cls, draw: Callable[[int, int], BlockEstimates], cost: DrawCost, n_draws: int
    ) -> Pooled:
        """Draw the first batch; later ones are at most four times as large."""
        return cls(draw, cost, draw(n_draws, 0), n_draws, 4 * n_draws)

    @property
    def cost(self) -> DrawCost:
        return self.of_draws

    @property
    def fewest_more(self) -> int:
        return self.cost.fewest

    @property
    def error(self) -> float:
        # values that are rounding relative to the other numbers have no error
        largest = max(
            float(np.abs(estimates).max(initial=0.0)) for estimates in self.blocks
        )
        if float(np.abs(self.blocks[0]).max(initial=0.0)) <= _ROUNDING * largest:
            return 0.0
        return relative_error(self.blocks[0])

    def extended(self, n_draws: int) -> Pooled:
        grown = self
        step = self.cost.step
        while (missing := n_draws - grown.n_draws) > 0:
            more = step * -(-missing // (step * -(-missing // self.largest)))
            both = zip(grown.blocks, self.draw(more, grown.n_batches), strict=True)
            share = more / (grown.n_draws + more)
            grown = replace(
                grown,
                blocks=tuple(old + share * (new - old) for old, new in both),
                n_draws=grown.n_draws + more,
                n_batches=grown.n_batches + 1,
            )
        return grown


def stream_of(seed: int, batch: int) -> np.random.Generator:
    """The random stream of a batch; the first depends only on the seed."""
    return np.random.default_rng(seed if batch == 0 else [seed, batch])
