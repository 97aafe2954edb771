"""Formulas of the paper that are not what it says of them: eqs. 8, 13 and 16."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Final, final

import cvxpy as cp
import numpy as np

from papers.engine.findings import Claim, Invariant, Misprint, Refuted
from papers.engine.studies import Study
from propopt.base.arrays import Array, Values


_POINT = np.array([1.0, 2.0, 1.5])
_NARROW: Final = 1e-3
_GRADIENTS = np.array([0.0, 1.0, 4.0, 4.5])


@final
@dataclass(frozen=True, eq=False)
class PrintedObjective:
    """The quadratic forms of eq. 8 with K⁻¹, as printed, and with Σ⁻¹.

    Parameters
    ----------
    printed, mended : array (N, N)
        I + 2P − 2 diag(P1) of a precision P: half of the Hessian of
        ‖E − ∇f‖² − Σ|E_n − E_n'|² P_nn'.
    """

    printed: Array
    mended: Array

    @classmethod
    def of(cls, K: Array) -> PrintedObjective:
        """Of a kernel matrix."""
        inverse: Array = np.asarray(np.linalg.inv(K), float)
        sums = inverse.sum(axis=1)
        precision = inverse - np.outer(sums, sums) / sums.sum()
        return cls(_half_hessian(inverse), _half_hessian(precision))


def objective_study(kernel: Array) -> Study[PrintedObjective]:
    """Eq. 8."""
    return Study(
        column="Proposition 1",
        row=f"objective, N = {len(kernel)}",
        measure=partial(PrintedObjective.of, kernel),
        statements=(printed_has_a_minimum, mended_has_a_minimum),
        charts=lambda _: (),
    )


def maximum_study() -> Study[Array]:
    """Eq. 13."""
    return Study(
        column="eq. 13",
        measure=both_recasts,
        statements=(recast_is_the_maximum, one_bound_is_the_maximum),
        charts=lambda _: (),
    )


def lime_study() -> Study[Array]:
    """Eq. 16."""
    return Study(
        column="appendix B",
        measure=narrow_lime,
        statements=(lime_tends_to_the_gradient, with_intercept_it_does),
        charts=lambda _: (),
    )


def printed_has_a_minimum(own: PrintedObjective) -> Claim:
    """A form with a negative eigenvalue is not bounded below."""
    return Claim(
        statement="eq. 8 has a minimum, as printed with K⁻¹: least eigenvalue of half "
        "its Hessian",
        value=float(np.linalg.eigvalsh(own.printed)[0]),
        sense=">=",
        limit=0.0,
        if_false=Refuted(
            "a gaussian kernel of lengthscale 0.4 on 50 points over [−5, 5] has the "
            "least eigenvalue −47.5, so that eq. 8 has no minimum; with Σ⁻¹, whose "
            "rows sum to 0, half of the Hessian is at least I"
        ),
    )


def mended_has_a_minimum(own: PrintedObjective) -> Invariant:
    """With the precision that marginalises the mean out."""
    return Invariant(
        statement="eq. 8 with Σ⁻¹ has a minimum: least eigenvalue of half its Hessian",
        value=float(np.linalg.eigvalsh(own.mended)[0]),
        sense=">=",
        limit=1.0 - 1e-6,
    )


def both_recasts() -> Array:
    """max_n ‖w_n − w_n'‖² at the optimum of eq. 13, and of both recasts, (3,).

    Of four points in a chain with the gradients 0, 1, 4 and 4.5, faithfulness with
    weight one.
    """
    return np.array(
        [_largest_step("maximum"), _largest_step("sum"), _largest_step("one")]
    )


def recast_is_the_maximum(result: Array) -> Claim:
    """Σ_n d_n has a bound for each point, the maximum one for all."""
    return Claim(
        statement="eq. 13: minimising Σ_n d_n minimises the maximum: relative "
        "difference of the largest squared difference",
        value=float(abs(result[1] / result[0] - 1.0)),
        sense="<=",
        limit=1e-3,
        note=f"{result[1]:.4f} where it is {result[0]:.4f}",
        if_false=Misprint("one d with d ≥ ‖w_n − w_n'‖² for all n and n'"),
    )


def one_bound_is_the_maximum(result: Array) -> Invariant:
    """One d for all."""
    return Invariant(
        statement="one d in its place does: relative difference",
        value=float(abs(result[2] / result[0] - 1.0)),
        sense="<=",
        limit=1e-3,
    )


def narrow_lime() -> Array:
    """LIME of Σ x³ for δ = 0.001, without and with an intercept, and ∇f, (3, 3)."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(5)
    places = list(product(range(5), repeat=3))
    steps = np.array([[nodes[k] for k in place] for place in places])
    shares = np.array([np.prod([weights[k] for k in place]) for place in places])
    X = _POINT + _NARROW * steps
    values = (X**3).sum(axis=1)
    centred = np.column_stack([np.ones(len(X)), X - _POINT])
    return np.stack(
        [
            _weighted_fit(X, values, shares),
            _weighted_fit(centred, values, shares)[1:],
            3.0 * _POINT**2,
        ]
    )


