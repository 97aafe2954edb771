"""Inverses of matrices that come apart into small ones."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import scipy.sparse as sp

from propopt._typing import Array, Positions, Sparse
from propopt.linear.components import Components


def inverse_size(parts: Components) -> float:
    """How many numbers the inverse has, Σ n_c²."""
    return float((parts.sizes**2).sum())


def inverse_by_parts(H: Sparse, parts: Components) -> Sparse:
    """H⁻¹ (P, P) of a matrix that couples no two parts, in Σ n_c³ operations.

    Parameters
    ----------
    H : sparse matrix (P, P)
        Positive definite.
    parts : Components
        Of the P nodes.

    Examples
    --------
    >>> import numpy as np, scipy.sparse as sp
    >>> H = sp.csr_array(np.array([[2.0, 0, 1], [0, 4, 0], [1, 0, 2]]))
    >>> inverse_by_parts(H, Components.of(H)).toarray().round(3) + 0.0
    array([[ 0.667,  0.   , -0.333],
           [ 0.   ,  0.25 ,  0.   ],
           [-0.333,  0.   ,  0.667]])
    """
    sizes = parts.sizes.astype(np.intp)
    of_node = sizes[parts.labels]
    order = np.argsort(parts.labels, kind="stable")
    starts = np.cumsum(sizes) - sizes
    place = np.empty(len(order), np.intp)  # of each node within its part
    place[order] = np.arange(len(order)) - np.repeat(starts, sizes)
    rows = np.concatenate([[0], np.cumsum(of_node)])
    columns, values = np.empty(rows[-1], np.intp), np.empty(rows[-1])
    number = np.empty(parts.count, np.intp)  # among parts of the same size
    for size, entries in _by_size(sp.csr_array(H), of_node):
        alike = np.flatnonzero(sizes == size)
        number[alike] = np.arange(len(alike))
        blocks = np.zeros((len(alike), size, size))
        first, second = entries.coords
        blocks[number[parts.labels[first]], place[first], place[second]] = entries.data
        nodes = order[starts[alike][:, None] + np.arange(size)]
        here = rows[nodes][:, :, None] + np.arange(size)
        values[here] = _inverses(blocks)
        columns[here] = nodes[:, None, :]
    return sp.csr_array((values, columns, rows), shape=H.shape)


def _by_size(H: Sparse, of_node: Positions) -> Iterator[tuple[int, Sparse]]:
    """The entries of H by the size of the part of their row."""
    listed = H.tocoo()
    keys = of_node[listed.coords[0]]
    order = np.argsort(keys, kind="stable")
    found, firsts = np.unique(keys[order], return_index=True)
    ends = [*firsts[1:].tolist(), len(order)]
    for size, first, end in zip(found.tolist(), firsts.tolist(), ends, strict=True):
        some = order[first:end]
        coords = tuple(places[some] for places in listed.coords)
        yield size, sp.coo_array((listed.data[some], coords), shape=H.shape)


def _inverses(blocks: Array) -> Array:
    """Of each block (k, s, s), symmetric to the last digit."""
    inverses = np.linalg.inv(blocks)
    return np.asarray((inverses + inverses.transpose(0, 2, 1)) / 2.0)
