"""H⁻¹ among attributions whose rows have given sums.

W v = t leaves W = V + z uᵀ with V u = 0 (:mod:`propopt.losses.totals`), and losses of V
that do not see V u. Their half Hessian H commutes with Π = I − uuᵀ, so that Π H⁻¹ Π is
the inverse on what is left: an ellipsoid of complete W is as wide as that.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import final

import numpy as np
import scipy.sparse as sp

from propopt._typing import Array, Attributions
from propopt.curvature.entries import OfEntries
from propopt.curvature.hessian import Diagonalized, QuadraticPart
from propopt.curvature.inverse import Hessian
from propopt.errors import Refused
from propopt.losses import Program, PropertyLoss
from propopt.losses.entries import counted
from propopt.losses.totals import Totals, along, spread
from propopt.maps import LinearMap, RowSums
from propopt.penalties import Penalty, Squared


@final
@dataclass(frozen=True, eq=False)
class Tangential(Hessian):
    """Π H⁻¹ Π.

    Parameters
    ----------
    inner : Hessian
        H, which commutes with Π.
    axis : array (D,)
        u, of length one.
    """

    inner: Hessian
    axis: Array

    def solve(self, E: Array) -> Array:
        return self._off(self.inner.solve(self._off(E)))

    def inverse_block(self, row: int) -> Array:
        return self._off(self._off(self.inner.inverse_block(row)).T)

    def inverse_diagonal(self) -> Attributions:
        if not isinstance(self.inner, Diagonalized):
            return self.inner.inverse_diagonal()  # refuses, or is no less
        features = self._off(self.inner.features.T)  # rows: eigenvectors off the axis
        along = self.inner.points**2 @ (1.0 / self.inner.values)
        return np.asarray(along @ features**2)

    def _off(self, E: Array) -> Array:
        return np.asarray(E - spread(along(E, self.axis), self.axis))


@final
@dataclass(frozen=True, eq=False)
class ConstrainedPart:
    """The squared losses of a program among the W that its completeness leaves.

    Parameters
    ----------
    program : Program
        Losses of any kind. Bounds are left out, but for one on what rows add up to.

    Examples
    --------
    >>> import numpy as np, propopt as po
    >>> loss, total = po.GradientMatching(np.eye(2)), po.Completeness([1.0, 1.0])
    >>> part = ConstrainedPart(po.losses.Program((loss,), (total.bound(2),)))
    >>> part.hessian(np.array([1.0])).inverse_diagonal()
    array([[0.5, 0.5],
           [0.5, 0.5]])
    """

    program: Program

    def hessian(self, weights: Array) -> Hessian:
        """H, or Π H⁻¹ Π in its place, for weights in the order of the losses.

        Raises
        ------
        Refused
            If no squared loss of W itself has a weight, or rows add up with weights of
            their own.
        """
        if self.totals is not None and not self.totals.is_shared:
            return self._of_entries(weights)
        inner = self.inner.hessian(weights)
        return inner if self.totals is None else Tangential(inner, self.totals.axis)

    def optimum(self, weights: Array) -> Attributions:
        """W₀ − ½H⁻¹∇F(W₀), for W₀ zero, or what rows have to add up to.

        The optimum of squared losses. Others have no part in it.
        """
        totals, shape = self.totals, self.program.shape
        start = np.zeros(shape) if totals is None else totals.fixed
        slope = np.zeros(start.shape)
        for c, loss in zip(weights.tolist(), self.program.losses, strict=True):
            if c > 0.0 and isinstance(loss.penalty, Squared):
                slope += 0.5 * c * loss.gradient_at(start)
        return np.asarray(start - self.hessian(weights).solve(slope))

    def _of_entries(self, weights: Array) -> Hessian:
        """Where each row adds up over entries of its own."""
        inner = QuadraticPart(self.program).hessian(weights)
        support = counted(self.program)
        if support is None or not isinstance(inner, OfEntries) or self.totals is None:
            raise Refused(
                "rows add up over features of their own, and losses couple whole points"
            )
        # rows without any entry add up to nothing, and say nothing
        sums = RowSums(self.totals.axis).flat(self.program.shape)[:, support.places]
        rows = np.flatnonzero(np.diff(sums.indptr))
        return replace(inner, support=support, sums=sp.csr_array(sums[rows]))

    @cached_property
    def totals(self) -> Totals | None:
        """What rows add up to; None where nothing says so."""
        return Totals.of(self.program.bounds)

    def free(self, E: Array) -> Array:
        """What of errors (..., D) can move a complete W: all but their part along u."""
        if self.totals is None:
            return E
        heights = along(E, self.totals.axis)
        return np.asarray(E - heights[..., None] * self.totals.axis)

    @cached_property
    def inner(self) -> QuadraticPart:
        """H of V, for what is :meth:`free`."""
        losses, totals = self.program.losses, self.totals
        if totals is not None:
            losses = tuple(_Curving(loss, totals.loss(loss).map) for loss in losses)
        return QuadraticPart(Program(losses, (), self.program.shape))


@final
class _Curving(PropertyLoss):
    """A loss with another map and without its target, which has no part in H."""

    def __init__(self, loss: PropertyLoss, over: LinearMap) -> None:
        self.name = loss.name
        self._map, self._penalty = over, loss.penalty

    @property
    def map(self) -> LinearMap:
        return self._map

    @property
    def penalty(self) -> Penalty:
        return self._penalty