def lime_tends_to_the_gradient(result: Array) -> Claim:
    """G = wᵀx̃ has to go through f(x): wᵀx = f(x)."""
    plain, _, gradient = result
    return Claim(
        statement="LIME with g = wᵀx̃ tends to the gradient as δ → 0: largest "
        "difference at δ = 0.001, of the largest entry",
        value=float(np.abs(plain - gradient).max() / np.abs(gradient).max()),
        sense="<=",
        limit=0.01,
        note=f"{_told(plain)} against {_told(gradient)}",
        if_false=Refuted(
            "Σx³ at (1, 2, 1.5): wᵀx = f(x) = 12.375, where ∇fᵀx is 37.125, so that w "
            "tends to (−0.41, 5.17, 1.63); with an intercept it is ∇f = (3, 12, 6.75)"
        ),
    )


def with_intercept_it_does(result: Array) -> Invariant:
    """As LIME is run in the other figures."""
    _, free, gradient = result
    return Invariant(
        statement="with an intercept it does: largest difference, of the largest entry",
        value=float(np.abs(free - gradient).max() / np.abs(gradient).max()),
        sense="<=",
        limit=1e-4,
    )


def _half_hessian(precision: Array) -> Array:
    sums = precision.sum(axis=1)
    half = np.eye(len(precision)) + 2.0 * precision - 2.0 * np.diag(sums)
    return np.asarray((half + half.T) / 2.0)


def _weighted_fit(design: Array, values: Values, weights: Values) -> Values:
    root = np.sqrt(weights)
    fit, *_ = np.linalg.lstsq(root[:, None] * design, root * values, rcond=None)
    return np.asarray(fit)


def _largest_step(form: str) -> float:
    w = cp.Variable(len(_GRADIENTS))
    squares = [cp.square(w[k + 1] - w[k]) for k in range(len(_GRADIENTS) - 1)]
    faithful = cp.sum_squares(w - _GRADIENTS)
    if form == "maximum":
        problem = cp.Problem(cp.Minimize(faithful + cp.max(cp.hstack(squares))))
    else:
        bounds = cp.Variable(len(_GRADIENTS) if form == "sum" else 1)
        limits = [
            bounds[n if form == "sum" else 0] >= squares[k]
            for k in range(len(squares))
            for n in (k, k + 1)
        ]
        problem = cp.Problem(cp.Minimize(faithful + cp.sum(bounds)), limits)
    problem.solve(solver=cp.CLARABEL)
    return float(np.square(np.diff(np.asarray(w.value))).max())


def _told(values: Values) -> str:
    return f"({', '.join(f'{x:.2f}' for x in values)})"
