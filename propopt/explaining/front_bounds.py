"""Bounds that solved weights give for all weights between them and the whole front.

The optimal value F_c* = min_W c·ℓ(W) is concave in the weights c, as a minimum of
linear functions, and positively homogeneous. Optima at weights c_i with losses ℓ_i and
proved lower bounds F_i ≤ F* therefore bound the optimum at any other weights c ≥ 0:

    max {Σ t_i F_i : Σ t_i c_i ≤ c, t ≥ 0}  ≤  F_c*  ≤  min_i c·ℓ_i.

The lower bound mixes the duals of the solved optima: the duals of F_i times t_i are
feasible for Σ t_i c_i, and losses are not negative (where rows have to add up, losses
are counted from the least value that complete rows allow). The upper bound comes from
the optima themselves. On a line between two weights the lower bound is the chord. The
ratio of both bounds is extreme where the two upper bounds cross, or at an end, because
a ratio of linear functions is monotone.

**The error of a front.** Attainable losses lie above all planes c_i·y = F_i (the outer
approximation), and mixtures of the optima have at most their mixed losses (the inner
approximation). With losses y scaled by their ranges between the ends of the front, the
error is the least ε such that a mixture matches each y above the planes to within ε in
every loss:

    ε = max_c  min_i c·y_i − min {c·y : y ≥ 0, c_i·y ≥ F_i for all i},   Σ c_j = 1.

The first term is concave and linear between normals of the inner hull, the second is
concave, so the maximum is at a normal of the hull. That weight is solved next (sandwich
algorithms; Rennen, van Dam and den Hertog, "Enhancement of sandwich algorithms for
approximating higher-dimensional convex Pareto sets", 2011).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Self, final

import numpy as np
import scipy.optimize as opt
import scipy.spatial as spatial

from propopt.base.arrays import Array
from propopt.base.checks import largest_entry
from propopt.base.errors import InvalidInput, Refused
from propopt.losses import Program
from propopt.proofs.ideal_nadir import IdealNadir
from propopt.results.explanation import Explanation


MOST_LOSSES = 4
"""Losses of a front with an error; more would have too many corners to enumerate."""

_ROUNDING = 1e-9
"""Relative rounding error of the normals of a hull."""


@final
@dataclass(frozen=True, eq=False)
class FrontBounds:
    """Bounds on the optimum at any weights, from P optima of the same k losses."""

    weights: Array  # (P, k): c_i ≥ 0
    losses: Array  # (P, k): ℓ_i
    lower: Array  # (P,): F_i, at most the least of c_i·ℓ
    least: Array  # (k,): least losses that complete rows allow

    @classmethod
    def of(cls, optimized: Sequence[Explanation], names: Sequence[str]) -> FrontBounds:
        """Collect optima with a weight for each loss; those with limits are left out.

        Raises
        ------
        InvalidInput
            If no optimum has a weight for each loss.
        """
        with_weights = [
            x for x in optimized if x.weights.keys() >= set(names) and x.certificate
        ]
        if not with_weights:
            raise InvalidInput(
                "between: expected an optimum with a weight for each loss; there are "
                "no bounds between optima that were solved with limits on losses"
            )
        details = with_weights[0].details
        least = [details.get(f"irreducible.{name}", 0.0) for name in names]
        return cls(
            np.array([[x.weights[name] for name in names] for x in with_weights]),
            np.array([[x.losses[name] for name in names] for x in with_weights]),
            np.array(
                [x.certificate.lower_bound for x in with_weights if x.certificate]
            ),
            (1.0 - _ROUNDING) * np.array(least, dtype=np.float64),
        )

    def bounds(self, c: Array) -> tuple[float, float]:
        """Lower and upper bound of the optimal objective at weights c (k,)."""
        upper = float((self.losses @ c).min())
        least = float(c @ self.least)
        above = self.lower - self.weights @ self.least
        # t_i c_i as shares of c, so that tolerances do not depend on units; optima with
        # a weight where c has a zero give no bound
        free = ~self.weights[:, c <= 0.0].any(axis=1)
        if not (free.any() and (c > 0.0).any()):
            return min(least, upper), upper
        shares = self.weights[free][:, c > 0.0] / c[c > 0.0]
        most = shares.max(axis=1)
        gains = above[free] / most
        u = opt.linprog(
            -gains / (largest_entry(gains) or 1.0),
            A_ub=(shares / most[:, None]).T,
            b_ub=np.ones(shares.shape[1]),
            bounds=(0.0, None),
        ).x
        u = np.maximum(u, 0.0)
        # correct the rounding of u: scale Σ t_i c_i below c
        excess = max(float((u / most @ shares).max()), 1.0)
        bound = max(float(u @ gains) / excess, 0.0)
        return min(least + bound, upper), upper

    def gap(self) -> float | None:
        """Largest relative gap between neighbouring weights, if only one weight varies.

        None if no weight varies, or several do.
        """
        varied = np.ptp(self.weights, axis=0) > 0.0
        if varied.sum() != 1:
            return None
        order = np.argsort(self.weights[:, varied.argmax()], kind="stable")
        return max(self._gap_of(first, last) for first, last in pairwise(order))

    def _gap_of(self, first: int, last: int) -> float:
        """Largest (upper − lower)/upper on the line between two weights."""
        ends = self.weights[[first, last]]
        rows = [first, last]
        upper = ends @ self.losses[rows].T  # of each optimum, at both ends
        lower = self.lower[rows]
        slopes = upper[1] - upper[0]
        steeper = float(slopes[0] - slopes[1])
        crossing = float(upper[0, 1] - upper[0, 0]) / steeper if steeper > 0.0 else 0.0
        gaps = []
        for s in (0.0, min(max(crossing, 0.0), 1.0), 1.0):
            high = float((upper[0] + s * slopes).min())
            low = float((1.0 - s) * lower[0] + s * lower[1])
            gaps.append((high - low) / high if high > low else 0.0)
        return max(gaps)


def is_above(losses: Array, points: Array, margin: float) -> bool:
    """Whether a mixture of points improves every loss by more than a relative margin.

    Losses are convex: a mixture of attributions has at most the mixed losses. So
    losses (k,) that a mixture of points (P, k) beats are not on the front:
    c·ℓ > min_i c·ℓ_i ≥ F_c* for all weights c ≥ 0. The mixture is checked afterwards.
    """
    if not len(points) or not (losses > 0.0).all():
        return False
    shares = points / losses  # minimise the largest ratio over mixtures
    P, k = shares.shape
    solution = opt.linprog(
        np.append(np.zeros(P), 1.0),
        A_ub=np.column_stack([shares.T, -np.ones(k)]),
        b_ub=np.zeros(k),
        A_eq=np.append(np.ones(P), 0.0)[None],
        b_eq=[1.0],
        bounds=(0.0, None),
    ).x
    if solution is None:
        return False
    t = np.maximum(solution[:-1], 0.0)
    total = float(t.sum())
    return total > 0.0 and float((t @ shares).max()) / total < 1.0 - margin


# ---- A front with a given error: choosing the next weights


@final
@dataclass(eq=False)
class Sandwich:
    """An inner and an outer approximation of a front, and where to refine them."""

    ranges: Array  # (k,): worst minus best loss, at the ends of the front
    faithful: int  # index of the faithfulness loss
    error: float  # the requested error, as a share of the ranges
    reached: float | None = None  # the error so far; None at the start

    @classmethod
    def of(cls, program: Program, ends: IdealNadir, error: float) -> Self:
        """Start from the losses of a program and the ends of its front.

        Raises
        ------
        Refused
            If there are too few or too many losses, not one loss of faithfulness, or
            bounds other than completeness.
        """
        losses = program.losses
        if not 2 <= len(losses) <= MOST_LOSSES:
            raise Refused(
                f"error: expected 2 to {MOST_LOSSES} losses in the objective, got "
                f"{len(losses)}"
            )
        faithful = [n for n, loss in enumerate(losses) if loss.name in ends.faithful]
        if len(faithful) != 1:
            raise Refused(
                "error: expected exactly one loss of faithfulness in the objective, "
                f"got {len(faithful)}"
            )
        pairs = [ends.range_of(loss.name) for loss in losses]
        if program.limits:
            raise Refused(
                "error: with it, subject_to takes only po.losses.Completeness"
            )
        ranges = np.array([worst - best for best, worst in pairs])
        return cls(ranges, faithful[0], error)

    @property
    def seeds(self) -> list[Array]:
        """First weights (k,): nearly all on faithfulness, and nearly none on it."""
        most = np.eye(len(self.ranges))[self.faithful]
        return [self._weights(most), self._weights(1.0 - most)]

    def _weights(self, shares: Array) -> Array:
        """Weights for given shares, scaled to 1 for faithfulness."""
        c = shares / shares.sum()
        c[self.faithful] = max(c[self.faithful], self.error / (10.0 * len(c)))
        c /= self.ranges
        return c / c[self.faithful]

    def widest(self, bounds: FrontBounds) -> tuple[float, Array]:
        """The error of the front so far, and the weights (k,) to solve next."""
        k = len(self.ranges)
        Y = (bounds.losses - bounds.least) / self.ranges
        C = bounds.weights * self.ranges
        F = (bounds.lower - bounds.weights @ bounds.least) / C.sum(axis=1)
        C /= C.sum(axis=1, keepdims=True)
        hull = spatial.ConvexHull(np.vstack([Y, *(Y + unit for unit in np.eye(k))]))
        normals = -hull.equations[:, :-1]
        normals = normals[(normals >= -_ROUNDING).all(axis=1)]
        normals[normals <= _ROUNDING] = 0.0
        normals /= normals.sum(axis=1, keepdims=True)
        outer = normals @ self._corners(C, F).T
        gaps = (normals @ Y.T).min(axis=1) - outer.min(axis=1)
        worst = int(gaps.argmax())
        return float(gaps[worst]), self._weights(normals[worst])

    def _corners(self, C: Array, F: Array) -> Array:
        """Corners (·, k) of {y ≥ 0 : C y ≥ F}, within a box that contains them all."""
        k = C.shape[1]
        inside = np.full(k, F.max() + 1.0)
        most = float(inside[0] / C[C > 0.0].min())
        half = np.vstack(
            [
                np.column_stack([-C, F]),
                np.column_stack([-np.eye(k), np.zeros(k)]),
                np.column_stack([np.eye(k), np.full(k, -most)]),
            ]
        )
        return spatial.HalfspaceIntersection(half, inside).intersections
