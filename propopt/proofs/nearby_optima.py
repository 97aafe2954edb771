"""Optima of similar programs: other weights, neighbours and draws."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from propopt.base.arrays import Array, Attributions
from propopt.base.errors import Refused
from propopt.base.text import (
    plural,
)
from propopt.losses import (
    GradientMatching,
    PairwiseRobustness,
    Program,
    PropertyLoss,
    SharedRobustness,
)
from propopt.losses.algebra import Faithfulness
from propopt.losses.maps import Squared
from propopt.losses.restricted import is_completeness
from propopt.proofs.hessian import QuadraticPart
from propopt.proofs.optimum import Optimum
from propopt.proofs.target_error import DrawCovariance, sampled_blocks


FACTORS = tuple(2.0 ** (step / 4) for step in range(-4, 5))
"""Nine factors of a weight, from a half to two."""

OptimaByName: TypeAlias = Mapping[str, Attributions]
_Robustness: TypeAlias = PairwiseRobustness | SharedRobustness

Solve: TypeAlias = Callable[..., Any]
"""(objective, subject_to=bounds) ↦ explanation, as :func:`propopt.solve`."""


def _optima(
    program: Program, weights: Sequence[Array], solve: Solve | None
) -> Iterator[Attributions]:
    """Optima for several weights (k,), in closed form without ``solve``."""
    if solve is None:
        yield from map(QuadraticPart(program).optimum, weights)
        return
    for c in weights:
        yield solve(program.weighed(c), subject_to=program.bounds).attributions


def _redrawn(
    best: Optimum, program: Program, weights: Array, index: int, solve: Solve | None
) -> Iterator[Attributions]:
    """Optima for draws of the target of a loss as from another seed.

    A block Ĝ_b deviates from the mean Ḡ of B blocks by B − 1 times the variance of Ḡ,
    and two seeds differ by twice that variance: Ḡ + √(2/(B − 1)) (Ĝ_b − Ḡ).
    """
    loss = program.losses[index]
    blocks = sampled_blocks(loss)
    assert blocks is not None, "it is drawn"
    spread = math.sqrt(2.0 / (len(blocks) - 1))
    if solve is None:
        part = QuadraticPart(program)
        moves = DrawCovariance(part, blocks).moved(
            weights[index], part.hessian(weights)
        )
        yield from (best.attributions + spread * move for move in moves)
        return
    mean = blocks.mean(axis=0)
    for block in blocks:
        G = mean + spread * (block - mean)
        other = _replaced(program, index, GradientMatching(G, name=loss.name))
        yield from _optima(other, [weights], solve)


def setting_variations(
    best: Optimum, program: Program, solve: Solve | None
) -> Iterator[tuple[str, OptimaByName]]:
    """Yield each varied setting, in words, with the attributions for its values."""
    losses = program.losses
    weights = np.array([best.weights.get(x.name, 0.0) for x in losses])
    weighed = [(k, losses[k]) for k in np.flatnonzero(weights > 0.0).tolist()]
    odd = [loss.name for _, loss in weighed if not isinstance(loss.penalty, Squared)]
    odd += [bound.loss.name for bound in program.bounds if not is_completeness(bound)]
    if odd and solve is None:
        raise Refused(
            f"stability: {odd[0]} has a limit or is not quadratic, so each setting "
            "needs a solver; pass one, as in stability(solve=po.solve)"
        )
    for index, loss in weighed:
        if not isinstance(loss, Faithfulness):
            many = np.tile(weights, (len(FACTORS), 1))
            many[:, index] *= FACTORS
            names = [f"weight × {factor:.3g}" for factor in FACTORS]
            results = dict(zip(names, _optima(program, [*many], solve), strict=True))
            yield f"weight of {loss.name}", results
    for index, loss in weighed:
        if isinstance(loss, PairwiseRobustness | SharedRobustness):
            by_count = dict(_neighbours(program, weights, index, loss, solve))
            if by_count:
                yield f"neighbours in {loss.name}", by_count
    for index, loss in weighed:
        if isinstance(loss.penalty, Squared) and sampled_blocks(loss) is not None:
            redrawn = _redrawn(best, program, weights, index, solve)
            seeds = {f"draw {b}": W for b, W in enumerate(redrawn, start=1)}
            yield f"draws of {loss.name}", seeds


def _neighbours(
    program: Program,
    weights: Array,
    index: int,
    loss: _Robustness,
    solve: Solve | None,
) -> Iterator[tuple[str, Attributions]]:
    """Optima for half and twice as many neighbours, with adjusted weights."""
    graph, again, total = loss.graph, loss.graph.again, _total(loss)
    count = int(graph.parameters.get("n_neighbors", 0))
    if again is None or not total > 0.0:
        return
    for other in {max(count // 2, 1), min(2 * count, graph.n_nodes - 1)} - {count}:
        robust: _Robustness = PairwiseRobustness(
            again(other), offset=loss.offset, name=loss.name
        )
        if isinstance(loss, SharedRobustness):
            robust = SharedRobustness(again(other), loss.present, name=loss.name)
        c = weights.copy()
        c[index] *= total / _total(robust)
        changed = _replaced(program, index, robust)
        yield plural(other, "neighbour"), next(_optima(changed, [c], solve))


def _total(loss: _Robustness) -> float:
    """The sum Σ S over all compared pairs."""
    if isinstance(loss, SharedRobustness):
        return loss.entry_graph.total
    return loss.graph.total


def _replaced(program: Program, index: int, loss: PropertyLoss) -> Program:
    losses = (*program.losses[:index], loss, *program.losses[index + 1 :])
    return Program(losses, program.bounds, program.shape)
