"""Proof of optimality, computed from the attributions and not from a backend's word.

The arguments stand in :mod:`propopt.lower_bounds`. Bounds ``loss <= limit`` enter as
losses weighted by their multipliers: the optimum of the Lagrangian is a lower bound
too. A limit of zero leaves a part of all V alone, and so do rows with given sums; over
that the same arguments are made (:mod:`propopt.losses.restricted`,
:mod:`propopt.losses.totals`).
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from propopt._typing import Array, Attributions
from propopt.checks import read_nonnegative
from propopt.losses import Bound, Constraint, Objective, PropertyLoss, bounds_of
from propopt.losses.base import read_for
from propopt.losses.effortless import Effortless
from propopt.losses.entries import Support, entries_refusal
from propopt.losses.restricted import Restriction, is_complete, zeros
from propopt.losses.totals import Totals
from propopt.lower_bounds import Lagrangian, values_at
from propopt.maps import RowSums


@dataclass(frozen=True, kw_only=True)
class Certificate:
    """How good an explanation provably is.

    Parameters
    ----------
    value : float
        The objective of the explanation.
    lower_bound : float
        No explanation has a smaller objective.
    scale : float
        What the relative gap is relative to: the value, or 1e-9 of what zero, or the
        mean gradient for all points, would cost, whichever is less, where that is
        larger (an optimum of zero has no scale).
    kind : str
        The argument: ``"strong convexity"``, ``"dual"``, ``"projected dual"``,
        ``"curve"`` for points on exact curves, ``"only explanation"`` where limits of
        zero leave no other, or ``"nonnegative losses"`` where nothing better than zero
        is known.
    violation : float
        The largest relative excess over a bound, or of row sums over their totals; zero
        without bounds.
    distance : float or None
        The optimum is no farther than this from the explanation (Frobenius norm); None
        where that is not known, and with bounds; given row sums are none.
    """

    value: float
    lower_bound: float
    scale: float
    kind: str
    violation: float = 0.0
    distance: float | None = None

    @property
    def gap(self) -> float:
        """(value − lower bound)/scale: the certified relative gap."""
        excess = max(self.value - self.lower_bound, 0.0)
        return excess / self.scale if excess else 0.0

    def holds(self, tolerance: float) -> bool:
        """True if gap and violation of bounds are both within the tolerance."""
        return self.gap <= tolerance and self.violation <= tolerance


def certify(
    objective: Objective | PropertyLoss,
    W: object,
    *,
    duals: Mapping[str, Array] | None = None,
    bounds: Sequence[Constraint] = (),
    multipliers: Sequence[float] = (),
    losses: Mapping[str, float] | None = None,
) -> Certificate:
    """A certificate for any attributions, whoever made them.

    Parameters
    ----------
    objective : Objective
        The weighted losses.
    W : array, DataFrame, Explanation or shap.Explanation (N, D)
        Attributions; rows and columns with names are put in the order of the losses.
    duals : mapping of arrays, optional
        By loss name, a subgradient of weight·φ at the residual. Needed for a tight
        bound where a loss is neither squared nor an ℓ1 norm of W itself; any array is
        safe.
    bounds : sequence of Bound or Completeness, optional
        Constraints that the optimum has to respect.
    multipliers : sequence of float, optional
        One multiplier ≥ 0 for each bound; any are safe.
    losses : mapping, optional
        By name the values of the losses at W, where they are known already.

    Raises
    ------
    InvalidInput
        If W has another shape, other names, or a value that is not finite.

    Examples
    --------
    >>> import numpy as np, propopt as po
    >>> objective = po.GradientMatching(np.eye(3)) + 1.0 * po.Sparsity()
    >>> best = np.eye(3) / 2
    >>> po.certify(objective, best).gap
    0.0
    >>> po.certify(objective, np.zeros((3, 3))).gap > 0.1
    True
    """
    weighed = Objective.of(objective)
    limits = bounds_of(bounds, weighed.losses)
    every = [*weighed.losses, *(bound.loss for bound in limits)]
    array = read_for(every, W, "W")
    free = _linear(limits)
    prices = [
        mu if bound in free else read_nonnegative(mu, "multipliers")
        for mu, bound in zip(multipliers, limits, strict=False)
    ]
    return certificate_of(
        weighed,
        array,
        values_at(every, array, losses or {}),
        duals=duals or {},
        bounds=limits,
        multipliers=prices,
    )


def certificate_of(
    objective: Objective,
    W: Attributions,
    values: Mapping[int, float],
    *,
    duals: Mapping[str, Array],
    bounds: Sequence[Bound] = (),
    multipliers: Sequence[float] = (),
    effortless: Effortless | None = None,
) -> Certificate:
    """The certificate of W (N, D) in the order of the losses; nothing is checked.

    Parameters
    ----------
    values : mapping
        The losses of objective and bounds at W, by their id; see :func:`values_at`.
    effortless : Effortless, optional
        What explanations without work cost by the same losses, where that is known.
    """
    every = [*objective.losses, *(bound.loss for bound in bounds)]
    effortless = effortless or Effortless.of(every)
    effortless.refuse_underflow(objective.weights)
    value = math.fsum(c * values[id(loss)] for c, loss in objective.terms)
    excesses = [_violation(b, W, values[id(b.loss)], effortless) for b in bounds]
    prices = [*multipliers, *(0.0 for _ in bounds)]  # zero where there are too few
    lower, kind, distance = _lower_bound(
        objective, W, values, duals, list(zip(prices, bounds, strict=False))
    )
    if lower <= 0.0:
        lower, kind = 0.0, "nonnegative losses"
    return Certificate(
        value=value,
        lower_bound=lower if bounds else min(lower, value),
        scale=effortless.scale(value, objective.weights),
        kind=kind,
        violation=max(excesses, default=0.0),
        # with bounds it is the distance to the optimum of the Lagrangian
        distance=distance if all(map(is_complete, bounds)) else None,
    )


def _lower_bound(
    objective: Objective,
    W: Attributions,
    values: Mapping[int, float],
    duals: Mapping[str, Array],
    prices: Sequence[tuple[float, Bound]],
) -> tuple[float, str, float | None]:
    """The least that L(V) = F(V) + Σ μ (loss(V) − limit) can be; see Lagrangian."""
    bounds = [bound for _, bound in prices]
    every = [*objective.losses, *(bound.loss for bound in bounds)]
    if entries_refusal(every) is None:
        support = Support.of(every, (W.shape[0], W.shape[1]))
        return _entries_bound(support, objective, W, duals, prices)
    linear = _linear(bounds)  # which V respect these is known instead
    priced = [(mu, bound) for mu, bound in prices if bound not in linear]
    extra = [(mu, bound.loss) for mu, bound in priced]
    terms = [(c, loss) for c, loss in (*objective.terms, *extra) if c > 0]
    if linear:
        lower, kind, distance = _restricted_bound(linear, terms, W, duals)
    else:
        lower, kind, distance = Lagrangian(terms, W, duals, values).lower_bound()
    return lower - math.fsum(mu * b.limit for mu, b in priced), kind, distance


def _entries_bound(
    support: Support,
    objective: Objective,
    W: Attributions,
    duals: Mapping[str, Array],
    prices: Sequence[tuple[float, Bound]],
) -> tuple[float, str, float | None]:
    """That of the program of the entries: all others are zero at the optimum."""
    inner = Objective.trusted(
        tuple((c, support.loss(loss)) for c, loss in objective.terms)
    )
    priced = [(mu, support.bound(bound)) for mu, bound in prices]
    w, others = support.values(W), support.without(W)
    lower, kind, distance = _lower_bound(
        inner,
        w,
        values_at([*inner.losses, *(bound.loss for _, bound in priced)], w, {}),
        support.duals([*objective.losses, *(b.loss for _, b in prices)], duals),
        priced,
    )
    return lower, kind, None if distance is None else math.hypot(distance, others)


_Terms: TypeAlias = list[tuple[float, PropertyLoss]]


def _linear(bounds: Sequence[Bound]) -> list[Bound]:
    """Those that are linear constraints: limits of zero."""
    return [*zeros(bounds), *(bound for bound in bounds if is_complete(bound))]


def _restricted_bound(
    linear: Sequence[Bound],
    terms: _Terms,
    W: Attributions,
    duals: Mapping[str, Array],
) -> tuple[float, str, float | None]:
    """A lower bound over the V that limits of zero allow; see :class:`Lagrangian`."""
    restriction = Restriction.of(linear, (W.shape[0], W.shape[1]))
    if restriction is None:
        return _complete_bound(linear, terms, W, duals)
    if restriction.only is not None:
        value = math.fsum(c * loss.value_at(restriction.only) for c, loss in terms)
        return value, "only explanation", None
    inner = [(c, restriction.loss(loss)) for c, loss in terms]
    zero = zeros(linear)
    rest = [restriction.bound(bound, zero) for bound in linear if bound not in zero]
    left = [bound for bound in rest if bound is not None]
    U = restriction.coordinates(W)
    lower, kind, distance = _complete_bound(left, list(inner), U, duals)
    return lower + math.fsum(c * loss.constant for c, loss in inner), kind, distance


def _complete_bound(
    linear: Sequence[Bound],
    terms: _Terms,
    W: Attributions,
    duals: Mapping[str, Array],
) -> tuple[float, str, float | None]:
    """A lower bound over the V with given row sums, where there are such."""
    totals = Totals.of(linear)
    if totals is None:
        values = values_at([loss for _, loss in terms], W, {})
        return Lagrangian(terms, W, duals, values).lower_bound()
    inner = [(c, totals.loss(loss)) for c, loss in terms]
    turned = {
        loss.name: totals.dual(loss, duals[loss.name])
        for _, loss in terms
        if loss.name in duals
    }
    V = totals.coordinates(W)
    values = values_at([loss for _, loss in inner], V, {})
    lower, kind, distance = Lagrangian(inner, V, turned, values).lower_bound()
    return lower + math.fsum(c * loss.constant for c, loss in inner), kind, distance


def _violation(
    bound: Bound, W: Attributions, value: float, effortless: Effortless
) -> float:
    """The relative excess of a loss over its limit; of row sums, how far they are off.

    max |W v − t| is relative to the largest sum that the entries could have.
    """
    tiny = sys.float_info.min
    if is_complete(bound):
        assert isinstance(bound.loss.map, RowSums), "see is_complete"
        most = (np.abs(W) * np.abs(bound.loss.map.weights)).sum(axis=1)
        scale = max(float(most.max()), float(np.abs(bound.loss.target).max()))
        return float(np.abs(bound.loss.residual(W)).max()) / max(scale, tiny)
    scale = effortless.scale(bound.limit, {bound.loss.name: 1.0})
    return max(value - bound.limit, 0.0) / max(scale, tiny)
