"""Components of a graph by the size of their similarities.

Lanczos sees eigenvalues to within rounding at ‖P‖. Where the similarities of some
components are a million times those of others, each lot is treated by itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from propopt._typing import Array, Sparse
from propopt.linear.components import Components
from propopt.operators import Operator


_APART = 1e3
"""Components whose largest entries differ by less are treated together."""


@dataclass(frozen=True, eq=False)
class Lot:
    """Some components of P: their nodes, their part of P, and a bound of its norm."""

    P: Any
    nodes: NDArray[np.intp] | slice
    norm: float


def lots_of(P: Sparse | Array | Operator, parts: Components | None) -> list[Lot]:
    """The lots of components, the largest first; isolated nodes are in none."""
    if isinstance(P, Operator):
        return [Lot(P, slice(None), P.largest)]
    if parts is None or parts.count == 1 or not sp.issparse(P):
        return [Lot(P, slice(None), _norm(P))]
    lots = _lots(P.diagonal(), parts)
    if not lots.any():
        return [Lot(P, slice(None), _norm(P))]
    members = (np.flatnonzero(lots == lot) for lot in np.unique(lots[lots >= 0]))
    return [_lot(sp.csr_array(P)[nodes][:, nodes], nodes) for nodes in members]


def _lots(diagonal: Array, parts: Components) -> NDArray[np.intp]:
    """A number for each node: by how many factors its component is below the largest.

    No entry of a positive semidefinite matrix is above its largest diagonal one. Minus
    one where the component is an isolated node.
    """
    largest = np.zeros(parts.count)
    np.maximum.at(largest, parts.labels, diagonal)
    some = largest > 0.0
    lots = np.full(parts.count, -1)
    sizes = np.log(largest[some])
    below = sizes.max(initial=-np.inf) - sizes
    lots[some] = np.floor(below / np.log(_APART))
    return lots[parts.labels]


def _lot(P: Sparse, nodes: NDArray[np.intp]) -> Lot:
    return Lot(P, nodes, _norm(P))


def _norm(P: Sparse | Array) -> float:
    """The largest sum of absolute values in a row: no eigenvalue is larger."""
    return float(abs(P).sum(axis=1).max())
