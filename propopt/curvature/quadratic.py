"""The squared losses that structured solvers share: a‖W − G‖² + b‖B W‖² + c‖W Cᵀ‖²."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from propopt._typing import Array, Attributions, Sparse
from propopt.linear.components import Components
from propopt.losses import Program, PropertyLoss
from propopt.maps import (
    Identity,
    ImplicitOverPoints,
    LinearMap,
    OverFeatures,
    OverPoints,
)
from propopt.operators import Operator
from propopt.penalties import Squared


_NOUNS: dict[type[LinearMap], str] = {
    Identity: "gradient-matching",
    OverPoints: "robustness",
    ImplicitOverPoints: "robustness",
    OverFeatures: "smoothness",
}


@dataclass(frozen=True, eq=False)
class Quadratic:
    """One squared loss of W itself, at most one over points and one over features.

    Parameters
    ----------
    G : array (N, D)
        The target of the loss of W itself.
    P, Q : matrix or None
        BᵀB (N, N), sparse, dense or an operator, and CᵀC (D, D), dense.
    point_parts, feature_parts : Components or None
        Parts on which B, or C, maps constants to zero, and which it does not couple.
    places : tuple of (int or None)
        Where the three losses stand among those of the program.
    """

    G: Attributions
    P: Sparse | Array | Operator | None
    Q: Array | None
    point_parts: Components | None
    feature_parts: Components | None
    places: tuple[int | None, int | None, int | None]

    @classmethod
    def of(cls, losses: tuple[PropertyLoss, ...], shape: tuple[int, int]) -> Quadratic:
        """The three squared losses among ``losses``, which :func:`refusal` accepts."""
        places: dict[str, int] = {}
        for place, loss in enumerate(losses):
            if isinstance(loss.penalty, Squared):
                places[_NOUNS[type(loss.map)]] = place
        own, over_points, over_features = (
            places.get(noun)
            for noun in ("gradient-matching", "robustness", "smoothness")
        )
        assert own is not None, "the solver refuses programs without gradient matching"
        return cls(
            G=np.array(np.broadcast_to(losses[own].target, shape)),
            P=_gram(losses, over_points),
            Q=_gram(losses, over_features),
            point_parts=_parts(losses, over_points),
            feature_parts=_parts(losses, over_features),
            places=(own, over_points, over_features),
        )

    @property
    def constants(self) -> Array:
        """Values of G that are constant on each pair of parts; a shape that broadcasts.

        No loss but the first sees them, so that the optimum for G is the one for the
        rest of G and these constants. Numbers near each other have no rounding in their
        difference: the rest is what it is without an offset.
        """
        constants = self.G
        if self.P is not None:
            constants = _constants(constants, self.point_parts)
        if self.Q is not None:
            constants = _constants(constants.T, self.feature_parts).T
        return constants

    def coefficients(self, weights: Array) -> tuple[float, float, float]:
        """(a, b, c) among the weights of a program."""
        a, b, c = (
            0.0 if place is None else float(weights[place]) for place in self.places
        )
        return a, b, c

    def in_program_order(
        self, own: float, over_points: float, over_features: float
    ) -> Array:
        """The three losses in the order of the program."""
        losses = np.zeros(sum(place is not None for place in self.places))
        for place, loss in zip(
            self.places, (own, over_points, over_features), strict=True
        ):
            if place is not None:
                losses[place] = loss
        return losses


def quadratic_refusal(losses: tuple[PropertyLoss, ...]) -> str | None:
    """Why the squared losses among ``losses`` are not such a sum; None if they are."""
    for loss in losses:
        coupled = isinstance(loss.penalty, Squared) and type(loss.map) is not Identity
        if coupled and type(loss.map) in _NOUNS and loss.has_target:
            return f"{loss.name} couples attributions, and has a target"
    return curvature_refusal(losses)


def curvature_refusal(losses: tuple[PropertyLoss, ...]) -> str | None:
    """Why they have not the curvature of such a sum, whatever their targets."""
    nouns = []
    for loss in losses:
        if isinstance(loss.penalty, Squared):
            if type(loss.map) not in _NOUNS:
                return f"{loss.name} is none of W itself, over points or over features"
            nouns.append(_NOUNS[type(loss.map)])
    for noun in dict.fromkeys(nouns):
        if nouns.count(noun) > 1:
            return f"it takes one {noun} loss, and there are {nouns.count(noun)}"
    if "gradient-matching" not in nouns:
        return "there is no squared gradient-matching loss"
    return None


def bounds_refusal(program: Program) -> str | None:
    """Why a solver without bounds cannot take the program; None if it has none."""
    if not program.bounds:
        return None
    return f"it takes no bounds, and {program.bounds[0]} is one"


def curve_refusal(program: Program) -> str | None:
    """Why the program is not such a sum and nothing else; None if it is."""
    return (
        bounds_refusal(program)
        or all_squared_refusal(program.losses)
        or quadratic_refusal(program.losses)
    )


def all_squared_refusal(losses: tuple[PropertyLoss, ...]) -> str | None:
    """Why the losses are not all squared; None if they are."""
    for loss in losses:
        if not isinstance(loss.penalty, Squared):
            return f"{loss.name} is not a squared loss"
    return None


def _gram(losses: tuple[PropertyLoss, ...], place: int | None) -> Any:
    if place is None:
        return None
    match losses[place].map:
        case OverPoints() | ImplicitOverPoints() | OverFeatures() as coupled:
            return coupled.gram
        case other:
            raise TypeError(f"{type(other).__name__} has no Gram matrix")


def _parts(losses: tuple[PropertyLoss, ...], place: int | None) -> Components | None:
    match None if place is None else losses[place].map:
        case OverPoints() | ImplicitOverPoints() | OverFeatures() as coupled:
            return coupled.components
        case _:
            return None


def _constants(G: Array, parts: Components | None) -> Array:
    """At each node what stands at the first of its part; zero where none are free."""
    return np.zeros_like(G) if parts is None else parts.spread(parts.firsts(G))
