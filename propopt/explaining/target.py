"""What an explanation of a model aims at: its slopes, or those of its local mean."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias, final, get_args

import numpy as np

from propopt._typing import Array
from propopt.errors import InvalidInput
from propopt.estimates import Estimate
from propopt.functions import Function, smoothed
from propopt.functions.base import EXACT
from propopt.sampling.laws import Reference
from propopt.sampling.laws.data_law import constant_in_words


LawChoice: TypeAlias = Literal["auto", "data", "gaussian", "none"]

GAUSSIAN_SCALE = 0.5
"""Noise of the gaussian law, in the scale of each feature."""


@final
@dataclass(frozen=True, eq=False)
class TargetRule:
    """How the target of any row is made: once chosen, the same for all.

    Parameters
    ----------
    function : Function
        That whose gradient is the target: the model, or its mean under a law.
    sizes : array (D,)
        The scale of each feature, such as its standard deviation; 0 if constant.
    notes : tuple of str
        The columns that are constant, a sentence each.
    """

    function: Function
    sizes: Array
    notes: tuple[str, ...] = ()

    def of(self, X: Any) -> Estimate:
        """Slopes per scale at the rows of X, with what is known of their error."""
        return self.scaled(self.function.estimate(X))

    def scaled(self, estimate: Estimate) -> Estimate:
        """Slopes of the function per scale."""
        notes = tuple(dict.fromkeys((*estimate.notes, *self.notes)))
        slopes, quantity = estimate.scaled(self.sizes), self.function.quantity
        return replace(slopes, notes=notes, quantity=quantity)


def target_rule(
    function: Function,
    reference: Reference,
    sizes: Array,
    *,
    law: LawChoice = "auto",
    rng: int | np.random.Generator | None = None,
) -> TargetRule:
    """The slopes of a function, or of its mean near each row where it jumps.

    Parameters
    ----------
    function : Function
        The model.
    reference : Reference
        The rows that the data law is made of.
    sizes : array (D,)
        The scale of each feature.
    law : {"auto", "data", "gaussian", "none"}
        See :func:`propopt.smoothed`; ``"none"`` takes the function as it is, and
        ``"auto"`` the data law for what is made of trees, is known to be constant
        between jumps, or is found to jump.
    rng : int, numpy.random.Generator or None
        For what is sampled; None is seed 0.
    """
    match law:
        case "none":
            aim = function
        case "gaussian":
            aim = smoothed(function, GAUSSIAN_SCALE * sizes, rng=rng)
        case "data":
            aim = smoothed(function, law="data", data=reference, rng=rng)
        case "auto":
            if not jumps(function, reference):
                aim = function
            else:
                aim = smoothed(function, law="data", data=reference, rng=rng)
        case _:
            raise InvalidInput(
                f"law: expected one of {', '.join(get_args(LawChoice))}, got {law!r}"
            )
    return TargetRule(aim, sizes, _on_constants(reference, sizes))


def _on_constants(reference: Reference, sizes: Array) -> tuple[str, ...]:
    """The columns without a standard deviation, by name."""
    known = ~np.isnan(reference.points).all(axis=0)
    columns = zip(reference.names, (sizes == 0.0) & known, strict=True)
    return tuple(constant_in_words(name) for name, constant in columns if constant)


def jumps(function: Function, reference: Reference) -> bool:
    """Whether slopes of a function say nothing of much of its change."""
    if function.gradient_method == EXACT:
        return False
    if function.piecewise_constant or function.boxes is not None:
        return True
    verdict = function.jumps_at(reference.points, reference.labels)
    return verdict is not None and verdict.kind == "jumps"
