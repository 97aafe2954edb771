"""Rows of a table as directions."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from propopt._typing import Array, Sparse


def directions(rows: Sparse) -> Sparse:
    """Rows (N, M) at length one, those of zeros as they are.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> directions(sp.csr_array([[3.0, 4.0], [0.0, 0.0], [0.0, 1e200]])).toarray()
    array([[0.6, 0.8],
           [0. , 0. ],
           [0. , 1. ]])
    """
    sizes = np.asarray(abs(rows).max(axis=1).toarray(), float).ravel()
    near_one = _divided(rows, sizes)  # whose squares neither overflow nor vanish
    return _divided(near_one, np.sqrt(near_one.power(2).sum(axis=1)))


def _divided(rows: Sparse, sizes: Array) -> Sparse:
    shares = 1.0 / np.where(sizes > 0.0, sizes, 1.0)
    return sp.csr_array(sp.diags_array(shares) @ rows)
