"""Paths: which factors each product has, as a padded table."""

from __future__ import annotations

import numpy as np

from propopt._typing import Positions


def padded_paths(product: Positions, factor: Positions, n_products: int) -> Positions:
    """One row of factors for each product, padded with −1, (L, K).

    Parameters
    ----------
    product : array (E,)
        The product of each entry, not decreasing.
    factor : array (E,)
        The factor.
    n_products : int
        L.
    """
    lengths = np.bincount(product, minlength=n_products)
    paths = np.full((n_products, int(lengths.max(initial=0))), -1)
    starts = np.cumsum(lengths) - lengths
    paths[product, np.arange(len(product)) - starts[product]] = factor
    return paths
