"""The quadratic part of an objective, and the inverse of half its Hessian.

With F(W) = a‖W − G‖² + b tr(WᵀPW) + c tr(WQWᵀ) + convex terms and

    H = a I + b P ⊗ I + c I ⊗ Q,    P = U diag(θ) Uᵀ,  Q = V diag(ν) Vᵀ,

a quadratic F is F* + ⟨W − W*, H (W − W*)⟩, and any other lies above that. H⁻¹ says how
far an error of the target moves the optimum, and how wide the set of all explanations
is whose objective is almost the least.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import final

import numpy as np

from propopt._typing import Array, Attributions
from propopt.curvature.eigenbasis import Eigenbasis
from propopt.curvature.entries import OfEntries
from propopt.curvature.inverse import Hessian
from propopt.curvature.quadratic import Quadratic, curvature_refusal
from propopt.errors import Refused
from propopt.linear.conjugate_gradients import conjugate_gradients
from propopt.losses import Program, PropertyLoss
from propopt.losses.entries import Support, counted
from propopt.maps import Identity
from propopt.penalties import Squared


MOST_DIAGONALIZED = 2_000
"""Points from which conjugate gradients are cheaper than an eigenbasis, O(N³)."""

_MOST_STEPS = 2_000
_REDUCTION, _ROUGHLY = 1e-26, 1e-16
"""Of the energy of the residual: thirteen digits, and the eight that errors need."""


@final
@dataclass(frozen=True, eq=False)
class Diagonalized(Hessian):
    """By the eigenbases of both graphs: H is diag(a + bθ_i + cν_j) in U ⊗ V.

    Parameters
    ----------
    over_points, over_features : Eigenbasis
        U and V.
    values : array (N, D)
        a + bθ_i + cν_j.
    """

    over_points: Eigenbasis
    over_features: Eigenbasis
    values: Array

    def turned(self, E: Array) -> Array:
        """UᵀEV, shape (N, D)."""
        return self.over_features.forward(self.over_points.forward(E).T).T

    def solve(self, E: Array) -> Array:
        turned = self.turned(E) / self.values
        return self.over_points.backward(self.over_features.backward(turned.T).T)

    def energy(self, E: Array) -> float:
        return float((self.turned(E) ** 2 / self.values).sum())

    def inverse_block(self, row: int) -> Array:
        # V diag_j(Σ_i U_ni² / h_ij) Vᵀ
        along = self.points[row] ** 2 @ (1.0 / self.values)
        return np.asarray((self.features * along) @ self.features.T)

    def inverse_diagonal(self) -> Attributions:
        return np.asarray(self.points**2 @ (1.0 / self.values) @ self.features.T**2)

    @cached_property
    def points(self) -> Array:
        """U, shape (N, N)."""
        return self.over_points.forward(np.eye(len(self.values))).T

    @cached_property
    def features(self) -> Array:
        """V, shape (D, D)."""
        return self.over_features.forward(np.eye(self.values.shape[1])).T


@final
@dataclass(frozen=True, eq=False)
class Iterated(Hessian):
    """By conjugate gradients, for any squared losses and any number of points.

    Parameters
    ----------
    terms : tuple of (float, PropertyLoss)
        Squared losses with weights above zero, one of them gradient matching.
    shape : (int, int)
        N and D.
    reduction : float
        Of the energy of the residual.
    """

    terms: tuple[tuple[float, PropertyLoss], ...]
    shape: tuple[int, int]
    reduction: float = _REDUCTION

    @property
    def roughly(self) -> Iterated:
        """The same to eight digits, for scatters and errors."""
        return replace(self, reduction=_ROUGHLY)

    def solve(self, E: Array) -> Array:
        X, residual = np.zeros(self.shape), np.array(E, dtype=np.float64)
        conjugate_gradients(
            self.product,
            X,
            residual,
            precondition=np.copy,
            most_steps=_MOST_STEPS,
            reduction=self.reduction,
        )
        return X

    def product(self, W: Array) -> Array:
        """H W."""
        return np.asarray(sum(c * loss.map.normal(W) for c, loss in self.terms))

    def inverse_block(self, row: int) -> Array:
        _, D = self.shape
        return np.stack([self._column(row, d)[row] for d in range(D)])

    def inverse_diagonal(self) -> Attributions:
        """The diagonal of H⁻¹, one system for each entry.

        Raises
        ------
        Refused
            Always: N·D systems are too many; ask for the blocks of some rows.
        """
        raise Refused(
            f"the diagonal of the inverse takes {self.shape[0] * self.shape[1]:,} "
            "systems; ask for the blocks of some rows"
        )

    def _column(self, row: int, feature: int) -> Array:
        unit = np.zeros(self.shape)
        unit[row, feature] = 1.0
        return self.solve(unit)


@final
@dataclass(frozen=True, eq=False)
class QuadraticPart:
    """The squared losses of a program, made ready for any weights.

    Parameters
    ----------
    program : Program
        Losses of any kind; those that are not squared are left out.
    known : (Eigenbasis, Eigenbasis), optional
        U and V, where they were computed before.

    Examples
    --------
    >>> import numpy as np, propopt as po
    >>> from propopt.curvature.hessian import QuadraticPart
    >>> chain = po.chain_graph(3)
    >>> objective = po.GradientMatching(np.eye(3)) + po.PairwiseRobustness(chain)
    >>> part = QuadraticPart(po.losses.Program(objective.losses))
    >>> H = part.hessian(np.array([1.0, 0.5]))
    >>> round(H.energy(np.ones((3, 3))), 9)  # constants cost the first loss alone
    9.0
    """

    program: Program
    known: tuple[Eigenbasis, Eigenbasis] | None = None

    def hessian(self, weights: Array) -> Hessian:
        """H for these weights, in the order of the losses of the program.

        Raises
        ------
        Refused
            If no squared loss of W itself has a weight: H has no inverse.
        """
        pairs = zip(weights.tolist(), self.program.losses, strict=True)
        terms = [(c, loss) for c, loss in pairs if c > 0.0 and _is_squared(loss)]
        if not any(isinstance(loss.map, Identity) for _, loss in terms):
            raise Refused(
                "the quadratic part has no inverse: no squared gradient-matching loss "
                "has a weight above zero"
            )
        if self._is_diagonal:
            return self._diagonalized(weights)
        if self._entries is not None:
            return OfEntries(self._entries, tuple(terms))
        return Iterated(tuple(terms), self.program.shape)

    @cached_property
    def _squared(self) -> tuple[int, ...]:
        losses = self.program.losses
        return tuple(k for k, loss in enumerate(losses) if _is_squared(loss))

    @cached_property
    def _entries(self) -> Support | None:
        """The entries that count, where losses couple single entries."""
        losses = tuple(self.program.losses[k] for k in self._squared)
        return counted(Program(losses, (), self.program.shape))

    @cached_property
    def _is_diagonal(self) -> bool:
        losses = tuple(self.program.losses[k] for k in self._squared)
        few = max(self.program.shape) <= MOST_DIAGONALIZED
        return (few or self.known is not None) and curvature_refusal(losses) is None

    @cached_property
    def _quadratic(self) -> Quadratic:
        losses = tuple(self.program.losses[k] for k in self._squared)
        return Quadratic.of(losses, self.program.shape)

    @cached_property
    def _bases(self) -> tuple[Eigenbasis, Eigenbasis]:
        if self.known is not None:
            return self.known
        quadratic, (N, D) = self._quadratic, self.program.shape
        return (
            Eigenbasis(quadratic.P, quadratic.point_parts, N),
            Eigenbasis(quadratic.Q, quadratic.feature_parts, D),
        )

    def _diagonalized(self, weights: Array) -> Diagonalized:
        a, b, c = self._quadratic.coefficients(weights[list(self._squared)])
        points, features = self._bases
        values = a + b * points.values[:, None] + c * features.values
        return Diagonalized(points, features, values)


def _is_squared(loss: PropertyLoss) -> bool:
    return isinstance(loss.penalty, Squared)
