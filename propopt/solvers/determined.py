"""Whether squared losses determine W: whether H = Σ AᵀA is positive definite.

Small programs are judged by the smallest eigenvalue of H. Large ones are judged by
their structure: a graph leaves open only what is constant on each of its components, so
that H is positive definite if and only if on each component Σ_n Z_nᵀZ_n + CᵀC is, a
(D, D) matrix, where Z_n are the designs of function matching and C couples features.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from propopt._typing import Array, Sparse
from propopt.linear.components import Components
from propopt.losses import Faithfulness, Program, PropertyLoss
from propopt.lower_bounds import DENSE_LIMIT, smallest_curvature
from propopt.maps import (
    Identity,
    ImplicitOverPoints,
    OverFeatures,
    OverPoints,
    PerPoint,
)
from propopt.penalties import Squared


def undetermined_refusal(program: Program) -> str | None:
    """Why squared losses leave W open: tied to the function, and not fixed by it."""
    losses = program.losses
    if program.bounds or not any(isinstance(loss, Faithfulness) for loss in losses):
        return None
    if not all(isinstance(loss.penalty, Squared) for loss in losses):
        return None
    if any(isinstance(loss.map, Identity) for loss in losses):
        return None
    if _determined(losses, program.shape):
        return None
    return (
        f"{' and '.join(loss.name for loss in losses)} leave the attributions "
        "undetermined; add gradient_matching, sparsity or robustness on a connected "
        "graph, or take the smallest minimiser with solver='minimum_norm'"
    )


def _determined(losses: tuple[PropertyLoss, ...], shape: tuple[int, int]) -> bool:
    if shape[0] * shape[1] <= DENSE_LIMIT:
        return smallest_curvature([(1.0, loss) for loss in losses], shape) > 0.0
    tied = _components(losses, shape[0])
    if tied is None:
        return True
    totals = np.zeros((tied.max() + 1, shape[1], shape[1]))
    for loss in losses:
        match loss.map:
            case PerPoint(designs):
                np.add.at(totals, tied, point_grams(designs))
            case OverFeatures() as coupled:
                totals += coupled.gram
    values = np.linalg.eigvalsh(totals)
    return bool((values[:, 0] > 1e-12 * values[:, -1]).all())


def point_grams(designs: Array) -> Array:
    """Z_nᵀZ_n for each point, shape (N, D, D)."""
    return np.asarray(designs.transpose(0, 2, 1) @ designs)


def _components(
    losses: tuple[PropertyLoss, ...], n_points: int
) -> NDArray[np.integer] | None:
    """Which points the couplings tie to one value; None if they tie all to zero."""
    ties = sp.csr_array((n_points, n_points))
    for loss in losses:
        match loss.map:
            case OverPoints(components=parts) | ImplicitOverPoints(components=parts):
                if parts is None:
                    return None
                ties = ties + _star(parts)
    return Components.of(ties).labels


def _star(parts: Components) -> Sparse:
    """Ones between each node and the first one of its part."""
    n_nodes = len(parts.labels)
    _, first = np.unique(parts.labels, return_index=True)
    ends = (np.arange(n_nodes), first[parts.labels])
    return sp.csr_array((np.ones(n_nodes), ends), shape=(n_nodes, n_nodes))
