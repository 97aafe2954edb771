"""The pieces of work: each gives rows of one table, ours and the peers'."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import scipy.fft

import propopt as po
from benchmarks.baselines import perturbation
from benchmarks.inductive import inductive, inductive_images
from benchmarks.interactions import interactions
from benchmarks.lime_limits import lime_limits
from benchmarks.lime_texts import cpu_seconds, lime_texts
from benchmarks.peers import conic_seconds, dense_seconds, pair_loops
from benchmarks.timing import OURS, Row, in_a_process, median_seconds, with_ratios
from benchmarks.trees import tree_slopes
from propopt.losses.operators import LatticeLaplacian
from propopt.solvers.curves import Lanczos


Case = Callable[[bool], list[Row]]


def normal(n_points: int, n_features: int, seed: int = 0) -> tuple[Any, Any]:
    """Points and gradients, independent and standard normal."""
    rng = np.random.default_rng(seed)
    shape = (n_points, n_features)
    return rng.normal(size=shape), rng.normal(size=shape)


def scaled(work: str, method: str, solves: int, total: int, timing: Any) -> Row:
    """A peer that made ``solves`` of the ``total`` solves, compiled once."""
    compile_seconds, seconds, gap = timing
    return Row(
        work=work,
        method=method,
        seconds=compile_seconds + total * seconds,
        solves=f"{solves} of {total}, scaled",
        gap=gap,
    )


# ---- curves


def curve(quick: bool) -> list[Row]:
    """200 weights: gaussian graph and chain smoothness."""
    n_points, n_weights = (200, 50) if quick else (1000, 200)
    X, G = normal(n_points, 10)
    # a short lengthscale with a cutoff: what the peers can still hold in memory
    graph = po.graphs.gaussian_graph(X, 0.8, cutoff=1e-2)
    objective = (
        po.GradientMatching(G)
        + po.PairwiseRobustness(graph)
        + 0.5 * po.Smoothness(po.graphs.chain_graph(10))
    )
    weights = np.geomspace(1e-3, 1e3, n_weights)
    work = f"curve of {n_weights} weights, N={n_points}, D=10, {graph.n_edges} edges"

    def sweep() -> po.TradeOffs:
        return po.sweep(objective, {"pairwise_robustness": weights})

    seconds, trade_offs = median_seconds(sweep, 5)
    gap = max(e.gap for e in trade_offs.optimized)
    target = "" if quick else ">= 1000x the fastest peer"
    rows = [Row(work=work, method=OURS, seconds=seconds, gap=gap, target=target)]
    some = [{"pairwise_robustness": w} for w in (0.1, 1.0)]
    for backend in ("CLARABEL", "OSQP", "SCS", "PIQP"):
        timing = conic_seconds(objective, backend, some)
        rows.append(scaled(work, f"cvxpy DPP, {backend}", 2, n_weights, timing))
    L, M = graph.laplacian.toarray(), po.graphs.chain_graph(10).laplacian.toarray()
    seconds = n_weights * dense_seconds(G, L, M, [(1.0, 0.5)])
    solves = f"1 of {n_weights}, scaled"
    rows.append(
        Row(work=work, method="dense NumPy solve", seconds=seconds, solves=solves)
    )
    return with_ratios(rows)


def complete_curve(quick: bool) -> list[Row]:
    """The same on complete gaussian graphs, where few peers can follow."""
    X, G = normal(100 if quick else 1000, 10)
    objective = (
        po.GradientMatching(G)
        + po.PairwiseRobustness(po.graphs.gaussian_graph(X))
        + 0.5 * po.Smoothness(po.graphs.chain_graph(10))
    )
    work = f"curve of 200 weights, complete gaussian graph, N={len(X)}, D=10"
    weights = {"pairwise_robustness": np.geomspace(1e-3, 1e3, 200)}
    seconds, trade_offs = median_seconds(lambda: po.sweep(objective, weights), 5)
    gap = max(e.gap for e in trade_offs.optimized)
    rows = [Row(work=work, method=OURS, seconds=seconds, gap=gap)]
    if quick:
        some = [{"pairwise_robustness": w} for w in (0.1, 1.0)]
        timing = conic_seconds(objective, "CLARABEL", some)
        rows.append(scaled(work, "cvxpy DPP, CLARABEL", 2, 200, timing))
    return with_ratios(rows)


def compile_once(quick: bool) -> list[Row]:
    """25 weights by one compiled program, and by a new program for each."""
    X, G = normal(60 if quick else 200, 5)
    objective = (
        po.GradientMatching(G)
        + po.PairwiseRobustness(po.graphs.knn_graph(X, 6))
        + 0.1 * po.Sparsity()
    )
    weights = np.geomspace(1e-3, 1e2, 25)
    work = f"25 weights by conic programs, N={len(X)}, D=5"

    def once() -> po.TradeOffs:
        return po.sweep(objective, {"pairwise_robustness": weights}, solver="conic")

    def each() -> list[po.results.Explanation]:
        return [
            po.solve(objective.with_weights({"pairwise_robustness": w}), "conic")
            for w in weights
        ]

    rows = [
        Row(work=work, method=OURS, seconds=median_seconds(once, 3)[0]),
        Row(work=work, method="compiled 25 times", seconds=median_seconds(each, 3)[0]),
    ]
    return with_ratios(rows)


# ---- losses that are not squared


def sparse_path(quick: bool) -> list[Row]:
    """A path of 20 ℓ1 weights."""
    n_points = 100 if quick else 500
    X, G = normal(n_points, 10)
    rows = []
    for graph in (po.graphs.gaussian_graph(X), po.graphs.knn_graph(X, 8)):
        objective = (
            po.GradientMatching(G) + po.PairwiseRobustness(graph) + po.Sparsity()
        )
        weights = np.geomspace(1e-2, 1, 20)
        work = f"path of 20 sparsity weights, N={n_points}, D=10, {graph.kind} graph"

        path = partial(po.sweep, objective, {"sparsity": weights})
        seconds, trade_offs = median_seconds(path, 5)
        gap = max(e.gap for e in trade_offs.optimized)
        target = "" if quick else ">= 1000x"
        ours = Row(work=work, method=OURS, seconds=seconds, gap=gap, target=target)
        some = [{"sparsity": w} for w in (0.03, 0.3)]
        timing = conic_seconds(objective, "CLARABEL", some)
        peer = scaled(work, "cvxpy DPP, CLARABEL", 2, 20, timing)
        began = time.perf_counter()
        one = po.solve(objective.with_weights({"sparsity": 0.1}), "CLARABEL")
        afresh = (0.0, time.perf_counter() - began, float(one.gap or 0.0))
        single = scaled(work, "cvxpy, CLARABEL, compiled each time", 1, 20, afresh)
        rows += with_ratios([ours, peer, single])
    return rows


# where each backend starts to look for the loosest tolerance that is tight enough
_LOOSE = {"CLARABEL": 1e-1, "SCS": 1e-2, "ECOS": 1e-2}


def at_gap(
    objective: po.losses.Objective, backend: str, gap: float
) -> tuple[float, float]:
    """Seconds of a backend at the loosest tolerance whose certified gap is enough."""
    best = (np.inf, np.inf)
    tolerance = _LOOSE[backend]
    while tolerance > 1e-9:
        began = time.perf_counter()
        explanation = po.solve(
            objective, po.solvers.Conic(backend), tolerance=tolerance
        )
        seconds = time.perf_counter() - began
        if (explanation.gap or 0.0) <= gap:
            return seconds, float(explanation.gap or 0.0)
        best = (seconds, float(explanation.gap or 0.0))
        tolerance /= 10.0
    return best


def max_difference(quick: bool) -> list[Row]:
    """The largest difference over kNN edges, over sizes and weights."""
    sizes = [(50, 2), (100, 3)] if quick else [(50, 2), (100, 3), (400, 2), (400, 10)]
    rows = []
    for n_points, n_features in sizes:
        for weight in (1.0, 30.0):
            rows += _max_difference(n_points, n_features, weight)
    return rows


def _max_difference(n_points: int, n_features: int, weight: float) -> list[Row]:
    X, G = normal(n_points, n_features)
    loss = po.losses.MaxDifferenceRobustness(po.graphs.knn_graph(X, 8))
    objective = po.GradientMatching(G) + weight * loss
    work = f"max-difference, N={n_points}, D={n_features}, weight {weight:g}"
    seconds, best = median_seconds(lambda: po.solve(objective), 5)
    target = ">= 15x" if (n_points, n_features) == (400, 10) else "<= 1.2x the fastest"
    rows = [Row(work=work, method=OURS, seconds=seconds, gap=best.gap, target=target)]
    for backend in ("CLARABEL", "SCS", "ECOS"):
        seconds, gap = at_gap(objective, backend, 1e-6)
        name = f"cvxpy, {backend}"
        rows.append(Row(work=work, method=name, seconds=seconds, gap=gap))
    return with_ratios(rows)


def all_pairs(quick: bool) -> list[Row]:
    """Σ_n max over all pairs at the authors' scale, against a loop over pairs."""
    n_points = 30 if quick else 100
    _, G = normal(n_points, 3)
    loss = po.losses.MaxDifferenceRobustness(po.graphs.complete_graph(n_points), "sum")
    objective = po.GradientMatching(G) + 0.1 * loss
    work = f"sum of max-differences over all pairs, N={n_points}, D=3"
    seconds, best = median_seconds(lambda: po.solve(objective), 5)
    target = "" if quick else ">= 50x"
    ours = Row(work=work, method=OURS, seconds=seconds, gap=best.gap, target=target)
    began = time.perf_counter()
    pair_loops(G, 0.1, aggregate=True).solve(solver="CLARABEL")
    looped = time.perf_counter() - began
    began = time.perf_counter()
    incidence = po.solve(objective, "CLARABEL")
    seconds = time.perf_counter() - began
    rows = [
        ours,
        Row(work=work, method="cvxpy, loop over pairs, CLARABEL", seconds=looped),
        Row(
            work=work,
            method="cvxpy, incidence, CLARABEL",
            seconds=seconds,
            gap=incidence.gap,
        ),
    ]
    return with_ratios(rows)


