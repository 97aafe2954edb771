"""What a numerate user would write for the same work, and what cvxpy makes of it.

In all formulas G (N, D) are the gradients, L and M the Laplacians of points and of
features, b and c the weights of robustness and smoothness:

    min_W ‖W − G‖² + 2 b tr(Wᵀ L W) + 2 c tr(W M Wᵀ)
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

import cvxpy as cp
import numpy as np
import scipy.fft as fft
import scipy.sparse as sp
import scipy.sparse.linalg as sla

import propopt as po
from benchmarks.timing import RUNS, Method, Timed
from propopt.losses import Program
from propopt.solvers import Task


# ---- squared losses: eigenvectors, a factorisation, a cosine transform


def eigen_curve(G: Any, L: Any, M: Any, c: float, weights: Any) -> Iterator[Any]:
    """W for every weight, by dense eigenvectors of both Laplacians."""
    values, U = np.linalg.eigh(L)
    across, V = np.linalg.eigh(M)
    T = U.T @ G @ V
    for b in weights:
        yield U @ (T / (1 + 2 * b * values[:, None] + 2 * c * across)) @ V.T


def eigen_losses(G: Any, L: Any, M: Any, c: float, weights: Any) -> Any:
    """The three losses for every weight, in the same basis and without W."""
    values, U = np.linalg.eigh(L)
    across, V = np.linalg.eigh(M)
    T = U.T @ G @ V
    losses = []
    for b in weights:
        E = T / (1 + 2 * b * values[:, None] + 2 * c * across)
        squares = E**2
        losses.append(
            [
                ((E - T) ** 2).sum(),
                2 * (values[:, None] * squares).sum(),
                2 * (across * squares).sum(),
            ]
        )
    return np.array(losses)


def factored_curve(G: Any, L: Any, weights: Any) -> Iterator[Any]:
    """W for every weight, without smoothness, by a sparse factorisation for each."""
    identity = sp.eye_array(len(G), format="csc")
    for b in weights:
        system = (identity + 2 * b * L).tocsc()
        yield sla.splu(system, permc_spec="MMD_AT_PLUS_A").solve(G)


def conjugate_curve(
    G: Any, L: Any, weights: Any, gap: float = 1e-6
) -> Iterator[tuple[Any, float]]:
    """W and its relative gap for every weight b, by conjugate gradients.

    Each starts from the last. The objective F is strongly convex with modulus 2 and has
    the gradient 2 R, R = (I + 2 b L) W − G, so F(W) − F* ≤ ‖R‖².
    """
    W = G.copy()
    for b in weights:
        LW = L @ W
        R = G - W - 2 * b * LW
        P, squares = R.copy(), (R**2).sum(axis=0)
        while squares.sum() > gap * (value := _squares(G, W, b, LW)):
            LP = L @ P
            AP = P + 2 * b * LP
            steps = squares / (P * AP).sum(axis=0)
            W, LW, R = W + steps * P, LW + steps * LP, R - steps * AP
            before, squares = squares, (R**2).sum(axis=0)
            P = R + squares / before * P
        yield W, float(squares.sum() / value)


def _squares(G: Any, W: Any, b: float, LW: Any) -> float:
    """‖W − G‖² + 2 b tr(Wᵀ L W)."""
    return float(((W - G) ** 2).sum() + 2 * b * (W * LW).sum())


def cosine_basis(G: Any, shape: tuple[int, ...]) -> tuple[Any, Any]:
    """G in cosines of a lattice with steps of one, and the eigenvalues of L."""
    axes = range(len(shape))
    T = fft.dctn(G.reshape(*shape, -1), axes=axes, norm="ortho")
    values = np.zeros(shape)
    for axis, n in enumerate(shape):
        own = 2 - 2 * np.cos(np.pi * np.arange(n) / n)
        values += own.reshape([n if k == axis else 1 for k in axes])
    return T, values


def cosine_curve(G: Any, shape: tuple[int, ...], weights: Any) -> Iterator[Any]:
    """W for every weight on a lattice, by cosine transforms."""
    T, values = cosine_basis(G, shape)
    for b in weights:
        E = T / (1 + 2 * b * values[..., None])
        W = fft.idctn(E, axes=range(len(shape)), norm="ortho", overwrite_x=True)
        yield W.reshape(G.shape)


def cosine_losses(G: Any, shape: tuple[int, ...], weights: Any) -> Any:
    """Both losses for every weight, from sums over equal eigenvalues."""
    T, values = cosine_basis(G, shape)
    values, places = np.unique(values.round(9), return_inverse=True)
    squares = np.bincount(places.ravel(), (T**2).sum(axis=-1).ravel())
    losses = []
    for b in weights:
        kept = 1 / (1 + 2 * b * values)
        losses.append(
            [((1 - kept) ** 2 * squares).sum(), 2 * (values * kept**2 * squares).sum()]
        )
    return np.array(losses)


# ---- ℓ1 norms: accelerated proximal gradients


def fista_path(
    G: Any, L: Any, b: float, sparsity: Iterable[float], gap: float = 1e-6
) -> list[Any]:
    """W for every weight s of Σ|W| beside squared losses; each starts from the last.

    Nesterov's steps with the momentum of condition κ = 1 + 2 b λ_max. A subgradient q
    of the objective F leaves F(W) − F* ≤ ‖q‖²/4, for F is strongly convex with modulus
    2: it stops where that is at most ``gap`` of F.
    """
    curvature = 2 + 4 * b * np.linalg.eigvalsh(L.toarray())[-1]
    L = L.toarray() if L.nnz > 0.2 * L.shape[0] ** 2 else L  # the faster product
    root = np.sqrt(curvature / 2)
    momentum = (root - 1) / (root + 1)
    W, path = G.copy(), []
    for s in sparsity:
        before = W
        for step in range(100_000):
            ahead = W + momentum * (W - before)
            slope = 2 * (ahead - G) + 4 * b * (L @ ahead)
            before, W = W, _soft(ahead - slope / curvature, s / curvature)
            if step % 10 == 9 and _excess(G, L, b, s, W) <= gap:
                break
        path.append(W)
    return path


def _soft(W: Any, limit: float) -> Any:
    return np.sign(W) * np.maximum(np.abs(W) - limit, 0)


def _excess(G: Any, L: Any, b: float, s: float, W: Any) -> float:
    """A bound of (F(W) − F*)/F(W), by the smallest subgradient."""
    LW = L @ W
    slope = 2 * (W - G) + 4 * b * LW
    smallest = np.where(W == 0, _soft(slope, s), slope + s * np.sign(W))
    value = ((W - G) ** 2).sum() + 2 * b * (W * LW).sum() + s * np.abs(W).sum()
    return float((smallest**2).sum() / 4 / value)


# ---- largest differences: accelerated gradients of the dual


def dual_fista(
    G: Any, pairs: Any, weight: float, groups: int = 1, gap: float = 1e-6
) -> tuple[Any, float]:
    """W, and its relative gap, for weight Σ_g max_(n, m) ‖W_n − W_m‖².

    The pairs (E, 2) come in ``groups`` equal blocks, each with its maximum. B W has a
    difference for each pair, and the dual over Y (E, D) is

        max_Y  ⟨Y, B G⟩ − ‖Bᵀ Y‖²/4 − Σ_g (Σ_e ‖Y_e‖)²/(4 weight),   W = G − Bᵀ Y/2

    Nesterov's steps on Y, which start again where they turn back.
    """
    count, n_points = len(pairs), len(G)
    places = np.arange(count).repeat(2), pairs.ravel()
    B = sp.csr_array((np.tile([1.0, -1.0], count), places), (count, n_points))
    Bt = B.T.tocsr()
    degrees = np.bincount(pairs.ravel(), minlength=n_points)
    step = 2 / degrees[pairs].sum(axis=1).max()  # no eigenvalue of B Bᵀ is larger
    Y = ahead = np.zeros((count, G.shape[1]))
    momentum = 1.0
    for k in range(100_000):
        W = G - Bt @ ahead / 2
        before, Y = Y, _shrunk(ahead + step * (B @ W), step / (2 * weight), groups)
        if np.vdot(ahead - Y, Y - before) > 0:
            momentum = 1.0
        later = (1 + np.sqrt(1 + 4 * momentum**2)) / 2
        ahead = Y + (momentum - 1) / later * (Y - before)
        momentum = later
        if k % 10 == 9:
            pull = Bt @ Y
            W = G - pull / 2
            squares = ((B @ W) ** 2).sum(axis=1).reshape(groups, -1)
            primal = (pull**2).sum() / 4 + weight * squares.max(axis=1).sum()
            norms = np.linalg.norm(Y, axis=1).reshape(groups, -1).sum(axis=1)
            dual = np.vdot(pull, G) - (pull**2).sum() / 4
            found = (primal - dual + (norms**2).sum() / (4 * weight)) / primal
            if found <= gap:
                break
    return W, float(found)


def _shrunk(Y: Any, penalty: float, groups: int) -> Any:
    """The proximal operator of penalty/2 Σ_g (Σ_e ‖Y_e‖)²; one limit for each group."""
    norms = np.linalg.norm(Y, axis=1).reshape(groups, -1)
    sums = -np.sort(-norms, axis=1).cumsum(axis=1)
    limits = penalty * sums / (1 + penalty * np.arange(1, norms.shape[1] + 1))
    kept = np.maximum(norms - limits.max(axis=1, keepdims=True), 0)
    return Y * (kept / np.where(norms > 0, norms, 1)).reshape(-1, 1)


# ---- conic programs


def pair_loops(G: Any, weight: float) -> cp.Problem:
    """Gradient matching and Σ_n max_m ‖W_n − W_m‖² over all pairs, one constraint each.

    The straightforward text of Eq. 13 with d_n: a Python loop over ordered pairs.
    """
    n_points = len(G)
    W, d = cp.Variable(G.shape), cp.Variable(n_points)
    constraints = [
        cp.sum_squares(W[n] - W[m]) <= d[n]
        for n in range(n_points)
        for m in range(n_points)
        if m != n
    ]
    matching = cp.sum_squares(W - G)
    return cp.Problem(cp.Minimize(matching + weight * cp.sum(d)), constraints)


def conic_weights(
    objective: po.losses.Objective,
    backend: str,
    points: list[dict[str, float]],
    of: int,
    tolerance: float = 1e-6,
) -> Timed:
    """A program that is compiled once, solved for some weights; seconds for ``of``.

    The first solve compiles, and the median of the others is what a solve takes. The
    result is the largest gap.
    """
    task = Task(Program(objective.losses), po.solvers.Conic(backend))
    seconds, gaps = [], []
    start = None
    for point in points:
        chosen = objective.with_weights(point).coefficients
        began = time.process_time()
        start = task.solve(chosen, tolerance, start)
        seconds.append(time.process_time() - began)
        gaps.append(task.explain(start, chosen, 1.0, began).gap or 0.0)
    solving = float(np.median(seconds[1:]))
    return Timed(max(seconds[0] - solving, 0.0) + of * solving, max(gaps))


_LOOSEST = 1e-1


def conic_at_gap(objective: po.losses.Objective, backend: str, gap: float) -> Timed:
    """A backend at the loosest tolerance whose certified gap is small enough.

    Only the last solve counts; the result is its gap.
    """
    tolerance, found, seconds = _LOOSEST, np.inf, 0.0
    while tolerance > 1e-9 and found > gap:
        began = time.process_time()
        explanation = po.solve(
            objective, po.solvers.Conic(backend), tolerance=tolerance
        )
        seconds = time.process_time() - began
        found = explanation.gap or 0.0
        tolerance /= 10.0
    return Timed(seconds, found)


# ---- trees: shap, whose explainer is made before the clock starts


def path_dependent(model: Any, few: Any, runs: int = RUNS) -> Method:
    """TreeSHAP without a background, the default of shap."""
    return Method(
        name="shap, path-dependent",
        role="other",
        run=shap_values(model, None, few),
        runs=runs,
        note="another question: Shapley values without a background",
    )


def shap_values(model: Any, background: Any, few: Any) -> Callable[[], Any]:
    """By shap: interventional where there is a background."""
    import shap

    explainer = shap.TreeExplainer(model, background)
    return partial(explainer.shap_values, few, check_additivity=False)


# ---- perturbations: one batched pass over rows, draws and columns


def batched_lime(f: Any, X: Any, n_samples: int, at_once: int = 50) -> Any:
    """Least squares around each row, with an intercept; draws N(x, I)."""
    rng = np.random.default_rng(0)
    parts = []
    for first in range(0, len(X), at_once):
        rows = X[first : first + at_once]
        E = rng.normal(size=(len(rows), n_samples, X.shape[1]))
        values = f((rows[:, None] + E).reshape(-1, X.shape[1])).reshape(len(rows), -1)
        E -= E.mean(axis=1, keepdims=True)
        right = np.einsum("nsd,ns->nd", E, values, optimize=True)
        parts.append(
            np.linalg.solve(E.transpose(0, 2, 1) @ E, right[..., None])[..., 0]
        )
    return np.concatenate(parts)


def batched_slopes(gradient: Any, X: Any, n_samples: int, at_once: int = 50) -> Any:
    """The mean gradient around each row; draws N(x, I)."""
    rng = np.random.default_rng(0)
    parts = []
    for first in range(0, len(X), at_once):
        rows = X[first : first + at_once]
        P = rows[:, None] + rng.normal(size=(len(rows), n_samples, X.shape[1]))
        slopes = gradient(P.reshape(-1, X.shape[1])).reshape(P.shape)
        parts.append(slopes.mean(axis=1))
    return np.concatenate(parts)


def batched_bins(
    f: Any, data: Any, X: Any, n_samples: int, widths: Any, at_once: int = 10
) -> Any:
    """LIME of tables with quartiles as bins: coefficients (widths, N, D).

    In each column a draw has the value of another row of the table, so its bin has the
    law of the package; within a bin the package draws truncated normal numbers.
    """
    rng = np.random.default_rng(0)
    n_columns = X.shape[1]
    edges = np.percentile(data, [25, 50, 75], axis=0)
    parts = []
    for first in range(0, len(X), at_once):
        rows = X[first : first + at_once]
        shape = len(rows), n_samples, n_columns
        P = data[rng.integers(0, len(data), shape), np.arange(n_columns)]
        P[:, 0] = rows
        values = f(P.reshape(-1, n_columns)).reshape(len(rows), -1)
        Z = np.ones(shape)
        for j in range(n_columns):
            bins = np.searchsorted(edges[:, j], P[..., j])
            Z[..., j] = bins == bins[:, :1]
        distances = (1 - Z).sum(axis=2)
        fits = [
            ridge(Z, np.exp(-distances / (2 * width**2)), values) for width in widths
        ]
        parts.append(fits)
    return np.concatenate(parts, axis=1)


def ridge(Z: Any, weights: Any, values: Any) -> Any:
    """Weighted least squares with an intercept and a penalty of 1 on the slopes.

    Z (..., S, D), weights and values (..., S).
    """
    total = weights.sum(axis=-1, keepdims=True)
    centred = Z - (weights / total)[..., None, :] @ Z
    weighted = (weights[..., None] * centred).swapaxes(-1, -2)
    gram = weighted @ centred + np.eye(Z.shape[-1])
    return np.linalg.solve(gram, weighted @ values[..., None])[..., 0]


def batched_texts(
    score: Any, n_words: int, n_samples: int, seed: int = 0, bandwidth: float = 25.0
) -> Any:
    """LIME of one text: ``score`` takes which words are kept, (S, d) to (S,).

    So many words as a uniform number are deleted; weights are those of the package, of
    the cosine distance 1 − √(share that is kept), in per cent.
    """
    rng = np.random.default_rng(seed)
    deleted = rng.integers(1, n_words + 1, n_samples)
    Z = (rng.random((n_samples, n_words)).argsort(axis=1) >= deleted[:, None]) * 1.0
    Z[0] = 1.0
    distances = 100 * (1 - np.sqrt(Z.mean(axis=1)))
    weights = np.exp(-(distances**2) / (2 * bandwidth**2))
    return ridge(Z, weights, score(Z))
