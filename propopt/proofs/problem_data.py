"""The program that was solved, as arrays: so that a file can be checked without us.

A saved optimum has attributions, losses, weights and a lower bound. What says that
these belong together are the targets and graphs of the losses. They stand beside it,
by the name of a loss and of the array::

    <loss>.target                   T (N, D) of Σ (W − T)²
    <loss>.sizes                    T of Σ |W − T|
    <loss>.rows, .similarities      edges (E, 2) and S (E,) of 2 Σ_e S_e ‖w_n − w_n'‖²
    <loss>.beside                   what is taken off W before
    <loss>.near, .similarities      of rows beside fixed ones: places j and s (N, k) of
    <loss>.fixed                    2 Σ_nj s_nj ‖w_n − r_j‖², r (R, D); −1: no place
    <loss>.columns, .similarities   the same of columns of W
    <loss>.entries, .similarities   the same of entries of W, counted row by row
    <loss>.totals, .parts           t (N,) and v of the constraint W v = t
    <loss>.limit                    of a loss that is bounded

In a metric ω (``metric``), losses are of W/√ω over columns with ω > 0, and of targets
and the like over √ω; other columns are those of the target.

From these anybody can compute each loss, its gradient, and a lower bound by strong
convexity; ``tools/verify.py`` does, with NumPy alone. Of other losses, such as largest
differences and lattices, nothing is written.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from propopt.base.arrays import Array
from propopt.losses import (
    PairwiseRobustness,
    Program,
    PropertyLoss,
    SharedRobustness,
    Smoothness,
)
from propopt.losses.graphs.points import Graph
from propopt.losses.maps import Absolute, Identity, OverPoints, RowSums, Squared
from propopt.losses.restricted import is_complete


MOST_EDGES: Final = 1_000_000
"""Of a graph that is written, 24 bytes each."""


def posed_of(program: Program, shape: tuple[int, int]) -> dict[str, NDArray[Any]]:
    """The arrays above, of each loss and bound of a program that has some."""
    posed: dict[str, NDArray[Any]] = {}
    for loss in program.all_losses:
        posed |= {f"{loss.name}.{key}": x for key, x in _arrays_of(loss, shape)}
    for bound in program.bounds:
        if not is_complete(bound):
            posed[f"{bound.loss.name}.limit"] = np.array(bound.limit)
    return posed


def in_units_of_w(
    posed: Mapping[str, NDArray[Any]], phi: Array, scales: Array
) -> dict[str, NDArray[Any]]:
    """The arrays of a program of z = (W − Φ)/√ω, as they are of W."""
    found: dict[str, NDArray[Any]] = {}
    for key, array in posed.items():
        match key.rpartition(".")[2]:
            case "target" | "beside":
                array = phi + scales * array
            case "totals":
                array = phi.sum(axis=1) + array
            case "parts":
                array = np.ones(array.shape)
        found[key] = array
    return found


def _arrays_of(
    loss: PropertyLoss, shape: tuple[int, int]
) -> Iterator[tuple[str, NDArray[Any]]]:
    if isinstance(loss, PairwiseRobustness) and isinstance(loss.map, OverPoints):
        yield from _edges("rows", loss.graph)
        if loss.beside is not None:
            yield "beside", loss.beside
        return
    if isinstance(loss, Smoothness):
        yield from _edges("columns", loss.graph)
        return
    if isinstance(loss, SharedRobustness):
        for key, array in _edges("entries", loss.entry_graph):
            yield key, loss.map.entries[array] if key == "entries" else array
        return
    match loss.map, loss.penalty:
        case Identity(), Squared():
            yield "target", np.array(np.broadcast_to(loss.target, shape))
        case Identity(), Absolute():
            yield "sizes", np.array(np.broadcast_to(loss.target, shape))
        case RowSums(weights=v), Squared():
            yield "totals", np.asarray(loss.target)[:, 0]
            yield "parts", v


def _edges(key: str, graph: Graph) -> Iterator[tuple[str, NDArray[Any]]]:
    """Nothing of graphs that have too many."""
    if graph.n_edges <= MOST_EDGES:
        yield key, graph.edges.astype(np.int64)
        yield "similarities", np.asarray(graph.strengths, np.float64)
