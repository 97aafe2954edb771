"""Answers by brute force or by another library: slow, short and independent."""

import inspect
import itertools
import warnings
from fractions import Fraction

import cvxpy as cp
import numpy as np

import propopt as po
from propopt.losses.completeness import _RowTotals


TIGHT = {"tol_gap_abs": 1e-9, "tol_gap_rel": 1e-9, "tol_feas": 1e-9}


def subclasses(base):
    """All concrete classes of propopt below ``base``."""
    below = {base, *base.__subclasses__()}
    result = set().union(*map(subclasses, base.__subclasses__()), below)
    return {
        kind
        for kind in result
        if kind.__module__.startswith("propopt.") and not inspect.isabstract(kind)
    } - {base}


def ordered_pairs(n):
    return itertools.permutations(range(n), 2)


def pair_sum(rows, similarities):
    """Σ_{n,n'} ‖w_n − w_n'‖² S_nn', term by term."""
    return sum(
        similarities[i, j] * ((rows[i] - rows[j]) ** 2).sum()
        for i, j in ordered_pairs(len(rows))
    )


def brute_value(loss, W):
    """The loss from the formula in its docstring, term by term."""
    return FORMULAS[type(loss)](loss, W)


def stated(loss, formula):
    """A loss of the catalogue, with a formula of ``(loss, W)`` for losses of its class.

    The formula is plain NumPy: it uses no map, penalty or target of the loss.
    """
    FORMULAS[type(loss)] = formula
    return loss


def _matching(loss, W):
    size = {"l1": np.abs, "l2": np.square}[loss.norm]
    return sum(size(w - g).sum() for w, g in zip(W, loss.G, strict=True))


def _predicting(loss, W):
    targets = loss.target.reshape(loss.designs.shape[:2])
    return sum(
        (targets[n, s] - W[n] @ loss.designs[n, s]) ** 2
        for n, s in np.ndindex(targets.shape)
    )


def _alike(loss, W):
    W = W if loss.offset is None else W - loss.offset
    return pair_sum(W, loss.graph.similarities.toarray())


def shared_sum(loss, W):
    """Σ_{n,n'} S_nn' Σ_j (w_nj − w_n'j)² over j in both, term by term."""
    S = loss.graph.similarities.toarray()
    return sum(
        S[n, m] * (W[n, j] - W[m, j]) ** 2
        for n, m in ordered_pairs(len(W))
        for j in range(W.shape[1])
        if loss.present[n, j] and loss.present[m, j]
    )


def kernel_precision(loss):
    """K⁻¹, or K⁻¹ − K⁻¹11ᵀK⁻¹/(1ᵀK⁻¹1), from an explicit inverse."""
    inverse = np.linalg.inv(loss.kernel_matrix)
    if loss.mean == "none":
        return inverse
    sums = inverse.sum(axis=1)
    return inverse - np.outer(sums, sums) / sums.sum()


def _max_difference(loss, W):
    linked = loss.graph.similarities.toarray() != 0
    worst = [
        max((sum((W[n] - W[m]) ** 2) for m in np.flatnonzero(linked[n])), default=0.0)
        for n in range(len(W))
    ]
    return max(worst) if loss.aggregate == "max" else sum(worst)


FORMULAS = {
    po.GradientMatching: _matching,
    po.losses.FunctionMatching: _predicting,
    po.PairwiseRobustness: _alike,
    po.losses.SharedRobustness: shared_sum,
    po.Smoothness: lambda loss, W: pair_sum(W.T, loss.graph.similarities.toarray()),
    po.losses.KernelRobustness: lambda loss, W: (
        2 * np.trace(W.T @ kernel_precision(loss) @ W)
    ),
    po.losses.MaxDifferenceRobustness: _max_difference,
    _RowTotals: lambda loss, W: sum(
        (loss.target.ravel() - (W * loss.map.weights).sum(axis=1)) ** 2
    ),
}
"""Of each class of losses; :func:`stated` adds one from a line of the catalogue."""


