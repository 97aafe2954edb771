"""The exact front between solved weights, from few numbers: a rational Krylov space.

Let all losses be squared, and c the weight of one of them, B(W). The optimum of
F(W) + c B(W) is a rational function of c, and optima for a dozen values of c span a
space that nearly contains those for all values between (Druskin, Lieberman, Zaslavsky:
"On adaptive choice of shifts in rational Krylov subspace reduction", 2010). With one
optimum W₀ and directions Q of that space, F and B are quadratic forms of few
coordinates, which a generalised eigenvalue problem makes diagonal together: with
SᵀMS = I for F and SᵀPS = diag(θ) for B,

    W(c) = W_∞ + Σ_k Z_k / (1 + c θ_k),    Z_k = (q_k/θ_k − p_k) (Q S)_k,
    W_∞ = W₀ − Σ_k (q_k/θ_k) (Q S)_k,

where 2p and 2q are the gradients of F and B at W₀ along Q S. Row sums are
preserved, as all directions are differences of optima. Solved optima are added until
the others are reproduced; midway between solved weights the distance to the optimum is
then proved from W(c) itself (:func:`propopt.proofs.certify`).

Explanations are a class of a higher room, so they are used by their attributes.

"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias, final

import numpy as np
import scipy.linalg as la

from propopt.base.arrays import Array, Attributions
from propopt.base.checks import evenly_spaced
from propopt.base.errors import UncertifiedWarning
from propopt.base.text import Reason
from propopt.losses import Program, PropertyLoss
from propopt.losses.completeness import Totals, is_completeness
from propopt.proofs.certificate import certificate_of
from propopt.proofs.curvature import all_squared_refusal


MOST_ERROR: Final = 1e-6
"""The largest relative error of a front, in units of the largest attribution."""

_AIM: Final = 1e-9
"""Optima reproduced to this relative error are not added."""

_SAME: Final = 1e-12
"""Relative size below which a direction is rounding of others."""

_SMALL: Final = 1e-14
"""Relative size of θ below which a direction does not change the varied loss."""


Form: TypeAlias = tuple[float, Array, Array]
"""A loss along the front, c + 2 p·h + hᵀ P h: c, p (k,) and P (k, k)."""


@final
@dataclass(frozen=True, eq=False)
class ExactFront:
    """Optima for all weights of one loss between two: W_∞ + Σ_k Z_k/(1 + c θ_k).

    Examples
    --------
    >>> import numpy as np, propopt as po
    >>> robust = po.PairwiseRobustness(po.graphs.chain_graph(9))
    >>> objective = po.GradientMatching(np.eye(9)) + robust
    >>> weights = np.logspace(-2, 2, 9)
    >>> curve = po.sweep(objective, {robust.name: weights})
    >>> front = ExactFront.of(curve.optimized, robust.name)
    >>> best = po.solve(objective.with_weights({robust.name: 0.5}))
    >>> bool(np.allclose(front.attributions(0.5), best.attributions, atol=1e-6))
    True
    """

    loss: str  # the loss with the varied weight
    ends: tuple[float, float]  # its least and its largest weight
    theta: Array  # (k,)
    far: Attributions  # (N, D): W_∞
    parts: Array  # (k, N, D): Z_k
    forms: Mapping[str, Form]  # of each loss, by name
    error: float  # of the largest attribution: the proved distance, where it was proved
    gap: float  # the certified gap there
    n_proved: int  # at how many weights, midway between those solved

    @classmethod
    def of(
        cls, optima: Sequence[Any], loss: str, solve: Callable[..., Any] | None = None
    ) -> ExactFront | Reason:
        """Make the front through optima that differ in the weight of one loss.

        Where they are too far apart, or not exact enough, and a solver is given, others
        are solved for the front alone.
        """
        program = optima[0].program if optima else None
        if program is None:
            return Reason("the losses are not available, as in a saved result")
        reason = all_squared_refusal(program)
        if reason is not None or not all(map(is_completeness, program.bounds)):
            return Reason(reason or "there are bounds on losses")
        if np.prod(optima[0].shape) > _MOST_NUMBERS:
            return Reason(f"there are more than {_MOST_NUMBERS:,} attributions")
        weights = {best.weights[loss]: best for best in optima if best.weights[loss]}
        if len(weights) < _FEWEST:
            return Reason(f"fewer than {_FEWEST} weights were solved")
        ascending = sorted(weights.items())
        spread = evenly_spaced(len(ascending), _MOST_SOLVED)
        solved = dict(ascending[i] for i in spread)
        first, *others = (best.attributions for best in solved.values())
        if all(np.array_equal(W, first) for W in others):
            return Reason("all optima are the same")
        front = _reduced(program, loss, solved)
        if front.error > MOST_ERROR and solve is not None:
            nodes = np.geomspace(*front.ends, _SIZES[-1]).tolist()
            fixed = {x.name: optima[0].weights[x.name] for x in program.losses}
            front = _reduced(program, loss, _solved(program, fixed, loss, nodes, solve))
        if front.error > MOST_ERROR:
            return Reason(f"between solved weights its error may be {front.error:.1g}")
        return front

    def shares(self, weight: float) -> Array:
        """The factors 1/(1 + c θ_k) at a weight c, shape (k,)."""
        return 1.0 / (1.0 + weight * self.theta)

    def attributions(self, weight: float) -> Attributions:
        """The attributions W(c) at a weight c, shape (N, D)."""
        return self.far + np.tensordot(self.shares(weight), self.parts, axes=1)

    def losses(self, weight: float) -> dict[str, float]:
        """Each loss of W(c) at a weight c, by name."""
        h = self.shares(weight)
        return {
            name: max(float(c + (2.0 * p @ h + h @ P @ h)), 0.0)
            for name, (c, p, P) in self.forms.items()
        }


_FEWEST: Final = 3
"""The smallest number of solved weights."""

_MOST_SOLVED: Final = 60
"""The largest number of compared optima, and of intervals with a proof."""

_MOST_NUMBERS: Final = 1_000_000
"""The largest number of attributions, as a dozen such arrays are in memory."""

_SIZES: Final = (8, 10, 13, 16, 20, 25)
"""Numbers of optima to try until the others are reproduced."""

_TIGHT: Final = 1e-14
"""The gap of optima solved only for a front."""


def _solved(
    program: Program,
    weights: Mapping[str, float],
    loss: str,
    nodes: Sequence[float],
    solve: Callable[..., Any],
) -> dict[float, Any]:
    """Optima at given weights of one loss, as accurate as possible."""
    objective = program.weighed(np.array([weights[x.name] for x in program.losses]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UncertifiedWarning)  # the front is proved
        return {
            c: solve(
                objective.with_weights({loss: c}),
                subject_to=program.bounds,
                tolerance=_TIGHT,
            )
            for c in nodes
        }


def _reduced(program: Program, loss: str, solved: Mapping[float, Any]) -> ExactFront:
    """Add optima until the others are reproduced; prove the front between them."""
    weights = list(solved)
    optima = [best.attributions for best in solved.values()]
    rates = next(iter(solved.values())).weights
    terms = [(rates[x.name], x) for x in program.losses]
    totals = Totals.of(program.bounds)
    size = max(float(np.abs(W).max()) for W in optima) or 1.0
    for count in _SIZES:
        added = set(evenly_spaced(len(optima), count))
        front = _through(
            terms, loss, weights, [optima[i] for i in sorted(added)], totals
        )
        errors = (
            np.abs(front.attributions(weights[i]) - optima[i]).max()
            for i in set(range(len(optima))) - added
        )
        if all(error <= _AIM * size for error in errors):
            break
    error = gap = 0.0
    midway = np.sqrt(np.multiply(weights[1:], weights[:-1]))
    for c in midway.tolist():
        W = front.attributions(c)
        coefficients = [c if x.name == loss else weight for weight, x in terms]
        proof = certificate_of(
            program,
            np.array(coefficients),
            W,
            program.values_at(W),
            duals={},
        )
        distance = proof.distance
        error = max(error, np.inf if distance is None else distance / size)
        gap = max(gap, proof.gap)
    return replace(front, error=error, gap=gap, n_proved=len(midway))


def _through(
    terms: Sequence[tuple[float, PropertyLoss]],
    loss: str,
    weights: Sequence[float],
    optima: Sequence[Attributions],
    totals: Totals | None,
) -> ExactFront:
    """The front in the space of some optima, not yet proved."""
    W0 = optima[0]
    shape = optima[0].shape
    moves = np.stack([(W - W0).ravel() for W in optima[1:]], axis=1)
    sizes = np.linalg.norm(moves, axis=0)
    Q, sigma, _ = la.svd(moves / np.where(sizes > 0.0, sizes, 1.0), full_matrices=False)
    Q = Q[:, sigma > _SAME * sigma[0]].T.reshape(-1, *shape)
    if totals is not None:  # remove rounding
        Q = np.stack([totals.coordinates(q) for q in Q])
    k = len(Q)
    # half the Hessian of each loss in Q, and half its gradient at W0
    hessians = {
        x.name: _products(Q, np.stack([x.map.normal(q) for q in Q])) for _, x in terms
    }
    slopes = {
        x.name: _products(Q, 0.5 * x.gradient_at(W0)[None])[:, 0] for _, x in terms
    }
    fixed = [(c, x.name) for c, x in terms if x.name != loss]
    M = np.sum([c * hessians[name] for c, name in fixed], axis=0)
    theta, S = la.eigh(hessians[loss], M)
    theta = np.where(theta > _SMALL * theta[-1], theta, 0.0)
    p = S.T @ np.sum([c * slopes[name] for c, name in fixed], axis=0)
    q = S.T @ slopes[loss]
    limit = np.divide(q, theta, out=np.zeros(k), where=theta > 0.0)
    toward = np.tensordot(S.T, Q, axes=1)  # (k, N, D)
    scale = limit - p
    far = W0 - np.tensordot(limit, toward, axes=1)
    forms = {}
    for _, x in terms:
        H = S.T @ hessians[x.name] @ S
        g = S.T @ slopes[x.name]
        p_far = scale * (g - H @ limit)
        P = scale[:, None] * H * scale
        forms[x.name] = x.value_at(far), p_far, P
    parts = scale[:, None, None] * toward
    ends = (float(weights[0]), float(weights[-1]))
    return ExactFront(loss, ends, theta, far, parts, forms, 0.0, 0.0, 0)


def _products(Q: Array, X: Array) -> Array:
    """Inner products ⟨Q_i, X_j⟩ of (k, N, D) and (m, N, D), shape (k, m)."""
    return Q.reshape(len(Q), -1) @ X.reshape(len(X), -1).T
