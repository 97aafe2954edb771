"""How far optimal attributions scatter with the draws of their target: the jackknife.

Where W is no linear function of its target, it is solved for again with each block of
draws left out:

    Ĝ_(b) = Ĝ − (Ĝ_b − Ĝ)/(B − 1),   se² = (B − 1)/B Σ_b (W(Ĝ_(b)) − mean)²

(Quenouille 1956, Tukey 1958). For squared losses alone it is the scatter of W(Ĝ_b) over
√B. An attribution that is zero whichever block is left out has an error of zero.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from propopt._typing import Array, Attributions
from propopt.estimates import Estimate
from propopt.losses import GradientMatching, Program, PropertyLoss
from propopt.solvers.base import Solution, Solver
from propopt.threads import few_threads


def left_out_errors(
    program: Program,
    solver: Solver,
    weights: Array,
    tolerance: float,
    start: Solution,
) -> Array:
    """Standard errors of the optimal attributions (N, D).

    Parameters
    ----------
    program : Program
        One of its losses is gradient matching with blocks of draws.
    solver : Solver
        It takes the program.
    weights : array (k,)
        In the order of the losses.
    tolerance : float
        The relative gap of each solution.
    start : Solution
        That for all draws.
    """
    optima = np.stack(
        [
            _optimum(without, solver, weights, tolerance, start)
            for without in _programs_without_a_block(program)
        ]
    )
    n = len(optima) - 1
    errors: Array = np.sqrt(n * optima.var(axis=0))
    return errors


def _optimum(
    program: Program,
    solver: Solver,
    weights: Array,
    tolerance: float,
    start: Solution,
) -> Attributions:
    with few_threads(program.shape[0]):
        return solver.prepare(program).solve(weights, tolerance, start).W


def _programs_without_a_block(program: Program) -> Iterator[Program]:
    [loss] = (loss for loss in program.losses if drawn_blocks(loss) is not None)
    assert isinstance(loss, GradientMatching)
    for target in _without_a_block(loss):
        other = GradientMatching(target, loss.norm, name=loss.name)
        losses = tuple(other if one is loss else one for one in program.losses)
        yield Program(losses, program.bounds, program.shape)


def _without_a_block(loss: GradientMatching) -> Iterator[Estimate]:
    blocks = drawn_blocks(loss)
    assert blocks is not None
    for block in blocks:
        values = loss.G - (block - loss.G) / (len(blocks) - 1)
        yield Estimate(values=values, source="a block left out", labels=loss.labels)


def drawn_blocks(loss: PropertyLoss) -> Array | None:
    """Blocks of draws (B, N, D) of the target of a loss; None where there are none."""
    match loss:
        case GradientMatching(estimate=Estimate(exact=False, blocks=blocks)):
            return blocks
        case _:
            return None
