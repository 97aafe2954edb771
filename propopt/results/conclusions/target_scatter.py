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

from propopt._typing import Array, Attributions
from propopt.curvature.hessian import Hessian
from propopt.estimates import Estimate
from propopt.losses import GradientMatching, Program
from propopt.penalties import Squared


if TYPE_CHECKING:
    from propopt.results.explanation import Explanation


_LEVEL = 0.975


class Scatter(ABC):
    """Half-widths of 95 % intervals, for the target's error alone."""

    words: str
    """What a reader has to know of it."""

    @abstractmethod
    def of_entries(self) -> Attributions | float:
        """Of each attribution, (N, D)."""

    @abstractmethod
    def of_pairs(self, row: int, signs: Array) -> tuple[Array | float, Array | float]:
        """Of s_d w_d − s_e w_e and of s_d w_d + s_e w_e in one row, (D, D) each."""


@final
class NoScatter(Scatter):
    """The target is exact."""

    words = "the target is exact"

    def of_entries(self) -> float:
        return 0.0

    def of_pairs(self, row: int, signs: Array) -> tuple[float, float]:
        del row, signs
        return 0.0, 0.0


@final
class UnknownScatter(Scatter):
    """Nothing is known, and nothing is added: statements are of the given target."""

    words = "the error of the target is not known, and not included"

    def of_entries(self) -> float:
        return 0.0

    def of_pairs(self, row: int, signs: Array) -> tuple[float, float]:
        del row, signs
        return 0.0, 0.0


@final
@dataclass(frozen=True, eq=False)
class GivenErrors(Scatter):
    """Standard errors (N, D) of W alone: those of a pair add up at most."""

    errors: Attributions

    words = "standard errors of the target are included"

    def of_entries(self) -> Attributions:
        return np.asarray(float(ndtri(_LEVEL)) * self.errors)

    def of_pairs(self, row: int, signs: Array) -> tuple[Array, Array]:
        del signs
        own = self.of_entries()[row]
        both = own[:, None] + own
        return both, both


@final
@dataclass(frozen=True, eq=False)
class BlockScatter(Scatter):
    """Moves of W (B, N, D) with blocks of the target, whose mean is zero."""

    moves: Array

    @property
    def words(self) -> str:  # type: ignore[override]
        return f"errors of the target from {len(self.moves)} blocks are included"

    def of_entries(self) -> Attributions:
        squares = np.einsum("bnd,bnd->nd", self.moves, self.moves)
        return np.asarray(self._factor * np.sqrt(squares))

    def of_pairs(self, row: int, signs: Array) -> tuple[Array, Array]:
        moves = self.moves[:, row] * signs
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


def scatter_of(best: Explanation, program: Program, hessian: Hessian) -> Scatter:
    """What is known of the error of W that comes from its target."""
    targets = _targets(best, program)
    estimates = [target.estimate for target in targets]
    if not targets or any(estimate is None for estimate in estimates):
        return _given(best)
    if all(estimate is not None and estimate.exact for estimate in estimates):
        return NoScatter()
    if len(estimates) == 1 and estimates[0] is not None and _is_linear(program):
        return _of_blocks(best.weights[targets[0].name], estimates[0], hessian) or (
            _given(best)
        )
    return _given(best)


def _targets(best: Explanation, program: Program) -> list[GradientMatching]:
    return [
        loss
        for loss in program.losses
        if isinstance(loss, GradientMatching) and best.weights.get(loss.name, 0.0) > 0.0
    ]


def _is_linear(program: Program) -> bool:
    """Whether W is linear in its target: all losses are squared, without bounds."""
    squared = (isinstance(loss.penalty, Squared) for loss in program.losses)
    return not program.bounds and all(squared)


def _of_blocks(a: float, estimate: Estimate, hessian: Hessian) -> BlockScatter | None:
    if estimate.blocks is None:
        return None
    return BlockScatter(block_moves(a, estimate.blocks, hessian))


def block_moves(a: float, blocks: Array, hessian: Hessian) -> Array:
    """How far each block of the target (B, N, D) moves W: a H⁻¹(Ĝ_b − Ḡ)."""
    centre = blocks.mean(axis=0)
    return np.stack([hessian.solve(a * (block - centre)) for block in blocks])


def _given(best: Explanation) -> Scatter:
    errors = best.standard_errors
    if errors is None or not np.isfinite(errors).all():
        return UnknownScatter()
    return GivenErrors(errors)
