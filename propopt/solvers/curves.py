"""Which of the two solvers that know whole curves is faster for a program."""

from __future__ import annotations

import numpy as np

from propopt.losses import Program
from propopt.maps import ImplicitOverPoints, LinearMap, OverPoints
from propopt.solvers.base import Solver
from propopt.solvers.krylov import Krylov
from propopt.solvers.spectral import Spectral


STEPS = 40.0  # Lanczos or gradient steps that usual weights take
SECONDS_PER_CUBE = 6e-10  # eigenvectors of an N × N matrix, over N³
SECONDS_PER_ENTRY = 6e-10  # product with a stored matrix, over its entries
SECONDS_PER_STEP = 6e-5  # the rest of a step, whatever the size
SECONDS_PER_NUMBER = 1e-8  # and what grows with the number of points


def choose_curve_solver(program: Program) -> Solver:
    """Spectral or Krylov, by an estimate of seconds from the constants above.

    The precision of a kernel is stored dense and badly conditioned: Lanczos would take
    many times as many steps as there are points.
    """
    spectral = Spectral()
    if spectral.refusal(program) is not None:
        return Krylov()
    if any(_is_dense(loss.map) for loss in program.losses):
        return spectral
    n_points, n_features = program.shape
    eigenbasis = SECONDS_PER_CUBE * float(n_points) ** 3
    step = SECONDS_PER_STEP + SECONDS_PER_NUMBER * n_points
    step += SECONDS_PER_ENTRY * _entries(program)
    return spectral if eigenbasis <= STEPS * n_features * step else Krylov()


def _is_dense(A: LinearMap) -> bool:
    return isinstance(A, OverPoints) and isinstance(A.matrix, np.ndarray)


def _entries(program: Program) -> float:
    """Numbers that one product with the matrix over points reads."""
    total = 0.0
    for loss in program.losses:
        match loss.map:
            case OverPoints(matrix=K) if not isinstance(K, np.ndarray):
                # a row of K with two entries gives two of KᵀK off its diagonal
                total += K.nnz
            case ImplicitOverPoints(gram=gram):
                total += 20.0 * gram.size
            case _:
                pass
    return total
