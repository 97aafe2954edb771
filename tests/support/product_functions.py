"""Functions that are sums of products by construction, and laws to explain them by."""

import linear_sums
import numpy as np
from lime_functions import Known
from normal_samples import pieces_of

from propopt.lime.laws.binned_columns import BinnedColumn
from propopt.lime.laws.tabular_law import TabularLaw
from propopt.structures.products.families import Powers
from propopt.structures.products.normals import Normals
from propopt.structures.products.sums import SumOfProducts


def linear(slopes, base=0.0):
    """Base + slopesᵀ x."""
    return Known(linear_sums.linear(slopes, base))


def monomial(columns, n_columns):
    """The product of some columns."""
    paths, factors = np.arange(len(columns))[None], Powers.first(np.array(columns))
    return Known(SumOfProducts(0.0, np.ones(1), paths, (factors,), n_columns))


def three_bins(kernel_width):
    """Three columns alike, with bins of shares 1/3 that end at −1 and 1."""
    bins = Normals.of(
        [-1.8, 0.1, 1.7], [0.5, 0.6, 0.55], [-3.0, -1.0, 1.0], [-1.0, 1.0, 3.0]
    )
    column = BinnedColumn(
        pieces_of(bins),
        np.full(3, 1 / 3),
        np.array([-1.0, 1.0]),
        ("low", "middle", "high"),
    )
    return TabularLaw.of((column,) * 3, kernel_width)


IN_ITS_CELL = np.array([[-1.5, 0.0, 2.0]])
"""A row in the bins 0, 1 and 2."""
