"""Which of the solvers that know whole curves is fastest for a program."""

from __future__ import annotations

import numpy as np

from propopt.curvature.quadratic import curve_refusal
from propopt.losses import Program
from propopt.maps import ImplicitOverPoints, LinearMap, OverPoints
from propopt.solvers.base import Solver
from propopt.solvers.curves.krylov import Krylov
from propopt.solvers.curves.spectral import Spectral
from propopt.solvers.factored import Factored, stored_graph
from propopt.solvers.factors import Elimination


_USUAL_STEPS = 40.0  # Lanczos or gradient steps that usual weights take
SECONDS_PER_CUBE = 6e-10  # eigenvectors of an N × N matrix, over N³
SECONDS_PER_ENTRY = 6e-10  # product with a stored matrix, over its entries
SECONDS_PER_STEP = 6e-5  # the rest of a step, whatever the size
SECONDS_PER_NUMBER = 1e-8  # and what grows with the number of points
SECONDS_PER_FACTOR = 5e-4  # what one weight takes beside its factors
PATIENCE = 3.0  # factors that Lanczos may cost before these take over
FEWEST_STEPS = 200


def choose_curve_solver(program: Program) -> Solver | str:
    """Spectral, Factored or Krylov, or why none of them takes the program.

    By an estimate of seconds from the constants above; none is asked again.

    The precision of a kernel is stored dense and badly conditioned: Lanczos would take
    many times as many steps as there are points. Factors are made for each weight, and
    yet chosen only where one costs less than a run of Lanczos for all weights.
    """
    reason = curve_refusal(program)
    if reason is not None:
        return reason
    spectral = Spectral()
    eigenbasis_fits = spectral.refusal(program) is None
    if eigenbasis_fits and any(_is_dense(loss.map) for loss in program.losses):
        return spectral
    lanczos = _USUAL_STEPS * _seconds_per_step(program)
    n_points, _ = program.shape
    if eigenbasis_fits and SECONDS_PER_CUBE * float(n_points) ** 3 <= lanczos:
        return spectral
    if Factored().refusal(program) is not None:
        return Krylov().take(program)
    factors = _seconds_per_weight(program)
    if factors <= lanczos:
        return Factored()
    # no longer in vain than a few factors would take
    steps = max(FEWEST_STEPS, int(_USUAL_STEPS * PATIENCE * factors / lanczos))
    return Krylov(most_steps=steps, otherwise=Factored()).take(program)


def _is_dense(A: LinearMap) -> bool:
    return isinstance(A, OverPoints) and isinstance(A.matrix, np.ndarray)


def _seconds_per_weight(program: Program) -> float:
    """Of factors: one for each eigenvalue of the features, and two solves for each."""
    graph = stored_graph(program)
    assert graph is not None, "see the refusal of Factored"
    _, n_features = program.shape
    elimination = Elimination.of(graph.gram)
    n_factors = 1 if len(program.losses) < 3 else n_features
    solves = 2 * n_features - n_factors
    seconds = n_factors * elimination.seconds(1)
    seconds += solves * (elimination.seconds(1) - elimination.seconds(0))
    return SECONDS_PER_FACTOR + seconds


def _seconds_per_step(program: Program) -> float:
    """Of Lanczos, for all features."""
    n_points, n_features = program.shape
    step = SECONDS_PER_STEP + SECONDS_PER_NUMBER * n_points
    return n_features * (step + SECONDS_PER_ENTRY * _entries(program))


def _entries(program: Program) -> float:
    """Numbers that one product with the matrix over points reads."""
    total = 0.0
    for loss in program.losses:
        match loss.map:
            case OverPoints(matrix=B) if not isinstance(B, np.ndarray):
                # a row of B with two entries gives two of BᵀB off its diagonal
                total += B.nnz
            case ImplicitOverPoints(gram=gram):
                total += 20.0 * gram.size
            case _:
                pass
    return total
