"""Functions that are sums of products by construction, and laws to explain them by."""

from dataclasses import dataclass

import numpy as np
from normal_samples import pieces_of

from propopt.functions import Function
from propopt.lime.laws.binned_columns import BinnedColumn
from propopt.lime.laws.tabular_law import TabularLaw
from propopt.structures.products.families import Powers
from propopt.structures.products.normals import Normals
from propopt.structures.products.sums import SumOfProducts
from propopt.tables.schema import TableSchema


@dataclass(frozen=True, eq=False)
class OfProducts(Function):
    """A sum of products as a function; it may answer something else."""

    sum_of_products: SumOfProducts
    table: TableSchema | None = None
    off_by: float = 0.0

    @property
    def schema(self):
        return self.table

    @property
    def products(self):
        return self.sum_of_products

    @property
    def gradient_method(self):
        return "exact"

    def _value(self, points, labels):
        del labels
        return self.sum_of_products.value(points) + self.off_by

    def _gradient(self, points, labels):
        raise AssertionError(f"nobody asks, at {points} of {labels}")


def linear(slopes, base=0.0):
    """Base + slopesᵀ x."""
    columns = np.arange(len(slopes))
    terms = Powers.first(columns)
    return OfProducts(SumOfProducts.additive(base, slopes, terms, len(slopes)))


def monomial(columns, n_columns):
    """The product of some columns."""
    paths = np.arange(len(columns))[None]
    return OfProducts(
        SumOfProducts(
            0.0, np.ones(1), paths, (Powers.first(np.array(columns)),), n_columns
        )
    )


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
