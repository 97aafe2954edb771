"""The losses, maps, penalties, objectives and solvers under test, with small data.

A new loss, map, penalty or solver is one line here, a loss of a new class with its
formula: every test of its kind then covers it, and one fails until the line is there.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd
import scipy.sparse as sp
from oracles import stated

import propopt as po
from propopt.losses import maps
from propopt.losses.completeness import OffAxis
from propopt.losses.graphs.grids import GridGaussianGraph, LatticeGraph
from propopt.solvers import Solver
from propopt.solvers.curves import OneBound, Spectral
from propopt.solvers.factored import Factored
from propopt.solvers.lasso import Lasso
from propopt.solvers.minimum_norm import MinimumNorm
from propopt.solvers.normal_equations import ConstrainedEntryCg, NormalEquations
from propopt.solvers.reductions import (
    CompletenessReduction,
    EntryReduction,
    ShiftReduction,
    TransposeReduction,
)
from propopt.solvers.splitting import Splitting


N, D, S = 7, 4, 6
SHAPE = (N, D)

_rng = np.random.default_rng(41)
X = _rng.normal(size=SHAPE)
G = 2.0 * X + np.sin(3.0 * X) + 0.5
VALUES = (X**2).sum(axis=1) + X[:, 0]
NOISE = _rng.normal(size=(N, S, D))
CHANGES = ((X[:, None] + NOISE) ** 2).sum(axis=2) - (X**2).sum(axis=1)[:, None]
FRAME = pd.DataFrame(
    G, columns=["age", "height", "weight", "dose"], index=range(10, 17)
)


def gaussian_kernel(points: np.ndarray, lengthscale: float) -> np.ndarray:
    squares = ((points[:, None] - points[None]) ** 2).sum(axis=2)
    return np.exp(-squares / (2 * lengthscale**2)) + 1e-8 * np.eye(len(points))


KERNEL = gaussian_kernel(X, 1.5)


def signed_similarities() -> np.ndarray:
    """Off-diagonal entries of −L for a PSD matrix L with zero row sums."""
    centring = np.eye(N) - 1.0 / N
    root = np.random.default_rng(5).normal(size=(N, N)) @ centring
    similarities = -root.T @ root
    np.fill_diagonal(similarities, 0.0)
    return (similarities + similarities.T) / 2


POINT_GRAPHS = {
    "gaussian": po.graphs.gaussian_graph(X),
    "gaussian, cut": po.graphs.gaussian_graph(X, 2.0, cutoff=0.2),
    "threshold": po.graphs.threshold_graph(X, 6.0),
    "knn": po.graphs.knn_graph(X, 2),
    "knn, gaussian": po.graphs.knn_graph(X, 2, weights="gaussian"),
    "complete": po.graphs.complete_graph(N),
    "chain": po.graphs.chain_graph(N),
    "disconnected": po.graphs.group_graph([0, 0, 0, 1, 1, 2, 2]),
    "precomputed": po.graphs.graph_from_matrix(
        sp.csr_array(np.ones((N, N)) - np.eye(N))
    ),
    "signed": po.graphs.graph_from_matrix(signed_similarities()),
}
FEATURE_GRAPHS = {
    "chain": po.graphs.chain_graph(D),
    "pixel": po.graphs.pixel_graph(2, 2),
    "correlation": po.graphs.correlation_graph(X),
    "group": po.graphs.group_graph(["a", "a", "b", "b"]),
}
EMPTY_GRAPH = po.graphs.graph_from_matrix(np.zeros((N, N)))

PRESENT = np.random.default_rng(17).random(SHAPE) < 0.6

OWN = np.where(PRESENT, 1.0 + np.arange(N * D).reshape(SHAPE) / 10.0, 0.0)

LATTICE = LatticeGraph((N,))
GRID = GridGaussianGraph([np.linspace(-1, 2, N)], 0.8)

LOSSES: dict[str, po.losses.PropertyLoss] = {
    "gradient l2": po.GradientMatching(G),
    "gradient l1": po.GradientMatching(G, norm="l1"),
    "gradient of a frame": po.GradientMatching(FRAME),
    "function": po.losses.FunctionMatching(X, VALUES),
    "function, local": po.losses.FunctionMatching(X, CHANGES, perturbations=NOISE),
    **{
        f"pairwise, {name}": po.PairwiseRobustness(graph)
        for name, graph in POINT_GRAPHS.items()
    },
    "pairwise, offset": po.PairwiseRobustness(
        po.graphs.knn_graph(X, 2, weights="gaussian"), offset=np.cos(3.0 * G) + X**2
    ),
    "pairwise, grid, offset": po.PairwiseRobustness(GRID, offset=np.cos(3.0 * G)),
    "pairwise, lattice": po.PairwiseRobustness(LATTICE),
    "pairwise, grid": po.PairwiseRobustness(GRID),
    "pairwise, no edges": po.PairwiseRobustness(EMPTY_GRAPH),
    "shared": po.losses.SharedRobustness(POINT_GRAPHS["knn, gaussian"], PRESENT),
    "shared, all": po.losses.SharedRobustness(POINT_GRAPHS["gaussian"], np.ones(SHAPE)),
    "shared, nothing": po.losses.SharedRobustness(POINT_GRAPHS["chain"], np.eye(N, D)),
    "kernel": po.losses.KernelRobustness(KERNEL),
    "kernel, no mean": po.losses.KernelRobustness(KERNEL, mean="none"),
    **{
        f"difference, {aggregate}": po.losses.MaxDifferenceRobustness(
            POINT_GRAPHS["knn"], aggregate
        )
        for aggregate in ("max", "sum")
    },
    "difference, isolated point": po.losses.MaxDifferenceRobustness(
        po.graphs.group_graph([0, 0, 0, 1, 2, 2, 2]), "sum"
    ),
    **{
        f"smoothness, {name}": po.Smoothness(graph)
        for name, graph in FEATURE_GRAPHS.items()
    },
    "sparsity": stated(po.Sparsity(), lambda _, W: np.abs(W).sum()),
    "row sums": po.losses.Completeness(VALUES, [1.0, 0.5, 0.0, 2.0]).bound(D).loss,
    "row sums, present": po.losses.Completeness(VALUES, OWN).bound(D).loss,
}

MAPS: dict[str, maps.LinearMap] = {
    "identity": maps.Identity(),
    "over points, sparse": maps.OverPoints(POINT_GRAPHS["knn"].incidence),
    "over points, dense": maps.OverPoints(_rng.normal(size=(5, N))),
    "over features, sparse": maps.OverFeatures(FEATURE_GRAPHS["chain"].incidence),
    "over features, dense": maps.OverFeatures(_rng.normal(size=(6, D))),
    "over points, implicit lattice": LATTICE.differences,
    "over points, implicit grid": GRID.differences,
    "over entries": LOSSES["shared"].map,
    "per point": maps.PerPoint(NOISE),
    "per point, one row": maps.PerPoint(X[:, None, :]),
    "row sums": maps.RowSums(np.array([1.0, 0.5, 0.0, 2.0])),
    "row sums, own": maps.RowSums(OWN),
    "off axes": OffAxis(
        LOSSES["shared"].map, OWN / np.linalg.norm(OWN, axis=1)[:, None]
    ),
    "off an axis": OffAxis(maps.PerPoint(NOISE), np.array([0.6, 0.0, 0.8, 0.0])),
}

GROUPS = {"one group": [0], "groups": [0, 1, 4, 6], "groups of one": range(N)}
PENALTIES: dict[str, maps.Penalty] = {
    "squared": maps.Squared(),
    "absolute": maps.Absolute(),
    **{
        name: maps.GroupMax(np.array(starts, dtype=np.intp), N)
        for name, starts in GROUPS.items()
    },
}

_gradient, _gradient_l1 = LOSSES["gradient l2"], LOSSES["gradient l1"]
_function, _local = LOSSES["function"], LOSSES["function, local"]
_knn, _kernel = LOSSES["pairwise, knn, gaussian"], LOSSES["kernel"]
_full, _beside = LOSSES["pairwise, gaussian"], LOSSES["pairwise, offset"]
_shared = LOSSES["shared"]
_chain, _sparsity = LOSSES["smoothness, chain"], LOSSES["sparsity"]
_max, _sum = LOSSES["difference, max"], LOSSES["difference, sum"]

OBJECTIVES: dict[str, po.losses.Objective] = {
    "gradient": 1.0 * _gradient,
    "gradient, pairwise": _gradient + 0.7 * _full,
    "gradient, signed": _gradient + 0.2 * LOSSES["pairwise, signed"],
    "gradient, lattice": _gradient + 0.7 * LOSSES["pairwise, lattice"],
    "gradient, grid, sparsity": _gradient + LOSSES["pairwise, grid"] + 0.3 * _sparsity,
    "gradient, pairwise, smoothness": 2.0 * _gradient + 0.4 * _knn + 0.3 * _chain,
    "gradient, offset": _gradient + 0.7 * _beside,
    "gradient, beside, smoothness": _gradient + 0.7 * _beside + 0.4 * _chain,
    "gradient, beside, sparsity": _gradient + 0.7 * _beside + 0.4 * _sparsity,
    "gradient l1, offset": _gradient_l1 + 0.3 * _beside,
    "function, offset": _function + 0.7 * _beside,
    "gradient, grid, offset": _gradient + 2.0 * LOSSES["pairwise, grid, offset"],
    "gradient, disconnected": _gradient + 3.0 * LOSSES["pairwise, disconnected"],
    "gradient, no edges": _gradient + LOSSES["pairwise, no edges"] + 0.3 * _sparsity,
    "gradient, kernel": _gradient + 0.05 * _kernel,
    "gradient, kernel without mean": _gradient + 0.1 * LOSSES["kernel, no mean"],
    "gradient, own mean, smoothness": _gradient + LOSSES["kernel, no mean"] + _chain,
    "gradient, pairwise, sparsity": _gradient + 0.4 * _knn + 0.8 * _sparsity,
    "gradient, smoothness, sparsity": _gradient + 0.5 * _chain + 0.3 * _sparsity,
    "gradient, shared": _gradient + 0.7 * _shared,
    "gradient, shared, sparsity": _gradient + 0.7 * _shared + 0.4 * _sparsity,
    "gradient, shared, pairwise": _gradient + 0.5 * _shared + 0.2 * _full,
    "gradient l1, shared": _gradient_l1 + 0.5 * _shared,
    "gradient, max": _gradient + 0.5 * _max,
    "gradient, sum": _gradient + 0.2 * _sum,
    "gradient, max, sparsity": _gradient + 0.5 * _max + 0.4 * _sparsity,
    "gradient, sum, smoothness": _gradient + 0.5 * _sum + 0.2 * _chain,
    "gradient, function, pairwise": _gradient + 0.5 * _function + 0.3 * _full,
    "gradient l1, sparsity": _gradient_l1 + 0.5 * _sparsity,
    "gradient l1, sum, sparsity": _gradient_l1 + 0.1 * _sum + 0.2 * _sparsity,
    "gradient l1, pairwise": _gradient_l1 + 0.3 * _knn,
    "gradient l1, max": _gradient_l1 + 0.4 * _max,
    "function, pairwise": _function + 0.3 * _full,
    "function, pairwise, smoothness": _function + 0.3 * _full + 0.2 * _chain,
    "function, sparsity": _function + 0.2 * _sparsity,
    "function, pairwise, sparsity": _function + 0.2 * _full + 0.1 * _sparsity,
    "function, max": _function + 0.2 * _max,
    "local": 1.0 * _local,
    "local, max": _local + 5.0 * _max,
    "local, kernel": _local + 0.1 * _kernel,
}
SQUARED = {
    name: objective
    for name, objective in OBJECTIVES.items()
    if all(isinstance(loss.penalty, maps.Squared) for loss in objective.losses)
}


@dataclass(frozen=True)
class SolverCase:
    """A solver, and the certified gap that it has to reach."""

    solver: str | Solver
    gap: float


SOLVERS: dict[str, SolverCase] = {
    "auto": SolverCase(po.solvers.Auto(), 1e-6),
    "spectral": SolverCase(Spectral(), 1e-12),
    "factored": SolverCase(Factored(), 1e-12),
    "krylov": SolverCase(po.solvers.Krylov(), 1e-6),
    "one_bound": SolverCase(OneBound(), 1e-6),
    "normal_equations": SolverCase(NormalEquations(), 1e-6),
    "lasso": SolverCase(Lasso(), 1e-6),
    "splitting": SolverCase(Splitting(), 1e-6),
    "complete": SolverCase(CompletenessReduction(po.solvers.Auto()), 1e-6),
    "shifted": SolverCase(ShiftReduction(po.solvers.Auto()), 1e-6),
    "complete entries": SolverCase(ConstrainedEntryCg(), 1e-6),
    "entries": SolverCase(EntryReduction(po.solvers.Auto()), 1e-6),
    "transposed": SolverCase(TransposeReduction(po.solvers.Auto()), 1e-6),
    "conic": SolverCase(po.solvers.Conic(), 1e-6),
    "minimum_norm": SolverCase(MinimumNorm(), 1e-10),
    "CLARABEL": SolverCase("CLARABEL", 1e-6),
    "OSQP": SolverCase("OSQP", 1e-6),
    "SCS": SolverCase("SCS", 1e-6),
    "HIGHS": SolverCase("HIGHS", 1e-5),
    "ECOS": SolverCase("ECOS", 1e-5),
    "PIQP": SolverCase("PIQP", 1e-6),
}
