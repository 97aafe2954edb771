"""Optimized explanations: curves, ℓ1 paths, largest differences, lattices."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import propopt as po
from benchmarks.peers import (
    conic_at_gap,
    conic_weights,
    conjugate_curve,
    cosine_curve,
    cosine_losses,
    dual_fista,
    eigen_curve,
    eigen_losses,
    factored_curve,
    fista_path,
    pair_loops,
)
from benchmarks.timing import OURS, Method, Row, Timed, race


def normal(n_points: int, n_features: int, seed: int = 0) -> tuple[Any, Any]:
    """Points and gradients, independent and standard normal."""
    rng = np.random.default_rng(seed)
    shape = (n_points, n_features)
    return rng.normal(size=shape), rng.normal(size=shape)


def clarabel(
    objective: po.losses.Objective, name: str, points: tuple[float, float], of: int
) -> Method:
    """Cvxpy at two values of one weight, in place of all."""
    some = [{name: value} for value in points]
    return Method(
        name="cvxpy with Clarabel, compiled once",
        role="general",
        run=partial(conic_weights, objective, "CLARABEL", some, of),
        made=2,
        of=of,
        runs=1,
        gap=float,
    )


def largest_gap(trade_offs: po.results.TradeOffs) -> float:
    return max(e.gap or 0.0 for e in trade_offs.optimized)


# ---- squared losses


def curve(quick: bool) -> list[Row]:
    """200 weights of robustness, beside chain smoothness: losses, and attributions."""
    X, G = normal(200 if quick else 1000, 10)
    # a short lengthscale with a cutoff: what conic solvers can still hold in memory
    graph = po.graphs.gaussian_graph(X, 0.8, cutoff=1e-2)
    work = f"{len(X):,} rows, 10 columns, {graph.n_edges:,} pairs"
    return _curves(work, G, graph, conic=True)


def complete_curve(quick: bool) -> list[Row]:
    """The same where all pairs of rows are similar."""
    X, G = normal(100 if quick else 1000, 10)
    return _curves(
        f"{len(X):,} rows, 10 columns, all pairs",
        G,
        po.graphs.gaussian_graph(X),
        conic=False,
    )


def _curves(work: str, G: Any, graph: Any, *, conic: bool) -> list[Row]:
    chain = po.graphs.chain_graph(10)
    objective = (
        po.GradientMatching(G)
        + po.PairwiseRobustness(graph)
        + 0.5 * po.Smoothness(chain)
    )
    weights = np.geomspace(1e-3, 1e3, 200)
    given = G, graph.laplacian.toarray(), chain.laplacian.toarray(), 0.5, weights

    def sweep() -> po.results.TradeOffs:
        return po.sweep(objective, {"pairwise_robustness": weights})

    def attributions() -> tuple[po.results.TradeOffs, list[Any]]:
        trade_offs = sweep()
        return trade_offs, [e.attributions for e in trade_offs.optimized]

    losses = race(
        f"losses for 200 weights: {work}",
        Method(
            name=OURS,
            role="propopt",
            run=sweep,
            gap=largest_gap,
            answer=lambda t: [list(e.losses.values()) for e in t.optimized],
        ),
        Method(
            name="dense eigenvectors, NumPy",
            run=partial(eigen_losses, *given),
            answer=np.asarray,
            note="no certificate",
        ),
        *([_clarabel_curve(objective)] if conic else []),
    )
    return losses + race(
        f"attributions for 200 weights: {work}",
        Method(
            name=OURS,
            role="propopt",
            run=attributions,
            runs=3,
            gap=lambda result: largest_gap(result[0]),
            answer=lambda result: result[1],
        ),
        Method(
            name="dense eigenvectors, NumPy",
            run=lambda: list(eigen_curve(*given)),
            answer=np.asarray,
            note="no certificate",
        ),
    )


def _clarabel_curve(objective: po.losses.Objective) -> Method:
    return clarabel(objective, "pairwise_robustness", (0.1, 1.0), 200)


def many_rows(quick: bool) -> list[Row]:
    """200 weights for more rows than dense eigenvectors can do."""
    X, G = normal(1000 if quick else 20_000, 3)
    graph = po.graphs.knn_graph(X, 8)
    objective = po.GradientMatching(G) + po.PairwiseRobustness(graph)
    weights = np.geomspace(1e-3, 1e3, 200)
    return race(
        f"losses for 200 weights: {len(X):,} rows, 3 columns, 8 neighbours",
        Method(
            name=OURS,
            role="propopt",
            run=partial(po.sweep, objective, {"pairwise_robustness": weights}),
            runs=3,
            gap=largest_gap,
        ),
        Method(
            name="conjugate gradients for each weight, NumPy",
            run=lambda: [
                gap for _, gap in conjugate_curve(G, graph.laplacian, weights)
            ],
            runs=3,
            gap=max,
            note="a bound of its own, by strong convexity",
        ),
        Method(
            name="a sparse factorisation for each weight, SciPy",
            role="general",
            run=lambda: list(factored_curve(G, graph.laplacian, weights[[100]])),
            made=1,
            of=200,
            runs=1,
            note="no certificate",
        ),
    )


# ---- losses that are not squared


def sparse_path(quick: bool) -> list[Row]:
    """A path of 20 ℓ1 weights."""
    X, G = normal(100 if quick else 500, 10)
    weights = np.geomspace(1e-2, 1, 20)
    rows = []
    for name, graph in {
        "all pairs": po.graphs.gaussian_graph(X),
        "8 neighbours": po.graphs.knn_graph(X, 8),
    }.items():
        objective = (
            po.GradientMatching(G) + po.PairwiseRobustness(graph) + po.Sparsity()
        )
        L = graph.laplacian
        rows += race(
            f"20 weights of ℓ1: {len(X)} rows, 10 columns, {name}",
            Method(
                name=OURS,
                role="propopt",
                run=partial(_path, objective, weights),
                gap=lambda result: largest_gap(result[0]),
                answer=lambda result: result[1],
            ),
            Method(
                name="FISTA, NumPy",
                run=partial(fista_path, G, L, 1.0, weights),
                gap=partial(_gap_of_path, objective, weights),
                answer=np.asarray,
                note="a bound of its own, by strong convexity",
            ),
            clarabel(objective, "sparsity", (0.03, 0.3), 20),
        )
    return rows


def _path(
    objective: po.losses.Objective, weights: Any
) -> tuple[po.results.TradeOffs, list[Any]]:
    trade_offs = po.sweep(objective, {"sparsity": weights})
    return trade_offs, [e.attributions for e in trade_offs.optimized]


def _gap_of_path(
    objective: po.losses.Objective, weights: Any, path: list[Any]
) -> float:
    """The largest that we certify."""
    return max(
        po.proofs.certify(W, objective.with_weights({"sparsity": s})).gap
        for s, W in zip(weights, path, strict=True)
    )


def max_difference(quick: bool) -> list[Row]:
    """The largest difference over kNN edges, over sizes and weights."""
    sizes = [(50, 2), (100, 3)] if quick else [(50, 2), (100, 3), (400, 2), (400, 10)]
    return [
        row
        for n_points, n_features in sizes
        for weight in (1.0, 30.0)
        for row in _max_difference(n_points, n_features, weight)
    ]


def _max_difference(n_points: int, n_features: int, weight: float) -> list[Row]:
    X, G = normal(n_points, n_features)
    graph = po.graphs.knn_graph(X, 8)
    loss = po.losses.MaxDifferenceRobustness(graph)
    objective = po.GradientMatching(G) + weight * loss
    shape = f"{n_points} rows, {n_features} columns, 8 neighbours"
    return race(
        f"largest difference, weight {weight:g}: {shape}",
        Method(
            name=OURS,
            role="propopt",
            run=partial(po.solve, objective),
            gap=lambda best: best.gap,
            answer=lambda best: best.attributions,
        ),
        _by_dual(G, edges(graph), weight),
        Method(
            name="cvxpy with Clarabel, loosest tolerance",
            role="general",
            run=partial(conic_at_gap, objective, "CLARABEL", 1e-6),
            runs=1,
            gap=float,
        ),
    )


def edges(graph: po.graphs.Graph) -> Any:
    """Which two points each edge joins, (E, 2)."""
    return np.argwhere(np.triu(graph.laplacian.toarray(), 1))


def _by_dual(G: Any, pairs: Any, weight: float, groups: int = 1) -> Method:
    return Method(
        name="FISTA on the dual, NumPy",
        run=partial(dual_fista, G, pairs, weight, groups),
        gap=lambda result: result[1],
        answer=lambda result: result[0],
        note="a gap of its own, by duality",
    )


def all_pairs(quick: bool) -> list[Row]:
    """Σ_n max over all pairs at the authors' scale, against a loop over pairs."""
    n_points = 30 if quick else 100
    _, G = normal(n_points, 3)
    ordered = np.argwhere(~np.eye(n_points, dtype=bool))
    loss = po.losses.MaxDifferenceRobustness(po.graphs.complete_graph(n_points), "sum")
    objective = po.GradientMatching(G) + 0.1 * loss
    return race(
        f"sum of largest differences over all pairs: {n_points} rows, 3 columns",
        Method(
            name=OURS,
            role="propopt",
            run=partial(po.solve, objective),
            gap=lambda best: best.gap,
            answer=lambda best: best.attributions,
        ),
        _by_dual(G, ordered, 0.1, n_points),
        Method(
            name="cvxpy with Clarabel, incidence matrix",
            role="general",
            run=partial(po.solve, objective, "CLARABEL"),
            runs=1,
            gap=lambda best: best.gap,
        ),
        Method(
            name="cvxpy with Clarabel, loop over pairs",
            role="general",
            run=lambda: pair_loops(G, 0.1).solve(solver="CLARABEL"),
            runs=1,
        ),
    )


