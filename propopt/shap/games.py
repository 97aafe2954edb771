"""Games of sums of trees: against a background, perhaps rescaled, or along paths."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final, Self, final

import numpy as np
from scipy.special import expit

from propopt.base.arrays import Array, Attributions, Points, Values
from propopt.base.errors import InvalidInput
from propopt.base.resources import BATCH_BUDGET, Budget
from propopt.base.text import Reason
from propopt.structures.boxes.boxes import Boxes
from propopt.structures.boxes.path_dependent import PathDependent
from propopt.structures.boxes.shapley import BoxShapley
from propopt.structures.products.sums import Game


# ---- Functions of a sum of trees


class MarginLink(ABC):
    """A function g(m, y) of the margin m of a row, and perhaps of its label y."""

    @abstractmethod
    def value(self, m: Array, y: Array, /) -> Array:
        """The function g."""

    @abstractmethod
    def slope(self, m: Array, y: Array, /) -> Array:
        """Its derivative by m."""

    def ratio(self, m: Array, r: Array, y: Array) -> Array:
        """(g(m) − g(r)) / (m − r), and for close margins the slope in the middle."""
        step = m - r
        is_close = np.abs(step) <= _CLOSE * np.maximum(1.0, np.abs(m))
        quotient = self.value(m, y) - self.value(r, y)
        slopes = np.broadcast_to(self.slope((m + r) / 2.0, y), quotient.shape).copy()
        np.divide(quotient, step, out=slopes, where=~is_close)
        return slopes


_CLOSE: Final = 1e-5
"""Relative distance h below which the slope is exact up to h² ."""


@final
@dataclass(frozen=True)
class Probability(MarginLink):
    """The probability 1/(1 + exp(−a m)) of the second class."""

    factor: float = 1.0  # a, from the margin to log-odds

    def value(self, m: Array, _y: Array) -> Array:
        return np.asarray(expit(self.factor * m))

    def slope(self, m: Array, y: Array) -> Array:
        p = self.value(m, y)
        return self.factor * p * (1.0 - p)


@final
@dataclass(frozen=True)
class LogLoss(MarginLink):
    """The loss −log p of the label: log(1 + exp(a m)) − y a m."""

    factor: float = 1.0

    def value(self, m: Array, y: Array) -> Array:
        logit = self.factor * m
        return np.logaddexp(0.0, logit) - y * logit

    def slope(self, m: Array, y: Array) -> Array:
        return self.factor * (np.asarray(expit(self.factor * m)) - y)


@final
@dataclass(frozen=True)
class SquaredLoss(MarginLink):
    """The loss (y − m)²."""

    def value(self, m: Array, y: Array) -> Array:
        return (y - m) ** 2

    def slope(self, m: Array, y: Array) -> Array:
        return 2.0 * (m - y)


# ---- Games


class TreeGame(ABC):
    """The value of a sum of trees, or of a function of it, for sets of columns."""

    @abstractmethod
    def base_at(self, y: Array, /) -> Values:
        """The value of no column, for rows with labels (N,)."""

    @abstractmethod
    def values(self, points: Points, y: Array, /) -> Attributions:
        """Shapley values of points (N, D) with labels (N,), which only losses need."""

    @abstractmethod
    def pairs(self, points: Points, /) -> Array:
        """Shapley interactions of points, (N, D, D), with zeros for i = j."""


@final
@dataclass(frozen=True, eq=False)
class AgainstBackground(TreeGame):
    """Columns outside of a set have the values of background rows.

    A function g of the trees f is rescaled against each row b, as ``shap`` has it:
    φ = mean_b φ(x; b) (g(f(x)) − g(f(b))) / (f(x) − f(b)), in which φ(x; b) are the
    Shapley values of f. They add up to g(f(x)) − mean_b g(f(b)), and are not the
    Shapley values of g(f), which only enumeration gives.
    """

    boxes: Boxes  # f
    game: Game
    link: MarginLink | None = None  # g

    def base_at(self, y: Array) -> Values:
        g = self._of_background
        if self.link is not None:
            g = self.link.value(np.tile(g, (len(y), 1)), y[:, None])
        return np.full(len(y), np.average(g, axis=-1, weights=self.game.weights))

    def values(self, points: Points, y: Array) -> Attributions:
        if self.link is None:
            return self._shapley.values(points)
        rows = self.game.background
        m = self.boxes.value(points)[:, None]
        ratio = self.link.ratio(m, self._of_background, y[:, None])
        weights = self.game.weights
        ratio = ratio / len(rows) if weights is None else ratio * weights
        phi = np.zeros(points.shape)
        for part in _AT_ONCE.blocks(len(rows), 8 * points.size):
            each = Game(rows[part], n_blocks=len(rows[part]))
            of_rows = BoxShapley.of(self.boxes, each).of_blocks(points)
            phi += np.einsum("nbd,nb->nd", of_rows, ratio[:, part])
        return phi

    def pairs(self, points: Points) -> Array:
        if self.link is not None:
            raise InvalidInput("model_output: only 'raw' has interactions")
        return self._pairs.values(points)

    @cached_property
    def _of_background(self) -> Values:
        return self.boxes.value(self.game.background)

    @cached_property
    def _shapley(self) -> BoxShapley:
        return BoxShapley.of(self.boxes, self.game)

    @cached_property
    def _pairs(self) -> BoxShapley:
        return BoxShapley.of(self.boxes, self.game, order=2)


_AT_ONCE: Final = Budget(2**26)
"""Values against single rows of the background that are added up at once."""


@final
@dataclass(frozen=True, eq=False)
class AlongPaths(TreeGame):
    """Columns outside of a set follow both branches, by their shares of rows."""

    paths: PathDependent

    @classmethod
    def of(cls, boxes: Boxes, game: Game | None) -> Self:
        """By the shares of training rows, or of the rows of a background."""
        if game is not None:
            boxes = _with_shares_of(boxes, game)
        paths = PathDependent.of(boxes)
        if isinstance(paths, Reason):
            raise InvalidInput(f"data: {paths.reason}")
        return cls(paths)

    def base_at(self, y: Array) -> Values:
        return np.full(len(y), self.paths.base)

    def values(self, points: Points, _y: Array) -> Attributions:
        return self.paths.values(points)

    def pairs(self, points: Points) -> Array:
        return self.paths.pairs(points)


def _with_shares_of(boxes: Boxes, game: Game) -> Boxes:
    """The same trees with the shares of some rows; half below nodes without a row."""
    assert boxes.trees is not None, "read from trees"
    nodes = boxes.trees.nodes
    inner = np.flatnonzero(nodes.column >= 0)
    weights = np.ones(len(game.background)) if game.weights is None else game.weights
    count = np.zeros(len(nodes.column))
    for rows in BATCH_BUDGET.blocks(len(weights), len(count)):
        count += nodes.reached(game.background[rows]) @ weights[rows]
    share = np.ones(len(count))
    for child in (inner + 1, nodes.right[inner]):
        is_empty = count[inner] == 0.0
        share[child] = np.where(is_empty, 0.5, count[child] / (count[inner] + is_empty))
    trees = replace(boxes.trees)
    vars(trees).update(nodes=replace(nodes, share=share))
    return trees.boxes()
