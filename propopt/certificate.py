"""Proof of optimality, computed from the attributions and not from a backend's word.

The arguments stand in :mod:`propopt.lower_bounds`. Bounds ``loss <= limit`` enter as
losses weighted by their multipliers: the optimum of the Lagrangian is a lower bound
too. A limit of zero leaves a part of all V alone, over which the same arguments are
made (:mod:`propopt.losses.restricted`).
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from propopt._typing import Array, Attributions
from propopt.checks import read_nonnegative
from propopt.losses import Bound, Objective, PropertyLoss
from propopt.losses.base import read_for
from propopt.losses.effortless import Effortless
from propopt.losses.restricted import Restriction, zeros
from propopt.lower_bounds import Lagrangian, values_at


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
        The largest relative excess over a bound; zero without bounds.
    distance : float or None
        The optimum is no farther than this from the explanation (Frobenius norm); None
        where that is not known, and with bounds.
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
    bounds: Sequence[Bound] = (),
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
    bounds : sequence of Bound, optional
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
    every = [*weighed.losses, *(bound.loss for bound in bounds)]
    array = read_for(every, W, "W")
    free = zeros(bounds)
    prices = [
        mu if bound in free else read_nonnegative(mu, "multipliers")
        for mu, bound in zip(multipliers, bounds, strict=False)
    ]
    return certificate_of(
        weighed,
        array,
        values_at(every, array, losses or {}),
        duals=duals or {},
        bounds=bounds,
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
    value = math.fsum(c * values[id(loss)] for c, loss in objective.terms)
    excesses = [_violation(b, values[id(b.loss)], effortless) for b in bounds]
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
        distance=None if bounds else distance,
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
    restriction = Restriction.of(bounds, (W.shape[0], W.shape[1]))
    free = zeros(bounds)  # which V respect a limit of zero is known instead
    priced = [(mu, bound) for mu, bound in prices if bound not in free]
    extra = [(mu, bound.loss) for mu, bound in priced]
    terms = [(c, loss) for c, loss in (*objective.terms, *extra) if c > 0]
    if restriction is None:
        lower, kind, distance = Lagrangian(terms, W, duals, values).lower_bound()
    else:
        lower, kind, distance = _restricted_bound(restriction, terms, W, duals)
    return lower - math.fsum(mu * b.limit for mu, b in priced), kind, distance


def _restricted_bound(
    restriction: Restriction,
    terms: list[tuple[float, PropertyLoss]],
    W: Attributions,
    duals: Mapping[str, Array],
) -> tuple[float, str, float | None]:
    """A lower bound over the V that limits of zero allow; see :class:`Lagrangian`."""
    if restriction.only is not None:
        value = math.fsum(c * loss.value_at(restriction.only) for c, loss in terms)
        return value, "only explanation", None
    inner = [(c, restriction.loss(loss)) for c, loss in terms]
    U = restriction.coordinates(W)
    values = values_at([loss for _, loss in inner], U, {})
    lower, kind, distance = Lagrangian(inner, U, duals, values).lower_bound()
    return lower + math.fsum(c * loss.constant for c, loss in inner), kind, distance


def _violation(bound: Bound, value: float, effortless: Effortless) -> float:
    """The relative excess of a loss over its limit."""
    tiny = sys.float_info.min
    scale = effortless.scale(bound.limit, {bound.loss.name: 1.0})
    return max(value - bound.limit, 0.0) / max(scale, tiny)
