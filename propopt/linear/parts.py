"""Inverses of matrices that come apart into small ones."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from propopt._typing import Array, Sparse
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
    order = np.argsort(parts.labels, kind="stable")
    sizes = parts.sizes.astype(np.intp)
    starts = np.cumsum(sizes) - sizes
    place = np.empty(len(order), np.intp)  # of each node within its part
    place[order] = np.arange(len(order)) - np.repeat(starts, sizes)
    listed = sp.csr_array(H).tocoo()
    of_entry = parts.labels[listed.coords[0]]
    rows, columns, values = [], [], []
    for size in np.unique(sizes):
        alike = np.flatnonzero(sizes == size)
        number = np.full(parts.count, -1)
        number[alike] = np.arange(len(alike))
        here = number[of_entry] >= 0
        blocks = np.zeros((len(alike), size, size))
        first, second = (place[ends[here]] for ends in listed.coords)
        blocks[number[of_entry[here]], first, second] = listed.data[here]
        nodes = order[starts[alike][:, None] + np.arange(size)]
        values.append(_inverses(blocks).ravel())
        rows.append(np.repeat(nodes, size, axis=1).ravel())
        columns.append(np.tile(nodes, size).ravel())
    entries = (np.concatenate(rows), np.concatenate(columns))
    return sp.csr_array((np.concatenate(values), entries), shape=H.shape)


def _inverses(blocks: Array) -> Array:
    """Of each block (k, s, s), symmetric to the last digit."""
    inverses = np.linalg.inv(blocks)
    return np.asarray((inverses + inverses.transpose(0, 2, 1)) / 2.0)