# ---- a million points


def lattice_objective(n: int) -> po.losses.Objective:
    """Points of an n × n × n lattice; a function that does not split by coordinate."""
    X = po.graphs.grid(-2, 2, n, 3)
    x, y, z = X.T
    phase = x * y + np.sin(2 * z) + 0.5 * x * z
    G = np.cos(phase)[:, None] * np.column_stack(
        [y + 0.5 * z, x, 2 * np.cos(2 * z) + 0.5 * x]
    )
    rng = np.random.default_rng(0)
    G += 0.3 * rng.normal(size=G.shape)
    return po.GradientMatching(G) + po.PairwiseRobustness(
        po.graphs.LatticeGraph((n, n, n))
    )


def lattice_curve(n: int, n_weights: int) -> tuple[float, float]:
    """Seconds of a curve on the lattice, and its largest gap."""
    objective = lattice_objective(n)
    began = time.perf_counter()
    weights = np.geomspace(1e-3, 1e3, n_weights)
    trade_offs = po.sweep(objective, {"pairwise_robustness": weights})
    seconds = time.perf_counter() - began
    return seconds, max(e.gap or 0.0 for e in trade_offs.optimized)


def lattice_attributions(n: int) -> tuple[float, float]:
    """Seconds of the attributions for one weight, and their gap."""
    objective = lattice_objective(n)
    began = time.perf_counter()
    best = po.solve(objective)
    return time.perf_counter() - began, best.gap or 0.0


