"""The program that was solved, as arrays: so that a file can be checked without us.

A saved optimum has attributions, losses, weights and a lower bound. What says that
these belong together are the targets and graphs of the losses. They stand beside it,
by the name of a loss and of the array::

    <loss>.target                   T (N, D) of Σ (W − T)²
    <loss>.sizes                    T of Σ |W − T|
    <loss>.rows, .similarities      edges (E, 2) and S (E,) of 2 Σ_e S_e ‖w_n − w_n'‖²
    <loss>.columns, .similarities   the same of columns of W
    <loss>.entries, .similarities   the same of entries of W, counted row by row
    <loss>.totals, .parts           t (N,) and v of the constraint W v = t
    <loss>.limit                    of a loss that is bounded

From these anybody can compute each loss, its gradient, and a lower bound by strong
convexity; ``tools/verify.py`` does, with NumPy alone. Of other losses, such as largest
differences and lattices, nothing is written.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from propopt.losses import Program, PropertyLoss
from propopt.losses.maps import (
    Absolute,
    Identity,
    OverEntries,
    OverFeatures,
    OverPoints,
    RowSums,
    Squared,
)
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


def _arrays_of(
    loss: PropertyLoss, shape: tuple[int, int]
) -> Iterator[tuple[str, NDArray[Any]]]:
    match loss.map, loss.penalty:
        case Identity(), Squared():
            yield "target", np.array(np.broadcast_to(loss.target, shape))
        case Identity(), Absolute():
            yield "sizes", np.array(np.broadcast_to(loss.target, shape))
        case RowSums(weights=v), Squared():
            yield "totals", np.asarray(loss.target)[:, 0]
            yield "parts", v
        case OverPoints(), Squared():
            yield from _edges("rows", getattr(loss, "graph", None))
        case OverFeatures(), Squared():
            yield from _edges("columns", getattr(loss, "graph", None))
        case OverEntries(entries=own), Squared():
            graph = getattr(loss, "entry_graph", None)
            for key, array in _edges("entries", graph):
                yield key, own[array] if key == "entries" else array


def _edges(key: str, graph: Any) -> Iterator[tuple[str, NDArray[Any]]]:
    """Nothing of kernels, which have no edges, and of graphs that have too many."""
    if graph is not None and graph.n_edges <= MOST_EDGES:
        first, second = graph.edges.T
        yield key, np.asarray(graph.edges, np.int64)
        values = graph.similarities[first, second]
        yield "similarities", np.asarray(values, np.float64).ravel()
