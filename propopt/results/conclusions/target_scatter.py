"""How far attributions may be off because their target was estimated.

Block estimates Ĝ_b of the target, whose mean is Ḡ, move the optimum of squared losses
by a H⁻¹(Ĝ_b − Ḡ). The scatter of B such moves, over √B, is the standard error of
any linear form of W; t_{B−1}(0.975) of them cover it 95 times in 100.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, final

import numpy as np
from scipy.special import ndtri, stdtrit

from propopt._typing import Array, Attributions, Positions
from propopt.curvature.excess import Scatter
from propopt.curvature.hessian import QuadraticPart
from propopt.losses import GradientMatching, Program
from propopt.losses.restricted import is_complete
from propopt.penalties import Squared
from propopt.results.conclusions.near_optimal import NearOptimal


if TYPE_CHECKING:
    from propopt.results.explanation import Explanation


_LEVEL = 0.975


class TargetScatter(ABC):
    """Half-widths of 95 % intervals, for the target's error alone."""

    words: str
    """What a reader has to know of it."""

    @abstractmethod
    def of_entries(self) -> Attributions | float:
        """Of each attribution, (N, D)."""

    @abstractmethod
    def of_pairs(
        self, row: int, features: Positions, signs: Array
    ) -> tuple[Array | float, Array | float]:
        """Of s_d w_d − s_e w_e and of s_d w_d + s_e w_e in one row, (d, d) each."""


class NothingAdded(TargetScatter):
    """Statements are those of the given target."""

    def of_entries(self) -> float:
        return 0.0

    def of_pairs(
        self, row: int, features: Positions, signs: Array
    ) -> tuple[float, float]:
        del row, features, signs
        return 0.0, 0.0


@final
class NoScatter(NothingAdded):
    """The target is exact."""

    words = "the target is exact"


@final
class UnknownScatter(NothingAdded):
    """Nothing is known, and nothing is added: statements are of the given target."""

    words = "the error of the target is not known, and not included"


@final
@dataclass(frozen=True, eq=False)
class GivenErrors(TargetScatter):
    """Standard errors (N, D) of W alone: those of a pair add up at most.

    Parameters
    ----------
    errors : array (N, D)
        The standard errors.
    n_blocks : int
        Of the draws that they were estimated from; 0 where that is not known.
    """

    errors: Attributions
    n_blocks: int

    words = "standard errors of the target are included"

    def of_entries(self) -> Attributions:
        few = self.n_blocks > 1
        factor = stdtrit(self.n_blocks - 1, _LEVEL) if few else ndtri(_LEVEL)
        return np.asarray(float(factor) * self.errors)

    def of_pairs(
        self, row: int, features: Positions, signs: Array
    ) -> tuple[Array, Array]:
        del signs
        own = self.of_entries()[row, features]
        both = own[:, None] + own
        return both, both


@final
@dataclass(frozen=True, eq=False)
class BlockScatter(TargetScatter):
    """Moves of W (B, N, D) with blocks of the target, whose mean is zero."""

    moves: Array

    @property
    def words(self) -> str:  # type: ignore[override]
        return f"errors of the target from {len(self.moves)} blocks are included"

    def of_entries(self) -> Attributions:
        squares = np.einsum("bnd,bnd->nd", self.moves, self.moves)
        return np.asarray(self._factor * np.sqrt(squares))

    def of_pairs(
        self, row: int, features: Positions, signs: Array
    ) -> tuple[Array, Array]:
        moves = self.moves[:, row, features] * signs
        products = moves.T @ moves
        own = np.diag(products)
        sums = own[:, None] + own
        rest = np.maximum(sums - 2.0 * products, 0.0)
        both = np.maximum(sums + 2.0 * products, 0.0)
        return self._factor * np.sqrt(rest), self._factor * np.sqrt(both)

    @cached_property
    def _factor(self) -> float:
        """t_{B−1}(0.975)/√(B(B−1))."""
        B = len(self.moves)
        return float(stdtrit(B - 1, _LEVEL)) / math.sqrt(B * (B - 1))


def scatter_of(best: Explanation, program: Program, near: NearOptimal) -> TargetScatter:
    """What is known of the error of W that comes from its target."""
    targets = _targets(best, program)
    estimates = [target.estimate for target in targets]
    if estimates and all(e is not None and e.exact for e in estimates):
        return NoScatter()
    blocks = estimates[0].blocks if estimates and estimates[0] is not None else None
    if len(estimates) == 1 and blocks is not None and _is_linear(program):
        part = Scatter(QuadraticPart(program), blocks)
        a = best.weights[targets[0].name]
        return BlockScatter(part.moved(a, near.hessian))
    return _given(best)


def _targets(best: Explanation, program: Program) -> list[GradientMatching]:
    return [
        loss
        for loss in program.losses
        if isinstance(loss, GradientMatching) and best.weights.get(loss.name, 0.0) > 0.0
    ]


def _is_linear(program: Program) -> bool:
    """Whether W is linear in its target: squared losses, and sums of rows at most."""
    squared = (isinstance(loss.penalty, Squared) for loss in program.losses)
    return all(map(is_complete, program.bounds)) and all(squared)


def _given(best: Explanation) -> TargetScatter:
    errors = best.standard_errors
    if errors is None or not np.isfinite(errors).all():
        return UnknownScatter()
    return GivenErrors(errors, 0 if best.target is None else best.target.n_blocks)