def lattice_sparse(n: int) -> tuple[float, float]:
    """Seconds of a sparse explanation at a gap of 1e-5, and its gap."""
    objective = lattice_objective(n) + 0.2 * po.Sparsity()
    began = time.perf_counter()
    best = po.solve(objective, tolerance=1e-5)
    return time.perf_counter() - began, best.gap or 0.0


def million(quick: bool) -> list[Row]:
    """A lattice of 100³ points, each in a process of its own."""
    n = 30 if quick else 100
    works: list[tuple[str, Callable[[], tuple[float, float]], str]] = [
        ("curve of 200 weights", partial(lattice_curve, n, 200), "< 1 s"),
        ("curve of 20 weights", partial(lattice_curve, n, 20), ""),
        ("curve of 2000 weights", partial(lattice_curve, n, 2000), "< 1.5x 20 weights"),
        ("attributions for one weight", partial(lattice_attributions, n), "< 1 s"),
        ("sparse, gap 1e-5", partial(lattice_sparse, n), "5 min"),
    ]
    rows = []
    for name, run, target in works:
        (seconds, gap), peak = in_a_process(run)
        rows.append(
            Row(
                work=f"lattice {n}³, D=3: {name}",
                method=OURS,
                seconds=seconds,
                gap=gap,
                peak_mib=peak,
                target=target,
            )
        )
    return rows


