"""Attributions whose rows have given sums, and what the losses are among them.

W v = t is linear: with u = v/‖v‖ and z = t/‖v‖ it leaves

    W = V + z uᵀ,   V u = 0.

No constraint is needed for V: squared losses of W are losses of V that are as small as
anywhere where V u = 0. They are ‖W − G‖² = ‖V − G(I − uuᵀ)‖² + ‖z − G u‖² and
‖B W‖² = ‖B V‖² + ‖B z‖². Over features ‖W Cᵀ‖ = ‖V Cᵀ‖ where C u = 0, as for a graph
and v = 1; else C is replaced by C(I − uuᵀ), and −z(C u)ᵀ is its target. The constants
are what no W can remove.

Where each row has weights v_n of its own, such as ones at the words of a document, u_n
is its own too: losses of W itself come apart as before, others do not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, final

import numpy as np
import scipy.sparse as sp

from propopt._typing import Array, Attributions, Sparse
from propopt.errors import InvalidInput
from propopt.linear.rounding import Rounding
from propopt.losses.base import Bound, PropertyLoss
from propopt.losses.program import Program
from propopt.losses.restricted import _RestrictedLoss, is_complete, reduced_bound
from propopt.maps import (
    Identity,
    ImplicitOverPoints,
    LinearMap,
    OverFeatures,
    OverPoints,
    RowSums,
)
from propopt.penalties import Squared


@final
@dataclass(frozen=True, eq=False)
class Totals:
    """The attributions W = V + z uᵀ with V u = 0.

    Parameters
    ----------
    axis : array (D,) or (N, D)
        u, of length one; or u_n of each row, which is zero where nothing adds up.
    heights : array (N,)
        z.
    norm : float or array (N,)
        ‖v‖, or ‖v_n‖.
    """

    axis: Array
    heights: Array
    norm: float | Array

    @classmethod
    def of(cls, bounds: Sequence[Bound]) -> Totals | None:
        """What a :class:`Completeness` leaves; None where there is none.

        Raises
        ------
        InvalidInput
            If there are two.
        """
        losses = [bound.loss for bound in bounds if is_complete(bound)]
        if len(losses) > 1:
            raise InvalidInput(
                f"subject_to: {losses[0].name} and {losses[1].name} both say what rows "
                "add up to; give one of them"
            )
        return cls.by(losses[0]) if losses else None

    @classmethod
    def by(cls, loss: PropertyLoss) -> Totals:
        """The attributions at which a loss over row sums is zero."""
        assert isinstance(loss.map, RowSums), "see is_complete"
        v, t = loss.map.weights, np.asarray(loss.target)[:, 0]
        if v.ndim == 1:
            norm = float(np.linalg.norm(v))
            return cls(v / norm, t / norm, norm)
        norms = np.linalg.norm(v, axis=1)
        norms[norms == 0.0] = 1.0
        return cls(v / norms[:, None], t / norms, norms)

    @property
    def is_shared(self) -> bool:
        """Whether all rows have the same weights."""
        return self.axis.ndim == 1

    def scaled(self, factor: float) -> Totals:
        """The totals of attributions times a factor."""
        return Totals(self.axis, factor * self.heights, self.norm)

    def coordinates(self, W: Attributions) -> Array:
        """V = W − (W u)uᵀ."""
        return np.asarray(W - spread(along(W, self.axis), self.axis))

    def expanded(self, V: Array) -> Attributions:
        """The complete W that is nearest to V; its row sums are exact to rounding."""
        W = V + spread(self.heights - along(V, self.axis), self.axis)
        # what rounding left of the sums, once more
        return np.asarray(W + spread(self.heights - along(W, self.axis), self.axis))

    def on_support(self, W: Attributions) -> Attributions:
        """A complete W that is zero where W is, in rows that are not zero."""
        v = np.where(W == 0.0, 0.0, self.axis)
        v[~v.any(axis=1)] = self.axis
        missed = self.heights - W @ self.axis
        return np.asarray(W + (missed / (v**2).sum(axis=1))[:, None] * v)

    @cached_property
    def fixed(self) -> Attributions:
        """Z uᵀ."""
        return spread(self.heights, self.axis)

    def program(self, program: Program) -> Program:
        """The program of V, without the constraint.

        Raises
        ------
        Infeasible
            If a limit is below the smallest value that is left.
        """
        complete = [bound for bound in program.bounds if is_complete(bound)]
        return Program(
            tuple(map(self.loss, program.losses)),
            tuple(
                reduced_bound(bound, self.loss(bound.loss), complete)
                for bound in program.bounds
                if bound not in complete
            ),
            program.shape,
        )

    def loss(self, loss: PropertyLoss) -> _RestrictedLoss:
        """The loss of V + z uᵀ as one of V."""
        if isinstance(loss.penalty, Squared):
            match loss.map:
                case Identity() as same:
                    return self._matching(loss, same)
                case OverPoints() | ImplicitOverPoints() as coupled if self.is_shared:
                    return self._over_points(loss, coupled)
                case OverFeatures() as coupled if (
                    self.is_shared and not loss.has_target
                ):
                    return self._over_features(loss, coupled)
        over = OffAxis(loss.map, self.axis)
        return _RestrictedLoss(loss, over, loss.target - loss.map(self.fixed))

    def least(self, loss: PropertyLoss) -> float | None:
        """The smallest value among complete attributions; None if it is not known."""
        own = not self.is_shared and not isinstance(loss.map, Identity)
        if own or not isinstance(loss.penalty, Squared):
            return None
        match loss.map:
            case Identity():
                return self.loss(loss).constant
            case OverPoints() | ImplicitOverPoints() if not loss.has_target:
                return self.loss(loss).constant
            case OverFeatures() as coupled if not loss.has_target:
                return self._least_over_features(coupled)
            case _:
                return None

    def dual(self, loss: PropertyLoss, Y: Array) -> Array:
        """The dual of a loss of W as one of its loss of V.

        Where points are coupled W has B z uᵀ besides B V, which is constant.
        """
        coupled = isinstance(loss.map, OverPoints | ImplicitOverPoints)
        apart = self.is_shared and coupled and not loss.has_target
        if apart and isinstance(loss.penalty, Squared):
            return self.coordinates(Y)
        return Y

    def multiplier(
        self,
        terms: Sequence[tuple[float, PropertyLoss]],
        W: Attributions,
        duals: Mapping[str, Array],
    ) -> Array:
        """Y (N,): how fast the optimum falls as totals rise, −∇F(W) v/‖v‖².

        Where a loss has kinks, its dual stands for its gradient; one that is not given
        counts as zero.
        """
        slope = np.zeros_like(W)
        for c, loss in terms:
            if isinstance(loss.penalty, Squared):
                slope += c * loss.gradient_at(W)
            elif loss.name in duals:
                slope += loss.map.adjoint(duals[loss.name])
        return np.asarray(along(slope, self.axis) / -self.norm)

    def _matching(self, loss: PropertyLoss, same: Identity) -> _RestrictedLoss:
        if not loss.has_target:
            constant = float(self.heights @ self.heights)
            return _RestrictedLoss(loss, same, constant=constant)
        G = np.asarray(loss.target)
        missed = self.heights - along(G, self.axis)
        return _RestrictedLoss(loss, same, self.coordinates(G), float(missed @ missed))

    def _over_points(
        self, loss: PropertyLoss, coupled: OverPoints | ImplicitOverPoints
    ) -> _RestrictedLoss:
        """‖B W − T‖² = ‖B V − T(I − uuᵀ)‖² + ‖B z − T u‖²."""
        if not loss.has_target:
            constant = coupled.energy(self.heights[:, None])
            return _RestrictedLoss(loss, coupled, constant=constant)
        T = np.asarray(loss.target)
        missed = coupled(self.heights[:, None])[:, 0] - along(T, self.axis)
        return _RestrictedLoss(
            loss, coupled, self.coordinates(T), float(missed @ missed)
        )

    def _over_features(
        self, loss: PropertyLoss, coupled: OverFeatures
    ) -> _RestrictedLoss:
        if self._costs_nothing(coupled):
            return _RestrictedLoss(loss, coupled)
        C = coupled.matrix @ np.eye(len(self.axis))
        image = C @ self.axis
        rest = OverFeatures(C - np.outer(image, self.axis))
        return _RestrictedLoss(loss, rest, -np.outer(self.heights, image))

    def _costs_nothing(self, coupled: OverFeatures) -> bool:
        """Whether C u = 0: u is constant on each part of the features."""
        parts = coupled.components
        if parts is None:
            return not (coupled.matrix @ self.axis).any()
        return bool((parts.spread(parts.firsts(self.axis)) == self.axis).all())

    def _least_over_features(self, coupled: OverFeatures) -> float:
        """‖z‖² min ‖C(u + x)‖² over x with uᵀx = 0."""
        if self._costs_nothing(coupled):
            return 0.0
        C = coupled.matrix @ np.eye(len(self.axis))
        image = C @ self.axis
        rest = C - np.outer(image, self.axis)
        left = image - rest @ np.linalg.lstsq(rest, image)[0]
        return float(self.heights @ self.heights) * float(left @ left)


@final
@dataclass(frozen=True, eq=False)
class OffAxis(LinearMap):
    """V ↦ A(V − (V u)uᵀ).

    Parameters
    ----------
    outer : LinearMap
        A.
    axis : array (D,) or (N, D)
        u, of length one; or u_n of each row, of length one or zero.
    """

    outer: LinearMap
    axis: Array

    def __call__(self, W: Any) -> Any:
        if isinstance(W, np.ndarray):
            return self.outer(self._off(W))
        if self.axis.ndim == 1:
            return self.outer(W @ self._projection)
        flat = self._flat_projection(W.shape) @ W.flatten(order="C")
        return self.outer(flat.reshape(W.shape, order="C"))

    def adjoint(self, R: Array) -> Attributions:
        return self._off(self.outer.adjoint(R))

    def energy(self, W: Attributions) -> float:
        return self.outer.energy(self._off(W))

    def normal(self, W: Attributions) -> Attributions:
        return self._off(self.outer.normal(self._off(W)))

    def gradient(self, W: Attributions) -> Attributions:
        return self._off(self.outer.gradient(self._off(W)))

    def rounding(self, W: Attributions) -> Rounding:
        return self.outer.rounding(self._off(W))

    def flat(self, shape: tuple[int, int]) -> Sparse:
        return sp.csr_array(self.outer.flat(shape) @ self._flat_projection(shape))

    def flat_rows(self, shape: tuple[int, int]) -> int:
        return self.outer.flat_rows(shape)

    def _off(self, W: Array) -> Array:
        return np.asarray(W - spread(along(W, self.axis), self.axis))

    def _flat_projection(self, shape: tuple[int, int]) -> Sparse:
        """That of row-major V."""
        if self.axis.ndim == 1:
            return sp.kron(sp.eye_array(shape[0]), self._projection, format="csr")
        U = RowSums(self.axis).flat(shape)
        return sp.csr_array(sp.eye_array(U.shape[1]) - U.T @ U)

    @cached_property
    def _projection(self) -> Array:
        """I − uuᵀ."""
        return np.eye(len(self.axis)) - np.outer(self.axis, self.axis)


def along(W: Array, axis: Array) -> Array:
    """W_n u, or W_n u_n of each row, (N,)."""
    if axis.ndim == 1:
        return np.asarray(W @ axis)
    return np.asarray((W * axis).sum(axis=-1))


def spread(heights: Array, axis: Array) -> Array:
    """Z uᵀ, or z_n u_n of each row, (N, D)."""
    return np.asarray(heights[:, None] * axis)
