"""What solved weights prove of all weights between them, and of the whole front.

The least of weighted losses, F_c* = min_W c·ℓ(W), is concave in c, as a minimum of
linear functions, and t F_c* for weights t c. So optima at weights c_i, of losses ℓ_i
with proved lower bounds F_i ≤ F*, bound that of any other weights c ≥ 0:

    max {Σ t_i F_i : Σ t_i c_i ≤ c, t ≥ 0}  ≤  F_c*  ≤  min_i c·ℓ_i.

Below are the duals of the solved optima, mixed: as the duals of F_i times t_i they are
feasible for Σ t_i c_i, and losses are not negative (where rows have to add up, what no
explanation is below counts as zero). Above are the optima themselves. On
a line between two weights the lower bound is the chord, and their quotient is extreme
where both upper bounds cross, or at an end: a ratio of linear functions is monotone.

**The error of a front.** What can be had lies above all planes c_i·y = F_i (the outer
approximation), and mixtures of the optima have no more than their mixed losses (the
inner one). With losses in shares y of their ranges between the ends of the front, the
error is the least ε such that each y above the planes is met by a mixture, to within ε
in every loss:

    ε = max_c  min_i c·y_i − min {c·y : y ≥ 0, c_i·y ≥ F_i for all i},   Σ c_j = 1.

The first is concave and linear between normals of the inner hull, the second concave,
so that the largest is at a normal of the hull: that weight is solved next (sandwich
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
from propopt.base.errors import InvalidInput, Refused
from propopt.losses import Program
from propopt.losses.restricted import is_completeness
from propopt.proofs.ideal_nadir import IdealNadir
from propopt.results.explanation import Explanation


MOST_LOSSES = 4
"""Of a front with an error: corners of its approximations are too many beyond."""

_ROUNDING = 1e-9
"""Normals of a hull are known to within this."""


@final
@dataclass(frozen=True, eq=False)
class FrontBounds:
    """What P optima prove of other weights of the same k losses."""

    weights: Array  # (P, k): c_i ≥ 0
    losses: Array  # (P, k): ℓ_i
    lower: Array  # (P,): F_i, at most the least of c_i·ℓ
    least: Array  # (k,): what no explanation is below, where rows have to add up

    @classmethod
    def of(cls, optimized: Sequence[Explanation], names: Sequence[str]) -> FrontBounds:
        """Of optima that have weights alone; those with limits of a loss are left out.

        Raises
        ------
        InvalidInput
            If there are none.
        """
        own = [x for x in optimized if x.weights.keys() >= set(names) and x.certificate]
        if not own:
            raise InvalidInput(
                "between: no optimum has a weight for each loss; limits say nothing of "
                "the weights between them"
            )
        proofs = (x.certificate for x in own)
        least = [own[0].details.get(f"irreducible.{name}", 0.0) for name in names]
        return cls(
            np.array([[x.weights[name] for name in names] for x in own]),
            np.array([[x.losses[name] for name in names] for x in own]),
            np.array([0.0 if proof is None else proof.lower_bound for proof in proofs]),
            (1.0 - _ROUNDING) * np.array(least, dtype=np.float64),
        )

    def bounds(self, c: Array) -> tuple[float, float]:
        """Of the optimum at weights c (k,): no less, and no more, than these."""
        upper, least = float((self.losses @ c).min()), float(c @ self.least)
        above = self.lower - self.weights @ self.least
        # t_i c_i as shares of c, so that no tolerance depends on units; where c has a
        # zero, optima that have a weight there say nothing
        free = ~self.weights[:, c <= 0.0].any(axis=1)
        if not (free.any() and (c > 0.0).any()):
            return min(least, upper), upper
        shares = self.weights[free][:, c > 0.0] / c[c > 0.0]
        most = shares.max(axis=1)
        gains = above[free] / most
        u = opt.linprog(
            -gains / (float(np.abs(gains).max()) or 1.0),
            A_ub=(shares / most[:, None]).T,
            b_ub=np.ones(shares.shape[1]),
            bounds=(0.0, None),
        ).x
        u = np.maximum(u, 0.0)
        # rounding of u is mended: Σ t_i c_i is brought below c
        excess = max(float((u / most @ shares).max()), 1.0)
        bound = max(float(u @ gains) / excess, 0.0)
        return min(least + bound, upper), upper

    def gap(self) -> float | None:
        """The largest relative gap at weights between neighbours, where one varies.

        None where no weight varies, or several do.
        """
        varied = np.ptp(self.weights, axis=0) > 0.0
        if varied.sum() != 1:
            return None
        order = np.argsort(self.weights[:, varied.argmax()], kind="stable")
        return max(self._gap_of(first, last) for first, last in pairwise(order))

    def _gap_of(self, first: int, last: int) -> float:
        """(upper − lower)/upper where it is largest on the line between two weights."""
        ends, places = self.weights[[first, last]], [first, last]
        upper = ends @ self.losses[places].T  # at both ends, of each optimum
        lower = self.lower[places]
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
    """Whether a mixture of points has less of every loss, by more than a share.

    Losses are convex: a mixture of attributions has at most the mixed losses. So
    losses (k,) that a mixture of points (P, k) beats are on no front, as
    c·ℓ > min_i c·ℓ_i ≥ F_c* for all weights c ≥ 0. Mixtures that are found are checked.
    """
    if not len(points) or not (losses > 0.0).all():
        return False
    shares = points / losses  # of mixtures the largest share is to be small
    P, k = shares.shape
    found = opt.linprog(
        np.append(np.zeros(P), 1.0),
        A_ub=np.column_stack([shares.T, -np.ones(k)]),
        b_ub=np.zeros(k),
        A_eq=np.append(np.ones(P), 0.0)[None],
        b_eq=[1.0],
        bounds=(0.0, None),
    ).x
    if found is None:
        return False
    t = np.maximum(found[:-1], 0.0)
    total = float(t.sum())
    return total > 0.0 and float((t @ shares).max()) / total < 1.0 - margin


# ---- A front with an error: where the next weights are


@final
@dataclass(eq=False)
class Sandwich:
    """A front between two approximations, in shares of the ranges of its losses."""

    ranges: Array  # (k,): from best to worst, at the ends of the front
    faithful: int  # which of them is the faithfulness loss
    error: float  # that is wanted
    reached: float | None = None  # None before there is an optimum for each loss

    @property
    def is_reached(self) -> bool:
        """Whether the front is known as well as is wanted."""
        return self.reached is not None and self.reached <= self.error

    @classmethod
    def of(cls, program: Program, ends: IdealNadir, error: float) -> Self:
        """Of the losses of a program.

        Raises
        ------
        Refused
            If there is nothing to trade, or the ends of the front are not known.
        """
        losses = program.losses
        if not 2 <= len(losses) <= MOST_LOSSES:
            raise Refused(
                f"error: fronts of 2 to {MOST_LOSSES} losses have one, and there are "
                f"{len(losses)}"
            )
        own = [n for n, loss in enumerate(losses) if loss.name in ends.faithful]
        if len(own) != 1:
            raise Refused(
                "error: a front with an error has one loss of faithfulness, and there "
                f"are {len(own)}"
            )
        pairs = [ends.range_of(loss.name) for loss in losses]
        if not all(map(is_completeness, program.bounds)):
            raise Refused(
                "error: beside it subject_to takes po.losses.Completeness alone"
            )
        ranges = np.array([worst - best for best, worst in pairs])
        return cls(ranges, own[0], error)

    @property
    def seeds(self) -> list[Array]:
        """The weights (k,) of both ends: faithfulness alone, and next to nothing."""
        near = np.eye(len(self.ranges))[self.faithful]
        return [self._weights(near), self._weights(1.0 - near)]

    def _weights(self, shares: Array) -> Array:
        """Those of some shares, that of faithfulness one; it never counts nothing."""
        c = shares / shares.sum()
        c[self.faithful] = max(c[self.faithful], self.error / (10.0 * len(c)))
        c /= self.ranges
        return np.asarray(c / c[self.faithful])

    def widest(self, known: FrontBounds) -> tuple[float, Array]:
        """The error of the front so far, and the weights (k,) that lessen it most."""
        k = len(self.ranges)
        Y = (known.losses - known.least) / self.ranges
        C = known.weights * self.ranges
        F = (known.lower - known.weights @ known.least) / C.sum(axis=1)
        C /= C.sum(axis=1, keepdims=True)
        hull = spatial.ConvexHull(np.vstack([Y, *(Y + own for own in np.eye(k))]))
        normals = -hull.equations[:, :-1]
        normals = normals[(normals >= -_ROUNDING).all(axis=1)]
        normals[normals <= _ROUNDING] = 0.0
        normals /= normals.sum(axis=1, keepdims=True)
        outer = normals @ self._corners(C, F).T
        gaps = (normals @ Y.T).min(axis=1) - outer.min(axis=1)
        worst = int(gaps.argmax())
        return float(gaps[worst]), self._weights(normals[worst])

    def _corners(self, C: Array, F: Array) -> Array:
        """Corners (·, k) of {y ≥ 0 : C y ≥ F}; no corner is beyond the box."""
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
        corners: Array = spatial.HalfspaceIntersection(half, inside).intersections
        return corners
