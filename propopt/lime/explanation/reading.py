"""What a function is read as, believed once it is what the function answers."""

from __future__ import annotations

import numpy as np

from propopt._typing import Points
from propopt.functions import Function
from propopt.functions.smoothing.checked import CheckedProducts
from propopt.structures.products import NoProducts, SumOfProducts
from propopt.tables.names import Labels


def checked_products(
    function: Function, reference: Points, points: Points, labels: Labels
) -> SumOfProducts | NoProducts:
    """The sum of products that a function is, if it is one at rows of both tables.

    Parameters
    ----------
    function : Function
        f.
    reference, points : array (R, D) and (N, D)
        Rows of the table of the law, and rows that are explained.
    labels : Labels
        Names of the columns.
    """
    rows = np.concatenate([points, reference])
    return CheckedProducts.of(function).at(rows, labels.of_columns())