# ---- lattices


LATTICE_WEIGHTS = np.geomspace(1e-3, 1e3, 200)


def lattice_gradients(n: int) -> Any:
    """On an n × n × n lattice, of a function that does not split by coordinate."""
    X = po.graphs.grid(-2, 2, n, 3)
    x, y, z = X.T
    phase = x * y + np.sin(2 * z) + 0.5 * x * z
    G = np.cos(phase)[:, None] * np.column_stack(
        [y + 0.5 * z, x, 2 * np.cos(2 * z) + 0.5 * x]
    )
    return G + 0.3 * np.random.default_rng(0).normal(size=G.shape)


def lattice_objective(n: int) -> po.losses.Objective:
    return po.GradientMatching(lattice_gradients(n)) + po.PairwiseRobustness(
        po.graphs.LatticeGraph((n, n, n))
    )


def lattice_curve(n: int, n_weights: int) -> Timed:
    """Losses of a curve, and the largest gap."""
    objective = lattice_objective(n)
    weights = LATTICE_WEIGHTS[:: 200 // n_weights]
    began = time.process_time()
    trade_offs = po.sweep(objective, {"pairwise_robustness": weights})
    seconds = time.process_time() - began
    losses = [list(e.losses.values()) for e in trade_offs.optimized]
    return Timed(seconds, (largest_gap(trade_offs), losses))


def lattice_attributions(n: int) -> Timed:
    """Attributions for one weight, and their gap."""
    objective = lattice_objective(n)
    began = time.process_time()
    best = po.solve(objective)
    W = best.attributions
    return Timed(time.process_time() - began, (best.gap or 0.0, W))


def lattice_sparse(n: int) -> Timed:
    """A sparse explanation at a gap of 1e-5, and its gap."""
    objective = lattice_objective(n) + 0.2 * po.Sparsity()
    began = time.process_time()
    best = po.solve(objective, tolerance=1e-5)
    return Timed(time.process_time() - began, (best.gap or 0.0, None))


def cosine_lattice(n: int, weights: Any, attributions: bool) -> Timed:
    """The same losses, or attributions, by cosine transforms."""
    G, shape = lattice_gradients(n), (n, n, n)
    began = time.process_time()
    result: Any
    if attributions:
        (result,) = cosine_curve(G, shape, weights)
    else:
        result = cosine_losses(G, shape, weights)
    return Timed(time.process_time() - began, (None, result))


def lattice(quick: bool) -> list[Row]:
    """A lattice of 64³ points, and one of 100³."""
    rows = []
    for n in (16, 24) if quick else (64, 100):
        points = f"lattice of {n}³ points, 3 columns"
        for n_weights in (20, 200):
            weights = LATTICE_WEIGHTS[:: 200 // n_weights]
            rows += race(
                f"losses for {n_weights} weights: {points}",
                _on_lattice(OURS, n, partial(lattice_curve, n, n_weights)),
                _on_lattice(_COSINES, n, partial(cosine_lattice, n, weights, False)),
            )
        rows += race(
            f"attributions for one weight: {points}",
            _on_lattice(OURS, n, partial(lattice_attributions, n)),
            _on_lattice(_COSINES, n, partial(cosine_lattice, n, [1.0], True)),
        )
        rows += race(
            f"attributions for one weight with ℓ1: {points}",
            _on_lattice(OURS, n, partial(lattice_sparse, n), runs=1),
        )
    return rows


_COSINES = "cosine transform, SciPy"


def _on_lattice(name: str, n: int, run: Callable[[], Timed], runs: int = 3) -> Method:
    return Method(
        name=name,
        role="propopt" if name == OURS else "best",
        run=run,
        runs=runs,
        apart=run if n >= 100 else None,
        gap=lambda result: result[0],
        answer=lambda result: result[1],
        note="" if name == OURS else "no certificate",
    )
