"""What a function is read as, believed once it is what the function answers."""

from __future__ import annotations

from typing import Final

import numpy as np

from propopt._typing import Points
from propopt.functions import Function
from propopt.structures.products import NoProducts, SumOfProducts
from propopt.tables.names import Labels


_MOST_CHECKED: Final = 1000


def read_products(
    function: Function, reference: Points, points: Points, labels: Labels
) -> SumOfProducts | NoProducts:
    """The sum of products that a function is, if it is one at up to 1000 rows."""
    read = function.products
    if isinstance(read, NoProducts):
        return read
    step = -(-len(reference) // _MOST_CHECKED)
    rows = np.concatenate([reference[::step], points[:_MOST_CHECKED]])
    with function.calls.trying_out():
        values = function.value_at(rows, labels.of_columns())
    errors = np.abs(read.value(rows) - values) / np.maximum(1.0, np.abs(values))
    if errors.max() <= read.tolerance:
        return read
    return NoProducts(
        f"what {function!r} was read as differs from its answer by {errors.max():.2g} "
        f"of max(1, |f|), where {read.tolerance:.0e} is allowed"
    )
