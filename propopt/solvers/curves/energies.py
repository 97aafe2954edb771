"""⟨E, H⁻¹E⟩ for all weights at once, from the curve of a program whose target is E.

The optimum for the target E costs F* = a‖E‖² − a² ⟨E, H⁻¹E⟩.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from propopt._typing import Array
from propopt.losses import GradientMatching, Program
from propopt.solvers.base import Curve, Solver
from propopt.threads import few_threads


_TOLERANCE = 1e-10
"""Of F*, of which a small rest may be asked."""


def energy_on_curve(
    program: Program, solver: Solver, E: Array
) -> Callable[[Array], float]:
    """Weights to a² ⟨E, H⁻¹E⟩.

    Parameters
    ----------
    program : Program
        Squared losses, one of which is gradient matching.
    solver : Solver
        It takes the program and prepares curves.
    E : array (N, D)
        In place of the target.
    """
    own = [isinstance(loss, GradientMatching) for loss in program.losses].index(True)
    losses = list(program.losses)
    losses[own] = GradientMatching(E, name=losses[own].name)
    with few_threads(program.shape[0]):
        curve = solver.prepare(Program(tuple(losses), (), program.shape))
    assert isinstance(curve, Curve), "the solver prepares curves"
    size = float(np.vdot(E, E))

    def energy(weights: Array) -> float:
        with few_threads(program.shape[0]):
            F = float(weights @ curve.measure(weights, _TOLERANCE).losses)
        return max(float(weights[own]) * size - F, 0.0)

    return energy