def reference_optimum(objective, shape, bounds=()):
    """The optimum of a program that cvxpy compiles afresh, from public expressions."""
    W = cp.Variable(shape)
    limits = [bound.loss.expression(W) <= bound.limit for bound in bounds]
    problem = cp.Problem(cp.Minimize(objective.expression(W)), limits)
    solve_tightly(problem)
    return float(problem.value)


def minimise_over(shape, cost):
    """The smallest cost of a variable of this shape, and where it is."""
    R = cp.Variable(shape)
    problem = cp.Problem(cp.Minimize(cost(R)))
    solve_tightly(problem)
    return float(problem.value), np.asarray(R.value)


def solve_tightly(problem):
    """By Clarabel, to nine digits where it has them."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Solution may be inaccurate")
        problem.solve(solver="CLARABEL", **TIGHT)


def normal_equations(objective, shape):
    """The minimiser of squared losses, from the dense Hessian by finite differences.

    A quadratic is known from its values: no formula of a map or of a graph is used.
    """
    size = shape[0] * shape[1]

    def value(w):
        return objective.value(w.reshape(shape))

    eye = np.eye(size)
    at_zero = value(np.zeros(size))
    up = np.array([value(e) for e in eye])
    down = np.array([value(-e) for e in eye])
    slope = (up - down) / 2
    hessian = np.diag(up + down - 2 * at_zero)
    for i, j in itertools.combinations(range(size), 2):
        both = value(eye[i] + eye[j]) - up[i] - up[j] + at_zero
        hessian[i, j] = hessian[j, i] = both
    return -np.linalg.solve(hessian, slope).reshape(shape)


def exact_value(loss, W):
    """The loss in extended precision; for kernels that of the map, on centred W."""
    V = W.astype(np.longdouble)
    if not isinstance(loss, po.losses.KernelRobustness):
        return np.longdouble(brute_value(loss, V))
    if loss.map.components is not None:
        V = V - V.mean(axis=0)
    return ((loss.map.matrix.astype(np.longdouble) @ V) ** 2).sum()


def exact_optimum(G, over_points, over_features=None):
    """min ‖W − G‖² + robustness + smoothness in whole fractions: no digit is lost.

    ``over_points`` (N, N) and ``over_features`` (D, D) are similarities times weights.
    """
    n_points, n_features = G.shape
    A = _fractional_laplacian(over_points)
    B = _fractional_laplacian(
        np.zeros((n_features, n_features)) if over_features is None else over_features
    )
    pairs = list(np.ndindex(n_points, n_features))
    hessian = [
        [
            (i == k and d == e) + A[i][k] * (d == e) + B[d][e] * (i == k)
            for k, e in pairs
        ]
        for i, d in pairs
    ]
    g = [Fraction(float(value)) for value in G.ravel()]
    w = _eliminated(hessian, g)
    return sum(value * (value - best) for value, best in zip(g, w, strict=True))


def _fractional_laplacian(similarities):
    """2L of similarities S: each edge counts twice."""
    rows = [[-2 * Fraction(float(s)) for s in row] for row in similarities]
    for n, row in enumerate(rows):
        row[n] = -sum(row)
    return rows


def _eliminated(matrix, right):
    """The solution of a positive definite system, by Gauss."""
    rows = [[*row, value] for row, value in zip(matrix, right, strict=True)]
    for k, pivot in enumerate(rows):
        for row in rows[k + 1 :]:
            factor = row[k] / pivot[k]
            if factor:
                row[k:] = [
                    x - factor * p for x, p in zip(row[k:], pivot[k:], strict=True)
                ]
    solution: list[Fraction] = []
    for k, row in reversed(list(enumerate(rows))):
        known = zip(row[k + 1 : -1], solution, strict=True)
        solution.insert(0, (row[-1] - sum(x * y for x, y in known)) / row[k])
    return solution
