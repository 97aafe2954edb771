"""Optima of programs near a program: other weights, other neighbours, other draws."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias, final

import numpy as np

from propopt._typing import Array, Attributions
from propopt.curvature.excess import Scatter
from propopt.curvature.hessian import QuadraticPart
from propopt.curvature.tangential import ConstrainedPart
from propopt.errors import Refused
from propopt.graphs.base import Graph
from propopt.losses import (
    Faithfulness,
    GradientMatching,
    PairwiseRobustness,
    Program,
    PropertyLoss,
    SharedRobustness,
)
from propopt.losses.restricted import is_complete
from propopt.penalties import Squared
from propopt.results.conclusions.words import plural


if TYPE_CHECKING:
    from propopt.results.explanation import Explanation


FACTORS = tuple(2.0 ** (step / 4) for step in range(-4, 5))
"""Of a weight: nine, from a half to two."""

Settings: TypeAlias = Mapping[str, Attributions]
_Robustness: TypeAlias = PairwiseRobustness | SharedRobustness

Solve: TypeAlias = Callable[..., Any]
"""(objective, subject_to=bounds) ↦ explanation, as :func:`propopt.solve`."""


class Optima(ABC):
    """What the optimum is of a program and weights."""

    @abstractmethod
    def of(self, program: Program, weights: Sequence[Array]) -> Iterator[Attributions]:
        """For each of the weights (k,), in the order of the losses."""

    @abstractmethod
    def redrawn(
        self, program: Program, weights: Array, place: int
    ) -> Iterator[Attributions]:
        """For draws of the target of a loss such as another seed would give.

        A block Ĝ_b is off the mean Ḡ of B blocks by B − 1 times the variance of Ḡ, and
        two seeds are apart by twice that variance: Ḡ + √(2/(B − 1)) (Ĝ_b − Ḡ).
        """


@final
@dataclass(frozen=True, eq=False)
class ClosedForm(Optima):
    """Where all losses are squared: linear in the target."""

    W: Attributions

    def of(self, program: Program, weights: Sequence[Array]) -> Iterator[Attributions]:
        part = ConstrainedPart(program)
        for c in weights:
            yield part.optimum(c)

    def redrawn(
        self, program: Program, weights: Array, place: int
    ) -> Iterator[Attributions]:
        blocks = _blocks(program.losses[place])
        H = ConstrainedPart(program).hessian(weights)
        scatter = Scatter(QuadraticPart(program), blocks)
        for move in scatter.moved(weights[place], H):
            yield self.W + _apart(blocks) * move


@final
@dataclass(frozen=True, eq=False)
class BySolver(Optima):
    """By a solver, for losses of any kind and with bounds."""

    solve: Solve

    def of(self, program: Program, weights: Sequence[Array]) -> Iterator[Attributions]:
        for c in weights:
            best = self.solve(program.weighed(c), subject_to=program.bounds)
            yield best.attributions

    def redrawn(
        self, program: Program, weights: Array, place: int
    ) -> Iterator[Attributions]:
        loss, blocks = program.losses[place], _blocks(program.losses[place])
        mean = blocks.mean(axis=0)
        for block in blocks:
            G = mean + _apart(blocks) * (block - mean)
            other = _replaced(program, place, GradientMatching(G, name=loss.name))
            yield from self.of(other, [weights])


def optima_for(best: Explanation, program: Program, solve: Solve | None) -> Optima:
    """How optima near the explanation are found.

    Raises
    ------
    Refused
        If there is no closed form, and no solver was given.
    """
    if solve is not None:
        return BySolver(solve)
    odd = [
        loss.name
        for loss in program.losses
        if best.weights.get(loss.name, 0.0) > 0.0
        and not isinstance(loss.penalty, Squared)
    ]
    odd += [bound.loss.name for bound in program.bounds if not is_complete(bound)]
    if odd:
        raise Refused(
            f"stability: {odd[0]} is bounded or not squared, so that each setting "
            "takes a solve; give it the solver, as in stability(solve=po.solve)"
        )
    return ClosedForm(best.attributions)


def families(
    best: Explanation, program: Program, optima: Optima
) -> Iterator[tuple[str, Settings]]:
    """What varies in words, and the attributions in each setting."""
    weights = np.array([best.weights.get(x.name, 0.0) for x in program.losses])
    for place, loss in enumerate(program.losses):
        if weights[place] > 0.0 and not isinstance(loss, Faithfulness):
            yield f"weight of {loss.name}", _weighed(program, weights, place, optima)
    for place, loss in enumerate(program.losses):
        if weights[place] > 0.0 and isinstance(
            loss, PairwiseRobustness | SharedRobustness
        ):
            near = _neighbours(program, weights, place, optima)
            if near:
                yield f"neighbours in {loss.name}", near
    for place, loss in enumerate(program.losses):
        if weights[place] > 0.0 and _is_drawn(loss):
            drawn = optima.redrawn(program, weights, place)
            seeds = {f"draw {b}": W for b, W in enumerate(drawn, start=1)}
            yield f"draws of {loss.name}", seeds


def _weighed(program: Program, weights: Array, place: int, optima: Optima) -> Settings:
    many = []
    for factor in FACTORS:
        many.append(weights.copy())
        many[-1][place] *= factor
    names = [f"weight × {factor:.3g}" for factor in FACTORS]
    return dict(zip(names, optima.of(program, many), strict=True))


def _neighbours(
    program: Program, weights: Array, place: int, optima: Optima
) -> Settings:
    """Half and twice as many, with the same weight times the mean degree."""
    loss = program.losses[place]
    assert isinstance(loss, PairwiseRobustness | SharedRobustness)
    graph, again, total = loss.graph, loss.graph.again, _total(loss)
    count = int(graph.parameters.get("n_neighbors", 0))
    if again is None or not total > 0.0:
        return {}
    found = {}
    for other in {max(count // 2, 1), min(2 * count, graph.n_nodes - 1)} - {count}:
        robust = _over(again(other), loss)
        c = weights.copy()
        c[place] *= total / _total(robust)
        found[plural(other, "neighbour")] = next(
            optima.of(_replaced(program, place, robust), [c])
        )
    return found


def _over(graph: Graph, loss: _Robustness) -> _Robustness:
    """The loss over another graph."""
    if isinstance(loss, SharedRobustness):
        return SharedRobustness(graph, loss.present, name=loss.name)
    return PairwiseRobustness(graph, name=loss.name)


def _total(loss: _Robustness) -> float:
    """Σ S, of all pairs that are compared."""
    if isinstance(loss, SharedRobustness):
        return loss.entry_graph.total
    return loss.graph.total


def _replaced(program: Program, place: int, loss: PropertyLoss) -> Program:
    losses = (*program.losses[:place], loss, *program.losses[place + 1 :])
    return Program(losses, program.bounds, program.shape)


def _is_drawn(loss: PropertyLoss) -> bool:
    match loss:
        case GradientMatching(estimate=estimate, norm="l2") if estimate is not None:
            return estimate.blocks is not None
        case _:
            return False


def _blocks(loss: PropertyLoss) -> Array:
    assert isinstance(loss, GradientMatching)
    assert loss.estimate is not None
    assert loss.estimate.blocks is not None, "see _is_drawn"
    return loss.estimate.blocks


def _apart(blocks: Array) -> float:
    return math.sqrt(2.0 / (len(blocks) - 1))
