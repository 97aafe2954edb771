"""Preconditioned conjugate gradients, for one system in all of W or one in each column.

H is symmetric and positive semidefinite, M⁻¹ positive definite. With the residual
r = b − Hx, z = M⁻¹r and the energy ε = ⟨r, z⟩, a step is

    p ← z + (ε/ε') p,   x ← x + (ε/⟨p, Hp⟩) p,   r ← r − (ε/⟨p, Hp⟩) Hp,

where ε' is the energy before it (Hestenes and Stiefel, 1952). The residual of the
recurrence drifts from b − Hx by rounding: who needs more digits starts again from x.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeAlias, final

import numpy as np

from propopt._typing import Array


Action: TypeAlias = Callable[[Array], Array]
Number: TypeAlias = "float | Array"


class Systems(Protocol):
    """What the entries of x are: the unknowns of one system, or of several."""

    def inner(self, U: Array, V: Array) -> Number:
        """⟨U, V⟩, of each system."""

    def quotient(self, above: Number, below: Number) -> Number:
        """Zero where there is nothing positive to divide by: that system is solved."""

    def all_within(self, energy: Number, goal: Number) -> bool:
        """True if no system has more energy than its goal."""


@final
class OneSystem:
    """All entries of x, of any shape, are the unknowns of one system."""

    def inner(self, U: Array, V: Array) -> float:
        return float(np.vdot(U, V))

    def quotient(self, above: Number, below: Number) -> Number:
        return above / below if below > 0.0 else 0.0

    def all_within(self, energy: Number, goal: Number) -> bool:
        return bool(energy <= goal)


@final
class OnePerColumn:
    """Each column of x (n, k) has a system of its own."""

    def inner(self, U: Array, V: Array) -> Array:
        return np.asarray(np.einsum("nd,nd->d", U, V))

    def quotient(self, above: Number, below: Number) -> Array:
        return np.divide(above, below, out=np.zeros_like(above), where=below > 0.0)

    def all_within(self, energy: Number, goal: Number) -> bool:
        return bool(np.all(energy <= goal))


ONE_SYSTEM = OneSystem()


def never(x: Array, residual: Array) -> bool:
    """Go on until the energy is small, or steps run out."""
    del x, residual
    return False


def conjugate_gradients(
    product: Action,
    x: Array,
    residual: Array,
    *,
    precondition: Action,
    most_steps: int,
    is_enough: Callable[[Array, Array], bool] = never,
    reduction: float = 0.0,
    systems: Systems = ONE_SYSTEM,
) -> bool:
    """Solve Hx = b from a start, in place, until the caller's need is met.

    Parameters
    ----------
    product : callable
        v ↦ Hv, a new array.
    x : array
        The start, and the solution in the end: overwritten.
    residual : array
        b − Hx at the start, of the shape of x: overwritten.
    precondition : callable
        r ↦ M⁻¹r, a new array. Where x is held to a linear constraint, it may take out
        of r, in place, what the constraint bears.
    most_steps : int
        After which it stops.
    is_enough : callable
        (x, residual) ↦ True where x is good enough; asked once before each step.
    reduction : float
        The share of the energy at the start that is as good as none.
    systems : Systems
        One system by default.

    Returns
    -------
    bool
        False if steps ran out. True where x is good enough, or rounding leaves no step
        that would make it better.

    Examples
    --------
    >>> import numpy as np
    >>> H, b = np.diag([1.0, 2.0, 4.0]), np.ones(3)
    >>> x = np.zeros(3)
    >>> conjugate_gradients(
    ...     lambda v: H @ v,
    ...     x,
    ...     b.copy(),
    ...     precondition=np.copy,
    ...     most_steps=3,
    ...     reduction=1e-20,
    ... )
    True
    >>> x.round(6)
    array([1.  , 0.5 , 0.25])
    """
    direction, work = np.zeros_like(x), np.empty_like(x)
    energy: Number = 1.0
    goal: Number | None = None
    for step in range(most_steps + 1):
        if is_enough(x, residual):
            return True
        conditioned = precondition(residual)
        last, energy = energy, systems.inner(residual, conditioned)
        goal = reduction * energy if goal is None else goal
        if systems.all_within(energy, goal):
            return True
        if step == most_steps:
            break
        direction *= systems.quotient(energy, last)
        direction += conditioned
        image = product(direction)
        length = systems.quotient(energy, systems.inner(direction, image))
        if not np.any(length):
            return True
        x += np.multiply(direction, length, out=work)
        residual -= np.multiply(image, length, out=work)
    return False
