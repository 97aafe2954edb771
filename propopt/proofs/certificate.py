"""Certificates of optimality from attributions and duals.

They are lower bounds on a weighted sum of losses. Write F(W) = q(W)
+ Σ_i c_i φ_i(A_i W − T_i), where q collects the squared losses. For any duals Y_i,
Fenchel's inequality c_i φ_i(R) ≥ ⟨Y_i, R⟩ − (c_i φ_i)*(Y_i) gives

    F(V) ≥ q(V) + Σ_i ⟨Y_i, A_i V − T_i⟩ − Σ_i (c_i φ_i)*(Y_i)  for every V.

* **strong convexity**: if q is m-strongly convex (m = 2a if gradient matching has
  weight a), the right side is at least its value at W minus ‖g‖²/2m, for its gradient
  g = ∇q(W) + Σ_i A_iᵀ Y_i.
* **dual**: if an ℓ1 loss acts on W itself, its dual can absorb g, so that
  Σ A_iᵀ Y_i is zero over all losses and the bound is −Σ_i (c_i φ_i)*(Y_i) + ⟨Y_i, T_i⟩.
* **projected dual**: otherwise duals are moved to the nearest with that sum zero (to
  rounding), by least squares.

Both duals are evaluated at W, as Σ_i ⟨Y_i, A_i W − T_i⟩ − (c_i φ_i)*(Y_i): the same
number as at zero, without the cancellation of large targets. Possible rounding of
residuals and gradients (:meth:`LinearMap.rounding`) is subtracted from each bound.

Bounds ``loss <= limit`` enter as losses weighted by their multipliers: the optimum of
the Lagrangian is a lower bound too. Given row sums restrict V
(:mod:`propopt.losses.completeness`).
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, TypeAlias

import numpy as np
import scipy.linalg as la
import scipy.sparse as sp
import scipy.sparse.linalg as spla

from propopt.base.arrays import Array, Attributions, Sparse, quotient
from propopt.base.checks import largest_entry
from propopt.base.declared import field
from propopt.base.text import Reason
from propopt.losses import Bound, Program, PropertyLoss
from propopt.losses.algebra import positive_terms
from propopt.losses.completeness import Totals, is_completeness
from propopt.losses.linear_algebra import least_squares, slabs
from propopt.losses.maps import (
    Absolute,
    Identity,
    ImplicitOverPoints,
    RowSums,
)
from propopt.losses.restricted import (
    Support,
    entries_refusal,
    offset_of,
    without_offset,
)


DENSE_LIMIT = 1500  # unknowns up to which a dense eigenvalue routine is used
LOST = 1e-13
"""Relative rounding error of the terms that cancel in a bound."""


class Lagrangian:
    """Lower bounds on Σ c·loss over all V, from values and duals at W."""

    squared: list[tuple[float, PropertyLoss]]  # in q
    with_duals: list[tuple[float, PropertyLoss]]  # squared, and taken by their duals
    others: list[tuple[float, PropertyLoss]]  # not in q

    def __init__(
        self,
        terms: Sequence[tuple[float, PropertyLoss]],
        W: Attributions,
        duals: Mapping[str, Array],
        values: Mapping[int, float],
    ) -> None:
        self.W = W
        self.duals = duals
        self.values = values
        squared = [loss for _, loss in terms if loss.is_squared]
        has_modulus = any(loss.is_direct for loss in squared)
        self.squared = []
        self.with_duals = []
        self.others = []
        for c, loss in terms:
            # a dual has the forces between neighbours more accurately than W, whose
            # last digits a large weight amplifies: used if q is convex without the loss
            has_dual = loss.name in duals and not loss.is_direct
            if loss.is_squared and not (has_modulus and has_dual):
                self.squared.append((c, loss))
                continue
            self.others.append((c, loss))
            if loss.is_squared:
                self.with_duals.append((c, loss))

    def lower_bound(self) -> tuple[float, str, float | None]:
        """The bound, its kind, and the distance to the optimum that it implies."""
        rounding, _ = self._roundings
        modulus = sum(2 * c for c, loss in self.squared if loss.is_direct)
        absorber = self._absorber()
        if modulus == 0.0 and absorber is not None:
            return self._dual_bound(absorber) - rounding, "dual", None
        # with squared losses alone, the projected dual is exact, and costs far less
        eigenvalues = bool(self.others) or self.W.size <= DENSE_LIMIT
        if modulus == 0.0 and self.squared and eigenvalues:
            modulus = smallest_curvature(self.squared, self.W.shape)
        if modulus > 0.0:
            lower, distance = self._strongly_convex_bound(modulus)
            return lower - rounding, "strong convexity", distance
        return self._projected_bound() - rounding, "projected dual", None

    @cached_property
    def _roundings(self) -> tuple[float, float]:
        """Effects of rounding on the squared losses and on their gradients.

        Errors δ of residuals R change losses by Σ c (2‖R‖δ + δ²). All other losses have
        exact residuals, and those with duals have these instead of gradients.
        """
        of_losses = []
        of_gradients = []
        for c, loss in self.squared + self.with_duals:
            value = self.values[id(loss)]
            match loss.map:
                case Identity():
                    continue
                case ImplicitOverPoints() as implicit if not loss.has_target:
                    delta, error = implicit.rounding(self.W, value)
                case other:
                    delta, error = other.rounding(self.W)
            of_losses.append(c * delta * (2.0 * math.sqrt(value) + delta))
            of_gradients.append(2 * c * error)
        of_gradients = of_gradients[: len(of_gradients) - len(self.with_duals)]
        return math.fsum(of_losses), math.fsum(of_gradients)

    def _absorber(self) -> PropertyLoss | None:
        """An ℓ1 loss of W itself, preferably one without a given dual."""
        losses = [
            loss
            for _, loss in self.others
            if loss.is_direct and isinstance(loss.penalty, Absolute)
        ]
        return min(losses, key=lambda loss: loss.name in self.duals, default=None)

    def _strongly_convex_bound(self, modulus: float) -> tuple[float, float]:
        """The bound, and the distance to the optimum that it implies."""
        slope = self._slope()
        gaps = []
        for c, loss in sorted(self.others, key=lambda t: t[1].name not in self.duals):
            residual = loss.residual(self.W)
            Y = loss.penalty.shrink(self._dual(loss, residual, slope, modulus), c)
            slope = slope + loss.map.adjoint(Y)
            # Fenchel-Young: c φ(R) + (c φ)*(Y) − ⟨Y, R⟩ ≥ 0
            gaps.append(c * loss.penalty.value(residual) + loss.penalty.conjugate(Y, c))
            gaps.append(-float(np.vdot(Y, residual)))
        size = float(np.linalg.norm(slope))
        size += self._roundings[1]
        excess = max(math.fsum(gaps), 0.0) + size**2 / (2 * modulus)
        excess *= 1.0 + LOST
        terms = self.squared + self.others
        value = math.fsum(c * self.values[id(loss)] for c, loss in terms)
        return value - excess, math.sqrt(2 * excess / modulus)

    def _slope(self) -> Array:
        """The gradient Σ c ∇loss(W) of the squared losses, in one array for speed."""
        of_W = [t for t in self.squared if isinstance(t[1].map, Identity)]
        slope = None
        for c, loss in self.squared:
            if not loss.is_direct:
                part = loss.gradient_at(self.W)
                part *= c
                slope = part if slope is None else np.add(slope, part, out=part)
        if slope is None:
            slope = np.zeros(self.W.shape)
        for c, loss in of_W:
            for rows in slabs(self.W):
                part = loss.residual_of(rows, self.W)
                part *= 2.0 * c
                slope[rows] += part
        return slope

    def _dual(
        self, loss: PropertyLoss, residual: Array, slope: Array, modulus: float
    ) -> Array:
        """The given dual, else the best one for the identity map, else zero."""
        if loss.name in self.duals:
            return self.duals[loss.name]
        if loss.is_direct:
            # the largest bound, at max_Y ⟨Y, R⟩ − ‖slope + Y‖²/2m
            return modulus * residual - slope
        return np.zeros_like(residual)

    def _dual_bound(self, absorber: PropertyLoss) -> float:
        duals = self._subgradients()
        others = [dual for dual in duals if dual[1] is not absorber]
        parts = (loss.map.adjoint(Y) for _, loss, _, Y in others)
        absorbed = -sum(parts, np.zeros_like(self.W))
        absorbing = next(
            (c, loss, R, absorbed) for c, loss, R, _ in duals if loss is absorber
        )
        return _conjugate_bound([*others, absorbing])

    def _projected_bound(self) -> float:
        """Duals moved to the nearest with Σ AᵀY = 0: Y − c A z for least squares z.

        A remainder r of that sum changes the bound at the optimum V by ⟨r, V − W⟩. If
        all losses are squared, V = W − z/2.
        """
        duals = self._subgradients()
        roots = [math.sqrt(c) for c, *_ in duals]
        flats = [
            root * loss.map.flat(self.W.shape)
            for root, (_, loss, _, _) in zip(roots, duals, strict=True)
        ]
        stacked = np.concatenate(
            [Y.ravel() / root for root, (*_, Y) in zip(roots, duals, strict=True)]
        )
        matrix = sp.csr_array(sp.vstack(flats))
        widest = math.sqrt(matrix.power(2).sum(axis=0).max())
        rounding = 1e-10 * widest * float(np.linalg.norm(stacked))
        projected = stacked
        moved = 0.0
        if np.linalg.norm(matrix.T @ projected) > rounding:
            z = least_squares(matrix, stacked)
            projected = stacked - matrix @ z
            moved = float(np.linalg.norm(z))
        remainder = float(np.linalg.norm(matrix.T @ projected))
        if remainder > rounding:
            return 0.0
        parts = np.split(projected, np.cumsum([flat.shape[0] for flat in flats])[:-1])
        bound = _conjugate_bound(
            [
                (c, loss, R, root * part.reshape(Y.shape))
                for root, (c, loss, R, Y), part in zip(roots, duals, parts, strict=True)
            ]
        )
        return bound - remainder * moved

    def _subgradients(self) -> list[_Dual]:
        """The given duals, else 2cR for squared losses and zero for the others."""
        duals: list[_Dual] = []
        for c, loss in [*self.squared, *self.others]:
            R = loss.residual(self.W)
            default = 2 * c * R if loss.is_squared else np.zeros_like(R)
            duals.append((c, loss, R, self.duals.get(loss.name, default)))
        return duals


_Dual: TypeAlias = tuple[float, PropertyLoss, Array, Array]
"""Weight c, loss, residual R = A(W) − T and dual Y of c φ(R)."""


def _conjugate_bound(duals: Sequence[_Dual]) -> float:
    """The lower bound Σ ⟨Y, R⟩ − (cφ)*(Y) for duals with Σ AᵀY = 0.

    Scaling all duals by one factor keeps that sum zero and brings each into its domain.
    """
    theta = min(c / max(loss.penalty.polar(Y), c) for c, loss, _, Y in duals)
    bound = math.fsum(
        theta * float(np.vdot(Y, R)) - loss.penalty.conjugate(theta * Y, c)
        for c, loss, R, Y in duals
    )
    size = theta * math.fsum(float(np.abs(Y * R).sum()) for *_, R, Y in duals)
    return bound - LOST * (size - bound)


def smallest_curvature(
    terms: Sequence[tuple[float, PropertyLoss]], shape: tuple[int, ...]
) -> float:
    """The smallest eigenvalue of Σ 2c AᵀA; zero if it is zero to rounding."""
    flats = [(c, loss.map.flat((shape[0], shape[1]))) for c, loss in terms]
    hessian = sp.csc_array(sum((2 * c) * (A.T @ A) for c, A in flats))
    largest = float(abs(hessian).sum(axis=1).max())  # no eigenvalue is larger
    rounding = 1e-13 * largest * math.sqrt(hessian.shape[0])
    return max(_lowest_eigenvalue(hessian, largest) - rounding, 0.0)


def _lowest_eigenvalue(hessian: Sparse, largest: float) -> float:
    if hessian.shape[0] <= DENSE_LIMIT or largest == 0.0:
        return float(la.eigvalsh(hessian.toarray(), subset_by_index=[0, 0])[0])
    shift = -1e-6 * largest  # just below the spectrum, so that the factor exists
    start = np.ones(hessian.shape[0])
    lowest = spla.eigsh(
        hessian, k=1, sigma=shift, v0=start, return_eigenvectors=False, tol=1e-3
    )[0]
    return float(lowest - 1e-2 * abs(lowest))


@dataclass(frozen=True, kw_only=True)
class Certificate:
    """A proven bound on how far an explanation is from the optimum.

    Parameters
    ----------
    value : float
        The objective of the explanation.
    lower_bound : float
        No explanation has a smaller objective.
    scale : float
        The scale of the relative gap: the larger of the value and 1e-9 of the cost of
        trivial explanations (zero, or the mean gradient for all points, whichever costs
        less), as an optimum of zero has no scale.
    kind : str
        The argument: ``"strong convexity"``, ``"dual"``, ``"projected dual"``,
        ``"curve"`` for points on exact curves, or ``"nonnegative losses"`` if the only
        available bound is zero.
    violation : float
        The largest relative excess over a bound, or error of given row sums; zero
        without bounds.
    distance : float or None
        An upper bound of the distance to the optimum (Frobenius norm); None if it is
        not available, and with bounds other than given row sums.
    n_rows : int or None
        The number of rows that were explained jointly, if an explanation has only some
        of them: value and bound belong to all of these rows.
    """

    value: float = field(low=0.0)
    lower_bound: float = field(low=0.0)
    scale: float = field(low=0.0)
    kind: str = field()
    violation: float = field(default=0.0, low=0.0)
    distance: float | None = field(default=None, low=0.0)
    n_rows: int | None = field(default=None, low=1)

    @cached_property
    def gap(self) -> float:
        """The certified relative gap of the objective: (value − lower bound)/scale."""
        excess = max(self.value - self.lower_bound, 0.0)
        return excess / self.scale if excess else 0.0

    def holds(self, tolerance: float) -> bool:
        """Whether the gap and the violation of limits are within a tolerance."""
        return self.gap <= tolerance and self.violation <= tolerance


# ---- Rows that are explained one by one


_UNSCALED: Final = 1e-9
"""The least scale of a gap, relative to the objective of zero attributions."""

_MEASURES: Final = ("losses", "value", "excess", "value_of_zero", "violation")
"""Measures of rows, of which some rows are proved as well as all."""


def gaps_of(measures: Mapping[str, Array]) -> Array:
    """The certified gap of each row, (m,): its excess relative to its objective.

    An excess above the objective is cut to it, because no objective is negative.
    """
    value = measures["value"]
    zero = measures["value_of_zero"]
    excess = np.clip(measures["excess"], 0.0, value)
    scale = np.maximum(value, _UNSCALED * zero)
    return quotient(excess, scale, where=excess > 0.0)


def row_proofs(measures: Mapping[str, Array], largest: float = 1.0) -> dict[str, Array]:
    """The gaps of rows, and what their joint proof follows from, as arrays (m, ...)."""
    terms = {name: measures[name] for name in _MEASURES}
    distance = largest * measures["distance"]
    return {"gap": gaps_of(measures), **terms, "distance": distance}


def joint_proof(measures: Mapping[str, Array], largest: float = 1.0) -> Certificate:
    """The certificate of separate rows, for the program with a fixed reference."""
    names = ("value", "excess", "value_of_zero")
    value, excess, zero = (math.fsum(measures[name].tolist()) for name in names)
    return Certificate(
        value=value,
        lower_bound=max(value - excess, 0.0),
        scale=max(value, _UNSCALED * zero),
        kind="strong convexity",
        violation=float(measures["violation"].max()),
        distance=largest * math.hypot(*measures["distance"].tolist()),
    )


# ---- Programs


def certificate_of(
    program: Program,
    weights: Array,
    W: Attributions,
    values: Array,
    *,
    duals: Mapping[str, Array],
    multipliers: Sequence[float] = (),
) -> Certificate:
    """Compute the certificate of W (N, D), in the order of the losses, unchecked.

    ``values`` are those of all losses of the program at W, bounded ones last.
    """
    bounds = program.bounds
    k = len(weights)
    trivial = program.trivial
    value = math.fsum(weights * values[:k])
    excesses = [
        _violation(bound, W, values[n], trivial.scale(bound.limit, _ONE, n))
        for n, bound in enumerate(bounds, start=k)
    ]
    missing = [0.0] * (len(bounds) - len(multipliers))
    prices = [*multipliers, *missing]
    lower, kind, distance = _lower_bound(program, weights, W, values, duals, prices)
    if lower <= 0.0:
        lower = 0.0
        kind = "nonnegative losses"
    return Certificate(
        value=value,
        lower_bound=lower if bounds else min(lower, value),
        scale=trivial.scale(value, weights),
        kind=kind,
        violation=max(excesses, default=0.0),
        # with bounds it is the distance to the optimum of the Lagrangian
        distance=None if program.limits else distance,
    )


_ONE: Final = np.ones(1)


def _lower_bound(
    program: Program,
    weights: Array,
    W: Attributions,
    values: Array,
    duals: Mapping[str, Array],
    prices: Sequence[float],
) -> tuple[float, str, float | None]:
    """A lower bound of L(V) = F(V) + Σ μ (loss(V) − limit) over all V."""
    losses = program.all_losses
    bounds = program.bounds
    if program.kinds["with offset"]:
        G = offset_of(losses)
        if not isinstance(G, Reason):  # values and distances do not change
            inner = without_offset(program, G)
            return _lower_bound(inner, weights, W - G, values, duals, prices)
    if program.kinds["over entries"] and entries_refusal(losses) is None:
        return _entries_bound(program, weights, W, duals, prices)
    rates = weights.tolist()
    for mu, bound in zip(prices, bounds, strict=True):  # row sums restrict V instead
        rates.append(0.0 if is_completeness(bound) else mu)
    terms = positive_terms(rates, losses)
    totals = Totals.of(program)
    if totals is None:
        by_loss = dict(zip(map(id, losses), values.tolist(), strict=True))
        lower, kind, distance = Lagrangian(terms, W, duals, by_loss).lower_bound()
    else:
        lower, kind, distance = _complete_bound(totals, terms, W, duals)
    priced = zip(rates[len(weights) :], bounds, strict=True)
    return lower - math.fsum([mu * b.limit for mu, b in priced]), kind, distance


def _entries_bound(
    program: Program,
    weights: Array,
    W: Attributions,
    duals: Mapping[str, Array],
    prices: Sequence[float],
) -> tuple[float, str, float | None]:
    """The bound of the program of the entries: all others are zero at the optimum."""
    support = Support.of(program.all_losses, (W.shape[0], W.shape[1]))
    inner = support.program(program)
    w = support.values(W)
    lower, kind, distance = _lower_bound(
        inner,
        weights,
        w,
        inner.values_at(w),
        support.duals(program.all_losses, duals),
        prices,
    )
    others = float(np.linalg.norm(W - support.expanded(w)))
    return lower, kind, None if distance is None else math.hypot(distance, others)


def _complete_bound(
    totals: Totals,
    terms: Sequence[tuple[float, PropertyLoss]],
    W: Attributions,
    duals: Mapping[str, Array],
) -> tuple[float, str, float | None]:
    """A lower bound over the V with given row sums."""
    inner = [(c, totals.loss(loss)) for c, loss in terms]
    rotated = {
        loss.name: totals.dual(loss, duals[loss.name])
        for _, loss in terms
        if loss.name in duals
    }
    V = totals.coordinates(W)
    values = {id(loss): loss.value_at(V) for _, loss in inner}
    lower, kind, distance = Lagrangian(inner, V, rotated, values).lower_bound()
    return lower + math.fsum(c * loss.constant for c, loss in inner), kind, distance


def _violation(bound: Bound, W: Attributions, value: float, scale: float) -> float:
    """The relative excess over a limit; for row sums max |Wv − t| over their size."""
    excess = max(value - bound.limit, 0.0)
    if is_completeness(bound):
        assert isinstance(bound.loss.map, RowSums), "see is_complete"
        most = (np.abs(W) * np.abs(bound.loss.map.weights)).sum(axis=1)
        scale = max(float(most.max()), float(np.abs(bound.loss.target).max()))
        excess = largest_entry(bound.loss.residual(W))
    return float(excess / max(scale, sys.float_info.min))
