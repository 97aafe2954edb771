"""Explanations found otherwise: none may cost less than a certified lower bound."""

import warnings

import numpy as np
import scipy.linalg as la
from scipy.sparse.csgraph import connected_components

import propopt as po
from storm.definitions import Long, Pairs, Quadratic, long


LARGEST = 250  # unknowns up to which normal equations are solved densely
STEPS = 12  # of refinement: each wins some digits


def rivals(problem, weights):
    """Named explanations in extended precision, that respect all bounds."""
    for name, W in _candidates(problem, weights):
        if all(limit.holds(W) for limit in problem.limits):
            yield name, W


def _candidates(problem, weights):
    G = long(problem.G)
    means = G * 0 + G.mean(axis=0)
    parts = _component_means(problem)
    yield "zero", G * 0
    yield "gradient", G
    yield "mean", means
    yield "means of components", parts
    yield "one number", G * 0 + G.mean()
    yield "half way", (G + parts) / 2
    if not problem.limits and _is_quadratic(problem, weights):
        yield "normal equations", normal_equations(problem, weights)


def _component_means(problem):
    """G averaged over what the graphs of points connect."""
    linked = np.zeros((problem.shape[0],) * 2, dtype=bool)
    for definition in _definitions(problem):
        if isinstance(definition, Pairs) and not definition.of_columns:
            linked |= definition.S != 0
    count, labels = connected_components(linked, directed=False)
    W = long(problem.G) * 0
    for part in range(count):
        W[labels == part] = long(problem.G)[labels == part].mean(axis=0)
    return W


def _definitions(problem):
    return [part.definition for part in (*problem.terms, *problem.limits)]


def _is_quadratic(problem, weights):
    active = [t.definition for t in problem.terms if weights[t.loss.name] > 0]
    small = problem.shape[0] * problem.shape[1] <= LARGEST
    return small and all(isinstance(definition, Quadratic) for definition in active)


def normal_equations(problem, weights):
    """The minimiser: conjugate gradients in extended precision.

    A Cholesky factor in double precision preconditions them.
    """

    def slope(W):
        return sum(
            Long(weights[t.loss.name]) * t.definition.slope(W) for t in problem.terms
        )

    H = sum(
        weights[t.loss.name] * t.definition.curvature(problem.shape)
        for t in problem.terms
    )
    W = long(problem.G).copy()
    if _is_constant_free(problem):
        W = _component_means(problem)
    return _refined(W, slope, _factor(H))


def _is_constant_free(problem):
    """True if means are a better start than gradients: differences weigh more."""
    return bool(np.abs(problem.G).max() > 100 * np.ptp(problem.G))


def _factor(H):
    """H ≈ S L Lᵀ S with a unit diagonal for S⁻¹HS⁻¹; a shift where that is singular."""
    scale = np.sqrt(np.maximum(np.diag(H), 1e-300))
    unit = H / np.outer(scale, scale)
    for shift in 10.0 ** np.arange(-16.0, 0.0):
        try:
            factor = la.cho_factor(unit + shift * np.eye(len(H)))
        except la.LinAlgError:
            continue
        return lambda r: la.cho_solve(factor, r / scale) / scale
    raise AssertionError("a unit diagonal and a shift are positive definite")


def _refined(W, slope, solve):
    """The conjugate gradients of F from W; the best of its points so far."""
    zero_slope = slope(W * 0)
    r = -slope(W)
    z = _solved(solve, r)
    p = z
    rz = (r * z).sum()
    for _ in range(STEPS):
        if not rz > 0:
            break
        Hp = slope(p) - zero_slope
        curve = (p * Hp).sum()
        if not curve > 0:
            break
        W = W + rz / curve * p
        r = r - rz / curve * Hp
        z = _solved(solve, r)
        rz, last = (r * z).sum(), rz
        p = z + rz / last * p
    return W


def _solved(solve, r):
    size = np.abs(r).max() or Long(1)  # double precision has fewer exponents
    return long(solve((r / size).astype(float).ravel()).reshape(r.shape)) * size


def of_another_solver(problem, solver):
    """What another solver finds, where it finds anything."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            result = po.solve(problem.objective, solver, subject_to=problem.bounds)
        except po.errors.PropoptError:
            return None
    return long(result.attributions)