def lattices(quick: bool) -> list[Row]:
    """One W and 200 weights beside the cosine transforms alone, in processor time."""
    rows = []
    weights = np.geomspace(1e-3, 1e3, 200)
    for n in (16, 32) if quick else (16, 32, 64, 100):
        objective, box = lattice_objective(n), (n, n, n, 3)
        G = np.asarray(objective.losses[0].target).reshape(box)
        steps = 8.0 * np.sin(np.pi * np.arange(n) / (2 * n)) ** 2
        theta = np.add.outer(np.add.outer(steps, steps), steps)[..., None]

        def one(G: Any = G, theta: Any = theta) -> Any:
            G_hat = scipy.fft.dctn(G, axes=(0, 1, 2), norm="ortho")
            return scipy.fft.idctn(G_hat / (1.0 + theta), axes=(0, 1, 2), norm="ortho")

        def many(G: Any = G, theta: Any = theta) -> Any:
            tau = (scipy.fft.dctn(G, axes=(0, 1, 2), norm="ortho") ** 2).sum(axis=3)
            values, places = np.unique(theta.round(9), return_inverse=True)
            masses = np.bincount(places.ravel(), tau.ravel())
            return [(masses * (b * values / (1.0 + b * values))).sum() for b in weights]

        works: list[tuple[str, Callable[[], Any], Callable[[], Any]]] = [
            ("one W", lambda o=objective: po.solve(o), one),
            (
                "200 weights",
                lambda o=objective: po.sweep(o, {"pairwise_robustness": weights}),
                many,
            ),
        ]
        for name, ours, theirs in works:
            pair = [cpu_seconds(run, 3) for run in (ours, theirs)]
            work = f"lattice {n}³, D=3: {name}"
            both = zip((OURS, "scipy.fft.dctn"), pair, strict=True)
            rows += with_ratios(
                [Row(work=work, method=method, seconds=s) for method, s in both]
            )
    return rows


def bandwidth(quick: bool) -> list[Row]:
    """The share of memory bandwidth that one Lanczos step reaches.

    A step of one column on a lattice of d axes must at least read v and write P v, read
    both and v_{k−1} for the recurrence and write v_{k+1}: 6 vectors of N numbers.
    """
    n = 30 if quick else 100
    size = n**3
    laplacian = LatticeLaplacian((n, n, n))
    g = np.random.default_rng(0).normal(size=size)
    space = Lanczos(laplacian, g, laplacian.largest)
    space.extend()
    before = space.n_steps
    began = time.perf_counter()
    for _ in range(3):
        space.extend()
    step = (time.perf_counter() - began) / (space.n_steps - before)
    source, sink = np.ones(2**26), np.empty(2**26)  # far beyond any cache
    copy, _ = median_seconds(lambda: np.copyto(sink, source), 5)
    least = 6 * 8 * size / (2 * 8 * 2**26 / copy)
    work = f"one Lanczos step, one column, lattice {n}³"
    return [
        Row(work=work, method=OURS, seconds=step, ratio=1.0),
        Row(work=work, method="6 vectors moved", seconds=least, ratio=least / step),
    ]


CASES: dict[str, Case] = {
    "curve": curve,
    "complete_curve": complete_curve,
    "compile_once": compile_once,
    "sparse_path": sparse_path,
    "max_difference": max_difference,
    "all_pairs": all_pairs,
    "million": million,
    "lattices": lattices,
    "bandwidth": bandwidth,
    "perturbation": perturbation,
    "tree_slopes": tree_slopes,
    "lime_limits": lime_limits,
    "lime_texts": lime_texts,
    "inductive": inductive,
    "inductive_images": inductive_images,
    "interactions": interactions,
}


def growth(quick: bool) -> Iterator[tuple[str, list[float], list[float]]]:
    """Seconds of a curve against N, D and the number of weights, for the plot."""
    sizes = [1000, 4000] if quick else [1000, 4000, 16_000, 64_000, 256_000]
    yield "number of points", list(map(float, sizes)), [_knn_curve(n) for n in sizes]
    features = [2, 4] if quick else [2, 4, 8, 16, 32]
    seconds = [_knn_curve(4000, n_features=d) for d in features]
    yield "number of features", list(map(float, features)), seconds
    counts = [10, 100] if quick else [10, 30, 100, 300, 1000, 3000]
    seconds = [_knn_curve(4000, n_weights=k) for k in counts]
    yield "number of weights", list(map(float, counts)), seconds


def _knn_curve(n_points: int, n_features: int = 3, n_weights: int = 100) -> float:
    X, G = normal(n_points, n_features)
    graph = po.graphs.knn_graph(X[:, :3], 8)
    objective = po.GradientMatching(G) + po.PairwiseRobustness(graph)
    weights = {"pairwise_robustness": np.geomspace(1e-3, 1e3, n_weights)}
    return median_seconds(lambda: po.sweep(objective, weights), 3)[0]
