"""What the dual of a max-difference loss says of the edges that bind."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from propopt._typing import Array
from propopt.errors import InvalidInput
from propopt.losses import MaxDifferenceRobustness
from propopt.maps import OverPoints
from propopt.solvers.base import Solution


def edge_weights(loss: MaxDifferenceRobustness, solution: Solution) -> Array:
    """Weights of the edges with which pairwise robustness gives the same attributions.

    At the optimum W of an objective with a max-difference loss in l2, replacing it by
    Σ_{n,n'} ‖w_n − w_n'‖² S_nn' (over ordered pairs, weight one) changes nothing. S is
    zero on edges shorter than the largest difference: it tells where the explanation
    has to change fastest. The sum of 2S over all edges is the weight of the loss for
    ``aggregate="max"``, and N times that for ``"sum"`` if no point is isolated.

    Parameters
    ----------
    loss : MaxDifferenceRobustness
        In l2; its dual is in the solution.
    solution : Solution
        What a solver found.

    Returns
    -------
    array (n_edges,)
        S_nn' ≥ 0 for each edge of ``loss.graph.edges``.

    Raises
    ------
    InvalidInput
        If the loss is not in l2, or the solution has no dual of it.

    References
    ----------
    Tadesse et al. 2024, Eq. 3 and 13.
    """
    if loss.norm != "l2":
        raise InvalidInput(
            f"{loss.name}: its norm is {loss.norm!r}; only 'l2' has the edge weights "
            "of a squared loss"
        )
    if loss.name not in solution.duals:
        raise InvalidInput(f"solution: has no dual of {loss.name!r}")
    # y_e = 2 s_e z_e; an ordered-pair loss counts S_e‖z_e‖² twice
    s = 0.5 * _multiples(solution.duals[loss.name], loss.residual(solution.W))
    return np.asarray(0.5 * np.bincount(_edge_of_row(loss), s, loss.graph.n_edges))


def _multiples(Y: Array, Z: Array) -> Array:
    """The m_e ≥ 0 with y_e = m_e z_e, or nearly."""
    squares = np.einsum("ed,ed->e", Z, Z)
    products = np.maximum(np.einsum("ed,ed->e", Y, Z), 0.0)
    return np.divide(products, squares, out=np.zeros_like(squares), where=squares > 0)


def _edge_of_row(loss: MaxDifferenceRobustness) -> NDArray[np.intp]:
    """The place in ``graph.edges`` of each row of the map."""
    assert isinstance(loss.map, OverPoints)
    ends = np.sort(sp.csr_array(loss.map.matrix).indices.reshape(-1, 2), axis=1)
    edges = loss.graph.edges
    codes = edges[:, 0] * loss.n_points + edges[:, 1]
    order = np.argsort(codes)
    wanted = ends[:, 0].astype(np.intp) * loss.n_points + ends[:, 1]
    return order[np.searchsorted(codes, wanted, sorter=order)]
